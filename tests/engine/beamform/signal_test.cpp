// SPDX-License-Identifier: BSD-3-Clause
// T-BF-02, 12, 17, 21: what a beam is for, and what its codes cost.
#include <numbers>

#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

Config array(std::int64_t antennas, std::int64_t beams, std::int64_t spectra) {
  Config c;
  c.n_antennas = antennas;
  c.n_beams = beams;
  c.n_channels = 1;
  c.max_spectra = spectra;
  return c;
}

double mean(const std::vector<double>& x, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t k = begin; k < end; ++k) sum += x[k];
  return sum / static_cast<double>(end - begin);
}
double deviation(const std::vector<double>& x, std::size_t begin, std::size_t end) {
  const double m = mean(x, begin, end);
  double sum = 0;
  for (std::size_t k = begin; k < end; ++k) sum += (x[k] - m) * (x[k] - m);
  return std::sqrt(sum / static_cast<double>(end - begin));
}

// Noise of sigma 2 LSB per part and antenna plus a source of constant modulus and known phases.
void fill(Stream& stream, const std::vector<cf64>& response, double source_sigma) {
  for (std::int64_t t = 0; t < stream.n_spectra; ++t) {
    const auto key = static_cast<std::uint64_t>(2 * t + 4);
    const cf64 source =
        std::polar(std::sqrt(2.0) * source_sigma, 2 * std::numbers::pi * uniform(key));
    for (std::int64_t a = 0; a < stream.config.n_antennas; ++a) {
      const std::uint64_t k = combine(91, static_cast<std::uint64_t>(a), key);
      const cf64 v = source * response[static_cast<std::size_t>(a)] +
                     cf64(2 * gaussian(k), 2 * gaussian(k ^ 1u));
      const auto code = [](double x) {
        return static_cast<int>(std::clamp(std::rint(x), -8.0, 7.0)) & 15;
      };
      *stream.at(0, t, a) = static_cast<std::uint8_t>(code(v.real()) << 4 | code(v.imag()));
    }
  }
}

// T-BF-02: source power over noise power grows N-fold in a coherent beam. In the incoherent sum it
// does not grow, but its fluctuation falls as sqrt(N).
TEST(Signal, CoherentGainIsNIncoherentSqrtN) {
  constexpr std::int64_t kN = 32, kSpectra = 60'000;
  Config c = array(kN, 2, kSpectra);
  c.incoherent = {std::vector<std::uint8_t>(kN, 1)};
  std::vector<cf64> response(kN);
  std::vector<cf32> weights(2 * kN, cf32(0));
  for (std::size_t a = 0; a < kN; ++a) {
    response[a] = std::polar(1.0, 1.7 * static_cast<double>(a * a));
    weights[a] = cf32(std::conj(response[a]));
  }
  weights[kN] = cf32(1);            // second beam: one antenna
  constexpr double kSource = 1.06;  // rms per part; noise 2, and 1/12 LSB^2 of rounding
  const double each = kSource * kSource / (4 + 1.0 / 12);
  Stream off(c, kSpectra), on(c, kSpectra);
  fill(off, response, 0);
  fill(on, response, kSource);
  for (const auto& name : cpu_names(c)) {
    const auto quiet = numbers(c, run(c, name, weights, off.all()));
    const auto loud = numbers(c, run(c, name, weights, on.all()));
    const auto ratio = [&](std::size_t row) {
      const double n = mean(quiet, row * kSpectra, (row + 1) * kSpectra);
      return mean(loud, row * kSpectra, (row + 1) * kSpectra) / n - 1;
    };
    // The source times the noise of the beam is what remains: 2 sqrt(N^2 p N n / 2) per spectrum of
    // N^2 p, 0.19 % of 60 000 spectra; 0.05 dB is 6 sigma.
    EXPECT_NEAR(10 * std::log10(ratio(0) / each), 10 * std::log10(kN), 0.05) << name;
    EXPECT_NEAR(10 * std::log10(ratio(2) / each), 0, 0.05) << name;
    const auto relative = [&](std::size_t row) {
      return deviation(quiet, row * kSpectra, (row + 1) * kSpectra) /
             mean(quiet, row * kSpectra, (row + 1) * kSpectra);
    };
    EXPECT_NEAR(10 * std::log10(relative(1) / relative(2)), 5 * std::log10(kN), 0.1) << name;
  }
}

