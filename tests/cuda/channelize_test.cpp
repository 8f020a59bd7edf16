// SPDX-License-Identifier: BSD-3-Clause
// The CUDA channelizer against the double-precision reference: validity and counts exact, floats
// within 2e-6 of the rms, codes at most one apart in at most 1e-4 of the samples (T-FE-02: fp32
// moves a value by about 1e-5 LSB, so about that part of the values crosses a rounding threshold).
#include <cmath>
#include <cstdint>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "tests/cuda/cuda_test.hpp"

namespace ryle::channelize {
namespace {

using test::CudaTest;

struct Case {
  std::string what;
  Config config;
  std::int64_t n_spectra = 70;
  Tick first_tick = 0;
  std::int64_t first_spectrum = 0;
  std::vector<AbsentSpan> absent = {};
  bool delays = false;
  float gain = 0.2f;
  bool interleaved = false;  // samples [tick][input] instead of [input][tick]
};

struct Result {
  std::vector<std::byte> bytes;
  BlockView view;
  std::vector<std::uint64_t> valid;
  std::vector<ChannelStatistics> statistics;
};

constexpr std::int64_t kMargin =
    96;  // samples around the windows, so that delays stay inside the gulp

std::int64_t samples_needed(const Case& c) {
  return (c.n_spectra - 1) * step_length(c.config) + filter_length(c.config) + 2 * kMargin;
}

void set_layout(Case& c) {
  auto& layout = c.config.layout;
  const std::int64_t bits = bits_per_sample(layout.format);
  layout.sample_stride_bits = c.interleaved ? bits * c.config.n_inputs : bits;
  layout.input_stride_bits = c.interleaved ? bits : (samples_needed(c) * bits + 15) / 16 * 16;
}

std::vector<std::byte> make_samples(const Case& c) {
  const auto& layout = c.config.layout;
  const std::int64_t bits =
      c.config.n_inputs * (samples_needed(c) * bits_per_sample(layout.format) + 15);
  std::vector<std::byte> bytes(static_cast<std::size_t>(bits / 8 + 64));
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(mix64(k));
  if (layout.format == SampleFormat::f32 || layout.format == SampleFormat::cf32) {
    for (std::size_t k = 0; k + 4 <= bytes.size(); k += 4) {
      const auto value = static_cast<float>(30 * gaussian(k));
      std::memcpy(bytes.data() + k, &value, 4);
    }
  }
  if (layout.format == SampleFormat::cf16) {  // halves between 2^-3 and 2^5, any sign
    for (std::size_t k = 0; k + 2 <= bytes.size(); k += 2) {
      const auto half =
          static_cast<std::uint16_t>((mix64(k) & 0x83ffu) | ((12 + mix64(k + 1) % 8) << 10));
      std::memcpy(bytes.data() + k, &half, 2);
    }
  }
  return bytes;
}

std::vector<DelayPolynomial> make_delays(const Case& c) {
  std::vector<DelayPolynomial> delays(static_cast<std::size_t>(c.config.n_inputs));
  for (std::int64_t p = 0; c.delays && p < c.config.n_inputs; ++p) {
    const double sample_s = 1 / c.config.sample_rate_hz;
    auto& d = delays[static_cast<std::size_t>(p)];
    d.reference_tick = 1000 * p;
    d.delay_s[0] = (7.3 * static_cast<double>(p) - 11.4) * sample_s;
    d.delay_s[1] = 1.1e-3 * static_cast<double>(p % 3);  // D steps every few hundred samples
    d.delay_s[2] = 1e-6;
    d.phase_turns[0] = 0.37 * static_cast<double>(p);
    d.phase_turns[1] = 1234.5;
  }
  return delays;
}

std::vector<cf32> make_gains(const Case& c) {
  std::vector<cf32> gains(static_cast<std::size_t>(c.config.n_inputs * c.config.n_channels));
  for (std::size_t k = 0; k < gains.size(); ++k)
    gains[k] = std::polar(c.gain, static_cast<float>(k % 7));
  return gains;
}

/// Blocks with gaps, all garbage; the valid rows one word longer than needed.
Result empty_result(const Case& c) {
  const auto format = c.config.output;
  const std::int64_t cell = bytes_per_cell(format) + 16;
  const std::int64_t blocks = n_blocks(format, c.n_spectra);
  const std::int64_t row = cell * c.config.n_inputs + 32;
  const std::int64_t channel = row * blocks + 64;
  Result r{test::garbage(channel * c.config.n_channels), {}, {}, {}};
  r.view = {
      r.bytes.data(), format, c.config.n_channels, blocks, c.config.n_inputs, channel, row, cell};
  r.valid.assign(static_cast<std::size_t>(c.config.n_inputs * (words_for_bits(c.n_spectra) + 1)),
                 0xCDCDCDCDCDCDCDCDu);
  r.statistics.resize(static_cast<std::size_t>(c.config.n_channels * c.config.n_inputs));
  return r;
}

class CudaChannelize : public CudaTest {
 protected:
  std::int64_t compared_ = 0;
  std::int64_t different_ = 0;

