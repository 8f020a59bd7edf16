// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/described_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>

#include "ryle/core/bits.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/described_blocks.hpp"
#include "ryle/ingest/described_placement.hpp"
#include "ryle/ingest/receiver_thread.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/ingest/segment_clocks.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/wire/extend.hpp"

namespace ryle {
namespace {

using wire::Axis;
using wire::FieldMeaning;

void require_that(bool good, const std::string& message) {
  if (!good) throw ConfigError(message);
}

void check_described(const DescribedSourceConfig& c) {
  require_that(
      !c.endpoints.empty(),
      "source.listen is empty; give at least one endpoint, for example udp://0.0.0.0:4015");
  for (const auto& text : c.endpoints)
    require_that(!c.stream || !parse_endpoint(text).is_udp(),
                 fmt::format("source.listen: \"{}\": a stream of bytes comes over tcp://, pipe: or "
                             "fd://",
                             text));
  require_that(c.window_chunks >= 2, "source.window_chunks must be at least 2");
  require_that(c.n_chunks > c.window_chunks,
               fmt::format("{} chunks in all must be more than the {} that are open at a time",
                           c.n_chunks, c.window_chunks));
  require_that(c.clock.rate_hz.num > 0 && c.clock.rate_hz.den > 0,
               "source.sample_rate_hz is needed: samples (spectra) per second of one input");
  const std::int64_t alignment = described_chunk_alignment(c.packet);
  require_that(c.chunk_ticks > 0 && c.chunk_ticks % alignment == 0,
               fmt::format("a chunk of {} ticks is no multiple of {}", c.chunk_ticks, alignment));
}

DescribedBlocks::Shape blocks_shape(const DescribedSourceConfig& c) {
  return {c.n_channels, c.n_inputs, c.chunk_ticks, c.descending};
}

class DescribedReceiver final : public ReceiverThread {
 public:
  explicit DescribedReceiver(const DescribedSourceConfig& config)
      : ReceiverThread(config),
        config_(config),
        codec_(config.packet, described_geometry(config.packet, config.n_inputs,
                                                 config.first_channel, config.n_channels)),
        packet_ticks_(config.packet.extent(Axis::time)),
        packet_counts_(static_cast<std::uint64_t>(config.packet.counts_per_packet())),
        // Every chunk may be of another segment, and one more has none yet.
        clocks_(config.clock, static_cast<std::size_t>(config.n_chunks) + 1) {
    check_described(config);
    const std::size_t packet_bytes = config_.packet.length;
    for (const auto& text : config_.endpoints) open_port(parse_endpoint(text));
    const double packets_per_s =
        codec_.n_streams() * slots_per_s() / static_cast<double>(ports_.size());
    for (std::size_t i = 0; i < ports_.size(); ++i)
      ports_.reserve(ports_[i], packets_per_s, static_cast<double>(packet_bytes),
                     config_.stall_budget_s, config_.allow_small_rcvbuf);
    allocate_ports(packet_bytes);
    if (config_.stream)
      set_cutters([shape = *config_.stream] { return make_stream_cutter(shape); });
    if (config_.stream) waiting_.resize(codec_.n_streams());
    const AssemblerConfig a = assembler();
    const std::int64_t payload = config_.packet.payload_bytes();
    std::unique_ptr<Placement> placement;
    if (config_.packet.has_channels()) {
      placement =
          std::make_unique<StreamMajorPlacement>(a.n_streams, payload, a.chunk_slots, std::byte{0});
    } else {
      placement = std::make_unique<DescribedPlacement>(config_.packet, config_.n_inputs);
    }
    const std::int64_t samples_per_slot =
        config_.packet.extent(Axis::channel) * packet_ticks_ * config_.packet.extent(Axis::input);
    // Losses come by packets: room for a few runs of them, more is allocated when needed.
    const std::int64_t spans =
        a.n_streams * a.inputs_per_stream * std::min<std::int64_t>(a.chunk_slots / 64 + 2, 8);
    allocate(a, std::move(placement), config_.n_chunks, spans, config_.memory,
             static_cast<std::uint64_t>(samples_per_slot));
    publish();
  }
  ~DescribedReceiver() override { end(); }

