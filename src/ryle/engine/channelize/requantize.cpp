// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/channelize/requantize.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/engine/channelize/dither.hpp"

namespace ryle::channelize::detail {
namespace {

/// Rounds, clips to +-limit and counts.
double quantize(const Config& config, double value, ChannelStatistics* statistics) {
  const double limit = config.output == SampleFormat::ci8 ? 127 : 7;
  const double rounded =
      config.rounding == Rounding::truncate ? std::trunc(value) : std::nearbyint(value);
  if (rounded > limit) {
    if (statistics != nullptr) ++statistics->saturated_high;
    return limit;
  }
  if (rounded < -limit) {
    if (statistics != nullptr) ++statistics->saturated_low;
    return -limit;
  }
  return rounded + 0.0;  // no negative zero
}

}  // namespace

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                        // subnormal half: units of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<std::uint16_t>(std::nearbyintf(scaled));
  }
  const std::uint32_t rounded = magnitude + 0x0fffu + (magnitude >> 13 & 1u);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

void zero_blocks(const BlockView& blocks, std::int64_t n_spectra) {
  const std::int64_t used = n_blocks(blocks.format, n_spectra);
  for (std::int64_t c = 0; c < blocks.n_channels; ++c) {
    for (std::int64_t b = 0; b < used; ++b) {
      for (std::int64_t p = 0; p < blocks.n_inputs; ++p) {
        std::memset(blocks.cell(c, b, p), 0,
                    static_cast<std::size_t>(bytes_per_cell(blocks.format)));
      }
    }
  }
}

void store(const Problem& problem, cf64 value, std::int64_t input, std::int64_t channel,
           std::int64_t m, std::int64_t i, const Output& output) {
  const Config& config = problem.config;
  ChannelStatistics* statistics = output.statistics == nullptr
                                      ? nullptr
                                      : output.statistics + channel * config.n_inputs + input;
  if (config.output == SampleFormat::cf16) {
    const std::uint16_t parts[2] = {to_half(static_cast<float>(value.real())),
                                    to_half(static_cast<float>(value.imag()))};
    auto* cell = output.blocks.cell(channel, i / 32, input) + (i % 32) / 16 * 64 + (i % 16) * 2;
    std::memcpy(cell, &parts[0], 2);
    std::memcpy(cell + 32, &parts[1], 2);
    value = get_sample(output.blocks, channel, i, input);
  } else {
    if (config.output != SampleFormat::cf32) {
      float u_re = 0;
      float u_im = 0;
      if (config.dither) {
        const std::uint32_t bits = dither_bits(dither_channel_key(config.seed, channel),
                                               dither_input_key(input), dither_spectrum_key(m));
        u_re = dither_re(bits);
        u_im = dither_im(bits);
      }
      value = {quantize(config, value.real() + u_re, statistics),
               quantize(config, value.imag() + u_im, statistics)};
    }
    set_sample(output.blocks, channel, i, input, value);
  }
  if (statistics != nullptr) {
    ++statistics->n_samples;
    statistics->sum_of_squares += std::norm(value);
  }
}

void check_delays(const Problem& problem, std::span<const DelayPolynomial> delays) {
  if (static_cast<std::int64_t>(delays.size()) != problem.config.n_inputs) {
    throw ConfigError("channelize: " + std::to_string(delays.size()) + " delay polynomials for " +
                      std::to_string(problem.config.n_inputs) + " inputs; give one per input");
  }
  for (std::size_t p = 0; p < delays.size(); ++p) {
    for (int i = 0; i < 4; ++i) {
      if (!std::isfinite(delays[p].delay_s[i]) || !std::isfinite(delays[p].phase_turns[i])) {
        throw ConfigError("channelize: delay polynomial of input " + std::to_string(p) +
                          " is not finite");
      }
    }
    if (std::abs(delays[p].delay_s[1]) > kMaxDelayRate) {
      throw ConfigError("channelize: delay rate of input " + std::to_string(p) + " is " +
                        std::to_string(delays[p].delay_s[1]) + " s/s; at most 0.01 is followed");
    }
  }
}

void copy_gains(const Problem& problem, View<const cf32, 2> gains, cf32* destination) {
  const std::int64_t inputs = problem.config.n_inputs;
  const std::int64_t channels = problem.config.n_channels;
  if (gains.extent[0] != inputs || gains.extent[1] != channels) {
    throw ConfigError("channelize: gains are [" + std::to_string(gains.extent[0]) + "][" +
                      std::to_string(gains.extent[1]) + "], expected [input][channel] = [" +
                      std::to_string(inputs) + "][" + std::to_string(channels) + "]");
  }
  for (std::int64_t p = 0; p < inputs; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const cf32 g = gains(p, c);
      if (!std::isfinite(g.real()) || !std::isfinite(g.imag())) {
        throw ConfigError("channelize: gain of input " + std::to_string(p) + ", channel " +
                          std::to_string(c) + " is not finite");
      }
    }
  }
  for (std::int64_t p = 0; p < inputs; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) destination[p * channels + c] = gains(p, c);
  }
}

}  // namespace ryle::channelize::detail
