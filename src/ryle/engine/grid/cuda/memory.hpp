// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ryle/engine/grid/grid.hpp"

namespace ryle::grid {

/// What one device holds at most, before it holds it; estimated where it depends on where samples
/// lie: a sample is taken to matter to six tiles.
struct DeviceMemory {
  std::vector<std::pair<std::string, std::int64_t>> items;  ///< @unit bytes
  std::int64_t total_bytes = 0;
  std::int64_t pinned_bytes = 0;  ///< page-locked memory of the host for it
};
struct DeviceLoad {
  std::int64_t n_samples = 0;  ///< of a plan
  std::int64_t n_cells = 0;
  std::int64_t n_channels = 1;  ///< of this device
  Precision precision = Precision::f32;
  bool flags = false, weights = false;
  bool channel_weights = false;  ///< of all channels, in place of weights
};
DeviceMemory cuda_memory(const DeviceLoad& load);

}  // namespace ryle::grid
