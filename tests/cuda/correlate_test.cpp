// SPDX-License-Identifier: BSD-3-Clause
// Every CUDA correlator against the reference: integers bit for bit, floats within fp32 rounding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/correlator.hpp"
#include "tests/cuda/cuda_test.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda.hpp"
#include "ryle/engine/correlate/cuda_tuning.hpp"
#endif

namespace ryle::correlate {
namespace {

using test::CudaTest;

struct Shape {
  std::int64_t n_inputs;
  std::int64_t n_channels;
  std::int64_t n_spectra;
};

/// Planar blocks with full-range codes; strides with gaps of garbage when `strided`.
struct Gulp {
  std::vector<std::byte> bytes;
  BlockView view;
  std::int64_t n_spectra;
};

std::int64_t code(std::uint64_t key, int bits) {
  const auto half = std::int64_t{1} << (bits - 1);
  return static_cast<std::int64_t>(mix64(key) & (2 * half - 1)) - half;
}

std::uint16_t half_bits(int value) {  // exact for |value| <= 2048
  if (value == 0) return 0;
  const int magnitude = std::abs(value);
  int exponent = 0;
  while ((magnitude >> (exponent + 1)) != 0) ++exponent;
  const int mantissa = (magnitude << 10 >> exponent) & 1023;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | mantissa);
}

void put(const BlockView& view, std::int64_t channel, std::int64_t t, std::int64_t input,
         std::uint64_t key) {
  if (view.format == SampleFormat::cf16) {  // set_sample has no halves
    auto* cell = view.cell(channel, t / 32, input);
    const std::int64_t at = (t % 32) / 16 * 64 + 2 * (t % 16);
    const std::uint16_t parts[2] = {half_bits(static_cast<int>(code(key, 8))),
                                    half_bits(static_cast<int>(code(key + 1, 8)))};
    std::memcpy(cell + at, &parts[0], 2);
    std::memcpy(cell + at + 32, &parts[1], 2);
    return;
  }
  if (view.format == SampleFormat::cf32) {
    set_sample(view, channel, t, input, {gaussian(key), gaussian(key ^ 1u)});
    return;
  }
  const int bits = view.format == SampleFormat::ci4 ? 4 : view.format == SampleFormat::ci8 ? 8 : 16;
  set_sample(view, channel, t, input,
             {static_cast<double>(code(key, bits)), static_cast<double>(code(key + 1, bits))});
}

Gulp make_gulp(SampleFormat format, const Shape& shape, bool strided, std::uint64_t seed) {
  const std::int64_t blocks = n_blocks(format, shape.n_spectra);
  const std::int64_t cell = bytes_per_cell(format) + (strided ? 16 : 0);
  const std::int64_t block_stride = cell * shape.n_inputs + (strided ? 48 : 0);
  const std::int64_t channel_stride = block_stride * blocks + (strided ? 80 : 0);
  Gulp gulp{test::garbage(channel_stride * shape.n_channels), {}, shape.n_spectra};
  gulp.view = {gulp.bytes.data(), format,         shape.n_channels, blocks,
               shape.n_inputs,    channel_stride, block_stride,     cell};
  for (std::int64_t c = 0; c < shape.n_channels; ++c) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      for (std::int64_t i = 0; i < shape.n_inputs; ++i)
        std::memset(gulp.view.cell(c, b, i), 0, bytes_per_cell(format));
    }
    for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
      for (std::int64_t t = 0; t < shape.n_spectra; ++t)
        put(gulp.view, c, t, i, combine(seed, combine(c, i), 2 * t));
    }
  }
  return gulp;
}

Sums garbage_sums(const Shape& shape, bool integer) {
  Sums sums;
  const auto n = static_cast<std::size_t>(shape.n_channels * n_pairs(shape.n_inputs));
  if (integer) sums.integer.assign(n, {-0x3232323232323233, -0x3232323232323233});
  if (!integer) sums.real.assign(n, {-6.3e66, -6.3e66});
  sums.counts.assign(n, 0xCDCDCDCDu);
  return sums;
}

bool is_integer(SampleFormat format) {
  return format != SampleFormat::cf16 && format != SampleFormat::cf32;
}

class CudaCorrelate : public CudaTest {
 protected:
  static Sums reference(const std::vector<Gulp>& gulps, const Shape& shape,
                        const std::vector<std::uint64_t>& valid = {}) {
    auto host = Queue::cpu(1);
    Config config{.n_inputs = shape.n_inputs,
                  .n_channels = shape.n_channels,
                  .format = gulps[0].view.format,
                  .max_spectra = shape.n_spectra,
                  .implementation = "reference"};
    // Of large shapes by what tests/engine/correlate compares with the reference, 50 times faster.
    const std::int64_t terms = n_pairs(shape.n_inputs) * shape.n_channels * shape.n_spectra;
    if (is_integer(config.format) && terms > 5'000'000) config.implementation = "auto";
    auto correlator = make_correlator(host, config);
    return run(host, *correlator, gulps, nullptr, valid);
  }

