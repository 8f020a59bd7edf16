// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/assembler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "ryle/core/error.hpp"
#include "tests/ingest/assembler_fixture.hpp"

namespace ryle {
namespace {

using test::small_config;
using test::Workbench;
using Arrived = std::map<std::pair<int, std::int64_t>, std::uint64_t>;

// IN-01: every pattern of loss of 2 streams x 8 slots. A whole chunk follows each, so that the head
// closes by evidence.
TEST(Assembler, EveryPatternOfLossGivesItsExactMask) {
  Workbench bench(small_config(2, 8, 2));
  bench.assembler().lock(0, bench.now);
  for (std::int64_t pattern = 0; pattern < 65'536; ++pattern) {
    const std::int64_t first = pattern * 16;
    Arrived arrived;
    for (int bit = 0; bit < 16; ++bit) {
      if (((pattern >> bit) & 1) == 0) continue;
      const int stream = bit % 2;
      bench.offer(stream, first + bit / 2);
      arrived[{stream, first + bit / 2}] = Workbench::value(stream, first + bit / 2);
    }
    for (int k = 0; k < 16; ++k) bench.offer(k % 2, first + 8 + k / 2);
    ASSERT_EQ(bench.seen.size(), 2u);
    ASSERT_EQ(bench.seen[0].first_tick, first);
    bench.expect_chunk(bench.seen[0], arrived);
    ASSERT_TRUE(bench.seen[1].absent.empty());
    if (HasFailure()) return;
    bench.seen.clear();
  }
  EXPECT_EQ(bench.assembler().totals().missing_slots, 65'536u * 8);  // half of all bits
  bench.expect_balanced();
}

// IN-01: random loss from 0 to 90 %, 32 streams x 16 slots.
TEST(Assembler, RandomLossGivesItsExactMask) {
  Workbench bench(small_config(32, 16, 2));
  bench.assembler().lock(0, bench.now);
  Arrived arrived;
  for (std::int64_t chunk = 0; chunk < 2000; ++chunk) {
    const bool whole = chunk % 2 == 1;
    if (!whole) arrived.clear();
    const double loss = 0.9 * uniform(combine(7, static_cast<std::uint64_t>(chunk)));
    for (int k = 0; k < 512; ++k) {
      const int stream = k % 32;
      const std::int64_t slot = chunk * 16 + k / 32;
      if (!whole && uniform(combine(8, static_cast<std::uint64_t>(chunk),
                                    static_cast<std::uint64_t>(k))) < loss) {
        continue;
      }
      bench.offer(stream, slot);
      if (!whole) arrived[{stream, slot}] = Workbench::value(stream, slot);
    }
    if (!whole) continue;
    ASSERT_EQ(bench.seen.size(), 2u);
    bench.expect_chunk(bench.seen[0], arrived);
    if (HasFailure()) return;
    bench.seen.clear();
  }
  bench.expect_balanced();
}

// IN-02: every order of 8 packets inside the window gives the same chunks.
TEST(Assembler, EveryOrderInsideTheWindowIsWhole) {
  std::array<int, 8> order;
  std::iota(order.begin(), order.end(), 0);
  Workbench bench(small_config(1, 4, 4));
  std::int64_t first = 0;
  bench.assembler().lock(0, bench.now);
  do {
    // Two chunks of four; the window is wide enough that no order closes the head early.
    for (const int k : order) ASSERT_EQ(bench.offer(0, first + k), Reason::used);
    ASSERT_EQ(bench.seen.size(), 2u);
    for (const auto& chunk : bench.seen) {
      ASSERT_TRUE(chunk.absent.empty());
      for (std::int64_t k = 0; k < 4; ++k) {
        ASSERT_EQ(chunk.values[static_cast<std::size_t>(k)],
                  Workbench::value(0, chunk.first_tick + k));
      }
    }
    bench.seen.clear();
    first += 8;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(bench.count(Reason::used), 8u * 40'320);
  bench.expect_balanced();
}

TEST(Assembler, BeyondTheWindowIsLateAndTheFirstOfASlotStays) {
  Workbench bench(small_config(1, 4, 3));
  bench.assembler().lock(100, bench.now);
  EXPECT_EQ(bench.offer(0, 101), Reason::used);
  EXPECT_EQ(bench.offer(0, 101), Reason::duplicate);
  EXPECT_EQ(bench.offer(0, 101, 1, 1), Reason::conflict);
  EXPECT_EQ(bench.offer(0, 111), Reason::used);  // evidence in the last chunk: the head closes
  ASSERT_EQ(bench.seen.size(), 1u);
  bench.expect_chunk(bench.seen[0], {{{0, 101}, Workbench::value(0, 101)}});
  EXPECT_EQ(bench.offer(0, 100), Reason::late);
  EXPECT_EQ(bench.offer(0, 99), Reason::late);
  EXPECT_EQ(bench.offer(0, 116), Reason::future);
  EXPECT_EQ(bench.offer(0, 115), Reason::used);
  bench.finish();
  bench.expect_balanced();
}

// A datagram across the border of two chunks is one datagram: used when any slot was placed.
TEST(Assembler, DatagramsMayCrossTheBordersOfChunks) {
  Workbench bench(small_config(1, 10, 2));
  bench.assembler().lock(0, bench.now);
  for (std::int64_t slot = 0; slot < 210; slot += 3)
    EXPECT_EQ(bench.offer(0, slot, 3), Reason::used);
  EXPECT_EQ(bench.offer(0, 209, 3), Reason::used);  // its first slot is late, the others are not
  bench.finish();
  std::int64_t next = 0;
  for (const auto& chunk : bench.seen) {
    EXPECT_EQ(chunk.first_tick, next);
    EXPECT_TRUE(chunk.absent.empty());
    next += chunk.n_ticks;
  }
  EXPECT_EQ(next, 212);
  EXPECT_EQ(bench.count(Reason::used), 71u);
  bench.expect_balanced();
}

// IN-03: a counter of any width, wrapping with losses around the wrap, gives what an unwrapped one
// gives.
TEST(Assembler, WrappedCountersEqualUnwrappedOnes) {
  for (const int bits : {8, 16, 24, 32, 38, 48, 64}) {
    Workbench wrapped(small_config(3, 8, 4)), plain(small_config(3, 8, 4));
    const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    // 64 bits: the wrap is that of the signed number, which is what positions are kept in, so the
    // run ends before it.
    const std::int64_t turn = bits == 64 ? (std::int64_t{1} << 61) : std::int64_t{1} << bits;
    const std::int64_t begin = turn - 100;
    wrapped.assembler().lock(begin, wrapped.now);
    plain.assembler().lock(begin, plain.now);
    for (std::int64_t slot = begin; slot < turn + 400; ++slot) {
      for (int stream = 0; stream < 3; ++stream) {
        const auto key = combine(static_cast<std::uint64_t>(bits), static_cast<std::uint64_t>(slot),
                                 static_cast<std::uint64_t>(stream));
        if (key % 4 == 0 || (slot >= turn - 2 && slot < turn + 2 && stream == 1)) continue;
        const auto content = Workbench::values(stream, slot, 1);
        wrapped.offer_raw(stream, static_cast<std::uint64_t>(slot) & mask, bits, content);
        plain.offer_raw(stream, static_cast<std::uint64_t>(slot), 64, content);
      }
    }
    wrapped.finish();
    plain.finish();
    ASSERT_EQ(wrapped.seen.size(), plain.seen.size()) << bits;
    for (std::size_t i = 0; i < plain.seen.size(); ++i) {
      ASSERT_EQ(wrapped.seen[i].first_tick, plain.seen[i].first_tick) << bits;
      ASSERT_EQ(wrapped.seen[i].values, plain.seen[i].values) << bits;
      ASSERT_EQ(wrapped.seen[i].absent, plain.seen[i].absent) << bits;
    }
    EXPECT_EQ(wrapped.count(Reason::used), plain.count(Reason::used));
    EXPECT_GT(plain.seen.size(), 50u);
  }
}

// IN-04: stamps from anywhere, one packet in ten, move nothing and cost no good packet.
TEST(Assembler, ForgedTimesNeverMoveTheWindow) {
  Workbench bench(small_config(4, 32, 4));
  bench.assembler().lock(1'000'000, bench.now);
  const std::array<std::uint64_t, 6> forged{
      (std::uint64_t{1} << 40) + 1'000'000, 0,        ~std::uint64_t{0}, std::uint64_t{1} << 63,
      (std::uint64_t{1} << 63) - 1,         2'000'000};
  std::uint64_t n_good = 0, n_forged = 0;
  for (std::int64_t slot = 1'000'000; slot < 1'020'000; ++slot) {
    for (int stream = 0; stream < 4; ++stream) {
      ASSERT_EQ(bench.offer(stream, slot), Reason::used);
      if (++n_good % 9 == 0) {
        const auto raw = forged[n_forged++ % forged.size()];
        bench.offer_raw(static_cast<int>(n_forged % 4), raw, 64, {123});
      }
    }
    bench.now += 10'000;
  }
  bench.finish();
  EXPECT_EQ(bench.count(Reason::used), n_good);
  EXPECT_EQ(bench.count(Reason::late) + bench.count(Reason::future), n_forged);
  EXPECT_EQ(bench.assembler().totals().segments, 1u);
  for (const auto& chunk : bench.seen) ASSERT_TRUE(chunk.absent.empty());
  bench.expect_balanced();
}

// IN-05: the sender starts again at 0, then jumps far ahead: a new segment each, the old one closed
// as short.
TEST(Assembler, ARestartBeginsANewSegment) {
  Workbench bench(small_config(4, 32, 4));
  bench.assembler().lock(500'000, bench.now);
  const auto send = [&bench](std::int64_t from, std::int64_t to) {
    for (std::int64_t slot = from; slot < to; ++slot) {
      for (int stream = 0; stream < 4; ++stream) bench.offer(stream, slot);
      bench.now += 100'000;  // 10 kslots/s
    }
  };
  send(500'000, 500'100);
  bench.now += 60 * kMillisecond_ns;  // a restart takes a moment
  send(0, 1000);
  EXPECT_EQ(bench.assembler().totals().segments, 2u);
  send(12'800'000, 12'801'000);
  EXPECT_EQ(bench.assembler().totals().segments, 3u);
  bench.finish();
  // The old segment was delivered up to its last slot.
  std::map<std::int64_t, std::int64_t> end_of_segment, slots_of_segment;
  for (const auto& chunk : bench.seen) {
    end_of_segment[chunk.segment] = chunk.first_tick + chunk.n_ticks;
    slots_of_segment[chunk.segment] += chunk.n_ticks;
  }
  EXPECT_EQ(end_of_segment[0], 500'100);
  EXPECT_EQ(slots_of_segment[0], 100);
  EXPECT_EQ(end_of_segment[1], 1000);
  EXPECT_EQ(end_of_segment[2], 12'801'000);
  // The restart follows a silence: its quorum is 16 packets. The jump has to wait until the placed
  // ones are 50 ms old.
  EXPECT_LE(bench.count(Reason::late), 16u);
  EXPECT_LE(bench.count(Reason::future), 4u * 600);
  for (std::size_t i = 1; i < bench.seen.size(); ++i) {
    EXPECT_EQ(bench.seen[i].sequence, bench.seen[i - 1].sequence + 1);
  }
  bench.expect_balanced();
}

// All streams go on later, beyond the window: the slots between are missing, in the same segment,
// and no chunk is made of them.
TEST(Assembler, AGapBeyondTheWindowIsMissingSlots) {
  AssemblerConfig config = small_config(4, 32, 4);
  config.max_gap_slots = 100'000;
  Workbench bench(config);
  bench.assembler().lock(500'000, bench.now);
  const auto send = [&bench](std::int64_t from, std::int64_t to, int n_streams = 3) {
    for (std::int64_t slot = from; slot < to; ++slot) {
      for (int stream = 0; stream < n_streams; ++stream) bench.offer(stream, slot);
      bench.now += 100'000;
    }
  };
  send(500'000, 500'100);
  bench.now += 60 * kMillisecond_ns;
  send(540'000, 540'200);
  bench.finish();
  const auto& totals = bench.assembler().totals();
  EXPECT_EQ(totals.segments, 1u);
  EXPECT_EQ(totals.gaps, 1u);
  EXPECT_EQ(totals.jumps, 0u);
  // Every slot that was due is present or missing, the votes of the gap among the missing.
  const std::uint64_t due = 40'200;
  EXPECT_EQ(totals.present_slots, 3u * 300 - bench.count(Reason::future));
  EXPECT_EQ(totals.present_slots + totals.missing_slots, 3 * due);
  EXPECT_EQ(totals.undelivered_slots, due);  // the fourth stream never came
  EXPECT_LE(bench.count(Reason::future), 16u);
  std::int64_t delivered = 0;
  for (const auto& chunk : bench.seen) delivered += chunk.n_ticks;
  EXPECT_LE(delivered, 300);
  EXPECT_EQ(bench.seen.back().first_tick + bench.seen.back().n_ticks, 540'200);
  EXPECT_EQ(totals.dropped_chunks, 0u);
  bench.expect_balanced();

  // Further ahead, back, or between the packets of before: a segment.
  bench.now += 60 * kMillisecond_ns;
  send(640'301, 640'400);
  EXPECT_EQ(totals.segments, 2u);
  EXPECT_EQ(totals.jump_slots, 640'301 - 540'200);
  bench.assembler().move_to(600'000, bench.now);
  EXPECT_EQ(totals.segments, 3u);
  bench.assembler().set_keeps_grid([] { return false; });
  bench.assembler().move_to(600'200, bench.now);
  EXPECT_EQ(totals.segments, 4u);
  bench.assembler().set_keeps_grid([] { return true; });
  bench.assembler().move_to(600'400, bench.now);
  EXPECT_EQ(totals.segments, 4u);
  EXPECT_EQ(totals.jumps, 3u);
}

// Before the lock packets are held, not lost: the first chunk begins with the first packet.
TEST(Assembler, NothingIsLostBeforeTheLock) {
  Workbench bench(small_config(4, 32, 4));
  EXPECT_EQ(bench.assembler().condition(bench.now), "NO_DATA");
  for (std::int64_t slot = 777; slot < 777 + 96; ++slot) {
    for (int stream = 0; stream < 4; ++stream) bench.offer(stream, slot);
  }
  EXPECT_TRUE(bench.assembler().locked());
  EXPECT_EQ(bench.assembler().origin_slot(), 777);
  bench.finish();
  EXPECT_EQ(bench.count(Reason::used), 4u * 96);
  ASSERT_EQ(bench.seen.size(), 3u);
  for (const auto& chunk : bench.seen) EXPECT_TRUE(chunk.absent.empty());
  bench.expect_balanced();
}

TEST(Assembler, WithoutAQuorumEverythingHeldIsPrelock) {
  Workbench bench(small_config(4, 32, 4));
  for (std::int64_t slot = 0; slot < 1000; ++slot) bench.offer(0, slot);  // one stream of four
  EXPECT_FALSE(bench.assembler().locked());
  EXPECT_EQ(bench.assembler().condition(bench.now), "PRELOCK");
  bench.finish();
  EXPECT_EQ(bench.count(Reason::prelock), 1000u);
  bench.expect_balanced();
  // With patience the one stream is enough: better one receiver than none.
  Workbench patient(small_config(4, 32, 4));
  for (std::int64_t slot = 0; slot < 1000; ++slot) {
    patient.offer(0, slot);
    patient.now += 10 * kMillisecond_ns;
  }
  EXPECT_TRUE(patient.assembler().locked());
}

// IN-08: a stream belongs to the sender that delivers it, until that one falls silent.
TEST(Assembler, AStreamIsBoundToItsSender) {
  Workbench bench(small_config(1, 32, 4));
  bench.assembler().lock(0, bench.now);
  const auto from = [&](std::uint64_t sender, std::int64_t slot) {
    return bench.offer_raw(0, static_cast<std::uint64_t>(slot), 64, Workbench::values(0, slot, 1),
                           sender);
  };
  EXPECT_EQ(from(11, 0), Reason::used);
  EXPECT_EQ(from(22, 1), Reason::foreign_sender);
  EXPECT_EQ(from(11, 1), Reason::used);
  bench.now += 1001 * kMillisecond_ns;
  EXPECT_EQ(from(22, 2), Reason::used);  // the node came back on another port
  EXPECT_EQ(from(11, 3), Reason::foreign_sender);
  bench.finish();
  bench.expect_balanced();
}

// IN-09: the consumer stands still. Whole newest chunks are dropped, the gap is exact, the first
// chunk after it is whole.
TEST(Assembler, AStalledConsumerCostsWholeNewestChunks) {
  Workbench bench(small_config(2, 16, 3), 6);
  bench.assembler().lock(0, bench.now);
  const auto send = [&bench](std::int64_t from, std::int64_t to) {
    for (std::int64_t slot = from; slot < to; ++slot) {
      for (int stream = 0; stream < 2; ++stream) bench.offer(stream, slot);
    }
  };
  send(0, 32);
  bench.consuming = false;
  send(32, 32 + 16 * 20);  // six fit, fourteen do not
  EXPECT_EQ(bench.assembler().condition(bench.now), "overrun") << "the state says so";
  bench.consuming = true;
  bench.consume();
  send(32 + 16 * 20, 32 + 16 * 30);
  bench.finish();
  const auto& t = bench.assembler().totals();
  EXPECT_EQ(t.chunks, 32u);
  EXPECT_EQ(bench.seen.size() + t.dropped_chunks, 32u);
  EXPECT_GE(t.dropped_chunks, 14u);
  EXPECT_LE(t.dropped_chunks, 14u + 3);  // chunks begun while nothing was free stay dropped
  EXPECT_EQ(bench.count(Reason::overrun), t.dropped_chunks * 32);
  EXPECT_EQ(t.missing_slots, t.dropped_chunks * 32);
  for (const auto& chunk : bench.seen) {
    EXPECT_EQ(chunk.first_tick, chunk.sequence * 16);  // the gap in sequence and time is the same
    EXPECT_TRUE(chunk.absent.empty());
  }
  bench.expect_balanced();
}

// IN-10: one of four streams never comes; the others lose nothing and no chunk waits for ever.
TEST(Assembler, AStreamThatNeverComesIsAbsentAndNothingWaits) {
  Workbench bench(small_config(4, 64, 4));
  for (std::int64_t slot = 0; slot < 64 * 50; ++slot) {
    for (int stream = 0; stream < 3; ++stream) bench.offer(stream, slot);
    bench.now += 1'000'000;
    bench.poll();
  }
  EXPECT_GE(bench.seen.size(), 45u);
  EXPECT_EQ(bench.assembler().condition(bench.now), "missing_streams");
  bench.finish();
  for (const auto& chunk : bench.seen) {
    ASSERT_EQ(chunk.absent.size(), 2u);  // both inputs of stream 3, whole
    EXPECT_EQ(chunk.absent[0], (AbsentSpan{6, chunk.first_tick, chunk.first_tick + chunk.n_ticks}));
    EXPECT_EQ(chunk.absent[1].input, 7);
  }
  EXPECT_EQ(bench.count(Reason::used), 3u * 64 * 50);
  bench.expect_balanced();
}

// IN-10: three of four streams die; the last one goes on.
TEST(Assembler, OneLiveStreamIsEnoughToGoOn) {
  Workbench bench(small_config(4, 64, 4));
  bench.assembler().lock(0, bench.now);
  for (std::int64_t slot = 0; slot < 64 * 100; ++slot) {
    for (int stream = 0; stream < (slot < 640 ? 4 : 1); ++stream) bench.offer(stream, slot);
    bench.now += 1'000'000;  // the window is 256 ms long, longer than the 100 ms after which a
                             // stream counts as dead
    bench.poll();
  }
  bench.finish();
  EXPECT_EQ(bench.count(Reason::used), 4u * 640 + 64 * 100 - 640);
  EXPECT_EQ(bench.count(Reason::future) + bench.count(Reason::late), 0u);
  bench.expect_balanced();
}

// IN-10: data stop. What is there is delivered, and a sender that only paused loses nothing.
TEST(Assembler, APauseDeliversWhatIsThereAndLosesNothing) {
  Workbench bench(small_config(2, 64, 4));
  bench.assembler().lock(0, bench.now);
  const auto send = [&bench](std::int64_t from, std::int64_t to) {
    for (std::int64_t slot = from; slot < to; ++slot) {
      for (int stream = 0; stream < 2; ++stream) ASSERT_EQ(bench.offer(stream, slot), Reason::used);
    }
  };
  send(0, 100);
  EXPECT_EQ(bench.assembler().condition(bench.now), "OK");
  bench.now += 2000 * kMillisecond_ns;
  bench.poll();
  EXPECT_EQ(bench.assembler().condition(bench.now), "NO_DATA");
  ASSERT_EQ(bench.seen.size(), 2u);
  EXPECT_EQ(bench.seen[1].first_tick + bench.seen[1].n_ticks, 100);
  send(100, 200);
  EXPECT_EQ(bench.assembler().condition(bench.now), "OK");
  bench.finish();
  EXPECT_EQ(bench.assembler().totals().missing_slots, 0u);
  EXPECT_EQ(bench.seen.back().first_tick + bench.seen.back().n_ticks, 200);
  bench.expect_balanced();
}

// Rule (c): when evidence is in the next chunk but the data go no further, the head closes after a
// time.
TEST(Assembler, TheHeadClosesSomeTimeAfterEvidenceInTheNextChunk) {
  Workbench bench(small_config(2, 64, 4));
  bench.assembler().lock(0, bench.now);
  bench.offer(0, 5);
  bench.offer(0, 64);
  bench.offer(0, 65);
  bench.now += 300 * kMillisecond_ns;
  bench.poll();
  EXPECT_TRUE(bench.seen.empty());  // two slots are no evidence
  for (std::int64_t slot = 64; slot < 64 + 20; ++slot) {
    for (int stream = 0; stream < 2; ++stream) bench.offer(stream, slot);
  }
  bench.poll();
  EXPECT_TRUE(bench.seen.empty());
  bench.now += 101 * kMillisecond_ns;
  bench.poll();
  ASSERT_EQ(bench.seen.size(), 1u);
  EXPECT_EQ(bench.assembler().totals().closed_by_time, 1u);
  bench.expect_chunk(bench.seen[0], {{{0, 5}, Workbench::value(0, 5)}});
  bench.finish();
  bench.expect_balanced();
}

// A lone packet ahead closes nothing.
TEST(Assembler, ALonePacketClosesNothing) {
  Workbench bench(small_config(4, 64, 4));
  bench.assembler().lock(0, bench.now);
  bench.offer(0, 3 * 64 + 10);
  EXPECT_TRUE(bench.seen.empty());
  for (std::int64_t slot = 0; slot < 64; ++slot) {
    for (int stream = 0; stream < 4; ++stream) EXPECT_EQ(bench.offer(stream, slot), Reason::used);
  }
  EXPECT_EQ(bench.seen.size(), 1u);
  EXPECT_TRUE(bench.seen[0].absent.empty());
}

// Offline nothing is dropped for want of a chunk: the assembler waits, here until it is told to
// give up.
TEST(Assembler, OfflineWaitsForAFreeChunk) {
  auto config = small_config(1, 4, 2);
  config.wait_for_free_chunk = true;
  Workbench bench(config, 3);
  int asked = 0;
  bench.assembler().set_cancel([&] {
    if (++asked == 2) bench.consume();
    return asked > 4;
  });
  bench.assembler().lock(0, bench.now);
  bench.consuming = false;
  for (std::int64_t slot = 0; slot < 16; ++slot) bench.offer(0, slot);
  EXPECT_GE(asked, 2);
  EXPECT_EQ(bench.count(Reason::overrun), 0u);
  EXPECT_EQ(bench.count(Reason::used), 16u);
  bench.finish();
  bench.expect_balanced();
}

TEST(Assembler, SlotsOfAStreamTransportAreCountedOneByOne) {
  Workbench bench(small_config(1, 8, 2));
  bench.assembler().lock(100, bench.now);
  const auto run = [&](std::int64_t slot, std::int64_t n) {
    const auto content = Workbench::values(0, slot, n);
    bench.assembler().offer_run({0, slot, n, std::as_bytes(std::span(content)).data(), 8},
                                bench.now);
    bench.consume();
  };
  run(97, 6);   // three late, three placed
  run(101, 4);  // two duplicates, two placed
  EXPECT_EQ(bench.count(Reason::late), 3u);
  EXPECT_EQ(bench.count(Reason::used), 5u);
  EXPECT_EQ(bench.count(Reason::duplicate), 2u);
  run(105, 20);  // crosses three chunks
  bench.finish();
  EXPECT_EQ(bench.count(Reason::used), 25u);
  EXPECT_EQ(bench.assembler().totals().missing_slots, 0u);
  bench.expect_balanced();
}

TEST(Assembler, ImpossibleSizesAreRejected) {
  EXPECT_THROW(Workbench(small_config(1, 4, 1)), ConfigError);
  EXPECT_THROW(Workbench(small_config(1, 0, 2)), ConfigError);
}

}  // namespace
}  // namespace ryle
