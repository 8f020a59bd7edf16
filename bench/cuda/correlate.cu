// SPDX-License-Identifier: BSD-3-Clause
// The CUDA correlators: verified, then timed by events. A run is an integration of n_spectra, from
// nothing to its sums as the kernel leaves them; what finish() does is apart. "gulps": 1 marks rows
// of a long integration instead, gulp on gulp added up and folded into int64 (double).
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "bench/bench_cuda.hpp"
#include "bench/cuda/board.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/correlate/cuda/make.hpp"
#include "ryle/engine/correlate/cuda/tuning.hpp"

namespace ryle::bench {
namespace {

using namespace correlate;

struct Case {
  const char* implementation;
  SampleFormat format;
  std::int64_t n_inputs;
  std::int64_t n_channels;
  std::int64_t n_spectra;
  bool gulps = false;  // of one integration
  int rms_lsb = 30;    // ci8: of the normal codes of a part; 0: all codes alike
};

struct Ceilings {
  double mma_ops;
  double wgmma_ops;      // 0 = not on this device
  double wgmma_f16_ops;  // likewise
  double fma_ops;
  double bytes_per_s;
};

/// One channel of a gulp on the host.
std::vector<std::byte> fetch_channel(Queue& queue, const BlockView& view, std::int64_t channel) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.channel_stride_bytes));
  copy_bytes(queue, bytes.data(), view.data + channel * view.channel_stride_bytes,
             view.channel_stride_bytes);
  queue.synchronize();
  return bytes;
}

/// int64 (or double) sums of 400 products of three channels, corners and diagonals of the tiles
/// among them, against the definition, straight from the blocks.
bool samples_agree(Queue& queue, Correlator& correlator, const BlockView& view, const Case& c) {
  const auto pairs = static_cast<std::size_t>(n_pairs(c.n_inputs));
  const bool integer = c.format != SampleFormat::cf32 && c.format != SampleFormat::cf16;
  correlator.reset(queue);
  correlator.execute(queue, {.blocks = view, .n_spectra = c.n_spectra});
  const DeviceSums sums = finish_in_order(queue, correlator);
  if (sums.n_spectra != c.n_spectra || sums.counts != nullptr) return false;
  std::vector<ci64> integers(pairs);  // or doubles, of the same size
  for (const std::int64_t channel : {std::int64_t{0}, c.n_channels / 2, c.n_channels - 1}) {
    copy_bytes(queue, integers.data(),
               static_cast<const ci64*>(sums.sums) + channel * static_cast<std::int64_t>(pairs),
               static_cast<std::int64_t>(pairs * sizeof(ci64)));
    const auto bytes = fetch_channel(queue, view, channel);
    ConstBlockView host = view;
    host.data = bytes.data();
    std::vector<std::vector<cf64>> decoded(static_cast<std::size_t>(c.n_inputs));
    const auto samples = [&](std::int64_t i) -> const std::vector<cf64>& {
      auto& of_input = decoded[static_cast<std::size_t>(i)];
      for (std::int64_t t = static_cast<std::int64_t>(of_input.size()); t < c.n_spectra; ++t)
        of_input.push_back(get_sample(host, 0, t, i));
      return of_input;
    };
    const auto sum = [&](std::int64_t i, std::int64_t j) {
      const auto &v_i = samples(i), &v_j = samples(j);
      cf64 total = 0;  // integers stay below 2^53: exact
      for (std::size_t t = 0; t < v_i.size(); ++t) total += v_i[t] * std::conj(v_j[t]);
      return total;
    };
    for (std::int64_t k = 0; k < 400; ++k) {
      const std::int64_t pick =
          k < 8 ? k : static_cast<std::int64_t>(mix64(combine(channel, k)) % n_pairs(c.n_inputs));
      const auto [i, j] = pair_of(k % 3 == 2 ? n_pairs(c.n_inputs) - 1 - pick : pick);
      const cf64 wanted = sum(i, j);
      const ci64 bits = integers[static_cast<std::size_t>(pair_index(i, j))];
      const cf64 found = integer ? cf64(static_cast<double>(bits.re), static_cast<double>(bits.im))
                                 : __builtin_bit_cast(cf64, bits);
      // Tensor cores cut fp32 sums of halves: kSpectraPerF16Sum in cuda/kernels.cuh.
      const double part = c.format == SampleFormat::cf16 ? 5e-4 : 2e-6;
      const double allowed = integer ? 0 : part * std::sqrt(sum(i, i).real() * sum(j, j).real());
      if (!(std::abs(found - wanted) <= allowed)) return false;
    }
  }
  return true;
}

