// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/reason.hpp"

#include "ryle/core/error.hpp"
#include "ryle/ingest/source.hpp"

namespace ryle {

std::string_view name(Reason reason) {
  constexpr std::array<std::string_view, kReasons> kNames{
      "used",    "late",    "future",         "duplicate",      "conflict",      "overrun",
      "prelock", "control", "sender_invalid", "too_short",      "too_long",      "magic",
      "version", "length",  "field",          "foreign_sender", "foreign_stream"};
  return kNames[static_cast<std::size_t>(reason)];
}

Reason reason_of(wire::Reject reject) {
  switch (reject) {
    case wire::Reject::none:
      break;
    case wire::Reject::too_short:
      return Reason::too_short;
    case wire::Reject::too_long:
      return Reason::too_long;
    case wire::Reject::magic:
      return Reason::magic;
    case wire::Reject::version:
      return Reason::version;
    case wire::Reject::length:
      return Reason::length;
    case wire::Reject::field:
      return Reason::field;
    case wire::Reject::foreign_stream:
      return Reason::foreign_stream;
    case wire::Reject::control:
      return Reason::control;
    case wire::Reject::sender_invalid:
      return Reason::sender_invalid;
  }
  RYLE_ASSERT(reject != wire::Reject::none);
  return Reason::field;
}

std::int64_t IngestCounters::balance() const {
  std::uint64_t sum = used;
  for (const auto& [reason, n] : rejected) sum += n;
  return static_cast<std::int64_t>(received - sum);
}

}  // namespace ryle
