// SPDX-License-Identifier: BSD-3-Clause
// Rows of a visibility file -> dumps in Ryle's order and signs. Private to product/.
#pragma once
#include <complex>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/product/visibility_file.hpp"

namespace ryle::product {

/// Rows as any format delivers them. @shape data, weight [row][channel][product]
struct RowSet {
  std::string path;
  std::vector<int> products;  ///< pol_product (0 XX, 1 XY, 2 YX, 3 YY) of each file product
  std::int64_t n_file_channels = 0;
  double weight_per_count = 0;  ///< 0: foreign weights, rounded to at least 1
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

std::int64_t tai_ns_from_mjd_seconds(double mjd_utc_s);
std::int64_t tai_ns_from_julian_date(double day, double fraction);

}  // namespace ryle::product
