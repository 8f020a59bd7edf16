// SPDX-License-Identifier: BSD-3-Clause
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/grid/cuda/kernels.cuh"

namespace ryle::grid::detail {
namespace {

// clang-format off
// Kernels that find which samples each tile may see. A sample's key is its place in a tree over the six faces of a
// cube; samples of a chunk (2^20) are sorted by key, and a tile looks at the ranges of keys that its support touches.
//
//   array               axes            type         content
//   ranges (of a map)   [range]         KeyRange     made once for a map; those of tile t begin at begin[t]
//   x, y, z             [sample]        double       unit vectors of the directions
//   key, rows           [sample]        uint32       sorted together: key, and number of the sample
//   ranges (of a chunk) [range]         SampleRange  first sample in the order of keys, and how many
//   candidates, n_jobs  [tile]          uint32       samples to look at, and jobs of at most 2,048 of them
//
// Each kernel has one thread for a tile, a sample or a range, and no shared memory. After the last copy of a
// run, sorting, loading and gridding the last chunk take 0.3 ms (docs/decisions/0014).
// clang-format on
constexpr int kThreads = 256;
unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }
__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

/// How many ranges of keys each tile has. A thread a tile.
__global__ void count_ranges(MapView map, double chord, int order, std::uint32_t* n_ranges) {
  const std::int64_t t = thread_index();
  if (t >= map.n_tiles) return;
  KeyRanges walk(map.tiles[t], chord, order);
  std::uint32_t n = 0;
  for (KeyRange r{}; walk.next(r);) ++n;
  n_ranges[t] = n;
}

/// The ranges of each tile, from begin[tile] on. A thread a tile.
__global__ void write_ranges(MapView map, double chord, int order, const std::uint32_t* begin,
                             KeyRange* ranges) {
  const std::int64_t t = thread_index();
  if (t >= map.n_tiles) return;
  KeyRanges walk(map.tiles[t], chord, order);
  KeyRange* to = ranges + begin[t];
  for (KeyRange r{}; walk.next(r);) *to++ = r;
}

/// Longitude and latitude to unit vectors. A thread a sample.
__global__ void directions(const double* longitude_deg, const double* latitude_deg, std::int64_t n,
                           double* x, double* y, double* z) {
  const std::int64_t i = thread_index();
  if (i >= n) return;
  double p[3];
  direction_of(longitude_deg[i], latitude_deg[i], p);
  x[i] = p[0];
  y[i] = p[1];
  z[i] = p[2];
}

/// The key of each direction; positions that are no numbers are counted. A thread a sample.
__global__ void find_keys(KeySpan keys, const double* x, const double* y, const double* z,
                          std::int64_t n, std::uint32_t* key, std::uint32_t* rows,
                          ChunkCounts* counts) {
  const std::int64_t i = thread_index();
  if (i >= n) return;
  if (!(x[i] == x[i])) atomicAdd(&counts->bad_positions, 1ULL);
  key[i] = key_in(keys, x[i], y[i], z[i]);
  rows[i] = static_cast<std::uint32_t>(i);
}

/// Directions into the order of keys. A thread a sample.
__global__ void gather_directions(const double* x, const double* y, const double* z,
                                  const std::uint32_t* row, std::int64_t n, double* to_x,
                                  double* to_y, double* to_z) {
  const std::int64_t i = thread_index();
  if (i >= n) return;
  const std::uint32_t r = row[i];
  to_x[i] = x[r];
  to_y[i] = y[r];
  to_z[i] = z[r];
}

/// The samples of a chunk that each range of keys holds, by bisection. A thread a range.
__global__ void sample_ranges(const std::uint32_t* sorted, std::int64_t n, KeySpan keys,
                              const KeyRange* ranges, std::int64_t n_ranges, SampleRange* to) {
  const std::int64_t r = thread_index();
  if (r < n_ranges) to[r] = samples_of(sorted, static_cast<std::uint32_t>(n), keys, ranges[r]);
}

/// How many samples all ranges hold. A thread a range.
__global__ void count_reached(const std::uint32_t* sorted, std::int64_t n, KeySpan keys,
                              const KeyRange* ranges, std::int64_t n_ranges, ChunkCounts* counts) {
  const std::int64_t r = thread_index();
  if (r >= n_ranges) return;
  const auto found = samples_of(sorted, static_cast<std::uint32_t>(n), keys, ranges[r]).n;
  if (found > 0) atomicAdd(&counts->reached, static_cast<unsigned long long>(found));
}

/// Numbers the candidates of each tile and counts its jobs. A thread a tile, and one behind the
/// last.
__global__ void number_tiles(SampleRange* ranges, const std::uint32_t* range_begin,
                             std::int64_t n_tiles, std::uint32_t* candidates, std::uint32_t* n_jobs,
                             ChunkCounts* counts) {
  const std::int64_t t = thread_index();
  if (t == n_tiles) n_jobs[t] = 0;
  if (t >= n_tiles) return;
  const std::uint32_t n = number_candidates(ranges, range_begin[t], range_begin[t + 1]);
  candidates[t] = n;
  n_jobs[t] = n_jobs_of(n);
  if (n > 0) atomicAdd(&counts->candidates, static_cast<unsigned long long>(n));
}

/// The jobs of each tile, from job_begin[tile] on. A thread a tile.
__global__ void write_all_jobs(const std::uint32_t* candidates, const std::uint32_t* job_begin,
                               std::int64_t n_tiles, Job* jobs) {
  const std::int64_t t = thread_index();
  if (t < n_tiles) write_jobs(static_cast<std::uint32_t>(t), candidates[t], jobs + job_begin[t]);
}

}  // namespace

