// SPDX-License-Identifier: BSD-3-Clause
// The data sets of an HDF5 file. Contiguous ones are read by position, past the library and its
// global lock; chunked ones through it, by blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "ryle/core/error.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/scan/scan_arrays.hpp"

namespace ryle::io {
namespace {

constexpr std::size_t kChunk_cache_bytes = std::size_t{32} << 20;
/// deflate makes at most 1032 bytes of one.
constexpr double kMaxUnpacked = 1100;

herr_t list_set(hid_t, const char* name, const H5O_info_t* info, void* list) {
  if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(list)->push_back(name);
  return 0;
}

bool raw_form(hid_t type, RawNumber& number) {
  const H5T_class_t kind = H5Tget_class(type);
  number.bytes = static_cast<int>(H5Tget_size(type));
  number.big_endian = H5Tget_order(type) == H5T_ORDER_BE;
  if (kind == H5T_FLOAT) {
    number.kind = RawNumber::Kind::real;
    return H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F64LE) > 0 ||
           H5Tequal(type, H5T_IEEE_F32BE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0;
  }
  if (kind != H5T_INTEGER) return false;
  number.kind =
      H5Tget_sign(type) == H5T_SGN_2 ? RawNumber::Kind::with_sign : RawNumber::Kind::without_sign;
  return (number.bytes == 1 || number.bytes == 2 || number.bytes == 4 || number.bytes == 8) &&
         H5Tget_precision(type) == static_cast<std::size_t>(number.bytes) * 8;
}

class Hdf5Arrays final : public ScanArrays {
 public:
  explicit Hdf5Arrays(const std::string& path)
      : path_(path), raw_(std::make_shared<const RawFile>(path)) {
    file_ = h5::open_file(path);
    std::vector<std::string> names;
    h5::check(H5Ovisit2(file_.get(), H5_INDEX_NAME, H5_ITER_INC, list_set, &names, H5O_INFO_BASIC),
              "list the data sets of", path);
    for (const auto& name : names) describe(name);
  }

  // Threads that read ask again and again; the library is asked once.
  std::optional<RawLayout> raw(const ScanArray& array) override {
    const std::lock_guard lock(places_mutex_);
    const auto known = places_.find(array.name);
    if (known != places_.end()) return known->second;
    return places_.emplace(array.name, find_place(array)).first->second;
  }

  std::optional<RawLayout> find_place(const ScanArray& array) {
    const hid_t set = open(array.name);
    const h5::Handle type(H5Dget_type(set), H5Tclose);
    const h5::Handle plist(H5Dget_create_plist(set), H5Pclose);
    RawLayout place;
    if (H5Pget_layout(plist.get()) != H5D_CONTIGUOUS || H5Pget_external_count(plist.get()) != 0 ||
        !raw_form(type.get(), place.number))
      return std::nullopt;
    const haddr_t offset = H5Dget_offset(set);
    if (offset == HADDR_UNDEF) return std::nullopt;
    place.file = raw_;
    place.first_byte = static_cast<std::int64_t>(offset);
    if (!raw_->holds(place.first_byte, array.count() * place.number.bytes))
      throw FormatError(path_ + ": ends within " + array.name);
    std::int64_t step = place.number.bytes;
    place.step_bytes.resize(array.shape.size());
    for (std::size_t k = array.shape.size(); k-- > 0;) {
      place.step_bytes[k] = step;
      step *= array.shape[k];
    }
    return place;
  }

