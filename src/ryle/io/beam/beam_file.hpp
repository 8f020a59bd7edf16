// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"
#include "ryle/telescope/geometry.hpp"

/// Beams as HDF5: all beams of a run in one file, powers or voltages of any format, with what was
/// there, where the beams pointed and how codes are to be read.
namespace ryle {

struct BeamFileInfo {
  std::vector<std::string> beams;     ///< names of the rows
  std::vector<std::string> products;  ///< XX YY | I | I Q U V; voltages: X Y
  /// f32 f16 u16 u8, or voltages: cf32 cf16 ci8 ci4 (a byte, real part in the high nibble)
  std::string format = "f32";
  FrequencyAxis frequency;
  SampleClock clock;             ///< of the values: value n begins at clock.tai_ns(n)
  std::int64_t integration = 1;  ///< spectra per value
  std::string telescope;
  double latitude_rad = 0, longitude_rad = 0, height_m = 0;
  std::string history;  ///< the command line
};

/// /values [time][beam][product][channel] (voltages [time][beam][channel][pol], complex or [2]),
/// /time_tai_ns [time]; /gulps: first_value, n_values, direction_enu, position_icrs, n_used,
/// saturated_low, saturated_high of each append(); /scales: from_value, scale, offset. Grows as
/// ".NAME.part", appears by finish().
class BeamFileWriter {
 public:
  BeamFileWriter(const std::string& path, const BeamFileInfo& info, bool overwrite);
  ~BeamFileWriter();
  BeamFileWriter(const BeamFileWriter&) = delete;
  BeamFileWriter& operator=(const BeamFileWriter&) = delete;

  /// Memory of an engine: [row][product][channel][time], voltages [row][channel][time][pol].
  struct Values {
    const void* data = nullptr;
    std::int64_t row_stride_bytes = 0, product_stride_bytes = 0, channel_stride_bytes = 0;
    std::int64_t first = 0, n = 0;  ///< values since the clock's epoch
  };
  /// Of the values of one append(); empty vectors = not known.
  struct Metadata {
    std::vector<Vector3> directions_enu;        ///< [row]
    std::vector<SkyDirection> positions;        ///< [row], ICRS
    std::vector<std::uint32_t> n_used;          ///< [row][channel]
    std::vector<std::uint32_t> saturated_low;   ///< [row][product][channel]
    std::vector<std::uint32_t> saturated_high;  ///< [row][product][channel]
  };
  void append(const Values& values, const Metadata& metadata);
  /// Codes from value `from` on. @shape scale, offset [row][product][channel]
  void scales(std::int64_t from, const std::vector<float>& scale, const std::vector<float>& offset);
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
