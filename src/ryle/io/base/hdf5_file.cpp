// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/hdf5_file.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/hdf5/filters.hpp"
#include "ryle/io/base/part_file.hpp"

namespace ryle::io::h5 {
namespace {

/// HDF5 would try once more, at exit, to write what a full disk rejected, and then crash or loop on
/// the remains: the files we want are closed by hand. Before main, because whoever uses HDF5 first
/// (a TART recording) installs that handler.
[[maybe_unused]] const herr_t kNo_exit_handler = H5dont_atexit();

herr_t keep_innermost(unsigned, const H5E_error2_t* error, void* out) {
  auto* text = static_cast<std::string*>(out);
  if (error->desc != nullptr && *error->desc != '\0') *text = error->desc;
  return 0;
}

Handle simple_space(const std::vector<hsize_t>& shape) {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
  return {H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose};
}

[[noreturn]] void bad(const std::string& name, const std::string& path) {
  throw FormatError("cannot read " + name + " of " + path + ": " + last_error());
}

void read_whole(hid_t set, const std::string& name, hid_t memory_type, void* out,
                const std::string& path) {
  read_part(set, name, memory_type, H5S_ALL, H5S_ALL, out, path);
}

Handle open_set(hid_t group, const std::string& name, const std::string& path) {
  Handle set(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!set.valid()) bad(name, path);
  return set;
}

std::size_t n_elements(hid_t set) {
  const Handle space(H5Dget_space(set), H5Sclose);
  const hssize_t n = H5Sget_simple_extent_npoints(space.get());
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

}  // namespace

void silence() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

Handle open_file(const std::string& path, unsigned access) {
  silence();
  return {hdf5::open_file(path, access), H5Fclose};
}

std::string last_error() {
  std::string text = "HDF5 gives no reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  std::string innermost;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &innermost);
  H5Eclear2(H5E_DEFAULT);
  const std::string& best = innermost.empty() ? text : innermost;
  std::string line;
  for (const char c : best) line += c == '\n' ? ' ' : c;
  return line;
}

void check(hid_t status, const std::string& what, const std::string& path) {
  if (status >= 0) return;
  throw IoError(ExitCode::io,
                "cannot " + what + " " + path + ": " + last_error() + disk_hint(path));
}

Handle complex_type() {
  Handle type(H5Tcreate(H5T_COMPOUND, sizeof(std::complex<float>)), H5Tclose);
  H5Tinsert(type.get(), "r", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(type.get(), "i", sizeof(float), H5T_NATIVE_FLOAT);
  return type;
}

Handle bool_type() {
  Handle type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
  const std::int8_t no = 0;
  const std::int8_t yes = 1;
  H5Tenum_insert(type.get(), "FALSE", &no);
  H5Tenum_insert(type.get(), "TRUE", &yes);
  return type;
}

Handle text_type(std::size_t length) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<std::size_t>(length, 1));
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  return type;
}

void remove(hid_t group, const char* name) {
  if (exists(group, name)) H5Ldelete(group, name, H5P_DEFAULT);
}

void put_array(hid_t group, const char* name, hid_t type, const void* data,
               const std::vector<hsize_t>& shape, const std::string& path) {
  remove(group, name);
  const Handle space = simple_space(shape);
  const Handle set(
      H5Dcreate2(group, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  check(set.get(), std::string("create ") + name + " in", path);
  for (const hsize_t n : shape) {
    if (n == 0) return;
  }
  check(H5Dwrite(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
        std::string("write ") + name + " in", path);
}

void put_text(hid_t group, const char* name, const std::string& text, const std::string& path) {
  put_texts(group, name, {text}, {}, path);
}

void put_texts(hid_t group, const char* name, const std::vector<std::string>& texts,
               const std::vector<hsize_t>& shape, const std::string& path) {
  std::size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  std::string packed;
  for (std::string text : texts) {
    text.resize(width, '\0');
    packed += text;
  }
  const Handle type = text_type(width);
  put_array(group, name, type.get(), packed.data(), shape, path);
}

void put_int(hid_t group, const char* name, std::int64_t value, const std::string& path) {
  put_array(group, name, H5T_NATIVE_INT64, &value, {}, path);
}

void put_double(hid_t group, const char* name, double value, const std::string& path) {
  put_array(group, name, H5T_NATIVE_DOUBLE, &value, {}, path);
}

void put_bool(hid_t group, const char* name, bool value, const std::string& path) {
  const std::int8_t byte = value ? 1 : 0;
  const Handle type = bool_type();
  put_array(group, name, type.get(), &byte, {}, path);
}

Growing::Growing(hid_t group, const char* name, Handle file_type, std::vector<hsize_t> chunk,
                 const std::string& path) {
  size_ = chunk;
  size_[0] = 0;
  std::vector<hsize_t> maximum = chunk;
  maximum[0] = H5S_UNLIMITED;
  const Handle space(H5Screate_simple(static_cast<int>(size_.size()), size_.data(), maximum.data()),
                     H5Sclose);
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  set_ = Handle(H5Dcreate2(group, name, file_type.get(), space.get(), H5P_DEFAULT, properties.get(),
                           H5P_DEFAULT),
                H5Dclose);
  check(set_.get(), std::string("create ") + name + " in", path);
}

void Growing::append(hid_t memory_type, const void* data, hsize_t n_rows, const std::string& path) {
  std::vector<hsize_t> start(size_.size(), 0);
  start[0] = size_[0];
  std::vector<hsize_t> count = size_;
  count[0] = n_rows;
  std::vector<hsize_t> grown = size_;
  grown[0] += n_rows;
  check(H5Dset_extent(set_.get(), grown.data()), "extend", path);
  const Handle file_space(H5Dget_space(set_.get()), H5Sclose);
  const Handle memory_space(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                            H5Sclose);
  check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                            nullptr),
        "extend", path);
  check(H5Dwrite(set_.get(), memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, data),
        "write", path);
  check(H5Dflush(set_.get()), "flush", path);
  size_ = grown;
}

bool exists(hid_t group, const std::string& name) {
  const htri_t found = H5Lexists(group, name.c_str(), H5P_DEFAULT);
  if (found < 0) H5Eclear2(H5E_DEFAULT);
  return found > 0;
}

Handle open_group(hid_t group, const std::string& name, const std::string& path) {
  Handle out(H5Gopen2(group, name.c_str(), H5P_DEFAULT), H5Gclose);
  if (!out.valid()) bad("group " + name, path);
  return out;
}

std::vector<hsize_t> shape_of(hid_t group, const std::string& name, const std::string& path) {
  const Handle set = open_set(group, name, path);
  const Handle space(H5Dget_space(set.get()), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  std::vector<hsize_t> shape(std::max(rank, 0));
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  return shape;
}

void read_all(hid_t group, const std::string& name, hid_t memory_type, void* out,
              std::size_t n_values, const std::string& path) {
  const Handle set = open_set(group, name, path);
  if (const std::size_t n = n_elements(set.get()); n != n_values)
    throw FormatError("cannot read " + name + " of " + path + ": it has " + std::to_string(n) +
                      " values, the file says " + std::to_string(n_values));
  if (n_values > 0) read_whole(set.get(), name, memory_type, out, path);
}

void read_part(hid_t set, const std::string& name, hid_t memory_type, hid_t memory_space,
               hid_t file_space, void* out, const std::string& path) {
  if (hdf5::read(set, memory_type, memory_space, file_space, out) >= 0) return;
  hdf5::require_filters(set, path);
  bad(name, path);
}

void read_rows(hid_t group, const std::string& name, hid_t memory_type, hsize_t n_rows, void* out,
               const std::string& path) {
  if (n_rows == 0) return;
  const Handle set = open_set(group, name, path);
  std::vector<hsize_t> count = shape_of(group, name, path);
  if (count.empty() || count[0] < n_rows) bad(name, path);
  count[0] = n_rows;
  const std::vector<hsize_t> start(count.size(), 0);
  const Handle file_space(H5Dget_space(set.get()), H5Sclose);
  H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                      nullptr);
  const Handle memory_space(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                            H5Sclose);
  read_part(set.get(), name, memory_type, memory_space.get(), file_space.get(), out, path);
}

void read_complex(hid_t group, const std::string& name, std::complex<float>* out,
                  std::size_t n_values, const std::string& path) {
  const Handle set = open_set(group, name, path);
  const Handle type(H5Dget_type(set.get()), H5Tclose);
  // HDF5 converts members by name and leaves those that are not there as they were.
  if (H5Tget_class(type.get()) != H5T_COMPOUND || H5Tget_member_index(type.get(), "r") < 0 ||
      H5Tget_member_index(type.get(), "i") < 0) {
    H5Eclear2(H5E_DEFAULT);
    throw FormatError("cannot read " + name + " of " + path +
                      ": its values are no compounds of r and i");
  }
  const Handle memory = complex_type();
  read_all(group, name, memory.get(), out, n_values, path);
}

void read_bools(hid_t group, const std::string& name, std::int8_t* out, std::size_t n_values,
                const std::string& path) {
  const Handle set = open_set(group, name, path);
  const Handle type(H5Dget_type(set.get()), H5Tclose);
  const Handle memory = H5Tget_class(type.get()) == H5T_ENUM
                            ? bool_type()
                            : Handle(H5Tcopy(H5T_NATIVE_INT8), H5Tclose);
  read_all(group, name, memory.get(), out, n_values, path);
}

std::vector<std::string> names_in(hid_t group, const std::string& path) {
  H5G_info_t info{};
  if (H5Gget_info(group, &info) < 0) bad("a group", path);
  std::vector<std::string> names;
  for (hsize_t k = 0; k < info.nlinks; ++k) {
    char name[256] = "";
    H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, k, name, sizeof name, H5P_DEFAULT);
    names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> read_texts(hid_t group, const std::string& name, const std::string& path) {
  const Handle set = open_set(group, name, path);
  const Handle type(H5Dget_type(set.get()), H5Tclose);
  const std::size_t n = n_elements(set.get());
  std::vector<std::string> out;
  if (n == 0) return out;  // h5py's Empty, of any type, is what pyuvdata writes for None
  if (H5Tis_variable_str(type.get()) > 0) {
    std::vector<char*> pointers(n, nullptr);
    if (n > 0) read_whole(set.get(), name, type.get(), pointers.data(), path);
    for (char* text : pointers) {
      out.emplace_back(text != nullptr ? text : "");
      H5free_memory(text);
    }
    return out;
  }
  if (H5Tget_class(type.get()) != H5T_STRING) {
    throw FormatError("cannot read " + name + " of " + path + ": it is not text");
  }
  const std::size_t width = H5Tget_size(type.get());
  std::vector<char> bytes(width * n);
  if (n > 0) read_whole(set.get(), name, type.get(), bytes.data(), path);
  for (std::size_t k = 0; k < n; ++k) {
    std::string text(bytes.data() + k * width, width);
    text.resize(std::min(text.find('\0'), text.size()));
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out.push_back(text);
  }
  return out;
}

std::string read_text(hid_t group, const std::string& name, const std::string& path) {
  const auto texts = read_texts(group, name, path);
  return texts.empty() ? "" : texts.front();
}

std::vector<double> read_doubles(hid_t group, const std::string& name, const std::string& path) {
  const Handle set = open_set(group, name, path);
  std::vector<double> out(n_elements(set.get()));
  read_all(group, name, H5T_NATIVE_DOUBLE, out.data(), out.size(), path);
  return out;
}

std::vector<std::int64_t> read_ints(hid_t group, const std::string& name, const std::string& path) {
  const Handle set = open_set(group, name, path);
  std::vector<std::int64_t> out(n_elements(set.get()));
  read_all(group, name, H5T_NATIVE_INT64, out.data(), out.size(), path);
  return out;
}

}  // namespace ryle::io::h5
