// SPDX-License-Identifier: BSD-3-Clause
// The live assembler under packets in any order, from any sender, with the attacker first.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "ryle/ingest/assembler.hpp"
#include "tests/fuzz/bodies.hpp"

namespace ryle::fuzz {
namespace {

constexpr std::int64_t kSlot_bytes = 8;

/// Takes numbers out of the bytes; zeros behind their end.
class Script {
 public:
  explicit Script(std::span<const std::byte> data) : data_(data) {}
  bool more() const { return at_ < data_.size(); }
  std::uint64_t number(int n_bytes) {
    std::uint64_t value = 0;
    for (int k = 0; k < n_bytes; ++k, ++at_)
      if (at_ < data_.size()) value |= std::to_integer<std::uint64_t>(data_[at_]) << (8 * k);
    return value;
  }

 private:
  std::span<const std::byte> data_;
  std::size_t at_ = 0;
};

/// Value of a slot as every sender of ours sends it; what an attacker sends differs.
std::uint64_t content(std::uint32_t stream, std::uint64_t slot, std::uint64_t sender) {
  return (std::uint64_t{stream} << 56 ^ slot * 0x9E3779B97F4A7C15u ^ sender << 40) | 1;
}

}  // namespace

void assembler(std::span<const std::byte> data) {
  Script script(data);
  AssemblerConfig config;
  config.n_streams = 1 + static_cast<int>(script.number(1) % 5);
  config.inputs_per_stream = 2;
  config.chunk_slots = 1 + static_cast<std::int64_t>(script.number(1) % 40);
  config.window_chunks = 2 + static_cast<int>(script.number(1) % 4);
  config.held_packets = 16;
  config.held_packet_bytes = 64;
  const std::uint64_t choices = script.number(1);
  config.bind_stream_to_sender = (choices & 1) != 0;
  const int counter_bits = (choices & 2) != 0 ? 64 : 16;
  ChunkPool pool(3, config.n_streams * config.chunk_slots * kSlot_bytes, 16, MemorySpace::host);
  Assembler assembler(
      config, std::make_unique<InterleavedPlacement>(config.n_streams, kSlot_bytes, std::byte{0}),
      pool);
  const std::int64_t memory_bytes = assembler.memory_bytes();
  MonotonicNs now = 1'000'000'000;
  std::uint64_t counter = script.number(4);
  std::uint64_t n_given = 0;
  const auto consume = [&] {
    while (Chunk* chunk = pool.next(std::chrono::milliseconds(0))) {
      require(chunk->n_ticks >= 0 && chunk->n_ticks <= config.chunk_slots, "a chunk of slots");
      for (const auto& absent : chunk->absent)
        require(absent.input >= 0 && absent.input < config.n_streams * 2 &&
                    absent.begin >= chunk->first_tick && absent.begin < absent.end &&
                    absent.end <= chunk->first_tick + chunk->n_ticks,
                "what is absent lies in its chunk");
      pool.release(chunk);
    }
  };
  while (script.more()) {
    const std::uint64_t act = script.number(1);
    if (act % 8 == 0) {
      now += static_cast<MonotonicNs>(script.number(2)) * 100'000;
      assembler.poll(now);
    } else if (act % 8 == 1) {
      assembler.reject(Reason::foreign_sender);
      ++n_given;
    } else {
      CountedPacket packet;
      const std::uint64_t who = script.number(1);
      packet.stream = static_cast<std::uint32_t>(who % static_cast<unsigned>(config.n_streams));
      packet.sender = who / 8 % 4;
      // Forward by a little, anywhere, or back.
      const std::uint64_t step = script.number(2);
      if (act % 8 < 6) counter += step % 8;
      packet.slot_raw = act % 8 == 6   ? counter + (step << 16)
                        : act % 8 == 7 ? counter - step
                                       : counter;
      packet.slot_bits = counter_bits;
      if (counter_bits < 64) packet.slot_raw &= (std::uint64_t{1} << counter_bits) - 1;
      packet.n_slots = 1 + static_cast<std::int64_t>(act / 8 % 6);
      std::vector<std::uint64_t> values;
      for (std::int64_t k = 0; k < packet.n_slots; ++k)
        values.push_back(
            content(packet.stream, packet.slot_raw + static_cast<std::uint64_t>(k), packet.sender));
      packet.payload = std::as_bytes(std::span(values));
      packet.stride_bytes = kSlot_bytes;
      now += 10'000;
      assembler.offer(packet, now);
      ++n_given;
    }
    consume();
    const auto& totals = assembler.totals();
    require(totals.placed_slots == totals.present_slots + assembler.open_slots(),
            "every placed slot is in one chunk");
  }
  assembler.finish(now);
  consume();
  const auto& totals = assembler.totals();
  require(totals.received == n_given, "every packet is received");
  require(totals.received ==
              std::accumulate(totals.reasons.begin(), totals.reasons.end(), std::uint64_t{0}),
          "every packet has one reason");
  require(assembler.memory_bytes() == memory_bytes, "memory does not grow");
  require(!assembler.condition(now).empty(), "there is a state");
}

/// A stranger first, then each stream; in order; backwards.
std::vector<Bytes> assembler_seeds() {
  std::vector<Bytes> seeds;
  for (const int kind : {0, 1, 2}) {
    Bytes bytes{std::byte{3}, std::byte{7}, std::byte{1}, std::byte{1},
                std::byte{5}, std::byte{0}, std::byte{0}, std::byte{0}};
    for (int k = 0; k < 300; ++k) {
      const bool stranger = kind == 0 && k < 40;
      bytes.push_back(std::byte(kind == 2 && k % 3 == 0 ? 7 : stranger ? 6 : 2));
      bytes.push_back(std::byte(k % 4 + (stranger ? 24 : 8)));
      bytes.push_back(std::byte(stranger ? 3 : k % 4 == 3 ? 1 : 0));
      bytes.push_back(std::byte{0});
      if (k % 16 == 15) bytes.insert(bytes.end(), {std::byte{0}, std::byte{200}, std::byte{0}});
    }
    seeds.push_back(bytes);
  }
  return seeds;
}

}  // namespace ryle::fuzz
