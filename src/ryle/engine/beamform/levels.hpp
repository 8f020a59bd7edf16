// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/view.hpp"
#include "ryle/engine/beamform/beamform.hpp"

/// Scale and offset of requantised beams from the data, updated slowly, at stated ticks.
namespace ryle::beamform {

/// Mean and rms that interference does not move: of what lies within 5 sigma of the median, sigma
/// from the quartiles. Of noise of one spectrum (exponential) 4 % of the mean is cut off.
struct Level {
  double mean = 0;
  double rms = 0;
  std::int64_t n = 0;
};
/// Reorders `values`.
Level robust_level(std::span<float> values);

struct LevelOptions {
  Tick interval = 0;  ///< ticks between updates, at absolute multiples of it; 0 = the first only
  double mean_code = 64;
  double rms_codes = 8;            ///< rounding then costs 0.065 % of S/N
  std::int64_t max_samples = 256;  ///< kept of each (row, product, channel): rms to 5 %
};

/// Watches what an engine writes and tells scale and offset.
/// @eq code = (p - mean) rms_codes / rms + mean_code; voltages: v rms_codes / rms
class LevelTracker {
 public:
  LevelTracker(const Config& config, const LevelOptions& options);

  /// Floats of windows [first_window, + n): power, Stokes or cf32 voltages of the same shape as
  /// `config`, dense or not. For the start, before there are codes.
  void add_floats(const Output& output, Tick first_window, std::int64_t n);
  /// Codes u8 or u16 the engine wrote with the scales in force. Values cut at the ends count as the
  /// ends; when a quartile is among them, the next scale is four times as wide.
  void add_codes(const Output& output, Tick first_window, std::int64_t n);

  /// Whether the scales change at `tick`, the first of a gulp: at the first call with data, then
  /// whenever a multiple of the interval was passed. What was watched is forgotten.
  bool update(Tick tick);
  /// The first tick after `tick` where update() may change something: gulps should end there.
  Tick next_update(Tick tick) const;

  View<const float, 3> scale() const { return {scale_.data(), extent_}; }
  View<const float, 3> offset() const { return {offset_.data(), extent_}; }
  /// Ticks from which each set of scales was in force: windows that end after them.
  const std::vector<Tick>& changes() const { return changes_; }

 private:
  template <class Read>
  void add(const Output& output, Tick first_window, std::int64_t n, const Read& read);

  Config config_;
  LevelOptions options_;
  std::int64_t n_products_, parts_, stride_windows_;
  std::array<std::int64_t, 3> extent_;
  std::vector<float> scale_, offset_;  ///< [row][product][channel]
  std::vector<float> kept_;            ///< [row][product][channel][max_samples]
  std::vector<std::int32_t> count_;
  std::vector<Tick> changes_;
};

}  // namespace ryle::beamform
