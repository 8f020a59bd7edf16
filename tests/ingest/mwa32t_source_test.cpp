// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/mwa32t_source.hpp"

#include <gtest/gtest.h>

#include "tests/ingest/source_fixture.hpp"

namespace ryle {
namespace {

using test::mixed_config;
using test::pattern_datagram;
using test::pattern_groups;
using test::RunningSource;
using test::Sender;

// Sends ticks [begin, end) of all receivers in blocks of 256, as the array would: the same instant
// to everybody.
void send_all(std::vector<Sender>& senders, const Mwa32tSourceConfig& config, Tick begin,
              Tick end) {
  for (Tick tick = begin; tick < end; tick += 256) {
    for (std::uint32_t r = 0; r < senders.size(); ++r) {
      if (config.endpoints[r].starts_with("tcp")) {
        senders[r].send(pattern_groups(config.geometry.marker, r, tick, 256));
      } else {
        senders[r].send_datagram(pattern_datagram(r, tick, 256));
      }
    }
    // Slow enough for any machine: the tests look at content, not at speed.
    if (tick % 2048 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

std::vector<Sender> connect_all(const RunningSource& running, int n) {
  std::vector<Sender> senders;
  for (int r = 0; r < n; ++r) senders.emplace_back(running.endpoint(r));
  return senders;
}

void expect_whole(RunningSource& running, Tick begin, Tick end) {
  const auto counters = running.source().counters();
  EXPECT_EQ(counters.balance(), 0);
  EXPECT_EQ(counters.used, counters.received) << ::testing::PrintToString(counters.rejected);
  EXPECT_EQ(counters.lost_samples, 0u);
  EXPECT_EQ(counters.kernel_drops, 0u);
  Tick next = begin;
  for (const auto& chunk : running.seen()) {
    EXPECT_EQ(chunk.first_tick, next);
    EXPECT_EQ(chunk.wrong, 0);
    EXPECT_TRUE(chunk.absent.empty());
    next = chunk.first_tick + chunk.n_ticks;
  }
  EXPECT_EQ(next, end);
}

TEST(Mwa32tSource, MixedTransportsArriveWhole) {
  const auto config = mixed_config();
  RunningSource running(config);
  auto senders = connect_all(running, 4);
  const Tick begin = 1'000'000, end = begin + 80 * 1024;  // more than a turn of the 16-bit counter
  send_all(senders, config, begin, end);
  running.stop();
  expect_whole(running, begin, end);
  EXPECT_EQ(running.source().counters().segments, 1u);
}

TEST(Mwa32tSource, TcpOnlyBeginsAtTheFirstCommonGroup) {
  auto config = mixed_config();
  config.endpoints = {"tcp://127.0.0.1:0", "tcp://127.0.0.1:0"};
  RunningSource running(config, 65'530);
  auto senders = connect_all(running, 2);
  // Receiver 0 begins 30 groups early; the first common instant is 65530, which becomes tick 0.
  senders[0].send(pattern_groups(config.geometry.marker, 0, 65'500, 30));
  for (Tick tick = 65'530; tick < 65'530 + 20 * 256; tick += 256) {
    for (std::uint32_t r = 0; r < 2; ++r) {
      senders[r].send(pattern_groups(config.geometry.marker, r, tick, 256));
    }
  }
  running.stop();
  const auto counters = running.source().counters();
  EXPECT_EQ(counters.balance(), 0);
  EXPECT_EQ(counters.rejected.at("prelock"), 30u);
  EXPECT_EQ(counters.used, 2u * 20 * 256);
  EXPECT_EQ(counters.lost_samples, 0u);
  ASSERT_FALSE(running.seen().empty());
  EXPECT_EQ(running.seen().front().first_tick, 0);
  for (const auto& chunk : running.seen()) EXPECT_EQ(chunk.wrong, 0);
}

}  // namespace
}  // namespace ryle
