// SPDX-License-Identifier: BSD-3-Clause
// The published correlator kernels (bench/levels) on today's device: one table with the
// fraction of the ceiling each could reach, the times of a second of MWA-32T as in Wayth 2009, and
// rates over stations and channels as in Clark 2012.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "bench/bench_cuda.hpp"
#include "bench/levels/levels.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/channelize/channelize.hpp"

namespace ryle::bench {
namespace {

using correlate::levels::correlate_level;

struct Case {
  std::int64_t n_inputs;
  std::int64_t n_channels;
  std::int64_t n_spectra;
};

constexpr int kDp4aRounds = 4096;

__global__ void __launch_bounds__(256) multiply_dp4a(int seed, int* out) {
  int c[16];
  for (int k = 0; k < 16; ++k) c[k] = k;
  const int a = seed * 2654435 + static_cast<int>(threadIdx.x);
  const int b = seed * 8747 + static_cast<int>(threadIdx.x) * 65537;
  for (int round = 0; round < kDp4aRounds; ++round) {
#pragma unroll
    for (int k = 0; k < 16; ++k) c[k] = __dp4a(a, b, c[k]);
  }
  int sum = 0;
  for (const int v : c) sum += v;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

double ceiling_dp4a_ops() {
  Queue queue = Queue::cuda();
  int n_sms = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, 0));
  const int blocks = n_sms * 8;
  const Buffer<int> out(blocks * 256, MemorySpace::device);
  const auto [median_s, min_s] = detail::time_queue(queue, 0.2, [&] {
    multiply_dp4a<<<blocks, 256, 0, cuda::stream_of(queue)>>>(1, out.data());
    RYLE_CUDA_LAUNCHED("multiply_dp4a");
  });
  return 2.0 * 4 * 16 * kDp4aRounds * 256.0 * blocks / median_s;
}

/// What the arithmetic of a level could reach, measured now.
struct Ceiling {
  std::string name;
  double ops;
};
std::map<std::string, Ceiling> measure_ceilings(const std::vector<std::string>& levels) {
  const Ceiling fma{"fma f32", ceiling_cuda_fma_f32_ops()};
  std::map<std::string, Ceiling> ceilings;
  for (const std::string& level : levels) {
    if (level == "dp4a") {
      ceilings[level] = {"dp4a", ceiling_dp4a_ops()};
    } else if (level == "mma") {
      ceilings[level] = {"mma.sync s8", ceiling_cuda_mma_s8_ops()};
    } else if (level == "wgmma") {
      ceilings[level] = {"wgmma s8", ceiling_cuda_wgmma_s8_ops()};
    } else {
      ceilings[level] = fma;
    }
  }
  return ceilings;
}

/// Random gulps on the device, more than thrice the L2 cache together, and room for their sums.
class Data {
 public:
  explicit Data(const Case& c, Queue& queue)
      : case_(c), sums_(2 * c.n_channels * n_pairs(c.n_inputs), MemorySpace::device) {
    int cache_bytes = 0;
    RYLE_CUDA(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0));
    const std::int64_t n = std::max<std::int64_t>(2, 3 * std::int64_t{cache_bytes} / bytes() + 1);
    for (std::int64_t g = 0; g < n; ++g) {
      gulps_.emplace_back(bytes(), MemorySpace::device);
      detail::fill_random(gulps_.back().data(), bytes(), true, static_cast<std::uint64_t>(g),
                          queue);
    }
  }
  std::int64_t bytes() const {
    return dense_blocks_bytes(SampleFormat::ci8, case_.n_channels, case_.n_spectra, case_.n_inputs);
  }
  BlockView view(std::int64_t g) {
    auto& gulp = gulps_[static_cast<std::size_t>(g) % gulps_.size()];
    return dense_blocks(gulp.data(), SampleFormat::ci8, case_.n_channels, case_.n_spectra,
                        case_.n_inputs);
  }
  Buffer<std::int32_t>& sums() { return sums_; }

 private:
  Case case_;
  std::vector<Buffer<std::byte>> gulps_;
  Buffer<std::int32_t> sums_;
};

