// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"

/// Spectra lost to broad-band interference, with a guard that keeps bright dispersed pulses.
///
/// The band sum z(t) is tested in boxcars of 1 .. 32 samples, each in its own scatter (MAD). Runs
/// above the threshold are decomposed from the brightest feature down: the best straight line in
/// (time, DM) through groups of channels, then centroids of the groups fitted to
/// @eq t = a + k_DM DM (nu^-2 - nu_top^-2)
/// A feature that explains 80 % of the excess is a pulse when its DM is above 0 by 5 errors and its
/// line is better than one at DM 0 by sqrt(S^2 - S_0^2) > 5: it stays. By 3, or when
/// DM + 2 sigma_DM reaches dm_min, it is undecided: it stays too, and its candidates are suspect.
/// Any other peaks at DM 0 within its errors: interference.
namespace ryle::search {

struct SpectraConfig {
  Band band;
  double threshold = 7;  ///< sigma of the tested statistic
  double dm_min = 0.5;   ///< what has less within 2 errors has none; 2 samples of sweep at least
  double dm_max = 1000;  ///< sweep that is looked for
};

/// The number of groups of channels pulses are fitted in.
inline constexpr std::int64_t kSpectraGroups = 16;

struct TickRange {
  std::int64_t first = 0, end = 0;
};

struct SpectraReport {
  std::int64_t n_masked_runs = 0, n_pulses_kept = 0, n_undecided = 0;
};

class SpectraFlagger {
 public:
  explicit SpectraFlagger(const SpectraConfig& config);
  ~SpectraFlagger();
  SpectraFlagger(const SpectraFlagger&) = delete;
  SpectraFlagger& operator=(const SpectraFlagger&) = delete;

  std::int64_t n_groups() const;
  /// Group of each channel: equal parts of the band.
  std::int64_t group_of(std::int64_t channel) const;

  /// The next n spectra. Appends 1 = masked for each to `masked`.
  /// @shape sums, counts [group][n]: sums of deviations in units of the channels' rms, and how many
  void execute(const std::vector<float>& sums, const std::vector<float>& counts, std::int64_t n,
               std::vector<std::uint8_t>& masked);
  /// Spectra that never came.
  void skip(std::int64_t n);

  /// For callers that look for bursts themselves (on a device) and keep the columns of earlier
  /// gulps: history() of them at most are looked back to.
  std::int64_t history() const;
  /// n spectra in which nothing stands out, by the rules of execute(): the clock goes on.
  void pass(std::int64_t n);
  struct Past {
    std::vector<float> sums, counts;  ///< [group][n_columns]
    std::int64_t n_columns = 0;
  };
  /// What the next execute() looks back to.
  void set_past(const Past& past);
  /// What the last execute() left, interference taken out.
  Past past() const;

  const SpectraReport& report() const;
  /// Arrival ranges that could not be told; ticks from the first spectrum.
  const std::vector<TickRange>& undecided() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::search
