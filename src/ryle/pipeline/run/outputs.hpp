// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/pipeline/config/config.hpp"

namespace ryle::pipeline {

/// Throws ConfigError where two products of a run would have one path, or one of them that of a
/// file which the run reads. Files that get the time of their data into their names are not looked
/// at, nor are names that follow from the beams file (require_new_beam_files()).
void require_distinct_outputs(const ObservationConfig& config);

}  // namespace ryle::pipeline
