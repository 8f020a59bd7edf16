// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/frame_layouts.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/text_header.hpp"
#include "ryle/wire/vdif.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint32_t kCodifHeaderBytes = 64;

void need(bool good, const std::string& message) {
  if (!good) throw ConfigError(message);
}

HeaderField field(FieldMeaning meaning, std::int64_t offset, int bytes, int low_bit, int n_bits) {
  HeaderField f;
  f.meaning = meaning;
  f.offset = static_cast<std::uint32_t>(offset);
  f.bytes = bytes;
  f.big_endian = false;
  f.low_bit = low_bit;
  f.n_bits = n_bits;
  return f;
}

HeaderField constant(std::int64_t offset, int bytes, int low_bit, int n_bits,
                     std::vector<std::uint64_t> values, Reject reject) {
  HeaderField f = field(FieldMeaning::constant, offset, bytes, low_bit, n_bits);
  f.values = std::move(values);
  f.reject = reject;
  return f;
}

std::uint64_t whole(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// The number of each listed value; all others are foreign.
HeaderField listed(HeaderField f, const std::vector<std::int64_t>& values, const char* key) {
  f.map.assign(std::size_t{1} << f.n_bits, kNoNumber);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto value = static_cast<std::size_t>(values[k]);
    need(values[k] >= 0 && value < f.map.size(),
         std::string(key) + ": " + std::to_string(values[k]) + " is not in 0 .. " +
             std::to_string(f.map.size() - 1));
    need(f.map[value] == kNoNumber,
         std::string(key) + ": " + std::to_string(values[k]) + " comes twice");
    f.map[value] = k;
  }
  f.count = static_cast<std::int64_t>(values.size());
  return f;
}

/// Stations, where they are listed, then threads.
void add_boards(const FrameLayout& layout, const HeaderField& station, const HeaderField& thread,
                PacketDescription& packet) {
  need(!layout.threads.empty(), "source.threads is empty: list the numbers of the threads");
  if (!layout.stations.empty())
    packet.header.push_back(listed(station, layout.stations, "source.stations"));
  packet.header.push_back(listed(thread, layout.threads, "source.threads"));
}

void add_seconds(const FrameLayout& layout, const HeaderField& seconds, HeaderField epoch,
                 PacketDescription& packet) {
  epoch.map = layout.epoch_seconds;
  packet.header.push_back(std::move(epoch));
  packet.header.push_back(seconds);
  packet.zero_tai_ns = layout.epoch_zero_tai_ns;
  packet.period_s = layout.period_s;
}

SampleCode sample_of(const FrameLayout& layout) {
  SampleCode s;
  s.complex = layout.complex;
  s.bits = layout.bits;
  s.msb_first = false;
  s.encoding = layout.encoding;
  s.conjugate = layout.conjugate;
  return s;
}

/// The samples of a frame: as many as words of 32 bits hold, in the order time, channel.
void set_frame_payload(const FrameLayout& layout, std::int64_t header_bytes,
                       PacketDescription& packet) {
  const std::int64_t payload = layout.frame_bytes - header_bytes, n = layout.n_channels;
  need(layout.frame_bytes % 8 == 0 && payload > 0,
       "source.frame_bytes = " + std::to_string(layout.frame_bytes) +
           ": a multiple of 8 beyond the header of " + std::to_string(header_bytes) + " is needed");
  packet.length = static_cast<std::uint32_t>(layout.prefix_bytes + layout.frame_bytes);
  packet.payload_offset = static_cast<std::uint32_t>(layout.prefix_bytes + header_bytes);
  packet.sample = sample_of(layout);
  const std::int64_t stride = packet.sample.stride_bits();
  const std::int64_t per_word = 32 / stride, pad = 32 - per_word * stride;
  const std::int64_t n_words = payload / 4;
  const Axis channel = layout.complex ? Axis::channel : Axis::input;
  const std::string what = "frames of " + std::to_string(layout.frame_bytes) +
                           " bytes (source.frame_bytes) and " + std::to_string(n) + " channels";
  if (pad == 0) {
    need(payload * 8 % (stride * n) == 0,
         what + " do not hold whole samples of " + std::to_string(stride) + " bits");
    packet.order = {{Axis::time, payload * 8 / (stride * n)}};
    if (n > 1) packet.order.push_back({channel, n});
  } else if (per_word % n == 0) {
    packet.order = {{Axis::time, n_words}, {Axis::time, per_word / n, pad}};
    if (n > 1) packet.order.push_back({channel, n});
  } else {
    const std::int64_t words = n / per_word;
    need(n % per_word == 0 && n_words % words == 0,
         what + " do not hold whole samples: a word of 32 bits holds " + std::to_string(per_word));
    packet.order = {{Axis::time, n_words / words}, {channel, words}, {channel, per_word, pad}};
  }
  packet.ticks_per_count = packet.extent(Axis::time);
  need(layout.samples_per_period > 0 && layout.samples_per_period % packet.ticks_per_count == 0,
       std::to_string(layout.samples_per_period) + " samples in " +
           std::to_string(layout.period_s) + " s (source.sample_rate_hz) are no whole number of " +
           "frames of " + std::to_string(packet.ticks_per_count) + " samples (source.frame_bytes)");
  packet.counts_per_period = layout.samples_per_period / packet.ticks_per_count;
}

