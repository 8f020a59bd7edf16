// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/sender_list.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "ryle/core/error.hpp"
#include "ryle/ingest/socket.hpp"

namespace ryle {
namespace {

SenderAddress sender_v4(const char* host, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host, &v4.sin_addr), 1);
  return sender_address(&v4);
}

SenderAddress sender_v6(const char* host, std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, host, &v6.sin6_addr), 1);
  return sender_address(&v6);
}

TEST(SenderList, NetworksAndPortsOfBothFamilies) {
  EXPECT_TRUE(SenderList({}).allows(sender_v4("8.8.8.8", 1)));
  const SenderList list({"10.1.0.0/16", "10.2.0.7:4015", "192.168.0.0/23:9", "fd00::/8",
                         "[2001:db8::1]:7", "172.16.0.1"});
  EXPECT_TRUE(list.allows(sender_v4("10.1.255.3", 65535)));
  EXPECT_FALSE(list.allows(sender_v4("10.3.0.1", 4015)));
  EXPECT_TRUE(list.allows(sender_v4("10.2.0.7", 4015)));
  EXPECT_FALSE(list.allows(sender_v4("10.2.0.7", 4016)));
  EXPECT_FALSE(list.allows(sender_v4("10.2.0.8", 4015)));
  EXPECT_TRUE(list.allows(sender_v4("192.168.1.255", 9)));
  EXPECT_FALSE(list.allows(sender_v4("192.168.2.0", 9)));
  EXPECT_TRUE(list.allows(sender_v4("172.16.0.1", 5)));
  EXPECT_TRUE(list.allows(sender_v6("fdff::1", 5)));
  EXPECT_FALSE(list.allows(sender_v6("fe80::1", 5)));
  EXPECT_TRUE(list.allows(sender_v6("2001:db8::1", 7)));
  EXPECT_FALSE(list.allows(sender_v6("2001:db8::1", 8)));
  // A socket of both families reports IPv4 so.
  EXPECT_TRUE(list.allows(sender_v6("::ffff:10.1.2.3", 5)));
  EXPECT_FALSE(list.allows(sender_v6("::10.1.2.3", 5)));
  EXPECT_FALSE(list.allows(SenderAddress{}));
  EXPECT_TRUE(SenderList({"0.0.0.0/0"}).allows(sender_v4("1.2.3.4", 5)));
  EXPECT_FALSE(SenderList({"0.0.0.0/0"}).allows(sender_v6("fd00::1", 5)));
  EXPECT_TRUE(SenderList({"::/0"}).allows(sender_v4("1.2.3.4", 5)));
}

TEST(SenderList, NamesOfSenders) {
  EXPECT_EQ(to_string(sender_v4("10.1.2.3", 4015)), "10.1.2.3:4015");
  EXPECT_EQ(to_string(sender_v6("fe80::1", 9)), "[fe80::1]:9");
  EXPECT_EQ(to_string(SenderAddress{}), "?");
}

TEST(SenderList, WrongEntriesAreNamed) {
  for (const char* entry :
       {"", "host.example", "10.1.2.3/33", "10.1.2.3/8", "10.1.2.3/-1", "10.1.2.3/", "10.1.2.3:0",
        "10.1.2.3:65536", "10.1.2.3:x", "[fd00::1", "[fd00::1]4015", "fd00::/129", "10.1.2"}) {
    try {
      const SenderList list({entry});
      ADD_FAILURE() << entry;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("source.allowed_senders: \"" + std::string(entry)),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace ryle
