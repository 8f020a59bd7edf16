// SPDX-License-Identifier: BSD-3-Clause
// Files that are sets of named arrays (HDF5, .npz, columns of a FITS table), and scans found among
// them. Private to io/.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/io/scan/scan_formats.hpp"
#include "ryle/io/scan/scan_raw.hpp"

namespace ryle::io {

struct ScanArray {
  std::string name;
  std::vector<std::int64_t> shape;  ///< last axis fastest
  bool numbers = false;
  std::string unit;
  std::int64_t count() const;
  std::string last_part() const;  ///< "ra" of "S/RA", lower case
};

/// Where an array's numbers are when they lie in the file as they are.
struct RawLayout {
  std::shared_ptr<const RawFile> file;
  RawNumber number;
  std::int64_t first_byte = 0;
  std::vector<std::int64_t> step_bytes;  ///< of each axis
};

class ScanArrays {
 public:
  virtual ~ScanArrays() = default;
  const std::vector<ScanArray>& arrays() const { return arrays_; }
  virtual std::optional<RawLayout> raw(const ScanArray& array) = 0;
  /// For arrays without a raw place. @shape values [count[0]][count[1]]...
  virtual void read_box(const ScanArray& array, const std::vector<std::int64_t>& start,
                        const std::vector<std::int64_t>& count, float* values);
  /// All of it, flat.
  virtual std::vector<double> numbers(const ScanArray& array);
  /// Those from `first` on.
  std::vector<double> numbers_of(const ScanArray& array, std::int64_t first, std::int64_t n);
  /// Rows to be read together, so that no compressed piece is unpacked twice.
  virtual std::int64_t rows_together(const ScanArray&) { return 1; }
  /// An attribute of a group or array as text; empty: none.
  virtual std::string attribute(const std::string& of, const std::string& name);

  const ScanArray* find(const std::string& name) const;  ///< with or without a leading '/'
  std::string list() const;                              ///< " ra [3], data [3,4]"

 protected:
  static RawSamples row_of(const ScanArray& array, const RawLayout& place);
  std::vector<ScanArray> arrays_;
};

/// HEGrid, HCGrid and HiFAST layouts, or arrays by the options' names, or by usual names. `kind`
/// begins the name of the format ("HDF5"). Throws FormatError that says what there is.
std::unique_ptr<ScanFile> open_named_scans(const std::string& path, const std::string& kind,
                                           std::unique_ptr<ScanArrays> arrays,
                                           const ScanOptions& options);

/// Names that usually are longitudes: the first of them that is there decides the frame.
const std::vector<std::string>& longitude_names();
const std::vector<std::string>& latitude_names();

}  // namespace ryle::io