  /// What the reference gives of integers, in less time.
  static Sums on_cpu(const std::vector<Gulp>& gulps, const Shape& shape) {
    auto host = Queue::cpu();
    const Config config{.n_inputs = shape.n_inputs,
                        .n_channels = shape.n_channels,
                        .format = gulps[0].view.format,
                        .max_spectra = shape.n_spectra,
                        .implementation = "cpu"};
    auto correlator = make_correlator(host, config);
    return run(host, *correlator, gulps, nullptr, {});
  }

  Sums cuda(const std::string& name, const std::vector<Gulp>& gulps, const Shape& shape,
            const std::vector<std::uint64_t>& valid = {}) {
    Config config{.n_inputs = shape.n_inputs,
                  .n_channels = shape.n_channels,
                  .format = gulps[0].view.format,
                  .max_spectra = shape.n_spectra,
                  .implementation = "cuda:" + name};
    auto correlator = make_correlator(queue(), config);
    EXPECT_EQ(correlator->implementation(), "correlate/cuda/" + name);
    return run(queue(), *correlator, gulps, this, valid);
  }

  static Sums run(Queue& queue, Correlator& correlator, const std::vector<Gulp>& gulps,
                  CudaCorrelate* device, const std::vector<std::uint64_t>& valid) {
    std::vector<Buffer<std::byte>> uploaded;
    for (const auto& gulp : gulps) {
      Input input{.blocks = gulp.view, .n_spectra = gulp.n_spectra};
      if (device != nullptr) {
        uploaded.push_back(device->upload(gulp.bytes));
        input.blocks.data = uploaded.back().data();
      }
      if (!valid.empty()) {
        input.valid = valid.data();
        input.valid_words = words_for_bits(gulp.n_spectra);
      }
      correlator.execute(queue, input);
    }
    Sums sums = garbage_sums({correlator.config().n_inputs, correlator.config().n_channels, 0},
                             is_integer(correlator.config().format));
    correlator.finish(queue, sums);
    return sums;
  }

  static void expect_equal(const Sums& found, const Sums& wanted, const std::string& what) {
    EXPECT_EQ(found.n_spectra, wanted.n_spectra) << what;
    ASSERT_EQ(found.counts, wanted.counts) << what;
    ASSERT_EQ(found.integer.size(), wanted.integer.size()) << what;
    for (std::size_t p = 0; p < wanted.integer.size(); ++p) {
      ASSERT_EQ(found.integer[p].re, wanted.integer[p].re) << what << " product " << p;
      ASSERT_EQ(found.integer[p].im, wanted.integer[p].im) << what << " product " << p;
    }
  }

  // fp32 partial sums of at most 1024 terms: the error of a sum of n products of size a is about
  // sqrt(n) * 2^-24 * a per partial sum reached, below 2e-6 of sqrt(P_i P_j) (correlate.md
  // T-XE-10), P = sum |v|^2.
  static void expect_close(const Sums& found, const Sums& wanted, std::int64_t n_inputs,
                           const std::string& what) {
    ASSERT_EQ(found.counts, wanted.counts) << what;
    ASSERT_EQ(found.real.size(), wanted.real.size()) << what;
    const std::int64_t pairs = n_pairs(n_inputs);
    for (std::int64_t p = 0; p < static_cast<std::int64_t>(wanted.real.size()); ++p) {
      const auto [i, j] = pair_of(p % pairs);
      const cf64* channel = wanted.real.data() + p / pairs * pairs;
      const double scale =
          std::sqrt(channel[pair_index(i, i)].real() * channel[pair_index(j, j)].real());
      ASSERT_LE(std::abs(found.real[p] - wanted.real[p]), 2e-6 * scale) << what << " product " << p;
    }
  }

