// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <utility>

#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/search/cuda/fdmt_tables.hpp"

// clang-format off
/// The tree (fast dispersion measure transform, FDMT; Zackay & Ofek 2017) on the device, one pass a level.
/// A row of a node with sweep s is
///   R[s][t] = sum over parts p of R_p[s_p][t + start(p, s)],   start = rne(s f(first of p))
/// The first pass (add_codes) adds codes of 8 channels, later ones (add_ring, add_tiles) rows of up to 16 parts.
///
///   array      axes                              type           layout
///   w.in       [row of the pass before][word]    2 x uint16     word t: samples t and t + half of the block
///              of codes: [channel][sample]       uint8          6-bit codes
///   w.tiles    [tile]                            Tile           rows of one node that a thread block makes
///   w.inputs   [input of a tile]                 Input          which rows to bring, from which word on
///   w.steps    [group of rows][piece]            RowOffsets          where each row begins in each part
///   w.out      [row][word], or                   2 x uint16     rows for the next pass
///              [trial][sample] of the last pass  uint16         sums
///
/// Who does what: a thread block brings the rows of a node's parts to shared memory. A warp then makes 4 neighboring
/// rows (kGroupRows) together, 256 words of them, two parts at a time, and loads once what several rows begin
/// with. Numbers are added in packed 16-bit lanes; sums fit, so that nothing carries over.
///
/// What binds (docs/decisions/0013, H200, 1,024 channels, 4,161 rows): the three passes take 0.124, 0.232 and 0.267
/// ms. Memory alone would need 0.10, 0.19 and 0.19 ms; in the last pass shared memory would need 0.20 ms.
// clang-format on
namespace ryle::search::detail::device_tree {

inline constexpr int kLaneWords = kTileWords / 32;
inline constexpr int kTileThreads = 512;
inline constexpr int kCodeThreads = 256;
inline constexpr int kCodeLaneWords = 8;                                      // of four codes
inline constexpr int kCodeShares = kCodeTileWords / 2 / 32 / kCodeLaneWords;  // of a row

/// First word of block k of a tile, negative where there is none.
__device__ __forceinline__ std::int64_t first_of(const Work& w, const Tile& tile, int k,
                                                 int words) {
  const int block = w.back ? w.n_times - 1 - k : k;
  const std::int64_t first = tile.begin + static_cast<std::int64_t>(block) * words;
  return first < w.half + tile.extent ? first : -1;
}

/// What a group of rows does between its steps: nothing.
struct NoHooks {
  __device__ void between() const {}
  __device__ void left(unsigned) const {}
};

/// Sums of a group of rows, the lane's words 32 apart.
struct GroupSums {
  unsigned sums[kGroupRows][kLaneWords] = {};

