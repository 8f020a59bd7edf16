// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/image.hpp"

namespace ryle::image::test {

/// Small generator with a fixed seed (splitmix64), so that the tests do not hang on a library's
/// random numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform(double low, double high) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return low + (high - low) * static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

struct Source {
  double l = 0, m = 0, flux = 1;
};

/// V of point sources on every baseline of a random array, channels of one baseline adjacent;
/// positions in wavelengths at the first channel. `height` makes the array non-coplanar.
inline std::vector<Sample> observe(const std::vector<Source>& sources, int n_antennas,
                                   int n_channels, double extent, double height,
                                   std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<double> x, y, z;
  for (int a = 0; a < n_antennas; ++a) {
    x.push_back(random.uniform(-extent / 2, extent / 2));
    y.push_back(random.uniform(-extent / 2, extent / 2));
    z.push_back(random.uniform(-height / 2, height / 2));
  }
  std::vector<Sample> samples;
  for (int j = 0; j < n_antennas; ++j) {
    for (int i = 0; i < j; ++i) {
      for (int c = 0; c < n_channels; ++c) {
        const double scale = 1 + 0.001 * c;
        Sample s;
        s.u = (x[i] - x[j]) * scale;
        s.v = (y[i] - y[j]) * scale;
        s.w = (z[i] - z[j]) * scale;
        for (const auto& source : sources) {
          const double n = std::sqrt(1 - source.l * source.l - source.m * source.m);
          s.visibility +=
              std::polar(source.flux, 2 * kPi * (s.u * source.l + s.v * source.m + s.w * (n - 1)));
        }
        s.weight = 1;
        samples.push_back(s);
      }
    }
  }
  return samples;
}

}  // namespace ryle::image::test