  /// Small integers as halves, in a gulp and on top of it: exact. The same codes as bytes, on the
  /// CPU, are what is wanted: decoding halves takes too long.
  void check_halves(const std::vector<std::string>& names, const Shape& shape) {
    std::vector<Gulp> gulps, bytes;
    for (const bool strided : {shape.n_inputs % 2 == 1, shape.n_inputs % 2 == 0}) {
      if (!gulps.empty() && shape.n_spectra > 200) continue;
      const auto seed = static_cast<std::uint64_t>(7 * shape.n_inputs + (strided ? 1 : 0));
      gulps.push_back(make_gulp(SampleFormat::cf16, shape, strided, seed));
      bytes.push_back(make_gulp(SampleFormat::ci8, shape, strided, seed));
    }
    const Sums wanted = on_cpu(bytes, shape);
    for (const auto& name : names) {
      const Sums found = cuda(name, gulps, shape);
      ASSERT_EQ(found.counts, wanted.counts);
      for (std::size_t p = 0; p < found.real.size(); ++p) {
        ASSERT_EQ(found.real[p], cf64(static_cast<double>(wanted.integer[p].re),
                                      static_cast<double>(wanted.integer[p].im)))
            << name << " N=" << shape.n_inputs << " C=" << shape.n_channels
            << " T=" << shape.n_spectra << " product " << p;
      }
    }
  }

  void check(const std::string& name, SampleFormat format, const Shape& shape, bool strided) {
    const std::string what = name + " " + std::string(ryle::name(format)) +
                             " N=" + std::to_string(shape.n_inputs) +
                             " C=" + std::to_string(shape.n_channels) +
                             " T=" + std::to_string(shape.n_spectra) + (strided ? " strided" : "");
    std::vector<Gulp> gulps;
    gulps.push_back(make_gulp(format, shape, strided, 7 * shape.n_inputs + shape.n_spectra));
    const Sums wanted = reference(gulps, shape);
    const Sums found = cuda(name, gulps, shape);
    if (is_integer(format)) {
      expect_equal(found, wanted, what);
    } else {
      expect_close(found, wanted, shape.n_inputs, what);
    }
  }
};

constexpr Shape kShapes[] = {{1, 1, 1},    {2, 3, 63},   {3, 1, 64},   {16, 3, 65}, {31, 1, 130},
                             {48, 2, 64},  {64, 3, 200}, {65, 1, 129}, {127, 1, 5}, {128, 2, 64},
                             {129, 1, 40}, {192, 1, 33}, {256, 1, 20}};

/// Short names of all kernels of this device that take the format.
std::vector<std::string> kernels(Queue& queue, SampleFormat format) {
  std::vector<std::string> names;
  for (const std::string& name : available_implementations()) {
    if (name.rfind("cuda:", 0) != 0) continue;
    try {
      make_correlator(queue, {2, 1, format, 64, name});
      names.push_back(name.substr(5));
    } catch (const UnsupportedError&) {
    }
  }
  return names;
}

TEST_F(CudaCorrelate, TensorCoresEqualReferenceAtAnyShape) {
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4}) {
    for (const auto& name : kernels(queue(), format)) {
      if (name == "simt") continue;
      for (const auto& shape : kShapes) check(name, format, shape, shape.n_inputs % 2 == 1);
    }
  }
}

// Rows and columns of one block come by copies of their own, in either order: whoever widens ci4
// once took rows on their way for rows that had come. Seen in one run of some at 1,024 inputs.
TEST_F(CudaCorrelate, NibblesOfManyTilesAreTheSameEveryTime) {
  const std::vector<std::string> names = kernels(queue(), SampleFormat::ci4);
  if (std::count(names.begin(), names.end(), "sm90_ci4_wgmma") == 0) GTEST_SKIP() << "no wgmma";
  const Shape shape{520, 40, 2100};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci4, shape, false, 9));
  const Sums wanted = cuda("mma_s8", gulps, shape);
  for (int run = 0; run < 12 && !HasFatalFailure(); ++run)
    expect_equal(cuda("sm90_ci4_wgmma", gulps, shape), wanted, "run " + std::to_string(run));
}

// Samples that come from memory at the machine's rate, which no slot waits for: all sums, again and
// again, against those of other products. A copy that overtakes loads spoils rows of some tiles.
TEST_F(CudaCorrelate, InputsBeyondTheCache) {
  const auto check_sums = [&](SampleFormat format, const std::string& name, const Shape& shape,
                              int n_runs) {
    const std::vector<std::string> names = kernels(queue(), format);
    if (std::count(names.begin(), names.end(), name) == 0) return;
    const std::int64_t blocks = n_blocks(format, shape.n_spectra), cell = bytes_per_cell(format);
    const std::int64_t block = cell * shape.n_inputs;
    std::vector<Gulp> gulps(1);
    gulps[0].bytes.resize(static_cast<std::size_t>(block * blocks * shape.n_channels));
    for (std::size_t at = 0; at < gulps[0].bytes.size(); at += 8) {
      const std::uint64_t word = mix64(at);
      std::memcpy(gulps[0].bytes.data() + at, &word, 8);
    }
    gulps[0].view = {gulps[0].bytes.data(),
                     format,
                     shape.n_channels,
                     blocks,
                     shape.n_inputs,
                     block * blocks,
                     block,
                     cell};
    gulps[0].n_spectra = shape.n_spectra;
    const Sums wanted = cuda("mma_s8", gulps, shape);
    for (int run = 0; run < n_runs && !HasFatalFailure(); ++run)
      expect_equal(cuda(name, gulps, shape), wanted, name + ", run " + std::to_string(run));
  };
  check_sums(SampleFormat::ci4, "sm90_ci4_wgmma", {512, 64, 4096}, 10);  // 134 MB
  check_sums(SampleFormat::ci4, "sm90_ci4_wgmma", {128, 256, 4096}, 4);
  check_sums(SampleFormat::ci8, "sm90_s8_wgmma", {512, 32, 4096}, 5);
  check_sums(SampleFormat::ci8, "sm90_s8_wgmma", {256, 64, 4096}, 5);
}

