// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/channelize/cuda/make.hpp"
#endif
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/math/window.hpp"

namespace ryle::channelize {
namespace {

constexpr std::int64_t kMaxChannels = 1 << 20;
constexpr std::int64_t kMaxTaps = 64;

void require(bool condition, const std::string& message) {
  if (!condition) throw ConfigError("channelize: " + message);
}

std::string text(std::int64_t value) { return std::to_string(value); }

void check_sizes(const Config& c) {
  require(c.n_inputs >= 1, "n_inputs = " + text(c.n_inputs) + " must be at least 1");
  require(c.n_channels >= 1 && c.n_channels <= kMaxChannels,
          "n_channels = " + text(c.n_channels) + " must lie in 1.." + text(kMaxChannels));
  require(c.n_taps >= 1 && c.n_taps <= kMaxTaps,
          "taps = " + text(c.n_taps) + " must lie in 1.." + text(kMaxTaps) + " (1 = plain FFT)");
  const std::int64_t k = transform_length(c);
  require(c.step_samples >= 0 && c.step_samples <= k,
          "step_samples = " + text(c.step_samples) + " must lie in 1.." + text(k) +
              " (the transform length; 0 means critically sampled)");
  require(c.max_spectra >= 1, "max_spectra = " + text(c.max_spectra) + " must be at least 1");
  require(std::isfinite(c.sample_rate_hz) && c.sample_rate_hz > 0,
          "sample_rate_hz must be positive");
  require(std::isfinite(c.reference_hz), "reference_hz must be a finite frequency");
  require(c.window != Window::kaiser || (c.kaiser_beta > 0 && c.kaiser_beta <= 50),
          "kaiser_beta must lie in (0, 50]; 8 gives a stop band of -95 dB");
}

void check_layout(const SampleLayout& layout) {
  const int bits = bits_per_sample(layout.format);
  const std::string format(name(layout.format));
  require(layout.sample_stride_bits >= bits,
          "sample_stride_bits = " + text(layout.sample_stride_bits) + " is less than the " +
              text(bits) + " bits of " + format);
  require(layout.input_stride_bits >= 0, "input_stride_bits must not be negative");
  if (bits >= 8) {
    require(layout.sample_stride_bits % 8 == 0 && layout.input_stride_bits % 8 == 0,
            "strides of " + format + " must be whole bytes");
  }
  if (layout.encoding == Encoding::levels) {
    require(layout.format == SampleFormat::i1 || layout.format == SampleFormat::i2 ||
                layout.format == SampleFormat::ci1 || layout.format == SampleFormat::ci2,
            "encoding \"levels\" is for 1- and 2-bit samples, not " + format);
  }
  if (layout.format == SampleFormat::ci5) {
    require(layout.re_shift >= 0 && layout.re_shift <= 11 && layout.im_shift >= 0 &&
                layout.im_shift <= 11,
            "re_shift and im_shift of ci5 must lie in 0..11");
  }
}

void check_output(SampleFormat format) {
  if (format != SampleFormat::ci8 && format != SampleFormat::ci4 && format != SampleFormat::cf16 &&
      format != SampleFormat::cf32) {
    throw UnsupportedError("channelize: cannot write " + std::string(name(format)) +
                           " spectra; known: ci8, ci4, cf16, cf32");
  }
}

math::WindowShape shape(Window window) {
  switch (window) {
    case Window::rectangular:
      return math::WindowShape::rectangular;
    case Window::hann:
      return math::WindowShape::hann;
    case Window::hamming:
      return math::WindowShape::hamming;
    case Window::blackman:
      return math::WindowShape::blackman;
    default:
      return math::WindowShape::kaiser;
  }
}

}  // namespace

std::int64_t transform_length(const Config& config) {
  return is_complex(config.layout.format) ? config.n_channels : 2 * config.n_channels;
}
std::int64_t filter_length(const Config& config) {
  return config.n_taps * transform_length(config);
}
std::int64_t step_length(const Config& config) {
  return config.step_samples > 0 ? config.step_samples : transform_length(config);
}

namespace detail {

Problem make_problem(const Config& config) {
  check_sizes(config);
  check_layout(config.layout);
  check_output(config.output);
  Problem p;
  p.config = config;
  p.complex_input = is_complex(config.layout.format);
  p.n_points = transform_length(config);
  p.reciprocal = 1 / static_cast<double>(p.n_points);
  p.n_filter = filter_length(config);
  p.step = step_length(config);
  p.sense = config.inverted_band ? -1 : 1;
  // s k' ascends with the sky frequency: k' = -K/2 .. K/2-1 (complex), 0 .. K/2-1 (real), reversed
  // when s = -1.
  if (p.complex_input) {
    p.zero_channel = config.inverted_band ? (p.n_points - 1) / 2 : p.n_points / 2;
  } else {
    p.zero_channel = config.inverted_band ? config.n_channels - 1 : 0;
  }
  p.filter =
      math::prototype_filter(shape(config.window), config.kaiser_beta, p.n_points, config.n_taps);
  return p;
}

std::int64_t bin_of_channel(const Problem& problem, std::int64_t channel) {
  const std::int64_t bin = problem.sense * (channel - problem.zero_channel) % problem.n_points;
  return bin < 0 ? bin + problem.n_points : bin;
}

}  // namespace detail

double channel_center_hz(const Config& config, std::int64_t channel) {
  const std::int64_t k = transform_length(config);
  std::int64_t zero = 0;
  if (is_complex(config.layout.format)) {
    zero = config.inverted_band ? (k - 1) / 2 : k / 2;
  } else if (config.inverted_band) {
    zero = config.n_channels - 1;
  }
  return config.reference_hz +
         config.sample_rate_hz * static_cast<double>(channel - zero) / static_cast<double>(k);
}

Cost cost(const Config& config) {
  const auto k = static_cast<double>(transform_length(config));
  const bool complex_input = is_complex(config.layout.format);
  Cost c;
  // Per complex output sample: FIR 4P, FFT 5 log2 K, phase, gain and rounding 14. A real transform
  // of K = 2C points yields C samples: half of 2 * 2P... = 4P again, and one complex transform of C
  // points with its untangling.
  c.useful_ops_per_sample = 4.0 * static_cast<double>(config.n_taps) +
                            5.0 * std::log2(complex_input ? k : k / 2) + 14.0 +
                            (complex_input ? 0 : 8.0);
  c.bytes_in_per_sample_x8 = bits_per_sample(config.layout.format) * (complex_input ? 1 : 2);
  c.bytes_out_per_sample = bytes_per_cell(config.output) / spectra_per_block(config.output);
  // Points of 16 lanes: two transform buffers, one stage of unpacked samples (cpu.cpp has the exact
  // sum).
  const std::int64_t spectra = 16 * spectra_per_block(SampleFormat::cf32) / 16;
  c.scratch_bytes = 4 * 8 * spectra * config.n_channels +
                    (64 * step_length(config) + filter_length(config)) *
                        (bits_per_sample(config.layout.format) > 16 ? 8 : 2);
  return c;
}

std::vector<std::string> available_implementations() {
  std::vector<std::string> names;
#ifdef RYLE_HAVE_CUDA
  if (cuda_unavailable_reason().empty()) {
    for (auto& each : cuda_implementations()) names.push_back(std::move(each));
  }
#endif
  for (const auto& set : detail::cpu_instruction_sets_here()) names.push_back("cpu:" + set);
  names.emplace_back("reference");
  return names;
}

std::unique_ptr<Channelizer> make_channelizer(Queue& queue, const Config& config) {
  const detail::Problem problem = detail::make_problem(config);
  const std::string chosen = choose_implementation(
      queue.back_end(), {"channelizer", config.implementation, "", available_implementations()});
#ifdef RYLE_HAVE_CUDA
  if (chosen.starts_with("cuda")) return make_cuda_channelizer(queue, config);
#endif
  if (chosen == "reference") return detail::make_reference(problem);
  return detail::make_cpu(queue, problem, std::string_view(chosen).substr(4));  // behind "cpu:"
}

}  // namespace ryle::channelize
