// SPDX-License-Identifier: BSD-3-Clause
// BEST-2 packets, and those of an array of another size, over loopback: what was lost, late,
// doubled, foreign or absurd is counted exactly, and every byte that arrived lies where the
// beamformer takes it from.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/wire/best2.hpp"
#include "tests/ingest/loopback.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kChannels = 4;  // taken, about the middle: both halves of the wire's order
constexpr std::int64_t kBlocks = 40;
constexpr std::uint64_t kCounterMask = (std::uint64_t{1} << 38) - 1;

std::byte best2_byte(std::int64_t block, std::int64_t channel, std::int64_t at) {
  return static_cast<std::byte>(1 + combine(static_cast<std::uint64_t>(block),
                                            static_cast<std::uint64_t>(channel),
                                            static_cast<std::uint64_t>(at)) %
                                        255);
}

/// The same format with other numbers.
struct Best2Layout {
  wire::PacketDescription packet = wire::best2_packet();
  std::int64_t n_inputs = 32, n_channels = 1024;

  static Best2Layout of(std::int64_t n_inputs, std::int64_t n_channels, std::int64_t spectra) {
    Best2Layout layout;
    layout.n_inputs = n_inputs;
    layout.n_channels = n_channels;
    layout.packet.length = static_cast<std::uint32_t>(8 + n_inputs * spectra);
    layout.packet.header[1].count = n_channels;
    layout.packet.ticks_per_count = spectra;
    layout.packet.order[0].extent = n_inputs / 2;
    layout.packet.order[1].extent = spectra;
    wire::validate(layout.packet);
    return layout;
  }
  std::int64_t first() const { return n_channels / 2 - 2; }
  std::int64_t spectra() const { return packet.extent(wire::Axis::time); }
  std::int64_t payload_bytes() const { return packet.payload_bytes(); }

  std::vector<std::byte> datagram(std::int64_t block, std::int64_t channel) const {
    wire::Packet p;
    p.tick_raw = static_cast<std::uint64_t>(block) & kCounterMask;
    p.stream = static_cast<std::uint32_t>(channel);
    std::vector<std::byte> payload(payload_bytes()), bytes(packet.length);
    for (std::size_t k = 0; k < payload.size(); ++k)
      payload[k] = best2_byte(block, channel, static_cast<std::int64_t>(k));
    const wire::DescribedCodec codec(packet, {0, static_cast<std::uint32_t>(n_channels), 1});
    EXPECT_EQ(codec.encode(p, payload, bytes), bytes.size());
    return bytes;
  }
  DescribedSourceConfig config() const {
    DescribedSourceConfig c;
    c.endpoints = {"udp://127.0.0.1:0"};
    c.packet = packet;
    c.n_inputs = n_inputs;
    c.first_channel = first();
    c.n_channels = kChannels;
    c.descending = true;
    c.clock.rate_hz = {78'125, 4};
    c.chunk_ticks = 256;
    c.n_chunks = 40;
    c.memory = MemorySpace::host;
    c.allow_small_rcvbuf = true;
    c.close_after_ns = c.idle_close_ns = std::int64_t{1} << 60;
    return c;
  }
};

struct Best2Outcome {
  IngestCounters counters;
  std::int64_t wrong_bytes = 0, wrong_presence = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, int> present;  // (block, channel of the sky)
  std::int64_t segments = 0;
};

// Sends what `play` sends and looks at every byte of every chunk. Blocks are numbered from `first`.
template <class Play>
Best2Outcome best2_loop(const DescribedSourceConfig& config, std::int64_t first, const Play& play) {
  DescribedSpectraSource source(config);
  const std::int64_t spectra = config.packet.extent(wire::Axis::time);
  const std::int64_t payload_bytes = config.packet.payload_bytes();
  const std::int64_t words = words_for_bits(config.n_inputs);
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
    const bool any_absent = packet_presence(config, *chunk, present);
    out.wrong_presence += any_absent == chunk->absent.empty();
    out.segments = std::max(out.segments, chunk->segment + 1);
    const std::int64_t n_slots = chunk->n_ticks / spectra;
    for (std::int64_t row = 0; row < config.n_channels; ++row) {
      // Memory ascends in frequency: the last channel of the sky order lies first.
      const std::int64_t channel =
          config.first_channel + (config.descending ? config.n_channels - 1 - row : row);
      for (std::int64_t slot = 0; slot < n_slots; ++slot) {
        const std::int64_t block = chunk->first_tick / spectra + slot;
        const std::uint64_t* bits = present.data() + (row * n_slots + slot) * words;
        std::int64_t n_there = 0;
        for (std::int64_t i = 0; i < 64 * words; ++i) n_there += test_bit(bits, i) ? 1 : 0;
        const bool there = n_there > 0;
        out.wrong_presence += there && n_there != config.n_inputs;
        if (there) ++out.present[{block - first, channel}];
        const std::byte* payload =
            chunk->payload.data() + row * described_stream_bytes(config) + slot * payload_bytes;
        for (std::int64_t k = 0; k < payload_bytes; ++k)
          out.wrong_bytes += payload[k] != (there ? best2_byte(block, channel, k) : std::byte{0});
      }
    }
    source.release(chunk);
  }
  out.counters = source.counters();
  return out;
}

