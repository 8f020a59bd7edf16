// SPDX-License-Identifier: BSD-3-Clause
// PSRDADA files: a text header of HDR_SIZE bytes, then samples (ingest.md 2.8).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/text_header.hpp"

namespace ryle::detail {
namespace {

constexpr std::int64_t kDefaultHeaderBytes = 4096;
constexpr std::int64_t kMaxHeaderBytes = 1 << 20;
constexpr std::int64_t kMaxCount = 1 << 20;

// Where sample (time, channel, pol) lies: blocks of `times` times, strides in samples inside a
// block.
struct AxisOrder {
  std::int64_t times = 1, time_stride = 0, channel_stride = 0, pol_stride = 0;
};

// "TFP", or "PFT256": a permutation of T F P, slowest first, with the times of a block when T is
// not the slowest.
AxisOrder parse_axis_order(const std::string& text, std::int64_t n_channels, std::int64_t n_pols) {
  const std::string letters = text.substr(0, 3);
  std::string sorted = letters;
  std::sort(sorted.begin(), sorted.end());
  const auto fail = [&](const std::string& why) {
    throw ConfigError("axis order \"" + text + "\": " + why +
                      "; give T F P, slowest first (\"TFP\"), with the times of a block when T is "
                      "not the slowest "
                      "(\"PFT256\")");
  };
  if (sorted != "FPT") fail("not the letters T, F and P");
  AxisOrder order;
  if (text.size() > 3) {
    const auto times = wire::parse_integer(std::string_view(text).substr(3));
    if (!times || *times < 1 || *times > 1 << 24)
      fail("the block length is not a number from 1 to 2^24");
    order.times = *times;
  } else if (letters[0] != 'T') {
    fail("the length of a block is missing");
  }
  std::int64_t step = 1;
  for (int k = 2; k >= 0; --k) {
    const char letter = letters[k];
    (letter == 'T'   ? order.time_stride
     : letter == 'F' ? order.channel_stride
                     : order.pol_stride) = step;
    step = checked_file_product({step, letter == 'T'   ? order.times
                                       : letter == 'F' ? n_channels
                                                       : n_pols},
                                "a DADA block");
  }
  return order;
}

class Dada final : public RecordingBase {
 public:
  Dada(const std::string& path, const RecordingOptions& options) : file_(path) {
    info_.format = "dada";
    load_header();
    read_shape();
    set_rate(options);
    set_time();
    if (n_channels_ == 1) {
      set_time_samples(options);
    } else {
      set_spectra(options);
    }
    info_.counters["frames"] = 1;
  }
  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  std::string_view text(const char* key) const { return wire::dada_value(header_, key); }
  [[noreturn]] void fail(const char* key, const std::string& limit) const {
    const auto value = text(key);
    throw FormatError(file_.path() + ": header: " + key + " is " +
                      (value.empty() ? "missing" : "\"" + std::string(value) + "\"") + "; " +
                      limit);
  }
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) const {
    const auto value = wire::parse_integer(text(key));
    if (!value || *value < low || *value > high) {
      fail(key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                    " is needed");
    }
    return *value;
  }
  void load_header();
  void read_shape();
  void set_rate(const RecordingOptions& options);
  void set_time();
  void set_time_samples(const RecordingOptions& options);
  void set_spectra(const RecordingOptions& options);
  void absent_outside(Tick first, std::int64_t n, Tick begin, Tick end,
                      std::vector<AbsentSpan>& absent) const;
  bool read_blocks(Tick t0, Tick t1, ci8* to);

