// SPDX-License-Identifier: BSD-3-Clause
// Host side of the CUDA channelizer: plan, buffers, staging between host and device, one execute()
// = a few launches.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/device/cuda/fft.cuh"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/to_device.hpp"
#include "ryle/engine/channelize/cuda/fused_launch.cuh"
#include "ryle/engine/channelize/cuda/kernels.cuh"
#include "ryle/engine/channelize/cuda/make.hpp"
#include "ryle/engine/channelize/dither.hpp"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/engine/channelize/requantize.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::channelize {
namespace {

using namespace detail;

constexpr std::int64_t kWantedPoints =
    4096;                  // spectra x points of a thread block: enough work for 256 threads
constexpr int kSlots = 2;  // calls in flight before execute() waits for the oldest

/// Radices of n, eights first; a prime factor above 7 becomes a stage of its own.
std::vector<int> radices_of(std::int64_t n) {
  std::vector<int> radices;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (int stages = (twos + 2) / 3; stages > 0;
       --stages) {  // 2^10 = 8 8 4 4, never a lone 2 after eights
    const int bits = (twos + stages - 1) / stages;
    radices.push_back(1 << bits);
    twos -= bits;
  }
  for (const int radix : {7, 5, 3}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (std::int64_t factor = 11; n > 1; factor += 2) {
    if (factor * factor > n) factor = n;
    for (; n % factor == 0; n /= factor) radices.push_back(static_cast<int>(factor));
  }
  if (radices.empty()) radices.push_back(1);
  return radices;
}

CudaTransform make_transform(std::int64_t n, const float2* roots) {
  CudaTransform t;
  t.n_points = static_cast<int>(n);
  t.roots = roots;
  std::int64_t stride = 1;
  for (const int radix : radices_of(n)) {
    RYLE_ASSERT(t.n_stages < kMaxStages);
    t.radix[t.n_stages] = radix;
    t.inverse_stride[t.n_stages] = cuda::inverse_of(stride);
    t.inverse_butterflies[t.n_stages] = cuda::inverse_of(n / radix);
    stride *= radix;
    ++t.n_stages;
  }
  return t;
}

/// exp(-2 pi i k / period), k < n.
std::vector<float2> roots_table(std::int64_t n, std::int64_t period) {
  std::vector<float2> roots(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k < n; ++k) {
    const cf64 root = math::unit_root(-k, period);
    roots[k] = {static_cast<float>(root.real()), static_cast<float>(root.imag())};
  }
  return roots;
}

/// Host side of one call in flight: what it uploads, and where its statistics go when they are
/// there.
struct Slot {
  Buffer<std::uint64_t> valid;
  Buffer<DelayPolynomial> delays;
  Buffer<CudaStatistics> counted;
  std::vector<std::int64_t> n_valid;  // [input]
  ChannelStatistics* to = nullptr;
  Queue* workers = nullptr;
  std::int64_t n_channels = 0;
  bool real = false;
  cudaEvent_t done = nullptr;
};

void add_channel_to_host(const Slot& slot, std::int64_t channel) {
  const auto n_inputs = static_cast<std::int64_t>(slot.n_valid.size());
  const CudaStatistics* from = slot.counted.data() + channel * n_inputs;
  ChannelStatistics* to = slot.to + channel * n_inputs;
  for (std::int64_t p = 0; p < n_inputs; ++p) {
    to[p].n_samples += slot.n_valid[static_cast<std::size_t>(p)];
    to[p].saturated_low += from[p].saturated_low;
    to[p].saturated_high += from[p].saturated_high;
    to[p].sum_of_squares +=
        slot.real ? from[p].squares.real : static_cast<double>(from[p].squares.integer);
  }
}

// Runs on the runtime's own thread when the stream gets there; calls no CUDA function. The next
// call waits for it. Waking a worker takes longer than adding a few thousand values.
void CUDART_CB add_to_host(void* slot_pointer) {
  const Slot& slot = *static_cast<const Slot*>(slot_pointer);
  constexpr std::int64_t kValues = 16384;  // of a worker's piece, about
  const std::int64_t step =
      std::max<std::int64_t>(1, kValues / static_cast<std::int64_t>(slot.n_valid.size()));
  slot.workers->parallel_for((slot.n_channels + step - 1) / step, [&](std::int64_t i) {
    const std::int64_t end = std::min(slot.n_channels, (i + 1) * step);
    for (std::int64_t c = i * step; c < end; ++c) add_channel_to_host(slot, c);
  });
}

class CudaChannelizer final : public Channelizer {
 public:
  CudaChannelizer(Queue& queue, const Config& config)
      : problem_(make_problem(config)), device_(cuda::device_of(queue)), host_queue_(Queue::cpu()) {
    const cuda::DeviceScope scope(device_);
    if (config.implementation != "cuda:shared") fused_ = plan_fused(problem_, shared_limit_bytes());
    if (config.implementation == "cuda:fused" && !fused_.applies()) reject_fused();
    n_sm_ = cuda::attribute_of(device_, cudaDevAttrMultiProcessorCount);
    const std::int64_t inputs = config.n_inputs;
    delays_.resize(static_cast<std::size_t>(inputs));
    valid_words_ = words_for_bits(config.max_spectra);
    checked_product({inputs, config.max_spectra, 2}, "spectra of one call");
    if (inputs * n_blocks(config.output, config.max_spectra) > 0x7fffffff ||
        config.max_spectra > 0x7fffff00) {
      throw ConfigError("cuda channelizer: max_spectra " + std::to_string(config.max_spectra) +
                        " x n_inputs " + std::to_string(inputs) +
                        " is too large for one call; use shorter gulps");
    }
    make_tables(queue);
    make_buffers(queue);
    for (Slot& slot : slots_) make_slot(slot);
    RYLE_CUDA(cudaEventCreateWithFlags(&gains_uploaded_, cudaEventDisableTiming));
  }

  ~CudaChannelizer() override {
    for (Slot& slot : slots_) {  // add_to_host must not outlive its slot
      static_cast<void>(cudaEventSynchronize(slot.done));
      static_cast<void>(cudaEventDestroy(slot.done));
    }
    static_cast<void>(cudaEventDestroy(gains_uploaded_));
  }
  CudaChannelizer(const CudaChannelizer&) = delete;
  CudaChannelizer& operator=(const CudaChannelizer&) = delete;

  void execute(Queue& queue, const Input& input, std::int64_t first_spectrum,
               std::int64_t n_spectra, const Output& output) override {
    const cuda::DeviceScope scope(device_);
    check_call(problem_, input, n_spectra, output);
    if (input.n_samples > 0) cuda::require_device_memory(input.samples, "channelizer samples");
    cuda::require_device_memory(output.blocks.data, "channelizer output blocks");
    mark_valid(host_queue_, problem_, delays_, input, first_spectrum, n_spectra, output.valid,
               output.valid_words);
    if (n_spectra == 0) return;

    const auto stream = cuda::stream_of(queue);
    Slot& previous = slots_[next_slot_];
    next_slot_ = (next_slot_ + 1) % kSlots;
    Slot& slot = slots_[next_slot_];
    RYLE_CUDA(cudaEventSynchronize(slot.done));
    RYLE_CUDA(cudaStreamWaitEvent(
        stream, previous.done));  // no-op on one stream; orders callers with several
    upload(stream, slot, n_spectra, output);
    launch_ramps(ramp_arguments(first_spectrum, n_spectra), stream);
    fused_.applies() ? run_fused(stream, input, n_spectra, output)
                     : run_units(stream, input, n_spectra, output);
    if (output.statistics != nullptr) {
      RYLE_CUDA(cudaMemcpyAsync(slot.counted.data(), statistics_.data(),
                                static_cast<std::size_t>(statistics_.bytes()),
                                cudaMemcpyDeviceToHost, stream));
      RYLE_CUDA(cudaLaunchHostFunc(stream, add_to_host, &slot));
    }
    RYLE_CUDA(cudaEventRecord(slot.done, stream));
  }

  void set_delays(std::span<const DelayPolynomial> delays) override {
    check_delays(problem_, delays);
    delays_.assign(delays.begin(), delays.end());
  }
  void set_gains(View<const cf32, 2> gains) override {
    RYLE_CUDA(cudaEventSynchronize(gains_uploaded_));
    copy_gains(problem_, gains, host_gains_.data());
    gains_changed_ = true;
  }
  std::string_view implementation() const override {
    return fused_.applies() ? "channelize/cuda/fused" : "channelize/cuda/shared";
  }
  const Config& config() const override { return problem_.config; }
  std::span<const double> filter() const override { return problem_.filter; }

 private:
  std::int64_t n_points() const {
    return problem_.complex_input ? problem_.n_points : problem_.n_points / 2;
  }
  std::int64_t n_inputs() const { return problem_.config.n_inputs; }
  std::int64_t n_channels() const { return problem_.config.n_channels; }

  int shared_limit_bytes() const {
    return cuda::attribute_of(device_, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  }

  [[noreturn]] static void reject_fused() {
    throw UnsupportedError(
        "channelize: cuda:fused takes 8-bit complex samples, critically sampled, 4 or 8 taps, 128, "
        "256, 512 or 1024 channels and ci8 or ci4 output, on a device with its shared memory; "
        "cuda:shared takes the rest");
  }

  void make_tables(Queue& queue) {
    filter_ = to_device(queue, std::vector<float>(problem_.filter.begin(), problem_.filter.end()));
    roots_ = to_device(queue, roots_table(n_points(), n_points()));
    if (fused_.applies()) fused_roots_ = to_device(queue, fused_roots());
    if (!problem_.complex_input)
      untangle_ = to_device(queue, roots_table(n_points(), 2 * n_points()));
    std::vector<std::uint32_t> keys(static_cast<std::size_t>(n_channels()));
    for (std::int64_t c = 0; c < n_channels(); ++c) {
      keys[static_cast<std::size_t>(c)] = dither_channel_key(problem_.config.seed, c);
    }
    channel_keys_ = to_device(queue, keys);
    transform_ = make_transform(n_points(), roots_.data());
  }

  /// exp(-2 pi i k1 n2 / K) in the order of the fused kernel.
  std::vector<float2> fused_roots() const {
    const std::vector<float2> roots = roots_table(n_points(), n_points());
    std::vector<float2> table(roots.size());
    for (int k1 = 0; k1 < fused_.r1; ++k1) {
      for (int n2 = 0; n2 < fused_.r2; ++n2)
        table[static_cast<std::size_t>(fused_twiddle_at(fused_.r2, k1, n2))] = roots[k1 * n2];
    }
    return table;
  }

  void make_buffers(Queue&) {
    const Config& config = problem_.config;
    valid_ = Buffer<std::uint64_t>(n_inputs() * valid_words_, MemorySpace::device);
    device_delays_ = Buffer<DelayPolynomial>(n_inputs(), MemorySpace::device);
    ramps_ = Buffer<CudaRamp>(n_inputs() * config.max_spectra, MemorySpace::device);
    statistics_ = Buffer<CudaStatistics>(n_inputs() * n_channels(), MemorySpace::device);
    gains_ = Buffer<cf32>(n_inputs() * n_channels(), MemorySpace::device);
    host_gains_ = Buffer<cf32>(n_inputs() * n_channels(), MemorySpace::pinned);
    std::fill_n(host_gains_.data(), host_gains_.size(), cf32{1, 0});
    if (!fused_.applies()) make_scratch();
  }

  // What passes from the spectra kernel to the post kernel.
  void make_scratch() {
    const Config& config = problem_.config;
    const int shared_limit = shared_limit_bytes();
    const int cache_bytes = cuda::attribute_of(device_, cudaDevAttrL2CacheSize);
    const std::int64_t per_unit = spectra_per_block(config.output);
    const bool fits = spectra_shared_bytes(n_points(), 1) <= shared_limit;
    while (fits && 2 * group_ <= per_unit && 2 * group_ * n_points() <= kWantedPoints) group_ *= 2;
    shared_bytes_ = fits ? spectra_shared_bytes(n_points(), group_) : 0;
    if (fits) prepare_spectra();
    // The scratch between the kernels is reused while it is still in the cache: half of it, or one
    // unit.
    const std::int64_t unit_bytes = checked_product({per_unit, n_points(), 8}, "scratch spectra");
    const std::int64_t all_units = n_inputs() * n_blocks(config.output, config.max_spectra);
    std::int64_t units = std::max<std::int64_t>(1, cache_bytes / 2 / unit_bytes);
    if (fits) {  // whole waves of thread blocks, or the last ones of each launch have the device to
                 // themselves
      const std::int64_t wave = concurrent_groups(shared_bytes_, device_);
      const std::int64_t waves = units * (per_unit / group_) / wave;
      if (waves > 0) units = std::max<std::int64_t>(1, waves * wave / (per_unit / group_));
    }
    units_per_launch_ = std::clamp<std::int64_t>(units, 1, all_units);
    spectra_ = Buffer<float2>(units_per_launch_ * per_unit * n_points(), MemorySpace::device);
    if (!fits) work_ = Buffer<float2>(spectra_.size(), MemorySpace::device);
  }

  void make_slot(Slot& slot) {
    slot.valid = Buffer<std::uint64_t>(n_inputs() * valid_words_, MemorySpace::pinned);
    slot.delays = Buffer<DelayPolynomial>(n_inputs(), MemorySpace::pinned);
    slot.counted = Buffer<CudaStatistics>(n_inputs() * n_channels(), MemorySpace::pinned);
    slot.n_valid.resize(static_cast<std::size_t>(n_inputs()));
    slot.workers = &host_queue_;
    slot.n_channels = n_channels();
    slot.real = problem_.config.output == SampleFormat::cf16 ||
                problem_.config.output == SampleFormat::cf32;
    RYLE_CUDA(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming));
  }

  void upload(cudaStream_t stream, Slot& slot, std::int64_t n_spectra, const Output& output) {
    const std::int64_t words = words_for_bits(n_spectra);
    for (std::int64_t p = 0; p < n_inputs(); ++p) {
      const std::uint64_t* from = output.valid + p * output.valid_words;
      std::copy_n(from, words, slot.valid.data() + p * valid_words_);
      std::int64_t n_valid = 0;
      for (std::int64_t w = 0; w < words; ++w) n_valid += __builtin_popcountll(from[w]);
      slot.n_valid[static_cast<std::size_t>(p)] = n_valid;
    }
    std::copy(delays_.begin(), delays_.end(), slot.delays.data());
    slot.to = output.statistics;
    const auto copy = [&](void* to, const void* from, std::int64_t n_bytes) {
      RYLE_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(n_bytes), cudaMemcpyHostToDevice,
                                stream));
    };
    copy(valid_.data(), slot.valid.data(), valid_.bytes());
    copy(device_delays_.data(), slot.delays.data(), device_delays_.bytes());
    if (gains_changed_) {
      copy(gains_.data(), host_gains_.data(), gains_.bytes());
      RYLE_CUDA(cudaEventRecord(gains_uploaded_, stream));
      gains_changed_ = false;
    }
    if (output.statistics != nullptr) {
      RYLE_CUDA(cudaMemsetAsync(statistics_.data(), 0,
                                static_cast<std::size_t>(statistics_.bytes()), stream));
    }
  }

