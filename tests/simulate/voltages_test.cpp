// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/voltages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/math/fft.hpp"
#include "ryle/telescope/gains.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::simulate {
namespace {

constexpr double kLatitude_deg = -26.7033, kLongitude_deg = 116.6708, kHeight_m = 377.8;

ArrayLayout example_array() {
  return read_layout_csv(RYLE_SOURCE_DIR "/examples/mwa32t.csv", kLatitude_deg, kLongitude_deg,
                         kHeight_m);
}

ArrayLayout small_array(double cable_s = 0) {
  ArrayLayout array;
  array.latitude_rad = kLatitude_deg * kDegree_rad;
  array.longitude_rad = kLongitude_deg * kDegree_rad;
  array.height_m = kHeight_m;
  array.antennas = {{"a", {0, 0, 0}}, {"b", {173.0, -58.0, 3.0}}, {"c", {-91.0, 140.0, -2.0}}};
  for (int antenna = 0; antenna < 3; ++antenna) {
    for (int pol = 0; pol < 2; ++pol) {
      ArrayInput input;
      input.antenna = antenna;
      input.pol = pol;
      input.cable_delay_s = cable_s * (1 + antenna + 0.1 * pol);
      array.inputs.push_back(input);
    }
  }
  return array;
}

/// Plain-FFT spectra of an input, [spectrum][channel], scaled so that white noise keeps its
/// variance.
std::vector<cf64> spectra(const VoltageRecord& record, std::int64_t input,
                          std::int64_t n_channels) {
  std::vector<cf64> out(record.n_samples);
  const math::Fft fft(n_channels);
  for (std::int64_t t = 0; t < record.n_samples; ++t) {
    const auto sample = wire::unpack_mwa32t_word(record.samples[t * record.n_inputs + input]);
    out[t] = cf64(sample.re, sample.im) / std::sqrt(static_cast<double>(n_channels));
  }
  for (std::int64_t t = 0; t < record.n_samples; t += n_channels) fft.forward(out.data() + t);
  return out;
}

/// <v_i conj(v_j)> of one channel, in counts^2.
cf64 correlate(const std::vector<cf64>& a, const std::vector<cf64>& b, std::int64_t n_channels,
               std::int64_t channel) {
  cf64 sum = 0;
  std::int64_t n = 0;
  for (std::size_t k = channel; k < a.size(); k += n_channels, ++n) sum += a[k] * std::conj(b[k]);
  return sum / static_cast<double>(n);
}

double channel_hz(const VoltageRecord& record, std::int64_t n_channels, std::int64_t channel) {
  const std::int64_t k = 2 * channel < n_channels ? channel : channel - n_channels;
  return record.center_hz +
         record.sample_rate_hz.value() * static_cast<double>(k) / static_cast<double>(n_channels);
}

/// The factor cable and gain leave on a product: g_i conj(g_j) exp(-2 pi i nu (cable_i - cable_j)).
cf64 path_factor(const ArrayLayout& array, const Scene& scene, std::int64_t i, std::int64_t j,
                 double frequency_hz) {
  const double turns = frequency_hz * (cable_delay_s(array.inputs[i], frequency_hz) -
                                       cable_delay_s(array.inputs[j], frequency_hz));
  const cf64 gains = scene.gains.empty() ? cf64(1) : scene.gains[i] * std::conj(scene.gains[j]);
  return gains * std::polar(1.0, -2 * kPi * (turns - std::nearbyint(turns)));
}

/// Every product of every input pair against the model, in several channels. Noise of a mean over M
/// spectra is sqrt(P_i P_j / M) (radiometer); on top comes the loss of a plain FFT for a delay
/// difference tau, 1 - tau dnu (correlate.md 9), and the curvature of the quantiser at 4 LSB, below
/// 1e-3.
void expect_model(const ArrayLayout& array, const Scene& scene, const VoltageRecord& record,
                  std::int64_t n_channels) {
  const std::int64_t n_spectra = record.n_samples / n_channels;
  std::vector<std::vector<cf64>> all;
  for (std::int64_t i = 0; i < record.n_inputs; ++i) all.push_back(spectra(record, i, n_channels));
  for (std::int64_t channel : {std::int64_t{1}, n_channels / 2 + 3, n_channels - 2}) {
    const double nu = channel_hz(record, n_channels, channel);
    for (std::int64_t j = 0; j < record.n_inputs; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const cf64 factor = path_factor(array, scene, i, j, nu);
        const cf64 expected = factor * expected_visibility_jy(array, scene, record, i, j, nu);
        const cf64 measured = correlate(all[i], all[j], n_channels, channel) * record.jy_per_count2;
        const double power =
            std::abs(factor) *
            std::sqrt(expected_visibility_jy(array, scene, record, i, i, nu).real() *
                      expected_visibility_jy(array, scene, record, j, j, nu).real());
        const double tau_s =
            1.2e-6;  // longest baseline (350 m) and cable difference of these arrays
        const double tolerance =
            5 * power / std::sqrt(static_cast<double>(n_spectra)) +
            std::abs(expected) *
                (1e-3 + tau_s * record.sample_rate_hz.value() / static_cast<double>(n_channels));
        EXPECT_LT(std::abs(measured - expected), tolerance)
            << "inputs " << i << "," << j << " channel " << channel << " expected " << expected
            << " measured " << measured;
      }
    }
  }
}

