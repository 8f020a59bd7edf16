// SPDX-License-Identifier: BSD-3-Clause
// HDF5 handles and the few calls Ryle needs, every return value checked. Private to io/. HDF5
// is used from one thread at a time (products.md 5); the library's own error printing is off.
#pragma once
#include <hdf5.h>

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/hdf5/handle.hpp"

namespace ryle::io::h5 {

using hdf5::Handle;

/// Innermost message of HDF5's error stack, and empties it.
std::string last_error();
/// Throws IoError "cannot WHAT PATH: ..." when `status` is negative.
void check(hid_t status, const std::string& what, const std::string& path);
void silence();

Handle complex_type();  ///< compound {r, i} of float32, as numpy and pyuvdata store complex64
Handle bool_type();     ///< the FALSE/TRUE enumeration h5py reads as bool
Handle text_type(std::size_t length);

// Scalars and arrays under a group, written whole. An existing data set of the name is replaced.
void remove(hid_t group, const char* name);  ///< if it is there
void put_text(hid_t group, const char* name, const std::string& text, const std::string& path);
void put_texts(hid_t group, const char* name, const std::vector<std::string>& texts,
               const std::vector<hsize_t>& shape, const std::string& path);
void put_int(hid_t group, const char* name, std::int64_t value, const std::string& path);
void put_double(hid_t group, const char* name, double value, const std::string& path);
void put_bool(hid_t group, const char* name, bool value, const std::string& path);
void put_array(hid_t group, const char* name, hid_t type, const void* data,
               const std::vector<hsize_t>& shape, const std::string& path);

/// A data set that grows along its first axis.
class Growing {
 public:
  Growing() = default;
  /// shape = [rows per chunk][...]; starts with 0 rows.
  Growing(hid_t group, const char* name, Handle file_type, std::vector<hsize_t> chunk,
          const std::string& path);
  /// Adds rows and flushes the data set, so that a SWMR reader or a recovery finds them.
  void append(hid_t memory_type, const void* data, hsize_t n_rows, const std::string& path);
  void reset() { set_.reset(); }

 private:
  Handle set_;
  std::vector<hsize_t> size_;
};

// Readers.
/// A file of any origin to read (hdf5/filters.hpp); throws when it is rejected.
Handle open_file(const std::string& path, unsigned access = H5F_ACC_RDONLY);
/// A part of an open data set. Throws FormatError, and UnsupportedError where a filter is missing.
void read_part(hid_t set, const std::string& name, hid_t memory_type, hid_t memory_space,
               hid_t file_space, void* out, const std::string& path);
bool exists(hid_t group, const std::string& name);
Handle open_group(hid_t group, const std::string& name, const std::string& path);
std::vector<hsize_t> shape_of(hid_t group, const std::string& name, const std::string& path);
/// Reads everything with conversion to `memory_type`. `out` has room for `n_values`; throws
/// FormatError when the data set has another number of values.
void read_all(hid_t group, const std::string& name, hid_t memory_type, void* out,
              std::size_t n_values, const std::string& path);
/// The first rows along the first axis: of a file that was never finished later ones may point past
/// its end.
void read_rows(hid_t group, const std::string& name, hid_t memory_type, hsize_t n_rows, void* out,
               const std::string& path);
/// Complex numbers stored as compounds {r, i} of any number type. Throws FormatError for others.
void read_complex(hid_t group, const std::string& name, std::complex<float>* out,
                  std::size_t n_values, const std::string& path);
/// Truth values: FALSE/TRUE enumerations and integers, 0 or not.
void read_bools(hid_t group, const std::string& name, std::int8_t* out, std::size_t n_values,
                const std::string& path);
/// Names of what a group holds, in order.
std::vector<std::string> names_in(hid_t group, const std::string& path);
std::string read_text(hid_t group, const std::string& name, const std::string& path);
std::vector<std::string> read_texts(hid_t group, const std::string& name, const std::string& path);
std::vector<double> read_doubles(hid_t group, const std::string& name, const std::string& path);
std::vector<std::int64_t> read_ints(hid_t group, const std::string& name, const std::string& path);

}  // namespace ryle::io::h5
