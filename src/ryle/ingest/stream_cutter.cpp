// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/stream_cutter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/text_header.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kSecond_tai_ns = 1'000'000'000;
constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();

class PacketCutter final : public StreamCutter {
 public:
  explicit PacketCutter(std::size_t packet_bytes) : packet_bytes_(packet_bytes) {}
  Cut cut(std::span<const std::byte> bytes, StreamSink& sink) override {
    std::size_t at = 0;
    while (bytes.size() - at >= packet_bytes_) {
      const bool good = sink.on_packet(bytes.subspan(at, packet_bytes_));
      at += packet_bytes_;
      if (!good) return {at, false};
    }
    return {at};
  }
  std::size_t max_bytes() const override { return packet_bytes_; }
  std::size_t unit_bytes() const override { return packet_bytes_; }

 private:
  std::size_t packet_bytes_;
};

/// What a header says, and what the observation says: all that differs is told at once.
class HeaderCheck {
 public:
  explicit HeaderCheck(std::string format) : format_(std::move(format)) {}

  void same(std::string_view key, std::int64_t says, std::int64_t wanted,
            const std::string& setting) {
    if (says != wanted) add(fmt::format("{} = {}", key, says), setting);
  }
  void close(std::string_view key, double says, double wanted, double tolerance,
             const std::string& setting, std::string_view before = "") {
    if (!(std::abs(says - wanted) <= tolerance))
      add(fmt::format("{}{} = {:.12g}", before, key, says), setting);
  }
  void add(const std::string& says, const std::string& setting) {
    differs_ += (differs_.empty() ? "" : ", ") + says;
    settings_ += (settings_.empty() ? "" : ", ") + setting;
  }
  void require_none() const {
    if (differs_.empty()) return;
    throw FormatError(fmt::format(
        "the header of the {} stream has {}, which is not what the observation file says; this "
        "would fit: {}",
        format_, differs_, settings_));
  }

 private:
  std::string format_, differs_, settings_;
};

/// The rate of samples, by their interval where a header has it, and the width of the channels,
/// which is another where they are oversampled.
/// @param interval_s NaN = not told  @param bandwidth_hz of all channels; 0 = not told
void check_band(HeaderCheck& check, const StreamShape& s, std::string_view interval_key,
                double interval_s, std::string_view bandwidth_key, double bandwidth_hz) {
  const bool timed = interval_s > 0 && std::isfinite(interval_s);
  if (timed)
    check.close(interval_key, 1 / interval_s, s.sample_rate_hz, 1e-6 * s.sample_rate_hz,
                fmt::format("source.sample_rate_hz of {:.12g} Hz", 1 / interval_s), "1 / ");
  if (!std::isfinite(bandwidth_hz) || bandwidth_hz == 0) return;
  const auto channels = static_cast<double>(std::max<std::int64_t>(1, s.n_channels));
  const double width_hz = std::abs(bandwidth_hz) / channels;
  const bool inverted = bandwidth_hz < 0;
  // One channel has no spacing: how much of it is used is no concern.
  const double wanted_hz =
      s.n_channels > 1 || !timed ? s.bandwidth_hz : std::copysign(bandwidth_hz, s.bandwidth_hz);
  std::string setting = fmt::format("source.inverted_band = {}", inverted);
  if (s.n_channels > 1 || !timed)
    setting = fmt::format("{} of {:.12g} Hz, {}",
                          timed ? "source.channel_width_hz" : "source.sample_rate_hz",
                          width_hz * (s.complex ? 1 : 2), setting);
  check.close(bandwidth_key, bandwidth_hz * 1e-6, wanted_hz * 1e-6, 1e-12 * std::abs(wanted_hz),
              setting);
}

