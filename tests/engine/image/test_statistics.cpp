// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "sky.hpp"

namespace ryle::image {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ImageStatistics, MedianAndSigmaAreThoseOfTheDefinition) {
  EXPECT_EQ(spread_of({3, kNaN, 1, 2, 100}).median, 2.5);
  EXPECT_EQ(spread_of({3, kNaN, 1, 2, 100}).n_pixels, 4);
  // deviations from 3: 0 1 2 1 97, median 1; from 5: 0 3 0 2 95, median 2
  EXPECT_DOUBLE_EQ(spread_of({3, 2, 1, 4, 100}).sigma, 1.4826);
  EXPECT_DOUBLE_EQ(spread_of({5, 2, 5, 7, 100}).sigma, 2 * 1.4826);
  EXPECT_EQ(spread_of({kNaN}).n_pixels, 0);
}

TEST(ImageStatistics, SigmaOfGaussianNoiseIsItsStandardDeviation) {
  test::Random random(5);
  std::vector<double> noise(40000);
  for (auto& v : noise) {
    v = std::sqrt(-2 * std::log(random.uniform(1e-12, 1))) *
        std::cos(6.283185307179586 * random.uniform(0, 1));
  }
  // Standard error of 1.4826 MAD: 1.17 / sqrt(2 N) x 1.4 = 0.0058; 5 of them.
  EXPECT_NEAR(spread_of(noise).sigma, 1.0, 5 * 0.0058);
}

TEST(ImageStatistics, PeakIsRefinedWithinAPixel) {
  const Config config{32, 2.0, "auto"};
  std::vector<double> image(32 * 32, 0.0);
  const double x0 = 20.3, y0 = 9.8;
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      image[static_cast<std::size_t>(y * 32 + x)] =
          10 - 0.01 * ((x - x0) * (x - x0) + (x - x0) * (y - y0) + (y - y0) * (y - y0));
    }
  }
  const Peak peak = peak_of(config, image);
  EXPECT_EQ(peak.x, 20);
  EXPECT_EQ(peak.y, 10);
  const Direction expected = direction_of_pixel(config, x0, y0);
  EXPECT_NEAR(peak.direction.l, expected.l, 1e-9);
  EXPECT_NEAR(peak.direction.m, expected.m, 1e-9);
  const Spread spread = spread_of(image);
  EXPECT_DOUBLE_EQ(peak.sigmas, (peak.value - spread.median) / spread.sigma);
}

TEST(ImageStatistics, PeakOfAPartAndOfNothing) {
  const Config config{16, 2.0, "auto"};
  std::vector<double> image(16 * 16, 0.0);
  image[3 * 16 + 4] = 9;
  image[12 * 16 + 11] = 5;
  EXPECT_EQ(peak_of(config, image).value, 9);
  EXPECT_EQ(peak_near(config, image, direction_of_pixel(config, 11, 12), 0.2).value, 5);
  image[0] = 50;  // on the edge: no neighbours to fit a parabola through
  EXPECT_EQ(peak_of(config, image).direction.l, direction_of_pixel(config, 0, 0).l);
  EXPECT_THROW(peak_of(config, std::vector<double>(16 * 16, kNaN)), ConfigError);
  EXPECT_THROW(peak_of(config, std::vector<double>(7, 0.0)), ConfigError);
}

}  // namespace
}  // namespace ryle::image
