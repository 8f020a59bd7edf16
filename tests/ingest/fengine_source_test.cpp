// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/fengine_source.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/simulate/impair_relay.hpp"
#include "tests/ingest/fengine_fixture.hpp"

namespace ryle {
namespace {

using test::chips_datagram;
using test::RunningFengine;
using test::Sender;
using test::small_chips;

constexpr std::int64_t kFirst = 1600;

/// Sends spectra [begin, end) of boards [0, n); pauses so that any socket buffer holds it.
void send_boards(Sender& sender, int n_boards, std::int64_t begin, std::int64_t end,
                 std::int64_t n_channels = 5) {
  for (std::int64_t t = begin; t < end; ++t) {
    for (int b = 0; b < n_boards; ++b) {
      sender.send_datagram(chips_datagram(b, t, kFirst, n_channels));
    }
    if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

// Every byte of every block is the byte that was sent: wire -> chunk -> planar ci4 -> pattern. The
// run begins off the grid of chunks and ends inside a block.
TEST(FengineSource, EveryByteLandsInItsPlace) {
  RunningFengine running(small_chips());
  Sender sender(running.endpoint());
  send_boards(sender, 3, 1000, 1000 + 5 * 128 + 37);
  ASSERT_TRUE(running.wait_all(3 * (5 * 128 + 37)));
  EXPECT_EQ(running.source().state(), "OK");
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.used, 3u * (5 * 128 + 37));
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.lost_samples, 0u);
  EXPECT_EQ(running.wrong(), 0);
  ASSERT_EQ(running.seen().size(), 6u);
  EXPECT_EQ(running.seen().front().first, 1000);
  EXPECT_EQ(running.seen().back().n, 37);
}

// The engines' own reading of a block (core/blocks) agrees with the codec's nibbles.
TEST(FengineSource, NibblesAreRealAndImaginary) {
  FengineLayout layout{1, 32, 1, 32, 128};
  Chunk chunk;
  chunk.payload = Buffer<std::byte>(layout.chunk_bytes());
  chunk.n_ticks = 128;
  for (std::int64_t t = 0; t < 128; ++t) {
    for (std::int64_t i = 0; i < 32; ++i) chunk.payload[t * 32 + i] = std::byte((t * 2 + i) & 255);
  }
  SpectraBlocks spectra(layout.shape());
  unpack(layout, chunk, spectra);
  const auto signed4 = [](std::int64_t nibble) { return nibble < 8 ? nibble : nibble - 16; };
  for (std::int64_t t = 0; t < 128; ++t) {
    for (std::int64_t i = 0; i < 32; ++i) {
      const std::int64_t byte = (t * 2 + i) & 255;
      const cf64 value = get_sample(spectra.blocks(), 0, t, i);
      ASSERT_EQ(value, cf64(static_cast<double>(signed4(byte >> 4)),
                            static_cast<double>(signed4(byte & 15))));
    }
  }
}

// Shapes that are no multiple of a tile, short chunks, several channel blocks, against the
// definition; whatever was in the blocks before.
TEST(FengineSource, UnpackingIsTheTransposeAtAnyShape) {
  for (const auto& [cpp, n_blocks, ipp, n_boards] :
       std::vector<std::array<std::int64_t, 4>>{{1, 1, 32, 1},
                                                {3, 2, 32, 2},
                                                {12, 2, 34, 1},
                                                {2, 1, 6, 3},
                                                {1, 3, 128, 1},
                                                {4, 1, 512, 1}}) {
    const FengineLayout layout{cpp * n_blocks, ipp * n_boards, cpp, ipp, 256};
    Chunk chunk;
    chunk.payload = Buffer<std::byte>(layout.chunk_bytes());
    for (std::int64_t k = 0; k < layout.chunk_bytes(); ++k) {
      chunk.payload[k] = std::byte(mix64(static_cast<std::uint64_t>(k)) & 255);
    }
    SpectraBlocks spectra(layout.shape());
    for (const std::int64_t n : {256, 255, 128, 129, 17, 16, 1}) {
      chunk.n_ticks = n;
      std::ranges::fill(spectra.bytes.span(), std::byte{0xCD});
      unpack(layout, chunk, spectra);
      std::int64_t wrong = 0;
      for (std::int64_t c = 0; c < layout.n_channels; ++c) {
        for (std::int64_t i = 0; i < layout.n_inputs; ++i) {
          const std::int64_t stream = c / cpp * n_boards + i / ipp;
          for (std::int64_t t = 0; t < spectra.blocks().n_blocks * 128; ++t) {
            const std::byte sent =
                chunk.payload[((stream * 256 + t) * cpp + c % cpp) * ipp + i % ipp];
            wrong += spectra.blocks().cell(c, t / 128, i)[t % 128] != (t < n ? sent : std::byte{0});
          }
        }
      }
      ASSERT_EQ(wrong, 0) << cpp << " channels, " << ipp << " inputs, " << n << " spectra";
    }
  }
}

// IN-02: any order inside the window, duplicates, and packets too late.
TEST(FengineSource, AnyOrderInsideTheWindow) {
  RunningFengine running(small_chips());
  Sender sender(running.endpoint());
  send_boards(sender, 3, 0, 128);
  std::vector<std::pair<int, std::int64_t>> order;
  for (std::int64_t t = 128; t < 384; ++t) {
    for (int b = 0; b < 3; ++b) order.emplace_back(b, t);
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  for (const auto& [b, t] : order) sender.send_datagram(chips_datagram(b, t, kFirst, 5));
  ASSERT_TRUE(running.wait_all(3 * 384));
  sender.send_datagram(chips_datagram(1, 50, kFirst, 5));  // long delivered
  send_boards(sender, 3, 384, 400);
  sender.send_datagram(chips_datagram(1, 399, kFirst, 5));  // again
  auto other = chips_datagram(1, 399, kFirst, 5);
  other.back() ^= std::byte{1};
  sender.send_datagram(other);                                        // with other bytes
  sender.send_datagram(chips_datagram(1, 399 + 100'000, kFirst, 5));  // a forged time
  ASSERT_TRUE(running.wait_all(3 * 400 + 4));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.used, 1200u);
  EXPECT_EQ(c.rejected.at("late"), 1u);
  EXPECT_EQ(c.rejected.at("duplicate"), 1u);
  EXPECT_EQ(c.rejected.at("conflict"), 1u);
  EXPECT_EQ(c.rejected.at("future"), 1u);
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.lost_samples, 0u);
  EXPECT_EQ(running.wrong(), 0);
}

// IN-07: wrong lengths and fields: one counter each, not a byte placed.
TEST(FengineSource, WrongDatagramsAreCountedAndPlaceNothing) {
  RunningFengine running(small_chips());
  Sender sender(running.endpoint());
  send_boards(sender, 3, 0, 40);
  std::uint64_t n = 120;
  const auto whole = chips_datagram(0, 40, kFirst, 5);  // 176 bytes
  for (const std::size_t length : {0, 1, 7, 15, 16, 175}) {
    sender.send_datagram(std::span(whole).first(length));
    ++n;
  }
  for (const std::size_t length : {177, 1500, 9000, 65'507}) {
    auto longer = whole;
    longer.resize(length);
    sender.send_datagram(longer);
    ++n;
  }
  const auto changed = [&](std::size_t at, int value) {
    auto bytes = whole;
    bytes[at] = static_cast<std::byte>(value);
    sender.send_datagram(bytes);
    ++n;
  };
  changed(0, 0);  // board 0: boards count from 1
  changed(0, 4);  // of 3
  changed(0, 255);
  changed(2, 0);     // no channels
  changed(2, 4);     // not the configured number
  changed(6, 0);     // channel number far below the band
  changed(7, 0x41);  // 1601: inside the band, not at the start of a block
  auto zero = whole;
  std::fill(zero.begin() + 8, zero.begin() + 16, std::byte{0});
  sender.send_datagram(zero);  // sequence 0: spectra count from 1
  ++n;
  send_boards(sender, 3, 40, 80);
  n += 120;
  ASSERT_TRUE(running.wait_all(n));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.received, n);
  EXPECT_EQ(c.used, 240u);
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.rejected.at("too_short"), 6u);
  EXPECT_EQ(c.rejected.at("too_long"), 4u);
  EXPECT_EQ(c.rejected.at("field"), 3u);
  EXPECT_EQ(c.rejected.at("length"), 1u);
  EXPECT_EQ(c.rejected.at("foreign_stream"), 4u);
  EXPECT_EQ(c.lost_samples, 0u);
  EXPECT_EQ(running.wrong(), 0);
}

// A board dies and returns: its inputs are absent for its time away, all others are whole.
TEST(FengineSource, ABoardThatDiesAndReturnsIsAbsentForItsTimeAway) {
  auto config = small_chips();
  config.n_boards = 5;  // four live ones are a quorum of their own
  RunningFengine running(config);
  Sender sender(running.endpoint());
  send_boards(sender, 5, 0, 300);
  for (std::int64_t t = 300; t < 1000; ++t) {
    for (const int b : {0, 2, 3, 4}) sender.send_datagram(chips_datagram(b, t, kFirst, 5));
    if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  send_boards(sender, 5, 1000, 1280);
  ASSERT_TRUE(running.wait_all(5 * 1280 - 700));
  running.stop();
  for (int b = 0; b < 5; ++b) EXPECT_EQ(running.absent(b), b == 1 ? 700 : 0);
  EXPECT_EQ(running.source().counters().lost_samples, 700u * 5 * 32);
  EXPECT_EQ(running.source().counters().used, 5u * 1280 - 700);
  EXPECT_EQ(running.wrong(), 0);
}

TEST(FengineSource, ASilentBoardIsReported) {
  auto config = small_chips();
  config.n_boards = 4;
  config.n_chunks = 64;
  config.patience_ns = 50 * kMillisecond_ns;
  config.close_after_ns = 50 * kMillisecond_ns;
  RunningFengine running(config);
  Sender sender(running.endpoint());
  std::int64_t t = 0;
  for (int i = 0; i < 4000 && running.source().state() != "DEGRADED(missing_streams)"; ++i, ++t) {
    for (int b = 0; b < 3; ++b) sender.send_datagram(chips_datagram(b, t, kFirst, 5));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(running.source().state(), "DEGRADED(missing_streams)");
  running.stop();
  EXPECT_EQ(running.wrong(), 0);
  EXPECT_EQ(running.absent(0), 0);
  EXPECT_GE(running.absent(3), t - 128);
}

// The F-engine is started again: sequence numbers begin anew, a new segment begins with them.
TEST(FengineSource, ARestartBeginsASegment) {
  RunningFengine running(small_chips());
  Sender sender(running.endpoint());
  send_boards(sender, 3, 1'000'000, 1'000'256);
  ASSERT_TRUE(running.wait_all(3 * 256));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the gate looks back 50 ms
  send_boards(sender, 3, 0, 256);
  ASSERT_TRUE(running.wait_all(3 * 512));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.segments, 2u);
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(running.wrong(), 0);
  ASSERT_FALSE(running.seen().empty());
  EXPECT_EQ(running.seen().front().segment, 0);
  EXPECT_EQ(running.seen().back().segment, 1);
  EXPECT_LT(running.seen().back().first, 256);
  // 16 packets are the votes; the one that completes them is placed.
  EXPECT_LE(c.rejected.at("late"), 48u);
  EXPECT_GE(c.used, 3u * 512 - 48);
}

// Packets of two bands on one socket, and a band that is not ours.
TEST(FengineSource, ChannelBlocksAreStreamsOfTheirOwn) {
  auto config = small_chips();
  config.n_boards = 2;
  config.n_channels = 10;
  config.channels_per_packet = 5;
  RunningFengine running(config);
  Sender sender(running.endpoint());
  std::uint64_t n = 0;
  for (std::int64_t t = 0; t < 256; ++t) {
    for (int b = 0; b < 2; ++b) {
      for (const std::int64_t first : {kFirst, kFirst + 5, kFirst + 10}) {
        // One block of one board is lost for a while: its channels and inputs alone are absent.
        if (b == 1 && first == kFirst + 5 && t >= 100 && t < 170) continue;
        sender.send_datagram(chips_datagram(b, t, first, 5));
        ++n;
      }
    }
    if (t % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  ASSERT_TRUE(running.wait_all(n));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.rejected.at("foreign_stream"), 512u);
  EXPECT_EQ(c.used, 4u * 256 - 70);
  EXPECT_EQ(running.absent(0) + running.absent(1) + running.absent(2), 0);
  EXPECT_EQ(running.absent(3), 70);
  EXPECT_EQ(running.wrong(), 0);
}

// Two sockets, one board each, whatever order they are read in.
TEST(FengineSource, BoardsOnSocketsOfTheirOwn) {
  auto config = small_chips();
  config.n_boards = 2;
  config.endpoints = {"udp://127.0.0.1:0", "udp://127.0.0.1:0"};
  RunningFengine running(config);
  Sender first(running.endpoint(0)), second(running.endpoint(1));
  for (std::int64_t t = 0; t < 640; ++t) {
    first.send_datagram(chips_datagram(0, t, kFirst, 5));
    second.send_datagram(chips_datagram(1, t, kFirst, 5));
    if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  ASSERT_TRUE(running.wait_all(1280));
  running.stop();
  EXPECT_EQ(running.source().counters().used, 1280u);
  EXPECT_EQ(running.wrong(), 0);
}

// IN-08.
TEST(FengineSource, StrangersAreCountedAndPlaceNothing) {
  auto config = small_chips();
  {
    RunningFengine running(config);
    Sender sender(running.endpoint()), stranger(running.endpoint());
    send_boards(sender, 3, 0, 64);
    ASSERT_TRUE(running.wait_all(192));
    for (std::int64_t t = 64; t < 74; ++t) {
      auto forged = chips_datagram(1, t, kFirst, 5);
      forged.back() ^= std::byte{255};
      stranger.send_datagram(forged);
    }
    ASSERT_TRUE(running.wait_all(202));
    send_boards(sender, 3, 64, 128);
    ASSERT_TRUE(running.wait_all(394));
    running.stop();
    const auto c = running.source().counters();
    EXPECT_EQ(c.used, 384u);
    EXPECT_EQ(c.rejected.at("foreign_sender"), 10u);
    EXPECT_EQ(running.wrong(), 0);
  }
  config.allowed_senders = {"10.9.8.7"};
  RunningFengine running(config);
  Sender sender(running.endpoint());
  send_boards(sender, 3, 0, 20);
  ASSERT_TRUE(running.wait_all(60));
  running.stop();
  EXPECT_EQ(running.source().counters().rejected.at("foreign_sender"), 60u);
  EXPECT_EQ(running.source().counters().used, 0u);
}

// IN-03: the 64-bit sequence number, 1-based, at its wrap. (The codec refuses the number 0, which
// is what the wrap passes through: that one packet of each board is `field`.)
TEST(FengineSource, TheSequenceNumberMayWrap) {
  RunningFengine running(small_chips());
  Sender sender(running.endpoint());
  const std::int64_t n = 256;
  for (std::int64_t t = -n / 2; t < n / 2; ++t) {
    for (int b = 0; b < 3; ++b) {
      auto bytes = chips_datagram(b, 1, kFirst, 5);
      const auto payload = test::pattern_spectrum(t, kFirst, 5, 32 * b, 32);
      std::memcpy(bytes.data() + 16, payload.data(), payload.size());
      const auto sequence = __builtin_bswap64(static_cast<std::uint64_t>(t + 1));
      std::memcpy(bytes.data() + 8, &sequence, 8);
      sender.send_datagram(bytes);
    }
  }
  ASSERT_TRUE(running.wait_all(3 * n));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.rejected.at("field"), 3u);
  EXPECT_EQ(c.used, 3u * n - 3);
  EXPECT_EQ(c.segments, 1u);
  EXPECT_EQ(running.absent(0), 1);
  EXPECT_EQ(running.wrong(), 0);
}

std::vector<std::byte> tbx_datagram(std::int64_t spectrum, std::int64_t phase, int block) {
  wire::Packet packet;
  packet.channel = static_cast<std::uint32_t>(kFirst + 3 * block);
  packet.n_channels = 3;
  packet.n_inputs = 10;
  packet.flags = 8U << 24;
  packet.tick_raw = static_cast<std::uint64_t>(spectrum * 8192 + phase);
  const auto payload = test::pattern_spectrum(spectrum, kFirst + 3 * block, 3, 0, 10);
  std::vector<std::byte> bytes(28 + payload.size());
  EXPECT_EQ(wire::encode(wire::TbxGeometry{5, 3, 0, 0}, packet, payload, bytes), bytes.size());
  return bytes;
}

// Frames of all stands, 3 of the band's channels each, time tags of 196 MHz off the second's grid.
TEST(FengineSource, TbxFrames) {
  auto config = small_chips();
  config.format = FengineFormat::tbx;
  config.n_stands = 5;
  config.n_channels = 6;
  config.channels_per_packet = 3;
  config.clock.rate_hz = {765'625, 32};
  const std::int64_t slot0 = 1'700'000'000LL * 196'000'000 / 8192 + 7;
  const std::int64_t phase = 1000;
  RunningFengine running(config);
  Sender sender(running.endpoint());
  for (std::int64_t t = slot0; t < slot0 + 300; ++t) {
    for (int block = 0; block < 2; ++block) sender.send_datagram(tbx_datagram(t, phase, block));
    if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  ASSERT_TRUE(running.wait_all(600));
  running.stop();
  EXPECT_EQ(running.source().counters().used, 600u);
  EXPECT_EQ(running.wrong(), 0);
  ASSERT_FALSE(running.seen().empty());
  EXPECT_EQ(running.seen().front().first, slot0);
  // 37 leap seconds; the tag's time to a nanosecond of rounding on either side.
  const auto info = running.source().info();
  const __int128 expected = static_cast<__int128>(slot0 * 8192 + phase) * 250 / 49 +
                            static_cast<__int128>(37) * 1'000'000'000;
  EXPECT_NEAR(static_cast<double>(info.clock.tai_ns(slot0) - static_cast<std::int64_t>(expected)),
              0, 2);
  EXPECT_EQ(info.time_source, TimeSource::packet);
}

// Chunks that wait for the consumer while the F-engine is started again keep the time of their own
// segment: the grids of the two differ by a part of a spectrum.
TEST(FengineSource, QueuedChunksKeepTheTimeOfTheirSegment) {
  auto config = small_chips();
  config.format = FengineFormat::tbx;
  config.n_stands = 5;
  config.n_channels = 6;
  config.channels_per_packet = 3;
  config.clock.rate_hz = {765'625, 32};
  FengineSource source(config);
  source.start();
  Sender sender(source.endpoints()[0]);
  const std::int64_t slot0 = 1'700'000'000LL * 196'000'000 / 8192;
  const std::array<std::int64_t, 2> phases{1000, 7000};
  for (std::int64_t run = 0; run < 2; ++run) {
    const std::int64_t first = slot0 + 100'000 * run;
    for (std::int64_t t = first; t < first + 300; ++t) {
      for (int block = 0; block < 2; ++block) {
        sender.send_datagram(tbx_datagram(t, phases[run], block));
      }
      if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    for (int i = 0;
         i < 60'000 && source.counters().received < static_cast<std::uint64_t>(600 * (run + 1));
         ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the gate looks back 50 ms
  }
  source.stop();
  std::array<int, 2> chunks{};
  while (!source.ended()) {
    Chunk* chunk = source.next(std::chrono::milliseconds(20));
    if (chunk == nullptr) continue;
    ASSERT_LT(chunk->segment, 2);
    ++chunks[chunk->segment];
    const std::int64_t expected_ns = static_cast<std::int64_t>(
        static_cast<__int128>(chunk->first_tick * 8192 + phases[chunk->segment]) * 250 / 49 +
        static_cast<__int128>(37) * 1'000'000'000);
    const SampleClock clock = source.clock(chunk->segment);
    // To a nanosecond of rounding on either side; the grids are 30.6 us apart.
    EXPECT_NEAR(static_cast<double>(clock.tai_ns(chunk->first_tick) - expected_ns), 0, 2);
    source.release(chunk);
  }
  EXPECT_GE(chunks[0], 3);
  EXPECT_GE(chunks[1], 2);
}

TEST(FengineSource, TbfFrames) {
  auto config = small_chips();
  config.format = FengineFormat::tbf;
  config.n_stands = 16;
  config.n_channels = 24;
  RunningFengine running(config);
  Sender sender(running.endpoint());
  const std::int64_t slot0 = 1'700'000'000LL * 25'000;
  for (std::int64_t t = slot0; t < slot0 + 128; ++t) {
    for (int block = 0; block < 2; ++block) {
      wire::Packet packet;
      packet.channel = static_cast<std::uint32_t>(kFirst + 12 * block);
      packet.n_channels = 12;
      packet.n_inputs = 32;
      packet.flags = 1U << 24;
      packet.tick_raw = static_cast<std::uint64_t>(t * 7840);
      const auto payload = test::pattern_spectrum(t, kFirst + 12 * block, 12, 0, 32);
      std::vector<std::byte> bytes(24 + payload.size());
      ASSERT_GT(wire::encode(wire::TbfGeometry{16, 0, 0, false}, packet, payload, bytes), 0u);
      sender.send_datagram(bytes);
    }
  }
  ASSERT_TRUE(running.wait_all(256));
  running.stop();
  EXPECT_EQ(running.source().counters().used, 256u);
  EXPECT_EQ(running.wrong(), 0);
  EXPECT_EQ(running.source().info().clock.tai_ns(slot0), 1'700'000'037'000'000'000);
}

// Everything at once behind the relay: the ledger says what was sent and lost, the counters and
// masks must say the same.
TEST(FengineSource, SentMinusLostIsUsedBehindTheRelay) {
  auto config = small_chips();
  config.endpoints = {test::own_endpoint("udp")};
  RunningFengine running(config);
  simulate::ImpairConfig impair;
  impair.seed = 11;
  impair.loss = 0.05;
  impair.burst_begin = 0.002;
  impair.duplicate = 0.03;
  impair.reorder = 0.2;
  impair.reorder_depth = 20;
  impair.truncate = 0.01;
  impair.extend = 0.01;
  impair.foreign_stream = 0.01;
  impair.future = 0.01;
  impair.format = {16, 8, 8, 0};
  std::vector<simulate::LedgerRecord> ledger;
  constexpr std::int64_t kSpectra = 2000;
  {
    simulate::ImpairRelay relay(impair, test::own_host(), parse_endpoint(config.endpoints[0]).port);
    Sender sender("udp://127.0.0.1:" + std::to_string(relay.in_port()));
    send_boards(sender, 3, 0, kSpectra);
    relay.stop();
    ledger = relay.ledger();
  }
  std::uint64_t lost = 0, arrived = 0, intact = 0;
  std::set<std::uint64_t> whole;  // datagrams of which a whole copy arrived
  using simulate::ImpairAction;
  for (const auto& r : ledger) {
    const bool gone = r.action == ImpairAction::lost || r.action == ImpairAction::lost_in_burst;
    lost += gone;
    arrived += !gone;
    if (r.action != ImpairAction::sent && r.action != ImpairAction::duplicated) continue;
    ++intact;
    whole.insert(r.order);
  }
  ASSERT_TRUE(running.wait_all(arrived));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.received, arrived);
  EXPECT_EQ(c.kernel_drops, 0u);
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.used, whole.size());
  EXPECT_EQ(c.rejected.at("duplicate"), intact - whole.size());
  EXPECT_EQ(c.rejected.at("late"), 0u);
  EXPECT_GT(lost, 200u);
  EXPECT_GT(intact - whole.size(), 100u);
  // Every slot that was lost or damaged is in the mask; the ends of the run are cut there.
  std::int64_t absent = 0, spectra = 0;
  for (const auto& s : running.seen()) {
    absent += s.n_absent;
    spectra += s.n;
  }
  EXPECT_EQ(static_cast<std::uint64_t>(3 * spectra - absent), c.used);
  EXPECT_EQ(running.wrong(), 0);
}

TEST(FengineSource, WrongConfigurationsAreRejected) {
  const auto rejected = [](auto change) {
    auto config = small_chips();
    change(config);
    EXPECT_THROW(FengineSource{config}, ConfigError);
  };
  rejected([](auto& c) { c.endpoints.clear(); });
  rejected([](auto& c) { c.n_boards = 0; });
  rejected([](auto& c) { c.n_boards = 256; });
  rejected([](auto& c) { c.channels_per_packet = 2; });  // does not divide 5
  rejected([](auto& c) { c.chunk_spectra = 100; });
  rejected([](auto& c) { c.n_chunks = 4; });
  rejected([](auto& c) { c.first_channel = -1; });
  rejected([](auto& c) { c.first_channel = 65535; });
  rejected([](auto& c) { c.n_channels = std::int64_t{1} << 60; });
  rejected([](auto& c) {
    c.format = FengineFormat::tbx;
    c.clock.rate_hz = {24'000, 1};  // 8166.67 ticks
  });
  EXPECT_THROW(fengine_format("spead"), UnsupportedError);
  EXPECT_EQ(fengine_format("tbx"), FengineFormat::tbx);
}

TEST(FengineSource, MemoryIsFixedAndTheSourceSaysWhatItDelivers) {
  auto config = small_chips();
  FengineSource source(config);
  EXPECT_EQ(fengine_source_chunk_bytes(config), std::int64_t{40} * 128 * 5 * 96);
  EXPECT_GE(source.memory_bytes(), fengine_source_chunk_bytes(config));
  EXPECT_LT(source.memory_bytes(), fengine_source_chunk_bytes(config) + (16 << 20));
  EXPECT_EQ(source.info().n_inputs, 96);
  EXPECT_EQ(source.info().format, "chips");
  EXPECT_DOUBLE_EQ(source.channels().first_center_hz, 40e6);
  EXPECT_EQ(source.channels().n_channels, 5);
  source.stop();
  EXPECT_EQ(source.next(std::chrono::milliseconds(0)), nullptr);
  EXPECT_TRUE(source.ended());
}

}  // namespace
}  // namespace ryle
