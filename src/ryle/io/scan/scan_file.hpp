// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/io/map/map_projection.hpp"

/// Single-dish scans: samples with a place on the sky each and a value in every channel.
namespace ryle {

struct ScanOptions {
  /// Data sets of HDF5, arrays of .npz or columns of a FITS table; empty: found by names and
  /// shapes.
  std::string longitude, latitude, data;
  std::string frequency;  ///< data set of channel centers; Hz, or MHz when below 1e6
  /// Of longitudes, whatever the file says: "hours" or "deg". Empty: the file's, degrees for none.
  std::string longitude_unit;
  /// What a sample counts: "none" (all the same), "tsys" (EXPOSURE/TSYS^2), "radiometer" (channel
  /// width times that: 1/variance), "column:NAME" (a column or data set with a number a sample, or
  /// one for each of its channels).
  std::string weights = "none";
  /// Data set or column of flags, of samples or of all their channels: what is not 0 is absent.
  /// Empty: found by name (flag, flags, flagged, mask, is_rfi); "none": not looked at.
  std::string flags;
  /// "mean" of two, or one by number or name: 0, 1, XX, YY, LL, RR, I. "any": the first there is.
  std::string polarization = "mean";
  /// Rows of an SDFITS table where COLUMN = value, all of them: IFNUM=0, OBJECT=M33, CAL=F.
  std::vector<std::pair<std::string, std::string>> select;
};

struct ScanMetadata {
  std::string path;
  std::string format;  ///< "HDF5 (ra, dec, Ta)", "HEGrid HDF5"
  std::int64_t n_samples = 0, n_channels = 0;
  SkyFrame frame = SkyFrame::icrs;
  bool frame_known = false;  ///< false: nothing says the system of positions, ICRS is taken
  FrequencyAxis frequency;   ///< channel_width_hz 0: not known
  double beam_fwhm_rad = 0;  ///< 0: not known
  std::string unit;          ///< of the values; empty: the file gives none
  std::string object, telescope;
  bool longitude_unit_known = false;  ///< the file, its format or an option says it
  std::string spectral_frame;    ///< SPECSYS of FITS: TOPOCENT, LSRK, BARYCENT; empty: not known
  double rest_frequency_hz = 0;  ///< 0: not known
  std::string polarization;      ///< what was read: "XX", "mean of XX, YY"; empty: not known
  std::vector<std::string> polarizations;  ///< all there are, by name; empty: not known
  bool polarizations_in_rows = false;      ///< each has samples of its own
  std::int64_t beam = -1;      ///< of several receivers, as the file counts; -1: not known
  std::string observed_utc;    ///< of the first sample, ISO 8601; empty: not known
  bool samples_first = false;  ///< stored as [sample][channel]
  std::vector<std::string> warnings;
  std::vector<std::string> choices;  ///< what was taken of several things, to be stated
};

class ScanFile {
 public:
  virtual ~ScanFile() = default;
  virtual const ScanMetadata& metadata() const = 0;
  /// @shape [sample] @unit degrees
  virtual void read_positions(std::vector<double>& longitude_deg,
                              std::vector<double>& latitude_deg) = 0;
  /// Channels [first, first + n). @shape values [channel][sample]
  virtual void read_channels(std::int64_t first, std::int64_t n, float* values) = 0;
  virtual bool has_weights() const { return false; }
  /// What each sample counts; 0 where that is not known. @shape [sample]
  virtual void read_weights(float* weights);
  /// Channels have weights of their own, in place of those of samples.
  virtual bool has_channel_weights() const { return false; }
  /// @shape weights [channel][n]
  virtual void read_channel_weights_of(std::int64_t first_channel, std::int64_t n_channels,
                                       std::int64_t first, std::int64_t n, float* weights);
  virtual bool has_flags() const { return false; }
  /// 1: absent. Of channels [first, first + n). @shape [channel][sample]
  virtual void read_flags(std::int64_t first, std::int64_t n, std::uint8_t* flags);

  // The same of samples [first, first + n) only. What a format does not override reads all samples,
  // one channel at a time, and keeps those.
  virtual void read_positions_of(std::int64_t first, std::int64_t n, double* longitude_deg,
                                 double* latitude_deg);
  /// @shape values [channel][n]
  virtual void read_channels_of(std::int64_t first_channel, std::int64_t n_channels,
                                std::int64_t first, std::int64_t n, float* values);
  virtual void read_weights_of(std::int64_t first, std::int64_t n, float* weights);
  virtual void read_flags_of(std::int64_t first_channel, std::int64_t n_channels,
                             std::int64_t first, std::int64_t n, std::uint8_t* flags);
};

/// Opens by content. Throws FormatError that says what was looked for and what is there.
std::unique_ptr<ScanFile> open_scans(const std::string& path, const ScanOptions& options = {});

/// Smallest and largest of positions, by which their unit can be doubted.
struct PositionExtremes {
  double longitude_low = 1e300, longitude_high = -1e300;  ///< degrees, as they were read
  double latitude_low_deg = 1e300, latitude_high_deg = -1e300;
  /// What is not finite is left out.
  void add(const double* longitude, const double* latitude_deg, std::int64_t n);
};
/// A warning where longitudes look like hours: those of a full circle, or of a field that is a
/// fifteenth as wide as it is high. Empty: the unit is known, or nothing speaks for it. Throws
/// ConfigError where they are no degrees, as of degrees read as hours.
std::string doubt_of_longitudes(const PositionExtremes& extremes, const ScanMetadata& metadata);

/// FITS code of a polarization: -5 for XX, 1 for I; 0: it has none.
int stokes_code(const std::string& name);

}  // namespace ryle
