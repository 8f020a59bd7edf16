// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ryle/wire/described.hpp"

namespace ryle {

/// Shows what a description makes of datagrams, and where the two differ: for whoever writes a
/// [source.packet] for an array.
class DatagramReport {
 public:
  /// `codec` may take any stream, or those of an observation.
  explicit DatagramReport(wire::DescribedCodec codec);

  /// What one datagram says, in a few lines: fields, time, samples; or why it is rejected, with the
  /// field and both values. Counts it.
  std::string take(std::span<const std::byte> datagram);

  /// Of all taken: accepted and rejected by reason, streams, and what does not fit: steps of the
  /// counter other than those described, constants that vary, other lengths.
  std::vector<std::string> summary() const;
  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t rejected() const;

 private:
  std::string reason(std::span<const std::byte> datagram, wire::Reject reject) const;
  std::string samples(std::span<const std::byte> payload) const;
  void note_step(std::span<const std::byte> datagram, const wire::Packet& packet);

  wire::DescribedCodec codec_;
  wire::PayloadMap map_;
  std::uint64_t accepted_ = 0;
  std::map<std::string, std::uint64_t> rejected_;
  std::map<std::size_t, std::uint64_t> lengths_;
  /// [numbers of board and channel as sent]
  std::map<std::vector<std::uint64_t>, std::uint64_t> last_counter_;
  std::map<std::uint64_t, std::uint64_t> steps_;
};

/// "4d 57 33 32", at most `limit` bytes.
std::string hex_bytes(std::span<const std::byte> bytes, std::size_t limit);

}  // namespace ryle
