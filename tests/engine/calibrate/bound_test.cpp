// SPDX-License-Identifier: BSD-3-Clause
// CA-01: scatter of gains against the full bound; what is predicted before solving.
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "tests/engine/calibrate/simulated_gains.hpp"

namespace ryle::calibrate::test {
namespace {

BoundInput bound_of(const SimulatedArray& array, double n_samples) {
  BoundInput input;
  input.n_inputs = array.n;
  input.n_samples = n_samples;
  for (std::int64_t a = 0; a < array.n; ++a) {
    for (std::int64_t b = 0; b < array.n; ++b) input.signal.push_back(array.signal(a, b));
    input.noise.push_back(array.noise(a));
  }
  return input;
}

double rms(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

struct ScatterCase {
  std::int64_t n;
  std::vector<double> fluxes;
  double n_samples;
  int n_seeds;
};

void check_scatter(const ScatterCase& k, const std::string& implementation) {
  const SimulatedArray array(k.n, k.fluxes, 31 + static_cast<std::uint64_t>(k.n));
  const SampleCovariance covariance(array);
  const auto bound = error_bound(bound_of(array, k.n_samples));
  std::vector<double> errors, offset(k.n), scales;
  double noise = 0;
  for (int seed = 0; seed < k.n_seeds; ++seed) {
    const auto sample = covariance.draw(k.n_samples, combine(5, seed));
    const Equations e = equations_of(array, sample, k.n_samples, scales);
    const auto found = solve(e, config_of(e, implementation));
    ASSERT_LT(found.change[0], 1e-6);
    const auto of_seed = phase_errors(found, array.gains);
    for (std::int64_t a = 0; a < k.n; ++a) offset[a] += of_seed[a] / k.n_seeds;
    errors.insert(errors.end(), of_seed.begin(), of_seed.end());
    noise += found.noise[0] / k.n_seeds;
  }
  const double ratio = rms(errors) / rms(bound.phase_rad);
  const std::string what = std::to_string(k.n) + " inputs, " + std::to_string(k.fluxes.size()) +
                           " sources, bound " + std::to_string(rms(bound.phase_rad) * 57.3) +
                           " deg";
  // w |V - g conj(g) M|^2: the noise of the samples, 1 in these units; that of a bright source
  // itself looks like other gains, which take it.
  double brightness = 0;
  for (const double flux : k.fluxes) brightness += flux * static_cast<double>(k.n);
  EXPECT_LT(noise, 1.05) << what;
  EXPECT_GT(noise, brightness < 1 ? 0.9 : 0.1) << what;
  EXPECT_GT(ratio, 0.95) << what;
  EXPECT_LT(ratio, 1.08) << what;
  // Offsets of an input, in units of their standard error, are normal: none of 256 beyond 4.5.
  for (std::int64_t a = 0; a < k.n; ++a)
    EXPECT_LT(std::abs(offset[a]),
              4.5 * bound.phase_rad[a] / std::sqrt(static_cast<double>(k.n_seeds)))
        << what << ", input " << a;
}

TEST(Bound, ScatterIsThatOfTheFullBound) {
  // N S from 0.05 to 15; samples for errors of a few degrees.
  check_scatter({16, {0.003}, 2e6, 150}, "cpu");
  check_scatter({16, {0.1}, 2e4, 150}, "cpu");
  check_scatter({16, {0.9}, 2e3, 150}, "cpu");
  check_scatter({16, {0.1}, 2e4, 60}, "reference");
  check_scatter({48, {0.02, 0.01, 0.005}, 1e4, 60}, "cpu");
  check_scatter({48, {0.3}, 2e3, 60}, "cpu");
}

TEST(Bound, ScatterOfLargeArraysIsThatOfTheFullBound) {
  check_scatter({48, {0.15, 0.1, 0.05}, 2e3, 100}, "cpu");
  check_scatter({128, {0.05}, 2e3, 100}, "cpu");
  check_scatter({128, {0.05, 0.03, 0.02}, 2e3, 100}, "cpu");
  check_scatter({256, {0.004}, 5e3, 100}, "cpu");
  check_scatter({256, {0.03, 0.02, 0.01}, 2e3, 100}, "cpu");
}

TEST(Bound, OneSourceHasItsFormula) {
  for (const std::int64_t n : {16, 64}) {
    for (const double flux : {0.01, 0.1, 1.0}) {
      SimulatedArray array(n, {flux}, 3);
      for (cf64& g : array.gains) g /= std::abs(g);
      const double samples = 1e4;
      const auto bound = error_bound(bound_of(array, samples));
      const double nn = static_cast<double>(n);
      // Against the mean phase of n inputs: (n - 1) / n of the variance.
      const double want = std::sqrt((1 + 1 / (nn * flux)) / (2 * samples * flux) * (nn - 1) / nn);
      for (const double sigma : bound.phase_rad) EXPECT_NEAR(sigma, want, 0.02 * want);
    }
  }
}

TEST(Bound, RefusesInputsThatNothingConnects) {
  BoundInput input;
  input.n_inputs = 3;
  input.n_samples = 100;
  input.signal.assign(9, 0);
  input.noise.assign(3, 1);
  EXPECT_THROW(error_bound(input), ConfigError);
  input.noise[1] = 0;
  EXPECT_THROW(error_bound(input), ConfigError);
}

// Before any gain is known: a source that stands out is found whatever the phases are, noise is
// not.
TEST(Strength, IsThatOfTheSourceOrNotDetected) {
  for (const double flux : {0.02, 0.1, 0.5}) {
    SimulatedArray array(64, {flux}, 8);
    for (cf64& g : array.gains) g /= std::abs(g);
    std::vector<double> scales;
    const double samples = 4000;
    const auto sample = SampleCovariance(array).draw(samples, 17);
    const auto strength = model_strength(equations_of(array, sample, samples, scales), 0, samples);
    EXPECT_TRUE(strength.detected) << flux;
    // Rows are divided by the system power 1 + flux, and the model has the flux in it.
    EXPECT_NEAR(strength.flux, 1 / (1 + flux), 0.12) << flux;
  }
  SimulatedArray noise(64, {1e-5}, 8);
  std::vector<double> scales;
  for (const double samples : {150.0, 4000.0}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const auto sample = SampleCovariance(noise).draw(samples, seed);
      const auto strength =
          model_strength(equations_of(noise, sample, samples, scales), 0, samples);
      EXPECT_FALSE(strength.detected) << samples << " samples, seed " << seed;
      EXPECT_GT(strength.limit, 0);
    }
  }
}

}  // namespace
}  // namespace ryle::calibrate::test
