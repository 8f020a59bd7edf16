// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/fengine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/engine/image/statistics.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::simulate {
namespace {

ArrayLayout small_array(int n_antennas = 4, double cable_s = 30e-9) {
  ArrayLayout array;
  array.latitude_rad = 0.6;
  for (int a = 0; a < n_antennas; ++a) {
    const auto key = static_cast<std::uint64_t>(a);
    array.antennas.push_back({"a" + std::to_string(a),
                              {60 * uniform(combine(1, key)) - 30,
                               60 * uniform(combine(2, key)) - 30, 2 * uniform(combine(3, key))}});
    for (int pol = 0; pol < 2; ++pol) {
      ArrayInput input;
      input.antenna = a;
      input.pol = pol;
      input.cable_delay_s = cable_s * (1 + a + 0.3 * pol);
      input.cable_dispersion_s = 1e-9;
      array.inputs.push_back(input);
    }
  }
  return array;
}

cf64 sample(const SpectraRecord& record, std::int64_t t, std::int64_t channel, std::int64_t input) {
  const std::uint8_t byte = record.spectrum(t)[channel * record.n_inputs + input];
  const auto part = [](int nibble) { return nibble < 8 ? nibble : nibble - 16; };
  return {static_cast<double>(part(byte >> 4)), static_cast<double>(part(byte & 15))};
}

/// <v_i conj(v_j)> of all inputs of a channel, [i][j].
std::vector<cf64> correlate(const SpectraRecord& record, std::int64_t channel) {
  const std::int64_t n = record.n_inputs;
  std::vector<cf64> sum(static_cast<std::size_t>(n * n)), v(static_cast<std::size_t>(n));
  for (std::int64_t t = 0; t < record.n_spectra; ++t) {
    for (std::int64_t i = 0; i < n; ++i) v[i] = sample(record, t, channel, i);
    for (std::int64_t i = 0; i < n; ++i) {
      const double re = v[i].real(), im = v[i].imag();
      auto* row = reinterpret_cast<double*>(sum.data() + i * n);
      for (std::int64_t j = i; j < n; ++j) {
        row[2 * j] += re * v[j].real() + im * v[j].imag();
        row[2 * j + 1] += im * v[j].real() - re * v[j].imag();
      }
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      sum[i * n + j] /= static_cast<double>(record.n_spectra);
      sum[j * n + i] = std::conj(sum[i * n + j]);
    }
  }
  return sum;
}

Scene polarized_scene(std::int64_t n_inputs) {
  Scene scene;
  scene.seed = 7;
  scene.sefd_jy = 1000;
  Source a, b;
  a.name = "a";
  a.l = 0.3;
  a.m = -0.2;
  a.flux_jy = 600;
  a.q = 0.3;
  a.u = -0.4;
  a.v = 0.5;
  b.name = "b";
  b.l = -0.5;
  b.m = 0.4;
  b.flux_jy = 400;
  scene.sources = {a, b};
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    scene.gains.push_back(
        std::polar(0.7 + 0.6 * uniform(combine(9, i)), 6 * uniform(combine(8, i))));
  }
  return scene;
}

SpectraConfig small_config(std::int64_t n_spectra, std::int64_t n_channels) {
  SpectraConfig config;
  config.n_spectra = n_spectra;
  config.channels = {60e6, 25e3, n_channels};
  return config;
}

