// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/fengine_receiver.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle {
namespace {

AssemblerConfig assembler_config(const FengineSourceConfig& c, const FengineLayout& layout) {
  AssemblerConfig a;
  a.n_streams = static_cast<int>(layout.n_streams());
  a.chunk_slots = c.chunk_spectra;
  a.window_chunks = c.window_chunks;
  a.bind_stream_to_sender = c.bind_stream_to_sender;
  a.held_packet_bytes = layout.packet_payload_bytes();
  a.close_after_ns = c.close_after_ns;
  a.idle_close_ns = c.idle_close_ns;
  a.patience_ns = c.patience_ns;
  a.slots_per_s = c.clock.rate_hz.value() * c.rate_factor;
  a.max_gap_slots = max_gap_slots(c.clock.rate_hz.value());
  SampleClock clock = c.clock;
  if (c.format != FengineFormat::chips) clock.epoch_tai_ns = tai_minus_unix_ns();
  const bool dated = c.format != FengineFormat::chips || c.time_source != TimeSource::arrival;
  a.possible_time = possible_time(clock, 1, dated ? c.max_clock_error_s : 0);
  return a;
}

// CHIPS counts spectra; LWA time tags count 196 MHz.
std::uint64_t ticks_per_spectrum(const FengineSourceConfig& c) {
  if (c.format == FengineFormat::chips) return 1;
  const auto& rate = c.clock.rate_hz;
  if (rate.num <= 0 || rate.den <= 0 || wire::kLwaTicksPerSecond * rate.den % rate.num != 0) {
    throw ConfigError("source.spectrum_rate_hz = " + std::to_string(rate.num) + "/" +
                      std::to_string(rate.den) +
                      " is no whole number of 196 MHz ticks a spectrum; 25000/1 (7840 ticks) and "
                      "765625/32 (8192 ticks) are");
  }
  return static_cast<std::uint64_t>(wire::kLwaTicksPerSecond * rate.den / rate.num);
}

std::size_t header_bytes(FengineFormat format) {
  if (format == FengineFormat::chips) return wire::kChipsHeaderBytes;
  return format == FengineFormat::tbf ? wire::kTbfHeaderBytes : wire::kTbxHeaderBytes;
}

wire::Reject decode(const FengineSourceConfig& config, const FengineLayout& layout,
                    std::span<const std::byte> bytes, wire::Packet& packet) {
  const auto first = static_cast<std::uint32_t>(config.first_channel);
  const auto n_channels = static_cast<std::uint32_t>(layout.channels_per_packet);
  const auto n_blocks = static_cast<std::uint32_t>(layout.n_channel_blocks());
  const auto n_stands = static_cast<std::uint32_t>(config.n_stands);
  switch (config.format) {
    case FengineFormat::tbf:
      return wire::decode(wire::TbfGeometry{n_stands, first, n_blocks, false}, bytes, packet);
    case FengineFormat::tbx:
      return wire::decode(wire::TbxGeometry{n_stands, n_channels, first, n_blocks}, bytes, packet);
    case FengineFormat::chips:
      break;
  }
  const auto n_boards = static_cast<std::uint32_t>(config.n_boards);
  const auto reject = wire::decode(wire::ChipsGeometry{n_boards, n_channels}, bytes, packet);
  if (reject != wire::Reject::none) return reject;
  if (packet.channel < first || (packet.channel - first) % n_channels != 0) {
    return wire::Reject::foreign_stream;
  }
  const std::uint32_t block = (packet.channel - first) / n_channels;
  if (block >= n_blocks) return wire::Reject::foreign_stream;
  packet.stream += block * n_boards;
  return wire::Reject::none;
}

}  // namespace