TEST_F(CudaCorrelate, KernelsOfTheDeviceAreListed) {
  const std::vector<std::string> bytes = kernels(queue(), SampleFormat::ci8);
  EXPECT_EQ(bytes.back(), "simt");
  const bool hopper = list_devices().at(1).description.find("sm_90") != std::string::npos;
  EXPECT_EQ(bytes.front(), hopper ? "sm90_s8_wgmma" : "mma_s8");
  EXPECT_EQ(bytes.size(), hopper ? 3u : 2u);
  const std::vector<std::string> nibbles = kernels(queue(), SampleFormat::ci4);
  EXPECT_EQ(nibbles.front(), hopper ? "sm90_ci4_wgmma" : "mma_s8");
  EXPECT_EQ(nibbles.size(), hopper ? 3u : 2u);
  EXPECT_EQ(kernels(queue(), SampleFormat::cf32), (std::vector<std::string>{"simt"}));
  const std::vector<std::string> halves = kernels(queue(), SampleFormat::cf16);
  EXPECT_EQ(halves.front(), hopper ? "sm90_f16_wgmma" : "mma_f16");
  EXPECT_EQ(halves.size(), hopper ? 3u : 2u);
}

// More tiles than multiprocessors: whole rounds, and a rest that is cut along time.
TEST_F(CudaCorrelate, RoundsAndARestCutAlongTime) {
  for (const auto& name : kernels(queue(), SampleFormat::ci8)) {
    check(name, SampleFormat::ci8, {257, 30, 130}, false);
    check(name, SampleFormat::ci8, {20, 301, 129}, true);
    check(name, SampleFormat::ci8, {20, 264, 65}, false);  // no rest on 132 multiprocessors
    check(name, SampleFormat::ci8, {100, 7, 1100}, false);
  }
  for (const auto& name : kernels(queue(), SampleFormat::ci4)) {
    check(name, SampleFormat::ci4, {257, 30, 260}, false);
    check(name, SampleFormat::ci4, {20, 301, 129}, true);
    check(name, SampleFormat::ci4, {100, 7, 2100}, false);
  }
}

TEST_F(CudaCorrelate, SimtMatchesReferenceAtAnyShape) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                            SampleFormat::cf16, SampleFormat::cf32}) {
    for (const auto& shape : kShapes) check("simt", format, shape, shape.n_inputs % 2 == 0);
  }
}

TEST_F(CudaCorrelate, ManyChannelsAndLongGulps) {
  check("mma_s8", SampleFormat::ci8, {5, 131, 100}, false);
  check("mma_s8", SampleFormat::ci4, {7, 131, 100}, true);
  check("mma_s8", SampleFormat::ci8, {16, 1, 4096}, true);  // time split over thread blocks
  check("mma_s8", SampleFormat::ci4, {16, 2, 5000}, false);
  for (const auto& name : kernels(queue(), SampleFormat::ci8)) {
    check(name, SampleFormat::ci8, {5, 131, 100}, true);
    check(name, SampleFormat::ci8, {130, 1, 1100}, false);
  }
  for (const auto& name : kernels(queue(), SampleFormat::ci4)) {
    check(name, SampleFormat::ci4, {7, 131, 100}, true);
    check(name, SampleFormat::ci4, {130, 1, 2100}, false);
  }
  check("simt", SampleFormat::cf32, {9, 2, 5000}, false);  // several folds into double
}

// T-XE-01: all 65 536 pairs of ci8 codes meet, real with real, real with imaginary and imaginary
// with imaginary; the length also crosses the fold from int32 to int64.
TEST_F(CudaCorrelate, AllPairsOfCi8Codes) {
  const Shape shape{2, 1, 65536};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci8, shape, false, 1));
  for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
    const auto a = static_cast<double>(t % 256 - 128);
    const auto b = static_cast<double>(t / 256 - 128);
    set_sample(gulps[0].view, 0, t, 0, {a, -1 - a});
    set_sample(gulps[0].view, 0, t, 1, {b, t % 3 == 0 ? b : -1 - b});
  }
  const Sums wanted = reference(gulps, shape);
  for (const auto& name : kernels(queue(), SampleFormat::ci8))
    expect_equal(cuda(name, gulps, shape), wanted, name);
}

