// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/calibrate/equations.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::calibrate {
namespace {

constexpr std::int64_t kLanes = 16;  // floats of a vector of the widest instruction set

}  // namespace

Equations::Equations(std::int64_t n_inputs, std::int64_t n_solutions)
    : n_inputs_(n_inputs), n_solutions_(n_solutions) {
  if (n_inputs < 2)
    throw ConfigError("gains need 2 inputs or more, got " + std::to_string(n_inputs));
  if (n_solutions < 1)
    throw ConfigError("gains need a channel or more, got " + std::to_string(n_solutions));
  stride_ = (n_inputs + kLanes - 1) / kLanes * kLanes;
  const std::int64_t size = n_solutions * n_inputs * stride_;
  re_.resize(size);
  im_.resize(size);
  power_.resize(size);
  pairs_.resize(n_solutions * n_pairs(n_inputs));
  rows_.resize(n_solutions * n_inputs);
}

void Equations::add(std::int64_t solution, std::int64_t a, std::int64_t b, cf64 visibility,
                    cf64 model, double weight) {
  const double power = std::norm(visibility);
  if (!(weight > 0) || !std::isfinite(weight) || !std::isfinite(power)) return;
  if (!std::isfinite(std::norm(model))) return;
  const cf64 target = weight * visibility * std::conj(model);
  const double model_power = weight * std::norm(model);
  const auto upper = static_cast<std::size_t>(matrix(solution) + a * stride_ + b);
  const auto lower = static_cast<std::size_t>(matrix(solution) + b * stride_ + a);
  re_[upper] += static_cast<float>(target.real());
  im_[upper] += static_cast<float>(target.imag());
  power_[upper] += static_cast<float>(model_power);
  re_[lower] = re_[upper];
  im_[lower] = -im_[upper];
  power_[lower] = power_[upper];
  PairData& of_pair = pairs_[pair(solution, a, b)];
  of_pair.data_power += static_cast<float>(weight * power);
  of_pair.weight += static_cast<float>(weight);
  ++of_pair.n_values;
  for (const std::int64_t input : {a, b}) {
    RowData& of_input = rows_[row(solution, input)];
    of_input.data_power += weight * power;
    of_input.weight += weight;
    ++of_input.n_values;
  }
}

void Equations::clear(std::int64_t solution, std::int64_t a, std::int64_t b) {
  for (const auto& [i, j] : {std::pair{a, b}, std::pair{b, a}}) {
    const auto k = static_cast<std::size_t>(matrix(solution) + i * stride_ + j);
    re_[k] = im_[k] = power_[k] = 0;
  }
  PairData& of_pair = pairs_[pair(solution, a, b)];
  for (const std::int64_t input : {a, b}) {
    RowData& of_input = rows_[row(solution, input)];
    of_input.data_power -= static_cast<double>(of_pair.data_power);
    of_input.weight -= static_cast<double>(of_pair.weight);
    of_input.n_values -= of_pair.n_values;
    if (of_input.n_values == 0) of_input.data_power = of_input.weight = 0;
  }
  of_pair = {};
}

void Equations::drop(std::int64_t solution, std::int64_t input) {
  for (std::int64_t b = 0; b < n_inputs_; ++b)
    if (b != input) clear(solution, input, b);
}

void Equations::drop(std::int64_t input) {
  for (std::int64_t s = 0; s < n_solutions_; ++s) drop(s, input);
}

Equations Equations::half(int which, std::uint64_t split) const {
  Equations part = *this;
  for (std::int64_t b = 0; b < n_inputs_; ++b) {
    for (std::int64_t a = 0; a < b; ++a) {
      const std::uint64_t key =
          combine(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b), split);
      if (static_cast<int>(key & 1u) == which) continue;
      for (std::int64_t s = 0; s < n_solutions_; ++s) part.clear(s, a, b);
    }
  }
  return part;
}

std::int64_t Equations::n_values(std::int64_t solution) const {
  std::int64_t n = 0;
  for (std::int64_t a = 0; a < n_inputs_; ++a) n += n_values(solution, a);
  return n;
}

}  // namespace ryle::calibrate
