// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/spead_receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"

namespace ryle {
namespace {

constexpr int kTimestampBits = 48;
constexpr std::int64_t kUsualPayload_bytes = 4096;

void require_spead(bool good, const std::string& message) {
  if (!good) throw ConfigError(message);
}

void check_spead(const SpeadSourceConfig& c) {
  require_spead(!c.endpoints.empty(),
                "source.listen is empty; give at least one endpoint, for example "
                "udp://239.102.0.64+15:7148?interface=eth1");
  for (const auto& text : c.endpoints)
    require_spead(parse_endpoint(text).transport == Endpoint::Transport::udp,
                  fmt::format("source.listen: \"{}\": SPEAD heaps come over udp:// only", text));
  require_spead(c.n_fengines >= 1 && c.n_fengines <= 65536,
                fmt::format("{} F-engines: there are 1 to 65536", c.n_fengines));
  require_spead(
      c.n_channels >= 1 && c.first_channel >= 0 && c.channels_per_heap >= 0 &&
          c.n_channels % c.heap_channels() == 0,
      fmt::format("source.n_channels = {} is no multiple of source.channels_per_packet = {}, the "
                  "channels of a heap",
                  c.n_channels, c.channels_per_heap));
  require_spead(
      !c.beams || static_cast<std::int64_t>(c.endpoints.size()) == c.n_fengines,
      fmt::format("source.heaps = \"beam\": each of the {} inputs needs an endpoint of its "
                  "own, source.listen has {}",
                  c.n_fengines, c.endpoints.size()));
  require_spead(c.spectra_per_heap >= 1, "source.spectra_per_heap must be at least 1");
  require_spead(
      c.ticks_per_spectrum >= 1,
      "source.ticks_per_spectrum is needed: timestamps from one spectrum to the next, 2 x "
      "channels of an F-engine of real samples");
  require_spead(c.clock.rate_hz.num > 0 && c.clock.rate_hz.den > 0,
                "source.sample_rate_hz is needed: spectra per second");
  require_spead(c.channel_width_hz > 0,
                "source.channel_width_hz is needed: from channel to channel");
  const std::int64_t unit = std::lcm(c.spectra_per_heap, spectra_per_block(SampleFormat::ci8));
  require_spead(
      c.chunk_spectra >= unit && c.chunk_spectra % unit == 0,
      fmt::format("a chunk of {} spectra is no multiple of {}: whole heaps and blocks of 64",
                  c.chunk_spectra, unit));
  require_spead(c.window_chunks >= 2, "source.window_chunks must be at least 2");
  require_spead(c.n_chunks > c.window_chunks,
                fmt::format("{} chunks in all must be more than the {} that are open at a time",
                            c.n_chunks, c.window_chunks));
}

AssemblerConfig spead_assembler(const SpeadSourceConfig& c) {
  AssemblerConfig a;
  a.n_streams = static_cast<int>(c.n_streams());
  a.grid_slots = c.cells_per_heap();
  a.chunk_slots = c.chunk_spectra / c.spectra_per_heap * c.cells_per_heap();
  a.window_chunks = c.window_chunks;
  a.packet_slots = std::min(c.cells_per_heap(), kUsualPayload_bytes / c.cell_bytes());
  a.bind_stream_to_sender = c.bind_stream_to_sender;
  a.held_packet_bytes = 16384;
  a.close_after_ns = c.close_after_ns;
  a.idle_close_ns = c.idle_close_ns;
  a.patience_ns = c.patience_ns;
  SampleClock cells = c.clock;
  cells.rate_hz =
      Rational{cells.rate_hz.num * c.cells_per_heap(), cells.rate_hz.den * c.spectra_per_heap}
          .reduced();
  a.slots_per_s = cells.rate_hz.value() * c.rate_factor;
  a.max_gap_slots = max_gap_slots(cells.rate_hz.value());
  a.possible_time = possible_time(cells, 1, c.max_clock_error_s);
  return a;
}

bool is_power_of_two(std::uint64_t value) { return std::has_single_bit(value); }

}  // namespace

SpeadReceiver::SpeadReceiver(const SpeadSourceConfig& config)
    : ReceiverThread(config),
      config_(config),
      heap_ticks_(static_cast<std::uint64_t>(config.ticks_per_spectrum * config.spectra_per_heap)),
      ids_{wire::kSpeadTimestamp, wire::kSpeadFengId, wire::kSpeadFrequency,
           config.beams ? wire::kSpeadBfRaw : wire::kSpeadFengRaw},
      clocks_(config.clock, static_cast<std::size_t>(config.n_chunks) + 1) {
  check_spead(config);
  const auto cells = static_cast<std::uint64_t>(config.cells_per_heap());
  // A counter that wraps is followed where it wraps on a whole number of cells.
  const bool wraps = is_power_of_two(heap_ticks_) && is_power_of_two(cells);
  slot_bits_ =
      wraps ? kTimestampBits - std::countr_zero(heap_ticks_) + std::countr_zero(cells) : 64;
  for (const auto& text : config_.endpoints) ports_.open(parse_endpoint(text));
  require_spead(!config.beams || ports_.size() == config_.endpoints.size(),
                "source.heaps = \"beam\": two inputs have the same endpoint in source.listen");
  const double bytes_per_s = 2.0 * static_cast<double>(config.n_channels * config.n_inputs()) *
                             config.clock.rate_hz.value() * config.rate_factor;
  for (std::size_t i = 0; i < ports_.size(); ++i)
    ports_.reserve(ports_[i],
                   bytes_per_s / static_cast<double>(kUsualPayload_bytes * ports_.size()),
                   static_cast<double>(kUsualPayload_bytes), config_.stall_budget_s,
                   config_.allow_small_rcvbuf);
  ports_.allocate(65535);
  const AssemblerConfig a = spead_assembler(config_);
  auto placement = std::make_unique<StreamMajorPlacement>(a.n_streams, config_.cell_bytes(),
                                                          a.chunk_slots, std::byte{0});
  // Losses come by packets.
  const std::int64_t spans = a.n_streams * (a.chunk_slots / (64 * a.packet_slots) + 2);
  allocate(a, std::move(placement), config_.n_chunks, spans, config_.memory,
           static_cast<std::uint64_t>(config_.cell_bytes() / 2));
  publish();
}

SpeadReceiver::~SpeadReceiver() { end(); }

std::int64_t SpeadReceiver::memory_bytes() const {
  return ReceiverThread::memory_bytes() + static_cast<std::int64_t>(kMaxWaiting_bytes);
}

bool SpeadReceiver::serve(int timeout_ms) {
  const std::int64_t chunk_cells =
      config_.chunk_spectra / config_.spectra_per_heap * config_.cells_per_heap();
  return serve_ports(timeout_ms,
                     std::max<std::int64_t>(1, (config_.window_chunks - 1) * chunk_cells / 4));
}

Reason SpeadReceiver::reject(Reason reason) {
  assembler_->reject(reason);
  return reason;
}

std::uint64_t SpeadReceiver::input_of(const UdpPort& port) const {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (&ports_[i] == &port) return i;
  }
  return 0;
}

