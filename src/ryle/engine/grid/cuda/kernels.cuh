// SPDX-License-Identifier: BSD-3-Clause
// Kernels of the CUDA gridder: which thread runs which function of cuda/chunk.hpp, cuda/load.hpp
// and cuda/job.hpp. Private to the engine.
#pragma once
#include <cuda_runtime_api.h>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/grid/cuda/args.hpp"
#include "ryle/engine/grid/cuda/groups.hpp"

namespace ryle::grid::detail {

/// A buffer that grows and keeps its memory. @return its data
template <class T>
T* at_least(Buffer<T>& buffer, std::int64_t n, MemorySpace space = MemorySpace::device) {
  if (buffer.size() < n) {
    buffer = {};
    buffer = Buffer<T>(n, space);
  }
  return buffer.data();
}

// --- cuda/geometry.cu ---

/// @param n_ranges [tile] how many ranges of keys each tile has
void launch_count_ranges(const MapView& map, double chord, int order, std::uint32_t* n_ranges,
                         cudaStream_t stream);
/// @param begin [tile + 1] where those of each tile go
void launch_write_ranges(const MapView& map, double chord, int order, const std::uint32_t* begin,
                         KeyRange* ranges, cudaStream_t stream);

void launch_directions(const double* longitude_deg, const double* latitude_deg, std::int64_t n,
                       double* x, double* y, double* z, cudaStream_t stream);

/// Counted on the device, added to.
struct ChunkCounts {
  unsigned long long bad_positions, reached, candidates;
};
/// @param rows 0, 1, 2, ...
void launch_keys(const KeySpan& keys, const double* x, const double* y, const double* z,
                 std::int64_t n, std::uint32_t* key, std::uint32_t* rows, ChunkCounts* counts,
                 cudaStream_t stream);
void launch_gather_directions(const double* x, const double* y, const double* z,
                              const std::uint32_t* row, std::int64_t n, double* to_x, double* to_y,
                              double* to_z, cudaStream_t stream);
/// Stable, by the lowest `bits` of the keys.
void sort_by_key(Buffer<std::byte>& scratch, const std::uint32_t* key, std::uint32_t* sorted,
                 const std::uint32_t* row, std::uint32_t* sorted_row, std::int64_t n, int bits,
                 cudaStream_t stream);
/// to[i] = sum of from[0 .. i - 1], n of them.
void sum_before(Buffer<std::byte>& scratch, const std::uint32_t* from, std::uint32_t* to,
                std::int64_t n, cudaStream_t stream);
void launch_sample_ranges(const std::uint32_t* sorted, std::int64_t n, const KeySpan& keys,
                          const KeyRange* ranges, std::int64_t n_ranges, SampleRange* to,
                          cudaStream_t stream);
/// Samples within the union of all ranges.
void launch_count_reached(const std::uint32_t* sorted, std::int64_t n, const KeySpan& keys,
                          const KeyRange* ranges, std::int64_t n_ranges, ChunkCounts* counts,
                          cudaStream_t stream);
/// @param n_jobs [tile + 1], 0 behind the last tile
void launch_number_candidates(SampleRange* ranges, const std::uint32_t* range_begin,
                              std::int64_t n_tiles, std::uint32_t* candidates,
                              std::uint32_t* n_jobs, ChunkCounts* counts, cudaStream_t stream);
void launch_write_jobs(const std::uint32_t* candidates, const std::uint32_t* job_begin,
                       std::int64_t n_tiles, Job* jobs, cudaStream_t stream);

// --- cuda/gather.cu ---

void launch_load_weights(const float* weights, const std::uint32_t* row, std::int64_t n, float* to,
                         cudaStream_t stream);

template <class Real>
void launch_load(int width, const LoadArgs<Real>& args, cudaStream_t stream);

template <class Real>
void launch_grid(int width, const GridArgs<Real>& args, cudaStream_t stream);

template <class Real>
void launch_own(const OwnArgs<Real>& args, cudaStream_t stream);

void launch_reduce(const ReduceArgs& args, cudaStream_t stream);

void launch_planes(const PlaneArgs& args, cudaStream_t stream);

void launch_own_planes(const OwnPlaneArgs& args, cudaStream_t stream);

}  // namespace ryle::grid::detail
