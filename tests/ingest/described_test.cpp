// SPDX-License-Identifier: BSD-3-Clause
// Described packets in chunks and blocks: every sample of random layouts is the one that was sent,
// and live over loopback what was lost is exactly what is marked.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/described_blocks.hpp"
#include "ryle/ingest/described_placement.hpp"
#include "ryle/ingest/described_source.hpp"
#include "tests/ingest/loopback.hpp"

namespace ryle {
namespace {

using wire::Axis;
using DescribedBytes = std::vector<std::byte>;

wire::PacketDescription with_counter() {
  wire::PacketDescription d;
  wire::HeaderField counter;
  counter.meaning = wire::FieldMeaning::sequence;
  wire::HeaderField board;
  board.meaning = wire::FieldMeaning::board;
  board.offset = 8;
  board.bytes = 2;
  board.n_bits = 16;
  d.header = {counter, board};
  d.payload_offset = 16;
  return d;
}

/// A layout with axes in random order, some in two digits; the payload is whole bytes.
wire::PacketDescription random_layout(std::mt19937_64& random, bool spectra) {
  wire::PacketDescription d = with_counter();
  const auto pick = [&](std::initializer_list<int> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random() % of.size()));
  };
  d.sample.complex = spectra || random() % 2 == 0;
  d.sample.bits = spectra ? pick({4, 4, 8, 8, 3, 12}) : pick({1, 2, 4, 8, 8, 16, 5, 12});
  d.sample.msb_first = random() % 2 == 0;
  d.sample.re_first = random() % 2 == 0;
  if (random() % 3 == 0) d.sample.encoding = Encoding::offset_binary;
  const auto add = [&](Axis axis, std::initializer_list<int> sizes) {
    d.order.push_back({axis, pick(sizes)});
  };
  add(Axis::time, {8, 16, 32});
  add(Axis::input, {2, 4, 8, 24});
  if (spectra) add(Axis::channel, {1, 3, 20});
  if (random() % 2 == 0) add(Axis::time, {1, 2, 4});
  if (random() % 2 == 0) add(Axis::input, {2, 4});
  if (d.sample.complex && random() % 3 == 0) d.order.push_back({Axis::complex, 2});
  std::shuffle(d.order.begin(), d.order.end(), random);
  const std::int64_t samples =
      d.extent(Axis::time) * d.extent(Axis::input) * d.extent(Axis::channel);
  d.length = 16 + static_cast<std::uint32_t>(samples * d.sample.stride_bits() / 8);
  if (d.length > 65'507) return random_layout(random, spectra);  // none that UDP carries
  wire::validate(d);
  return d;
}

DescribedBytes random_bytes(std::mt19937_64& random, std::int64_t n) {
  DescribedBytes bytes(static_cast<std::size_t>(n));
  for (auto& b : bytes) b = std::byte(random() & 255);
  return bytes;
}

TEST(DescribedPlacement, EverySampleOfRandomLayoutsIsWhatWasSent) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 200; ++round) {
    const auto d = random_layout(random, false);
    const std::int64_t n_time = d.extent(Axis::time), n_inputs = d.extent(Axis::input);
    const DescribedPlacement placement(d, 2 * n_inputs);
    const SampleLayout layout = described_samples(d, 2 * n_inputs);
    const wire::PayloadMap map(d);
    const auto packet = random_bytes(random, d.payload_bytes());
    DescribedBytes chunk(static_cast<std::size_t>(placement.chunk_bytes(3)), std::byte{0xEE});
    placement.place(chunk.data(), 1, {1, 0, 1, packet.data(), d.payload_bytes()});
    EXPECT_TRUE(placement.equal(chunk.data(), 1, 1, packet.data()));
    for (std::int64_t t = 0; t < n_time; ++t) {
      for (std::int64_t i = 0; i < n_inputs; ++i) {
        const cf64 got = decode_sample(layout, chunk.data(), n_inputs + i, n_time + t);
        ASSERT_EQ(got.real(), map.part(packet.data(), 0, t, i, 0)) << round;
        ASSERT_EQ(got.imag(), d.sample.complex ? map.part(packet.data(), 0, t, i, 1) : 0) << round;
      }
    }
    // Nothing but those samples was written.
    std::int64_t untouched = std::ranges::count(chunk, std::byte{0xEE});
    EXPECT_GE(untouched, placement.chunk_bytes(3) * 5 / 6);
    auto other = packet;
    other[random() % other.size()] ^= std::byte{1};
    EXPECT_FALSE(placement.equal(chunk.data(), 1, 1, other.data()));
  }
}