  void read_box(const ScanArray& array, const std::vector<std::int64_t>& start,
                const std::vector<std::int64_t>& count, float* values) override {
    const hid_t set = open(array.name);
    const h5::Handle space(H5Dget_space(set), H5Sclose);
    const std::vector<hsize_t> from(start.begin(), start.end()), size(count.begin(), count.end());
    if (!from.empty())
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, from.data(), nullptr, size.data(), nullptr);
    const h5::Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr),
                            H5Sclose);
    h5::read_part(set, array.name, H5T_NATIVE_FLOAT, memory.get(), space.get(), values, path_);
  }

  std::vector<double> numbers(const ScanArray& array) override {
    return h5::read_doubles(file_.get(), array.name, path_);
  }

  std::int64_t rows_together(const ScanArray& array) override {
    const h5::Handle plist(H5Dget_create_plist(open(array.name)), H5Pclose);
    std::vector<hsize_t> chunk(std::max<std::size_t>(array.shape.size(), 1), 1);
    if (H5Pget_layout(plist.get()) == H5D_CHUNKED)
      H5Pget_chunk(plist.get(), static_cast<int>(chunk.size()), chunk.data());
    return static_cast<std::int64_t>(*std::max_element(chunk.begin(), chunk.end()));
  }

  std::string attribute(const std::string& of, const std::string& name) override {
    const h5::Handle object(H5Oopen(file_.get(), of.c_str(), H5P_DEFAULT), H5Oclose);
    if (!object.valid() || H5Aexists(object.get(), name.c_str()) <= 0) {
      H5Eclear2(H5E_DEFAULT);
      return {};
    }
    const h5::Handle attribute(H5Aopen(object.get(), name.c_str(), H5P_DEFAULT), H5Aclose);
    const h5::Handle type(H5Aget_type(attribute.get()), H5Tclose);
    const h5::Handle space(H5Aget_space(attribute.get()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.get()) != 1) return {};
    if (H5Tget_class(type.get()) == H5T_INTEGER) {
      long long value = 0;
      H5Aread(attribute.get(), H5T_NATIVE_LLONG, &value);
      return std::to_string(value);
    }
    if (H5Tget_class(type.get()) == H5T_FLOAT) {
      double value = 0;
      H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value);
      return fmt::format("{}", value);
    }
    if (H5Tget_class(type.get()) != H5T_STRING) return {};
    if (H5Tis_variable_str(type.get()) > 0) {
      char* text = nullptr;
      const h5::Handle memory(H5Tget_native_type(type.get(), H5T_DIR_ASCEND), H5Tclose);
      if (H5Aread(attribute.get(), memory.get(), &text) < 0 || text == nullptr) return {};
      std::string out = text;
      H5free_memory(text);
      return out;
    }
    std::string text(std::min<std::size_t>(H5Tget_size(type.get()), 4096), '\0');
    if (text.size() < H5Tget_size(type.get()) ||
        H5Aread(attribute.get(), type.get(), text.data()) < 0)
      return {};
    return text.substr(0, text.find('\0'));
  }

 private:
  hid_t open(const std::string& name) {
    const auto found = open_.find(name);
    if (found != open_.end()) return found->second.get();
    const h5::Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_chunk_cache(access.get(), 12421, kChunk_cache_bytes, 1.0);
    h5::Handle set(H5Dopen2(file_.get(), name.c_str(), access.get()), H5Dclose);
    if (!set.valid())
      throw FormatError("cannot open " + name + " of " + path_ + ": " + h5::last_error());
    return open_.emplace(name, std::move(set)).first->second.get();
  }

  void describe(const std::string& name) {
    const h5::Handle set(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!set.valid()) return;
    const h5::Handle space(H5Dget_space(set.get()), H5Sclose);
    const h5::Handle type(H5Dget_type(set.get()), H5Tclose);
    ScanArray array;
    array.name = name;
    const H5T_class_t kind = H5Tget_class(type.get());
    array.numbers = kind == H5T_FLOAT || kind == H5T_INTEGER || kind == H5T_ENUM;
    const int rank = H5Sget_simple_extent_ndims(space.get());
    std::vector<hsize_t> shape(std::max(rank, 0));
    if (rank > 0) H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
    double total = 1;
    for (const hsize_t n : shape) total *= static_cast<double>(n);
    array.shape.assign(shape.begin(), shape.end());
    // What is not stored cannot be read: a shape alone would ask for any amount of memory.
    const double stored = static_cast<double>(H5Dget_storage_size(set.get()));
    const double bytes = total * static_cast<double>(H5Tget_size(type.get()));
    if (bytes > kMaxUnpacked * stored + (1 << 20)) array.numbers = false;
    arrays_.push_back(std::move(array));
    arrays_.back().unit = attribute(name, "units");
    if (arrays_.back().unit.empty()) arrays_.back().unit = attribute(name, "unit");
  }

  std::string path_;
  std::shared_ptr<const RawFile> raw_;
  h5::Handle file_;
  std::map<std::string, h5::Handle> open_;
  std::mutex places_mutex_;
  std::map<std::string, std::optional<RawLayout>> places_;
};

}  // namespace

std::unique_ptr<ScanFile> open_hdf5_scans(const std::string& path, const ScanOptions& options) {
  return open_named_scans(path, "HDF5", std::make_unique<Hdf5Arrays>(path), options);
}

}  // namespace ryle::io
