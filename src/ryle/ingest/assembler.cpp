// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/assembler.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/wire/extend.hpp"

namespace ryle {
namespace {

constexpr MonotonicNs kShown_ns = 5000 * kMillisecond_ns;  // an event is in the state so long

// Differences of counters are taken in unsigned arithmetic: a forged counter may lie anywhere.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

void validate(const AssemblerConfig& c) {
  const auto positive = [](std::int64_t value, const char* key) {
    if (value < 1) throw ConfigError("ingest." + std::string(key) + " must be at least 1");
  };
  positive(c.n_streams, "n_streams");
  positive(c.inputs_per_stream, "inputs_per_stream");
  positive(c.ticks_per_slot, "ticks_per_slot");
  positive(c.chunk_slots, "chunk_ticks");
  positive(c.packet_slots, "packet_ticks");
  positive(c.grid_slots, "grid_slots");
  if (c.chunk_slots % c.grid_slots != 0)
    throw ConfigError("ingest.chunk_ticks must be a multiple of ingest.grid_slots");
  if (c.window_chunks < 2) {
    throw ConfigError(
        "ingest.window_chunks must be at least 2: the head closes on evidence in a later chunk");
  }
}

}  // namespace

Assembler::Assembler(const AssemblerConfig& config, std::unique_ptr<Placement> placement,
                     ChunkPool& pool)
    : config_(config),
      placement_(std::move(placement)),
      pool_(pool),
      words_per_stream_(words_for_bits(config.chunk_slots)),
      n_live_(config.n_streams),
      n_voting_(config.voting_streams > 0 ? config.voting_streams : config.n_streams),
      gate_({config.n_streams, n_voting_, 16, config.window_chunks * config.chunk_slots,
             config.patience_ns}),
      n_never_placed_(config.n_streams) {
  validate(config);
  const auto n_streams = static_cast<std::size_t>(config.n_streams);
  const std::int64_t n_slots = config.n_streams * config.chunk_slots;
  evidence_slots_ = std::min(16 * config.packet_slots, (n_slots + 7) / 8);
  window_.resize(config.window_chunks);
  for (auto& open : window_) {
    open.present.resize(n_streams * static_cast<std::size_t>(words_per_stream_));
    open.of_stream.resize(n_streams);
  }
  streams_.resize(n_streams);
  held_.resize(config.held_packets);
  for (auto& held : held_) held.bytes.resize(config.held_packet_bytes);
  for (std::size_t k = held_.size(); k > 0; --k) held_free_.push_back(k - 1);
}

void Assembler::reject(Reason reason, std::uint64_t n) {
  totals_.received += n;
  count(reason, n);
}

Reason Assembler::offer(const CountedPacket& packet, MonotonicNs now) {
  streams_[packet.stream].votes = true;
  // A guessed time is no time to place by: packets that know theirs wait until enough of them
  // agree.
  if (!locked_ || provisional_) return hold(packet, now);
  ++totals_.received;
  return offer_locked(packet, now);
}

// A packet of another sender than the stream is bound to. It may be the one that wins the stream.
bool Assembler::foreign_sender(const CountedPacket& packet, MonotonicNs now) {
  auto& stream = streams_[packet.stream];
  const bool foreign = config_.bind_stream_to_sender && packet.sender != 0 && stream.sender != 0 &&
                       stream.sender != packet.sender &&
                       now - stream.sender_time < config_.sender_timeout_ns;
  if (!foreign) return false;
  if (!rival_wins(stream.contest, packet.sender, now)) {
    last_foreign_ = now;
    return true;
  }
  // Its time may be another than that of the segment: it is bound before anything of it is placed,
  // so that it can vote.
  ++totals_.rebound;
  stream.sender = packet.sender;
  stream.sender_time = now;
  return false;
}

// Whoever was first does not own a stream for ever: a rival that contradicts its sender steadily,
// with more than four times its packets, wins it, unless that sender delivers at least half of what
// is due, as a forger who floods cannot prevent. Of several rivals the one with the majority.
bool Assembler::rival_wins(Contest& contest, std::uint64_t rival, MonotonicNs now) const {
  constexpr std::int64_t kRivalPackets = 16;
  constexpr int kLongest = 10;  // times contest_ns: a rival so slow is not steady
  auto& c = contest;
  if (c.begin == 0 || (now - c.begin) / kLongest >= config_.contest_ns) c = {now, rival, 0, 0, 0};
  if (c.rival_packets == 0) c.rival = rival;
  c.rival_packets += c.rival == rival ? 1 : -1;
  if (now - c.begin < config_.contest_ns || c.rival_packets < kRivalPackets) return false;
  const double due_slots = config_.slots_per_s * 1e-9 * static_cast<double>(now - c.begin);
  const bool steady = due_slots > 0 && 2 * static_cast<double>(c.owner_slots) >= due_slots;
  const bool wins = c.rival == rival && c.rival_packets > 4 * c.owner_packets && !steady;
  c = {};
  return wins;
}

Reason Assembler::hold(const CountedPacket& packet, MonotonicNs now) {
  last_unlocked_ = now;
  const auto slot = static_cast<std::int64_t>(packet.slot_raw);
  if (config_.possible_time && !config_.possible_time(slot)) {
    reject(Reason::time);
    return Reason::time;
  }
  if (packet.payload.size() > static_cast<std::size_t>(config_.held_packet_bytes) ||
      held_.empty()) {
    reject(Reason::prelock);
  } else {
    if (held_free_.empty()) make_room_to_hold();
    const std::size_t place = held_free_.back();
    held_free_.pop_back();
    held_order_.push_back(place);
    auto& held = held_[place];
    held.packet = packet;
    std::memcpy(held.bytes.data(), packet.payload.data(), packet.payload.size());
    held.packet.payload = {held.bytes.data(), packet.payload.size()};
  }
  vote(packet.slot_raw, packet.slot_bits, packet.stream, now);
  return Reason::prelock;
}

// Gives up the oldest packet that does not agree with the leading candidate, so that a storm of
// others cannot drive out what will be placed; the oldest of all when all agree.
void Assembler::make_room_to_hold() {
  const auto& leading = gate_.leading();
  auto victim = std::ranges::find_if(held_order_, [&](std::size_t place) {
    const auto& p = held_[place].packet;
    return leading.count > 0 && !gate_.agrees(leading, p.slot_raw, p.slot_bits);
  });
  if (victim == held_order_.end()) victim = held_order_.begin();
  held_free_.push_back(*victim);
  held_order_.erase(victim);
  reject(Reason::prelock);
}

void Assembler::vote(std::uint64_t slot_raw, int bits, std::uint32_t stream, MonotonicNs now) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  const auto slot = static_cast<std::int64_t>(slot_raw);
  if (slot >= kLimit || slot <= -kLimit) return;
  if (locked_ && config_.possible_time && !config_.possible_time(slot)) return;
  const auto* elected = gate_.vote(slot_raw, bits, stream, now);
  if (elected == nullptr) return;
  if (locked_ && !provisional_ && !share_.below_tenth(now)) return;
  const std::int64_t reach = (config_.window_chunks - 1) * config_.chunk_slots;
  const std::int64_t origin = std::max(elected->first_slot, elected->latest_slot - reach);
  if (!bridge(origin, now)) start_segment(origin, elected->first_slot, now);
}