// T-XE-02: the largest sums there are, over more spectra than an int32 holds.
TEST_F(CudaCorrelate, MostNegativeCodesBeyondInt32) {
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4, SampleFormat::ci16}) {
    const Shape shape{3, 1, 131'200};
    const double least = format == SampleFormat::ci8   ? -128
                         : format == SampleFormat::ci4 ? -8
                                                       : -32768;
    std::vector<Gulp> gulps;
    gulps.push_back(make_gulp(format, {3, 1, 1}, false, 1));
    gulps[0] = make_gulp(format, shape, false, 1);
    for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
      set_sample(gulps[0].view, 0, t, 0, {least, least});
      set_sample(gulps[0].view, 0, t, 1, {least, -1 - least});
      set_sample(gulps[0].view, 0, t, 2, {-1 - least, -1 - least});
    }
    const Sums wanted = reference(gulps, shape);
    ASSERT_EQ(wanted.integer[0].re, shape.n_spectra * static_cast<std::int64_t>(2 * least * least));
    for (const auto& name : kernels(queue(), format))
      expect_equal(cuda(name, gulps, shape), wanted, name);
  }
}

TEST_F(CudaCorrelate, ManyGulpsThenASecondDump) {
  const Shape shape{33, 2, 600};
  std::vector<Gulp> gulps;
  for (std::int64_t k = 0; k < 5; ++k) {
    gulps.push_back(make_gulp(SampleFormat::ci8, {33, 2, 64 * (k + 1) - k}, k % 2 == 1, 99 + k));
  }
  const Sums wanted = reference(gulps, shape);
  for (const std::string& name : kernels(queue(), SampleFormat::ci8)) {
    Config config{.n_inputs = 33,
                  .n_channels = 2,
                  .format = SampleFormat::ci8,
                  .max_spectra = 600,
                  .implementation = "cuda:" + name};
    auto correlator = make_correlator(queue(), config);
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " first dump");
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " second dump");
    const Buffer<std::byte> blocks = upload(gulps[0].bytes);
    Input input{.blocks = gulps[0].view, .n_spectra = gulps[0].n_spectra};
    input.blocks.data = blocks.data();
    correlator->execute(queue(), input);
    correlator->reset(queue());
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " after reset");
#ifdef RYLE_HAVE_CUDA
    correlator->execute(queue(), input);
    finish_in_order(queue(), *correlator);  // int64 sums are left where they lie
    correlator->reset(queue());
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " after a fold");
#endif
  }
}

TEST_F(CudaCorrelate, CountsFollowTheMasks) {
  const Shape shape{20, 2, 300};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci8, shape, false, 5));
  const std::int64_t words = words_for_bits(shape.n_spectra);
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(shape.n_inputs * words));
  for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
    for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
      if (mix64(combine(i / 4, t / 10)) % 5 != 0) {
        set_bit(valid.data() + i * words, t);
        continue;
      }
      for (std::int64_t c = 0; c < shape.n_channels; ++c)
        set_sample(gulps[0].view, c, t, i, {0, 0});
    }
  }
  const Sums wanted = reference(gulps, shape, valid);
  ASSERT_LT(wanted.counts[1], 300u);
  for (const auto& name : kernels(queue(), SampleFormat::ci8))
    expect_equal(cuda(name, gulps, shape, valid), wanted, name);
}

/// Normal halves of rms 1, in steps of 2^-8, and the same steps as integers.
struct Halves {
  Gulp halves, steps;
};

Halves gaussian_halves(const Shape& shape, std::uint64_t seed) {
  Halves both{make_gulp(SampleFormat::cf16, shape, false, seed),
              make_gulp(SampleFormat::ci16, shape, false, seed)};
  for (std::int64_t c = 0; c < shape.n_channels; ++c) {
    for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
      for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
        const std::uint64_t key = combine(seed, combine(c, i), t);
        const auto step_of = [](double v) {
          return static_cast<int>(std::lround(std::clamp(v, -7.9, 7.9) * 256));
        };
        const int steps[2] = {step_of(gaussian(key)), step_of(gaussian(key ^ 1u))};
        auto* to = both.halves.view.cell(c, t / 32, i) + t % 32 / 16 * 64 + 2 * (t % 16);
        for (int part = 0; part < 2; ++part) {
          const auto bits =
              static_cast<std::uint16_t>(half_bits(steps[part]) - (steps[part] == 0 ? 0 : 8 << 10));
          std::memcpy(to + 32 * part, &bits, 2);
        }
        set_sample(both.steps.view, c, t, i,
                   {static_cast<double>(steps[0]), static_cast<double>(steps[1])});
      }
    }
  }
  return both;
}

