// SPDX-License-Identifier: BSD-3-Clause
// A walk through all of an HDF5 file that somebody else may have made, in a child process.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ryle/core/child.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/hdf5/filters.hpp"
#include "ryle/hdf5/handle.hpp"
#include "ryle/hdf5/walk.hpp"

namespace ryle::hdf5 {
namespace {

constexpr int kDeepest_group = 32;
constexpr std::size_t kMaxObjects = 100'000;
/// Tables of headers are read whole by the walk.
constexpr std::int64_t kSmall_bytes = 1 << 20;
constexpr std::int64_t kAllSmall_bytes = 64 << 20;
/// deflate makes at most 1032 bytes of one; tables of flags come near it, whole files do not.
constexpr std::int64_t kSpare_bytes = 64 << 20;
constexpr std::int64_t kMaxRatio = 64;

herr_t keep_message(unsigned, const H5E_error2_t* error, void* out) {
  if (error->desc != nullptr && *error->desc != '\0') *static_cast<std::string*>(out) = error->desc;
  return 0;
}

/// What HDF5 says first of what went wrong, as one line.
std::string innermost_error() {
  std::string text = "HDF5 gives no reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_message, &text);
  H5Eclear2(H5E_DEFAULT);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class Walk {
 public:
  Walk(std::string path, std::int64_t file_bytes)
      : path_(std::move(path)), limit_bytes_(kSpare_bytes + kMaxRatio * file_bytes) {}

  void group(hid_t id, const std::string& name, int depth) {
    if (depth > kDeepest_group)
      fail(fmt::format("groups are nested more than {} deep", kDeepest_group));
    Links links{this, id, name, depth, {}};
    // Errors do not pass through the library: they wait until it has returned.
    if (H5Literate(id, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, on_link, &links) < 0 &&
        links.error.empty())
      fail("group " + name + " cannot be listed: " + innermost_error());
    if (!links.error.empty()) throw FormatError(links.error);
  }

 private:
  struct Links {
    Walk* walk;
    hid_t group;
    const std::string& name;
    int depth;
    std::string error;
  };

  [[noreturn]] void fail(const std::string& what) const { throw FormatError(path_ + ": " + what); }

  static herr_t on_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
    auto& links = *static_cast<Links*>(data);
    try {
      links.walk->link(links, name, *info);
    } catch (const std::exception& error) {
      links.error = error.what();
      return -1;
    }
    return 0;
  }

  void link(const Links& from, const char* last_name, const H5L_info_t& info) {
    const std::string name = from.name + last_name;
    if (++n_links_ > kMaxObjects) fail(fmt::format("more than {} links", kMaxObjects));
    if (info.type == H5L_TYPE_SOFT) return;
    if (info.type != H5L_TYPE_HARD)
      fail(name + " is a link to another file; copy what it points at into this one");
    if (!seen_.insert(info.u.address).second) return;
    const Handle object(H5Oopen(from.group, last_name, H5P_DEFAULT), H5Oclose);
    if (!object.valid()) fail(name + " cannot be opened: " + innermost_error());
    attributes(object.get(), name);
    const H5I_type_t type = H5Iget_type(object.get());
    if (type == H5I_GROUP) group(object.get(), name + "/", from.depth + 1);
    if (type == H5I_DATASET) data_set(object.get(), name);
  }

  /// Bytes of all values. Throws when the file cannot hold as many.
  std::int64_t bytes_of(hid_t space, hid_t type, const std::string& name) const {
    const int rank = H5Sget_simple_extent_ndims(space);
    std::vector<hsize_t> shape(std::max(rank, 0));
    if (rank > 0) H5Sget_simple_extent_dims(space, shape.data(), nullptr);
    double bytes = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : 1;
    for (const hsize_t n : shape) bytes *= static_cast<double>(n);
    bytes *= static_cast<double>(std::max<std::size_t>(H5Tget_size(type), 1));
    if (bytes > static_cast<double>(limit_bytes_))
      fail(
          fmt::format("{} declares {:.4g} bytes; with the size of the file at most {} are believed",
                      name, bytes, limit_bytes_));
    return static_cast<std::int64_t>(bytes);
  }

  void attributes(hid_t object, const std::string& of) {
    H5O_info_t info{};
    if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0)
      fail("the attributes of " + of + " cannot be counted: " + innermost_error());
    if (info.num_attrs > kMaxObjects) fail(fmt::format("{} has too many attributes", of));
    for (hsize_t k = 0; k < info.num_attrs; ++k) {
      const Handle attribute(
          H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_NATIVE, k, H5P_DEFAULT, H5P_DEFAULT),
          H5Aclose);
      if (!attribute.valid())
        fail("an attribute of " + of + " cannot be read: " + innermost_error());
      const Handle type(H5Aget_type(attribute.get()), H5Tclose);
      const Handle space(H5Aget_space(attribute.get()), H5Sclose);
      const std::int64_t n_bytes = bytes_of(space.get(), type.get(), "an attribute of " + of);
      read_small(n_bytes, type.get(), space.get(),
                 [&](void* to) { return H5Aread(attribute.get(), type.get(), to); });
    }
  }