__global__ void add_hashes(const std::uint64_t* words, std::int64_t n, unsigned long long* sum) {
  unsigned long long total = 0;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    total += words[k] * (2 * static_cast<std::uint64_t>(k) + 0x9e3779b97f4a7c15u);
  atomicAdd(sum, total);
}

/// A number that any change of any sum changes: other tunings must give the one of those verified.
std::uint64_t hash_of_sums(Queue& queue, Correlator& correlator, const BlockView& view,
                           const Case& c) {
  const Buffer<unsigned long long> hash(1, MemorySpace::device);
  correlator.reset(queue);
  correlator.execute(queue, {.blocks = view, .n_spectra = c.n_spectra});
  const DeviceSums sums = finish_in_order(queue, correlator);
  add_hashes<<<1024, 256, 0, cuda::stream_of(queue)>>>(static_cast<const std::uint64_t*>(sums.sums),
                                                       2 * c.n_channels * n_pairs(c.n_inputs),
                                                       hash.data());
  RYLE_CUDA_LAUNCHED("add_hashes");
  std::uint64_t found = 0;
  copy_bytes(queue, &found, hash.data(), sizeof found);
  queue.synchronize();
  return found;
}

/// Products compared with the definition, and all sums the same launch after launch: what happens
/// between warps now and then changes any of them.
bool verify(Queue& queue, Correlator& correlator, const BlockView& view, const Case& c) {
  constexpr int kLaunches = 6;
  if (!samples_agree(queue, correlator, view, c)) return false;
  const std::uint64_t first = hash_of_sums(queue, correlator, view, c);
  for (int k = 1; k < kLaunches; ++k)
    if (hash_of_sums(queue, correlator, view, c) != first) return false;
  return true;
}

__global__ void fill_f32(float* values, std::int64_t n) {  // uniform in +-1: random, cheap
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    auto x = static_cast<unsigned>(k) * 2654435761u ^ static_cast<unsigned>(k >> 32);
    x = (x ^ (x >> 15)) * 2246822519u;
    x ^= x >> 13;
    values[k] = static_cast<float>(static_cast<int>(x * 3266489917u)) * 0x1p-31f;
  }
}

/// Pairs of halves, normal with rms 1: zeros draw less power and flatter the clock.
__global__ void fill_f16(__half2* values, std::int64_t n, unsigned seed) {
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    auto x = (static_cast<unsigned>(k) + seed) * 2654435761u ^ static_cast<unsigned>(k >> 32);
    x = (x ^ (x >> 15)) * 2246822519u;
    x ^= x >> 13;
    const unsigned y = (x * 3266489917u ^ 0x9e3779b9u) * 668265263u;
    const float r = sqrtf(-2.0f * __logf((static_cast<float>(x >> 8) + 0.5f) * 0x1p-24f));
    float s, c;
    __sincosf(static_cast<float>(y >> 8) * 0x1p-24f * 6.2831853f, &s, &c);
    values[k] = __floats2half2_rn(r * c, r * s);
  }
}

/// Nearly normal codes: the sum of eight uniform bytes, scaled.
__global__ void fill_ci8(std::int8_t* codes, std::int64_t n, float rms_lsb, unsigned seed) {
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    std::uint64_t bits = (static_cast<std::uint64_t>(k) + 1) * 0x9e3779b97f4a7c15u + seed;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    float sum = -8 * 127.5f;
    for (int b = 0; b < 8; ++b) sum += static_cast<float>(bits >> (8 * b) & 255);
    const float code = rintf(sum * rms_lsb / 209.02f);  // rms sqrt(8 (256^2 - 1) / 12)
    codes[k] = static_cast<std::int8_t>(fmaxf(-128, fminf(127, code)));
  }
}

