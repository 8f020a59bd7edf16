// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/cpu/pairs.hpp"

namespace ryle::image::detail {

/// Visibilities with the correlated functions of complex apertures, without tables of K_ab.
/// @eq U(d) = sum_b sum_s H_b(s + d) conj(w_b(s)), H_b(r) = sum_a V_ab w_a(r)
/// Cost: A^2 k^2 + A k^2 times the cells of the array, against A^2 (2k-1)^2 k^2 of the plain sum.
class UvApertures {
 public:
  UvApertures() = default;
  UvApertures(const AllSkyConfig& config, const CpuRoles& roles);
  /// cells [G/2 + 1][G][8] of the planes in DFT order. @shape products [pair][8]
  void grid(const AllSkyConfig& config, const CpuRoles& roles, std::int64_t channel,
            const std::vector<PairSource>& pairs, const std::vector<float>& products,
            float* cells) const;

 private:
  struct Channel {
    std::vector<std::int64_t> x, y;  // [place] first cell in the box
    std::vector<float> weights;      // [place][pol][k * k][re, im]
    std::int64_t box_x = 0, box_y = 0;
  };
  struct Plane;
  void add_product(const Channel& channel, const CpuRoles& roles, std::int64_t k,
                   const std::vector<cf32>& matrix, int pol_a, int pol_b, Plane& plane) const;

  std::vector<Channel> channels_;
};

}  // namespace ryle::image::detail