  /// One execute(), or several of `step` spectra each (whole blocks).
  void run(Queue& on, Channelizer& channelizer, const Case& c, const void* samples, Result& r,
           std::byte* blocks, std::int64_t step) {
    const auto delays = make_delays(c);
    auto gains = make_gains(c);
    channelizer.set_delays(delays);
    channelizer.set_gains(
        View<const cf32, 2>(gains.data(), {c.config.n_inputs, c.config.n_channels}));
    const std::int64_t words = words_for_bits(c.n_spectra) + 1;
    for (std::int64_t first = 0; first < c.n_spectra; first += step) {
      const std::int64_t n = std::min(step, c.n_spectra - first);
      Output output;
      output.blocks = r.view;
      output.blocks.data = blocks;
      const std::int64_t block = first / spectra_per_block(c.config.output);
      output.blocks.data += block * r.view.block_stride_bytes;
      output.blocks.n_blocks -= block;
      output.valid = r.valid.data() + first / 64;
      output.valid_words = words;
      output.statistics = r.statistics.data();
      const Input input{samples, c.first_tick, samples_needed(c), c.absent};
      if (step >= c.n_spectra) {
        channelizer.execute(on, input, c.first_spectrum, n, output);
        continue;
      }
      // valid rows are cleared to their whole length by each call: give each its own.
      std::vector<std::uint64_t> own(
          static_cast<std::size_t>(c.config.n_inputs * words_for_bits(n)));
      output.valid = own.data();
      output.valid_words = words_for_bits(n);
      channelizer.execute(on, input, c.first_spectrum + first, n, output);
    }
    on.synchronize();
  }

  Result reference(const Case& c) {
    Result r = empty_result(c);
    auto host = Queue::cpu(1);
    Config config = c.config;
    config.implementation = "reference";
    config.max_spectra = c.n_spectra;
    const auto samples = make_samples(c);
    run(host, *make_channelizer(host, config), c, samples.data(), r, r.bytes.data(), c.n_spectra);
    return r;
  }

  static constexpr std::int64_t kAtOnce = std::int64_t{1} << 40;

  Result cuda(const Case& c, std::int64_t step = kAtOnce, const std::string& path = "shared") {
    Result r = empty_result(c);
    Config config = c.config;
    config.implementation = "cuda:" + path;
    config.max_spectra = c.n_spectra;
    const auto samples = upload(make_samples(c));
    const auto blocks = upload(r.bytes);
    auto channelizer = make_channelizer(queue(), config);
    EXPECT_EQ(channelizer->implementation(), "channelize/cuda/" + path);
    run(queue(), *channelizer, c, samples.data(), r, blocks.data(), step);
    r.bytes = download(blocks);
    r.view.data = r.bytes.data();
    return r;
  }

  void expect_sentinels(const Result& r, const std::string& what) {
    const std::int64_t used = bytes_per_cell(r.view.format);
    for (std::int64_t c = 0; c < r.view.n_channels; ++c) {
      for (std::int64_t b = 0; b < r.view.n_blocks; ++b) {
        for (std::int64_t p = 0; p < r.view.n_inputs; ++p) {
          for (std::int64_t k = 0; k < 16; ++k)
            ASSERT_EQ(r.view.cell(c, b, p)[used + k], std::byte{0xCD}) << what;
        }
      }
    }
  }