void launch_count_ranges(const MapView& map, double chord, int order, std::uint32_t* n_ranges,
                         cudaStream_t stream) {
  if (map.n_tiles == 0) return;
  count_ranges<<<blocks_for(map.n_tiles), kThreads, 0, stream>>>(map, chord, order, n_ranges);
  RYLE_CUDA_LAUNCHED("count_ranges");
}

void launch_write_ranges(const MapView& map, double chord, int order, const std::uint32_t* begin,
                         KeyRange* ranges, cudaStream_t stream) {
  if (map.n_tiles == 0) return;
  write_ranges<<<blocks_for(map.n_tiles), kThreads, 0, stream>>>(map, chord, order, begin, ranges);
  RYLE_CUDA_LAUNCHED("write_ranges");
}

void launch_directions(const double* longitude_deg, const double* latitude_deg, std::int64_t n,
                       double* x, double* y, double* z, cudaStream_t stream) {
  directions<<<blocks_for(n), kThreads, 0, stream>>>(longitude_deg, latitude_deg, n, x, y, z);
  RYLE_CUDA_LAUNCHED("directions");
}

void launch_keys(const KeySpan& keys, const double* x, const double* y, const double* z,
                 std::int64_t n, std::uint32_t* key, std::uint32_t* rows, ChunkCounts* counts,
                 cudaStream_t stream) {
  find_keys<<<blocks_for(n), kThreads, 0, stream>>>(keys, x, y, z, n, key, rows, counts);
  RYLE_CUDA_LAUNCHED("find_keys");
}

void launch_gather_directions(const double* x, const double* y, const double* z,
                              const std::uint32_t* row, std::int64_t n, double* to_x, double* to_y,
                              double* to_z, cudaStream_t stream) {
  gather_directions<<<blocks_for(n), kThreads, 0, stream>>>(x, y, z, row, n, to_x, to_y, to_z);
  RYLE_CUDA_LAUNCHED("gather_directions");
}

void sort_by_key(Buffer<std::byte>& scratch, const std::uint32_t* key, std::uint32_t* sorted,
                 const std::uint32_t* row, std::uint32_t* sorted_row, std::int64_t n, int bits,
                 cudaStream_t stream) {
  std::size_t n_bytes = 0;
  RYLE_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, n_bytes, key, sorted, row, sorted_row, n, 0,
                                            bits, stream));
  void* const memory = at_least(scratch, static_cast<std::int64_t>(n_bytes));
  RYLE_CUDA(cub::DeviceRadixSort::SortPairs(memory, n_bytes, key, sorted, row, sorted_row, n, 0,
                                            bits, stream));
}

void sum_before(Buffer<std::byte>& scratch, const std::uint32_t* from, std::uint32_t* to,
                std::int64_t n, cudaStream_t stream) {
  std::size_t n_bytes = 0;
  RYLE_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, n_bytes, from, to, n, stream));
  void* const memory = at_least(scratch, static_cast<std::int64_t>(n_bytes));
  RYLE_CUDA(cub::DeviceScan::ExclusiveSum(memory, n_bytes, from, to, n, stream));
}

void launch_sample_ranges(const std::uint32_t* sorted, std::int64_t n, const KeySpan& keys,
                          const KeyRange* ranges, std::int64_t n_ranges, SampleRange* to,
                          cudaStream_t stream) {
  if (n_ranges == 0) return;
  sample_ranges<<<blocks_for(n_ranges), kThreads, 0, stream>>>(sorted, n, keys, ranges, n_ranges,
                                                               to);
  RYLE_CUDA_LAUNCHED("sample_ranges");
}

void launch_count_reached(const std::uint32_t* sorted, std::int64_t n, const KeySpan& keys,
                          const KeyRange* ranges, std::int64_t n_ranges, ChunkCounts* counts,
                          cudaStream_t stream) {
  if (n_ranges == 0) return;
  count_reached<<<blocks_for(n_ranges), kThreads, 0, stream>>>(sorted, n, keys, ranges, n_ranges,
                                                               counts);
  RYLE_CUDA_LAUNCHED("count_reached");
}

void launch_number_candidates(SampleRange* ranges, const std::uint32_t* range_begin,
                              std::int64_t n_tiles, std::uint32_t* candidates,
                              std::uint32_t* n_jobs, ChunkCounts* counts, cudaStream_t stream) {
  number_tiles<<<blocks_for(n_tiles + 1), kThreads, 0, stream>>>(ranges, range_begin, n_tiles,
                                                                 candidates, n_jobs, counts);
  RYLE_CUDA_LAUNCHED("number_tiles");
}

void launch_write_jobs(const std::uint32_t* candidates, const std::uint32_t* job_begin,
                       std::int64_t n_tiles, Job* jobs, cudaStream_t stream) {
  if (n_tiles == 0) return;
  write_all_jobs<<<blocks_for(n_tiles), kThreads, 0, stream>>>(candidates, job_begin, n_tiles,
                                                               jobs);
  RYLE_CUDA_LAUNCHED("write_all_jobs");
}

}  // namespace ryle::grid::detail
