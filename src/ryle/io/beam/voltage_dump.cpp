// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/beam/voltage_dump.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {

namespace h5 = io::h5;

std::int64_t VoltageRecords::append(const VoltageRecords& more) {
  const std::size_t room = kMaxWaiting - std::min(kMaxWaiting, triggers.size());
  const auto n = static_cast<std::ptrdiff_t>(std::min(room, more.triggers.size()));
  triggers.insert(triggers.end(), more.triggers.begin(), more.triggers.begin() + n);
  dumps.insert(dumps.end(), more.dumps.begin(), more.dumps.end());
  return std::ssize(more.triggers) - n;
}

Tick VoltageForm::unit_ticks() const { return content == Content::packets ? 128 : 1; }

std::int64_t VoltageForm::unit_bytes() const {
  if (content == Content::samples) return layout.sample_stride_bits / 8;
  return unit_ticks() * n_inputs * bits_per_sample(format) / 8;
}

namespace {

/// Axes of a unit in the file, and the type of their values.
struct UnitShape {
  std::vector<hsize_t> axes;
  hid_t type = H5T_NATIVE_UINT8;
};
UnitShape unit_shape(const VoltageForm& form) {
  const auto inputs = static_cast<hsize_t>(form.n_inputs);
  if (form.content == VoltageForm::Content::packets)
    return {{inputs / 2, static_cast<hsize_t>(form.unit_ticks()), 2}, H5T_NATIVE_UINT8};
  if (form.content == VoltageForm::Content::samples)
    return {{static_cast<hsize_t>(form.unit_bytes())}, H5T_NATIVE_UINT8};
  if (form.format == SampleFormat::ci4) return {{inputs}, H5T_NATIVE_UINT8};
  return {{inputs, 2}, H5T_NATIVE_INT8};
}

const char* name_of(VoltageForm::Content content) {
  return content == VoltageForm::Content::packets   ? "ci4 packets"
         : content == VoltageForm::Content::spectra ? "spectra"
                                                    : "samples";
}

}  // namespace

