// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/mwa32t_source.hpp"

#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
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

// Waits until the source has taken in n datagrams and groups, so that what follows comes after
// them.
void wait_all(RunningSource& running, std::uint64_t n) {
  ASSERT_TRUE(RunningSource::wait_until([&] { return running.source().counters().received >= n; }))
      << running.source().counters().received << " of " << n;
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
  wait_all(running, 2 * 80 * 1024 + 2 * 80 * 4);
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
  wait_all(running, 30 + 2 * 20 * 256);
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

// Absent samples of one receiver's first input, over all chunks.
std::int64_t absent_of(const RunningSource& running, std::int64_t receiver) {
  std::int64_t n = 0;
  for (const auto& chunk : running.seen()) {
    for (const auto& span : chunk.absent)
      n += span.input == 16 * receiver ? span.end - span.begin : 0;
  }
  return n;
}

// A capture node loses power in the middle of a group and returns: its time away is absent, nothing
// else is.
TEST(Mwa32tSource, ANodeThatDiesAndReturnsIsAbsentForItsTimeAway) {
  auto config = mixed_config();
  config.chunk_ticks = 2048;
  config.n_chunks = 64;
  RunningSource running(config);
  auto senders = connect_all(running, 4);
  send_all(senders, config, 0, 8192);
  auto part = pattern_groups(config.geometry.marker, 1, 8192, 3);
  part.resize(2 * 34 + 5);
  senders[1].send(part);
  wait_all(running, 2 * 8192 + 2 * 32 + 2);
  senders[1].reset();
  const auto send_others = [&](Tick begin, Tick end) {
    for (Tick tick = begin; tick < end; tick += 256) {
      senders[0].send(pattern_groups(config.geometry.marker, 0, tick, 256));
      for (std::uint32_t r = 2; r < 4; ++r)
        senders[r].send_datagram(pattern_datagram(r, tick, 256));
      if (tick % 2048 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  };
  // More than half a turn of the counter: only the others tell where the node joins again.
  send_others(8192, 49'152);
  wait_all(running, 8192 + 49'152 + 2 * 192 + 3);  // the part of a group is counted as well
  senders[1] = Sender(running.endpoint(1));
  send_all(senders, config, 49'152, 57'344);
  wait_all(running, 57'344 + 16'384 + 2 * 224 + 3);
  running.stop();
  const auto counters = running.source().counters();
  EXPECT_EQ(counters.balance(), 0);
  EXPECT_EQ(counters.rejected.at("too_short"), 1u);
  EXPECT_EQ(counters.used, counters.received - 1) << ::testing::PrintToString(counters.rejected);
  EXPECT_EQ(absent_of(running, 1), 40'960 - 2);
  EXPECT_EQ(counters.lost_samples, 16u * (40'960 - 2));
  for (const auto& chunk : running.seen()) EXPECT_EQ(chunk.wrong, 0);
}

TEST(Mwa32tSource, AReceiverThatNeverComesIsReportedAndAbsent) {
  auto config = mixed_config();
  config.patience_ns = 100 * kMillisecond_ns;
  config.close_after_ns = 50 * kMillisecond_ns;
  RunningSource running(config);
  auto senders = connect_all(running, 3);  // receiver 3 (UDP) stays away: half the voters
  // Slower than the patience: the quorum of two is not reached, then one is enough.
  Tick tick = 0;
  ASSERT_TRUE(RunningSource::wait_until([&] {
    send_all(senders, config, tick, tick + 2048);
    tick += 2048;
    return running.source().state() == "DEGRADED(missing_streams)" && tick > 30 * 2048;
  })) << running.source().state();
  running.stop();
  EXPECT_EQ(running.source().counters().balance(), 0);
  ASSERT_FALSE(running.seen().empty());
  const std::int64_t last_segment = running.seen().back().segment;
  std::int64_t wrong = 0;
  for (const auto& chunk : running.seen()) {
    // On a busy machine the TCP receivers may have begun alone, with a guessed time, in a segment
    // of their own.
    if (chunk.segment == last_segment) wrong += chunk.wrong;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(absent_of(running, 3), 4096);
}

// IN-10: no data at all: a state, not a hang, and an orderly end.
TEST(Mwa32tSource, NoDataIsAState) {
  RunningSource running(mixed_config());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(running.source().state(), "NO_DATA");
  running.stop();
  EXPECT_TRUE(running.source().ended());
  EXPECT_TRUE(running.seen().empty());
  EXPECT_EQ(running.source().counters().received, 0u);
}

TEST(Mwa32tSource, StopBeforeStartEnds) {
  Mwa32tSource source(mixed_config());
  source.stop();
  EXPECT_EQ(source.next(std::chrono::milliseconds(0)), nullptr);
  EXPECT_TRUE(source.ended());
}

// IN-07: datagrams of every wrong length, and wrong fields: one counter each, not a byte placed.
TEST(Mwa32tSource, WrongDatagramsAreCountedAndPlaceNothing) {
  auto config = mixed_config();
  config.endpoints = {"udp://127.0.0.1:0"};
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  RunningSource running(config);
  Sender sender(running.endpoint(0));
  std::uint64_t n = 0;
  Tick tick = 0;
  const auto good = [&](int count) {
    for (int i = 0; i < count; ++i, tick += 256, ++n)
      sender.send_datagram(pattern_datagram(0, tick, 256));
  };
  good(20);
  const auto whole = pattern_datagram(0, tick, 256);
  for (const std::size_t length : {0, 1, 7, 15, 16, 1500, 8207}) {
    sender.send_datagram(std::span(whole).first(length));
    ++n;
  }
  for (const std::size_t length : {8209, 9000, 65'507}) {
    std::vector<std::byte> longer = whole;
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
  changed(0, 0);  // magic
  changed(4, 2);  // version
  changed(5, 1);  // receiver 1 of 1
  changed(5, 255);
  changed(6, 255);  // n
  good(20);
  wait_all(running, n);
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.received, n);
  EXPECT_EQ(c.used, 40u);
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.rejected.at("too_short"), 7u);
  EXPECT_EQ(c.rejected.at("too_long"), 3u);
  EXPECT_EQ(c.rejected.at("magic"), 1u);
  EXPECT_EQ(c.rejected.at("version"), 1u);
  EXPECT_EQ(c.rejected.at("foreign_stream"), 2u);
  EXPECT_EQ(c.rejected.at("length"), 1u);
  EXPECT_EQ(c.lost_samples, 0u);
  for (const auto& chunk : running.seen()) EXPECT_EQ(chunk.wrong, 0);
}

// One super-packet of the kernel (UDP_SEGMENT): segments are datagrams of their own, the short last
// one included.
TEST(Mwa32tSource, JoinedSegmentsAreTakenApart) {
  auto config = mixed_config();
  config.endpoints = {"udp://127.0.0.1:0"};
  config.geometry.n_instants = 16;
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  RunningSource running(config);
  Sender sender(running.endpoint(0));
  if (!sender.set_segment(16 + 512)) GTEST_SKIP() << "skipped: this kernel has no UDP_SEGMENT";
  std::vector<std::byte> joined;
  for (Tick tick = 0; tick < 40 * 16; tick += 16) {
    const auto d = pattern_datagram(0, tick, 16);
    joined.insert(joined.end(), d.begin(), d.end());
  }
  joined.resize(joined.size() - 100);
  sender.send_datagram(joined);
  wait_all(running, 40);
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.received, 40u);
  EXPECT_EQ(c.used, 39u);
  EXPECT_EQ(c.rejected.at("too_short"), 1u);
  for (const auto& chunk : running.seen()) EXPECT_EQ(chunk.wrong, 0);
}

// IN-08: a stranger with the same stream id, and one that is not on the list.
TEST(Mwa32tSource, StrangersAreCountedAndPlaceNothing) {
  auto config = mixed_config();
  config.endpoints = {"udp://127.0.0.1:0"};
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  {
    RunningSource running(config);
    Sender sender(running.endpoint(0)), stranger(running.endpoint(0));
    for (Tick tick = 0; tick < 100 * 256; tick += 256) {
      sender.send_datagram(pattern_datagram(0, tick, 256));
      if (tick >= 20 * 256) stranger.send_datagram(pattern_datagram(0, tick + 256, 256));
      if (tick % 2048 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    wait_all(running, 180);
    running.stop();
    const auto c = running.source().counters();
    EXPECT_EQ(c.used, 100u);
    EXPECT_EQ(c.rejected.at("foreign_sender"), 80u);
  }
  config.allowed_senders = {"10.9.8.7"};
  RunningSource running(config);
  Sender sender(running.endpoint(0));
  for (Tick tick = 0; tick < 20 * 256; tick += 256)
    sender.send_datagram(pattern_datagram(0, tick, 256));
  wait_all(running, 20);
  running.stop();
  EXPECT_EQ(running.source().counters().rejected.at("foreign_sender"), 20u);
  EXPECT_EQ(running.source().counters().used, 0u);
  config.allowed_senders = {"not-an-address"};
  EXPECT_THROW(Mwa32tSource{config}, ConfigError);
  config.allowed_senders = {"127.0.0.0/8", "10.9.8.7"};
  RunningSource listed(config);
  Sender known(listed.endpoint(0));
  for (Tick tick = 0; tick < 20 * 256; tick += 256)
    known.send_datagram(pattern_datagram(0, tick, 256));
  wait_all(listed, 20);
  listed.stop();
  EXPECT_EQ(listed.source().counters().used, 20u);
}

TEST(Mwa32tSource, ASecondConnectionIsRejectedWhileTheFirstDelivers) {
  auto config = mixed_config();
  config.endpoints = {"tcp://127.0.0.1:0"};
  RunningSource running(config);
  Sender first(running.endpoint(0));
  first.send(pattern_groups(config.geometry.marker, 0, 0, 1000));
  wait_all(running, 1000);
  Sender second(running.endpoint(0));
  second.send(pattern_groups(config.geometry.marker, 0, 30'000, 100));
  first.send(pattern_groups(config.geometry.marker, 0, 1000, 1000));
  wait_all(running, 2000);
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.received, 2000u);
  EXPECT_EQ(c.used, 2000u);
  EXPECT_EQ(c.lost_samples, 0u);
}

// Offline the sender waits for a slow consumer; nothing is lost, and the end of the connections is
// the end.
TEST(Mwa32tSource, OfflineTheSenderWaitsAndTheEndIsFound) {
  auto config = mixed_config();
  config.endpoints = {"tcp://127.0.0.1:0", "tcp://127.0.0.1:0"};
  config.offline = true;
  config.chunk_ticks = 1024;
  config.n_chunks = 5;
  RunningSource running(config);
  constexpr Tick kEnd = 100 * 1024;  // twenty times what the chunks hold
  {
    auto senders = connect_all(running, 2);
    for (Tick tick = 0; tick < kEnd; tick += 1024) {
      for (std::uint32_t r = 0; r < 2; ++r) {
        ASSERT_TRUE(senders[r].send(pattern_groups(config.geometry.marker, r, tick, 1024)));
      }
    }
  }
  running.join();
  expect_whole(running, 0, kEnd);
}

// Ryle connects to the nodes; one is not there yet.
TEST(Mwa32tSource, ConnectsToNodesAndTriesAgain) {
  const Endpoint any = parse_endpoint("tcp://" + test::own_host() + ":0");
  Endpoint late = any;
  late.port = tcp_listen(any).local_port();  // free again at once
  auto config = mixed_config();
  config.endpoints = {to_string(late)};
  config.tcp_connect = true;
  config.reconnect_min_ns = kMillisecond_ns;
  config.reconnect_max_ns = 10 * kMillisecond_ns;
  RunningSource running(config);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Socket listener = tcp_listen(late);
  Socket node;
  ASSERT_TRUE(RunningSource::wait_until([&] {
    node = tcp_accept(listener, nullptr);
    return static_cast<bool>(node);
  }));
  const auto bytes = pattern_groups(config.geometry.marker, 0, 0, 500);
  ASSERT_EQ(::send(node.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  wait_all(running, 500);
  running.stop();
  EXPECT_EQ(running.source().counters().used, 500u);
}

TEST(Mwa32tSource, ATooSmallReceiveBufferIsRejectedWithItsRemedy) {
  auto config = mixed_config();
  config.stall_budget_s = 1e5;  // 85 GB: more than any kernel grants
  config.allow_small_rcvbuf = false;
  try {
    Mwa32tSource source(config);
    FAIL() << "not refused";
  } catch (const OsLimitError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::os_limit);
    const std::string message = error.what();
    for (const char* part :
         {"receive buffer of udp://127.0.0.1:", "needs 84", "granted",
          "sysctl -w net.core.rmem_max=", "/etc/sysctl.d/90-ryle.conf", "--allow-small-rcvbuf"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
    }
  }
  config.allow_small_rcvbuf = true;
  RunningSource running(config);
  EXPECT_FALSE(running.source().receive_buffer_ok());
  auto senders = connect_all(running, 4);
  send_all(senders, config, 0, 8192);
  EXPECT_TRUE(RunningSource::wait_until([&] {
    return running.source().state() == "DEGRADED(rcvbuf)";
  })) << running.source().state();
}

TEST(Mwa32tSource, APortInUseAndWrongConfigurationsAreRejected) {
  auto config = mixed_config();
  Mwa32tSource first(config);
  auto second = config;
  second.endpoints = first.endpoints();
  EXPECT_THROW(Mwa32tSource{second}, IoError);
  const auto rejected = [&](auto change) {
    auto broken = config;
    change(broken);
    EXPECT_THROW(Mwa32tSource{broken}, ConfigError);
  };
  rejected([](auto& c) { c.endpoints.clear(); });
  rejected([](auto& c) { c.endpoints[0] = "tcp://127.0.0.1"; });
  rejected([](auto& c) { c.endpoints[0] = "sctp://127.0.0.1:4000"; });
  rejected([](auto& c) { c.endpoints[0] = "tcp://127.0.0.1:70000"; });
  rejected([](auto& c) { c.n_chunks = 4; });
  rejected([](auto& c) { c.chunk_ticks = 0; });
  rejected([](auto& c) { c.chunk_ticks = std::int64_t{1} << 60; });
  rejected([](auto& c) { c.geometry.marker.bits = 17; });
}

TEST(Mwa32tSource, MemoryIsFixedAndStated) {
  auto config = mixed_config();
  Mwa32tSource source(config);
  const std::int64_t chunks = mwa32t_source_chunk_bytes(config);
  EXPECT_EQ(chunks, std::int64_t{32} * 4096 * 4 * 32);
  EXPECT_GE(source.memory_bytes(), chunks);
  EXPECT_LT(source.memory_bytes(), chunks + (16 << 20));
  const auto info = source.info();
  EXPECT_EQ(info.n_inputs, 64);
  EXPECT_EQ(info.layout.sample_stride_bits, 1024);
  EXPECT_EQ(info.layout.input_stride_bits, 16);
  EXPECT_EQ(info.layout.format, SampleFormat::ci5);
}

// IN-18 in small: starting and stopping at any moment never hangs.
TEST(Mwa32tSource, StartAndStopAtRandomMoments) {
  auto config = mixed_config();
  config.chunk_ticks = 256;
  for (std::uint64_t i = 0; i < 15; ++i) {
    RunningSource running(config);
    auto senders = connect_all(running, 4);
    send_all(senders, config, 0, static_cast<Tick>(mix64(i) % 8) * 256);
    running.stop();  // at once, whatever is still on its way
    EXPECT_EQ(running.source().counters().balance(), 0);
    EXPECT_TRUE(running.source().ended());
  }
}

}  // namespace
}  // namespace ryle