  RecordingFile file_;
  std::vector<std::byte> header_;
  std::int64_t header_bytes_ = 0, payload_bytes_ = 0;
  std::int64_t n_channels_ = 1, n_pols_ = 1, n_dims_ = 2, bits_ = 8;
  std::int64_t bytes_per_time_ = 0;
  Rational bandwidth_mhz_;
  AxisOrder order_;
  std::vector<std::byte> bytes_;
};

void Dada::load_header() {
  const auto start = file_.window(0, kDefaultHeaderBytes);
  header_.assign(start.begin(), start.end());
  const auto declared = wire::parse_integer(text("HDR_SIZE"));
  if (!declared)
    throw FormatError(file_.path() + ": no DADA header: HDR_SIZE is not in the first 4096 bytes");
  if (*declared < 64 || *declared > kMaxHeaderBytes || *declared > file_.size_bytes()) {
    fail("HDR_SIZE", "64 bytes to 1 MiB, and no more than the " +
                         std::to_string(file_.size_bytes()) + " of the file, are read");
  }
  header_bytes_ = *declared;
  const auto whole = file_.window(0, static_cast<std::size_t>(header_bytes_));
  header_.assign(whole.begin(), whole.end());
  std::size_t offset = 0;
  for (auto field = wire::dada_field(header_, offset); !field.key.empty();
       field = wire::dada_field(header_, offset)) {
    info_.header.emplace(field.key, field.value);
  }
  payload_bytes_ = file_.size_bytes() - header_bytes_;
  const auto file_size = wire::parse_integer(text("FILE_SIZE"));
  // Writers disagree whether it includes the header.
  if (file_size && *file_size != payload_bytes_ && *file_size != file_.size_bytes()) {
    info_.warnings.push_back("FILE_SIZE says " + std::to_string(*file_size) +
                             " bytes, the file has " + std::to_string(payload_bytes_) +
                             " after the header");
  }
}

void Dada::read_shape() {
  n_channels_ = integer("NCHAN", 1, kMaxCount);
  n_pols_ = integer("NPOL", 1, kMaxCount);
  n_dims_ = integer("NDIM", 1, 2);
  bits_ = integer("NBIT", 1, 64);
  const bool floats = bits_ == 32;
  if (bits_ != 8 && (bits_ != 16 || n_channels_ > 1) && (!floats || n_channels_ > 1)) {
    fail("NBIT", n_channels_ > 1 ? "8 bits are read with several channels"
                                 : "8, 16 and 32 (float) bits are read");
  }
  if (n_dims_ == 1 && n_channels_ > 1)
    fail("NDIM", "real samples (1) are read with one channel only");
  bytes_per_time_ =
      checked_file_product({n_channels_, n_pols_, n_dims_, bits_ / 8}, "a time sample");
  if (payload_bytes_ < bytes_per_time_) {
    throw FormatError(file_.path() + ": " + std::to_string(payload_bytes_) +
                      " bytes after the header hold no sample of " +
                      std::to_string(bytes_per_time_) + " bytes");
  }
  info_.n_ticks = payload_bytes_ / bytes_per_time_;
  info_.n_inputs = n_pols_;
  name_inputs(text("TELESCOPE"));
}

// From BW and NCHAN, which are exact, when TSAMP (microseconds, rounded) agrees with them to 1e-12;
// else from TSAMP.
void Dada::set_rate(const RecordingOptions& options) {
  const auto bandwidth = wire::parse_decimal(text("BW"));
  if (!bandwidth || bandwidth->num == 0)
    fail("BW", "a decimal number of MHz other than 0 is needed");
  bandwidth_mhz_ = *bandwidth;
  info_.inverted_band = bandwidth_mhz_.num < 0;
  Rational rate =
      Rational{checked_file_product({std::abs(bandwidth_mhz_.num), 1'000'000, n_dims_ == 1 ? 2 : 1},
                                    "BW"),
               checked_file_product({bandwidth_mhz_.den, n_channels_}, "BW")}
          .reduced();
  if (!text("TSAMP").empty()) {
    const auto interval = wire::parse_decimal(text("TSAMP"));
    const auto value = wire::parse_real(text("TSAMP"));
    if (!value || !(*value > 1e-7 && *value < 1e12))
      fail("TSAMP", "a number of microseconds is needed");
    if (!(std::abs(*value * 1e-6 * rate.value() - 1) < 1e-12)) {
      info_.warnings.push_back("TSAMP and BW / NCHAN disagree; TSAMP is taken for the sample rate");
      rate = rational_rate(1e6 / *value);
      std::int64_t num = 0;
      if (interval && interval->num > 0 &&
          !__builtin_mul_overflow(interval->den, 1'000'000, &num)) {
        rate = Rational{num, interval->num}.reduced();
      }
    }
  }
  if (options.sample_rate_hz > 0) rate = rational_rate(options.sample_rate_hz);
  if (rate.value() > 1e12 || rate.value() < 1e-6) fail("BW", "gives an impossible sample rate");
  info_.clock.rate_hz = rate;
}

void Dada::set_time() {
  std::optional<std::int64_t> epoch;
  if (!text("UTC_START").empty()) {
    epoch = recording_tai_ns_from_text(std::string(text("UTC_START")));
    if (!epoch) fail("UTC_START", "yyyy-mm-dd-hh:mm:ss is needed");
  } else {
    // The fraction of the day as digits: a double of an MJD is good to a microsecond only.
    const std::string_view mjd = text("MJD_START");
    const auto point = mjd.find('.');
    const auto day = wire::parse_integer(mjd.substr(0, point));
    const auto fraction =
        point == std::string_view::npos ? 0.0 : wire::parse_real(mjd.substr(point)).value_or(-1);
    if (!day || fraction < 0)
      fail("MJD_START", "UTC_START or MJD_START must give the time of the first sample");
    epoch = recording_tai_ns_from_mjd(*day, std::llround(fraction * 86400e9));
    if (!epoch) fail("MJD_START", "not a time between 1961 and 2200");
  }
  info_.clock.epoch_tai_ns = *epoch;
  const std::int64_t offset =
      text("OBS_OFFSET").empty() ? 0 : integer("OBS_OFFSET", 0, std::int64_t{1} << 60);
  if (offset % bytes_per_time_ != 0) {
    fail("OBS_OFFSET",
         "must be a whole number of samples of " + std::to_string(bytes_per_time_) + " bytes");
  }
  info_.origin_tai_ns = *epoch;
  info_.ticks_from_origin = offset / bytes_per_time_;
  info_.clock.epoch_tai_ns = info_.clock.tai_ns(info_.ticks_from_origin);
  info_.time_source = TimeSource::header;
}

void Dada::set_time_samples(const RecordingOptions& options) {
  const std::array<SampleFormat, 6> formats{SampleFormat::i8,   SampleFormat::i16,
                                            SampleFormat::f32,  SampleFormat::ci8,
                                            SampleFormat::ci16, SampleFormat::cf32};
  const std::size_t width = bits_ == 8 ? 0 : bits_ == 16 ? 1 : 2;
  const bool offset_binary =
      text("ENCODING") == "OFFSETBINARY" || text("ENCODING") == "OFFSET_BINARY";
  set_time_major_layout(formats[width + (n_dims_ == 2 ? 3 : 0)],
                        offset_binary ? Encoding::offset_binary : Encoding::twos_complement);
  // Complex samples lie about FREQ; real ones begin at the edge that the mixer took to zero.
  const double center = wire::parse_real(text("FREQ")).value_or(0) * 1e6;
  info_.reference_hz = n_dims_ == 2 ? center : center - 0.5e6 * bandwidth_mhz_.value();
  if (options.reference_hz > 0) info_.reference_hz = options.reference_hz;
}

void Dada::set_spectra(const RecordingOptions& options) {
  info_.channelized = true;
  std::string order = options.axis_order;
  if (order.empty() && text("INSTRUMENT") == "MKBF")
    order = "PFT256";  // MeerKAT beams: heaps of 256 times
  if (order.empty() && n_pols_ == 1) order = "TFP";
  if (order.empty()) {
    fail("INSTRUMENT", "the order of axes with " + std::to_string(n_channels_) + " channels and " +
                           std::to_string(n_pols_) +
                           " polarizations is not standard and not known for it: give axis_order "
                           "(\"TFP\", \"PFT256\")");
  }
  order_ = parse_axis_order(order, n_channels_, n_pols_);
  info_.header["axis_order"] = order;
  const std::int64_t rest = info_.n_ticks % order_.times;
  info_.n_ticks -= rest;
  if (info_.n_ticks == 0) {
    throw FormatError(file_.path() + ": no whole block of " + std::to_string(order_.times) +
                      " times (axis order " + order + ") in " + std::to_string(payload_bytes_) +
                      " bytes");
  }
  if (rest != 0)
    info_.warnings.push_back("the last block is cut: " + std::to_string(rest) +
                             " times are not read");
  set_time_major_layout(SampleFormat::ci8, Encoding::twos_complement);
  const double center = wire::parse_real(text("FREQ")).value_or(0) * 1e6;
  const double step = std::abs(bandwidth_mhz_.value()) * 1e6 / static_cast<double>(n_channels_);
  info_.frequency = {center - 0.5 * static_cast<double>(n_channels_ - 1) * step, step, n_channels_};
}

void Dada::absent_outside(Tick first, std::int64_t n, Tick begin, Tick end,
                          std::vector<AbsentSpan>& absent) const {
  for (std::int64_t p = 0; p < info_.n_inputs; ++p) {
    add_absent(absent, p, first, std::min(begin, first + n));
    add_absent(absent, p, std::max(end, first), first + n);
  }
}

void Dada::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                        std::vector<AbsentSpan>& absent) {
  if (info_.channelized) return RecordingBase::read_samples(first, n, destination, absent);
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  // The code of zero: 0x80 in the high byte for offset binary.
  const bool offset_binary = info_.layout.encoding == Encoding::offset_binary;
  for (std::int64_t k = 0; k < samples_bytes(n); ++k) {
    const bool high = k % (bits_ / 8) == bits_ / 8 - 1;
    destination[k] = offset_binary && high ? std::byte{0x80} : std::byte{0};
  }
  const Tick begin = std::clamp<Tick>(first, 0, info_.n_ticks);
  const Tick end = std::clamp<Tick>(first + n, begin, info_.n_ticks);
  absent_outside(first, n, begin, end, absent);
  if (begin == end) return;
  const auto to =
      destination.subspan((begin - first) * bytes_per_time_, (end - begin) * bytes_per_time_);
  const auto got =
      static_cast<std::int64_t>(file_.read(header_bytes_ + begin * bytes_per_time_, to));
  for (std::int64_t p = 0; p < info_.n_inputs; ++p)
    add_absent(absent, p, begin + got / bytes_per_time_, end);
}