/// Tensor-core kernels of this device for halves.
std::vector<std::string> kernels_of_halves(Queue& queue) {
  auto names = kernels(queue, SampleFormat::cf16);
  names.erase(std::remove(names.begin(), names.end(), "simt"), names.end());
  return names;
}

// Integers whose sums stay below 2^24 are exact in fp32 however they are added up and cut: the
// arithmetic at any shape, whole tiles and cut ones, in one launch and on top of others.
TEST_F(CudaCorrelate, HalvesThatAreSmallIntegersAreExact) {
  std::vector<Shape> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.insert(shapes.end(), {{257, 30, 130}, {20, 301, 129}, {20, 264, 65}, {100, 7, 700}});
  for (const Shape& shape : shapes) check_halves(kernels_of_halves(queue()), shape);
}

// T-XE-06. An addition that cuts takes away less than 2^-23 of the sum. With one at every product
// of real parts the sum of n spectra loses, of sqrt(P_i P_j), up to sum_k (k / 2n) 2^-23 over 2n
// steps = n 2^-23, n <= 4096 to a launch; the sums of launches are rounded, 2^-24 each time. Autos
// lose on every addition, all in one direction; that bias is printed.
TEST_F(CudaCorrelate, HalvesAreWithinWhatCutSumsLose) {
  const Shape shape{130, 1, 9000};  // three launches
  Halves both = gaussian_halves(shape, 11);
  std::vector<Gulp> gulps, steps;
  gulps.push_back(std::move(both.halves));
  steps.push_back(std::move(both.steps));
  const Sums wanted = on_cpu(steps, shape);
  const auto power = [&](std::int64_t i) {
    return 0x1p-16 *
           static_cast<double>(wanted.integer[static_cast<std::size_t>(pair_index(i, i))].re);
  };
  for (const auto& name : kernels_of_halves(queue())) {
    const Sums found = cuda(name, gulps, shape);
    double worst = 0, bias = 0;
    for (std::size_t p = 0; p < found.real.size(); ++p) {
      const auto [i, j] = pair_of(static_cast<std::int64_t>(p));
      const cf64 off = (found.real[p] - 0x1p-16 * cf64(static_cast<double>(wanted.integer[p].re),
                                                       static_cast<double>(wanted.integer[p].im))) /
                       std::sqrt(power(i) * power(j));
      ASSERT_LE(std::abs(off), 4096 * 0x1p-23 + 3 * 0x1p-24) << name << " product " << p;
      if (i == j) {
        bias += off.real() / static_cast<double>(shape.n_inputs);
        ASSERT_EQ(found.real[p].imag(), 0) << name << " product " << p;
      } else {
        worst = std::max(worst, std::abs(off));
      }
    }
    std::cout << name << ": autos " << bias << ", worst cross product " << worst << '\n';
  }
}

#ifdef RYLE_HAVE_CUDA
/// In the place of the table's row while it lives.
struct TuningScope {
  explicit TuningScope(const CudaTuning& tuning) { set_cuda_tuning(&tuning); }
  ~TuningScope() { set_cuda_tuning(nullptr); }
  TuningScope(const TuningScope&) = delete;
  TuningScope& operator=(const TuningScope&) = delete;
};

// Float sums depend on their order, and thread blocks end in any: it must not matter. Items that
// are cut finely are added up by whoever ends last.
TEST_F(CudaCorrelate, EqualHalvesGiveEqualBits) {
  for (const Shape& shape : {Shape{130, 2, 5000}, Shape{64, 7, 2000}, Shape{300, 30, 200}}) {
    std::vector<Gulp> gulps;
    gulps.push_back(gaussian_halves(shape, 12).halves);
    gulps.push_back(gaussian_halves(shape, 13).halves);
    const auto repeat = [&](const std::string& name, int runs) {
      const Sums first = cuda(name, gulps, shape);
      for (int again = 0; again < runs; ++again)
        ASSERT_EQ(cuda(name, gulps, shape).real, first.real) << name << " N=" << shape.n_inputs;
    };
    for (const auto& name : kernels_of_halves(queue())) repeat(name, 3);
    for (const CudaTuning tuning : {CudaTuning{12, 1}, CudaTuning{4, 2}}) {
      const TuningScope scope(tuning);
      for (const auto& name : kernels_of_halves(queue())) repeat(name, 3);
    }
  }
}
#endif

