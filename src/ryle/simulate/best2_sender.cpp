// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/best2_sender.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/simulate/lap_feeder.hpp"
#include "ryle/simulate/send_loop.hpp"
#include "ryle/wire/best2.hpp"

namespace ryle::simulate {
namespace {

constexpr std::int64_t kBlock = wire::kBest2Samples;
constexpr std::int64_t kPacketBytes = wire::kBest2PacketBytes;
constexpr std::int64_t kHeaderBytes = 8;
constexpr std::int64_t kPacketsPerMessage = 65'000 / kPacketBytes;  // below 64 KiB

/// Which channel of the record each packet of a block carries, in the order they are sent: by the
/// number on the wire, which takes even and odd halves of the sky in turn.
struct BlockOrder {
  std::vector<std::uint64_t> word;      ///< header with counter 0
  std::vector<std::int64_t> of_record;  ///< channel
};

BlockOrder block_order(const SpectraRecord& record, const Best2SenderConfig& config) {
  struct Entry {
    std::uint64_t word;
    std::int64_t channel;
  };
  std::vector<Entry> entries;
  const wire::Best2Geometry geometry{static_cast<std::uint32_t>(config.first_channel),
                                     static_cast<std::uint32_t>(record.n_channels)};
  const std::vector<std::byte> payload(kPacketBytes - kHeaderBytes);
  std::vector<std::byte> bytes(kPacketBytes);
  for (std::int64_t k = 0; k < record.n_channels; ++k) {
    wire::Packet packet;
    packet.channel = static_cast<std::uint32_t>(config.first_channel + k);
    RYLE_ASSERT(wire::encode(geometry, packet, payload, bytes) == bytes.size());
    std::uint64_t word = 0;
    for (int b = 0; b < kHeaderBytes; ++b) word = word << 8 | static_cast<std::uint64_t>(bytes[b]);
    entries.push_back({word, config.descending ? record.n_channels - 1 - k : k});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.word < b.word; });
  BlockOrder order;
  for (const auto& e : entries) {
    order.word.push_back(e.word);
    order.of_record.push_back(e.channel);
  }
  return order;
}

void check_record(const SpectraRecord& r, const Best2SenderConfig& config) {
  const auto need = [](bool good, const std::string& what) {
    if (!good) throw ConfigError("BEST-2 packets: " + what);
  };
  need(r.n_inputs == wire::kBest2Antennas,
       "the array has " + std::to_string(r.n_inputs) + " inputs, a packet holds 32");
  need(r.n_spectra >= kBlock && r.n_spectra % kBlock == 0,
       "the record has " + std::to_string(r.n_spectra) + " spectra, which are no whole blocks of " +
           std::to_string(kBlock));
  need(config.first_channel >= 0 && config.first_channel + r.n_channels <= wire::kBest2Channels,
       "channels " + std::to_string(config.first_channel) + " to " +
           std::to_string(config.first_channel + r.n_channels - 1) + " are not in 0..1023");
}

// Packets of a record, [block][channel as sent][4104], headers empty.
std::vector<std::byte> pack_blocks(const SpectraRecord& r, const BlockOrder& order) {
  const std::int64_t n_blocks = r.n_spectra / kBlock;
  std::vector<std::byte> bytes(n_blocks * r.n_channels * kPacketBytes);
  std::byte* out = bytes.data();
  for (std::int64_t block = 0; block < n_blocks; ++block) {
    for (const std::int64_t channel : order.of_record) {
      std::byte* payload = out + kHeaderBytes;
      for (std::int64_t t = 0; t < kBlock; ++t) {
        const std::uint8_t* from = r.spectrum(block * kBlock + t) + channel * r.n_inputs;
        for (std::int64_t a = 0; a < r.n_inputs; ++a) {
          payload[wire::best2_payload_index(static_cast<std::size_t>(a),
                                            static_cast<std::size_t>(t))] = std::byte{from[a]};
        }
      }
      out += kPacketBytes;
    }
  }
  return bytes;
}

/// Pulses as the packets see them.
class PulseCutter {
 public:
  PulseCutter(const SpectraRecord& quiet, const std::vector<Best2Pulse>& pulses,
              const BlockOrder& order)
      : n_channels_(quiet.n_channels), n_packets_(quiet.n_spectra / kBlock * quiet.n_channels) {
    const double top_hz = quiet.channels.center_hz(quiet.n_channels - 1);
    for (const auto& pulse : pulses) {
      if (pulse.record->n_spectra != quiet.n_spectra || pulse.record->n_inputs != quiet.n_inputs ||
          pulse.record->n_channels != quiet.n_channels) {
        throw ConfigError("the records of a sender differ in shape");
      }
      Train train{pulse, pack_blocks(*pulse.record, order), {}};
      for (const std::int64_t channel : order.of_record) {
        const double delay_s =
            dispersion_delay_s(pulse.dm_pc_cm3, quiet.channels.center_hz(channel), top_hz);
        train.start.push_back(pulse.start_spectra + delay_s * quiet.spectrum_rate_hz.value());
      }
      trains_.push_back(std::move(train));
    }
  }

