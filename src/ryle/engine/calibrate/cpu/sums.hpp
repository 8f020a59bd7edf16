// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// The two products of a round of StEFCal, compiled for each instruction set.
namespace ryle::calibrate::detail {

/// @shape re, im, power [n][stride]; gain_re, gain_im, gain_power, sums [n]
struct RoundInput {
  const float *re, *im, *power;
  std::int64_t n, stride;
  const double *gain_re, *gain_im, *gain_power;  ///< gain_power = |g|^2
};
/// @eq target_a = sum_b T_ab g_b, power_a = sum_b Q_ab |g_b|^2
struct RoundSums {
  double *target_re, *target_im, *power;
};
using RoundKernel = void (*)(const RoundInput&, const RoundSums&);

void round_sums_generic(const RoundInput& in, const RoundSums& out);
void round_sums_avx2(const RoundInput& in, const RoundSums& out);
void round_sums_avx512(const RoundInput& in, const RoundSums& out);

}  // namespace ryle::calibrate::detail
