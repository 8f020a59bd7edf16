// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/described_sender.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/simulate/lap_feeder.hpp"
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
  bool is_stream = false;   ///< drawn while it is sent: laps are a ring
  Rational rate_hz;
  std::int64_t start_tai_ns = 0;
  std::vector<detail::UdpPacketFormat::Epoch> epochs;  ///< in ticks

  static Shape of(const VoltageRecord& record) {
    Shape shape;
    shape.n_ticks = record.n_samples;
    shape.n_inputs = record.n_inputs;
    shape.rate_hz = record.sample_rate_hz;
    shape.start_tai_ns = record.start_tai_ns;
    return shape;
  }
  static Shape of(const SpectraRecord& record) {
    Shape shape;
    shape.n_ticks = record.n_spectra;
    shape.n_inputs = record.n_inputs;
    shape.n_channels = record.n_channels;
    shape.rate_hz = record.spectrum_rate_hz;
    shape.start_tai_ns = record.start_tai_ns;
    return shape;
  }
};

namespace {

// Counter of tick 0.
std::uint64_t first_count(const wire::PacketDescription& packet, const Rational& rate_hz,
                          std::int64_t start_tai_ns) {
  if (!packet.is_dated()) return 0;
  const auto time = detail::unix_time(start_tai_ns);
  const __int128 ns = packet.zero_tai_ns ? static_cast<__int128>(start_tai_ns) - *packet.zero_tai_ns
                                         : static_cast<__int128>(time.s) * kSecond_ns + time.ns;
  return static_cast<std::uint64_t>(ns * rate_hz.num * packet.counts_per_tick /
                                    (static_cast<__int128>(rate_hz.den) * packet.ticks_per_count) /
                                    kSecond_ns);
}

}  // namespace

/// Lays the values of a record into the packets of a board.
class DescribedSender::Packer {
 public:
  Packer(const DescribedSenderConfig& config, std::shared_ptr<wire::DescribedCodec> codec,
         std::int64_t n_ticks)
      : description_(config.packet),
        map_(description_),
        codec_(std::move(codec)),
        packet_ticks_(description_.extent(Axis::time)),
        lap_packets_(n_ticks / packet_ticks_ * codec_->n_blocks()) {}

  std::int64_t lap_packets() const { return lap_packets_; }
  /// Ticks before a packet of the schedule.
  Tick tick_of(std::int64_t packet) const { return packet / codec_->n_blocks() * packet_ticks_; }

  /// @param value (tick of the record, channel, input, part); counters are written when it is sent
  template <class Value>
  void pack(std::int64_t board, const Value& value, std::span<std::byte> image) const {
    const std::int64_t channels = description_.extent(Axis::channel);
    const std::int64_t inputs = description_.extent(Axis::input);
    const std::int64_t n_blocks = codec_->n_blocks();
    std::vector<std::byte> payload(static_cast<std::size_t>(description_.payload_bytes()));
    for (std::int64_t k = 0; k < lap_packets_; ++k) {
      const std::int64_t first = k / n_blocks * packet_ticks_, block = k % n_blocks;
      for (std::int64_t t = 0; t < packet_ticks_; ++t) {
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t i = 0; i < inputs; ++i) {
            for (int part = 0; part < description_.sample.n_parts(); ++part)
              map_.set_part(payload.data(), c, t, i, part,
                            value(first + t, block * channels + c, board * inputs + i, part));
          }
        }
      }
      wire::Packet packet;
      packet.stream = static_cast<std::uint32_t>(block * codec_->n_boards() + board);
      const std::size_t written = codec_->encode(
          packet, payload, image.subspan(static_cast<std::size_t>(k) * description_.length));
      if (written != description_.length)
        throw ConfigError("source.packet: the header has no room for board " +
                          std::to_string(board) + ", channel block " + std::to_string(block));
    }
  }

 private:
  wire::PacketDescription description_;
  wire::PayloadMap map_;
  std::shared_ptr<wire::DescribedCodec> codec_;
  std::int64_t packet_ticks_, lap_packets_;
};

