// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/correlate/cuda/wgmma_launch.cuh"
#include "ryle/engine/correlate/cuda/wgmma_sums.cuh"

/// What the Hopper correlators of bytes share, those of ci8 and of ci4 widened to bytes: rows
/// in registers, sums to device memory. cuda/wgmma_s8.cu has the equations.
namespace ryle::correlate::wgmma {

struct WgmmaArgs {
  RingArgs ring;
  bool overwrite = false;  // tiles of whole items hold nothing that counts
  std::int32_t* sums = nullptr;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// 64 rows x 32 spectra, as operand A.
struct ByteRows {
  unsigned re[4], im[4], minus_im[4];  // minus_im: ~im
};
struct ByteSums {
  int re[64], im[64];
  int inputs[2];  // sum of re of rows l / 4 and l / 4 + 8, this lane's share of the spectra
};

/// Once the real and imaginary parts are there.
template <Part kPart>
__device__ inline void complete_rows(ByteRows& rows, ByteSums& sums) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if constexpr (kPart == Part::across)  // here, not among the products
      asm volatile("not.b32 %0, %1;\n" : "=r"(rows.minus_im[k]) : "r"(rows.im[k]));
    if constexpr (kPart == Part::upper || kPart == Part::lower)
      sums.inputs[k & 1] = __dp4a(static_cast<int>(rows.re[k]), 0x01010101, sums.inputs[k & 1]);
  }
}

__device__ inline void clear(ByteSums& sums) {
#pragma unroll
  for (int k = 0; k < 64; ++k) sums.re[k] = sums.im[k] = 0;
  sums.inputs[0] = sums.inputs[1] = 0;
}

template <int kRegisters>
__device__ inline void keep_part(std::int32_t* to, const int (&sums)[64], bool overwrite,
                                 bool passing, const Ring& ring, int lane) {
  if (overwrite) {
    store_sums<kRegisters>(to, sums, lane, passing);
  } else {
    add_sums<kRegisters>(to, sums, ring, lane);
  }
}

/// What a piece of an item gave.
template <Part kPart>
__device__ inline void keep_bytes(const WgmmaArgs& a, const Ring& ring, ByteSums& sums,
                                  std::int64_t id, const Item& item, int n_blocks, int warpgroup,
                                  int warp) {
  cuda::fence_registers(sums.re);
  cuda::fence_registers(sums.im);
  if (!ring.keeps) return;
  const int lane = threadIdx.x % 32;
  const Layout& layout = a.ring.layout;
  constexpr int kRegisters = kPart == Part::paired ? 32 : 64;
  constexpr int kRe = kPart == Part::upper ? 32 : kRegisters;
  std::int32_t* to =
      a.sums + id * layout.item_sums() + sum_at((4 * warpgroup + warp) * 32, 0, kRegisters);
  const bool overwrite = a.overwrite && n_blocks == a.ring.partitions.n_blocks;
  const bool passing = a.ring.hints && layout.tile_rows > 1;
  keep_part<kRe>(to, sums.re, overwrite, passing, ring, lane);
  keep_part<kRegisters>(to + layout.part_sums(), sums.im, overwrite, passing, ring, lane);
  if (!needs_input_sums(layout, item.tile)) return;
  std::int32_t* inputs = a.sums + layout.n_sums() +
                         std::int64_t{item.channel} * layout.padded_inputs() +
                         item.tile.row * kTile + warpgroup * kGroupRows + warp * 16;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int sum = sums.inputs[h];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (lane % 4 != 0) continue;
    if (overwrite) {
      inputs[lane / 4 + 8 * h] = sum;
    } else {
      atomicAdd(inputs + lane / 4 + 8 * h, sum);
    }
  }
}

#endif

/// Whole items are stored over what there is; those that are cut are added up from 0, and with them
/// everything behind the first.
inline void clear_for_cut_items(const detail::WgmmaPlan& plan, const WgmmaArgs& a,
                                cudaStream_t stream) {
  const std::int64_t whole = a.ring.partitions.n_overwritten();
  if (whole == a.ring.partitions.n()) return;
  const std::int64_t first =
      a.ring.clusters ? std::int64_t{a.ring.cta_pairs.first_channel(whole)} * plan.layout.n_tiles
                      : whole;
  const std::int64_t begin = std::min(first, plan.layout.n_items) * plan.layout.item_sums();
  RYLE_CUDA(cudaMemsetAsync(
      a.sums + begin, 0, static_cast<std::size_t>(plan.n_ints - begin) * sizeof(*a.sums), stream));
}

}  // namespace ryle::correlate::wgmma
