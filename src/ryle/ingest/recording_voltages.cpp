// SPDX-License-Identifier: BSD-3-Clause
// Voltage dumps of live runs (io/beam/voltage_dump.hpp): packets of BEST-2 as they came, spectra of
// any F-engine, or time samples; channels with windows of their own, and what was there.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

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
constexpr hsize_t kMaxDumpInputs = 1 << 16;

class VoltageDump final : public RecordingBase {
 public:
  explicit VoltageDump(const std::string& path)
      : path_(path), file_bytes_(RecordingFile(path).size_bytes()) {
    const QuietHdf5 quiet;
    file_ = hdf5::Handle(hdf5::open_file(path), H5Fclose);
    if (!file_.valid()) bad("not an HDF5 file, or a damaged one");
    info_.format = "voltages";
    open_voltages();
    load_clock();
    if (content_ == Content::samples)
      load_samples();
    else
      load_channels();
    open_present();
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  enum class Content { packets, spectra, samples };

  [[noreturn]] void bad(const std::string& what) const {
    throw FormatError(path_ + ": " + what + "; a voltage dump of `ryle run` is expected");
  }
  bool has(const char* name) const { return H5Lexists(file_.get(), name, H5P_DEFAULT) > 0; }
  std::vector<hsize_t> shape_of(const std::string& name) const;
  template <class T>
  std::vector<T> numbers(const std::string& name, hid_t type, std::size_t n) const;
  std::int64_t one(const char* name) const {
    return numbers<std::int64_t>(std::string("header/") + name, H5T_NATIVE_INT64, 1)[0];
  }
  void open_voltages();
  void open_present();
  void load_clock();
  void load_channels();
  void load_samples();
  void read_units(std::int64_t row, std::int64_t n_rows, std::int64_t first, std::int64_t n);
  void read_bits(std::int64_t row, std::int64_t first, std::int64_t n);
  void unpack(std::int64_t channel, std::int64_t n_channels, std::int64_t first_unit,
              std::int64_t n_units, Tick first, std::int64_t n, std::span<ci8> destination) const;
  bool there(std::int64_t channel, Tick packet) const {
    const std::int64_t k = packet - first_unit_[channel];
    return k >= 0 && k < n_units_ && present_[channel * n_units_ + k] != 0;
  }
  void list_absent(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent,
                   std::vector<ChannelGap>* gaps) const;
  void list_absent_inputs(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent,
                          std::vector<ChannelGap>* gaps);

  std::string path_;
  std::int64_t file_bytes_ = 0;
  hdf5::Handle file_, set_, present_set_;
  Content content_ = Content::packets;
  std::vector<hsize_t> shape_;  ///< of "voltages"
  std::int64_t n_rows_ = 0, n_units_ = 0, n_inputs_ = 0;
  std::int64_t unit_ = 1;                 ///< ticks
  std::int64_t unit_bytes_ = 0;           ///< of one row
  std::vector<std::int64_t> first_unit_;  ///< [row], from the start of the recording
  std::vector<std::int64_t> input_line_;  ///< [input of a unit]
  std::vector<std::uint8_t> present_;     ///< of packets [channel][packet]
  std::vector<std::uint8_t> bytes_;       ///< units read last
  std::vector<std::uint8_t> bits_;        ///< [unit][(n_inputs + 7) / 8] read last
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
  shape_ = shape_of("voltages");
  const std::size_t rank = shape_.size();
  const bool samples = has("header") && has("header/sample_stride_bits");
  bool good = rank >= 3 && shape_[0] >= 1 && shape_[0] <= kMaxDumpChannels && shape_[1] >= 1 &&
              shape_[2] >= 1 && shape_[2] <= kMaxDumpInputs;
  if (rank == 5) {
    content_ = Content::packets;
    unit_ = kDumpPacket;
    good = good && shape_[3] == kDumpPacket && shape_[4] == 2;
  } else if (samples) {
    content_ = Content::samples;
    good = good && rank == 3 && shape_[0] == 1;
  } else {
    content_ = Content::spectra;
    good = good && (rank == 3 || (rank == 4 && shape_[3] == 2));
  }
  if (!good)
    bad("\"voltages\" is not [channel][packet][pair][128][2], [channel][spectrum][input], "
        "[channel][spectrum][input][2] or [1][sample][byte]");
  hsize_t unit_bytes = 1;
  for (std::size_t k = 2; k < rank; ++k) unit_bytes *= shape_[k];
  // One piece, allocated at once: what the file does not hold is a damaged header.
  if (shape_[1] > static_cast<hsize_t>(file_bytes_) / unit_bytes / shape_[0])
    bad("\"voltages\" declares " + std::to_string(shape_[1]) + " units of " +
        std::to_string(unit_bytes) + " bytes in a file of " + std::to_string(file_bytes_) +
        " bytes");
  n_rows_ = static_cast<std::int64_t>(shape_[0]);
  n_units_ = static_cast<std::int64_t>(shape_[1]);
  n_inputs_ = static_cast<std::int64_t>(shape_[2]) * (content_ == Content::packets ? 2 : 1);
  unit_bytes_ = static_cast<std::int64_t>(unit_bytes);
  info_.layout.format =
      content_ == Content::spectra && rank == 4 ? SampleFormat::ci8 : SampleFormat::ci4;
  set_ = hdf5::Handle(H5Dopen2(file_.get(), "voltages", H5P_DEFAULT), H5Dclose);
  hdf5::require_filters(set_.get(), path_);
}

void VoltageDump::load_clock() {
  const SampleClock clock{one("epoch_tai_ns"), {one("rate_numerator_hz"), one("rate_denominator")}};
  if (clock.rate_hz.num < 1 || clock.rate_hz.den < 1) bad("the rate is not positive");
  const auto ticks =
      numbers<Tick>("first_tick", H5T_NATIVE_INT64, static_cast<std::size_t>(n_rows_));
  const auto [minimum, maximum] = std::minmax_element(ticks.begin(), ticks.end());
  const Tick start = *minimum;
  constexpr Tick kLongest = Tick{1} << 40;
  if (start % unit_ != 0 || *maximum - start > kLongest) bad("\"first_tick\" is implausible");
  for (const Tick t : ticks) {
    if ((t - start) % unit_ != 0) bad("windows do not begin with packets");
    first_unit_.push_back((t - start) / unit_);
  }
  info_.n_ticks = (*maximum - start) + n_units_ * unit_;
  info_.clock = {clock.tai_ns(start), clock.rate_hz};
  info_.origin_tai_ns = clock.epoch_tai_ns;
  info_.ticks_from_origin = start;
  info_.time_source = TimeSource::header;
  info_.header["first_tick"] = std::to_string(start);
}

void VoltageDump::load_channels() {
  info_.channelized = true;
  info_.n_inputs = n_inputs_;
  const auto channels = static_cast<std::size_t>(n_rows_);
  const auto centers = numbers<double>("header/channel_center_hz", H5T_NATIVE_DOUBLE, channels);
  const double width_hz = numbers<double>("header/channel_width_hz", H5T_NATIVE_DOUBLE, 1)[0];
  for (std::size_t c = 0; c < channels; ++c) {
    const double expected = centers[0] + static_cast<double>(c) * width_hz;
    if (!(std::abs(centers[c] - expected) < 0.01 * width_hz))
      bad("channels are not one " + std::to_string(width_hz) + " Hz after the other");
  }
  info_.frequency = {centers[0], width_hz, n_rows_};
  input_line_ = numbers<std::int64_t>("header/input_line", H5T_NATIVE_INT64,
                                      static_cast<std::size_t>(n_inputs_));
  auto sorted = input_line_;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (sorted[k] != static_cast<std::int64_t>(k)) bad("\"input_line\" is no order of the inputs");
  }
}

