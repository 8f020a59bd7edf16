// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "tests/cuda/cuda_test.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda/make.hpp"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#endif

/// What tests of the CUDA correlators share: gulps of samples, runs, comparisons with the
/// reference.
namespace ryle::correlate {

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

inline std::int64_t code(std::uint64_t key, int bits) {
  const auto half = std::int64_t{1} << (bits - 1);
  return static_cast<std::int64_t>(mix64(key) & (2 * half - 1)) - half;
}

inline std::uint16_t half_bits(int value) {  // exact for |value| <= 2048
  if (value == 0) return 0;
  const int magnitude = std::abs(value);
  int exponent = 0;
  while ((magnitude >> (exponent + 1)) != 0) ++exponent;
  const int mantissa = (magnitude << 10 >> exponent) & 1023;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | mantissa);
}

inline void put(const BlockView& view, std::int64_t channel, std::int64_t t, std::int64_t input,
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

inline Gulp make_gulp(SampleFormat format, const Shape& shape, bool strided, std::uint64_t seed) {
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

inline Sums garbage_sums(const Shape& shape, bool integer) {
  Sums sums;
  const auto n = static_cast<std::size_t>(shape.n_channels * n_pairs(shape.n_inputs));
  if (integer) sums.integer.assign(n, {-0x3232323232323233, -0x3232323232323233});
  if (!integer) sums.real.assign(n, {-6.3e66, -6.3e66});
  sums.counts.assign(n, 0xCDCDCDCDu);
  return sums;
}

inline bool is_integer(SampleFormat format) {
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

inline constexpr Shape kShapes[] = {
    {1, 1, 1},    {2, 3, 63},  {3, 1, 64},   {16, 3, 65},  {31, 1, 130}, {48, 2, 64}, {64, 3, 200},
    {65, 1, 129}, {127, 1, 5}, {128, 2, 64}, {129, 1, 40}, {192, 1, 33}, {256, 1, 20}};

/// Short names of all kernels of this device that take the format.
inline std::vector<std::string> kernels(Queue& queue, SampleFormat format) {
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

#ifdef RYLE_HAVE_CUDA
/// In the place of the table's row while it lives.
struct TuningScope {
  explicit TuningScope(const CudaTuning& tuning) { set_cuda_tuning(&tuning); }
  ~TuningScope() { set_cuda_tuning(nullptr); }
  TuningScope(const TuningScope&) = delete;
  TuningScope& operator=(const TuningScope&) = delete;
};
#endif

}  // namespace ryle::correlate