/// "TFP" or "PFT256", slowest first; a block has `n_times` where T is the slowest.
std::vector<PayloadAxis> axes_of(const std::string& order, const FrameLayout& layout,
                                 std::int64_t n_times) {
  std::vector<PayloadAxis> axes;
  for (const char letter : order.substr(0, 3)) {
    if (letter == 'T') axes.push_back({Axis::time, n_times});
    if (letter == 'F') axes.push_back({Axis::channel, layout.n_channels});
    if (letter == 'P') axes.push_back({Axis::input, layout.n_inputs});
  }
  std::string sorted = order.substr(0, 3);
  std::sort(sorted.begin(), sorted.end());
  need(sorted == "FPT", "source.axis_order = \"" + order +
                            "\": T, F and P, the slowest first (\"TFP\"), with the times of a "
                            "block where T is not the slowest (\"PFT256\")");
  std::erase_if(axes,
                [&](const PayloadAxis& a) { return a.axis == Axis::channel && a.extent == 1; });
  return axes;
}

/// A block behind the counter that is not in the stream.
PacketDescription block_of(const FrameLayout& layout, std::vector<PayloadAxis> order,
                           std::int64_t bytes) {
  PacketDescription packet;
  packet.is_block = true;
  constexpr std::int64_t kHeaderBytes = 16;  // the counter, and which of several streams it is
  packet.payload_offset = kHeaderBytes;
  packet.length =
      static_cast<std::uint32_t>(std::min<std::int64_t>(bytes + kHeaderBytes, 0xFFFFFFFF));
  packet.header = {field(FieldMeaning::sequence, 0, 8, 0, 64),
                   field(FieldMeaning::board, 8, 8, 0, 32)};
  packet.sample = sample_of(layout);
  packet.order = std::move(order);
  return packet;
}

}  // namespace

PacketDescription vdif_packet(const FrameLayout& layout) {
  PacketDescription packet;
  const std::int64_t p = layout.prefix_bytes;
  need(std::has_single_bit(whole(layout.n_channels)),
       "source.n_channels = " + std::to_string(layout.n_channels) +
           ": frames of VDIF have 1, 2, 4, 8, ... channels");
  set_frame_payload(layout, layout.legacy ? kVdifLegacyHeaderBytes : kVdifHeaderBytes, packet);
  const auto kind = whole(layout.bits - 1 + (layout.complex ? 32 : 0));
  const auto log2 = static_cast<std::uint64_t>(std::countr_zero(whole(layout.n_channels)));
  packet.header = {
      constant(p + 8, 4, 0, 24, {whole(layout.frame_bytes / 8)}, Reject::length),
      constant(p + 12, 4, 26, 6, {kind}, Reject::field),
      constant(p + 8, 4, 24, 5, {log2}, Reject::field),
      constant(p, 4, 30, 1, {layout.legacy ? 1u : 0u}, Reject::field),
      field(FieldMeaning::invalid, p, 4, 31, 1),
      field(FieldMeaning::sequence, p + 4, 4, 0, 24),
  };
  add_seconds(layout, field(FieldMeaning::second, p, 4, 0, 30),
              field(FieldMeaning::second, p + 4, 4, 24, 6), packet);
  add_boards(layout, field(FieldMeaning::board, p + 12, 4, 0, 16),
             field(FieldMeaning::board, p + 12, 4, 16, 10), packet);
  return packet;
}

PacketDescription codif_packet(const FrameLayout& layout) {
  PacketDescription packet;
  const std::int64_t p = layout.prefix_bytes;
  need(layout.encoding != Encoding::levels && !layout.legacy,
       "source.format = \"codif\": samples are offset binary or two's complement "
       "(source.sample_encoding), headers have 64 bytes");
  set_frame_payload(layout, kCodifHeaderBytes, packet);
  const std::uint64_t payload_words = whole((layout.frame_bytes - kCodifHeaderBytes) / 8);
  const std::uint64_t twos = layout.encoding == Encoding::twos_complement ? 1 : 0;
  packet.header = {
      constant(p + 40, 4, 0, 32, {0xFEEDCAFE}, Reject::magic),
      constant(p + 28, 4, 0, 32, {payload_words}, Reject::length),
      constant(p + 9, 1, 0, 8, {whole(layout.bits)}, Reject::field),
      constant(p + 10, 1, 2, 1, {layout.complex ? 1u : 0u}, Reject::field),
      constant(p + 10, 1, 4, 4, {twos}, Reject::field),
      constant(p + 14, 2, 0, 16, {whole(layout.period_s)}, Reject::field),
      constant(p + 24, 2, 0, 16, {whole(layout.n_channels)}, Reject::field),
      constant(p + 32, 8, 0, 64, {whole(layout.samples_per_period)}, Reject::field),
      constant(p + 18, 2, 0, 16, {0}, Reject::foreign_stream),
      field(FieldMeaning::invalid, p + 10, 1, 1, 1),
      field(FieldMeaning::sequence, p, 4, 0, 32),
  };
  add_seconds(layout, field(FieldMeaning::second, p + 4, 4, 0, 32),
              field(FieldMeaning::second, p + 8, 1, 0, 8), packet);
  add_boards(layout, field(FieldMeaning::board, p + 22, 2, 0, 16),
             field(FieldMeaning::board, p + 16, 2, 0, 16), packet);
  return packet;
}

