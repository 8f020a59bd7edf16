// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "ryle/ingest/mwa32t_receiver.hpp"
#include "tests/ingest/hostile_fixture.hpp"
#include "tests/ingest/source_fixture.hpp"

// Who holds the connection of a capture node. The receiver is stepped by hand, the tests say when
// time passes.

namespace ryle {
namespace {

using test::OpenReceiver;
using test::pattern_groups;
using test::Sender;

Mwa32tSourceConfig tcp_config(int n_links) {
  auto config = test::mixed_config();
  config.endpoints.assign(static_cast<std::size_t>(n_links), "tcp://127.0.0.1:0");
  config.replace_after_ns = 20 * kMillisecond_ns;
  config.patience_ns = 20 * kMillisecond_ns;
  return config;
}

/// A receiver, and a consumer that takes every chunk at once.
struct SteppedReceiver {
  explicit SteppedReceiver(const Mwa32tSourceConfig& config) : receiver(config) {}

  void step() {
    (receiver.*&OpenReceiver::serve)(1);
    (receiver.*&OpenReceiver::align)();
    while (Chunk* chunk = receiver.pool().next(std::chrono::milliseconds(0)))
      receiver.pool().release(chunk);
    (receiver.*&OpenReceiver::publish)();
  }
  template <class Condition>
  bool step_until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      step();
    }
    return true;
  }
  IngestCounters counters() const { return receiver.counters(); }

  Mwa32tReceiver receiver;
};

/// A sender that tries again when it is refused, as capture nodes do.
struct PersistentNode {
  PersistentNode(const std::string& endpoint_text, std::uint32_t receiver_number)
      : endpoint(endpoint_text), number(receiver_number), sender(endpoint_text) {}
  void send(Tick tick, std::int64_t n) {
    if (!sender.send(pattern_groups({}, number, tick, n))) sender = Sender(endpoint);
  }
  std::string endpoint;
  std::uint32_t number;
  Sender sender;
};

TEST(TcpLinks, AByteNowAndThenHoldsNoPlace) {
  SteppedReceiver stepped(tcp_config(4));
  const auto endpoints = stepped.receiver.endpoints();
  Sender stranger(endpoints[0]);  // first of all
  const auto trickle = [&] { stranger.send(std::vector<std::byte>{std::byte{7}}); };
  trickle();
  stepped.step();
  std::vector<PersistentNode> nodes;
  for (std::uint32_t r = 0; r < 4; ++r) nodes.emplace_back(endpoints[r], r);
  // All four nodes send, the first to a connection that is refused at first.
  Tick tick = 0;
  EXPECT_TRUE(stepped.step_until([&] {
    trickle();
    for (auto& node : nodes) node.send(tick, 256);
    tick += 256;
    return tick > 20 * 4096 && stepped.receiver.state() == "OK";
  })) << stepped.receiver.state();
  const auto c = stepped.counters();
  EXPECT_GT(c.rejected_connections, 0u);
  EXPECT_EQ(c.rejected.at("overrun"), 0u);
  EXPECT_EQ(c.balance(), 0);
}

// A node that lost power never said good-bye.
TEST(TcpLinks, ASilentPeerIsReplaced) {
  SteppedReceiver stepped(tcp_config(1));
  const auto endpoint = stepped.receiver.endpoints()[0];
  Sender dead(endpoint);
  dead.send(pattern_groups({}, 0, 0, 1000));
  ASSERT_TRUE(stepped.step_until([&] { return stepped.counters().used == 1000; }));
  PersistentNode back(endpoint, 0);
  Tick tick = 1000;
  EXPECT_TRUE(stepped.step_until([&] {
    back.send(tick, 100);
    tick += 100;
    return stepped.counters().used >= 2000;
  }));
  EXPECT_EQ(stepped.counters().balance(), 0);
}

// Nodes that wait for one that never comes lose nothing by it: what their senders kept meanwhile is
// far more than the ring holds, and the engines take their time.
TEST(TcpLinks, AMissingLinkCostsTheOthersNothing) {
  auto config = tcp_config(3);
  config.chunk_ticks = 256;
  config.n_chunks = 5;
  test::RunningSource running(config);
  constexpr std::int64_t kGroups = 40 * 256;
  std::vector<Sender> nodes;
  for (int r = 1; r < 3; ++r) nodes.emplace_back(running.endpoint(r));
  // In turns: one that sent all before the other began would be taken for the only one there is.
  for (Tick tick = 0; tick < kGroups; tick += 64) {
    for (std::uint32_t r = 1; r < 3; ++r) nodes[r - 1].send(pattern_groups({}, r, tick, 64));
  }
  EXPECT_TRUE(test::RunningSource::wait_until(
      [&] { return running.source().counters().used >= 2 * kGroups; }));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.rejected.at("overrun"), 0u);
  EXPECT_EQ(c.used, 2u * kGroups);
  EXPECT_EQ(c.lost_samples, 0u) << "what was never sent is not lost";
  EXPECT_EQ(c.undelivered_samples, 16u * kGroups);
  for (const auto& chunk : running.seen()) EXPECT_EQ(chunk.wrong, 0);
}

// The end of this connection at the receiver: that of our sockets whose peer `sender` is.
int receiving_end(const Sender& sender) {
  sockaddr_storage ours{}, other{};
  socklen_t size = sizeof ours;
  if (getsockname(sender.descriptor(), reinterpret_cast<sockaddr*>(&ours), &size) != 0) return -1;
  for (int fd = 3; fd < 256; ++fd) {
    size = sizeof other;
    if (fd == sender.descriptor() ||
        getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) != 0)
      continue;
    if (std::memcmp(&ours, &other, sizeof(sockaddr_in)) == 0) return fd;
  }
  return -1;
}

// Without it a node that lost power is never missed by the kernel.
TEST(TcpLinks, ConnectionsAreKeptAlive) {
  SteppedReceiver stepped(tcp_config(1));
  Sender node(stepped.receiver.endpoints()[0]);
  node.send(pattern_groups({}, 0, 0, 100));
  ASSERT_TRUE(stepped.step_until([&] { return stepped.counters().used == 100; }));
  const int fd = receiving_end(node);
  ASSERT_GE(fd, 0);
  const auto option = [fd](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(fd, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
}

// The list of senders holds for connections too.
TEST(TcpLinks, AStrangerIsNotLetIn) {
  auto config = tcp_config(1);
  config.allowed_senders = {"10.9.8.7"};
  SteppedReceiver stepped(config);
  Sender stranger(stepped.receiver.endpoints()[0]);
  stranger.send(pattern_groups({}, 0, 0, 100));
  ASSERT_TRUE(stepped.step_until([&] { return stepped.counters().rejected_connections == 1; }));
  EXPECT_EQ(stepped.counters().received, 0u);
  EXPECT_NE(rejected_text(stepped.counters()).find("1 connections refused (the last from 127."),
            std::string::npos)
      << rejected_text(stepped.counters());
}

}  // namespace
}  // namespace ryle
