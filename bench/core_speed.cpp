// SPDX-License-Identifier: BSD-3-Clause
#include "bench/core_speed.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>

#include "ryle/core/random.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/image/cpu/cost.hpp"

namespace ryle::bench {
namespace {

using ProbeClock = std::chrono::steady_clock;

double seconds_since(ProbeClock::time_point begin) {
  return std::chrono::duration<double>(ProbeClock::now() - begin).count();
}

// Of all threads.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr std::int64_t kLineWords = 8;
constexpr std::int64_t kChunkWords = std::int64_t{32} << 10;  // 256 KiB
constexpr int kChunks = 6;

// One load a line brings all of it.
std::uint64_t read_lines(const std::uint64_t* words) {
  std::uint64_t sum[4] = {};
  for (std::int64_t k = 0; k < kChunkWords; k += 4 * kLineWords) {
    for (int i = 0; i < 4; ++i) sum[i] += words[k + i * kLineWords];
  }
  return sum[0] + sum[1] + sum[2] + sum[3];
}

std::atomic<std::uint64_t> kept_sum{0};  // else nothing need be read

double stream_bytes_per_s(const std::uint64_t* words) {
  double best_s = 1;
  std::uint64_t sum = 0;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const auto begin = ProbeClock::now();
    sum += read_lines(words + chunk * kChunkWords);
    best_s = std::min(best_s, seconds_since(begin));
  }
  kept_sum += sum;
  return 8 * kChunkWords / best_s;
}

/// A correlator of its own, samples and sums in the caches.
constexpr std::int64_t kProbeInputs = 128, kProbeSpectra = 512;

double change(double before, double after) {
  if (!(before > 0) || !(after > 0)) return 0;
  return std::max(before, after) / std::min(before, after) - 1;
}

image::CoreSpeed middle(const image::CoreSpeed& a, const image::CoreSpeed& b) {
  return {(a.ops + b.ops) / 2, (a.bytes_per_s + b.bytes_per_s) / 2,
          (a.product_ops + b.product_ops) / 2};
}

double at_unit_speed(const RunAtSpeed& run) {
  return run.speed.ops > 0 ? run.seconds * run.speed.ops : run.seconds;
}

}  // namespace

class CoreSpeedProbe::Products {
 public:
  Products()
      : queue_(Queue::cpu(1)),
        correlator_(correlate::make_correlator(queue_, kConfig)),
        samples_(dense_blocks_bytes(SampleFormat::ci4, 1, kProbeSpectra, kProbeInputs)) {
    for (std::int64_t k = 0; k < samples_.size(); ++k)
      samples_[k] = static_cast<std::byte>(combine(3, static_cast<std::uint64_t>(k)));
  }
  double ops_now() {
    constexpr int kBursts = 4;
    correlate::Input input;
    input.blocks = dense_blocks(samples_.data(), SampleFormat::ci4, 1, kProbeSpectra, kProbeInputs);
    input.n_spectra = kProbeSpectra;
    double best_s = 1;
    for (int burst = 0; burst < kBursts; ++burst) {
      const auto begin = ProbeClock::now();
      correlator_->execute(queue_, input);
      best_s = std::min(best_s, seconds_since(begin));
    }
    correlator_->reset(queue_);
    return correlate::cost(kConfig).useful_ops_per_spectrum * kProbeSpectra / best_s;
  }

 private:
  inline static const correlate::Config kConfig{kProbeInputs, 1, SampleFormat::ci4, kProbeSpectra,
                                                "auto"};
  Queue queue_;
  std::unique_ptr<correlate::Correlator> correlator_;
  Buffer<std::byte> samples_;
};

CoreSpeedProbe::~CoreSpeedProbe() = default;

CoreSpeedProbe::CoreSpeedProbe(Queue& queue) : queue_(queue) {
  for (int worker = 0; worker < queue.n_workers(); ++worker)
    products_.push_back(std::make_unique<Products>());
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t cache_bytes = cache > 0 ? cache : std::int64_t{32} << 20;
  const std::int64_t step = kChunks * kChunkWords * queue.n_workers();
  memory_ = Buffer<std::uint64_t>((cache_bytes * 5 / 4 / 8 / step + 1) * step);
  std::fill_n(memory_.data(), memory_.size(), std::uint64_t{1});  // pages of its own
}

