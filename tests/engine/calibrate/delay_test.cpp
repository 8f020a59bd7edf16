// SPDX-License-Identifier: BSD-3-Clause
// CA-07: delays of 32 inputs at S/N of 1 to 30 a channel.
#include <gtest/gtest.h>

#include "ryle/engine/calibrate/delays.hpp"
#include "tests/engine/calibrate/simulated_gains.hpp"

namespace ryle::calibrate::test {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kWidth_hz = 50e3;
constexpr std::int64_t kChannels = 128;

std::vector<cf64> band(double delay_s, double phase_rad, double snr, std::uint64_t seed) {
  std::vector<cf64> gains;
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const double x = static_cast<double>(c) - 0.5 * (kChannels - 1);
    gains.push_back(std::polar(1.0, phase_rad - 2 * kPi * x * kWidth_hz * delay_s) +
                    normal(combine(seed, c)) / snr);
  }
  return gains;
}

TEST(Delay, ScatterIsThatOfItsBound) {
  constexpr int kInputs = 32, kSeeds = 8;
  for (const double snr : {1.0, 3.0, 10.0, 30.0}) {
    double sum = 0, sum_sigma = 0;
    for (int k = 0; k < kInputs * kSeeds; ++k) {
      const double delay_s = 200e-9 * (2 * uniform(combine(41, k)) - 1);
      const auto fit =
          fit_delay(band(delay_s, 6 * uniform(combine(42, k)), snr, combine(43, k)), {}, kWidth_hz);
      sum += std::pow(fit.delay_s - delay_s, 2);
      sum_sigma += fit.sigma_s;
    }
    const double n = kInputs * kSeeds;
    const double rms_hz = kWidth_hz * std::sqrt((kChannels * kChannels - 1) / 12.0);
    const double sigma_phi = 1 / (std::sqrt(2.0) * snr);
    const double bound_s = sigma_phi / (2 * kPi * std::sqrt(double{kChannels}) * rms_hz);
    // 256 delays: their rms is known to 4.4 %.
    EXPECT_LT(std::sqrt(sum / n), 1.1 * bound_s * 1.06) << snr;
    EXPECT_GT(std::sqrt(sum / n), 0.87 * bound_s) << snr;
    EXPECT_NEAR(sum_sigma / n, bound_s, 0.15 * bound_s) << snr;
  }
}

TEST(Delay, WrapsAreRightUpToHalfAChannel) {
  for (const double share : {-0.499, -0.25, 0.0, 0.3, 0.49}) {
    const double delay_s = share / kWidth_hz;
    const auto fit = fit_delay(band(delay_s, -2, 30, 7), {}, kWidth_hz);
    EXPECT_NEAR(fit.delay_s, delay_s, 1e-9);
    EXPECT_NEAR(fit.phase_rad, -2, 0.05);
    EXPECT_GT(fit.coherence, 0.99);
    EXPECT_EQ(fit.n_used, kChannels);
  }
}

TEST(Delay, ChannelsWithoutAGainCountNothing) {
  auto gains = band(120e-9, 1, 50, 3);
  std::vector<double> weights(kChannels, 1);
  for (std::int64_t c = 30; c < 50; ++c) gains[c] = 0;
  gains[60] = std::polar(40.0, 2.0);
  weights[60] = 0;
  const auto fit = fit_delay(gains, weights, kWidth_hz);
  EXPECT_NEAR(fit.delay_s, 120e-9, 3e-9);
  EXPECT_EQ(fit.n_used, kChannels - 21);
  EXPECT_EQ(fit_delay({gains.data() + 30, 20}, {}, kWidth_hz).n_used, 0);
}

}  // namespace
}  // namespace ryle::calibrate::test
