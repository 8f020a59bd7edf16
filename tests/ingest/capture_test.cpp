// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/capture_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "ryle/core/error.hpp"
#include "ryle/ingest/sender_list.hpp"
#include "tests/ingest/fengine_fixture.hpp"
#include "tests/support/frame_capture.hpp"

namespace ryle {
namespace {

using test::FrameCapture;

constexpr std::int64_t kStart_ns = 1'700'000'000'123'456'789;

std::string scratch_file(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("ryle_capture_" + std::to_string(::getpid()) + "_" + name))
      .string();
}

std::vector<std::byte> payload_of(std::size_t n, int seed) {
  std::vector<std::byte> bytes(n);
  for (std::size_t k = 0; k < n; ++k)
    bytes[k] = static_cast<std::byte>(31 * k + static_cast<std::size_t>(seed));
  return bytes;
}

struct Read {
  std::vector<std::byte> payload;
  std::int64_t unix_ns;
  std::string from, to;
  bool cut;
};

std::vector<Read> read_all(const FrameCapture::Bytes& bytes, CaptureCounts* counts = nullptr,
                           bool* within_record = nullptr) {
  const std::string path = scratch_file("read.pcap");
  FrameCapture::write(path, bytes);
  std::vector<Read> all;
  CaptureReader reader(path);
  CapturedDatagram d;
  while (reader.next(d)) {
    all.push_back({{d.payload.begin(), d.payload.end()},
                   d.unix_ns,
                   to_string(sender_address(&d.from)),
                   to_string(sender_address(&d.to)),
                   d.cut});
  }
  if (counts != nullptr) *counts = reader.counts();
  if (within_record != nullptr) *within_record = reader.ends_within_record();
  const CaptureCounts& c = reader.counts();
  EXPECT_EQ(c.records, c.datagrams + c.not_ip + c.not_udp + c.damaged + c.fragments + c.joined);
  EXPECT_EQ(c.datagrams, all.size());
  std::filesystem::remove(path);
  return all;
}

TEST(Capture, EveryLinkAndFamilyGivesTheDatagram) {
  const auto payload = payload_of(5, 1);  // shorter than a frame: padding must not be taken
  for (const std::uint32_t link : {FrameCapture::kEthernet, FrameCapture::kNull, FrameCapture::kRaw,
                                   FrameCapture::kSll, FrameCapture::kSll2}) {
    for (const bool v6 : {false, true}) {
      for (const int tags : {0, 1, 2}) {
        FrameCapture writer(link, tags == 2);
        writer.n_vlan_tags = tags;
        if (v6) {
          writer.from = "fd00::1";
          writer.to = "ff15::7";
        }
        writer.udp(kStart_ns, payload);
        const auto all = read_all(writer.bytes());
        ASSERT_EQ(all.size(), 1u) << link << v6 << tags;
        EXPECT_EQ(all[0].payload, payload);
        EXPECT_EQ(all[0].unix_ns, kStart_ns);
        EXPECT_EQ(all[0].from, v6 ? "[fd00::1]:7000" : "10.0.0.1:7000");
        EXPECT_EQ(all[0].to, v6 ? "[ff15::7]:4015" : "10.0.0.2:4015");
        EXPECT_FALSE(all[0].cut);
      }
    }
  }
}

TEST(Capture, FragmentsAreJoinedInAnyOrderAndLostOnesCounted) {
  for (const bool v6 : {false, true}) {
    FrameCapture writer;
    if (v6) {
      writer.from = "fd00::1";
      writer.to = "fd00::2";
    }
    const auto a = payload_of(4000, 1), b = payload_of(3000, 2), c = payload_of(50, 3);
    writer.udp(kStart_ns, a, 1480);
    writer.udp(kStart_ns + 1, b, 1480, {2, 0, 1});
    writer.udp(kStart_ns + 2, a, 1480, {0, 2});  // the middle is lost
    writer.udp(kStart_ns + 3, c);
    CaptureCounts counts;
    const auto all = read_all(writer.bytes(), &counts);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].payload, a);
    EXPECT_EQ(all[1].payload, b);
    EXPECT_EQ(all[2].payload, c);
    EXPECT_EQ(counts.fragments, 2u);
    EXPECT_EQ(counts.joined, 4u);
    EXPECT_EQ(left_out_text(counts), "2 fragments of datagrams that are not whole");
  }
}

