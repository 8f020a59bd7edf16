// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/ingest/assembler.hpp"
#include "tests/ingest/model_assembler.hpp"

namespace ryle::test {

/// An assembler of 8-byte slots without sockets: what it delivers is copied out, and every chunk is
/// poisoned with 0xA5 before it goes back, so that a stale byte cannot pass for a zero.
class Workbench {
 public:
  struct Seen {
    std::int64_t first_tick, n_ticks, sequence, segment;
    std::vector<AbsentSpan> absent;
    std::vector<std::uint64_t> values;  // [slot][stream]
  };

  explicit Workbench(AssemblerConfig config, int n_chunks = 8)
      : config_(config),
        pool_(n_chunks, config.n_streams * config.chunk_slots * 8, 16, MemorySpace::host),
        assembler_(config,
                   std::make_unique<InterleavedPlacement>(config.n_streams, 8, std::byte{0}),
                   pool_) {
    pool_.poison(std::byte{0xA5});
  }

  static std::uint64_t value(int stream, std::int64_t slot, int variant = 0) {
    return combine(static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(slot),
                   static_cast<std::uint64_t>(variant)) |
           1;
  }
  static std::vector<std::uint64_t> values(int stream, std::int64_t slot, std::int64_t n,
                                           int variant = 0) {
    std::vector<std::uint64_t> result;
    for (std::int64_t i = 0; i < n; ++i) result.push_back(value(stream, slot + i, variant));
    return result;
  }

  Reason offer_raw(int stream, std::uint64_t raw, int bits,
                   const std::vector<std::uint64_t>& content, std::uint64_t sender = 0) {
    CountedPacket packet;
    packet.stream = static_cast<std::uint32_t>(stream);
    packet.sender = sender;
    packet.slot_raw = raw;
    packet.slot_bits = bits;
    packet.n_slots = static_cast<std::int64_t>(content.size());
    packet.payload = std::as_bytes(std::span(content));
    packet.stride_bytes = 8;
    const Reason reason = assembler_.offer(packet, now);
    if (consuming) consume();
    return reason;
  }
  Reason offer(int stream, std::int64_t slot, std::int64_t n = 1, int variant = 0) {
    return offer_raw(stream, static_cast<std::uint64_t>(slot), 64,
                     values(stream, slot, n, variant));
  }
  void poll() {
    assembler_.poll(now);
    if (consuming) consume();
  }
  void finish() {
    assembler_.finish(now);
    consume();
  }
  void consume() {
    while (Chunk* chunk = pool_.next(std::chrono::milliseconds(0))) {
      Seen s{chunk->first_tick, chunk->n_ticks, chunk->sequence, chunk->segment, chunk->absent, {}};
      const auto n =
          static_cast<std::size_t>(chunk->n_ticks / config_.ticks_per_slot * config_.n_streams);
      s.values.resize(n);
      if (n > 0) std::memcpy(s.values.data(), chunk->payload.data(), n * 8);
      seen.push_back(std::move(s));
      std::memset(chunk->payload.data(), 0xA5, static_cast<std::size_t>(chunk->payload.bytes()));
      pool_.release(chunk);
    }
  }

  std::uint64_t count(Reason reason) const {
    return assembler_.totals().reasons[static_cast<std::size_t>(reason)];
  }
  /// Conservation: every datagram in one counter, every placed slot present in one chunk.
  void expect_balanced() const {
    const auto& t = assembler_.totals();
    std::uint64_t sum = 0;
    for (const auto n : t.reasons) sum += n;
    EXPECT_EQ(t.received, sum);
    EXPECT_EQ(t.placed_slots, t.present_slots + assembler_.open_slots());
  }
  /// Data, fill and mask of a delivered chunk against the set of slots that arrived: (stream, slot)
  /// -> value.
  void expect_chunk(const Seen& s,
                    const std::map<std::pair<int, std::int64_t>, std::uint64_t>& arrived) const {
    const std::int64_t first = s.first_tick / config_.ticks_per_slot;
    const std::int64_t n_slots = s.n_ticks / config_.ticks_per_slot;
    std::vector<AbsentSpan> expected;
    std::size_t wrong = 0;
    for (int stream = 0; stream < config_.n_streams; ++stream) {
      std::vector<AbsentSpan> runs;
      for (std::int64_t k = 0; k < n_slots; ++k) {
        const auto found = arrived.find({stream, first + k});
        const bool present = found != arrived.end();
        const auto got = s.values[static_cast<std::size_t>(k * config_.n_streams + stream)];
        wrong += got != (present ? found->second : 0) ? 1 : 0;
        if (present) continue;
        const Tick tick = (first + k) * config_.ticks_per_slot;
        if (!runs.empty() && runs.back().end == tick) {
          runs.back().end += config_.ticks_per_slot;
        } else {
          runs.push_back({0, tick, tick + config_.ticks_per_slot});
        }
      }
      for (int i = 0; i < config_.inputs_per_stream; ++i) {
        for (auto run : runs) {
          run.input = stream * config_.inputs_per_stream + i;
          expected.push_back(run);
        }
      }
    }
    EXPECT_EQ(wrong, 0u) << "chunk at " << s.first_tick;
    EXPECT_EQ(s.absent, expected) << "chunk at " << s.first_tick;
  }
  void expect_equal(const ModelAssembler& model) const {
    ASSERT_EQ(seen.size(), model.closed.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto& m = model.closed[i];
      ASSERT_EQ(seen[i].first_tick, m.first_slot * config_.ticks_per_slot) << "chunk " << i;
      ASSERT_EQ(seen[i].n_ticks, m.n_slots * config_.ticks_per_slot) << "chunk " << i;
      ASSERT_EQ(seen[i].sequence, m.sequence);
      ASSERT_EQ(seen[i].segment, m.segment);
      expect_chunk(seen[i], m.values);
    }
    EXPECT_EQ(assembler_.totals().received, model.received);
    for (std::size_t r = 0; r < kReasons; ++r) {
      const std::string key(name(static_cast<Reason>(r)));
      const auto found = model.counters.find(key);
      EXPECT_EQ(assembler_.totals().reasons[r], found == model.counters.end() ? 0 : found->second)
          << key;
    }
    EXPECT_EQ(assembler_.totals().closed_by_time, 0u);
    expect_balanced();
  }

  Assembler& assembler() { return assembler_; }
  ChunkPool& pool() { return pool_; }
  const AssemblerConfig& config() const { return config_; }
  MonotonicNs now = 1'000'000'000;
  bool consuming = true;
  std::vector<Seen> seen;

 private:
  AssemblerConfig config_;
  ChunkPool pool_;
  Assembler assembler_;
};

inline AssemblerConfig small_config(int n_streams, std::int64_t chunk_slots, int window_chunks) {
  AssemblerConfig config;
  config.n_streams = n_streams;
  config.inputs_per_stream = 2;
  config.chunk_slots = chunk_slots;
  config.window_chunks = window_chunks;
  config.held_packet_bytes = 64;
  return config;
}

}  // namespace ryle::test
