// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/flag_spectra.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/engine/search/pulse_fit.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

using detail::GroupPlane;
using detail::GroupTrack;

constexpr std::int64_t kMaxHistory = 32768;
constexpr int kMaxFeatures = 64;  // decomposed in one gulp; what is left then is masked

struct Run {
  std::int64_t first = 0, end = 0;
  double peak = 0;        // sigma, largest magnitude
  bool negative = false;  // of it
};

/// z in units of its noise, 0 where nothing is.
std::vector<float> band_sum(const GroupPlane& plane) {
  const auto n = static_cast<std::size_t>(plane.n_columns);
  std::vector<float> sum(n, 0.0f), count(n, 0.0f);
  for (std::int64_t g = 0; g < plane.n_groups; ++g) {
    for (std::size_t t = 0; t < n; ++t) {
      sum[t] += plane.sums[plane.at(g, 0) + t];
      count[t] += plane.counts[plane.at(g, 0) + t];
    }
  }
  for (std::size_t t = 0; t < n; ++t) sum[t] = count[t] > 0 ? sum[t] / std::sqrt(count[t]) : 0.0f;
  return sum;
}

struct Scale {
  double center = 0, scatter = 0;
};

Scale scale_of(const std::vector<float>& values) {
  const std::size_t step = std::max<std::size_t>(1, values.size() / 8192);
  std::vector<double> list;
  for (std::size_t k = 0; k < values.size(); k += step)
    list.push_back(static_cast<double>(values[k]));
  const double center = detail::median_of(list);
  return {center, detail::scatter_of(list, center)};
}

std::vector<float> boxcar(const std::vector<float>& z, std::int64_t width) {
  std::vector<float> out;
  double sum = 0;
  for (std::size_t t = 0; t < z.size(); ++t) {
    sum += static_cast<double>(z[t]);
    if (t >= static_cast<std::size_t>(width))
      sum -= static_cast<double>(z[t - static_cast<std::size_t>(width)]);
    if (t + 1 >= static_cast<std::size_t>(width)) out.push_back(static_cast<float>(sum));
  }
  return out;
}

}  // namespace

struct SpectraFlagger::Impl {
  SpectraConfig config;
  std::int64_t n_channels = 0, history = 0;
  std::int64_t next_tick = 0;
  GroupPlane past;  // columns of earlier gulps, interference taken out
  std::array<Scale, 6> scales{};
  SpectraReport report;
  std::vector<TickRange> undecided;

  explicit Impl(const SpectraConfig& c) : config(c), n_channels(c.band.n_channels()) {
    const double sweep = c.dm_max * c.band.sweep_samples_per_dm();
    // What sweeps less than two samples is a burst to anybody.
    if (c.band.sweep_samples_per_dm() > 0)
      config.dm_min = std::max(c.dm_min, 2 / c.band.sweep_samples_per_dm());
    history = static_cast<std::int64_t>(std::clamp(sweep, 64.0, static_cast<double>(kMaxHistory)));
    past.n_groups = std::min(kSpectraGroups, n_channels);
    for (std::int64_t g = 0; g < past.n_groups; ++g) {
      double delay_samples = 0, count = 0;
      for (std::int64_t k = 0; k < n_channels; ++k)
        if (k * past.n_groups / n_channels == g)
          delay_samples += c.band.delay_samples(k, 1), ++count;
      past.delay_per_dm.push_back(delay_samples / count);
    }
    // Relative to the earliest group; arrival times here are its own.
    const double minimum = *std::min_element(past.delay_per_dm.begin(), past.delay_per_dm.end());
    for (auto& d : past.delay_per_dm) d -= minimum;
  }

  /// The past and the new columns in one plane.
  GroupPlane joined(const std::vector<float>& sums, const std::vector<float>& counts,
                    std::int64_t n) const {
    GroupPlane all = past;
    all.n_columns = past.n_columns + n;
    all.sums.clear();
    all.counts.clear();
    const auto append = [&](std::vector<float>& to, const std::vector<float>& old,
                            const std::vector<float>& now, std::int64_t g) {
      to.insert(to.end(), old.begin() + g * past.n_columns, old.begin() + (g + 1) * past.n_columns);
      to.insert(to.end(), now.begin() + g * n, now.begin() + (g + 1) * n);
    };
    for (std::int64_t g = 0; g < past.n_groups; ++g) {
      append(all.sums, past.sums, sums, g);
      append(all.counts, past.counts, counts, g);
    }
    return all;
  }