  const DescribedSourceConfig& config() const { return config_; }
  SampleClock clock() const { return clocks_.newest(); }
  SampleClock clock(std::int64_t segment) const { return clocks_.of(segment); }

 private:
  double slots_per_s() const {
    return config_.clock.rate_hz.value() * config_.rate_factor / static_cast<double>(packet_ticks_);
  }

  AssemblerConfig assembler() const {
    AssemblerConfig a;
    a.n_streams = static_cast<int>(codec_.n_streams());
    if (!config_.packet.has_channels())
      a.inputs_per_stream = static_cast<int>(config_.packet.extent(Axis::input));
    a.ticks_per_slot = packet_ticks_;
    a.chunk_slots = config_.chunk_ticks / packet_ticks_;
    a.window_chunks = config_.window_chunks;
    a.bind_stream_to_sender = config_.bind_stream_to_sender;
    if (config_.stream) a.held_packets = 0;
    a.held_packet_bytes = config_.packet.payload_bytes();
    a.close_after_ns = config_.close_after_ns;
    a.idle_close_ns = config_.idle_close_ns;
    a.patience_ns = config_.patience_ns;
    a.slots_per_s = slots_per_s();
    a.max_gap_slots = max_gap_slots(slots_per_s() / config_.rate_factor);
    SampleClock clock = config_.clock;
    if (config_.packet.counts_from_1970) clock.epoch_tai_ns = tai_minus_unix_ns();
    const bool dated = config_.packet.is_dated() || config_.time_source != TimeSource::arrival;
    // The header of a stream tells its epoch later, and its cutter refuses times that are none.
    if (!config_.stream)
      a.possible_time = possible_time(clock, packet_ticks_, dated ? config_.max_clock_error_s : 0);
    return a;
  }

  bool serve(int timeout_ms) override {
    const std::int64_t skew = (config_.window_chunks - 1) * config_.chunk_ticks / 4;
    return serve_ports(timeout_ms, std::max<std::int64_t>(1, skew / packet_ticks_));
  }

  Reason take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) override {
    wire::Packet packet;
    const auto bytes = std::span(datagram.data, datagram.size);
    const wire::Reject reject = codec_.decode(bytes, packet);
    if (reject != wire::Reject::none) {
      // Formatted where it is told: packets of others may come as fast as those of the array.
      if (config_.rejected_text && reject != wire::Reject::sender_invalid &&
          reject != wire::Reject::foreign_stream) {
        rejected_.assign(bytes.begin(), bytes.end());
      }
      assembler_->reject(reason_of(reject));
      return reason_of(reject);
    }
    CountedPacket counted;
    counted.stream = by_frequency(packet.stream);
    counted.sender = datagram.sender;
    counts_ = whole_counts(packet, counted);
    phase_s_ = packet.flags;
    counted.slot_raw = counts_ / packet_counts_;
    counted.payload = bytes.subspan(packet.payload_offset, packet.payload_bytes);
    counted.stride_bytes = packet.payload_bytes;
    if (!assembler_->locked()) return offer(port, counted);
    if (!keeps_grid()) off_grid_ = now_;
    if (reads_stream() && counted.slot_bits == 64) {
      const auto slot = static_cast<std::int64_t>(counted.slot_raw);
      if (const auto begin = packets_moved_to(counted.stream, slot))
        assembler_->move_to(*begin, now_);
    }
    return offer(port, counted);
  }

  // Blocks of channels of a band that descends are turned, so that frequencies in memory ascend.
  std::uint32_t by_frequency(std::uint32_t stream) const {
    if (!config_.descending) return stream;
    const std::uint32_t n_boards = codec_.n_boards();
    return (codec_.n_blocks() - 1 - stream / n_boards) * n_boards + stream % n_boards;
  }

