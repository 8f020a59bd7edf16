// SPDX-License-Identifier: BSD-3-Clause
// The passes of the tree over rows on compute capability 9.0 (add_ring), and the launches of all
// passes. cuda/fdmt.cuh has equation, layout and what binds.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/search/cuda/fdmt.cuh"
#include "ryle/engine/search/cuda/fdmt_launch.cuh"

namespace ryle::search::detail::device_tree {
namespace {

constexpr int kRingThreads = 640;  // a warp for every group of rows, and four that only copy
static_assert(kRingThreads / 32 >= kTileRows / kGroupRows);
constexpr int kRingInputs = 128;
constexpr int kRingTiles = 8;

/// What a multiprocessor works on, and what comes next: the head of a tile comes four tiles ahead,
/// its list of inputs two, so that every warp has its few copies at hand.
struct RingBuffers {
  alignas(16) Input inputs[3][kRingInputs];
  Tile tiles[kRingTiles];
  int blocks[kRingTiles];  // of these tiles
  std::uint64_t full[2], empty[2];
};

/// The same sums by one thread block a multiprocessor, which works through the tiles: while it adds
/// the rows of one, those of the next are on their way to the other half of its shared memory.
class Ring {
 public:
  __device__ Ring(const Work& w, RingBuffers& buffers, unsigned memory, int n_work)
      : w_(w), ring_(buffers), memory_(memory), n_work_(n_work) {}

  __device__ bool has(int j) const { return work_of(j) < n_work_; }
  __device__ const Tile& head(int j) const { return ring_.tiles[j % kRingTiles]; }
  __device__ std::int64_t first_of(int j) const {
    return device_tree::first_of(w_, head(j), ring_.blocks[j % kRingTiles], kTileWords);
  }
  __device__ unsigned steps(int j) const { return rows(j) + w_.steps_at; }
  __device__ unsigned rows(int j) const { return memory_ + j % 2 * w_.shared_bytes; }
  __device__ void await(int j) const {
    cuda::await(&ring_.full[j % 2], static_cast<unsigned>(j / 2 % 2));
  }
  __device__ const Tile& tile_of(int j) const { return w_.tiles[work_of(j) % w_.n_tiles]; }
  __device__ void set_block(int j) const { ring_.blocks[j % kRingTiles] = work_of(j) / w_.n_tiles; }

  /// This warp reads no more rows of work j. @param taken of what this lane loaded last: an arrival
  /// does not wait for loads on their way, which the next copy could overtake; it waits for this
  __device__ void leave(int j, int lane, unsigned taken) const {
    const unsigned all = __ballot_sync(0xffffffffu, taken != 0);
    const unsigned none = all & static_cast<unsigned>(n_work_ >> 30);  // works are fewer
    if (lane == 0) cuda::arrive(&ring_.empty[j % 2] + none);
  }
  /// The rows of work j, the list of work j + 2, the head of work j + 4, once all warps have left
  /// work j - 2.
  __device__ void copy(int j, int warp, int lane) const {
    if (!has(j)) return;
    if (j >= 2) cuda::await(&ring_.empty[j % 2], static_cast<unsigned>((j / 2 - 1) % 2));
    const unsigned barrier = cuda::shared_address(&ring_.full[j % 2]);
    const Tile& tile = head(j);
    const std::int64_t first = first_of(j);
    const bool rows_wanted = first >= 0;
    const auto* lists = static_cast<const Input*>(w_.inputs);
    const int n_threads = static_cast<int>(blockDim.x);
    if (threadIdx.x == 0) {
      const Tile& next = head(j + 2);
      const unsigned list_bytes =
          has(j + 2) && next.n_inputs <= kRingInputs ? 16 * next.n_inputs : 0;
      const unsigned head_bytes = has(j + 4) ? sizeof(Tile) : 0;
      set_block(j + 4);
      cuda::arrive_and_expect(barrier, (rows_wanted ? static_cast<unsigned>(tile.n_bytes) : 0u) +
                                           list_bytes + head_bytes);
      if (head_bytes > 0)
        cuda::copy_bulk(cuda::shared_address(&ring_.tiles[(j + 4) % kRingTiles]), &tile_of(j + 4),
                        head_bytes, barrier);
      if (list_bytes > 0)
        cuda::copy_bulk(cuda::shared_address(ring_.inputs[(j + 2) % 3]), lists + next.first_input,
                        list_bytes, barrier);
    }
    if (!rows_wanted) return;
    // Longer lists are read where they lie.
    const bool listed = tile.n_inputs <= kRingInputs;
    const auto* in = static_cast<const unsigned*>(w_.in) + first;
    for (int k = warp + n_threads / 32 * lane; k < tile.n_inputs; k += n_threads) {
      const Input input = listed ? ring_.inputs[j % 3][k] : lists[tile.first_input + k];
      cuda::copy_bulk(rows(j) + input.offset, in + input.row * w_.in_stride + input.time,
                      16 * input.n_pieces, barrier);
    }
    if (static_cast<int>(threadIdx.x) == n_threads - 1)
      cuda::copy_bulk(steps(j), w_.steps + tile.first_step, tile.group_bytes * tile.n_groups,
                      barrier);
  }
  /// The heads of the first four works, and the lists of two.
  __device__ void begin() const {
    if (threadIdx.x < 4) {
      const int j = static_cast<int>(threadIdx.x);
      if (j < 2) cuda::begin_barrier(&ring_.full[j], 1);
      if (j < 2) cuda::begin_barrier(&ring_.empty[j], blockDim.x / 32);
      cuda::barriers_begun();
      if (has(j)) ring_.tiles[j] = tile_of(j);
      set_block(j);
    }
    for (int j = 0; j < 2; ++j) {
      if (!has(j) || tile_of(j).n_inputs > kRingInputs) continue;
      for (int k = static_cast<int>(threadIdx.x); k < tile_of(j).n_inputs;
           k += static_cast<int>(blockDim.x))
        ring_.inputs[j][k] = static_cast<const Input*>(w_.inputs)[tile_of(j).first_input + k];
    }
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // copies come over these
    __syncthreads();
  }