TEST_F(CudaCorrelate, HalvesOfASecondDumpAndAfterReset) {
  const Shape shape{33, 2, 300};
  std::vector<Gulp> gulps;
  for (std::int64_t k = 0; k < 3; ++k)
    gulps.push_back(make_gulp(SampleFormat::cf16, {33, 2, 64 * (k + 1) - k}, k % 2 == 1, 99 + k));
  const Sums wanted = reference(gulps, shape);
  for (const std::string& name : kernels_of_halves(queue())) {
    auto correlator = make_correlator(queue(), {33, 2, SampleFormat::cf16, 300, "cuda:" + name});
    for (const char* dump : {"first", "second", "after reset"}) {
      ASSERT_EQ(run(queue(), *correlator, gulps, this, {}).real, wanted.real)
          << name << ' ' << dump;
      const Buffer<std::byte> blocks = upload(gulps[0].bytes);
      Input input{.blocks = gulps[0].view, .n_spectra = gulps[0].n_spectra};
      input.blocks.data = blocks.data();
      correlator->execute(queue(), input);
      correlator->reset(queue());
    }
  }
}

#ifdef RYLE_HAVE_CUDA
// The Hopper kernel with rings that are always full or empty, and cut as finely as can be.
TEST_F(CudaCorrelate, AnyTuningGivesTheSameSums) {
  const auto names = kernels(queue(), SampleFormat::ci8);
  const std::string name = "sm90_s8_wgmma";
  if (std::find(names.begin(), names.end(), name) == names.end())
    GTEST_SKIP() << "no products of warpgroups on this device";
  for (const CudaTuning tuning :
       {CudaTuning{3, 1}, CudaTuning{4, 2}, CudaTuning{12, 1}, CudaTuning{6, 1024, false, true},
        CudaTuning{4, 1, true}, CudaTuning{12, 16, true, true, true}, CudaTuning{8, 1024, true},
        CudaTuning{6, 1024, false, false, true, 4}}) {
    const TuningScope scope(tuning);
    check(name, SampleFormat::ci8, {500, 1, 130}, true);   // 4 rows of tiles
    check(name, SampleFormat::ci8, {700, 3, 66}, false);   // 6, one tile meets no other
    check(name, SampleFormat::ci8, {300, 5, 200}, false);  // 3, and the last channel is alone
    check(name, SampleFormat::ci8, {200, 3, 130}, false);  // 2
    check("sm90_ci4_wgmma", SampleFormat::ci4, {130, 2, 1400}, false);
    check("sm90_ci4_wgmma", SampleFormat::ci4, {64, 3, 1400}, true);
    check(name, SampleFormat::ci8, {130, 2, 700}, false);
    check(name, SampleFormat::ci8, {64, 3, 700}, true);
    check_halves({"sm90_f16_wgmma"}, {130, 2, 700});
    check_halves({"sm90_f16_wgmma"}, {64, 3, 700});
    check_halves({"sm90_f16_wgmma"}, {700, 4, 66});
    check_halves({"sm90_f16_wgmma"}, {300, 5, 100});
  }
}

// Three warpgroups, two items a channel: whole rounds, a rest as it is or cut, on top of other
// gulps; the second group of inputs full, half full and nearly empty.
TEST_F(CudaCorrelate, ThreeWarpgroupsGiveTheSameSums) {
  const auto names = kernels(queue(), SampleFormat::ci8);
  const std::string name = "sm90_s8_wgmma";
  if (std::find(names.begin(), names.end(), name) == names.end())
    GTEST_SKIP() << "no products of warpgroups on this device";
  for (const CudaTuning tuning : {CudaTuning{12, 1024, false, false, true, 1, true},
                                  CudaTuning{12, 2, false, false, false, 1, true},
                                  CudaTuning{12, 1, false, false, false, 1, true}}) {
    const TuningScope scope(tuning);
    check(name, SampleFormat::ci8, {256, 66, 130}, false);  // one round of 132 multiprocessors
    check(name, SampleFormat::ci8, {200, 70, 200}, true);
    check(name, SampleFormat::ci8, {130, 150, 520}, false);
    check(name, SampleFormat::ci8, {250, 101, 65}, true);
    check(name, SampleFormat::ci8, {129, 3, 130}, false);  // too few: the two of other sizes
  }
}

/// The least of work that goes through every path of one kernel: what compute-sanitizer's
/// racecheck, which takes a thousand times as long, can follow (scripts/gpu_check.sh).
class CudaCorrelateFew : public CudaCorrelate {
 protected:
  void check_if_here(const std::string& name, SampleFormat format, const Shape& shape) {
    const auto names = kernels(queue(), format);
    if (std::find(names.begin(), names.end(), name) == names.end())
      GTEST_SKIP() << name << " is not for this device";
    format == SampleFormat::cf16 ? check_halves({name}, shape) : check(name, format, shape, false);
  }
  void check_tuned(const std::string& name, SampleFormat format, const Shape& shape,
                   const CudaTuning& tuning) {
    const TuningScope scope(tuning);
    check_if_here(name, format, shape);
  }
};

