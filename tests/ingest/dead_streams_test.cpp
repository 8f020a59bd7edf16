// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/ingest/assembler_fixture.hpp"
#include "tests/ingest/fengine_fixture.hpp"
#include "tests/ingest/source_fixture.hpp"

// Some of n boards die and return: those that live lose nothing, and what is missing is exactly
// what was not sent. Time goes on as it would: 40 us a slot, so that a window (5 ms) is far shorter
// than the 100 ms after which a silent stream is given up.

namespace ryle {
namespace {

using test::small_config;
using test::Workbench;

constexpr MonotonicNs kSlot_ns = 40'000;

struct Outage {
  std::uint64_t dead;  ///< bit set of streams
  std::int64_t begin, end;
};

/// Streams [0, n) deliver slots [first, last) one by one, but in outages.
class Array {
 public:
  explicit Array(int n_streams) : n_streams_(n_streams), bench_(config(n_streams), 16) {
    bench_.assembler().lock(0, bench_.now);
  }
  void send(std::int64_t first, std::int64_t last, const std::vector<Outage>& outages) {
    for (std::int64_t slot = first; slot < last; ++slot) {
      for (int stream = 0; stream < n_streams_; ++stream) {
        const bool dead = std::ranges::any_of(outages, [&](const Outage& o) {
          return slot >= o.begin && slot < o.end && (o.dead >> stream & 1) != 0;
        });
        if (dead) continue;
        bench_.offer(stream, slot);
        arrived_[{stream, slot}] = Workbench::value(stream, slot);
      }
      bench_.now += kSlot_ns;
      if (slot % 25 == 0) bench_.poll();
    }
  }
  /// Nothing that was sent is missing, and all the rest is in the mask.
  void expect_exact(std::int64_t last) {
    bench_.finish();
    EXPECT_EQ(bench_.count(Reason::used), arrived_.size());
    EXPECT_EQ(bench_.assembler().totals().segments, 1u);
    std::int64_t next = 0;
    for (const auto& chunk : bench_.seen) {
      EXPECT_EQ(chunk.first_tick, next);
      next = chunk.first_tick + chunk.n_ticks;
      bench_.expect_chunk(chunk, arrived_);
    }
    EXPECT_EQ(next, last);
    bench_.expect_balanced();
  }
  Workbench& bench() { return bench_; }

