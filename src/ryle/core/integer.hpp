// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace ryle {

/// floor(a / b), b > 0: division of times, which may lie before zero.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace ryle
