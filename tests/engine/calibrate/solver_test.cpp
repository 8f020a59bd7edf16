// SPDX-License-Identifier: BSD-3-Clause
// CA-02, CA-03 of the calibration note: gains without noise, every implementation; wild and dead
// inputs.
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "ryle/engine/calibrate/screen.hpp"
#include "tests/engine/calibrate/simulated_gains.hpp"

namespace ryle::calibrate::test {
namespace {

/// Largest |found - true| after both are turned so that input 0 has phase 0.
double largest_error(const Solutions& found, const std::vector<cf64>& gains) {
  const auto turned = [](const cf64* g, std::size_t a) {
    return g[a] * std::polar(1.0, -std::arg(g[0]));
  };
  double largest = 0;
  for (std::size_t a = 0; a < gains.size(); ++a)
    largest = std::max(largest, std::abs(turned(found.gains.data(), a) - turned(gains.data(), a)));
  return largest;
}

TEST(Solver, FindsGainsWithoutNoise) {
  for (const std::int64_t n : {4, 16, 33, 100}) {
    for (const auto& fluxes : {std::vector<double>{1}, std::vector<double>{1, 0.5, 0.2}}) {
      if (n == 4 && fluxes.size() > 1) continue;  // 6 baselines of 3 sources converge slowly
      const SimulatedArray array(n, fluxes, 11);
      for (const auto& name : available_implementations()) {
        const auto found = solve(array.exact(), config_of(array.exact(), name));
        EXPECT_LT(largest_error(found, array.gains), 1e-6) << name << ", " << n << " inputs";
        EXPECT_LE(found.rounds[0], 60) << name << ", " << n << " inputs";
        EXPECT_LT(found.noise[0], 1e-6);  // of sums in single precision
        for (const auto flag : found.flags) EXPECT_EQ(flag, 0);
      }
    }
  }
}

TEST(Solver, EigenvectorFindsGainsOfOneSource) {
  const SimulatedArray array(24, {1}, 5);
  for (const auto& name : available_implementations()) {
    Config config = config_of(array.exact(), name);
    config.method = Method::eigenvector;
    const auto found = solve(array.exact(), config);
    EXPECT_LT(largest_error(found, array.gains), 1e-6) << name;
  }
}

TEST(Solver, MissingBaselinesAndInputsLeaveTheOthersRight) {
  const SimulatedArray array(20, {1, 0.3}, 9);
  Equations e(20, 1);
  for (std::int64_t b = 0; b < 20; ++b)
    for (std::int64_t a = 0; a < b; ++a)
      if ((a * 7 + b) % 3 != 0) e.add(0, a, b, array.signal(a, b), array.model(a, b), 1);
  e.drop(6);
  for (const auto& name : available_implementations()) {
    const auto found = solve(e, config_of(e, name));
    EXPECT_EQ(found.flags[6], 1);
    EXPECT_EQ(found.gains[6], cf64{});
    for (std::size_t a = 0; a < 20; ++a) {
      if (a == 6) continue;
      const cf64 ratio = found.gains[a] / array.gains[a] * array.gains[0] / found.gains[0];
      EXPECT_NEAR(std::arg(ratio), 0, 1e-5) << name << " input " << a;
      EXPECT_NEAR(std::abs(found.gains[a]), std::abs(array.gains[a]), 1e-5) << name;
    }
  }
}

TEST(Solver, NeighborsAndWorkersDoNotChangeTheResult) {
  constexpr std::int64_t kSolutions = 40;
  const SimulatedArray array(12, {1, 0.4}, 21);
  Equations e(12, kSolutions);
  for (std::int64_t s = 0; s < kSolutions; ++s)  // a delay turns the phases over the band
    for (std::int64_t b = 0; b < 12; ++b)
      for (std::int64_t a = 0; a < b; ++a)
        e.add(s, a, b,
              array.signal(a, b) * std::polar(1.0, 0.02 * static_cast<double>(s * (a - b))),
              array.model(a, b), 1);
  const auto one = solve(e, config_of(e, "cpu"), 1);
  const auto two = solve(e, config_of(e, "cpu"), 2);
  EXPECT_EQ(one.gains, two.gains);
  Config alone = config_of(e, "cpu");
  alone.from_neighbor = false;
  auto found = solve(e, alone), warm = one;
  gauge(found, 3);
  gauge(warm, 3);
  int rounds_alone = 0, rounds_warm = 0;
  for (std::int64_t s = 0; s < kSolutions; ++s) {
    EXPECT_NEAR(std::arg(warm.gains[warm.at(s, 3)]), 0, 1e-12);
    for (std::int64_t a = 0; a < 12; ++a)
      EXPECT_LT(std::abs(found.gains[found.at(s, a)] - warm.gains[warm.at(s, a)]), 1e-5);
    rounds_alone += found.rounds[s];
    rounds_warm += warm.rounds[s];
  }
  EXPECT_LE(rounds_warm, rounds_alone + kSolutions);
}

TEST(Solver, FlagsWhatDoesNotConverge) {
  const SimulatedArray array(12, {1}, 2);
  Config config = config_of(array.exact(), "cpu");
  config.max_rounds = 2;
  config.tolerance = 1e-15;
  const auto found = solve(array.exact(), config);
  for (std::int64_t a = 0; a < 12; ++a) {
    EXPECT_TRUE(found.is_flagged(0, a));
    EXPECT_EQ(found.gains[a], cf64{});
  }
}

TEST(Solver, GaugeFollowsTheNeighborWhereTheReferenceIsMissing) {
  Solutions g;
  g.n_inputs = 3;
  g.n_solutions = 3;
  for (const double angle_rad : {0.3, 1.1, -2.0})
    for (const double own_rad : {0.0, 0.5, 1.0})
      g.gains.push_back(std::polar(1.0, angle_rad + own_rad));
  g.flags.assign(9, 0);
  g.flags[g.at(1, 0)] = 1;
  g.gains[g.at(1, 0)] = 0;
  gauge(g, 0);
  for (std::int64_t s = 0; s < 3; ++s) {
    EXPECT_NEAR(std::arg(g.gains[g.at(s, 1)]), 0.5, 1e-12);
    EXPECT_NEAR(std::arg(g.gains[g.at(s, 2)]), 1.0, 1e-12);
  }
}

TEST(Solver, RefusesWhatItCannotSolve) {
  EXPECT_THROW(Equations(1, 1), ConfigError);
  EXPECT_THROW(Equations(4, 0), ConfigError);
  Config config;
  config.n_inputs = 4;
  config.n_solutions = 1;
  config.implementation = "cuda";
  EXPECT_THROW(make_solver(config), UnsupportedError);
  config.implementation = "auto";
  config.max_rounds = 1;
  EXPECT_THROW(make_solver(config), ConfigError);
}

// A wild input of 15 x the amplitude rules all sums; a dead one has none. Both are found by their
// power, and without them the gains of the others are those of an array without them.
TEST(Screen, WildAndDeadInputsAreFound) {
  SimulatedArray array(32, {1}, 77);
  for (cf64& g : array.gains) g /= std::sqrt(std::abs(g));  // powers from 0.7 to 1.3
  Equations e(32, 1);
  for (std::int64_t b = 0; b < 32; ++b) {
    for (std::int64_t a = 0; a < b; ++a) {
      cf64 v = array.signal(a, b) + 0.1 * normal(combine(8, a, b));
      for (const auto input : {a, b}) {
        if (input == 5) v = 15.0 * normal(combine(9, a, b));  // not the sky at all
        if (input == 17) v *= 0.05;
      }
      e.add(0, a, b, v, array.model(a, b), 1);
    }
  }
  const auto dropped = screen(pair_powers(e), {}).dropped;
  for (std::size_t a = 0; a < 32; ++a) {
    const Dropped want = a == 5 ? Dropped::high_power : a == 17 ? Dropped::low_power : Dropped::no;
    EXPECT_EQ(dropped[a], want) << a;
  }
  e.drop(5);
  e.drop(17);
  const auto found = solve(e, config_of(e, "cpu"));
  for (std::size_t a = 0; a < 32; ++a) {
    if (a == 5 || a == 17) continue;
    const cf64 ratio = found.gains[a] / array.gains[a] * array.gains[0] / found.gains[0];
    EXPECT_LT(std::abs(std::arg(ratio)), 0.2);  // some 5 sigma of two inputs
  }
}

}  // namespace
}  // namespace ryle::calibrate::test