  /// There when the last words that were loaded are.
  __device__ __forceinline__ unsigned taken() const {
    unsigned all = 0;
#pragma unroll
    for (int i = 0; i < kLaneWords; ++i) all ^= sums[kGroupRows - 1][i];
    return all;
  }
  /// Two parts.
  template <unsigned kKind>
  __device__ __forceinline__ void add(const unsigned (&one)[kGroupRows],
                                      const unsigned (&other)[kGroupRows], unsigned lane_words) {
    unsigned words[kLaneWords], more[kLaneWords];
#pragma unroll
    for (int r = 0; r < kGroupRows; ++r) {
      if (r == 0 || (kKind >> (r - 1) & 1) != 0) {
        const unsigned a = lane_words + one[r], b = lane_words + other[r];
#pragma unroll
        for (int i = 0; i < kLaneWords; ++i) {
          words[i] = cuda::load_shared(a + 128 * i);
          more[i] = cuda::load_shared(b + 128 * i);
        }
      }
#pragma unroll
      for (int i = 0; i < kLaneWords; ++i) sums[r][i] += words[i] + more[i];
    }
  }
  template <unsigned kKind>
  __device__ __forceinline__ void run(unsigned counts, unsigned& next, unsigned lane_words) {
#pragma unroll 1
    for (unsigned n = counts >> 4 * kKind & 15; n > 0; --n) {
      const uint4 a = cuda::load_shared_16(next), b = cuda::load_shared_16(next + 16);
      next += 32;
      add<kKind>({a.x, a.y, a.z, a.w}, {b.x, b.y, b.z, b.w}, lane_words);
    }
  }
  template <unsigned... kKinds, class Hooks>
  __device__ __forceinline__ void run_all(std::integer_sequence<unsigned, kKinds...>,
                                          unsigned counts, unsigned next, unsigned lane_words,
                                          Hooks& hooks) {
    ((run<kKinds>(counts, next, lane_words),
      kKinds == (sizeof...(kKinds) - 1) / 2 ? hooks.between() : void()),
     ...);
  }
};

/// Words of a row of sums: neighboring lanes exchange the halves, so that each has two neighbors.
__device__ __forceinline__ void store_sums(const Work& w, int row, std::int64_t first, int lane,
                                           const unsigned (&sums)[kLaneWords]) {
  auto* to = static_cast<std::uint16_t*>(w.out) + row * w.out_stride + first;
  if (w.padded) {
    const bool upper = lane % 2 != 0;
    const unsigned selector = upper ? 0x3276 : 0x5410;
    to += upper ? w.half + lane - 1 : lane;
#pragma unroll
    for (int i = 0; i < kLaneWords; ++i) {
      const unsigned other = __shfl_xor_sync(0xffffffffu, sums[i], 1);
      *reinterpret_cast<unsigned*>(to + 32 * i) = __byte_perm(sums[i], other, selector);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kLaneWords; ++i) {
    const int t = lane + 32 * i;
    if (first + t < w.n_outputs) to[t] = static_cast<std::uint16_t>(sums[i]);
    if (first + t + w.half < w.n_outputs)
      to[t + w.half] = static_cast<std::uint16_t>(sums[i] >> 16);
  }
}

/// The sums of a group of rows by a warp, to memory. `steps`: the group's; `rows`: the inputs.
template <class Hooks>
__device__ __forceinline__ void make_rows(const Work& w, unsigned steps, unsigned rows,
                                          std::int64_t first, int lane, Hooks& hooks) {
  const uint4 head = cuda::load_shared_16(steps), to = cuda::load_shared_16(steps + 16);
  if (first + kTileWords <= head.y || first >= w.half + head.z) {
    hooks.between();
    hooks.left(0);
    return;
  }
  GroupSums group;
  group.run_all(std::make_integer_sequence<unsigned, 1u << (kGroupRows - 1)>{}, head.x, steps + 32,
                rows + 4 * lane, hooks);
  hooks.left(group.taken());
  const unsigned to_rows[kGroupRows] = {to.x, to.y, to.z, to.w};
#pragma unroll
  for (int r = 0; r < kGroupRows; ++r) {
    const int row = static_cast<int>(to_rows[r]);
    if (row < 0) break;
    if (w.last) {
      store_sums(w, row, first, lane, group.sums[r]);
      continue;
    }
    auto* out = static_cast<unsigned*>(w.out) + row * w.out_stride + first + lane;
#pragma unroll
    for (int i = 0; i < kLaneWords; ++i) out[32 * i] = group.sums[r][i];
  }
}

__device__ __forceinline__ void fetch_steps(const Work& w, const Tile& tile, unsigned to) {
  const int n = tile.group_bytes * tile.n_groups / 16;
  for (int k = threadIdx.x; k < n; k += static_cast<int>(blockDim.x))
    cuda::copy_16(to + 16 * k, w.steps + tile.first_step + k, 16);
}
__device__ __forceinline__ void fetched() {
  cuda::commit_copies();
  cuda::wait_copies<0>();
  __syncthreads();
}

/// A pass over rows, for devices without add_ring (cuda/fdmt.cu). A thread block fetches one tile
/// by cp.async, meets at a barrier, then 16 warps add groups of rows; two thread blocks share a
/// multiprocessor, so that one fetches while the other adds.
__global__ void __launch_bounds__(kTileThreads, 2) add_tiles(const Work w) {
  auto* memory = static_cast<std::uint8_t*>(cuda::dynamic_shared());
  const unsigned shared = cuda::shared_address(memory);
  const Tile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first =
      first_of(w, tile, static_cast<int>(blockIdx.x) / w.n_tiles, kTileWords);
  if (first < 0) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int n_threads = kTileThreads, n_warps = n_threads / 32;
  const auto* in = static_cast<const unsigned*>(w.in) + first;
  for (int k = warp; k < tile.n_inputs; k += n_warps) {
    const Input input = static_cast<const Input*>(w.inputs)[tile.first_input + k];
    const unsigned* from = in + input.row * w.in_stride + input.time;
    for (int p = lane; p < input.n_pieces; p += 32)
      cuda::copy_16(shared + input.offset + 16 * p, from + 4 * p, 16);
  }
  fetch_steps(w, tile, shared + w.steps_at);
  if (w.zeros >= 0)
    for (int k = threadIdx.x; k < kZeroBytes / 4; k += n_threads)
      reinterpret_cast<unsigned*>(memory + w.zeros)[k] = 0;
  fetched();
  NoHooks none;
#pragma unroll 1
  for (int group = warp; group < tile.n_groups; group += n_warps)
    make_rows(w, shared + w.steps_at + tile.group_bytes * group, shared, first, lane, none);
}

/// Bytes k of four words: one of each, the first lowest.
__device__ __forceinline__ uint4 transposed(const unsigned (&rows)[4]) {
  const unsigned ab = __byte_perm(rows[0], rows[1], 0x5140);  // bytes 0 and 1 of both
  const unsigned cd = __byte_perm(rows[2], rows[3], 0x5140);
  const unsigned AB = __byte_perm(rows[0], rows[1], 0x7362);  // bytes 2 and 3
  const unsigned CD = __byte_perm(rows[2], rows[3], 0x7362);
  return {__byte_perm(ab, cd, 0x5410), __byte_perm(ab, cd, 0x7632), __byte_perm(AB, CD, 0x5410),
          __byte_perm(AB, CD, 0x7632)};
}

/// Sums of eight channels. Words of four codes: t, t + 512, t + half, t + half + 512, so that bytes
/// 0 and 2 of their sum are word t of the row, bytes 1 and 3 word t + 512.
template <bool kQuads>
struct CodeSums {
  unsigned even[kCodeLaneWords] = {}, odd[kCodeLaneWords] = {};

  __device__ __forceinline__ void widen(int i, unsigned bytes) {
    even[i] += bytes & 0x00ff00ffu;
    odd[i] += __byte_perm(bytes, 0, 0x4341);
  }
  __device__ __forceinline__ void add(const uint4& starts, unsigned lane_words) {
    const unsigned a = lane_words + starts.x, b = lane_words + starts.y;
    const unsigned c = lane_words + starts.z, d = lane_words + starts.w;
#pragma unroll
    for (int i = 0; i < kCodeLaneWords; ++i) {
      const unsigned words[4] = {cuda::load_shared(a + 128 * i), cuda::load_shared(b + 128 * i),
                                 cuda::load_shared(c + 128 * i), cuda::load_shared(d + 128 * i)};
      if (kQuads) {
        widen(i, words[0] + words[1] + (words[2] + words[3]));
      } else {
#pragma unroll
        for (const unsigned word : words) widen(i, word);
      }
    }
  }
};

/// The first pass: codes of 8 channels to rows. A thread block of 8 warps brings windows of codes
/// to shared memory and transposes them there to words of four codes: t, t + 512, and both half a
/// block later. Then a warp makes 256 words of a row at a time. Sums of four codes need no shift,
/// as one byte holds them (kQuads).
template <bool kQuads, bool kAligned>
__global__ void __launch_bounds__(kCodeThreads, 5) add_codes(const Work w) {
  auto* memory = static_cast<std::uint8_t*>(cuda::dynamic_shared());
  const unsigned shared = cuda::shared_address(memory);
  const Tile tile = w.tiles[blockIdx.x % w.n_tiles];
  const std::int64_t first =
      first_of(w, tile, static_cast<int>(blockIdx.x) / w.n_tiles, kCodeTileWords);
  if (first < 0) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kWarps = kCodeThreads / 32;
  const auto* inputs = static_cast<const CodeInput*>(w.inputs) + tile.first_input;
  for (int k = warp; k < 2 * tile.n_inputs; k += kWarps) {
    const CodeInput input = inputs[k / 2];
    const auto* row = static_cast<const std::uint8_t*>(w.in) + input.channel * w.in_stride;
    const auto at =
        reinterpret_cast<std::uintptr_t>(row + first + input.time + (k % 2 != 0 ? w.half : 0));
    const auto* from = reinterpret_cast<const std::uint8_t*>(at & ~std::uintptr_t{15});
    const unsigned to = shared + input.offset + (k % 2 != 0 ? tile.n_bytes : 0);
    // Zeros behind the codes: larger ones would carry into the bytes beside, which are wanted.
    const std::int64_t n_bytes = row + w.n_codes - from;
    for (int p = lane; p < input.n_pieces; p += 32) {
      const std::int64_t left = n_bytes - 16 * p;
      cuda::copy_16(to + 16 * p, from + 16 * p,
                    left >= 16 ? 16
                    : left > 0 ? static_cast<int>(left)
                               : 0);
    }
  }
  fetch_steps(w, tile, shared + w.steps_at);
  if (w.zeros >= 0)
    for (int k = threadIdx.x; k < kZeroBytes / 4; k += kCodeThreads)
      reinterpret_cast<unsigned*>(memory + w.zeros)[k] = 0;
  fetched();
  for (int k = warp; k < tile.n_inputs; k += kWarps) {
    const CodeInput input = inputs[k];
    const int shift =
        kAligned ? 0
                 : static_cast<int>(reinterpret_cast<std::uintptr_t>(w.in) +
                                    static_cast<std::uintptr_t>(input.channel * w.in_stride +
                                                                first + input.time)) &
                       15;
    const std::uint8_t* window = memory + input.offset + shift / 4 * 4;
    for (int j = 4 * lane; j < input.n_words; j += 128) {
      unsigned rows[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const auto* from = reinterpret_cast<const unsigned*>(
            window + j + q % 2 * (kCodeTileWords / 2) + (q / 2 != 0 ? tile.n_bytes : 0));
        rows[q] = kAligned ? from[0] : __funnelshift_r(from[0], from[1], 8 * (shift % 4));
      }
      *reinterpret_cast<uint4*>(memory + input.words + 4 * j) = transposed(rows);
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int item = warp; item < kCodeShares * tile.n_groups; item += kWarps) {
    const int at = 32 * kCodeLaneWords * (item % kCodeShares);
    const unsigned step = shared + w.steps_at + tile.group_bytes * (item / kCodeShares);
    const uint4 head = cuda::load_shared_16(step);
    const int row = static_cast<int>(head.x);
    constexpr int kLater = kCodeTileWords / 2;  // words of bytes 1 and 3
    const auto wanted = [&](int later) {
      const std::int64_t t = first + at + later;
      return t + 32 * kCodeLaneWords > head.y && t < w.half + head.z;
    };
    const bool even = wanted(0), odd = wanted(kLater);
    if (!even && !odd) continue;
    CodeSums<kQuads> sums;
    sums.add(cuda::load_shared_16(step + 16), shared + 4 * (at + lane));
    sums.add(cuda::load_shared_16(step + 32), shared + 4 * (at + lane));
    if (!w.last) {
      auto* out = static_cast<unsigned*>(w.out) + row * w.out_stride + first + at + lane;
#pragma unroll
      for (int i = 0; i < kCodeLaneWords; ++i) {
        if (even) out[32 * i] = sums.even[i];
        if (odd) out[32 * i + kLater] = sums.odd[i];
      }
      continue;
    }
    static_assert(kLaneWords == kCodeLaneWords);
    if (even) store_sums(w, row, first + at, lane, sums.even);
    if (odd) store_sums(w, row, first + at + kLater, lane, sums.odd);
  }
}

}  // namespace ryle::search::detail::device_tree
