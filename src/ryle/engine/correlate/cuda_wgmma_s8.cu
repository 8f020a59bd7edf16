// SPDX-License-Identifier: BSD-3-Clause
// Hopper's correlator for ci8 (compute capability 9.0): wgmma m64nNk32 on planar blocks, samples
// brought by tensor copies. NOT YET RUN ON A GPU: compiled, its layout multiplied on the host
// (tests/engine/correlate), taken by name only ("cuda:sm90_s8_wgmma"), never by "auto".
//
// Thread blocks stay, one per multiprocessor, and take one share of the work after the other from a
// counter. One thread brings operands of 128 inputs x 64 spectra into a ring of slots; two
// warpgroups multiply 64 rows x 128 columns each, complex sums in registers. Nobody waits at a
// barrier of the block: mbarriers say what is full and what is empty. With rows j, columns i:
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i + (~im_j) re_i + sum_t re_i        below the diagonal: -x = ~x + 1
//   Im V_ij = G_ji - G_ij,  G_ji = sum re_j im_i               on it: 5 products of 128 columns for
//   8
// ~x has no forbidden code, so -128 is exact. Sums wrap modulo 2^32; the final ones fit, because
// the caller folds them every kSpectraPerInt32 spectra (correlate.md 5.1, 5.2, 7.3).
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_s8.cuh"
#include "ryle/engine/correlate/cuda_kernels.cuh"
#include "ryle/engine/correlate/cuda_tuning.hpp"
#include "ryle/engine/correlate/cuda_wgmma_launch.cuh"
#include "ryle/engine/correlate/cuda_wgmma_sums.cuh"

namespace ryle::correlate::detail {
namespace {

using namespace wgmma;

struct WgmmaArgs {
  RingArgs ring;
  bool overwrite = false;  // tiles of whole items hold nothing that counts
  std::int32_t* sums = nullptr;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

using cuda::multiply_128;
using cuda::multiply_64;
using cuda::settle;

/// Signed bytes: what multiply_piece() asks for.
struct Bytes {
  struct Rows {  // 64 rows x 32 spectra, as operand A
    unsigned re[4], im[4], not_im[4];
  };
  struct Sums {
    int re[64], im[64];
    int inputs[2];  // sum of re of rows l / 4 and l / 4 + 8, this lane's share of the spectra
  };

  template <Part kPart>
  __device__ static void multiply_step(Sums& sums, const Rows& rows, unsigned columns,
                                       int warpgroup, int step) {
    const int first = kPart == Part::paired ? warpgroup * kGroupRows : 0;
    const std::uint64_t re = operand_b(columns, first, step, 0);
    const std::uint64_t im = operand_b(columns, first, step, 1);
    cuda::begin_products();
    if constexpr (kPart == Part::upper) {
      multiply_64(sums.re, rows.re, re);
      multiply_128(sums.im, rows.re, im);
      multiply_64(sums.re, rows.im, im);
    } else if constexpr (kPart == Part::paired) {
      multiply_64(sums.re, rows.re, re);
      multiply_64(sums.im, rows.re, im);
      multiply_64(sums.re, rows.im, im);
    } else {
      multiply_128(sums.re, rows.re, re);
      multiply_128(sums.im, rows.re, im);
      multiply_128(sums.re, rows.im, im);
      if constexpr (kPart == Part::across) multiply_128(sums.im, rows.not_im, re);
    }
    cuda::end_products();
  }

  template <Part kPart>
  __device__ static void load_rows(Rows& rows, Sums& sums, unsigned slot, int warpgroup, int warp,
                                   int lane, int step) {
    load_operand(rows.re, slot + operand_a(warpgroup, warp, lane, step, 0));
    load_operand(rows.im, slot + operand_a(warpgroup, warp, lane, step, 1));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (kPart == Part::across)  // here, not among the products
        asm volatile("not.b32 %0, %1;\n" : "=r"(rows.not_im[k]) : "r"(rows.im[k]));
      if constexpr (kPart == Part::upper || kPart == Part::lower)
        sums.inputs[k & 1] = __dp4a(static_cast<int>(rows.re[k]), 0x01010101, sums.inputs[k & 1]);
    }
  }
};

template <int kRegisters>
__device__ inline void keep(std::int32_t* to, const int (&sums)[64], bool overwrite,
                            const Ring& ring, int lane) {
  if (overwrite) {
    store_sums<kRegisters>(to, sums, lane);
  } else {
    add_sums<kRegisters>(to, sums, ring, lane);
  }
}

/// Multiplies pieces of shares and adds them to the sums in device memory.
struct Worker {
  const WgmmaArgs& a;

