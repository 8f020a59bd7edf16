// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/pcap.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint32_t kNanosecondMagic = 0xA1B23C4D;
constexpr std::uint32_t kEthernetLink = 1;
constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::size_t kUdpHeaderBytes = 8;

/// One's complement sum of 16-bit words (RFC 1071), an odd last byte the high half of one.
std::uint32_t words_sum(std::span<const std::byte> bytes, std::uint32_t sum = 0) noexcept {
  for (std::size_t k = 0; k < bytes.size(); ++k)
    sum += std::to_integer<std::uint32_t>(bytes[k]) << (k % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

void put_ip(std::byte* to, const UdpAddress& address) noexcept {
  std::memcpy(to, address.ip.data(), address.is_v6 ? 16 : 4);
}

/// Returns its bytes.
std::size_t put_ip_header(std::byte* ip, const UdpAddress& from, const UdpAddress& to,
                          std::size_t udp_bytes) noexcept {
  if (from.is_v6) {
    ip[0] = std::byte{0x60};
    store_be(ip + 4, static_cast<std::uint16_t>(udp_bytes));
    store_be(ip + 6, kUdpProtocol);
    ip[7] = std::byte{64};
    put_ip(ip + 8, from);
    put_ip(ip + 24, to);
    return 40;
  }
  ip[0] = std::byte{0x45};
  store_be(ip + 2, static_cast<std::uint16_t>(20 + udp_bytes));
  store_be(ip + 6, std::uint16_t{0x4000});  // not to be fragmented
  ip[8] = std::byte{64};
  store_be(ip + 9, kUdpProtocol);
  put_ip(ip + 12, from);
  put_ip(ip + 16, to);
  store_be(ip + 10, static_cast<std::uint16_t>(~words_sum({ip, 20})));
  return 20;
}

}  // namespace

void put_pcap_file_header(std::span<std::byte, kPcapFileHeaderBytes> out) noexcept {
  std::ranges::fill(out, std::byte{0});
  store_le(out.data(), kNanosecondMagic);
  store_le(out.data() + 4, std::uint16_t{2});
  store_le(out.data() + 6, std::uint16_t{4});
  store_le(out.data() + 16, std::uint32_t{1} << 18);  // longest record
  store_le(out.data() + 20, kEthernetLink);
}

std::size_t put_pcap_record_header(const UdpAddress& from, const UdpAddress& to,
                                   std::int64_t unix_ns, std::span<const std::byte> datagram,
                                   std::span<std::byte, kPcapRecordHeaderBytes> out) noexcept {
  std::ranges::fill(out, std::byte{0});
  std::byte* ethernet = out.data() + 16;
  // Addresses that are administered locally: nobody's.
  ethernet[0] = ethernet[5] = ethernet[6] = std::byte{2};
  ethernet[11] = std::byte{1};
  store_be(ethernet + 12, from.is_v6 ? std::uint16_t{0x86DD} : std::uint16_t{0x0800});
  std::byte* ip = ethernet + 14;
  const std::size_t udp_bytes = kUdpHeaderBytes + datagram.size();
  const std::size_t ip_bytes = put_ip_header(ip, from, to, udp_bytes);
  std::byte* udp = ip + ip_bytes;
  store_be(udp, from.port);
  store_be(udp + 2, to.port);
  store_be(udp + 4, static_cast<std::uint16_t>(udp_bytes));
  if (from.is_v6) {
    // Of the addresses, length and protocol, and all that follows.
    std::uint32_t sum =
        words_sum({ip + 8, 32}) + kUdpProtocol + static_cast<std::uint32_t>(udp_bytes);
    sum = words_sum(datagram, words_sum({udp, kUdpHeaderBytes}, sum));
    const auto checksum = static_cast<std::uint16_t>(~sum);
    store_be(udp + 6, checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
  }
  const auto frame = static_cast<std::uint32_t>(14 + ip_bytes + udp_bytes);
  store_le(out.data(), static_cast<std::uint32_t>(unix_ns / 1'000'000'000));
  store_le(out.data() + 4, static_cast<std::uint32_t>(unix_ns % 1'000'000'000));
  store_le(out.data() + 8, frame);
  store_le(out.data() + 12, frame);
  return 16 + 14 + ip_bytes + kUdpHeaderBytes;
}

}  // namespace ryle::wire
