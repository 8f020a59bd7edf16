// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/level_correction.hpp"

#include <cmath>
#include <numbers>

#include "ryle/engine/correlate/van_vleck.hpp"

namespace ryle::pipeline {
namespace {

// Fewer say nothing of thresholds; a wrong share moves k in second order with one bit.
constexpr std::int64_t kFewestSamples = 64;

int bits_per_part(const SampleLayout& layout) {
  if (layout.format == SampleFormat::ci5) return 5;
  return bits_per_sample(layout.format) / (is_complex(layout.format) ? 2 : 1);
}

double phi(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

/// x with P(below x) = p, by bisection: the distribution function is monotonic.
double normal_quantile(double p) {
  double low = -9;
  double high = 9;
  for (int k = 0; k < 60; ++k) {
    const double x = 0.5 * (low + high);
    (0.5 * std::erfc(-x / std::numbers::sqrt2) < p ? low : high) = x;
  }
  return 0.5 * (low + high);
}

struct Codes {
  double variance = 0;
  double k = 0;  ///< sum of height phi(threshold / rms) over the steps between codes
};

// The share of every code tells the thresholds in units of the rms, whatever set them.
Codes read_codes(const channelize::LevelStatistics& levels) {
  double total = 0;
  double sum = 0;
  double squares = 0;
  for (int c = 0; c < 256; ++c) {
    const auto n = static_cast<double>(levels.histogram[c]);
    total += n;
    sum += n * (c - 128);
    squares += n * (c - 128) * (c - 128);
  }
  Codes codes;
  if (total == 0) return codes;
  codes.variance = squares / total - sum / total * (sum / total);
  double below = 0;
  int previous = 0;
  for (int c = 0; c < 256; ++c) {
    const auto n = static_cast<double>(levels.histogram[c]);
    if (n == 0) continue;
    if (below > 0) codes.k += (c - previous) * phi(normal_quantile(below / total));
    below += n;
    previous = c;
  }
  return codes;
}

}  // namespace

bool is_coarse(const SampleLayout& layout) {
  return layout.format != SampleFormat::f32 && layout.format != SampleFormat::cf32 &&
         layout.format != SampleFormat::cf16 && bits_per_part(layout) <= 5;
}

correlate::SamplerGain sampler_gain(const channelize::LevelStatistics& levels,
                                    const SampleLayout& layout) {
  const Codes codes = read_codes(levels);
  if (!(codes.k > 0) || !(codes.variance > 0)) return {};
  double rms = std::sqrt(codes.variance);
  if (bits_per_part(layout) > 2) {
    const correlate::Quantizer steps{(std::int64_t{1} << bits_per_part(layout)) - 1, false, true};
    rms = correlate::detail::rms_of_power(steps, codes.variance);
    if (!(rms > 0)) return {};
  }
  return {rms / codes.k, rms * rms / codes.variance};
}

std::vector<correlate::SamplerGain> sampler_gains(
    std::span<const channelize::LevelStatistics> levels, const SampleLayout& layout) {
  std::vector<correlate::SamplerGain> gains;
  if (!is_coarse(layout)) return gains;
  for (const auto& s : levels) {
    gains.push_back(s.n_samples < kFewestSamples ? correlate::SamplerGain{}
                                                 : sampler_gain(s, layout));
  }
  return gains;
}

correlate::Quantizer four_bit_codes() { return {15, false, true}; }

bool has_four_bits(const std::string& format) {
  return format == "tbf" || format == "tbx" || format == "chips";
}

}  // namespace ryle::pipeline
