// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/engine/correlate/finish.hpp"

/// Van Vleck correction: what quantisation did to the products of Gaussian voltages, undone in
/// double. Codes: odd n_levels -(n-1)/2 .. (n-1)/2 in steps of 1; even n_levels (mid-rise) the odd
/// integers -(n-1) .. n-1, so steps of 2: a 1-bit sample is +-1. Rms values are per part (re or
/// im), in code units; voltages are circular.
namespace ryle::correlate::detail {

/// @eq E[c^2](s) = sum over codes of c^2 P(code | rms s)
double quantized_power(const Quantizer& quantizer, double rms);

/// Inverse of quantized_power by Newton's method; 0 when no rms gives this power (nothing there, or
/// all clipped). One bit carries no power: 1, the code itself.
double rms_of_power(const Quantizer& quantizer, double power);

/// Hermite coefficients of the quantiser at one rms.
/// @eq E[c_1 c_2](r) = sum_{n odd} k_n(s_1) k_n(s_2) r^n,  k_n = step sum_a phi(a) He_{n-1}(a) /
/// sqrt(n!), a = threshold/s   (Mehler's expansion of Price's integral, correlate.md 8)
/// @shape coefficients [(n-1)/2], n = 1, 3, ..., 2 size - 1
void hermite_coefficients(const Quantizer& quantizer, double rms, std::span<double> coefficients);

/// Solves E[c_1 c_2](r) = product for r in [-1, 1].
double correlation_of_product(const Quantizer& quantizer, double rms_1, double rms_2,
                              std::span<const double> k_1, std::span<const double> k_2,
                              double product);

/// Corrects the mean visibilities of one channel in place. @shape triangle [pair], code units
/// squared.
class VanVleck {
 public:
  VanVleck(const Quantizer& quantizer, std::int64_t n_inputs);
  void correct(std::span<cf64> triangle);

 private:
  bool is_linear(double rms) const;
  double largest_correlation(std::span<const cf64> triangle) const;
  void note_shares(std::int64_t terms);
  double correlation(std::int64_t i, std::int64_t j, std::int64_t terms, double product) const;
  std::int64_t terms_for(double largest) const;

  Quantizer quantizer_;
  std::int64_t n_inputs_;
  std::vector<double> rms_;                  // [input]
  std::vector<double> coefficients_;         // [input][term]
  double cubic_ = 0, fifth_ = 0, rest_ = 0;  // largest k_n^2 / k_1^2 of an input; sum over n >= 7
};

}  // namespace ryle::correlate::detail