FengineReceiver::FengineReceiver(const FengineSourceConfig& config)
    : ReceiverThread(config),
      config_(config),
      layout_(fengine_layout(config)),
      // Sockets are read in steps of this size, the furthest behind first: however long the thread
      // slept, no stream runs out of the window while another has data to be read.
      skew_limit_(std::max<std::int64_t>(1, (config.window_chunks - 1) * config.chunk_spectra / 4)),
      ticks_per_spectrum_(ticks_per_spectrum(config)),
      // Every chunk may be of another segment, and one more has none yet.
      clocks_(config.clock, static_cast<std::size_t>(config.n_chunks) + 1) {
  for (const auto& text : config_.endpoints) open_port(parse_endpoint(text));
  const std::size_t packet_bytes =
      header_bytes(config_.format) + static_cast<std::size_t>(layout_.packet_payload_bytes());
  const double packets_per_s = static_cast<double>(layout_.n_streams()) *
                               config_.clock.rate_hz.value() * config_.rate_factor /
                               static_cast<double>(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports_.reserve(ports_[i], packets_per_s, static_cast<double>(packet_bytes),
                   config_.stall_budget_s, config_.allow_small_rcvbuf);
  }
  allocate_ports(packet_bytes);
  const AssemblerConfig a = assembler_config(config_, layout_);
  auto placement = std::make_unique<StreamMajorPlacement>(
      a.n_streams, layout_.packet_payload_bytes(), a.chunk_slots, std::byte{0});
  // Losses come by packets: room for one run of them in 64 spectra, more is allocated when needed.
  const std::int64_t spans = a.n_streams * (a.chunk_slots / 64 + 2);
  allocate(a, std::move(placement), config_.n_chunks, spans, config_.memory,
           static_cast<std::uint64_t>(layout_.packet_payload_bytes()));
  publish();
}

FengineReceiver::~FengineReceiver() { end(); }

bool FengineReceiver::serve(int timeout_ms) { return serve_ports(timeout_ms, skew_limit_); }

Reason FengineReceiver::take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) {
  wire::Packet packet;
  const auto bytes = std::span(datagram.data, datagram.size);
  const wire::Reject reject = decode(config_, layout_, bytes, packet);
  if (reject != wire::Reject::none) {
    assembler_->reject(reason_of(reject));
    return reason_of(reject);
  }
  CountedPacket counted;
  counted.stream = packet.stream;
  counted.sender = datagram.sender;
  counted.slot_raw = packet.tick_raw / ticks_per_spectrum_;
  counted.payload = bytes.subspan(packet.payload_offset, packet.payload_bytes);
  counted.stride_bytes = layout_.packet_payload_bytes();
  tick_raw_ = packet.tick_raw;
  return offer(port, counted);
}

// Sequence numbers count from an instant that nobody told: what begins the segment is of now.
void FengineReceiver::date_by_arrival() {
  SampleClock clock{0, config_.clock.rate_hz};
  clock.epoch_tai_ns = arrival_tai_ns() - clock.tai_ns(assembler_->origin_slot());
  clocks_.begin(newest_segment(), clock);
}

// Time tags are absolute, their remainder is where in a spectrum's time the grid of
// this F-engine lies. The packet that completed the quorum tells.
void FengineReceiver::segment_begun() {
  if (config_.format == FengineFormat::chips) {
    if (config_.time_source == TimeSource::arrival) date_by_arrival();
    return;
  }
  grid_ = tick_raw_ % ticks_per_spectrum_;
  const auto tag = static_cast<std::int64_t>(tick_raw_);
  const auto tai_ns =
      recording_tai_ns_from_unix(tag / wire::kLwaTicksPerSecond,
                                 tag % wire::kLwaTicksPerSecond * 250 / 49);  // 1e9 / 196e6
  const auto slot = static_cast<Tick>(tick_raw_ / ticks_per_spectrum_);
  SampleClock clock = clocks_.newest();
  if (tai_ns) {  // else it is not a date: the epoch stays what it was
    clock.epoch_tai_ns = 0;
    clock.epoch_tai_ns = *tai_ns - clock.tai_ns(slot);
  }
  clocks_.begin(newest_segment(), clock);
}

bool FengineReceiver::keeps_grid() const { return tick_raw_ % ticks_per_spectrum_ == grid_; }

}  // namespace ryle