void VoltageDump::load_samples() {
  info_.n_inputs = n_inputs_ = one("n_inputs");
  SampleLayout& layout = info_.layout;
  const std::int64_t bits = one("bits_per_part");
  if (bits < 1 || bits > 16) bad("samples have " + std::to_string(bits) + " bits a part");
  layout.format = sample_format((one("complex") != 0 ? "ci" : "i") + std::to_string(bits));
  const std::int64_t encoding = one("encoding");
  if (encoding < 0 || encoding > static_cast<std::int64_t>(Encoding::levels))
    bad("\"encoding\" is none of 0 to 2");
  layout.encoding = static_cast<Encoding>(encoding);
  layout.msb_first = one("msb_first") != 0;
  layout.imag_first = one("imag_first") != 0;
  layout.re_shift = static_cast<int>(std::clamp<std::int64_t>(one("re_shift"), 0, 15));
  layout.im_shift = static_cast<int>(std::clamp<std::int64_t>(one("im_shift"), 0, 15));
  layout.input_stride_bits = one("input_stride_bits");
  layout.sample_stride_bits = one("sample_stride_bits");
  const std::int64_t width = bits_per_sample(layout.format);
  if (n_inputs_ < 1 || n_inputs_ > static_cast<std::int64_t>(kMaxDumpInputs) ||
      layout.input_stride_bits != width || layout.sample_stride_bits != n_inputs_ * width ||
      layout.sample_stride_bits != 8 * unit_bytes_)
    bad("samples of " + std::to_string(n_inputs_) + " inputs do not take " +
        std::to_string(unit_bytes_) + " bytes");
  info_.reference_hz = numbers<double>("header/reference_hz", H5T_NATIVE_DOUBLE, 1)[0];
  info_.inverted_band = one("inverted_band") != 0;
}

