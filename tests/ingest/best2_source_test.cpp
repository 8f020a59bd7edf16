// SPDX-License-Identifier: BSD-3-Clause
// BEST-2 packets over loopback: what was lost, late, doubled, foreign or absurd is counted exactly,
// and every byte that arrived lies where the beamformer takes it from.
#include "ryle/ingest/best2_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "tests/ingest/loopback.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kFirst = 510, kChannels = 4;  // both halves of the order on the wire
constexpr std::int64_t kBlocks = 40;
constexpr std::uint64_t kCounterMask = (std::uint64_t{1} << 38) - 1;

std::byte best2_byte(std::int64_t block, std::int64_t channel, std::int64_t at) {
  return static_cast<std::byte>(1 + combine(static_cast<std::uint64_t>(block),
                                            static_cast<std::uint64_t>(channel),
                                            static_cast<std::uint64_t>(at)) %
                                        255);
}

std::vector<std::byte> best2_datagram(std::int64_t block, std::int64_t channel) {
  wire::Packet packet;
  packet.tick_raw = static_cast<std::uint64_t>(block) & kCounterMask;
  packet.channel = static_cast<std::uint32_t>(channel);
  std::vector<std::byte> payload(4096), bytes(wire::kBest2PacketBytes);
  for (std::int64_t k = 0; k < 4096; ++k)
    payload[static_cast<std::size_t>(k)] = best2_byte(block, channel, k);
  EXPECT_EQ(wire::encode(wire::Best2Geometry{}, packet, payload, bytes), bytes.size());
  return bytes;
}

Best2SourceConfig best2_config() {
  Best2SourceConfig config;
  config.endpoints = {"udp://127.0.0.1:0"};
  config.first_channel = kFirst;
  config.n_channels = kChannels;
  config.chunk_spectra = 256;
  config.n_chunks = 40;
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  return config;
}

struct Best2Outcome {
  IngestCounters counters;
  std::int64_t wrong_bytes = 0, wrong_presence = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, int> present;  // (block, channel of the sky)
  std::int64_t segments = 0;
};

