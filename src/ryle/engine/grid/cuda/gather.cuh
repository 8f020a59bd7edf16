// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Kernels that load, grid, reduce and finish. They compile for the host, too, where tests run them with their
// barriers (tests/support/simt). Private to the engine.
//   value(cell, channel) = sum_s w(s, cell) u_s x_s / sum_s w(s, cell) u_s,   w: the convolution function
//
//   array       axes                                      type            content
//   a.values    [place][width]                            float, double   samples in the order of their keys
//   a.u         [place]                                   float           weights of samples; nullptr: all 1
//   a.valid,    [place]                                   uint32          bit for each channel: there; there and of
//     a.plain                                                             weight 1
//   map.cells   [tile][32 lanes]                          int64           cell of the map, -1 = none
//   chunk.jobs  [job]                                     Job             tile, and up to 2,048 of its candidates
//   a.partial   [job][width + 4 moments][32 lanes]        double          sums of a job
//   a.sums      [width + 4 moments][cell]                 double          sums of all chunks
//
// Order: load_values brings a group of up to twelve channels into the order of the chunk, grid_jobs sums jobs,
// reduce_jobs adds the jobs of each tile in their order, planes divides. own_jobs and own_planes do the same
// for the moments of single channels where samples are absent.
//
// What binds (docs/decisions/0014, one H200, page-locked memory): the copy of values to the device. Case A with
// 50 channels takes 12.0 ms, of which the copy alone takes 11.2; kernels run beside it.
// clang-format on
#pragma once
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/grid/cuda/args.hpp"
#include "ryle/engine/grid/cuda/finish.hpp"

namespace ryle::grid::detail {

constexpr int kThreads = 256;
constexpr int kWarpsPerBlock = 4;
constexpr unsigned kAllLanes = 0xffffffffU;

__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

/// Weights of samples into the order of the chunk. A thread a place.
__global__ void load_weights(const float* weights, const std::uint32_t* row, std::int64_t n,
                             float* to) {
  const std::int64_t i = thread_index();
  if (i < n) to[i] = load_weight(weights[row[i]]);
}

/// Values of a group of channels into the order of the chunk, with what is there of each. A thread
/// a place.
template <class Real, int kChannels>
__global__ void load_values(LoadArgs<Real> a) {
  const std::int64_t i = thread_index();
  if (i >= a.from.n) return;
  Real values[kChannels];
  float own[kChannels];
  const Presence p = load_sample<Real, kChannels>(a.from, a.row[i], values, own);
  if constexpr (sizeof(Real) == 4 && kChannels % 4 == 0) {
    auto* const to = reinterpret_cast<float4*>(a.values + i * kChannels);
#pragma unroll
    for (int c = 0; c < kChannels / 4; ++c)
      to[c] = float4{values[4 * c], values[4 * c + 1], values[4 * c + 2], values[4 * c + 3]};
  } else {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) a.values[i * kChannels + c] = values[c];
  }
  if (a.own != nullptr) {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) a.own[i * kChannels + c] = own[c];
  }
  a.valid[i] = p.valid;
  a.plain[i] = p.plain;
}

/// Samples of one warp that may reach some cell of its tile, until there is a batch of them.
template <class Real>
struct SampleRing {
  Staged<Real> staged[2 * kWarp];
  std::uint32_t place[2 * kWarp];
};

template <class Real, int kChannels>
struct GridShared {
  SampleRing<Real> rings[kWarpsPerBlock];
  alignas(16) Real values[kWarpsPerBlock][kWarp * kChannels];
  double totals[kWarpsPerBlock][(kChannels + kMomentRows) * kWarp];
};
template <class Real>
struct OwnShared {
  SampleRing<Real> rings[kWarpsPerBlock];
};

/// A warp's way through the candidates of its job.
template <class Real>
class Candidates {
 public:
  __device__ Candidates(SampleRing<Real>& ring, const MapView& map, const ChunkView& chunk,
                        const Job& job, const float* u, int lane)
      : ring_(ring),
        tile_(map.tiles[job.tile]),
        chunk_(chunk),
        job_(job),
        u_(u),
        box_(box_of<Real>(tile_)),
        lane_(lane),
        cursor_(chunk.range_begin[job.tile]),
        end_(chunk.range_begin[job.tile + 1]) {}

  /// The next samples of the ring: [first, first + n), n <= kWarp, in their order; false after the
  /// last ones. Those before them have been used by all lanes.
  /// @param bits of places, or nullptr @param all loses what those of its samples do not have
  __device__ bool next(int& first, int& n, const std::uint32_t* bits, std::uint32_t& all) {
    if (n_ > 0 && taken_) {
      const int used = n_ < kWarp ? n_ : kWarp;
      n_ -= used;
      head_ ^= kWarp;
    }
    while (n_ < kWarp && base_ < job_.n) {
      Staged<Real> s = nobody<Real>();
      std::uint32_t place = 0;
      if (base_ + lane_ < job_.n) {
        place = place_of(chunk_.ranges, end_, job_.first + base_ + lane_, cursor_);
        s = stage<Real>(tile_, chunk_, u_, place);
      }
      const bool near = is_near(box_, s);
      const unsigned lanes = __ballot_sync(kAllLanes, near);
      if (near) {
        const int at = (head_ + n_ + __popc(lanes & ((1U << lane_) - 1))) % (2 * kWarp);
        ring_.staged[at] = s;
        ring_.place[at] = place;
        if (bits != nullptr) all &= bits[place];
      }
      n_ += __popc(lanes);
      base_ += kWarp;
    }
    __syncwarp();
    taken_ = true;
    first = head_;
    n = n_ < kWarp ? n_ : kWarp;
    return n > 0;
  }

