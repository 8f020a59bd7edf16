// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/samples.hpp"

namespace ryle::calibrate {

/// Everything that visibilities and a model say about gains: sums over times, channels and
/// polarizations that share a gain. Whatever their number, a solver needs no more than these.
/// @eq T_ab = sum w V_ab conj(M_ab) = g_a conj(g_b) Q_ab + noise, Q_ab = sum w |M_ab|^2, a != b;
/// autocorrelations hold noise and are not taken.
/// @shape target_re, target_im, power [solution][input a][stride of b], both orders of a and b
class Equations {
 public:
  Equations() = default;
  /// @pre n_inputs >= 2, n_solutions >= 1, else ConfigError
  Equations(std::int64_t n_inputs, std::int64_t n_solutions);

  std::int64_t n_inputs() const { return n_inputs_; }
  std::int64_t n_solutions() const { return n_solutions_; }
  std::int64_t stride() const { return stride_; }

  /// Adds a visibility of a pair. Visibilities and models that are not finite and weights that are
  /// not above 0 are absent. Different solutions may be added to from different threads. @pre a < b
  /// < n_inputs
  void add(std::int64_t solution, std::int64_t a, std::int64_t b, cf64 visibility, cf64 model,
           double weight);
  /// Leaves an input out of all solutions, or of one.
  void drop(std::int64_t input);
  void drop(std::int64_t solution, std::int64_t input);
  /// One of two halves of the pairs, `which` 0 or 1, chosen by their numbers and that of the split
  /// alone: every input keeps about half of its own.
  Equations half(int which, std::uint64_t split = 0) const;

  const float* target_re(std::int64_t solution) const { return re_.data() + matrix(solution); }
  const float* target_im(std::int64_t solution) const { return im_.data() + matrix(solution); }
  const float* power(std::int64_t solution) const { return power_.data() + matrix(solution); }
  cf64 target(std::int64_t solution, std::int64_t a, std::int64_t b) const {
    const auto k = static_cast<std::size_t>(matrix(solution) + a * stride_ + b);
    return {re_[k], im_[k]};
  }
  double power(std::int64_t solution, std::int64_t a, std::int64_t b) const {
    return power_[static_cast<std::size_t>(matrix(solution) + a * stride_ + b)];
  }
  /// sum_b w |V_ab|^2 of an input, sum_b w, and how many values that are.
  double data_power(std::int64_t solution, std::int64_t input) const {
    return rows_[row(solution, input)].data_power;
  }
  double weight(std::int64_t solution, std::int64_t input) const {
    return rows_[row(solution, input)].weight;
  }
  std::int64_t n_values(std::int64_t solution, std::int64_t input) const {
    return rows_[row(solution, input)].n_values;
  }
  /// sum w |V_ab|^2 and sum w of a pair.
  double pair_power(std::int64_t solution, std::int64_t a, std::int64_t b) const {
    return pairs_[pair(solution, a, b)].data_power;
  }
  double pair_weight(std::int64_t solution, std::int64_t a, std::int64_t b) const {
    return pairs_[pair(solution, a, b)].weight;
  }
  std::int64_t n_values(std::int64_t solution) const;  ///< of all inputs: every pair counts twice

 private:
  /// Of a pair: what chi^2 needs beside T and Q.
  struct PairData {
    float data_power = 0, weight = 0;
    std::int32_t n_values = 0;
  };
  struct RowData {
    double data_power = 0, weight = 0;
    std::int64_t n_values = 0;
  };
  std::int64_t matrix(std::int64_t solution) const { return solution * n_inputs_ * stride_; }
  std::size_t pair(std::int64_t solution, std::int64_t a, std::int64_t b) const {
    return static_cast<std::size_t>(solution * n_pairs(n_inputs_) +
                                    (a < b ? pair_index(a, b) : pair_index(b, a)));
  }
  std::size_t row(std::int64_t solution, std::int64_t input) const {
    return static_cast<std::size_t>(solution * n_inputs_ + input);
  }
  void clear(std::int64_t solution, std::int64_t a, std::int64_t b);

  std::int64_t n_inputs_ = 0, n_solutions_ = 0, stride_ = 0;
  std::vector<float> re_, im_, power_;
  std::vector<PairData> pairs_;  // [solution][a < b]
  std::vector<RowData> rows_;
};

}  // namespace ryle::calibrate
