// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/cuda/memory.hpp"

#include <algorithm>

#include "ryle/engine/grid/cuda/chunk.hpp"
#include "ryle/engine/grid/cuda/groups.hpp"
#include "ryle/engine/grid/cuda/job.hpp"
#include "ryle/engine/grid/cuda/make.hpp"

namespace ryle::grid {

DeviceMemory cuda_memory(const DeviceLoad& load) {
  using namespace detail;
  constexpr std::int64_t kTilesOfSample = 6, kRangesOfTile = 20, kSlots = 3, kStates = 2;
  const CudaTuning tuning;
  const std::int64_t n = load.n_samples, chunk = std::min(n, tuning.chunk_samples);
  const std::int64_t n_chunks = (n + tuning.chunk_samples - 1) / tuning.chunk_samples;
  const auto groups = channel_groups(0, load.n_channels, tuning.channels);
  const std::int64_t width = groups.empty() ? 1 : group_width(groups.front().n);
  const std::int64_t real = load.precision == Precision::f64 ? 8 : 4;
  const std::int64_t n_tiles = (load.n_cells + kWarp - 1) / kWarp;
  const std::int64_t n_rows = width + kMomentRows;
  const std::int64_t jobs = n_tiles + kTilesOfSample * chunk / kJobSamples;
  const std::int64_t sums = kStates * n_rows * 8 * load.n_cells;
  DeviceMemory m;
  const auto item = [&m](const char* what, std::int64_t bytes) {
    m.items.emplace_back(what, bytes);
    m.total_bytes += bytes;
  };
  // Directions and rows by place; which channels are there, of two groups.
  item("samples by place", (24 + 4 + 4 * kStates + (load.weights ? 4 : 0)) * n);
  if (load.channel_weights) item("weights of channels by place", kStates * 4 * width * n);
  // Directions as they came, keys and rows twice, and what the sort holds.
  item("sorting a chunk", (24 + 12 + 16) * chunk);
  item("values on their way",
       (kSlots * (4 + (load.flags ? 1 : 0) + (load.channel_weights ? 4 : 0)) * width +
        real * width + 4) *
           chunk);
  item("cells and their ranges",
       (24 + 8) * kWarp * n_tiles +
           (static_cast<std::int64_t>(sizeof(WarpTile)) +
            kRangesOfTile * static_cast<std::int64_t>(sizeof(KeyRange))) *
               n_tiles +
           n_chunks * kRangesOfTile * static_cast<std::int64_t>(sizeof(SampleRange)) * n_tiles);
  // Sums of their own for channels with absent values, eight at a time, four rows each.
  const std::int64_t own_rows = 32;
  item("sums of jobs", jobs * std::max(n_rows, own_rows) * kWarp * 8);
  item("sums", sums);
  item("more where values are absent", kStates * ((width + 7) / 8) * own_rows * 8 * load.n_cells);
  m.pinned_bytes = sums + kStates * 4 * n_tiles;
  return m;
}

}  // namespace ryle::grid