void fill_blocks(void* memory, std::int64_t n_bytes, SampleFormat format, int rms_lsb,
                 std::uint64_t seed, Queue& queue) {
  if (format == SampleFormat::ci8 && rms_lsb != 30 && rms_lsb != 0) {
    fill_ci8<<<1024, 256, 0, cuda::stream_of(queue)>>>(static_cast<std::int8_t*>(memory), n_bytes,
                                                       static_cast<float>(rms_lsb),
                                                       static_cast<unsigned>(seed));
    RYLE_CUDA_LAUNCHED("fill_ci8");
    return;
  }
  if (format == SampleFormat::cf16) {
    fill_f16<<<1024, 256, 0, cuda::stream_of(queue)>>>(static_cast<__half2*>(memory), n_bytes / 4,
                                                       static_cast<unsigned>(seed));
    RYLE_CUDA_LAUNCHED("fill_f16");
    return;
  }
  if (format != SampleFormat::cf32) {
    return detail::fill_random(memory, n_bytes, format == SampleFormat::ci8 && rms_lsb != 0, seed,
                               queue);
  }
  fill_f32<<<1024, 256, 0, cuda::stream_of(queue)>>>(static_cast<float*>(memory), n_bytes / 4);
  RYLE_CUDA_LAUNCHED("fill_f32");
}

/// Tunings of the Hopper kernels, each measured; the table's are among them.
constexpr CudaTuning kSearch[] = {
    {12, 16, false, false, false, 1, true, 128},
    {12, 16, false, false, true, 1, true, 128},
    {12, 1024, false, false, false, 1, true, 128},
    {6, 1024, false, false, false, 1, false, 128},
    {8, 1024, false, false, false, 1, false, 128},
    {8, 1024, false, false, false, 1, false, 0},
    {12, 1024, false, false, false, 1, false, 128},
    {5, 1024, false, false, true, 1, false, 128},
    {8, 1024, false, false, true, 1, false, 128},
    {12, 1024, false, false, true, 1, false, 128},
    {8, 1024, false, true, false, 1, false, 128},
    {6, 1024, false, false, true, 4, false, 128},
    {12, 1024, true, false, true, 1, false, 128},
    {8, 1024},
    {12, 1024, false, false, true},
};

void rate(Result& r, const Ceilings& ceilings);

void measure(const Case& c, const Options& options, const Ceilings& ceilings, const Emit& emit) {
  Queue queue = Queue::cuda();
  Config config{.n_inputs = c.n_inputs,
                .n_channels = c.n_channels,
                .format = c.format,
                .max_spectra = c.n_spectra,
                .implementation = c.implementation};
  auto correlator = make_correlator(queue, config);
  const std::int64_t gulp_bytes =
      dense_blocks_bytes(c.format, c.n_channels, c.n_spectra, c.n_inputs);
  int cache_bytes = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0));
  const std::int64_t n_gulps =
      std::max<std::int64_t>(2, 3 * static_cast<std::int64_t>(cache_bytes) / gulp_bytes + 1);
  std::vector<Buffer<std::byte>> gulps;
  for (std::int64_t g = 0; g < n_gulps; ++g) {
    gulps.emplace_back(gulp_bytes, MemorySpace::device);
    fill_blocks(gulps.back().data(), gulp_bytes, c.format, c.rms_lsb, static_cast<std::uint64_t>(g),
                queue);
  }
  const auto view = [&](std::int64_t g) {
    return dense_blocks(gulps[static_cast<std::size_t>(g)].data(), c.format, c.n_channels,
                        c.n_spectra, c.n_inputs);
  };
  Result r;
  r.engine = "correlate";
  r.implementation = correlator->implementation();
  r.device = list_devices().at(1).description;
  r.sizes = {{"n_inputs", c.n_inputs},
             {"n_channels", c.n_channels},
             {"n_spectra", c.n_spectra},
             {"bits_per_part", c.format == SampleFormat::ci4    ? 4
                               : c.format == SampleFormat::ci8  ? 8
                               : c.format == SampleFormat::cf32 ? 32
                                                                : 16}};
  if (c.gulps) r.sizes.emplace_back("gulps", 1);
  if (c.format == SampleFormat::ci8) r.sizes.emplace_back("rms_lsb", c.rms_lsb);
  r.useful_ops = 8.0 * static_cast<double>(n_pairs(c.n_inputs) * c.n_channels * c.n_spectra);
  r.bytes = static_cast<double>(gulp_bytes) +
            8.0 * static_cast<double>(n_pairs(c.n_inputs) * c.n_channels);
  r.verified = verify(queue, *correlator, view(0), c);
  const auto time = [&](double seconds) {
    if (!r.verified) return emit(r);
    std::int64_t next = 0;
    BoardLog board(queue);
    std::tie(r.median_s, r.min_s) = detail::time_queue(queue, seconds, [&] {
      if (!c.gulps) correlator->reset(queue);
      correlator->execute(queue, {.blocks = view(next++ % n_gulps), .n_spectra = c.n_spectra});
    });
    const BoardLog::Means means = board.stop();
    r.sizes.emplace_back("sm_mhz", std::round(means.mhz));
    if (means.asked_mhz > 0) {
      r.sizes.emplace_back("nvml_mhz", std::round(means.asked_mhz));
      r.sizes.emplace_back("power_w", std::round(means.power_w));
    }
    rate(r, ceilings);
    emit(r);
  };
  if (!options.calibrate) return time(options.seconds_per_case);
  const std::uint64_t wanted = hash_of_sums(queue, *correlator, view(0), c);
  const auto sizes = r.sizes;
  for (const CudaTuning& tuning : kSearch) {
    // Sums of bytes lose by cuts what they gain: what is cut begins from cleared memory.
    if (c.format != SampleFormat::cf16 && tuning.min_blocks < 1024 && !tuning.three) continue;
    if (tuning.three && (c.format != SampleFormat::ci8 || c.n_inputs <= 128 || c.n_inputs > 256))
      continue;
    set_cuda_tuning(&tuning);
    r.sizes = sizes;
    r.sizes.emplace_back("slots", tuning.slots);
    r.sizes.emplace_back("least_blocks", tuning.min_blocks);
    r.sizes.emplace_back("clusters", tuning.clusters);
    r.sizes.emplace_back("early", tuning.early);
    r.sizes.emplace_back("hints", tuning.hints);
    r.sizes.emplace_back("burst", tuning.burst);
    r.sizes.emplace_back("three", tuning.three);
    r.sizes.emplace_back("fetch_bytes", tuning.fetch_bytes);
    r.verified = c.format == SampleFormat::cf16  // other cuts, other roundings
                     ? verify(queue, *correlator, view(0), c)
                     : hash_of_sums(queue, *correlator, view(0), c) == wanted;
    time(0.12);
  }
  set_cuda_tuning(nullptr);
}