// T-BF-17: S/N of a weak source (on - off over the deviation) after 8-bit weights and bytes out,
// against the double reference: loss at most 0.05 % and 0.1 %. Averaging amplitudes would lose 4 %.
TEST(Signal, QuantizationKeepsTheSignalToNoise) {
  constexpr std::int64_t kN = 16, kSpectra = 20'000;
  Config exact = array(kN, 1, kSpectra);
  exact.weights = WeightFormat::f32;
  std::vector<cf64> response(kN);
  std::vector<cf32> weights(kN);
  for (std::size_t a = 0; a < kN; ++a) {
    response[a] = std::polar(1.0, 0.37 + 2.1 * static_cast<double>(a));
    weights[a] = cf32(std::conj(response[a]));
  }
  Stream off(exact, kSpectra), on(exact, kSpectra);
  fill(off, response, 0);
  fill(on, response, 0.15);
  const auto signal_to_noise = [&](const Config& c, const std::string& name, Requantization r) {
    const auto quiet = numbers(c, run(c, name, weights, off.all(), r));
    const auto loud = numbers(c, run(c, name, weights, on.all(), r));
    return (mean(loud, 0, loud.size()) - mean(quiet, 0, quiet.size())) /
           deviation(quiet, 0, quiet.size());
  };
  const double want = signal_to_noise(exact, "reference", {});
  Config i8 = exact;
  i8.weights = WeightFormat::i8;
  Config bytes = i8;
  bytes.output_format = OutputFormat::u8;
  // Powers of mean and deviation 16 x 8.2 LSB^2 at 8 codes: rounding adds 1/12 code^2 to 64, loss
  // 1/(2 12 64) = 0.065 %. Estimates: 5 sigma of the covariance of rounding and value, and of the
  // mean of the rounding.
  const Requantization codes{8.0f / 131, 32};
  const double count = kSpectra;
  const double deviation_error = 5 * std::sqrt(1.0 / 12) / 8 / std::sqrt(count);
  const double mean_error = 5 * std::sqrt(1.0 / 12 / count);
  const auto exact_power = numbers(i8, run(i8, "reference", weights, off.all()));
  for (const auto& name : cpu_names(i8)) {
    EXPECT_GT(signal_to_noise(i8, name, {}), want * (1 - 5e-4)) << name;
    const auto power = numbers(bytes, run(bytes, name, weights, off.all(), codes));
    EXPECT_NEAR(
        deviation(power, 0, power.size()) / codes.scale / deviation(exact_power, 0, power.size()),
        1 + 1.0 / (2 * 12 * 64), deviation_error)
        << name;
    EXPECT_NEAR(mean(power, 0, power.size()),
                mean(exact_power, 0, power.size()) * codes.scale + codes.offset, mean_error)
        << name;
  }
}

// T-BF-12, 21: every code is reached, both ends are counted exactly.
TEST(Signal, EveryCodeAndBothEndsCounted) {
  Config c = array(1, 1, 256);
  c.format = SampleFormat::ci8;
  c.weights = WeightFormat::f32;
  c.output = OutputKind::voltage;
  c.output_format = OutputFormat::ci8;
  Stream stream(c, 256);
  for (int t = 0; t < 256; ++t) {
    const ci8 v{static_cast<std::int8_t>(t - 128), static_cast<std::int8_t>(127 - t)};
    std::memcpy(stream.at(0, t, 0), &v, 2);
  }
  for (const auto& name : cpu_names(c)) {
    const Result same = run(c, name, {cf32(1)}, stream.all());
    const auto codes = numbers(c, same);
    for (int t = 0; t < 256; ++t) {
      EXPECT_EQ(codes[2 * t], std::max(t - 128, -127)) << name;
      EXPECT_EQ(codes[2 * t + 1], std::max(127 - t, -127)) << name;
    }
    EXPECT_EQ(same.low[0], 2u) << name;  // -128, once in each part
    EXPECT_EQ(same.high[0], 0u) << name;
    const Result twice = run(c, name, {cf32(1)}, stream.all(), {2, 0});
    EXPECT_EQ(twice.low[0], 2u * 65) << name;   // 2 x <= -128: -64 and below
    EXPECT_EQ(twice.high[0], 2u * 64) << name;  // 2 x >= 128: 64 and above
    // Ties go to even: 0.5 -> 0, 1.5 -> 2, -2.5 -> -2.
    const auto half = numbers(c, run(c, name, {cf32(1)}, stream.all(), {0.5f, 0}));
    EXPECT_EQ(half[2 * 129], 0);
    EXPECT_EQ(half[2 * 131], 2);
    EXPECT_EQ(half[2 * 123], -2);
    Config nibbles = c;
    nibbles.output_format = OutputFormat::ci4;
    const Result four = run(nibbles, name, {cf32(1)}, stream.all());
    EXPECT_EQ(four.low[0], 2u * 121) << name;   // -128 .. -8
    EXPECT_EQ(four.high[0], 2u * 120) << name;  // 8 .. 127
  }
}