 private:
  SampleRing<Real>& ring_;
  const WarpTile& tile_;
  const ChunkView& chunk_;
  const Job job_;
  const float* u_;
  const TileBox<Real> box_;
  int lane_;
  std::uint32_t cursor_, end_, base_ = 0;
  int head_ = 0, n_ = 0;
  bool taken_ = false;
};

template <class Real, int kChannels>
__device__ __forceinline__ void read_row(const Real* from, Real (&row)[kChannels]) {
  if constexpr (sizeof(Real) == 4 && kChannels % 4 == 0) {
#pragma unroll
    for (int c = 0; c < kChannels; c += 4) {
      const float4 v = *reinterpret_cast<const float4*>(from + c);
      row[c] = v.x;
      row[c + 1] = v.y;
      row[c + 2] = v.z;
      row[c + 3] = v.w;
    }
  } else {
#pragma unroll
    for (int c = 0; c < kChannels; ++c) row[c] = from[c];
  }
}

// Rows of the samples at `place` into shared memory, by the whole warp.
template <class Real, int kChannels>
__device__ __forceinline__ void read_rows(const Real* from, const std::uint32_t* place, int n,
                                          int lane, Real* to) {
  if constexpr (sizeof(Real) == 4 && kChannels % 4 == 0) {
    constexpr int kFours = kChannels / 4;
    const auto* const fours = reinterpret_cast<const float4*>(from);
    for (int i = lane; i < n * kFours; i += kWarp)
      reinterpret_cast<float4*>(to)[i] =
          fours[static_cast<std::int64_t>(place[i / kFours]) * kFours + i % kFours];
  } else {
    for (int i = lane; i < n * kChannels; i += kWarp)
      to[i] = from[static_cast<std::int64_t>(place[i / kChannels]) * kChannels + i % kChannels];
  }
}

/// Sums one job: a warp a job, a lane a cell, up to twelve channels in registers. The warp goes
/// through the candidates of the job 32 at a time and puts those aside that lie near the tile's box
/// of cells (SampleRing in shared memory). When it has 32, it brings their values to shared memory,
/// and every lane adds each sample that its cell reaches. Short sums go into double after
/// kFlushBatches batches. Warps never wait for each other.
template <class Real, int kChannels, Weighing kWeighing>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp) grid_jobs(GridArgs<Real> a) {
  auto& shared = cuda::shared<GridShared<Real, kChannels>>();
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + warp;
  if (number >= a.chunk.n_jobs) return;  // whole warps: there is no barrier of the block
  SampleRing<Real>& ring = shared.rings[warp];
  Real* const values = shared.values[warp];
  double* const totals = shared.totals[warp];
  const Job job = a.chunk.jobs[number];
  const WarpTile& tile = a.map.tiles[job.tile];
  const std::int64_t slot = static_cast<std::int64_t>(job.tile) * kWarp + lane;
  const LaneCell<Real> cell =
      make_cell<Real>(tile, a.map.cells[slot] >= 0, a.map.x[slot], a.map.y[slot], a.map.z[slot]);
  Candidates<Real> candidates(ring, a.map, a.chunk, job, a.u, lane);
  LaneSums<Real, kChannels> sums{};
  std::uint32_t complete = ~std::uint32_t{0};
  int n_batches = 0;
  for (int begin, n; candidates.next(begin, n, a.plain, complete);) {
    if (n_batches > 0 && n_batches % kFlushBatches == 0)
      flush(sums, totals, lane, n_batches == kFlushBatches);
    ++n_batches;
    read_rows<Real, kChannels>(a.values, ring.place + begin, n, lane, values);
    __syncwarp();
#pragma unroll 2
    for (int i = 0; i < n; ++i) {
      const Staged<Real> s = ring.staged[begin + i];
      Real w;
      const bool in =
          reach<Real, kWeighing>(tile, a.function, cell, s, a.chunk, ring.place[begin + i], w);
      if (kWeighing != Weighing::gauss && !in) continue;
      Real row[kChannels];
      read_row<Real, kChannels>(values + i * kChannels, row);
      add(sums, in, w, s.u, row);
    }
    __syncwarp();
  }
  finish_job(sums, totals, a.partial + number * ((kChannels + kMomentRows) * kWarp), lane,
             n_batches <= kFlushBatches);
  complete |= ~((1U << kChannels) - 1);
  for (int with = kWarp / 2; with > 0; with /= 2)
    complete &= __shfl_xor_sync(kAllLanes, complete, with);
  if (lane == 0 && complete != ~std::uint32_t{0}) atomicAnd(&a.complete[job.tile], complete);
}

