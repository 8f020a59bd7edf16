// SPDX-License-Identifier: BSD-3-Clause
// Voltage dumps of live beams (io/beam/voltage_dump.hpp): packets of BEST-2 as they came, channels
// with windows of their own, and which packets were there.
#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/hdf5/filters.hpp"
#include "ryle/hdf5/handle.hpp"
#include "ryle/ingest/hdf5_input.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"

namespace ryle::detail {
namespace {

constexpr std::int64_t kDumpPacket = 128;  // spectra
constexpr hsize_t kMaxDumpChannels = 1 << 20;
constexpr hsize_t kMaxDumpPairs = 1 << 12;

class VoltageDump final : public RecordingBase {
 public:
  explicit VoltageDump(const std::string& path)
      : path_(path), file_bytes_(RecordingFile(path).size_bytes()) {
    const QuietHdf5 quiet;
    file_ = hdf5::Handle(hdf5::open_file(path), H5Fclose);
    if (!file_.valid()) bad("not an HDF5 file, or a damaged one");
    open_voltages();
    load_header();
    info_.format = "voltages";
    info_.channelized = true;
    info_.n_inputs = n_inputs_;
    info_.layout.format = SampleFormat::ci4;
    info_.counters["packets"] = static_cast<std::int64_t>(present_.size());
    info_.counters["absent_packets"] =
        std::count(present_.begin(), present_.end(), std::uint8_t{0});
  }

  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  [[noreturn]] void bad(const std::string& what) const {
    throw FormatError(path_ + ": " + what + "; a voltage dump of `ryle run` is expected");
  }
  std::vector<hsize_t> shape_of(const std::string& name) const;
  template <class T>
  std::vector<T> numbers(const std::string& name, hid_t type, std::size_t n) const;
  void open_voltages();
  void load_header();
  void read_packets(std::int64_t channel, std::int64_t n_channels, std::int64_t first,
                    std::int64_t n);
  void unpack(std::int64_t channel, std::int64_t n_channels, std::int64_t first_packet,
              std::int64_t n_packets, Tick first, std::int64_t n, std::span<ci8> destination) const;
  bool there(std::int64_t channel, Tick packet) const {
    const std::int64_t k = packet - first_packet_[channel];
    return k >= 0 && k < n_packets_ && present_[channel * n_packets_ + k] != 0;
  }
  void list_absent(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent,
                   std::vector<ChannelGap>* gaps) const;

