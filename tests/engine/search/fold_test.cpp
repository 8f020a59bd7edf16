// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/fold.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::search {
namespace {

std::vector<float> pulsar(std::size_t n, double interval_s, double period_s, double amplitude) {
  std::vector<float> x(n);
  for (std::size_t k = 0; k < n; ++k) {
    const double turns = static_cast<double>(k) * interval_s / period_s;
    const double phase = turns - std::floor(turns) - 0.3;
    x[k] = static_cast<float>(1000 + gaussian(combine(1, k)) +
                              amplitude * std::exp(-0.5 * phase * phase / (0.02 * 0.02)));
  }
  return x;
}

TEST(Fold, FindsThePeriodAndThePhase) {
  const double interval_s = 1e-3, period_s = 0.1637;
  const auto series = pulsar(40000, interval_s, period_s, 2);
  FoldConfig config;
  config.n_bins = 100;
  config.f0_hz = 1 / (period_s * 1.0006);  // off by 0.15 turns over the series
  const double off = fold(series, interval_s, config).reduced_chi2();
  const Fold found = fold_search(series, interval_s, config, 1 / 40.0);
  EXPECT_NEAR(1 / found.config.f0_hz, period_s, 0.25 * period_s * period_s / 100 / 40 * 4);
  EXPECT_GT(found.reduced_chi2(), 2 * off);
  const auto profile = found.profile();
  EXPECT_NEAR(
      static_cast<double>(std::max_element(profile.begin(), profile.end()) - profile.begin()), 30,
      2);
  EXPECT_NEAR(found.mean, 1000 + 2 * 0.02 * std::sqrt(2 * 3.14159265), 0.03);
}

TEST(Fold, NoiseHasChi2One) {
  const auto series = pulsar(50000, 1e-3, 0.2, 0);
  FoldConfig config;
  config.f0_hz = 5.001;
  config.n_bins = 64;  // 63 degrees of freedom: 1 +- 0.18
  EXPECT_NEAR(fold(series, 1e-3, config).reduced_chi2(), 1, 5 * std::sqrt(2.0 / 63));
}

TEST(Fold, CountsEverySampleOnceAndSkipsNan) {
  auto series = pulsar(1000, 1e-3, 0.05, 1);
  series[10] = series[500] = std::nanf("");
  FoldConfig config;
  config.f0_hz = 20;
  config.n_bins = 10;
  const auto f = fold(series, 1e-3, config);
  std::int64_t total = 0;
  for (const auto c : f.counts) total += c;
  EXPECT_EQ(total, 998);
}

TEST(Fold, RejectsWhatCannotBe) {
  const std::vector<float> series(100, 1.0f);
  FoldConfig config;
  EXPECT_THROW(fold(series, 1e-3, config), ConfigError);
  config.f0_hz = 900;
  EXPECT_THROW(fold(series, 1e-3, config), ConfigError);
  config.f0_hz = 1;
  EXPECT_THROW(fold(series, 1e-3, config), ConfigError);
}

}  // namespace
}  // namespace ryle::search