TEST(Voltages, VisibilitiesHaveTheSignsAndFluxesOfTheConventions) {
  const ArrayLayout array = small_array();
  Scene scene;
  scene.sources = {{.name = "A", .l = 0.4, .m = -0.25, .flux_jy = 300, .spectral_index = -0.7}};
  scene.sefd_jy = 100;
  VoltageConfig config;
  config.n_samples = 1 << 16;
  const auto record = simulate_voltages(array, scene, config);
  expect_model(array, scene, record, 128);
  // The same in the words of conventions.md 5, written out once: baseline (0, 1), u l + v m + w (n
  // - 1) waves plus the constant w of the zenith that enu_m has and uvw of a phased centre has not.
  const auto a = spectra(record, 0, 128), b = spectra(record, 2, 128);
  const double nu = channel_hz(record, 128, 5);
  const double wavelength = kSpeedOfLight_m_per_s / nu;
  const double u = -173.0 / wavelength, v = 58.0 / wavelength, w = -3.0 / wavelength;
  const double n = std::sqrt(1 - 0.4 * 0.4 - 0.25 * 0.25);
  const double phase = 2 * kPi * (u * 0.4 + v * -0.25 + w * (n - 1)) + 2 * kPi * w;
  const cf64 unit =
      correlate(a, b, 128, 5) * std::polar(1.0, -phase) * record.jy_per_count2 / 300.0;
  EXPECT_LT(std::abs(std::arg(unit)),
            0.1);  // 512 spectra, S/N = 300/400 sqrt(512) = 17: 5 sigma = 0.2 rad / sqrt 2
}

TEST(Voltages, CablesGainsAndPolarizationFollowTheModel) {
  const ArrayLayout array = small_array(87e-9);
  Scene scene;
  scene.sources = {
      {.name = "A", .l = -0.2, .m = 0.5, .flux_jy = 300, .q = 0.3, .u = -0.4, .v = 0.5},
      {.name = "B", .l = 0.1, .m = 0.05, .flux_jy = 150, .q = -1}};
  scene.sefd_jy = 50;
  for (int k = 0; k < 6; ++k) scene.gains.push_back(std::polar(1 + 0.05 * k, 0.9 * k));
  VoltageConfig config;
  config.n_samples = 1 << 16;
  config.center_hz = 80e6;
  expect_model(array, scene, simulate_voltages(array, scene, config), 128);
}

