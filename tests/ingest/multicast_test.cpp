// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "tests/ingest/fengine_fixture.hpp"

namespace ryle {
namespace {

using test::RunningFengine;
using test::Sender;

/// A group that no other test of this machine sends to.
std::string own_group(int k) {
  const auto pid = static_cast<unsigned>(::getpid());
  return "239." + std::to_string(64 + (pid >> 16)) + "." + std::to_string(pid >> 8 & 255) + "." +
         std::to_string((pid & 63) * 4 + static_cast<unsigned>(k));
}

FengineSourceConfig listening(const std::vector<std::string>& endpoints, int n_boards = 1) {
  FengineSourceConfig config = test::small_chips();
  config.n_boards = n_boards;  // as many as send: the lock waits for others
  config.endpoints = endpoints;
  return config;
}

void send_spectra(Sender& sender, int board, std::int64_t n) {
  for (std::int64_t t = 0; t < n; ++t) {
    sender.send_datagram(test::chips_datagram(board, 1000 + t, 1600, 5));
    if (t % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

TEST(Multicast, SeveralGroupsAreJoinedAndReceived) {
  std::vector<std::string> groups;
  for (int k = 0; k < 3; ++k) groups.push_back("udp://" + own_group(k) + ":0?interface=lo");
  RunningFengine running(listening(groups, 2));
  for (int board = 0; board < 2; ++board) {
    Sender sender(running.endpoint(static_cast<std::size_t>(board)));
    send_spectra(sender, board, 100);
  }
  ASSERT_TRUE(running.wait_all(200));
  running.stop();
  EXPECT_EQ(running.wrong(), 0);
  const auto c = running.source().counters();
  EXPECT_EQ(c.used, 200u);
  ASSERT_EQ(c.notes.size(), 1u);  // of the third group, which nobody sends to
  EXPECT_NE(c.notes[0].find("no packet came from the multicast group udp://" + own_group(2)),
            std::string::npos)
      << c.notes[0];
}

TEST(Multicast, TwoReceiversOfAGroupBothGetIt) {
  RunningFengine first(listening({"udp://" + own_group(0) + ":0?interface=lo"}));
  RunningFengine second(listening({first.endpoint()}));
  Sender sender(first.endpoint());
  send_spectra(sender, 0, 128);
  EXPECT_TRUE(first.wait_all(128));
  EXPECT_TRUE(second.wait_all(128));
}

// The kernel drops what others send: not one packet of them is counted.
TEST(Multicast, OnlyTheSourceAskedForIsReceived) {
  const std::string host = test::own_host();
  if (host == "127.0.0.1") GTEST_SKIP() << "skipped: one loopback address only";
  RunningFengine running(
      listening({"udp://" + own_group(0) + ":0?interface=127.0.0.1&source=" + host}));
  const std::string endpoint = running.endpoint();
  const auto port = parse_endpoint(endpoint).port;
  Sender stranger("udp://" + own_group(0) + ":" + std::to_string(port) + "?interface=lo");
  Sender wanted("udp://" + own_group(0) + ":" + std::to_string(port) + "?interface=lo", host);
  send_spectra(stranger, 0, 100);
  send_spectra(wanted, 0, 128);
  ASSERT_TRUE(running.wait_all(128));
  running.stop();
  EXPECT_EQ(running.source().counters().received, 128u);
  EXPECT_EQ(running.absent(0), 0);
  EXPECT_EQ(running.wrong(), 0);
}

TEST(Multicast, WhatCannotBeJoinedIsAnErrorBeforeData) {
  try {
    RunningFengine running(listening({"udp://239.1.2.3:4015?interface=nosuch0"}));
    ADD_FAILURE();
  } catch (const IoError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("no interface 'nosuch0'; it has lo (127.0.0.1)"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(tcp_listen(parse_endpoint("tcp://224.0.0.1:9")), ConfigError);
  EXPECT_THROW(udp_bind(parse_endpoint("udp://239.1.2.3:0?interface=lo&source=fd00::1")),
               ConfigError);
}

TEST(Endpoint, RangesOfGroupsAreExpanded) {
  EXPECT_EQ(expand_endpoints({"udp://239.1.2.254+2:7148?interface=lo", "tcp://host:1"}),
            (std::vector<std::string>{"udp://239.1.2.254:7148?interface=lo",
                                      "udp://239.1.2.255:7148?interface=lo",
                                      "udp://239.1.3.0:7148?interface=lo", "tcp://host:1"}));
  for (const char* wrong :
       {"udp://239.1.2.3+:7148", "udp://239.1.2.3+x:7148", "udp://10.0.0.1+3:1", "udp://host+3:1",
        "udp://239.255.255.255+1:7148", "udp://239.1.2.3+5000:1"}) {
    EXPECT_THROW(expand_endpoints({wrong}), ConfigError) << wrong;
  }
}

TEST(Endpoint, OptionsAreOfMulticastGroupsAlone) {
  const std::string text =
      "udp://[ff15::7]:7148?interface=eth1&source=fd00::1&source=fd00::2&ttl=4";
  EXPECT_EQ(to_string(parse_endpoint(text)), text);
  for (const char* wrong :
       {"udp://10.0.0.1:7148?interface=lo", "tcp://239.1.2.3:7148?interface=lo",
        "udp://239.1.2.3:7148?interface", "udp://239.1.2.3:7148?source=x",
        "udp://239.1.2.3:7148?ttl=0", "udp://239.1.2.3:7148?iface=lo", "udp://239.1.2.3+3:7148"}) {
    EXPECT_THROW(parse_endpoint(wrong), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace ryle