  void keep_past(const GroupPlane& all) {
    const std::int64_t n = std::min(history, all.n_columns);
    past.n_columns = n;
    past.sums.clear();
    past.counts.clear();
    for (std::int64_t g = 0; g < all.n_groups; ++g) {
      const auto end =
          static_cast<std::ptrdiff_t>(all.at(g, 0) + static_cast<std::size_t>(all.n_columns));
      past.sums.insert(past.sums.end(), all.sums.begin() + end - n, all.sums.begin() + end);
      past.counts.insert(past.counts.end(), all.counts.begin() + end - n, all.counts.begin() + end);
    }
  }

  /// The brightest run above the threshold that reaches beyond `from`. @param measure take the
  /// scales of the boxcars from these data, else those taken before
  bool brightest(const GroupPlane& plane, std::int64_t from, bool measure, Run& run) {
    const auto z = band_sum(plane);
    const auto n = static_cast<std::size_t>(plane.n_columns);
    std::vector<float> level(n, 0.0f);  // largest deviation of a boxcar that holds the column
    for (std::size_t k = 0; k < scales.size(); ++k) {
      const std::int64_t width = std::int64_t{1} << k;
      if (width > plane.n_columns) break;
      const auto sums = boxcar(z, width);
      if (measure) scales[k] = scale_of(sums);
      const Scale s = scales[k];
      if (!(s.scatter > 0)) continue;
      for (std::size_t t = 0; t < sums.size(); ++t) {
        const auto deviation =
            static_cast<float>((static_cast<double>(sums[t]) - s.center) / s.scatter);
        if (!(std::abs(static_cast<double>(deviation)) > config.threshold)) continue;
        for (std::size_t j = t; j < t + static_cast<std::size_t>(width); ++j)
          if (std::abs(deviation) > std::abs(level[j])) level[j] = deviation;
      }
    }
    run = {};
    for (std::size_t t = 0; t < n;) {
      if (level[t] == 0) {
        ++t;
        continue;
      }
      Run here{static_cast<std::int64_t>(t), 0, 0, false};
      for (; t < n && level[t] != 0; ++t)
        if (std::abs(static_cast<double>(level[t])) > here.peak)
          here.peak = std::abs(static_cast<double>(level[t])), here.negative = level[t] < 0;
      here.end = static_cast<std::int64_t>(t);
      if (here.end > from && here.peak > run.peak) run = here;
    }
    return run.peak > 0;
  }

  static void blank_columns(GroupPlane& plane, std::int64_t first, std::int64_t end) {
    for (std::int64_t g = 0; g < plane.n_groups; ++g)
      for (std::int64_t t = std::max<std::int64_t>(0, first); t < std::min(end, plane.n_columns);
           ++t)
        plane.sums[plane.at(g, t)] = plane.counts[plane.at(g, t)] = 0;
  }
  static void blank_track(GroupPlane& plane, const GroupTrack& track) {
    for (std::int64_t g = 0; g < plane.n_groups; ++g) {
      const double center = track.at_column(plane, g), half = 2 * track.half_width;
      const auto first = std::max<std::int64_t>(0, std::llround(std::floor(center - half)));
      const auto last =
          std::min<std::int64_t>(plane.n_columns - 1, std::llround(std::ceil(center + half)));
      for (std::int64_t t = first; t <= last; ++t)
        plane.sums[plane.at(g, t)] = plane.counts[plane.at(g, t)] = 0;
    }
  }

  /// A pulse that was undecided when only its beginning had come.
  void forget_undecided(std::int64_t first, std::int64_t end) {
    undecided.erase(
        std::remove_if(undecided.begin(), undecided.end(),
                       [&](const TickRange& r) { return r.first < end && r.end > first; }),
        undecided.end());
  }

