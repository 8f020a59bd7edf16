// SPDX-License-Identifier: BSD-3-Clause
// Gridding with planes of w against the exact sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/grid_function.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/engine/image/w_stack.hpp"
#include "sky.hpp"

namespace ryle::image {
namespace {

using test::observe;
using test::Random;

Config stacked(std::int64_t n_pixels, double width, double max_error) {
  Config config{n_pixels, width, "cpu"};
  config.path = SamplePath::w_stacked;
  config.max_error = max_error;
  return config;
}

std::vector<double> image_of(const Config& config, const std::vector<Sample>& samples,
                             int n_workers = 2) {
  Queue queue = Queue::cpu(n_workers);
  std::vector<double> image(3, 7.0);
  make_imager(queue, config)->execute(queue, samples, image);
  return image;
}

std::vector<double> exact_of(const Config& config, const std::vector<Sample>& samples) {
  return image_of({config.n_pixels, config.width_direction_cosines, "reference"}, samples);
}

/// Largest difference as a share of the weighted mean of |V|: what max_error bounds.
double error_of(const std::vector<double>& image, const std::vector<double>& exact,
                const std::vector<Sample>& samples) {
  double amplitude = 0, weight = 0;
  for (const Sample& s : samples) {
    amplitude += s.weight * std::abs(s.visibility);
    weight += s.weight;
  }
  double worst = 0;
  EXPECT_EQ(image.size(), exact.size());
  for (std::size_t k = 0; k < std::min(image.size(), exact.size()); ++k) {
    EXPECT_EQ(std::isnan(image[k]), std::isnan(exact[k])) << k;
    if (!std::isnan(exact[k])) worst = std::max(worst, std::abs(image[k] - exact[k]));
  }
  return worst * weight / amplitude;
}

/// Samples that no array would give: everywhere in a box, of any phase, weight and sign of w.
std::vector<Sample> random_samples(int n, double u, double v, double w, std::uint64_t seed) {
  Random random(seed);
  std::vector<Sample> samples;
  for (int k = 0; k < n; ++k) {
    Sample s;
    s.u = random.uniform(-u, u);
    s.v = random.uniform(-v, v);
    s.w = random.uniform(-w, w);
    s.visibility = std::polar(random.uniform(0, 2), random.uniform(0, 2 * kPi));
    s.weight = random.uniform(0.1, 3);
    samples.push_back(s);
  }
  return samples;
}

class Accuracy : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(WStack, Accuracy,
                         testing::Values(1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12),
                         [](const auto& p) {
                           return "digits" + std::to_string(std::lround(-std::log10(p.param)));
                         });

TEST_P(Accuracy, IsKeptWhereverASampleLies) {
  const auto samples = random_samples(300, 40, 25, 30, 5);
  for (const std::int64_t n : {32, 45}) {
    for (const double width : {2.0, 1.3, 0.2}) {
      const Config config = stacked(n, width, GetParam());
      EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), GetParam())
          << n << " " << width;
    }
  }
}

TEST_P(Accuracy, IsKeptOfPointSourcesDownToTheHorizon) {
  // 4 sources of equal flux at 0, 45, 75 and 85 degrees from the zenith, each on a pixel.
  const Config config = stacked(128, 2.0, GetParam());
  std::vector<test::Source> sources;
  std::vector<std::int64_t> at;
  const double degrees[] = {0, 45, 75, 85};
  for (int k = 0; k < 4; ++k) {
    const double r = std::sin(degrees[k] * kDegree_rad);
    const auto pixel = pixel_of_direction(config, r * std::cos(0.4 + k), r * std::sin(0.4 + k));
    const auto x = static_cast<std::int64_t>(std::trunc(pixel.x));
    const auto y = static_cast<std::int64_t>(std::trunc(pixel.y));
    const auto d = direction_of_pixel(config, static_cast<double>(x), static_cast<double>(y));
    ASSERT_LT(d.l * d.l + d.m * d.m, 1);
    sources.push_back({d.l, d.m, 1});
    at.push_back(y * 128 + x);
  }
  for (int k = 0; k < 4; ++k) {
    const auto samples = observe({sources[k]}, 12, 3, 60.0, 20.0);
    const auto image = image_of(config, samples);
    EXPECT_NEAR(image[at[k]], 1, GetParam()) << degrees[k] << " degrees from the zenith";
    if (k == 2) {
      EXPECT_LT(error_of(image, exact_of(config, samples), samples), GetParam());
    }
  }
}

TEST(WStack, TakesAnySizeOfPicture) {
  const auto samples = random_samples(60, 15, 15, 5, 6);
  for (const std::int64_t n : {2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 31, 64, 97, 101}) {
    const Config config = stacked(n, 1.9, 1e-6);
    EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), 1e-6) << n;
  }
}

TEST(WStack, WrapsSamplesBeyondTheGridOfACoarsePicture) {
  // A cell of the picture is wider than the fringes: the grid is cyclic, along u alone or along
  // both.
  const auto samples = random_samples(200, 700, 5, 12, 7);
  for (const std::int64_t n : {16, 33, 60}) {
    const Config config = stacked(n, 2.0, 1e-6);
    EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), 1e-6) << n;
  }
}

TEST(WStack, TakesTinyArrays) {
  for (const int n : {1, 2, 3}) {
    const auto samples = random_samples(n, 3, 3, 2, 8);
    const Config config = stacked(24, 2.0, 1e-6);
    EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), 1e-6) << n;
  }
  // All samples at one place.
  const std::vector<Sample> same(5, Sample{1.5, -2.5, 3.5, {1, 2}, 2});
  const Config config = stacked(24, 2.0, 1e-6);
  EXPECT_LT(error_of(image_of(config, same), exact_of(config, same), same), 1e-6);
}

