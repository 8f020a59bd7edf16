// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ryle/core/endpoint.hpp"

namespace ryle::simulate {

/// The datagrams of a sender as a PCAP file (nanoseconds, Ethernet, IPv4 or IPv6), as tcpdump keeps
/// them. It takes its name only when whole.
class PacketFile {
 public:
  /// Throws IoError.
  PacketFile(const std::string& path, std::int64_t start_tai_ns);
  ~PacketFile();
  PacketFile(const PacketFile&) = delete;
  PacketFile& operator=(const PacketFile&) = delete;

  /// A datagram `seconds` after the start. Hosts that are names are written as 127.0.0.1.
  void add(double seconds, const Endpoint& to, std::span<const std::byte> packet);
  std::int64_t n_packets() const { return n_packets_; }
  void publish();

 private:
  struct File;
  std::unique_ptr<File> file_;
  std::int64_t start_unix_ns_;
  std::int64_t n_packets_ = 0;
};

}  // namespace ryle::simulate
