// SPDX-License-Identifier: BSD-3-Clause
// T-BF-16, 04, 10, 13, 14: every implementation against the double reference.
#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

std::string describe(const Config& c, const std::string& name) {
  return name + " " + std::string(ryle::name(c.format)) + " A=" + std::to_string(c.n_antennas) +
         " P=" + std::to_string(c.n_pols) + " B=" + std::to_string(c.n_beams) +
         " C=" + std::to_string(c.n_channels) + " T=" + std::to_string(c.integration) +
         " n=" + std::to_string(c.max_spectra) + " kind=" + std::to_string(int(c.output)) +
         " out=" + std::to_string(int(c.output_format)) + " order=" + std::to_string(int(c.order));
}

// One float operation is wrong by 2^-24 of itself.
//   sums: i8 weights exact (0); f32 weights 2A terms, 5 sigma of a random walk, or all the same way
//   where the samples are all the same
//   power: conversion, two products, sum, scale: 4 operations of what the beam was squared
//   mean: sequential sums of 64, then of T / 64: at most that many roundings
double relative_tolerance(const Config& c, bool constant) {
  constexpr double kStep = 0x1p-24;
  const bool exact = c.weights == WeightFormat::i8 && c.format != SampleFormat::cf32 &&
                     c.format != SampleFormat::cf16 && c.format != SampleFormat::ci16;
  const double terms = 2.0 * static_cast<double>(c.n_antennas);
  const double sums = exact ? 0 : (constant ? terms : 5 * std::sqrt(terms));
  if (c.output == OutputKind::voltage) return kStep * (sums + 3);
  const auto t = static_cast<double>(c.integration);
  return kStep * (2 * sums + 6 + std::min(t, 64.0) + t / 64);
}

// Floats to the tolerance of the largest, halves to their rounding, codes exactly.
void check(const Config& c, const std::vector<cf32>& weights, const Input& input,
           Requantization requantization = {}, bool constant = false) {
  const Result want = run(c, "reference", weights, input, requantization);
  const auto expected = numbers(c, want);
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::fabs(v));
  double tolerance = relative_tolerance(c, constant) * largest;
  if (c.output_format == OutputFormat::cf16 || c.output_format == OutputFormat::f16)
    tolerance += largest * 0x1p-11;
  const bool codes = c.output_format == OutputFormat::u8 || c.output_format == OutputFormat::u16 ||
                     c.output_format == OutputFormat::ci8 || c.output_format == OutputFormat::ci4;
  if (codes) tolerance = 0;
  // 16-bit codes: a value of 2^16 is wrong by 2^-8 LSB or so, which crosses a tie now and then.
  const bool near_ties = c.output_format == OutputFormat::u16;
  if (near_ties) tolerance = 1;
  for (const auto& name : cpu_names(c)) {
    const std::string what = describe(c, name);
    const Result got = run(c, name, weights, input, requantization, c.n_channels > 1 ? 2 : 1);
    expect_close(numbers(c, got), expected, tolerance, what);
    if (near_ties) {
      const auto now = numbers(c, got);
      std::size_t differ = 0;
      for (std::size_t k = 0; k < now.size(); ++k) differ += now[k] != expected[k];
      EXPECT_LT(differ, now.size() / 200) << what;
    }
    EXPECT_EQ(got.n_used, want.n_used) << what;
    EXPECT_EQ(got.low, want.low) << what;
    EXPECT_EQ(got.high, want.high) << what;
    for (std::size_t k = 0; k < want.weight_power.size(); ++k)
      ASSERT_NEAR(got.weight_power[k], want.weight_power[k], 1e-4 * want.weight_power[k]) << what;
  }
}

struct Shape {
  std::int64_t antennas, beams, integration, channels, spectra;
};

Config config_of(const Shape& s, SampleFormat format, InputOrder order, WeightFormat weights) {
  Config c;
  c.n_antennas = s.antennas;
  c.n_beams = s.beams;
  c.n_channels = s.channels;
  c.max_spectra = s.spectra;
  c.integration = s.integration;
  c.format = format;
  c.order = s.antennas % 2 == 0 ? order : InputOrder::spectra;
  c.weights = weights;
  return c;
}