// Every product of every pair: sources with their Stokes, geometry, gains, cables; then in counts.
TEST(Fengine, CorrelationsAreThoseOfTheScene) {
  const ArrayLayout array = small_array();
  const Scene scene = polarized_scene(array.n_inputs());
  SpectraConfig config = small_config(16'384, 3);
  config.channels.channel_width_hz = 5e6;  // phases of the channels differ
  const SpectraRecord record = simulate_spectra(array, scene, config);
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const double sky_hz = record.channels.center_hz(channel);
    const auto measured = correlate(record, channel);
    const auto path = [&](std::int64_t i) {
      return scene.gains[i] *
             std::polar(1.0, -2 * kPi * sky_hz * cable_delay_s(array.inputs[i], sky_hz));
    };
    const auto expected_counts2 = [&](std::int64_t i, std::int64_t j) {
      return expected_visibility_jy(array, scene, record, i, j, channel) * path(i) *
             std::conj(path(j)) / record.jy_per_count2;
    };
    for (std::int64_t i = 0; i < array.n_inputs(); ++i) {
      for (std::int64_t j = i; j < array.n_inputs(); ++j) {
        // Standard error of a part sqrt(P_i P_j / (2 T)) (autos: sqrt(1/T), one part); 5 sigma; and
        // quantising: 1/6 on autos, clipping below 1 % of the rest.
        const cf64 expected = expected_counts2(i, j) + (i == j ? 1.0 / 6 : 0.0);
        const double power =
            std::sqrt(expected_counts2(i, i).real() * expected_counts2(j, j).real());
        const double tolerance = 5 * power / std::sqrt(16'384.0) + 0.012 * std::abs(expected);
        EXPECT_NEAR(std::abs(measured[i * array.n_inputs() + j] - expected), 0, tolerance)
            << i << " " << j << " channel " << channel;
      }
    }
  }
  // The mean level is what was asked for, 1/12 a part of quantising included.
  double mean = 0;
  for (const double rms : record.rms_lsb) mean += rms / static_cast<double>(array.n_inputs());
  EXPECT_NEAR(mean, std::sqrt(config.level_lsb * config.level_lsb + 1.0 / 12), 0.03);
}

TEST(Fengine, SamplesAreWhiteInTimeAndChannel) {
  const ArrayLayout array = small_array(1);
  Scene scene;
  scene.sefd_jy = 1;
  Source source;
  source.flux_jy = 5;
  scene.sources = {source};
  const SpectraRecord record = simulate_spectra(array, scene, small_config(8192, 8));
  const double n = 8192 * 8;
  for (const auto& [dt, dc] : {std::pair{1, 0}, {0, 1}, {1, 1}, {2, 0}, {4, 0}, {256, 0}}) {
    cf64 sum = 0;
    double power = 0;
    for (std::int64_t t = 0; t < 8192; ++t) {
      for (std::int64_t c = 0; c < 8; ++c) {
        const cf64 a = sample(record, t, c, 0);
        sum += a * std::conj(sample(record, (t + dt) % 8192, (c + dc) % 8, 0));
        power += std::norm(a);
      }
    }
    EXPECT_LT(std::abs(sum) / power, 5 / std::sqrt(n)) << dt << " " << dc;
  }
}

TEST(Fengine, TheRecordDependsOnTheSeedAlone) {
  const ArrayLayout array = small_array();
  Scene scene = polarized_scene(array.n_inputs());
  SpectraConfig config = small_config(300, 5);
  config.n_workers = 1;
  const auto one = simulate_spectra(array, scene, config);
  config.n_workers = 3;
  const auto three = simulate_spectra(array, scene, config);
  EXPECT_EQ(one.samples, three.samples);
  EXPECT_EQ(one.clipped_fraction, three.clipped_fraction);
  scene.seed = 8;
  EXPECT_NE(simulate_spectra(array, scene, config).samples, one.samples);
}

TEST(Fengine, DeadInputsAreZeroAndImpossibleScenesAreRejected) {
  const ArrayLayout array = small_array();
  Scene scene = polarized_scene(array.n_inputs());
  scene.dead_inputs = {3};
  const auto record = simulate_spectra(array, scene, small_config(64, 2));
  EXPECT_EQ(record.rms_lsb[3], 0);
  EXPECT_GT(record.rms_lsb[2], 1);
  const auto rejected = [&](auto change) {
    Scene bad = polarized_scene(array.n_inputs());
    SpectraConfig config = small_config(16, 2);
    change(bad, config);
    EXPECT_THROW(simulate_spectra(array, bad, config), ConfigError);
  };
  rejected([](Scene& s, SpectraConfig&) { s.tones.push_back({}); });
  rejected([](Scene& s, SpectraConfig&) { s.gains.pop_back(); });
  rejected([](Scene& s, SpectraConfig&) { s.sources[0].l = 2; });
  rejected([](Scene&, SpectraConfig& c) { c.n_spectra = 0; });
  rejected([](Scene&, SpectraConfig& c) { c.level_lsb = 20; });
  rejected([](Scene&, SpectraConfig& c) { c.channels.first_center_hz = 0; });
}

std::vector<cf64> random_hermitian(std::int64_t n, std::uint64_t seed) {
  std::vector<cf64> v(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      const auto key = combine(seed, i, j);
      v[i * n + j] = {gaussian(mix64(key)), i == j ? 0 : gaussian(mix64(key + 1))};
      v[j * n + i] = std::conj(v[i * n + j]);
    }
  }
  return v;
}

