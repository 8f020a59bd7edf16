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

/// Spectra [begin, end) of channels [channel_begin, channel_end) that never arrived, of all inputs:
/// what is lost when a frame holds some channels of every input.
struct ChannelGap {
  std::int64_t channel_begin = 0;
  std::int64_t channel_end = 0;
  Tick begin = 0;
  Tick end = 0;
  friend bool operator==(const ChannelGap&, const ChannelGap&) = default;
};

}  // namespace ryle
