// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/search/cuda/dedisperse.cuh"
#include "ryle/engine/search/search.hpp"

/// Private to the CUDA dedisperser.
namespace ryle::search::detail {

/// Tiles of trials whose rows fit shared memory, as cuda/dedisperse.cuh describes them, and the
/// trials that are left to the plain kernel.
struct SharedPlan {
  int trials_per_warp = 0;
  std::vector<TileHead> tiles;
  std::vector<std::int32_t> stage_at;  ///< one more than stages
  std::vector<std::uint8_t> stages;
  struct Run {
    std::int64_t first, n;
  };
  std::vector<Run> direct;
};
SharedPlan plan_shared(const DedisperseConfig& config);

}  // namespace ryle::search::detail
