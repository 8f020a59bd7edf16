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

/// Predicted turns at equal steps of time from the first sample; cubic between them.
struct PhaseModel {
  double step_s = 0;
  std::vector<double> turns;  ///< at (k - 1) step_s; at least four; empty = no model
  double at(double t_s) const;
};

/// @eq phase(t) = model(t) + F0 t + F1 t^2 / 2
struct FoldConfig {
  PhaseModel model;  ///< empty: F0 and F1 say all; else they are corrections to it
  double f0_hz = 0;
  double f1_hz_per_s = 0;
  std::int64_t n_bins = 128;
  std::int64_t n_sub_integrations = 64;
  double phase(double t_s) const;
  /// Mean frequency over a series.
  double spin_hz(double duration_s) const;
};

struct Fold {
  FoldConfig config;
  double duration_s = 0;
  std::vector<double> sums;          ///< [sub-integration][bin]
  std::vector<std::int64_t> counts;  ///< [sub-integration][bin]
  std::vector<double> middle_s;      ///< [sub-integration] middle of its time
  double mean = 0, variance = 0;     ///< of the series; NaN samples are left out
  double half_range_hz = 0;          ///< frequencies about F0 that were searched; 0 = none
  bool at_edge = false;              ///< the best one may lie beyond them

  /// Means of the bins with sub-integrations turned by df0 t + df1 t^2 / 2: the fold at F0 +
  /// df0, to within the length of a sub-integration.
  std::vector<double> profile(double df0_hz = 0, double df1_hz_per_s = 0) const;
  double reduced_chi2(double df0_hz = 0, double df1_hz_per_s = 0) const;
};

/// Throws ConfigError for a period that the sampling cannot show.
Fold fold(std::span<const float> series, double interval_s, const FoldConfig& config);

/// Highest reduced chi2 for df0 within +- half_range_hz, in steps of a quarter bin over the series;
/// then folds again there. F1 stays. `at_edge`: within two bins of drift beyond the range chi2 is
/// higher still.
Fold fold_search(std::span<const float> series, double interval_s, const FoldConfig& start,
                 double half_range_hz);

/// Sums of many channels, each in its own phase. @shape sums, counts
/// [sub-integration][channel][bin]
struct FoldCube {
  std::int64_t n_channels = 0, n_bins = 0;
  std::vector<float> sums;
  std::vector<std::uint32_t> counts;
  std::vector<double> begin_s, end_s;  ///< [sub-integration]
  std::vector<double> mean, rms;       ///< [channel] of all samples; rms 0 = no data

  std::int64_t n_subs() const { return static_cast<std::int64_t>(begin_s.size()); }
  /// All channels in units of their rms: a fold of mean 0 and variance 1 of a sample.
  Fold collapsed() const;
};

/// Folds channels as they come. A dispersed channel is folded at the phase its light had left with:
/// nothing is dedispersed and no history kept.
class ChannelFolder {
 public:
  /// @param delay_s [channel] after the time that phases are given for
  ChannelFolder(std::int64_t n_bins, std::vector<double> delay_s, double interval_s,
                double sub_integration_s);
  /// The next n samples; `turns` at the first of them, advancing by `turns_per_sample` (constant to
  /// 1e-8 turns over seconds). `start_s` since the first call. @shape data [channel][time], NaN =
  /// absent
  void add(const float* data, std::int64_t stride, std::int64_t n, double start_s, double turns,
           double turns_per_sample);
  const FoldCube& finish();  ///< means and rms
  std::int64_t memory_bytes() const;

 private:
  FoldCube cube_;
  std::vector<double> delay_s_, count_, sum_, squares_, shift_;
  double interval_s_, sub_integration_s_;
};

}  // namespace ryle::search
