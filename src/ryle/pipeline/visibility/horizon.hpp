// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/geometry.hpp"

/// Phase centers that the array cannot see.
namespace ryle::pipeline {

/// "is at altitude -35.2 deg at 2026-01-01T00:00:00 UTC as seen from latitude ..., longitude ...;
/// it rises at ..." (or "never rises there").
std::string altitude_text(const ArrayLayout& array, const SkyDirection& direction,
                          std::int64_t tai_ns, const EarthOrientation& eo = {});

/// Throws ConfigError when correlate.phase_center is below the horizon both at the start and at the
/// end of data of length_s (0 = not known: at the start). Returns a warning when it is below at one
/// of them, else "".
std::string require_phase_center(const ObservationConfig& config, const ArrayLayout& array,
                                 std::int64_t start_tai_ns, double length_s);
/// The same for live data, whose length is source.duration_s or that of the simulator.
std::string require_live_phase_center(const ObservationConfig& config, const ArrayLayout& array,
                                      std::int64_t start_tai_ns);

}  // namespace ryle::pipeline