void Assembler::move_to(std::int64_t slot, MonotonicNs now) {
  if (!bridge(slot, now)) lock(slot, now);
}

// The slots between are missing, without chunks of their own: who reads chunks sees by their ticks
// that time went on.
bool Assembler::bridge(std::int64_t slot, MonotonicNs now) {
  const std::int64_t step = difference(slot, head_slot_);
  if (!locked_ || provisional_ || step <= 0 || step > config_.max_gap_slots) return false;
  if (keeps_grid_ && !keeps_grid_()) return false;
  close_open_as_short(now);
  const std::int64_t to = floor_divide(slot, config_.grid_slots) * config_.grid_slots;
  const std::int64_t n = std::max<std::int64_t>(0, to - head_slot_);
  totals_.missing_slots += static_cast<std::uint64_t>(n * (config_.n_streams - n_never_placed_));
  totals_.undelivered_slots += static_cast<std::uint64_t>(n * n_never_placed_);
  ++totals_.gaps;
  head_slot_ += n;
  for (auto& stream : streams_) stream.position = std::max(stream.position, head_slot_);
  gate_.clear();
  share_ = {};
  return true;
}

void Assembler::lock(std::int64_t origin_slot, MonotonicNs now) {
  const auto& leading = gate_.leading();
  start_segment(origin_slot, leading.count > 0 ? leading.first_slot : origin_slot, now);
}

