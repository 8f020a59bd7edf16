// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

#include "ryle/engine/image/image.hpp"

/// Private to the engine: limits that validate() and plan() share.
namespace ryle::image {

inline constexpr std::int64_t kMaxPixels = 8192;

/// "" when the path can make what the configuration asks, else why not and what would work.
std::string why_not(const AllSkyConfig& config, Path path);

/// Memory of the engine, of the correlator too where the path needs one of its own.
std::int64_t path_bytes(const AllSkyConfig& config, Path path, bool correlator_runs_anyway);

/// Error of the image against the Fourier sum, rms over r < 0.8, of the peak.
double path_error(const AllSkyConfig& config, Path path);

}  // namespace ryle::image
