// SPDX-License-Identifier: BSD-3-Clause
// The readers behind open_scans(), one a format. Private to io/.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/io/scan/scan_file.hpp"
#include "ryle/io/scan/scan_fits_table.hpp"

namespace ryle::io {

/// What FITS readers share: the header of the file and its tables.
struct FitsScans {
  std::string path;
  std::shared_ptr<const RawFile> raw;
  ScanKeywords primary;
  std::vector<ScanTable> tables;

  std::string key(const std::string& word) const;  ///< of the primary header; empty: not there
  const ScanTable* table(const std::string& name) const;
};

std::unique_ptr<ScanFile> open_hdf5_scans(const std::string& path, const ScanOptions& options);
std::unique_ptr<ScanFile> open_npz_scans(const std::string& path, const ScanOptions& options);
std::unique_ptr<ScanFile> open_fits_scans(const std::string& path, const ScanOptions& options);
// Null: the file is not of that kind.
std::unique_ptr<ScanFile> open_sdfits(const FitsScans& file, const ScanOptions& options);
std::unique_ptr<ScanFile> open_discos(const FitsScans& file, const ScanOptions& options);
std::unique_ptr<ScanFile> open_hcgrid_fits(const FitsFile& file, const FitsScans& scans,
                                           const ScanOptions& options);
std::unique_ptr<ScanFile> open_fits_table(const FitsScans& file, const ScanOptions& options);

/// Degrees in a unit of FITS ("deg", "rad", "radians", "hourangle", "arcsec"); degrees for none.
/// Throws UnsupportedError.
double degrees_in(const std::string& unit, const std::string& where);
/// Frame of right ascensions and declinations of a RADESYS and an equinox in years (NaN, 0: not
/// said). Throws UnsupportedError for FK4, apparent places and other equinoxes than 2000.
SkyFrame equatorial_frame(const std::string& system, double equinox, const std::string& where);
/// Hz in a unit; `otherwise` for none.
double hertz_in(const std::string& unit, double otherwise, const std::string& where);
/// Degrees of one of a file's longitudes: as the options say, else as `unit` does. Notes whether
/// either says so. Throws ConfigError for an option that is no unit.
double longitude_degrees(const ScanOptions& options, const std::string& unit,
                         ScanMetadata& metadata);
/// Adds a warning of doubt_of_longitudes() to `metadata`.
void check_longitudes(const std::vector<double>& longitude_deg,
                      const std::vector<double>& latitude_deg, ScanMetadata& metadata);
/// Ascending axis from channel centers in stored order; says whether the order is turned round.
/// Throws FormatError when a center is off the linear axis by more than 0.05 channel.
FrequencyAxis linear_axis(const std::vector<double>& center_hz, bool& descending,
                          const std::string& where);

/// Polarizations to be read as one: indices into `names`. "mean" takes XX and YY, RR and LL, or I;
/// without names, the first two. Throws ConfigError that lists what is there.
struct ChosenPolarizations {
  std::vector<std::size_t> which;
  std::string text;  ///< "mean of XX, YY"
};
ChosenPolarizations choose_polarizations(const std::vector<std::string>& names,
                                         const std::string& wanted, const std::string& where);
/// Names of flags, lower case, as they are looked for.
const std::vector<std::string>& flag_names();
/// Throws ConfigError where a format without named flags is asked for some.
void reject_flags(const ScanOptions& options, const std::string& where);
/// "2020-01-01T00:00:00.000" of a modified Julian date; empty for what is none.
std::string iso_of_mjd(double mjd);
/// "XX" for -5, after FITS; empty for what is none.
std::string stokes_name(double code);

/// What an option's weights need of a file, one number a sample each; empty: not there.
struct WeightColumns {
  std::vector<double> exposure_s, system_temperature_k;
};
/// EXPOSURE/TSYS^2, times the channel width for "radiometer"; 0 where TSYS or the exposure is no
/// number above 0.
std::vector<float> system_weights(const WeightColumns& columns, double channel_width_hz);
/// Throws ConfigError for words that are none; gives the name behind "column:".
std::string weights_column(const std::string& weights);

}  // namespace ryle::io
