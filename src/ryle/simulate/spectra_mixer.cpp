// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/spectra_mixer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ryle/core/random.hpp"

namespace ryle::simulate::detail {
namespace {

constexpr int kQuantiles = 32768;     // of the positive half
constexpr std::int64_t kSpectra = 4;  // mixed together: amplitudes are loaded once for all

// Quantile of the normal distribution by Newton's method on erfc.
double normal_quantile(double upper_tail) {
  double x = std::sqrt(-2 * std::log(upper_tail));
  for (int i = 0; i < 50; ++i) {
    const double error = 0.5 * std::erfc(x / std::numbers::sqrt2) - upper_tail;
    const double slope = -std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    const double step = error / slope;
    x -= std::clamp(step, -0.5, 0.5);
    if (std::abs(step) < 1e-13) break;
  }
  return x;
}

// |x| of a part of a complex Gaussian with E|z|^2 = 1; scaled so that the variance is 1/2 exactly.
const std::vector<float>& quantiles() {
  static const std::vector<float> table = [] {
    std::vector<double> values(kQuantiles);
    double sum2 = 0;
    for (int k = 0; k < kQuantiles; ++k) {
      values[k] = normal_quantile((k + 0.5) / (2 * kQuantiles));
      sum2 += values[k] * values[k];
    }
    const double scale = std::sqrt(0.5 * kQuantiles / sum2);
    std::vector<float> scaled(kQuantiles);
    for (int k = 0; k < kQuantiles; ++k) scaled[k] = static_cast<float>(values[k] * scale);
    return scaled;
  }();
  return table;
}

std::uint8_t quantise(float re, float im, std::int64_t& sum2, std::int64_t& clipped) {
  int parts[2];
  const float values[2] = {re, im};
  for (int p = 0; p < 2; ++p) {
    const long rounded = std::lrint(values[p]);  // to nearest even
    const long code = std::clamp(rounded, -8L, 7L);
    clipped += code != rounded;
    sum2 += code * code;
    parts[p] = static_cast<int>(code);
  }
  return static_cast<std::uint8_t>((parts[0] << 4) | (parts[1] & 15));
}

using Lanes = float __attribute__((vector_size(16)));

}  // namespace

void two_gaussians(std::uint64_t bits, float out[4]) {
  const float* table = quantiles().data();
  for (int k = 0; k < 4; ++k) {
    const auto part = static_cast<std::uint32_t>(bits >> (16 * k));
    const float value = table[part & 0x7FFF];
    out[k] = (part & 0x8000) != 0 ? -value : value;
  }
}

Mixer::Mixer(const Mix& mix) {
  // Inputs that are reached by the same waves come together: sorted by the first wave that reaches
  // them, which is the pol for sources and (row, pol) for a Cholesky factor.
  const auto reaches = [&](std::int64_t wave, std::int64_t input) {
    return mix.at(wave, input) != cf32(0);
  };
  std::vector<std::int64_t> order(mix.n_inputs), key(order.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < mix.n_inputs; ++i) {
    while (key[i] < mix.n_waves && !reaches(key[i], i)) ++key[i];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return key[a] < key[b]; });
  n_groups_ = (mix.n_inputs + kLanes - 1) / kLanes;
  input_of_column_.assign(n_groups_ * kLanes, -1);
  std::copy(order.begin(), order.end(), input_of_column_.begin());
  noise_.assign(input_of_column_.size(), 0);
  for (std::int64_t column = 0; column < mix.n_inputs; ++column) {
    noise_[column] = mix.noise_rms[order[column]];
  }
  for (std::int64_t w = 0; w < mix.n_waves; ++w) {
    std::int64_t first = mix.n_inputs, last = 0;
    for (std::int64_t column = 0; column < mix.n_inputs; ++column) {
      if (!reaches(w, order[column])) continue;
      first = std::min(first, column);
      last = column + 1;
    }
    Wave wave{first / kLanes, (last + kLanes - 1) / kLanes, amplitudes_.size()};
    if (last == 0) wave.first_group = wave.last_group = 0;
    amplitudes_.resize(amplitudes_.size() +
                       static_cast<std::size_t>(2 * kLanes) * (wave.last_group - wave.first_group));
    for (std::int64_t column = first; column < last; ++column) {
      float* group = amplitudes_.data() + wave.offset +
                     (column / kLanes - wave.first_group) * 2 * kLanes + column % kLanes;
      group[0] = mix.at(w, order[column]).real();
      group[kLanes] = mix.at(w, order[column]).imag();
    }
    waves_.push_back(wave);
  }
}

