// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ryle/ingest/fengine_source.hpp"
#include "ryle/stage/config.hpp"
#include "ryle/stage/image_setup.hpp"

namespace ryle::stage {

using MemoryItems = std::vector<std::pair<std::string, std::int64_t>>;

/// What a live run of an F-engine allocates, item by item: `ryle plan` prints it, the run requires
/// it before anything is opened and reports the sum. `sky` is the problem `images` was planned for.
MemoryItems live_spectra_memory(const ObservationConfig& config,
                                const FengineSourceConfig& receiver, const image::AllSkyConfig& sky,
                                const SkyPlan& images);

std::int64_t total_bytes(const MemoryItems& items);

}  // namespace ryle::stage
