// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace ryle::detail {

/// The `config` text of a TART file.
struct TartConfig {
  std::int64_t sampling_frequency_hz = 0;
  double frequency_hz = 0;  ///< sky
  double baseband_hz = 0;   ///< where it comes to lie in the samples
  std::int64_t n_antennas = 0;
  std::map<std::string, std::string> header;
};
/// Throws FormatError beginning with `where`.
TartConfig parse_tart_config(const std::string& where, const std::string& text);

}  // namespace ryle::detail
