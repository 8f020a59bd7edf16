// SPDX-License-Identifier: BSD-3-Clause
// The tree on the device: each pass brings the rows of a node's parts to shared memory and adds
// them as packed 16-bit numbers (sums fit: no carry between lanes).
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda_fdmt.cuh"

namespace ryle::search::detail {
namespace {

constexpr int kRows = kMergeRows / (kMergeThreads / 32);  // of a warp
constexpr int kSumWords = kMergeTimes / 2 / 32;           // of a lane
constexpr int kCodeWords = kMergeTimes / 4 / 32;

__device__ __forceinline__ void fetch16(void* to, const void* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void fetched() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
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

__global__ void __launch_bounds__(kMergeThreads, 2) merge_sums(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ std::uint16_t entries[kMergeRows * kMaxParts];
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kMergeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto* in = static_cast<const std::uint16_t*>(w.in) + first;
  for (int k = warp; k < tile.n_inputs; k += kMergeThreads / 32) {
    const MergeInput input = w.inputs[tile.first_input + k];
    const std::uint16_t* from = in + input.row * w.in_stride + input.time;
    for (int p = lane; p < input.n_pieces; p += 32)
      fetch16(memory + 2 * input.offset + 16 * p, from + 8 * p, true);
  }
  const int n_entries = tile.n_rows * tile.n_parts;
  for (int k = threadIdx.x; k < n_entries; k += kMergeThreads)
    entries[k] = w.entries[tile.first_entry + k];
  fetched();
  const auto* words = reinterpret_cast<const unsigned*>(memory) + lane;
  unsigned sums[kRows][kSumWords] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int slot = warp + r * (kMergeThreads / 32);
    if (slot >= tile.n_rows) continue;
    const std::uint16_t* starts = entries + slot * tile.n_parts;
    for (int p = 0; p < tile.n_parts; ++p) {
      const unsigned start = starts[p];
      const unsigned* from = words + (start >> 1);
      if (start & 1) {
#pragma unroll
        for (int i = 0; i < kSumWords; ++i)
          sums[r][i] += __byte_perm(from[32 * i], from[32 * i + 1], 0x5432);
      } else {
#pragma unroll
        for (int i = 0; i < kSumWords; ++i) sums[r][i] += from[32 * i];
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int slot = warp + r * (kMergeThreads / 32);
    if (slot >= tile.n_rows) continue;
    std::uint16_t* to = w.out + w.out_rows[tile.first_row + slot] * w.out_stride + first;
#pragma unroll
    for (int i = 0; i < kSumWords; ++i) {
      const std::int64_t t = 2 * (lane + 32 * i);
      if (w.padded) {
        *reinterpret_cast<unsigned*>(to + t) = sums[r][i];
      } else {
        if (first + t < w.n_outputs) to[t] = static_cast<std::uint16_t>(sums[r][i]);
        if (first + t + 1 < w.n_outputs) to[t + 1] = static_cast<std::uint16_t>(sums[r][i] >> 16);
      }
    }
  }
}

template <bool kQuads>
__global__ void __launch_bounds__(kMergeThreads, 2) merge_codes(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ int bases[kMaxParts];
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kMergeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int k = warp; k < tile.n_inputs; k += kMergeThreads / 32) {
    const MergeInput input = w.inputs[tile.first_input + k];
    const auto at = reinterpret_cast<std::uintptr_t>(static_cast<const std::uint8_t*>(w.in) +
                                                     input.row * w.in_stride + first + input.time);
    const auto* from = reinterpret_cast<const std::uint8_t*>(at & ~std::uintptr_t{15});
    if (lane == 0) bases[k] = input.offset + static_cast<int>(at & 15);
    for (int p = lane; p < input.n_pieces; p += 32)
      fetch16(memory + input.offset + 16 * p, from + 16 * p, from + 16 * p + 16 <= w.end);
  }
  fetched();
  const auto* words = reinterpret_cast<const unsigned*>(memory) + lane;
  for (int slot = warp; slot < tile.n_rows; slot += kMergeThreads / 32) {
    const std::uint16_t* starts = w.entries + tile.first_entry + slot * tile.n_parts;
    unsigned even[kCodeWords] = {}, odd[kCodeWords] = {}, bytes[kCodeWords] = {};
    for (int p = 0; p < tile.n_parts; ++p) {
      const int start = bases[p] + starts[p];
      const unsigned* from = words + (start >> 2);
      const unsigned shift = 8 * (start & 3);
      const bool widen = !kQuads || p % 4 == 3 || p + 1 == tile.n_parts;
#pragma unroll
      for (int i = 0; i < kCodeWords; ++i) {
        bytes[i] += __funnelshift_r(from[32 * i], from[32 * i + 1], shift);
        if (!widen) continue;
        even[i] += bytes[i] & 0x00ff00ffu;
        odd[i] += __byte_perm(bytes[i], 0, 0x4341);
        bytes[i] = 0;
      }
    }
    const int row = w.out_rows[tile.first_row + slot];
#pragma unroll
    for (int i = 0; i < kCodeWords; ++i)
      store_sums(w, row, first + 4 * (lane + 32 * i),
                 {__byte_perm(even[i], odd[i], 0x5410), __byte_perm(even[i], odd[i], 0x7632)});
  }
}

unsigned blocks_of(const MergeWork& work, std::int64_t longest_extent) {
  const std::int64_t n_times = (work.n_outputs + longest_extent + kMergeTimes - 1) / kMergeTimes;
  return static_cast<unsigned>(n_times * work.n_tiles);
}

}  // namespace

void launch_merge(const MergeWork& work, std::int64_t longest_extent, cudaStream_t stream) {
  RYLE_CUDA(cudaFuncSetAttribute(merge_sums, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 work.shared_bytes));
  merge_sums<<<blocks_of(work, longest_extent), kMergeThreads,
               static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("merge_sums");
}

void launch_merge_codes(const MergeWork& work, bool quads, std::int64_t longest_extent,
                        cudaStream_t stream) {
  const auto kernel = quads ? merge_codes<true> : merge_codes<false>;
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, work.shared_bytes));
  kernel<<<blocks_of(work, longest_extent), kMergeThreads,
           static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("merge_codes");
}

}  // namespace ryle::search::detail
