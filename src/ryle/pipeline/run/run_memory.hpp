// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/pipeline/visibility/spectra_chain.hpp"
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

/// What images allocate beside the gulps that are cut for them.
void append_image_memory(const ObservationConfig& config, std::int64_t n_inputs,
                         const SpectraMetadata& metadata, const PlannedImages& images,
                         MemoryItems& items);
/// Of a queue of dumps: one is being made, one is being written.
MemoryItems::value_type waiting_dumps(const ObservationConfig& config, std::int64_t n_inputs,
                                      std::int64_t n_channels);
std::int64_t correlator_bytes(const SpectraChain::Setup& setup);

/// The same for samples, before anything is allocated: sums and dumps that wait for the disk. The
/// ring of a live run comes on top.
MemoryItems sums_memory(const ObservationConfig& config, const FxChain::Setup& setup);
/// What the engines of `chain` take beside the sums.
MemoryItems engines_memory(const FxChain::Setup& setup, const FxChain& chain);

std::int64_t total_bytes(const MemoryItems& items);

}  // namespace ryle::pipeline
