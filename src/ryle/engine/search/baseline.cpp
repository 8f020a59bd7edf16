// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/baseline.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

constexpr std::int64_t kNarrowestCell = 16;  // samples
constexpr std::int64_t kMinCells = 8;
constexpr double kCellClip = 3;

struct SeriesCell {
  double n = 0, sum = 0, squares = 0, weight = 0;
  double mean() const { return sum / n; }
};

float weight_at(std::span<const float> weights, std::int64_t t) {
  return weights.empty() ? 1.0f : weights[t / 64];
}

/// Cells on either side of the pulse; those with less than half of their columns are empty.
std::vector<SeriesCell> cells_about(std::span<const float> x, std::span<const float> weights,
                                    std::int64_t from, std::int64_t to, std::int64_t size) {
  float maximum = weights.empty() ? 1.0f : 0.0f;
  for (const float w : weights) maximum = std::max(maximum, w);
  std::vector<SeriesCell> cells;
  const auto n = std::ssize(x);
  const auto add = [&](std::int64_t first, std::int64_t end) {
    for (; first + size <= end; first += size) {
      SeriesCell c;
      for (std::int64_t t = first; t < first + size; ++t) {
        const float w = weight_at(weights, t);
        if (!(w > 0) || w < 0.75f * maximum) continue;
        const auto v = static_cast<double>(x[t]);
        ++c.n;
        c.sum += v;
        c.squares += v * v;
        c.weight += static_cast<double>(w);
      }
      cells.push_back(2 * c.n >= static_cast<double>(size) ? c : SeriesCell{});
    }
    cells.emplace_back();  // the two sides do not touch
  };
  add(0, std::clamp<std::int64_t>(from, 0, n));
  add(std::clamp<std::int64_t>(to, 0, n), n);
  return cells;
}

}  // namespace

Baseline baseline_about(std::span<const float> series, std::span<const float> weights,
                        std::int64_t start, std::int64_t width) {
  const auto cells = cells_about(series, weights, start - width, start + 2 * width,
                                 std::max(kNarrowestCell, width / 2));
  std::vector<double> means;
  for (const auto& c : cells)
    if (c.n > 0) means.push_back(c.mean());
  if (std::ssize(means) < kMinCells) return {};
  const double center = detail::median_of(means);
  const double limit = kCellClip * detail::scatter_of(means, center);
  const auto off = [&](std::size_t k) {
    return k < cells.size() && cells[k].n > 0 && std::abs(cells[k].mean() - center) > limit;
  };
  SeriesCell all;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (off(k) || off(k + 1) || (k > 0 && off(k - 1))) continue;
    all.n += cells[k].n;
    all.sum += cells[k].sum;
    all.squares += cells[k].squares;
    all.weight += cells[k].weight;
  }
  if (!(all.n >= static_cast<double>(kMinCells * kNarrowestCell))) return {};
  const double mean = all.mean();
  const double variance = (all.squares / all.n - mean * mean) * all.n / (all.n - 1);
  return {mean, std::sqrt(std::max(0.0, variance)), static_cast<std::int64_t>(all.n),
          all.weight / all.n};
}

DedispersedCodes dedisperse_one(const Band& band, double dm, const std::uint8_t* codes,
                                std::int64_t stride, std::int64_t n) {
  DedispersedCodes out;
  const auto size = static_cast<std::size_t>(n);
  std::vector<std::uint32_t> sums(size, 0), present(size, 0);
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    const std::uint8_t* x = codes + c * stride + std::lrint(band.delay_samples(c, dm));
    for (std::size_t t = 0; t < size; ++t) {
      sums[t] += x[t];
      present[t] += x[t] != kCodeMean ? 1u : 0u;
    }
  }
  out.sums.assign(sums.begin(), sums.end());
  // P(|x| > 1/16) of a normal deviate, which codes of an eighth of a sigma round to the mean.
  const double full = 0.9502 * static_cast<double>(band.n_channels());
  for (const std::uint32_t count : present) out.columns.push_back(static_cast<float>(count / full));
  for (std::size_t t = 0; t < size; t += 64) {
    const std::size_t end = std::min(size, t + 64);
    double count = 0;
    for (std::size_t k = t; k < end; ++k) count += present[k];
    out.weights.push_back(
        static_cast<float>(std::min(1.0, count / (full * static_cast<double>(end - t)))));
  }
  return out;
}

}  // namespace ryle::search
