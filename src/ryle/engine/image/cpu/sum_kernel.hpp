// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/image/runs.hpp"

namespace ryle::image::detail {

/// Pixels one call handles: six AVX-512 vectors, enough to hide the latency of the recurrence.
inline constexpr std::int64_t kPixelsPerBlock = 96;

/// One block of directions. @shape all [pixel]; t = n - 1
struct PixelBlock {
  alignas(64) double l[kPixelsPerBlock];
  alignas(64) double m[kPixelsPerBlock];
  alignas(64) double t[kPixelsPerBlock];
  alignas(64) double sum[kPixelsPerBlock];
};

/// block.sum[p] = sum over runs and their terms of Re(c exp(-2 pi i [u l + v m + w t])).
using SumFunction = void (*)(const Run* runs, std::int64_t n_runs, const float* coefficients,
                             PixelBlock& block);
void sum_generic(const Run* runs, std::int64_t n_runs, const float* coefficients,
                 PixelBlock& block);
void sum_avx2(const Run* runs, std::int64_t n_runs, const float* coefficients, PixelBlock& block);
void sum_avx512(const Run* runs, std::int64_t n_runs, const float* coefficients, PixelBlock& block);

}  // namespace ryle::image::detail