std::vector<cf64> times_adjoint(const std::vector<cf64>& a, std::int64_t n) {
  std::vector<cf64> v(a.size());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < n; ++k) v[i * n + j] += a[i * n + k] * std::conj(a[j * n + k]);
    }
  }
  return v;
}

double largest_difference(const std::vector<cf64>& a, const std::vector<cf64>& b) {
  double maximum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) maximum = std::max(maximum, std::abs(a[k] - b[k]));
  return maximum;
}

TEST(Fengine, RootOfACovariance) {
  for (const std::int64_t n : {1, 2, 3, 17, 40}) {
    // Positive definite: exact by Cholesky.
    const auto v = [&] {
      auto m = times_adjoint(random_hermitian(n, 5), n);
      for (std::int64_t i = 0; i < n; ++i) m[i * n + i] += 0.1;
      return m;
    }();
    const auto root = covariance_root(v, n);
    EXPECT_TRUE(root.positive_definite);
    EXPECT_LT(largest_difference(times_adjoint(root.root, n), v), 1e-12 * n * n);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = i + 1; j < n; ++j) EXPECT_EQ(root.root[i * n + j], cf64(0));
    }
  }
  // Indefinite: eigenvalues 3, 1, -2 in a known basis; the nearest matrix keeps 3 and 1.
  const std::int64_t n = 3;
  const auto basis = [&] {  // Gram-Schmidt of random columns, [row][column]
    auto b = random_hermitian(n, 11);
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t p = 0; p <= k; ++p) {
        cf64 dot = 0;
        double norm = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          dot += std::conj(b[i * n + p]) * b[i * n + k];
          norm += std::norm(b[i * n + k]);
        }
        for (std::int64_t i = 0; i < n; ++i) {
          if (p < k) b[i * n + k] -= dot * b[i * n + p];
          if (p == k) b[i * n + k] /= std::sqrt(norm);
        }
      }
    }
    return b;
  }();
  const auto compose = [&](double a, double b, double c) {
    const double values[3] = {a, b, c};
    std::vector<cf64> v(9);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 3; ++k) {
          v[i * 3 + j] += values[k] * basis[i * 3 + k] * std::conj(basis[j * 3 + k]);
        }
      }
    }
    return v;
  };
  const auto root = covariance_root(compose(3, 1, -2), 3);
  EXPECT_FALSE(root.positive_definite);
  EXPECT_NEAR(root.most_negative_eigenvalue, -2, 1e-12);
  EXPECT_NEAR(root.largest_eigenvalue, 3, 1e-12);
  EXPECT_LT(largest_difference(times_adjoint(root.root, 3), compose(3, 1, 0)), 1e-12);
  // The change is 2 u u^H, of Frobenius norm 2: rms 2/3.
  EXPECT_NEAR(root.rms_change, 2.0 / 3, 1e-12);
  // A larger indefinite one: what is left has no negative part, and the change is orthogonal to it.
  const auto v = random_hermitian(40, 3);
  const auto larger = covariance_root(v, 40);
  const auto kept = times_adjoint(larger.root, 40);
  cf64 inner = 0;
  for (std::size_t k = 0; k < v.size(); ++k) inner += std::conj(kept[k]) * (v[k] - kept[k]);
  EXPECT_LT(std::abs(inner), 1e-9);
  EXPECT_LT(larger.most_negative_eigenvalue, -1);
  auto bad = v;
  bad[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(covariance_root(bad, 40), ConfigError);
  EXPECT_THROW(covariance_root(v, 39), ConfigError);
}

TEST(Fengine, VisibilitiesWithoutAutosBecomeDrawable) {
  const std::int64_t n = 20;
  auto v = random_hermitian(n, 21);
  v[3] = std::numeric_limits<double>::quiet_NaN();  // antennas 0 and 3
  const double factor = make_drawable(v, n, 0.05);
  EXPECT_GT(factor, 0);
  for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(v[i * n + i], cf64(1));
  EXPECT_EQ(v[3], cf64(0));
  EXPECT_EQ(v[3 * n], cf64(0));
  auto off = v;  // largest eigenvalue of the rest: 5 % of 20
  const auto root = covariance_root(v, n);
  EXPECT_NEAR(root.largest_eigenvalue, 1 + 0.05 * n, 1e-5);
}