void Assembler::start_segment(std::int64_t origin, std::int64_t first_vote, MonotonicNs now) {
  if (locked_) {
    close_open_as_short(now);
    ++totals_.jumps;
    totals_.jump_slots = difference(origin, head_slot_);
  }
  ++totals_.segments;
  locked_ = true;
  provisional_ = false;
  origin_slot_ = head_slot_ = floor_divide(origin, config_.grid_slots) * config_.grid_slots;
  first_vote_slot_ = first_vote;
  gate_.clear();
  share_ = {};
  n_live_ = config_.n_streams;
  gate_.set_voting_streams(n_voting_);
  for (auto& stream : streams_) {
    stream.position = origin_slot_;
    stream.last_placed = now;
  }
  if (on_segment_) on_segment_();
  replay_held(now);
}

void Assembler::replay_held(MonotonicNs now) {
  // A replayed packet may itself complete a jump and come back here: take each out before it is
  // offered.
  while (!held_order_.empty()) {
    const std::size_t place = held_order_.front();
    held_order_.pop_front();
    held_free_.push_back(place);
    ++totals_.received;
    offer_locked(held_[place].packet, now);
  }
}

Reason Assembler::offer_locked(const CountedPacket& packet, MonotonicNs now) {
  if (foreign_sender(packet, now)) {
    count(Reason::foreign_sender, 1);
    return Reason::foreign_sender;
  }
  // The reference is the window's head, never the last packet: that one may be forged.
  const std::int64_t slot = wire::extend(packet.slot_raw, packet.slot_bits, head_slot_);
  const Reason reason = place_pieces(
      {packet.stream, slot, packet.n_slots, packet.payload.data(), packet.stride_bytes}, now,
      false);
  count(reason, 1);
  if (reason == Reason::used) {
    auto& stream = streams_[packet.stream];
    stream.sender = packet.sender;
    stream.sender_time = now;
    ++stream.contest.owner_packets;
    stream.contest.owner_slots += packet.n_slots;
  }
  return reason;
}

void Assembler::offer_run(const Run& run, MonotonicNs now) {
  RYLE_ASSERT(locked_);
  totals_.received += static_cast<std::uint64_t>(run.n_slots);
  place_pieces(run, now, true);
}

// Cuts a run at the borders of the chunks. A datagram that no slot of was placed has the reason of
// its first piece; slots of a stream transport (count_slots) are counted where they are placed.
Reason Assembler::place_pieces(const Run& run, MonotonicNs now, bool count_slots) {
  Reason result = Reason::used;
  bool first = true, any_used = false;
  const std::int64_t segment = static_cast<std::int64_t>(totals_.segments);
  for (std::int64_t done = 0; done < run.n_slots;) {
    const std::int64_t slot = static_cast<std::int64_t>(static_cast<std::uint64_t>(run.slot) +
                                                        static_cast<std::uint64_t>(done));
    const std::int64_t distance = difference(slot, head_slot_);
    const std::int64_t offset =
        distance - floor_divide(distance, config_.chunk_slots) * config_.chunk_slots;
    const std::int64_t n = std::min(run.n_slots - done, config_.chunk_slots - offset);
    Run piece{run.stream, slot, n, run.data + done * run.stride_bytes, run.stride_bytes};
    const Reason reason = place_piece(piece, now, count_slots);
    any_used |= reason == Reason::used;
    if (first) result = reason;
    first = false;
    done += n;
    // The rest of a datagram whose vote began a new segment was judged by the old one: it is not
    // placed.
    if (static_cast<std::int64_t>(totals_.segments) != segment && !count_slots) break;
  }
  if (any_used) result = Reason::used;
  share_.add(now, any_used);
  return result;
}

