// SPDX-License-Identifier: BSD-3-Clause
// T-XE-08, T-FX-11: Van Vleck correction against independent integrals and against noise.
#include "ryle/engine/correlate/van_vleck.hpp"

#include <numbers>

#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

using detail::correlation_of_product;
using detail::hermite_coefficients;
using detail::quantized_power;
using detail::rms_of_power;
using std::numbers::pi;

// The quantiser as a function: voltage in code units -> code (odd: round; even: odd integers).
double quantize(std::int64_t n_levels, double x) {
  const double top = static_cast<double>(n_levels - 1) / 2;
  if (n_levels % 2 == 1) return std::clamp(std::nearbyint(x), -top, top);
  return std::clamp(2 * std::floor(x / 2) + 1, -2 * top, 2 * top);
}

// E[q_1 q_2] of correlated Gaussians by brute force: E[q_1 E[q_2 | x_1]], the inner mean from the
// normal distribution function, the outer by Simpson's rule between the jumps of q_1, where
// everything is smooth (steps below 0.02 of the width of the inner mean: error about 0.02^4 / 180 =
// 1e-9).
double brute_force(std::int64_t n_levels, double s1, double s2, double r) {
  const double rest = std::sqrt(1 - r * r);
  const double height = n_levels % 2 == 1 ? 1 : 2;
  const auto threshold = [&](std::int64_t m) {
    return height * (static_cast<double>(m) - 0.5 * static_cast<double>(n_levels - 2));
  };
  const auto integrand = [&](double x) {
    double mean = 0;
    for (std::int64_t m = 0; m < n_levels - 1; ++m) {
      mean += 0.5 * height * std::erf((r * x - threshold(m) / s2) / (rest * std::sqrt(2.0)));
    }
    return mean * std::exp(-0.5 * x * x) / std::sqrt(2 * pi);
  };
  double sum = 0;
  for (std::int64_t level = 0; level < n_levels; ++level) {
    const double begin = level == 0 ? -9 : std::max(threshold(level - 1) / s1, -9.0);
    const double end = level == n_levels - 1 ? 9 : std::min(threshold(level) / s1, 9.0);
    if (end <= begin) continue;
    const int n = 2 * static_cast<int>(std::ceil((end - begin) / (0.04 * rest)));
    const double step = (end - begin) / n;
    double part = integrand(begin) + integrand(end);
    for (int k = 1; k < n; ++k) part += (k % 2 == 1 ? 4 : 2) * integrand(begin + k * step);
    sum += quantize(n_levels, s1 * 0.5 * (begin + end)) * part * step / 3;
  }
  return sum;
}

TEST(VanVleck, OneBitIsTheSineLaw) {
  const Quantizer q{2, false};
  for (double r = -1; r <= 1; r += 0.01) {
    EXPECT_NEAR(
        correlation_of_product(q, 1, 1, {}, {}, 2 / pi * std::asin(std::clamp(r, -1.0, 1.0))), r,
        1e-9);
  }
  // The series meets the closed form as well: k_n^2 are the coefficients of 2/pi asin.
  std::vector<double> k(128);
  hermite_coefficients(q, 1, k);
  for (const double r : {0.01, 0.3, 0.7, 0.9}) {
    double sum = 0;
    for (std::size_t m = 0; m < k.size(); ++m)
      sum += k[m] * k[m] * std::pow(r, 2.0 * static_cast<double>(m) + 1);
    EXPECT_NEAR(sum, 2 / pi * std::asin(r), 1e-11);
  }
}

// reliability.md 2.1.2, right half: gain and auto at a given rms.
TEST(VanVleck, PublishedGainsAndAutos) {
  struct Row {
    std::int64_t levels;
    double rms, gain, power;
  };
  for (const Row row :
       {Row{15, 1, 1.0000, 1.0833}, Row{15, 2, 0.9992, 1.0201}, Row{15, 2.98, 0.9638, 0.9766},
        Row{15, 4, 0.8476, 0.8696}, Row{15, 6, 0.5734, 0.6194}, Row{255, 16, 1.0000, 1.0003},
        Row{255, 40, 0.9970, 0.9973}, Row{255, 64, 0.9078, 0.9177}}) {
    const Quantizer q{row.levels, false};
    std::vector<double> k(1);
    hermite_coefficients(q, row.rms, k);
    EXPECT_NEAR(k[0] * k[0] / (row.rms * row.rms), row.gain, 6e-5) << row.levels << " " << row.rms;
    EXPECT_NEAR(quantized_power(q, row.rms) / (row.rms * row.rms), row.power, 6e-5)
        << row.levels << " " << row.rms;
  }
  // 15 levels at 2.98: 0.9638 at small r, 0.9644 at 0.5, 0.9663 at 0.9 (correlate.md 8).
  EXPECT_NEAR(brute_force(15, 2.98, 2.98, 0.5) / (2.98 * 2.98 * 0.5), 0.9644, 6e-5);
  EXPECT_NEAR(brute_force(15, 2.98, 2.98, 0.9) / (2.98 * 2.98 * 0.9), 0.9663, 6e-5);
}

