// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/search/search_live.hpp"
#include "ryle/telescope/array.hpp"

namespace ryle::pipeline {

/// [search] of an observation as the search takes it.
LiveSearchConfig live_search_config(const ObservationConfig& config,
                                    const std::string& command_line);
/// What a search of a live run is given and gives, see LiveSearchConfig.
struct SearchHooks {
  CandidateHook on_candidate;
  std::function<VoltageRecords()> voltage_records;
};
/// What [search] asks for: the search, the fold, or neither. @param devices that make the beams
std::vector<std::unique_ptr<BeamConsumer>> search_consumers(
    const ObservationConfig& config, const BeamStream& stream, const ArrayLayout& array,
    const std::string& command_line, SearchHooks hooks = {}, const std::vector<int>& devices = {});
/// Of one device that searches `n_beams` of the rows, item by item; nothing without a search there.
std::vector<std::pair<std::string, std::int64_t>> device_search_items(
    const ObservationConfig& config, const BeamStream& stream, std::int64_t n_beams);
/// [search] with what it leaves open: block_samples and blocks.
/// @param memory_bytes of the device for the search of `n_beams`; 0 = not known
SearchConfig planned_search(const ObservationConfig& config, const BeamStream& stream,
                            std::int64_t n_beams, std::int64_t memory_bytes);
/// What the search of so many beams allocates; 0 without one. Positions do not matter.
std::int64_t search_bytes(const ObservationConfig& config, const FrequencyAxis& frequency,
                          double sample_interval_s, std::int64_t n_beams);

}  // namespace ryle::pipeline
