// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/image.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/engine/image/runs.hpp"
#include "ryle/engine/image/statistics.hpp"
#include "sky.hpp"

namespace ryle::image {
namespace {

using test::observe;
using test::Random;

std::vector<double> image_of(const Config& config, const std::vector<Sample>& samples,
                             int n_workers = 2) {
  Queue queue = Queue::cpu(n_workers);
  // Whatever was in the output before must not show.
  std::vector<double> image(37, -1e30);
  make_imager(queue, config)->execute(queue, samples, image);
  EXPECT_EQ(static_cast<std::int64_t>(image.size()), config.n_pixels * config.n_pixels);
  return image;
}

double largest(const std::vector<double>& image) {
  double peak = 0;
  for (const double v : image) {
    if (!std::isnan(v)) peak = std::max(peak, std::abs(v));
  }
  return peak;
}

// Largest difference, infinite where one image has a value and the other has none.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (std::isnan(a[k]) != std::isnan(b[k])) return std::numeric_limits<double>::infinity();
    if (!std::isnan(a[k])) worst = std::max(worst, std::abs(a[k] - b[k]));
  }
  return worst;
}

struct Way {
  std::string implementation;
  SamplePath path;
};
std::vector<Way> every_way() {
  std::vector<Way> ways;
  for (const auto& one : available_implementations()) {
    ways.push_back({one, SamplePath::direct});
    if (one != "reference") ways.push_back({one, SamplePath::w_stacked});
  }
  return ways;
}

