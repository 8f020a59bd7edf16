// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/packet.hpp"

#include <array>

namespace ryle::wire {

std::string_view name(Reject reject) {
  constexpr std::array<std::string_view, 10> kNames{
      "none",   "too_short", "too_long",       "magic",   "version",
      "length", "field",     "foreign_stream", "control", "sender_invalid"};
  const auto index = static_cast<std::size_t>(reject);
  return index < kNames.size() ? kNames[index] : std::string_view("unknown");
}

}  // namespace ryle::wire
