// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/pattern.hpp"

#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/weights.hpp"
#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

constexpr double kNu = 408e6;

// BEST-2: 4 columns of 5.878 m by 8 rows of 10.0 m.
ArrayLayout best2_array() {
  ArrayLayout array;
  array.latitude_rad = 44.52 * kDegree_rad;
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 4; ++column) {
      ArrayInput input;
      input.antenna = array.n_antennas();
      input.cable_delay_s = 2e-9 * ((3 * row + column) % 5);
      array.antennas.push_back({"", {5.878 * column, 10.0 * row, 0}});
      array.inputs.push_back(input);
    }
  }
  return array;
}

struct Beam {
  explicit Beam(const Vector3& direction) : array(best2_array()) {
    for (std::int64_t k = 0; k < 32; ++k) inputs.push_back(k);
    WeightConfig c;
    c.n_antennas = 32;
    c.channels = {kNu, 0, 1};
    weights.resize(32);
    WeightMaker(c, {}, {}).make(steer(array, {{direction}}, kNu), 0, {},
                                {weights.data(), {1, 1, 32}});
    frame = tangent_frame(direction, array.latitude_rad);
  }
  ArrayLayout array;
  std::vector<std::int64_t> inputs;
  std::vector<cf32> weights;
  TangentFrame frame;
};

// Half-power widths of the aperture, computed elsewhere for the zenith: 1.59 x 0.47 deg
// (beamform.md 4).
TEST(Pattern, Best2AtTheZenith) {
  const Beam beam({0, 0, 1});
  const BeamPattern pattern(beam.array, beam.inputs, beam.weights, kNu,
                            {ElementPattern::aperture, 0, 5.878, 10.0});
  const auto grid = pattern_grid(pattern, beam.frame, 256, 0.05);
  const auto shape = lobe_shape(pattern, beam.frame, grid, 0.05);
  EXPECT_NEAR(shape.peak, 1, 1e-6);
  EXPECT_NEAR(shape.widest_rad / kDegree_rad, 1.59, 0.02);
  EXPECT_NEAR(shape.narrowest_rad / kDegree_rad, 0.47, 0.01);
  EXPECT_NEAR(shape.angle_of_widest_rad, 90 * kDegree_rad, 1e-6);
  // Elements that fill the aperture: a uniform rectangle, 13.26 dB.
  EXPECT_NEAR(shape.sidelobe_db, -13.26, 0.2);
  // Points instead: a line of 4 is 2.8 % wider and 11.3 dB down.
  const BeamPattern points(beam.array, beam.inputs, beam.weights, kNu);
  const auto wider =
      lobe_shape(points, beam.frame, pattern_grid(points, beam.frame, 256, 0.05), 0.05);
  EXPECT_NEAR(wider.widest_rad / kDegree_rad, 1.63, 0.01);
  EXPECT_NEAR(wider.sidelobe_db, -11.3, 0.3);
  EXPECT_NEAR(grid.power[128 * 256 + 128], 1, 1e-6);
}

// The pattern is what the beamformer gives for a wave, cables and all.
TEST(Pattern, IsWhatTheEngineSees) {
  const Vector3 pointing{0.1, -0.2, std::sqrt(1 - 0.05)};
  const Beam beam(pointing);
  const BeamPattern pattern(beam.array, beam.inputs, beam.weights, kNu);
  EXPECT_NEAR(pattern.power(pointing), 1, 1e-6);
  const BeamPattern rounded(beam.array, beam.inputs, quantized_weights(beam.weights), kNu);
  Config c;
  c.n_antennas = 32;
  c.n_beams = c.n_channels = 1;
  c.max_spectra = 50;
  c.format = SampleFormat::cf32;
  Stream stream(c, 50);
  std::vector<Vector3> directions;
  for (int k = 0; k < 50; ++k) {
    const double l = 0.1 + 0.3 * (uniform(combine(5, static_cast<std::uint64_t>(k))) - 0.5);
    const double m = -0.2 + 0.3 * (uniform(combine(6, static_cast<std::uint64_t>(k))) - 0.5);
    directions.push_back({l, m, std::sqrt(1 - l * l - m * m)});
    for (std::int64_t p = 0; p < 32; ++p) {
      const double delay_s = tracking_delay_s(beam.array, p, directions.back(), kNu);
      const cf32 v(std::polar(1.0, 2 * kPi * std::remainder(kNu * delay_s, 1.0)));
      std::memcpy(stream.at(0, k, p), &v, 8);
    }
  }
  c.weights = WeightFormat::f32;
  const auto plain = numbers(c, run(c, "reference", beam.weights, stream.all()));
  c.weights = WeightFormat::i8;
  const auto codes = numbers(c, run(c, "reference", beam.weights, stream.all()));
  double sum = 0;
  for (const cf32& w : quantized_weights(beam.weights)) sum += std::abs(w);
  for (std::size_t k = 0; k < 50; ++k) {
    EXPECT_NEAR(pattern.power(directions[k]), plain[k] / 32, 1e-6) << k;
    EXPECT_NEAR(rounded.power(directions[k]), codes[k] / (sum * sum), 1e-6) << k;
  }
  EXPECT_LT(weight_loss_db(quantized_weights(beam.weights), beam.weights), 1e-3);
  EXPECT_GE(weight_loss_db(quantized_weights(beam.weights), beam.weights), 0);
}

