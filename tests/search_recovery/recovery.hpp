// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/search.hpp"

/// Injected pulses: Gaussians integrated exactly over every sample and every channel (smearing),
/// and what could be recovered of them at best. Shares no code with the search.
namespace ryle::test {

/// The block of Magro 2014: 20 MHz at 408 MHz, 51.2 us with 1024 channels.
inline search::Band block_band(std::int64_t n_channels = 1024, double interval_s = 51.2e-6) {
  search::Band band;
  band.channel_width_hz = 20e6 / static_cast<double>(n_channels);
  for (std::int64_t c = 0; c < n_channels; ++c)
    band.center_hz.push_back(398e6 + (static_cast<double>(c) + 0.5) * band.channel_width_hz);
  band.sample_interval_s = interval_s;
  return band;
}

/// One pulse of unit area (samples) in every channel. Sample t covers [t - 1/2, t + 1/2).
struct Injection {
  double tick = 0;  ///< center at the highest channel
  double dm = 0;
  double fwhm = 1;  ///< samples
  double amplitude = 0;

  /// Calls body(t, p) for one channel.
  template <class Body>
  void walk(const search::Band& band, std::int64_t channel, const Body& body) const {
    const double sigma = fwhm / 2.3548200450309493;
    const double smear = std::max(band.smearing_samples(channel, dm), 1e-3);
    const double center = tick + band.delay_samples(channel, dm);
    const double half = 5 * sigma + 0.5 * smear + 0.5;
    const auto first = static_cast<std::int64_t>(std::floor(center - half));
    const auto last = static_cast<std::int64_t>(std::ceil(center + half));
    // Sweep of a top hat over a Gaussian, then mean over the sample: second differences of the
    // integral of its distribution function.
    const auto ramp = [&](double x) {
      const double z = x / sigma;
      return sigma * (z * 0.5 * std::erfc(-z * 0.7071067811865476) +
                      std::exp(-0.5 * z * z) * 0.3989422804014327);
    };
    const auto before = [&](double x) {
      return (ramp(x - center + 0.5 * smear) - ramp(x - center - 0.5 * smear)) / smear;
    };
    double below = before(static_cast<double>(first) - 0.5);
    for (std::int64_t t = first; t <= last; ++t) {
      const double above = before(static_cast<double>(t) + 0.5);
      body(t, above - below);
      below = above;
    }
  }

  /// sqrt(sum p^2) over all channels: the S/N of a matched filter per amplitude in noise of rms 1.
  double ideal(const search::Band& band) const {
    double sum = 0;
    for (std::int64_t c = 0; c < band.n_channels(); ++c)
      walk(band, c, [&](std::int64_t, double p) { sum += p * p; });
    return std::sqrt(sum);
  }
};

/// Best S/N over the ideal one without noise: nearest trials of a plan, integer delays, the boxcars
/// of the search.
inline double noise_free_recovery(const search::Band& band, const std::vector<double>& dms,
                                  const Injection& pulse, std::int64_t max_width) {
  const auto nearest = std::min_element(dms.begin(), dms.end(), [&](double a, double b) {
    return std::abs(a - pulse.dm) < std::abs(b - pulse.dm);
  });
  const auto middle = nearest - dms.begin();
  const auto widths = search::boxcar_widths(max_width);
  const auto lowest = std::max<std::ptrdiff_t>(0, middle - 2);
  const auto n_trials = static_cast<std::size_t>(
      std::min<std::ptrdiff_t>(std::ssize(dms) - 1, middle + 2) - lowest + 1);
  const auto reach = static_cast<std::int64_t>(8 * pulse.fwhm) + 64;
  const std::int64_t first = static_cast<std::int64_t>(pulse.tick) - reach;
  std::vector<std::vector<double>> sums(
      n_trials, std::vector<double>(static_cast<std::size_t>(2 * reach + 1)));
  double squares = 0;
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    std::vector<std::int64_t> shifts;
    for (std::size_t k = 0; k < n_trials; ++k)
      shifts.push_back(
          first + std::llround(band.delay_samples(c, dms[static_cast<std::size_t>(lowest) + k])));
    pulse.walk(band, c, [&](std::int64_t t, double p) {
      squares += p * p;
      for (std::size_t k = 0; k < n_trials; ++k)
        if (t >= shifts[k] && t - shifts[k] < std::ssize(sums[k]))
          sums[k][static_cast<std::size_t>(t - shifts[k])] += p;
    });
  }
  double best = 0;
  for (auto& sum : sums) {
    for (std::size_t t = 1; t < sum.size(); ++t) sum[t] += sum[t - 1];
    for (const std::int64_t w : widths)
      for (auto t = static_cast<std::size_t>(w); t < sum.size(); ++t)
        best = std::max(best, (sum[t] - sum[t - static_cast<std::size_t>(w)]) /
                                  std::sqrt(static_cast<double>(w * band.n_channels())));
  }
  return best / std::sqrt(squares);
}