// Two datagrams between the same sockets on their way at once: their numbers keep them apart.
TEST(Capture, FragmentsOfTwoDatagramsMayComeInTurns) {
  FrameCapture writer;
  const auto a = payload_of(3000, 1), b = payload_of(3000, 2);
  writer.udp(kStart_ns, a, 1480, {0});
  writer.udp(kStart_ns + 1, b, 1480, {0});
  writer.again(1);
  writer.udp(kStart_ns + 2, a, 1480, {1, 2});
  writer.udp(kStart_ns + 3, b, 1480, {1, 2});
  const auto all = read_all(writer.bytes());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].payload, a);
  EXPECT_EQ(all[1].payload, b);
}

TEST(Capture, WhatIsNoDatagramIsCountedByWhatItIs) {
  FrameCapture writer;
  writer.other(kStart_ns, 6);
  writer.record(kStart_ns, FrameCapture::Bytes(60, 0x08));  // EtherType 0x0808
  writer.record(kStart_ns, FrameCapture::Bytes(10));        // shorter than a frame's header
  writer.udp(kStart_ns, payload_of(100, 1));
  writer.snap = 80;
  writer.udp(kStart_ns, payload_of(100, 2));
  CaptureCounts counts;
  const auto all = read_all(writer.bytes(), &counts);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[1].cut);
  EXPECT_EQ(all[1].payload.size(), 80u - 14 - 24 - 8);
  EXPECT_EQ(counts.not_udp, 1u);
  EXPECT_EQ(counts.not_ip, 1u);
  EXPECT_EQ(counts.damaged, 1u);
  EXPECT_EQ(counts.cut, 1u);
}

TEST(Capture, AFileThatEndsWithinARecordGivesAllBefore) {
  FrameCapture writer;
  for (int k = 0; k < 3; ++k) writer.udp(kStart_ns, payload_of(100, k));
  auto bytes = writer.bytes();
  for (const std::size_t left : {std::size_t{1}, std::size_t{150}}) {
    bool within = false;
    bytes.resize(writer.bytes().size() - left);
    EXPECT_EQ(read_all(bytes, nullptr, &within).size(), 2u);
    EXPECT_TRUE(within);
  }
}

TEST(Capture, WhatIsNoCaptureIsRejected) {
  EXPECT_THROW(CaptureReader(scratch_file("absent.pcap")), IoError);
  EXPECT_THROW(read_all(FrameCapture::Bytes(100, 7)), FormatError);
  EXPECT_THROW(read_all(FrameCapture(147).bytes()), FormatError);  // a link of a user
}

// Any damage ends in a sentence or in counts that add up (read_all() checks them).
TEST(Capture, DamageIsRejectedOrCounted) {
  FrameCapture writer;
  writer.n_vlan_tags = 1;
  for (int k = 0; k < 8; ++k) {
    writer.udp(kStart_ns, payload_of(200, k), k % 2 == 0 ? 0 : 64);
    writer.from = k % 4 < 2 ? "10.0.0.1" : "fd00::1";
    writer.to = k % 4 < 2 ? "10.0.0.2" : "fd00::2";
  }
  std::mt19937 random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    auto bytes = writer.bytes();
    for (int k = 0; k < 4; ++k) bytes[24 + random() % (bytes.size() - 24)] ^= 1u << random() % 8;
    try {
      read_all(bytes);
    } catch (const FormatError&) {
    }
  }
}