  RampArguments ramp_arguments(std::int64_t first_spectrum, std::int64_t n_spectra) const {
    RampArguments a;
    a.delays = device_delays_.data();
    a.valid = valid_.data();
    a.valid_words = valid_words_;
    a.ramps = ramps_.data();
    a.n_inputs = static_cast<int>(n_inputs());
    a.n_spectra = static_cast<int>(n_spectra);
    a.max_spectra = problem_.config.max_spectra;
    a.first_spectrum = first_spectrum;
    a.n_points = problem_.n_points;
    a.n_filter = problem_.n_filter;
    a.step = problem_.step;
    a.zero_channel = problem_.zero_channel;
    a.sample_rate_hz = problem_.config.sample_rate_hz;
    a.reference_hz = problem_.config.reference_hz;
    return a;
  }

  void run_fused(cudaStream_t stream, const Input& input, std::int64_t n_spectra,
                 const Output& output) {
    const Config& config = problem_.config;
    RYLE_ASSERT(reinterpret_cast<std::uintptr_t>(output.blocks.data) % 16 == 0);
    FusedArguments a;
    a.odd = reinterpret_cast<std::uintptr_t>(input.samples) % 2 != 0;
    a.samples = input.samples;
    a.first_tick = input.first_tick;
    a.input_stride_bytes = config.layout.input_stride_bits / 8;
    a.sample_stride_bytes = config.layout.sample_stride_bits / 8;
    a.filter = filter_.data();
    a.twiddles = reinterpret_cast<const float4*>(fused_roots_.data());
    a.gains = reinterpret_cast<const float2*>(gains_.data());
    a.channel_keys = channel_keys_.data();
    a.ramps = ramps_.data();
    a.max_spectra = config.max_spectra;
    a.n_inputs = static_cast<int>(n_inputs());
    a.n_spectra = static_cast<int>(n_spectra);
    a.inverted = config.inverted_band;
    a.dither = config.dither;
    a.truncate = config.rounding == Rounding::truncate;
    a.blocks = output.blocks;
    a.statistics = output.statistics == nullptr ? nullptr : statistics_.data();
    launch_fused(a, fused_, static_cast<int>(problem_.n_points), static_cast<int>(config.n_taps),
                 n_sm_, stream);
  }

