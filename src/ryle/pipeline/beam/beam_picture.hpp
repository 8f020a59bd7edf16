// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/config/config.hpp"

namespace ryle::pipeline {

/// NAME_BEAM.png of the first beams.pictures rows: the dynamic spectrum over the mean of each
/// channel, and the bandpass. Time and frequency are averaged to what fits a picture, whatever the
/// length of the run. Works on the engine's thread; pictures are written in finish(). Cells of
/// which nothing arrived do not count. Segments after the first are left out, as they have another
/// time.
class BeamPictures final : public BeamConsumer {
 public:
  BeamPictures(const ObservationConfig& config, const BeamStream& stream);

  void take(const BeamChunk& chunk) override;
  void finish(RunSummary& summary) override;
  std::int64_t memory_bytes() const override;

 private:
  void coarsen();
  void write(std::int64_t beam, const std::string& path) const;

  const ObservationConfig& config_;
  BeamStream stream_;
  std::int64_t n_beams_, per_row_, n_rows_;
  std::int64_t per_column_ = 1;  ///< samples
  std::int64_t segment_ = -1, first_sample_ = 0, n_columns_ = 0;
  SampleClock clock_;
  std::vector<float> sums_, counts_;        ///< [beam][row][column]
  std::vector<double> band_, band_counts_;  ///< [beam][channel]
};

}  // namespace ryle::pipeline