  void data_set(hid_t set, const std::string& name) {
    const Handle plist(H5Dget_create_plist(set), H5Pclose);
    if (H5Pget_external_count(plist.get()) > 0 || H5Pget_layout(plist.get()) == H5D_VIRTUAL)
      fail(name + " has its data in other files; copy them into this one (h5repack)");
    const Handle type(H5Dget_type(set), H5Tclose);
    const Handle space(H5Dget_space(set), H5Sclose);
    if (!type.valid() || !space.valid()) fail(name + " is damaged: " + innermost_error());
    const std::int64_t n_bytes = bytes_of(space.get(), type.get(), name);
    all_bytes_ += n_bytes;
    if (all_bytes_ > 2 * limit_bytes_)
      fail(fmt::format(
          "its data sets declare more than {} bytes, beyond what a file of its size holds",
          2 * limit_bytes_));
    H5Dget_storage_size(set);  // walks the index of its chunks
    // What cannot be read (a filter that is missing, a damaged chunk) is told by who reads it.
    read_small(n_bytes, type.get(), space.get(),
               [&](void* to) { return read(set, type.get(), H5S_ALL, H5S_ALL, to); });
    H5Eclear2(H5E_DEFAULT);
  }

  template <class Read>
  void read_small(std::int64_t n_bytes, hid_t type, hid_t space, const Read& read_values) {
    if (n_bytes == 0 || n_bytes > kSmall_bytes || small_bytes_ + n_bytes > kAllSmall_bytes) return;
    small_bytes_ += n_bytes;
    std::vector<char> values(n_bytes);
    if (read_values(values.data()) >= 0 &&
        H5Tdetect_class(type, H5T_VLEN) + H5Tis_variable_str(type) > 0)
      H5Dvlen_reclaim(type, space, H5P_DEFAULT, values.data());
  }

  std::string path_;
  std::int64_t limit_bytes_, all_bytes_ = 0, small_bytes_ = 0;
  std::size_t n_links_ = 0;
  std::set<haddr_t> seen_;
};

}  // namespace

void walk_in_child(const std::string& path, unsigned access) {
  const std::int64_t file_bytes = require_regular_file(path);
  run_in_child(path, {}, [&] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Handle file(open_unwalked(path, access), H5Fclose);
    if (!file.valid())
      throw FormatError("cannot read " + path + ": " + innermost_error() +
                        " (no HDF5 file, a damaged or an unfinished one)");
    const Handle root(H5Gopen2(file.get(), "/", H5P_DEFAULT), H5Gclose);
    if (!root.valid())
      throw FormatError("cannot read the root group of " + path + ": " + innermost_error());
    Walk(path, file_bytes).group(root.get(), "/", 0);
  });
}

}  // namespace ryle::hdf5
