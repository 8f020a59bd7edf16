// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/ingest/receiver_source.hpp"

namespace ryle {

/// A live source of channelized voltages, whatever its packets look like. The run asks for its
/// sizes, and turns chunks into planar blocks; all else is the source's own.
///
///     SpectraBlocks spectra(source.shape());
///     source.start();
///     while (!source.ended()) {
///       Chunk* chunk = source.next(std::chrono::milliseconds(100));
///       if (chunk == nullptr) continue;
///       const SampleClock clock = source.clock(chunk->segment);
///       source.unpack(*chunk, spectra);   // [channel][block][input], valid bits
///       source.release(chunk);
///       engine.execute(queue, {spectra.blocks(), spectra.n_spectra, spectra.valid(), ...});
///     }
class SpectraSource : public ReceiverSource {
 public:
  virtual SpectraShape shape() const = 0;
  /// Centers of the channels, in the order of the blocks: ascending.
  virtual FrequencyAxis channels() const = 0;
  /// Counts spectra. Of the chunks of one segment, however many have begun since: an F-engine that
  /// was started again need not keep its grid. @pre a chunk of it was taken and is not yet released
  virtual SampleClock clock(std::int64_t segment) const = 0;
  /// @pre `spectra` was made for shape()
  virtual void unpack(const Chunk& chunk, SpectraBlocks& spectra) const = 0;

 protected:
  using ReceiverSource::ReceiverSource;
};

}  // namespace ryle
