// SPDX-License-Identifier: BSD-3-Clause
// What is said of gains once they are solved.
#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/engine/calibrate/reference.hpp"

namespace ryle::calibrate {
namespace {

/// w |V - g conj(g) M|^2, summed over the values of an input.
double residual_power(const Equations& e, const Solutions& g, std::int64_t s, std::int64_t a) {
  cf64 target{};
  double power = 0;
  for (std::int64_t b = 0; b < e.n_inputs(); ++b) {
    const cf64 other = g.gains[g.at(s, b)];
    target += e.target(s, a, b) * other;
    power += e.power(s, a, b) * std::norm(other);
  }
  const cf64 own = g.gains[g.at(s, a)];
  return e.data_power(s, a) - 2 * (std::conj(own) * target).real() + std::norm(own) * power;
}

/// Phase that turns the gains of a solution onto those of another, over their common inputs.
double phase_between(const Solutions& g, std::int64_t from, std::int64_t onto) {
  cf64 sum{};
  for (std::int64_t a = 0; a < g.n_inputs; ++a)
    if (!g.is_flagged(from, a) && !g.is_flagged(onto, a))
      sum += g.gains[g.at(onto, a)] * std::conj(g.gains[g.at(from, a)]);
  return std::arg(sum);
}

void turn(Solutions& g, std::int64_t solution, double angle_rad) {
  for (std::int64_t a = 0; a < g.n_inputs; ++a)
    g.gains[g.at(solution, a)] *= std::polar(1.0, angle_rad);
}

}  // namespace

namespace detail {

void resize(const Config& config, const Equations& equations, Solutions& solutions) {
  if (equations.n_inputs() != config.n_inputs || equations.n_solutions() != config.n_solutions)
    throw ConfigError("equations of " + std::to_string(equations.n_inputs()) + " inputs and " +
                      std::to_string(equations.n_solutions()) + " solutions for a solver of " +
                      std::to_string(config.n_inputs) + " and " +
                      std::to_string(config.n_solutions));
  solutions.n_inputs = config.n_inputs;
  solutions.n_solutions = config.n_solutions;
  solutions.gains.assign(config.n_inputs * config.n_solutions, cf64{});
  solutions.flags.assign(solutions.gains.size(), 1);
  solutions.chi2.assign(solutions.gains.size(), 0);
  solutions.rounds.assign(config.n_solutions, 0);
  solutions.change.assign(config.n_solutions, 1);
  solutions.noise.assign(config.n_solutions, 0);
}

void finish_solution(const Equations& equations, const Config& config, std::int64_t s,
                     Solutions& out) {
  double residual = 0;
  std::int64_t n = 0;
  std::vector<double> of_input(config.n_inputs);
  for (std::int64_t a = 0; a < config.n_inputs; ++a) {
    of_input[a] = std::max(0.0, residual_power(equations, out, s, a));
    residual += of_input[a];
    n += equations.n_values(s, a);
  }
  // Each complex value of a pair counts twice here, and so do the 2 n_live - 1 gains that took part
  // of the noise.
  std::int64_t n_live = 0;
  for (std::int64_t a = 0; a < config.n_inputs; ++a) n_live += equations.n_values(s, a) > 0 ? 1 : 0;
  const double free_values = static_cast<double>(std::max<std::int64_t>(1, n - (2 * n_live - 1)));
  out.noise[s] = n > 0 ? residual / free_values : 0;
  const bool converged = out.change[s] <= config.tolerance;
  for (std::int64_t a = 0; a < config.n_inputs; ++a) {
    const auto k = out.at(s, a);
    const std::int64_t values = equations.n_values(s, a);
    const double size = std::norm(out.gains[k]);
    out.flags[k] = converged && values > 0 && size > 0 && std::isfinite(size) ? 0 : 1;
    out.chi2[k] = values > 0 && residual > 0 ? of_input[a] / static_cast<double>(values) *
                                                   static_cast<double>(n) / residual
                                             : 0;
    if (out.flags[k] != 0) out.gains[k] = cf64{};
  }
}

}  // namespace detail

void gauge(Solutions& g, std::int64_t reference) {
  if (reference < 0 || reference >= g.n_inputs)
    throw ConfigError("the reference input " + std::to_string(reference) + " is not one of " +
                      std::to_string(g.n_inputs));
  std::int64_t last = -1;  // the last solution that was turned
  for (std::int64_t s = 0; s < g.n_solutions; ++s) {
    const bool known = !g.is_flagged(s, reference);
    if (known) turn(g, s, -std::arg(g.gains[g.at(s, reference)]));
    if (!known && last >= 0) turn(g, s, phase_between(g, s, last));
    if (known || last >= 0) last = s;
  }
  // Those before the first one that has the reference follow it backwards.
  std::int64_t first = 0;
  while (first < g.n_solutions && g.is_flagged(first, reference)) ++first;
  if (first == g.n_solutions) return;
  for (std::int64_t s = first; s-- > 0;) turn(g, s, phase_between(g, s, s + 1));
}

std::vector<double> least_squares_sigma(const Equations& e, const Solutions& g) {
  std::vector<double> sigma(g.gains.size(), 0);
  for (std::int64_t s = 0; s < g.n_solutions; ++s) {
    for (std::int64_t a = 0; a < g.n_inputs; ++a) {
      double power = 0;
      for (std::int64_t b = 0; b < g.n_inputs; ++b)
        power += e.power(s, a, b) * std::norm(g.gains[g.at(s, b)]);
      const double size = std::norm(g.gains[g.at(s, a)]) * power;
      if (!g.is_flagged(s, a) && size > 0) sigma[g.at(s, a)] = std::sqrt(0.5 * g.noise[s] / size);
    }
  }
  return sigma;
}

double operations_per_round(std::int64_t n_inputs) {
  return 10 * static_cast<double>(n_inputs) * static_cast<double>(n_inputs);
}

}  // namespace ryle::calibrate
