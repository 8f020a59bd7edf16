// SPDX-License-Identifier: BSD-3-Clause
// Rows of a visibility file -> dumps in Ryle's order and signs. Private to io/.
#pragma once
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle::io {

/// Rows as any format delivers them. @shape data, weight [row][channel][product]
struct RowSet {
  std::string path;
  std::vector<int> products;  ///< pol_product (0 XX, 1 XY, 2 YX, 3 YY) of each file product
  bool stokes_i = false;      ///< the one product is Stokes I, not XX
  std::int64_t n_file_channels = 0;
  double weight_per_count = 0;  ///< 0: weights of others, made whole counts of at least 1
  std::map<std::int64_t, std::int64_t> antenna_index;  ///< number in the file -> index in the array
  std::vector<int> antenna1, antenna2;
  std::vector<std::int64_t> centroid_tai_ns;
  std::vector<double> interval_s;
  std::vector<Vector3> uvw_m;
  std::vector<cf32> data;
  bool stored_conjugated =
      false;                  ///< the format's rule, for files whose baselines are all of length 0
  std::vector<float> weight;  ///< <= 0 or not finite: flagged
};

/// Fills file.dumps (ascending time). The direction of the baselines is found by comparing the
/// file's uvw with the geometry of file.observation: conventions disagree between programs
/// (products.md 2), geometry does not. What was found goes into provenance.notes["uvw"].
void build_dumps(const RowSet& rows, const VisibilityReadOptions& options, VisibilityFile& file);

/// Replaces times rounded by the format with the exact ones Ryle stores beside.
void set_exact_times(VisibilityDump& dump, std::int64_t start_tai_ns, std::int64_t centroid_tai_ns,
                     double interval_s, std::int64_t n_spectra);

/// Turns visibilities as antennas on the ground correlate, V = exp(2 pi i (r_i - r_j) . s /
/// lambda), to observation.phase_center at the centroid of every dump.
void phase_from_ground(VisibilityFile& file);

/// AIPS codes of polarizations (UVFITS, UVH5) -> pol_product; Stokes I alone (1) is imaged like XX
/// alone. Throws UnsupportedError for anything but linear feeds.
std::vector<int> products_of_aips(const std::string& path, const std::vector<std::int64_t>& codes);
/// Feeds of an array whose file has these products: one for XX or YY alone, else two.
int n_pols_of(const std::vector<int>& products);

/// Unit of the values as a file of others names it, with its rule for total intensity: "sum" means
/// I = XX + YY, which becomes Ryle's mean here (conventions.md 6). A single polarization is noted
/// as notes["single_polarization"]: XX, YY or I.
void describe_values(const std::string& unit, const std::string& pol_convention, RowSet& rows,
                     Observation& observation);

/// Antenna numbers that occur, ascending; and their positions in that list.
std::vector<std::int64_t> used_antennas(const std::vector<int>& antenna1,
                                        const std::vector<int>& antenna2);
std::map<std::int64_t, std::int64_t> index_of(const std::vector<std::int64_t>& used);

/// An array known by its geocentric positions.
struct ForeignArray {
  std::string name;
  Vector3 reference_itrf_m{};  ///< zero: the mean of the antennas
  std::vector<std::string> names;
  std::vector<Vector3> itrf_m;
  std::vector<double> feed_angle_rad;  ///< of X; empty = 0
};
ArrayLayout array_from_itrf(const ForeignArray& array, int n_pols);

/// Checks that centres are evenly spaced. Descending axes are returned ascending (build_dumps
/// reverses the data).
FrequencyAxis axis_from_centers(const std::string& path, const std::vector<double>& centers_hz);

/// Times of files, in UTC or in TAI (AIPS: IAT).
std::int64_t tai_ns_from_mjd_seconds(double mjd_s, bool tai = false);
std::int64_t tai_ns_from_julian_date(double day, double fraction, bool tai = false);

/// The ICRS direction of one given at a mean equinox (years): FK5, before 1984 FK4 of 1950. Throws
/// UnsupportedError for another one of FK4.
SkyDirection icrs_of_equinox(const std::string& path, const SkyDirection& direction,
                             double equinox);

}  // namespace ryle::io
