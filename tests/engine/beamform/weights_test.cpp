// SPDX-License-Identifier: BSD-3-Clause
// T-BF-01, 03, 05, 07: weights from geometry, and the beams they make.
#include "ryle/engine/beamform/weights.hpp"

#include <numbers>

#include "ryle/core/units.hpp"
#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

constexpr double kPi2 = 2 * std::numbers::pi;

// BEST-2: 8 rows of 10.0 m (south to north), 4 columns of 5.878 m (west to east).
ArrayLayout best2_array() {
  ArrayLayout array;
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 4; ++column) {
      ArrayInput input;
      input.antenna = array.n_antennas();
      input.cable_delay_s = 3e-9 * (row * 5 % 7);
      array.antennas.push_back({"", {5.878 * column, 10.0 * row, 0}});
      array.inputs.push_back(input);
    }
  }
  return array;
}

ArrayLayout random_array(std::int64_t n) {
  ArrayLayout array;
  for (std::int64_t a = 0; a < n; ++a) {
    ArrayInput input;
    input.antenna = a;
    const auto key = static_cast<std::uint64_t>(a);
    input.cable_delay_s = 1e-7 * uniform(combine(1, key));
    array.antennas.push_back(
        {"", {60 * uniform(combine(2, key)), 60 * uniform(combine(3, key)), 2 * uniform(key)}});
    array.inputs.push_back(input);
  }
  return array;
}

Vector3 direction(double l, double m) { return {l, m, std::sqrt(1 - l * l - m * m)}; }

// What input p receives of a wave from s: exp(+2 pi i nu (r.s/c - cable))   (conventions.md 5)
cf64 response(const ArrayLayout& array, std::int64_t p, const Vector3& s, double nu) {
  const auto& input = array.inputs[static_cast<std::size_t>(p)];
  const auto& r = array.antennas[static_cast<std::size_t>(input.antenna)].enu_m;
  const double early_s =
      (r[0] * s[0] + r[1] * s[1] + r[2] * s[2]) / kSpeedOfLight_m_per_s - input.cable_delay_s;
  return std::polar(1.0, kPi2 * std::remainder(nu * early_s, 1.0));
}

WeightConfig weights_of(std::int64_t antennas, double nu, std::int64_t channels = 1) {
  WeightConfig c;
  c.n_antennas = antennas;
  c.channels = {nu, -19531.25, channels};
  return c;
}

std::vector<cf32> make(const WeightConfig& c, const std::vector<Steering>& steering,
                       const std::vector<std::vector<double>>& subarrays = {},
                       View<const cf32, 2> gains = {}) {
  const WeightMaker maker(c, gains, subarrays);
  const auto inputs = c.n_antennas * c.n_pols;
  const auto beams = static_cast<std::int64_t>(steering.size()) / inputs;
  std::vector<cf32> w(static_cast<std::size_t>(beams * c.channels.n_channels * inputs));
  maker.make(steering, 0, {}, {w.data(), {beams, c.channels.n_channels, inputs}});
  return w;
}

// T-BF-01: plane waves from 2000 directions through the engine, against |sum w e^{j phi}|^2. The
// waves are phased with cables and positions, so a wrong sign, cable or half channel shows.
TEST(Weights, PatternIsThatOfTheArray) {
  for (const auto& array : {best2_array(), random_array(256)}) {
    const std::int64_t n = array.n_inputs();
    constexpr double kNu = 413e6;
    constexpr std::int64_t kWaves = 2000;
    const Vector3 pointing = direction(0.21, -0.35);
    const auto weights = make(weights_of(n, kNu), steer(array, {{pointing}}, kNu));
    Config c;
    c.n_antennas = n;
    c.n_beams = c.n_channels = 1;
    c.max_spectra = kWaves;
    c.format = SampleFormat::cf32;
    c.weights = WeightFormat::f32;
    Stream stream(c, kWaves);
    std::vector<double> want;
    for (std::int64_t wave = 0; wave < kWaves; ++wave) {
      const auto key = static_cast<std::uint64_t>(wave);
      const Vector3 s = wave == 0 ? pointing
                                  : direction(0.7 * (2 * uniform(combine(7, key)) - 1),
                                              0.7 * (2 * uniform(combine(8, key)) - 1));
      cf64 sum = 0;
      for (std::int64_t p = 0; p < n; ++p) {
        const cf32 v(response(array, p, s, kNu));
        std::memcpy(stream.at(0, wave, p), &v, 8);
        sum += std::conj(response(array, p, pointing, kNu)) * response(array, p, s, kNu);
      }
      want.push_back(std::norm(sum) / static_cast<double>(n));
    }
    const double peak = static_cast<double>(n);
    EXPECT_NEAR(want[0], peak, 1e-6 * peak);
    auto names = cpu_names(c);
    names.push_back("reference");
    for (const auto& name : names) {
      expect_close(numbers(c, run(c, name, weights, stream.all())), want, 1e-4 * peak, name);
      Config i8 = c;
      i8.weights = WeightFormat::i8;
      const auto quantized = numbers(i8, run(i8, name, weights, stream.all()));
      double error = 0;
      for (std::size_t k = 0; k < want.size(); ++k)
        error += std::pow(std::sqrt(quantized[k]) - std::sqrt(want[k]), 2);
      EXPECT_LT(10 * std::log10(error / kWaves / peak), -45) << name;
    }
  }
}

