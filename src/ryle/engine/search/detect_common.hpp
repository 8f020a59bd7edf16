// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/engine/search/search.hpp"

/// Private to the engine.
namespace ryle::search::detail {

struct CpuKernel;

/// Widths searched on data halved `halvings` times, of one octave floor(log2 W).
struct Octave {
  int halvings = 0;
  std::vector<std::int32_t> widths;  // in samples of the halved data
};
std::vector<Octave> octaves(const std::vector<std::int32_t>& widths);

/// Sums over |x - center| <= clip.
struct Moments {
  std::int64_t n = 0, sum = 0, squares = 0;  // of x - center
  std::int64_t center = 0, clip = 0;
};
/// Mean and rms of a Gaussian whose tails beyond the clip were cut. @eq s^2 = sigma^2 (1 - 2 z
/// phi(z) / erf(z/sqrt 2)), z = clip/sigma
SeriesStatistics unclipped(const Moments& moments);
/// Center (median) and clip (3 x 1.4826 MAD) from at most 512 evenly spaced values; clip 0: too few
/// or no scatter.
void robust_start(std::vector<std::int64_t>& values, Moments& moments);
/// Few levels (one channel of one bit): MAD may be 0 while there is scatter; then nothing is cut.
std::int64_t clip_of(std::int64_t mad, std::int64_t farthest);

std::unique_ptr<Detector> make_detector_reference(const DetectConfig& config);
std::unique_ptr<Detector> make_detector_cpu(Queue& queue, const DetectConfig& config,
                                            const CpuKernel& kernel);

}  // namespace ryle::search::detail