void VoltageDump::open_present() {
  if (content_ == Content::packets) {
    present_ = numbers<std::uint8_t>(
        "present", H5T_NATIVE_UINT8,
        static_cast<std::size_t>(checked_file_product({n_rows_, n_units_}, "presence")));
    info_.counters["packets"] = static_cast<std::int64_t>(present_.size());
    info_.counters["absent_packets"] =
        std::count(present_.begin(), present_.end(), std::uint8_t{0});
    return;
  }
  if (!has("present")) return;  // nothing is absent
  const auto shape = shape_of("present");
  if (shape.size() != 3 || shape[0] != shape_[0] || shape[1] != shape_[1] ||
      shape[2] != static_cast<hsize_t>((n_inputs_ + 7) / 8))
    bad("\"present\" is not [row][unit][byte of 8 inputs]");
  present_set_ = hdf5::Handle(H5Dopen2(file_.get(), "present", H5P_DEFAULT), H5Dclose);
  hdf5::require_filters(present_set_.get(), path_);
}

void VoltageDump::read_units(std::int64_t row, std::int64_t n_rows, std::int64_t first,
                             std::int64_t n) {
  std::vector<hsize_t> start(shape_.size(), 0), count = shape_;
  start[0] = static_cast<hsize_t>(row);
  start[1] = static_cast<hsize_t>(first);
  count[0] = static_cast<hsize_t>(n_rows);
  count[1] = static_cast<hsize_t>(n);
  bytes_.resize(n_rows * n * unit_bytes_);
  const hdf5::Handle from(H5Dget_space(set_.get()), H5Sclose);
  const hdf5::Handle to(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                        H5Sclose);
  const hid_t type = info_.layout.format == SampleFormat::ci8 && info_.channelized
                         ? H5T_NATIVE_INT8
                         : H5T_NATIVE_UINT8;
  if (H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr) < 0 ||
      hdf5::read(set_.get(), type, to.get(), from.get(), bytes_.data()) < 0)
    throw FormatError(path_ + ": cannot read units " + std::to_string(first) + " to " +
                      std::to_string(first + n) + " of row " + std::to_string(row));
}

// @pre present_set_ is open
void VoltageDump::read_bits(std::int64_t row, std::int64_t first, std::int64_t n) {
  const auto bytes = static_cast<hsize_t>((n_inputs_ + 7) / 8);
  const std::array<hsize_t, 3> start{static_cast<hsize_t>(row), static_cast<hsize_t>(first), 0};
  const std::array<hsize_t, 3> count{1, static_cast<hsize_t>(n), bytes};
  bits_.resize(n * bytes);
  const hdf5::Handle from(H5Dget_space(present_set_.get()), H5Sclose);
  const hdf5::Handle to(H5Screate_simple(3, count.data(), nullptr), H5Sclose);
  if (H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr) < 0 ||
      hdf5::read(present_set_.get(), H5T_NATIVE_UINT8, to.get(), from.get(), bits_.data()) < 0)
    throw FormatError(path_ + ": cannot read what is present of row " + std::to_string(row));
}

