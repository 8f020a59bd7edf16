// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Exact sums on the device (docs/design/search.md 5): D[trial][t] = sum_c x[c][t + delay(trial, c)].
// shared_sums forms the sums of 4 adjacent channels at the relative delays that occur once, as rows of bytes, and
// every trial adds one row per group of channels. Bytes are added as packed numbers: with
// w = b0 + 2^8 b1 + 2^16 b2 + 2^24 b3, T = sum w mod 2^32 and O = sum of (b1, b3) in 16-bit lanes give the sums
// of (b0, b2) as T - 2^8 O, exactly, while every sum of a byte fits 16 bits (the plan empties them in time).
//
//   array       axes                                 type            layout
//   w.codes     [channel][sample]                    uint8           code_stride bytes from channel to channel
//   w.stages    [stage]: head, raws, units, pairs    StageHead, ...  what a thread block does, made with the plan
//   raws        [stage of 2][channel][sample]        uint8           24 KiB a stage; shared memory
//   rows        [stage of 2][row][4 copies][sample]  uint8           72 KiB a stage; copy s begins s samples later
//   w.sums      [trial][sample]                      uint16, uint32  sum_stride numbers from trial to trial
//
// Who does what: a thread block of 16 warps makes 1,024 outputs of 16 R trials (R = 1, 3 or 5 a warp), sums in
// registers. It goes through the channels in stages, one barrier each: while stage k is added, rows of k + 1
// are built, raws of k + 2 and the description of k + 3 come by cp.async. Half of the warps add first and half
// build first, so that both kinds of work overlap.
//
// What binds: docs/decisions/0013 records 1.39 ms for 864 trials of 1,024 channels and 49,152 samples on one H200
// and no counters of this kernel. One thread block takes 217 KiB of shared memory, so that one fits a
// multiprocessor.
// clang-format on
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/copy.cuh"
#include "ryle/engine/search/cuda/dedisperse.cuh"

namespace ryle::search::detail {
namespace {

constexpr int kWords = kTileTimes / 4 / 32;  // of a lane
constexpr int kThreads = kTileWarps * 32;

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

struct Block {
  const SharedWork& w;
  TileHead tile;
  std::int64_t first;  // output of the tile
  std::uint8_t* memory;

  __device__ __forceinline__ unsigned* rows(int stage) const {
    return reinterpret_cast<unsigned*>(memory + (stage & 1) * kRowBytes);
  }
  __device__ __forceinline__ std::uint8_t* raws(int stage) const {
    return memory + 2 * kRowBytes + (stage & 1) * kRawBytes;
  }
  // Where the first code of a raw lies, bytes.
  __device__ __forceinline__ int* bases(int stage) const {
    return reinterpret_cast<int*>(memory + 2 * (kRowBytes + kRawBytes)) +
           (stage & 1) * kMaxStageChannels;
  }
  __device__ __forceinline__ std::uint8_t* meta(int stage) const {
    return memory + 2 * (kRowBytes + kRawBytes + 4 * kMaxStageChannels) +
           (stage % kMetaSlots) * kMetaBytes;
  }
  __device__ const std::uint8_t* code_at(const RawRow& r) const {
    return w.codes + r.channel * w.code_stride + first + r.start;
  }
  __device__ const StageHead& head(int stage) const {
    return *reinterpret_cast<const StageHead*>(meta(stage));
  }
  __device__ void fetch_meta(int stage) const {
    if (stage >= tile.n_stages) return;
    const std::uint8_t* from = w.stages + w.stage_at[tile.first_stage + stage];
    const int n = w.stage_at[tile.first_stage + stage + 1] - w.stage_at[tile.first_stage + stage];
    for (int k = threadIdx.x * 16; k < n; k += kThreads * 16)
      copy16(meta(stage) + k, from + k, true);
  }
  __device__ void fetch_raws(int stage) const {
    if (stage >= tile.n_stages) return;
    const StageHead& h = head(stage);
    const auto* list = reinterpret_cast<const RawRow*>(&h + 1);
    for (int k = threadIdx.x / 32; k < h.n_raws; k += kTileWarps) {
      const RawRow r = list[k];
      const auto at = reinterpret_cast<std::uintptr_t>(code_at(r));
      const auto* from = reinterpret_cast<const std::uint8_t*>(at & ~std::uintptr_t{15});
      if (threadIdx.x % 32 == 0) bases(stage)[k] = r.offset + static_cast<int>(at & 15);
      for (int p = threadIdx.x % 32; p < r.n_pieces; p += 32)
        copy16(raws(stage) + r.offset + 16 * p, from + 16 * p, from + 16 * p + 16 <= w.end);
    }
  }

