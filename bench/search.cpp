// SPDX-License-Identifier: BSD-3-Clause
// Search: the block of Magro 2014 (1024 channels, 49,152 samples, 864 trials x 0.1 pc/cm3), codes
// in memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bench/bench.hpp"
#ifdef RYLE_HAVE_CUDA
#include "bench/bench_cuda.hpp"
#endif
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/search/cluster.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/drift.hpp"
#include "ryle/engine/search/search.hpp"

namespace ryle::bench {
namespace {

using search::DedisperseConfig;

struct Block {
  search::Band band;
  std::vector<double> dms;
  DedisperseConfig config;
  std::int64_t n_outputs = 0;
  std::int64_t stride = 0;
  Buffer<std::uint8_t> codes;
};

Block make_block(bool quick) {
  Block b;
  const std::int64_t n_channels = 1024;
  b.band.channel_width_hz = 20e6 / static_cast<double>(n_channels);
  for (std::int64_t c = 0; c < n_channels; ++c)
    b.band.center_hz.push_back(398e6 + (static_cast<double>(c) + 0.5) * b.band.channel_width_hz);
  b.band.sample_interval_s = 51.2e-6;
  search::DmPlanConfig plan;
  plan.kind = "linear";
  plan.step = 0.1;
  plan.count = quick ? 96 : 864;
  b.dms = search::dm_trials(b.band, plan);
  b.n_outputs = quick ? 4096 : 49152;
  b.config.n_channels = n_channels;
  b.config.n_trials = static_cast<std::int64_t>(b.dms.size());
  b.config.delays = search::delay_table(b.band, b.dms);
  b.config.max_outputs = b.n_outputs;
  b.stride = b.n_outputs + *std::max_element(b.config.delays.begin(), b.config.delays.end()) + 64;
  b.codes = Buffer<std::uint8_t>(n_channels * b.stride + search::kReadAhead);
  // White, mean 24, rms 8: what the normaliser makes. Drawn from a table of 65,536 deviates.
  std::vector<std::uint8_t> deviates(65536);
  for (std::size_t k = 0; k < deviates.size(); ++k)
    deviates[k] = static_cast<std::uint8_t>(
        std::clamp(std::rint(24 + 8 * gaussian(combine(1, k))), 0.0, 63.0));
  for (std::int64_t k = 0; k < b.codes.size(); k += 4) {
    const std::uint64_t key = combine(2, static_cast<std::uint64_t>(k));
    for (std::int64_t m = 0; m < 4 && k + m < b.codes.size(); ++m)
      b.codes[k + m] = deviates[key >> (16 * m) & 65535];
  }
  return b;
}

/// A hundred thousand outputs against the definition.
bool verify(const Block& b, const std::uint16_t* sums) {
  for (std::uint64_t k = 0; k < 100'000; ++k) {
    const auto trial =
        static_cast<std::int64_t>(combine(2, k) % static_cast<std::uint64_t>(b.config.n_trials));
    const auto t =
        static_cast<std::int64_t>(combine(3, k) % static_cast<std::uint64_t>(b.n_outputs));
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < b.config.n_channels; ++c)
      sum += b.codes[c * b.stride + t + b.config.delays[trial * b.config.n_channels + c]];
    if (sum != sums[trial * b.n_outputs + t]) return false;
  }
  return true;
}

void measure_dedisperse(const Options& options, Block& b, const std::string& name,
                        const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  b.config.implementation = name;
  const auto engine = search::make_dedisperser(queue, b.config);
  Buffer<std::uint16_t> sums(b.config.n_trials * b.n_outputs);
  const auto once = [&] {
    engine->execute(queue, b.codes.data(), b.stride, b.n_outputs, sums.data(), b.n_outputs);
  };
  once();
  Result r;
  r.engine = "search";
  r.implementation = std::string(engine->implementation()) + " dedisperse";
  r.device = device_description(options.n_workers);
  r.sizes = {{"n_channels", static_cast<double>(b.config.n_channels)},
             {"n_outputs", static_cast<double>(b.n_outputs)},
             {"n_trials", static_cast<double>(b.config.n_trials)}};
  r.verified = verify(b, sums.data());
  r.useful_ops = static_cast<double>(b.config.n_channels) * static_cast<double>(b.n_outputs) *
                 static_cast<double>(b.config.n_trials);
  r.bytes = static_cast<double>(b.codes.bytes() + sums.bytes());
  r.rate_unit = "x real time";
  if (r.verified) {
    std::tie(r.median_s, r.min_s) = time_runs(options.seconds_per_case, once);
    r.rate = static_cast<double>(b.n_outputs) * b.band.sample_interval_s / r.median_s;
  }
  emit(r);
}

/// Dedispersion, boxcars and peaks in pieces that stay in the cache, as the chain does it.
class Pieces {
 public:
  Pieces(Queue& queue, const Block& b, const std::string& name)
      : b_(b), sums_(b.config.n_trials * (kHistory + kPiece)) {
    search::DedisperseConfig d = b.config;
    d.max_outputs = kPiece;
    d.implementation = name;
    dedisperser_ = search::make_dedisperser(queue, d);
    search::DetectConfig e;
    e.n_trials = b.config.n_trials;
    e.max_width = kHistory;
    e.max_columns = kHistory + kPiece;
    e.threshold = 7;
    e.implementation = name;
    detector_ = search::make_detector(queue, e);
  }