/// The same for the moments of single channels, kOwnChannels at a time, in tiles where something is
/// absent.
template <class Real, Weighing kWeighing>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarp) own_jobs(OwnArgs<Real> a) {
  auto& shared = cuda::shared<OwnShared<Real>>();
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + warp;
  if (number >= a.chunk.n_jobs) return;
  const Job job = a.chunk.jobs[number];
  if (a.complete[job.tile] == ~std::uint32_t{0}) return;
  SampleRing<Real>& ring = shared.rings[warp];
  const WarpTile& tile = a.map.tiles[job.tile];
  const std::int64_t slot = static_cast<std::int64_t>(job.tile) * kWarp + lane;
  const LaneCell<Real> cell =
      make_cell<Real>(tile, a.map.cells[slot] >= 0, a.map.x[slot], a.map.y[slot], a.map.z[slot]);
  Candidates<Real> candidates(ring, a.map, a.chunk, job, a.u, lane);
  double* const to = a.partial + number * (kMomentRows * kOwnChannels * kWarp);
  LaneOwn<Real> sums{};
  std::uint32_t complete = 0;
  int n_batches = 0;
  for (int begin, n; candidates.next(begin, n, nullptr, complete);) {
    if (n_batches > 0 && n_batches % kFlushBatches == 0)
      flush(sums, to, lane, n_batches == kFlushBatches);
    ++n_batches;
    for (int i = 0; i < n; ++i) {
      const Staged<Real> s = ring.staged[begin + i];
      const std::uint32_t place = ring.place[begin + i];
      Real w;
      if (reach<Real, kWeighing>(tile, a.function, cell, s, a.chunk, place, w))
        add_own(sums, w, s.u, slab_of(a.valid[place], a.first, a.width),
                a.own == nullptr ? nullptr
                                 : a.own + static_cast<std::int64_t>(place) * a.width + a.first);
    }
    __syncwarp();
  }
  flush(sums, to, lane, n_batches <= kFlushBatches);
}

/// Adds the partial sums of a tile's jobs to the map, in the order of jobs. A warp a tile, a lane a
/// cell.
__global__ void reduce_jobs(ReduceArgs a) {
  const std::int64_t i = thread_index();
  const std::int64_t tile = i / kWarp;
  if (tile >= a.map.n_tiles) return;
  const std::uint32_t begin = a.job_begin[tile], end = a.job_begin[tile + 1];
  if (begin == end) return;
  if (a.complete != nullptr && a.complete[tile] == ~std::uint32_t{0}) return;
  const std::int64_t cell = a.map.cells[i];
  if (cell < 0) return;
  for (int row = 0; row < a.n_rows; ++row)
    a.sums[row * a.map.n_cells + cell] +=
        total(a.partial, a.n_rows, begin, end, row, static_cast<int>(i % kWarp));
}

/// Sums to the planes of a map: value, weight, count; NaN where too little was seen. A thread a
/// cell.
__global__ void planes(PlaneArgs a) {
  const std::int64_t i = thread_index();
  if (i >= a.n_cells) return;
  const double weight = a.moments[i], magnitude = a.moments[2 * a.n_cells + i],
               count = a.moments[3 * a.n_cells + i];
  const bool here = shows(count, weight, magnitude, a.min_count, a.min_weight);
  for (int c = 0; c < a.n_channels; ++c)
    a.values[c * a.n_cells + i] =
        here ? static_cast<float>(a.weighted[c * a.n_cells + i] / weight) : nanf("");
  if (a.weight != nullptr) a.weight[i] = here ? static_cast<float>(weight) : 0;
  if (a.count != nullptr)
    a.count[i] = here ? static_cast<std::int32_t>(count < 2147483647.0 ? count : 2147483647.0) : 0;
}

/// The planes of cells in tiles that are not complete, from each channel's own moments. A warp a
/// tile, a lane a cell.
__global__ void own_planes(OwnPlaneArgs a) {
  const std::int64_t i = thread_index();
  const std::int64_t tile = i / kWarp;
  if (tile >= a.map.n_tiles) return;
  const std::uint32_t complete = a.complete[tile];
  const std::int64_t cell = a.map.cells[i];
  if (cell < 0) return;
  const std::int64_t n_cells = a.map.n_cells;
  for (int c = 0; c < a.plane.n_channels; ++c) {
    if ((complete >> c & 1U) != 0) continue;
    const double* const m =
        a.own + (c / kOwnChannels * kMomentRows * kOwnChannels + c % kOwnChannels) * n_cells + cell;
    constexpr int kRow = kOwnChannels;
    const bool here = shows(m[3 * kRow * n_cells], m[0], m[2 * kRow * n_cells], a.plane.min_count,
                            a.plane.min_weight);
    a.plane.values[c * n_cells + cell] =
        here ? static_cast<float>(a.plane.weighted[c * n_cells + cell] / m[0]) : nanf("");
  }
}

}  // namespace ryle::grid::detail