/// Spectra [1000, 1000 + n) of three boards in a capture, less every 17th packet, with others
/// between them.
std::string chips_capture(std::int64_t n) {
  FrameCapture writer;
  std::int64_t k = 0;
  for (std::int64_t t = 1000; t < 1000 + n; ++t) {
    for (int board = 0; board < 3; ++board) {
      writer.to_port = 53;
      if (k % 100 == 0) writer.udp(kStart_ns + 40'000 * t, payload_of(30, 1));
      writer.to_port = 4015;
      if (k++ % 17 == 5) continue;
      writer.udp(kStart_ns + 40'000 * t, test::chips_datagram(board, t, 1600, 5), k % 3 * 64);
    }
  }
  const std::string path = scratch_file("chips.pcap");
  writer.write(path);
  return path;
}

FengineSourceConfig replaying_chips(const std::string& path) {
  FengineSourceConfig config = test::small_chips();
  config.endpoints = {"udp://0.0.0.0:4015"};
  config.capture = path;
  config.n_chunks = 4;  // fewer than the capture fills: the reader must wait
  config.window_chunks = 3;
  return config;
}

TEST(Replay, EveryByteOfTheCaptureLandsInItsPlaceAndNothingIsDropped) {
  constexpr std::int64_t kSpectra = 128 * 12 + 9;
  test::RunningFengine running(replaying_chips(chips_capture(kSpectra)));
  while (!running.source().ended()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  running.stop();
  const auto c = running.source().counters();
  const std::int64_t lost = (3 * kSpectra - 5 + 16) / 17;
  EXPECT_EQ(c.used, static_cast<std::uint64_t>(3 * kSpectra - lost));
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.dropped_chunks, 0u);
  EXPECT_EQ(running.wrong(), 0);
  EXPECT_EQ(running.absent(0) + running.absent(1) + running.absent(2), lost);
  ASSERT_EQ(c.notes.size(), 1u);
  EXPECT_NE(c.notes[0].find("datagrams to other ports"), std::string::npos) << c.notes[0];
  EXPECT_EQ(c.fault, "");
}

TEST(Replay, ASpeedIsKept) {
  constexpr std::int64_t kSpectra = 2560;  // 40 us each
  auto config = replaying_chips(chips_capture(kSpectra));
  config.replay_speed = 0.25;
  const auto begin = std::chrono::steady_clock::now();
  test::RunningFengine running(config);
  while (!running.source().ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 40e-6 * kSpectra / 0.25);
  running.stop();
  EXPECT_EQ(running.wrong(), 0);
}

TEST(Replay, DatagramsOfAnotherGroupOrSourceAreNotTaken) {
  FrameCapture writer;
  for (const char* group : {"239.1.2.3", "239.1.2.4"}) {
    for (const char* from : {"10.0.0.1", "10.0.0.9"}) {
      writer.to = group;
      writer.from = from;
      for (std::int64_t t = 0; t < 128; ++t)
        writer.udp(kStart_ns, test::chips_datagram(0, 1000 + t, 1600, 5));
    }
  }
  const std::string path = scratch_file("groups.pcap");
  writer.write(path);
  auto config = replaying_chips(path);
  config.endpoints = {"udp://239.1.2.4:4015?source=10.0.0.9", "udp://239.1.2.5:4015"};
  config.n_boards = 1;
  test::RunningFengine running(config);
  while (!running.source().ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.used, 128u);
  EXPECT_EQ(c.received, 128u);
  ASSERT_EQ(c.notes.size(), 2u);
  EXPECT_NE(c.notes[0].find("239.1.2.5"), std::string::npos) << c.notes[0];
  EXPECT_NE(c.notes[1].find("384 datagrams to other ports"), std::string::npos) << c.notes[1];
}

TEST(Replay, ADamagedCaptureIsNamedBehindWhatItGave) {
  FrameCapture writer;
  for (std::int64_t t = 0; t < 256; ++t)
    for (int board = 0; board < 3; ++board)
      writer.udp(kStart_ns, test::chips_datagram(board, 1000 + t, 1600, 5));
  auto bytes = writer.bytes();
  bytes.insert(bytes.end(), 16, 0xFF);  // the header of a record of 4 GiB
  const std::string path = scratch_file("damaged.pcap");
  FrameCapture::write(path, bytes);
  test::RunningFengine running(replaying_chips(path));
  while (!running.source().ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.stop();
  EXPECT_EQ(running.source().counters().used, 768u);
  EXPECT_NE(running.source().counters().fault.find("damaged behind 768 records"), std::string::npos)
      << running.source().counters().fault;
}

}  // namespace
}  // namespace ryle
