// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <dlfcn.h>

#include <string>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/blocks.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/channelize/cuda/kernels.cuh"
#include "ryle/engine/channelize/dither.hpp"
#include "ryle/engine/channelize/problem.hpp"

/// What the fused channelizer replaces: a filter kernel, cuFFT and a post kernel, with the spectra
/// in device memory between them. cuFFT is used here only, and looked for at run time.
namespace ryle::bench::chain {

/// The four functions of cuFFT that the chain calls; all null where the library is not found.
struct CuFft {
  static constexpr int kComplexToComplex = 0x29;
  static constexpr int kForward = -1;
  int (*plan)(int*, int, int, int) = nullptr;  ///< plan, points, type, transforms
  int (*destroy)(int) = nullptr;
  int (*set_stream)(int, cudaStream_t) = nullptr;
  int (*execute)(int, float2*, float2*, int) = nullptr;

  static CuFft load() {
    CuFft f;
    void* library = nullptr;
    for (const char* name : {"libcufft.so.12", "libcufft.so.11", "libcufft.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return f;
    f.plan = reinterpret_cast<decltype(f.plan)>(dlsym(library, "cufftPlan1d"));
    f.destroy = reinterpret_cast<decltype(f.destroy)>(dlsym(library, "cufftDestroy"));
    f.set_stream = reinterpret_cast<decltype(f.set_stream)>(dlsym(library, "cufftSetStream"));
    f.execute = reinterpret_cast<decltype(f.execute)>(dlsym(library, "cufftExecC2C"));
    return f;
  }
  bool found() const { return plan && destroy && set_stream && execute; }
};

constexpr int kPerBlock = 64;  // spectra of a block of ci8

/// Filtered points of 64 spectra of one input, taps sliding through registers.
template <int kTaps>
__global__ void filter_units(const char2* samples, std::int64_t input_stride, const float* filter,
                             int n_points, int n_inputs, int first_unit, float2* out) {
  const int unit = static_cast<int>(blockIdx.y);
  const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (n >= n_points) return;
  const int block = (first_unit + unit) / n_inputs;
  const int input = (first_unit + unit) % n_inputs;
  const char2* at =
      samples + input * input_stride + static_cast<std::int64_t>(block) * kPerBlock * n_points + n;
  float h[kTaps];
  float2 x[kTaps];
  for (int p = 0; p < kTaps; ++p) h[p] = filter[p * n_points + n];
#pragma unroll
  for (int p = 0; p < kTaps - 1; ++p) {
    const char2 code = at[static_cast<std::int64_t>(p) * n_points];
    x[p] = {static_cast<float>(code.x), static_cast<float>(code.y)};
  }
  out += (static_cast<std::int64_t>(unit) * kPerBlock) * n_points + n;
  for (int first = 0; first < kPerBlock; first += kTaps) {
#pragma unroll
    for (int s = 0; s < kTaps; ++s) {
      const char2 code = at[static_cast<std::int64_t>(first + s + kTaps - 1) * n_points];
      x[(s + kTaps - 1) % kTaps] = {static_cast<float>(code.x), static_cast<float>(code.y)};
      float2 sum = {0, 0};
#pragma unroll
      for (int p = 0; p < kTaps; ++p) {
        sum.x = fmaf(h[p], x[(s + p) % kTaps].x, sum.x);
        sum.y = fmaf(h[p], x[(s + p) % kTaps].y, sum.y);
      }
      out[static_cast<std::int64_t>(first + s) * n_points] = sum;
    }
  }
}

/// Dense ci8 [input][sample] to ci8 blocks, 8 taps, all spectra valid, delays below a sample.
class Chain {
 public:
  static constexpr int kTaps = 8;
  static constexpr std::int64_t kScratchBytes = std::int64_t{1} << 30;

  Chain(Queue& queue, const CuFft& fft, const channelize::Config& config,
        const std::vector<channelize::DelayPolynomial>& delays, cf32 gain)
      : fft_(fft), problem_(channelize::detail::make_problem(config)) {
    const std::int64_t k = problem_.n_points;
    const std::int64_t n = config.n_inputs;
    upload(queue, filter_, std::vector<float>(problem_.filter.begin(), problem_.filter.end()));
    std::vector<std::uint32_t> keys;
    for (std::int64_t c = 0; c < k; ++c)
      keys.push_back(channelize::dither_channel_key(config.seed, c));
    upload(queue, keys_, keys);
    upload(queue, gains_, std::vector<cf32>(static_cast<std::size_t>(n * k), gain));
    upload(queue, delays_, delays);
    upload(
        queue, valid_,
        std::vector<std::uint64_t>(static_cast<std::size_t>(n * words_for_bits(config.max_spectra)),
                                   ~std::uint64_t{0}));
    ramps_ = Buffer<channelize::detail::CudaRamp>(n * config.max_spectra, MemorySpace::device);
    units_ = n * n_blocks(config.output, config.max_spectra);
    per_launch_ = std::min(units_, kScratchBytes / (kPerBlock * k * 8));
    spectra_ = Buffer<float2>(per_launch_ * kPerBlock * k, MemorySpace::device);
    statistics_ = Buffer<channelize::detail::CudaStatistics>(n * k, MemorySpace::device);
    if (fft_.plan(&plan_, static_cast<int>(k), CuFft::kComplexToComplex,
                  static_cast<int>(per_launch_ * kPerBlock)) != 0 ||
        fft_.set_stream(plan_, cuda::stream_of(queue)) != 0)
      throw std::runtime_error("cuFFT refuses a plan");
  }
  ~Chain() { fft_.destroy(plan_); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  void execute(Queue& queue, const void* samples, const BlockView& blocks) {
    const auto stream = cuda::stream_of(queue);
    const channelize::Config& config = problem_.config;
    launch_ramps(ramp_arguments(), stream);
    channelize::detail::PostArguments post;
    post.spectra = spectra_.data();
    post.n_bins = post.n_points = static_cast<int>(problem_.n_points);
    post.zero_channel = static_cast<int>(problem_.zero_channel);
    post.n_channels = static_cast<int>(config.n_channels);
    post.gains = reinterpret_cast<const float2*>(gains_.data());
    post.channel_keys = keys_.data();
    post.dither = config.dither;
    post.blocks = blocks;
    post.statistics = statistics_.data();
    post.units = {.n_inputs = static_cast<int>(config.n_inputs),
                  .n_spectra = static_cast<int>(config.max_spectra),
                  .spectra_per_unit = kPerBlock,
                  .ramps = ramps_.data(),
                  .max_spectra = config.max_spectra};
    for (std::int64_t first = 0; first < units_; first += per_launch_) {
      const std::int64_t n = std::min(per_launch_, units_ - first);
      const dim3 grid(static_cast<unsigned>((problem_.n_points + 127) / 128),
                      static_cast<unsigned>(n));
      filter_units<kTaps><<<grid, 128, 0, stream>>>(
          static_cast<const char2*>(samples), config.layout.input_stride_bits / 16, filter_.data(),
          static_cast<int>(problem_.n_points), static_cast<int>(config.n_inputs),
          static_cast<int>(first), spectra_.data());
      RYLE_CUDA_LAUNCHED("filter_units");
      if (fft_.execute(plan_, spectra_.data(), spectra_.data(), CuFft::kForward) != 0)
        throw std::runtime_error("cuFFT fails");
      post.units.first_unit = static_cast<int>(first);
      post.units.n_units = static_cast<int>(n);
      launch_post(post, stream);
    }
  }

 private:
  template <class T>
  static void upload(Queue& queue, Buffer<T>& to, const std::vector<T>& from) {
    to = Buffer<T>(static_cast<std::int64_t>(from.size()), MemorySpace::device);
    copy_bytes(queue, to.data(), from.data(), to.bytes());
    queue.synchronize();
  }

  channelize::detail::RampArguments ramp_arguments() const {
    channelize::detail::RampArguments a;
    a.delays = delays_.data();
    a.valid = valid_.data();
    a.valid_words = words_for_bits(problem_.config.max_spectra);
    a.ramps = ramps_.data();
    a.n_inputs = static_cast<int>(problem_.config.n_inputs);
    a.n_spectra = static_cast<int>(problem_.config.max_spectra);
    a.max_spectra = problem_.config.max_spectra;
    a.n_points = problem_.n_points;
    a.n_filter = problem_.n_filter;
    a.step = problem_.step;
    a.zero_channel = problem_.zero_channel;
    a.sample_rate_hz = problem_.config.sample_rate_hz;
    a.reference_hz = problem_.config.reference_hz;
    return a;
  }

  CuFft fft_;
  channelize::detail::Problem problem_;
  int plan_ = 0;
  std::int64_t units_ = 0;
  std::int64_t per_launch_ = 0;
  Buffer<float> filter_;
  Buffer<std::uint32_t> keys_;
  Buffer<cf32> gains_;
  Buffer<channelize::DelayPolynomial> delays_;
  Buffer<std::uint64_t> valid_;
  Buffer<channelize::detail::CudaRamp> ramps_;
  Buffer<float2> spectra_;
  Buffer<channelize::detail::CudaStatistics> statistics_;
};

}  // namespace ryle::bench::chain