// One group of columns, kSpectra spectra. z: [wave][spectrum][re, im].
void Mixer::mix_group(std::int64_t group, const float* z, float* re, float* im) const {
  Lanes sum_re[kSpectra] = {}, sum_im[kSpectra] = {};
  for (const auto& wave : waves_) {
    const float* value = z + (&wave - waves_.data()) * 2 * kSpectra;
    if (group < wave.first_group || group >= wave.last_group) continue;
    const float* amplitude =
        amplitudes_.data() + wave.offset + (group - wave.first_group) * 2 * kLanes;
    Lanes a_re, a_im;
    __builtin_memcpy(&a_re, amplitude, sizeof a_re);
    __builtin_memcpy(&a_im, amplitude + kLanes, sizeof a_im);
    for (std::int64_t t = 0; t < kSpectra; ++t) {
      const float z_re = value[2 * t], z_im = value[2 * t + 1];
      sum_re[t] += a_re * z_re - a_im * z_im;
      sum_im[t] += a_re * z_im + a_im * z_re;
    }
  }
  __builtin_memcpy(re, sum_re, sizeof sum_re);
  __builtin_memcpy(im, sum_im, sizeof sum_im);
}

void Mixer::run(std::uint64_t seed, std::int64_t first_key, std::int64_t key_step, std::int64_t n,
                std::uint8_t* out, std::int64_t stride_bytes, Levels& levels) const {
  const auto n_waves = static_cast<std::int64_t>(waves_.size());
  std::vector<float> z(static_cast<std::size_t>(n_waves + 1) * 2 * kSpectra);
  float re[kSpectra][kLanes], im[kSpectra][kLanes], pair[4];
  for (std::int64_t t0 = 0; t0 < n; t0 += kSpectra) {
    const std::int64_t n_here = std::min(kSpectra, n - t0);
    std::uint64_t noise_key[kSpectra] = {};
    for (std::int64_t t = 0; t < n_here; ++t) {
      const auto key = static_cast<std::uint64_t>(first_key + (t0 + t) * key_step);
      const std::uint64_t wave_key = combine(seed, 1, key);
      noise_key[t] = combine(seed, 2, key);
      for (std::int64_t w = 0; w < n_waves; w += 2) {
        two_gaussians(mix64(wave_key + static_cast<std::uint64_t>(w)), pair);
        for (int k = 0; k < 2; ++k) {  // one more than there are when odd: z has the room
          z[((w + k) * kSpectra + t) * 2] = pair[2 * k];
          z[((w + k) * kSpectra + t) * 2 + 1] = pair[2 * k + 1];
        }
      }
    }
    for (std::int64_t group = 0; group < n_groups_; ++group) {
      mix_group(group, z.data(), re[0], im[0]);
      for (std::int64_t t = 0; t < n_here; ++t) {
        std::uint8_t* spectrum = out + (t0 + t) * stride_bytes;
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          const std::int64_t column = group * kLanes + lane;
          const std::int64_t input = input_of_column_[column];
          if (lane % 2 == 0) {
            two_gaussians(mix64(noise_key[t] + static_cast<std::uint64_t>(column)), pair);
          }
          if (input < 0) continue;
          const float* noise = pair + 2 * (lane % 2);
          spectrum[input] = quantise(re[t][lane] + noise_[column] * noise[0],
                                     im[t][lane] + noise_[column] * noise[1], levels.sum2[input],
                                     levels.clipped[input]);
        }
      }
    }
  }
}

}  // namespace ryle::simulate::detail