  void run_units(cudaStream_t stream, const Input& input, std::int64_t n_spectra,
                 const Output& output) {
    const Config& config = problem_.config;
    SpectraArguments s;
    s.units = {.n_inputs = static_cast<int>(n_inputs()),
               .n_spectra = static_cast<int>(n_spectra),
               .spectra_per_unit = static_cast<int>(spectra_per_block(config.output)),
               .ramps = ramps_.data(),
               .max_spectra = config.max_spectra};
    s.transform = transform_;
    s.samples = input.samples;
    s.first_tick = input.first_tick;
    s.layout = config.layout;
    s.filter = filter_.data();
    s.untangle = problem_.complex_input ? nullptr : untangle_.data();
    s.step = problem_.step;
    s.n_taps = static_cast<int>(config.n_taps);
    s.group = static_cast<int>(group_);
    s.spectra = spectra_.data();
    s.work = work_.size() > 0 ? work_.data() : nullptr;
    PostArguments p;
    p.spectra = spectra_.data();
    p.n_bins = transform_.n_points;
    p.n_points = static_cast<int>(problem_.n_points);
    p.zero_channel = static_cast<int>(problem_.zero_channel);
    p.sense = problem_.sense;
    p.n_channels = static_cast<int>(n_channels());
    p.gains = reinterpret_cast<const float2*>(gains_.data());
    p.channel_keys = channel_keys_.data();
    p.dither = config.dither;
    p.truncate = config.rounding == Rounding::truncate;
    p.blocks = output.blocks;
    p.statistics = output.statistics == nullptr ? nullptr : statistics_.data();
    const std::int64_t n_units = n_inputs() * n_blocks(config.output, n_spectra);
    for (std::int64_t first = 0; first < n_units; first += units_per_launch_) {
      s.units.first_unit = static_cast<int>(first);
      s.units.n_units = static_cast<int>(std::min(units_per_launch_, n_units - first));
      launch_spectra(s, shared_bytes_, stream);
      p.units = s.units;
      launch_post(p, stream);
    }
  }