TEST_F(CudaCorrelateFew, Bytes) {
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {64, 2, 129}, {3, 1});
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {130, 1, 129}, {3, 2});
}
TEST_F(CudaCorrelateFew, BytesInClusters) {
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {130, 2, 129}, {4, 1024, true});
}
TEST_F(CudaCorrelateFew, BytesByThree) {
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {130, 67, 65},
              {12, 1, false, false, false, 1, true});
}
TEST_F(CudaCorrelateFew, Nibbles) {
  check_tuned("sm90_ci4_wgmma", SampleFormat::ci4, {64, 2, 257}, {3, 1});
  check_tuned("sm90_ci4_wgmma", SampleFormat::ci4, {130, 1, 257}, {3, 2});
}
TEST_F(CudaCorrelateFew, Halves) {
  check_tuned("sm90_f16_wgmma", SampleFormat::cf16, {64, 2, 65}, {3, 1});
  check_tuned("sm90_f16_wgmma", SampleFormat::cf16, {130, 1, 65}, {3, 2});
}
TEST_F(CudaCorrelateFew, MmaOfBytesAndNibbles) {
  check_if_here("mma_s8", SampleFormat::ci8, {65, 1, 129});
  check_if_here("mma_s8", SampleFormat::ci4, {65, 1, 257});
}
TEST_F(CudaCorrelateFew, MmaOfHalves) { check_if_here("mma_f16", SampleFormat::cf16, {65, 1, 65}); }

// The imager takes sums where they lie: from this kernel folded, from mma_s8 as tiles.
TEST_F(CudaCorrelate, SumsStayOnTheDevice) {
  const Shape shape{70, 2, 200};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci8, shape, false, 3));
  const Sums wanted = reference(gulps, shape);
  const Buffer<std::byte> blocks = upload(gulps[0].bytes);
  Input input{.blocks = gulps[0].view, .n_spectra = shape.n_spectra};
  input.blocks.data = blocks.data();
  for (const auto& name : kernels(queue(), SampleFormat::ci8)) {
    auto correlator = make_correlator(queue(), {70, 2, SampleFormat::ci8, 200, "cuda:" + name});
    for (int dump = 0; dump < 3; ++dump) {
      correlator->execute(queue(), input);
      const DeviceSums sums = finish_on_device(queue(), *correlator);
      EXPECT_EQ(sums.n_spectra, shape.n_spectra);
      if (sums.sums == nullptr) continue;  // tiles: tested with the imager
      std::vector<ci64> found(wanted.integer.size());
      copy_bytes(queue(), found.data(), sums.sums, static_cast<std::int64_t>(16 * found.size()));
      queue().synchronize();
      for (std::size_t p = 0; p < found.size(); ++p)
        ASSERT_EQ(found[p], wanted.integer[p]) << name << " dump " << dump << " product " << p;
    }
  }
}
#endif

TEST_F(CudaCorrelate, RefusesWhatItCannotDo) {
  Config config{.n_inputs = 4,
                .n_channels = 1,
                .format = SampleFormat::ci16,
                .max_spectra = 64,
                .implementation = "cuda:mma_s8"};
  try {
    make_correlator(queue(), config);
    FAIL() << "mma_s8 took ci16";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:simt"), std::string::npos) << error.what();
  }
  config.implementation = "cuda:nonsense";
  EXPECT_THROW(make_correlator(queue(), config), UnsupportedError);
  config.implementation = "auto";
  EXPECT_EQ(make_correlator(queue(), config)->implementation(), "correlate/cuda/simt");
  config.format = SampleFormat::cf16;
  EXPECT_EQ(make_correlator(queue(), config)->implementation(),
            "correlate/cuda/" + kernels(queue(), SampleFormat::cf16).front());
  config.format = SampleFormat::ci8;
  auto correlator = make_correlator(queue(), config);
  EXPECT_EQ(correlator->implementation(),
            "correlate/cuda/" + kernels(queue(), SampleFormat::ci8).front());
  Gulp gulp = make_gulp(SampleFormat::ci8, {4, 1, 64}, false, 1);
  EXPECT_THROW(correlator->execute(queue(), {.blocks = gulp.view, .n_spectra = 64}), ConfigError);
  auto host = Queue::cpu(1);
  config.implementation = "cuda:mma_s8";
  EXPECT_THROW(make_correlator(host, config), UnsupportedError);
}

}  // namespace
}  // namespace ryle::correlate
