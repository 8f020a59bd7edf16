// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/image.hpp"

namespace ryle::image::detail {

/// Longest run one recurrence covers before its phase is computed afresh: bounds the fp32 phase
/// error (sum_kernel.inc).
inline constexpr std::int64_t kMaxRunLength = 64;

/// Samples whose (u, v, w) form an arithmetic progression, as the channels of one baseline do: term
/// k lies at (u, v, w) + k (du, dv, dw). Coefficients are weight times visibility, scaled, last
/// term first (Horner's order).
struct Run {
  double u = 0, v = 0, w = 0;
  double du = 0, dv = 0, dw = 0;
  std::int64_t first = 0;   ///< of its coefficients, in complex numbers
  std::int64_t length = 0;  ///< 1 .. kMaxRunLength
};

struct Plan {
  std::vector<Run> runs;
  std::vector<float> coefficients;  ///< re, im pairs, |re|, |im| <= 1
  double scale = 0;                 ///< image = scale * sum over runs; 0 when no sample counts
};

/// Finds the runs, whatever order the samples come in, and adds samples at one (u, v, w) together.
/// Samples whose weight is not positive, or that are not finite, are left out. Correctness never
/// rests on what is found, only speed.
Plan plan_runs(const std::vector<Sample>& samples);

}  // namespace ryle::image::detail