  // Ticks of a stream from the beginning of the first one with a header.
  void on_header(std::int64_t zero_tai_ns) override {
    zeros_.resize(config_.endpoints.size());
    if (!first_zero_) first_zero_ = zero_tai_ns;
    const double ticks =
        static_cast<double>(zero_tai_ns - *first_zero_) * 1e-9 * config_.clock.rate_hz.value();
    if (!(std::abs(ticks) < 1e18))
      throw FormatError(
          "the stream begins too many samples from the beginning of the first one to be counted");
    zeros_[reading_stream()] = {zero_tai_ns, std::llround(ticks)};
    if (std::abs(ticks - std::round(ticks)) > 0.01)
      throw FormatError(
          fmt::format("the stream begins {} samples after the first one, no whole number: their "
                      "samples are not "
                      "of the same instants",
                      ticks));
  }

  Reason take_block(UdpPort& port, Tick tick, std::span<const std::byte> block) override {
    const auto stream = static_cast<std::uint32_t>(reading_stream());
    // Which of the streams begins first is known when all have a block.
    const Tick at = tick + (zero_ ? zeros_[stream]->ticks - zero_->ticks : 0);
    if (at < 0) {
      assembler_->reject(Reason::time);
      return Reason::time;
    }
    const std::int64_t slot = at / packet_ticks_;
    if (codec_.n_streams() == 1) {
      counts_ = static_cast<std::uint64_t>(at);
      if (!assembler_->locked()) {
        find_zero();
        assembler_->lock(slot, now_);
      }
      // Nobody forges a stream: where it goes on elsewhere, its time does.
      if (slot < assembler_->position(stream) || !assembler_->reaches(stream, slot))
        assembler_->move_to(slot, now_);
      return offer_block(&port, {stream, at, block});
    }
    offer_due();
    if (assembler_->locked() && waiting_[stream].empty() && assembler_->reaches(stream, slot)) {
      n_beyond_ = 0;
      return offer_block(&port, {stream, at, block});
    }
    waiting_[stream].push_back({at, {block.begin(), block.end()}});
    port.position = slot;  // the others are read first
    const bool all = std::ranges::none_of(waiting_, [](const auto& of) { return of.empty(); });
    if (all || ++n_beyond_ >= window_slots())
      begin_beyond();
    else if (std::ssize(waiting_[stream]) > window_slots())
      offer_first_waiting(stream);
    return Reason::used;  // or told later
  }

  // Count 0 is that of the earliest of the headers.
  void find_zero() {
    for (const auto& zero : zeros_) {
      if (zero && (!zero_ || zero->ticks < zero_->ticks)) zero_ = zero;
    }
    config_.clock.epoch_tai_ns = zero_->tai_ns;
    for (std::size_t s = 0; s < waiting_.size(); ++s) {
      for (auto& block : waiting_[s]) block.at += zeros_[s]->ticks - zero_->ticks;
    }
  }

  // Blocks before the beginning and beyond the window wait, at most a window of them. Time goes on
  // there when blocks of all streams wait, or when those that still come have sent a window of
  // blocks beyond it since any was of use (the others have ended). A stream that begins later waits
  // for its time.
  void begin_beyond() {
    const auto first_of = [](const auto& of) {
      return of.empty() ? std::numeric_limits<Tick>::max() : of.front().at;
    };
    n_beyond_ = 0;
    const bool begins = !assembler_->locked();
    if (begins) find_zero();
    const Tick first = first_of(*std::ranges::min_element(waiting_, {}, first_of));
    counts_ = static_cast<std::uint64_t>(first);
    if (begins)
      assembler_->lock(first / packet_ticks_, now_);
    else
      assembler_->move_to(first / packet_ticks_, now_);
    offer_due();
  }

  void offer_due() {
    if (!assembler_->locked()) return;
    for (std::uint32_t s = 0; s < waiting_.size(); ++s) {
      while (!waiting_[s].empty() && assembler_->reaches(s, waiting_[s].front().at / packet_ticks_))
        offer_first_waiting(s);
    }
  }

  void offer_first_waiting(std::uint32_t stream) {
    const WaitingBlock first = std::move(waiting_[stream].front());
    waiting_[stream].pop_front();
    offer_block(nullptr, {stream, first.at, first.bytes});
  }

