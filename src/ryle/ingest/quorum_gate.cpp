// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/quorum_gate.hpp"

#include <algorithm>

#include "ryle/core/bits.hpp"

namespace ryle {

void PlacedShare::add(MonotonicNs now, bool placed) {
  const std::int64_t index = now / kBucket_ns;
  auto& bucket = buckets_[static_cast<std::size_t>(index) % buckets_.size()];
  if (bucket.index != index) bucket = {index, 0, 0};
  ++bucket.received;
  bucket.placed += placed ? 1 : 0;
}

bool PlacedShare::below_tenth(MonotonicNs now) {
  const std::int64_t newest = now / kBucket_ns;
  std::uint64_t received = 0, placed = 0;
  for (const auto& bucket : buckets_) {
    if (bucket.index <= newest - static_cast<std::int64_t>(buckets_.size())) continue;
    received += bucket.received;
    placed += bucket.placed;
  }
  return placed * 10 < received || received == 0;
}

QuorumGate::QuorumGate(const Config& config)
    : config_(config), streams_(static_cast<std::size_t>(words_for_bits(config.n_streams)), 0) {}

void QuorumGate::clear() {
  candidate_ = {};
  std::ranges::fill(streams_, 0);
}

bool QuorumGate::vote(std::int64_t slot, std::uint32_t stream, MonotonicNs now) {
  auto& c = candidate_;
  if (c.count > 0) {
    const std::int64_t distance = slot - c.latest_slot;  // both within +-2^62: no overflow
    if (distance > config_.agree_slots || distance < -config_.agree_slots) {
      --c.count;
      return false;
    }
  } else {
    clear();
    c.first_slot = c.latest_slot = slot;
    c.start = now;
  }
  ++c.count;
  c.first_slot = std::min(c.first_slot, slot);
  c.latest_slot = std::max(c.latest_slot, slot);
  if (!test_bit(streams_.data(), stream)) {
    set_bit(streams_.data(), stream);
    ++c.n_streams;
  }
  return complete(now);
}

bool QuorumGate::complete(MonotonicNs now) const {
  const auto& c = candidate_;
#if RYLE_MUTANT == 502
  if (c.count < 1) return false;
#else
  if (c.count < config_.votes) return false;
#endif
  const int quorum = std::min(3, config_.voting_streams);
  return c.n_streams >= quorum || now - c.start >= config_.patience_ns;
}

}  // namespace ryle
