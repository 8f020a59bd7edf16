// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/channelize/channelize.hpp"

namespace ryle::channelize::test {

inline std::vector<std::string> cpu_names() {
  std::vector<std::string> names;
  for (const auto& each : available_implementations()) {
    if (each.rfind("cpu:", 0) == 0) names.push_back(each);
  }
  return names;
}

/// Bytes a layout needs for n samples of every input.
inline std::int64_t layout_bytes(const SampleLayout& layout, std::int64_t n_inputs,
                                 std::int64_t n_samples) {
  const std::int64_t bits = (n_inputs - 1) * layout.input_stride_bits +
                            (n_samples - 1) * layout.sample_stride_bits +
                            bits_per_sample(layout.format);
  return (bits + 7) / 8;
}

/// [input][sample], packed.
inline SampleLayout contiguous(SampleFormat format, std::int64_t n_samples) {
  SampleLayout layout;
  layout.format = format;
  layout.sample_stride_bits = bits_per_sample(format);
  layout.input_stride_bits = (n_samples * layout.sample_stride_bits + 127) / 128 * 128;
  return layout;
}

/// Random bits, except that floats get Gaussian values of the given rms.
inline std::vector<std::byte> random_samples(const SampleLayout& layout, std::int64_t n_inputs,
                                             std::int64_t n_samples, double rms = 30,
                                             std::uint64_t seed = 7) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout_bytes(layout, n_inputs, n_samples)));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(mix64(seed * 1315423911u + i));
  const auto put = [&](std::int64_t bit, auto value) {
    std::memcpy(bytes.data() + bit / 8, &value, sizeof value);
  };
  for (std::int64_t p = 0; p < n_inputs; ++p) {
    for (std::int64_t t = 0; t < n_samples; ++t) {
      const std::int64_t bit = p * layout.input_stride_bits + t * layout.sample_stride_bits;
      const std::uint64_t key = combine(seed, p, t) & ~std::uint64_t{1};
      const double re = rms * gaussian(key);
      const double im = rms * gaussian(key | 1);
      switch (layout.format) {
        case SampleFormat::f32:
          put(bit, static_cast<float>(re));
          break;
        case SampleFormat::cf32:
          put(bit, std::array<float, 2>{static_cast<float>(re), static_cast<float>(im)});
          break;
        case SampleFormat::cf16:  // halves of moderate size: exponents 10..17
          put(bit, static_cast<std::uint32_t>((mix64(key) & 0x9fff9fffu) | 0x28002800u));
          break;
        case SampleFormat::i8:
          if (layout.encoding == Encoding::twos_complement) {
            put(bit, static_cast<std::int8_t>(std::lrint(std::fmin(std::fmax(re, -128), 127))));
          }
          break;
        case SampleFormat::ci8:
          if (layout.encoding == Encoding::twos_complement) {
            put(bit,
                std::array<std::int8_t, 2>{
                    static_cast<std::int8_t>(std::lrint(std::fmin(std::fmax(re, -128), 127))),
                    static_cast<std::int8_t>(std::lrint(std::fmin(std::fmax(im, -128), 127)))});
          }
          break;
        default:
          break;
      }
    }
  }
  return bytes;
}

/// Output arrays filled with garbage, sentinels at both ends.
struct Result {
  Result(const Config& config, std::int64_t n_spectra)
      : format(config.output),
        n(n_spectra),
        inputs(config.n_inputs),
        channels(config.n_channels),
        bytes(dense_blocks_bytes(config.output, channels, n_spectra, inputs)),
        storage(bytes + 256),
        words(words_for_bits(n_spectra)),
        valid(static_cast<std::size_t>(inputs * words), 0xcdcdcdcdcdcdcdcdu),
        statistics(static_cast<std::size_t>(inputs * channels)) {
    std::memset(storage.data(), 0xCD, static_cast<std::size_t>(storage.size()));
  }
  Output output() {
    return {dense_blocks(storage.data() + 128, format, channels, n, inputs), valid.data(), words,
            statistics.data()};
  }
  cf64 at(std::int64_t channel, std::int64_t spectrum, std::int64_t input) {
    return get_sample(output().blocks, channel, spectrum, input);
  }
  bool is_valid(std::int64_t input, std::int64_t spectrum) const {
    return test_bit(valid.data() + input * words, spectrum);
  }
  bool sentinels_intact() const {
    for (int i = 0; i < 128; ++i) {
      if (storage[i] != std::byte{0xCD} || storage[128 + bytes + i] != std::byte{0xCD})
        return false;
    }
    return true;
  }
  bool same_bytes(const Result& other) const {
    return bytes == other.bytes &&
           std::memcmp(storage.data(), other.storage.data(),
                       static_cast<std::size_t>(bytes + 256)) == 0 &&
           valid == other.valid;
  }