// T-BF-03: a source on the first null of a uniform line.
TEST(Weights, NullsAreDeep) {
  ArrayLayout array;
  for (int a = 0; a < 32; ++a) {
    ArrayInput input;
    input.antenna = a;
    array.antennas.push_back({"", {5.0 * a, 0, 0}});
    array.inputs.push_back(input);
  }
  constexpr double kNu = 408e6;
  const double null_l = kSpeedOfLight_m_per_s / kNu / (32 * 5.0);
  const auto weights = make(weights_of(32, kNu), steer(array, {{direction(0, 0)}}, kNu));
  Config c;
  c.n_antennas = 32;
  c.n_beams = c.n_channels = 1;
  c.max_spectra = 2;
  c.format = SampleFormat::cf32;
  Stream stream(c, 2);
  for (int wave = 0; wave < 2; ++wave) {
    for (std::int64_t p = 0; p < 32; ++p) {
      const cf32 v(response(array, p, direction(wave * null_l, 0), kNu));
      std::memcpy(stream.at(0, wave, p), &v, 8);
    }
  }
  for (const auto format : {WeightFormat::f32, WeightFormat::i8}) {
    c.weights = format;
    for (const auto& name : cpu_names(c)) {
      const auto p = numbers(c, run(c, name, weights, stream.all()));
      EXPECT_GT(10 * std::log10(p[0] / std::max(p[1], 1e-30)), format == WeightFormat::i8 ? 40 : 60)
          << name;
    }
  }
}

// T-BF-05: integer turns over 1024 channels of a long delay against long double.
TEST(Weights, PhasesOfManyChannels) {
  const WeightConfig c = weights_of(3, 417'990'234.375, 1024);
  WeightConfig plain = c;
  plain.normalization = Normalization::sum;
  const std::vector<Steering> steering{{1.2345678e-3, 0, 0}, {-7.7e-9, 0, 0.25}, {0, 0, 0.5}};
  const auto w = make(plain, steering);
  for (std::int64_t k = 0; k < 1024; ++k) {
    for (std::size_t a = 0; a < 3; ++a) {
      const long double nu = 417'990'234.375L - 19531.25L * static_cast<long double>(k);
      long double turns = -nu * static_cast<long double>(steering[a].delay_s) +
                          static_cast<long double>(steering[a].phase_turns);
      turns -= std::floor(turns);
      const cf64 want = std::polar(1.0, kPi2 * static_cast<double>(turns));
      // 5e5 whole turns in double: 6e-11; 1024 steps of 2^-33: 1.2e-7 turns; float: 6e-8.
      EXPECT_LT(std::abs(cf64(w[static_cast<std::size_t>(k) * 3 + a]) - want),
                kPi2 * (1024 * 0x1p-33 + 1e-9) + 1.2e-7)
          << k << " " << a;
    }
  }
}

TEST(Weights, PhasorIsExact) {
  for (std::uint64_t k = 0; k < 20'000; ++k) {
    const auto turns = static_cast<std::uint32_t>(mix64(k));
    EXPECT_LT(std::abs(phasor(turns) - std::polar(1.0, kPi2 * 0x1p-32 * turns)), 1e-11) << turns;
  }
  EXPECT_EQ(turns_of(-0.25), 0xC0000000u);
  EXPECT_EQ(turns_of(3.5), 0x80000000u);
  EXPECT_EQ(turns_of(1 - 1e-12), 0u);  // rounds up to a whole turn
}

TEST(Weights, RatesMoveTheDelay) {
  const WeightConfig c = weights_of(2, 400e6, 2);
  const WeightMaker maker(c, {}, {});
  const std::vector<Steering> moving{{1e-8, 2e-9, 0}, {3e-8, -1e-9, 0}};
  const std::vector<Steering> moved{{1e-8 + 2e-8, 0, 0}, {3e-8 - 1e-8, 0, 0}};
  std::vector<cf32> a(4), b(4);
  maker.make(moving, 10, {}, {a.data(), {1, 2, 2}});
  maker.make(moved, 0, {}, {b.data(), {1, 2, 2}});
  for (std::size_t k = 0; k < 4; ++k) EXPECT_LT(std::abs(a[k] - b[k]), 1e-6);
  const auto rates = steer(best2_array(), {{direction(0, 0)}}, {{direction(0.1, 0)}}, 10, 400e6);
  EXPECT_NEAR(rates[1].rate_s_per_s, 5.878 * 0.01 / kSpeedOfLight_m_per_s, 1e-15);
}

