// SPDX-License-Identifier: BSD-3-Clause
// Gains: sums of visibilities and model in memory -> gains of every channel, StEFCal, a fixed
// number of rounds.
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bench.hpp"
#include "ryle/core/random.hpp"
#include "ryle/engine/calibrate/calibrate.hpp"

namespace ryle::bench {
namespace {

struct CalibrateCase {
  std::int64_t n_inputs, n_channels;
};
constexpr int kGainRounds = 60;

double phase_of(std::int64_t input, std::int64_t channel) {
  const double own = 6.28 * uniform(combine(3, static_cast<std::uint64_t>(input)));
  return own + 0.01 * static_cast<double>(channel) * own;
}

/// One source at the phase center in noise of the same strength.
calibrate::Equations random_equations(const CalibrateCase& k) {
  calibrate::Equations e(k.n_inputs, k.n_channels);
  Queue queue = Queue::cpu(0);
  queue.parallel_for(k.n_channels, [&](std::int64_t c) {
    std::vector<cf64> gains;
    for (std::int64_t a = 0; a < k.n_inputs; ++a) gains.push_back(std::polar(1.0, phase_of(a, c)));
    std::uint64_t key = combine(7, static_cast<std::uint64_t>(c));
    for (std::int64_t b = 0; b < k.n_inputs; ++b) {
      for (std::int64_t a = 0; a < b; ++a) {
        key = mix64(key);
        const cf64 noise(2 * uniform(key) - 1, 2 * uniform(key + 1) - 1);
        e.add(c, a, b, gains[a] * std::conj(gains[b]) + noise, 1, 1);
      }
    }
  });
  return e;
}

calibrate::Solutions solutions_of(Queue& queue, const calibrate::Equations& e,
                                  calibrate::Config config, const std::string& implementation) {
  config.implementation = implementation;
  calibrate::Solutions solutions;
  calibrate::make_solver(config)->execute(queue, e, solutions);
  calibrate::gauge(solutions, 0);
  return solutions;
}

/// Converged gains of a few channels against the reference.
bool verified_gains(Queue& queue, const CalibrateCase& k, const std::string& implementation) {
  const CalibrateCase part{k.n_inputs, 2};
  const auto e = random_equations(part);
  calibrate::Config config;
  config.n_inputs = part.n_inputs;
  config.n_solutions = part.n_channels;
  const auto found = solutions_of(queue, e, config, implementation);
  const auto want = solutions_of(queue, e, config, "reference");
  for (std::size_t i = 0; i < want.gains.size(); ++i)
    if (want.flags[i] != 0 || std::abs(found.gains[i] - want.gains[i]) > 1e-5) return false;
  return true;
}

void measure_gains(const Options& options, const CalibrateCase& k, const std::string& name,
                   const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  calibrate::Config config;
  config.n_inputs = k.n_inputs;
  config.n_solutions = k.n_channels;
  config.max_rounds = kGainRounds;
  config.tolerance = 1e-300;  // never: all rounds
  config.implementation = name;
  const auto solver = calibrate::make_solver(config);
  Result result;
  result.engine = "calibrate";
  result.implementation = std::string(solver->implementation());
  result.device = device_description(options.n_workers);
  result.sizes = {{"n_inputs", static_cast<double>(k.n_inputs)},
                  {"n_channels", static_cast<double>(k.n_channels)},
                  {"n_rounds", kGainRounds}};
  result.verified = verified_gains(queue, k, name);
  result.rate_unit = "GFLOPS";
  result.useful_ops =
      calibrate::operations_per_round(k.n_inputs) * kGainRounds * static_cast<double>(k.n_channels);
  result.bytes = 12 * static_cast<double>(k.n_inputs * k.n_inputs * k.n_channels);
  if (result.verified) {
    const auto e = random_equations(k);
    calibrate::Solutions solutions;
    const double ceiling = ceiling_fma_f32_ops() / 2;  // sums are in double
    std::tie(result.median_s, result.min_s) =
        time_runs(options.seconds_per_case, [&] { solver->execute(queue, e, solutions); });
    result.rate = result.useful_ops / result.median_s * 1e-9;
    if (ceiling > 0) {
      result.roofline_fraction =
          result.useful_ops / result.median_s / (ceiling * options.n_workers);
      result.roofline = "fma f64, " + std::to_string(options.n_workers) + " x 1 core";
    }
  }
  emit(result);
}

}  // namespace

void bench_calibrate(const Options& options, const Emit& emit) {
  std::vector<std::string> names{options.implementation};
  if (options.implementation == "all") {
    names.clear();
    for (const auto& name : calibrate::available_implementations())
      if (name != "reference") names.push_back(name);
  }
  const std::vector<CalibrateCase> cases =
      options.quick ? std::vector<CalibrateCase>{{32, 16}}
                    : std::vector<CalibrateCase>{{32, 768}, {64, 768}, {256, 768}};
  for (const auto& k : cases)
    for (const auto& name : names) measure_gains(options, k, name, emit);
}

}  // namespace ryle::bench
