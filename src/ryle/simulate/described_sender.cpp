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

/// Channels as the packets number them of a record whose frequencies ascend.
struct SpectraValue {
  const SpectraRecord* record;
  bool descending;

  /// Both parts, the real one in the high bits.
  std::byte byte(Tick tick, std::int64_t number, std::int64_t input) const {
    const std::int64_t channel = descending ? record->n_channels - 1 - number : number;
    return std::byte{record->spectrum(tick)[channel * record->n_inputs + input]};
  }
  int operator()(Tick tick, std::int64_t number, std::int64_t input, int part) const {
    const int both = std::to_integer<int>(byte(tick, number, input));
    const int code = part == 0 ? both >> 4 : both & 15;
    return (code ^ 8) - 8;
  }
};

/// Samples in the packets are the bytes of a record.
bool has_bytes_of_spectra(const wire::PacketDescription& packet) {
  const wire::SampleCode& s = packet.sample;
  return s.complex && s.bits == 4 && s.word_bytes == 0 && s.msb_first && s.re_first &&
         s.encoding == Encoding::twos_complement && !s.conjugate && !packet.has(Axis::complex) &&
         std::ranges::all_of(packet.order, [](const auto& axis) { return axis.pad_bits % 8 == 0; });
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
        lap_packets_(n_ticks / packet_ticks_ * codec_->n_blocks()),
        holds_bytes_(has_bytes_of_spectra(description_)) {}

  std::int64_t lap_packets() const { return lap_packets_; }
  /// Ticks before a packet of the schedule.
  Tick tick_of(std::int64_t packet) const { return packet / codec_->n_blocks() * packet_ticks_; }

  /// One sample of a payload to another.
  void copy_sample(const std::byte* from, std::byte* to, std::int64_t channel, std::int64_t time,
                   std::int64_t input) const {
    if (holds_bytes_) {
      to[at(channel, time, input)] = from[at(channel, time, input)];
      return;
    }
    for (int part = 0; part < description_.sample.n_parts(); ++part)
      map_.set_part(to, channel, time, input, part, map_.part(from, channel, time, input, part));
  }

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
            if constexpr (requires { value.byte(first, c, i); }) {
              if (holds_bytes_) {
                payload[at(c, t, i)] =
                    value.byte(first + t, block * channels + c, board * inputs + i);
                continue;
              }
            }
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
  std::size_t at(std::int64_t channel, std::int64_t time, std::int64_t input) const {
    return static_cast<std::size_t>(map_.bits(Axis::channel)[channel] +
                                    map_.bits(Axis::time)[time] + map_.bits(Axis::input)[input]) /
           8;
  }

  wire::PacketDescription description_;
  wire::PayloadMap map_;
  std::shared_ptr<wire::DescribedCodec> codec_;
  std::int64_t packet_ticks_, lap_packets_;
  bool holds_bytes_;
};

/// Pulses as the packets of a board see them.
class DescribedSender::PulseCutter {
 public:
  PulseCutter(const Shape& quiet, const std::vector<DispersedPulse>& pulses,
              const DescribedSenderConfig& config, std::shared_ptr<const Packer> packer,
              std::int64_t board)
      : description_(config.packet),
        packer_(std::move(packer)),
        packet_ticks_(description_.extent(Axis::time)),
        channels_(description_.extent(Axis::channel)),
        n_blocks_(quiet.n_channels / channels_),
        lap_packets_(packer_->lap_packets()) {
    for (const auto& pulse : pulses) {
      const SpectraRecord& record = *pulse.record;
      if (record.n_spectra != quiet.n_ticks || record.n_inputs != quiet.n_inputs ||
          record.n_channels != quiet.n_channels)
        throw ConfigError("the records of a sender differ in shape");
      Train train{pulse, std::vector<std::byte>(lap_packets_ * description_.length), {}};
      packer_->pack(board, SpectraValue{&record, config.descending}, train.packets);
      const double top_hz = record.channels.center_hz(record.n_channels - 1);
      for (std::int64_t number = 0; number < record.n_channels; ++number) {
        const std::int64_t channel = config.descending ? record.n_channels - 1 - number : number;
        const double delay_s =
            dispersion_delay_s(pulse.dm_pc_cm3, record.channels.center_hz(channel), top_hz);
        train.start.push_back(pulse.start_spectra + delay_s * record.spectrum_rate_hz.value());
      }
      trains_.push_back(std::move(train));
    }
  }

