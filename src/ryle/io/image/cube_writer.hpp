// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"

namespace ryle {

/// What the header of a map says beside its coordinates.
struct MapMetadata {
  std::string unit;  ///< empty: not known, there is no BUNIT
  std::string object, telescope;
  std::string quantity = "value";  ///< value, weight, count, noise: names the column of a table
  /// channel_width_hz 0: not known, the spectral axis is CHANNEL. A file of one channel made of
  /// several (a weight all of them share) stands for their whole band.
  FrequencyAxis frequency;
  std::string spectral_frame;  ///< SPECSYS as FITS writes it: TOPOCENT, LSRK, BARYCENT; "" unknown
  std::string observer_frame;  ///< SSYSOBS, the frame the observer kept fixed; "" = not known
  std::string observed_utc;    ///< ISO 8601; "" = not known
  double rest_frequency_hz = 0;  ///< 0: not known
  bool velocity_axis = false;    ///< VRAD in place of FREQ; needs a rest frequency
  /// FITS codes of polarizations (-5 XX, 1 I) in even steps: planes are [polarization][channel] and
  /// the cube has a STOKES axis. Fewer than two: planes are [channel].
  std::vector<int> stokes;
  /// Of the map, convolution included; 0: not known, or not defined (medians).
  double beam_fwhm_deg = 0;
  double beam_minor_deg = 0;           ///< 0: a round beam
  double beam_position_angle_deg = 0;  ///< of the major axis, north through east
  /// Values per beam were multiplied by this, the beam being that much larger than the telescope's.
  double area_factor = 1;
  /// Values were divided by the same mean (or median) of the beam's response to a source in the
  /// cell: they are what a point source there has.
  bool per_beam = false;
  std::vector<std::string> history;
};

enum class CubeValues : std::uint8_t { float32, int32, float64 };

/// A file with a plane of cells for every channel, plane by plane. It grows as ".NAME.part"; cells
/// without a value are NaN (float) or 0 (counts). Destroyed before publish(): nothing stays.
class CubeWriter {
 public:
  CubeWriter() = default;
  virtual ~CubeWriter() = default;
  CubeWriter(const CubeWriter&) = delete;
  CubeWriter& operator=(const CubeWriter&) = delete;
  /// The next plane, n_cells() values in the order of the cells; of the type the file was made for.
  virtual void append(const float* plane) = 0;
  virtual void append(const double* plane) = 0;
  virtual void append(const std::int32_t* plane) = 0;
  /// Runs body(k) for all k in [0, n), on as many threads as it likes, and returns when all are
  /// done.
  using ForEach =
      std::function<void(std::int64_t n, const std::function<void(std::int64_t)>& body)>;
  /// The next planes, by several threads where the format can.
  virtual void append_all(const std::vector<const float*>& planes, const ForEach& /*for_each*/) {
    for (const float* plane : planes) append(plane);
  }
  virtual void append_all(const std::vector<const double*>& planes, const ForEach& /*for_each*/) {
    for (const double* plane : planes) append(plane);
  }
  /// What is known only when all is gridded: files, samples that did not count. Before publish();
  /// formats without a history leave it out.
  virtual void add_history(const std::vector<std::string>& /*lines*/) {}
  /// Takes the planes of `other` into this file, as an extension of that name: `other` gets no
  /// file. Before publish(). @pre every plane of both was appended
  virtual void adopt(CubeWriter& other, const std::string& name) = 0;
  /// @pre every plane was appended
  virtual void publish() = 0;
};

}  // namespace ryle