TEST(Pattern, ElementsAndHorizon) {
  const Beam beam({0, 0, 1});
  const BeamPattern dipole(beam.array, beam.inputs, beam.weights, kNu,
                           {ElementPattern::cosine, 2, 0, 0});
  const BeamPattern plain(beam.array, beam.inputs, beam.weights, kNu);
  const Vector3 s{0.03, 0.4, std::sqrt(1 - 0.0009 - 0.16)};
  EXPECT_NEAR(dipole.power(s) / plain.power(s), s[2] * s[2], 1e-9);
  const BeamPattern cylinder(beam.array, beam.inputs, beam.weights, kNu,
                             {ElementPattern::aperture, 0, 5.7, 7.5});
  const double null_l = kSpeedOfLight_m_per_s / kNu / 5.7;
  EXPECT_LT(cylinder.power({null_l, 0, std::sqrt(1 - null_l * null_l)}), 1e-12);
  EXPECT_EQ(plain.power({0.6, 0, -0.8}), 0);
  const auto sky = pattern_grid(plain, tangent_frame({0, 0, 1}, 0.7), 64, 1.0);
  EXPECT_TRUE(std::isnan(sky.power[0]));
  EXPECT_THROW(pattern_grid(plain, beam.frame, 63, 1.0), ConfigError);
  EXPECT_THROW(BeamPattern(beam.array, beam.inputs, std::vector<cf32>(32), kNu), ConfigError);
}

/// Dishes that are steered: the element's own beam stands where it points, not at the zenith.
TEST(Pattern, ElementsArePointed) {
  const double elevation_rad = 0.7;
  const double azimuth_rad = 2.1;
  const auto at = [](double az, double el) {
    return Vector3{std::cos(el) * std::sin(az), std::cos(el) * std::cos(az), std::sin(el)};
  };
  const Vector3 axis = at(azimuth_rad, elevation_rad);
  const Beam beam(axis);
  const BeamPattern plain(beam.array, beam.inputs, beam.weights, kNu);
  const auto relative = [&](const Element& element, const Vector3& s) {
    const BeamPattern pattern(beam.array, beam.inputs, beam.weights, kNu, element);
    return pattern.power(s) / plain.power(s);
  };
  Element cosine{ElementPattern::cosine, 3, 0, 0};
  // Toward its axis an element sees all, 0.1 rad from it cos^3, wherever it points.
  EXPECT_NEAR(relative(pointed(cosine, axis), axis), 1, 1e-9);
  EXPECT_NEAR(relative(pointed(cosine, axis), at(azimuth_rad, elevation_rad + 0.1)),
              std::pow(std::cos(0.1), 3), 1e-9);
  EXPECT_NEAR(relative(cosine, axis), std::pow(std::sin(elevation_rad), 3), 1e-9);
  // A rectangle of 4 m (level) by 9 m: nulls at asin(c / nu d) along each of its own sides.
  const Element dish = pointed({ElementPattern::aperture, 0, 4, 9}, axis);
  EXPECT_NEAR(relative(dish, axis), 1, 1e-9);
  const double null_rad = std::asin(kSpeedOfLight_m_per_s / kNu / 9);
  EXPECT_LT(relative(dish, at(azimuth_rad, elevation_rad + null_rad)), 1e-12);
  EXPECT_GT(relative(dish, at(azimuth_rad, elevation_rad + null_rad / 2)), 0.3);
  const double level_null_rad = std::asin(kSpeedOfLight_m_per_s / kNu / 4);
  const Vector3 right{std::cos(azimuth_rad), -std::sin(azimuth_rad), 0};
  Vector3 s{};
  for (std::size_t k = 0; k < 3; ++k)
    s[k] = std::cos(level_null_rad) * axis[k] + std::sin(level_null_rad) * right[k];
  EXPECT_LT(relative(dish, s), 1e-12);
  // Nothing is seen behind.
  EXPECT_EQ(relative(dish, at(azimuth_rad + kPi, 0.2)), 0);
  // At the zenith: east and north, as ever.
  const Element level = pointed({ElementPattern::aperture, 0, 4, 9}, {0, 0, 1});
  EXPECT_EQ(level.x_side, (Vector3{1, 0, 0}));
}

TEST(Pattern, FramesPointNorthAndEast) {
  const auto zenith = tangent_frame({0, 0, 1}, 0.7);
  EXPECT_NEAR(zenith.x[0], 1, 1e-12);
  EXPECT_NEAR(zenith.y[1], 1, 1e-12);
  const auto south = tangent_frame({0, -std::sqrt(0.5), std::sqrt(0.5)}, 0.7);
  EXPECT_NEAR(south.x[0], 1, 1e-12);
  EXPECT_GT(south.y[2], 0);
  const auto pole = tangent_frame({0, std::cos(0.7), std::sin(0.7)}, 0.7);
  EXPECT_NEAR(std::hypot(pole.y[0], pole.y[1], pole.y[2]), 1, 1e-12);
}

}  // namespace
}  // namespace ryle::beamform::test
