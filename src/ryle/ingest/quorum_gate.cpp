// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/quorum_gate.hpp"

#include <algorithm>

#include "ryle/core/bits.hpp"
#include "ryle/wire/extend.hpp"

namespace ryle {

void PlacedFraction::add(MonotonicNs now, bool placed) {
  const std::int64_t index = now / kBucket_ns;
  auto& bucket = buckets_[static_cast<std::size_t>(index) % buckets_.size()];
  if (bucket.index != index) bucket = {index, 0, 0};
  ++bucket.received;
  bucket.placed += placed ? 1 : 0;
}

bool PlacedFraction::below_tenth(MonotonicNs now) {
  const std::int64_t newest = now / kBucket_ns;
  std::uint64_t received = 0, placed = 0;
  for (const auto& bucket : buckets_) {
    if (bucket.index <= newest - static_cast<std::int64_t>(buckets_.size())) continue;
    received += bucket.received;
    placed += bucket.placed;
  }
  return placed * 10 < received || received == 0;
}

QuorumGate::QuorumGate(const Config& config) : config_(config) {
  for (auto& c : candidates_) {
    c.streams.assign(words_for_bits(config.n_streams), 0);
  }
}

void QuorumGate::clear() {
  for (auto& c : candidates_) c.count = 0;
}

const QuorumGate::Candidate& QuorumGate::leading() const {
  return *std::ranges::max_element(candidates_, {}, &Candidate::count);
}

bool QuorumGate::agrees(const Candidate& candidate, std::uint64_t slot_raw, int bits) const {
  const std::int64_t slot = wire::extend(slot_raw, bits, candidate.latest_slot);
  const std::int64_t distance = slot - candidate.latest_slot;  // both within +-2^62: no overflow
  return distance <= config_.agree_slots && distance >= -config_.agree_slots;
}

const QuorumGate::Candidate* QuorumGate::vote(std::uint64_t slot_raw, int bits,
                                              std::uint32_t stream, MonotonicNs now) {
  Candidate *place = nullptr, *free_place = nullptr;
  for (auto& c : candidates_) {
    if (c.count == 0) {
      if (free_place == nullptr) free_place = &c;
    } else if (place == nullptr && agrees(c, slot_raw, bits)) {
      place = &c;
    }
  }
  if (place == nullptr && free_place == nullptr) {
    for (auto& c : candidates_) --c.count;
    return nullptr;
  }
  if (place == nullptr) {
    place = free_place;
    std::ranges::fill(place->streams, 0);
    place->n_streams = 0;
    // A first counter is taken as it stands: there is nothing to extend it by.
    place->first_slot = place->latest_slot = static_cast<std::int64_t>(slot_raw);
    place->start = now;
  }
  auto& c = *place;
  const std::int64_t slot = wire::extend(slot_raw, bits, c.latest_slot);
  ++c.count;
  c.first_slot = std::min(c.first_slot, slot);
  c.latest_slot = std::max(c.latest_slot, slot);
  if (!test_bit(c.streams.data(), stream)) {
    set_bit(c.streams.data(), stream);
    ++c.n_streams;
  }
  return complete(c, now) ? &c : nullptr;
}

bool QuorumGate::complete(const Candidate& c, MonotonicNs now) const {
  if (c.count < config_.votes) return false;
  const int quorum = std::min(3, config_.voting_streams);
  return c.n_streams >= quorum || now - c.start >= config_.patience_ns;
}

}  // namespace ryle
