// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"

namespace ryle {

/// Gains of the beams of a receiver array: antenna temperatures over them are flux densities.
class BeamGains {
 public:
  /// Text: a row a beam, "M01 16.02" or "1 16.02", or a row a beam and frequency, "M01 1250 16.02"
  /// (MHz), columns apart by blanks or commas; # begins a remark and a first line without numbers
  /// names the columns. Throws FormatError with the line.
  static BeamGains read(const std::string& path);
  /// Of each channel: between frequencies linear, beyond the first and last theirs. Throws
  /// ConfigError for a beam without a row, and for frequencies that the channels do not have.
  /// @unit K/Jy
  std::vector<double> of(std::int64_t beam, const FrequencyAxis& channels) const;
  const std::string& path() const { return path_; }

 private:
  struct Row {
    double frequency_hz, gain_k_per_jy;
  };
  std::string path_;
  std::map<std::int64_t, std::vector<Row>>
      beams_;  ///< by ascending frequency; one: for all of them
};

}  // namespace ryle
