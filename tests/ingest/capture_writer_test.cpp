// SPDX-License-Identifier: BSD-3-Clause
// PCAP files are what other programs read, checksums included; and what a description makes of
// datagrams is told in words.
#include "ryle/ingest/capture_writer.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/ingest/datagram_report.hpp"
#include "ryle/wire/bytes.hpp"

namespace ryle {
namespace {

sockaddr_in ipv4(const char* host, std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  inet_pton(AF_INET, host, &a.sin_addr);
  return a;
}
sockaddr_in6 ipv6(const char* host, std::uint16_t port) {
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  a.sin6_port = htons(port);
  inet_pton(AF_INET6, host, &a.sin6_addr);
  return a;
}

/// Ones' complement sum over bytes; 0xFFFF where the checksum among them is right.
std::uint32_t ones_sum(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
  for (std::size_t k = 0; k < bytes.size(); ++k)
    sum += std::to_integer<std::uint32_t>(bytes[k]) << (k % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

TEST(CaptureWriter, WritesWhatPcapReadersExpect) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("ryle_capture_" + std::to_string(::getpid()) + ".pcap");
  std::vector<std::byte> payload(301);
  for (std::size_t k = 0; k < payload.size(); ++k) payload[k] = std::byte(k & 255);
  {
    CaptureWriter writer(path.string());
    const auto a = ipv4("10.1.2.3", 4015), b = ipv4("10.9.8.7", 5000);
    writer.write(payload, &a, &b, 1'700'000'000'123'456'789);
    const auto c = ipv6("fd00::1", 1), d = ipv6("fd00::2", 2);
    writer.write(payload, &c, &d, 1'700'000'001'000'000'000);
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.finish();
    EXPECT_EQ(writer.datagrams(), 2u);
  }
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars(std::filesystem::file_size(path));
  in.read(chars.data(), static_cast<std::streamsize>(chars.size()));
  const auto* p = reinterpret_cast<const std::byte*>(chars.data());
  ASSERT_EQ(chars.size(), 24u + 16 + 42 + 301 + 16 + 62 + 301);
  EXPECT_EQ(wire::load_le<std::uint32_t>(p), 0xA1B23C4Du);  // nanoseconds
  EXPECT_EQ(wire::load_le<std::uint32_t>(p + 20), 1u);      // Ethernet
  EXPECT_EQ(wire::load_le<std::uint32_t>(p + 24), 1'700'000'000u);
  EXPECT_EQ(wire::load_le<std::uint32_t>(p + 28), 123'456'789u);
  EXPECT_EQ(wire::load_le<std::uint32_t>(p + 32), 343u);
  const std::byte* ip = p + 40 + 14;
  EXPECT_EQ(ones_sum({ip, 20}), 0xFFFFu);
  EXPECT_EQ(wire::load_be<std::uint16_t>(ip + 20), 4015);
  EXPECT_EQ(wire::load_be<std::uint16_t>(ip + 22), 5000);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), ip + 28));
  const std::byte* ip6 = ip + 329 + 16 + 14;
  EXPECT_EQ(ones_sum({ip6 + 40, 309}, ones_sum({ip6 + 8, 32}) + 17 + 309), 0xFFFFu);
  std::filesystem::remove(path);
}

TEST(CaptureWriter, LeavesNothingUnfinished) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("ryle_capture_unfinished_" + std::to_string(::getpid()) + ".pcap");
  { CaptureWriter writer(path.string()); }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
  EXPECT_THROW(CaptureWriter("/no/such/folder/x.pcap"), IoError);
}

TEST(DatagramReport, SaysWhatFitsAndWhy) {
  wire::PacketDescription d;
  wire::HeaderField counter, constant, board;
  counter.meaning = wire::FieldMeaning::sequence;
  counter.base = 1;
  constant.meaning = wire::FieldMeaning::constant;
  constant.offset = 8;
  constant.bytes = 2;
  constant.n_bits = 16;
  constant.values = {77};
  board.meaning = wire::FieldMeaning::board;
  board.offset = 10;
  board.bytes = 1;
  board.n_bits = 8;
  d.header = {counter, constant, board};
  d.length = 28;
  d.payload_offset = 16;
  d.order = {{wire::Axis::time, 4}, {wire::Axis::input, 3}};
  d.sample.complex = false;
  DatagramReport report{wire::DescribedCodec(d, {0, 0, 2})};
  std::vector<std::byte> bytes(28);
  for (int n = 0; n < 10; ++n) {
    wire::store_be(bytes.data(), static_cast<std::uint64_t>(100 + 8 * n));
    wire::store_be(bytes.data() + 8, std::uint16_t{77});
    bytes[16] = std::byte{5};
    const std::string text = report.take(bytes);
    EXPECT_NE(text.find("counter " + std::to_string(99 + 8 * n) + " = tick"), std::string::npos);
    EXPECT_NE(text.find("inputs 0 to 2"), std::string::npos);
    EXPECT_NE(text.find("0 to 5; input 0 begins 5"), std::string::npos) << text;
  }
  wire::store_be(bytes.data() + 8, std::uint16_t{78});
  EXPECT_NE(report.take(bytes).find("rejected, magic: constant at offset 8 is 78 (0x4e), the "
                                    "description has value = 77 (0x4d)"),
            std::string::npos);
  wire::store_be(bytes.data() + 8, std::uint16_t{77});
  bytes[10] = std::byte{2};
  EXPECT_NE(report.take(bytes).find("rejected, foreign_stream: the observation does not take this "
                                    "stream: board at offset 10 is 2;"),
            std::string::npos);
  wire::store_be(bytes.data(), std::uint64_t{0});
  EXPECT_NE(report.take(bytes).find("rejected, field: sequence at offset 0 is 0, below base = 1"),
            std::string::npos);
  bytes.resize(20);
  EXPECT_NE(report.take(bytes).find("rejected, too_short: 20 bytes, the description has length = "
                                    "28"),
            std::string::npos);
  const auto lines = report.summary();
  EXPECT_EQ(
      lines.at(0),
      "14 datagrams: 10 accepted, 1 rejected (field), 1 rejected (foreign_stream), 1 rejected "
      "(magic), 1 rejected (too_short)");
  EXPECT_EQ(lines.at(1),
            "lengths that came: 20 bytes (1 times) 28 bytes (13 times); the description has length "
            "= 28");
  EXPECT_EQ(
      lines.at(3),
      "the counter of a stream steps by 8 from packet to packet, 9 of 9 times; the description "
      "says 4 (4 ticks, ticks_per_count = 1, counts_per_tick = 1)");
}

}  // namespace
}  // namespace ryle
