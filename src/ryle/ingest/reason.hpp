// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ryle/wire/packet.hpp"

namespace ryle {

/// Where a datagram (or a group of a stream transport) ends: `used` or one reason for refusing it.
/// README.md defines each; received = used + the sum of the others, always.
enum class Reason : std::uint8_t {
  used,
  late,
  future,
  duplicate,
  conflict,
  overrun,
  prelock,
  control,
  sender_invalid,
  too_short,
  too_long,
  magic,
  version,
  length,
  field,
  foreign_sender,
  foreign_stream,
  time,
};
inline constexpr std::size_t kReasons = 18;

std::string_view name(Reason reason);
/// The counter of a codec's refusal. @pre reject != none
Reason reason_of(wire::Reject reject);

using ReasonCounts = std::array<std::uint64_t, kReasons>;

}  // namespace ryle