// Sizes around every edge of tiles, blocks and steps.
TEST(Beams, Sizes) {
  const Shape shapes[] = {{1, 1, 1, 1, 64},     {3, 7, 2, 3, 127},   {8, 8, 8, 1, 64},
                          {17, 16, 32, 1, 70},  {31, 24, 48, 2, 96}, {32, 31, 1, 1, 65},
                          {33, 32, 8, 1, 9},    {64, 5, 1, 2, 8},    {127, 3, 1, 1, 17},
                          {128, 17, 4, 1, 7},   {512, 2, 1, 1, 5},   {32, 100, 2, 1, 4},
                          {2, 3, 1000, 1, 2049}};
  for (const Shape& s : shapes) {
    for (const auto order : {InputOrder::spectra, InputOrder::pairs}) {
      for (const auto weights : {WeightFormat::i8, WeightFormat::f32}) {
        const Config c = config_of(s, SampleFormat::ci4, order, weights);
        Stream stream(c, s.spectra);
        check(c, random_weights(c), stream.all(3));
      }
    }
  }
}

TEST(Beams, InputFormats) {
  const Shape shape{10, 18, 3, 2, 67};
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                            SampleFormat::cf16, SampleFormat::cf32}) {
    for (const auto order : {InputOrder::spectra, InputOrder::pairs}) {
      for (const auto weights : {WeightFormat::i8, WeightFormat::f32}) {
        for (const std::int64_t pols : {1, 2}) {
          Config c = config_of(shape, format, order, weights);
          c.n_pols = pols;
          c.block_spectra = 48;
          Stream stream(c, shape.spectra);
          check(c, random_weights(c), stream.all(-5));
        }
      }
    }
  }
}

TEST(Beams, Extremes) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16}) {
    for (const Fill fill : {Fill::lowest, Fill::highest}) {
      const Config c = config_of({512, 2, 1, 1, 9}, format, InputOrder::spectra, WeightFormat::i8);
      Stream stream(c, 9, fill);
      // Real and imaginary part at full scale: the largest sums an integer kernel can meet.
      check(c, std::vector<cf32>(1024, cf32(1, 1)), stream.all(), {}, true);
      check(c, std::vector<cf32>(1024, cf32(-1, 1)), stream.all(), {}, true);
    }
  }
}

TEST(Beams, OutputFormats) {
  struct Case {
    OutputKind kind;
    OutputFormat format;
    std::int64_t integration;
    Requantization requantization;
  };
  using K = OutputKind;
  using F = OutputFormat;
  const Case cases[] = {{K::voltage, F::cf32, 1, {}},
                        {K::voltage, F::cf16, 1, {}},
                        {K::voltage, F::ci8, 1, {1.6f, 0}},
                        {K::voltage, F::ci4, 1, {0.2f, 0}},
                        {K::power, F::f32, 1, {}},
                        {K::power, F::f16, 1, {}},
                        {K::power, F::u8, 1, {0.11f, 20}},
                        {K::power, F::u8, 8, {0.3f, -60}},
                        {K::power, F::u16, 2, {31.7f, 100}},
                        {K::stokes_i, F::f32, 4, {}},
                        {K::stokes_i, F::u8, 1, {0.12f, 3}},
                        {K::stokes_iquv, F::f32, 1, {}},
                        {K::stokes_iquv, F::f32, 5, {}},
                        {K::stokes_iquv, F::f16, 3, {}},
                        {K::stokes_iquv, F::u8, 2, {0.2f, 128}}};
  for (const Case& k : cases) {
    for (const std::int64_t pols : {1, 2}) {
      if (pols == 1 && (k.kind == K::stokes_i || k.kind == K::stokes_iquv)) continue;
      Config c = config_of({9, 21, k.integration, 3, 133}, SampleFormat::ci4, InputOrder::spectra,
                           WeightFormat::i8);
      c.n_pols = pols;
      c.output = k.kind;
      c.output_format = k.format;
      Stream stream(c, 133);
      check(c, random_weights(c), stream.all(11), k.requantization);
    }
  }
}

// Bytes of powers are cut and counted in one pass, 64 spectra at a time: 133 leave a tile of 5.
TEST(Beams, BytesAreCutAndCounted) {
  Config c =
      config_of({9, 21, 1, 3, 133}, SampleFormat::ci4, InputOrder::spectra, WeightFormat::i8);
  c.output_format = OutputFormat::u8;
  const Stream random(c, 133), largest(c, 133, Fill::highest);
  for (const Requantization r : {Requantization{0.5f, 20}, Requantization{0.3f, -60}}) {
    for (Stream stream : {random, largest}) {
      const auto weights = random_weights(c);
      const Result want = run(c, "reference", weights, stream.all(11), r);
      std::uint64_t cut = 0;
      for (const std::uint32_t n : want.high) cut += n;
      EXPECT_GT(cut, 63u);
      for (const auto& name : cpu_names(c)) {
        const Result got = run(c, name, weights, stream.all(11), r);
        EXPECT_EQ(got.high, want.high) << name;
        EXPECT_EQ(got.low, want.low) << name;
      }
    }
  }
}

