// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/beam/beam_file.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle {
namespace {

namespace h5 = io::h5;
using h5::Growing;
using h5::Handle;

/// How a value of a format lies in memory and in the file.
struct BeamFormat {
  const char* name;
  bool voltage;
  std::int64_t bytes;  ///< of one number, complex ones together
  std::int64_t parts;  ///< last axis of the file: 2 where HDF5 has no such complex type
};
constexpr BeamFormat kBeamFormats[] = {
    {"f32", false, 4, 1}, {"f16", false, 2, 1}, {"u16", false, 2, 1}, {"u8", false, 1, 1},
    {"cf32", true, 8, 1}, {"cf16", true, 4, 2}, {"ci8", true, 2, 2},  {"ci4", true, 1, 1}};

const BeamFormat& beam_format(const std::string& name) {
  for (const auto& format : kBeamFormats) {
    if (name == format.name) return format;
  }
  throw ConfigError("beams are written as f32 f16 u16 u8 cf32 cf16 ci8 ci4, not \"" + name + "\"");
}

Handle native(hid_t type) { return {H5Tcopy(type), H5Tclose}; }

// IEEE half, as h5py and numpy know it.
Handle half_type() {
  Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), 15);
  return type;
}

Handle element_type(const BeamFormat& format) {
  const std::string_view name = format.name;
  if (name == "cf32") return h5::complex_type();
  if (name == "f16" || name == "cf16") return half_type();
  if (name == "u16") return native(H5T_NATIVE_UINT16);
  if (name == "ci8") return native(H5T_NATIVE_INT8);
  return native(name == "f32" ? H5T_NATIVE_FLOAT : H5T_NATIVE_UINT8);
}

}  // namespace

