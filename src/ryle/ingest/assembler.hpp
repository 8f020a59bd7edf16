// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/ingest/chunk_pool.hpp"
#include "ryle/ingest/placement.hpp"
#include "ryle/ingest/quorum_gate.hpp"
#include "ryle/ingest/reason.hpp"

namespace ryle {

/// Puts slots of several streams, arriving in any order, into time-ordered chunks with an exact
/// presence mask (ingest.md 5). Knows no sockets, no packet formats and no clock: positions, bytes
/// and times are parameters.
///
/// A *slot* is the unit of presence: `ticks_per_slot` ticks of one stream. A chunk is `chunk_slots`
/// slots of every stream. `window_chunks` chunks are open at a time; what lies before them is late,
/// behind them future.
struct AssemblerConfig {
  int n_streams = 1;
  int inputs_per_stream = 1;  ///< stream s holds inputs [s * n, (s + 1) * n)
  std::int64_t ticks_per_slot = 1;
  std::int64_t chunk_slots = 1;
  std::int64_t grid_slots = 1;  ///< chunks begin and end at multiples of it; divides chunk_slots
  int window_chunks = 4;
  std::int64_t packet_slots = 1;  ///< of a usual packet: the unit of the evidence rule
  int voting_streams = 0;         ///< that can vote on the time; 0 = all
  bool wait_for_free_chunk =
      false;  ///< offline: wait for the consumer instead of dropping the newest chunk
  bool bind_stream_to_sender = true;
  std::int64_t held_packets = 256;        ///< kept before the lock, placed once it is there
  std::int64_t held_packet_bytes = 9000;  ///< room for each
  MonotonicNs close_after_ns = 100 * kMillisecond_ns;
  MonotonicNs idle_close_ns = 500 * kMillisecond_ns;
  MonotonicNs no_data_ns = 1500 * kMillisecond_ns;
  MonotonicNs sender_timeout_ns = 1000 * kMillisecond_ns;  ///< after it a stream may be bound anew
  MonotonicNs contest_ns = 200 * kMillisecond_ns;          ///< in which a rival may win a stream
  double slots_per_s = 0;  ///< of one stream, as configured; 0 = not known
  /// Time that goes on so far ahead of the window is a gap of the segment, whose slots are missing;
  /// further ahead, or back, it is a new segment. 0: always one.
  std::int64_t max_gap_slots = 0;
  /// Whether a slot can be of now (receiver_thread.hpp); none = any can.
  std::function<bool(std::int64_t slot)> possible_time;
  MonotonicNs patience_ns = 2000 * kMillisecond_ns;  ///< of the quorum for streams that never come
};

/// One packet with a counter of limited width, whose payload is n_slots slots stride_bytes apart.
struct CountedPacket {
  std::uint32_t stream = 0;
  std::uint64_t sender = 0;    ///< identity of the sender; 0 = not known, never bound
  std::uint64_t slot_raw = 0;  ///< counter of its first slot, as sent
  int slot_bits = 64;
  std::int64_t n_slots = 1;
  std::span<const std::byte> payload;
  std::int64_t stride_bytes = 0;
};

/// All functions are for one thread (the one that reads the sockets).
class Assembler {
 public:
  Assembler(const AssemblerConfig& config, std::unique_ptr<Placement> placement, ChunkPool& pool);

  /// A datagram the caller refused.
  void reject(Reason reason, std::uint64_t n = 1);
  /// One datagram. Before the lock it is held and votes.
  Reason offer(const CountedPacket& packet, MonotonicNs now);
  /// Slots of a stream transport, whose position the caller knows; every slot is counted by itself.
  /// @pre locked()
  void offer_run(const Run& run, MonotonicNs now);
  /// Begins a segment at `origin_slot` without a vote (a stream transport has no absolute time).
  void lock(std::int64_t origin_slot, MonotonicNs now);
  /// The caller knows that all streams go on at `slot`: a gap where it is one, else as lock().
  void move_to(std::int64_t slot, MonotonicNs now);
  /// Runs the timers; call at least every few milliseconds, also without data.
  void poll(MonotonicNs now);
  /// Closes the window: open chunks are delivered as short, held packets become `prelock`.
  void finish(MonotonicNs now);
  /// Ends a wait for a free chunk (any thread may set what it returns).
  void set_cancel(std::function<bool()> cancelled) { cancelled_ = std::move(cancelled); }