  void compare(const Case& c, const Result& found, const Result& wanted) {
    ASSERT_EQ(found.valid, wanted.valid) << c.what;
    expect_sentinels(found, c.what);
    const bool codes = c.config.output == SampleFormat::ci8 || c.config.output == SampleFormat::ci4;
    const std::int64_t all = found.view.n_blocks * spectra_per_block(c.config.output);
    double power = 0, error = 0, worst = 0;
    for (std::int64_t channel = 0; channel < c.config.n_channels; ++channel) {
      for (std::int64_t p = 0; p < c.config.n_inputs; ++p) {
        double squares = 0;
        for (std::int64_t t = 0; t < all; ++t) {
          const cf64 a = get_sample(found.view, channel, t, p);
          const cf64 b = get_sample(wanted.view, channel, t, p);
          const bool present =
              t < c.n_spectra &&
              test_bit(wanted.valid.data() + p * (words_for_bits(c.n_spectra) + 1), t);
          if (!present) {
            ASSERT_EQ(a, cf64(0)) << c.what << " channel " << channel << " spectrum " << t
                                  << " input " << p;
          }
          squares += std::norm(a);
          power += std::norm(b);
          error += std::norm(a - b);
          worst = std::max({worst, std::abs(a.real() - b.real()), std::abs(a.imag() - b.imag())});
          compared_ += codes ? 2 : 0;
          different_ += codes ? (a.real() != b.real()) + (a.imag() != b.imag()) : 0;
        }
        const std::size_t at = static_cast<std::size_t>(channel * c.config.n_inputs + p);
        ASSERT_EQ(found.statistics[at].n_samples, wanted.statistics[at].n_samples) << c.what;
        if (codes) {
          ASSERT_EQ(found.statistics[at].sum_of_squares, squares) << c.what;
        } else {
          ASSERT_NEAR(found.statistics[at].sum_of_squares, squares, 1e-6 * squares) << c.what;
        }
        ASSERT_NEAR(static_cast<double>(found.statistics[at].saturated_low),
                    static_cast<double>(wanted.statistics[at].saturated_low), 1)
            << c.what;
        ASSERT_NEAR(static_cast<double>(found.statistics[at].saturated_high),
                    static_cast<double>(wanted.statistics[at].saturated_high), 1)
            << c.what;
      }
    }
    ASSERT_GT(power, 0) << c.what;
    if (codes) {
      ASSERT_LE(worst, 1) << c.what;
    } else {
      // Half-precision output rounds at 2^-11 of the value, where fp32 errors may flip a last bit.
      ASSERT_LE(std::sqrt(error / power), c.config.output == SampleFormat::cf16 ? 2e-5 : 2e-6)
          << c.what;
    }
  }

