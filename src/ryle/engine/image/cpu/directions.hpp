// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/cpu/plan.hpp"

namespace ryle::image::detail {

/// Directions of the Fourier-sum paths in blocks of kDirectionsPerBlock; the last block repeats its
/// last direction. Not movable after blocks() was used.
class CpuDirections {
 public:
  CpuDirections(const AllSkyConfig& config, const CpuRoles& roles, const CpuOutput& output);
  std::int64_t n_blocks() const { return n_blocks_; }
  const double* l(std::int64_t block) const { return l_.data() + block * kDirectionsPerBlock; }
  const double* m(std::int64_t block) const { return m_.data() + block * kDirectionsPerBlock; }
  const double* t(std::int64_t block) const { return t_.data() + block * kDirectionsPerBlock; }
  /// Positions over the wavelength, about the first antenna. @shape [place][x, y, z]
  std::vector<double> waves(double frequency_hz) const;

 private:
  std::int64_t n_blocks_ = 0;
  std::vector<double> l_, m_, t_;  // t = n
  std::vector<double> enu_m_;
};

}  // namespace ryle::image::detail
