// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/ingest/fengine_source.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"

namespace ryle::pipeline {

using MemoryItems = std::vector<std::pair<std::string, std::int64_t>>;

/// Images as they are planned: the problem and the way.
struct PlannedImages {
  image::AllSkyConfig sky;
  SkyPlan plan;
};
/// nullopt when the configuration asks for none.
std::optional<PlannedImages> plan_live_images(const ObservationConfig& config,
                                              const ArrayLayout& array,
                                              const SpectraMetadata& metadata);

/// What a live run of an F-engine allocates, item by item: `ryle plan` prints it, the run requires
/// it before anything is opened and reports the sum.
MemoryItems live_run_memory(const ObservationConfig& config, const FengineSourceConfig& receiver,
                            const std::optional<PlannedImages>& images);

/// The same for samples, before anything is allocated: sums and dumps that wait for the disk. The
/// ring of a live run comes on top.
MemoryItems sums_memory(const ObservationConfig& config, const FxChain::Setup& setup);
/// What the engines of `chain` take beside the sums.
MemoryItems engines_memory(const FxChain::Setup& setup, const FxChain& chain);

std::int64_t total_bytes(const MemoryItems& items);

}  // namespace ryle::pipeline