  void disconnect_all() override {
    offer_due();
    while (std::ranges::any_of(waiting_, [](const auto& of) { return !of.empty(); }))
      begin_beyond();
  }

  struct Block {
    std::uint32_t stream = 0;
    Tick at = 0;
    std::span<const std::byte> bytes;
  };
  /// @param port that it comes from, null where it has waited
  Reason offer_block(UdpPort* port, const Block& block) {
    CountedPacket counted;
    counted.stream = block.stream;
    counts_ = static_cast<std::uint64_t>(block.at);
    counted.slot_raw = static_cast<std::uint64_t>(block.at / packet_ticks_);
    counted.payload = block.bytes;
    counted.stride_bytes = static_cast<std::int64_t>(block.bytes.size());
    const bool off_grid = counts_ % packet_counts_ != grid_;
    if (off_grid && port != nullptr)
      throw FormatError(fmt::format(
          "a block begins {} samples after the grid of the others, blocks of {} samples",
          (counts_ + packet_counts_ - grid_) % packet_counts_, packet_ticks_));
    if (off_grid) assembler_->reject(Reason::field);
    if (off_grid) return Reason::field;
    return port != nullptr ? offer(*port, counted) : assembler_->offer(counted, now_);
  }

  // Packets of a stream come whole and in order, but one of them may hold a wrong counter: as many
  // as a vote needs, all beyond the window and of one time.
  std::optional<std::int64_t> packets_moved_to(std::uint32_t stream, std::int64_t slot) {
    constexpr std::int64_t kPackets = 16;
    if (!goes_beyond(stream, slot) || n_beyond_ < kPackets) return std::nullopt;
    const auto too_early = [&](std::int64_t at) { return at < slot - window_slots(); };
    const auto too_late = [&](std::int64_t at) {
      return at != kNotBeyond && at > slot + window_slots();
    };
    if (std::ranges::any_of(beyond_, too_early) || std::ranges::any_of(beyond_, too_late))
      return std::nullopt;
    return first_beyond();
  }

  std::int64_t window_slots() const {
    return config_.window_chunks * config_.chunk_ticks / packet_ticks_;
  }

  bool goes_beyond(std::uint32_t stream, std::int64_t slot) {
    beyond_.resize(codec_.n_streams(), kNotBeyond);
    const bool beyond = !assembler_->reaches(stream, slot);
    beyond_[stream] = beyond ? slot : kNotBeyond;
    n_beyond_ = beyond ? n_beyond_ + 1 : 0;
    return beyond;
  }

  std::optional<std::int64_t> first_beyond() {
    const std::int64_t first = *std::ranges::min_element(beyond_);
    beyond_.clear();
    n_beyond_ = 0;
    return first;
  }

  std::string format_note() const override {
    return rejected_.empty() ? ""
                             : "a packet that was refused says " + config_.rejected_text(rejected_);
  }

  // A counter of fewer than 64 bits that packets step by a power of two is extended by the
  // assembler, as a counter of packets; another one here, before it is divided.
  std::uint64_t whole_counts(const wire::Packet& packet, CountedPacket& counted) const {
    if (packet.tick_bits == 64) return packet.tick_raw;
    const int step_bits = std::countr_zero(packet_counts_);
    if (packet_counts_ == std::uint64_t{1} << step_bits && packet.tick_bits > step_bits) {
      counted.slot_bits = packet.tick_bits - step_bits;
      return packet.tick_raw;
    }
    if (!assembler_->locked()) return packet.tick_raw;
    const auto reference = static_cast<std::uint64_t>(assembler_->position(packet.stream));
    return static_cast<std::uint64_t>(wire::extend(
        packet.tick_raw, packet.tick_bits, static_cast<std::int64_t>(reference * packet_counts_)));
  }