  SampleFormat format;
  std::int64_t n, inputs, channels, bytes;
  Buffer<std::byte> storage;
  std::int64_t words;
  std::vector<std::uint64_t> valid;
  std::vector<ChannelStatistics> statistics;
};

struct Case {
  Config config;
  std::int64_t first_spectrum = 0;
  std::int64_t n_spectra = 0;
  Tick first_tick = 0;
  std::int64_t n_samples = 0;
  std::vector<std::byte> samples;
  std::vector<AbsentSpan> absent;
  std::vector<DelayPolynomial> delays;
  std::vector<cf32> gains;

  Input input() const { return {samples.data(), first_tick, n_samples, absent}; }
};

/// A case whose gulp holds exactly the samples of spectra [first, first + n), delays not counted.
inline Case make_case(Config config, std::int64_t first, std::int64_t n, double rms = 30) {
  Case c;
  c.first_spectrum = first;
  c.n_spectra = n;
  c.first_tick = first * step_length(config);
  c.n_samples = (n - 1) * step_length(config) + filter_length(config);
  if (config.layout.sample_stride_bits == 0) {
    const SampleLayout given = config.layout;
    config.layout = contiguous(given.format, c.n_samples);
    config.layout.encoding = given.encoding;
    config.layout.msb_first = given.msb_first;
    config.layout.imag_first = given.imag_first;
    config.layout.re_shift = given.re_shift;
    config.layout.im_shift = given.im_shift;
  }
  if (config.sample_rate_hz == 0) config.sample_rate_hz = 1.28e6;
  config.max_spectra = n;
  c.config = config;
  c.samples = random_samples(config.layout, config.n_inputs, c.n_samples, rms);
  return c;
}

inline Result run(const Case& c, const std::string& implementation, int n_workers = 1) {
  Config config = c.config;
  config.implementation = implementation;
  Queue queue = Queue::cpu(n_workers);
  auto engine = make_channelizer(queue, config);
  if (implementation != "auto") {
    std::string name = implementation;
    for (auto& ch : name) ch = ch == ':' ? '/' : ch;
    EXPECT_EQ(engine->implementation(), "channelize/" + name);
  }
  if (!c.delays.empty()) engine->set_delays(c.delays);
  if (!c.gains.empty()) {
    engine->set_gains(View<const cf32, 2>(c.gains.data(), {config.n_inputs, config.n_channels}));
  }
  Result result(config, c.n_spectra);
  engine->execute(queue, c.input(), c.first_spectrum, c.n_spectra, result.output());
  EXPECT_TRUE(result.sentinels_intact()) << implementation;
  return result;
}

struct Difference {
  double rms = 0;  ///< of the difference, relative to the rms of the reference (codes: absolute)
  double largest = 0;  ///< of one part
  double share = 0;    ///< of parts that differ
  double reference_rms = 0;
};

inline Difference compare(Result& got, Result& want) {
  Difference d;
  double error = 0;
  double power = 0;
  std::int64_t parts = 0;
  for (std::int64_t c = 0; c < want.channels; ++c) {
    for (std::int64_t i = 0; i < want.n; ++i) {
      for (std::int64_t p = 0; p < want.inputs; ++p) {
        const cf64 a = got.at(c, i, p);
        const cf64 b = want.at(c, i, p);
        const cf64 e = a - b;
        error += std::norm(e);
        power += std::norm(b);
        d.largest = std::fmax(d.largest, std::fmax(std::abs(e.real()), std::abs(e.imag())));
        d.share += (e.real() != 0) + (e.imag() != 0);
        parts += 2;
      }
    }
  }
  d.reference_rms = std::sqrt(power / static_cast<double>(parts / 2));
  d.rms = std::sqrt(error / power);
  d.share /= static_cast<double>(parts);
  return d;
}

}  // namespace ryle::channelize::test