void rate(Result& r, const Ceilings& ceilings) {
  const double median_s = r.median_s;
  r.rate = r.useful_ops / median_s / 1e9;
  r.rate_unit = "GOPS";
  const bool f16 = r.implementation.find("f16") != std::string::npos;
  const bool wgmma = r.implementation.find("wgmma") != std::string::npos;
  const bool mma = r.implementation.find("/mma") != std::string::npos;
  const double ceiling = mma     ? ceilings.mma_ops / (f16 ? 2 : 1)  // m16n8k16 in the time of k32
                         : wgmma ? (f16 ? ceilings.wgmma_f16_ops : ceilings.wgmma_ops)
                                 : ceilings.fma_ops;
  const double arithmetic_s = r.useful_ops / ceiling;
  const double memory_s = r.bytes / ceilings.bytes_per_s;
  r.roofline_fraction = std::max(arithmetic_s, memory_s) / median_s;
  const auto in = [](double value, const char* unit) {
    return std::to_string(static_cast<long>(value)) + " " + unit;
  };
  const std::string kind = f16 ? "f16 " : "s8 ";
  r.roofline = memory_s > arithmetic_s ? "copy " + in(ceilings.bytes_per_s / 1e9, "GB/s")
               : mma || wgmma ? (mma ? "mma.sync " : "wgmma ") + kind + in(ceiling / 1e9, "GOPS")
                              : "fma f32 " + in(ceiling / 1e9, "GFLOPS");
}

}  // namespace