  template <int N>
  __device__ __forceinline__ void build_unit(const RowUnit& unit, int stage) const {
    const unsigned* from[N];
    unsigned shift[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int begin = bases(stage)[unit.parts[k].raw] + unit.parts[k].delta;
      from[k] = reinterpret_cast<const unsigned*>(raws(stage)) + (begin >> 2);
      shift[k] = 8 * (begin & 3);
    }
    const int lane = threadIdx.x % 32, n = unit.n_words;
    unsigned* to = rows(stage) + unit.offset;
#pragma unroll
    for (int m = 0; m < kUnitSteps; ++m) {
      const int word = unit.word + 31 * m + lane, at = min(word, n);
      unsigned sum = 0;
#pragma unroll
      for (int k = 0; k < N; ++k) sum += __funnelshift_r(from[k][at], from[k][at + 1], shift[k]);
      const unsigned next = __shfl_down_sync(0xffffffffu, sum, 1);
      if (lane < 31 && word < n) {
        to[word] = sum;
        to[n + word] = __funnelshift_r(sum, next, 8);
        to[2 * n + word] = __funnelshift_r(sum, next, 16);
        to[3 * n + word] = __funnelshift_r(sum, next, 24);
      }
    }
  }

  __device__ __forceinline__ void build(int stage) const {
    if (stage >= tile.n_stages) return;
    const StageHead& h = head(stage);
    const auto* units =
        reinterpret_cast<const RowUnit*>(reinterpret_cast<const std::uint8_t*>(&h) + h.units_at);
    const int n = h.n_units;
#pragma unroll 1
    for (int u = threadIdx.x / 32; u < n; u += kTileWarps) {
      if (units[u].n_channels == 4) {
        build_unit<4>(units[u], stage);
      } else if (units[u].n_channels == 2) {
        build_unit<2>(units[u], stage);
      } else {
        build_unit<1>(units[u], stage);
      }
    }
  }
};

template <int R>
struct Sums {
  unsigned all[R][kWords], odd[R][kWords];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) all[r][i] = odd[r][i] = 0;
    }
  }

  __device__ __forceinline__ void add(const Block& b, int stage) {
    constexpr int kPadded = (R + 3) / 4 * 4;
    const StageHead& h = b.head(stage);
    const auto* pairs =
        reinterpret_cast<const unsigned*>(reinterpret_cast<const std::uint8_t*>(&h) + h.pairs_at) +
        (threadIdx.x / 32) * kPadded;
    const auto* base = b.rows(stage) + threadIdx.x % 32;
    const int n = h.n_pairs;
#pragma unroll 1
    for (int p = 0; p < n; ++p, pairs += kTileWarps * kPadded) {
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const unsigned offsets = pairs[r];
        const unsigned* a = base + (offsets & 0xffff);
        const unsigned* c = base + (offsets >> 16);
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
          const unsigned x = a[32 * i], y = c[32 * i];
          all[r][i] += x + y;
          odd[r][i] += __byte_perm(x, 0, 0x4341) + __byte_perm(y, 0, 0x4341);
        }
      }
    }
  }

  template <bool kWide>
  __device__ __forceinline__ void store(const Block& b, bool add_to) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int slot = static_cast<int>(threadIdx.x / 32) * R + r;
      if (slot >= b.tile.n_trials) continue;
      const std::int64_t row = (b.tile.first_trial + slot) * b.w.sum_stride;
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const unsigned even = all[r][i] - (odd[r][i] << 8);
        const std::int64_t t = b.first + 4 * (lane + 32 * i);
        const unsigned v[4] = {even & 0xffff, odd[r][i] & 0xffff, even >> 16, odd[r][i] >> 16};
        if constexpr (kWide) {
          auto* to = static_cast<std::uint32_t*>(b.w.sums) + row + t;
#pragma unroll
          for (int k = 0; k < 4; ++k)
            if (t + k < b.w.n_outputs) to[k] = add_to ? to[k] + v[k] : v[k];
        } else {
          auto* to = static_cast<std::uint16_t*>(b.w.sums) + row + t;
          if (t + 4 <= b.w.n_outputs && (reinterpret_cast<std::uintptr_t>(to) & 7) == 0) {
            *reinterpret_cast<uint2*>(to) = {v[0] | v[1] << 16, v[2] | v[3] << 16};
          } else {
#pragma unroll
            for (int k = 0; k < 4; ++k)
              if (t + k < b.w.n_outputs) to[k] = static_cast<std::uint16_t>(v[k]);
          }
        }
      }
    }
  }
};

