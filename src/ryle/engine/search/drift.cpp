// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/drift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/drift_steps.hpp"
#include "ryle/engine/search/normalize_flag_reasons.hpp"

namespace ryle::search {
namespace {

using namespace detail;

constexpr float kGone = std::numeric_limits<float>::quiet_NaN();
constexpr double kUsualWindow_s = 0.5;
constexpr std::int64_t kUsualBoxcars = 24, kMinBoxcars = 8;

/// Mean of one cell; NaN with less than half of its samples. Lanes of 32 samples and then their
/// halves, as a warp adds them.
float cell_mean(const float* x, int cell) {
  std::array<float, kDriftLanes> sums{}, counts{};
  const int lanes = std::min(cell, kDriftLanes);
  for (int i = 0; i < cell; i += lanes)
    for (int j = 0; j < lanes; ++j) {
      const float v = x[i + j];
      const auto lane = static_cast<std::size_t>(j);
      sums[lane] += is_there(v) ? v : 0.0f;
      counts[lane] += is_there(v) ? 1.0f : 0.0f;
    }
  for (int step = lanes / 2; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) {
      const auto lane = static_cast<std::size_t>(j), other = static_cast<std::size_t>(j + step);
      sums[lane] += sums[other];
      counts[lane] += counts[other];
    }
  return counts[0] > 0 && 2 * counts[0] >= static_cast<float>(cell) ? sums[0] / counts[0] : kGone;
}

}  // namespace

std::int64_t drift_window(double window_s, double sample_interval_s, std::int64_t max_width) {
  const double max_s = static_cast<double>(kMaxDriftSamples) * sample_interval_s;
  if (window_s == 0) {
    const double samples = std::min(kUsualWindow_s, max_s) / sample_interval_s;
    return std::clamp(std::max<std::int64_t>(std::llround(samples), kUsualBoxcars * max_width),
                      kMinDriftSamples, kMaxDriftSamples);
  }
  const double min_s =
      static_cast<double>(std::max(kMinDriftSamples, kMinBoxcars * max_width)) * sample_interval_s;
  if (!(window_s >= min_s * (1 - 1e-9) && window_s <= max_s * (1 + 1e-9)))
    throw ConfigError(fmt::format(
        "a baseline of {} s; {:.4g} s ({} of the widest boxcar, {} samples) to {:.4g} "
        "s ({} samples "
        "of {:.4g} s), or 0: half a second or {} of the widest boxcar",
        window_s, min_s, kMinBoxcars, std::max(kMinDriftSamples, kMinBoxcars * max_width), max_s,
        kMaxDriftSamples, sample_interval_s, kUsualBoxcars));
  return std::llround(window_s / sample_interval_s);
}

struct DriftFilter::Impl {
  DriftConfig config;
  DriftShape shape;
  std::size_t n_channels;
  std::int64_t in = 0, out = 0;      // samples taken and given
  std::vector<float> ring;           // [channel][lag + block]
  std::vector<float> planes;         // [channel][plane]: the last cells
  std::vector<CellLevel> levels;     // [channel]
  std::vector<float> targets;        // [channel]: the level that stays
  std::vector<std::uint8_t> absent;  // [time]
  std::vector<float> common, calm, steps, middles, left, shared;  // [plane]
  CellRange there;                                                // of the common level
  std::vector<CellRange> segments;                                // [plane]

  Impl(const DriftConfig& c, std::int64_t block)
      : config(c),
        shape(drift_shape(c.window_samples, block)),
        n_channels(static_cast<std::size_t>(c.n_channels)) {
    ring.assign(n_channels * static_cast<std::size_t>(shape.ring()), kGone);
    const auto plane = static_cast<std::size_t>(shape.plane);
    planes.assign(n_channels * plane, kGone);
    levels.resize(n_channels);
    targets.assign(n_channels, kGone);
    for (auto* list : {&common, &calm, &steps, &middles, &left, &shared})
      list->assign(plane, kGone);
    segments.resize(plane);
  }

