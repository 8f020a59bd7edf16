// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_wgmma_s8 is Hopper's correlator for ci8 (compute capability 9.0). It computes
// V_ij = sum_t v_i conj(v_j), i <= j (Clark, La Plante & Greenhill 2012), for every channel with
// wgmma m64nNk32. The rows of a tile are inputs j, its columns are inputs i:
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i + (~im_j) re_i + sum_t re_i    in a tile below the diagonal: -x = ~x + 1
//   Im V_ij = G_ji - G_ij,  G_ji = sum re_j im_i           in a tile on the diagonal (5/8 of the work)
// ~x exists for every code, so -128 is exact. Sums wrap modulo 2^32. The final sums fit, because the
// caller folds them every kSpectraPerInt32 spectra (docs/design/correlate.md 5.1, 5.2, 7.3).
//
//   array         axes                                            type     unit
//   map           [channel][block][input][128 bytes]              ci8      LSB; planar blocks of 64 spectra
//   a.sums        [item][re, im][part_sums()], order of sum_at()  int32    LSB^2
//   behind them   [channel][padded input]: sum_t re(v_i)          int32    LSB
//   next_partition  one word: the next partition to take          int32
//   totals        [channel][pair j(j+1)/2 + i][re, im]            int64    LSB^2; written by fold_wgmma_s8
//
// Who does what: one thread block runs on each multiprocessor and takes partition after partition of the work
// from a counter. It has 384 threads. One thread of the last warpgroup is the producer: it brings
// operands of 128 inputs x 64 spectra (16 KiB) by tensor copies into a ring of slots in shared
// memory. The first two warpgroups are the consumers: each multiplies 64 rows x 128 columns and keeps
// the complex sums in registers. mbarriers say which slots are full and which are empty; the thread
// block has no barrier of its own in the loop (cuda/wgmma_ring.cuh).
//
// What binds (docs/decisions/0008, H200): at 64 inputs the second-level cache (82 % of its rate) and
// memory (70 %); from 128 inputs on the power limit of the device; at 1,024 inputs the tensor cores
// are busy in 92 % of the cycles.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "ryle/engine/correlate/cuda/wgmma_bytes.cuh"

namespace ryle::correlate::detail {
namespace {

using namespace wgmma;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What multiply_run() asks for.
struct Bytes {
  using Rows = ByteRows;
  using Sums = ByteSums;

  template <Part kPart>
  __device__ static void load_rows(Rows& rows, Sums& sums, unsigned slot, int warpgroup, int warp,
                                   int lane, int step) {
    cuda::load_matrices(rows.re, slot + operand_a(warpgroup, warp, lane, step, 0));
    cuda::load_matrices(rows.im, slot + operand_a(warpgroup, warp, lane, step, 1));
    complete_rows<kPart>(rows, sums);
  }
};

/// Multiplies runs of partitions and adds them to the sums in device memory.
struct Worker {
  const WgmmaArgs& a;

  template <Part kPart>
  __device__ void work(Ring& ring, int, std::int64_t id, const Item& item, int n_blocks,
                       int warpgroup, int warp) const {
    ByteSums sums;
    clear(sums);
    multiply_run<Bytes, kPart>(sums, ring, n_blocks, warpgroup, warp, threadIdx.x % 32);
    keep_bytes<kPart>(a, ring, sums, id, item, n_blocks, warpgroup, warp);
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// See the head of this file. kPaired: two channels share a tile, up to 64 inputs.
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

/// Adds the int32 sums to totals, as int64 LSB^2, and divides those of ci4 by 2^shift = 256, which
/// is exact. A thread block takes one input j of one channel; its threads take the inputs i <= j.
/// Memory binds: every sum is read once and every total is read and written once.
__global__ void fold_wgmma_s8(Layout layout, int shift, const std::int32_t* sums,
                              long long* totals) {
  const auto channel = static_cast<int>(blockIdx.x / layout.n_inputs);
  const auto j = static_cast<int>(blockIdx.x % layout.n_inputs);
  const std::int64_t n_products = std::int64_t{layout.n_inputs} * (layout.n_inputs + 1) / 2;
  long long* total = totals + 2 * (channel * n_products + std::int64_t{j} * (j + 1) / 2);
  for (int i = threadIdx.x; i <= j; i += blockDim.x) {
    const ci64 v = value(layout, sums, channel, i, j);
    total[2 * i] += v.re >> shift;  // exact
    total[2 * i + 1] += v.im >> shift;
  }
}

}  // namespace

WgmmaPlan plan_wgmma_s8(std::int64_t n_inputs, std::int64_t n_channels, int device) {
  WgmmaPlan plan;
  plan.layout = layout_of(n_inputs, n_channels);
  plan.n_ints = plan.layout.n_sums() + plan.layout.n_input_sums();
  plan.concurrent_blocks = cuda::attribute_of(device, cudaDevAttrMultiProcessorCount);
  plan.tuning = cuda_tuning(90, n_inputs);
  plan.cta_pair_list = cta_pairs_of(plan.layout.tile_rows, plan.cta_pairs);
  for (auto* kernel : {correlate_wgmma_s8<false>, correlate_wgmma_s8<true>}) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_bytes(kMaxSlots)));
  }
  prepare_wgmma_s8_three();
  return plan;
}

void launch_wgmma_s8(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                     const WgmmaMemory& memory, cudaStream_t stream) {
  const CudaTuning tuning = tuning_now(plan.tuning);
  if (takes_three(plan, tuning))
    return launch_wgmma_s8_three(plan, gulp, overwrite, memory, stream);
  WgmmaArgs a;
  a.ring = ring_of(plan, gulp, tuning, min_blocks_of(plan, tuning), memory.cta_pairs);
  a.ring.next_partition = memory.counter;
  a.ring.other_partition = memory.next_counter;
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
  fold_wgmma_s8<<<n_blocks, 128, 0, stream>>>(plan.layout, plan.shift, sums,
                                              reinterpret_cast<long long*>(totals));
  RYLE_CUDA_LAUNCHED("fold_wgmma_s8");
}

}  // namespace ryle::correlate::detail
