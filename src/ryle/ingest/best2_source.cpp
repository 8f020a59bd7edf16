// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/best2_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ryle/core/bits.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/receiver_thread.hpp"
#include "ryle/ingest/socket.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kBest2PayloadBytes = wire::kBest2Samples * wire::kBest2Antennas;
constexpr std::int64_t kSpectraPerPacket = wire::kBest2Samples;

void check_best2(const Best2SourceConfig& c) {
  const auto need = [](bool good, const std::string& message) {
    if (!good) throw ConfigError(message);
  };
  need(!c.endpoints.empty(),
       "source.listen is empty; give at least one endpoint, for example udp://0.0.0.0:10000");
  need(c.first_channel >= 0 && c.n_channels >= 1 &&
           c.first_channel + c.n_channels <= wire::kBest2Channels,
       fmt::format("channels {} to {} are not in 0..1023, which is what BEST-2 packets count",
                   c.first_channel, c.first_channel + c.n_channels - 1));
  need(c.chunk_spectra >= kSpectraPerPacket && c.chunk_spectra % kSpectraPerPacket == 0,
       fmt::format("a chunk of {} spectra is no multiple of the {} of a packet", c.chunk_spectra,
                   kSpectraPerPacket));
  need(c.window_chunks >= 2, "source.window_chunks must be at least 2");
  need(c.n_chunks > c.window_chunks,
       fmt::format("{} chunks in all must be more than the {} that are open at a time", c.n_chunks,
                   c.window_chunks));
  need(c.clock.rate_hz.num > 0 && c.clock.rate_hz.den > 0, "the spectrum rate must be positive");
}

AssemblerConfig best2_assembler(const Best2SourceConfig& c) {
  AssemblerConfig a;
  a.n_streams = static_cast<int>(c.n_channels);
  a.ticks_per_slot = kSpectraPerPacket;
  a.chunk_slots = c.chunk_spectra / kSpectraPerPacket;
  a.window_chunks = c.window_chunks;
  a.bind_stream_to_sender = c.bind_stream_to_sender;
  a.held_packet_bytes = kBest2PayloadBytes;
  a.close_after_ns = c.close_after_ns;
  a.idle_close_ns = c.idle_close_ns;
  a.patience_ns = c.patience_ns;
  a.slots_per_s = c.clock.rate_hz.value() * c.rate_factor / static_cast<double>(kSpectraPerPacket);
  a.possible_time = possible_time(c.clock, kSpectraPerPacket, c.max_clock_error_s);
  return a;
}

class Best2Receiver final : public ReceiverThread {
 public:
  explicit Best2Receiver(const Best2SourceConfig& config)
      : ReceiverThread(config), config_(config) {
    check_best2(config);
    for (const auto& text : config_.endpoints) open_port(parse_endpoint(text));
    const double packets_per_s = static_cast<double>(config_.n_channels) *
                                 config_.clock.rate_hz.value() * config_.rate_factor /
                                 static_cast<double>(kSpectraPerPacket * ports_.size());
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      ports_.reserve(ports_[i], packets_per_s, wire::kBest2PacketBytes, config_.stall_budget_s,
                     config_.allow_small_rcvbuf);
    }
    allocate_ports(wire::kBest2PacketBytes);
    const AssemblerConfig a = best2_assembler(config_);
    auto placement = std::make_unique<StreamMajorPlacement>(a.n_streams, kBest2PayloadBytes,
                                                            a.chunk_slots, std::byte{0});
    allocate(a, std::move(placement), config_.n_chunks, a.n_streams * 2, config_.memory,
             static_cast<std::uint64_t>(kBest2PayloadBytes));
    publish();
  }
  ~Best2Receiver() override { end(); }

  const Best2SourceConfig& config() const { return config_; }

 private:
  bool serve(int timeout_ms) override {
    const std::int64_t skew = (config_.window_chunks - 1) * config_.chunk_spectra / 4;
    return serve_ports(timeout_ms, std::max<std::int64_t>(1, skew / kSpectraPerPacket));
  }

  Reason take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) override {
    wire::Packet packet;
    const auto bytes = std::span(datagram.data, datagram.size);
    const wire::Best2Geometry geometry{static_cast<std::uint32_t>(config_.first_channel),
                                       static_cast<std::uint32_t>(config_.n_channels)};
    const wire::Reject reject = wire::decode(geometry, bytes, packet);
    if (reject != wire::Reject::none) {
      assembler_->reject(reason_of(reject));
      return reason_of(reject);
    }
    CountedPacket counted;
    const auto last = static_cast<std::uint32_t>(config_.n_channels - 1);
    counted.stream = config_.descending ? last - packet.stream : packet.stream;
    counted.sender = datagram.sender;
    counted.slot_raw = packet.tick_raw;
    counted.slot_bits = packet.tick_bits;
    counted.payload = bytes.subspan(packet.payload_offset, packet.payload_bytes);
    counted.stride_bytes = kBest2PayloadBytes;
    return offer(port, counted);
  }

  Best2SourceConfig config_;
};

}  // namespace

