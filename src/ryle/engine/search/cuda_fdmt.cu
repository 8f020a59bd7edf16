// SPDX-License-Identifier: BSD-3-Clause
// The tree on the device: each pass brings the rows of a node's parts to shared memory and adds
// them as packed 16-bit numbers (sums fit: no carry between lanes). Two rows at a time (codes:
// four) follow a list of steps, each a load of shared memory that is added to all of them that
// begin in it.
#include <algorithm>
#include <utility>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/search/cuda_copy.cuh"
#include "ryle/engine/search/cuda_fdmt.cuh"

namespace ryle::search::detail {
namespace {

constexpr int kWarps = kMergeThreads / 32;
constexpr int kRingThreads = 1024;
constexpr int kBeyond_bytes = 128;  // words of a warp behind the last of a row
constexpr int kCodeThreads = 256;
constexpr int kCodeWarps = kCodeThreads / 32;
constexpr int kSumWords = kMergeTimes / 2 / 32;  // of a lane
constexpr int kCodeWords = kCodeTimes / 4 / 32;
constexpr int kStepWords = 4;  // of a lane, codes that are added step by step
constexpr int kCodeShares = kCodeWords / kStepWords;

__device__ __forceinline__ void fetched() {
  wait_all();
  __syncthreads();
}

__device__ __forceinline__ void store_sums(const MergeWork& w, int row, std::int64_t t,
                                           uint2 sums) {
  std::uint16_t* to = w.out + row * w.out_stride + t;
  if (w.padded) {
    *reinterpret_cast<uint2*>(to) = sums;
    return;
  }
  const unsigned v[4] = {sums.x & 0xffff, sums.x >> 16, sums.y & 0xffff, sums.y >> 16};
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (t + k < w.n_outputs) to[k] = static_cast<std::uint16_t>(v[k]);
}

__device__ __forceinline__ unsigned shared_word(unsigned address) {
  unsigned word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

/// Packed sums of a group: rows at an even start, and those half a word later, summed as they lie
/// and moved once.
struct GroupSums {
  unsigned even[kGroupRows][kSumWords] = {}, odd[kGroupRows][kSumWords] = {};
  unsigned behind[kGroupRows] = {};  // the word behind the last, in lane 0

  /// Steps `a` and `b` of one kind (kTwo) or `a` alone.
  template <int kKind, bool kTwo>
  __device__ __forceinline__ void add(unsigned a, unsigned b) {
    constexpr StepRows kRows = merge_rows(kKind);
    unsigned words[kSumWords], more[kSumWords];
#pragma unroll
    for (int i = 0; i < kSumWords; ++i) {
      words[i] = shared_word(a + 128 * i);
      more[i] = kTwo ? shared_word(b + 128 * i) : 0;
    }
#pragma unroll
    for (int r = kRows.first; r < kRows.split; ++r)
#pragma unroll
      for (int i = 0; i < kSumWords; ++i) even[r][i] += words[i] + more[i];
    if constexpr (kRows.split < kRows.end) {
      // Of the other lanes it does not matter what lies there.
      unsigned word = shared_word(a + 128 * kSumWords);
      if (kTwo) word += shared_word(b + 128 * kSumWords);
#pragma unroll
      for (int r = kRows.split; r < kRows.end; ++r) {
#pragma unroll
        for (int i = 0; i < kSumWords; ++i) odd[r][i] += words[i] + more[i];
#if RYLE_MUTANT != 1120
        behind[r] += word;
#endif
      }
    }
  }
  /// Steps of one kind after those of another: a warp never jumps back.
  template <int kKind>
  __device__ __forceinline__ void run(unsigned& next, unsigned& step, unsigned words) {
    constexpr unsigned kEnd = merge_step(kKind + 1, 0);
#pragma unroll 1
    while (step < kEnd) {
      const unsigned a = words + (step & kStepBytes);
      step = shared_word(next);
      next += 4;
      if (step < kEnd) {
        const unsigned b = words + (step & kStepBytes);
        step = shared_word(next);
        next += 4;
        add<kKind, true>(a, b);
        continue;
      }
      add<kKind, false>(a, 0);
    }
  }
  template <int... kKinds>
  __device__ __forceinline__ void run_all(std::integer_sequence<int, kKinds...>, unsigned next,
                                          unsigned words) {
    unsigned step = shared_word(next);
    next += 4;
    (run<kKinds>(next, step, words), ...);
  }
};

/// What a thread block does, in shared memory.
struct TileSteps {
  alignas(16) std::uint32_t steps[kMaxSteps];
  alignas(16) std::int32_t rows[kMergeRows];

  __device__ __forceinline__ void copy(const MergeWork& w, const MergeTile& tile) {
    for (int k = threadIdx.x; k < tile.n_steps; k += static_cast<int>(blockDim.x))
      steps[k] = w.steps[tile.first_step + k];
    for (int k = threadIdx.x; k < tile.n_rows; k += static_cast<int>(blockDim.x))
      rows[k] = w.out_rows[tile.first_row + k];
  }
};

/// The sums of a group of rows by a warp, to memory. `words`: the lane's first in shared memory.
__device__ __forceinline__ void make_rows(const MergeWork& w, const TileSteps& todo, int n_rows,
                                          int group, unsigned words, std::int64_t first, int lane) {
  GroupSums sums;
  sums.run_all(std::make_integer_sequence<int, kMergeKinds>{},
               cuda::shared_address(todo.steps + todo.steps[group]), words);
#pragma unroll
  for (int r = 0; r < kGroupRows; ++r) {
    const int slot = group * kGroupRows + r;
    if (slot >= n_rows) break;
    std::uint16_t* to = w.out + todo.rows[slot] * w.out_stride + first + 2 * lane;
#pragma unroll
    for (int i = 0; i < kSumWords; ++i) {
      // Lane 31 goes on with lane 0 of the next word.
      const unsigned own = sums.odd[r][i];
      const unsigned after = i + 1 < kSumWords ? sums.odd[r][i + 1] : sums.behind[r];
      const unsigned next = __shfl_sync(0xffffffffu, lane == 0 ? after : own, lane + 1);
      sums.even[r][i] += __byte_perm(own, next, 0x5432);
    }
    if (w.padded) {
#pragma unroll
      for (int i = 0; i < kSumWords; ++i)
        *reinterpret_cast<unsigned*>(to + 64 * i) = sums.even[r][i];
      continue;
    }
#pragma unroll
    for (int i = 0; i < kSumWords; ++i) {
      const std::int64_t left = w.n_outputs - first - 2 * lane - 64 * i;
      if (left > 0) to[64 * i] = static_cast<std::uint16_t>(sums.even[r][i]);
      if (left > 1) to[64 * i + 1] = static_cast<std::uint16_t>(sums.even[r][i] >> 16);
    }
  }
}

__global__ void __launch_bounds__(kMergeThreads, kMergeBlocks) merge_sums(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ TileSteps todo;
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kMergeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // A lane brings the entry of one of its warp's inputs, all of them at once.
  const auto* in = static_cast<const std::uint16_t*>(w.in) + first;
  for (int before = 0; before < tile.n_inputs; before += kMergeThreads) {
    const int own = before + warp + kWarps * lane;
    MergeInput input{};
    if (own < tile.n_inputs) input = w.inputs[tile.first_input + own];
    const std::int64_t start = input.row * w.in_stride + input.time;
#pragma unroll 1
    for (int j = 0; j < 32 && before + warp + kWarps * j < tile.n_inputs; ++j) {
      const std::uint16_t* from = in + __shfl_sync(0xffffffffu, start, j);
      const int offset = __shfl_sync(0xffffffffu, input.offset, j);
      const int n_pieces = __shfl_sync(0xffffffffu, input.n_pieces, j);
      for (int p = lane; p < n_pieces; p += 32)
        copy16(memory + 2 * offset + 16 * p, from + 8 * p, true);
    }
  }
  todo.copy(w, tile);
  fetched();
  const unsigned words = cuda::shared_address(memory) + 4 * lane;
#pragma unroll 1
  for (int group = warp; group * kGroupRows < tile.n_rows; group += kWarps)
    make_rows(w, todo, tile.n_rows, group, words, first, lane);
}

constexpr int kRingInputs = 96;
constexpr int kRingTiles = 8;

/// What a multiprocessor works on, and what comes next: the head of a tile comes four tiles ahead,
/// its list of inputs two, so that every warp has its few copies at hand.
struct RingBuffers {
  TileSteps todo[2];
  MergeInput inputs[3][kRingInputs];
  MergeTile tiles[kRingTiles];
  std::uint64_t full[2];
};

/// The same sums by one thread block a multiprocessor, which works through the tiles: while it adds
/// the rows of one, those of the next are on their way to the other half of its shared memory.
class Ring {
 public:
  __device__ Ring(const MergeWork& w, RingBuffers& buffers, unsigned memory, int n_work)
      : w_(w), ring_(buffers), memory_(memory), n_work_(n_work) {}

  __device__ bool has(int j) const { return work_of(j) < n_work_; }
  __device__ std::int64_t first_of(int j) const {
    return static_cast<std::int64_t>(work_of(j) / w_.n_tiles) * kMergeTimes;
  }
  __device__ bool wanted(int j) const {
    return first_of(j) < w_.n_outputs + ring_.tiles[j % kRingTiles].extent;
  }
  __device__ int n_rows(int j) const { return wanted(j) ? ring_.tiles[j % kRingTiles].n_rows : 0; }
  __device__ const TileSteps& todo(int j) const { return ring_.todo[j % 2]; }
  __device__ unsigned rows(int j) const { return memory_ + j % 2 * w_.shared_bytes; }
  __device__ void await(int j) const {
    cuda::await(&ring_.full[j % 2], static_cast<unsigned>(j / 2 % 2));
  }
  __device__ const MergeTile& tile_of(int j) const { return w_.tiles[work_of(j) % w_.n_tiles]; }

  /// The rows of work j, the list of work j + 2, the head of work j + 4.
  __device__ void copy(int j, int warp, int lane) const {
    if (!has(j)) return;
    const unsigned barrier = cuda::shared_address(&ring_.full[j % 2]);
    const MergeTile& tile = ring_.tiles[j % kRingTiles];
    const bool rows_wanted = wanted(j);
    if (threadIdx.x == 0) {
      const MergeTile& next = ring_.tiles[(j + 2) % kRingTiles];
      const unsigned list_bytes =
          has(j + 2) && next.n_inputs <= kRingInputs ? 16 * next.n_inputs : 0;
      const unsigned head_bytes = has(j + 4) ? sizeof(MergeTile) : 0;
      cuda::arrive_and_expect(barrier, (rows_wanted ? static_cast<unsigned>(tile.n_bytes) : 0u) +
                                           list_bytes + head_bytes);
      if (head_bytes > 0)
        cuda::copy_bulk(cuda::shared_address(&ring_.tiles[(j + 4) % kRingTiles]), &tile_of(j + 4),
                        head_bytes, barrier);
      if (list_bytes > 0)
        cuda::copy_bulk(cuda::shared_address(ring_.inputs[(j + 2) % 3]),
                        w_.inputs + next.first_input, list_bytes, barrier);
    }
    if (!rows_wanted) return;
    // Longer lists are read where they lie.
    const bool listed = tile.n_inputs <= kRingInputs;
    const auto* in = static_cast<const std::uint16_t*>(w_.in) + first_of(j);
    constexpr int kWarpsOfRing = kRingThreads / 32;
    for (int k = warp + kWarpsOfRing * lane; k < tile.n_inputs; k += kRingThreads) {
      const MergeInput input = listed ? ring_.inputs[j % 3][k] : w_.inputs[tile.first_input + k];
      cuda::copy_bulk(rows(j) + 2 * input.offset, in + input.row * w_.in_stride + input.time,
                      16 * input.n_pieces, barrier);
    }
    TileSteps& todo = ring_.todo[j % 2];
    if (threadIdx.x == kRingThreads - 1)
      cuda::copy_bulk(cuda::shared_address(todo.steps), w_.steps + tile.first_step,
                      (4 * tile.n_steps + 15) / 16 * 16, barrier);
    if (threadIdx.x == kRingThreads - 33)
      cuda::copy_bulk(cuda::shared_address(todo.rows), w_.out_rows + tile.first_row,
                      (4 * tile.n_rows + 15) / 16 * 16, barrier);
  }
  /// The heads of the first four works, and the lists of two.
  __device__ void begin() const {
    if (threadIdx.x < 4) {
      const int j = static_cast<int>(threadIdx.x);
      if (j < 2) cuda::begin_barrier(&ring_.full[j], 1);
      cuda::barriers_begun();
      if (has(j)) ring_.tiles[j] = tile_of(j);
    }
    for (int j = 0; j < 2; ++j) {
      if (!has(j) || tile_of(j).n_inputs > kRingInputs) continue;
      for (int k = static_cast<int>(threadIdx.x); k < tile_of(j).n_inputs; k += kRingThreads)
        ring_.inputs[j][k] = w_.inputs[tile_of(j).first_input + k];
    }
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // copies come over these
    __syncthreads();
  }

 private:
  __device__ int work_of(int j) const {
    return static_cast<int>(blockIdx.x) + j * static_cast<int>(gridDim.x);
  }

  const MergeWork& w_;
  RingBuffers& ring_;
  unsigned memory_;
  int n_work_;
};

__global__ void __launch_bounds__(kRingThreads, 1) merge_sums_ring(const MergeWork w, int n_work) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ __align__(16) RingBuffers buffers;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Ring ring(w, buffers, cuda::shared_address(memory), n_work);
  ring.begin();
  ring.copy(0, warp, lane);
#pragma unroll 1
  for (int j = 0; ring.has(j); ++j) {
    // All have left the rows of work j - 1, and the list of work 0, which those of work 1 bring
    // another over; no copy overtakes a load. The list of work j + 1 came with the rows of j - 1.
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();
    ring.copy(j + 1, warp, lane);
    __syncwarp();
    ring.await(j);
    const int n_rows = ring.n_rows(j);
    if (warp * kGroupRows < n_rows)
      make_rows(w, ring.todo(j), n_rows, warp, ring.rows(j) + 4 * lane, ring.first_of(j), lane);
  }
#endif
}
static_assert(kRingThreads / 32 * kGroupRows >= kMergeRows);

/// Bytes of a group, and 16-bit sums of them.
struct GroupCodes {
  unsigned bytes[kCodeRows][kStepWords] = {};
  unsigned even[kCodeRows][kStepWords] = {}, odd[kCodeRows][kStepWords] = {};

