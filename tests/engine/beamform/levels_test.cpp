// SPDX-License-Identifier: BSD-3-Clause
// Scales that follow the data (beamform.md 4), T-BF-11: gains from 0.01 to 100 through codes.
#include "ryle/engine/beamform/levels.hpp"

#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

TEST(Levels, InterferenceMovesNothing) {
  std::vector<float> values;
  for (std::uint64_t k = 0; k < 1000; ++k) {
    // Gaussian of mean 100, rms 5; 5 % of it a thousand times stronger.
    const auto noise = static_cast<float>(100 + 5 * gaussian(combine(3, k)));
    values.push_back(k % 20 == 7 ? 1e5f : noise);
  }
  const Level level = robust_level(values);
  EXPECT_NEAR(level.mean, 100, 5 * 5 / std::sqrt(950.0));
  EXPECT_NEAR(level.rms, 5, 5 * 5 / std::sqrt(2 * 950.0));
  EXPECT_EQ(level.n, 950);
  std::vector<float> same(10, 3.0f), none;
  EXPECT_EQ(robust_level(same).mean, 3);
  EXPECT_EQ(robust_level(same).rms, 0);
  EXPECT_EQ(robust_level(none).n, 0);
}

Config watched() {
  Config c;
  c.n_antennas = 1;
  c.n_beams = 3;
  c.n_channels = 2;
  c.max_spectra = 1000;
  c.integration = 4;
  c.output_format = OutputFormat::u8;
  return c;
}

// A level that jumps is followed at the next multiple of the interval, also through codes that are
// all cut; every change is told with its tick.
TEST(Levels, FollowsAtStatedTicks) {
  const Config c = watched();
  LevelOptions o;
  o.interval = 4000;
  LevelTracker tracker(c, o);
  EXPECT_FALSE(tracker.update(0));  // nothing seen yet
  EXPECT_EQ(tracker.next_update(0), 4000);
  EXPECT_EQ(tracker.next_update(4000), 8000);
  EXPECT_EQ(tracker.next_update(-1), 0);
  const auto power = [](std::int64_t row, std::int64_t channel, Tick window, double level) {
    const auto key = static_cast<std::uint64_t>(row * 2 + channel);
    return static_cast<float>(level *
                              (1 + static_cast<double>(row) +
                               0.1 * gaussian(combine(key, static_cast<std::uint64_t>(window)))));
  };
  std::vector<float> floats(3 * 2 * 250);
  const auto fill = [&](Tick first, double level) {
    for (std::int64_t cell = 0; cell < 6; ++cell) {
      for (std::int64_t k = 0; k < 250; ++k)
        floats[static_cast<std::size_t>(cell * 250 + k)] =
            power(cell / 2, cell % 2, first + k, level);
    }
  };
  fill(0, 50);
  Config as_floats = c;
  as_floats.output_format = OutputFormat::f32;
  tracker.add_floats(dense_output(as_floats, floats.data(), 250), 0, 250);
  EXPECT_TRUE(tracker.update(0));
  for (std::int64_t row = 0; row < 3; ++row) {
    // Rms 5 LSB to 5 %; the mean lies at code 64.
    EXPECT_NEAR(tracker.scale()(row, 0, 1), 8.0 / 5, 0.15 * 8 / 5) << row;
    EXPECT_NEAR(50.0 * static_cast<double>(row + 1) * double{tracker.scale()(row, 0, 1)} +
                    double{tracker.offset()(row, 0, 1)},
                64, 3)
        << row;
  }
  std::vector<std::uint8_t> codes(3 * 2 * 250);
  const auto run_codes = [&](Tick first, double level) {
    fill(first, level);
    for (std::int64_t cell = 0; cell < 6; ++cell) {
      for (std::int64_t k = 0; k < 250; ++k) {
        const auto at = static_cast<std::size_t>(cell * 250 + k);
        const double code =
            std::rint(double{floats[at]} * double{tracker.scale()(cell / 2, 0, cell % 2)} +
                      double{tracker.offset()(cell / 2, 0, cell % 2)});
        codes[at] = static_cast<std::uint8_t>(std::clamp(code, 0.0, 255.0));
      }
    }
    tracker.add_codes(dense_output(c, codes.data(), 250), first, 250);
  };
  for (Tick tick = 0; tick < 4000; tick += 1000) {
    EXPECT_FALSE(tracker.update(tick)) << tick;
    run_codes(tick / 4, 50);
  }
  EXPECT_TRUE(tracker.update(4000));
  EXPECT_NEAR(tracker.scale()(0, 0, 0), 8.0 / 5, 0.15 * 8 / 5);
  // Thirty times as strong: all codes are 255, then open up fourfold an interval.
  for (Tick tick = 4000; tick < 40'000; tick += 1000) {
    if (tick % 4000 == 0 && tick > 4000) {
      EXPECT_TRUE(tracker.update(tick));
    }
    run_codes(tick / 4, 1500);
  }
  EXPECT_NEAR(tracker.scale()(0, 0, 0), 8.0 / 150, 0.2 * 8 / 150);
  EXPECT_EQ(tracker.changes().size(), 10u);
  EXPECT_EQ(tracker.changes()[1], 4000);
  EXPECT_EQ(tracker.changes()[2], 8000);
}