  Problem problem_;
  FusedPlan fused_;
  int n_sm_ = 0;
  int device_;
  Queue host_queue_;  // validity is decided on the host, by the code the CPU implementations use
  std::vector<DelayPolynomial> delays_;
  std::int64_t valid_words_ = 0;
  std::int64_t group_ = 1;
  std::int64_t shared_bytes_ = 0;
  std::int64_t units_per_launch_ = 1;
  CudaTransform transform_;
  Buffer<float> filter_;
  Buffer<float2> roots_;
  Buffer<float2> fused_roots_;
  Buffer<std::uint32_t> channel_keys_;
  Buffer<float2> untangle_;
  Buffer<float2> spectra_;
  Buffer<float2> work_;
  Buffer<std::uint64_t> valid_;
  Buffer<DelayPolynomial> device_delays_;
  Buffer<CudaRamp> ramps_;
  Buffer<CudaStatistics> statistics_;
  Buffer<cf32> gains_;
  Buffer<cf32> host_gains_;
  bool gains_changed_ = true;
  cudaEvent_t gains_uploaded_ = nullptr;
  Slot slots_[kSlots];
  int next_slot_ = 0;
};

}  // namespace

std::vector<std::string> cuda_implementations() {
  if (!cuda_unavailable_reason().empty()) return {};
  return {"cuda:fused", "cuda:shared"};
}

std::unique_ptr<Channelizer> make_cuda_channelizer(Queue& queue, const Config& config) {
  const std::string& wanted = config.implementation;
  if (wanted == "auto" || wanted == "cuda" || wanted == "cuda:shared" || wanted == "cuda:fused") {
    return std::make_unique<CudaChannelizer>(queue, config);
  }
  throw UnsupportedError("channelize: implementation \"" + wanted +
                         "\" is not known; on a CUDA queue: cuda, cuda:fused, cuda:shared");
}

}  // namespace ryle::channelize