// The chance of the end codes -8 and 7 at an rms of sigma steps: x > 6.5 or x < -7.5.
double end_codes(double sigma) {
  const auto tail = [](double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); };
  return tail(6.5 / sigma) + tail(7.5 / sigma);
}

// image.md 10: 0.3 % at rms 2.3, 1.4 % at 2.8; and the two polarizations are independent.
TEST(Fengine, DrawnLevelsAndClipping) {
  const ArrayLayout array = small_array(2);
  const std::vector<cf64> v{1, cf64(0.3, 0.4), cf64(0.3, -0.4), 1};
  const auto root = covariance_root(v, 2);
  for (const double level : {2.3, 2.8}) {
    SpectraConfig config = small_config(20'000, 4);
    config.level_lsb = level;
    const auto record = draw_spectra(array, root, {}, 3, config);
    std::int64_t ends = 0;
    for (const std::uint8_t byte : record.samples) {
      ends += (byte >> 4) == 7 || (byte >> 4) == 8;
      ends += (byte & 15) == 7 || (byte & 15) == 8;
    }
    const double n = 2.0 * static_cast<double>(record.samples.size());
    const double p = end_codes(level);
    // Inputs are correlated: at most 2 of the 4 repeat each other.
    EXPECT_NEAR(static_cast<double>(ends) / n, p, 5 * std::sqrt(2 * p / n));
    EXPECT_NEAR(p, level == 2.3 ? 0.003 : 0.014, 0.0005);
    const auto r = correlate(record, 1);
    const double scale = 2 * level * level;
    EXPECT_NEAR(std::abs(r[0 * 4 + 2] / scale - v[1]), 0, 0.05);  // X of 0, X of 1
    EXPECT_NEAR(std::abs(r[1 * 4 + 3] / scale - v[1]), 0, 0.05);
    EXPECT_NEAR(std::abs(r[0 * 4 + 1] / scale), 0, 0.05);
    EXPECT_NEAR(std::abs(r[0 * 4 + 3] / scale), 0, 0.05);
  }
}

// A fully polarized wave adds a a^H, cross products included.
TEST(Fengine, PolarizedTermsAreRankOne) {
  const ArrayLayout array = small_array(3);
  std::vector<cf64> v(9);
  for (int k = 0; k < 3; ++k) v[k * 3 + k] = 1;
  const auto wave = polarized_wave(array, 0.2, 0.1, 0.5, cf64(0, 0.4), 60e6, true);
  SpectraConfig config = small_config(16'384, 1);
  const auto record = draw_spectra(array, covariance_root(v, 3), {wave}, 3, config);
  const auto r = correlate(record, 0);
  const double scale = 2 * config.level_lsb * config.level_lsb;
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = i + 1; j < 6; ++j) {
      const cf64 expected = wave.amplitude[i] * std::conj(wave.amplitude[j]);
      EXPECT_NEAR(std::abs(r[i * 6 + j] / scale - expected), 0, 0.06) << i << " " << j;
    }
  }
  EXPECT_NEAR(std::abs(wave.amplitude[0]), 0.5, 1e-12);
}