TEST(Voltages, ExampleArrayHasTheLevelAsked) {
  ArrayLayout array = example_array();
  ASSERT_EQ(array.n_inputs(), 64);
  Scene scene;
  scene.sources = {{.name = "A", .l = 0.3, .m = -0.2, .flux_jy = 200},
                   {.name = "B", .l = -0.5, .m = 0.4, .flux_jy = 100},
                   {.name = "C", .l = 0.05, .m = 0.6, .flux_jy = 60}};
  scene.gains = read_gains_csv(RYLE_SOURCE_DIR "/examples/mwa32t_gains.csv", 64);
  VoltageConfig config;
  config.n_samples = 1 << 16;
  const auto record = simulate_voltages(array, scene, config);
  EXPECT_EQ(record.samples.size(), std::size_t{64} << 16);
  double mean = 0;
  for (const double rms : record.rms_lsb) mean += rms / 64;
  // asked 4; rounding adds 1/12 of variance (+0.26 %), clipping at 15.5 takes from the loudest
  // inputs
  EXPECT_NEAR(mean, 4.0, 0.04);
  for (const double fraction : record.clipped_fraction) EXPECT_LT(fraction, 0.02);
}

// T-FX-10 for the simulator: the record is periodic, so one transform of all of it has every delay
// as an exact ramp.
TEST(Voltages, PhasesOfTwentyDirectionsAreExactToTheQuantiser) {
  ArrayLayout array = example_array();
  ArrayLayout some = array;
  some.inputs.clear();
  for (int k = 0; k < 5; ++k) some.inputs.push_back(array.inputs[14 * k]);
  Scene scene;
  scene.sefd_jy = 1e-12;
  VoltageConfig config;
  config.n_samples = 1 << 14;
  const math::Fft fft(config.n_samples);
  for (int direction = 0; direction < 20; ++direction) {
    const double azimuth = 2.399963 * direction, radius = std::sqrt((direction + 0.5) / 21);
    scene.sources = {
        {.name = "A", .l = radius * std::cos(azimuth), .m = radius * std::sin(azimuth)}};
    scene.seed = static_cast<std::uint64_t>(direction);
    const auto record = simulate_voltages(some, scene, config);
    std::vector<std::vector<cf64>> all;
    for (int i = 0; i < 5; ++i) all.push_back(spectra(record, i, config.n_samples));
    const auto fringe = [&](int i, int j) {  // sum over bins of V_ij times the conjugate model
      const Vector3& a = some.antennas[some.inputs[i].antenna].enu_m;
      const Vector3& b = some.antennas[some.inputs[j].antenna].enu_m;
      double lead_s = some.inputs[j].cable_delay_s - some.inputs[i].cable_delay_s;
      for (int k = 0; k < 3; ++k) {
        lead_s += (a[k] - b[k]) * record.sources_enu[0][k] / kSpeedOfLight_m_per_s;
      }
      cf64 sum = 0;
      for (std::int64_t bin = 0; bin < config.n_samples; ++bin) {
        const double turns = channel_hz(record, config.n_samples, bin) * lead_s;
        sum += all[i][bin] * std::conj(all[j][bin]) *
               std::polar(1.0, -2 * kPi * (turns - std::nearbyint(turns)));
      }
      return sum;
    };
    // Rounding adds 1/12 LSB^2 to the 16 of a part: 0.0052 of the power, independent in the two
    // inputs, half of it across the phasor: sigma = sqrt(2 * 0.0052 / 2 / 16384) = 5.6e-4 rad. 560
    // values stay below 5 sigma = 0.16 degrees.
    for (int j = 1; j < 5; ++j) {
      for (int i = 0; i < j; ++i) EXPECT_LT(std::abs(std::arg(fringe(i, j))), 2.8e-3) << i << j;
    }
    const double closure = std::arg(fringe(0, 2) * fringe(2, 4) * std::conj(fringe(0, 4)));
    EXPECT_LT(std::abs(closure), 5 * 5.6e-4 * std::sqrt(3.0));
  }
}

