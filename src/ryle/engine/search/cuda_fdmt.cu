// SPDX-License-Identifier: BSD-3-Clause
// The tree on the device: each pass brings the rows of a node's parts to shared memory and adds
// them as packed 16-bit numbers (sums fit: no carry between lanes).
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda_copy.cuh"
#include "ryle/engine/search/cuda_fdmt.cuh"

namespace ryle::search::detail {
namespace {

constexpr int kWarps = kMergeThreads / 32;
constexpr int kSumWords = kMergeTimes / 2 / 32;  // of a lane
constexpr int kCodeWords = kCodeTimes / 4 / 32;

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

__global__ void __launch_bounds__(kMergeThreads, 2) merge_sums(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ std::uint16_t entries[kMergeRows * (kMaxParts + 1)];
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kMergeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto* in = static_cast<const std::uint16_t*>(w.in) + first;
  for (int k = warp; k < tile.n_inputs; k += kMergeThreads / 32) {
    const MergeInput input = w.inputs[tile.first_input + k];
    const std::uint16_t* from = in + input.row * w.in_stride + input.time;
    for (int p = lane; p < input.n_pieces; p += 32)
      copy16(memory + 2 * input.offset + 16 * p, from + 8 * p, true);
  }
  const int n_entries = tile.n_rows * (tile.n_parts + 1);
  for (int k = threadIdx.x; k < n_entries; k += kMergeThreads)
    entries[k] = w.entries[tile.first_entry + k];
  fetched();
  const auto* words = reinterpret_cast<const unsigned*>(memory) + lane;
#pragma unroll 1
  for (int slot = warp; slot < tile.n_rows; slot += kWarps) {
    const std::uint16_t* starts = entries + slot * (tile.n_parts + 1);
    const int n_even = *starts++;
    unsigned sums[kSumWords] = {}, odd[kSumWords + 1] = {};
    int p = 0;
#pragma unroll 4
    for (; p < n_even; ++p) {
      const unsigned* from = words + (starts[p] >> 1);
#pragma unroll
      for (int i = 0; i < kSumWords; ++i) sums[i] += from[32 * i];
    }
    // Parts that begin half a word later are summed as they lie and moved once.
#pragma unroll 4
    for (; p < tile.n_parts; ++p) {
      const unsigned* from = words + (starts[p] >> 1);
#pragma unroll
      for (int i = 0; i < kSumWords; ++i) odd[i] += from[32 * i];
      if (lane == 0) odd[kSumWords] += from[32 * kSumWords];
    }
    std::uint16_t* to = w.out + w.out_rows[tile.first_row + slot] * w.out_stride + first;
#pragma unroll
    for (int i = 0; i < kSumWords; ++i) {
      // Lane 31 goes on with lane 0 of the next word.
      const unsigned next = __shfl_sync(0xffffffffu, lane == 0 ? odd[i + 1] : odd[i], lane + 1);
      const unsigned sum = sums[i] + __byte_perm(odd[i], next, 0x5432);
      const std::int64_t t = 2 * (lane + 32 * i);
      if (w.padded) {
        *reinterpret_cast<unsigned*>(to + t) = sum;
      } else {
        if (first + t < w.n_outputs) to[t] = static_cast<std::uint16_t>(sum);
        if (first + t + 1 < w.n_outputs) to[t + 1] = static_cast<std::uint16_t>(sum >> 16);
      }
    }
  }
}

template <bool kQuads>
__global__ void __launch_bounds__(kMergeThreads, 2) merge_codes(const MergeWork w) {
  extern __shared__ __align__(16) std::uint8_t memory[];
  __shared__ int bases[kMaxParts];
  __shared__ std::uint16_t entries[kMergeRows * kMaxParts];
  const MergeTile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kCodeTimes;
  if (first >= w.n_outputs + tile.extent) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int k = warp; k < tile.n_inputs; k += kWarps) {
    const MergeInput input = w.inputs[tile.first_input + k];
    const auto at = reinterpret_cast<std::uintptr_t>(static_cast<const std::uint8_t*>(w.in) +
                                                     input.row * w.in_stride + first + input.time);
    const auto* from = reinterpret_cast<const std::uint8_t*>(at & ~std::uintptr_t{15});
    if (lane == 0) bases[k] = input.offset + static_cast<int>(at & 15);
    for (int p = lane; p < input.n_pieces; p += 32)
      copy16(memory + input.offset + 16 * p, from + 16 * p, from + 16 * p + 16 <= w.end);
  }
  const int n_entries = tile.n_rows * tile.n_parts;
  for (int k = threadIdx.x; k < n_entries; k += kMergeThreads)
    entries[k] = w.entries[tile.first_entry + k];
  fetched();
  const auto* words = reinterpret_cast<const unsigned*>(memory) + lane;
#pragma unroll 1
  for (int slot = warp; slot < tile.n_rows; slot += kWarps) {
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

void launch_merge(const MergeWork& work, std::int64_t longest_extent, cudaStream_t stream) {
  RYLE_CUDA(cudaFuncSetAttribute(merge_sums, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 work.shared_bytes));
  merge_sums<<<blocks_of(work, longest_extent, kMergeTimes), kMergeThreads,
               static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("merge_sums");
}

void launch_merge_codes(const MergeWork& work, bool quads, std::int64_t longest_extent,
                        cudaStream_t stream) {
  const auto kernel = quads ? merge_codes<true> : merge_codes<false>;
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, work.shared_bytes));
  kernel<<<blocks_of(work, longest_extent, kCodeTimes), kMergeThreads,
           static_cast<std::size_t>(work.shared_bytes), stream>>>(work);
  RYLE_CUDA_LAUNCHED("merge_codes");
}

}  // namespace ryle::search::detail
