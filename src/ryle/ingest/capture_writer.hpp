// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace ryle {

/// Writes UDP datagrams as a PCAP file (libpcap's classic format, times in nanoseconds, raw IP)
/// that tcpdump and Wireshark read. A datagram gets the IP and UDP headers it came with, as far as
/// addresses and ports tell; checksums of UDP are left out over IPv4.
class CaptureWriter {
 public:
  /// The file appears under its name when finish() is called. Throws IoError.
  explicit CaptureWriter(std::string path);
  /// Removes what was not finished.
  ~CaptureWriter();
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  /// `from`, `to`: a sockaddr each, of one family, IPv4 or IPv6. Throws IoError.
  void write(std::span<const std::byte> datagram, const void* from, const void* to,
             std::int64_t unix_ns);
  void finish();

  std::uint64_t datagrams() const { return datagrams_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void put(const void* data, std::size_t bytes);

  std::string path_, partial_;
  std::FILE* file_ = nullptr;
  std::uint64_t datagrams_ = 0, bytes_ = 0;
};

}  // namespace ryle
