// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_wgmma_f16 is Hopper's correlator for cf16 (compute capability 9.0). It computes
// V_ij = sum_t v_i conj(v_j), i <= j, with wgmma m64nNk16 and fp32 sums. With rows j and columns i:
//   Re V_ij = sum re_j re_i + im_j im_i
//   Im V_ij = sum re_j im_i + (-im_j) re_i        in a tile below the diagonal; - flips the sign bit
//   Im V_ij = G_ji - G_ij,  G_ji = sum re_j im_i  in a tile on the diagonal
// Products are exact. The tensor cores cut, not round, sums at every addition; a launch has at most
// kSpectraPerF16Sum spectra, which bounds the loss. Sums in device memory are rounded once a launch.
// Equal gulps give equal bits: a whole item has one owner in a launch, and the parts of an item that
// is cut along time are added in the order of time (cuda/wgmma_floats.hpp).
//
//   array         axes                                            type     unit
//   map           [channel][block][input][128 bytes]              cf16     planar blocks of 32 spectra
//   a.sums        [item][re, im][part_sums()], order of sum_at()  float    (unit of samples)^2
//   a.parts       [slot_of(partition, item)][item_sums()]         float    parts of items cut along time
//   a.arrived     [cut item][warp]: parts that are there          int32    0 between launches
//   totals        [channel][pair j(j+1)/2 + i][re, im]            double   written by fold_wgmma_f16
//
// Who does what: as in cuda/wgmma_s8.cu. A block of halves lies in memory as one of bytes does, with
// 16 spectra in place of 32, so ring, addresses, tiles and partitions are the same. The warp that brings
// the last part of a cut item adds up all parts of its rows.
//
// What binds (docs/decisions/0016, H200): at 64 inputs memory (90 % of the rate of a copy); at 512
// inputs the tensor cores are busy in 95 % of the cycles with the clock held, and power binds with
// the clock free.
// clang-format on
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "ryle/engine/correlate/cuda/wgmma_floats.hpp"
#include "ryle/engine/correlate/cuda/wgmma_launch.cuh"
#include "ryle/engine/correlate/cuda/wgmma_sums.cuh"

namespace ryle::correlate::detail {
namespace {

using namespace wgmma;

struct Fp16Args {
  RingArgs ring;
  bool overwrite = false;  // the tiles hold nothing that counts
  float* sums = nullptr;
  float* parts = nullptr;  // [slot][item_sums()]
  int* arrived = nullptr;  // [cut item][warp]: parts that are there
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// What multiply_run() asks for.
struct Fp16 {
  struct Rows {  // 64 rows x 16 spectra, as operand A
    unsigned re[4], im[4], minus_im[4];
  };
  struct Sums {
    float re[64], im[64];
  };

  template <Part kPart>
  __device__ static void load_rows(Rows& rows, Sums&, unsigned slot, int warpgroup, int warp,
                                   int lane, int step) {
    cuda::load_matrices(rows.re, slot + operand_a(warpgroup, warp, lane, step, 0));
    cuda::load_matrices(rows.im, slot + operand_a(warpgroup, warp, lane, step, 1));
    if constexpr (kPart == Part::across) {
#pragma unroll
      for (int k = 0; k < 4; ++k)  // here, not among the products
        asm volatile("xor.b32 %0, %1, 0x80008000;\n" : "=r"(rows.minus_im[k]) : "r"(rows.im[k]));
    }
  }
};

/// n parts, item_sums floats apart, one after the other.
template <int kRegisters>
__device__ inline void add_up(float (&sums)[64], const float* parts, int n, std::int64_t apart,
                              int lane) {
  const float* part = parts + sum_at(lane, 0, kRegisters);
#pragma unroll
  for (float& sum : sums) sum = 0;  // 0 + the first part is that part
#pragma unroll 1
  for (int p = 0; p < n; ++p, part += apart) {
#pragma unroll
    for (int r = 0; r < kRegisters; r += 4) {
      const float4 four = __ldcg(reinterpret_cast<const float4*>(part + sum_at(0, r, kRegisters)));
      sums[r] += four.x;
      sums[r + 1] += four.y;
      sums[r + 2] += four.z;
      sums[r + 3] += four.w;
    }
  }
}

/// Whether this warp brings the last of n parts of a cut item. Then it sees all.
__device__ inline bool brings_last(int* arrived, int n, int lane) {
  __threadfence();
  __syncwarp();
  int before = 0;
  if (lane == 0) before = atomicAdd(arrived, 1);
  before = uniform(before);
  if (before + 1 < n) return false;
  if (lane == 0) *arrived = 0;  // for the next launch
  __threadfence();
  return true;
}

/// Multiplies runs of partitions and adds them to the sums in device memory.
struct Fp16Worker {
  const Fp16Args& a;

