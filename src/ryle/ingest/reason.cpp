// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/reason.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/ingest/source.hpp"

namespace ryle {

std::string_view name(Reason reason) {
  constexpr std::array<std::string_view, kReasons> kNames{
      "used",    "late",    "future",         "duplicate",      "conflict",       "overrun",
      "prelock", "control", "sender_invalid", "too_short",      "too_long",       "magic",
      "version", "length",  "field",          "foreign_sender", "foreign_stream", "time"};
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

std::string rejected_text(const IngestCounters& counters, const IngestCounters* before) {
  std::vector<std::pair<std::uint64_t, std::string>> reasons;
  std::uint64_t total = 0;
  for (const auto& [reason, n] : counters.rejected) {
    std::uint64_t more = n;
    if (before != nullptr) {
      const auto earlier = before->rejected.find(reason);
      if (earlier != before->rejected.end()) more -= std::min(n, earlier->second);
    }
    if (more > 0) reasons.emplace_back(more, reason);
    total += more;
  }
  std::ranges::stable_sort(reasons, std::greater<>{}, [](const auto& r) { return r.first; });
  std::string text;
  for (const auto& [n, reason] : reasons) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, reason);
    const auto last = counters.last_rejected.find(reason);
    if (last == counters.last_rejected.end()) continue;
    const RejectedPacket& p = last->second;
    text += " (the last from " + p.sender;
    if (p.bytes > 0 || !p.header.empty()) text += fmt::format(", {} bytes", p.bytes);
    text += (p.header.empty() ? "" : ": " + p.header) + ")";
  }
  if (!text.empty()) text = fmt::format("{} rejected: {}", total, text);
  const std::uint64_t rejected =
      counters.rejected_connections - (before != nullptr ? before->rejected_connections : 0);
  if (rejected > 0) {
    text += fmt::format("{}{} connections refused (the last from {})", text.empty() ? "" : "; ",
                        rejected, counters.last_rejected_connection);
  }
  return text;
}

std::int64_t IngestCounters::balance() const {
  std::uint64_t sum = used;
  for (const auto& [reason, n] : rejected) sum += n;
  return static_cast<std::int64_t>(received - sum);
}

}  // namespace ryle
