// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

/// Private to the CUDA detectors: what their kernels share.
namespace ryle::search::detail {

inline constexpr int kMaxOctaves = 20;
inline constexpr int kMaxWidths = 64;

/// Boxcars by octave, as octaves() lists them.
struct BoxcarTable {
  int n_octaves, n_widths, max_width;
  struct {
    int halvings, first, n;  ///< widths[first .. first + n)
  } octaves[kMaxOctaves];
  int widths[kMaxWidths];  ///< in samples of the halved data
};

/// What a trial is searched with. @unit code units of a sum
struct TrialLevels {
  double mu, sigma;  ///< sigma 0: not searched
  int center;        ///< taken off before the prefix sums
  float least;       ///< smallest weight of a searched block
};

struct DeviceToken {
  std::int64_t start;
  std::int32_t width, trial;
  float snr;
  std::int32_t octave;
};
struct TokenList {
  DeviceToken* tokens;
  unsigned* n;  ///< may exceed `capacity`: the rest was not written
  unsigned capacity;
};

#ifdef __CUDACC__

/// Boxcars of at least this sum of x - center may reach the threshold. Safe by one count against
/// the rounding of snr_of().
__device__ inline int boxcar_limit(const TrialLevels& s, double threshold, int full) {
  const double needed = full * (s.mu - s.center) +
                        threshold * s.sigma * sqrt(full * static_cast<double>(s.least)) - 1;
  return static_cast<int>(fmin(fmax(floor(needed), -2147483647.0), 2147483647.0));
}

/// @eq S/N = (sum_W x - W mu) / (sigma sqrt(W w)), rounded operation by operation as on the CPU
__device__ inline double snr_of(const TrialLevels& s, std::int64_t sum, std::int64_t width,
                                double weight) {
  const auto n = static_cast<double>(width);
  return __ddiv_rn(__dsub_rn(static_cast<double>(sum), __dmul_rn(n, s.mu)),
                   __dmul_rn(s.sigma, __dsqrt_rn(__dmul_rn(n, weight))));
}

/// The best boxcar among 64 starts, by a whole warp: start j covers prefix[(j + w) << h] -
/// prefix[j << h]; ties go to the earliest start, then the narrowest width. weight_of(column) is
/// asked for the middle of a boxcar, in samples from prefix[0].
struct BestBoxcar {
  float snr = 0;
  int order = 0x7fffffff;  // start x n + index of the width
};
template <class WeightOf>
__device__ inline BestBoxcar best_boxcar(const int* prefix, const TrialLevels& s, const int* widths,
                                         int n_widths, int halvings, int first, int n_starts,
                                         double threshold, float least_weight,
                                         const WeightOf& weight_of) {
  BestBoxcar best;
  for (int j = static_cast<int>(threadIdx.x % 32); j < n_starts; j += 32) {
    const int t = (first + j) << halvings;
    for (int k = 0; k < n_widths; ++k) {
      const std::int64_t width = static_cast<std::int64_t>(widths[k]) << halvings;
      const float w = weight_of(t + static_cast<int>(width) / 2);
      if (w < least_weight) continue;
      const std::int64_t sum = static_cast<std::int64_t>(prefix[t + width] - prefix[t]) +
                               width * static_cast<std::int64_t>(s.center);
      const double snr = snr_of(s, sum, width, static_cast<double>(w));
      if (snr >= threshold && static_cast<float>(snr) > best.snr)
        best = {static_cast<float>(snr), j * n_widths + k};
    }
  }
#pragma unroll
  for (int m = 16; m > 0; m /= 2) {
    const float snr = __shfl_xor_sync(0xffffffffu, best.snr, m);
    const int order = __shfl_xor_sync(0xffffffffu, best.order, m);
    if (snr > best.snr || (snr == best.snr && order < best.order)) best = {snr, order};
  }
  return best;
}

__device__ inline void append(const TokenList& list, const DeviceToken& token) {
  const unsigned at = atomicAdd(list.n, 1u);
  if (at < list.capacity) list.tokens[at] = token;
}

#endif

}  // namespace ryle::search::detail