// Gains are divided out, matched or only turned; bad ones mask their input and are counted.
TEST(Weights, GainModesMasksAndNormalization) {
  WeightConfig c = weights_of(5, 400e6, 2);
  std::vector<cf32> gains(10, cf32(0.5f, 0.5f));
  gains[2 * 1] = cf32(0, -2);   // input 1, channel 0
  gains[2 * 2 + 1] = cf32(0);   // input 2, channel 1
  gains[2 * 3] = cf32(NAN, 0);  // input 3, channel 0
  gains[2 * 4 + 1] = cf32(INFINITY, 0);
  const View<const cf32, 2> view(gains.data(), {5, 2});
  const std::vector<Steering> ahead(5);
  EXPECT_EQ(WeightMaker(c, view, {}).n_masked_gains(), 3);
  c.normalization = Normalization::sum;
  auto w = make(c, ahead, {}, view);
  EXPECT_LT(std::abs(w[1] - cf32(0, 0.5f)), 1e-6);  // 1 / (-2i)
  EXPECT_LT(std::abs(w[0] - cf32(1, -1)), 1e-6);
  EXPECT_EQ(w[3], cf32(0));
  EXPECT_EQ(w[5 + 2], cf32(0));
  EXPECT_EQ(w[5 + 4], cf32(0));
  c.gain_mode = GainMode::phase;
  w = make(c, ahead, {}, view);
  EXPECT_LT(std::abs(w[1] - cf32(0, 1)), 1e-6);
  c.gain_mode = GainMode::matched;
  w = make(c, ahead, {}, view);
  // sum |g|^2 = 0.5 + 4 + 0.5 + 0.5
  EXPECT_LT(std::abs(w[1] - cf32(0, 2 / 5.5f)), 1e-6);
  c.gain_mode = GainMode::phase;
  c.normalization = Normalization::mean;
  w = make(c, ahead, {{1, 0.5, 0, 1, 1}}, view);
  // masks 1 + 0.5 + 1 (input 3 has no gain here): mean of what is left
  EXPECT_NEAR(std::abs(w[0]), 1 / 2.5, 1e-6);
  EXPECT_NEAR(std::abs(w[1]), 0.5 / 2.5, 1e-6);
  c.normalization = Normalization::noise;
  w = make(c, ahead, {{1, 0.5, 0, 1, 1}}, view);
  double power = 0;
  for (std::size_t a = 0; a < 5; ++a) power += std::norm(w[a]);
  EXPECT_NEAR(power, 1, 1e-6);
  EXPECT_THROW(make(c, ahead, {{0, 0, 0, 0, 0}}), ConfigError);
  EXPECT_THROW(make(c, ahead, {{1, 1}}), ConfigError);
  EXPECT_THROW(make(c, ahead, {{1, 2, 1, 1, 1}}), ConfigError);
}

// A channel of the lower sideband is the conjugate: so are its geometric weights.
TEST(Weights, WrongSidebandIsConjugated) {
  WeightConfig c = weights_of(4, 400e6, 2);
  const std::vector<Steering> steering{{1e-8, 0, 0}, {2e-8, 0, 0}, {5e-9, 0, 0}, {-1e-8, 0, 0}};
  const auto upper = make(c, steering);
  c.sideband = {1, -1};
  const auto mixed = make(c, steering);
  for (std::size_t a = 0; a < 4; ++a) {
    EXPECT_EQ(mixed[a], upper[a]);
    EXPECT_LT(std::abs(mixed[4 + a] - std::conj(upper[4 + a])), 1e-6);
  }
}

// T-BF-07: phase errors of rms s lose 1 - exp(-s^2) of a beam's power.
TEST(Weights, PhaseErrorsLoseWhatTheorySays) {
  constexpr std::int64_t kN = 256, kTrials = 400;
  for (const double s : {1 * kDegree_rad, 5 * kDegree_rad}) {
    std::vector<Steering> steering;
    for (std::int64_t k = 0; k < kN * kTrials; ++k)
      steering.push_back({0, 0, s / kPi2 * gaussian(combine(17, static_cast<std::uint64_t>(k)))});
    WeightConfig c = weights_of(kN, 400e6);
    c.normalization = Normalization::mean;
    const auto w = make(c, steering);
    double power = 0;
    for (std::int64_t trial = 0; trial < kTrials; ++trial) {
      cf64 sum = 0;
      for (std::int64_t a = 0; a < kN; ++a)
        sum += cf64(w[static_cast<std::size_t>(trial * kN + a)]);
      power += std::norm(sum) / kTrials;
    }
    // Mean |sum|^2 = exp(-s^2) + (1 - exp(-s^2)) / N; relative error of the loss sqrt(2 / (N
    // trials))
    const double want = (1 - std::exp(-s * s)) * (1 - 1.0 / kN);
    EXPECT_NEAR((1 - power) / want, 1, 5 * std::sqrt(2.0 / (kN * kTrials))) << s;
  }
}

TEST(Weights, NarrowChannelsMayUsePhases) {
  EXPECT_NEAR(delay_loss(19531.25, 250e-9), 8e-5, 1e-5);
  EXPECT_NEAR(delay_loss(0.0174 / 1e-6, 1e-6), 1e-3, 1e-5);
}

}  // namespace
}  // namespace ryle::beamform::test