  template <int kKind>
  __device__ __forceinline__ void run(const std::uint32_t*& next, std::uint32_t& step,
                                      const unsigned* words) {
    constexpr StepRows kRows = code_rows(kKind);
#pragma unroll 1
    while (step >> 24 == kKind) {
      const unsigned* from = words + (step & 0xffff);
      const unsigned shifts = step >> 16;
      step = *next++;
      unsigned low[kStepWords], high[kStepWords];
#pragma unroll
      for (int i = 0; i < kStepWords; ++i) low[i] = from[32 * i], high[i] = from[32 * i + 1];
#pragma unroll
      for (int r = kRows.first; r < kRows.end; ++r) {
        const unsigned shift = (shifts >> 2 * r & 3) * 8;
#pragma unroll
        for (int i = 0; i < kStepWords; ++i)
          bytes[r][i] = __funnelshift_r(low[i], high[i], shift) + bytes[r][i];
      }
    }
  }
  __device__ __forceinline__ void widen() {
#pragma unroll
    for (int r = 0; r < kCodeRows; ++r) {
#pragma unroll
      for (int i = 0; i < kStepWords; ++i) {
        even[r][i] += bytes[r][i] & 0x00ff00ffu;
        odd[r][i] += __byte_perm(bytes[r][i], 0, 0x4341);
        bytes[r][i] = 0;
      }
    }
  }
  /// Channels whose sum fits a byte, then the next of them.
  template <int... kKinds>
  __device__ __forceinline__ void run_all(std::integer_sequence<int, kKinds...>,
                                          const std::uint32_t* next, const unsigned* words) {
    std::uint32_t step = *next++;
#pragma unroll 1
    while (step != kEndOfSteps) {
      (run<kKinds>(next, step, words), ...);
      widen();
      if (step == kWiden) step = *next++;
    }
  }
};

/// Codes whose rows begin at multiples of 16 bytes.
__global__ void __launch_bounds__(kCodeThreads, 3) merge_aligned_codes(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ TileSteps todo;
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kCodeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto* in = static_cast<const std::uint8_t*>(w.in) + first;
  for (int k = warp; k < tile.n_inputs; k += kCodeWarps) {
    const MergeInput input = w.inputs[tile.first_input + k];
    const std::uint8_t* from = in + input.row * w.in_stride + input.time;
    for (int p = lane; p < input.n_pieces; p += 32)
      copy16(memory + input.offset + 16 * p, from + 16 * p, from + 16 * p + 16 <= w.end);
  }
  todo.copy(w, tile);
  fetched();
  const int n_groups = (tile.n_rows + kCodeRows - 1) / kCodeRows;
#pragma unroll 1
  for (int item = warp; item < n_groups * kCodeShares; item += kCodeWarps) {
    const int group = item / kCodeShares, share = item % kCodeShares;
    const auto* words = reinterpret_cast<const unsigned*>(memory) + lane + 32 * kStepWords * share;
    GroupCodes sums;
    sums.run_all(std::make_integer_sequence<int, kCodeKinds>{}, todo.steps + todo.steps[group],
                 words);
#pragma unroll
    for (int r = 0; r < kCodeRows; ++r) {
      const int slot = group * kCodeRows + r;
      if (slot >= tile.n_rows) break;
      const int row = todo.rows[slot];
#pragma unroll
      for (int i = 0; i < kStepWords; ++i) {
        const unsigned even = sums.even[r][i], odd = sums.odd[r][i];
        store_sums(w, row, first + 4 * (lane + 32 * (i + kStepWords * share)),
                   {__byte_perm(even, odd, 0x5410), __byte_perm(even, odd, 0x7632)});
      }
    }
  }
}

template <bool kQuads>
__global__ void __launch_bounds__(kCodeThreads, 2) merge_codes(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ int bases[kMaxParts];
  __shared__ std::uint16_t entries[kMergeRows * kMaxParts];
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kCodeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int k = warp; k < tile.n_inputs; k += kCodeWarps) {
    const MergeInput input = w.inputs[tile.first_input + k];
    const auto at = reinterpret_cast<std::uintptr_t>(static_cast<const std::uint8_t*>(w.in) +
                                                     input.row * w.in_stride + first + input.time);
    const auto* from = reinterpret_cast<const std::uint8_t*>(at & ~std::uintptr_t{15});
    if (lane == 0) bases[k] = input.offset + static_cast<int>(at & 15);
    for (int p = lane; p < input.n_pieces; p += 32)
      copy16(memory + input.offset + 16 * p, from + 16 * p, from + 16 * p + 16 <= w.end);
  }
  const int n_entries = tile.n_rows * tile.n_parts;
  for (int k = threadIdx.x; k < n_entries; k += kCodeThreads)
    entries[k] = w.entries[tile.first_entry + k];
  fetched();
  const auto* words = reinterpret_cast<const unsigned*>(memory) + lane;
#pragma unroll 1
  for (int slot = warp; slot < tile.n_rows; slot += kCodeWarps) {
    const std::uint16_t* starts = entries + slot * tile.n_parts;
    unsigned even[kCodeWords] = {}, odd[kCodeWords] = {};
#pragma unroll 1
    for (int p = 0; p < tile.n_parts; p += 4) {
      unsigned bytes[kCodeWords] = {};
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        if (p + q >= tile.n_parts) break;
        const int start = bases[p + q] + starts[p + q];
        const unsigned* from = words + (start >> 2);
        const unsigned shift = 8 * (start & 3);
#pragma unroll
        for (int i = 0; i < kCodeWords; ++i) {
          bytes[i] += __funnelshift_r(from[32 * i], from[32 * i + 1], shift);
          if (kQuads) continue;
          even[i] += bytes[i] & 0x00ff00ffu;
          odd[i] += __byte_perm(bytes[i], 0, 0x4341);
          bytes[i] = 0;
        }
      }
      if (!kQuads) continue;
#pragma unroll
      for (int i = 0; i < kCodeWords; ++i) {
        even[i] += bytes[i] & 0x00ff00ffu;
        odd[i] += __byte_perm(bytes[i], 0, 0x4341);
      }
    }
    const int row = w.out_rows[tile.first_row + slot];
#pragma unroll
    for (int i = 0; i < kCodeWords; ++i)
      store_sums(w, row, first + 4 * (lane + 32 * i),
                 {__byte_perm(even[i], odd[i], 0x5410), __byte_perm(even[i], odd[i], 0x7632)});
  }
}

