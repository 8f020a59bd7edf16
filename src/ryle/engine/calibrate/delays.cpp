// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/calibrate/delays.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::calibrate {
namespace {

/// Gains with what they count; channels without a gain count nothing.
struct Band {
  std::vector<cf64> values;  // times their weights
  std::vector<double> weights;
  double sum_weight = 0;
  std::int64_t n = 0;
};

/// The phase has a variance of 1 / weight, the gain itself one |gain|^2 times larger: amplitudes,
/// which noise changes, are in no weight of a gain.
Band weighted(std::span<const cf64> gains, std::span<const double> weights) {
  Band band;
  band.values.resize(gains.size());
  band.weights.resize(gains.size());
  for (std::size_t c = 0; c < gains.size(); ++c) {
    const double power = std::norm(gains[c]);
    if (!(power > 0) || !std::isfinite(power)) continue;
    const double weight = weights.empty() ? 1 : weights[c] / power;
    if (!(weight > 0) || !std::isfinite(weight)) continue;
    band.values[c] = weight * gains[c];
    band.weights[c] = weight;
    band.sum_weight += weight;
    ++band.n;
  }
  return band;
}

/// Turns a channel, of the highest peak of the zero-padded transform, between -1/2 and 1/2.
double turns_of_peak(const Band& band) {
  constexpr std::int64_t kPadding = 8;
  std::int64_t size = 1;
  while (size < kPadding * static_cast<std::int64_t>(band.values.size())) size *= 2;
  std::vector<cf64> spectrum(size);
  std::copy(band.values.begin(), band.values.end(), spectrum.begin());
  math::Fft(size).forward(spectrum.data());
  const auto peak =
      std::max_element(spectrum.begin(), spectrum.end(),
                       [](const cf64& a, const cf64& b) { return std::norm(a) < std::norm(b); }) -
      spectrum.begin();
  const double turns = static_cast<double>(peak) / static_cast<double>(size);
  return turns < 0.5 ? turns : turns - 1;
}

/// phase + 2 pi turns x, x = channel - middle.
struct Line {
  double middle = 0, turns = 0, phase_rad = 0;
  double x(std::size_t channel) const { return static_cast<double>(channel) - middle; }
  cf64 against(std::size_t channel) const {
    return std::polar(1.0, -phase_rad - 2 * kPi * turns * x(channel));
  }
};

/// One step of Newton's method on sum Re(values e^-i line), which is largest at the best line.
void improve(const Band& band, Line& line) {
  double gradient_0 = 0, gradient_1 = 0, h_00 = 0, h_01 = 0, h_11 = 0;
  for (std::size_t c = 0; c < band.values.size(); ++c) {
    const cf64 r = band.values[c] * line.against(c);
    const double x = line.x(c);
    gradient_0 += r.imag();
    gradient_1 += r.imag() * x;
    h_00 += r.real();
    h_01 += r.real() * x;
    h_11 += r.real() * x * x;
  }
  const double determinant = h_00 * h_11 - h_01 * h_01;
  if (!(determinant > 0)) return;
  line.phase_rad += (h_11 * gradient_0 - h_01 * gradient_1) / determinant;
  line.turns += (h_00 * gradient_1 - h_01 * gradient_0) / determinant / (2 * kPi);
}

}  // namespace

Delay fit_delay(std::span<const cf64> gains, std::span<const double> weights,
                double channel_width_hz) {
  const Band band = weighted(gains, weights);
  Delay fit;
  fit.n_used = band.n;
  if (band.n < 3 || !(channel_width_hz > 0)) return fit;
  Line line;
  line.middle = 0.5 * static_cast<double>(gains.size() - 1);
  line.turns = turns_of_peak(band);
  cf64 sum{};
  for (std::size_t c = 0; c < band.values.size(); ++c) sum += band.values[c] * line.against(c);
  line.phase_rad = std::arg(sum);
  constexpr int kSteps = 5;
  for (int step = 0; step < kSteps; ++step) improve(band, line);
  double in_phase = 0, across2 = 0, size = 0, mean_x = 0, mean_xx = 0;
  for (std::size_t c = 0; c < band.values.size(); ++c) {
    if (band.weights[c] == 0) continue;
    const cf64 r = band.values[c] * line.against(c);
    in_phase += r.real();
    across2 += r.imag() * r.imag() / band.weights[c];
    size += std::abs(r);
    mean_x += band.weights[c] * line.x(c) / band.sum_weight;
    mean_xx += band.weights[c] * line.x(c) * line.x(c) / band.sum_weight;
  }
  const double amplitude = in_phase / band.sum_weight;
  const double spread = mean_xx - mean_x * mean_x;  // of channel numbers, squared
  const double n = static_cast<double>(band.n);
  fit.coherence = size > 0 ? in_phase / size : 0;
  fit.delay_s = -line.turns / channel_width_hz;
  fit.phase_rad = std::remainder(line.phase_rad, 2 * kPi);
  if (!(amplitude > 0) || !(spread > 0)) return fit;
  const double variance =
      across2 / band.sum_weight / (amplitude * amplitude) * n / std::max(1.0, n - 2);
  fit.sigma_s = std::sqrt(variance / (n * spread)) / (2 * kPi) / channel_width_hz;
  fit.sigma_rad = std::sqrt(variance / n * (1 + mean_x * mean_x / spread));
  return fit;
}

}  // namespace ryle::calibrate
