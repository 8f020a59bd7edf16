// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ryle {

/// One UDP datagram of a capture.
struct CapturedDatagram {
  std::span<const std::byte> payload;  ///< valid until the next call of CaptureReader::next()
  std::int64_t unix_ns = 0;            ///< as recorded (of its last fragment)
  sockaddr_storage from{}, to{};       ///< IPv4 or IPv6
  bool cut = false;                    ///< the record holds only its beginning
};

/// Where the records of a capture end: records = datagrams + not_ip + not_udp + damaged + fragments
/// + joined.
struct CaptureCounts {
  std::uint64_t records = 0;
  std::uint64_t datagrams = 0;  ///< of UDP, whole or cut
  std::uint64_t cut = 0;        ///< of them
  std::uint64_t joined = 0;     ///< fragments that completed a datagram with others, less one each
  std::uint64_t fragments = 0;  ///< whose datagram never became whole
  std::uint64_t not_ip = 0, not_udp = 0;
  std::uint64_t damaged = 0;  ///< headers that cannot be
};

/// Reads the UDP datagrams of a capture file, PCAP or PCAPNG, in the order of its records: Ethernet
/// with any VLAN tags, Linux cooked captures (SLL, SLL2), raw IP and loopback; IPv4 and IPv6,
/// fragments of both put together. What tcpdump and Wireshark write.
class CaptureReader {
 public:
  /// Throws IoError where there is no such file, FormatError where it is no capture or one of a
  /// link that Ryle does not know, UnsupportedError in a build without libpcap.
  explicit CaptureReader(const std::string& path);
  ~CaptureReader();
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  /// The next datagram; false at the end. A last record that is not whole, as a capture that was
  /// killed has, is the end too: ends_within_record(). Throws FormatError where the file is
  /// damaged.
  bool next(CapturedDatagram& datagram);
  bool ends_within_record() const;
  const CaptureCounts& counts() const;
  /// "Ethernet", "Linux cooked v2", ...
  std::string link() const;
  /// Of the first and the last record read so far, Unix time; 0 before.
  std::int64_t first_ns() const;
  std::int64_t last_ns() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What of a capture was left out: "5 records not UDP, 2 fragments of datagrams that are not
/// whole";
/// "" when nothing was.
std::string left_out_text(const CaptureCounts& counts);

/// Unix time of the first record. Throws as CaptureReader does; FormatError where there is none.
std::int64_t capture_start_unix_ns(const std::string& path);

/// Whether this build reads captures (libpcap).
bool captures_supported();

/// The file begins as a PCAP or PCAPNG file does.
bool is_capture_file(const std::string& path);

}  // namespace ryle