  /// Called when a segment has begun, before anything of it is placed.
  void set_on_segment(std::function<void()> begun) { on_segment_ = std::move(begun); }

  /// Whether the packet that is being offered begins where packets of this segment do: else its
  /// time cannot be that of the segment after a gap. Empty: it does.
  void set_keeps_grid(std::function<bool()> keeps) { keeps_grid_ = std::move(keeps); }

  /// While set, a quorum may begin a new segment although the present one still places data (its
  /// time was a guess).
  void set_provisional(bool provisional) { provisional_ = provisional; }

  /// While set, a chunk that is begun waits a second for a free one: of senders that wait as well
  /// nothing is lost while they catch up.
  void set_patient(bool patient) { patient_ = patient; }

  bool locked() const { return locked_; }
  std::int64_t origin_slot() const { return origin_slot_; }
  /// Earliest slot of the votes that began the segment; the origin lies later when the quorum took
  /// long.
  std::int64_t first_vote_slot() const { return first_vote_slot_; }
  /// The votes so far, before the lock.
  const QuorumGate::Candidate& candidate() const { return gate_.leading(); }
  /// End of the last slots of a stream that had a place in time (kept, or lost for want of a
  /// chunk); origin before the first.
  std::int64_t position(std::uint32_t stream) const { return streams_[stream].position; }
  /// Slots of a stream that had a place in time so far.
  std::uint64_t n_placed(std::uint32_t stream) const { return streams_[stream].n_placed; }
  /// When something was last placed, of any stream.
  MonotonicNs last_placed() const { return last_placed_; }
  /// A slot of the stream would lie in the window, or before it, or close its head. @pre locked()
  bool reaches(std::uint32_t stream, std::int64_t slot) const;
  /// Something of the stream was placed within `age_ns` before `now`.
  bool live(std::uint32_t stream, MonotonicNs now, MonotonicNs age_ns) const;

  struct Totals {
    std::uint64_t received = 0;
    ReasonCounts reasons{};
    std::uint64_t present_slots = 0,
                  missing_slots = 0;      ///< of closed chunks, dropped ones included, ...
    std::uint64_t undelivered_slots = 0;  ///< ... and those of streams that never delivered
    std::uint64_t rebound = 0;            ///< streams that a rival won from their sender
    std::uint64_t placed_slots = 0;       ///< of all chunks
    std::uint64_t chunks = 0, dropped_chunks = 0, segments = 0;
    std::uint64_t gaps = 0;       ///< beyond the window, within a segment
    std::uint64_t jumps = 0;      ///< segments that began after another one, ...
    std::int64_t jump_slots = 0;  ///< ... the last one so far from the end of the one before
    std::uint64_t closed_full = 0, closed_by_evidence = 0, closed_by_time = 0, closed_short = 0;
  };
  const Totals& totals() const { return totals_; }
  /// Slots placed into chunks that are still open: placed_slots = present_slots + this.
  std::uint64_t open_slots() const;
  /// "NO_DATA", "PRELOCK", "OK" or the reasons for DEGRADED, comma separated, without the word.
  std::string condition(MonotonicNs now) const;
  std::int64_t memory_bytes() const;

