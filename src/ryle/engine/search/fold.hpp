// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

/// Folding at a rotation period.
/// @eq phase(t) = F0 t + F1 t^2 / 2, t in s from the first sample; bin = floor(n_bins frac(phase))
/// @eq chi2_r = sum_b (p_b - p)^2 n_b / sigma^2 / (n_bins - 1), p_b mean of bin b, p and sigma^2
/// mean and variance of the series (search.md 7)
namespace ryle::search {

struct FoldConfig {
  double f0_hz = 0;
  double f1_hz_per_s = 0;
  std::int64_t n_bins = 128;
  std::int64_t n_sub_integrations = 64;
};

struct Fold {
  FoldConfig config;
  double duration_s = 0;
  std::vector<double> sums;          ///< [sub-integration][bin]
  std::vector<std::int64_t> counts;  ///< [sub-integration][bin]
  std::vector<double> middle_s;      ///< [sub-integration] middle of its time
  double mean = 0, variance = 0;     ///< of the series; NaN samples are left out

  /// Means of the bins with sub-integrations turned by df0 t + df1 t^2 / 2: the fold at F0 +
  /// df0, to within the length of a sub-integration.
  std::vector<double> profile(double df0_hz = 0, double df1_hz_per_s = 0) const;
  double reduced_chi2(double df0_hz = 0, double df1_hz_per_s = 0) const;
};

/// Throws ConfigError for a period that the sampling cannot show.
Fold fold(std::span<const float> series, double interval_s, const FoldConfig& config);

/// Highest reduced chi2 for df0 within +- half_range_hz, in steps of a quarter bin over the series;
/// then folds again there. F1 stays.
Fold fold_search(std::span<const float> series, double interval_s, const FoldConfig& start,
                 double half_range_hz);

}  // namespace ryle::search
