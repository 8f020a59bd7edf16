// SPDX-License-Identifier: BSD-3-Clause
// The Gaussian that a dirty beam is summed up by.
#include "ryle/engine/image/dirty_beam.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"

namespace ryle::image {
namespace {

/// Baselines drawn from a Gaussian that is `ratio` times longer along `angle_rad` (from v through
/// u): the beam is a Gaussian then, too.
std::vector<Sample> gaussian_samples(double sigma_waves, double ratio, double angle_rad) {
  std::vector<Sample> samples;
  for (std::uint64_t k = 0; k < 40000; ++k) {
    const double along = sigma_waves * ratio * gaussian(combine(k, 1));
    const double across = sigma_waves * gaussian(combine(k, 2));
    Sample s;
    s.u = along * std::sin(angle_rad) + across * std::cos(angle_rad);
    s.v = along * std::cos(angle_rad) - across * std::sin(angle_rad);
    s.w = 3 * gaussian(combine(k, 3));
    s.weight = 2;
    samples.push_back(s);
  }
  return samples;
}

// exp(-2 pi^2 sigma^2 l^2) falls to a half at sqrt(2 ln 2) / (2 pi sigma).
TEST(DirtyBeam, OfGaussianBaselinesIsTheirTransform) {
  Queue queue = Queue::cpu(1);
  for (const double angle_deg : {0.0, 30.0, 80.0, -50.0}) {
    const auto beam = dirty_beam(queue, gaussian_samples(20, 2, angle_deg * kDegree_rad));
    ASSERT_TRUE(beam.has_value());
    const double wide = std::sqrt(2 * std::numbers::ln2) / (kPi * 20);
    // 40,000 baselines: widths are good to 1 / sqrt(2 x 40,000) = 0.35 %, 5 sigma.
    EXPECT_NEAR(beam->major, wide, 0.018 * wide);
    EXPECT_NEAR(beam->minor, wide / 2, 0.018 * wide / 2);
    // Where baselines are long the beam is narrow.
    const double turned = std::remainder(beam->angle_rad - (angle_deg + 90) * kDegree_rad, kPi);
    EXPECT_NEAR(turned, 0, 0.02) << angle_deg;
  }
}

TEST(DirtyBeam, OfTheAllSkyImagerIsThatOfItsPairs) {
  AllSkyConfig config;
  for (std::uint64_t a = 0; a < 24; ++a) {
    config.antenna_enu_m.push_back({30 * gaussian(combine(a, 5)), 18 * gaussian(combine(a, 6)),
                                    0.1 * gaussian(combine(a, 7))});
    config.inputs.push_back({static_cast<std::int64_t>(a), 0, a == 3});
  }
  config.channels = {60e6, 1e6, 4};
  config.n_channels_per_bin = 4;
  for (const bool remove_autos : {true, false}) {
    config.remove_autos = remove_autos;
    std::vector<std::uint8_t> dead(24, 0);
    dead[11] = 1;
    std::vector<Sample> samples;
    for (std::int64_t c = 0; c < 4; ++c) {
      const double per_m = config.channels.center_hz(c) / kSpeedOfLight_m_per_s;
      for (std::size_t a = 0; a < 24; ++a) {
        for (std::size_t b = 0; b < 24; ++b) {
          if (a == 3 || b == 3 || a == 11 || b == 11 || (a == b && remove_autos)) continue;
          const auto& p = config.antenna_enu_m[a];
          const auto& q = config.antenna_enu_m[b];
          samples.push_back({(p[0] - q[0]) * per_m, (p[1] - q[1]) * per_m, 0, 1, 1});
        }
      }
    }
    Queue queue = Queue::cpu(1);
    const auto expected = dirty_beam(queue, samples);
    const auto beam = dirty_beam(config, dead);
    ASSERT_TRUE(beam && expected);
    EXPECT_NEAR(beam->major, expected->major, 1e-3 * expected->major);
    EXPECT_NEAR(beam->minor, expected->minor, 1e-3 * expected->minor);
    EXPECT_NEAR(std::remainder(beam->angle_rad - expected->angle_rad, kPi), 0, 2e-3);
    EXPECT_GT(beam->major, 1.2 * beam->minor);
  }
}

// Antennas on a line, or too few, make no beam; nor does anything without weight.
TEST(DirtyBeam, NeedsBaselinesInTwoDirections) {
  Queue queue = Queue::cpu(1);
  std::vector<Sample> line;
  for (int k = 1; k < 20; ++k) line.push_back({3.0 * k, 1.0 * k, 0, 1, 1});
  EXPECT_FALSE(dirty_beam(queue, line).has_value());
  EXPECT_FALSE(dirty_beam(queue, {}).has_value());
  for (auto& sample : line) sample.weight = 0;
  EXPECT_FALSE(dirty_beam(queue, line).has_value());
  AllSkyConfig two;
  two.antenna_enu_m = {{0, 0, 0}, {10, 0, 0}};
  two.inputs = {{0, 0, false}, {1, 0, false}};
  two.channels = {60e6, 1e6, 1};
  EXPECT_FALSE(dirty_beam(two).has_value());
}

// The picture is left empty when the caller asks to stop, and is the same when it does not.
TEST(DirtyBeam, WorkCanBeWatchedAndStopped) {
  Queue queue = Queue::cpu(2);
  const auto samples = gaussian_samples(20, 2, 0.3);
  for (const char* implementation : {"auto", "reference"}) {
    const std::vector<Sample> few(samples.begin(), samples.begin() + 50);
    std::vector<double> plain;
    std::vector<double> watched;
    Config config{64, 2, implementation};
    make_imager(queue, config)->execute(queue, few, plain);
    std::vector<double> shares;
    config.go_on = [&](double done) {
      shares.push_back(done);
      return true;
    };
    make_imager(queue, config)->execute(queue, few, watched);
    for (std::size_t k = 0; k < plain.size(); ++k) {
      EXPECT_TRUE(plain[k] == watched[k] || (std::isnan(plain[k]) && std::isnan(watched[k])));
    }
    EXPECT_GT(shares.size(), 2U);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    config.go_on = [](double done) { return done < 0.3; };
    make_imager(queue, config)->execute(queue, few, watched);
    EXPECT_TRUE(watched.empty());
  }
}

}  // namespace
}  // namespace ryle::image