Reason Assembler::place_piece(const Run& run, MonotonicNs now, bool count_slots) {
  std::int64_t distance = difference(run.slot, head_slot_);
  std::int64_t k = floor_divide(distance, config_.chunk_slots);
  if (k == config_.window_chunks && leads(run.stream)) {
    ++totals_.closed_by_evidence;
    close_head(config_.chunk_slots, now);
    advance(now);
    distance = difference(run.slot, head_slot_);
    k = floor_divide(distance, config_.chunk_slots);
  }
  const auto n = static_cast<std::uint64_t>(run.n_slots);
  Reason reason;
  if (k < 0 || k >= config_.window_chunks) {
    reason = k < 0 ? Reason::late : Reason::future;
    if (count_slots) count(reason, n);
    if (k >= config_.window_chunks || k < -config_.window_chunks) {
      vote(static_cast<std::uint64_t>(run.slot), 64, run.stream, now);
    }
    return reason;
  }
  auto& open = open_at(k);
  if (!open.used) begin_chunk(open, now);
  const std::int64_t offset = distance - k * config_.chunk_slots;
  reason = place_in(open, offset, run, now);
  if (count_slots) {
    const bool overlap = reason == Reason::duplicate || reason == Reason::conflict;
    if (overlap && run.n_slots > 1) {  // judge slot by slot
      for (std::int64_t i = 0; i < run.n_slots; ++i) {
        place_piece({run.stream, run.slot + i, 1, run.data + i * run.stride_bytes, 0}, now, true);
      }
      return reason;
    }
    count(reason, n);
  }
  if (open.evidence || k == 0) advance(now);
  return reason;
}

bool Assembler::reaches(std::uint32_t stream, std::int64_t slot) const {
  const std::int64_t k = floor_divide(difference(slot, head_slot_), config_.chunk_slots);
  return k < config_.window_chunks || (k == config_.window_chunks && leads(stream));
}

// Whether a stream that has arrived at the end of the window may close its head, so that nothing
// good is lost until the dead are known to be dead: it has at least half of the last chunk, and of
// the streams that delivered anything since that chunk began most are past the head.
bool Assembler::leads(std::uint32_t stream) const {
  const auto& last = open_at(config_.window_chunks - 1);
  if (!last.used || 2 * last.of_stream[stream] < config_.chunk_slots) return false;
  int n_past = 0, n_in_head = 0;
  for (const auto& s : streams_) {
    if (s.last_order < last.begin_order) continue;
    ++(s.position > head_slot_ + config_.chunk_slots ? n_past : n_in_head);
  }
  return n_past > n_in_head;
}

Reason Assembler::occupied(const OpenChunk& open, std::int64_t offset, const Run& run) const {
  const std::uint64_t* row = open.present.data() + run.stream * words_per_stream_;
  Reason reason = Reason::used;
  for (std::int64_t i = 0; i < run.n_slots; ++i) {
    // Whole words of absent slots are the usual case: skip them.
    if ((offset + i) % 64 == 0 && run.n_slots - i >= 64 && row[(offset + i) / 64] == 0) {
      i += 63;
      continue;
    }
    if (!test_bit(row, offset + i)) continue;
    reason = Reason::duplicate;
    if (!placement_->equal(open.chunk->payload.data(), offset + i, run.stream,
                           run.data + i * run.stride_bytes)) {
      return Reason::conflict;
    }
  }
  return reason;
}

Reason Assembler::place_in(OpenChunk& open, std::int64_t offset, const Run& run, MonotonicNs now) {
  Reason reason = Reason::overrun;
  if (!open.phantom) {
    reason = occupied(open, offset, run);
    if (reason != Reason::used) return reason;
    placement_->place(open.chunk->payload.data(), offset, run);
    set_bits(open.present.data() + run.stream * words_per_stream_, offset, offset + run.n_slots);
    totals_.placed_slots += static_cast<std::uint64_t>(run.n_slots);
  }
  // What is lost for want of a chunk is evidence of time and life all the same.
  open.n_present += run.n_slots;
  if (open.of_stream[run.stream] == 0) ++open.n_seen;
  open.of_stream[run.stream] += run.n_slots;
  auto& stream = streams_[run.stream];
  stream.position = std::max(stream.position, run.slot + run.n_slots);
  stream.last_order = ++order_;
  stream.last_placed = last_placed_ = now;
  stream.n_placed += static_cast<std::uint64_t>(run.n_slots);
  if (!stream.ever_placed) --n_never_placed_;
  stream.ever_placed = ever_placed_ = true;
  update_evidence(open, now);
  return reason;
}