PacketDescription dada_block(const FrameLayout& layout) {
  constexpr std::int64_t kBytes = 4096;
  const SampleCode sample = sample_of(layout);
  need(layout.bits % 8 == 0, "source.sample: DADA streams of 8 and 16 bits are read");
  const std::string order = layout.axis_order.empty() ? "TFP" : layout.axis_order;
  const std::int64_t time_bytes = checked_product(
      {layout.n_channels, layout.n_inputs, sample.stride_bits() / 8}, "a time sample");
  std::int64_t n_times = 1;
  if (order.size() > 3) {
    const auto told = parse_integer(std::string_view(order).substr(3));
    need(told && *told >= 1 && *told <= 1 << 24,
         "source.axis_order = \"" + order + "\": the times of a block are 1 to 2^24");
    n_times = *told;
  } else {
    need(order[0] == 'T', "source.axis_order = \"" + order +
                              "\": T is not the slowest: append the times of a block, \"" + order +
                              "256\"");
    while (2 * n_times * time_bytes <= kBytes) n_times *= 2;
  }
  return block_of(layout, axes_of(order, layout, n_times),
                  checked_product({n_times, time_bytes}, "a DADA block"));
}

PacketDescription guppi_block(const FrameLayout& layout) {
  const SampleCode coded = sample_of(layout);
  need(layout.complex && (layout.bits == 4 || layout.bits == 8),
       "source.sample: GUPPI RAW streams of \"ci4\" and \"ci8\" are read");
  need(layout.n_inputs <= 2 || layout.n_inputs % 2 == 0,
       "GUPPI RAW has two polarizations of several antennas; the array has " +
           std::to_string(layout.n_inputs) + " inputs");
  const std::int64_t n_pols = std::min<std::int64_t>(layout.n_inputs, 2);
  const std::int64_t antennas = layout.n_inputs / n_pols;
  const std::int64_t sample_bytes = coded.stride_bits() / 8;
  const std::int64_t time_bytes =
      checked_product({layout.n_channels, layout.n_inputs, sample_bytes}, "a time sample");
  need(layout.frame_bytes > 0 && layout.frame_bytes % time_bytes == 0,
       "source.frame_bytes = " + std::to_string(layout.frame_bytes) +
           ": the bytes of a block of GUPPI RAW (BLOCSIZE), a multiple of " +
           std::to_string(time_bytes));
  const std::int64_t n_times = layout.frame_bytes / time_bytes - layout.overlap_samples;
  need(layout.overlap_samples >= 0 && n_times >= 1,
       "source.overlap_samples = " + std::to_string(layout.overlap_samples) +
           " leaves nothing of a block of " + std::to_string(n_times + layout.overlap_samples) +
           " samples");
  need(layout.axis_order.empty() || layout.axis_order == "FTP" || layout.axis_order == "TFP",
       "source.axis_order = \"" + layout.axis_order +
           "\": GUPPI RAW has \"FTP\", or \"TFP\" "
           "where PKTFMT is SIMPLE");
  const bool time_first = layout.axis_order == "TFP";
  const std::int64_t row = n_pols * sample_bytes * 8 * (time_first ? layout.n_channels : 1);
  PayloadAxis time{Axis::time, n_times, layout.overlap_samples * row};
  std::vector<PayloadAxis> order{{Axis::input, antennas}, {Axis::channel, layout.n_channels}, time};
  if (time_first) std::swap(order[1], order[2]);
  order.push_back({Axis::input, n_pols});
  PacketDescription packet = block_of(layout, std::move(order), layout.frame_bytes);
  packet.sample.msb_first = true;  // 4 bits: the real part is the high half
  return packet;
}

std::int64_t vdif_station(const std::string& text) {
  const auto first = static_cast<unsigned char>(text.empty() ? '0' : text[0]);
  if (text.size() == 2 && ((first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z')))
    return static_cast<unsigned char>(text[0]) << 8 | static_cast<unsigned char>(text[1]);
  const bool hexadecimal = text.starts_with("0x");
  const char* begin = text.data() + (hexadecimal ? 2 : 0);
  std::int64_t value = -1;
  const auto [end, error] =
      std::from_chars(begin, text.data() + text.size(), value, hexadecimal ? 16 : 10);
  need(error == std::errc() && end == text.data() + text.size() && value >= 0 && value < 65536,
       "source.stations: \"" + text +
           "\" is no station: two characters, the first a letter (\"Ef\"), or a number (\"0x11\")");
  return value;
}

}  // namespace ryle::wire
