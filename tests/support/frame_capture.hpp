// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace ryle::test {

/// Writes capture files by the definition of their formats, for tests of what reads them.
class FrameCapture {
 public:
  using Bytes = std::vector<std::uint8_t>;
  static constexpr std::uint32_t kEthernet = 1, kNull = 0, kRaw = 101, kSll = 113, kSll2 = 276;

  explicit FrameCapture(std::uint32_t link = kEthernet, bool swapped = false) : link_(link) {
    const auto put = [&](std::uint32_t value, int n) {
      for (int k = 0; k < n; ++k)
        file_.push_back(static_cast<std::uint8_t>(value >> 8 * (swapped ? n - 1 - k : k)));
    };
    swapped_ = swapped;
    put(0xA1B23C4D, 4);  // nanoseconds
    put(2, 2);
    put(4, 2);
    put(0, 4);
    put(0, 4);
    put(65535, 4);
    put(link, 4);
  }

  /// "10.0.0.1" to "10.0.0.2", or both of IPv6.
  std::string from = "10.0.0.1", to = "10.0.0.2";
  std::uint16_t from_port = 7000, to_port = 4015;
  int n_vlan_tags = 0;
  std::size_t snap = 65535;  ///< records hold so many bytes at most

  /// One datagram, in fragments of `fragment` bytes of payload of IP (a multiple of 8) unless that
  /// is 0; `order` is that of the fragments, [] = ascending, and what it leaves out is not written.
  void udp(std::int64_t unix_ns, std::span<const std::byte> payload, std::size_t fragment = 0,
           std::vector<std::size_t> order = {}) {
    Bytes datagram;
    put_be(datagram, from_port, 2);
    put_be(datagram, to_port, 2);
    put_be(datagram, payload.size() + 8, 2);
    put_be(datagram, 0, 2);
    for (const std::byte b : payload) datagram.push_back(static_cast<std::uint8_t>(b));
    ++id_;
    if (fragment == 0) return record(unix_ns, framed(ip(17, datagram)));
    std::vector<Bytes> parts;
    for (std::size_t at = 0; at < datagram.size(); at += fragment) {
      const std::size_t end = std::min(datagram.size(), at + fragment);
      const auto begin = datagram.begin();
      parts.push_back(ip(
          17,
          Bytes(begin + static_cast<std::ptrdiff_t>(at), begin + static_cast<std::ptrdiff_t>(end)),
          true, at, end < datagram.size()));
    }
    if (order.empty())
      for (std::size_t k = 0; k < parts.size(); ++k) order.push_back(k);
    for (const std::size_t k : order) record(unix_ns, framed(parts[k]));
  }
  /// A packet of another protocol of IP.
  /// The next datagram is a part of the one of this number, counted from 1.
  void again(std::uint32_t number) { id_ = number - 1; }
  void other(std::int64_t unix_ns, std::uint8_t protocol) {
    record(unix_ns, framed(ip(protocol, Bytes(20))));
  }
  /// A record of any bytes.
  void record(std::int64_t unix_ns, const Bytes& bytes) {
    const auto kept = static_cast<std::uint32_t>(std::min(snap, bytes.size()));
    for (const std::int64_t value : {unix_ns / 1'000'000'000, unix_ns % 1'000'000'000,
                                     std::int64_t{kept}, static_cast<std::int64_t>(bytes.size())}) {
      for (int k = 0; k < 4; ++k)
        file_.push_back(static_cast<std::uint8_t>(value >> 8 * (swapped_ ? 3 - k : k)));
    }
    file_.insert(file_.end(), bytes.begin(), bytes.begin() + kept);
  }

  const Bytes& bytes() const { return file_; }
  void write(const std::string& path) const { write(path, file_); }
  static void write(const std::string& path, const Bytes& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  static void put_be(Bytes& bytes, std::uint64_t value, int n) {
    for (int k = n - 1; k >= 0; --k) bytes.push_back(static_cast<std::uint8_t>(value >> 8 * k));
  }
  bool v6() const { return from.find(':') != std::string::npos; }

  Bytes ip(std::uint8_t protocol, const Bytes& payload, bool fragment = false, std::size_t at = 0,
           bool more = false) const {
    Bytes packet;
    const auto put_address = [&packet](int family, const std::string& text, std::size_t n) {
      std::uint8_t address[16];
      inet_pton(family, text.c_str(), address);
      packet.insert(packet.end(), address, address + n);
    };
    if (v6()) {
      put_be(packet, 0x60000000, 4);
      put_be(packet, payload.size() + (fragment ? 8 : 0), 2);
      put_be(packet, fragment ? 44 : protocol, 1);
      put_be(packet, 64, 1);
      put_address(AF_INET6, from, 16);
      put_address(AF_INET6, to, 16);
      if (fragment) {
        put_be(packet, protocol, 1);
        put_be(packet, 0, 1);
        put_be(packet, at | (more ? 1 : 0), 2);
        put_be(packet, id_, 4);
      }
    } else {
      put_be(packet, 0x4600, 2);  // with 4 bytes of options
      put_be(packet, payload.size() + 24, 2);
      put_be(packet, id_, 2);
      put_be(packet, at / 8 | (more ? 0x2000 : 0), 2);
      put_be(packet, 64, 1);
      put_be(packet, protocol, 1);
      put_be(packet, 0, 2);
      put_address(AF_INET, from, 4);
      put_address(AF_INET, to, 4);
      put_be(packet, 0x01010101, 4);
    }
    packet.insert(packet.end(), payload.begin(), payload.end());
    return packet;
  }

  Bytes framed(const Bytes& packet) const {
    Bytes frame;
    const std::uint64_t type = v6() ? 0x86DD : 0x0800;
    if (link_ == kEthernet) {
      frame.resize(12);
      for (int k = 0; k < n_vlan_tags; ++k) put_be(frame, k == 0 ? 0x88A80005 : 0x81000007, 4);
      put_be(frame, type, 2);
    } else if (link_ == kSll) {
      frame.resize(14);
      put_be(frame, type, 2);
    } else if (link_ == kSll2) {
      put_be(frame, type, 2);
      frame.resize(20);
    } else if (link_ == kNull) {
      frame.resize(4);
    }
    frame.insert(frame.end(), packet.begin(), packet.end());
    while (link_ == kEthernet && frame.size() < 60)
      frame.push_back(0xEE);  // padding of short frames
    return frame;
  }

  std::uint32_t link_;
  bool swapped_ = false;
  std::uint32_t id_ = 0;
  Bytes file_;
};

}  // namespace ryle::test