// What the packet tells of the items that are needed: values, and where others lie in the heap.
void SpeadReceiver::read_items(HeapItems& items) const {
  for (std::size_t k = 0; k < n_needed; ++k) {
    const wire::SpeadItem* item = packet_.find(ids_[k]);
    if (item == nullptr || (k == feng_raw && item->immediate)) continue;
    const std::uint64_t end = item->immediate ? 0 : packet_.end_of(*item);
    items.value[k] = item->value;
    items.end[k] = end;
    (item->immediate || k == feng_raw ? items.seen : items.located) |= 1u << k;
  }
}

// Values that lie in this part of the heap.
void SpeadReceiver::read_located(std::uint64_t offset, std::span<const std::byte> payload,
                                 HeapItems& items) {
  for (std::size_t k = 0; k < n_needed; ++k) {
    if ((items.located >> k & 1) == 0) continue;
    const std::uint64_t begin = items.value[k], end = items.end[k];
    if (begin < offset || end > offset + payload.size() || begin >= end) continue;
    items.value[k] = 0;
    for (std::uint64_t at = begin; at < end; ++at)
      items.value[k] = items.value[k] << 8 | static_cast<std::uint8_t>(payload[at - offset]);
    items.located &= ~(1u << k);
    items.seen |= 1u << k;
  }
}