  std::string path_;
  std::int64_t file_bytes_ = 0;
  hdf5::Handle file_, set_;
  std::int64_t n_channels_ = 0, n_packets_ = 0, n_inputs_ = 0;
  std::vector<std::int64_t> first_packet_;  ///< [channel], from the start of the recording
  std::vector<std::int64_t> input_line_;    ///< [antenna of a packet]
  std::vector<std::uint8_t> present_;       ///< [channel][packet]
  std::vector<std::uint8_t> bytes_;         ///< packets read last
};

std::vector<hsize_t> VoltageDump::shape_of(const std::string& name) const {
  const hdf5::Handle set(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!set.valid()) bad("no data set \"" + name + "\"");
  const hdf5::Handle space(H5Dget_space(set.get()), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > 5) bad("\"" + name + "\" has an impossible shape");
  std::vector<hsize_t> shape(rank);
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  return shape;
}

template <class T>
std::vector<T> VoltageDump::numbers(const std::string& name, hid_t type, std::size_t n) const {
  hsize_t size = 1;
  for (const hsize_t k : shape_of(name)) size *= k;
  if (size != n)
    bad("\"" + name + "\" has " + std::to_string(size) + " values, not " + std::to_string(n));
  std::vector<T> values(n);
  const hdf5::Handle set(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  hdf5::require_filters(set.get(), path_);
  if (hdf5::read(set.get(), type, H5S_ALL, H5S_ALL, values.data()) < 0)
    bad("cannot read \"" + name + "\"");
  return values;
}

void VoltageDump::open_voltages() {
  const auto shape = shape_of("voltages");
  if (shape.size() != 5 || shape[0] < 1 || shape[0] > kMaxDumpChannels || shape[1] < 1 ||
      shape[2] < 1 || shape[2] > kMaxDumpPairs || shape[3] != kDumpPacket || shape[4] != 2)
    bad("\"voltages\" is not [channel][packet][pair][128][2]");
  const hsize_t packet = shape[2] * 2 * kDumpPacket;
  // One piece, allocated at once: what the file does not hold is a damaged header.
  if (shape[1] > static_cast<hsize_t>(file_bytes_) / packet / shape[0])
    bad("\"voltages\" declares " + std::to_string(shape[1]) + " packets in a file of " +
        std::to_string(file_bytes_) + " bytes");
  n_channels_ = static_cast<std::int64_t>(shape[0]);
  n_packets_ = static_cast<std::int64_t>(shape[1]);
  n_inputs_ = static_cast<std::int64_t>(shape[2]) * 2;
  set_ = hdf5::Handle(H5Dopen2(file_.get(), "voltages", H5P_DEFAULT), H5Dclose);
  hdf5::require_filters(set_.get(), path_);
}

void VoltageDump::load_header() {
  const auto channels = static_cast<std::size_t>(n_channels_);
  const auto one = [&](const char* name) {
    return numbers<std::int64_t>(std::string("header/") + name, H5T_NATIVE_INT64, 1)[0];
  };
  const auto centers = numbers<double>("header/channel_center_hz", H5T_NATIVE_DOUBLE, channels);
  const double width_hz = numbers<double>("header/channel_width_hz", H5T_NATIVE_DOUBLE, 1)[0];
  for (std::size_t c = 0; c < channels; ++c) {
    const double expected = centers[0] + static_cast<double>(c) * width_hz;
    if (!(std::abs(centers[c] - expected) < 0.01 * width_hz))
      bad("channels are not one " + std::to_string(width_hz) + " Hz after the other");
  }
  info_.frequency = {centers[0], width_hz, n_channels_};
  SampleClock clock{one("epoch_tai_ns"), {one("rate_numerator_hz"), one("rate_denominator")}};
  if (clock.rate_hz.num < 1 || clock.rate_hz.den < 1) bad("the rate is not positive");
  auto ticks = numbers<Tick>("first_tick", H5T_NATIVE_INT64, channels);
  const auto [minimum, maximum] = std::minmax_element(ticks.begin(), ticks.end());
  const Tick start = *minimum;
  constexpr Tick kLongest = Tick{1} << 40;
  if (start % kDumpPacket != 0 || *maximum - start > kLongest) bad("\"first_tick\" is implausible");
  for (const Tick t : ticks) {
    if ((t - start) % kDumpPacket != 0) bad("windows do not begin with packets");
    first_packet_.push_back((t - start) / kDumpPacket);
  }
  info_.n_ticks = (*maximum - start) + n_packets_ * kDumpPacket;
  info_.clock = {clock.tai_ns(start), clock.rate_hz};
  info_.origin_tai_ns = clock.epoch_tai_ns;
  info_.ticks_from_origin = start;
  info_.time_source = TimeSource::header;
  info_.header["first_tick"] = std::to_string(start);
  input_line_ = numbers<std::int64_t>("header/input_line", H5T_NATIVE_INT64,
                                      static_cast<std::size_t>(n_inputs_));
  auto sorted = input_line_;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (sorted[k] != static_cast<std::int64_t>(k)) bad("\"input_line\" is no order of the inputs");
  }
  present_ = numbers<std::uint8_t>(
      "present", H5T_NATIVE_UINT8,
      static_cast<std::size_t>(checked_file_product({n_channels_, n_packets_}, "presence")));
}

void VoltageDump::read_packets(std::int64_t channel, std::int64_t n_channels, std::int64_t first,
                               std::int64_t n) {
  const auto pairs = static_cast<hsize_t>(n_inputs_ / 2);
  const std::array<hsize_t, 5> start{static_cast<hsize_t>(channel), static_cast<hsize_t>(first), 0,
                                     0, 0};
  const std::array<hsize_t, 5> count{static_cast<hsize_t>(n_channels), static_cast<hsize_t>(n),
                                     pairs, kDumpPacket, 2};
  bytes_.resize(n_channels * n * n_inputs_ * kDumpPacket);
  const hdf5::Handle from(H5Dget_space(set_.get()), H5Sclose);
  const hdf5::Handle to(H5Screate_simple(5, count.data(), nullptr), H5Sclose);
  if (H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr) < 0 ||
      hdf5::read(set_.get(), H5T_NATIVE_UINT8, to.get(), from.get(), bytes_.data()) < 0)
    throw FormatError(path_ + ": cannot read packets " + std::to_string(first) + " to " +
                      std::to_string(first + n) + " of channel " + std::to_string(channel));
}

// Packets [channel][packet][pair][128][2] to [spectrum][channel][input in the order of the layout].
void VoltageDump::unpack(std::int64_t channel, std::int64_t n_channels, std::int64_t first_packet,
                         std::int64_t n_packets, Tick first, std::int64_t n,
                         std::span<ci8> destination) const {
  for (std::int64_t c = 0; c < n_channels; ++c) {
    for (std::int64_t p = 0; p < n_packets; ++p) {
      const Tick at = (first_packet + p) * kDumpPacket;
      if (!there(channel + c, first_packet + p)) continue;
      const std::uint8_t* packet = bytes_.data() + (c * n_packets + p) * n_inputs_ * kDumpPacket;
      const Tick begin = std::max(at, first), end = std::min(at + kDumpPacket, first + n);
      for (Tick t = begin; t < end; ++t) {
        ci8* to = destination.data() + ((t - first) * n_channels_ + channel + c) * n_inputs_;
        for (std::int64_t a = 0; a < n_inputs_; ++a) {
          const std::uint8_t byte = packet[(a / 2) * 2 * kDumpPacket + 2 * (t - at) + a % 2];
          const auto line = static_cast<std::size_t>(input_line_[a]);
          const int high = byte >> 4, low = byte & 15;
          to[line] = {static_cast<std::int8_t>((high ^ 8) - 8),
                      static_cast<std::int8_t>((low ^ 8) - 8)};
        }
      }
    }
  }
}

void VoltageDump::list_absent(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent,
                              std::vector<ChannelGap>* gaps) const {
  const Tick end = first + n;
  for (Tick t = first; t < end;) {
    const Tick packet = t >= 0 ? t / kDumpPacket : (t - kDumpPacket + 1) / kDumpPacket;
    const Tick until = std::min(end, (packet + 1) * kDumpPacket);
    std::int64_t n_there = 0;
    for (std::int64_t c = 0; c < n_channels_; ++c) n_there += there(c, packet);
    if (n_there == 0 || (gaps == nullptr && n_there < n_channels_)) {
      for (std::int64_t p = 0; p < n_inputs_; ++p) add_absent(absent, p, t, until);
    } else if (n_there < n_channels_) {
      for (std::int64_t c = 0; c < n_channels_; ++c) {
        if (there(c, packet)) continue;
        const std::int64_t from = c;
        while (c + 1 < n_channels_ && !there(c + 1, packet)) ++c;
        gaps->push_back({from, c + 1, t, until});
      }
    }
    t = until;
  }
}

void VoltageDump::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                               std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>*,
                               std::vector<ChannelGap>* gaps) {
  const auto values = static_cast<std::size_t>(n * n_channels_ * n_inputs_);
  RYLE_ASSERT(n >= 0 && destination.size() >= values);
  std::fill_n(destination.begin(), values, ci8{});
  const QuietHdf5 quiet;
  // Channels that begin together are read together.
  for (std::int64_t c = 0; c < n_channels_;) {
    const std::int64_t start = first_packet_[c];
    std::int64_t end = c + 1;
    while (end < n_channels_ && first_packet_[end] == start) ++end;
    const std::int64_t from = std::max(first / kDumpPacket, start);
    const std::int64_t to =
        std::min((first + n + kDumpPacket - 1) / kDumpPacket, start + n_packets_);
    if (from < to) {
      read_packets(c, end - c, from - start, to - from);
      unpack(c, end - c, from, to - from, first, n, destination);
    }
    c = end;
  }
  const std::size_t before = absent.size();
  list_absent(first, n, absent, gaps);
  merge_absent(absent, before);
}

}  // namespace

bool is_voltage_dump(const std::string& path) {
  const QuietHdf5 quiet;
  const hdf5::Handle file(hdf5::open_file(path), H5Fclose);
  if (!file.valid()) return false;
  return H5Lexists(file.get(), "voltages", H5P_DEFAULT) > 0 &&
         H5Lexists(file.get(), "first_tick", H5P_DEFAULT) > 0;
}

std::unique_ptr<Recording> open_voltage_dump(const std::string& path, const RecordingOptions&) {
  return std::make_unique<VoltageDump>(path);
}

}  // namespace ryle::detail
