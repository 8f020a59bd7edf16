// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/calibrate/equations.hpp"

/// Complex gains of inputs from visibilities and a model of the sky.
/// @eq minimise sum_{a != b} w_ab |V_ab - g_a conj(g_b) M_ab|^2   (Mitchell et al. 2008; Salvini &
/// Wijnholds 2014). Gains multiply the sky: v_recorded = g v_sky.
namespace ryle::calibrate {

enum class Method : std::uint8_t {
  stefcal,     ///< alternating least squares, any model
  eigenvector  ///< leading eigenvector of V / M with its diagonal refitted: one dominating source
};

struct Config {
  std::int64_t n_inputs = 0;
  std::int64_t n_solutions = 0;  ///< channels, or groups of them, solved each by itself
  Method method = Method::stefcal;
  int max_rounds = 100;
  double tolerance = 1e-7;  ///< change of the gains in a round, relative, that ends it
  /// Solutions start from their neighbor's, in blocks of kBlock; else each by itself.
  bool from_neighbor = true;
  std::string implementation = "auto";  ///< auto (= cpu) | reference | cpu | cpu:avx512 | ...
};
/// Solutions that follow each other on one worker: results do not depend on the number of workers.
inline constexpr std::int64_t kBlock = 16;

/// What was found. @shape gains, flags, chi2 [solution][input]; rounds, change, noise [solution]
struct Solutions {
  std::int64_t n_inputs = 0, n_solutions = 0;
  std::vector<cf64> gains;          ///< 0 where there is no gain
  std::vector<std::uint8_t> flags;  ///< 1 = no gain: no data, or its solution did not converge
  std::vector<double> chi2;  ///< w |V - g conj(g) M|^2 per value of the input over that of all; 0 =
                             ///< no data
  std::vector<int> rounds;
  std::vector<double> change;  ///< relative, of the last round; above the tolerance: not converged
  /// Sum of w |V - g conj(g) M|^2 over the values less those that the gains took: 1 where w is the
  /// inverse of the variance.
  std::vector<double> noise;

  std::size_t at(std::int64_t solution, std::int64_t input) const {
    return static_cast<std::size_t>(solution * n_inputs + input);
  }
  bool is_flagged(std::int64_t solution, std::int64_t input) const {
    return flags[at(solution, input)] != 0;
  }
};

class Solver {
 public:
  virtual ~Solver() = default;
  /// Solves all solutions of the equations. The phase of every solution is open: it is that of the
  /// start (see gauge()). Same calls, same bits, whatever the number of workers.
  virtual void execute(Queue& queue, const Equations& equations, Solutions& solutions) = 0;
  virtual std::string_view implementation() const = 0;
  virtual const Config& config() const = 0;
};

/// Throws ConfigError for impossible sizes and UnsupportedError for an unknown implementation.
std::unique_ptr<Solver> make_solver(const Config& config);
std::vector<std::string> available_implementations();

/// Turns every solution so that the phase of the reference input is 0. Where that input has no
/// gain the solution is turned against its neighbor, so that the others do not jump: to the mean
/// phase 0 of the change over their common inputs.
void gauge(Solutions& solutions, std::int64_t reference);

/// Least-squares errors of independent noise: 1 sigma of the phase in radians and of the amplitude
/// relative to it; 0 where there is no gain. The full bound of bright sources is larger
/// (error_bound.hpp). @shape [solution][input]
/// @eq sigma_a^2 = noise / (2 |g_a|^2 sum_b Q_ab |g_b|^2)
std::vector<double> least_squares_sigma(const Equations& equations, const Solutions& solutions);

/// Operations of one round of one solution, 10 for a pair of inputs in either order.
double operations_per_round(std::int64_t n_inputs);

}  // namespace ryle::calibrate
