// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/search/normalize.hpp"

/// Private to the engine: what the normalizers of all back-ends share.
namespace ryle::search::detail {

inline constexpr int kBandpassDegree = 11;  // Magro 2014: 12 coefficients

/// Why a sample is out; the first cause stays.
enum FlagReason : std::uint8_t {
  kNone,
  kUser,
  kTime,
  kAbsent,
  kChannel,
  kBadCell,
  kKurtosis,
  kSpectrum,
  kNumFlagReasons
};

inline void add_flag_reasons(const std::array<std::int64_t, kNumFlagReasons>& counts,
                             NormalizeReport& report) {
  report.written += counts[kNone];
  report.masked_user += counts[kUser];
  report.masked_time += counts[kTime];
  report.masked_absent += counts[kAbsent];
  report.masked_channel += counts[kChannel];
  report.masked_cell += counts[kBadCell];
  report.masked_kurtosis += counts[kKurtosis];
  report.masked_spectra += counts[kSpectrum];
}

/// Spectra whose channels all have one value never came. @shape data [channel][n]; absent [n]
inline void find_absent(Queue& queue, const float* data, std::int64_t stride,
                        std::int64_t n_channels, std::int64_t n,
                        std::vector<std::uint8_t>& absent) {
  constexpr std::int64_t kTile = 1024;
  absent.assign(n, n_channels > 1 ? 1 : 0);
  queue.parallel_for((n + kTile - 1) / kTile, [&](std::int64_t tile) {
    const std::int64_t first = tile * kTile, size = std::min(n - first, kTile);
    std::uint8_t* out = absent.data() + first;
    // Two channels nearly always tell.
    for (std::int64_t c = 1; c < n_channels && std::find(out, out + size, 1) != out + size; ++c)
      for (std::int64_t t = 0; t < size; ++t)
        out[t] &= data[c * stride + first + t] == data[first + t] ? 1 : 0;
  });
}

/// What noise alone may add to the typical rms of a channel, in its errors: passed by one of 1024
/// channels in 0.25 % of the gulps of single spectra (chi-square with 2 or 4 degrees of freedom).
inline constexpr double kNoiseThreshold = 4.5;
/// Error of the typical rms of a channel, a median over the cells about the middle of a gulp, over
/// what successive cells differ by. @eq sqrt(pi / 2) / sqrt(M), over sqrt(2)
inline double median_error(std::int64_t n_cells, std::int64_t n_past, std::int64_t median_cells) {
  const std::int64_t middle = std::min(n_cells / 2, n_cells - 1);
  const auto m = static_cast<double>(std::min(middle + median_cells / 2, n_cells) -
                                     std::max(middle - median_cells / 2, -n_past));
  return std::sqrt(0.5) * (m < 3 ? 1 : 1.2533 / std::sqrt(m));
}

}  // namespace ryle::search::detail
