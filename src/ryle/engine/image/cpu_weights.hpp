// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/image/all_sky.hpp"
#include "ryle/engine/image/cpu_plan.hpp"

namespace ryle::image::detail {

/// Pairs of valid inputs behind the products of voltages.
/// @eq W_pq = sum_t (sum_a valid_ap) (sum_b valid_bq) - [autos removed] sum_a valid_ap valid_aq
class FieldWeights {
 public:
  FieldWeights(const AllSkyConfig& config, const CpuRoles& roles);
  /// Which slots count, from the gains by slot. @shape gains [channel][slot]
  void set_used(const std::vector<cf32>& gains);
  /// @shape weights [bin][3]
  void add(const FieldInput& input, std::vector<double>& weights);

 private:
  void add_masked(const FieldInput& input, std::int64_t channel, double* weights) const;
  void add_whole(std::int64_t n_spectra, std::int64_t channel, double* weights) const;

  const CpuRoles& roles_;
  std::int64_t n_channels_, channels_per_bin_;
  bool remove_autos_;
  std::vector<std::uint8_t> used_;     // [channel][slot]
  std::vector<std::int64_t> same_as_;  // [channel] first channel with the same used slots
};

}  // namespace ryle::image::detail
