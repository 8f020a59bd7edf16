// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <utility>

namespace ryle::search::detail {
namespace {

/// body(0), body(1) ... body(kN - 1) with constants: arrays indexed by them live in registers,
/// which loops unrolled later do not achieve.
template <int kN, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<int... kI>(std::integer_sequence<int, kI...>) {
    (body(std::integral_constant<int, kI>{}), ...);
  }
  (std::make_integer_sequence<int, kN>{});
}

}  // namespace
}  // namespace ryle::search::detail