// T-BF-11: gain 0.01 to 100. The power of the codes follows the gain (slope 1 +- 0.005 in between)
// and at both ends the law of a quantizer: E[code^2] of a Gaussian of rms s, clipped at 127.
TEST(Levels, GainFromQuantizationToSaturation) {
  constexpr std::int64_t kSpectra = 40'000;
  Config c;
  c.n_antennas = 1;
  c.n_beams = 1;
  c.n_channels = 1;
  c.max_spectra = kSpectra;
  c.format = SampleFormat::cf32;
  c.weights = WeightFormat::f32;
  c.output = OutputKind::voltage;
  c.output_format = OutputFormat::ci8;
  Stream stream(c, kSpectra);
  const auto expected = [](double rms) {
    double power = 0;
    for (int code = -127; code <= 127; ++code) {
      const double low = code == -127 ? -1e9 : code - 0.5, high = code == 127 ? 1e9 : code + 0.5;
      const double p =
          0.5 * (std::erf(high / rms / std::sqrt(2.0)) - std::erf(low / rms / std::sqrt(2.0)));
      power += p * code * code;
    }
    return power;
  };
  for (const auto& name : cpu_names(c)) {
    double last_db = 0, last_gain_db = 0;
    for (double gain = 0.01; gain < 101; gain *= std::pow(10, 0.25)) {
      const double rms = 8 * gain;
      const auto codes =
          numbers(c, run(c, name, {cf32(static_cast<float>(gain))}, stream.all(), {8, 0}));
      double power = 0;
      for (const double code : codes) power += code * code;
      power /= static_cast<double>(codes.size());
      const double want = expected(rms);
      if (want < 1e-4) {  // below a code in 10 000 there is nothing to measure
        EXPECT_LT(power, 1e-3) << name << " gain " << gain;
        continue;
      }
      EXPECT_NEAR(10 * std::log10(power), 10 * std::log10(want), 0.5) << name << " gain " << gain;
      const double db = 10 * std::log10(power), gain_db = 20 * std::log10(gain);
      // Rounding adds 1/12 and clipping at 4 sigma takes 2e-4: both below 0.005 between 3 and 30.
      if (rms > 6 && rms < 31 && last_gain_db > 20 * std::log10(3.0 / 8)) {
        EXPECT_NEAR((db - last_db) / (gain_db - last_gain_db), 1, 0.005) << name << " " << gain;
      }
      last_db = db;
      last_gain_db = gain_db;
    }
  }
}

}  // namespace
}  // namespace ryle::beamform::test