TEST(DescribedBlocks, EverySampleOfRandomLayoutsIsWhatWasSent) {
  std::mt19937_64 random(22);
  for (int round = 0; round < 60; ++round) {
    const auto d = random_layout(random, true);
    const std::int64_t t_packet = d.extent(Axis::time), inputs = d.extent(Axis::input),
                       channels = d.extent(Axis::channel);
    DescribedBlocks::Shape shape{2 * channels, 3 * inputs, 128 * t_packet, round % 2 != 0};
    shape.chunk_spectra = std::max<std::int64_t>(128, t_packet) * 2;
    const DescribedBlocks blocks(d, shape);
    const wire::PayloadMap map(d);
    ASSERT_EQ(blocks.n_streams(), 6);
    Chunk chunk;
    const std::int64_t slots = shape.chunk_spectra / t_packet;
    chunk.payload = Buffer<std::byte>(blocks.n_streams() * slots * d.payload_bytes());
    const auto bytes = random_bytes(random, chunk.payload.size());
    std::ranges::copy(bytes, chunk.payload.data());
    chunk.first_tick = 7 * t_packet;
    chunk.n_ticks = shape.chunk_spectra - t_packet;  // a short one
    const AbsentSpan gap{4, chunk.first_tick + t_packet, chunk.first_tick + 2 * t_packet};
    chunk.absent = {gap};
    SpectraBlocks spectra(blocks.spectra_shape());
    std::ranges::fill(spectra.bytes.span(), std::byte{0xEE});
    blocks.unpack(chunk, spectra);
    const BlockView view = spectra.blocks();
    ASSERT_FALSE(spectra.complete);
    for (std::int64_t c = 0; c < shape.n_channels; ++c) {
      const std::int64_t number = shape.descending ? shape.n_channels - 1 - c : c;
      for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
        const std::int64_t stream = c / channels * 3 + i / inputs;
        const std::uint64_t* valid = spectra.mask.bits.data() +
                                     c * spectra.mask.channel_stride_words + i * spectra.mask.words;
        for (std::int64_t t = 0; t < view.n_blocks * spectra_per_block(view.format); ++t) {
          const bool absent = t >= chunk.n_ticks || (stream == gap.input && t / t_packet == 1);
          cf64 want{};
          if (!absent) {
            const std::byte* packet =
                bytes.data() + (stream * slots + t / t_packet) * d.payload_bytes();
            const auto part = [&](int p) {
              return map.part(packet, number % channels, t % t_packet, i % inputs, p);
            };
            want = {static_cast<double>(part(0)), static_cast<double>(part(1))};
          }
          ASSERT_EQ(get_sample(view, c, t, i), want)
              << round << ": " << c << " " << i << " " << t << " bits " << d.sample.bits;
          if (t < chunk.n_ticks) {
            ASSERT_EQ(test_bit(valid, t), !absent);
          }
        }
      }
    }
  }
}

TEST(DescribedBlocks, RejectsWhatIsNoSpectra) {
  auto d = with_counter();
  d.order = {{Axis::channel, 4}, {Axis::input, 3}};
  d.length = 28;
  d.sample.complex = false;
  EXPECT_THROW(DescribedBlocks(d, {4, 3, 128, false}), ConfigError);
  d.sample.complex = true;
  d.sample.bits = 4;
  EXPECT_THROW(DescribedBlocks(d, {6, 3, 128, false}), ConfigError);
  EXPECT_THROW(DescribedBlocks(d, {4, 4, 128, false}), ConfigError);
}

/// Four boards of real 8-bit samples over loopback: some packets lost, some doubled, some foreign.
struct DescribedLoop {
  wire::PacketDescription packet = with_counter();
  DescribedSourceConfig config;
  std::int64_t n_packets = 64;