/// See the head of this file. R: trials of a warp. kWide: 32-bit sums, into which 16-bit ones are
/// emptied.
template <int R, bool kWide>
__global__ void __launch_bounds__(kThreads, 1) shared_sums(const SharedWork w) {
  extern __shared__ __align__(128) std::uint8_t memory[];
  const Block b{w, w.tiles[blockIdx.x % w.n_tiles],
                static_cast<std::int64_t>(blockIdx.x / w.n_tiles) * kTileTimes, memory};
  if (threadIdx.x < kTileTimes / 4) b.rows(0)[threadIdx.x] = b.rows(1)[threadIdx.x] = 0;
  Sums<R> sums;
  sums.clear();
  bool stored = false;
  b.fetch_meta(0);
  b.fetch_meta(1);
  b.fetch_meta(2);
  commit();
  wait_all();
  __syncthreads();
  b.fetch_raws(0);
  b.fetch_raws(1);
  commit();
  wait_all();
  __syncthreads();
  b.build(0);
  for (int stage = 0; stage < b.tile.n_stages; ++stage) {
    wait_all();
    __syncthreads();  // rows of `stage`, raws of the next, description of the one behind are there
    b.fetch_meta(stage + 3);
    b.fetch_raws(stage + 2);
    commit();
    if (kWide && b.head(stage).flush) {
      sums.template store<kWide>(b, stored);
      sums.clear();
      stored = true;
    }
    // Half of the warps add while the other half builds.
    const bool builds_first = (threadIdx.x / 32 / 4) % 2 == 0;
    if (builds_first) b.build(stage + 1);
    sums.add(b, stage);
    if (!builds_first) b.build(stage + 1);
  }
  sums.template store<kWide>(b, stored);
}

/// D[trial][t] channel by channel from device memory, for delays too far apart for shared memory. A
/// thread makes one sample of a trial after the other; neighbouring threads read neighbouring
/// codes. Every code is read once for each trial.
template <class Sum>
__global__ void __launch_bounds__(256) direct_sums(const DirectWork w) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t >= w.n_outputs) return;
  for (int k = blockIdx.y; k < w.n_trials; k += gridDim.y) {
    const std::int64_t trial = w.first_trial + k;
    const std::int32_t* delays = w.delays + trial * w.n_channels;
    unsigned sum = 0;
    for (int c = 0; c < w.n_channels; ++c) sum += w.codes[c * w.code_stride + t + delays[c]];
    static_cast<Sum*>(w.sums)[trial * w.sum_stride + t] = static_cast<Sum>(sum);
  }
}

template <int R, bool kWide>
void launch(const SharedWork& work, cudaStream_t stream) {
  RYLE_CUDA(cudaFuncSetAttribute(shared_sums<R, kWide>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kStageShared_bytes));
  const std::int64_t n_times = (work.n_outputs + kTileTimes - 1) / kTileTimes;
  shared_sums<R, kWide>
      <<<static_cast<unsigned>(n_times * work.n_tiles), kThreads, kStageShared_bytes, stream>>>(
          work);
  RYLE_CUDA_LAUNCHED("shared_sums");
}

}  // namespace

void launch_shared(int trials_per_warp, const SharedWork& work, cudaStream_t stream) {
  // 16-bit sums never need emptying in between: a kernel without that keeps more in registers.
  if (trials_per_warp == 5) return (work.wide ? launch<5, true> : launch<5, false>)(work, stream);
  if (trials_per_warp == 3) return (work.wide ? launch<3, true> : launch<3, false>)(work, stream);
  (work.wide ? launch<1, true> : launch<1, false>)(work, stream);
}

void launch_direct(const DirectWork& work, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((work.n_outputs + 255) / 256),
                  static_cast<unsigned>(work.n_trials < 65535 ? work.n_trials : 65535));
  if (work.wide) {
    direct_sums<std::uint32_t><<<grid, 256, 0, stream>>>(work);
  } else {
    direct_sums<std::uint16_t><<<grid, 256, 0, stream>>>(work);
  }
  RYLE_CUDA_LAUNCHED("direct_sums");
}

}  // namespace ryle::search::detail