  bool touches(Tick packet) const {
    bool any = false;
    each(packet, [&](const Train&, std::int64_t, std::int64_t) { any = true; });
    return any;
  }
  void cut(Tick packet, std::byte* bytes) const {
    each(packet, [&](const Train& train, std::int64_t first, std::int64_t last) {
      const std::byte* from = train.packets.data() + packet % n_packets_ * kPacketBytes;
      for (std::int64_t pair = 0; pair < wire::kBest2Antennas / 2; ++pair) {
        const std::int64_t at = kHeaderBytes + 2 * (pair * kBlock + first);
        std::memcpy(bytes + at, from + at, static_cast<std::size_t>(2 * (last - first)));
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
    Best2Pulse pulse;
    std::vector<std::byte> packets;
    std::vector<double> start;  ///< [channel as sent] spectra
  };

  // visit(train, first, last): spectra [first, last) of the packet belong to a pulse.
  template <class Visit>
  void each(Tick packet, const Visit& visit) const {
    const auto begin = static_cast<double>(packet / n_channels_ * kBlock);
    for (const auto& train : trains_) {
      const double since = begin - train.start[packet % n_channels_];
      const double period = train.pulse.period_spectra;
      const double end = since + static_cast<double>(kBlock);
      if (end <= 0) continue;
      const double first_n =
          period > 0 ? std::max(0.0, std::floor((since - train.pulse.width_spectra) / period)) : 0;
      for (double n = first_n; n * period < end; ++n) {
        const double from = std::max(0.0, std::ceil(n * period - since));
        const double to = std::min(static_cast<double>(kBlock),
                                   std::ceil(n * period + train.pulse.width_spectra - since));
        if (from < to) visit(train, static_cast<std::int64_t>(from), static_cast<std::int64_t>(to));
        if (period <= 0) break;
      }
    }
  }

  std::int64_t n_channels_, n_packets_;
  std::vector<Train> trains_;
};

}  // namespace

struct Best2Sender::State {
  BlockOrder order;
  std::unique_ptr<PulseCutter> cutter;
};

Best2Sender::Best2Sender(const SpectraRecord& quiet, const std::vector<Best2Pulse>& pulses,
                         const Best2SenderConfig& config)
    : state_(std::make_shared<State>()) {
  make_link(quiet, pulses, 1, config);
}

Best2Sender::Best2Sender(std::shared_ptr<const SpectraStream> stream,
                         const Best2SenderConfig& config)
    : state_(std::make_shared<State>()) {
  const auto record = std::make_shared<SpectraRecord>(stream->make_record());
  make_link(*record, {}, detail::LapFeeder::kLaps, config);
  auto* links = &loop().links;
  const std::int64_t n_packets = record->n_spectra / kBlock * record->n_channels;
  detail::feed_laps(
      loop(), n_packets, config.start_block * record->n_channels,
      [stream, record, links, n_packets, state = state_](Tick first, std::int64_t slot) {
        stream->draw(first / record->n_channels * kBlock, *record);
        const auto lap = pack_blocks(*record, state->order);
        std::copy(lap.begin(), lap.end(),
                  links->front()->image().begin() + slot * n_packets * kPacketBytes);
      });
}

void Best2Sender::make_link(const SpectraRecord& quiet, const std::vector<Best2Pulse>& pulses,
                            std::int64_t n_laps, const Best2SenderConfig& config) {
  check_record(quiet, config);
  auto endpoint = detail::parse_target(config.endpoint);
  State& s = *state_;
  s.order = block_order(quiet, config);
  s.cutter = std::make_unique<PulseCutter>(quiet, pulses, s.order);
  auto& schedule = loop().schedule;
  schedule.rate_hz = quiet.spectrum_rate_hz.value() * static_cast<double>(quiet.n_channels) /
                     static_cast<double>(kBlock);
  schedule.speed = config.speed;
  // Whole blocks: a last one without its last channels would look like loss.
  const double blocks_per_s = quiet.spectrum_rate_hz.value() / static_cast<double>(kBlock);
  if (config.duration_s > 0)
    schedule.duration_s =
        std::max(1.0, std::round(config.duration_s * blocks_per_s)) / blocks_per_s;
  schedule.udp_ceiling_packets_per_s =
      config.sink ? detail::kNoCeiling : config.udp_ceiling_packets_per_s;
  schedule.any_udp = true;
  validate(schedule, config.outages, 1);
  detail::UdpPacketFormat format;
  format.packet_bytes = kPacketBytes;
  format.counter_offset = 0;
  format.header_bytes = kHeaderBytes;
  if (config.segmentation) format.packets_per_message = kPacketsPerMessage;
  format.word = [state = state_, n = quiet.n_channels](Tick packet) {
    return static_cast<std::uint64_t>(packet / n) << 26 | state->order.word[packet % n];
  };
  if (!pulses.empty()) {
    format.edits = [state = state_](Tick packet) { return state->cutter->touches(packet); };
    format.edit = [state = state_](Tick packet, std::byte* bytes) {
      state->cutter->cut(packet, bytes);
    };
  }
  // A step of the counter is of whole blocks.
  complete_format(format, config.impairments, config.sink, endpoint, {0, 0, schedule.rate_hz});
  format.impairments.step_ticks -= format.impairments.step_ticks % quiet.n_channels;
  const std::int64_t n_packets = quiet.n_spectra / kBlock * quiet.n_channels;
  auto laps = pack_blocks(quiet, s.order);
  laps.resize(static_cast<std::size_t>(n_laps) * laps.size());  // drawn when they are due
  loop().links.push_back(detail::make_udp_link(
      std::move(endpoint), std::move(laps), n_laps * n_packets,
      config.start_block * quiet.n_channels, outages_of(config.outages, 0, schedule), format));
}

std::int64_t Best2Sender::memory_bytes() const {
  return Sender::memory_bytes() + state_->cutter->memory_bytes();
}

}  // namespace ryle::simulate
