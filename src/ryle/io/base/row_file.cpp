// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/row_file.hpp"

#include <cerrno>
#include <filesystem>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle {
namespace {

namespace h5 = io::h5;

template <class T>
hid_t number_type() {
  return sizeof(T) == 1 ? H5T_NATIVE_INT8 : H5T_NATIVE_INT64;
}

std::string crc_name(const std::string& name) { return name + "_crc32c"; }

}  // namespace

struct RowFileReader::Impl {
  std::string path;
  h5::Handle file;

  template <class T>
  void rows(const std::string& name, std::int64_t first, std::int64_t n, std::int64_t length,
            T* out) const {
    if (n == 0 || length == 0) return;
    const auto shape = h5::shape_of(file.get(), name, path);
    if (shape.size() != 2 || shape[0] < static_cast<hsize_t>(first + n) ||
        shape[1] != static_cast<hsize_t>(length))
      throw FormatError(path + ": " + name + " has not the " + std::to_string(first + n) +
                        " rows of " + std::to_string(length) + " that its description says");
    const h5::Handle set(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    h5::check(set.get(), "open " + name + " of", path);
    const h5::Handle space(H5Dget_space(set.get()), H5Sclose);
    const hsize_t start[2] = {static_cast<hsize_t>(first), 0};
    const hsize_t size[2] = {static_cast<hsize_t>(n), static_cast<hsize_t>(length)};
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, size, nullptr);
    const h5::Handle memory(H5Screate_simple(2, size, nullptr), H5Sclose);
    h5::read_part(set.get(), name, number_type<T>(), memory.get(), space.get(), out, path);
    const auto crcs = h5::read_ints(file.get(), crc_name(name), path);
    if (crcs.size() != shape[0])
      throw FormatError(path + ": " + name + " has not a checksum a row");
    for (std::int64_t r = 0; r < n; ++r)
      if (io::crc32c(out + r * length, static_cast<std::size_t>(length) * sizeof(T)) !=
          static_cast<std::uint32_t>(crcs[first + r]))
        throw FormatError(path + ": row " + std::to_string(first + r) + " of " + name +
                          " is damaged (CRC-32C)");
  }
};

RowFileReader::RowFileReader(const std::string& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->file = h5::open_file(path);
}
RowFileReader::~RowFileReader() = default;

bool RowFileReader::has(const std::string& name) const {
  for (auto at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
    if (!h5::exists(impl_->file.get(), name.substr(0, at))) return false;
  return h5::exists(impl_->file.get(), name);
}
std::string RowFileReader::text(const std::string& name) const {
  if (!has(name)) throw FormatError(path() + ": has no " + name);
  const auto shape = h5::shape_of(impl_->file.get(), name, path());
  std::string value(shape.empty() ? 0 : static_cast<std::size_t>(shape[0]), ' ');
  if (!value.empty())
    h5::read_all(impl_->file.get(), name, H5T_NATIVE_CHAR, value.data(), value.size(), path());
  return value;
}
void RowFileReader::rows(const std::string& name, std::int64_t first, std::int64_t n,
                         std::int64_t row_length, std::int64_t* out) const {
  impl_->rows(name, first, n, row_length, out);
}
void RowFileReader::rows(const std::string& name, std::int64_t first, std::int64_t n,
                         std::int64_t row_length, std::int8_t* out) const {
  impl_->rows(name, first, n, row_length, out);
}
const std::string& RowFileReader::path() const { return impl_->path; }

struct RowFileWriter::Impl {
  Impl(const std::string& where, bool overwrite) : path(where), part(where, overwrite) {}
  std::string path;
  Part part;
  h5::Handle file;

  void put(const std::string& name, hid_t type, const std::vector<hsize_t>& shape,
           const void* data) {
    if (const int fault = injected_fault("write", path); fault != 0)
      throw IoError::from_errno("write", path, fault);
    const h5::Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links.get(), 1);
    const h5::Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                           H5Sclose);
    const h5::Handle set(H5Dcreate2(file.get(), name.c_str(), type, space.get(), links.get(),
                                    H5P_DEFAULT, H5P_DEFAULT),
                         H5Dclose);
    h5::check(set.get(), "create " + name + " in", path);
    h5::check(H5Dwrite(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
              "write " + name + " to", path);
  }
  template <class T>
  void rows(const std::string& name, std::int64_t n, std::int64_t length, const T* data) {
    if (n == 0 || length == 0) return;
    put(name, number_type<T>(), {static_cast<hsize_t>(n), static_cast<hsize_t>(length)}, data);
    std::vector<std::int64_t> crcs;
    for (std::int64_t r = 0; r < n; ++r)
      crcs.push_back(io::crc32c(data + r * length, static_cast<std::size_t>(length) * sizeof(T)));
    put(crc_name(name), H5T_NATIVE_INT64, {static_cast<hsize_t>(n)}, crcs.data());
  }
};

RowFileWriter::RowFileWriter(const std::string& path, bool overwrite)
    : impl_(std::make_unique<Impl>(path, overwrite)) {
  h5::silence();
  impl_->file = h5::Handle(
      H5Fcreate(part_path(path).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  h5::check(impl_->file.get(), "create", path);
}
RowFileWriter::~RowFileWriter() = default;

void RowFileWriter::text(const std::string& name, const std::string& value) {
  impl_->put(name, H5T_NATIVE_CHAR, {value.size()}, value.data());
}
void RowFileWriter::rows(const std::string& name, std::int64_t n, std::int64_t row_length,
                         const std::int64_t* data) {
  impl_->rows(name, n, row_length, data);
}
void RowFileWriter::rows(const std::string& name, std::int64_t n, std::int64_t row_length,
                         const std::int8_t* data) {
  impl_->rows(name, n, row_length, data);
}
void RowFileWriter::copy(const RowFileReader& from, const std::string& group,
                         const std::string& to) {
  h5::check(H5Ocopy(from.impl_->file.get(), group.c_str(), impl_->file.get(), to.c_str(),
                    H5P_DEFAULT, H5P_DEFAULT),
            "copy " + group + " to", impl_->path);
}
void RowFileWriter::publish() {
  if (!impl_->file.close()) h5::check(-1, "write", impl_->path);
  impl_->part.publish();
}

}  // namespace ryle
