// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/engine/calibrate/calibrate.hpp"

namespace ryle::calibrate::detail {

std::unique_ptr<Solver> make_reference(const Config& config);

/// chi2, noise, flags of gains that were solved: shared by the implementations. A solution whose
/// change is not below the tolerance is flagged whole.
void finish_solution(const Equations& equations, const Config& config, std::int64_t solution,
                     Solutions& solutions);
void resize(const Config& config, const Equations& equations, Solutions& solutions);

}  // namespace ryle::calibrate::detail