struct BeamFileWriter::Impl {
  Impl(const std::string& where, const BeamFileInfo& wanted, bool replace)
      : path(where), info(wanted), format(beam_format(wanted.format)), part(where, replace) {
    h5::silence();
    file = Handle(H5Fcreate(part.unfinished().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                  H5Fclose);
    h5::check(file.get(), "create", path);
    header();
    create();
  }

  hsize_t rows() const { return info.beams.size(); }
  hsize_t products() const { return format.voltage ? 1 : info.products.size(); }
  hsize_t channels() const { return static_cast<hsize_t>(info.frequency.n_channels); }

  Handle group(const char* name) {
    Handle out(H5Gcreate2(file.get(), name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    h5::check(out.get(), std::string("create ") + name + " in", path);
    return out;
  }

  void header() {
    const Handle head = group("header");
    const hid_t h = head.get();
    h5::put_text(h, "creator", "ryle " + std::string(version()), path);
    h5::put_text(h, "history", info.history, path);
    h5::put_text(h, "telescope", info.telescope, path);
    h5::put_double(h, "latitude_deg", info.latitude_rad / kDegree_rad, path);
    h5::put_double(h, "longitude_deg", info.longitude_rad / kDegree_rad, path);
    h5::put_double(h, "height_m", info.height_m, path);
    h5::put_text(h, "format", info.format, path);
    h5::put_texts(h, "beams", info.beams, {rows()}, path);
    h5::put_texts(h, "products", info.products, {info.products.size()}, path);
    std::vector<double> centers;
    for (std::int64_t c = 0; c < info.frequency.n_channels; ++c)
      centers.push_back(info.frequency.center_hz(c));
    h5::put_array(h, "channel_center_hz", H5T_NATIVE_DOUBLE, centers.data(), {channels()}, path);
    h5::put_double(h, "channel_width_hz", info.frequency.channel_width_hz, path);
    h5::put_int(h, "integration_spectra", info.integration, path);
    h5::put_int(h, "epoch_tai_ns", info.clock.epoch_tai_ns, path);
    h5::put_text(h, "epoch_utc", utc_iso(info.clock.epoch_tai_ns, 9), path);
    h5::put_int(h, "rate_numerator_hz", info.clock.rate_hz.num, path);
    h5::put_int(h, "rate_denominator", info.clock.rate_hz.den, path);
  }

  void create() {
    // Chunks of about 1 MiB.
    const auto pols = format.voltage ? static_cast<hsize_t>(info.products.size()) : hsize_t{1};
    const hsize_t bytes =
        rows() * products() * channels() * pols * static_cast<hsize_t>(format.bytes);
    const hsize_t times =
        std::clamp<hsize_t>((hsize_t{1} << 20) / std::max<hsize_t>(bytes, 1), 1, 4096);
    std::vector<hsize_t> shape{times, rows()};
    if (format.voltage) {
      shape.insert(shape.end(), {channels(), pols});
    } else {
      shape.insert(shape.end(), {products(), channels()});
    }
    if (format.parts > 1) shape.push_back(static_cast<hsize_t>(format.parts));
    values = Growing(file.get(), "values", element_type(format), shape, path);
    time = Growing(file.get(), "time_tai_ns", native(H5T_NATIVE_INT64), {times}, path);
    gulps = group("gulps");
    const hid_t g = gulps.get();
    const auto counts = [&] { return native(H5T_NATIVE_UINT32); };
    first = Growing(g, "first_value", native(H5T_NATIVE_INT64), {64}, path);
    number = Growing(g, "n_values", native(H5T_NATIVE_INT64), {64}, path);
    direction = Growing(g, "direction_enu", native(H5T_NATIVE_DOUBLE), {16, rows(), 3}, path);
    position = Growing(g, "position_icrs_deg", native(H5T_NATIVE_DOUBLE), {16, rows(), 2}, path);
    n_used = Growing(g, "n_used", counts(), {1, rows(), channels()}, path);
    low = Growing(g, "saturated_low", counts(), {1, rows(), products(), channels()}, path);
    high = Growing(g, "saturated_high", counts(), {1, rows(), products(), channels()}, path);
    scale_group = group("scales");
    const hid_t s = scale_group.get();
    from_value = Growing(s, "from_value", native(H5T_NATIVE_INT64), {16}, path);
    const auto cells = [&](const char* name) {
      return Growing(s, name, native(H5T_NATIVE_FLOAT), {1, rows(), products(), channels()}, path);
    };
    scale = cells("scale");
    offset = cells("offset");
  }

  void append(const Values& v, const Metadata& metadata) {
    if (const int fault = injected_fault("write", path); fault != 0)
      throw IoError::from_errno("write", path, fault);
    transpose(v);
    const Handle type = element_type(format);
    values.append(type.get(), buffer.data(), static_cast<hsize_t>(v.n), path);
    std::vector<std::int64_t> times;
    for (std::int64_t k = 0; k < v.n; ++k) times.push_back(info.clock.tai_ns(v.first + k));
    time.append(H5T_NATIVE_INT64, times.data(), static_cast<hsize_t>(v.n), path);
    first.append(H5T_NATIVE_INT64, &v.first, 1, path);
    number.append(H5T_NATIVE_INT64, &v.n, 1, path);
    std::vector<double> enu(3 * rows(), 0.0), icrs(2 * rows(), 0.0);
    for (std::size_t row = 0; row < metadata.directions_enu.size() && row < rows(); ++row)
      std::copy_n(metadata.directions_enu[row].data(), 3, enu.data() + 3 * row);
    for (std::size_t row = 0; row < metadata.positions.size() && row < rows(); ++row) {
      icrs[2 * row] = metadata.positions[row].ra_rad / kDegree_rad;
      icrs[2 * row + 1] = metadata.positions[row].dec_rad / kDegree_rad;
    }
    direction.append(H5T_NATIVE_DOUBLE, enu.data(), 1, path);
    position.append(H5T_NATIVE_DOUBLE, icrs.data(), 1, path);
    const auto counts = [&](Growing& to, std::vector<std::uint32_t> row, hsize_t wanted) {
      row.resize(wanted);
      to.append(H5T_NATIVE_UINT32, row.data(), 1, path);
    };
    counts(n_used, metadata.n_used, rows() * channels());
    counts(low, metadata.saturated_low, rows() * products() * channels());
    counts(high, metadata.saturated_high, rows() * products() * channels());
  }

  // Time becomes the slowest axis.
  void transpose(const Values& v) {
    const auto n_rows = static_cast<std::int64_t>(rows()), n_channels = info.frequency.n_channels;
    const auto pols = format.voltage ? static_cast<std::int64_t>(info.products.size()) : 1;
    const auto n_products = static_cast<std::int64_t>(products());
    const auto size = static_cast<std::size_t>(format.bytes * pols);
    const std::int64_t time_bytes =
        n_rows * n_products * n_channels * static_cast<std::int64_t>(size);
    buffer.resize(v.n * time_bytes);
    for (std::int64_t row = 0; row < n_rows; ++row) {
      for (std::int64_t product = 0; product < n_products; ++product) {
        for (std::int64_t channel = 0; channel < n_channels; ++channel) {
          const auto* from = static_cast<const std::byte*>(v.data) + row * v.row_stride_bytes +
                             product * v.product_stride_bytes + channel * v.channel_stride_bytes;
          std::byte* to = buffer.data() + ((row * n_products + product) * n_channels + channel) *
                                              static_cast<std::int64_t>(size);
          for (std::int64_t k = 0; k < v.n; ++k) {
            std::memcpy(to, from, size);
            from += size;
            to += time_bytes;
          }
        }
      }
    }
  }

  void finish() {
    for (Growing* set : {&values, &time, &first, &number, &direction, &position, &n_used, &low,
                         &high, &from_value, &scale, &offset})
      set->reset();
    gulps.reset();
    scale_group.reset();
    if (!file.close()) h5::check(-1, "close", path);
    part.publish();
  }

  std::string path;
  BeamFileInfo info;
  const BeamFormat& format;
  Part part;
  Handle file, gulps, scale_group;
  Growing values, time, first, number, direction, position, n_used, low, high;
  Growing from_value, scale, offset;
  std::vector<std::byte> buffer;
};

BeamFileWriter::BeamFileWriter(const std::string& path, const BeamFileInfo& info, bool overwrite)
    : impl_(std::make_unique<Impl>(path, info, overwrite)) {}

BeamFileWriter::~BeamFileWriter() = default;

void BeamFileWriter::append(const Values& values, const Metadata& metadata) {
  if (values.n > 0) impl_->append(values, metadata);
}

void BeamFileWriter::scales(std::int64_t from, const std::vector<float>& scale,
                            const std::vector<float>& offset) {
  auto& c = *impl_;
  RYLE_ASSERT(scale.size() == c.rows() * c.products() * c.channels());
  c.from_value.append(H5T_NATIVE_INT64, &from, 1, c.path);
  c.scale.append(H5T_NATIVE_FLOAT, scale.data(), 1, c.path);
  c.offset.append(H5T_NATIVE_FLOAT, offset.data(), 1, c.path);
}

void BeamFileWriter::finish() { impl_->finish(); }

}  // namespace ryle