  // The instant of a counter from 1970, by the rate of ticks, and of the segment's phase.
  std::optional<std::int64_t> tai_ns_of(std::uint64_t counts) const {
    const auto& d = config_.packet;
    const __int128 ticks_den =
        static_cast<__int128>(counts) * d.ticks_per_count * config_.clock.rate_hz.den;
    const __int128 per_s = static_cast<__int128>(d.counts_per_tick) * config_.clock.rate_hz.num;
    const auto seconds = static_cast<std::int64_t>(ticks_den / per_s);
    const auto ns = static_cast<std::int64_t>(ticks_den % per_s * 1'000'000'000 / per_s);
    return recording_tai_ns_from_unix(seconds + segment_phase_s_, ns);
  }

  bool keeps_grid() const override {
    return counts_ % packet_counts_ == grid_ && phase_s_ == segment_phase_s_;
  }

  // Packets need not lie on whole packets since counter 0: the rest goes into the epoch. The packet
  // that completed the quorum tells.
  void segment_begun() override {
    grid_ = counts_ % packet_counts_;
    segment_phase_s_ = phase_s_;
    const auto first = static_cast<Tick>(counts_ / packet_counts_) * packet_ticks_;
    SampleClock clock = clocks_.newest();
    if (config_.packet.counts_from_1970) {
      if (const auto tai_ns = tai_ns_of(counts_)) {
        clock.epoch_tai_ns = 0;
        clock.epoch_tai_ns = *tai_ns - clock.tai_ns(first);
      }
    } else if (config_.time_source == TimeSource::arrival) {
      clock.epoch_tai_ns = 0;
      clock.epoch_tai_ns =
          arrival_tai_ns() - clock.tai_ns(assembler_->origin_slot() * packet_ticks_);
    } else {
      const auto& d = config_.packet;
      clock.epoch_tai_ns =
          config_.clock.epoch_tai_ns +
          static_cast<std::int64_t>(
              static_cast<double>(grid_) * static_cast<double>(d.ticks_per_count) /
              (static_cast<double>(d.counts_per_tick) * config_.clock.rate_hz.value()) * 1e9) +
          segment_phase_s_ * 1'000'000'000;
    }
    clocks_.begin(newest_segment(), clock);
  }

  // Boards whose packets begin between those of others are placed up to a packet off.
  std::string more_reasons() const override {
    return off_grid_ != 0 && now_ - off_grid_ < 5000 * kMillisecond_ns ? "grid" : "";
  }

  DescribedSourceConfig config_;
  wire::DescribedCodec codec_;
  std::int64_t packet_ticks_;
  std::uint64_t packet_counts_;
  /// Seconds between whole periods since count 0 and the period that the counter counts in.
  std::int64_t phase_s_ = 0, segment_phase_s_ = 0;
  std::vector<std::byte> rejected_;  ///< the last packet that was
  struct Zero {
    std::int64_t tai_ns = 0;
    Tick ticks = 0;  ///< after first_zero_
  };
  std::optional<std::int64_t> first_zero_;  ///< of the first header that came
  std::vector<std::optional<Zero>> zeros_;  ///< [stream], of its tick 0
  std::optional<Zero> zero_;                ///< the earliest when the data began: count 0
  static constexpr std::int64_t kNotBeyond = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> beyond_;  ///< slot of each stream's last packet, beyond the window
  std::int64_t n_beyond_ = 0;         ///< such packets, or blocks, since one that was not
  struct WaitingBlock {
    Tick at = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<std::deque<WaitingBlock>> waiting_;  ///< [stream], beyond the window
  std::uint64_t counts_ = 0;                       ///< of the packet that is being offered
  std::uint64_t grid_ = 0;  ///< counts that packets of this segment begin after whole packets
  MonotonicNs off_grid_ = 0;
  SegmentClocks clocks_;
};

const DescribedReceiver& described(const ReceiverThread& receiver) {
  return static_cast<const DescribedReceiver&>(receiver);
}

SourceInfo info_of(const DescribedReceiver& receiver) {
  const auto& c = receiver.config();
  SourceInfo info;
  info.format = c.name;
  info.n_inputs = c.n_inputs;
  info.clock = receiver.clock();
  info.time_source = c.packet.is_dated() ? TimeSource::packet : c.time_source;
  return info;
}

}  // namespace

std::int64_t described_chunk_alignment(const wire::PacketDescription& packet) {
  const std::int64_t whole = packet.has_channels() ? kBlockBytes : 64;
  return std::lcm(packet.extent(Axis::time), whole);
}

wire::DescribedGeometry described_geometry(const wire::PacketDescription& packet,
                                           std::int64_t n_inputs, std::int64_t first_channel,
                                           std::int64_t n_channels) {
  const std::int64_t inputs = packet.extent(Axis::input), channels = packet.extent(Axis::channel);
  require_that(
      n_inputs >= 1 && n_inputs % inputs == 0,
      fmt::format("the array has {} inputs, which packets of {} (source.packet, payload.extents) "
                  "do not divide",
                  n_inputs, inputs));
  require_that(
      n_inputs == inputs || packet.field(FieldMeaning::board) != nullptr ||
          packet.field(FieldMeaning::first_input) != nullptr,
      fmt::format("the array has {} inputs, a packet {}: a header field must tell which, field = "
                  "\"board\" or \"first_input\"",
                  n_inputs, inputs));
  std::int64_t boards_told = 0, below = 1;  // fields, and numbers of all but the first
  for (const auto& f : packet.header) {
    if (f.meaning != FieldMeaning::board && f.meaning != FieldMeaning::first_input) continue;
    if (++boards_told > 1)
      below = checked_product({below, f.count}, "the boards that header fields count");
  }
  require_that(
      n_inputs / inputs % below == 0,
      fmt::format("the array has {} inputs, {} packets of {} a time: no multiple of the {} "
                  "that the counts of header fields \"board\" tell",
                  n_inputs, n_inputs / inputs, inputs, below));
  if (!packet.has_channels()) return {0, 0, static_cast<std::uint32_t>(n_inputs / inputs)};
  require_that(n_channels >= 1 && n_channels % channels == 0,
               fmt::format("source.n_channels = {} is no multiple of the {} channels of a packet",
                           n_channels, channels));
  require_that(
      n_channels == channels || packet.field(FieldMeaning::first_channel) != nullptr,
      fmt::format(
          "source.n_channels = {}, a packet has {}: a header field must tell which, field = "
          "\"first_channel\"",
          n_channels, channels));
  const wire::HeaderField* number = packet.field(FieldMeaning::first_channel);
  require_that(number == nullptr || number->count == 0 ||
                   first_channel + n_channels <= number->count * number->step,
               fmt::format("channels {} to {} are not in 0..{}, which is what the packets count",
                           first_channel, first_channel + n_channels - 1,
                           number == nullptr ? 0 : number->count * number->step - 1));
  return {static_cast<std::uint32_t>(first_channel), static_cast<std::uint32_t>(n_channels),
          static_cast<std::uint32_t>(n_inputs / inputs)};
}

std::int64_t described_source_chunk_bytes(const DescribedSourceConfig& c) {
  check_described(c);
  const auto geometry = described_geometry(c.packet, c.n_inputs, c.first_channel, c.n_channels);
  const wire::DescribedCodec codec(c.packet, geometry);
  const std::int64_t slots = c.chunk_ticks / c.packet.extent(Axis::time);
  const auto cutter =
      c.stream ? make_stream_cutter(*c.stream) : make_packet_cutter(c.packet.length);
  const auto n_endpoints = std::ranges::count_if(
      c.endpoints, [](const std::string& text) { return !parse_endpoint(text).is_udp(); });
  std::int64_t buffers = checked_product(
      {n_endpoints, static_cast<std::int64_t>(StreamInputs::buffer_bytes(*cutter))}, "streams");
  // Blocks of streams that wait for the others.
  if (c.stream && codec.n_streams() > 1)
    buffers += checked_product(
        {c.window_chunks, codec.n_streams(), slots, c.packet.payload_bytes()}, "waiting blocks");
  if (c.packet.has_channels())
    return buffers +
           checked_product({c.n_chunks, codec.n_streams(), slots, c.packet.payload_bytes()},
                           "ingest chunks");
  return buffers + checked_product({c.n_chunks, c.chunk_ticks,
                                    described_samples(c.packet, c.n_inputs).sample_stride_bits / 8},
                                   "ingest chunks");
}

bool holds_pairs(const wire::PacketDescription& packet, std::int64_t n_inputs) {
  const wire::SampleCode& s = packet.sample;
  const bool ci4 = s.complex && s.bits == 4 && s.word_bytes == 0 && s.msb_first && s.re_first &&
                   s.encoding == Encoding::twos_complement && !s.conjugate;
  if (!ci4 || n_inputs % 2 != 0 || packet.extent(Axis::channel) != 1) return false;
  std::vector<wire::PayloadAxis> order;
  for (const auto& axis : packet.order) {
    if (axis.pad_bits != 0 || axis.axis == Axis::complex) return false;
    if (axis.extent > 1) order.push_back(axis);
  }
  std::vector<wire::PayloadAxis> pairs{{Axis::time, kBlockBytes}, {Axis::input, 2}};
  if (n_inputs > 2) pairs.insert(pairs.begin(), {Axis::input, n_inputs / 2});
  return std::ranges::equal(order, pairs, [](const auto& a, const auto& b) {
    return a.axis == b.axis && a.extent == b.extent;
  });
}

std::int64_t described_stream_bytes(const DescribedSourceConfig& c) {
  return c.chunk_ticks / c.packet.extent(Axis::time) * c.packet.payload_bytes();
}

bool packet_presence(const DescribedSourceConfig& config, const Chunk& chunk,
                     std::vector<std::uint64_t>& present) {
  const std::int64_t packet_ticks = config.packet.extent(Axis::time);
  const std::int64_t n_slots = (chunk.n_ticks + packet_ticks - 1) / packet_ticks;
  const std::int64_t words = words_for_bits(config.n_inputs);
  std::vector<std::uint64_t> all(words, 0);
  set_bits(all.data(), 0, config.n_inputs);
  present.clear();
  for (std::int64_t k = 0; k < config.n_channels * n_slots; ++k)
    present.insert(present.end(), all.begin(), all.end());
  for (const auto& span : chunk.absent) {
    const std::int64_t first = (span.begin - chunk.first_tick) / packet_ticks;
    const std::int64_t last = (span.end - chunk.first_tick) / packet_ticks;
    std::fill(present.begin() + (span.input * n_slots + first) * words,
              present.begin() + (span.input * n_slots + last) * words, 0);
  }
  return !chunk.absent.empty();
}

SpectraShape described_shape(const DescribedSourceConfig& config) {
  return DescribedBlocks(config.packet, blocks_shape(config)).spectra_shape();
}

DescribedSampleSource::DescribedSampleSource(const DescribedSourceConfig& config)
    : ReceiverSource(std::make_unique<DescribedReceiver>(config)) {}

SourceInfo DescribedSampleSource::info() const {
  SourceInfo info = info_of(described(receiver()));
  info.layout = described_samples(described(receiver()).config().packet, info.n_inputs);
  return info;
}

SampleClock DescribedSampleSource::clock(std::int64_t segment) const {
  return described(receiver()).clock(segment);
}

DescribedSpectraSource::DescribedSpectraSource(const DescribedSourceConfig& config)
    : SpectraSource(std::make_unique<DescribedReceiver>(config)),
      blocks_(std::make_unique<DescribedBlocks>(config.packet, blocks_shape(config))) {}
DescribedSpectraSource::~DescribedSpectraSource() = default;

SourceInfo DescribedSpectraSource::info() const {
  SourceInfo info = info_of(described(receiver()));
  info.layout.format = shape().format;  // engines take unpack()'s blocks
  return info;
}

SpectraShape DescribedSpectraSource::shape() const { return blocks_->spectra_shape(); }
FrequencyAxis DescribedSpectraSource::channels() const {
  return described(receiver()).config().channels;
}
SampleClock DescribedSpectraSource::clock(std::int64_t segment) const {
  return described(receiver()).clock(segment);
}
const DescribedSourceConfig& DescribedSpectraSource::config() const {
  return described(receiver()).config();
}
void DescribedSpectraSource::unpack(const Chunk& chunk, SpectraBlocks& spectra) const {
  blocks_->unpack(chunk, spectra);
}

}  // namespace ryle
