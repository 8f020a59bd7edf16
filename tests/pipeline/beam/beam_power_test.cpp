// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_power.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <random>

#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/pattern.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/pointing.hpp"

namespace ryle::pipeline {
namespace {

constexpr double kFrequency_hz = 408e6;
constexpr std::int64_t kSamples = 3600;  // of a second
constexpr double kSourceOverSystem = 0.5;
constexpr double kNoise = 0.01;  // rms of a sample, of the system's power

BeamPointing stationary(const std::string& name, double ha_deg, double dec_deg) {
  BeamPointing beam;
  beam.name = name;
  beam.frame = BeamFrame::hadec;
  beam.longitude_rad = ha_deg * kDegree_rad;
  beam.latitude_rad = dec_deg * kDegree_rad;
  return beam;
}

BeamPointing cas_a() {
  BeamPointing beam;
  beam.name = "Cas A";
  beam.frame = BeamFrame::icrs;
  beam.longitude_rad = 350.85 * kDegree_rad;
  beam.latitude_rad = 58.815 * kDegree_rad;
  return beam;
}

beamform::BeamPattern pattern_toward(const ArrayLayout& array, const Vector3& enu) {
  std::vector<std::int64_t> inputs;
  std::vector<cf32> weights;
  for (std::int64_t a = 0; a < array.n_inputs(); ++a) {
    const auto& input = array.inputs[static_cast<std::size_t>(a)];
    const Vector3& r = array.antennas[static_cast<std::size_t>(input.antenna)].enu_m;
    const double turns =
        kFrequency_hz * (r[0] * enu[0] + r[1] * enu[1] + r[2] * enu[2]) / kSpeedOfLight_m_per_s;
    inputs.push_back(a);
    weights.emplace_back(std::polar(1.0, -2 * std::numbers::pi * turns));
  }
  return {array, inputs, weights, kFrequency_hz};
}

// Cas A drifts through three beams of BEST-2 that stand still, a degree of hour angle apart.
TEST(BeamPower, CasADriftsThroughTheBeamsOfBest2) {
  const ArrayLayout array =
      read_layout_csv(std::string(RYLE_SOURCE_DIR) + "/examples/best2.csv", 44.52358, 11.64599, 28);
  const std::int64_t around = tai_ns_from_utc_iso("2025-03-01T12:00:00");
  const double dec_deg = 58.95;  // of date
  const BeamSky sky(array, {cas_a(), stationary("east", -1, dec_deg),
                            stationary("middle", 0, dec_deg), stationary("west", 1, dec_deg)});
  // Its transit: when it is nearest to the beam on the meridian, in the day that follows.
  const auto apart = [&](std::int64_t tai_ns, std::size_t beam) {
    const auto d = sky.directions_enu(tai_ns);
    return std::acos(
        std::min(1.0, d[0][0] * d[beam][0] + d[0][1] * d[beam][1] + d[0][2] * d[beam][2]));
  };
  std::int64_t transit = around;
  for (std::int64_t minute = 0; minute < 1440; ++minute) {
    const std::int64_t at = around + minute * 60'000'000'000;
    if (apart(at, 2) < apart(transit, 2)) transit = at;
  }
  const std::int64_t start = transit - kSamples / 2 * 1'000'000'000;

  ObservationConfig config;
  config.output.directory = std::filesystem::temp_directory_path().string();
  config.output.name = "beam_power_test";
  config.output.overwrite = true;
  config.beams.power_s = 10;
  BeamStream stream;
  for (const char* name : {"east", "middle", "west"}) stream.beams.emplace_back().name = name;
  stream.frequency = {kFrequency_hz, 1e6, 2};
  stream.clock = {start, {1, 1}};
  BeamPower product(config, stream);

  std::vector<beamform::BeamPattern> patterns;
  const auto fixed = sky.directions_enu(start);
  for (std::size_t k = 1; k < 4; ++k) patterns.push_back(pattern_toward(array, fixed[k]));
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, kNoise);
  constexpr std::int64_t kChunk = 45;
  std::vector<float> values(3 * 2 * kChunk);
  for (std::int64_t first = 0; first < kSamples; first += kChunk) {
    // The second channel, three times as strong, is lost for a while: the level must not follow.
    const ChannelGap gap{1, 2, first, first + kChunk};
    const bool lost = first > 500 && first < 900;
    for (std::int64_t t = 0; t < kChunk; ++t) {
      const Vector3 source = sky.directions_enu(start + (first + t) * 1'000'000'000)[0];
      for (std::int64_t beam = 0; beam < 3; ++beam) {
        const double power =
            1 + kSourceOverSystem * patterns[static_cast<std::size_t>(beam)].power(source) +
            noise(random);
        values[static_cast<std::size_t>(beam * 2 * kChunk + t)] = static_cast<float>(power);
        values[static_cast<std::size_t>((beam * 2 + 1) * kChunk + t)] =
            lost ? 0 : static_cast<float>(3 * power);
      }
    }
    BeamChunk chunk;
    chunk.values = values.data();
    chunk.beam_stride = 2 * kChunk;
    chunk.channel_stride = kChunk;
    chunk.n_samples = kChunk;
    chunk.first_sample = first;
    chunk.clock = stream.clock;
    if (lost) chunk.absent = {&gap, 1};
    product.take(chunk);
  }
  ASSERT_EQ(product.times_s().size(), 360u);

  for (std::size_t beam = 0; beam < 3; ++beam) {
    const auto fit = fit_transit(product.times_s(), product.power()[beam]);
    ASSERT_TRUE(fit) << beam;
    // Where it is nearest to the beam, and its width at half power, from the pattern itself.
    double nearest_s = 0;
    const auto response = [&](double s) {
      return patterns[beam].power(sky.directions_enu(start + std::llround(s * 1e9))[0]);
    };
    for (double s = 0; s < kSamples; s += 1)
      if (response(s) > response(nearest_s)) nearest_s = s;
    double low = nearest_s, high = nearest_s;
    const double half = response(nearest_s) / 2;
    while (low > 0 && response(low) > half) low -= 1;
    while (high < kSamples && response(high) > half) high += 1;
    EXPECT_NEAR(fit->middle_s, nearest_s, 1 + 5 * fit->middle_error_s) << beam;
    // The main lobe of four equal receivers in a row, |sin 4x / sin x|^2, is flatter than a
    // Gaussian and has side lobes of 5 %: a Gaussian over a level is fitted 7 % narrower.
    EXPECT_NEAR(fit->width_s / (high - low), 0.93, 0.02) << beam;
    // The mean of both channels is twice the power of the first.
    EXPECT_NEAR(fit->height, 2 * kSourceOverSystem * response(nearest_s), 0.06) << beam;
    EXPECT_NEAR(fit->baseline, 2, 0.05) << beam;
  }
  RunSummary summary;
  product.finish(summary);
  ASSERT_EQ(summary.products.size(), 3u);
  EXPECT_EQ(std::filesystem::path(summary.products[2]).filename(), "beam_power_test_power.png");
  EXPECT_TRUE(summary.errors.empty());
  for (const auto& path : summary.products) std::filesystem::remove(path);
}

TEST(BeamPower, NoTransitIsFittedToNoise) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise;
  std::vector<double> t, y;
  for (int k = 0; k < 300; ++k) {
    t.push_back(k);
    y.push_back(10 + noise(random));
  }
  EXPECT_FALSE(fit_transit(t, y));
  EXPECT_FALSE(fit_transit(std::span(t).first(5), std::span(y).first(5)));
}

// The errors are those of the scatter: over many noises the pull of every parameter has rms 1. With
// 200 fits the rms of a pull scatters by 5 %, so that 0.8 to 1.2 is four times that.
TEST(BeamPower, ErrorsOfTheFitAreItsScatter) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise;
  std::vector<double> t(400), y(400);
  double middle = 0, width = 0;
  constexpr int kFits = 200;
  for (int n = 0; n < kFits; ++n) {
    for (std::size_t k = 0; k < t.size(); ++k) {
      t[k] = static_cast<double>(k);
      const double x = (t[k] - 180) / 60;
      y[k] = 5 + 10 * std::exp(-4 * std::numbers::ln2 * x * x) + noise(random);
    }
    const auto fit = fit_transit(t, y);
    ASSERT_TRUE(fit);
    middle += std::pow((fit->middle_s - 180) / fit->middle_error_s, 2);
    width += std::pow((fit->width_s - 60) / fit->width_error_s, 2);
  }
  EXPECT_NEAR(std::sqrt(middle / kFits), 1, 0.2);
  EXPECT_NEAR(std::sqrt(width / kFits), 1, 0.2);
}

}  // namespace
}  // namespace ryle::pipeline