/// 100 products of the first and the last channel, corners among them, against sums from the
/// definition. Random data fill whole blocks: what lies in the last one is summed, too.
bool verify(Queue& queue, const std::string& level, Data& data, const Case& c) {
  std::vector<std::int32_t> found(static_cast<std::size_t>(data.sums().size()), -0x32323233);
  copy_bytes(queue, data.sums().data(), found.data(), data.sums().bytes());
  correlate_level(queue, level, data.view(0), data.sums().data());
  copy_bytes(queue, found.data(), data.sums().data(), data.sums().bytes());
  queue.synchronize();
  for (const std::int64_t channel : {std::int64_t{0}, c.n_channels - 1}) {
    ConstBlockView view = data.view(0);
    const std::int64_t n = n_pairs(c.n_inputs);
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.channel_stride_bytes));
    copy_bytes(queue, bytes.data(), view.data + channel * view.channel_stride_bytes,
               view.channel_stride_bytes);
    queue.synchronize();
    view.data = bytes.data();
    for (std::int64_t k = 0; k < 100; ++k) {
      const std::int64_t pick = static_cast<std::int64_t>(
          (k < 4 ? k : mix64(static_cast<std::uint64_t>(k)) >> 1) % static_cast<std::uint64_t>(n));
      const std::int64_t pair = k % 2 == 0 ? n - 1 - pick : pick;
      const auto [i, j] = pair_of(pair);
      cf64 sum = 0;  // integers below 2^53: exact
      for (std::int64_t t = 0; t < 64 * view.n_blocks; ++t)
        sum += get_sample(view, 0, t, i) * std::conj(get_sample(view, 0, t, j));
      const auto at = static_cast<std::size_t>(2 * (channel * n + pair));
      if (found[at] != sum.real() || found[at + 1] != sum.imag()) return false;
    }
  }
  return true;
}

Result measure(const std::string& engine, const std::string& level, Data& data, const Case& c,
               const Ceiling& ceiling, double seconds) {
  Queue queue = Queue::cuda();
  Result r;
  r.engine = engine;
  r.implementation = "levels/" + level;
  r.device = list_devices().at(1).description;
  r.sizes = {{"n_inputs", c.n_inputs}, {"n_channels", c.n_channels}, {"n_spectra", c.n_spectra}};
  r.verified = verify(queue, level, data, c);
  if (!r.verified) return r;
  std::int64_t next = 0;
  const auto [median_s, min_s] = detail::time_queue(queue, seconds, [&] {
    correlate_level(queue, level, data.view(next++), data.sums().data());
  });
  r.median_s = median_s;
  r.min_s = min_s;
  r.useful_ops = 8.0 * static_cast<double>(n_pairs(c.n_inputs) * c.n_channels * c.n_spectra);
  r.bytes = static_cast<double>(data.bytes() + data.sums().bytes());
  r.rate = r.useful_ops / median_s / 1e9;
  r.rate_unit = "GOPS";
  r.roofline_fraction = r.useful_ops / ceiling.ops / median_s;
  r.roofline = ceiling.name + " " + std::to_string(static_cast<long>(ceiling.ops / 1e9)) + " GOPS";
  return r;
}