// The measured sky of the EDA2, drawn and quantised (image.md 10; T-RD-03a through a direct sum):
// rms(R - V) sqrt(T) = 1.008, Sun at (0.087, 0.203).
TEST(Fengine, DrawnFromTheMeasuredSkyTheSunStandsWhereItWas) {
  const std::string folder = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_";
  RYLE_REQUIRE_DATA(real, folder + "real_channel000_time000000.fits");
  RYLE_REQUIRE_DATA(imaginary, folder + "imag_channel000_time000000.fits");
  RYLE_REQUIRE_DATA(antennas, "eda2_20191104/antenna_locations.txt");
  CovarianceFiles files;
  files.real_path = real;
  files.imaginary_path = imaginary;
  files.antennas_path = antennas;
  files.frequency_hz = 159.375e6;
  files.latitude_deg = -26.70331940;
  files.longitude_deg = 116.67081524;
  const VisibilityFile file = read_covariance(files);
  const auto& all = file.observation.array;
  ArrayLayout array;
  std::vector<std::int64_t> kept;
  for (std::int64_t a = 0; a < all.n_antennas(); ++a) {
    if (all.inputs[a].bad || a == 30 || a == 43) continue;  // outlying rows
    ArrayInput input;
    input.antenna = array.n_antennas();
    array.antennas.push_back(all.antennas[a]);
    array.inputs.push_back(input);
    kept.push_back(a);
  }
  const auto n = static_cast<std::int64_t>(kept.size());
  ASSERT_EQ(n, 241);
  std::vector<cf64> v(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      v[i * n + j] = cf64(file.dumps.front().data[pair_index(kept[i], kept[j])]);
    }
  }
  make_drawable(v, n);
  const auto root = covariance_root(v, n);
  EXPECT_TRUE(root.positive_definite);
  EXPECT_NEAR(root.largest_eigenvalue, 13.05, 0.02);  // 1 + 5 % of 241
  SpectraConfig config = small_config(1000, 1);
  config.channels.first_center_hz = files.frequency_hz;
  config.level_lsb = 2.3;
  const auto record = draw_spectra(array, root, {}, 5, config);
  const auto r = correlate(record, 0);
  double sum2 = 0;
  std::vector<image::Sample> samples;
  const double per_m = files.frequency_hz / kSpeedOfLight_m_per_s;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) {
      const cf64 correlation = r[i * n + j] / std::sqrt(r[i * n + i].real() * r[j * n + j].real());
      sum2 += std::norm(correlation - 0.986 * v[i * n + j]);  // the scale of 4 bits at 2.3 steps
      const auto &p = array.antennas[i].enu_m, &q = array.antennas[j].enu_m;
      samples.push_back(
          {(p[0] - q[0]) * per_m, (p[1] - q[1]) * per_m, (p[2] - q[2]) * per_m, correlation, 1});
    }
  }
  const double rms = std::sqrt(sum2 / (0.5 * static_cast<double>(n * (n - 1))) * 1000);
  EXPECT_NEAR(rms, 1.0, 0.03);
  Queue queue = Queue::cpu();
  const image::Config grid{96, 2.0, "cpu"};
  std::vector<double> picture;
  image::make_imager(queue, grid)->execute(queue, samples, picture);
  const auto sun = image::peak_of(grid, picture);
  EXPECT_NEAR(sun.direction.l, 0.087, 0.01);  // half a pixel
  EXPECT_NEAR(sun.direction.m, 0.203, 0.01);
  EXPECT_GT(sun.sigmas, 60);
  RecordProperty("sun_sigmas", std::to_string(sun.sigmas));
  RecordProperty("rms", std::to_string(rms));
}

// A flash changes the record while it shines and nothing else: noise, steady sky and level stay.
TEST(SimulateSpectra, AFlashIsThereWhileItShines) {
  const ArrayLayout array = small_array();
  Scene scene;
  scene.sefd_jy = 1000;
  scene.sources.push_back({.name = "steady", .l = 0.2, .m = 0.1, .flux_jy = 500});
  SpectraConfig config;
  config.n_spectra = 4096;
  config.channels = {60e6, 25e3, 2};
  const SpectraRecord before = simulate_spectra(array, scene, config);
  scene.sources.push_back({.name = "flash", .l = -0.3, .m = 0.2, .flux_jy = 800});
  scene.sources.back().start_s = 0.5;
  scene.sources.back().duration_s = 0.25;
  EXPECT_FALSE(shines(scene.sources[1], 0.4999));
  EXPECT_TRUE(shines(scene.sources[1], 0.5));
  EXPECT_FALSE(shines(scene.sources[1], 0.75));
  config.at_s = 0.1;
  const SpectraRecord off = simulate_spectra(array, scene, config);
  EXPECT_EQ(off.samples, before.samples);
  EXPECT_EQ(off.jy_per_count2, before.jy_per_count2);
  config.at_s = 0.6;
  const SpectraRecord on = simulate_spectra(array, scene, config);
  EXPECT_EQ(on.jy_per_count2, before.jy_per_count2);
  // Power of an input: 1500 Jy before, 2300 Jy now. 4096 spectra of 2 channels: 1.1 % rms; clipping
  // at 2.5 rms of a part takes below 2 %.
  const double power = std::pow(on.rms_lsb[0] / before.rms_lsb[0], 2);
  EXPECT_NEAR(power, 2300.0 / 1500, 0.08);
}

}  // namespace
}  // namespace ryle::simulate