TEST(Signal, BytesReachEveryCodeAndCountBothEnds) {
  Config c = array(1, 17, 600);
  c.format = SampleFormat::ci16;
  c.weights = WeightFormat::f32;
  c.output_format = OutputFormat::u8;
  Stream stream(c, 600);
  // |v|^2 = 4 t^2: with scale 1/16, offset -20, codes t^2 / 4 - 20.
  for (int t = 0; t < 600; ++t) {
    const ci16 v{static_cast<std::int16_t>(2 * t), 0};
    std::memcpy(stream.at(0, t, 0), &v, 4);
  }
  const std::vector<cf32> weights(17, cf32(1));
  std::uint32_t low = 0, high = 0;
  for (int t = 0; t < 600; ++t) {
    const double code = std::rint(t * t / 4.0 - 20);
    low += code < 0;
    high += code > 255;
  }
  auto names = cpu_names(c);
  names.push_back("reference");
  for (const auto& name : names) {
    const Result r = run(c, name, weights, stream.all(), {1.0f / 16, -20});
    const auto codes = numbers(c, r);
    for (std::size_t beam = 0; beam < 17; ++beam) {
      for (int t = 0; t < 600; ++t) {
        ASSERT_EQ(codes[beam * 600 + static_cast<std::size_t>(t)],
                  std::clamp(std::rint(t * t / 4.0 - 20), 0.0, 255.0))
            << name << " beam " << beam << " t " << t;
      }
      EXPECT_EQ(r.low[beam], low) << name;
      EXPECT_EQ(r.high[beam], high) << name;
    }
  }
}

// Dither: the mean of the codes is the value, whatever its fraction; keyed by tick, row, channel.
TEST(Signal, DitherIsUnbiased) {
  constexpr std::int64_t kSpectra = 40'000;
  Config c = array(1, 2, kSpectra);
  c.weights = WeightFormat::f32;
  c.output = OutputKind::voltage;
  c.output_format = OutputFormat::ci8;
  c.dither = true;
  Stream stream(c, kSpectra);
  std::fill(stream.memory.begin(), stream.memory.end(), std::uint8_t{0x3d});  // 3 - 3i
  for (const auto& name : cpu_names(c)) {
    const auto codes = numbers(c, run(c, name, {cf32(1), cf32(1)}, stream.all(), {0.1f, 0}));
    double re = 0, im = 0;
    std::size_t differ = 0;
    for (std::size_t k = 0; k < kSpectra; ++k) {
      re += codes[2 * k];
      im += codes[2 * k + 1];
      differ += codes[2 * k] != codes[2 * (k + kSpectra)];
    }
    // Total error of triangular dither: variance 1/4 LSB^2 whatever the value.
    const double five_sigma = 5 * 0.5 / std::sqrt(static_cast<double>(kSpectra));
    EXPECT_NEAR(re / kSpectra, 0.3, five_sigma) << name;
    EXPECT_NEAR(im / kSpectra, -0.3, five_sigma) << name;
    EXPECT_GT(differ, kSpectra / 10u) << name;
  }
}

}  // namespace
}  // namespace ryle::beamform::test
