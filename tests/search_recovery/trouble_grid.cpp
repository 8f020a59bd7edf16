// SPDX-License-Identifier: BSD-3-Clause
// Pulses among gain that drifts, steps, flickers, and interference, at every sampling, and what is
// found of periodic interference in minutes: the tables of docs/search_recovery.md; exit status 1
// when a bound is missed. search_troubles [PULSES [BASELINE_S [FROM_INTERVAL_S [PART_OF_NAME]]]],
// BASELINE_S 0: the default, below: no levels.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "tests/search_recovery/scenarios.hpp"

int main(int argc, char** argv) {
  using namespace ryle::test;
  const std::int64_t n_pulses = argc > 1 ? std::atoll(argv[1]) : 24;
  const auto wanted = [&](std::string_view name) {
    return argc < 5 || name.find(argv[4]) != std::string_view::npos;
  };
  bool good = true;
  fmt::print(
      "| sampling | trouble | FWHM, ms | pulses | found | boxcar / ideal | expected | refined | "
      "false events | masked |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const double interval_s : {64e-6, 256e-6, 512e-6, 1.024e-3, 1.27e-3, 5e-3, 10e-3})
    for (const auto& scenario : kScenarios) {
      if (argc > 3 && interval_s < std::atof(argv[3])) continue;
      if (!wanted(scenario.name)) continue;
      for (const double fwhm_s : {2e-3, 40e-3}) {
        if (fwhm_s < 2 * interval_s && fwhm_s > 1.9e-3 && interval_s > 21e-3) continue;
        auto setup = scenario_setup(interval_s, fwhm_s, n_pulses);
        if (argc > 2) setup.baseline_s = std::atof(argv[2]);
        const auto r = run_scenario(scenario.trouble, setup);
        fmt::print(
            "| {:.4g} ms | {} | {:.3g} | {} | {} | {:.3f} | {:.3f} | {:.3f} | {} | {:.4f} |\n",
            1e3 * interval_s, scenario.name, 1e3 * setup.fwhm * interval_s, r.n_pulses, r.n_found,
            r.boxcar, r.expected, r.refined, r.n_false, r.masked_spectra);
        std::fflush(stdout);
        // What is masked is lost, and its noise with it.
        good = good && (!scenario.bounded ||
                        (r.n_found == r.n_pulses && r.n_false == 0 &&
                         r.boxcar >= 0.95 * r.expected * std::sqrt(1 - r.masked_spectra)));
      }
    }
  constexpr const char* kMinutes = "pulses in a fifth of the band, 448 s";
  if (wanted(kMinutes)) {
    auto setup = scenario_setup(1.27e-3, 2e-3, 24);
    setup.spacing_s = 18.45;
    if (argc > 2) setup.baseline_s = std::atof(argv[2]);
    const auto r = run_scenario(Trouble::part_of_band, setup);
    fmt::print("{} at 1.27 ms: {} of {} pulses found, {} false events without a flag in {:.0f} s\n",
               kMinutes, r.n_found, r.n_pulses, r.n_false, r.data_s);
  }
  return good ? 0 : 1;
}
