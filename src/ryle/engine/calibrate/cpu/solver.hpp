// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>

#include "ryle/engine/calibrate/calibrate.hpp"
#include "ryle/engine/calibrate/cpu/sums.hpp"

namespace ryle::calibrate::detail {

std::unique_ptr<Solver> make_cpu(const Config& config, std::string name, RoundKernel kernel);

}  // namespace ryle::calibrate::detail