  void run(Queue& queue, std::vector<search::Hit>& hits) {
    const std::int64_t stride = kHistory + kPiece;
    for (std::int64_t first = 0; first < b_.n_outputs; first += kPiece) {
      const std::int64_t n = std::min(kPiece, b_.n_outputs - first);
      if (first > 0) {
        queue.parallel_for(b_.config.n_trials, [&](std::int64_t trial) {
          std::uint16_t* row = sums_.data() + trial * stride;
          std::memmove(row, row + kPiece, static_cast<std::size_t>(kHistory) * 2);
        });
      }
      dedisperser_->execute(queue, b_.codes.data() + first, b_.stride, n, sums_.data() + kHistory,
                            stride);
      search::DetectInput in;
      in.sums = sums_.data();
      in.stride = stride;
      in.n_columns = kHistory + n;
      in.first_tick = first - kHistory;
      in.first_start = first > 0 ? 0 : kHistory;
      in.end_start = n;
      in.stat_first = in.first_start;
      in.stat_end = in.n_columns;
      detector_->execute(queue, in, hits);
    }
  }

  std::string_view implementation() const { return dedisperser_->implementation(); }
  static constexpr std::int64_t kPiece = 8192, kHistory = 256;

 private:
  const Block& b_;
  Buffer<std::uint16_t> sums_;
  std::unique_ptr<search::Dedisperser> dedisperser_;
  std::unique_ptr<search::Detector> detector_;
};

void measure_search(const Options& options, Block& b, const std::string& name, const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  Pieces pieces(queue, b, name), generic(queue, b, "cpu:generic");
  std::vector<search::Hit> hits, expected;
  pieces.run(queue, hits);
  generic.run(queue, expected);
  Result r;
  r.engine = "search";
  r.implementation = std::string(pieces.implementation()) + " dedisperse, boxcars, peaks";
  r.device = device_description(options.n_workers);
  r.sizes = {{"n_channels", static_cast<double>(b.config.n_channels)},
             {"n_outputs", static_cast<double>(b.n_outputs)},
             {"n_trials", static_cast<double>(b.config.n_trials)},
             {"max_width", static_cast<double>(Pieces::kHistory)}};
  r.verified = hits == expected;
  r.useful_ops = static_cast<double>(b.config.n_channels) * static_cast<double>(b.n_outputs) *
                 static_cast<double>(b.config.n_trials);
  r.bytes = static_cast<double>(b.codes.bytes());
  r.rate_unit = "x real time";
  if (r.verified) {
    std::tie(r.median_s, r.min_s) = time_runs(options.seconds_per_case, [&] {
      hits.clear();
      pieces.run(queue, hits);
    });
    r.rate = static_cast<double>(b.n_outputs) * b.band.sample_interval_s / r.median_s;
  }
  emit(r);
}

/// The tree on one-sample steps, or sub-bands on the trials of the block, in gulps of 8192 as the
/// chain makes them.
void measure_approximate(const Options& options, const Block& b, const std::string& name,
                         const Emit& emit) {
  constexpr std::int64_t kGulp = 8192;
  Queue queue = Queue::cpu(options.n_workers);
  const bool tree = name.rfind("fdmt", 0) == 0;
  search::DmPlanConfig plan;
  plan.kind = "native";
  plan.dm_max =  // 4161 trials
      options.quick ? b.dms.back() : 4160.5 / b.band.sweep_samples_per_dm();
  const auto dms = tree ? search::dm_trials(b.band, plan) : b.dms;
  DedisperseConfig config;
  config.n_channels = b.config.n_channels;
  config.n_trials = static_cast<std::int64_t>(dms.size());
  config.delays = search::delay_table(b.band, dms);
  config.max_outputs = kGulp;
  config.implementation = name;
  for (const double hz : b.band.center_hz) config.dispersion.push_back(1e18 / (hz * hz));
  const auto engine = search::make_dedisperser(queue, config);
  config.implementation = tree ? "fdmt:reference" : "subband:reference";
  const auto reference = search::make_dedisperser(queue, config);
  Buffer<std::uint16_t> sums(config.n_trials * kGulp);
  const auto once = [&] {
    for (std::int64_t first = 0; first < b.n_outputs; first += kGulp)
      engine->execute(queue, b.codes.data() + first, b.stride, std::min(kGulp, b.n_outputs - first),
                      sums.data(), kGulp);
  };
  once();
  constexpr std::int64_t kChecked = 2;
  const std::int64_t last = (b.n_outputs - 1) / kGulp * kGulp;
  Buffer<std::uint16_t> expected(config.n_trials * kChecked);
  reference->execute(queue, b.codes.data() + last + 1000, b.stride, kChecked, expected.data(),
                     kChecked);
  Result r;
  r.engine = "search";
  r.implementation = std::string(engine->implementation()) + " dedisperse";
  r.device = device_description(options.n_workers);
  r.sizes = {{"n_channels", static_cast<double>(config.n_channels)},
             {"n_outputs", static_cast<double>(b.n_outputs)},
             {"n_trials", static_cast<double>(config.n_trials)},
             {"max_off_samples", engine->track_error().max_samples},
             {"rms_off_samples", engine->track_error().rms_samples}};
  r.verified = true;
  for (std::int64_t trial = 0; trial < config.n_trials; ++trial)
    for (std::int64_t t = 0; t < kChecked; ++t)
      r.verified = r.verified && sums[trial * kGulp + 1000 + t] == expected[trial * kChecked + t];
  r.useful_ops = static_cast<double>(config.n_channels) * static_cast<double>(b.n_outputs) *
                 static_cast<double>(config.n_trials);
  r.bytes = static_cast<double>(b.codes.bytes());
  r.rate_unit = "x real time";
  if (r.verified) {
    std::tie(r.median_s, r.min_s) = time_runs(options.seconds_per_case, once);
    r.rate = static_cast<double>(b.n_outputs) * b.band.sample_interval_s / r.median_s;
  }
  emit(r);
}

/// Levels of a receiver whose gain drifts by 1 %, as the search takes them out: half a second, in
/// blocks of 8192 samples that come round and round. Verified: of the drift no more is left than
/// the filter's definition leaves, and of the noise no less.
void measure_levels(const Options& options, const Block& b, const Emit& emit) {
  constexpr std::int64_t kGulp = 8192, kSamples = 6 * kGulp;
  constexpr double kMean = 100, kRms = 10, kDrift = 0.01;
  search::DriftConfig config;
  config.n_channels = options.quick ? 128 : b.config.n_channels;
  config.window_samples = search::drift_window(0, b.band.sample_interval_s, Pieces::kHistory);
  std::vector<float> deviates(65536), gain;
  for (std::size_t k = 0; k < deviates.size(); ++k)
    deviates[k] = static_cast<float>(kRms * gaussian(combine(3, k)));
  for (std::int64_t t = 0; t < kSamples; ++t)  // one period: it goes on where it begins
    gain.push_back(static_cast<float>(
        kMean * (1 + kDrift * std::sin(2 * kPi * static_cast<double>(t) / kSamples))));
  Buffer<float> power(config.n_channels * kSamples), out(config.n_channels * kGulp);
  for (std::int64_t c = 0; c < config.n_channels; ++c)
    for (std::int64_t t = 0; t < kSamples; ++t)
      power[c * kSamples + t] =
          gain[t] + deviates[combine(4, static_cast<std::uint64_t>(c * kSamples + t)) & 65535];
  Queue queue = Queue::cpu(options.n_workers);
  search::DriftFilter filter(config, kGulp);
  std::int64_t given = 0, taken = 0;
  // Of what goes out: the mean of all channels against the drift, and the scatter of all samples.
  double sine = 0, cosine = 0, squares = 0, n_seen = 0;
  const auto once = [&](bool look) {
    for (std::int64_t first = 0; first < kSamples; first += kGulp) {
      const std::int64_t n =
          filter.execute(queue, power.data() + first, kSamples, kGulp, out.data(), kGulp);
      for (std::int64_t t = 0; look && t < n; ++t) {
        double sum = 0;
        for (std::int64_t c = 0; c < config.n_channels; ++c) {
          const double x = static_cast<double>(out[c * kGulp + t]) - kMean;
          sum += x;
          squares += x * x;
        }
        const double turn = 2 * kPi * static_cast<double>(given + t) / kSamples;
        sine += sum * std::sin(turn);
        cosine += sum * std::cos(turn);
        n_seen += static_cast<double>(config.n_channels);
      }
      given += n;
      taken += kGulp;
    }
  };
  once(false);
  once(true);
  Result r;
  r.engine = "search";
  r.implementation = "search/cpu levels";
  r.device = device_description(options.n_workers);
  r.sizes = {{"n_channels", static_cast<double>(config.n_channels)},
             {"n_samples", static_cast<double>(kSamples)},
             {"window_samples", static_cast<double>(config.window_samples)}};
  const double x = kPi * static_cast<double>(config.window_samples) / kSamples;
  const double leaves = std::pow(1 - std::sin(x) / x, 2);
  const double left = 2 * std::hypot(sine, cosine) / n_seen / (kMean * kDrift);
  r.verified = left < leaves + 0.01 && std::abs(std::sqrt(squares / n_seen) / kRms - 1) < 0.01 &&
               taken - given == filter.lag();
  r.bytes = static_cast<double>(2 * power.bytes());
  r.rate_unit = "x real time";
  if (r.verified) {
    std::tie(r.median_s, r.min_s) = time_runs(options.seconds_per_case, [&] { once(false); });
    r.rate = static_cast<double>(kSamples) * b.band.sample_interval_s / r.median_s;
  }
  emit(r);
}

/// T-DD-22: a storm in which every 64 samples of every trial and every octave of widths give a
/// hit, in blocks of 8192 samples as the chain hands them over.
void measure_clusters(const Options& options, const Block& b, const Emit& emit) {
  constexpr std::int64_t kBlock = 8192, kOctaves = 9;
  const std::int64_t n_hits = options.quick ? 100'000 : 1'000'000;
  std::vector<search::Hit> hits;
  for (std::int64_t k = 0; k < n_hits; ++k) {
    const auto octave = static_cast<std::int32_t>(k % kOctaves);
    const std::int64_t trial = k / kOctaves % b.config.n_trials;
    const std::int64_t cell = k / kOctaves / b.config.n_trials;
    const std::uint64_t key = combine(9, static_cast<std::uint64_t>(k));
    const std::int32_t width =
        (1 << octave) + static_cast<std::int32_t>((key >> 40) % (1u << octave));
    hits.push_back({64 * cell + static_cast<std::int64_t>(key % 64), width,
                    static_cast<std::int32_t>(trial), static_cast<float>(7 + 3 * uniform(key))});
  }
  search::ClusterConfig config;
  for (const double dm : b.dms) config.sweep_samples.push_back(dm * b.band.sweep_samples_per_dm());
  std::vector<search::Cluster> clusters;
  search::Clusterer clusterer(config);  // of a beam, as long as the search runs
  const auto once = [&] {
    clusters.clear();
    const auto per_block = static_cast<std::size_t>(kBlock / 64 * kOctaves * b.config.n_trials);
    std::int64_t tick = 0;
    for (std::size_t at = 0; at < hits.size(); at += per_block, tick += kBlock) {
      clusterer.add({hits.data() + at, std::min(per_block, hits.size() - at)});
      clusterer.close_before(tick, clusters);
    }
    clusterer.close_all(clusters);
  };
  once();
  std::int64_t in_clusters = 0;
  for (const auto& c : clusters) in_clusters += c.n_hits;
  Result r;
  r.engine = "search";
  r.implementation = "cpu clusters";
  r.device = device_description(1);
  r.sizes = {{"n_tokens", static_cast<double>(n_hits)},
             {"n_trials", static_cast<double>(b.config.n_trials)},
             {"n_clusters", static_cast<double>(clusters.size())}};
  r.verified = in_clusters == n_hits;
  r.rate_unit = "Mtoken/s";
  if (r.verified) {
    std::tie(r.median_s, r.min_s) = time_runs(options.seconds_per_case, once);
    r.rate = static_cast<double>(n_hits) * 1e-6 / r.median_s;
  }
  emit(r);
}

}  // namespace

void bench_search(const Options& options, const Emit& emit) {
#ifdef RYLE_HAVE_CUDA
  bench_search_cuda(options, emit);
  if (options.implementation.rfind("cuda", 0) == 0) return;
#endif
  Block block = make_block(options.quick);
  std::vector<std::string> names{options.implementation};
  if (options.implementation == "all") {
    names.clear();
    for (const auto& name : search::available_implementations())
      if (name != "reference") names.push_back(name);
  }
  if (options.implementation == "all" || options.implementation == "auto") {
    names.emplace_back("fdmt");
    names.emplace_back("subband");
  }
  for (const auto& name : names) {
    if (name.rfind("fdmt", 0) == 0 || name.rfind("subband", 0) == 0) {
      measure_approximate(options, block, name, emit);
      continue;
    }
    measure_dedisperse(options, block, name, emit);
    measure_search(options, block, name, emit);
  }
  measure_levels(options, block, emit);
  measure_clusters(options, block, emit);
}

}  // namespace ryle::bench