TEST(VanVleck, PowerInverts) {
  for (const std::int64_t levels : {3, 4, 7, 15, 16, 31, 255}) {
    const Quantizer q{levels, false};
    const double top = (levels % 2 == 1 ? 0.5 : 1.0) * static_cast<double>(levels - 1);
    for (const double part : {0.1, 0.3, 0.5, 1.0, 2.0}) {
      const double rms = std::max(part * top, 0.4);
      EXPECT_NEAR(rms_of_power(q, quantized_power(q, rms)) / rms, 1, 1e-11) << levels << " " << rms;
    }
    EXPECT_EQ(rms_of_power(q, 0), 0);
    EXPECT_EQ(rms_of_power(q, top * top * 1.1), 0);
  }
}

// T-XE-08: 1, 2, 4, 8 bits, unequal rms, |r| <= 0.95 and beyond.
TEST(VanVleck, InvertsTheBruteForceIntegral) {
  struct Case {
    std::int64_t levels;
    double s1, s2;
  };
  for (const Case c : {Case{2, 1, 1}, Case{3, 0.6, 1.1}, Case{4, 2.0, 2.6}, Case{15, 2.98, 1.7},
                       Case{16, 5.0, 9.0}, Case{255, 60, 30}, Case{255, 0.5, 0.7}}) {
    const Quantizer q{c.levels, false};
    std::vector<double> k1(128), k2(128);
    hermite_coefficients(q, c.s1, k1);
    hermite_coefficients(q, c.s2, k2);
    for (const double r : {-0.95, -0.5, 0.01, 0.3, 0.8, 0.95, 0.99}) {
      if (r > 0.96 && c.levels > 16) continue;
      const double found =
          correlation_of_product(q, c.s1, c.s2, k1, k2, brute_force(c.levels, c.s1, c.s2, r));
      EXPECT_NEAR(found, r, 1e-7) << c.levels << " levels, r = " << r;
    }
  }
}

// T-FX-11: noise with complex correlation through quantiser, correlator and correction. Estimates
// of r from M spectra scatter by (1 - r^2)/sqrt(M) times the quantisation loss: 5 sigma of 2^18
// spectra at r = 0.5 is 7e-3 / eta.
TEST(VanVleck, NoiseThroughTheWholeChain) {
  constexpr std::int64_t kSpectra = 1 << 17;
  struct Case {
    std::int64_t levels;
    double s1, s2, eta;
    bool twos_complement = false;  // a code -8 below the 15
  };
  for (const Case c : {Case{2, 1, 1.3, 0.6366}, Case{4, 2.0, 2.6, 0.86}, Case{15, 2.83, 4.0, 0.97},
                       Case{15, 2.83, 4.0, 0.97, true}, Case{255, 16, 50, 0.99}}) {
    const auto code = [&](double x) {
      return c.twos_complement && x < -7.5 ? -8.0 : quantize(c.levels, x);
    };
    const cf64 rho = std::polar(0.6, 0.7);  // <v_1 conj(v_2)> = 2 s1 s2 rho
    Voltages v(SampleFormat::ci8, 1, kSpectra, 2);
    v.fill([&](std::int64_t, std::int64_t t, std::int64_t p) -> cf64 {
      const auto g = [&](std::uint64_t k) {
        const std::uint64_t key = combine(static_cast<std::uint64_t>(t), k) & ~1ull;
        return cf64{gaussian(key), gaussian(key ^ 1)};
      };
      const cf64 x = p == 0 ? c.s1 * g(1)
                            : c.s2 * (std::conj(rho) * g(1) + std::sqrt(1 - std::norm(rho)) * g(2));
      return {code(x.real()), code(x.imag())};
    });
    Queue queue = Queue::cpu(1);
    auto correlator = make_correlator(queue, config_of(v, "cpu"));
    correlator->execute(queue, v.input());
    Sums sums;
    correlator->finish(queue, sums);
    FinishConfig config;
    config.order = Order::triangle;
    config.van_vleck = true;
    config.quantizer = {c.levels, false, c.twos_complement};
    const Finished done = finish_dump(sums, config, 2);
    const double p1 = done.mean[0].real();
    const double p2 = done.mean[2].real();
    if (c.levels > 2) {  // one bit keeps no power
      EXPECT_NEAR(p1 / (2 * c.s1 * c.s1), 1, 5 * 1.3 / std::sqrt(kSpectra)) << c.levels;
      EXPECT_NEAR(p2 / (2 * c.s2 * c.s2), 1, 5 * 1.3 / std::sqrt(kSpectra)) << c.levels;
    }
    const cf64 found = done.mean[1] / std::sqrt(p1 * p2);
    EXPECT_LE(std::abs(found - rho), 5 / (c.eta * std::sqrt(kSpectra))) << c.levels << " " << found;
  }
}