image::CoreSpeed CoreSpeedProbe::measure() {
  const int n = queue_.n_workers();
  std::vector<image::CoreSpeed> speeds(n);
  const std::uint64_t* words = memory_.data() + next_;
  next_ = (next_ + kChunks * kChunkWords * n) % memory_.size();
  std::atomic<int> arrived{0};
  queue_.parallel_for(n, [&](std::int64_t worker) {
    // All at once, as in a run; a worker that does not come is not waited for.
    ++arrived;
    const auto begin = ProbeClock::now();
    while (arrived.load() < n && seconds_since(begin) < 2e-4) {
    }
    auto& speed = speeds[worker];
    speed.ops = image::detail::cpu_ops_now(8);
    speed.bytes_per_s = stream_bytes_per_s(words + worker * kChunks * kChunkWords);
    speed.product_ops = products_[worker]->ops_now();
  });
  image::CoreSpeed mean;
  for (const auto& speed : speeds) {
    mean.ops += speed.ops / n;
    mean.bytes_per_s += speed.bytes_per_s / n;
    mean.product_ops += speed.product_ops / n;
  }
  return mean;
}

double TimedAtSpeed::median_s() const {
  std::vector<double> times;
  for (const auto& run : kept) times.push_back(run.wall_s);
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

double TimedAtSpeed::min_s() const {
  double minimum = kept.empty() ? 0 : kept.front().wall_s;
  for (const auto& run : kept) minimum = std::min(minimum, run.wall_s);
  return minimum;
}

RunAtSpeed joined(const std::vector<RunAtSpeed>& parts) {
  RunAtSpeed run;
  run.core_share = 0;
  for (const auto& part : parts) {
    run.seconds += part.seconds;
    run.wall_s += part.wall_s;
  }
  for (const auto& part : parts) {
    const double share = run.seconds > 0 ? part.seconds / run.seconds : 0;
    run.speed.ops += share * part.speed.ops;
    run.speed.bytes_per_s += share * part.speed.bytes_per_s;
    run.speed.product_ops += share * part.speed.product_ops;
    run.moved += std::pow(share * part.moved, 2);
    run.core_share += share * part.core_share;
  }
  run.moved = std::sqrt(run.moved);
  return run;
}

TimedAtSpeed steady_runs(const std::vector<RunAtSpeed>& runs) {
  TimedAtSpeed timed;
  for (const auto& run : runs) {
    if (run.moved > kMaxMoved) {
      ++timed.n_dropped;
      continue;
    }
    timed.kept.push_back(run);
  }
  std::stable_sort(timed.kept.begin(), timed.kept.end(), [](const auto& a, const auto& b) {
    return at_unit_speed(a) < at_unit_speed(b);
  });
  return timed;
}

void count_own_time(std::vector<RunAtSpeed>& runs, int n_workers) {
  // Workers that wait for one another need not be on their cores: what the best run had is all.
  double maximum = n_workers == 1 ? 1 : 0;
  for (const auto& run : runs) maximum = std::max(maximum, run.core_share);
  for (auto& run : runs) {
    run.core_share = maximum > 0 ? run.core_share / maximum : 1;
    run.seconds = run.wall_s * run.core_share;
  }
}

TimedAtSpeed time_at_speed(CoreSpeedProbe& probe, double seconds,
                           const std::vector<TimedPart>& parts) {
  constexpr int kMinRuns = 5;
  std::vector<RunAtSpeed> runs;
  int n_kept = 0;
  image::CoreSpeed before = probe.measure();
  const auto start = ProbeClock::now();
  while (n_kept < kMinRuns || seconds_since(start) < seconds) {
    if (std::ssize(runs) >= kMinRuns && seconds_since(start) > 4 * seconds) break;
    std::vector<RunAtSpeed> run;
    for (const auto& part : parts) {
      const auto begin = ProbeClock::now();
      const double before_s = cpu_seconds();
      part.body();
      const double took_s = seconds_since(begin);
      const double worked_s = (cpu_seconds() - before_s) / probe.n_workers();
      const image::CoreSpeed after = probe.measure();
      const double products_moved =
          part.x_engine ? change(before.product_ops, after.product_ops) : 0;
      run.push_back({took_s, middle(before, after),
                     std::max(change(before.ops, after.ops), products_moved), took_s,
                     std::min(1.0, worked_s / took_s)});
      before = after;
    }
    runs.push_back(joined(run));
    if (runs.back().moved <= kMaxMoved) ++n_kept;
  }
  count_own_time(runs, probe.n_workers());
  return steady_runs(runs);
}

}  // namespace ryle::bench
