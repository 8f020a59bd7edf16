// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/calibrate/calibrate.hpp"
#include "ryle/engine/calibrate/cpu/solver.hpp"
#include "ryle/engine/calibrate/reference.hpp"

namespace ryle::calibrate {
namespace {

struct InstructionSet {
  const char* name;  ///< as cpu_instruction_sets() says it
  const char* implementation;
  detail::RoundKernel kernel;
};
constexpr InstructionSet kSets[] = {
    {"avx512", "cpu:avx512", detail::round_sums_avx512},
    {"avx2", "cpu:avx2", detail::round_sums_avx2},
    {"generic", "cpu:generic", detail::round_sums_generic},
};

void check(const Config& config) {
  if (config.n_inputs < 2 || config.n_inputs > 16384)
    throw ConfigError("gains are solved of 2 to 16384 inputs, not of " +
                      std::to_string(config.n_inputs));
  if (config.n_solutions < 1)
    throw ConfigError("gains need a channel or more, got " + std::to_string(config.n_solutions));
  if (config.max_rounds < 2)
    throw ConfigError("max_rounds = " + std::to_string(config.max_rounds) +
                      ": every second round tells whether gains still change; 100 are usual");
  if (!(config.tolerance > 0) || !std::isfinite(config.tolerance))
    throw ConfigError("the tolerance must be above 0");
}

}  // namespace

std::vector<std::string> available_implementations() {
  std::vector<std::string> names{"reference"};
  for (const auto& set : kSets)
    if (has_instruction_set(set.name)) names.emplace_back(set.implementation);
  return names;
}

std::unique_ptr<Solver> make_solver(const Config& config) {
  check(config);
  const std::string chosen = choose_implementation(
      BackEnd::cpu, {"solver of gains", config.implementation, "", available_implementations()});
  for (const auto& set : kSets) {
    if (chosen != set.implementation) continue;
    std::string name = set.implementation;
    std::replace(name.begin(), name.end(), ':', '/');
    return detail::make_cpu(config, std::move(name), set.kernel);
  }
  return detail::make_reference(config);
}

}  // namespace ryle::calibrate
