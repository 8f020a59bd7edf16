// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/sender.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/simulate/packets.hpp"
#include "ryle/wire/bytes.hpp"
#include "tests/support/own_host.hpp"

namespace ryle::simulate {
namespace {

using namespace std::chrono_literals;

/// A record whose every word is a function of (time, input): 64 inputs, 2^16 samples = 51.2 ms.
VoltageRecord numbered_record(std::int64_t n_samples = 1 << 16) {
  VoltageRecord record;
  record.n_samples = n_samples;
  record.n_inputs = 64;
  record.sample_rate_hz = {1'280'000, 1};
  record.samples.resize(static_cast<std::size_t>(n_samples) * 64);
  for (std::size_t k = 0; k < record.samples.size(); ++k) record.samples[k] = mix64(k) & 0x3ff;
  return record;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, test::own_host().c_str(), &address.sin_addr), 1);
  address.sin_port = htons(port);
  return address;
}

std::string address_of(const std::string& transport, std::uint16_t port) {
  return transport + "://" + test::own_host() + ":" + std::to_string(port);
}

std::uint16_t port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

int bound_socket(int type, std::uint16_t port = 0) {
  const int fd = ::socket(AF_INET, type, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // UDP must not lose; TCP is kept small, so that it pushes back
  const int bytes = type == SOCK_DGRAM ? 1 << 25 : 1 << 17;
  if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  const auto address = loopback(port);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// Accepts connection after connection on one port and keeps the bytes of each.
class TcpSink {
 public:
  explicit TcpSink(std::uint16_t port = 0) : listener_(bound_socket(SOCK_STREAM, port)) {
    ::listen(listener_, 4);
    thread_ = std::thread([this] { run(); });
  }
  ~TcpSink() { stop(); }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) ::close(listener_);
    listener_ = -1;
  }
  std::string endpoint() const { return address_of("tcp", port_of(listener_)); }
  std::uint16_t port() const { return port_of(listener_); }
  const std::vector<std::vector<std::byte>>& streams() const { return streams_; }
  std::atomic<std::int64_t> n_bytes{0};
  std::atomic<bool> slow{false};                    ///< reads little at a time
  std::atomic<std::int64_t> close_after_bytes{-1};  ///< breaks the first connection there

 private:
  static bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 20) > 0;
  }
  void run() {
    std::vector<std::byte> buffer(1 << 18);
    while (!stopping_) {
      if (!readable(listener_)) continue;
      const int fd = ::accept(listener_, nullptr, nullptr);
      streams_.emplace_back();
      while (true) {
        if (!readable(fd)) {
          if (stopping_) break;
          continue;
        }
        if (slow) std::this_thread::sleep_for(1ms);
        const ssize_t n = ::recv(fd, buffer.data(), slow ? 65'537 : buffer.size(), 0);
        if (n <= 0) break;
        streams_.back().insert(streams_.back().end(), buffer.begin(), buffer.begin() + n);
        n_bytes += n;
        if (close_after_bytes >= 0 && n_bytes >= close_after_bytes) {
          close_after_bytes = -1;
          break;
        }
      }
      ::close(fd);
    }
  }
  int listener_;
  std::atomic<bool> stopping_{false};
  std::vector<std::vector<std::byte>> streams_;
  std::thread thread_;
};

/// Checks that bytes are whole groups of `receiver` from tick `first` on, without a gap.
void expect_groups(const VoltageRecord& record, const std::vector<std::byte>& bytes,
                   std::int64_t receiver, Tick first) {
  ASSERT_EQ(bytes.size() % 34, 0u);
  const auto n = static_cast<std::int64_t>(bytes.size() / 34);
  for (std::int64_t k = 0; k < n; ++k) {
    const std::byte* group = bytes.data() + k * 34;
    ASSERT_EQ(wire::load_le<std::uint16_t>(group), static_cast<std::uint16_t>(first + k)) << k;
    const std::int64_t t = (first + k) % record.n_samples;
    ASSERT_EQ(std::memcmp(group + 2, record.samples.data() + t * 64 + receiver * 16, 32), 0) << k;
  }
}

