// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/run_memory.hpp"

#include <algorithm>

#include "ryle/core/baseline.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"

namespace ryle::pipeline {
namespace {

std::int64_t sums_bytes(const FxChain::Setup& setup) {
  const auto& f = setup.channelize;
  const correlate::Config x{f.n_inputs, f.n_channels, f.output, setup.spectra_per_gulp,
                            setup.correlate.implementation};
  return correlate::cost(x).accumulator_bytes;
}

}  // namespace

std::optional<PlannedImages> plan_live_images(const ObservationConfig& config,
                                              const ArrayLayout& array,
                                              const SpectraMetadata& metadata) {
  if (!wants_images(config)) return std::nullopt;
  Queue queue = make_queue(config.runtime);
  const Cadence cadence =
      make_cadence(config.image.cadence_s, metadata.clock.rate_hz.value(), metadata.n_spectra);
  PlannedImages images;
  images.sky = make_sky_config(config, array, metadata.frequency, cadence.spectra_per_image, {});
  images.plan = choose_path(config, images.sky, queue);
  return images;
}

std::int64_t correlator_bytes(const SpectraChain::Setup& setup) {
  const correlate::Cost cost = correlate::cost(correlator_config(setup));
  return cost.accumulator_bytes + cost.scratch_bytes;
}

MemoryItems::value_type waiting_dumps(const ObservationConfig& config, std::int64_t n_inputs,
                                      std::int64_t n_channels) {
  constexpr std::int64_t kSumBytes = 20;  // int64 complex and a count
  return {"dumps that wait for the disk",
          (config.runtime.dump_queue + 2) * n_pairs(n_inputs) * n_channels * kSumBytes};
}

void append_image_memory(const ObservationConfig& config, std::int64_t n_inputs,
                         const SpectraMetadata& metadata, const PlannedImages& images,
                         MemoryItems& items) {
  const auto& sky = images.sky;
  if (!image::takes_voltages(images.plan.path))
    items.emplace_back("correlator of the imager",
                       correlator_bytes(spectra_chain_setup(config, n_inputs, metadata)));
  items.emplace_back("all-sky imager", images.plan.bytes);
  const auto pixels = image::n_bins(sky) * image::n_planes(sky) * sky.n_pixels * sky.n_pixels;
  // One is being made, one is being written.
  items.emplace_back("images that wait for the disk",
                     (config.image.queue + 2) * pixels * static_cast<std::int64_t>(sizeof(float)));
}

MemoryItems sums_memory(const ObservationConfig& config, const FxChain::Setup& setup) {
  const auto& f = setup.channelize;
  return {{"visibility sums", sums_bytes(setup)}, waiting_dumps(config, f.n_inputs, f.n_channels)};
}

MemoryItems engines_memory(const FxChain::Setup& setup, const FxChain& chain) {
  return {{"engines", chain.memory_bytes() - sums_bytes(setup)}};
}

std::int64_t total_bytes(const MemoryItems& items) {
  std::int64_t total = 0;
  for (const auto& [what, bytes] : items) total += bytes;
  return total;
}

}  // namespace ryle::pipeline