// A power too large for a half is the largest half, and counted; so is a Stokes parameter below.
TEST(Beams, HalvesAreCutAndCounted) {
  Config c = config_of({1, 3, 1, 1, 6}, SampleFormat::ci16, InputOrder::spectra, WeightFormat::f32);
  c.n_pols = 2;
  c.output = OutputKind::stokes_iquv;
  c.output_format = OutputFormat::f16;
  Stream stream(c, 6);
  // Stokes I of 65484.5, of 65522 (65520 and more would be infinite), of 80000 ...
  const ci16 parts[6][2] = {{{360, 37}, {0, 0}},  {{362, 0}, {0, 0}},    {{0, 0}, {400, 0}},
                            {{300, 0}, {300, 0}}, {{300, 0}, {-300, 0}}, {{1, 0}, {0, 0}}};
  for (int t = 0; t < 6; ++t) {
    for (int pol = 0; pol < 2; ++pol) std::memcpy(stream.at(0, t, pol), &parts[t][pol], 4);
  }
  auto names = cpu_names(c);
  names.push_back("reference");
  for (const auto& name : names) {
    const Result r = run(c, name, std::vector<cf32>(6, cf32(1)), stream.all());
    const auto got = numbers(c, r);
    const double want[3][6] = {{65472, 65504, 65504, 65504, 65504, 0.5},
                               {65472, 65504, -65504, 0, 0, 0.5},
                               {0, 0, 0, 65504, -65504, 0}};
    for (std::size_t beam = 0; beam < 3; ++beam) {
      for (std::size_t product = 0; product < 3; ++product) {
        for (std::size_t t = 0; t < 6; ++t)
          EXPECT_EQ(got[(beam * 4 + product) * 6 + t], want[product][t])
              << name << " product " << product << " t " << t;
      }
      EXPECT_EQ(r.high[beam * 4], 4u) << name;
      EXPECT_EQ(r.high[beam * 4 + 1], 1u) << name;
      EXPECT_EQ(r.low[beam * 4 + 1], 1u) << name;
      EXPECT_EQ(r.low[beam * 4 + 2] + r.high[beam * 4 + 2], 2u) << name;
    }
  }
}

// T-BF-10: a table of any code; the one that says what the nibbles say anyway; all 256 bytes.
TEST(Beams, TablesOfAll256Codes) {
  std::vector<ci8> same(256), offset_binary(256), swapped(256), any(256);
  for (int byte = 0; byte < 256; ++byte) {
    const auto high = static_cast<std::int8_t>(byte >> 4),
               low = static_cast<std::int8_t>(byte & 15);
    const auto twos = [](int nibble) { return static_cast<std::int8_t>((nibble ^ 8) - 8); };
    same[byte] = {twos(high), twos(low)};
    offset_binary[byte] = {static_cast<std::int8_t>(high - 8), static_cast<std::int8_t>(low - 8)};
    swapped[byte] = {twos(low), twos(high)};
    any[byte] = {static_cast<std::int8_t>(combine(3, byte)),
                 static_cast<std::int8_t>(combine(4, byte))};
  }
  for (const auto& table : {same, offset_binary, swapped, any}) {
    for (const auto order : {InputOrder::spectra, InputOrder::pairs}) {
      for (const std::int64_t pols : {1, 2}) {
        Config c = config_of({4, 4, 1, 1, 256}, SampleFormat::ci4, order, WeightFormat::i8);
        c.table = table;
        c.n_pols = pols;
        c.output = OutputKind::voltage;
        c.output_format = OutputFormat::cf32;
        Stream stream(c, 256);
        for (std::int64_t t = 0; t < 256; ++t) {
          for (std::int64_t i = 0; i < c.n_inputs(); ++i)
            *stream.at(0, t, i) = static_cast<std::uint8_t>(t + 37 * i);
        }
        check(c, random_weights(c), stream.all());
      }
    }
  }
}