TEST(Voltages, ResultDoesNotDependOnTheNumberOfWorkers) {
  const ArrayLayout array = small_array(50e-9);
  Scene scene;
  scene.sources = {{.name = "A", .l = 0.1, .m = 0.2, .flux_jy = 10}};
  VoltageConfig config;
  config.n_samples = 3000;  // also a size that is no power of two
  config.n_workers = 1;
  const auto one = simulate_voltages(array, scene, config);
  config.n_workers = 5;
  EXPECT_EQ(one.samples, simulate_voltages(array, scene, config).samples);
  scene.seed = 2;
  EXPECT_NE(one.samples, simulate_voltages(array, scene, config).samples);
}

TEST(Voltages, RecordRepeatsWithoutASeam) {
  // A strong source seen by two antennas one whole sample apart: x_b[t] = x_a[t + 1] also around
  // the end, up to quantisation (1/6 LSB^2 for the difference) and a constant phase, removed with a
  // chosen centre frequency.
  ArrayLayout array = small_array();
  const double rate_hz = 1.28e6;
  array.antennas[1].enu_m = {kSpeedOfLight_m_per_s / rate_hz, 0, 0};
  Scene scene;
  scene.sources = {{.name = "A", .l = 1.0, .m = 0, .flux_jy = 1000}};
  scene.sefd_jy = 1e-9;
  VoltageConfig config;
  config.n_samples = 4096;
  config.center_hz = 100 * rate_hz;
  const auto record = simulate_voltages(array, scene, config);
  for (std::int64_t t = 0; t < 4096; ++t) {
    const auto a = wire::unpack_mwa32t_word(record.samples[(t + 1) % 4096 * 6]);
    const auto b = wire::unpack_mwa32t_word(record.samples[t * 6 + 2]);
    ASSERT_LE(std::abs(a.re - b.re), 1) << t;
    ASSERT_LE(std::abs(a.im - b.im), 1) << t;
  }
}

TEST(Voltages, DeadInputIsZeroAndToneIsWhereItWasPut) {
  const ArrayLayout array = small_array();
  Scene scene;
  scene.dead_inputs = {3};
  scene.tones = {{.frequency_hz = 150e6 - 200e3, .power_jy = 2000}};
  VoltageConfig config;
  config.n_samples = 1 << 15;
  const auto record = simulate_voltages(array, scene, config);
  for (std::int64_t t = 0; t < record.n_samples; ++t) ASSERT_EQ(record.samples[t * 6 + 3], 0);
  const auto x = spectra(record, 0, 128);
  // -200 kHz = channel -20 of 10 kHz: all 2000 Jy x 128 in one channel, 1000 Jy of noise in the
  // others
  const double tone = correlate(x, x, 128, 108).real() * record.jy_per_count2;
  const double quiet = correlate(x, x, 128, 20).real() * record.jy_per_count2;
  EXPECT_NEAR(tone / (2000.0 * 128), 1.0, 0.02);
  EXPECT_NEAR(quiet / 1000, 1.0, 5 / std::sqrt(256.0) + 0.02);
}

TEST(Voltages, IcrsSourceStandsWhereErfaPutsIt) {
  const ArrayLayout array = small_array();
  Scene scene;
  VoltageConfig config;
  config.n_samples = 64;
  config.start_tai_ns = tai_ns_from_utc_iso("2026-11-21T19:14:02");
  Source source;
  source.icrs = direction_of_enu(array, {0.3, 0.4, std::sqrt(0.75)}, config.start_tai_ns);
  scene.sources = {source};
  const auto record = simulate_voltages(array, scene, config);
  EXPECT_NEAR(record.sources_enu[0][0], 0.3, 1e-9);
  EXPECT_NEAR(record.sources_enu[0][1], 0.4, 1e-9);
}

