// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <vector>

#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/ingest/source.hpp"

namespace ryle::pipeline {

/// Levels of the inputs of a live source, from a few of the samples of a chunk: what tells a dead
/// input and one that is cut from the others. Spectra are unpacked for it: not for every chunk.
class LiveLevels {
 public:
  /// rms of one part over samples that arrived, in steps of the quantiser; 0 where none did.
  /// @shape [input]. @pre the chunk is of the source and not yet released
  std::vector<double> of(const ChunkSource& source, const Chunk& chunk);

 private:
  std::unique_ptr<SpectraBlocks> blocks_;  // made when spectra come first
};

}  // namespace ryle::pipeline
