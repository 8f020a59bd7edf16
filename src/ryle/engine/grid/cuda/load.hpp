// SPDX-License-Identifier: BSD-3-Clause
// Values of a chunk on their way into the order of its places: what is absent becomes 0 here, so
// that nothing behind has to ask. Private to the engine.
#pragma once
#include <cstdint>

#include "ryle/engine/grid/cuda/host_device.hpp"

namespace ryle::grid::detail {

/// Channels of a chunk as they came. @shape [channel][sample of the chunk]
struct LoadView {
  std::int64_t n = 0;  ///< samples of the chunk
  int n_channels = 0;
  const float* values = nullptr;
  const std::uint8_t* flags = nullptr;
  const float* weights = nullptr;  ///< of each channel, or nullptr
};

/// Which channels of a sample are there, and which of those weigh 1: bit c each. Channels that no
/// one asked for count as both.
struct Presence {
  std::uint32_t valid = 0, plain = 0;
};

RYLE_HD inline bool is_finite(float v) { return v - v == 0; }

/// A value times its weight. Beyond the largest float it is that: infinity times the weight 0 of a
/// cell out of reach would be NaN there.
template <class Real>
RYLE_HD inline Real weighted_value(float u, float x) {
  const Real product = static_cast<Real>(u) * static_cast<Real>(x);
  constexpr Real kMax = static_cast<Real>(3.4028234663852886e38);
  if (sizeof(Real) == 4 && !(product - product == 0)) return product > 0 ? kMax : -kMax;
  return product;
}

/// @param own [kChannels] weights of the channels where they have any, else nullptr
template <class Real, int kChannels>
RYLE_HD inline Presence load_sample(const LoadView& from, std::int64_t sample, Real* values,
                                    float* own) {
  Presence p;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int c = 0; c < kChannels; ++c) {
    Real value = 0;
    float u = 1;
    bool here = true;
    if (c < from.n_channels) {
      const std::int64_t at = c * from.n + sample;
      const float x = from.values[at];
      here = is_finite(x);
      if (from.weights != nullptr) {
        u = from.weights[at];
        here = here && u > 0 && is_finite(u);
      }
      if (from.flags != nullptr && from.flags[at] != 0) here = false;
      if (here) value = from.weights == nullptr ? static_cast<Real>(x) : weighted_value<Real>(u, x);
    }
    values[c] = value;
    if (own != nullptr) own[c] = here ? u : 0;
    if (here) p.valid |= 1U << c;
    if (here && u == 1) p.plain |= 1U << c;
  }
  return p;
}

/// The shared weight of a sample: 0 where it does not count.
RYLE_HD inline float load_weight(float u) { return u > 0 && is_finite(u) ? u : 0; }

}  // namespace ryle::grid::detail
