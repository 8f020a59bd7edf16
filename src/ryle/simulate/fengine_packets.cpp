// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/fengine_packets.hpp"

#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/simulate/fengine_sender.hpp"
#include "ryle/simulate/unix_time.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle::simulate {
namespace {

void require(bool good, const std::string& message) {
  if (!good) throw ConfigError(message);
}

// 196 MHz ticks since 1970-01-01 UTC of an instant.
std::int64_t time_tag(std::int64_t tai_ns) {
  const auto time = detail::unix_time(tai_ns);
  return time.s * wire::kLwaTicksPerSecond + time.ns * 49 / 250;  // 196e6 / 1e9
}

std::uint64_t ticks_per_spectrum(const Rational& rate) {
  require(wire::kLwaTicksPerSecond * rate.den % rate.num == 0,
          "spectrum_rate_hz = " + std::to_string(rate.num) + "/" + std::to_string(rate.den) +
              " is no whole number of 196 MHz ticks a spectrum; 25000/1 and 765625/32 are");
  return static_cast<std::uint64_t>(wire::kLwaTicksPerSecond * rate.den / rate.num);
}

Tick in_lap(Tick tick, std::int64_t period) {
  const Tick remainder = tick % period;
  return remainder < 0 ? remainder + period : remainder;
}

}  // namespace

namespace detail {

FenginePackets fengine_packets(const SpectraRecord& record, const std::string& format,
                               std::int64_t first_channel, std::int64_t channels_per_packet,
                               std::int64_t first_time_tag) {
  FenginePackets p;
  p.format = format;
  p.first_channel = first_channel;
  p.channels_per_packet = channels_per_packet > 0 ? channels_per_packet : record.n_channels;
  if (format == "tbf" && channels_per_packet == 0) {
    p.channels_per_packet = wire::kTbfChannelsPerFrame;
  }
  if (format == "chips") {
    p.inputs_per_packet = wire::kChipsInputsPerBoard;
    p.packet_bytes = wire::kChipsHeaderBytes;
    p.counter_offset = 8;
    p.counter_bias = 1;  // sequence numbers count from 1
  } else if (format == "tbx" || format == "tbf") {
    const bool tbx = format == "tbx";
    require(tbx || p.channels_per_packet == wire::kTbfChannelsPerFrame,
            "a TBF frame has 12 channels, not " + std::to_string(p.channels_per_packet));
    require(record.n_inputs % 2 == 0 && record.n_inputs <= 512,
            std::to_string(record.n_inputs) + " inputs are not 1 to 256 stands of two");
    require(first_channel >= 0 && first_channel + record.n_channels <= wire::kLwaMaxChannels,
            "LWA frames count channels to 4095; the record ends at " +
                std::to_string(first_channel + record.n_channels - 1));
    p.inputs_per_packet = record.n_inputs;
    p.packet_bytes = tbx ? wire::kTbxHeaderBytes : wire::kTbfHeaderBytes;
    p.counter_offset = tbx ? 20 : 16;
    p.counter_bias = static_cast<std::uint64_t>(
        first_time_tag >= 0 ? first_time_tag : time_tag(record.start_tai_ns));
    p.counter_scale = ticks_per_spectrum(record.spectrum_rate_hz);
  } else {
    throw UnsupportedError("no F-engine packet format \"" + format + "\"; known: chips, tbf, tbx");
  }
  require(record.n_inputs % p.inputs_per_packet == 0, std::to_string(record.n_inputs) +
                                                          " inputs do not fill boards of " +
                                                          std::to_string(p.inputs_per_packet));
  require(record.n_channels % p.channels_per_packet == 0,
          std::to_string(p.channels_per_packet) + " channels a packet do not divide the " +
              std::to_string(record.n_channels) + " of the record");
  require(format != "chips" || (p.channels_per_packet <= 255 && first_channel >= 0 &&
                                first_channel + record.n_channels <= 65536),
          "CHIPS packets hold at most 255 channels of numbers 0 to 65535");
  p.n_boards = record.n_inputs / p.inputs_per_packet;
  p.n_blocks = record.n_channels / p.channels_per_packet;
  p.packet_bytes += p.channels_per_packet * p.inputs_per_packet;
  require(p.n_boards <= 255, "CHIPS counts 255 boards of 32 inputs");
  return p;
}

void pack_one(const SpectraRecord& record, const FenginePackets& p, std::int64_t block,
              std::int64_t board, Tick spectrum, std::vector<std::byte>& payload, std::byte* out) {
  payload.resize(p.channels_per_packet * p.inputs_per_packet);
  const std::uint8_t* from = record.spectrum(in_lap(spectrum, record.n_spectra)) +
                             block * p.channels_per_packet * record.n_inputs +
                             board * p.inputs_per_packet;
  for (std::int64_t c = 0; c < p.channels_per_packet; ++c) {
    std::memcpy(payload.data() + c * p.inputs_per_packet, from + c * record.n_inputs,
                static_cast<std::size_t>(p.inputs_per_packet));
  }
  wire::Packet packet;
  packet.stream = static_cast<std::uint32_t>(board);
  packet.channel = static_cast<std::uint32_t>(p.first_channel + block * p.channels_per_packet);
  packet.n_channels = static_cast<std::uint32_t>(p.channels_per_packet);
  packet.n_inputs = static_cast<std::uint32_t>(p.inputs_per_packet);
  packet.tick_raw = p.counter_bias + p.counter_scale * static_cast<std::uint64_t>(spectrum);
  const auto bytes = std::span(out, static_cast<std::size_t>(p.packet_bytes));
  std::size_t written = 0;
  const auto frame = static_cast<std::uint32_t>(block) & 0xFFFFFF;
  if (p.format == "chips") {
    packet.tick_raw -= 1;  // the codec adds it
    // Subband fields as a single subband of all boards; Ryle does not trust them.
    packet.flags = static_cast<std::uint32_t>(p.n_blocks) << 8 |
                   static_cast<std::uint32_t>(block) << 16 |
                   static_cast<std::uint32_t>(p.n_boards) << 24;
    written = wire::encode(wire::ChipsGeometry{255, 0}, packet, payload, bytes);
  } else if (p.format == "tbx") {
    packet.flags = 8U << 24 | frame;
    written = wire::encode(wire::TbxGeometry{0, 0, 0, 0}, packet, payload, bytes);
  } else {
    packet.flags = 1U << 24 | frame;
    written = wire::encode(wire::TbfGeometry{0, 0, 0, true}, packet, payload, bytes);
  }
  RYLE_ASSERT(written == bytes.size());
}

std::vector<std::byte> pack(const SpectraRecord& record, const FenginePackets& packets,
                            std::int64_t block, std::int64_t board) {
  std::vector<std::byte> bytes(record.n_spectra * packets.packet_bytes);
  std::vector<std::byte> payload;
  for (Tick t = 0; t < record.n_spectra; ++t) {
    pack_one(record, packets, block, board, t, payload, bytes.data() + t * packets.packet_bytes);
  }
  return bytes;
}

}  // namespace detail

}  // namespace ryle::simulate