 private:
  static AssemblerConfig config(int n_streams) { return small_config(n_streams, 32, 4); }
  int n_streams_;
  Workbench bench_;
  std::map<std::pair<int, std::int64_t>, std::uint64_t> arrived_;
};

// Every proper subset of 2, 3 and 4 boards, dying at every phase of the grid of chunks; back within
// the 100 ms, and after them.
TEST(DeadStreams, CostTheLivingNothing) {
  for (int n = 2; n <= 4; ++n) {
    for (std::uint64_t dead = 1; dead + 1 < std::uint64_t{1} << n; ++dead) {
      for (const std::int64_t phase : {0, 31}) {
        Array array(n);
        const std::int64_t last = 6500;
        array.send(
            0, last,
            {{dead, 320 + phase, 1000}, {dead, 2016 + phase, 2100}, {dead, 2500 + phase, 5500}});
        array.expect_exact(last);
        if (HasFailure()) {
          ADD_FAILURE() << n << " boards, dead " << dead << ", phase " << phase;
          return;
        }
      }
    }
  }
}

// One after the other until one is left, then all come back.
TEST(DeadStreams, OneAfterTheOtherCostTheLivingNothing) {
  Array array(4);
  array.send(0, 6000, {{1, 500, 5000}, {2, 700, 5000}, {8, 2000, 5500}});
  array.expect_exact(6000);
}

// A board that lies a window behind two others does not hold them back; one of two could be either.
TEST(DeadStreams, TheMajorityGoesOn) {
  Workbench bench(small_config(3, 32, 4), 16);
  bench.assembler().lock(0, bench.now);
  for (std::int64_t slot = 0; slot < 4000; ++slot) {
    for (int stream = 0; stream < 2; ++stream) {
      ASSERT_EQ(bench.offer(stream, slot), Reason::used) << slot;
    }
    if (slot >= 140) bench.offer(2, slot - 140);
    bench.now += kSlot_ns;
    if (slot % 25 == 0) bench.poll();
  }
}

// What one stream sends cannot move the window while others deliver.
TEST(DeadStreams, OneStreamAheadMovesNothingWhileOthersDeliver) {
  Workbench bench(small_config(2, 32, 4), 16);
  bench.assembler().lock(0, bench.now);
  for (std::int64_t slot = 0; slot < 3000; ++slot) {
    bench.offer(0, slot + 100);
    ASSERT_EQ(bench.offer(1, slot), Reason::used) << slot;
    bench.now += kSlot_ns;
    if (slot % 25 == 0) bench.poll();
  }
  EXPECT_EQ(bench.count(Reason::late), 0u);
}

// The last one alive pauses while its counter goes on: it needs no quorum with the dead to go on.
TEST(DeadStreams, TheLastOneAliveMayJump) {
  for (int n = 2; n <= 4; ++n) {
    Workbench bench(small_config(n, 32, 4), 16);
    bench.assembler().lock(0, bench.now);
    const auto send = [&](std::int64_t first, std::int64_t last, int n_alive) {
      for (std::int64_t slot = first; slot < last; ++slot) {
        for (int stream = 0; stream < n_alive; ++stream) bench.offer(stream, slot);
        bench.now += kSlot_ns;
        if (slot % 25 == 0) bench.poll();
      }
    };
    send(0, 1000, n);
    send(1000, 30'000, 1);  // 1.16 s
    for (int i = 0; i < 70; ++i) {
      bench.now += kMillisecond_ns;
      bench.poll();
    }
    const auto used = bench.count(Reason::used);
    send(31'750, 33'000, 1);
    EXPECT_GE(bench.count(Reason::used), used + 1250 - 16) << n;
    EXPECT_EQ(bench.assembler().totals().segments, 2u);
    bench.finish();
    bench.expect_balanced();
  }
}

// On real sockets, CHIPS: however long close_after is, the boards that live lose nothing.
TEST(DeadStreams, ChipsBoardsOnSockets) {
  for (int n = 2; n <= 3; ++n) {
    auto config = test::small_chips();
    config.n_boards = n;
    test::RunningFengine running(config);
    test::Sender sender(running.endpoint());
    std::uint64_t sent = 0;
    for (std::int64_t t = 0; t < 2000; ++t) {
      for (int b = 0; b < n; ++b) {
        if (b > 0 && t >= 200 && t < 1500) continue;
        sender.send_datagram(test::chips_datagram(b, t, 1600, 5));
        ++sent;
      }
      if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    ASSERT_TRUE(running.wait_all(sent));
    running.stop();
    const auto c = running.source().counters();
    EXPECT_EQ(c.used, sent) << ::testing::PrintToString(c.rejected);
    EXPECT_EQ(running.absent(0), 0);
    for (int b = 1; b < n; ++b) EXPECT_EQ(running.absent(b), 1300);
    EXPECT_EQ(running.wrong(), 0);
  }
}

// MWA-32T: one of two UDP receivers, shorter than close_after.
TEST(DeadStreams, Mwa32tReceiversOnSockets) {
  auto config = test::mixed_config();
  config.endpoints = {"udp://127.0.0.1:0", "udp://127.0.0.1:0"};
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  test::RunningSource running(config);
  test::Sender first(running.endpoint(0)), second(running.endpoint(1));
  std::uint64_t sent = 0;
  const auto received = [&] { return running.source().counters().received; };
  for (Tick tick = 0; tick < 400 * 256; tick += 256) {
    first.send_datagram(test::pattern_datagram(0, tick, 256));
    const bool dead = tick >= 60 * 256 && tick < 300 * 256;
    if (!dead) second.send_datagram(test::pattern_datagram(1, tick, 256));
    sent += dead ? 1 : 2;
    // A sender far ahead of a receiver that gets no processor would be another test. What the gate
    // holds back does not come, so the wait is short.
    if (tick % 2048 != 0) continue;
    for (int ms = 0; ms < 10 && received() < sent; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(test::RunningSource::wait_until([&] { return received() >= sent; }));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.used, sent) << ::testing::PrintToString(c.rejected);
  EXPECT_EQ(c.lost_samples, 16u * 240 * 256);
  for (const auto& chunk : running.seen()) EXPECT_EQ(chunk.wrong, 0);
}

}  // namespace
}  // namespace ryle