/// Throws FormatError for what is no instant of 1961 to 2200, where time scales are defined.
void check_instant(std::int64_t zero_tai_ns, Tick tick, double rate_hz, std::string_view format) {
  const double tai_s = static_cast<double>(zero_tai_ns) * 1e-9 +
                       (rate_hz > 0 ? static_cast<double>(tick) / rate_hz : 0);
  if (tick < 0 || tick > Tick{1} << 60 || !(tai_s > -283'996'800.0 && tai_s < 7'258'118'400.0))
    throw FormatError(
        fmt::format("the header of the {} stream counts to sample {}, which is no instant between "
                    "1961 and 2200",
                    format, tick));
}

std::string sample_setting(bool complex, std::int64_t bits) {
  return fmt::format("source.sample = \"{}i{}\"", complex ? "c" : "", bits);
}

class DadaCutter final : public StreamCutter {
 public:
  explicit DadaCutter(const StreamShape& shape) : shape_(shape) {}

  Cut cut(std::span<const std::byte> bytes, StreamSink& sink) override {
    std::size_t at = 0;
    if (!began_) {
      if (bytes.size() < kFirstBytes) return {};
      const auto declared =
          wire::parse_integer(wire::dada_value(bytes.first(kFirstBytes), "HDR_SIZE"));
      if (!declared || *declared < 64 || *declared > kMaxHeaderBytes)
        throw FormatError(
            "the stream does not begin with a DADA header: HDR_SIZE, 64 bytes to 1 MiB, is not in "
            "its first 4096 bytes");
      at = static_cast<std::size_t>(*declared);
      if (bytes.size() < at) return {};
      read_header(bytes.first(at), sink);
      began_ = true;
    }
    const auto block = static_cast<std::size_t>(shape_.block_bytes);
    while (bytes.size() - at >= block) {
      const bool good = sink.on_block(tick_, bytes.subspan(at, block));
      at += block;
      tick_ += shape_.block_ticks;
      if (!good) return {at, false};
    }
    return {at};
  }
  std::size_t max_bytes() const override {
    return std::max<std::size_t>(kMaxHeaderBytes, static_cast<std::size_t>(shape_.block_bytes));
  }
  std::size_t unit_bytes() const override { return static_cast<std::size_t>(shape_.block_bytes); }
  bool ends_run() const override { return true; }

 private:
  static constexpr std::int64_t kFirstBytes = 4096;
  static constexpr std::int64_t kMaxHeaderBytes = 1 << 20;

  void read_header(std::span<const std::byte> header, StreamSink& sink) {
    const auto text = [&](const char* key) { return wire::dada_value(header, key); };
    const auto integer = [&](const char* key) {
      const auto value = wire::parse_integer(text(key));
      if (!value)
        throw FormatError(
            fmt::format("the header of the DADA stream has {} = \"{}\"; a whole number is needed",
                        key, text(key)));
      return *value;
    };
    const auto& s = shape_;
    HeaderCheck check("DADA");
    const std::int64_t n_channels = integer("NCHAN"), n_dims = integer("NDIM"),
                       n_bits = integer("NBIT");
    check.same("NCHAN", n_channels, s.n_channels,
               fmt::format("source.n_channels = {}", n_channels));
    check.same("NPOL", integer("NPOL"), s.n_inputs,
               fmt::format("an array of {} inputs", integer("NPOL")));
    if (n_dims != (s.complex ? 2 : 1) || n_bits != s.bits)
      check.add(fmt::format("NDIM = {}, NBIT = {}", n_dims, n_bits),
                sample_setting(n_dims == 2, n_bits));
    const std::string_view coded = text("ENCODING");
    const bool offset = coded == "OFFSETBINARY" || coded == "OFFSET_BINARY";
    if (!coded.empty() && offset != (s.encoding == Encoding::offset_binary))
      check.add(fmt::format("ENCODING = {}", coded),
                fmt::format("source.sample_encoding = \"{}\"",
                            offset ? "offset_binary" : "twos_complement"));
    const auto center = wire::parse_real(text("FREQ"));
    check_band(check, s, "TSAMP", wire::parse_real(text("TSAMP")).value_or(kNotTold) * 1e-6, "BW",
               wire::parse_real(text("BW")).value_or(0) * 1e6);
    if (center && *center > 0)
      check.close("FREQ", *center * 1e6, s.center_hz, 0.01 * std::abs(s.bandwidth_hz),
                  fmt::format("a band about {} MHz", *center));
    check.require_none();
    const std::int64_t zero_tai_ns = start_tai_ns(header);
    sink.on_header(zero_tai_ns);
    const std::int64_t offset_bytes = text("OBS_OFFSET").empty() ? 0 : integer("OBS_OFFSET");
    const std::int64_t tick_bytes = s.block_bytes / s.block_ticks;
    if (offset_bytes < 0 || offset_bytes % tick_bytes != 0)
      throw FormatError(fmt::format(
          "the header of the DADA stream has OBS_OFFSET = {}, no whole number of samples of {} "
          "bytes",
          offset_bytes, tick_bytes));
    tick_ = offset_bytes / tick_bytes;
    check_instant(zero_tai_ns, tick_, s.sample_rate_hz, "DADA");
  }

  static std::int64_t start_tai_ns(std::span<const std::byte> header) {
    const std::string start(wire::dada_value(header, "UTC_START"));
    std::optional<std::int64_t> tai_ns = recording_tai_ns_from_text(start);
    if (start.empty()) {
      const std::string_view mjd = wire::dada_value(header, "MJD_START");
      const auto point = mjd.find('.');
      const auto day = wire::parse_integer(mjd.substr(0, point));
      const auto part = point == std::string_view::npos ? std::optional(0.0)
                                                        : wire::parse_real(mjd.substr(point));
      if (day && part && *part >= 0 && *part < 1)
        tai_ns = recording_tai_ns_from_mjd(*day, std::llround(*part * 86'400e9));
    }
    if (!tai_ns)
      throw FormatError(
          "the header of the DADA stream has neither UTC_START (yyyy-mm-dd-hh:mm:ss) nor "
          "MJD_START, "
          "the time of its first sample");
    return *tai_ns;
  }

  StreamShape shape_;
  bool began_ = false;
  Tick tick_ = 0;
};

class GuppiCutter final : public StreamCutter {
 public:
  explicit GuppiCutter(const StreamShape& shape) : shape_(shape) {}

  Cut cut(std::span<const std::byte> bytes, StreamSink& sink) override {
    std::size_t at = 0;
    for (;;) {
      const auto rest = bytes.subspan(at);
      if (header_bytes_ == 0) {
        const std::size_t cards =
            wire::guppi_header_bytes(rest.first(std::min(rest.size(), kMaxHeaderBytes)));
        if (cards == 0) {
          if (rest.size() < kMaxHeaderBytes) return {at};
          throw FormatError(fmt::format(
              "no GUPPI RAW header (cards of 80 characters up to END) at byte {} of the stream",
              offset_));
        }
        const auto direct = wire::parse_integer(wire::guppi_value(rest.first(cards), "DIRECTIO"));
        header_bytes_ = cards;
        if (direct && *direct != 0) header_bytes_ = (offset_ + cards + 511) / 512 * 512 - offset_;
        read_header(rest.first(cards), sink);
      }
      const std::size_t whole = header_bytes_ + static_cast<std::size_t>(shape_.block_bytes);
      if (rest.size() < whole) return {at};
      const bool good = sink.on_block(tick_, rest.subspan(header_bytes_, whole - header_bytes_));
      at += whole;
      offset_ += whole;
      tick_ += shape_.block_ticks;
      header_bytes_ = 0;
      if (!good) return {at, false};
    }
  }
  std::size_t max_bytes() const override {
    return kMaxHeaderBytes + 512 + static_cast<std::size_t>(shape_.block_bytes);
  }
  std::size_t unit_bytes() const override { return static_cast<std::size_t>(shape_.block_bytes); }
  bool ends_run() const override { return true; }

 private:
  static constexpr std::size_t kMaxHeaderBytes = std::size_t{1024} * 80;

  void read_header(std::span<const std::byte> cards, StreamSink& sink) {
    const auto integer = [&](const char* key, std::optional<std::int64_t> otherwise) {
      const auto value = wire::parse_integer(wire::guppi_value(cards, key));
      if (value) return *value;
      if (otherwise) return *otherwise;
      throw FormatError(fmt::format(
          "the header of the GUPPI RAW stream has {} = \"{}\"; a whole number is needed", key,
          wire::guppi_value(cards, key)));
    };
    const auto& s = shape_;
    const std::int64_t antennas = std::max<std::int64_t>(1, integer("NANTS", 1));
    const std::int64_t n_channels = integer("OBSNCHAN", {}) / antennas;
    const std::int64_t polarizations = integer("NPOL", {});
    const std::int64_t n_inputs = antennas * (polarizations == 4 ? 2 : polarizations);
    const std::int64_t bits = integer("NBITS", {}), size = integer("BLOCSIZE", {});
    HeaderCheck check("GUPPI RAW");
    check.same("OBSNCHAN / NANTS", n_channels, s.n_channels,
               fmt::format("source.n_channels = {}", n_channels));
    check.same("NANTS x NPOL", n_inputs, s.n_inputs,
               fmt::format("an array of {} inputs", n_inputs));
    check.same("NBITS", bits, s.bits, sample_setting(true, bits));
    check.same("BLOCSIZE", size, s.block_bytes, fmt::format("source.frame_bytes = {}", size));
    const std::int64_t overlap = integer("OVERLAP", 0);
    check.same("OVERLAP", overlap, s.overlap_ticks,
               fmt::format("source.overlap_samples = {}", overlap));
    const auto bandwidth = wire::parse_real(wire::guppi_value(cards, "OBSBW"));
    const auto center = wire::parse_real(wire::guppi_value(cards, "OBSFREQ"));
    check_band(check, s, "TBIN",
               wire::parse_real(wire::guppi_value(cards, "TBIN")).value_or(kNotTold), "OBSBW",
               bandwidth.value_or(0) * 1e6);
    if (center && *center > 0)
      check.close("OBSFREQ", *center * 1e6, s.center_hz,
                  0.5 * std::abs(s.bandwidth_hz) / static_cast<double>(s.n_channels),
                  fmt::format("a band about {} MHz", *center));
    check.require_none();
    if (!began_) {
      const std::string_view offset = wire::guppi_value(cards, "STT_OFFS");
      const double fraction = offset.empty() ? 0 : wire::parse_real(offset).value_or(kNotTold);
      const std::int64_t day = integer("STT_IMJD", {}), second = integer("STT_SMJD", {});
      std::optional<std::int64_t> tai_ns;
      if (second >= 0 && second <= 86'400 && fraction >= 0 && fraction < 1)
        tai_ns = recording_tai_ns_from_mjd(day, second * kSecond_tai_ns);
      if (!tai_ns)
        throw FormatError(fmt::format(
            "the header of the GUPPI RAW stream has STT_IMJD = {}, STT_SMJD = {}, STT_OFFS = {}: a "
            "day of 1961 to 2200, seconds of it from 0 to 86400 and a fraction below 1 are needed",
            day, second, fraction));
      zero_tai_ns_ = *tai_ns + std::llround(fraction * 1e9);
      sink.on_header(zero_tai_ns_);
    }
    began_ = true;
    // Packets of whole samples tell the place of the block; else it follows the one before.
    const std::int64_t index = integer("PKTIDX", -1), packet = integer("PKTSIZE", 0);
    const std::int64_t tick_bits = 8 * s.block_bytes / (s.block_ticks + s.overlap_ticks);
    if (index < 0 || packet <= 0 || packet > size) return;
    const __int128 before = static_cast<__int128>(index) * packet * 8;
    if (before / tick_bits > (__int128{1} << 60))
      throw FormatError(fmt::format(
          "the header of the GUPPI RAW stream has PKTIDX = {}, PKTSIZE = {}: no place in time",
          index, packet));
    if (before % tick_bits == 0) tick_ = static_cast<Tick>(before / tick_bits);
    check_instant(zero_tai_ns_, tick_, s.sample_rate_hz, "GUPPI RAW");
  }

  StreamShape shape_;
  bool began_ = false;
  std::int64_t zero_tai_ns_ = 0;
  Tick tick_ = 0;
  std::size_t header_bytes_ = 0;  // of the block that is being waited for; 0 = not read
  std::size_t offset_ = 0;        // of its header in the stream
};

}  // namespace

std::unique_ptr<StreamCutter> make_packet_cutter(std::size_t packet_bytes) {
  return std::make_unique<PacketCutter>(packet_bytes);
}

std::unique_ptr<StreamCutter> make_stream_cutter(const StreamShape& shape) {
  if (shape.guppi) return std::make_unique<GuppiCutter>(shape);
  return std::make_unique<DadaCutter>(shape);
}

}  // namespace ryle