void bench_correlate_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const auto names = available_implementations();
  const auto is_here = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const Ceilings ceilings{ceiling_cuda_mma_s8_ops(),
                          is_here("cuda:sm90_s8_wgmma") ? ceiling_cuda_wgmma_s8_ops() : 0,
                          is_here("cuda:sm90_f16_wgmma") ? ceiling_cuda_wgmma_f16_ops() : 0,
                          ceiling_cuda_fma_f32_ops(), ceiling_cuda_copy_bytes_per_s()};
  using enum SampleFormat;
  const std::vector<Case> full = {{"cuda:sm90_s8_wgmma", ci8, 64, 480, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 128, 480, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 256, 480, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 512, 480, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 1024, 240, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 2048, 240, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 64, 2112, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 128, 1056, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 256, 528, 4096},
                                  {"cuda:sm90_s8_wgmma", ci8, 64, 2112, 4096, false, 16},
                                  {"cuda:sm90_s8_wgmma", ci8, 128, 1056, 4096, false, 16},
                                  {"cuda:sm90_s8_wgmma", ci8, 256, 528, 4096, false, 16},
                                  {"cuda:sm90_s8_wgmma", ci8, 512, 480, 4096, false, 16},
                                  {"cuda:sm90_s8_wgmma", ci8, 1024, 240, 4096, false, 16},
                                  {"cuda:sm90_s8_wgmma", ci8, 2048, 240, 4096, false, 16},
                                  {"cuda:sm90_s8_wgmma", ci8, 1024, 240, 4096, false, 0},
                                  {"cuda:sm90_s8_wgmma", ci8, 128, 480, 4096, true},
                                  {"cuda:sm90_s8_wgmma", ci8, 1024, 240, 4096, true},
                                  {"cuda:sm90_s8_wgmma", ci8, 1024, 240, 1024},
                                  {"cuda:sm90_s8_wgmma", ci8, 352, 131, 1024},
                                  {"cuda:mma_s8", ci8, 64, 480, 4096},
                                  {"cuda:mma_s8", ci8, 128, 480, 4096},
                                  {"cuda:mma_s8", ci8, 256, 480, 4096},
                                  {"cuda:mma_s8", ci8, 512, 480, 4096},
                                  {"cuda:mma_s8", ci8, 1024, 240, 4096},
                                  {"cuda:mma_s8", ci8, 256, 131, 4096},
                                  {"cuda:mma_s8", ci8, 352, 131, 1024},
                                  {"cuda:sm90_ci4_wgmma", ci4, 64, 480, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 128, 480, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 256, 480, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 512, 480, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 1024, 240, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 2048, 240, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 64, 2112, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 128, 1056, 4096},
                                  {"cuda:sm90_ci4_wgmma", ci4, 256, 528, 4096},
                                  {"cuda:mma_s8", ci4, 64, 480, 4096},
                                  {"cuda:mma_s8", ci4, 256, 480, 4096},
                                  {"cuda:mma_s8", ci4, 1024, 240, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 64, 480, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 128, 480, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 256, 480, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 512, 480, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 1024, 240, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 2048, 240, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 64, 2112, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 128, 1056, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 256, 528, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 1024, 240, 4096, true},
                                  {"cuda:sm90_f16_wgmma", cf16, 352, 131, 1024},
                                  {"cuda:sm90_f16_wgmma", cf16, 128, 8, 4096},
                                  {"cuda:sm90_f16_wgmma", cf16, 128, 132, 4096},
                                  {"cuda:mma_f16", cf16, 64, 480, 4096},
                                  {"cuda:mma_f16", cf16, 256, 480, 4096},
                                  {"cuda:mma_f16", cf16, 1024, 240, 4096},
                                  {"cuda:simt", ci8, 256, 64, 4096},
                                  {"cuda:simt", cf16, 256, 64, 4096},
                                  {"cuda:simt", ci16, 256, 64, 1024},
                                  {"cuda:simt", cf32, 64, 128, 1024},
                                  {"cuda:simt", cf32, 256, 64, 2048}};
  const std::vector<Case> quick = {
      {"cuda:sm90_s8_wgmma", ci8, 64, 16, 512}, {"cuda:sm90_ci4_wgmma", ci4, 64, 16, 512},
      {"cuda:mma_s8", ci8, 64, 16, 512},        {"cuda:sm90_f16_wgmma", cf16, 64, 16, 512},
      {"cuda:mma_f16", cf16, 64, 16, 512},      {"cuda:simt", cf32, 64, 16, 512}};
  for (const Case& c : options.quick ? quick : full) {
    const std::string& wanted = options.implementation;
    if (wanted != "auto" && wanted != "all" && wanted != "cuda" && wanted != c.implementation)
      continue;
    if (!is_here(c.implementation)) continue;
    const std::string row = std::string(c.implementation) + ' ' + std::to_string(c.n_inputs) +
                            " x " + std::to_string(c.n_channels) + " rms " +
                            std::to_string(c.rms_lsb);
    if (options.path != "all" && row.find(options.path) == std::string::npos) continue;
    if (options.calibrate &&
        (row.find("wgmma") == std::string::npos || c.n_spectra != 4096 || c.gulps))
      continue;
    measure(c, options, ceilings, emit);
  }
}

}  // namespace ryle::bench
