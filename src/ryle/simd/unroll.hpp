// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <utility>

#define RYLE_ALWAYS __attribute__((always_inline))
#define RYLE_INLINE inline RYLE_ALWAYS

/// The unnamed namespace is meant: a file compiled for one instruction set must not define an
/// inline function or a template that the linker could pick for other files.
namespace ryle::simd {
namespace {

/// body(Begin) ... body(End - 1) with constants: arrays indexed by them live in registers, which
/// loops unrolled later do not achieve.
template <int Begin, int End, class Body>
RYLE_INLINE void static_for(const Body& body) {
  [&]<int... kI>(std::integer_sequence<int, kI...>) RYLE_ALWAYS {
    (body(std::integral_constant<int, Begin + kI>{}), ...);
  }
  (std::make_integer_sequence<int, End - Begin>{});
}

}  // namespace
}  // namespace ryle::simd
