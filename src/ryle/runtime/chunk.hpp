// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/time.hpp"
#include "ryle/device/buffer.hpp"

namespace ryle {

/// Unit of the ring between ingest and the first engine: a fixed buffer of payload, the time of its
/// first sample and what of it never arrived. All chunks are allocated at start (ingest.md 5).
struct Chunk {
  Buffer<std::byte> payload;  ///< layout fixed by the format (RecordingInfo / ReceiverInfo)
  Tick first_tick = 0;
  std::int64_t n_ticks = 0;
  std::int64_t sequence =
      0;                     ///< consecutive; a gap = chunks dropped whole (they are not delivered)
  std::int64_t segment = 0;  ///< increments when the sender's clock was restarted: products rotate
  /// Absolute ticks, as first_tick; inside [first_tick, first_tick + n_ticks); sorted by input then
  /// time, maximal runs.
  std::vector<AbsentSpan> absent;
};

}  // namespace ryle
