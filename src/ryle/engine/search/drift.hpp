// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/device/queue.hpp"

/// Levels of a receiver that drift, step and flicker, taken out of detected power.
///
/// Power is averaged over cells of T / 64 to T / 128, T the window. Of each channel
/// @eq b_c = center_c + s_c (r_c g + h_c)
/// g is what all channels do at once: the mean of all channels, in units of the scatter s_c of
/// their cells, bursts clipped at 4 of its scatter about a median; its running mean over T, and the
/// running mean of what that leaves. Windows end at steps. Of a wave of frequency f that leaves
/// @eq (1 - H(f))^2, H(f) = sin(pi f T) / (pi f T)
/// r_c is the channel's response to the common level (least squares), h_c its own: running median
/// over T of what the common level does not explain, over cells four times as long, and the running
/// mean of what that median leaves.
///
/// A boxcar of W samples loses W / T of its sum and W / 3T of its variance: 5/6 W / T of its S/N.
namespace ryle::search {

struct DriftConfig {
  std::int64_t n_channels = 0;
  std::int64_t window_samples = 0;   ///< T, kMinDriftSamples .. kMaxDriftSamples
  std::vector<std::uint8_t> masked;  ///< [channel], 1 = says nothing of the others; empty = none
  /// The power has its true zero: gains are divided out, not subtracted.
  bool multiply = false;
};

inline constexpr std::int64_t kMinDriftSamples = 64, kMaxDriftSamples = 65536;
/// Whole pieces of so many samples are taken and given.
inline constexpr std::int64_t kDriftStep = 1024;

/// A window in seconds as samples: 0 = half a second, or 24 of the widest boxcar, whatever is
/// longer. Throws ConfigError below 8 of the widest boxcar and beyond the limits above.
std::int64_t drift_window(double window_s, double sample_interval_s, std::int64_t max_width);

class DriftFilter {
 public:
  /// @param block samples of every call, a multiple of kDriftStep
  DriftFilter(const DriftConfig& config, std::int64_t block);
  ~DriftFilter();
  DriftFilter(const DriftFilter&) = delete;
  DriftFilter& operator=(const DriftFilter&) = delete;

  /// Samples that are held back: half a window, in whole pieces.
  std::int64_t lag() const;
  /// The next block, n of whose samples came (data may be nullptr with n = 0); the earlier samples
  /// whose levels are known now go out. What never came is NaN, and so are spectra whose channels
  /// all have one value. @return samples of each channel in `out`: of all calls together `lag()`
  /// less than came in
  /// @shape data [channel][n] f32, out [channel][block] f32
  std::int64_t execute(Queue& queue, const float* data, std::int64_t stride, std::int64_t n,
                       float* out, std::int64_t out_stride);
  std::int64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::search
