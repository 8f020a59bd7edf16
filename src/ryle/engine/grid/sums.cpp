// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid {

Sums::Sums(std::int64_t n_cells, std::int64_t n_channels)
    : n_cells_(n_cells),
      n_channels_(n_channels),
      weighted_(at(n_cells * n_channels)),
      shared_(at(n_cells)),
      apart_(at(n_cells)),
      parting_(std::make_unique<std::once_flag>()) {}

void Sums::reset() {
  const std::int64_t n_cells = n_cells_;
  *this = Sums(0, n_channels_);  // not both at a time
  *this = Sums(n_cells, n_channels_);
}

void Sums::reset(std::int64_t first, std::int64_t last) {
  for (std::int64_t c = 0; c < n_channels_; ++c) {
    std::fill(weighted_of(c) + first, weighted_of(c) + last, 0.0);
    if (own_.empty()) continue;
    std::fill(own_.data() + c * n_cells_ + first, own_.data() + c * n_cells_ + last, Moments());
  }
  std::fill(shared_.data() + first, shared_.data() + last, Moments());
  std::fill(apart_.data() + first, apart_.data() + last, std::uint8_t{0});
}

void Sums::allow_parting() {
  std::call_once(*parting_, [this] { own_ = ZeroArray<Moments>(at(n_cells_ * n_channels_)); });
}

void Sums::part(std::int64_t cell) {
  if (apart(cell)) return;
  for (std::int64_t c = 0; c < n_channels_; ++c) own(c, cell) = shared(cell);
  apart_[at(cell)] = 1;
}

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool shows(const Moments& m, const Finish& options) {
  constexpr double kMinShare = 0.1;  // of |w u v| that may be left beside negative lobes
  return m.count >= std::max<std::int64_t>(1, options.min_count) &&
         m.weight >= options.min_weight && m.weight > 0 && m.weight >= kMinShare * m.magnitude;
}

}  // namespace

template <class Real>
PlaneOf<Real> finish(const Sums& sums, const Finish& options, std::int64_t channel) {
  const auto n = static_cast<std::size_t>(sums.n_cells());
  const auto nothing = static_cast<Real>(kNothing);
  PlaneOf<Real> plane{std::vector<Real>(n, nothing), std::vector<Real>(n),
                      std::vector<Real>(n, nothing), std::vector<std::int32_t>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    const auto cell = static_cast<std::int64_t>(i);
    const Moments& m = sums.moments(channel, cell);
    if (!shows(m, options)) continue;
    plane.value[i] = static_cast<Real>(sums.weighted(channel, cell) / m.weight);
    plane.weight[i] = static_cast<Real>(m.weight);
    plane.noise[i] = static_cast<Real>(std::sqrt(m.square) / m.weight);
    plane.count[i] = static_cast<std::int32_t>(
        std::min<std::int64_t>(m.count, std::numeric_limits<std::int32_t>::max()));
  }
  return plane;
}
template PlaneOf<float> finish(const Sums&, const Finish&, std::int64_t);
template PlaneOf<double> finish(const Sums&, const Finish&, std::int64_t);

template <class Real>
void finish_values(Queue& queue, const Sums& sums, const Finish& options, std::int64_t first,
                   std::int64_t n, Real* values) {
  constexpr std::int64_t kPart = 4096;  // their weights stay in the cache while channels pass
  const std::int64_t n_cells = sums.n_cells();
  queue.parallel_for((n_cells + kPart - 1) / kPart, [&](std::int64_t part) {
    const std::int64_t begin = part * kPart, count = std::min(kPart, n_cells - begin);
    // A sum over NaN shows nothing.
    double weight[kPart];
    const auto weigh = [&](std::int64_t channel) {
      for (std::int64_t i = 0; i < count; ++i) {
        const Moments& m = sums.moments(channel, begin + i);
        weight[i] = shows(m, options) ? m.weight : kNothing;
      }
    };
    if (sums.uniform()) weigh(first);
    for (std::int64_t c = first; c < first + n; ++c) {
      if (!sums.uniform()) weigh(c);
      const double* weighted = sums.weighted_of(c) + begin;
      Real* to = values + (c - first) * n_cells + begin;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Real>(weighted[i] / weight[i]);
    }
  });
}
template void finish_values(Queue&, const Sums&, const Finish&, std::int64_t, std::int64_t, float*);
template void finish_values(Queue&, const Sums&, const Finish&, std::int64_t, std::int64_t,
                            double*);

namespace {

constexpr std::int64_t kCountedTogether = 8192;

// Whether any of n floats is NaN or infinite: those have all bits of the exponent.
bool any_infinite(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 32;
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t any[kLanes] = {};
  std::int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    std::uint32_t bits[kLanes];
    std::memcpy(bits, x + k, sizeof bits);
    for (std::int64_t l = 0; l < kLanes; ++l)
      any[l] |= (bits[l] & kExponent) == kExponent ? 1U : 0U;
  }
  for (; k < n; ++k) any[0] |= std::isfinite(x[k]) ? 0U : 1U;
  return std::any_of(any, any + kLanes, [](std::uint32_t a) { return a != 0; });
}

bool counts(float u) { return u > 0 && !std::isinf(u); }

// One look decides for nearly all data: every value is a number and nothing else can be wrong.
bool all_present(const Samples& s, std::int64_t first, std::int64_t n, std::int64_t channel,
                 bool weights_good) {
  if (!weights_good || s.sample_stride != 1 || s.flags != nullptr) return false;
  return !any_infinite(s.values + first + channel * s.channel_stride, n);
}

void count_some(const Samples& s, std::int64_t first, std::int64_t n, std::int64_t channel,
                AbsentCounts& counts_of) {
  for (std::int64_t k = first; k < first + n; ++k) {
    const std::int64_t i = k * s.sample_stride + channel * s.channel_stride;
    const float x = s.values[i];
    const float u = s.weights == nullptr
                        ? 1.0F
                        : s.weights[k * s.weight_sample_stride + channel * s.weight_channel_stride];
    if (std::isnan(x)) {
      ++counts_of.nan_value;
    } else if (std::isinf(x)) {
      ++counts_of.inf_value;
    } else if (!counts(u)) {
      ++counts_of.bad_weight;
    } else if (s.flags != nullptr && s.flags[i] != 0) {
      ++counts_of.flagged;
    }
  }
}

}  // namespace

AbsentCounts count_absent(Queue& queue, const Samples& samples, std::int64_t n_samples,
                          std::int64_t n_channels) {
  const std::int64_t n_parts = (n_samples + kCountedTogether - 1) / kCountedTogether;
  std::vector<AbsentCounts> parts(n_parts);
  queue.parallel_for(n_parts, [&](std::int64_t part) {
    const std::int64_t first = part * kCountedTogether,
                       n = std::min(kCountedTogether, n_samples - first);
    bool weights_good = samples.weights == nullptr || samples.weight_channel_stride == 0;
    for (std::int64_t k = first; samples.weights != nullptr && weights_good && k < first + n; ++k)
      weights_good = counts(samples.weights[k * samples.weight_sample_stride]);
    AbsentCounts own;
    for (std::int64_t c = 0; c < n_channels; ++c)
      if (!all_present(samples, first, n, c, weights_good)) count_some(samples, first, n, c, own);
    parts[part] = own;
  });
  AbsentCounts sum;
  for (const AbsentCounts& p : parts) {
    sum.nan_value += p.nan_value;
    sum.inf_value += p.inf_value;
    sum.bad_weight += p.bad_weight;
    sum.flagged += p.flagged;
  }
  return sum;
}

}  // namespace ryle::grid
