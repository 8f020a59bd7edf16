// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle {

/// Product of sizes; throws ConfigError naming `what` on overflow or a negative factor.
inline std::int64_t checked_product(std::initializer_list<std::int64_t> factors, const char* what) {
  std::int64_t product = 1;
  for (const auto f : factors) {
    if (f < 0 || __builtin_mul_overflow(product, f, &product)) {
      throw ConfigError(std::string("size of ") + what + " is negative or exceeds 64 bits");
    }
  }
  return product;
}

}  // namespace ryle