bool Dada::read_blocks(Tick t0, Tick t1, ci8* to) {
  const Tick start = t0 / order_.times * order_.times;
  const Tick stop = (t1 + order_.times - 1) / order_.times * order_.times;
  bytes_.resize(checked_file_product({stop - start, bytes_per_time_}, "a DADA block"));
  if (!file_.read_all(header_bytes_ + start * bytes_per_time_, bytes_)) return false;
  const std::int64_t per_block = order_.times * n_channels_ * n_pols_;
  for (Tick t = t0; t < t1; ++t) {
    const std::int64_t base =
        (t - start) / order_.times * per_block + t % order_.times * order_.time_stride;
    for (std::int64_t c = 0; c < n_channels_; ++c) {
      const std::int64_t out = info_.inverted_band ? n_channels_ - 1 - c : c;
      for (std::int64_t p = 0; p < n_pols_; ++p) {
        const std::int64_t at = base + c * order_.channel_stride + p * order_.pol_stride;
        int re = static_cast<std::int8_t>(bytes_[2 * at]);
        int im = static_cast<std::int8_t>(bytes_[2 * at + 1]);
        if (info_.inverted_band) im = std::min(127, -im);
        to[((t - t0) * n_channels_ + out) * n_pols_ + p] = {static_cast<std::int8_t>(re),
                                                            static_cast<std::int8_t>(im)};
      }
    }
  }
  return true;
}