// T-BF-04: a signal in one antenna alone is in its own beam only; every other is exactly 0.
TEST(Beams, EveryAntennaHasItsOwnPlace) {
  for (const auto order : {InputOrder::spectra, InputOrder::pairs}) {
    for (const std::int64_t pols : {1, 2}) {
      Config c = config_of({34, 34, 1, 1, 34}, SampleFormat::ci4, order, WeightFormat::i8);
      c.n_pols = pols;
      c.output = OutputKind::voltage;
      c.output_format = OutputFormat::cf32;
      std::vector<cf32> weights(static_cast<std::size_t>(34 * c.n_inputs()), cf32(0));
      Stream stream(c, 34);
      std::fill(stream.memory.begin(), stream.memory.end(), std::uint8_t{0});
      for (std::int64_t a = 0; a < 34; ++a) {
        for (std::int64_t pol = 0; pol < pols; ++pol) {
          weights[static_cast<std::size_t>(a * c.n_inputs() + a * pols + pol)] = cf32(1);
          *stream.at(0, a, a * pols + pol) = pol == 0 ? 0x5e : 0x83;  // 5 - 2i, -8 + 3i
        }
      }
      auto names = cpu_names(c);
      names.push_back("reference");
      for (const auto& name : names) {
        const auto got = numbers(c, run(c, name, weights, stream.all()));
        for (std::int64_t beam = 0; beam < 34; ++beam) {
          for (std::int64_t t = 0; t < 34; ++t) {
            for (std::int64_t pol = 0; pol < pols; ++pol) {
              const auto at = static_cast<std::size_t>(((beam * 34 + t) * pols + pol) * 2);
              const double re = beam != t ? 0 : (pol == 0 ? 5 : -8);
              const double im = beam != t ? 0 : (pol == 0 ? -2 : 3);
              // 127 codes of 1/127: one rounding of the scale
              ASSERT_NEAR(got[at], re, 1e-6) << name << " beam " << beam << " t " << t;
              ASSERT_NEAR(got[at + 1], im, 1e-6) << name << " beam " << beam << " t " << t;
              if (beam != t) {
                ASSERT_EQ(got[at], 0.0);
              }
            }
          }
        }
      }
    }
  }
}

// T-BF-13: Stokes of fully polarized inputs, sign of V included.
TEST(Beams, StokesOfPureStates) {
  struct State {
    std::uint8_t x, y;
    double i, q, u, v;
  };
  // Int4 re, im. |X|^2 and |Y|^2 of 4: XY = X conj Y; U = Re, V = Im.
  const State states[] = {{0x20, 0x00, 2, 2, 0, 0},  {0x00, 0x20, 2, -2, 0, 0},
                          {0x20, 0x20, 4, 0, 4, 0},  {0x20, 0xe0, 4, 0, -4, 0},
                          {0x20, 0x02, 4, 0, 0, -4}, {0x20, 0x0e, 4, 0, 0, 4},
                          {0x02, 0x20, 4, 0, 0, 4},  {0x0e, 0x20, 4, 0, 0, -4}};
  Config c = config_of({1, 1, 1, 1, 8}, SampleFormat::ci4, InputOrder::spectra, WeightFormat::f32);
  c.n_pols = 2;
  c.output = OutputKind::stokes_iquv;
  Stream stream(c, 8);
  for (int t = 0; t < 8; ++t) {
    *stream.at(0, t, 0) = states[t].x;
    *stream.at(0, t, 1) = states[t].y;
  }
  auto names = cpu_names(c);
  names.push_back("reference");
  for (const auto& name : names) {
    const auto got = numbers(c, run(c, name, {cf32(1), cf32(1)}, stream.all()));
    for (std::size_t t = 0; t < 8; ++t) {
      EXPECT_EQ(got[t], states[t].i) << name << " " << t;
      EXPECT_EQ(got[8 + t], states[t].q) << name << " " << t;
      EXPECT_EQ(got[16 + t], states[t].u) << name << " " << t;
      EXPECT_EQ(got[24 + t], states[t].v) << name << " " << t;
    }
  }
}

// T-BF-14: incoherent beams of sub-arrays, integers exact.
TEST(Beams, IncoherentIsTheSumOfPowers) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                            SampleFormat::cf16, SampleFormat::cf32}) {
    for (const std::int64_t pols : {1, 2}) {
      for (const auto order : {InputOrder::spectra, InputOrder::pairs}) {
        Config c = config_of({12, 3, 2, 2, 70}, format, order, WeightFormat::i8);
        c.n_pols = pols;
        c.incoherent = {std::vector<std::uint8_t>(12, 1), {1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}};
        Stream stream(c, 70);
        check(c, random_weights(c), stream.all());
        if (pols == 2) c.output = OutputKind::stokes_i;
        check(c, random_weights(c), stream.all());
      }
    }
  }
}

