// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "ryle/ingest/fengine_receiver.hpp"
#include "ryle/ingest/mwa32t_receiver.hpp"
#include "tests/ingest/fengine_fixture.hpp"
#include "tests/ingest/hostile_fixture.hpp"
#include "tests/ingest/source_fixture.hpp"

// A socket that never runs empty and holds nothing of ours must not keep the others from being
// read. The receivers are stepped by hand, so that the flood is there in every round, however fast
// they read.

namespace ryle {
namespace {

using test::OpenReceiver;
using test::Sender;

std::uint64_t used(ReceiverThread& receiver) {
  (receiver.*&OpenReceiver::publish)();
  return receiver.counters().used;
}

/// Steps until `n` were used, with more than a round reads waiting on the flooded socket each time.
void serve_under_flood(ReceiverThread& receiver, Sender& flood, std::uint64_t n) {
  const std::vector<std::byte> junk(11);
  for (int round = 0; round < 200 && used(receiver) < n; ++round) {
    for (int i = 0; i < 100; ++i) flood.send_datagram(junk);
    (receiver.*&OpenReceiver::serve)(0);
  }
}

TEST(Flood, OfOneSocketDoesNotStarveTheBoardsOfAnother) {
  auto config = test::small_chips();
  config.n_boards = 2;
  config.endpoints = {"udp://127.0.0.1:0", "udp://127.0.0.1:0"};
  config.udp_gro = false;
  FengineReceiver receiver(config);
  Sender boards(receiver.endpoints()[0]), flood(receiver.endpoints()[1]);
  for (std::int64_t t = 0; t < 512; ++t) {
    for (int b = 0; b < 2; ++b) boards.send_datagram(test::chips_datagram(b, t, 1600, 5));
    if (t % 16 == 15) {
      const auto sent = static_cast<std::uint64_t>(2 * (t + 1));
      serve_under_flood(receiver, flood, sent);
      ASSERT_EQ(used(receiver), sent);
    }
  }
  EXPECT_GT(receiver.counters().rejected.at("too_short"), 1000u);
}

TEST(Flood, OfOneSocketDoesNotStarveTheReceiverOfAnother) {
  auto config = test::mixed_config();
  config.endpoints = {"udp://127.0.0.1:0", "udp://127.0.0.1:0"};
  config.udp_gro = false;
  config.patience_ns = 0;  // one receiver is enough to begin
  Mwa32tReceiver receiver(config);
  Sender node(receiver.endpoints()[0]), flood(receiver.endpoints()[1]);
  for (std::uint64_t k = 0; k < 60; ++k) {  // 15360 ticks: the window is 16384
    node.send_datagram(test::pattern_datagram(0, static_cast<Tick>(256 * k), 256));
    if (k < 16) continue;  // the votes must be complete
    serve_under_flood(receiver, flood, k + 1);
    ASSERT_EQ(used(receiver), k + 1);
  }
}

// Two receivers share a socket and one of them is dead: how far that socket has been read is told
// by the one that lives, however much waits in it.
TEST(Flood, OfASocketWithADeadStreamDoesNotHoldBackTheOthers) {
  auto config = test::mixed_config();
  const std::string shared = test::own_endpoint("udp");
  config.endpoints = {shared, shared, "udp://127.0.0.1:0"};
  config.geometry.n_instants = 16;
  config.chunk_ticks = 256;
  config.udp_gro = false;
  config.patience_ns = 0;  // one receiver is enough to begin
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  Mwa32tReceiver receiver(config);
  Sender first(receiver.endpoints()[0]), third(receiver.endpoints()[2]);
  constexpr std::uint64_t kPackets = 200;  // three windows
  // Neither socket runs empty before the end: in every round more waits than a round reads.
  std::uint64_t sent = 0;
  for (int round = 0; round < 400 && used(receiver) < 2 * kPackets; ++round) {
    for (; sent < std::min(used(receiver) / 2 + 60, kPackets); ++sent) {
      first.send_datagram(test::pattern_datagram(0, static_cast<Tick>(16 * sent), 16));
      third.send_datagram(test::pattern_datagram(2, static_cast<Tick>(16 * sent), 16));
    }
    (receiver.*&OpenReceiver::serve)(0);
  }
  EXPECT_EQ(used(receiver), 2 * kPackets);
  EXPECT_EQ(receiver.counters().used, 2 * kPackets)
      << ::testing::PrintToString(receiver.counters().rejected);
}

}  // namespace
}  // namespace ryle