  /// By how much a feature is not at DM 0: its DM in units of its errors, half a column of sweep
  /// among them (bursts are not of one shape in all channels), and no more than what a line of its
  /// DM is better than one at DM 0, @eq sqrt(S^2 - S_0^2)
  static double sure_of(const GroupPlane& plane, const GroupTrack& track) {
    const double per_dm = *std::max_element(plane.delay_per_dm.begin(), plane.delay_per_dm.end());
    if (!(per_dm > 0) || !(track.dm > 0)) return 0;
    const double error = std::hypot(track.dm_error, 0.5 / per_dm);
    const double better = track.score * track.score - track.zero_score * track.zero_score;
    return std::min(track.dm / error, std::sqrt(std::max(0.0, better)));
  }
  /// Not shown to be at DM 0: off by 3 errors, or so wide or faint that dm_min is within 2.
  bool may_have_dm(const GroupPlane& plane, const GroupTrack& track) const {
    if (sure_of(plane, track) > 3) return true;
    return track.dm + 2 * track.dm_error > config.dm_min &&
           (track.dm_error < 1e29 || track.dm > config.dm_min);
  }

  /// A run without the columns at its ends that are only in it because a boxcar held them: those
  /// whose sum from the end on stays below 3 of its noise. A bright burst of one sample lifts every
  /// boxcar that holds it, up to 15 columns and more.
  Run core_of(const GroupPlane& plane, const Run& run) const {
    const auto n = static_cast<std::size_t>(run.end - run.first);
    std::vector<double> z(n, 0.0);  // with the sign of the run
    for (std::size_t k = 0; k < n; ++k) {
      double sum = 0, count = 0;
      for (std::int64_t g = 0; g < plane.n_groups; ++g) {
        const std::size_t at = plane.at(g, run.first + static_cast<std::int64_t>(k));
        sum += static_cast<double>(plane.sums[at]);
        count += static_cast<double>(plane.counts[at]);
      }
      if (count > 0 && scales[0].scatter > 0)
        z[k] = (run.negative ? -1 : 1) * (sum / std::sqrt(count) - scales[0].center) /
               scales[0].scatter;
    }
    const auto clean_of = [&](const auto& value) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) {
        sum += value(k);
        if (sum > 3 * std::sqrt(static_cast<double>(k + 1))) return static_cast<std::int64_t>(k);
      }
      return static_cast<std::int64_t>(n);
    };
    const std::int64_t before = clean_of([&](std::size_t k) { return z[k]; });
    const std::int64_t behind = clean_of([&](std::size_t k) { return z[n - 1 - k]; });
    if (before + behind >= run.end - run.first) return run;
    return {run.first + before, run.end - behind, run.peak, run.negative};
  }

  /// Columns of a run and its flanks, below the threshold but not clean.
  static Run padded(const Run& run) {
    const std::int64_t pad = std::clamp<std::int64_t>((run.end - run.first) / 4, 1, 64);
    return {run.first - pad, run.end + pad, run.peak, run.negative};
  }

  /// Arrivals at the highest channel of whatever may be found of a burst: of its line, of DM 0, and
  /// of DMs that sweep its part of the band within its length. A burst in few channels is found at
  /// any of those, as much earlier at the highest channel as they lie below it.
  static TickRange suspect_range(const GroupPlane& plane, const Run& run, const GroupTrack& track,
                                 std::int64_t first_tick) {
    std::vector<double> excess;
    for (std::int64_t g = 0; g < plane.n_groups; ++g) {
      double sum = 0;
      for (std::int64_t t = run.first; t < run.end; ++t)
        sum += static_cast<double>(plane.sums[plane.at(g, t)]);
      excess.push_back(sum);
    }
    const double minimum = 0.25 * *std::max_element(excess.begin(), excess.end());
    double low = 1e300, high = 0;  // delays of the groups that hold it
    for (std::size_t g = 0; g < excess.size(); ++g) {
      if (excess[g] < minimum) continue;
      low = std::min(low, plane.delay_per_dm[g]);
      high = std::max(high, plane.delay_per_dm[g]);
    }
    const double all = *std::max_element(plane.delay_per_dm.begin(), plane.delay_per_dm.end());
    const double spread = high - low + all / static_cast<double>(plane.n_groups);
    const auto length = static_cast<double>(run.end - run.first);
    const double early = spread > 0 ? length * 0.5 * (low + high) / spread : 0;
    const auto first = static_cast<std::int64_t>(std::floor(track.column - track.half_width));
    const auto end = static_cast<std::int64_t>(std::ceil(track.column + track.half_width));
    return {first_tick + std::min(first, run.first) - std::llround(early),
            first_tick + std::max(end, run.end)};
  }

  void mask_bursts(GroupPlane& all, std::int64_t n_past, std::vector<std::uint8_t>& masked) {
    GroupPlane work = all;
    Run run;
    const std::int64_t first_tick = next_tick - n_past;
    const auto mask = [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t t = std::max(first, n_past); t < std::min(end, all.n_columns); ++t)
        masked[t - n_past] = 1;
      blank_columns(all, first, end);
      blank_columns(work, first, end);
      ++report.n_masked_runs;
    };
    for (int feature = 0; brightest(work, n_past, feature == 0, run); ++feature) {
      if (run.negative || feature >= kMaxFeatures) {
        const Run wide = padded(core_of(work, run));
        mask(wide.first, wide.end);
        if (feature > 4 * kMaxFeatures) return;
        continue;
      }
      const GroupTrack track = detail::fit_track(work, run.first, run.end, config.dm_max);
      const bool pulse = sure_of(work, track) > 5 && track.explained >= 0.8;
      const bool cannot_tell = !pulse && may_have_dm(work, track) && track.explained >= 0.8;
      if (pulse || cannot_tell) {
        const auto begin = static_cast<std::int64_t>(std::floor(track.column - track.half_width));
        const auto end = static_cast<std::int64_t>(std::ceil(track.column + track.half_width));
        forget_undecided(first_tick + begin, first_tick + end);
        if (pulse)
          ++report.n_pulses_kept;
        else
          ++report.n_undecided, undecided.push_back(suspect_range(work, run, track, first_tick));
        blank_track(work, track);
        // Should the line have missed its own run, go on without the run.
        Run again;
        if (brightest(work, n_past, false, again) && again.first == run.first &&
            again.end == run.end)
          blank_columns(work, run.first, run.end);
        continue;
      }
      // Interference: the run's core about the line, or of a mixed run all that is about the line.
      const Run wide = padded(core_of(work, run));
      const double center = track.at_column(work, work.n_groups / 2), half = track.half_width;
      const bool missed = center + half < static_cast<double>(run.first) ||
                          center - half > static_cast<double>(run.end);
      std::int64_t from = std::llround(std::floor(center - 1.25 * half));
      std::int64_t to = std::llround(std::ceil(center + 1.25 * half)) + 1;
      if (missed) {
        from = wide.first;
        to = wide.end;
      } else if (track.share >= 0.8 || run.end - run.first <= 8) {
        from = std::max(from, wide.first);
        to = std::min(to, wide.end);
      }
      from < to ? mask(from, to) : mask(wide.first, wide.end);
    }
  }
};

