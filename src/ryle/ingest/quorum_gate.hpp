// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ryle {

/// Nanoseconds of a monotonic clock. A parameter everywhere, so that tests own the time.
using MonotonicNs = std::int64_t;
inline constexpr MonotonicNs kMillisecond_ns = 1'000'000;

/// Share of the datagrams of the last 50 ms that the current epoch could place, in ten buckets of 5
/// ms.
class PlacedFraction {
 public:
  void add(MonotonicNs now, bool placed);
  /// placed < 10 % of received (true when nothing was received).
  bool below_tenth(MonotonicNs now);

 private:
  static constexpr MonotonicNs kBucket_ns = 5 * kMillisecond_ns;
  struct Bucket {
    std::int64_t index = -1;
    std::uint64_t received = 0, placed = 0;
  };
  std::array<Bucket, 10> buckets_;
};

/// The time-sanity gate of ingest.md 5.3: packets whose time lies outside the window vote; only
/// when enough streams agree often enough is the window moved. No packet, forged or damaged, can
/// move it alone.
///
/// Votes are counted as Misra and Gries (1982) count frequent items: of kCandidates times, a vote
/// that agrees with none takes a free place or takes one vote from each. A time that more than a
/// ninth of the votes agree on is so found in any storm of others, at a fixed cost per vote, and
/// never with more votes than it has.
class QuorumGate {
 public:
  struct Config {
    int n_streams = 1;             ///< ids of streams are below this
    int voting_streams = 1;        ///< of them can vote
    int votes = 16;                ///< agreement needed
    std::int64_t agree_slots = 1;  ///< votes at most this far from the candidate agree
    MonotonicNs patience_ns =
        2000 * kMillisecond_ns;  ///< after it fewer streams than the quorum are enough
  };
  static constexpr std::size_t kCandidates = 8;
  struct Candidate {
    std::int64_t first_slot = 0, latest_slot = 0;
    std::int64_t count = 0;  ///< 0: a free place
    int n_streams = 0;
    MonotonicNs start = 0;
    std::vector<std::uint64_t> streams;  ///< bit set of those that agreed
  };

  explicit QuorumGate(const Config& config);
  /// A vote by a counter of `bits` bits. Returns the candidate it agrees with when its quorum is
  /// complete, else nullptr.
  const Candidate* vote(std::uint64_t slot_raw, int bits, std::uint32_t stream, MonotonicNs now);
  /// Of the streams that can vote, those that are there to be asked.
  void set_voting_streams(int n) { config_.voting_streams = n; }
  /// The one with most votes, the earlier place of equals; count 0: there are no votes.
  const Candidate& leading() const;
  bool agrees(const Candidate& candidate, std::uint64_t slot_raw, int bits) const;
  void clear();

 private:
  /// min(3, voting_streams) streams, or 1 once the candidate has stood for the patience.
  bool complete(const Candidate& candidate, MonotonicNs now) const;

  Config config_;
  std::array<Candidate, kCandidates> candidates_;
};

}  // namespace ryle
