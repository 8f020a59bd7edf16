// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/engine/beamform/beamform.hpp"

namespace ryle::beamform::test {

enum class Fill { random, lowest, highest };

/// Samples of a stream, as the configuration lays them out, made from (seed, channel, tick, input).
struct Stream {
  Stream(const Config& config, std::int64_t n_spectra, Fill fill = Fill::random,
         std::uint64_t seed = 1)
      : config(config), n_spectra(n_spectra) {
    bytes = bits_per_sample(config.format) / 8;
    step_bytes = config.n_inputs() * bytes;
    if (config.order == InputOrder::pairs) step_bytes *= config.block_spectra;
    const std::int64_t per_step = config.order == InputOrder::pairs ? config.block_spectra : 1;
    channel_bytes = (n_spectra + per_step - 1) / per_step * step_bytes;
    memory.assign(static_cast<std::size_t>(config.n_channels * channel_bytes), std::uint8_t{0xCD});
    for (std::int64_t c = 0; c < config.n_channels; ++c) {
      for (std::int64_t t = 0; t < n_spectra; ++t) {
        for (std::int64_t i = 0; i < config.n_inputs(); ++i) {
          const std::uint64_t bits = combine(seed, static_cast<std::uint64_t>(c * 100'003 + i),
                                             static_cast<std::uint64_t>(t));
          std::uint64_t code = bits;
          if (fill == Fill::lowest) code = 0x8000'8000'8000'8000u;
          if (fill == Fill::highest) code = 0x7fff'7fff'7fff'7fffu;
          if (config.format == SampleFormat::ci4 && fill != Fill::random)
            code = fill == Fill::lowest ? 0x88 : 0x77;
          if (config.format == SampleFormat::ci8 && fill != Fill::random)
            code = fill == Fill::lowest ? 0x8080 : 0x7f7f;
          if (config.format == SampleFormat::cf32) {
            const cf32 value(static_cast<float>(gaussian(bits)),
                             static_cast<float>(gaussian(bits ^ 1u)));
            std::memcpy(&code, &value, 8);
          }
          if (config.format == SampleFormat::cf16)  // parts below 2, a few subnormal
            code &= bits % 7 == 0 ? 0x83ff'83ffu : 0xbfff'bfffu;
          std::memcpy(at(c, t, i), &code, static_cast<std::size_t>(bytes));
        }
      }
    }
  }

  std::uint8_t* at(std::int64_t c, std::int64_t t, std::int64_t i) {
    std::int64_t offset = c * channel_bytes;
    if (config.order == InputOrder::spectra) {
      offset += t * step_bytes + i * bytes;
    } else {
      offset += t / config.block_spectra * step_bytes +
                ((i / 2 * config.block_spectra + t % config.block_spectra) * 2 + i % 2) * bytes;
    }
    return memory.data() + offset;
  }

  /// Spectra [begin, end); `begin` a multiple of the block for pairs.
  Input part(std::int64_t begin, std::int64_t end, Tick first_tick) {
    Input input;
    input.samples = at(0, begin, 0);
    input.n_spectra = end - begin;
    input.first_tick = first_tick + begin;
    input.channel_stride_bytes = channel_bytes;
    input.step_stride_bytes = step_bytes;
    return input;
  }
  Input all(Tick first_tick = 0) { return part(0, n_spectra, first_tick); }

  Config config;
  std::int64_t n_spectra;
  std::int64_t bytes, step_bytes, channel_bytes;
  std::vector<std::uint8_t> memory;
};

/// Weights of modulus about 1 and any phase; every 11th is 0 (masked).
inline std::vector<cf32> random_weights(const Config& config, std::uint64_t seed = 5) {
  std::vector<cf32> w(
      static_cast<std::size_t>(config.n_beams * config.n_channels * config.n_inputs()));
  for (std::size_t k = 0; k < w.size(); ++k) {
    const double phase = 2 * 3.14159265358979 * uniform(combine(seed, k));
    w[k] =
        k % 11 == 7 ? cf32(0) : cf32(std::polar(0.6 + 0.4 * uniform(combine(seed, 2, k)), phase));
  }
  return w;
}

inline View<const cf32, 3> view_of(const Config& config, const std::vector<cf32>& w) {
  return {w.data(), {config.n_beams, config.n_channels, config.n_inputs()}};
}

/// What an engine wrote, outputs pre-filled with garbage and guarded.
struct Result {
  std::vector<std::uint8_t> values;
  std::vector<std::uint32_t> low, high, n_used;
  std::vector<float> weight_power;
  std::int64_t n_windows = 0;
  std::string implementation;
};

constexpr std::size_t kGuard = 64;

inline Output output_into(const Config& config, Result& r, std::int64_t n_windows) {
  const auto bytes = static_cast<std::size_t>(dense_output_bytes(config, n_windows));
  r.values.assign(bytes + kGuard, 0xCD);
  const std::int64_t products = config.output == OutputKind::voltage ? 1 : config.n_products();
  const auto cells = static_cast<std::size_t>(config.n_rows() * products * config.n_channels);
  r.low.assign(cells, 0xCDCDCDCDu);
  r.high.assign(cells, 0xCDCDCDCDu);
  r.n_used.assign(static_cast<std::size_t>(config.n_beams * config.n_channels), 0xCDCDCDCDu);
  r.weight_power.assign(r.n_used.size(), -1e30f);
  Output output = dense_output(config, r.values.data(), n_windows);
  output.saturated_low = r.low.data();
  output.saturated_high = r.high.data();
  output.n_used = r.n_used.data();
  output.weight_power = r.weight_power.data();
  r.n_windows = n_windows;
  return output;
}

inline void check_guard(const Result& r, const std::string& what) {
  for (std::size_t k = r.values.size() - kGuard; k < r.values.size(); ++k)
    ASSERT_EQ(r.values[k], 0xCD) << what << ": written past the end";
}

struct Requantization {
  float scale = 1, offset = 0;
};

inline void set_requantization(Beamformer& beamformer, Queue& queue, Requantization r) {
  const Config& c = beamformer.config();
  const std::int64_t products = c.output == OutputKind::voltage ? 1 : c.n_products();
  const std::array extent{c.n_rows(), products, c.n_channels};
  const std::vector<float> scale(static_cast<std::size_t>(c.n_rows() * products * c.n_channels),
                                 r.scale);
  const std::vector<float> offset(scale.size(), r.offset);
  beamformer.set_requantization(queue, {scale.data(), extent}, {offset.data(), extent});
}

inline Result run(const Config& base, const std::string& name, const std::vector<cf32>& weights,
                  const Input& input, Requantization requantization = {}, int workers = 1) {
  Config config = base;
  config.implementation = name;
  Queue queue = Queue::cpu(workers);
  auto beamformer = make_beamformer(queue, config);
  beamformer->set_weights(queue, view_of(config, weights));
  set_requantization(*beamformer, queue, requantization);
  Result r;
  const Output output = output_into(config, r, config.n_windows(input.first_tick, input.n_spectra));
  EXPECT_EQ(beamformer->execute(queue, input, output), r.n_windows);
  r.implementation = beamformer->implementation();
  const std::string want =
      name == "reference" ? "beamform/reference" : "beamform/cpu/" + name.substr(4);
  EXPECT_EQ(r.implementation, want);
  check_guard(r, name);
  return r;
}

/// Implementations of this machine that take the configuration, without "reference".
inline std::vector<std::string> cpu_names(const Config& base) {
  std::vector<std::string> names;
  Queue queue = Queue::cpu(1);
  for (const auto& name : available_implementations()) {
    if (name.rfind("cpu:", 0) != 0) continue;
    Config config = base;
    config.implementation = name;
    try {
      make_beamformer(queue, config);
      names.push_back(name);
    } catch (const UnsupportedError&) {
    }
  }
  return names;
}

inline float half_value(std::uint16_t h) {
  const int exponent = h >> 10 & 31;
  const double mantissa = h & 1023;
  const double size = exponent == 0    ? std::ldexp(mantissa, -24)
                      : exponent == 31 ? INFINITY
                                       : std::ldexp(1024 + mantissa, exponent - 25);
  return static_cast<float>(h & 0x8000 ? -size : size);
}

/// All real numbers of a result, in order, whatever the format.
inline std::vector<double> numbers(const Config& config, const Result& r) {
  std::vector<double> out;
  const std::size_t bytes = r.values.size() - kGuard;
  const auto* p = r.values.data();
  const auto read = [&](auto sample) {
    for (std::size_t k = 0; k + sizeof sample <= bytes; k += sizeof sample) {
      std::memcpy(&sample, p + k, sizeof sample);
      out.push_back(static_cast<double>(sample));
    }
  };
  switch (config.output_format) {
    case OutputFormat::cf32:
    case OutputFormat::f32:
      read(float{});
      break;
    case OutputFormat::cf16:
    case OutputFormat::f16:
      for (std::size_t k = 0; k < bytes; k += 2) {
        std::uint16_t h;
        std::memcpy(&h, p + k, 2);
        out.push_back(half_value(h));
      }
      break;
    case OutputFormat::u16:
      read(std::uint16_t{});
      break;
    case OutputFormat::u8:
      read(std::uint8_t{});
      break;
    case OutputFormat::ci8:
      read(std::int8_t{});
      break;
    case OutputFormat::ci4:
      for (std::size_t k = 0; k < bytes; ++k) {
        out.push_back((p[k] >> 4 ^ 8) - 8);
        out.push_back(((p[k] & 15) ^ 8) - 8);
      }
      break;
  }
  return out;
}

inline double rms(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return x.empty() ? 0 : std::sqrt(sum / static_cast<double>(x.size()));
}

/// Every number within `tolerance` of the other (absolute).
inline void expect_close(const std::vector<double>& got, const std::vector<double>& want,
                         double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    if (std::fabs(got[k] - want[k]) <= tolerance) continue;
    if (wrong++ == 0)
      ADD_FAILURE() << what << ": number " << k << " is " << got[k] << ", should be " << want[k];
  }
  EXPECT_EQ(wrong, 0u) << what << ", of " << want.size();
}

}  // namespace ryle::beamform::test