Reason SpeadReceiver::take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) {
  const auto bytes = std::span(datagram.data, datagram.size);
  if (const auto refused = wire::parse_spead(bytes, packet_); refused != wire::Reject::none)
    return reject(reason_of(refused));
  const auto payload = bytes.subspan(packet_.payload_offset, packet_.payload_bytes);
  if (packet_.find(wire::kSpeadControl) != nullptr) return reject(Reason::control);
  if (packet_.find(wire::kSpeadDescriptor) != nullptr) {
    for (std::size_t k = 0; k < packet_.n_items; ++k) {
      const wire::SpeadItem& item = packet_.items[k];
      const std::uint64_t end = packet_.end_of(item);
      if (item.id == wire::kSpeadDescriptor && !item.immediate && packet_.offset == 0 &&
          end <= payload.size())
        take_descriptor(payload.subspan(item.value, end - item.value));
    }
    if (packet_.find(ids_[feng_raw]) == nullptr) return reject(Reason::control);
  }
  HeapItems items;
  std::uint64_t sender = datagram.sender;
  if (config_.beams) {
    // Counters of heaps are those of a stream.
    items.value[feng_id] = input_of(port);
    items.seen |= 1u << feng_id;
    sender += items.value[feng_id] << 56;
  }
  read_items(items);
  read_located(packet_.offset, payload, items);
  // Senders of MeerKAT repeat every item in every packet; those of others need not. Until the first
  // packet that tells, and once one has none, items are kept for the packets to come.
  some_repeat_ |= items.complete() && packet_.offset > 0;
  some_do_not_ |= !items.complete();
  if (items.complete() && some_repeat_ && !some_do_not_)
    return place(port, items, packet_.offset, datagram.sender, payload);
  Heap& whole = heap({sender, packet_.heap_counter});
  for (std::size_t k = 0; k < n_needed; ++k) {
    const unsigned bit = 1u << k;
    if (((items.seen | items.located) & bit) == 0 || (whole.items.seen & bit) != 0) continue;
    whole.items.value[k] = items.value[k];
    whole.items.end[k] = items.end[k];
    whole.items.seen |= items.seen & bit;
    whole.items.located |= items.located & bit;
  }
  read_located(packet_.offset, payload, whole.items);
  if (items.located != 0)
    for (const WaitingPacket& early : whole.waiting)
      read_located(early.offset, early.payload, whole.items);
  if (whole.items.complete()) {
    const std::vector<WaitingPacket> waiting = std::move(whole.waiting);
    whole.waiting.clear();
    const HeapItems all = whole.items;
    for (const WaitingPacket& early : waiting) {
      waiting_bytes_ -= early.payload.size();
      const Reason reason = place(*early.port, all, early.offset, early.sender, early.payload);
      if (reason != Reason::used) note_rejected(reason, early.address, early.payload);
    }
    return place(port, all, packet_.offset, datagram.sender, payload);
  }
  if (waiting_bytes_ + payload.size() > kMaxWaiting_bytes) return reject(Reason::field);
  waiting_bytes_ += payload.size();
  whole.waiting.push_back({datagram.sender,
                           sender_address(datagram.address),
                           packet_.offset,
                           {payload.begin(), payload.end()},
                           &port});
  return Reason::used;  // counted when its place is known
}

SpeadReceiver::Heap& SpeadReceiver::heap(const HeapKey& key) {
  if (const auto it = heaps_.find(key); it != heaps_.end()) return it->second;
  if (heap_order_.size() == kHeaps) {
    const auto oldest = heaps_.find(heap_order_.front());
    give_up(oldest->second);
    heaps_.erase(oldest);
    heap_order_.pop_front();
  }
  heap_order_.push_back(key);
  return heaps_[key];
}

// The packet with the items never came.
void SpeadReceiver::give_up(Heap& heap) {
  for (const WaitingPacket& early : heap.waiting) {
    waiting_bytes_ -= early.payload.size();
    assembler_->reject(Reason::field);
    note_rejected(Reason::field, early.address, early.payload);
  }
  heap.waiting.clear();
}

void SpeadReceiver::disconnect_all() {
  for (auto& [key, heap] : heaps_) give_up(heap);
}

