// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/subband_plan.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::search::detail {
namespace {

// A row of bytes against one of 16-bit sums, as exact sums count it: sub-bands win by sharing only.
constexpr double kFirstStageWork = 0.8;
// Time of such an addition against one of exact sums, which keep theirs in registers: measured on
// the block of Magro 2014 at bounds of 1, 2 and 4 samples, 2.1 to 2.7.
constexpr double kSubbandTime = 2.7;

/// Places trials on the delays of others within one sub-band.
class Placer {
 public:
  Placer(const DedisperseConfig& config, std::int64_t first_channel, std::int64_t n_channels,
         std::int32_t max_delay, std::int32_t smear)
      : config_(config),
        first_(first_channel),
        n_(n_channels),
        max_delay_(max_delay),
        smear_(smear) {}

  std::int32_t delay(std::int64_t trial, std::int64_t c) const {
    return config_.delays[trial * config_.n_channels + first_ + c];
  }
  std::int32_t minimum(std::int64_t trial) const {
    std::int32_t low = delay(trial, 0);
    for (std::int64_t c = 1; c < n_; ++c) low = std::min(low, delay(trial, c));
    return low;
  }
  /// Start of `trial` on the relative delays of `model`, and whether no channel is off too far.
  bool fits(std::int64_t model, std::int64_t trial, std::int32_t& start) const {
    const std::int32_t zero = minimum(model);
    std::int32_t low = INT32_MAX, high = INT32_MIN, longest = 0;
    for (std::int64_t c = 0; c < n_; ++c) {
      const std::int32_t relative = delay(model, c) - zero;
      const std::int32_t wanted = delay(trial, c) - relative;
      low = std::min(low, wanted);
      high = std::max(high, wanted);
      longest = std::max(longest, relative);
    }
    // In the middle of what the channels want; data before the first or after the last sample that
    // the caller has do not exist.
    start = low + (high - low) / 2;
    start = std::max(0, std::min(start, max_delay_ - longest));
    return high - start <= smear_ && start - low <= smear_;
  }

 private:
  const DedisperseConfig& config_;
  std::int64_t first_, n_;
  std::int32_t max_delay_, smear_;
};

Subband make_subband(const DedisperseConfig& config, std::int64_t first_channel,
                     std::int64_t n_channels, std::int32_t max_delay, std::int32_t smear) {
  Subband s;
  s.first_channel = first_channel;
  s.n_channels = n_channels;
  const Placer placer(config, first_channel, n_channels, max_delay, smear);
  for (std::int64_t i = 0; i < config.n_trials;) {
    // The furthest trial on whose delays the first of the group still lies, then all that lie on
    // them too. A trial lies on its own delays exactly.
    std::int32_t start = 0;
    std::int64_t model = i;
    while (model + 1 < config.n_trials && placer.fits(model + 1, i, start)) ++model;
    const auto group = static_cast<std::int32_t>(s.n_groups());
    const std::int32_t zero = placer.minimum(model);
    for (std::int64_t c = 0; c < n_channels; ++c)
      s.relative.push_back(placer.delay(model, c) - zero);
    for (; i < config.n_trials && placer.fits(model, i, start); ++i) {
      s.group.push_back(group);
      s.start.push_back(start);
    }
  }
  return s;
}

TrackError measured_error(const DedisperseConfig& config, const SubbandPlan& plan) {
  TrackError error;
  double squares = 0;
  for (std::int64_t i = 0; i < config.n_trials; ++i) {
    for (const Subband& s : plan.subbands) {
      const auto at = static_cast<std::size_t>(i);
      const std::int32_t* relative = s.relative.data() + s.group[at] * s.n_channels;
      const std::int32_t* wanted = config.delays.data() + i * config.n_channels + s.first_channel;
      for (std::int64_t c = 0; c < s.n_channels; ++c) {
        const double off = s.start[at] + relative[c] - wanted[c];
        error.max_samples = std::max(error.max_samples, std::abs(off));
        squares += off * off;
      }
    }
  }
  error.rms_samples = std::sqrt(squares / static_cast<double>(config.n_trials * config.n_channels));
  return error;
}

}  // namespace

std::int32_t SubbandPlan::track(std::int64_t trial, std::int64_t channel) const {
  const auto s = std::find_if(subbands.begin(), subbands.end(), [&](const Subband& b) {
    return channel < b.first_channel + b.n_channels;
  });
  const auto at = static_cast<std::size_t>(trial);
  return s->start[at] + s->relative[s->group[at] * s->n_channels + channel - s->first_channel];
}

SubbandPlan subband_plan(const DedisperseConfig& config, std::int64_t channels_per_subband) {
  SubbandPlan plan;
  const std::int32_t max_delay = *std::max_element(config.delays.begin(), config.delays.end());
  const auto smear = static_cast<std::int32_t>(std::max(1.0, std::floor(config.smear_samples)));
  for (std::int64_t c = 0; c < config.n_channels; c += channels_per_subband)
    plan.subbands.push_back(make_subband(
        config, c, std::min(channels_per_subband, config.n_channels - c), max_delay, smear));
  plan.error = measured_error(config, plan);
  return plan;
}

SubbandPlan subband_plan(const DedisperseConfig& config) {
  SubbandPlan best;
  for (const std::int64_t channels : {8, 16, 32, 64}) {
    SubbandPlan plan = subband_plan(config, channels);
    if (best.subbands.empty() || subband_work(plan) < subband_work(best)) best = std::move(plan);
  }
  return best;
}

double subband_work(const SubbandPlan& plan) {
  double work = 0;
  for (const Subband& s : plan.subbands)
    work += kFirstStageWork * static_cast<double>(s.n_groups() * s.n_channels) +
            static_cast<double>(s.group.size()) * (1 + 1.0 / 16);
  return kSubbandTime * work;
}

}  // namespace ryle::search::detail