// Packets [channel][packet][pair][128][2] or spectra [channel][spectrum][input] to
// [spectrum][channel][input in the order of the layout].
void VoltageDump::unpack(std::int64_t channel, std::int64_t n_channels, std::int64_t first_unit,
                         std::int64_t n_units, Tick first, std::int64_t n,
                         std::span<ci8> destination) const {
  const bool packets = content_ == Content::packets;
  const bool four_bits = info_.layout.format == SampleFormat::ci4;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    for (std::int64_t u = 0; u < n_units; ++u) {
      const Tick at = (first_unit + u) * unit_;
      if (packets && !there(channel + c, first_unit + u)) continue;
      const std::uint8_t* unit = bytes_.data() + (c * n_units + u) * unit_bytes_;
      const Tick begin = std::max(at, first), end = std::min(at + unit_, first + n);
      for (Tick t = begin; t < end; ++t) {
        ci8* to = destination.data() + ((t - first) * n_rows_ + channel + c) * n_inputs_;
        for (std::int64_t a = 0; a < n_inputs_; ++a) {
          const auto line = static_cast<std::size_t>(input_line_[a]);
          if (!four_bits) {
            to[line] = {static_cast<std::int8_t>(unit[2 * a]),
                        static_cast<std::int8_t>(unit[2 * a + 1])};
            continue;
          }
          const std::uint8_t byte =
              packets ? unit[(a / 2) * 2 * kDumpPacket + 2 * (t - at) + a % 2] : unit[a];
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
    for (std::int64_t c = 0; c < n_rows_; ++c) n_there += there(c, packet);
    if (n_there == 0 || (gaps == nullptr && n_there < n_rows_)) {
      for (std::int64_t p = 0; p < n_inputs_; ++p) add_absent(absent, p, t, until);
    } else if (n_there < n_rows_) {
      for (std::int64_t c = 0; c < n_rows_; ++c) {
        if (there(c, packet)) continue;
        const std::int64_t from = c;
        while (c + 1 < n_rows_ && !there(c + 1, packet)) ++c;
        gaps->push_back({from, c + 1, t, until});
      }
    }
    t = until;
  }
}

// Inputs that some channels lack are absent whole: spans are of inputs, gaps of channels.
void VoltageDump::list_absent_inputs(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent,
                                     std::vector<ChannelGap>* gaps) {
  std::vector<std::uint8_t> gone(n * n_rows_);       // [spectrum][channel] of all inputs
  std::vector<std::uint8_t> lacking(n * n_inputs_);  // [spectrum][input] in some channel
  const std::int64_t bytes = (n_inputs_ + 7) / 8;
  for (std::int64_t c = 0; c < n_rows_; ++c) {
    const std::int64_t from = std::clamp<std::int64_t>(first_unit_[c] - first, 0, n);
    const std::int64_t to = std::clamp<std::int64_t>(first_unit_[c] + n_units_ - first, from, n);
    if (present_set_.valid() && from < to) read_bits(c, first + from - first_unit_[c], to - from);
    for (std::int64_t t = 0; t < n; ++t) {
      const bool inside = t >= from && t < to;
      gone[t * n_rows_ + c] = inside ? 0 : 1;
      if (!inside || !present_set_.valid()) continue;
      const std::uint8_t* bits = bits_.data() + (t - from) * bytes;
      std::int64_t n_there = 0;
      for (std::int64_t a = 0; a < n_inputs_; ++a) n_there += bits[a / 8] >> (a % 8) & 1;
      gone[t * n_rows_ + c] = n_there == 0 ? 1 : 0;
      if (n_there == 0 || n_there == n_inputs_) continue;
      for (std::int64_t a = 0; a < n_inputs_; ++a)
        if ((bits[a / 8] >> (a % 8) & 1) == 0) lacking[t * n_inputs_ + input_line_[a]] = 1;
    }
  }
  std::size_t open_gaps = gaps != nullptr ? gaps->size() : 0;  // the first that may go on
  for (std::int64_t t = 0; t < n; ++t) {
    const std::uint8_t* row = gone.data() + t * n_rows_;
    const auto n_gone = std::count(row, row + n_rows_, std::uint8_t{1});
    if (n_gone == 0) continue;
    if (n_gone == n_rows_ || gaps == nullptr) {
      std::fill_n(lacking.begin() + t * n_inputs_, n_inputs_, std::uint8_t{1});
      continue;
    }
    const std::size_t before = gaps->size();
    for (std::int64_t c = 0; c < n_rows_; ++c) {
      if (row[c] == 0) continue;
      const std::int64_t begin = c;
      while (c + 1 < n_rows_ && row[c + 1] != 0) ++c;
      const auto last = std::find_if(
          gaps->begin() + static_cast<std::ptrdiff_t>(open_gaps),
          gaps->begin() + static_cast<std::ptrdiff_t>(before), [&](const ChannelGap& g) {
            return g.channel_begin == begin && g.channel_end == c + 1 && g.end == first + t;
          });
      if (last != gaps->begin() + static_cast<std::ptrdiff_t>(before))
        last->end = first + t + 1;
      else
        gaps->push_back({begin, c + 1, first + t, first + t + 1});
    }
    while (open_gaps < gaps->size() && (*gaps)[open_gaps].end <= first + t) ++open_gaps;
  }
  for (std::int64_t p = 0; p < n_inputs_; ++p)
    for (std::int64_t t = 0; t < n; ++t)
      if (lacking[t * n_inputs_ + p] != 0) add_absent(absent, p, first + t, first + t + 1);
}

void VoltageDump::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                               std::vector<AbsentSpan>& absent,
                               std::vector<std::uint8_t>* absent_channels,
                               std::vector<ChannelGap>* gaps) {
  if (content_ == Content::samples)
    return RecordingBase::read_spectra(first, n, destination, absent, absent_channels, gaps);
  const auto values = static_cast<std::size_t>(n * n_rows_ * n_inputs_);
  RYLE_ASSERT(n >= 0 && destination.size() >= values);
  std::fill_n(destination.begin(), values, ci8{});
  const QuietHdf5 quiet;
  // Channels that begin together are read together.
  for (std::int64_t c = 0; c < n_rows_;) {
    const std::int64_t start = first_unit_[c];
    std::int64_t end = c + 1;
    while (end < n_rows_ && first_unit_[end] == start) ++end;
    const std::int64_t from = std::max(first / unit_, start);
    const std::int64_t to = std::min((first + n + unit_ - 1) / unit_, start + n_units_);
    if (from < to) {
      read_units(c, end - c, from - start, to - from);
      unpack(c, end - c, from, to - from, first, n, destination);
    }
    c = end;
  }
  const std::size_t before = absent.size();
  if (content_ == Content::packets)
    list_absent(first, n, absent, gaps);
  else
    list_absent_inputs(first, n, absent, gaps);
  merge_absent(absent, before);
}

// The bytes that stand for zero, one after the other.
std::array<std::byte, 2> zero_bytes(const SampleLayout& layout) {
  if (layout.encoding != Encoding::offset_binary) return {};
  const int bits = bits_per_sample(layout.format) / (is_complex(layout.format) ? 2 : 1);
  if (bits == 16) return {std::byte{0}, std::byte{0x80}};
  int byte = 0;
  for (int k = bits - 1; k < 8; k += bits) byte |= 1 << k;
  return {static_cast<std::byte>(byte), static_cast<std::byte>(byte)};
}

void VoltageDump::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                               std::vector<AbsentSpan>& absent) {
  if (content_ != Content::samples)
    return RecordingBase::read_samples(first, n, destination, absent);
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= n * unit_bytes_);
  const QuietHdf5 quiet;
  const auto zero = zero_bytes(info_.layout);
  const auto clear = [&](std::int64_t t) {
    std::byte* to = destination.data() + t * unit_bytes_;
    for (std::int64_t k = 0; k < unit_bytes_; ++k) to[k] = zero[k % 2];
  };
  const std::int64_t from = std::clamp<std::int64_t>(-first, 0, n);
  const std::int64_t to = std::clamp<std::int64_t>(n_units_ - first, from, n);
  if (from < to) {
    read_units(0, 1, first + from, to - from);
    std::memcpy(destination.data() + from * unit_bytes_, bytes_.data(), bytes_.size());
    if (present_set_.valid()) read_bits(0, first + from, to - from);
  }
  const std::int64_t bytes = (n_inputs_ + 7) / 8;
  const auto is_there = [&](std::int64_t t, std::int64_t p) {
    if (t < from || t >= to) return false;
    return !present_set_.valid() || (bits_[(t - from) * bytes + p / 8] >> (p % 8) & 1) != 0;
  };
  std::vector<std::int64_t> n_absent(n);
  for (std::int64_t p = 0; p < n_inputs_; ++p) {
    for (std::int64_t t = 0; t < n; ++t) {
      if (is_there(t, p)) continue;
      ++n_absent[t];
      add_absent(absent, p, first + t, first + t + 1);
    }
  }
  for (std::int64_t t = 0; t < n; ++t)  // what was never in the ring is nothing in the file
    if (n_absent[t] == n_inputs_) clear(t);
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