void Assembler::update_evidence(OpenChunk& open, MonotonicNs now) {
  if (open.evidence || !open.used) return;
  const int quorum = std::min(3, std::max(1, n_live_));
  open.evidence = open.n_seen >= quorum && open.n_present >= evidence_slots_;
  open.evidence_time = now;
}

void Assembler::begin_chunk(OpenChunk& open, MonotonicNs now) {
  open.used = true;
  std::ranges::fill(open.present, 0);
  std::ranges::fill(open.of_stream, 0);
  open.begin_order = order_ + 1;
  open.n_seen = 0;
  open.n_present = 0;
  open.evidence = false;
  open.chunk = pool_.take();
  constexpr int kPatience = 100;  // times 10 ms
  for (int k = 0; open.chunk == nullptr && !(cancelled_ && cancelled_()); ++k) {
    if (!config_.wait_for_free_chunk && !(patient_ && k < kPatience)) break;
    open.chunk = pool_.take_for(std::chrono::milliseconds(10));
  }
  open.phantom = open.chunk == nullptr;
  if (open.phantom) last_overrun_ = now;
}

void Assembler::advance(MonotonicNs now) {
  for (;;) {
    const auto& head = open_at(0);
    const bool full =
        head.used && !head.phantom && head.n_present == config_.n_streams * config_.chunk_slots;
    const auto& last = open_at(config_.window_chunks - 1);
    if (full) {
      ++totals_.closed_full;
    } else if (last.used && last.evidence) {
      ++totals_.closed_by_evidence;
    } else {
      return;
    }
    close_head(config_.chunk_slots, now);
  }
}

void Assembler::count_live(MonotonicNs now) {
  n_live_ = 0;
  int n_voting = 0;
  for (const auto& stream : streams_) {
    n_live_ += now - stream.last_placed < config_.close_after_ns ? 1 : 0;
    // Alive when data last flowed: only these can be asked whether the time has jumped.
    const bool lately = last_placed_ - stream.last_placed < config_.sender_timeout_ns;
    n_voting += stream.votes && lately ? 1 : 0;
  }
  gate_.set_voting_streams(std::clamp(n_voting, 1, n_voting_));
}

void Assembler::poll(MonotonicNs now) {
  if (!locked_) return;
  count_live(now);
  for (auto& open : window_) update_evidence(open, now);
  advance(now);
  if (config_.wait_for_free_chunk) return;  // offline nothing is given up for lateness
  while (open_at(1).used && open_at(1).evidence &&
         now - open_at(1).evidence_time >= config_.close_after_ns) {
    ++totals_.closed_by_time;
    close_head(config_.chunk_slots, now);
    advance(now);
  }
  if (ever_placed_ && now - last_placed_ >= config_.idle_close_ns) close_open_as_short(now);
}

void Assembler::finish(MonotonicNs now) {
  for (; !held_order_.empty(); held_order_.pop_front()) {
    held_free_.push_back(held_order_.front());
    reject(Reason::prelock);
  }
  if (locked_) close_open_as_short(now);
}

void Assembler::close_open_as_short(MonotonicNs now) {
  std::int64_t last = -1;
  for (std::int64_t k = 0; k < config_.window_chunks; ++k) {
    if (open_at(k).used) last = k;
  }
  for (std::int64_t k = 0; k <= last; ++k) {
    ++totals_.closed_short;
    close_head(k == last ? extent(open_at(0)) : config_.chunk_slots, now);
  }
}

std::int64_t Assembler::extent(const OpenChunk& open) const {
  if (open.phantom) return config_.chunk_slots;
  std::int64_t end = 0;
  for (int s = 0; s < config_.n_streams; ++s) {
    const std::uint64_t* row = open.present.data() + s * words_per_stream_;
    for (std::int64_t slot = config_.chunk_slots; slot > end; --slot) {
      if (test_bit(row, slot - 1)) end = slot;
    }
  }
  return (end + config_.grid_slots - 1) / config_.grid_slots * config_.grid_slots;
}