TEST(WStack, ConjugateSamplesAreTheSameSamples) {
  auto samples = random_samples(150, 30, 30, 10, 9);
  const Config config = stacked(40, 2.0, 1e-6);
  const auto image = image_of(config, samples);
  for (std::size_t k = 0; k < samples.size(); k += 2) {
    Sample& s = samples[k];
    s = {-s.u, -s.v, -s.w, std::conj(s.visibility), s.weight};
  }
  EXPECT_LT(error_of(image_of(config, samples), image, samples), 1e-7);
}

TEST(WStack, OnePlaneIsEnoughForAFlatArray) {
  auto samples = random_samples(200, 30, 30, 0, 10);
  Config config = stacked(50, 2.0, 1e-6);
  config.path = SamplePath::gridded;
  EXPECT_EQ(w_phase_error_rad(config, samples), 0);
  EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), 1e-6);
  config.path = SamplePath::w_stacked;
  EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), 1e-6);
  // Flat about another w than 0.
  for (Sample& s : samples) s.w = s.u > 0 ? 4 : -4;
  config.path = SamplePath::gridded;
  EXPECT_LT(error_of(image_of(config, samples), exact_of(config, samples), samples), 1e-6);
  // Heights of up to +- 0.05 waves, and what the path says that they cost: no more, and not a
  // tenth of it.
  Random random(3);
  for (Sample& s : samples) s.w = random.uniform(-0.05, 0.05);
  const double told = w_phase_error_rad(config, samples);
  const double found = error_of(image_of(config, samples), exact_of(config, samples), samples);
  EXPECT_LT(found, told);
  EXPECT_GT(found, 0.1 * told / std::sqrt(200.0));
}

TEST(WStack, TheCheapestPathIsTaken) {
  Queue queue = Queue::cpu(2);
  const auto chosen = [&](const Config& config, const std::vector<Sample>& samples) {
    const auto imager = make_imager(queue, config);
    std::vector<double> image;
    imager->execute(queue, samples, image);
    return imager->path();
  };
  EXPECT_EQ(chosen({32, 2.0, "auto"}, random_samples(100, 30, 30, 30, 11)), SamplePath::direct);
  const auto many = random_samples(200000, 100, 100, 20, 12);
  EXPECT_EQ(chosen({512, 2.0, "auto"}, many), SamplePath::w_stacked);
  auto flat = many;
  for (Sample& s : flat) s.w = 0;
  EXPECT_EQ(chosen({512, 2.0, "auto"}, flat), SamplePath::gridded);
  Config direct{32, 2.0, "auto"};
  direct.path = SamplePath::direct;
  EXPECT_EQ(chosen(direct, many), SamplePath::direct);
}

TEST(WStack, IsBitIdenticalForAnyNumberOfWorkers) {
  const auto samples = random_samples(5000, 60, 60, 30, 13);
  for (const double max_error : {1e-4, 1e-8}) {
    const Config config = stacked(96, 2.0, max_error);
    const auto one = image_of(config, samples, 1);
    for (const int n : {2, 7}) {
      const auto other = image_of(config, samples, n);
      for (std::size_t k = 0; k < one.size(); ++k) {
        if (!std::isnan(one[k])) {
          ASSERT_EQ(one[k], other[k]) << n << " " << k;
        }
      }
    }
  }
}

TEST(WStack, SaysHowFarItIsAndStops) {
  Queue queue = Queue::cpu(2);
  const auto samples = random_samples(500, 60, 60, 200, 14);
  Config config = stacked(64, 2.0, 1e-4);
  std::vector<double> shares, image;
  config.go_on = [&](double done) {
    shares.push_back(done);
    return true;
  };
  make_imager(queue, config)->execute(queue, samples, image);
  ASSERT_GT(shares.size(), 10u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GE(shares.front(), 0);
  EXPECT_LE(shares.back(), 1);
  config.go_on = [&](double done) { return done < 0.3; };
  make_imager(queue, config)->execute(queue, samples, image);
  EXPECT_TRUE(image.empty());
}

TEST(GridFunction, KeepsTheErrorThatWasAskedFor) {
  for (const double error : {1e-2, 1e-4, 1e-6, 1e-9}) {
    int found = 0;
    for (std::int64_t support = detail::kMinGridSupport; support <= detail::kMaxGridSupport;
         ++support) {
      const auto function = detail::grid_function(support, error);
      if (!function) continue;
      ++found;
      EXPECT_LE(detail::aliasing(*function, function->oversampling), error) << support;
      EXPECT_GE(function->oversampling, 1.5);
      EXPECT_LE(function->oversampling, 3);
      const auto polynomials = detail::grid_polynomials<double>(*function, 0.01 * error);
      for (const double f : {0.03, 0.13, 0.5, 0.99}) {
        for (std::int64_t k = 0; k < support; ++k) {
          double value = 0;
          for (std::int64_t d = 0; d <= polynomials.degree; ++d)
            value = value * (2 * f - 1) + polynomials.coefficients[d * polynomials.lanes + k];
          EXPECT_NEAR(value, (*function)(static_cast<double>(k) + f - 0.5 * double(support)),
                      0.05 * error)
              << support << " " << k << " " << f;
        }
      }
      const detail::GridTransform transform(*function);
      const detail::InverseTransform inverse(*function);
      for (const double f : {0.0, 0.07, 0.2, -0.11})
        if (std::abs(f) < 0.5 / function->oversampling) {
          EXPECT_NEAR(inverse(f) * transform(f), 1, 1e-11);
        }
    }
    EXPECT_GE(found, 3) << error;
  }
}

}  // namespace
}  // namespace ryle::image