  template <Part kPart>
  __device__ void work(Ring& ring, int, std::int64_t id, const Item& item, int n_blocks,
                       int warpgroup, int warp) const {
    const int lane = threadIdx.x % 32;
    const Layout& layout = a.ring.layout;
    Bytes::Sums sums;
#pragma unroll
    for (int k = 0; k < 64; ++k) sums.re[k] = sums.im[k] = 0;
    sums.inputs[0] = sums.inputs[1] = 0;
    multiply_piece<Bytes, kPart>(sums, ring, n_blocks, warpgroup, warp, lane);
    settle(sums.re);
    settle(sums.im);
    if (!ring.keeps) return;
    constexpr int kRegisters = kPart == Part::paired ? 32 : 64;
    constexpr int kRe = kPart == Part::upper ? 32 : kRegisters;
    std::int32_t* to = a.sums + id * layout.item_sums() + sum_at(threadIdx.x - lane, 0, kRegisters);
    const bool overwrite = a.overwrite && n_blocks == a.ring.shares.n_blocks;
    keep<kRe>(to, sums.re, overwrite, ring, lane);
    keep<kRegisters>(to + layout.part_sums(), sums.im, overwrite, ring, lane);
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
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <bool kPaired>
__global__ void __launch_bounds__(kAllThreads, 1)
    correlate_wgmma_s8(const __grid_constant__ CUtensorMap map,
                       const __grid_constant__ WgmmaArgs a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::byte memory[];
  run_ring<kPaired>(memory, &map, a.ring, Worker{a});
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

__global__ void fold_wgmma_s8(Layout layout, const std::int32_t* sums, long long* totals) {
  const auto channel = static_cast<int>(blockIdx.x / layout.n_inputs);
  const auto j = static_cast<int>(blockIdx.x % layout.n_inputs);
  const std::int64_t n_products = std::int64_t{layout.n_inputs} * (layout.n_inputs + 1) / 2;
  long long* total = totals + 2 * (channel * n_products + std::int64_t{j} * (j + 1) / 2);
  for (int i = threadIdx.x; i <= j; i += blockDim.x) {
    const ci64 v = value(layout, sums, channel, i, j);
    total[2 * i] += v.re;
    total[2 * i + 1] += v.im;
  }
}

/// Whole items are stored over what there is; those that are cut are added up from 0, and with them
/// everything behind the first.
void clear_for_cut_items(const WgmmaPlan& plan, const WgmmaArgs& a, cudaStream_t stream) {
  const std::int64_t whole = a.ring.shares.n_overwritten();
  if (whole == a.ring.shares.n()) return;
  const std::int64_t first =
      a.ring.clusters ? std::int64_t{a.ring.duos.first_channel(whole)} * plan.layout.n_tiles
                      : whole;
  const std::int64_t begin = std::min(first, plan.layout.n_items) * plan.layout.item_sums();
  RYLE_CUDA(cudaMemsetAsync(
      a.sums + begin, 0, static_cast<std::size_t>(plan.n_ints - begin) * sizeof(*a.sums), stream));
}

}  // namespace

WgmmaPlan plan_wgmma_s8(std::int64_t n_inputs, std::int64_t n_channels, int device) {
  WgmmaPlan plan;
  plan.layout = layout_of(n_inputs, n_channels);
  plan.n_ints = plan.layout.n_sums() + plan.layout.n_input_sums();
  int multiprocessors = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  plan.concurrent_blocks = multiprocessors;
  plan.tuning = cuda_tuning(90, n_inputs);
  plan.duo_list = duos_of(plan.layout.tile_rows, plan.duos);
  for (auto* kernel : {correlate_wgmma_s8<false>, correlate_wgmma_s8<true>}) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_bytes(kMostSlots)));
  }
  return plan;
}

void launch_wgmma_s8(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                     const WgmmaMemory& memory, cudaStream_t stream) {
  const CudaTuning tuning = tuning_now(plan.tuning);
  WgmmaArgs a;
  a.ring = ring_of(plan, gulp, tuning, tuning.least_blocks, memory.duos);
  a.ring.next_share = memory.counter;
  a.ring.other_share = memory.next_counter;
  a.overwrite = overwrite;
  a.sums = memory.sums;
  if (overwrite) clear_for_cut_items(plan, a, stream);
  launch_ring(plan.layout.paired ? correlate_wgmma_s8<true> : correlate_wgmma_s8<false>, plan, gulp,
              tuning, a, stream);
}

void launch_fold_wgmma_s8(const WgmmaPlan& plan, const std::int32_t* sums, ci64* totals,
                          cudaStream_t stream) {
  const auto n_blocks =
      static_cast<unsigned>(plan.layout.n_inputs) * static_cast<unsigned>(plan.layout.n_channels);
  fold_wgmma_s8<<<n_blocks, 128, 0, stream>>>(plan.layout, sums,
                                              reinterpret_cast<long long*>(totals));
  RYLE_CUDA_LAUNCHED("fold_wgmma_s8");
}

}  // namespace ryle::correlate::detail
