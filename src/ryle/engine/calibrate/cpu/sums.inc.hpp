// SPDX-License-Identifier: BSD-3-Clause
// Included once for each instruction set, with ROUND_SUMS the name of the function. Rows b of the
// Hermitian T are taken as columns, T_ab = conj(T_ba): the loop over a then has no sum in it, and
// the compiler makes vectors of it without changing the order of additions.
#include "ryle/engine/calibrate/cpu/sums.hpp"

namespace ryle::calibrate::detail {
namespace {

/// Rows b .. b + kRows of the matrices: sums are read and written once for all of them.
template <int kRows>
inline void add_rows(const RoundInput& in, const RoundSums& out, std::int64_t b) {
  const float *re[kRows], *im[kRows], *power[kRows];
  double gain_re[kRows], gain_im[kRows], gain_power[kRows];
  for (int k = 0; k < kRows; ++k) {
    re[k] = in.re + (b + k) * in.stride;
    im[k] = in.im + (b + k) * in.stride;
    power[k] = in.power + (b + k) * in.stride;
    gain_re[k] = in.gain_re[b + k];
    gain_im[k] = in.gain_im[b + k];
    gain_power[k] = in.gain_power[b + k];
  }
  double* __restrict target_re = out.target_re;
  double* __restrict target_im = out.target_im;
  double* __restrict sum_power = out.power;
  for (std::int64_t a = 0; a < in.n; ++a) {
    double x = target_re[a], y = target_im[a], p = sum_power[a];
    for (int k = 0; k < kRows; ++k) {
      const double t_re = static_cast<double>(re[k][a]), t_im = static_cast<double>(im[k][a]);
      x += t_re * gain_re[k] + t_im * gain_im[k];
      y += t_re * gain_im[k] - t_im * gain_re[k];
      p += static_cast<double>(power[k][a]) * gain_power[k];
    }
    target_re[a] = x;
    target_im[a] = y;
    sum_power[a] = p;
  }
}

}  // namespace

void ROUND_SUMS(const RoundInput& in, const RoundSums& out) {
  // No function of the standard library: its code for this instruction set could be the one that
  // others call.
  for (std::int64_t a = 0; a < in.n; ++a) out.target_re[a] = out.target_im[a] = out.power[a] = 0;
  constexpr int kRows = 4;
  std::int64_t b = 0;
  for (; b + kRows <= in.n; b += kRows) add_rows<kRows>(in, out, b);
  for (; b < in.n; ++b) add_rows<1>(in, out, b);
}

}  // namespace ryle::calibrate::detail