std::shared_ptr<const DescribedSender::Packer> DescribedSender::add_links(
    const Shape& shape, const DescribedSenderConfig& config) {
  const auto codec = std::make_shared<wire::DescribedCodec>(config.packet, config.streams);
  const wire::PacketDescription& d = config.packet;
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
  auto packer = std::make_shared<Packer>(config, codec, shape.n_ticks);
  auto& schedule = loop().schedule;
  const double slots_per_s = shape.rate_hz.value() / static_cast<double>(packet_ticks);
  schedule.rate_hz = slots_per_s * static_cast<double>(n_blocks);
  schedule.speed = config.speed;
  // Whole times: a last one without its last channels would look like loss.
  if (config.duration_s > 0)
    schedule.duration_s = std::max(1.0, std::round(config.duration_s * slots_per_s)) / slots_per_s;
  schedule.udp_ceiling_packets_per_s =
      config.sink ? detail::kNoCeiling : config.udp_ceiling_packets_per_s;
  schedule.any_udp = true;
  schedule.in_step = true;
  validate(schedule, config.outages, n_boards);
  detail::UdpPacketFormat format;
  format.packet_bytes = d.length;
  format.header_bytes = d.payload_offset;
  if (config.segmentation)
    format.packets_per_message = detail::packets_per_message(format.packet_bytes);
  const std::uint64_t first = first_count(d, shape.rate_hz, shape.start_tai_ns);
  const auto step = static_cast<std::uint64_t>(d.counts_per_packet());
  format.stamp = [codec, first, step, n_blocks](Tick packet, std::span<std::byte> bytes) {
    codec->set_counter(first + static_cast<std::uint64_t>(packet / n_blocks) * step, bytes);
  };
  for (const auto& epoch : shape.epochs)
    format.epochs.push_back({epoch.first / packet_ticks * n_blocks, epoch.lap});
  for (std::int64_t board = 0; board < n_boards; ++board) {
    auto endpoint = detail::parse_target(
        config.endpoints[config.endpoints.size() == 1 ? 0 : static_cast<std::size_t>(board)]);
    detail::UdpPacketFormat own = format;
    complete_format(own, config.impairments, config.sink, endpoint,
                    {board, board, schedule.rate_hz});
    own.impairments.step_ticks -= own.impairments.step_ticks % n_blocks;
    const std::int64_t lap = packer->lap_packets();
    std::vector<std::byte> image(
        static_cast<std::size_t>(shape.n_laps * lap * format.packet_bytes));
    loop().links.push_back(detail::make_udp_link(std::move(endpoint), std::move(image),
                                                 shape.is_stream ? shape.n_laps * lap : lap, 0,
                                                 outages_of(config.outages, board, schedule), own));
  }
  return packer;
}

/// @param value (record, tick, channel, input, part)
template <class Value>
void DescribedSender::pack_records(const Packer& packer, std::int64_t n_records,
                                   const Value& value) {
  for (std::size_t board = 0; board < loop().links.size(); ++board) {
    const std::span image = loop().links[board]->image();
    const std::size_t lap = image.size() / static_cast<std::size_t>(n_records);
    for (std::int64_t record = 0; record < n_records; ++record) {
      packer.pack(
          static_cast<std::int64_t>(board),
          [&](Tick tick, std::int64_t channel, std::int64_t input, int part) {
            return value(record, tick, channel, input, part);
          },
          image.subspan(static_cast<std::size_t>(record) * lap, lap));
    }
  }
}

