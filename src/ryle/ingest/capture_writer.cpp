// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/capture_writer.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/wire/bytes.hpp"

namespace ryle {
namespace {

constexpr std::uint32_t kMagic_ns = 0xA1B23C4D;
constexpr std::uint32_t kRawIp = 101;
constexpr std::uint32_t kSnapshotBytes = 1 << 18;
constexpr std::size_t kRecordBytes = 16, kUdpBytes = 8, kIpv4Bytes = 20, kIpv6Bytes = 40;

/// The checksum of RFC 1071, as it is stored.
std::uint16_t internet_checksum(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
  for (std::size_t k = 0; k < bytes.size(); ++k)
    sum += std::to_integer<std::uint32_t>(bytes[k]) << (k % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

template <class T>
T address_of(const void* address) {
  T copy;
  std::memcpy(&copy, address, sizeof copy);
  return copy;
}

std::uint16_t family_of(const void* address) { return address_of<sockaddr>(address).sa_family; }

void put_ports(std::byte* udp, std::uint16_t from_port, std::uint16_t to_port, std::size_t bytes) {
  std::memcpy(udp, &from_port, 2);  // both in the order of the network already
  std::memcpy(udp + 2, &to_port, 2);
  wire::store_be(udp + 4, static_cast<std::uint16_t>(kUdpBytes + bytes));
}

std::size_t put_ipv4(std::byte* ip, const void* from, const void* to, std::size_t bytes) {
  const auto a = address_of<sockaddr_in>(from), b = address_of<sockaddr_in>(to);
  ip[0] = std::byte{0x45};
  wire::store_be(ip + 2, static_cast<std::uint16_t>(kIpv4Bytes + kUdpBytes + bytes));
  wire::store_be(ip + 6, std::uint16_t{0x4000});  // not to be fragmented
  ip[8] = std::byte{64};
  ip[9] = std::byte{IPPROTO_UDP};
  std::memcpy(ip + 12, &a.sin_addr, 4);
  std::memcpy(ip + 16, &b.sin_addr, 4);
  wire::store_be(ip + 10, internet_checksum({ip, kIpv4Bytes}));
  put_ports(ip + kIpv4Bytes, a.sin_port, b.sin_port, bytes);
  return kIpv4Bytes + kUdpBytes;
}

std::size_t put_ipv6(std::byte* ip, const void* from, const void* to,
                     std::span<const std::byte> datagram) {
  const auto a = address_of<sockaddr_in6>(from), b = address_of<sockaddr_in6>(to);
  ip[0] = std::byte{0x60};
  wire::store_be(ip + 4, static_cast<std::uint16_t>(kUdpBytes + datagram.size()));
  ip[6] = std::byte{IPPROTO_UDP};
  ip[7] = std::byte{64};
  std::memcpy(ip + 8, &a.sin6_addr, 16);
  std::memcpy(ip + 24, &b.sin6_addr, 16);
  std::byte* udp = ip + kIpv6Bytes;
  put_ports(udp, a.sin6_port, b.sin6_port, datagram.size());
  // Needed over IPv6: of the addresses, the length, the protocol and all that follows.
  std::uint32_t sum = IPPROTO_UDP + static_cast<std::uint32_t>(kUdpBytes + datagram.size());
  sum += static_cast<std::uint16_t>(~internet_checksum({ip + 8, 32}));
  sum += static_cast<std::uint16_t>(~internet_checksum({udp, kUdpBytes}));
  const std::uint16_t checksum = internet_checksum(datagram, sum);
  wire::store_be(udp + 6, checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
  return kIpv6Bytes + kUdpBytes;
}

}  // namespace

CaptureWriter::CaptureWriter(std::string path) : path_(std::move(path)), partial_(path_ + ".part") {
  file_ = std::fopen(partial_.c_str(), "wb");
  if (file_ == nullptr) throw IoError::from_errno("create", partial_, errno, true);
  std::byte header[24]{};
  wire::store_le(header, kMagic_ns);
  wire::store_le(header + 4, std::uint16_t{2});
  wire::store_le(header + 6, std::uint16_t{4});
  wire::store_le(header + 16, kSnapshotBytes);
  wire::store_le(header + 20, kRawIp);
  put(header, sizeof header);
}

CaptureWriter::~CaptureWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  ::unlink(partial_.c_str());
}

void CaptureWriter::put(const void* data, std::size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) != bytes)
    throw IoError::from_errno("write", partial_, errno, true);
  bytes_ += bytes;
}

void CaptureWriter::write(std::span<const std::byte> datagram, const void* from, const void* to,
                          std::int64_t unix_ns) {
  record_.assign(kRecordBytes + kIpv6Bytes + kUdpBytes, std::byte{0});
  std::byte* ip = record_.data() + kRecordBytes;
  const std::size_t headers = family_of(from) == AF_INET6 ? put_ipv6(ip, from, to, datagram)
                                                          : put_ipv4(ip, from, to, datagram.size());
  const auto length = static_cast<std::uint32_t>(headers + datagram.size());
  wire::store_le(record_.data(), static_cast<std::uint32_t>(unix_ns / 1'000'000'000));
  wire::store_le(record_.data() + 4, static_cast<std::uint32_t>(unix_ns % 1'000'000'000));
  wire::store_le(record_.data() + 8, length);
  wire::store_le(record_.data() + 12, length);
  put(record_.data(), kRecordBytes + headers);
  put(datagram.data(), datagram.size());
  ++datagrams_;
}

void CaptureWriter::finish() {
  std::FILE* file = file_;
  file_ = nullptr;
  const bool flushed = std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int reason = errno;
  std::fclose(file);
  if (!flushed) {
    ::unlink(partial_.c_str());
    throw IoError::from_errno("write", partial_, reason, true);
  }
  if (std::rename(partial_.c_str(), path_.c_str()) != 0)
    throw IoError::from_errno("rename to", path_, errno, true);
}

}  // namespace ryle