  void check(Case c, const std::string& path = "shared") {
    set_layout(c);
    compare(c, cuda(c, kAtOnce, path), reference(c));
  }
  void expect_rare_differences() {
    EXPECT_LE(static_cast<double>(different_), 3 + 1e-4 * static_cast<double>(compared_))
        << different_ << " of " << compared_ << " codes differ";
  }
};

Config base(std::int64_t n_channels, SampleFormat input, SampleFormat output) {
  Config c;
  c.n_inputs = 3;
  c.n_channels = n_channels;
  c.n_taps = 4;
  c.layout.format = input;
  c.sample_rate_hz = 1.28e6;
  c.reference_hz = 150e6;
  c.output = output;
  c.seed = 77;
  return c;
}

TEST_F(CudaChannelize, EverySizeInFloat) {
  for (const std::int64_t k :
       {1, 2, 3, 4, 5, 7, 8, 11, 16, 26, 60, 64, 105, 128, 1000, 1024, 2048, 4096, 6400}) {
    Case c{.what = "complex " + std::to_string(k),
           .config = base(k, SampleFormat::ci8, SampleFormat::cf32)};
    c.n_spectra = k > 1024 ? 5 : 37;
    check(c);
    c.what = "real " + std::to_string(k);
    c.config.layout.format = SampleFormat::i8;
    check(c);
  }
}

TEST_F(CudaChannelize, TransformsBeyondSharedMemory) {
  for (const std::int64_t k : {16384, 30000, 32768}) {  // an odd and an even number of stages
    Case c{.what = "complex " + std::to_string(k),
           .config = base(k, SampleFormat::ci8, SampleFormat::cf32)};
    c.n_spectra = 3;
    c.config.n_inputs = 2;
    check(c);
    c.what = "real " + std::to_string(k);
    c.config.layout.format = SampleFormat::i16;
    check(c);
  }
}

TEST_F(CudaChannelize, EveryInputFormatToEveryOutput) {
  struct Input {
    SampleFormat format;
    Encoding encoding;
    bool msb_first;
    bool imag_first;
  };
  using enum SampleFormat;
  using enum Encoding;
  const Input inputs[] = {{i1, levels, false, false},
                          {i1, twos_complement, true, false},
                          {i2, levels, true, false},
                          {i2, offset_binary, false, false},
                          {i4, twos_complement, false, false},
                          {i8, offset_binary, false, false},
                          {i16, twos_complement, false, false},
                          {f32, twos_complement, false, false},
                          {ci1, levels, true, true},
                          {ci2, levels, false, false},
                          {ci4, twos_complement, false, false},
                          {ci4, offset_binary, false, true},
                          {ci5, twos_complement, false, false},
                          {ci5, offset_binary, false, false},
                          {ci8, twos_complement, false, false},
                          {ci8, offset_binary, false, false},
                          {ci16, twos_complement, false, false},
                          {cf16, twos_complement, false, false},
                          {cf32, twos_complement, false, false}};
  for (const auto& input : inputs) {
    for (const auto output : {ci8, ci4, cf16, cf32}) {
      Case c{.what = std::string(name(input.format)) + " to " + std::string(name(output)),
             .config = base(24, input.format, output)};
      c.config.layout.encoding = input.encoding;
      c.config.layout.msb_first = input.msb_first;
      c.config.layout.imag_first = input.imag_first;
      c.interleaved = input.msb_first != input.imag_first;
      c.n_spectra = 130;
      const bool wide = input.format == i16 || input.format == ci16;
      c.gain = (output == ci4 ? 2.5f : 14.0f) / (wide                                 ? 19000.0f
                                                 : bits_per_sample(input.format) >= 8 ? 30.0f
                                                                                      : 3.0f);
      check(c);
    }
  }
  expect_rare_differences();
}

TEST_F(CudaChannelize, DelaysBandsStepsAndTaps) {
  for (const bool inverted : {false, true}) {
    for (const bool real : {false, true}) {
      for (const std::int64_t channels : {64, 75}) {
        Case c{.what = std::string(inverted ? "inverted " : "") + (real ? "real " : "complex ") +
                       std::to_string(channels),
               .config =
                   base(channels, real ? SampleFormat::i8 : SampleFormat::ci8, SampleFormat::cf32)};
        c.config.inverted_band = inverted;
        c.delays = true;
        c.first_tick = 640'000;
        c.first_spectrum = (c.first_tick + kMargin / 2) / transform_length(c.config) + 1;
        check(c);
        c.what += " oversampled";
        c.config.step_samples = transform_length(c.config) * 7 / 8;
        c.first_spectrum = (c.first_tick + kMargin / 2) / step_length(c.config) + 1;
        c.config.output = SampleFormat::ci8;
        check(c);
        c.what += " 16 taps";
        c.config.n_taps = 16;
        check(c);
        c.what += " plain transform";
        c.config.n_taps = 1;
        c.config.window = Window::rectangular;
        c.config.step_samples = 0;
        c.first_spectrum = (c.first_tick + kMargin / 2) / step_length(c.config) + 1;
        check(c);
      }
    }
  }
  expect_rare_differences();
}

TEST_F(CudaChannelize, RoundingSaturationAndDither) {
  for (const auto rounding : {Rounding::nearest_even, Rounding::truncate}) {
    for (const bool dither : {false, true}) {
      for (const auto output : {SampleFormat::ci8, SampleFormat::ci4}) {
        Case c{.what = "rounding", .config = base(40, SampleFormat::ci8, output)};
        c.config.rounding = rounding;
        c.config.dither = dither;
        c.gain = 1.0f;  // rms 74: saturates often
        c.n_spectra = 200;
        check(c);
      }
    }
  }
  expect_rare_differences();
}

TEST_F(CudaChannelize, AbsentSamplesAndGulpEdges) {
  Case c{.what = "absent", .config = base(32, SampleFormat::ci8, SampleFormat::ci8)};
  c.n_spectra = 200;
  c.first_tick = 10'000;
  c.first_spectrum = c.first_tick / 32 - 5;  // the first spectra begin before the gulp
  c.absent = {{0, 10'500, 10'501}, {1, 10'400, 11'000}, {1, 10'900, 12'000}, {2, 0, 1 << 30}};
  check(c);
  c.delays = true;
  c.what = "absent with delays";
  check(c);
  // Float samples outside a window may be anything; absent ones are NaN here.
  c.what = "not-a-number outside the windows";
  c.config.layout.format = SampleFormat::cf32;
  c.absent = {{0, 10'500, 10'520}};
  set_layout(c);
  const Result wanted = reference(c);
  auto bytes = make_samples(c);
  for (std::int64_t t = 500; t < 520; ++t) std::memset(bytes.data() + t * 8, 0xFF, 8);
  const auto samples = upload(bytes);
  Result found = empty_result(c);
  const auto blocks = upload(found.bytes);
  Config config = c.config;
  config.max_spectra = c.n_spectra;
  auto channelizer = make_channelizer(queue(), config);
  run(queue(), *channelizer, c, samples.data(), found, blocks.data(), c.n_spectra);
  found.bytes = download(blocks);
  found.view.data = found.bytes.data();
  compare(c, found, wanted);
  expect_rare_differences();
}

TEST_F(CudaChannelize, SplittingTheCallGivesTheSameBits) {
  for (const bool real : {false, true}) {
    Case c{.what = "split",
           .config = base(96, real ? SampleFormat::i4 : SampleFormat::ci8, SampleFormat::ci8)};
    c.n_spectra = 64 * 5 + 11;
    c.delays = real;
    set_layout(c);
    const Result once = cuda(c);
    const Result split = cuda(c, 64);
    EXPECT_EQ(once.bytes, split.bytes);
    for (std::size_t k = 0; k < once.statistics.size(); ++k) {
      ASSERT_EQ(once.statistics[k].sum_of_squares, split.statistics[k].sum_of_squares);
      ASSERT_EQ(once.statistics[k].n_samples, split.statistics[k].n_samples);
      ASSERT_EQ(once.statistics[k].saturated_low, split.statistics[k].saturated_low);
    }
  }
}

TEST_F(CudaChannelize, ManyUnitsAreDoneInSeveralLaunches) {
  Case c{.what = "many launches", .config = base(1024, SampleFormat::ci8, SampleFormat::ci8)};
  c.config.n_inputs = 40;  // 40 x 8 blocks x 512 KB: several times the scratch
  c.config.n_taps = 8;
  c.n_spectra = 500;
  c.interleaved = true;
  set_layout(c);
  const Result all = cuda(c);
  for (const std::int64_t p :
       {0, 1, 21, 39}) {  // the reference is slow: a few inputs by themselves
    for (const std::int64_t t : {0, 63, 64, 447, 499}) {
      for (const std::int64_t channel : {0, 511, 512, 1023}) {
        EXPECT_NE(get_sample(all.view, channel, t, p), cf64(-51, -51)) << "unwritten";
      }
    }
  }
  Case one = c;
  one.config.n_inputs = 1;
  one.config.dither = false;
  c.config.dither = false;
  const Result without = cuda(c);
  set_layout(one);
  const auto samples = make_samples(c);
  Result wanted = empty_result(one);
  auto host = Queue::cpu(1);
  Config config = one.config;
  config.layout = c.config.layout;
  config.max_spectra = c.n_spectra;
  config.implementation = "reference";
  auto reference = make_channelizer(host, config);
  Case shifted = one;
  shifted.config = config;
  // Input 0 of the sample layout alone: the same samples, the same gains.
  run(host, *reference, shifted, samples.data(), wanted, wanted.bytes.data(), c.n_spectra);
  std::int64_t different = 0;
  for (std::int64_t channel = 0; channel < 1024; ++channel) {
    for (std::int64_t t = 0; t < c.n_spectra; ++t) {
      const cf64 a = get_sample(without.view, channel, t, 0);
      const cf64 b = get_sample(wanted.view, channel, t, 0);
      ASSERT_LE(std::abs(a - b), 1.5) << channel << " " << t;
      different += (a != b) ? 1 : 0;
    }
  }
  EXPECT_LE(different, 1024 * c.n_spectra * 2 / 10'000);
}

TEST_F(CudaChannelize, FusedAtEverySize) {
  for (const std::int64_t k : {128, 256, 512, 1024}) {
    for (const std::int64_t taps : {4, 8}) {
      for (const auto output : {SampleFormat::ci8, SampleFormat::ci4}) {
        Case c{.what = "fused " + std::to_string(k) + " to " + std::string(name(output)),
               .config = base(k, SampleFormat::ci8, output)};
        c.config.n_taps = taps;
        c.config.dither = taps == 8;
        c.interleaved = output == SampleFormat::ci4;
        c.gain = output == SampleFormat::ci4 ? 0.05f : 0.3f;
        c.n_spectra = 140;
        check(c, "fused");
      }
    }
  }
  expect_rare_differences();
}

TEST_F(CudaChannelize, FusedDelaysAndBands) {
  for (const bool inverted : {false, true}) {
    for (const std::int64_t k : {128, 256, 512, 1024}) {
      Case c{.what = std::string(inverted ? "inverted " : "") + "fused " + std::to_string(k),
             .config = base(k, SampleFormat::ci8, SampleFormat::ci8)};
      c.config.inverted_band = inverted;
      c.delays = true;
      c.first_tick = 640'000;
      c.first_spectrum = (c.first_tick + kMargin / 2) / k + 1;
      c.n_spectra = 90;
      check(c, "fused");
      c.interleaved = true;
      c.config.n_taps = 8;
      check(c, "fused");
    }
  }
  expect_rare_differences();
}

TEST_F(CudaChannelize, FusedRoundingSaturationAndDither) {
  for (const auto rounding : {Rounding::nearest_even, Rounding::truncate}) {
    for (const bool dither : {false, true}) {
      for (const auto output : {SampleFormat::ci8, SampleFormat::ci4}) {
        Case c{.what = "fused rounding", .config = base(256, SampleFormat::ci8, output)};
        c.config.rounding = rounding;
        c.config.dither = dither;
        c.gain = 1.0f;  // rms 74: saturates often
        c.n_spectra = 200;
        check(c, "fused");
      }
    }
  }
  expect_rare_differences();
}

TEST_F(CudaChannelize, FusedAbsentSamplesAndGulpEdges) {
  Case c{.what = "fused absent", .config = base(128, SampleFormat::ci8, SampleFormat::ci8)};
  c.n_spectra = 200;
  c.first_tick = 12'800;
  c.first_spectrum = c.first_tick / 128 - 5;  // the first spectra begin before the gulp
  c.absent = {{0, 14'500, 14'501}, {1, 14'400, 17'000}, {1, 16'900, 19'000}, {2, 0, 1 << 30}};
  check(c, "fused");
  c.delays = true;
  c.what = "fused absent with delays";
  check(c, "fused");
  expect_rare_differences();
}

TEST_F(CudaChannelize, FusedIsChosenWhereItAppliesAtAnyAddress) {
  Case c{.what = "odd address", .config = base(128, SampleFormat::ci8, SampleFormat::ci8)};
  set_layout(c);
  const Result wanted = reference(c);
  auto bytes = make_samples(c);
  bytes.insert(bytes.begin(), std::byte{1});
  const auto samples = upload(bytes);
  Result found = empty_result(c);
  const auto blocks = upload(found.bytes);
  Config config = c.config;
  config.max_spectra = c.n_spectra;
  auto channelizer = make_channelizer(queue(), config);
  EXPECT_EQ(channelizer->implementation(), "channelize/cuda/fused");
  run(queue(), *channelizer, c, samples.data() + 1, found, blocks.data(), c.n_spectra);
  found.bytes = download(blocks);
  found.view.data = found.bytes.data();
  compare(c, found, wanted);
  expect_rare_differences();
  config.n_taps = 5;
  EXPECT_EQ(make_channelizer(queue(), config)->implementation(), "channelize/cuda/shared");
}

TEST_F(CudaChannelize, FusedSplittingTheCallGivesTheSameBits) {
  for (const std::int64_t k : {128, 1024}) {
    Case c{.what = "fused split", .config = base(k, SampleFormat::ci8, SampleFormat::ci8)};
    c.n_spectra = 64 * 5 + 11;
    c.delays = true;
    set_layout(c);
    const Result once = cuda(c, kAtOnce, "fused");
    const Result split = cuda(c, 64, "fused");
    EXPECT_EQ(once.bytes, split.bytes);
    for (std::size_t i = 0; i < once.statistics.size(); ++i) {
      ASSERT_EQ(once.statistics[i].sum_of_squares, split.statistics[i].sum_of_squares);
      ASSERT_EQ(once.statistics[i].n_samples, split.statistics[i].n_samples);
      ASSERT_EQ(once.statistics[i].saturated_low, split.statistics[i].saturated_low);
    }
  }
}

TEST_F(CudaChannelize, FeedsTheCorrelatorOnTheSameQueue) {
  Case c{.what = "chain", .config = base(48, SampleFormat::ci5, SampleFormat::ci8)};
  c.config.n_inputs = 10;
  c.n_spectra = 300;
  c.delays = true;
  c.gain = 2.0f;
  set_layout(c);
  const Result blocks = cuda(c);
  correlate::Config config{
      .n_inputs = 10, .n_channels = 48, .format = SampleFormat::ci8, .max_spectra = 300};
  auto on_gpu = correlate::make_correlator(queue(), config);
  const auto device = upload(blocks.bytes);
  correlate::Input input{.blocks = blocks.view,
                         .n_spectra = c.n_spectra,
                         .valid = blocks.valid.data(),
                         .valid_words = words_for_bits(c.n_spectra) + 1};
  auto host = Queue::cpu(1);
  config.implementation = "reference";
  auto on_cpu = correlate::make_correlator(host, config);
  correlate::Sums wanted, found;
  on_cpu->execute(host, input);
  on_cpu->finish(host, wanted);
  input.blocks.data = device.data();
  on_gpu->execute(queue(), input);
  on_gpu->finish(queue(), found);
  EXPECT_EQ(found.counts, wanted.counts);
  EXPECT_EQ(found.integer, wanted.integer);
}

TEST_F(CudaChannelize, RejectsWhatItCannotDo) {
  Case c{.what = "refuse", .config = base(16, SampleFormat::ci8, SampleFormat::ci8)};
  set_layout(c);
  c.config.max_spectra = 64;
  c.config.implementation = "cuda:nonsense";
  EXPECT_THROW(make_channelizer(queue(), c.config), UnsupportedError);
  c.config.implementation = "reference";
  EXPECT_THROW(make_channelizer(queue(), c.config), UnsupportedError);
  c.config.implementation = "cuda:fused";
  EXPECT_THROW(make_channelizer(queue(), c.config), UnsupportedError) << "16 channels";
  c.config.implementation = "cuda";
  auto channelizer = make_channelizer(queue(), c.config);
  const auto samples = make_samples(c);
  Result r = empty_result(c);
  Output output{
      .blocks = r.view, .valid = r.valid.data(), .valid_words = words_for_bits(c.n_spectra) + 1};
  EXPECT_THROW(channelizer->execute(queue(), {samples.data(), 0, 100, {}}, 0, 10, output),
               ConfigError);
}

}  // namespace
}  // namespace ryle::channelize