void expect_exact_counts(const Best2Layout& layout) {
  const std::int64_t kFirst = layout.first();
  for (const std::int64_t first : {std::int64_t{1000}, (std::int64_t{1} << 38) - 20}) {
    const auto lost = [](std::int64_t block, std::int64_t k) {
      return (block == 10 && k == 1) || (block >= 11 && block < 14 && k == 2);
    };
    const auto outcome = best2_loop(layout.config(), first, [&](test::Sender& sender) {
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
          send(layout.datagram(first + block, kFirst + k));
          if (block == 15 && k == 0) send(layout.datagram(first + block, kFirst + k));  // twice
          // Another packet of a place, while its chunk is open for want of the last channels.
          if (block == 39 && k == 0) {
            auto other = layout.datagram(first + block, kFirst);
            other[100] ^= std::byte{0x10};
            send(other);
          }
        }
      }
      send(layout.datagram(first + 1, kFirst));               // long gone
      send(layout.datagram(first + 1'000'000, kFirst));       // far ahead
      send(layout.datagram(first + 39, kFirst + kChannels));  // not ours
      send(layout.datagram(first + 39, kFirst - 1));
      auto cut = layout.datagram(first + 39, kFirst);
      cut.pop_back();
      send(cut);
      cut.resize(layout.packet.length + 1);
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
    EXPECT_EQ(outcome.counters.lost_samples,
              static_cast<std::uint64_t>(4 * layout.spectra() * layout.n_inputs));
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

TEST(Best2Source, CountsWhatHappenedExactlyAlsoAcrossTheEndOfTheCounter) {
  expect_exact_counts({});
}

TEST(Best2Source, NumbersOfTheArrayAreThoseOfTheDescription) {
  const Best2Layout larger = Best2Layout::of(64, 512, 128), wide = Best2Layout::of(130, 256, 64);
  EXPECT_TRUE(holds_pairs(Best2Layout().packet, 32));
  EXPECT_TRUE(holds_pairs(larger.packet, 64));
  EXPECT_FALSE(holds_pairs(larger.packet, 128));  // of two boards
  EXPECT_FALSE(holds_pairs(wide.packet, 130));    // the beamformer takes packets of 128 spectra
  expect_exact_counts(larger);
  expect_exact_counts(wide);
}

TEST(Best2Source, RejectsWhatCannotBe) {
  const auto rejected = [](auto change) {
    auto config = Best2Layout().config();
    change(config);
    EXPECT_THROW(DescribedSpectraSource source(config), ConfigError);
  };
  rejected([](auto& c) { c.endpoints.clear(); });
  rejected([](auto& c) { c.n_channels = 600; });
  rejected([](auto& c) { c.chunk_ticks = 200; });
  rejected([](auto& c) { c.n_chunks = c.window_chunks; });
  EXPECT_EQ(described_source_chunk_bytes(Best2Layout().config()), 40 * 256 * 4 * 32);
}

}  // namespace
}  // namespace ryle
