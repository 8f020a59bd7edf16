// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/stage/beam_chunk.hpp"
#include "ryle/stage/config.hpp"
#include "ryle/stage/search_live.hpp"
#include "ryle/telescope/array.hpp"

namespace ryle::stage {

/// [search] of an observation as the search takes it.
LiveSearchConfig live_search_config(const ObservationConfig& config,
                                    const std::string& command_line);
/// What [search] asks for: the search, the fold, or neither. @param devices that make the beams
std::vector<std::unique_ptr<BeamConsumer>> search_consumers(const ObservationConfig& config,
                                                            const BeamStream& stream,
                                                            const ArrayLayout& array,
                                                            const std::string& command_line,
                                                            CandidateHook on_candidate = {},
                                                            const std::vector<int>& devices = {});
/// What the search of so many beams allocates; 0 without one. Positions do not matter.
std::int64_t search_bytes(const ObservationConfig& config, const FrequencyAxis& frequency,
                          double sample_interval_s, std::int64_t n_beams);

}  // namespace ryle::stage
