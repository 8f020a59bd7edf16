// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <vector>

#include "bench/bench.hpp"
#include "ryle/core/random.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"

/// The whole MWA-32T path on the CPU: 5+5-bit samples in memory to finished sums, everything a live
/// run does between socket and disk.
namespace ryle::bench {
namespace {

constexpr std::int64_t kInputs = 64;
constexpr std::int64_t kChunkTicks = 65536;

pipeline::FxChain::Setup mwa32t_setup(const std::string& f, const std::string& x,
                                      std::int64_t spectra_per_dump) {
  pipeline::FxChain::Setup setup;
  auto& c = setup.channelize;
  c.n_inputs = kInputs;
  c.n_channels = 128;
  c.n_taps = 4;
  c.window = channelize::Window::hamming;
  c.layout.format = SampleFormat::ci5;
  c.layout.input_stride_bits = 16;
  c.layout.sample_stride_bits = 16 * kInputs;
  c.sample_rate_hz = 1.28e6;
  c.reference_hz = 154.24e6;
  c.implementation = f;
  setup.correlate.implementation = x;
  setup.spectra_per_dump = spectra_per_dump;
  setup.max_delay_samples = 4;
  setup.max_feed_ticks = kChunkTicks;
  return setup;
}

/// Gaussian 5+5-bit samples of rms 4.5 per part.
std::vector<std::uint16_t> gaussian_samples(std::int64_t n_ticks, std::uint64_t seed) {
  std::vector<std::uint16_t> samples(n_ticks * kInputs);
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const auto part = [&](std::uint64_t key) {
      const long code = std::lround(4.5 * gaussian(key));
      return static_cast<unsigned>(code < -16 ? -16 : code > 15 ? 15 : code) & 31u;
    };
    samples[k] = static_cast<std::uint16_t>(part(combine(seed, 2 * k)) |
                                            part(combine(seed, 2 * k + 1)) << 5);
  }
  return samples;
}

/// The engines chosen give the reference's integers up to the rounding of the requantiser: the
/// correlation of a short run agrees within the noise that codes one LSB apart in 1e-4 of the
/// samples make.
bool verified(int n_workers, const std::vector<std::uint16_t>& samples) {
  constexpr std::int64_t kSpectra = 64;
  const auto run = [&](const std::string& f, const std::string& x) {
    correlate::Sums sums;
    pipeline::FxChain chain(
        Queue::cpu(n_workers), mwa32t_setup(f, x, kSpectra),
        [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
        [&](pipeline::RawDump&& dump) { sums = std::move(dump.sums); });
    chain.feed(samples.data(), 0, (kSpectra + 8) * 128, {}, 0, {0, {1280000, 1}});
    chain.flush();
    return sums;
  };
  const correlate::Sums fast = run("auto", "auto");
  const correlate::Sums slow = run("reference", "reference");
  if (fast.integer.size() != slow.integer.size() || fast.counts != slow.counts) return false;
  // A dump of 64 spectra of 16 LSB rms parts: one code off by 1 moves a sum by about 16. Allow 8
  // such codes.
  constexpr double kLargestDifference = 8 * 64;
  for (std::size_t k = 0; k < fast.integer.size(); ++k) {
    const double re = static_cast<double>(fast.integer[k].re - slow.integer[k].re);
    const double im = static_cast<double>(fast.integer[k].im - slow.integer[k].im);
    if (std::hypot(re, im) > kLargestDifference) return false;
  }
  return true;
}

}  // namespace

void bench_path(const Options& options, const Emit& emit) {
  const std::int64_t n_chunks = options.quick ? 2 : 8;  // 8 x 8 MiB: beyond the caches
  const auto samples = gaussian_samples(n_chunks * kChunkTicks, 7);
  Result result;
  result.engine = "path";
  result.device = device_description(options.n_workers);
  result.sizes = {
      {"n_inputs", kInputs}, {"n_channels", 128}, {"taps", 4}, {"sample_rate_hz", 1.28e6}};
  result.verified = verified(options.n_workers, samples);

  std::int64_t dumps = 0;
  pipeline::FxChain chain(
      Queue::cpu(options.n_workers), mwa32t_setup("auto", "auto", 10000),
      [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
      [&](pipeline::RawDump&&) { ++dumps; });
  Tick tick = 0;
  const auto one_lap = [&] {
    for (std::int64_t c = 0; c < n_chunks; ++c, tick += kChunkTicks) {
      chain.feed(samples.data() + c * kChunkTicks * kInputs, tick, kChunkTicks, {}, 0,
                 {0, {1280000, 1}});
    }
  };
  one_lap();
  const auto [median_s, min_s] =
      time_runs(options.quick ? 0.1 : 4 * options.seconds_per_case, one_lap);
  const double lap_ticks = static_cast<double>(n_chunks * kChunkTicks);
  result.implementation = std::string(chain.channelizer().implementation()) + " + " +
                          std::string(chain.correlator().implementation());
  result.median_s = median_s;
  result.min_s = min_s;
  result.useful_ops =
      lap_ticks / 128 * 128 *
      (channelize::cost(chain.channelizer().config()).useful_ops_per_sample * kInputs +
       8.0 * static_cast<double>(n_pairs(kInputs)));
  result.bytes = lap_ticks * kInputs * 2;
  result.rate = lap_ticks / 1.28e6 / median_s;
  result.rate_unit = "x real time";
  const double fma = ceiling_fma_f32_ops() * options.n_workers;
  result.roofline_fraction = fma > 0 ? result.useful_ops / median_s / fma : 0;
  result.roofline = "fp32 FMA ceiling of the workers (X runs on integer units)";
  emit(result);
}

}  // namespace ryle::bench
