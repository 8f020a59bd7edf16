// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <vector>

#include "ryle/pipeline/config/config.hpp"

namespace ryle::pipeline {

/// Throws ConfigError where two products of a run would have one path, or one of them that of a
/// file which the run reads. Files that get the time of their data into their names are not looked
/// at.
/// @param beams their names, once the beams file is read: each has a filterbank
void require_distinct_outputs(const ObservationConfig& config,
                              const std::vector<std::string>& beams = {});

}  // namespace ryle::pipeline