/// @param draw makes the record of a tick and returns its values (tick, channel, input, part)
template <class Draw>
void DescribedSender::feed(std::shared_ptr<const Packer> packer, const Draw& draw) {
  auto* links = &loop().links;
  const std::int64_t lap_packets = packer->lap_packets();
  detail::feed_laps(loop(), lap_packets, 0, [packer, links, draw](Tick first, std::int64_t slot) {
    const auto value = draw(packer->tick_of(first));
    for (std::size_t board = 0; board < links->size(); ++board) {
      const std::span image = (*links)[board]->image();
      const std::size_t lap = image.size() / static_cast<std::size_t>(detail::LapFeeder::kLaps);
      packer->pack(static_cast<std::int64_t>(board), value,
                   image.subspan(static_cast<std::size_t>(slot) * lap, lap));
    }
  });
}

namespace {

// A part of a sample, as the description's samples have it.
auto voltage_value(const VoltageRecord& record) {
  return [&record](Tick tick, std::int64_t, std::int64_t input, int part) {
    const auto word = record.samples[(tick * record.n_inputs + input) * record.n_parts + part];
    return static_cast<int>(static_cast<std::int16_t>(word));
  };
}

auto spectra_value(const SpectraRecord& record, bool descending) {
  return [&record, descending](Tick tick, std::int64_t number, std::int64_t input, int part) {
    const std::int64_t channel = descending ? record.n_channels - 1 - number : number;
    const int byte = record.spectrum(tick)[channel * record.n_inputs + input];
    const int code = part == 0 ? byte >> 4 : byte & 15;
    return (code ^ 8) - 8;
  };
}

void require_parts(const VoltageRecord& record, const DescribedSenderConfig& config) {
  if (record.n_parts != config.packet.sample.n_parts())
    throw ConfigError("the record of voltages has other samples than the described packets");
}

}  // namespace

DescribedSender::DescribedSender(const VoltageRecord& record, const DescribedSenderConfig& config) {
  require_parts(record, config);
  const auto packer = add_links(Shape::of(record), config);
  pack_records(*packer, 1,
               [value = voltage_value(record)](std::int64_t, Tick tick, std::int64_t channel,
                                               std::int64_t input, int part) {
                 return value(tick, channel, input, part);
               });
}

DescribedSender::DescribedSender(std::span<const SpectraEpoch> epochs,
                                 const DescribedSenderConfig& config) {
  const auto records = detail::records_of(epochs);
  Shape shape = Shape::of(*records.front());
  shape.n_laps = static_cast<std::int64_t>(records.size());
  for (const auto& epoch : epochs) {
    const auto at = std::find(records.begin(), records.end(), epoch.record);
    shape.epochs.push_back({epoch.first_spectrum, at - records.begin()});
  }
  const auto packer = add_links(shape, config);
  pack_records(*packer, shape.n_laps,
               [&](std::int64_t lap, Tick tick, std::int64_t number, std::int64_t input, int part) {
                 const SpectraRecord& record = *records[static_cast<std::size_t>(lap)];
                 return spectra_value(record, config.descending)(tick, number, input, part);
               });
}

DescribedSender::DescribedSender(std::shared_ptr<const VoltageStream> stream,
                                 const DescribedSenderConfig& config) {
  const auto record = std::make_shared<VoltageRecord>(stream->make_record());
  require_parts(*record, config);
  Shape shape = Shape::of(*record);
  shape.n_laps = detail::LapFeeder::kLaps;
  shape.is_stream = true;
  feed(add_links(shape, config), [stream, record](Tick first) {
    stream->draw(first, *record);
    return voltage_value(*record);
  });
}

DescribedSender::DescribedSender(std::shared_ptr<const SpectraStream> stream,
                                 const DescribedSenderConfig& config) {
  const auto record = std::make_shared<SpectraRecord>(stream->make_record());
  Shape shape = Shape::of(*record);
  shape.n_laps = detail::LapFeeder::kLaps;
  shape.is_stream = true;
  feed(add_links(shape, config), [stream, record, descending = config.descending](Tick first) {
    stream->draw(first, *record);
    return spectra_value(*record, descending);
  });
}

}  // namespace ryle::simulate
