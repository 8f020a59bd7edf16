// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ryle/core/error.hpp"
#include "ryle/engine/flag/flag.hpp"

namespace ryle::flag {
namespace {

struct Plane {
  std::int64_t n_times, n_channels;
  std::vector<float> amplitudes;
  std::vector<std::uint8_t> flags;
  float& at(std::int64_t t, std::int64_t c) { return amplitudes[t * n_channels + c]; }
  std::uint8_t flag(std::int64_t t, std::int64_t c) const { return flags[t * n_channels + c]; }
};

/// |V| of complex noise of 1 a part about a bandpass and a fringe that changes slowly.
Plane noise(std::int64_t n_times, std::int64_t n_channels, unsigned seed) {
  Plane plane{n_times, n_channels, {}, {}};
  std::mt19937 generator(seed);
  std::normal_distribution<double> part;
  for (std::int64_t t = 0; t < n_times; ++t) {
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const double sky = 20 + 4 * std::sin(0.02 * double(t)) + 3 * std::cos(0.015 * double(c));
      plane.amplitudes.push_back(float(std::hypot(sky + part(generator), part(generator))));
    }
  }
  plane.flags.assign(plane.amplitudes.size(), 0);
  return plane;
}

Config config_of(const Plane& plane, const char* implementation = "auto") {
  Config config;
  config.n_times = plane.n_times;
  config.n_channels = plane.n_channels;
  config.implementation = implementation;
  return config;
}

void run(Plane& plane, const char* implementation = "auto") {
  make_sum_threshold(config_of(plane, implementation))->flag(plane.amplitudes, plane.flags);
}

TEST(SumThreshold, NoiseIsKept) {
  double flagged = 0;
  double all = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    Plane plane = noise(60, 128, seed);
    run(plane);
    for (const auto f : plane.flags) flagged += f;
    all += double(plane.flags.size());
  }
  EXPECT_LT(flagged / all, 2e-3);
}

TEST(SumThreshold, FindsWhatShortRowsDoNot) {
  Plane plane = noise(60, 128, 9);
  for (std::int64_t t = 0; t < 60; ++t) plane.at(t, 40) += 3;     // a weak carrier
  for (std::int64_t c = 20; c < 110; ++c) plane.at(30, c) += 3;   // a broad pulse
  for (std::int64_t t = 10; t < 14; ++t) plane.at(t, 100) += 40;  // a strong burst
  plane.at(50, 5) += 12;                                          // one sample
  run(plane);
  double carrier = 0;
  double pulse = 0;
  for (std::int64_t t = 0; t < 60; ++t) carrier += plane.flag(t, 40) / 60.0;
  for (std::int64_t c = 20; c < 110; ++c) pulse += plane.flag(30, c) / 90.0;
  EXPECT_GT(carrier, 0.95);
  EXPECT_GT(pulse, 0.95);
  for (std::int64_t t = 10; t < 14; ++t) EXPECT_TRUE(plane.flag(t, 100));
  EXPECT_TRUE(plane.flag(50, 5));
  double others = 0;
  for (std::int64_t t = 0; t < 60; ++t) {
    for (std::int64_t c = 0; c < 128; ++c) {
      const bool near = std::abs(c - 40) < 3 || std::abs(t - 30) < 3 || std::abs(c - 100) < 3;
      others += !near && !(t == 50 && c == 5) && plane.flag(t, c) ? 1 : 0;
    }
  }
  EXPECT_LT(others / (60 * 128), 0.005);
}

TEST(SumThreshold, RunningSumsFlagWhatTheEquationDoes) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    Plane reference = noise(17 + seed, 70 - 5 * seed, seed);
    std::mt19937 generator(seed);
    for (int k = 0; k < 30; ++k) {
      const std::size_t at = generator() % reference.amplitudes.size();
      reference.amplitudes[at] += float(generator() % 30);
      if (k % 7 == 0) reference.flags[generator() % reference.flags.size()] = 1;
    }
    Plane fast = reference;
    run(reference, "reference");
    run(fast, "cpu");
    EXPECT_EQ(reference.flags, fast.flags) << seed;
  }
}

TEST(SumThreshold, FlagsStayAndWhatIsFlaggedIsNotLookedAt) {
  Plane plane = noise(40, 64, 3);
  Plane other = plane;
  for (std::int64_t t = 0; t < 40; ++t) {
    plane.flags[t * 64 + 20] = other.flags[t * 64 + 20] = 1;
    other.at(t, 20) = 1e6F;
    other.at(t, 21) = other.at(t, 21);
  }
  other.at(3, 20) = NAN;
  run(plane);
  run(other);
  EXPECT_EQ(plane.flags, other.flags);
  for (std::int64_t t = 0; t < 40; ++t) EXPECT_TRUE(plane.flag(t, 20));
  Plane all = noise(8, 8, 1);
  all.flags.assign(64, 1);
  run(all);  // nothing left to look at
  Plane not_a_number = noise(20, 20, 1);
  not_a_number.at(4, 4) = NAN;
  run(not_a_number);
  EXPECT_TRUE(not_a_number.flag(4, 4));
}

TEST(SumThreshold, OneTimeOrOneChannel) {
  for (const bool spectrum : {true, false}) {
    Plane plane = noise(spectrum ? 1 : 200, spectrum ? 200 : 1, 4);
    for (int k = 92; k < 96; ++k) plane.amplitudes[k] += 10;
    run(plane);
    double found = 0;
    for (int k = 92; k < 96; ++k) found += plane.flags[k];
    EXPECT_GE(found, 3) << spectrum;
  }
}

TEST(SumThreshold, RefusesWhatItCannotDo) {
  const Plane plane = noise(8, 8, 1);
  for (const auto& change : std::vector<void (*)(Config&)>{
           [](Config& c) { c.n_times = 0; }, [](Config& c) { c.max_window = 3; },
           [](Config& c) { c.threshold_sigmas = 0; }, [](Config& c) { c.growth = 0.5; },
           [](Config& c) { c.implementation = "cuda"; }, [](Config& c) { c.smooth_times = 0; }}) {
    Config config = config_of(plane);
    change(config);
    EXPECT_THROW(validate(config), ConfigError);
  }
}

}  // namespace
}  // namespace ryle::flag
