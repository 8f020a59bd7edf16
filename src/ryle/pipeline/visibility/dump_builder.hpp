// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ryle/engine/correlate/finish.hpp"
#include "ryle/pipeline/visibility/delay_model.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

/// Turns raw sums into a dump of the observation: antenna order, mean, scale, corrections, time
/// stamps.
class DumpBuilder {
 public:
  struct Setup {
    std::int64_t n_inputs = 0;
    std::int64_t step_samples = 1;    ///< ticks between spectra (1 when ticks are spectra)
    std::int64_t window_samples = 1;  ///< L
    correlate::FinishConfig finish;   ///< gains are set by set_scale()
    std::vector<cf32> gains;          ///< [input][channel] applied after correlation; empty = 1
    std::vector<std::uint8_t> bad;    ///< [input] never to be used: every product of it is flagged
    std::int64_t n_pols = 2;
    double flux_scale = 1;  ///< Jy per count^2
    double min_fraction = 0;
    /// Samples before the channelizer: coarse ones are corrected by the levels of the dump.
    std::optional<SampleLayout> samples;
    std::optional<DelayModel> rotate;  ///< fringe stopping after correlation (Wayth 2009)
  };
  explicit DumpBuilder(Setup setup) : setup_(std::move(setup)) {}

  /// Replaces Setup::gains.
  void set_gains(std::vector<cf32> gains) { setup_.gains = std::move(gains); }

  /// requantiser_scale: what the samples of an input were multiplied with (empty = 1).
  VisibilityDump build(const RawDump& raw, const std::vector<double>& requantiser_scale) const;

 private:
  void stamp(const RawDump& raw, VisibilityDump& dump) const;
  std::vector<cf64> gains(const std::vector<double>& requantiser_scale) const;
  bool usable(std::int64_t baseline, std::int64_t pol_product) const;

  Setup setup_;
};

/// Antenna/polarization of every input as the finisher wants it; throws ConfigError when an antenna
/// has the same polarization twice.
correlate::InputMap input_map(const ArrayLayout& array);

}  // namespace ryle::pipeline
