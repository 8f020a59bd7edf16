// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/engine/image/cpu/plan.hpp"

/// Antenna pairs of the visibility paths: where their products stand, gains, counts.
namespace ryle::image::detail {

/// Pairs a < b in b-major order; a = b follows the pairs of b when `autos`.
std::vector<PairSource> make_pairs(const AllSkyConfig& config, const CpuRoles& roles, bool autos);
/// One antenna with itself: products XX, XY, YX, YY.
PairSource pair_source(const AllSkyConfig& config, const CpuRoles& roles, std::int64_t a,
                       std::int64_t b);

/// Gains of one channel in the order the conversion reads them.
struct PairGainTables {
  std::vector<float> first, second;  // [place][8]
  /// @shape gains [slot], heights [place] or empty
  void set(const CpuRoles& roles, std::span<const cf32> gains, const std::vector<cf64>& heights);
  PairGains view() const { return {first.data(), second.data()}; }
};

SumType sum_type(VisInput::Type type);
/// Start of one channel.
const void* channel_sums(const VisInput& input, std::int64_t channel, std::int64_t n_inputs);
/// True when the weights need a look at every pair: counts are given or values may not be finite.
bool needs_counting(const VisInput& input);
/// Weights [bin][3] that need no look at the pairs; 0 where they do.
std::vector<double> uncounted_weights(const AllSkyConfig& config, std::span<const cf32> gains,
                                      const VisInput& input);
/// Adds the counts behind XX, YY and XY* of pairs whose gains are not 0 and whose sums are finite.
void count_pairs(const VisInput& input, std::int64_t channel, std::int64_t n_inputs,
                 std::span<const PairSource> pairs, const PairGains& gains, double* weights);

}  // namespace ryle::image::detail
