// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/time.hpp"

namespace ryle {

/// Samples [begin, end) of one input that never arrived or must not be used. A list of these is the
/// presence mask in the form engines take it: exact, and cheap because losses are rare. Spans may
/// overlap and come in any order.
struct AbsentSpan {
  std::int64_t input = 0;
  Tick begin = 0;
  Tick end = 0;
  friend bool operator==(const AbsentSpan&, const AbsentSpan&) = default;
};

}  // namespace ryle