void Assembler::close_head(std::int64_t n_slots, MonotonicNs now) {
  auto& open = open_at(0);
  if (!open.used) begin_chunk(open, now);  // nothing came: delivered all the same, all absent
  const std::int64_t total = n_slots * config_.n_streams;
  const std::int64_t undelivered = n_slots * n_never_placed_;
  ++totals_.chunks;
  totals_.undelivered_slots += static_cast<std::uint64_t>(undelivered);
  if (open.phantom) {
    ++totals_.dropped_chunks;
    totals_.missing_slots += static_cast<std::uint64_t>(total - undelivered);
  } else {
    const std::int64_t missing = finalize(open, n_slots);
    totals_.missing_slots += static_cast<std::uint64_t>(missing - undelivered);
    totals_.present_slots += static_cast<std::uint64_t>(total - missing);
    open.chunk->first_tick = head_slot_ * config_.ticks_per_slot;
    open.chunk->n_ticks = n_slots * config_.ticks_per_slot;
    open.chunk->sequence = sequence_;
    open.chunk->segment = static_cast<std::int64_t>(totals_.segments) - 1;
    placement_->fence_stores();
    pool_.deliver(open.chunk);
  }
  ++sequence_;
  open.chunk = nullptr;
  open.used = open.phantom = open.evidence = false;
  ++head_index_;
  // A short chunk moves the grid, so that a sender that only paused loses nothing.
  head_slot_ += n_slots;
}

// Fills absent slots with the code of zero and lists them; returns their number.
std::int64_t Assembler::finalize(OpenChunk& open, std::int64_t n_slots) {
  auto& absent = open.chunk->absent;
  absent.clear();
  std::int64_t missing = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (int s = 0; s < config_.n_streams; ++s) {
    const std::uint64_t* row = open.present.data() + s * words_per_stream_;
    runs.clear();
    for (std::int64_t slot = 0; slot < n_slots;) {
      if (slot % 64 == 0 && row[slot / 64] == ~std::uint64_t{0}) {
        slot += 64;
        continue;
      }
      if (test_bit(row, slot)) {
        ++slot;
        continue;
      }
      const std::int64_t begin = slot;
      while (slot < n_slots && !test_bit(row, slot)) {
        slot += slot % 64 == 0 && n_slots - slot >= 64 && row[slot / 64] == 0 ? 64 : 1;
      }
      placement_->fill(open.chunk->payload.data(), static_cast<std::uint32_t>(s), begin, slot);
      missing += slot - begin;
      runs.emplace_back(begin, slot);
    }
    for (int i = 0; i < config_.inputs_per_stream; ++i) {
      for (const auto& [begin, end] : runs) {
        absent.push_back({s * config_.inputs_per_stream + i,
                          (head_slot_ + begin) * config_.ticks_per_slot,
                          (head_slot_ + end) * config_.ticks_per_slot});
      }
    }
  }
  return missing;
}

bool Assembler::live(std::uint32_t stream, MonotonicNs now, MonotonicNs age_ns) const {
  return streams_[stream].ever_placed && now - streams_[stream].last_placed < age_ns;
}

std::uint64_t Assembler::open_slots() const {
  std::uint64_t n = 0;
  for (const auto& open : window_) {
    if (open.used && !open.phantom) n += static_cast<std::uint64_t>(open.n_present);
  }
  return n;
}

std::string Assembler::condition(MonotonicNs now) const {
  const bool lately = last_unlocked_ != 0 && now - last_unlocked_ < config_.no_data_ns;
  if (!locked_) return lately || !held_order_.empty() ? "PRELOCK" : "NO_DATA";
  if (!ever_placed_ || now - last_placed_ >= config_.no_data_ns) return "NO_DATA";
  std::string reasons;
  const auto add = [&reasons](const char* reason) {
    reasons += (reasons.empty() ? "" : ",") + std::string(reason);
  };
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    if (live(s, now, config_.no_data_ns)) continue;
    add("missing_streams");
    break;
  }
  const auto within = [now](MonotonicNs at) { return at != 0 && now - at < kShown_ns; };
  if (within(last_overrun_)) add("overrun");
  if (within(last_foreign_)) add("foreign");
  return reasons.empty() ? "OK" : reasons;
}

std::int64_t Assembler::memory_bytes() const {
  const std::int64_t bitmaps =
      config_.window_chunks * config_.n_streams * (words_per_stream_ * 8 + 8);
  return bitmaps + config_.held_packets * config_.held_packet_bytes;
}

}  // namespace ryle
