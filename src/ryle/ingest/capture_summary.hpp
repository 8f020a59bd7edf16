// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ryle/ingest/capture_file.hpp"

namespace ryle {

/// The datagrams of a capture that went to one address and port.
struct CaptureStream {
  std::string to;                                ///< "10.0.0.2:4015"
  std::map<std::string, std::uint64_t> senders;  ///< datagrams of each
  std::map<std::size_t, std::uint64_t> lengths;  ///< datagrams of each length in bytes
  std::uint64_t datagrams = 0, bytes = 0;
  std::int64_t first_ns = 0, last_ns = 0;  ///< Unix time
  std::string format;  ///< packet_format() of the first that has one; "" = none has
};

struct CaptureSummary {
  std::string link;
  std::int64_t first_ns = 0, last_ns = 0;
  CaptureCounts counts;
  bool ends_within_record = false;
  std::vector<CaptureStream> streams;  ///< the largest first
};

/// Reads a capture to its end. Throws as CaptureReader does.
CaptureSummary summarize_capture(const std::string& path);

/// The name that a packet of one of the known formats has in source.format, from its first bytes
/// and its length; "" where it is none. CHIPS packets have no mark of their own: what looks like
/// one may be another's.
std::string packet_format(std::span<const std::byte> datagram);

}  // namespace ryle
