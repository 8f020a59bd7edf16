// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/live_frames.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/frame_layouts.hpp"
#include "ryle/wire/vdif.hpp"

namespace ryle::pipeline {
namespace {

using wire::Axis;

void read_sample_type(const SourceConfig& source, wire::FrameLayout& layout) {
  std::string_view rest = source.sample;
  layout.complex = rest.starts_with("c");
  if (layout.complex) rest.remove_prefix(1);
  const char* end = rest.data() + rest.size();
  const bool good = rest.starts_with("i") && rest.size() > 1;
  const auto [last, error] = good ? std::from_chars(rest.data() + 1, end, layout.bits)
                                  : std::from_chars_result{end, std::errc::invalid_argument};
  if (error != std::errc() || last != end || layout.bits < 1 || layout.bits > 16)
    throw ConfigError(
        fmt::format("source.sample = \"{}\": source.format = \"{}\" needs the type of a sample, i "
                    "or ci and the "
                    "bits of a part, 1 to 16: \"i2\", \"ci8\"",
                    source.sample, source.format));
}

Encoding frame_encoding(const SourceConfig& source, int bits) {
  const std::string& name = source.sample_encoding;
  if (name == "twos_complement") return Encoding::twos_complement;
  if (name == "offset_binary") return Encoding::offset_binary;
  if (name == "levels") return Encoding::levels;
  if (is_recorded_stream(source)) return Encoding::twos_complement;
  return source.format == "vdif" && bits <= 2 ? Encoding::levels : Encoding::offset_binary;
}

/// Seconds from 2000-01-01 UTC to every reference epoch.
void set_epochs(wire::FrameLayout& layout) {
  constexpr int kEpochs = 64;
  const auto zero = recording_tai_ns_from_vdif(0, 0);
  RYLE_ASSERT(zero.has_value());
  layout.epoch_zero_tai_ns = *zero;
  for (int e = 0; e < kEpochs; ++e) {
    const auto tai_ns = recording_tai_ns_from_vdif(e, 0);
    layout.epoch_seconds.push_back(
        tai_ns ? static_cast<std::uint64_t>((*tai_ns - *zero) / 1'000'000'000) : wire::kNoNumber);
  }
}

/// Inputs that a frame holds: one, or its real channels.
std::int64_t frame_inputs(const wire::FrameLayout& layout) {
  return layout.complex ? 1 : layout.n_channels;
}

void set_senders(const SourceConfig& source, std::int64_t n_inputs, wire::FrameLayout& layout) {
  for (const auto& text : source.stations) layout.stations.push_back(wire::vdif_station(text));
  const auto n_stations =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(layout.stations.size()));
  const std::int64_t of_thread = n_stations * frame_inputs(layout);
  layout.threads = source.threads;
  if (layout.threads.empty()) {
    for (std::int64_t t = 0; t < n_inputs / of_thread; ++t) layout.threads.push_back(t);
  }
  const auto carried = static_cast<std::int64_t>(layout.threads.size()) * of_thread;
  if (carried != n_inputs)
    throw ConfigError(fmt::format(
        "the array has {} inputs; {} thread{} (source.threads) of {} station{} (source.stations) "
        "with {} of them each (source.n_channels) are {}",
        n_inputs, layout.threads.size(), layout.threads.size() == 1 ? "" : "s", n_stations,
        n_stations == 1 ? "" : "s", frame_inputs(layout), carried));
}

wire::FrameLayout frame_layout(const SourceConfig& source, std::int64_t n_inputs) {
  wire::FrameLayout layout;
  read_sample_type(source, layout);
  layout.encoding = frame_encoding(source, layout.bits);
  layout.n_channels = std::max<std::int64_t>(1, source.n_channels);
  layout.frame_bytes = source.frame_bytes;
  if (is_recorded_stream(source)) {
    const auto n_streams =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(source.listen.size()));
    if (n_inputs % n_streams != 0)
      throw ConfigError(
          fmt::format("the array has {} inputs, which the {} streams of source.listen "
                      "do not divide",
                      n_inputs, n_streams));
    if (!layout.complex && layout.n_channels > 1)
      throw ConfigError(
          "source.sample: several channels (source.n_channels) are of complex samples");
    layout.n_inputs = n_inputs / n_streams;
    layout.axis_order = source.axis_order;
    layout.overlap_samples = source.overlap_samples;
    layout.conjugate = source.inverted_band && layout.n_channels > 1;
    return layout;
  }
  layout.prefix_bytes = source.frame_prefix_bytes;
  layout.legacy = source.legacy_headers;
  layout.period_s = source.format == "codif" ? source.period_s : 1;
  const __int128 samples = static_cast<__int128>(source.sample_rate_hz.num) * layout.period_s;
  if (samples % source.sample_rate_hz.den != 0)
    throw ConfigError(fmt::format(
        "source.sample_rate_hz: {} Hz is no whole number of samples in {} s, which frames need",
        source.sample_rate_hz.value(), layout.period_s));
  layout.samples_per_period = static_cast<std::int64_t>(samples / source.sample_rate_hz.den);
  set_epochs(layout);
  set_senders(source, n_inputs, layout);
  return layout;
}

}  // namespace

wire::PacketDescription described_packet(const SourceConfig& source, std::int64_t n_inputs) {
  if (!is_standard(source)) return *source.packet;
  if (source.kind == "pcap" && is_recorded_stream(source))
    throw ConfigError("source.kind = \"pcap\": streams of source.format = \"" + source.format +
                      "\" are no datagrams; read them with source.kind = \"network\", a recording "
                      "with \"file\"");
  const wire::FrameLayout layout = frame_layout(source, n_inputs);
  if (source.format == "codif") return wire::codif_packet(layout);
  if (source.format == "dada") return wire::dada_block(layout);
  return source.format == "guppi" ? wire::guppi_block(layout) : wire::vdif_packet(layout);
}

StreamShape stream_shape(const SourceConfig& source, const DescribedSourceConfig& receiver) {
  const wire::PacketDescription& packet = receiver.packet;
  StreamShape shape;
  shape.guppi = source.format == "guppi";
  shape.n_channels = std::max<std::int64_t>(1, source.n_channels);
  shape.n_inputs = packet.extent(Axis::input);
  shape.bits = packet.sample.bits;
  shape.complex = packet.sample.complex;
  shape.encoding = packet.sample.encoding;
  shape.sample_rate_hz = source.sample_rate_hz.value();
  const double width_hz =
      (packet.has_channels() ? receiver.channels.channel_width_hz : shape.sample_rate_hz) *
      static_cast<double>(shape.n_channels);
  shape.bandwidth_hz = shape.complex ? width_hz : 0.5 * width_hz;
  if (source.inverted_band) shape.bandwidth_hz = -shape.bandwidth_hz;
  if (packet.has_channels()) {
    shape.center_hz = receiver.channels.first_center_hz +
                      0.5 * static_cast<double>(receiver.channels.n_channels - 1) *
                          receiver.channels.channel_width_hz;
  } else {
    // Real samples begin at the edge of their band.
    shape.center_hz = source.center_mhz * 1e6 + (shape.complex ? 0 : 0.5 * shape.bandwidth_hz);
  }
  shape.block_bytes = packet.payload_bytes();
  shape.block_ticks = packet.extent(Axis::time);
  shape.overlap_ticks = source.overlap_samples;
  return shape;
}

std::function<std::string(std::span<const std::byte>)> frame_text(const SourceConfig& source) {
  if (source.format != "vdif") return {};
  const auto prefix = static_cast<std::size_t>(source.frame_prefix_bytes);
  return [prefix](std::span<const std::byte> packet) -> std::string {
    wire::VdifHeader h;
    if (packet.size() < prefix ||
        wire::parse_vdif_header(packet.subspan(prefix), h) != wire::Reject::none)
      return fmt::format("no VDIF header in {} bytes", packet.size());
    return fmt::format(
        "VDIF of {} bytes, {}{} bits, {} channel{}, thread {}, station 0x{:04x}, epoch {}, second "
        "{}, "
        "frame {}, in a packet of {} bytes",
        h.frame_bytes, h.complex ? "complex " : "real ", h.bits, h.n_channels,
        h.n_channels == 1 ? "" : "s", h.thread, h.station, h.reference_epoch, h.seconds, h.frame,
        packet.size());
  };
}

}  // namespace ryle::pipeline
