// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// PCAP files of UDP datagrams as they are written: times in nanoseconds, Ethernet, IPv4 or IPv6.
// Files of others are read by ingest/capture_file.hpp.

namespace ryle::wire {

inline constexpr std::size_t kPcapFileHeaderBytes = 24;
/// Room for the headers of a record: 16 of PCAP, 14 of Ethernet, 40 of IPv6, 8 of UDP.
inline constexpr std::size_t kPcapRecordHeaderBytes = 78;
/// Largest datagram of a record.
inline constexpr std::size_t kPcapMaxDatagramBytes = 65'507;

struct UdpAddress {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> ip{};  ///< in the order of the network; IPv4: the first four
  std::uint16_t port = 0;
};

void put_pcap_file_header(std::span<std::byte, kPcapFileHeaderBytes> out) noexcept;

/// What stands before a datagram in its record; returns its bytes. IP has its checksum, UDP over
/// IPv6 too (over IPv4 it may be left out, and is).
/// @pre both addresses of one family, datagram.size() <= kPcapMaxDatagramBytes
std::size_t put_pcap_record_header(const UdpAddress& from, const UdpAddress& to,
                                   std::int64_t unix_ns, std::span<const std::byte> datagram,
                                   std::span<std::byte, kPcapRecordHeaderBytes> out) noexcept;

}  // namespace ryle::wire
