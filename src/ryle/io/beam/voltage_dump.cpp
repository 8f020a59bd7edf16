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

struct VoltageDumpWriter::Impl {
  Impl(const std::string& where, const VoltageDumpInfo& wanted, bool replace)
      : path(where), info(wanted) {
    n_channels = info.frequency.n_channels;
    n_antennas = static_cast<std::int64_t>(info.input_line.size());
    RYLE_ASSERT(n_antennas % 2 == 0 && n_antennas > 0 && info.n_packets > 0);
    RYLE_ASSERT(static_cast<std::int64_t>(info.first_tick.size()) == n_channels);
    bytes =
        checked_product({n_channels, info.n_packets, kPacketSpectra, n_antennas}, "voltage dump");
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
    h5::put_text(h, "format", "ci4 packets", path);
    h5::put_text(h, "telescope", info.telescope, path);
    std::vector<double> centers;
    for (std::int64_t c = 0; c < n_channels; ++c) centers.push_back(info.frequency.center_hz(c));
    h5::put_array(h, "channel_center_hz", H5T_NATIVE_DOUBLE, centers.data(),
                  {static_cast<hsize_t>(n_channels)}, path);
    h5::put_double(h, "channel_width_hz", info.frequency.channel_width_hz, path);
    h5::put_int(h, "epoch_tai_ns", info.clock.epoch_tai_ns, path);
    h5::put_text(h, "epoch_utc", utc_iso(info.clock.epoch_tai_ns, 9), path);
    h5::put_int(h, "rate_numerator_hz", info.clock.rate_hz.num, path);
    h5::put_int(h, "rate_denominator", info.clock.rate_hz.den, path);
    h5::put_double(h, "k_dm", info.k_dm, path);
    h5::put_array(h, "input_line", H5T_NATIVE_INT64, info.input_line.data(),
                  {static_cast<hsize_t>(n_antennas)}, path);
    h5::put_array(file.get(), "first_tick", H5T_NATIVE_INT64, info.first_tick.data(),
                  {static_cast<hsize_t>(n_channels)}, path);
  }

  // In one piece and never filled: packets that are not there stay holes of the file, which read
  // as 0.
  void create_voltages() {
    const std::array<hsize_t, 5> shape{static_cast<hsize_t>(n_channels),
                                       static_cast<hsize_t>(info.n_packets),
                                       static_cast<hsize_t>(n_antennas / 2), kPacketSpectra, 2};
    const h5::Handle space(H5Screate_simple(5, shape.data(), nullptr), H5Sclose);
    const h5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
    voltages = h5::Handle(H5Dcreate2(file.get(), "voltages", H5T_NATIVE_UINT8, space.get(),
                                     H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                          H5Dclose);
    h5::check(voltages.get(), "create voltages in", path);
  }

  void write(std::int64_t first_channel, std::int64_t channels, std::int64_t first, std::int64_t n,
             const void* data, std::int64_t stride_packets) {
    if (const int fault = injected_fault("write", path); fault != 0)
      throw IoError::from_errno("write", path, fault);
    const auto pairs = static_cast<hsize_t>(n_antennas / 2);
    const std::array<hsize_t, 5> start{static_cast<hsize_t>(first_channel),
                                       static_cast<hsize_t>(first), 0, 0, 0};
    const std::array<hsize_t, 5> count{static_cast<hsize_t>(channels), static_cast<hsize_t>(n),
                                       pairs, kPacketSpectra, 2};
    const std::array<hsize_t, 5> memory{static_cast<hsize_t>(channels),
                                        static_cast<hsize_t>(stride_packets), pairs, kPacketSpectra,
                                        2};
    const std::array<hsize_t, 5> origin{};
    const h5::Handle to(H5Dget_space(voltages.get()), H5Sclose);
    const h5::Handle from(H5Screate_simple(5, memory.data(), nullptr), H5Sclose);
    h5::check(
        H5Sselect_hyperslab(to.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        "write", path);
    h5::check(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, origin.data(), nullptr, count.data(),
                                  nullptr),
              "write", path);
    h5::check(H5Dwrite(voltages.get(), H5T_NATIVE_UINT8, from.get(), to.get(), H5P_DEFAULT, data),
              "write", path);
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

  void finish(const std::vector<std::uint8_t>& present, const std::vector<DumpTrigger>& triggers,
              std::int64_t n_unlisted) {
    RYLE_ASSERT(static_cast<std::int64_t>(present.size()) == n_channels * info.n_packets);
    h5::put_array(file.get(), "present", H5T_NATIVE_UINT8, present.data(),
                  {static_cast<hsize_t>(n_channels), static_cast<hsize_t>(info.n_packets)}, path);
    put_triggers(triggers, n_unlisted);
    if (!voltages.close() || !file.close()) h5::check(-1, "close", path);
    part->publish();
  }

  std::string path;
  VoltageDumpInfo info;
  std::int64_t n_channels = 0, n_antennas = 0, bytes = 0;
  std::optional<Part> part;
  h5::Handle file, voltages;
};

VoltageDumpWriter::VoltageDumpWriter(const std::string& path, const VoltageDumpInfo& info,
                                     bool overwrite)
    : impl_(std::make_unique<Impl>(path, info, overwrite)) {}

VoltageDumpWriter::~VoltageDumpWriter() = default;

void VoltageDumpWriter::write(std::int64_t first_channel, std::int64_t n_channels,
                              std::int64_t first, std::int64_t n, const void* data,
                              std::int64_t stride_packets) {
  impl_->write(first_channel, n_channels, first, n, data, stride_packets);
}

void VoltageDumpWriter::finish(const std::vector<std::uint8_t>& present,
                               const std::vector<DumpTrigger>& triggers, std::int64_t n_unlisted) {
  impl_->finish(present, triggers, n_unlisted);
}

std::int64_t VoltageDumpWriter::bytes() const { return impl_->bytes; }

}  // namespace ryle
