// SPDX-License-Identifier: BSD-3-Clause
// GUPPI RAW files: blocks of text cards and coarse channels (ingest.md 2.8).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/text_header.hpp"

namespace ryle::detail {
namespace {

constexpr std::size_t kMaxBlockHeaderBytes = 1024 * 80;
constexpr std::int64_t kMaxStreams = 1 << 20;  // channels, antennas

// What must be equal in all blocks of a file.
struct Shape {
  std::int64_t n_channels = 0, n_antennas = 1, n_pols = 0, bits = 0;
  std::int64_t block_bytes = 0, n_times = 0, overlap = 0;
  bool time_slowest = false;  // PKTFMT SIMPLE: [time][channel][pol]
  friend bool operator==(const Shape&, const Shape&) = default;
  std::int64_t sample_bytes() const { return bits / 4; }  // complex
  std::int64_t n_inputs() const { return n_antennas * n_pols; }
  std::int64_t bits_per_time() const { return n_antennas * n_channels * n_pols * 2 * bits; }
};

class Header {
 public:
  Header(const std::string& path, std::int64_t offset, std::span<const std::byte> cards)
      : path_(path), offset_(offset), cards_(cards) {}

  [[noreturn]] void fail(const std::string& key, std::string_view value,
                         const std::string& limit) const {
    throw FormatError(format_message(
        path_, offset_, key, value.empty() ? "missing" : "\"" + std::string(value) + "\"", limit));
  }
  std::string_view text(const char* key) const { return wire::guppi_value(cards_, key); }
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) const {
    const auto value = wire::parse_integer(text(key));
    if (!value || *value < low || *value > high) {
      fail(key, text(key),
           "a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
               " is needed");
    }
    return *value;
  }
  std::int64_t integer_or(const char* key, std::int64_t otherwise, std::int64_t low,
                          std::int64_t high) const {
    return text(key).empty() ? otherwise : integer(key, low, high);
  }
  Rational decimal(const char* key) const {
    const auto value = wire::parse_decimal(text(key));
    if (!value) fail(key, text(key), "a decimal number is needed");
    return *value;
  }
  double real_or(const char* key, double otherwise) const {
    if (text(key).empty()) return otherwise;
    const auto value = wire::parse_real(text(key));
    if (!value) fail(key, text(key), "a number is needed");
    return *value;
  }

 private:
  const std::string& path_;
  std::int64_t offset_;
  std::span<const std::byte> cards_;
};

Shape read_shape(const Header& h) {
  Shape s;
  const std::int64_t all_channels = h.integer("OBSNCHAN", 1, kMaxStreams);
  s.n_antennas = h.integer_or("NANTS", 1, 1, kMaxStreams);
  if (all_channels % s.n_antennas != 0)
    h.fail("OBSNCHAN", h.text("OBSNCHAN"), "must be a multiple of NANTS");
  s.n_channels = all_channels / s.n_antennas;
  const std::int64_t n_pol = h.integer("NPOL", 1, 4);
  if (n_pol == 3) h.fail("NPOL", "3", "1, 2 and 4 (two complex polarizations) are read");
  s.n_pols = n_pol == 4 ? 2 : n_pol;
  s.bits = h.integer("NBITS", 1, 32);
  if (s.bits != 4 && s.bits != 8) h.fail("NBITS", h.text("NBITS"), "4 and 8 bits are read");
  s.block_bytes = h.integer("BLOCSIZE", 1, std::int64_t{1} << 40);
  const std::int64_t bits_per_time =
      checked_file_product({all_channels, s.n_pols, 2, s.bits}, "OBSNCHAN");
  if (s.block_bytes * 8 % bits_per_time != 0) {
    h.fail("BLOCSIZE", h.text("BLOCSIZE"),
           "must be a whole number of samples of " + std::to_string(bits_per_time) + " bits");
  }
  s.n_times = s.block_bytes * 8 / bits_per_time;
  s.overlap = h.integer_or("OVERLAP", 0, 0, s.n_times - 1);
  s.time_slowest = h.text("PKTFMT") == "SIMPLE";
  return s;
}

class Guppi final : public RecordingBase {
 public:
  Guppi(const std::string& path, const RecordingOptions& options) : file_(path) {
    info_.format = "guppi";
    info_.channelized = true;
    scan(options);
  }
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  void scan(const RecordingOptions& options);
  void set_axes(const Header& header, const RecordingOptions& options);
  Tick first_tick_of(const Header& header, Tick expected);
  bool read_block(const FrameRef& block, std::int64_t from, std::int64_t count, ci8* to);
  void store(const std::byte* source, ci8* to) const;
  std::int64_t out_channel(std::int64_t channel) const {
    return info_.inverted_band ? shape_.n_channels - 1 - channel : channel;
  }

