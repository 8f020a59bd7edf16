// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/flag_cells.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "ryle/engine/search/kurtosis.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kNeighbors = 8;  // on each side
constexpr double kMatters = 0.3;        // of the rms

/// Values less the median of the good channels about each.
std::vector<double> less_neighbors(const std::vector<double>& values,
                                   const std::vector<std::uint8_t>& good) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<double> out(values.size(), 0.0), around;
  for (std::int64_t c = 0; c < n; ++c) {
    if (good[c] == 0) continue;
    around.clear();
    for (std::int64_t k = std::max<std::int64_t>(0, c - kNeighbors);
         k <= std::min(n - 1, c + kNeighbors); ++k)
      if (good[k] != 0) around.push_back(values[k]);
    out[c] = values[c] - median_of(around);
  }
  return out;
}

/// 1 where a value that matters is an outlier among the good ones.
void mark_outliers(const std::vector<double>& values, const std::vector<std::uint8_t>& good,
                   const CellLimits& limits, double error, std::vector<std::uint8_t>& bad) {
  std::vector<double> list;
  bool any = false;
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (good[c] == 0) continue;
    list.push_back(values[c]);
    any |= std::abs(values[c]) > kMatters;
  }
  if (!any) return;  // nearly always
  const double scatter = std::max(error, scatter_of(list, 0));
  const auto n = static_cast<std::int64_t>(values.size());
  const auto accused = iqrm(values, good, std::max<std::int64_t>(3, n / 10), limits.iqrm_threshold);
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (good[c] == 0 || !(std::abs(values[c]) > kMatters)) continue;
    if (std::abs(values[c]) > limits.threshold * scatter || accused[c] != 0) bad[c] = 1;
  }
}

}  // namespace

std::vector<std::uint8_t> bad_cells(const std::vector<CellStatistics>& cells,
                                    const std::vector<CellStatistics>& usual,
                                    const std::vector<std::uint8_t>& good,
                                    const CellLimits& limits) {
  const std::size_t n = cells.size();
  std::vector<std::uint8_t> bad(n, 0), use(n, 0);
  std::vector<double> means(n, 0.0), rmss(n, 0.0);
  for (std::size_t c = 0; c < n; ++c) {
    use[c] = good[c] != 0 && cells[c].rms > 0 && usual[c].rms > 0;
    if (use[c] == 0) continue;
    means[c] = (cells[c].mean - usual[c].mean) / usual[c].rms;
    rmss[c] = cells[c].rms / usual[c].rms - 1;
  }
  const double error = 1 / std::sqrt(static_cast<double>(limits.n_samples));
  mark_outliers(less_neighbors(means, use), use, limits, error, bad);
  mark_outliers(less_neighbors(rmss, use), use, limits, error, bad);
  return bad;
}

std::vector<std::uint8_t> bad_kurtosis(const std::vector<CellStatistics>& cells,
                                       const std::vector<std::uint8_t>& good, double degrees) {
  const std::size_t n = cells.size();
  std::vector<std::uint8_t> bad(n, 0), use(n, 0);
  std::vector<double> kurtosis(n, 1.0);
  for (std::size_t c = 0; c < n; ++c) {
    use[c] = good[c] != 0 && cells[c].n >= 32 && cells[c].mean > 0;
    if (use[c] != 0)
      kurtosis[c] = spectral_kurtosis(cells[c].mean, cells[c].rms, cells[c].n, degrees);
  }
  std::map<std::int64_t, KurtosisLimits> limits;  // cells with losses have fewer samples
  const auto local = less_neighbors(kurtosis, use);
  for (std::size_t c = 0; c < n; ++c) {
    if (use[c] == 0) continue;
    auto found = limits.find(cells[c].n);
    if (found == limits.end())
      found = limits.emplace(cells[c].n, kurtosis_limits(cells[c].n, degrees)).first;
    const KurtosisLimits& l = found->second;
    const bool high = kurtosis[c] > l.high && local[c] > 0.5 * (l.high - 1);
    const bool low = kurtosis[c] < l.low && local[c] < 0.5 * (l.low - 1);
    bad[c] = high || low ? 1 : 0;
  }
  return bad;
}

}  // namespace ryle::search::detail