void Dada::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                        std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                        std::vector<ChannelGap>* gaps) {
  if (!info_.channelized)
    return RecordingBase::read_spectra(first, n, destination, absent, absent_channels, gaps);
  const std::int64_t size = checked_file_product({n_channels_, n_pols_}, "a spectrum");
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >=
                            checked_file_product({n, size}, "spectra"));
  std::fill(destination.begin(), destination.begin() + n * size, ci8{});
  if (absent_channels != nullptr) absent_channels->assign(size, 0);
  const Tick begin = std::clamp<Tick>(first, 0, info_.n_ticks);
  const Tick end = std::clamp<Tick>(first + n, begin, info_.n_ticks);
  const std::size_t from = absent.size();
  absent_outside(first, n, begin, end, absent);
  const std::int64_t piece =
      std::max(order_.times, ((1 << 20) / bytes_per_time_ + 1) / order_.times * order_.times);
  for (Tick t = begin; t < end;) {
    const Tick stop = std::min(end, (t / piece + 1) * piece);
    ci8* to = destination.data() + (t - first) * size;
    if (!read_blocks(t, stop, to)) {
      for (std::int64_t p = 0; p < n_pols_; ++p) absent.push_back({p, t, stop});
    }
    t = stop;
  }
  merge_absent(absent, from);
}

}  // namespace

std::unique_ptr<Recording> open_dada(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<Dada>(path, options);
}

}  // namespace ryle::detail