Best2Source::Best2Source(const Best2SourceConfig& config)
    : SpectraSource(std::make_unique<Best2Receiver>(config)) {}

SpectraShape Best2Source::shape() const {
  const auto& c = config();
  return {c.n_channels, wire::kBest2Antennas, c.chunk_spectra, SampleFormat::ci4, true};
}

FrequencyAxis Best2Source::channels() const {
  const auto& c = config();
  if (c.frequency.n_channels > 0) return c.frequency;
  const auto center_hz = [&](std::int64_t k) {
    return wire::best2_center_hz(static_cast<std::uint32_t>(c.first_channel + k));
  };
  return {center_hz(c.n_channels - 1), center_hz(0) - center_hz(1), c.n_channels};
}

SampleClock Best2Source::clock(std::int64_t /*segment*/) const { return config().clock; }

void Best2Source::unpack(const Chunk& chunk, SpectraBlocks& spectra) const {
  const SpectraShape s = shape();
  spectra.n_spectra = chunk.n_ticks;
  spectra.first_spectrum = chunk.first_tick;
  spectra.segment = chunk.segment;
  spectra.complete = chunk.absent.empty();
  const std::int64_t n_packets = (chunk.n_ticks + kSpectraPerPacket - 1) / kSpectraPerPacket;
  for (std::int64_t c = 0; c < s.n_channels; ++c) {
    const std::byte* packet = chunk.payload.data() + c * channel_stride_bytes();
    for (std::int64_t b = 0; b < n_packets; ++b, packet += kBest2PayloadBytes) {
      for (std::int64_t pair = 0; pair < s.n_inputs / 2; ++pair) {
        const std::byte* from = packet + pair * 2 * kSpectraPerPacket;
        std::byte* even = spectra.view.cell(c, b, 2 * pair);
        std::byte* odd = spectra.view.cell(c, b, 2 * pair + 1);
        for (std::int64_t t = 0; t < kSpectraPerPacket; ++t) {
          even[t] = from[2 * t];
          odd[t] = from[2 * t + 1];
        }
      }
    }
  }
  SpectraMask& mask = spectra.mask;
  fill_mask(s, chunk.n_ticks, mask);
  for (const auto& span : chunk.absent) {  // its input is a channel
    for (std::int64_t input = 0; input < s.n_inputs; ++input)
      clear_bits(mask.bits.data() + span.input * mask.channel_stride_words + input * mask.words,
                 span.begin - chunk.first_tick, span.end - chunk.first_tick);
  }
}

SourceInfo Best2Source::info() const {
  SourceInfo info;
  info.format = "best2";
  info.n_inputs = wire::kBest2Antennas;
  info.layout.format = SampleFormat::ci4;
  info.layout.input_stride_bits = 8;  // of an antenna to its pair; engines take whole blocks
  info.layout.sample_stride_bits = 16;
  info.clock = config().clock;
  info.time_source = TimeSource::configured;
  return info;
}

const Best2SourceConfig& Best2Source::config() const {
  return static_cast<const Best2Receiver&>(receiver()).config();
}
std::int64_t Best2Source::channel_stride_bytes() const {
  return config().chunk_spectra * wire::kBest2Antennas;
}

std::int64_t best2_source_chunk_bytes(const Best2SourceConfig& c) {
  check_best2(c);
  return checked_product({c.n_chunks, c.chunk_spectra, c.n_channels, wire::kBest2Antennas},
                         "ingest chunks");
}

bool best2_presence(const Best2SourceConfig& config, const Chunk& chunk,
                    std::vector<std::uint64_t>& present) {
  constexpr std::uint64_t kAll = (std::uint64_t{1} << wire::kBest2Antennas) - 1;
  const std::int64_t n_slots = (chunk.n_ticks + kSpectraPerPacket - 1) / kSpectraPerPacket;
  present.assign(config.n_channels * n_slots, kAll);
  for (const auto& span : chunk.absent) {
    const std::int64_t first = (span.begin - chunk.first_tick) / kSpectraPerPacket;
    const std::int64_t last = (span.end - chunk.first_tick) / kSpectraPerPacket;
    for (std::int64_t slot = first; slot < last; ++slot) present[span.input * n_slots + slot] = 0;
  }
  return !chunk.absent.empty();
}

}  // namespace ryle