struct VoltageDumpWriter::Impl {
  Impl(const std::string& where, const VoltageDumpInfo& wanted, bool replace)
      : path(where), info(wanted), unit(unit_shape(wanted.form)) {
    const VoltageForm& form = info.form;
    RYLE_ASSERT(form.n_inputs > 0 && form.n_rows > 0 && info.n_units > 0);
    RYLE_ASSERT(form.content != VoltageForm::Content::packets || form.n_inputs % 2 == 0);
    RYLE_ASSERT(form.content != VoltageForm::Content::samples ||
                form.layout.sample_stride_bits % 8 == 0);
    RYLE_ASSERT(static_cast<std::int64_t>(info.first_tick.size()) == form.n_rows);
    bytes = checked_product({form.n_rows, info.n_units, form.unit_bytes()}, "voltage dump");
    h5::silence();
    part.emplace(path, replace);
    file = h5::Handle(H5Fcreate(part_path(path).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                      H5Fclose);
    h5::check(file.get(), "create", path);
    header();
    create_voltages();
  }

  h5::Handle group(const char* name) {
    h5::Handle out(H5Gcreate2(file.get(), name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    h5::check(out.get(), std::string("create ") + name + " in", path);
    return out;
  }

  void header() {
    const h5::Handle head = group("header");
    const hid_t h = head.get();
    h5::put_text(h, "creator", "ryle " + std::string(version()), path);
    h5::put_text(h, "history", info.history, path);
    h5::put_text(h, "format", name_of(info.form.content), path);
    h5::put_text(h, "telescope", info.telescope, path);
    if (info.form.content == VoltageForm::Content::samples)
      sample_header(h);
    else
      channel_header(h);
    h5::put_int(h, "epoch_tai_ns", info.clock.epoch_tai_ns, path);
    h5::put_text(h, "epoch_utc", utc_iso(info.clock.epoch_tai_ns, 9), path);
    h5::put_int(h, "rate_numerator_hz", info.clock.rate_hz.num, path);
    h5::put_int(h, "rate_denominator", info.clock.rate_hz.den, path);
    h5::put_double(h, "k_dm", info.k_dm, path);
    if (!info.input_line.empty())
      h5::put_array(h, "input_line", H5T_NATIVE_INT64, info.input_line.data(),
                    {info.input_line.size()}, path);
    h5::put_array(file.get(), "first_tick", H5T_NATIVE_INT64, info.first_tick.data(),
                  {info.first_tick.size()}, path);
  }

  void channel_header(hid_t h) const {
    std::vector<double> centers;
    for (std::int64_t c = 0; c < info.form.n_rows; ++c)
      centers.push_back(info.frequency.center_hz(c));
    h5::put_array(h, "channel_center_hz", H5T_NATIVE_DOUBLE, centers.data(), {centers.size()},
                  path);
    h5::put_double(h, "channel_width_hz", info.frequency.channel_width_hz, path);
    h5::put_text(h, "sample_format", std::string(name(info.form.format)), path);
  }

  void sample_header(hid_t h) const {
    const SampleLayout& layout = info.form.layout;
    h5::put_text(h, "sample_format", std::string(name(layout.format)), path);
    const bool complex = is_complex(layout.format);
    h5::put_int(h, "complex", complex ? 1 : 0, path);
    h5::put_int(
        h, "bits_per_part",
        layout.format == SampleFormat::ci5 ? 5 : bits_per_sample(layout.format) / (complex ? 2 : 1),
        path);
    h5::put_int(h, "n_inputs", info.form.n_inputs, path);
    h5::put_int(h, "encoding", static_cast<std::int64_t>(layout.encoding), path);
    h5::put_int(h, "msb_first", layout.msb_first ? 1 : 0, path);
    h5::put_int(h, "imag_first", layout.imag_first ? 1 : 0, path);
    h5::put_int(h, "re_shift", layout.re_shift, path);
    h5::put_int(h, "im_shift", layout.im_shift, path);
    h5::put_int(h, "input_stride_bits", layout.input_stride_bits, path);
    h5::put_int(h, "sample_stride_bits", layout.sample_stride_bits, path);
    h5::put_double(h, "reference_hz", info.form.reference_hz, path);
    h5::put_int(h, "inverted_band", info.form.inverted_band ? 1 : 0, path);
  }

  /// [n_rows][n_units] and the axes of a unit.
  std::vector<hsize_t> with_unit(std::int64_t n_rows, std::int64_t n_units) const {
    std::vector<hsize_t> shape{static_cast<hsize_t>(n_rows), static_cast<hsize_t>(n_units)};
    shape.insert(shape.end(), unit.axes.begin(), unit.axes.end());
    return shape;
  }

  // In one piece and never filled: units that are not there stay holes of the file, which read as
  // 0.
  void create_voltages() {
    const auto shape = with_unit(info.form.n_rows, info.n_units);
    const h5::Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                           H5Sclose);
    const h5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
    voltages = h5::Handle(H5Dcreate2(file.get(), "voltages", unit.type, space.get(), H5P_DEFAULT,
                                     properties.get(), H5P_DEFAULT),
                          H5Dclose);
    h5::check(voltages.get(), "create voltages in", path);
  }

  // Chunks that are never written read as present.
  void create_present() {
    const std::array<hsize_t, 3> shape{static_cast<hsize_t>(info.form.n_rows),
                                       static_cast<hsize_t>(info.n_units),
                                       static_cast<hsize_t>(present_bytes())};
    constexpr hsize_t kChunkBytes = 1 << 16;
    const std::array<hsize_t, 3> chunk{1, std::clamp<hsize_t>(kChunkBytes / shape[2], 1, shape[1]),
                                       shape[2]};
    const std::uint8_t all = 0xff;
    const h5::Handle space(H5Screate_simple(3, shape.data(), nullptr), H5Sclose);
    const h5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_chunk(properties.get(), 3, chunk.data());
    H5Pset_fill_value(properties.get(), H5T_NATIVE_UINT8, &all);
    present = h5::Handle(H5Dcreate2(file.get(), "present", H5T_NATIVE_UINT8, space.get(),
                                    H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                         H5Dclose);
    h5::check(present.get(), "create present in", path);
  }
  std::int64_t present_bytes() const { return (info.form.n_inputs + 7) / 8; }

  void write_present(std::int64_t row, std::int64_t first, std::int64_t n,
                     const std::uint8_t* bits) {
    if (!present.valid()) create_present();
    put({static_cast<hsize_t>(row), static_cast<hsize_t>(first), 0},
        {1, static_cast<hsize_t>(n), static_cast<hsize_t>(present_bytes())},
        {1, static_cast<hsize_t>(n), static_cast<hsize_t>(present_bytes())}, present,
        H5T_NATIVE_UINT8, bits);
  }

  void write(std::int64_t first_row, std::int64_t n_rows, std::int64_t first, std::int64_t n,
             const void* data, std::int64_t stride_units) {
    std::vector<hsize_t> start(2 + unit.axes.size(), 0);
    start[0] = static_cast<hsize_t>(first_row);
    start[1] = static_cast<hsize_t>(first);
    put(start, with_unit(n_rows, n), with_unit(n_rows, stride_units), voltages, unit.type, data);
  }

  /// The first `count` of `memory` to the part of `set` that begins at `start`.
  void put(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count,
           const std::vector<hsize_t>& memory, const h5::Handle& set, hid_t type,
           const void* data) const {
    if (const int fault = injected_fault("write", path); fault != 0)
      throw IoError::from_errno("write", path, fault);
    const std::vector<hsize_t> origin(start.size(), 0);
    const h5::Handle to(H5Dget_space(set.get()), H5Sclose);
    const h5::Handle from(H5Screate_simple(static_cast<int>(memory.size()), memory.data(), nullptr),
                          H5Sclose);
    h5::check(
        H5Sselect_hyperslab(to.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        "write", path);
    h5::check(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, origin.data(), nullptr, count.data(),
                                  nullptr),
              "write", path);
    h5::check(H5Dwrite(set.get(), type, from.get(), to.get(), H5P_DEFAULT, data), "write", path);
  }

  void put_triggers(const std::vector<DumpTrigger>& triggers, std::int64_t n_unlisted) {
    const h5::Handle group_of = group("triggers");
    const hid_t g = group_of.get();
    h5::put_int(g, "n_unlisted", n_unlisted, path);
    const std::vector<hsize_t> shape{triggers.size()};
    std::vector<std::int64_t> instants, events;
    std::vector<std::string> utc, beams;
    for (const auto& t : triggers) {
      instants.push_back(t.tai_ns);
      utc.push_back(utc_iso(t.tai_ns, 9));
      beams.push_back(t.beam);
      events.push_back(t.event);
    }
    h5::put_array(g, "tai_ns", H5T_NATIVE_INT64, instants.data(), shape, path);
    h5::put_array(g, "event", H5T_NATIVE_INT64, events.data(), shape, path);
    h5::put_texts(g, "utc", utc, shape, path);
    h5::put_texts(g, "beam", beams, shape, path);
    const auto numbers = [&](const char* name, double DumpTrigger::*member) {
      std::vector<double> values;
      for (const auto& t : triggers) values.push_back(t.*member);
      h5::put_array(g, name, H5T_NATIVE_DOUBLE, values.data(), shape, path);
    };
    numbers("dm_pc_cm3", &DumpTrigger::dm_pc_cm3);
    numbers("dm_error", &DumpTrigger::dm_error);
    numbers("width_s", &DumpTrigger::width_s);
    numbers("snr", &DumpTrigger::snr);
  }

  void finish(const std::vector<std::uint8_t>& received, const std::vector<DumpTrigger>& triggers,
              std::int64_t n_unlisted) {
    if (info.form.content == VoltageForm::Content::packets) {
      RYLE_ASSERT(static_cast<std::int64_t>(received.size()) == info.form.n_rows * info.n_units);
      h5::put_array(file.get(), "present", H5T_NATIVE_UINT8, received.data(),
                    {static_cast<hsize_t>(info.form.n_rows), static_cast<hsize_t>(info.n_units)},
                    path);
    }
    put_triggers(triggers, n_unlisted);
    if (!present.close() || !voltages.close() || !file.close()) h5::check(-1, "close", path);
    part->publish();
  }

  std::string path;
  VoltageDumpInfo info;
  UnitShape unit;
  std::int64_t bytes = 0;
  std::optional<Part> part;
  h5::Handle file, voltages, present;
};

VoltageDumpWriter::VoltageDumpWriter(const std::string& path, const VoltageDumpInfo& info,
                                     bool overwrite)
    : impl_(std::make_unique<Impl>(path, info, overwrite)) {}

VoltageDumpWriter::~VoltageDumpWriter() = default;

void VoltageDumpWriter::write(std::int64_t first_row, std::int64_t n_rows, std::int64_t first,
                              std::int64_t n, const void* data, std::int64_t stride_units) {
  impl_->write(first_row, n_rows, first, n, data, stride_units);
}

void VoltageDumpWriter::write_present(std::int64_t row, std::int64_t first, std::int64_t n,
                                      const std::uint8_t* bits) {
  impl_->write_present(row, first, n, bits);
}

void VoltageDumpWriter::finish(const std::vector<std::uint8_t>& present,
                               const std::vector<DumpTrigger>& triggers, std::int64_t n_unlisted) {
  impl_->finish(present, triggers, n_unlisted);
}

std::int64_t VoltageDumpWriter::bytes() const { return impl_->bytes; }

}  // namespace ryle
