// SPDX-License-Identifier: BSD-3-Clause
// T-FE-02: every CPU implementation against the equation in double.
#include "tests/engine/channelize/harness.hpp"

namespace ryle::channelize::test {
namespace {

struct Shape {
  std::int64_t n_channels, n_taps, step;
  SampleFormat format;
  bool inverted;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "C" << s.n_channels << " P" << s.n_taps << " M" << s.step << " " << name(s.format)
             << (s.inverted ? " inverted" : "");
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t k : {16, 60, 128, 1000, 1024, 2048}) {
    for (const std::int64_t taps : {1, 4, 8}) {
      all.push_back({k, taps, 0, SampleFormat::ci8, false});
    }
  }
  // Odd and prime sizes (chirp transform), one and two channels, other taps, oversampled steps,
  // real input.
  for (const std::int64_t k : {1, 2, 3, 7, 37, 101, 105, 256, 512, 4096})
    all.push_back({k, 4, 0, SampleFormat::ci8, true});
  for (const std::int64_t taps : {2, 3, 5, 16})
    all.push_back({128, taps, 0, SampleFormat::ci8, false});
  for (const std::int64_t step : {1, 7, 56, 63, 64, 108})
    all.push_back({128, 4, step, SampleFormat::ci8, step % 2 == 1});
  all.push_back({1024, 8, 896, SampleFormat::ci8, false});
  for (const std::int64_t c : {1, 2, 16, 30, 37, 128, 500, 1024}) {
    all.push_back({c, 8, 0, SampleFormat::i8, c % 4 == 2});
    all.push_back({c, 1, 0, SampleFormat::i8, false});
    all.push_back({c, 4, 2 * c > 3 ? 2 * c - 3 : 0, SampleFormat::f32, true});
  }
  all.push_back({128, 4, 0, SampleFormat::cf32, false});
  all.push_back({1024, 8, 0, SampleFormat::ci16, false});
  return all;
}

Case case_of(const Shape& s, SampleFormat output) {
  Config config;
  config.n_inputs = 2;
  config.n_channels = s.n_channels;
  config.n_taps = s.n_taps;
  config.step_samples = s.step;
  config.layout.format = s.format;
  config.inverted_band = s.inverted;
  config.output = output;
  config.reference_hz = 150e6;
  // 37 spectra: a whole vector, a broken one, and an odd first spectrum.
  return make_case(config, 1001, s.n_channels >= 1000 ? 21 : 37);
}

TEST(Reference, float_spectra_agree_with_the_equation) {
  for (const Shape& s : shapes()) {
    const Case c = case_of(s, SampleFormat::cf32);
    Result want = run(c, "reference");
    for (const auto& each : cpu_names()) {
      Result got = run(c, each);
      const Difference d = compare(got, want);
      // Single precision: 2^-24 per operation, sqrt(P + 2 log2 K) of them in a sum of random signs:
      // below 5e-7; a chirp transform has three transforms of twice the size.
      EXPECT_LT(d.rms, 1e-6) << each << " " << s;
      EXPECT_LT(d.largest, 2e-6 * 6 * d.reference_rms) << each << " " << s;
      EXPECT_EQ(got.valid, want.valid) << each << " " << s;
    }
  }
}

TEST(Reference, codes_agree_to_one_unit_in_rare_ties) {
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4}) {
    for (const bool dither : {true, false}) {
      for (const auto rounding : {Rounding::nearest_even, Rounding::truncate}) {
        Case c = case_of({128, 4, 0, SampleFormat::ci8, false}, format);
        c.config.dither = dither;
        c.config.rounding = rounding;
        c.gains.assign(2 * 128, cf32(format == SampleFormat::ci8 ? 0.9f : 0.07f, 0.03f));
        Result want = run(c, "reference");
        for (const auto& each : cpu_names()) {
          Result got = run(c, each);
          const Difference d = compare(got, want);
          // The float error, 3e-7 of 30 LSB, moves a value across a rounding edge in 2e-5 of the
          // parts at most.
          EXPECT_LE(d.largest, 1) << each;
          EXPECT_LE(d.share, 1e-4) << each;
          for (std::size_t i = 0; i < want.statistics.size(); ++i) {
            EXPECT_EQ(got.statistics[i].n_samples, want.statistics[i].n_samples);
            EXPECT_NEAR(static_cast<double>(got.statistics[i].saturated_low),
                        static_cast<double>(want.statistics[i].saturated_low), 1);
            EXPECT_NEAR(got.statistics[i].sum_of_squares, want.statistics[i].sum_of_squares,
                        2 * 256.0 * std::ceil(1e-4 * 74));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ryle::channelize::test