class EveryImplementation : public testing::TestWithParam<Way> {
 protected:
  static Config config_of(std::int64_t n_pixels, double width) {
    Config config{n_pixels, width, GetParam().implementation};
    config.path = GetParam().path;
    config.max_error = 1e-6;
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Image, EveryImplementation, testing::ValuesIn(every_way()),
                         [](const auto& p) {
                           std::string name = p.param.implementation;
                           if (p.param.path == SamplePath::w_stacked) name += "_stacked";
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST_P(EveryImplementation, RunsUnderItsName) {
  Queue queue = Queue::cpu(1);
  std::string reported = "image/" + GetParam().implementation;
  std::replace(reported.begin(), reported.end(), ':', '/');
  const auto imager = make_imager(queue, config_of(16, 2.0));
  EXPECT_EQ(imager->implementation(), reported);
  EXPECT_EQ(imager->path(), GetParam().path);
}

TEST_P(EveryImplementation, PutsSourcesOfFourQuadrantsWhereTheyAre) {
  const std::vector<test::Source> quadrants{
      {0.31, 0.42}, {-0.55, 0.2}, {-0.3, -0.6}, {0.61, -0.35}};
  const Config config = config_of(96, 2.0);
  for (const auto& source : quadrants) {
    const auto image = image_of(config, observe({source}, 24, 3, 22.0, 6.0));
    const Peak peak = peak_of(config, image);
    const Pixel expected = pixel_of_direction(config, source.l, source.m);
    // The beam is about 1/22 of a direction cosine = 2 pixels wide, aslant: the highest pixel is a
    // neighbour of the source at most, and the paraboloid finds it to a quarter of a pixel.
    EXPECT_LT(std::abs(static_cast<double>(peak.x) - expected.x), 1) << source.l << source.m;
    EXPECT_LT(std::abs(static_cast<double>(peak.y) - expected.y), 1);
    EXPECT_NEAR(peak.direction.l, source.l, 0.25 * 2.0 / 96);
    EXPECT_NEAR(peak.direction.m, source.m, 0.25 * 2.0 / 96);
    EXPECT_GT(peak.value, 0.7);
    EXPECT_LT(peak.value, 1.0);
  }
}

TEST_P(EveryImplementation, GivesTheFluxAtTheExactPixel) {
  // A source on a pixel centre: every term is 1 there. Bound of the fp32 paths:
  // sum_kernel.inc, 1.5e-5 at worst.
  const Config config = config_of(64, 2.0);
  const auto [l, m] = direction_of_pixel(config, 20, 45);
  const auto image = image_of(config, observe({{l, m, 3.0}}, 12, 70, 40.0, 30.0));
  EXPECT_NEAR(image[45 * 64 + 20], 3.0, 3.0 * 1.5e-5);
}

TEST_P(EveryImplementation, AgreesWithTheDoubleSum) {
  // Lengths around the restart of the recurrence, single samples, tails that do not fill a block of
  // pixels.
  for (const int n_channels : {1, 2, 3, 63, 64, 65, 130}) {
    const auto samples = observe({{0.3, -0.2, 1.0}, {-0.5, 0.1, 0.4}}, 8, n_channels, 300.0, 100.0);
    const auto expected = image_of({22, 1.7, "reference"}, samples);
    const auto image = image_of(config_of(22, 1.7), samples);
    // 28 baselines: the error of a run of 64 is 0.75e-5 in the mean over its terms at worst
    // (sum_kernel.inc).
    EXPECT_LT(difference(image, expected), 1e-5 * 1.4) << n_channels;
  }
}

TEST_P(EveryImplementation, DoesNotMindTheOrderOfTheSamples) {
  auto samples = observe({{0.3, -0.2, 1.0}, {-0.5, 0.1, 0.4}}, 7, 40, 100.0, 20.0);
  Random random(7);
  for (auto& s : samples) s.weight = random.uniform(0.1, 5.0);
  const auto expected = image_of({24, 2.0, "reference"}, samples);
  std::vector<Sample> channel_major;
  for (int c = 0; c < 40; ++c) {
    for (std::size_t b = 0; b < samples.size() / 40; ++b)
      channel_major.push_back(samples[b * 40 + static_cast<std::size_t>(c)]);
  }
  EXPECT_LT(difference(image_of(config_of(24, 2.0), channel_major), expected), 1.4e-5);
  for (std::size_t k = samples.size() - 1; k > 0; --k) {
    std::swap(samples[k],
              samples[static_cast<std::size_t>(random.uniform(0, static_cast<double>(k)))]);
  }
  EXPECT_LT(difference(image_of(config_of(24, 2.0), samples), expected), 1.4e-5);
}

TEST_P(EveryImplementation, LeavesTheGroundEmpty) {
  const Config config = config_of(40, 2.0);
  const auto image = image_of(config, observe({{0, 0}}, 4, 1, 5.0, 1.0));
  for (std::int64_t y = 0; y < 40; ++y) {
    for (std::int64_t x = 0; x < 40; ++x) {
      const auto d = direction_of_pixel(config, static_cast<double>(x), static_cast<double>(y));
      EXPECT_EQ(std::isnan(image[static_cast<std::size_t>(y * 40 + x)]), d.l * d.l + d.m * d.m >= 1)
          << x << " " << y;
    }
  }
}

TEST_P(EveryImplementation, WeighsAndLeavesOutSamples) {
  auto samples = observe({{0.3, 0.3}}, 6, 2, 10.0, 1.0);
  const auto alone = image_of({16, 2.0, "reference"}, samples);
  // Samples of no weight, not finite, or negative weight change nothing.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto more = samples;
  more.push_back({1, 2, 3, {1e9, 0}, 0});
  more.push_back({1, 2, 3, {nan, 0}, 1});
  more.push_back({1, 2, 3, {1, 0}, nan});
  more.push_back({nan, 2, 3, {1, 0}, 1});
  more.push_back({1, 2, 3, {1, std::numeric_limits<double>::infinity()}, 1});
  more.push_back({1, 2, 3, {1, 0}, -4});
  EXPECT_LT(difference(image_of(config_of(16, 2.0), more), alone), 1e-6);
  // A sample of twice the weight counts as two.
  auto doubled = samples;
  doubled[3].weight = 2;
  auto twice = samples;
  twice.push_back(samples[3]);
  EXPECT_LT(
      difference(image_of(config_of(16, 2.0), doubled), image_of({16, 2.0, "reference"}, twice)),
      1e-6);
  EXPECT_GT(difference(image_of(config_of(16, 2.0), doubled), alone), 1e-3);
  // Nothing at all is not a picture of zeros.
  for (const double v : image_of(config_of(16, 2.0), {})) EXPECT_TRUE(std::isnan(v));
}

TEST_P(EveryImplementation, IsIndifferentToTheScaleOfTheData) {
  for (const double scale : {1e-30, 1e30}) {
    auto samples = observe({{0.3, 0.3}}, 6, 5, 10.0, 1.0);
    for (auto& s : samples) s.visibility *= scale;
    const auto expected = image_of({16, 2.0, "reference"}, samples);
    EXPECT_LT(difference(image_of(config_of(16, 2.0), samples), expected),
              1.4e-5 * largest(expected));
  }
}

TEST_P(EveryImplementation, IsBitIdenticalForAnyNumberOfWorkers) {
  const auto samples = observe({{0.3, 0.3}}, 9, 17, 30.0, 3.0);
  const auto one = image_of(config_of(32, 2.0), samples, 1);
  const auto two = image_of(config_of(32, 2.0), samples, 2);
  EXPECT_EQ(difference(one, two), 0);
}

TEST(Image, ZeroVisibilitiesMakeAZeroImage) {
  auto samples = observe({{0.3, 0.3, 0.0}}, 4, 4, 10.0, 1.0);
  EXPECT_EQ(largest(image_of({16, 2.0, "cpu"}, samples)), 0);
}

TEST(Image, PixelsAndDirectionsFollowTheConventions) {
  const Config config{64, 1.6, "auto"};
  EXPECT_EQ(direction_of_pixel(config, 32, 32).l, 0);
  EXPECT_EQ(direction_of_pixel(config, 32, 32).m, 0);
  EXPECT_GT(direction_of_pixel(config, 31, 32).l, 0) << "east is toward smaller x";
  EXPECT_GT(direction_of_pixel(config, 32, 33).m, 0) << "north is toward larger y";
  EXPECT_NEAR(direction_of_pixel(config, 31, 32).l, 1.6 / 64, 1e-15);
  const Pixel p = pixel_of_direction(config, 0.25, -0.5);
  const Direction d = direction_of_pixel(config, p.x, p.y);
  EXPECT_NEAR(d.l, 0.25, 1e-15);
  EXPECT_NEAR(d.m, -0.5, 1e-15);
}

TEST(Image, RejectsImpossibleSizesAndUnknownNames) {
  Queue queue = Queue::cpu(1);
  for (const std::int64_t n : {-2, 0, 1, 65537}) {
    EXPECT_THROW(make_imager(queue, {n, 2.0, "auto"}), ConfigError) << n;
  }
  for (const double width : {0.0, -1.0, 4.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(make_imager(queue, {64, width, "auto"}), ConfigError) << width;
  }
  for (const double error : {0.0, 1e-13, 0.02, std::numeric_limits<double>::quiet_NaN()}) {
    Config config{64, 2.0, "auto"};
    config.max_error = error;
    EXPECT_THROW(make_imager(queue, config), ConfigError) << error;
  }
  Config stacked{64, 2.0, "reference"};
  stacked.path = SamplePath::w_stacked;
  EXPECT_THROW(make_imager(queue, stacked), UnsupportedError);
  try {
    make_imager(queue, {64, 2.0, "cpu:mmx"});
    FAIL() << "cpu:mmx was accepted";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cpu:generic"), std::string::npos) << error.what();
  }
}

TEST(ImageRuns, FindsTheChannelsOfABaselineInAnyOrder) {
  auto samples = observe({{0.3, 0.3}}, 4, 128, 10.0, 1.0);
  std::reverse(samples.begin(), samples.end());
  const auto plan = detail::plan_runs(samples);
  EXPECT_EQ(plan.coefficients.size(), 2 * samples.size());
  EXPECT_LE(plan.runs.size(), 6u * 3u)
      << "6 baselines of 128 channels are two runs each, give or take a rounding";
}

TEST(ImageRuns, AddsDumpsOfOneBaselineTogether) {
  auto samples = observe({{0.3, 0.3}}, 4, 16, 10.0, 1.0);
  const auto one = detail::plan_runs(samples);
  auto again = samples;
  for (int k = 0; k < 4; ++k) again.insert(again.end(), samples.begin(), samples.end());
  const auto five = detail::plan_runs(again);
  EXPECT_EQ(five.coefficients.size(), one.coefficients.size());
}

}  // namespace
}  // namespace ryle::image