  template <Part kPart>
  __device__ void work(Ring& ring, int partition, std::int64_t id, const Item&, int n_blocks,
                       int warpgroup, int warp) const {
    constexpr int kRe = kPart == Part::upper || kPart == Part::paired ? 32 : 64;
    constexpr int kIm = kPart == Part::paired ? 32 : 64;
    const int lane = threadIdx.x % 32;
    const Layout& layout = a.ring.layout;
    const Partitions& partitions = a.ring.partitions;
    Fp16::Sums sums;
#pragma unroll
    for (int k = 0; k < 64; ++k) sums.re[k] = sums.im[k] = 0;
    multiply_run<Fp16, kPart>(sums, ring, n_blocks, warpgroup, warp, lane);
    cuda::fence_registers(sums.re);
    cuda::fence_registers(sums.im);
    if (!ring.keeps) return;
    const int warp_sums = sum_at(threadIdx.x - lane, 0, kIm);
    if (n_blocks < partitions.n_blocks) {
      const std::int64_t cut_item = id - partitions.n_whole;
      float* part = a.parts +
                    slot_of(partition - partitions.n_whole, cut_item) * layout.item_sums() +
                    warp_sums;
      store_sums<kRe>(part, sums.re, lane);
      store_sums<kIm>(part + layout.part_sums(), sums.im, lane);
      const Parts parts = parts_of(partitions, cut_item);
      if (!brings_last(a.arrived + cut_item * kWarps + threadIdx.x / 32, parts.n, lane)) return;
      const float* first = a.parts + parts.first_slot * layout.item_sums() + warp_sums;
      add_up<kRe>(sums.re, first, parts.n, layout.item_sums(), lane);
      add_up<kIm>(sums.im, first + layout.part_sums(), parts.n, layout.item_sums(), lane);
    }
    float* to = a.sums + id * layout.item_sums() + warp_sums;
    if (a.overwrite) {
      const bool passing = a.ring.hints && layout.tile_rows > 1;
      store_sums<kRe>(to, sums.re, lane, passing);
      store_sums<kIm>(to + layout.part_sums(), sums.im, lane, passing);
    } else {  // one addition a launch to each sum, from one thread block: no order to choose
      add_sums<kRe>(to, sums.re, ring, lane);
      add_sums<kIm>(to + layout.part_sums(), sums.im, ring, lane);
    }
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// See the head of this file. kPaired: two channels share a tile, up to 64 inputs.
template <bool kPaired>
__global__ void __launch_bounds__(kAllThreads, 1)
    correlate_wgmma_f16(const __grid_constant__ CUtensorMap map,
                        const __grid_constant__ Fp16Args a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::byte memory[];
  run_ring<kPaired>(memory, &map, a.ring, Fp16Worker{a});
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

/// Adds the fp32 sums to totals, in double. A thread block takes one input j of one channel; its
/// threads take the inputs i <= j. Memory binds, as every sum is used once.
__global__ void fold_wgmma_f16(Layout layout, const float* sums, double* totals) {
  const auto channel = static_cast<int>(blockIdx.x / layout.n_inputs);
  const auto j = static_cast<int>(blockIdx.x % layout.n_inputs);
  const std::int64_t n_products = std::int64_t{layout.n_inputs} * (layout.n_inputs + 1) / 2;
  double* total = totals + 2 * (channel * n_products + std::int64_t{j} * (j + 1) / 2);
  for (int i = threadIdx.x; i <= j; i += blockDim.x) {
    double v[2];
    value(layout, sums, channel, i, j, v);
    total[2 * i] += v[0];
    total[2 * i + 1] += v[1];
  }
}

}  // namespace

WgmmaF16Plan plan_wgmma_f16(std::int64_t n_inputs, std::int64_t n_channels, int device) {
  WgmmaF16Plan plan;
  plan.layout = layout_of(n_inputs, n_channels);
  plan.concurrent_blocks = cuda::attribute_of(device, cudaDevAttrMultiProcessorCount);
  plan.tuning = cuda_tuning(90, n_inputs, true);
  plan.n_sums = plan.layout.n_sums();
  plan.n_part_sums =
      n_part_slots(plan.layout.n_items, plan.concurrent_blocks) * plan.layout.item_sums();
  plan.n_arrived = kWarps * plan.concurrent_blocks;
  plan.cta_pair_list = cta_pairs_of(plan.layout.tile_rows, plan.cta_pairs);
  for (auto* kernel : {correlate_wgmma_f16<false>, correlate_wgmma_f16<true>}) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_bytes(kMaxSlots)));
  }
  return plan;
}

void launch_wgmma_f16(const WgmmaF16Plan& plan, const CudaGulp& gulp, bool overwrite,
                      const F16Memory& memory, cudaStream_t stream) {
  CudaTuning tuning = tuning_now(plan.tuning);
  // Few items are cut, which clusters cannot be.
  if (plan.layout.n_items < plan.concurrent_blocks / 2) tuning.clusters = false;
  Fp16Args a;
  a.ring = ring_of(plan, gulp, tuning, min_blocks_of(plan, tuning), memory.cta_pairs);
  if (a.ring.clusters) {  // what a cluster does is not cut along time: parts are numbered by items
    a.ring.partitions = partitions_of(a.ring.cta_pairs.n(plan.layout), gulp.n_blocks,
                                      plan.concurrent_blocks / 2, gulp.n_blocks);
  }
  a.ring.next_partition = memory.counter;
  a.ring.other_partition = memory.next_counter;
  a.overwrite = overwrite;
  a.sums = memory.sums;
  a.parts = memory.parts;
  a.arrived = memory.arrived;
  launch_ring(plan.layout.paired ? correlate_wgmma_f16<true> : correlate_wgmma_f16<false>, plan,
              gulp, tuning, a, stream);
}

void launch_fold_wgmma_f16(const WgmmaF16Plan& plan, const float* sums, cf64* totals,
                           cudaStream_t stream) {
  const auto n_blocks =
      static_cast<unsigned>(plan.layout.n_inputs) * static_cast<unsigned>(plan.layout.n_channels);
  fold_wgmma_f16<<<n_blocks, 128, 0, stream>>>(plan.layout, sums,
                                               reinterpret_cast<double*>(totals));
  RYLE_CUDA_LAUNCHED("fold_wgmma_f16");
}

}  // namespace ryle::correlate::detail