TEST(Voltages, ImpossibleScenesAreRejectedWithTheReason) {
  const ArrayLayout array = small_array();
  const auto message = [&](const Scene& scene, VoltageConfig config = {}) -> std::string {
    config.n_samples = 64;
    try {
      simulate_voltages(array, scene, config);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  Scene scene;
  scene.sources = {{.name = "A", .l = 0.8, .m = 0.7}};
  EXPECT_THAT(message(scene), testing::HasSubstr("not on the sky"));
  scene.sources = {{.name = "A", .q = 0.9, .v = 0.9}};
  EXPECT_THAT(message(scene), testing::HasSubstr("more than fully polarized"));
  scene.sources = {{.name = "A", .flux_jy = NAN}};
  EXPECT_THAT(message(scene), testing::HasSubstr("flux_jy"));
  scene.sources = {{.name = "low", .icrs = SkyDirection{0, 89 * kDegree_rad}}};
  EXPECT_THAT(message(scene), testing::HasSubstr("below the horizon"));
  scene.sources.clear();
  scene.gains = {1.0};
  EXPECT_THAT(message(scene), testing::HasSubstr("1 gains for 6 inputs"));
  scene.gains.clear();
  scene.dead_inputs = {6};
  EXPECT_THAT(message(scene), testing::HasSubstr("dead input 6"));
  scene.dead_inputs = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(message(scene), testing::HasSubstr("no power"));
}

/// Samples of one part, or of two, of so many bits: the visibilities of the sky, from both ends of
/// the band of real ones.
TEST(VoltagesOfParts, RealAndComplexSamplesOfAnyWidthHoldTheSky) {
  const ArrayLayout array = small_array();
  Scene scene;
  scene.sefd_jy = 100;
  Source source;
  source.l = 0.3;
  source.m = -0.2;
  source.flux_jy = 400;
  scene.sources = {source};
  for (const bool real : {true, false}) {
    for (const int bits : {4, 8, 12}) {
      VoltageConfig config;
      config.n_samples = 1 << 16;
      config.sample_rate_hz = {1'000'000, 1};
      config.center_hz = 150e6;
      config.bits = bits;
      config.real = real;
      config.level_lsb = bits == 4 ? 2 : 1 << (bits - 4);
      const VoltageRecord record = simulate_voltages(array, scene, config);
      const int n_parts = real ? 1 : 2;
      ASSERT_EQ(record.n_parts, n_parts);
      ASSERT_EQ(record.samples.size(), static_cast<std::size_t>(6 * n_parts) << 16);
      const std::int64_t n = 64;
      const math::Fft fft(n);
      std::vector<std::vector<cf64>> spectrum(2);
      for (int input = 0; input < 2; ++input) {
        auto& out = spectrum[input];
        out.resize(config.n_samples);
        for (std::int64_t t = 0; t < config.n_samples; ++t) {
          const auto part = [&](int p) {
            const auto word = record.samples[(t * 6 + 2 * input) * n_parts + p];
            const int code = static_cast<std::int16_t>(word);
            EXPECT_LT(code, 1 << (bits - 1));
            EXPECT_GE(code, -(1 << (bits - 1)));
            return static_cast<double>(code);
          };
          out[t] = cf64(part(0), real ? 0 : part(1)) / std::sqrt(static_cast<double>(n));
        }
        for (std::int64_t t = 0; t < config.n_samples; t += n) fft.forward(out.data() + t);
        EXPECT_NEAR(record.rms_lsb[2 * input], config.level_lsb, 0.05 * config.level_lsb);
      }
      for (const std::int64_t channel : {std::int64_t{5}, std::int64_t{27}}) {
        const double frequency_hz = 150e6 + 1e6 * static_cast<double>(channel) / 64;
        const cf64 want = expected_visibility_jy(array, scene, record, 0, 2, frequency_hz);
        const cf64 got = correlate(spectrum[0], spectrum[1], n, channel) * record.jy_per_count2;
        // 1024 spectra of 500 Jy: 16 Jy of noise; a channel is a seventh of a turn wide.
        EXPECT_LT(std::abs(got - want), 70) << real << " " << bits << " " << got << " " << want;
      }
    }
  }
}

}  // namespace
}  // namespace ryle::simulate
