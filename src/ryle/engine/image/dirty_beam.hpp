// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/image/image.hpp"

namespace ryle::image {

/// Gaussian of the main lobe of a dirty beam. @unit direction cosines, full widths at half maximum;
/// angle_rad of the major axis, from m through l
struct BeamShape {
  double major = 0;
  double minor = 0;
  double angle_rad = 0;
};

/// Fits the lobe about l = m = 0 of a picture of the beam, peak 1, where it is above 0.5.
/// @eq -ln B = a l^2 + b l m + c m^2 by least squares with weights B^2 (Gaussian least squares of B
///     itself to first order, as CASA and WSClean fit)
/// None where the lobe does not close within the picture.
std::optional<BeamShape> fit_beam(const Config& geometry, const std::vector<double>& beam);

/// Beam of the direct Fourier sum of these samples: their picture with all visibilities 1.
/// None where the baselines lie on a line.
std::optional<BeamShape> dirty_beam(Queue& queue, const std::vector<Sample>& samples);

/// Beam of the all-sky imager at zenith, all channels, equal weights. `unused`: [input] further
/// inputs that are left out (empty = none).
/// @eq B(s) = mean_nu (|sum_a exp(2 pi i (nu/c) r_a.s)|^2 - N) / (N^2 - N); with autocorrelations
///     |sum|^2 / N^2
std::optional<BeamShape> dirty_beam(const AllSkyConfig& config,
                                    std::span<const std::uint8_t> unused = {});

}  // namespace ryle::image
