// SPDX-License-Identifier: BSD-3-Clause
// The map and the samples on the device.
#include <algorithm>
#include <bit>

#include "ryle/engine/grid/cuda/engine.cuh"

namespace ryle::grid::detail {
namespace {

// The host's copy may go when this returns.
template <class T>
void upload(Queue& queue, Buffer<T>& to, const std::vector<T>& from) {
  const auto n = static_cast<std::int64_t>(from.size());
  to = Buffer<T>(std::max<std::int64_t>(1, n), MemorySpace::device);
  if (n == 0) return;
  copy_bytes(queue, to.data(), from.data(), n * static_cast<std::int64_t>(sizeof(T)));
  queue.synchronize();
}

}  // namespace

DeviceMap::DeviceMap(Queue& queue, const WarpTiling& tiling, const WarpTiling& all,
                     const PairTables& tables, std::int64_t n_cells)
    : function_(tables.function) {
  upload(queue, tiles_, tiling.tiles);
  upload(queue, cells_, tiling.cells);
  upload(queue, x_, tiling.x);
  upload(queue, y_, tiling.y);
  upload(queue, z_, tiling.z);
  upload(queue, cubic_, tables.cubic);
  upload(queue, rows_, tables.rows);
  function_.cubic = cubic_.data();
  function_.rows = rows_.data();
  view_ = {tiles_.data(), static_cast<std::int64_t>(tiling.tiles.size()),
           cells_.data(), x_.data(),
           y_.data(),     z_.data(),
           n_cells};
  keys_.order = tiling.order;
  std::vector<KeyRange> ranges;
  if (all.tiles.size() != tiling.tiles.size()) {
    Buffer<WarpTile> tiles;
    upload(queue, tiles, all.tiles);
    ranges =
        find_ranges(queue, tiles.data(), static_cast<std::int64_t>(all.tiles.size()), all.chord);
  }
  auto own = find_ranges(queue, tiles_.data(), view_.n_tiles, tiling.chord);
  ranges = union_of(ranges.empty() ? std::move(own) : std::move(ranges));
  if (!ranges.empty()) {
    keys_.first = ranges.front().begin;
    keys_.span = ranges.back().end - keys_.first;
  }
  upload(queue, all_ranges_, ranges);
  n_all_ranges_ = static_cast<std::int64_t>(ranges.size());
}

// What stays in range_begin_ and ranges_ is that of the last call.
std::vector<KeyRange> DeviceMap::find_ranges(Queue& queue, const WarpTile* tiles,
                                             std::int64_t n_tiles, double chord) {
  const auto stream = cuda::stream_of(queue);
  MapView view;
  view.tiles = tiles;
  view.n_tiles = n_tiles;
  Buffer<std::uint32_t> counts(n_tiles + 1, MemorySpace::device);  // 0 behind the last
  range_begin_ = Buffer<std::uint32_t>(n_tiles + 1, MemorySpace::device);
  Buffer<std::byte> scratch;
  launch_count_ranges(view, chord, keys_.order, counts.data(), stream);
  sum_before(scratch, counts.data(), range_begin_.data(), n_tiles + 1, stream);
  std::uint32_t n = 0;
  copy_bytes(queue, &n, range_begin_.data() + n_tiles, sizeof n);
  queue.synchronize();
  ranges_ = Buffer<KeyRange>(n, MemorySpace::device);
  launch_write_ranges(view, chord, keys_.order, range_begin_.data(), ranges_.data(), stream);
  std::vector<KeyRange> ranges(n);
  copy_bytes(queue, ranges.data(), ranges_.data(), ranges_.bytes());
  queue.synchronize();
  return ranges;
}

ChunkSorter::ChunkSorter(int device)
    : queue_(Queue::cuda(device)), last_(1, MemorySpace::pinned), counts_(1, MemorySpace::device) {}

void ChunkSorter::forget_counts() {
  RYLE_CUDA(cudaMemsetAsync(counts_.data(), 0, sizeof(ChunkCounts), cuda::stream_of(queue_)));
}

void ChunkSorter::read_counts(PlanMetadata& metadata) {
  ChunkCounts counts{};
  copy_bytes(queue_, &counts, counts_.data(), sizeof counts);
  queue_.synchronize();
  metadata.bad_positions = static_cast<std::int64_t>(counts.bad_positions);
  metadata.out_of_reach =
      metadata.n_samples - metadata.bad_positions - static_cast<std::int64_t>(counts.reached);
  metadata.n_candidates = static_cast<std::int64_t>(counts.candidates);
}

void ChunkSorter::sort(const DeviceMap& map, const double* x, const double* y, const double* z,
                       DeviceChunk& c) {
  const auto stream = cuda::stream_of(queue_);
  const std::int64_t n = c.n, n_tiles = map.view().n_tiles, n_ranges = map.ranges().size();
  at_least(key_, n);
  at_least(sorted_, n);
  at_least(rows_, n);
  at_least(candidates_, n_tiles + 1);
  at_least(n_jobs_, n_tiles + 1);
  launch_keys(map.keys(), x, y, z, n, key_.data(), rows_.data(), counts_.data(), stream);
  sort_by_key(scratch_, key_.data(), sorted_.data(), rows_.data(), at_least(c.row, n), n,
              static_cast<int>(std::bit_width(map.keys().span)), stream);
  launch_gather_directions(x, y, z, c.row.data(), n, at_least(c.x, n), at_least(c.y, n),
                           at_least(c.z, n), stream);
  launch_sample_ranges(sorted_.data(), n, map.keys(), map.ranges().data(), n_ranges,
                       at_least(c.ranges, n_ranges), stream);
  launch_count_reached(sorted_.data(), n, map.keys(), map.all_ranges().data(), map.n_all_ranges(),
                       counts_.data(), stream);
  launch_number_candidates(c.ranges.data(), map.range_begin(), n_tiles, candidates_.data(),
                           n_jobs_.data(), counts_.data(), stream);
  sum_before(scratch_, n_jobs_.data(), at_least(c.job_begin, n_tiles + 1), n_tiles + 1, stream);
  copy_bytes(queue_, last_.data(), c.job_begin.data() + n_tiles, sizeof(std::uint32_t));
  queue_.synchronize();
  c.n_jobs = last_[0];
  launch_write_jobs(candidates_.data(), c.job_begin.data(), n_tiles,
                    at_least(c.jobs, std::int64_t{c.n_jobs}), stream);
  sorted.record(queue_);
}

}  // namespace ryle::grid::detail
