// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/described_sender.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/simulate/send_loop.hpp"
#include "ryle/simulate/unix_time.hpp"

namespace ryle::simulate {

using wire::Axis;

/// What the two kinds of records are to the packets.
struct DescribedSender::Shape {
  std::int64_t n_ticks = 0;  ///< of a record
  std::int64_t n_inputs = 0;
  std::int64_t n_channels = 1;
  std::int64_t n_laps = 1;  ///< records
  Rational rate_hz;
  std::int64_t start_tai_ns = 0;
  std::vector<detail::UdpPacketFormat::Epoch> epochs;  ///< in ticks
};

namespace {

// Counter of tick 0.
std::uint64_t first_count(const wire::PacketDescription& packet, const Rational& rate_hz,
                          std::int64_t start_tai_ns) {
  if (!packet.counts_from_1970) return 0;
  const auto time = detail::unix_time(start_tai_ns);
  const __int128 ns = static_cast<__int128>(time.s) * kSecond_ns + time.ns;
  return static_cast<std::uint64_t>(ns * rate_hz.num * packet.counts_per_tick /
                                    (static_cast<__int128>(rate_hz.den) * packet.ticks_per_count) /
                                    kSecond_ns);
}

}  // namespace

template <class Value>
void DescribedSender::add_links(const Shape& shape, const DescribedSenderConfig& config,
                                const Value& value) {
  const auto codec = std::make_shared<wire::DescribedCodec>(config.packet, config.streams);
  const wire::PacketDescription& d = config.packet;
  const wire::PayloadMap map(d);
  const std::int64_t packet_ticks = d.extent(Axis::time), inputs = d.extent(Axis::input);
  const std::int64_t channels = d.extent(Axis::channel);
  const std::int64_t n_boards = codec->n_boards(), n_blocks = codec->n_blocks();
  if (shape.n_ticks % packet_ticks != 0)
    throw ConfigError("simulator.period_samples = " + std::to_string(shape.n_ticks) +
                      " is no multiple of the " + std::to_string(packet_ticks) +
                      " ticks of a described packet");
  if (shape.n_inputs != n_boards * inputs || shape.n_channels != n_blocks * channels)
    throw ConfigError("the described packets do not carry the inputs and channels of the record");
  if (config.endpoints.size() != 1 &&
      static_cast<std::int64_t>(config.endpoints.size()) != n_boards)
    throw ConfigError("the sender has " + std::to_string(config.endpoints.size()) +
                      " endpoints for " + std::to_string(n_boards) +
                      " boards; one for all or one each works");
  const std::int64_t n_slots = shape.n_ticks / packet_ticks;
  auto& schedule = loop().schedule;
  const double slots_per_s = shape.rate_hz.value() / static_cast<double>(packet_ticks);
  schedule.rate_hz = slots_per_s * static_cast<double>(n_blocks);
  schedule.speed = config.speed;
  // Whole times: a last one without its last channels would look like loss.
  if (config.duration_s > 0)
    schedule.duration_s = std::max(1.0, std::round(config.duration_s * slots_per_s)) / slots_per_s;
  schedule.udp_ceiling_packets_per_s = config.udp_ceiling_packets_per_s;
  schedule.any_udp = true;
  schedule.in_step = true;
  validate(schedule, config.outages, n_boards);
  detail::UdpPacketFormat format;
  format.packet_bytes = d.length;
  if (config.segmentation)
    format.packets_per_message = detail::packets_per_message(format.packet_bytes);
  const std::uint64_t first = first_count(d, shape.rate_hz, shape.start_tai_ns);
  const auto step = static_cast<std::uint64_t>(d.counts_per_packet());
  format.stamp = [codec, first, step, n_blocks](Tick packet, std::span<std::byte> bytes) {
    codec->set_counter(first + static_cast<std::uint64_t>(packet / n_blocks) * step, bytes);
  };
  for (const auto& epoch : shape.epochs)
    format.epochs.push_back({epoch.first / packet_ticks * n_blocks, epoch.lap});
  std::vector<std::byte> payload(static_cast<std::size_t>(d.payload_bytes()));
  for (std::int64_t board = 0; board < n_boards; ++board) {
    auto endpoint = detail::parse_target(
        config.endpoints[config.endpoints.size() == 1 ? 0 : static_cast<std::size_t>(board)]);
    if (endpoint.is_tcp())
      throw ConfigError("endpoint \"" + to_string(endpoint) +
                        "\": described packets are sent over udp:// only");
    const std::int64_t lap_packets = n_slots * n_blocks;
    std::vector<std::byte> image(
        static_cast<std::size_t>(shape.n_laps * lap_packets * format.packet_bytes));
    for (std::int64_t k = 0; k < shape.n_laps * lap_packets; ++k) {
      const std::int64_t lap = k / lap_packets, slot = k % lap_packets / n_blocks,
                         block = k % n_blocks;
      for (std::int64_t t = 0; t < packet_ticks; ++t) {
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t i = 0; i < inputs; ++i) {
            for (int part = 0; part < d.sample.n_parts(); ++part)
              map.set_part(payload.data(), c, t, i, part,
                           value(lap, slot * packet_ticks + t, block * channels + c,
                                 board * inputs + i, part));
          }
        }
      }
      wire::Packet packet;
      packet.stream = static_cast<std::uint32_t>(block * n_boards + board);
      const std::size_t written = codec->encode(
          packet, payload, std::span(image).subspan(static_cast<std::size_t>(k) * d.length));
      if (written != d.length)
        throw ConfigError("source.packet: the header has no room for board " +
                          std::to_string(board) + ", channel block " + std::to_string(block));
    }
    loop().links.push_back(detail::make_udp_link(std::move(endpoint), std::move(image), lap_packets,
                                                 0, outages_of(config.outages, board, schedule),
                                                 format));
  }
}