TEST(Sender, TcpStreamsAreExactOverSeveralLapsAndCounted) {
  const auto record = numbered_record();
  std::vector<std::unique_ptr<TcpSink>> sinks;
  SenderConfig config;
  for (int r = 0; r < 4; ++r) {
    sinks.push_back(std::make_unique<TcpSink>());
    config.endpoints.push_back(sinks.back()->endpoint());
  }
  sinks[2]->slow = true;  // fills the socket buffers, so that writes end inside a group
  config.speed = 0;
  config.start_tick = 1'000'003;         // inside a lap
  config.duration_s = 300'032 / 1.28e6;  // 4.6 laps, 1172 packets
  Mwa32tSender sender(record, config);
  sender.start();
  const auto report = sender.join();
  for (int r = 0; r < 4; ++r) {
    sinks[r]->stop();
    EXPECT_EQ(report.receivers[r].samples_sent, 300'032);
    EXPECT_EQ(report.receivers[r].bytes_sent, 300'032 * 34);
    EXPECT_EQ(report.receivers[r].samples_skipped, 0);
    ASSERT_EQ(sinks[r]->streams().size(), 1u);
    EXPECT_EQ(sinks[r]->streams()[0].size(), 300'032u * 34);
    expect_groups(record, sinks[r]->streams()[0], r, 1'000'003);
  }
}

TEST(Sender, UdpPacketsAreExactAndCounted) {
  const auto record = numbered_record();
  const int fd =
      bound_socket(SOCK_DGRAM);  // one socket for all four: the packets name their receiver
  SenderConfig config;
  config.endpoints.assign(4, address_of("udp", port_of(fd)));
  config.speed = 1;
  config.start_tick = (std::int64_t{1} << 33) + 256;
  config.duration_s = 0.15;  // 750 packets a receiver, 2.9 laps
  Mwa32tSender sender(record, config);
  sender.start();
  wire::Mwa32tGeometry geometry;
  std::map<std::uint32_t, std::int64_t> next;
  std::vector<std::byte> buffer(9000);
  std::int64_t n_received = 0;
  // Until the sender has ended and nothing of it waits any more: how long that takes is the
  // machine's.
  for (pollfd ready{fd, POLLIN, 0};;) {
    const bool running = sender.running();
    if (::poll(&ready, 1, 10) <= 0) {
      if (running) continue;
      break;
    }
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    wire::Packet packet;
    ASSERT_EQ(wire::decode(geometry, std::span(buffer.data(), static_cast<std::size_t>(n)), packet),
              wire::Reject::none);
    const std::int64_t tick = config.start_tick + 256 * next[packet.stream]++;
    ASSERT_EQ(packet.tick_raw, static_cast<std::uint64_t>(tick));
    for (std::int64_t t = 0; t < 256; ++t) {
      ASSERT_EQ(
          std::memcmp(
              buffer.data() + 16 + 32 * t,
              record.samples.data() + (tick + t) % record.n_samples * 64 + packet.stream * 16, 32),
          0);
    }
    ++n_received;
  }
  ::close(fd);
  const auto report = sender.join();
  EXPECT_EQ(n_received, 3000);
  EXPECT_EQ(report.samples_sent(), 4 * 192'000);
  for (const auto& receiver : report.receivers) EXPECT_EQ(receiver.packets_sent, 750);
  EXPECT_GE(report.elapsed_s, 0.148);  // paced: 0.15 s of data take 0.15 s, or longer when busy
}

TEST(Sender, ACaptureNodeThatDiesAndReturnsLeavesAnExactGap) {
  const auto record = numbered_record();
  std::vector<std::unique_ptr<TcpSink>> sinks;
  SenderConfig config;
  for (int r = 0; r < 4; ++r) {
    sinks.push_back(std::make_unique<TcpSink>());
    config.endpoints.push_back(sinks.back()->endpoint());
  }
  config.speed = 0;
  config.duration_s = 0.3;
  config.outages = {{.receiver = 2, .from_s = 0.1, .until_s = 0.2}};
  Mwa32tSender sender(record, config);
  sender.start();
  const auto report = sender.join();
  for (auto& sink : sinks) sink->stop();
  EXPECT_EQ(report.receivers[1].samples_sent, 384'000);
  EXPECT_EQ(report.receivers[2].samples_sent, 256'000);
  EXPECT_EQ(report.receivers[2].samples_skipped, 128'000);
  EXPECT_EQ(report.receivers[2].disconnects, 0);
  ASSERT_EQ(sinks[2]->streams().size(), 2u);
  EXPECT_EQ(sinks[2]->streams()[0].size(), 128'000u * 34);
  EXPECT_EQ(sinks[2]->streams()[1].size(), 128'000u * 34);
  expect_groups(record, sinks[2]->streams()[0], 2, 0);
  expect_groups(record, sinks[2]->streams()[1], 2, 256'000);
}

TEST(Sender, WaitsForAReceiverThatListensLater) {
  const auto record = numbered_record();
  std::uint16_t port = 0;
  {
    const int fd = bound_socket(SOCK_STREAM);
    port = port_of(fd);
    ::close(fd);
  }
  std::vector<std::unique_ptr<TcpSink>> sinks;
  SenderConfig config;
  config.endpoints = {address_of("tcp", port)};
  for (int r = 1; r < 4; ++r) {
    sinks.push_back(std::make_unique<TcpSink>());
    config.endpoints.push_back(sinks.back()->endpoint());
  }
  config.speed = 0;
  config.duration_s = 0.01;
  Mwa32tSender sender(record, config);
  sender.start();
  std::this_thread::sleep_for(150ms);
  EXPECT_TRUE(sender.running());
  EXPECT_EQ(sender.report().samples_sent(), 0);
  TcpSink late(port);
  const auto report = sender.join();
  late.stop();
  EXPECT_EQ(report.samples_sent(), 4 * 12'800);
  ASSERT_EQ(late.streams().size(), 1u);
  expect_groups(record, late.streams()[0], 0, 0);
}

TEST(Sender, NobodyListensIsAnErrorThatSaysWhere) {
  const auto record = numbered_record();
  const int fd = bound_socket(SOCK_STREAM);
  SenderConfig config;
  config.endpoints.assign(4, address_of("tcp", port_of(fd)));
  ::close(fd);
  config.connect_timeout_s = 0.1;
  Mwa32tSender sender(record, config);
  sender.start();
  try {
    sender.join();
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot connect to " + config.endpoints[0]));
    EXPECT_THAT(error.what(), testing::HasSubstr("start the receiver first"));
  }
}

TEST(Sender, ABrokenConnectionComesBackAtTheNextInstantDue) {
  const auto record = numbered_record();
  std::vector<std::unique_ptr<TcpSink>> sinks;
  SenderConfig config;
  for (int r = 0; r < 4; ++r) {
    sinks.push_back(std::make_unique<TcpSink>());
    config.endpoints.push_back(sinks.back()->endpoint());
  }
  sinks[1]->close_after_bytes = 1'000'000;
  config.speed = 1;
  Mwa32tSender sender(record, config);  // no duration: until the second connection has data
  sender.start();
  for (int ms = 0; ms < 60'000 && sinks[1]->n_bytes < 3'000'000; ++ms)
    std::this_thread::sleep_for(1ms);
  sender.stop();
  const auto report = sender.join();
  for (auto& sink : sinks) sink->stop();
  EXPECT_GT(report.receivers[1].samples_skipped, 0);
  EXPECT_EQ(report.receivers[1].disconnects, 1);
  ASSERT_EQ(sinks[1]->streams().size(), 2u);
  const auto& second = sinks[1]->streams()[1];
  ASSERT_GE(second.size(), 34u);
  const auto n = static_cast<std::int64_t>(second.size() / 34);
  ASSERT_GT(n, 0);
  // Whole groups to the end; what the end cut is no more than one.
  const std::vector<std::byte> whole(second.begin(), second.begin() + n * 34);
  const auto& first = sinks[1]->streams()[0];
  const Tick begin = report.receivers[1].samples_skipped + report.receivers[1].samples_sent - n;
  expect_groups(record, whole, 1, begin);
  EXPECT_GE(begin, static_cast<Tick>(first.size() / 34));
}

TEST(Sender, StopsWhenAskedAndWhenEveryReceiverHasLeft) {
  const auto record = numbered_record();
  std::vector<std::unique_ptr<TcpSink>> sinks;
  SenderConfig config;
  for (int r = 0; r < 4; ++r) {
    sinks.push_back(std::make_unique<TcpSink>());
    config.endpoints.push_back(sinks.back()->endpoint());
  }
  {
    Mwa32tSender sender(record, config);  // no duration: until stop
    sender.start();
    for (int ms = 0; ms < 60'000 && sender.report().samples_sent() == 0; ++ms)
      std::this_thread::sleep_for(1ms);
    sender.stop();
    sender.join();  // comes back, although the schedule has no end
    EXPECT_FALSE(sender.running());
    EXPECT_GT(sender.report().samples_sent(), 0);
  }
  for (auto& sink : sinks) sink->stop();
}

TEST(Sender, BadConfigurationsAreRejected) {
  const auto record = numbered_record();
  const auto message = [&](const SenderConfig& config, const VoltageRecord& r) -> std::string {
    try {
      Mwa32tSender sender(r, config);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  SenderConfig config;
  config.endpoints.assign(3, "tcp://127.0.0.1:4000");
  EXPECT_THAT(message(config, record), testing::HasSubstr("3 endpoints for 4 receivers"));
  for (const char* text : {"127.0.0.1:1", "tcp://127.0.0.1", "tcp://:5", "udp://h:0", "tcp://h:x",
                           "tcp://h:70000", "sctp://h:1", "", "tcp://"}) {
    config.endpoints.assign(4, text);
    EXPECT_THAT(message(config, record), testing::HasSubstr("is not tcp://host:port")) << text;
  }
  config.endpoints.assign(4, "tcp://[::1]:4000");
  EXPECT_EQ(message(config, record), "no error");
  EXPECT_THAT(message(config, numbered_record(1 << 15)), testing::HasSubstr("16-bit marker"));
  config.endpoints.assign(4, "udp://127.0.0.1:4000");
  config.start_tick = 100;
  EXPECT_THAT(message(config, record), testing::HasSubstr("no multiple of the 256"));
  config.start_tick = 0;
  config.packet_samples = 300;
  EXPECT_THAT(message(config, record), testing::HasSubstr("do not divide"));
  config.packet_samples = 256;
  config.outages = {{.receiver = 4, .from_s = 0, .until_s = 1}};
  EXPECT_THAT(message(config, record), testing::HasSubstr("outage of receiver 4"));
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

TEST(Files, InterleavedAndGroupFilesHoldTheRecordFromAnyTick) {
  const auto record = numbered_record();
  const std::string folder =
      testing::TempDir() + "ryle_simulate_files_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  write_interleaved_file(record, folder + "/a.dat", 70'000, 65'000);
  const auto interleaved = bytes_of(folder + "/a.dat");
  ASSERT_EQ(interleaved.size(), 70'000u * 128);
  for (std::int64_t k = 0; k < 70'000; ++k) {
    ASSERT_EQ(std::memcmp(interleaved.data() + k * 128,
                          record.samples.data() + (65'000 + k) % record.n_samples * 64, 128),
              0);
  }
  for (int r = 0; r < 4; ++r) {
    const std::string name = folder + "/b.r" + std::to_string(r) + ".mwa";
    write_group_file(record, r, name, 70'000, 65'000);
    expect_groups(record, bytes_of(name), r, 65'000);
  }
  EXPECT_THROW(write_interleaved_file(record, folder + "/none/a.dat"), IoError);
  std::int64_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    n_files += entry.path().extension() != ".partial";
  }
  EXPECT_EQ(n_files, 5);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ryle::simulate
