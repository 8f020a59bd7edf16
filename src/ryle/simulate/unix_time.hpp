// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/units.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::simulate::detail {

/// POSIX seconds and the nanoseconds that follow.
struct UnixTime {
  std::int64_t s = 0, ns = 0;
};

/// The inverse of tai_ns_from_unix().
inline UnixTime unix_time(std::int64_t tai_ns) {
  std::int64_t unix_s = tai_ns / kSecond_ns;
  // UTC is behind TAI by tens of seconds: two steps of the fixed-point iteration are enough.
  for (int i = 0; i < 3; ++i) unix_s -= (tai_ns_from_unix(unix_s) - tai_ns) / kSecond_ns;
  if (tai_ns_from_unix(unix_s) > tai_ns) --unix_s;
  return {unix_s, tai_ns - tai_ns_from_unix(unix_s)};
}

}  // namespace ryle::simulate::detail