  const float* plane(std::int64_t channel) const { return planes.data() + channel * shape.plane; }

  /// n samples of one channel and absent ones behind them, and the means of their cells.
  void take(std::int64_t channel, const float* x, std::int64_t n) {
    float* samples = ring.data() + channel * shape.ring();
    float* cells = planes.data() + channel * shape.plane;
    const auto n_new = static_cast<int>(shape.block / shape.cell);
    std::copy(cells + n_new, cells + shape.plane, cells);
    float* to_cell = cells + shape.plane - n_new;
    for (std::int64_t first = 0; first < shape.block; first += kDriftStep) {
      float* to = samples + (in + first) % shape.ring();
      const std::int64_t end = std::clamp<std::int64_t>(n - first, 0, kDriftStep);
      for (std::int64_t t = 0; t < end; ++t) {
        const float v = x[first + t];
        const bool number = v - v == 0;  // not of infinity
        to[t] = number && absent[first + t] == 0 ? v : kGone;
      }
      std::fill(to + end, to + kDriftStep, kGone);
      for (std::int64_t t = 0; t < kDriftStep; t += shape.cell)
        *to_cell++ = cell_mean(to + t, shape.cell);
    }
  }

  bool counts(std::size_t channel) const {
    return levels[channel].scatter > 0 && (config.masked.empty() || config.masked[channel] == 0);
  }
  /// What all channels do at once. @eq mean_c (cell_c - center_c) / s_c
  void find_common(Queue& queue) {
    constexpr int kCells = 64;
    queue.parallel_for((shape.plane + kCells - 1) / kCells, [&](std::int64_t part) {
      const int first = static_cast<int>(part) * kCells;
      const int n = std::min(kCells, shape.plane - first);
      std::array<float, kCells> sums{}, numbers{};
      for (std::size_t c = 0; c < n_channels; ++c) {
        if (!counts(c)) continue;
        const CellLevel level = levels[c];
        const float* cells = plane(static_cast<std::int64_t>(c)) + first;
        for (int i = 0; i < n; ++i) {
          const float u = within((cells[i] - level.center) * level.inverse, kMaxDeviation);
          sums[i] += is_there(u) ? u : 0.0f;
          numbers[i] += is_there(u) ? 1.0f : 0.0f;
        }
      }
      for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        common[first + i] = numbers[k] > 0 ? sums[k] / numbers[k] : kGone;
      }
    });
  }

  /// The common level of the cells that go out.
  void average_common(Queue& queue, CellRange go) {
    const int n = shape.plane, half = shape.half;
    const float scatter = level_of(common.data(), n).scatter;
    there = there_of(common.data(), n);
    queue.parallel_for(n, [&](std::int64_t i) {
      const auto k = static_cast<std::size_t>(i);
      calm[k] = without_burst(common.data(), static_cast<int>(i), half, n, 4 * scatter);
      steps[k] = step_at(common.data(), static_cast<int>(i), half, n).height;
    });
    find_segments(common.data(), steps.data(), half, n, scatter, segments.data());
    const CellRange all = averaged(go, half);
    for (int k = all.first; k < all.end; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const CellRange r = even_window(k, half, segments[at]);
      middles[at] = mean_within(calm.data(), r.first, r.end);
      left[at] = calm[at] - middles[at];
    }
    for (int k = go.first; k < go.end; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const CellRange r = about(k, half, common_part(all, segments[at]));
      shared[at] = middles[at] + mean_within(left.data(), r.first, r.end);
    }
  }