 private:
  __device__ int work_of(int j) const {
    return static_cast<int>(blockIdx.x) + j * static_cast<int>(gridDim.x);
  }

  const Work& w_;
  RingBuffers& ring_;
  unsigned memory_;
  int n_work_;
};

/// Of the last group of rows of a warp: the next tile is asked for while it is made.
struct RingHooks {
  const Ring& ring;
  int j, warp, lane;
  bool last;
  __device__ __forceinline__ void between() const {
    if (last) ring.copy(j + 1, warp, lane);
    __syncwarp();
  }
  __device__ __forceinline__ void left(unsigned taken) const {
    if (last) ring.leave(j, lane, taken);
  }
};

/// A pass over rows: the sums of add_tiles() by one thread block of 20 warps a multiprocessor,
/// which works through all tiles. Its shared memory has two halves: while the rows of one tile are
/// added, the copy engine brings those of the next to the other half (full barriers). A warp that
/// has its rows goes on with the next tile, and asks for its part of the tile after next when all
/// have left the half it comes to (empty barriers).
__global__ void __launch_bounds__(kRingThreads, 1) add_ring(const Work w, int n_work) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ __align__(16) RingBuffers buffers;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Ring ring(w, buffers, cuda::shared_address(memory), n_work);
  if (w.zeros >= 0)
    for (int k = threadIdx.x; k < 2 * kZeroBytes / 4; k += static_cast<int>(blockDim.x))
      reinterpret_cast<unsigned*>(memory + k % 2 * w.shared_bytes + w.zeros)[k / 2] = 0;
  ring.begin();
  ring.copy(0, warp, lane);
#pragma unroll 1
  for (int j = 0; ring.has(j); ++j) {
    ring.await(j);
    const Tile& tile = ring.head(j);
    const std::int64_t first = ring.first_of(j);
    const int n_groups = first < 0 ? 0 : tile.n_groups, n_warps = static_cast<int>(blockDim.x / 32);
    RingHooks hooks{ring, j, warp, lane, true};
    if (warp >= n_groups) {
      hooks.between();
      hooks.left(0);
    }
#pragma unroll 1
    for (int group = warp; group < n_groups; group += n_warps) {
      hooks.last = group + n_warps >= n_groups;
      make_rows(w, ring.steps(j) + tile.group_bytes * group, ring.rows(j), first, lane, hooks);
    }
  }
#endif
}

/// Blocks of a tile, `longest` words beyond the root's.
int times_of(const Work& work, std::int64_t longest, int words) {
  return static_cast<int>((work.half + longest + words - 1) / words);
}

}  // namespace

void allow_memory() {
  cuda::allow_all_shared(add_ring);
  cuda::allow_all_shared(add_tiles);
  for (auto* kernel : {add_codes<true, true>, add_codes<false, true>, add_codes<true, false>,
                       add_codes<false, false>})
    cuda::allow_all_shared(kernel);
}

int max_ring_bytes() { return cuda::max_dynamic_shared(add_ring) / 2 / 128 * 128; }
int max_tile_bytes() { return cuda::max_dynamic_shared(add_tiles); }
int paired_tile_bytes(int device) {
  const int all = cuda::attribute_of(device, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  const int reserved = cuda::attribute_of(device, cudaDevAttrReservedSharedMemoryPerBlock);
  return (all / 2 - reserved) / 128 * 128;
}

void launch_ring(Work work, std::int64_t longest, int n_blocks, cudaStream_t stream) {
  work.shared_bytes = (work.shared_bytes + 127) / 128 * 128;
  work.n_times = times_of(work, longest, kTileWords);
  const auto n_work = static_cast<unsigned>(work.n_times * work.n_tiles);
  add_ring<<<std::min(n_work, static_cast<unsigned>(n_blocks)), kRingThreads,
             2 * static_cast<std::size_t>(work.shared_bytes), stream>>>(work,
                                                                        static_cast<int>(n_work));
  RYLE_CUDA_LAUNCHED("add_ring");
}

void launch_tiles(Work work, std::int64_t longest, cudaStream_t stream) {
  work.n_times = times_of(work, longest, kTileWords);
  add_tiles<<<static_cast<unsigned>(work.n_times * work.n_tiles), kTileThreads,
              static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("add_tiles");
}

void launch_codes(Work work, bool quads, std::int64_t longest, cudaStream_t stream) {
  const bool aligned =
      work.in_stride % 16 == 0 && reinterpret_cast<std::uintptr_t>(work.in) % 16 == 0;
  const auto kernel = aligned ? (quads ? add_codes<true, true> : add_codes<false, true>)
                              : (quads ? add_codes<true, false> : add_codes<false, false>);
  work.n_times = times_of(work, longest, kCodeTileWords);
  kernel<<<static_cast<unsigned>(work.n_times * work.n_tiles), kCodeThreads,
           static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("add_codes");
}

}  // namespace ryle::search::detail::device_tree