 private:
  struct OpenChunk {
    Chunk* chunk = nullptr;
    bool used = false;                    // something of it arrived
    bool phantom = false;                 // no free chunk: nothing is kept, everything is counted
    std::vector<std::uint64_t> present;   // [stream][words_per_stream]
    std::vector<std::int64_t> of_stream;  // [stream] slots present
    int n_seen = 0;                       // streams with any
    std::int64_t n_present = 0;
    std::uint64_t begin_order = 0;  // when its first slot was placed
    bool evidence = false;
    MonotonicNs evidence_time = 0;
  };
  /// Of a bound stream with another sender who claims it.
  struct Contest {
    MonotonicNs begin = 0;  // 0: there is none
    std::uint64_t rival = 0;
    std::int64_t rival_packets = 0, owner_packets = 0, owner_slots = 0;
  };
  struct Stream {
    std::int64_t position = 0;
    std::uint64_t n_placed = 0;  // slots
    MonotonicNs last_placed = 0;
    std::uint64_t last_order = 0;  // as last_placed, counted in packets and runs
    bool ever_placed = false;
    bool votes = false;  // its packets carry the time
    std::uint64_t sender = 0;
    MonotonicNs sender_time = 0;
    Contest contest;
  };
  struct Held {
    CountedPacket packet;
    std::vector<std::byte> bytes;
  };

  bool foreign_sender(const CountedPacket& packet, MonotonicNs now);
  bool rival_wins(Contest& contest, std::uint64_t rival, MonotonicNs now) const;
  Reason hold(const CountedPacket& packet, MonotonicNs now);
  Reason offer_locked(const CountedPacket& packet, MonotonicNs now);
  Reason place_pieces(const Run& run, MonotonicNs now, bool count_slots);
  Reason place_piece(const Run& run, MonotonicNs now, bool count_slots);
  Reason place_in(OpenChunk& open, std::int64_t offset, const Run& run, MonotonicNs now);
  Reason occupied(const OpenChunk& open, std::int64_t offset, const Run& run) const;
  bool leads(std::uint32_t stream) const;
  void count_live(MonotonicNs now);
  void count(Reason reason, std::uint64_t n) {
    totals_.reasons[static_cast<std::size_t>(reason)] += n;
  }
  void vote(std::uint64_t slot_raw, int bits, std::uint32_t stream, MonotonicNs now);
  void make_room_to_hold();
  void replay_held(MonotonicNs now);

  OpenChunk& open_at(std::int64_t k) { return window_[(head_index_ + k) % config_.window_chunks]; }
  const OpenChunk& open_at(std::int64_t k) const {
    return window_[(head_index_ + k) % config_.window_chunks];
  }
  void begin_chunk(OpenChunk& open, MonotonicNs now);
  void update_evidence(OpenChunk& open, MonotonicNs now);
  void advance(MonotonicNs now);
  void close_head(std::int64_t n_slots, MonotonicNs now);
  void close_open_as_short(MonotonicNs now);
  std::int64_t extent(const OpenChunk& open) const;
  std::int64_t finalize(OpenChunk& open, std::int64_t n_slots);
  void start_segment(std::int64_t origin, std::int64_t first_vote, MonotonicNs now);
  bool bridge(std::int64_t slot, MonotonicNs now);

  AssemblerConfig config_;
  std::unique_ptr<Placement> placement_;
  ChunkPool& pool_;
  std::function<bool()> cancelled_;
  std::function<void()> on_segment_;
  std::function<bool()> keeps_grid_;
  std::int64_t words_per_stream_;
  std::int64_t evidence_slots_;
  std::vector<OpenChunk> window_;
  std::int64_t head_index_ = 0;
  std::int64_t head_slot_ = 0, origin_slot_ = 0, first_vote_slot_ = 0;
  std::int64_t sequence_ = 0;
  bool locked_ = false, provisional_ = false, patient_ = false;
  int n_live_ = 0;
  int n_voting_;             // streams that can vote
  std::uint64_t order_ = 0;  // pieces placed so far
  std::vector<Stream> streams_;
  std::vector<Held> held_;              // places
  std::vector<std::size_t> held_free_;  // places without a packet
  std::deque<std::size_t> held_order_;  // places with one, the oldest first
  QuorumGate gate_;
  PlacedFraction share_;
  MonotonicNs last_placed_ = 0, last_overrun_ = 0, last_foreign_ = 0;
  MonotonicNs last_unlocked_ = 0;  // packet before the lock
  int n_never_placed_;             // streams that never delivered
  bool ever_placed_ = false;
  Totals totals_;
};

}  // namespace ryle