SpectraFlagger::SpectraFlagger(const SpectraConfig& config)
    : impl_(std::make_unique<Impl>(config)) {}
SpectraFlagger::~SpectraFlagger() = default;

std::int64_t SpectraFlagger::n_groups() const { return impl_->past.n_groups; }
std::int64_t SpectraFlagger::group_of(std::int64_t channel) const {
  return channel * impl_->past.n_groups / impl_->n_channels;
}
const SpectraReport& SpectraFlagger::report() const { return impl_->report; }
const std::vector<TickRange>& SpectraFlagger::undecided() const { return impl_->undecided; }

void SpectraFlagger::skip(std::int64_t n) {
  Impl& me = *impl_;
  me.next_tick += n;
  me.past.n_columns = 0;
  me.past.sums.clear();
  me.past.counts.clear();
}

std::int64_t SpectraFlagger::history() const { return impl_->history; }
void SpectraFlagger::pass(std::int64_t n) { impl_->next_tick += n; }
void SpectraFlagger::set_past(const Past& past) {
  impl_->past.sums = past.sums;
  impl_->past.counts = past.counts;
  impl_->past.n_columns = past.n_columns;
}
SpectraFlagger::Past SpectraFlagger::past() const {
  const GroupPlane& p = impl_->past;
  return {p.sums, p.counts, p.n_columns};
}

void SpectraFlagger::execute(const std::vector<float>& sums, const std::vector<float>& counts,
                             std::int64_t n, std::vector<std::uint8_t>& masked) {
  Impl& me = *impl_;
  masked.assign(n, 0);
  const std::int64_t n_past = me.past.n_columns;
  GroupPlane all = me.joined(sums, counts, n);
  me.mask_bursts(all, n_past, masked);
  me.keep_past(all);
  me.next_tick += n;
}

}  // namespace ryle::search
