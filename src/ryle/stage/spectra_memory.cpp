// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/spectra_memory.hpp"

#include <algorithm>

#include "ryle/engine/correlate/correlator.hpp"
#include "ryle/ingest/fengine_blocks.hpp"

namespace ryle::stage {

MemoryItems live_spectra_memory(const ObservationConfig& config,
                                const FengineSourceConfig& receiver, const image::AllSkyConfig& sky,
                                const SkyPlan& images) {
  const FengineLayout layout = fengine_layout(receiver);
  FengineLayout cut = layout;
  cut.chunk_spectra = std::min(layout.chunk_spectra, sky.n_spectra_per_image);
  MemoryItems items{{"ring of chunks", fengine_source_chunk_bytes(receiver)},
                    {"blocks of one chunk", spectra_blocks_bytes(layout)},
                    {"blocks cut at the end of an image", spectra_blocks_bytes(cut)}};
  if (!image::takes_voltages(images.path)) {
    correlate::Config x;
    x.n_inputs = layout.n_inputs;
    x.n_channels = layout.n_channels;
    x.format = SampleFormat::ci4;
    x.max_spectra = layout.chunk_spectra;
    x.implementation = config.correlate.implementation;
    const correlate::Cost cost = correlate::cost(x);
    items.emplace_back("correlator of the imager", cost.accumulator_bytes + cost.scratch_bytes);
  }
  items.emplace_back("all-sky imager", images.bytes);
  const auto pixels = image::n_bins(sky) * image::n_planes(sky) * sky.n_pixels * sky.n_pixels;
  // One is being made, one is being written.
  items.emplace_back("images that wait for the disk",
                     (config.image.queue + 2) * pixels * static_cast<std::int64_t>(sizeof(float)));
  return items;
}

std::int64_t total_bytes(const MemoryItems& items) {
  std::int64_t total = 0;
  for (const auto& [what, bytes] : items) total += bytes;
  return total;
}

}  // namespace ryle::stage