DescribedSender::DescribedSender(const VoltageRecord& record, const DescribedSenderConfig& config) {
  const int n_parts = config.packet.sample.n_parts();
  if (record.n_parts != n_parts)
    throw ConfigError("the record of voltages has other samples than the described packets");
  Shape shape;
  shape.n_ticks = record.n_samples;
  shape.n_inputs = record.n_inputs;
  shape.rate_hz = record.sample_rate_hz;
  shape.start_tai_ns = record.start_tai_ns;
  add_links(shape, config,
            [&](std::int64_t, std::int64_t tick, std::int64_t, std::int64_t input, int part) {
              const auto word = record.samples[(tick * record.n_inputs + input) * n_parts + part];
              return static_cast<int>(static_cast<std::int16_t>(word));
            });
}

DescribedSender::DescribedSender(std::span<const SpectraEpoch> epochs,
                                 const DescribedSenderConfig& config) {
  const auto records = detail::records_of(epochs);
  const SpectraRecord& first = *records.front();
  Shape shape;
  shape.n_ticks = first.n_spectra;
  shape.n_inputs = first.n_inputs;
  shape.n_channels = first.n_channels;
  shape.n_laps = static_cast<std::int64_t>(records.size());
  shape.rate_hz = first.spectrum_rate_hz;
  shape.start_tai_ns = first.start_tai_ns;
  for (const auto& epoch : epochs) {
    const auto at = std::find(records.begin(), records.end(), epoch.record);
    shape.epochs.push_back({epoch.first_spectrum, at - records.begin()});
  }
  add_links(
      shape, config,
      [&](std::int64_t lap, std::int64_t tick, std::int64_t number, std::int64_t input, int part) {
        const SpectraRecord& record = *records[static_cast<std::size_t>(lap)];
        const std::int64_t channel = config.descending ? record.n_channels - 1 - number : number;
        const int byte = record.spectrum(tick)[channel * record.n_inputs + input];
        const int code = part == 0 ? byte >> 4 : byte & 15;
        return (code ^ 8) - 8;
      });
}

}  // namespace ryle::simulate