// Without clipping and above 1.2 LSB nothing but 1/12 per part leaves the autos; with dither 1/6.
TEST(VanVleck, FineQuantisersOnlyLoseTheirNoise) {
  Sums sums;
  sums.integer = {{2 * 256 * 1000, 0}, {1000 * 100, -1000 * 50}, {2 * 300 * 1000, 0}};
  sums.counts = {1000, 1000, 1000};
  FinishConfig config;
  config.order = Order::triangle;
  config.van_vleck = true;
  config.quantizer = {255, false};
  Finished done = finish_dump(sums, config, 2);
  EXPECT_NEAR(done.mean[0].real(), 512 - 1.0 / 6, 1e-9);
  EXPECT_EQ(done.mean[1], (cf64{100, -50}));
  EXPECT_NEAR(done.mean[2].real(), 600 - 1.0 / 6, 1e-9);
  config.quantizer.dithered = true;
  done = finish_dump(sums, config, 2);
  EXPECT_NEAR(done.mean[0].real(), 512 - 1.0 / 3, 1e-9);
  EXPECT_EQ(done.mean[1], (cf64{100, -50}));
}

// A dead input keeps zeros and does not disturb the others.
TEST(VanVleck, DeadInput) {
  std::vector<cf64> triangle = {{20, 0}, {3, 4}, {18, 0}, {0, 0}, {0, 0}, {0, 0}};
  std::vector<cf64> two(triangle.begin(), triangle.begin() + 3);
  const Quantizer q{15, false};
  detail::VanVleck(q, 3).correct(triangle);
  detail::VanVleck(q, 2).correct(two);
  for (int k = 0; k < 3; ++k) EXPECT_LE(std::abs(triangle[k] - two[k]), 1e-12);
  for (int k = 3; k < 6; ++k) EXPECT_EQ(triangle[k], cf64{});
}

// One factor for weak pairs, the series for strong ones: both give the correlation that was there.
TEST(VanVleck, WeakAndStrongPairsAgreeWithTheIntegral) {
  const Quantizer q{15, false};
  const double s1 = 2.4, s2 = 2.9;
  for (const double r : {0.001, 0.05, 0.1, 0.15, 0.2, 0.4, 0.8}) {
    std::vector<cf64> triangle = {2 * quantized_power(q, s1),
                                  2 * brute_force(15, s1, s2, r) * cf64{1, -1},
                                  2 * quantized_power(q, s2)};
    detail::VanVleck(q, 2).correct(triangle);
    EXPECT_NEAR(triangle[1].real() / (2 * s1 * s2), r, 1.1e-5 * r) << r;
    EXPECT_NEAR(triangle[1].imag() / (2 * s1 * s2), -r, 1.1e-5 * r) << r;
  }
}

// One spectrum of a station: every pair of single codes is fully correlated, and its power is that
// of one sample. The band knows the levels; the correction is one factor for all channels.
TEST(VanVleck, FewSpectraTakeTheLevelsOfTheBand) {
  constexpr std::int64_t kChannels = 4096;
  const Quantizer q{15, false};
  const SamplerGain strong = quantized_gain(q, 40.0);
  const SamplerGain weak = quantized_gain(q, 9.0);
  Sums sums;
  for (std::int64_t k = 0; k < kChannels; ++k) {
    const int sign = k % 2 == 0 ? 1 : -1;
    sums.integer.insert(sums.integer.end(), {{40 + 8 * sign, 0}, {6 * sign, -12}, {9, 0}});
    sums.counts.insert(sums.counts.end(), 3, 1);
  }
  sums.n_spectra = 1;
  FinishConfig config;
  config.order = Order::triangle;
  config.van_vleck = true;
  config.quantizer = q;
  const Finished done = finish_dump(sums, config, 2);
  for (const std::size_t k : {0u, 1u, 4095u}) {
    const double sign = k % 2 == 0 ? 1 : -1;
    EXPECT_NEAR(done.mean[3 * k].real(), (40 + 8 * sign) * strong.autos, 1e-9);
    EXPECT_LE(std::abs(done.mean[3 * k + 1] - strong.cross * weak.cross * cf64{6 * sign, -12}),
              1e-9);
    EXPECT_NEAR(done.mean[3 * k + 2].real(), 9 * weak.autos, 1e-9);
  }
}

}  // namespace
}  // namespace ryle::correlate::test