// One packet's part of a cell that two share; true when both have come, then `whole` is the cell.
bool SpeadReceiver::join_edge(std::uint32_t stream, std::uint64_t slot, std::size_t at,
                              std::span<const std::byte> part, std::byte* whole) {
  constexpr std::size_t kMaxEdges = 65536;  // whose other packet is late, or lost
  const auto cell = static_cast<std::size_t>(config_.cell_bytes());
  const auto key = std::pair(slot, stream);
  Edge& edge = edges_[key];
  std::ranges::copy(part, edge.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  edge.have |= ((1u << part.size()) - 1) << at;
  if (edge.have != (1u << cell) - 1) {
    if (edges_.size() > kMaxEdges) edges_.erase(edges_.begin());
    return false;
  }
  std::copy_n(edge.bytes.begin(), cell, whole);
  edges_.erase(key);
  return true;
}

// Bytes [lo, hi) of a heap's samples as whole cells: first_cell becomes the first. Where the
// samples begin off the grid of the packets, two packets share a cell: the one that comes last
// brings it.
std::span<const std::byte> SpeadReceiver::whole_cells(std::uint32_t stream, std::uint64_t heap_slot,
                                                      std::uint64_t lo, std::uint64_t hi,
                                                      std::span<const std::byte> bytes,
                                                      std::uint64_t& first_cell) {
  const auto cell = static_cast<std::uint64_t>(config_.cell_bytes());
  first_cell = lo / cell;
  if (lo % cell == 0 && hi % cell == 0) return bytes;
  const std::uint64_t head = lo % cell == 0 ? 0 : std::min(cell - lo % cell, hi - lo);
  const std::uint64_t tail = hi / cell == lo / cell ? 0 : hi % cell;
  const std::uint64_t middle = hi - lo - head - tail;
  joined_.resize(middle + 2 * cell);
  std::uint64_t size = 0;
  if (head > 0) {
    const bool whole =
        join_edge(stream, heap_slot + first_cell, lo % cell, bytes.first(head), joined_.data());
    if (whole) size = cell;
    if (!whole) ++first_cell;
  }
  std::ranges::copy(bytes.subspan(head, middle),
                    joined_.begin() + static_cast<std::ptrdiff_t>(size));
  size += middle;
  if (tail > 0 &&
      join_edge(stream, heap_slot + hi / cell, 0, bytes.last(tail), joined_.data() + size))
    size += cell;
  return std::span(joined_).first(size);
}

Reason SpeadReceiver::place(UdpPort& port, const HeapItems& items, std::uint64_t offset,
                            std::uint64_t sender, std::span<const std::byte> payload) {
  const std::uint64_t begin = items.value[feng_raw];
  const auto heap_bytes = static_cast<std::uint64_t>(config_.heap_bytes());
  if (items.end[feng_raw] - begin != heap_bytes) return reject(Reason::length);
  const std::uint64_t first = std::max(offset, begin);
  const std::uint64_t last = std::min(offset + payload.size(), begin + heap_bytes);
  if (first >= last) return reject(Reason::control);  // other items alone
  const std::uint64_t feng = items.value[feng_id], channel = items.value[frequency];
  const auto lowest = static_cast<std::uint64_t>(config_.first_channel);
  const auto channels = static_cast<std::uint64_t>(config_.heap_channels());
  const auto n_fengines = static_cast<std::uint64_t>(config_.n_fengines);
  if (feng >= n_fengines || channel < lowest ||
      channel - lowest >= static_cast<std::uint64_t>(config_.n_channels) ||
      (channel - lowest) % channels != 0)
    return reject(Reason::foreign_stream);
  timestamp_ = items.value[timestamp];
  if (assembler_->locked() && grid_ticks_ && timestamp_ % heap_ticks_ != *grid_ticks_)
    return reject(Reason::field);
  CountedPacket counted;
  counted.stream = static_cast<std::uint32_t>((channel - lowest) / channels * n_fengines + feng);
  const std::uint64_t heap_slot =
      timestamp_ / heap_ticks_ * static_cast<std::uint64_t>(config_.cells_per_heap());
  std::uint64_t first_cell = 0;
  counted.payload = whole_cells(counted.stream, heap_slot, first - begin, last - begin,
                                payload.subspan(first - offset, last - first), first_cell);
  if (counted.payload.empty()) return reject(Reason::control);  // its neighbours bring what it has
  counted.sender = sender;
  counted.slot_raw = heap_slot + first_cell;
  counted.slot_bits = slot_bits_;
  counted.n_slots = static_cast<std::int64_t>(counted.payload.size()) / config_.cell_bytes();
  counted.stride_bytes = config_.cell_bytes();
  return offer(port, counted);
}

// Timestamps of a heap need not be whole heaps since the sync; the packet that completed the quorum
// tells where the grid lies.
void SpeadReceiver::segment_begun() {
  grid_ticks_ = timestamp_ % heap_ticks_;
  SampleClock clock = config_.clock;
  const SampleClock ticks{0, {clock.rate_hz.num * config_.ticks_per_spectrum, clock.rate_hz.den}};
  clock.epoch_tai_ns += ticks.tai_ns(static_cast<Tick>(*grid_ticks_));
  clocks_.begin(newest_segment(), clock);
}

void SpeadReceiver::take_descriptor(std::span<const std::byte> bytes) {
  const auto described = wire::parse_spead_descriptor(bytes);
  if (!described) return;
  constexpr std::array<std::string_view, n_needed> kNames{"timestamp", "feng_id", "frequency",
                                                          "feng_raw"};
  const bool beam = config_.beams && described->name == "bf_raw";
  const auto name = std::ranges::find(kNames, beam ? kNames[feng_raw] : described->name);
  if (name == kNames.end() || (config_.beams && described->name == kNames[feng_raw])) return;
  ids_[static_cast<std::size_t>(name - kNames.begin())] = described->id;
  if (*name != kNames[feng_raw] || described->numpy.empty()) return;
  const std::string shape = fmt::format("'shape': ({}, {},{} 2)", config_.heap_channels(),
                                        config_.spectra_per_heap, config_.beams ? "" : " 2,");
  const bool agrees = described->numpy.find(shape) != std::string_view::npos &&
                      described->numpy.find("i1'") != std::string_view::npos;
  described_ = agrees ? "" : std::string(described->numpy);
}

std::string SpeadReceiver::format_note() const {
  if (described_.empty()) return "";
  return fmt::format(
      "the sender describes {} as {}; this run takes heaps of {} channels "
      "(source.channels_per_packet, n_channels) x {} spectra (source.spectra_per_heap) x {} "
      "signed bytes",
      config_.beams ? "bf_raw" : "feng_raw", described_, config_.heap_channels(),
      config_.spectra_per_heap, config_.beams ? "2" : "2 x 2");
}

SpeadSource::SpeadSource(const SpeadSourceConfig& config)
    : SpectraSource(std::make_unique<SpeadReceiver>(config)) {}

const SpeadSourceConfig& SpeadSource::config() const {
  return static_cast<const SpeadReceiver&>(receiver()).config();
}
SpectraShape SpeadSource::shape() const { return config().shape(); }

SourceInfo SpeadSource::info() const {
  SourceInfo info;
  info.format = "spead";
  info.n_inputs = config().n_inputs();
  info.layout.format = SampleFormat::ci8;
  // Of one channel of one F-engine: engines take unpack()'s blocks, not this.
  info.layout.input_stride_bits = 16;
  info.layout.sample_stride_bits = 16 * config().n_pols();
  info.clock = static_cast<const SpeadReceiver&>(receiver()).clocks().newest();
  info.time_source = TimeSource::configured;
  return info;
}

// The assembler counts cells.
Chunk* SpeadSource::next(std::chrono::milliseconds timeout) {
  Chunk* chunk = SpectraSource::next(timeout);
  if (chunk == nullptr) return nullptr;
  const SpeadSourceConfig& c = config();
  chunk->first_tick = chunk->first_tick / c.cells_per_heap() * c.spectra_per_heap;
  chunk->n_ticks = chunk->n_ticks / c.cells_per_heap() * c.spectra_per_heap;
  return chunk;
}

FrequencyAxis SpeadSource::channels() const { return config().channels(); }

SampleClock SpeadSource::clock(std::int64_t segment) const {
  return static_cast<const SpeadReceiver&>(receiver()).clocks().of(segment);
}

void SpeadSource::unpack(const Chunk& chunk, SpectraBlocks& spectra) const {
  unpack_spead(config(), chunk, spectra);
}

std::int64_t spead_source_chunk_bytes(const SpeadSourceConfig& config) {
  check_spead(config);
  return checked_product(
      {config.n_chunks, config.chunk_spectra, config.n_channels, 2 * config.n_inputs()},
      "ingest chunks");
}

}  // namespace ryle