/// Deviations in sigma to codes, as receivers give them. 8 bit: rne(96 + 16 x). 4 bit: 16 levels of
/// 1 / 2.983 sigma; 2 bit: 4 levels of 0.996 sigma; 1 bit: the sign. Loops without calls.
inline void quantize(float* x, std::int64_t n, int bits) {
  const auto each = [&](const auto& code) {
    for (std::int64_t k = 0; k < n; ++k) x[k] = code(x[k]);
  };
  const auto whole = [](float v) { return static_cast<float>(static_cast<int>(v)); };
  if (bits == 8) {
    constexpr float kRound = 12582912;  // 1.5 x 2^23: what is added to it is rounded to even
    each([](float v) { return (std::clamp(96 + 16 * v, 0.0f, 255.0f) + kRound) - kRound; });
  } else if (bits == 4) {
    each([&](float v) { return whole(std::clamp(8 + 2.983f * v, 0.0f, 15.0f)); });
  } else if (bits == 2) {
    each([&](float v) { return whole(std::clamp(2 + 1.004f * v, 0.0f, 3.0f)); });
  } else {
    each([](float v) { return v > 0 ? 1.0f : 0.0f; });
  }
}
inline float quantized(float x, int bits) {
  quantize(&x, 1, bits);
  return x;
}
/// S/N left of a weak signal: the root of eta of the quantizer table (one input of a product).
inline double quantizer_efficiency(int bits) {
  switch (bits) {
    case 8:
      return 1;
    case 4:
      return std::sqrt(0.98846);
    case 2:
      return std::sqrt(0.8812);
    default:
      return std::sqrt(0.6366);
  }
}

/// Fast normal deviates for recovery, not for tails beyond 4 sigma: a table of the quantiles.
class NoiseTable {
 public:
  NoiseTable() : values_(1 << 16) {
    for (std::size_t k = 0; k < values_.size() / 2; ++k) {
      const double u = (static_cast<double>(k) + 0.5) / static_cast<double>(values_.size());
      double z = -3;  // Newton on the distribution function
      for (int n = 0; n < 60; ++n) {
        const double f = 0.5 * std::erfc(-z * 0.7071067811865476) - u;
        z -= std::clamp(f / (0.3989422804014327 * std::exp(-0.5 * z * z)), -0.5, 0.5);
      }
      values_[2 * k] = static_cast<float>(z);
      values_[2 * k + 1] = static_cast<float>(-z);
    }
  }
  /// Fills n values from a key.
  void fill(float* to, std::int64_t n, std::uint64_t key) const {
    std::uint64_t s = key | 1;
    for (std::int64_t k = 0; k < n; k += 4) {
      s ^= s << 13, s ^= s >> 7, s ^= s << 17;  // xorshift64
      const std::uint64_t r = s * 0x2545F4914F6CDD1Du;
      for (std::int64_t j = 0; j < std::min<std::int64_t>(4, n - k); ++j)
        to[k + j] = values_[(r >> (16 * j)) & 65535];
    }
  }

 private:
  std::vector<float> values_;
};

}  // namespace ryle::test
