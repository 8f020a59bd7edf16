// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace ryle {

/// Nanoseconds of a monotonic clock. A parameter everywhere, so that tests own the time.
using MonotonicNs = std::int64_t;
inline constexpr MonotonicNs kMillisecond_ns = 1'000'000;

/// Share of the datagrams of the last 50 ms that the current epoch could place, in ten buckets of 5
/// ms.
class PlacedShare {
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
/// when enough streams agree often enough is the window moved. One Boyer-Moore candidate, O(1) per
/// vote: no packet, forged or damaged, can move the window alone.
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
  struct Candidate {
    std::int64_t first_slot = 0, latest_slot = 0;
    std::int64_t count = 0;
    int n_streams = 0;
    MonotonicNs start = 0;
  };

  explicit QuorumGate(const Config& config);
  /// Returns true when the vote makes or keeps the quorum complete.
  bool vote(std::int64_t slot, std::uint32_t stream, MonotonicNs now);
  /// min(3, voting_streams), or 1 once the candidate has stood for the patience.
  bool complete(MonotonicNs now) const;
  /// Of the streams that can vote, those that are there to be asked.
  void set_voting_streams(int n) { config_.voting_streams = n; }
  const Candidate& candidate() const { return candidate_; }
  void clear();

 private:
  Config config_;
  Candidate candidate_;
  std::vector<std::uint64_t> streams_;  // bit set of the streams that agreed
};

}  // namespace ryle