  bool touches(Tick packet) const {
    bool any = false;
    each(packet, [&](const Train&, std::int64_t, std::int64_t, std::int64_t) { any = true; });
    return any;
  }
  void cut(Tick packet, std::byte* bytes) const {
    std::byte* to = bytes + description_.payload_offset;
    each(packet, [&](const Train& train, std::int64_t c, std::int64_t first, std::int64_t last) {
      const std::byte* from = train.packets.data() + packet % lap_packets_ * description_.length +
                              description_.payload_offset;
      for (std::int64_t t = first; t < last; ++t) {
        for (std::int64_t i = 0; i < description_.extent(Axis::input); ++i)
          packer_->copy_sample(from, to, c, t, i);
      }
    });
  }
  std::int64_t memory_bytes() const {
    std::int64_t sum = 0;
    for (const auto& t : trains_) sum += static_cast<std::int64_t>(t.packets.size());
    return sum;
  }

 private:
  struct Train {
    DispersedPulse pulse;
    std::vector<std::byte> packets;  ///< of a lap
    std::vector<double> start;       ///< [channel, as the packets number them] spectra
  };

  // visit(train, c, first, last): spectra [first, last) of channel c of the packet are of a pulse.
  template <class Visit>
  void each(Tick packet, const Visit& visit) const {
    const auto begin = static_cast<double>(packet / n_blocks_ * packet_ticks_);
    const auto length = static_cast<double>(packet_ticks_);
    for (const auto& train : trains_) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const double since = begin - train.start[packet % n_blocks_ * channels_ + c];
        const double period = train.pulse.period_spectra, width = train.pulse.width_spectra;
        const double end = since + length;
        if (end <= 0) continue;
        const double first_n = period > 0 ? std::max(0.0, std::floor((since - width) / period)) : 0;
        for (double n = first_n; n * period < end; ++n) {
          const double from = std::max(0.0, std::ceil(n * period - since));
          const double to = std::min(length, std::ceil(n * period + width - since));
          if (from < to)
            visit(train, c, static_cast<std::int64_t>(from), static_cast<std::int64_t>(to));
          if (period <= 0) break;
        }
      }
    }
  }

  wire::PacketDescription description_;
  std::shared_ptr<const Packer> packer_;
  std::int64_t packet_ticks_, channels_, n_blocks_, lap_packets_;
  std::vector<Train> trains_;
};

std::shared_ptr<const DescribedSender::Packer> DescribedSender::add_links(
    const Shape& shape, const DescribedSenderConfig& config,
    const std::vector<DispersedPulse>& pulses) {
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
  schedule.udp_ceiling_packets_per_s = config.udp_ceiling_packets_per_s;
  schedule.in_turn = static_cast<bool>(config.sink);
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
    if (!pulses.empty()) {
      const auto cutter = std::make_shared<PulseCutter>(shape, pulses, config, packer, board);
      pulse_bytes_ += cutter->memory_bytes();
      own.edits = [cutter](Tick packet) { return cutter->touches(packet); };
      own.edit = [cutter](Tick packet, std::byte* bytes) { cutter->cut(packet, bytes); };
    }
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
                 return SpectraValue{&record, config.descending}(tick, number, input, part);
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
    return SpectraValue{record.get(), descending};
  });
}

DescribedSender::DescribedSender(const SpectraRecord& quiet,
                                 const std::vector<DispersedPulse>& pulses,
                                 const DescribedSenderConfig& config) {
  const auto packer = add_links(Shape::of(quiet), config, pulses);
  for (std::size_t board = 0; board < loop().links.size(); ++board)
    packer->pack(static_cast<std::int64_t>(board), SpectraValue{&quiet, config.descending},
                 loop().links[board]->image());
}

std::int64_t DescribedSender::memory_bytes() const { return Sender::memory_bytes() + pulse_bytes_; }

}  // namespace ryle::simulate