  /// Samples of one channel go out.
  void give(std::int64_t channel, CellRange go, std::int64_t n, float* to) {
    const auto c = static_cast<std::size_t>(channel);
    const CellLevel& level = levels[c];
    const float* cells = plane(channel);
    if (!is_there(targets[c]) && level.scatter > 0) targets[c] = level.center;
    const float response =
        level.scatter > 0 ? response_of(cells, level, common.data(), shape.plane) : 0.0f;
    const int n_own = shape.plane / kDriftJoined;
    std::vector<float> own(n_own), middle(own), rest(own);
    for (int k = 0; k < n_own; ++k) own[k] = own_level(cells, level, common.data(), response, k);
    const CellRange out_own{go.first / kDriftJoined, go.end / kDriftJoined};
    const CellRange all = averaged(out_own, shape.own_half);
    for (int k = all.first; k < all.end; ++k)
      middle[k] =
          first_average(own.data(), k, shape.own_half, joined_range(there), kOwnLimit, &rest[k]);
    const float* samples = ring.data() + channel * shape.ring();
    std::int64_t t = 0;
    for (int k = out_own.first; k < out_own.end; ++k) {
      const float here = second_average(middle.data(), rest.data(), k, shape.own_half, out_own);
      for (int i = kDriftJoined * k; i < kDriftJoined * (k + 1); ++i, t += shape.cell) {
        const float value =
            correction_of(level, response, shared[i], here, targets[c], config.multiply);
        const float* from = samples + (out + t) % shape.ring();
        if (config.multiply)
          for (int j = 0; j < shape.cell; ++j) to[t + j] = from[j] * value;
        else
          for (int j = 0; j < shape.cell; ++j) to[t + j] = from[j] + value;
      }
    }
    RYLE_ASSERT(t == n);
  }
};

DriftFilter::DriftFilter(const DriftConfig& config, std::int64_t block) {
  if (config.n_channels < 1) throw ConfigError("baselines: no channels");
  if (config.window_samples < kMinDriftSamples || config.window_samples > kMaxDriftSamples)
    throw ConfigError(fmt::format("baselines of {} samples; {} to {}", config.window_samples,
                                  kMinDriftSamples, kMaxDriftSamples));
  if (block < kDriftStep || block % kDriftStep != 0)
    throw ConfigError(
        fmt::format("baselines: blocks of {} samples; multiples of {}", block, kDriftStep));
  if (!config.masked.empty() && std::ssize(config.masked) != config.n_channels)
    throw ConfigError(fmt::format("baselines: a mask of {} channels for {}", config.masked.size(),
                                  config.n_channels));
  impl_ = std::make_unique<Impl>(config, block);
}
DriftFilter::~DriftFilter() = default;

std::int64_t DriftFilter::lag() const { return impl_->shape.lag; }

std::int64_t DriftFilter::execute(Queue& queue, const float* data, std::int64_t stride,
                                  std::int64_t n, float* out, std::int64_t out_stride) {
  Impl& me = *impl_;
  const DriftShape& shape = me.shape;
  RYLE_ASSERT(n >= 0 && n <= shape.block);
  find_absent(queue, data, stride, me.config.n_channels, n, me.absent);
  queue.parallel_for(me.config.n_channels, [&](std::int64_t c) {
    me.take(c, n > 0 ? data + c * stride : nullptr, n);
    me.levels[c] = level_of(me.plane(c), shape.plane);
  });
  me.in += shape.block;
  const std::int64_t n_out = std::max<std::int64_t>(0, me.in - shape.lag - me.out);
  if (n_out == 0) return 0;
  const int first = shape.plane - static_cast<int>((me.in - me.out) / shape.cell);
  const CellRange go{first, first + static_cast<int>(n_out / shape.cell)};
  me.find_common(queue);
  me.average_common(queue, go);
  queue.parallel_for(me.config.n_channels,
                     [&](std::int64_t c) { me.give(c, go, n_out, out + c * out_stride); });
  me.out += n_out;
  return n_out;
}

std::int64_t DriftFilter::memory_bytes() const {
  const Impl& me = *impl_;
  return static_cast<std::int64_t>((me.ring.size() + me.planes.size()) * sizeof(float));
}

}  // namespace ryle::search
