// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>

#include "ryle/engine/search/normalize.hpp"

/// Private to the engine: what the normalizers of all back-ends share.
namespace ryle::search::detail {

inline constexpr int kBandpassDegree = 11;  // Magro 2014: 12 coefficients

/// Why a sample is out; the first cause stays.
enum Cause : std::uint8_t {
  kNone,
  kUser,
  kTime,
  kAbsent,
  kChannel,
  kBadCell,
  kKurtosis,
  kSpectrum,
  kNumCauses
};

inline void add_causes(const std::array<std::int64_t, kNumCauses>& counts,
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

}  // namespace ryle::search::detail