  RecordingFile file_;
  Shape shape_;
  std::vector<FrameRef> blocks_;  // tick = first spectrum, offset = of the data
  std::vector<std::byte> bytes_;
};

// The first spectrum of a block since the start time: PKTIDX packets of PKTSIZE bytes of whole
// samples. `expected` where the header does not tell, or not in whole samples.
Tick Guppi::first_tick_of(const Header& header, Tick expected) {
  const auto index = wire::parse_integer(header.text("PKTIDX"));
  const auto size = wire::parse_integer(header.text("PKTSIZE"));
  if (!index || !size || *index < 0 || *size <= 0) return expected;
  const __int128 bits = static_cast<__int128>(*index) * *size * 8;
  const __int128 tick = bits / shape_.bits_per_time();
  if (bits % shape_.bits_per_time() != 0 || tick > (std::int64_t{1} << 60)) return expected;
  return static_cast<Tick>(tick);
}

void Guppi::scan(const RecordingOptions& options) {
  std::int64_t offset = 0;
  Tick expected = 0;
  std::vector<FrameRef> blocks;
  while (offset < file_.size_bytes()) {
    const auto start = file_.window(offset, kMaxBlockHeaderBytes);
    const std::size_t header_bytes = wire::guppi_header_bytes(start);
    if (header_bytes == 0) {
      if (offset == 0)
        throw FormatError(file_.path() +
                          ": no GUPPI RAW header (80-character cards up to END) at byte 0");
      info_.warnings.push_back("no header at byte " + std::to_string(offset) +
                               ": the rest is not read");
      info_.counters["bytes_skipped"] += file_.size_bytes() - offset;
      break;
    }
    // The window's bytes are valid only until the next call: a copy for the header's life.
    const std::vector<std::byte> cards(start.begin(),
                                       start.begin() + static_cast<std::ptrdiff_t>(header_bytes));
    const Header header(file_.path(), offset, cards);
    const Shape shape = read_shape(header);
    if (blocks.empty()) {
      shape_ = shape;
      for (std::size_t k = 0; k < header_bytes / 80; ++k) {
        const auto card = wire::guppi_card(cards, k);
        if (!card.key.empty()) info_.header[std::string(card.key)] = card.value;
      }
    }
    std::int64_t data = offset + static_cast<std::int64_t>(header_bytes);
    if (header.integer_or("DIRECTIO", 0, 0, 1) != 0) data = (data + 511) / 512 * 512;
    const std::int64_t follow = std::max<std::int64_t>(0, file_.size_bytes() - data);
    if (shape.block_bytes > follow) {
      const std::string what = "BLOCSIZE declares " + std::to_string(shape.block_bytes) +
                               " bytes but " + std::to_string(follow) + " follow";
      if (blocks.empty())
        throw FormatError(file_.path() + ": byte " + std::to_string(offset) + ": " + what +
                          ": the file holds no complete block");
      info_.warnings.push_back("the last block is cut: " + what);
      info_.counters["rejected.cut_frame"] += 1;
      break;
    }
    if (shape != shape_) {
      info_.counters["rejected.field"] += 1;
    } else {
      if (blocks.empty()) set_axes(header, options);
      blocks.push_back({first_tick_of(header, expected), 0, data});
      expected = blocks.back().tick + shape_.n_times - shape_.overlap;
    }
    offset = data + shape.block_bytes;
  }
  if (blocks.empty()) throw FormatError(file_.path() + ": an empty file");
  const Rational rate = info_.clock.rate_hz;
  blocks_ =
      arrange_frames(std::move(blocks), kMaxGap_s * (rate.num / rate.den + 1) + shape_.n_times, 1,
                     info_.counters, shape_.n_times - shape_.overlap);
  const Tick base = blocks_.front().tick;
  for (auto& b : blocks_) b.tick -= base;
  info_.n_ticks = blocks_.back().tick + shape_.n_times - shape_.overlap;
  info_.origin_tai_ns = info_.clock.epoch_tai_ns;
  info_.ticks_from_origin = base;
  info_.clock.epoch_tai_ns = info_.clock.tai_ns(base);
}

void Guppi::set_axes(const Header& header, const RecordingOptions& options) {
  const Rational width = header.decimal("OBSBW");  // MHz, all channels of an antenna
  if (width.num == 0) header.fail("OBSBW", header.text("OBSBW"), "must not be zero");
  info_.inverted_band = width.num < 0;
  const std::int64_t n = shape_.n_channels;
  Rational rate = Rational{checked_file_product({std::abs(width.num), 1'000'000}, "OBSBW"),
                           checked_file_product({width.den, n}, "OBSBW")}
                      .reduced();
  const double interval_s = header.real_or("TBIN", 1.0 / rate.value());
  // TBIN has 6 to 15 digits; the bandwidth is exact, so it decides when they agree.
  if (!(std::abs(interval_s * rate.value() - 1) < 1e-6)) {
    if (!(interval_s > 1e-12 && interval_s < 1e6))
      header.fail("TBIN", header.text("TBIN"), "must be 1e-12 to 1e6 s");
    info_.warnings.push_back(
        "TBIN and OBSBW / OBSNCHAN disagree; TBIN is taken for the sample rate");
    rate = rational_rate(1.0 / interval_s);
  }
  if (options.sample_rate_hz > 0) rate = rational_rate(options.sample_rate_hz);
  if (rate.value() > 1e12 || rate.value() < 1e-6)
    header.fail("OBSBW", header.text("OBSBW"), "gives an impossible rate");
  info_.clock.rate_hz = rate;
  const double step = std::abs(width.value()) * 1e6 / static_cast<double>(n);
  const double center = header.real_or("OBSFREQ", 0) * 1e6;
  info_.frequency = {center - 0.5 * static_cast<double>(n - 1) * step, step, n};
  info_.n_inputs = shape_.n_inputs();
  name_inputs(header.text("TELESCOP"));
  set_time_major_layout(SampleFormat::ci8, Encoding::twos_complement);
  const std::int64_t day = header.integer("STT_IMJD", 0, 200000);
  const std::int64_t second = header.integer("STT_SMJD", 0, 86400);
  const double fraction = header.real_or("STT_OFFS", 0);
  if (!(fraction >= 0 && fraction < 1))
    header.fail("STT_OFFS", header.text("STT_OFFS"), "must lie in [0, 1)");
  const auto epoch = recording_tai_ns_from_mjd(day, second * kSecond_ns);
  if (!epoch) header.fail("STT_IMJD", header.text("STT_IMJD"), "not a time between 1961 and 2200");
  info_.clock.epoch_tai_ns = *epoch + std::llround(fraction * 1e9);
}

// One complex sample; an inverted band is conjugated into upper-sideband phase, where +128 does not
// exist.
void Guppi::store(const std::byte* source, ci8* to) const {
  int re = 0, im = 0;
  if (shape_.bits == 8) {
    re = static_cast<std::int8_t>(source[0]);
    im = static_cast<std::int8_t>(source[1]);
  } else {
    const int byte = static_cast<int>(source[0]);
    re = ((byte >> 4) ^ 8) - 8;
    im = ((byte & 15) ^ 8) - 8;
  }
  if (info_.inverted_band) im = std::min(127, -im);
  *to = {static_cast<std::int8_t>(re), static_cast<std::int8_t>(im)};
}

// Samples [from, from + count) of a block into to[spectrum][channel][input]. False: the file could
// not be read.
bool Guppi::read_block(const FrameRef& block, std::int64_t from, std::int64_t count, ci8* to) {
  const std::int64_t n_channels = shape_.n_channels, n_pols = shape_.n_pols,
                     size = shape_.sample_bytes();
  const std::int64_t n_inputs = info_.n_inputs;
  for (std::int64_t antenna = 0; antenna < shape_.n_antennas; ++antenna) {
    for (std::int64_t c = 0; c < n_channels; ++c) {
      // [antenna][channel][time][pol], or [antenna][time][channel][pol] when the packets are stored
      // as they came.
      const std::int64_t row = antenna * n_channels + c;
      const std::int64_t time_step = (shape_.time_slowest ? n_channels : 1) * n_pols * size;
      std::int64_t at = block.offset + (row * shape_.n_times + from) * n_pols * size;
      if (shape_.time_slowest) {
        at = block.offset + ((antenna * shape_.n_times + from) * n_channels + c) * n_pols * size;
      }
      const std::int64_t span = (count - 1) * time_step + n_pols * size;
      bytes_.resize(span);
      if (!file_.read_all(at, bytes_)) return false;
      for (std::int64_t t = 0; t < count; ++t) {
        ci8* out = to + (t * n_channels + out_channel(c)) * n_inputs + antenna * n_pols;
        for (std::int64_t p = 0; p < n_pols; ++p)
          store(bytes_.data() + t * time_step + p * size, out + p);
      }
    }
  }
  return true;
}

void Guppi::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                         std::vector<AbsentSpan>& absent,
                         std::vector<std::uint8_t>* absent_channels, std::vector<ChannelGap>*) {
  const std::int64_t size = checked_file_product({shape_.n_channels, info_.n_inputs}, "a spectrum");
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >=
                            checked_file_product({n, size}, "spectra"));
  std::fill(destination.begin(), destination.begin() + n * size, ci8{});
  if (absent_channels != nullptr) absent_channels->assign(size, 0);
  const std::size_t absent_from = absent.size();
  const auto missing = [&](Tick a, Tick b) {
    for (std::int64_t p = 0; p < info_.n_inputs && a < b; ++p) absent.push_back({p, a, b});
  };
  const std::int64_t usable = shape_.n_times - shape_.overlap;
  Tick done = first;
  for (const auto& block : frames_between(blocks_, first - usable + 1, first + n)) {
    const Tick t0 = std::max(done, block.tick), t1 = std::min(first + n, block.tick + usable);
    if (t0 >= t1) continue;
    missing(done, t0);
    // A piece at a time: one channel of a whole block may be a megabyte, all of SIMPLE's far more.
    for (Tick t = t0; t < t1; t += 4096) {
      const std::int64_t count = std::min<std::int64_t>(4096, t1 - t);
      if (read_block(block, t - block.tick, count, destination.data() + (t - first) * size))
        continue;
      std::fill_n(destination.begin() + (t - first) * size, count * size, ci8{});
      missing(t, t + count);
    }
    done = t1;
  }
  missing(done, first + n);
  merge_absent(absent, absent_from);
}

}  // namespace

std::unique_ptr<Recording> open_guppi(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<Guppi>(path, options);
}

}  // namespace ryle::detail
