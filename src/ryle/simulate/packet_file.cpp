// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/packet_file.hpp"

#include <arpa/inet.h>

#include <array>
#include <cmath>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/simulate/unix_time.hpp"
#include "ryle/simulate/whole_file.hpp"

namespace ryle::simulate {
namespace {

constexpr std::uint16_t kSourcePort = 4000;

/// Fields one after the other, in the order of the network or of this file's words.
class Bytes {
 public:
  void big(std::uint64_t value, int n) {
    for (int k = n; k-- > 0;) bytes_.push_back(static_cast<std::byte>(value >> (8 * k) & 255));
  }
  void little(std::uint64_t value, int n) {
    for (int k = 0; k < n; ++k) bytes_.push_back(static_cast<std::byte>(value >> (8 * k) & 255));
  }
  void raw(std::span<const std::uint8_t> values) {
    for (const std::uint8_t v : values) bytes_.push_back(std::byte{v});
  }
  std::span<std::byte> from(std::size_t at) { return std::span(bytes_).subspan(at); }
  std::size_t size() const { return bytes_.size(); }
  const std::byte* data() const { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

/// The one's complement of the one's complement sum of 16-bit words (RFC 1071).
std::uint16_t internet_checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t k = 0; k + 1 < bytes.size(); k += 2) {
    sum += std::to_integer<std::uint32_t>(bytes[k]) << 8 |
           std::to_integer<std::uint32_t>(bytes[k + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void add_ip_v4(Bytes& b, const std::array<std::uint8_t, 4>& to, std::size_t payload_bytes) {
  const std::size_t at = b.size();
  b.big(0x4500, 2);
  b.big(20 + payload_bytes, 2);
  b.big(0, 2);
  b.big(0x4000, 2);  // do not fragment
  b.big(64, 1);
  b.big(17, 1);  // UDP
  b.big(0, 2);
  b.raw(std::array<std::uint8_t, 4>{127, 0, 0, 1});
  b.raw(to);
  const std::uint16_t sum = internet_checksum(b.from(at));
  b.from(at)[10] = static_cast<std::byte>(sum >> 8);
  b.from(at)[11] = static_cast<std::byte>(sum & 255);
}

void add_ip_v6(Bytes& b, const std::array<std::uint8_t, 16>& to, std::size_t payload_bytes) {
  b.big(0x60000000, 4);
  b.big(payload_bytes, 2);
  b.big(17, 1);
  b.big(64, 1);
  std::array<std::uint8_t, 16> from{};
  from[15] = 1;
  b.raw(from);
  b.raw(to);
}

}  // namespace

struct PacketFile::File : detail::WholeFile {
  using WholeFile::WholeFile;
};

PacketFile::PacketFile(const std::string& path, std::int64_t start_tai_ns)
    : file_(std::make_unique<File>(path)) {
  const auto start = detail::unix_time(start_tai_ns);
  start_unix_ns_ = start.s * 1'000'000'000 + start.ns;
  Bytes b;
  b.little(0xA1B23C4D, 4);  // nanoseconds
  b.little(2, 2);
  b.little(4, 2);
  b.little(0, 8);
  b.little(1 << 18, 4);
  b.little(1, 4);  // Ethernet
  file_->write(b.data(), b.size());
}
PacketFile::~PacketFile() = default;

void PacketFile::add(double seconds, const Endpoint& to, std::span<const std::byte> packet) {
  std::array<std::uint8_t, 4> v4{127, 0, 0, 1};
  std::array<std::uint8_t, 16> v6{};
  const bool is_v6 = inet_pton(AF_INET6, to.host.c_str(), v6.data()) == 1;
  if (inet_pton(AF_INET, to.host.c_str(), v4.data()) != 1) v4 = {127, 0, 0, 1};
  const std::size_t udp_bytes = 8 + packet.size();
  if (udp_bytes + 20 > 65'535)
    throw FormatError("a datagram of " + std::to_string(packet.size()) +
                      " bytes does not fit into a packet of IP");
  Bytes b;
  b.raw(std::array<std::uint8_t, 12>{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1});
  b.big(is_v6 ? 0x86DD : 0x0800, 2);
  is_v6 ? add_ip_v6(b, v6, udp_bytes) : add_ip_v4(b, v4, udp_bytes);
  b.big(kSourcePort, 2);
  b.big(to.port, 2);
  b.big(udp_bytes, 2);
  b.big(0, 2);  // no checksum
  const std::int64_t ns = start_unix_ns_ + std::llround(seconds * 1e9);
  Bytes head;
  head.little(static_cast<std::uint64_t>(ns / 1'000'000'000), 4);
  head.little(static_cast<std::uint64_t>(ns % 1'000'000'000), 4);
  head.little(b.size() + packet.size(), 4);
  head.little(b.size() + packet.size(), 4);
  file_->write(head.data(), head.size());
  file_->write(b.data(), b.size());
  file_->write(packet.data(), packet.size());
  ++n_packets_;
}

void PacketFile::publish() { file_->publish(); }

}  // namespace ryle::simulate