unsigned blocks_of(const MergeWork& work, std::int64_t longest_extent, int times) {
  const std::int64_t n_times = (work.n_outputs + longest_extent + times - 1) / times;
  return static_cast<unsigned>(n_times * work.n_tiles);
}

}  // namespace

void allow_merge_memory() {
  cuda::allow_all_shared(merge_sums_ring);
  for (auto* kernel : {merge_sums, merge_aligned_codes, merge_codes<true>, merge_codes<false>})
    cuda::allow_all_shared(kernel);
}

int most_ring_bytes() {
  return cuda::most_dynamic_shared(merge_sums_ring) / 2 / 128 * 128 - kBeyond_bytes;
}

void launch_merge_ring(MergeWork work, std::int64_t longest_extent, int n_blocks,
                       cudaStream_t stream) {
  work.shared_bytes = (work.shared_bytes + kBeyond_bytes + 127) / 128 * 128;
  const unsigned n_work = blocks_of(work, longest_extent, kMergeTimes);
  merge_sums_ring<<<std::min(n_work, static_cast<unsigned>(n_blocks)), kRingThreads,
                    2 * static_cast<std::size_t>(work.shared_bytes), stream>>>(
      work, static_cast<int>(n_work));
  RYLE_CUDA_LAUNCHED("merge_sums_ring");
}

void launch_merge(const MergeWork& work, std::int64_t longest_extent, cudaStream_t stream) {
  merge_sums<<<blocks_of(work, longest_extent, kMergeTimes), kMergeThreads,
               static_cast<std::size_t>(work.shared_bytes) + kBeyond_bytes, stream>>>(work);
  RYLE_CUDA_LAUNCHED("merge_sums");
}

void launch_merge_codes(const MergeWork& work, bool quads, std::int64_t longest_extent,
                        cudaStream_t stream) {
  const bool aligned =
      work.in_stride % 16 == 0 && reinterpret_cast<std::uintptr_t>(work.in) % 16 == 0;
  const auto kernel = aligned ? merge_aligned_codes
                      : quads ? merge_codes<true>
                              : merge_codes<false>;
  kernel<<<blocks_of(work, longest_extent, kCodeTimes), kCodeThreads,
           static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("merge_codes");
}

}  // namespace ryle::search::detail