// Sends what `play` sends and looks at every byte of every chunk. Blocks are numbered from `first`.
template <class Play>
Best2Outcome best2_loop(const Best2SourceConfig& config, std::int64_t first, const Play& play) {
  Best2Source source(config);
  source.poison(std::byte{0});
  source.start();
  test::Sender sender(source.endpoints()[0]);
  const std::uint64_t sent = play(sender);
  for (int i = 0; i < 60'000 && source.counters().received < sent; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  source.stop();
  Best2Outcome out;
  std::vector<std::uint64_t> present;
  while (!source.ended()) {
    Chunk* chunk = source.next(std::chrono::milliseconds(50));
    if (chunk == nullptr) continue;
    const bool any_absent = best2_presence(config, *chunk, present);
    out.wrong_presence += any_absent == chunk->absent.empty();
    out.segments = std::max(out.segments, chunk->segment + 1);
    const std::int64_t n_slots = chunk->n_ticks / 128;
    for (std::int64_t row = 0; row < config.n_channels; ++row) {
      // Memory ascends in frequency: the last channel of the sky order lies first.
      const std::int64_t channel =
          config.first_channel + (config.descending ? config.n_channels - 1 - row : row);
      for (std::int64_t slot = 0; slot < n_slots; ++slot) {
        const std::int64_t block = chunk->first_tick / 128 + slot;
        const std::uint64_t bits = present[static_cast<std::size_t>(row * n_slots + slot)];
        out.wrong_presence += bits != 0 && bits != 0xFFFFFFFFu;
        if (bits != 0) ++out.present[{block - first, channel}];
        const std::byte* payload =
            chunk->payload.data() + row * source.channel_stride_bytes() + slot * 4096;
        for (std::int64_t k = 0; k < 4096; ++k)
          out.wrong_bytes +=
              payload[k] != (bits != 0 ? best2_byte(block, channel, k) : std::byte{0});
      }
    }
    source.release(chunk);
  }
  out.counters = source.counters();
  return out;
}

TEST(Best2Source, CountsWhatHappenedExactlyAlsoAcrossTheEndOfTheCounter) {
  for (const std::int64_t first : {std::int64_t{1000}, (std::int64_t{1} << 38) - 20}) {
    const auto lost = [](std::int64_t block, std::int64_t k) {
      return (block == 10 && k == 1) || (block >= 11 && block < 14 && k == 2);
    };
    const auto outcome = best2_loop(best2_config(), first, [&](test::Sender& sender) {
      std::uint64_t sent = 0;
      const auto send = [&](const std::vector<std::byte>& bytes) {
        sender.send_datagram(bytes);
        ++sent;
        if (sent % 32 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      };
      for (std::int64_t step = 0; step < kBlocks; ++step) {
        // 20 and 21 come in each other's place.
        const std::int64_t block = step == 20 ? 21 : step == 21 ? 20 : step;
        for (std::int64_t k = 0; k < kChannels; ++k) {
          if (lost(block, k)) continue;
          send(best2_datagram(first + block, kFirst + k));
          if (block == 15 && k == 0) send(best2_datagram(first + block, kFirst + k));  // twice
          // Another packet of a place, while its chunk is open for want of the last channels.
          if (block == 39 && k == 0) {
            auto other = best2_datagram(first + block, kFirst);
            other[100] ^= std::byte{0x10};
            send(other);
          }
        }
      }
      send(best2_datagram(first + 1, kFirst));               // long gone
      send(best2_datagram(first + 1'000'000, kFirst));       // far ahead
      send(best2_datagram(first + 39, kFirst + kChannels));  // not ours
      send(best2_datagram(first + 39, kFirst - 1));
      auto cut = best2_datagram(first + 39, kFirst);
      cut.pop_back();
      send(cut);
      cut.resize(wire::kBest2PacketBytes + 1);
      send(cut);
      return sent;
    });
    const auto rejected = [&](const char* reason) { return outcome.counters.rejected.at(reason); };
    EXPECT_EQ(outcome.counters.balance(), 0);
    EXPECT_EQ(outcome.counters.received, kBlocks * kChannels - 4u + 8u);
    EXPECT_EQ(outcome.counters.used, kBlocks * kChannels - 4u);
    EXPECT_EQ(rejected("duplicate"), 1u);
    EXPECT_EQ(rejected("conflict"), 1u);
    EXPECT_EQ(rejected("late"), 1u);
    EXPECT_EQ(rejected("future"), 1u);
    EXPECT_EQ(rejected("foreign_stream"), 2u);
    EXPECT_EQ(rejected("too_short"), 1u);
    EXPECT_EQ(rejected("too_long"), 1u);
    EXPECT_EQ(outcome.counters.missing_slots, 4u);
    EXPECT_EQ(outcome.counters.lost_samples, 4u * 128 * 32);
    EXPECT_EQ(outcome.segments, 1);
    EXPECT_EQ(outcome.wrong_bytes, 0);
    EXPECT_EQ(outcome.wrong_presence, 0);
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      for (std::int64_t k = 0; k < kChannels; ++k) {
        const auto at = outcome.present.find({block, kFirst + k});
        EXPECT_EQ(at != outcome.present.end(), !lost(block, k)) << block << " " << k;
      }
    }
  }
}

TEST(Best2Source, RejectsWhatCannotBe) {
  const auto rejected = [](auto change) {
    auto config = best2_config();
    change(config);
    EXPECT_THROW(Best2Source source(config), ConfigError);
  };
  rejected([](auto& c) { c.endpoints.clear(); });
  rejected([](auto& c) { c.n_channels = 600; });
  rejected([](auto& c) { c.chunk_spectra = 200; });
  rejected([](auto& c) { c.n_chunks = c.window_chunks; });
  EXPECT_EQ(best2_source_chunk_bytes(best2_config()), 40 * 256 * 4 * 32);
}

}  // namespace
}  // namespace ryle