  DescribedLoop() {
    packet.order = {{Axis::input, 6}, {Axis::time, 32}};
    packet.length = 16 + 192;
    packet.sample.complex = false;
    config.endpoints = {"udp://127.0.0.1:0"};
    config.n_inputs = 24;
    config.clock = {0, {1'000'000, 1}};
    config.chunk_ticks = 512;
    config.n_chunks = 20;
    config.memory = MemorySpace::host;
    config.allow_small_rcvbuf = true;
    config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  }
  static std::byte value(std::int64_t tick, std::int64_t input) {
    return static_cast<std::byte>(
        1 + combine(static_cast<std::uint64_t>(tick), static_cast<std::uint64_t>(input)) % 200);
  }
  DescribedBytes datagram(std::int64_t number, std::int64_t board, std::int64_t first) const {
    const wire::DescribedCodec codec(packet, described_geometry(packet, 24, 0, 1));
    DescribedBytes payload(192), out(208);
    for (std::int64_t i = 0; i < 6; ++i) {
      for (std::int64_t t = 0; t < 32; ++t)
        payload[static_cast<std::size_t>(i * 32 + t)] = value(number * 32 + t, board * 6 + i);
    }
    wire::Packet p;
    p.stream = static_cast<std::uint32_t>(board);
    p.tick_raw = static_cast<std::uint64_t>((first + number) * packet.counts_per_packet());
    EXPECT_EQ(codec.encode(p, payload, out), out.size());
    return out;
  }
  static bool lost(std::int64_t number, std::int64_t board) {
    return combine(static_cast<std::uint64_t>(number), 77 + static_cast<std::uint64_t>(board)) %
               7 ==
           0;
  }
  /// Sends all but those that are lost, one twice and one of another length; checks every sample.
  IngestCounters run(std::int64_t first) {
    config.packet = packet;
    DescribedSampleSource source(config);
    const SampleLayout layout = source.info().layout;
    source.start();
    test::Sender sender(source.endpoints()[0]);
    std::uint64_t sent = 0;
    for (std::int64_t n = 0; n < n_packets; ++n) {
      for (std::int64_t board = 0; board < 4; ++board) {
        if (n > 8 && lost(n, board)) continue;
        const auto bytes = datagram(n, board, first);
        sender.send_datagram(bytes);
        ++sent;
      }
    }
    sender.send_datagram(datagram(n_packets - 1, 0, first));
    sender.send_datagram(std::vector<std::byte>(100));
    sent += 2;
    for (int i = 0; i < 60'000 && source.counters().received < sent; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    source.stop();
    std::int64_t begin = -1, wrong = 0, absent_wrong = 0, n_ticks = 0;
    while (!source.ended()) {
      Chunk* chunk = source.next(std::chrono::milliseconds(50));
      if (chunk == nullptr) continue;
      if (begin < 0) begin = chunk->first_tick;
      for (std::int64_t t = 0; t < chunk->n_ticks; ++t) {
        const std::int64_t tick = chunk->first_tick + t - begin;
        for (std::int64_t input = 0; input < 24; ++input) {
          const bool marked = std::ranges::any_of(chunk->absent, [&](const AbsentSpan& a) {
            return a.input == input && a.begin <= chunk->first_tick + t &&
                   chunk->first_tick + t < a.end;
          });
          const std::int64_t n = tick / 32;
          absent_wrong += marked != (n > 8 && lost(n, input / 6));
          const auto want = static_cast<std::int8_t>(value(tick, input));
          const double got = decode_sample(layout, chunk->payload.data(), input, t).real();
          wrong += got != (marked ? 0 : want);
        }
      }
      n_ticks += chunk->n_ticks;
      source.release(chunk);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(absent_wrong, 0);
    EXPECT_EQ(n_ticks, n_packets * 32);
    const IngestCounters counters = source.counters();
    EXPECT_EQ(counters.balance(), 0);
    EXPECT_EQ(counters.received, sent);
    return counters;
  }
};

TEST(DescribedSource, LossesDoublesAndStrangersAreCounted) {
  DescribedLoop loop;
  const IngestCounters c = loop.run(1000);
  EXPECT_EQ(c.rejected.at("too_short"), 1u);
  EXPECT_EQ(c.rejected.at("duplicate"), 1u);
}

TEST(DescribedSource, CountersOfFewBitsTurnOver) {
  // Of packets: the assembler extends them.
  DescribedLoop loop;
  loop.packet.header[0].bytes = 2;
  loop.packet.header[0].n_bits = 16;
  loop.packet.ticks_per_count = 32;
  loop.run((1 << 16) - 20);
  // Of 3 counts to a tick: not a whole number of packets to a turn.
  DescribedLoop odd;
  odd.packet.header[0].bytes = 2;
  odd.packet.header[0].n_bits = 16;
  odd.packet.counts_per_tick = 3;
  odd.run((1 << 16) / 96 - 30);
}

TEST(DescribedSource, SaysWhatDoesNotFit) {
  DescribedLoop loop;
  loop.config.packet = loop.packet;
  loop.config.n_inputs = 24;
  // Each endpoint that is a stream has a buffer of what is read at once and a packet.
  loop.config.endpoints = {"udp://127.0.0.1:0", "udp://127.0.0.1:0"};
  const std::int64_t chunks = described_source_chunk_bytes(loop.config);
  loop.config.endpoints = {"tcp://127.0.0.1:0", "tcp://127.0.0.1:0"};
  EXPECT_EQ(described_source_chunk_bytes(loop.config) - chunks, 2 * ((1 << 18) + 208));
  loop.config.n_inputs = 25;
  EXPECT_THROW(DescribedSampleSource{loop.config}, ConfigError);
  loop.config.n_inputs = 24;
  loop.config.packet.header.pop_back();
  try {
    described_source_chunk_bytes(loop.config);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("a header field must tell which"), std::string::npos);
  }
}

}  // namespace
}  // namespace ryle
