// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"

/// What a dedispersed series is without its pulses.
namespace ryle::search {

struct Baseline {
  double mean = 0;
  double sigma = 0;            ///< 0: too little to say anything
  std::int64_t n_samples = 0;  ///< they come from
  double weight = 1;           ///< mean of theirs
};

/// Mean and rms of a series with a pulse of `width` samples from `start`. A pulse below a sigma in
/// every sample escapes a clip of samples and lifts their mean, which costs a boxcar W / n of its
/// S/N; so the pulse and a width on either side are left out, and cells of half its width whose
/// mean is off by more than 3 of the scatter of such means (other pulses), with their neighbors.
/// Columns below 0.75 of the highest weight say nothing.
/// @shape weights [(n + 63) / 64], may be empty
Baseline baseline_about(std::span<const float> series, std::span<const float> weights,
                        std::int64_t start, std::int64_t width);

/// Sums of codes along the rounded delays of one DM, and the part of the codes in each 64 columns,
/// and in each, that say something: masked ones are kCodeMean, as 4.98 % of Gaussian ones are.
/// @shape codes [channel][time] u8; sums[t] begins at codes + t; weights [(n + 63) / 64], columns
/// as sums
struct DedispersedCodes {
  std::vector<float> sums, weights, columns;
};
DedispersedCodes dedisperse_one(const Band& band, double dm, const std::uint8_t* codes,
                                std::int64_t stride, std::int64_t n);

}  // namespace ryle::search