// T-BF-20: gulps, threads and a later start change no bit.
TEST(Beams, SameBitsForAnySplitAndThreads) {
  struct Case {
    OutputKind kind;
    OutputFormat format;
    std::int64_t integration, pols;
    WeightFormat weights;
  };
  const Case cases[] = {{OutputKind::power, OutputFormat::f32, 100, 1, WeightFormat::f32},
                        {OutputKind::power, OutputFormat::u8, 1, 1, WeightFormat::i8},
                        {OutputKind::stokes_iquv, OutputFormat::f32, 7, 2, WeightFormat::i8},
                        {OutputKind::voltage, OutputFormat::ci8, 1, 2, WeightFormat::f32}};
  for (const Case& k : cases) {
    Config c = config_of({6, 19, k.integration, 3, 384}, SampleFormat::ci8, InputOrder::spectra,
                         k.weights);
    c.n_pols = k.pols;
    c.output = k.kind;
    c.output_format = k.format;
    c.dither = k.kind == OutputKind::voltage;
    Stream stream(c, 384);
    const auto weights = random_weights(c);
    constexpr Tick kFirst = 1'000'000'000'130;
    for (const auto& name : cpu_names(c)) {
      const Requantization requantization{0.02f, 1};
      const auto want = numbers(c, run(c, name, weights, stream.all(kFirst), requantization));
      EXPECT_EQ(numbers(c, run(c, name, weights, stream.all(kFirst), requantization, 2)), want);
      const std::int64_t all = c.n_windows(kFirst, 384);
      for (const std::int64_t gulp : {1, 37, 128}) {
        Queue queue = Queue::cpu(2);
        Config part = c;
        part.implementation = name;
        auto beamformer = make_beamformer(queue, part);
        beamformer->set_weights(queue, view_of(c, weights));
        set_requantization(*beamformer, queue, requantization);
        Result r;
        Output output = output_into(c, r, all);
        for (std::int64_t t = 0; t < 384; t += gulp) {
          const Input input = stream.part(t, std::min<std::int64_t>(384, t + gulp), kFirst);
          const std::int64_t n = beamformer->execute(queue, input, output);
          output.values = static_cast<std::byte*>(output.values) + n * c.bytes_per_value();
        }
        EXPECT_EQ(numbers(c, r), want) << describe(c, name) << " gulp " << gulp;
      }
    }
  }
}

// Missing ticks: a window goes on across a gap inside it; one that never ends is dropped.
TEST(Beams, GapsInTheTicks) {
  Config c =
      config_of({2, 1, 64, 1, 64}, SampleFormat::ci4, InputOrder::spectra, WeightFormat::f32);
  Stream stream(c, 64);
  const std::vector<cf32> weights{cf32(1), cf32(1)};
  auto names = cpu_names(c);
  names.push_back("reference");
  for (const auto& name : names) {
    Config named = c;
    named.implementation = name;
    Queue queue = Queue::cpu(1);
    auto beamformer = make_beamformer(queue, named);
    beamformer->set_weights(queue, view_of(c, weights));
    const auto power = [&](std::int64_t begin, std::int64_t end) {
      Config single = named;
      single.integration = 1;
      const auto p = numbers(single, run(single, name == "reference" ? name : name, weights,
                                         stream.part(begin, end, 0)));
      double sum = 0;
      for (const double v : p) sum += v;
      return sum;
    };
    float value = -1;
    Output output = dense_output(c, &value, 1);
    EXPECT_EQ(beamformer->execute(queue, stream.part(0, 10, 0), output), 0);
    EXPECT_EQ(beamformer->execute(queue, stream.part(20, 64, 0), output), 1);
    EXPECT_NEAR(value, (power(0, 10) + power(20, 64)) / 54, 1e-4) << name;
    EXPECT_EQ(beamformer->execute(queue, stream.part(0, 10, 64), output), 0);
    EXPECT_EQ(beamformer->execute(queue, stream.part(20, 64, 640), output), 1);
    EXPECT_NEAR(value, power(20, 64) / 44, 1e-4) << name;
    EXPECT_EQ(beamformer->execute(queue, stream.part(0, 10, 1280), output), 0);
    beamformer->reset();
    EXPECT_EQ(beamformer->execute(queue, stream.part(10, 64, 1280), output), 1);
    EXPECT_NEAR(value, power(10, 64) / 54, 1e-4) << name;
  }
}

}  // namespace
}  // namespace ryle::beamform::test