/// A second of MWA-32T: 64 inputs of 1.28 MHz, 128 channels of 10 kHz.
constexpr Case kMwa32t = {64, 128, 10'000};

Result second_of_mwa32t(Result r, const std::string& step) {
  r.engine = "levels, one second of MWA-32T";
  r.implementation = step + " " + r.implementation;
  r.sizes = {{"n_inputs", kMwa32t.n_inputs},
             {"n_channels", kMwa32t.n_channels},
             {"n_spectra", kMwa32t.n_spectra}};
  r.rate = r.verified ? 1 / r.median_s : 0;
  r.rate_unit = "x real time";
  return r;
}

/// Unpacking of 5-bit samples and the plain Fourier transform of Wayth 2009, which are one kernel
/// here, requantised to blocks. Verified by bench_channelize_cuda at other sizes and by T-FE-02;
/// here: that every spectrum is valid and that white noise keeps its power.
Result unpack_and_transform(double seconds) {
  using namespace channelize;
  Queue queue = Queue::cuda();
  Config config;
  config.n_inputs = kMwa32t.n_inputs;
  config.n_channels = kMwa32t.n_channels;
  config.n_taps = 1;
  config.layout.format = SampleFormat::ci5;
  config.sample_rate_hz = 1.28e6;
  config.reference_hz = 150e6;
  config.max_spectra = kMwa32t.n_spectra;
  const std::int64_t bits = bits_per_sample(SampleFormat::ci5);
  const std::int64_t n_samples = kMwa32t.n_spectra * kMwa32t.n_channels;
  config.layout.sample_stride_bits = bits;
  config.layout.input_stride_bits = (n_samples * bits + 127) / 128 * 128;
  auto channelizer = make_channelizer(queue, config);
  const std::vector<DelayPolynomial> delays(static_cast<std::size_t>(kMwa32t.n_inputs));
  channelizer->set_delays(delays);
  const std::vector<cf32> gains(static_cast<std::size_t>(kMwa32t.n_inputs * kMwa32t.n_channels),
                                cf32(1.7f, 0));
  channelizer->set_gains(View<const cf32, 2>(gains.data(), {kMwa32t.n_inputs, kMwa32t.n_channels}));
  const std::int64_t in_bytes = config.layout.input_stride_bits / 8 * kMwa32t.n_inputs;
  std::vector<Buffer<std::byte>> samples;
  for (std::uint64_t g = 0; g < 3; ++g) {
    samples.emplace_back(in_bytes, MemorySpace::device);
    detail::fill_random(samples.back().data(), in_bytes, false, g, queue);
  }
  const std::int64_t out_bytes = dense_blocks_bytes(SampleFormat::ci8, kMwa32t.n_channels,
                                                    kMwa32t.n_spectra, kMwa32t.n_inputs);
  const Buffer<std::byte> blocks(out_bytes, MemorySpace::device);
  const std::int64_t words = (kMwa32t.n_spectra + 63) / 64;
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(kMwa32t.n_inputs * words));
  std::vector<ChannelStatistics> statistics(
      static_cast<std::size_t>(kMwa32t.n_inputs * kMwa32t.n_channels));
  Output output;
  output.blocks = dense_blocks(blocks.data(), SampleFormat::ci8, kMwa32t.n_channels,
                               kMwa32t.n_spectra, kMwa32t.n_inputs);
  output.valid = valid.data();
  output.valid_words = words;
  output.statistics = statistics.data();
  std::size_t next = 0;
  const auto run = [&] {
    channelizer->execute(queue, {samples[next++ % 3].data(), 0, n_samples, {}}, 0,
                         kMwa32t.n_spectra, output);
  };
  run();
  queue.synchronize();
  Result r;
  r.implementation = channelizer->implementation();
  r.device = list_devices().at(1).description;
  r.verified = true;
  // Codes -16 .. 15 at random have variance (32^2 - 1) / 12 a part, times the gain squared; dither
  // and rounding add 1/6. The mean of 10 000 spectra is right to 1 % rms: 8 % is eight sigma. The
  // codes' mean of -1/2 stands in the channel of zero frequency, which is left out.
  const double power = 2 * (1023.0 / 12 * 1.7 * 1.7 + 1.0 / 6);
  std::int64_t n_right = 0;
  for (const ChannelStatistics& s : statistics) {
    r.verified = r.verified && s.n_samples == kMwa32t.n_spectra;
    n_right += std::abs(s.sum_of_squares / (power * kMwa32t.n_spectra) - 1) < 0.08;
  }
  r.verified = r.verified && n_right >= (kMwa32t.n_channels - 1) * kMwa32t.n_inputs;
  if (!r.verified) return r;
  const auto [median_s, min_s] = detail::time_queue(queue, seconds, run);
  r.median_s = median_s;
  r.min_s = min_s;
  r.useful_ops = cost(config).useful_ops_per_sample * static_cast<double>(n_samples) *
                 static_cast<double>(kMwa32t.n_inputs);
  r.bytes = static_cast<double>(in_bytes + out_bytes);
  return r;
}

}  // namespace

void bench_levels_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  std::vector<std::string> levels;
  {
    Queue queue = Queue::cuda();
    levels = correlate::levels::level_names(queue);
  }
  const auto ceilings = measure_ceilings(levels);
  Queue queue = Queue::cuda();
  const std::vector<Case> full = {{64, 128, 4096}, {256, 128, 4096}, {512, 128, 4096}};
  const std::vector<Case> quick = {{33, 8, 128}};
  for (const Case& c : options.quick ? quick : full) {
    Data data(c, queue);
    for (const std::string& level : levels)
      emit(measure("levels", level, data, c, ceilings.at(level), options.seconds_per_case));
  }
  if (options.quick) return;

  emit(second_of_mwa32t(unpack_and_transform(options.seconds_per_case), "unpack and FFT:"));
  {
    Data data(kMwa32t, queue);
    for (const std::string& level : levels) {
      emit(second_of_mwa32t(
          measure("", level, data, kMwa32t, ceilings.at(level), options.seconds_per_case),
          "CMAC:"));
    }
  }
  // Stations of two polarizations; the kernel each paper ends with, and today's.
  for (const std::int64_t n_stations : {16, 32, 64, 128, 256}) {
    for (const std::int64_t n_channels : {16, 64, 128, 512}) {
      const Case c{2 * n_stations, n_channels, 1024};
      Data data(c, queue);
      for (const std::string& level : levels) {
        if (level == "pair" || level == "hybrid" || level == "group2") continue;
        emit(measure("levels over stations and channels", level, data, c, ceilings.at(level), 0.1));
      }
    }
  }
}

}  // namespace ryle::bench
