// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <span>
#include <vector>

#include "ryle/engine/image/image.hpp"

/// Pairs of valid inputs behind the images: what the fast implementations divide by. Integers held
/// in double, exact below 2^53; equal to those of the reference.
/// @eq W_pq = sum_t (sum_a valid_ap) (sum_b valid_bq) - [autos removed] sum_t sum_a valid_ap
/// valid_aq
namespace ryle::image {

/// Input is used: not bad, gain finite and not 0.
bool is_used(const InputRole& input, cf32 gain);

/// Adds a gulp. @shape gains [channel][input]; weights [bin][3] XX, YY, XY
void add_field_weights(const AllSkyConfig& config, std::span<const cf32> gains,
                       const FieldInput& input, std::vector<double>& weights);

/// Adds one set of visibilities. @shape counts [channel][pair] in host memory, nullptr = n_spectra
void add_vis_weights(const AllSkyConfig& config, std::span<const cf32> gains,
                     const std::uint32_t* counts, std::int64_t n_spectra,
                     std::vector<double>& weights);

}  // namespace ryle::image
