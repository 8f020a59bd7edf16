// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_wgmma_s4 is Hopper's correlator for ci4 (compute capability 9.0). It computes the sums of
// cuda/wgmma_s8.cu from samples of 4 bits. Hopper's tensor cores multiply no 4-bit numbers, so the
// kernel widens samples to the bytes 16 re and 16 im; sums are 256 times those of the codes, exactly,
// and launch_fold_wgmma_s8() divides them. Half as many bytes cross the memories as with ci8.
//
//   array         axes                                            type     unit
//   map           [channel][block][input][128 bytes]              ci4      LSB; blocks of 128 spectra, re << 4 | im & 15
//   slot          [input][16-byte piece, swizzled]                ci4      as copied: rows, or columns, of a tile
//   stage         2 x [input][re 16, im 16 bytes, swizzled]       int8     16 LSB; a slot of columns, widened
//   a.sums        [item][re, im][part_sums()], order of sum_at()  int32    256 LSB^2
//   behind them   [channel][padded input]: sum_t re(v_i)          int32    256 LSB
//
// Who does what: the thread block of 384 threads is that of the kernel for ci8 and one thread brings
// slots, but the other three warps of its warpgroup (the wideners) turn each slot of columns into a
// stage of a second ring. The two warpgroups that multiply widen their rows in registers and take
// columns from the stages. Slots are given back by all who waited for them, wideners included,
// because a barrier tells only the parity of its phase.
//
// What binds (docs/decisions/0008): up to 128 inputs the kernel waits for the wideners, which by
// their rate need 1,700 clocks for a block at 64 inputs where the tensor cores need 768 (computed).
// clang-format on
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "ryle/engine/correlate/cuda/wgmma_bytes.cuh"
#include "ryle/engine/correlate/cuda/wgmma_int4.hpp"

namespace ryle::correlate::detail {
namespace {

using namespace wgmma;

struct StageBarriers {
  std::uint64_t full[kStages], empty[kStages];
};

int shared_bytes_of_stages() {
  return kSlotAlign + kStages * kStageBytes + static_cast<int>(sizeof(StageBarriers));
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// The stages in the order in which they are filled and emptied.
struct Stages {
  unsigned stages, barriers;  // shared-memory addresses
  int at = 0;
  unsigned turn = 0;
  __device__ unsigned stage() const { return stages + at * kStageBytes; }
  __device__ unsigned full() const { return barriers + at * 8; }
  __device__ unsigned empty() const { return barriers + kStages * 8 + at * 8; }
  __device__ void advance() {
    if (++at < kStages) return;
    at = 0;
    turn ^= 1;
  }
};

/// 16 spectra of one input: 16 re and 16 im, 16 bytes each.
struct Widened {
  int4 re, im;
};
__device__ inline Widened widen(const int4& codes) {
  constexpr int kHigh = static_cast<int>(0xf0f0f0f0u);
  return {{codes.x & kHigh, codes.y & kHigh, codes.z & kHigh, codes.w & kHigh},
          {codes.x << 4 & kHigh, codes.y << 4 & kHigh, codes.z << 4 & kHigh, codes.w << 4 & kHigh}};
}

__device__ inline int4 load_shared(unsigned address) {
  int4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ inline void store_shared(unsigned address, const int4& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

/// Where a lane of a widener reads and writes within slot and stage: of its first four rows and of
/// the next, which lie kWideners groups of four behind and elsewhere in the swizzle; then the same
/// again, further on.
struct WidenerLane {
  unsigned from[2], first_to[2], second_to[2];
  bool swapped;  // im first: else two pieces of a row would meet in a bank

  __device__ WidenerLane(int widener, int lane) : swapped(lane % 8 >= 4) {
    const int piece = lane % 8;
    for (int g = 0; g < 2; ++g) {
      const int row = 4 * (widener + g * kWideners) + lane / 8;
      from[g] = swizzled(row, piece);
      first_to[g] = widened(row, piece, swapped ? 1 : 0);
      second_to[g] = widened(row, piece, swapped ? 0 : 1);
    }
  }
};

/// Groups kFirst, ... of four rows: loads before stores, which else wait for one another.
template <int kFirst, int kGroups>
__device__ inline void widen_rows(unsigned slot, unsigned stage, const WidenerLane& at) {
  constexpr int kTwoGroups = 2 * kWideners * 4 * kRowBytes;
  int4 codes[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g)
    codes[g] = load_shared(slot + at.from[(kFirst + g) % 2] + (kFirst + g) / 2 * kTwoGroups);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const unsigned to = stage + (kFirst + g) / 2 * kTwoGroups;
    const Widened wide = widen(codes[g]);
    store_shared(to + at.first_to[(kFirst + g) % 2], at.swapped ? wide.im : wide.re);
    store_shared(to + at.second_to[(kFirst + g) % 2], at.swapped ? wide.re : wide.im);
  }
}

/// One slot to one stage, by kWideners warps.
__device__ inline void widen_slot(unsigned slot, unsigned stage, int widener,
                                  const WidenerLane& at) {
  static_assert(kTile / 4 == 32 && kWideners == 3);
  widen_rows<0, 4>(slot, stage, at);
  widen_rows<4, 4>(slot, stage, at);
  if (widener < 2) {
    widen_rows<8, 3>(slot, stage, at);
  } else {
    widen_rows<8, 2>(slot, stage, at);
  }
}

__device__ inline void widen_columns(const RingArgs& a, const Tickets& tickets, Ring ring,
                                     Stages stages) {
  const int lane = threadIdx.x % 32, widener = uniform(threadIdx.x / 32) - kWarps - 1;
  const WidenerLane place(widener, lane);
  for (unsigned n = 0;; ++n) {
    const int partition = uniform(tickets.take(n));
    if (partition >= a.partitions.n()) return;
    for_each_run(a.partitions, partition, [&](std::int64_t id, int, int n_blocks) {
      const Item item = a.layout.item(id);
      const bool across = item.tile.row != item.tile.column;
      for (int k = 0; k < n_blocks; ++k) {
        const unsigned rows_empty = ring.empty();
        // Rows, too: a barrier tells only the parity of a phase, so that who has not seen one takes
        // the next for complete while the copy of rows is still on its way.
        ring.await_full();
        if (across) {
          ring.advance();
          ring.await_full();
        }
        cuda::await(stages.empty(), stages.turn ^ 1);
        widen_slot(ring.slot(), stages.stage(), widener, place);
        cuda::show_to_products();
        __syncwarp();
        if (lane == 0) {
          // Every warp lets go of every slot, of rows, too.
          if (across) cuda::arrive(rows_empty);
          cuda::arrive(ring.empty());
          cuda::arrive(stages.full());
        }
        ring.advance();
        stages.advance();
      }
    });
  }
}

template <Part kPart>
__device__ inline void load_int4(ByteRows& rows, ByteSums& sums, unsigned slot, int warpgroup,
                                 int warp, int lane, int step) {
  unsigned codes[4];
  cuda::load_matrices(codes, slot + operand_int4(warpgroup, warp, lane, step));
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    rows.re[k] = codes[k] & 0xf0f0f0f0u;
    rows.im[k] = codes[k] << 4 & 0xf0f0f0f0u;
    asm volatile("" : "+r"(rows.re[k]), "+r"(rows.im[k]));  // here, not among the products
  }
  complete_rows<kPart>(rows, sums);
}

/// multiply_run() with columns from the stages, four steps a block.
template <Part kPart>
__device__ inline void multiply_int4(ByteSums& sums, Ring& ring, Stages& stages, int n_blocks,
                                     int warpgroup, int warp, int lane) {
  ByteRows even, odd;
  unsigned before = 0;  // stage in use by the last products
#pragma unroll 1
  for (int k = 0; k < n_blocks; ++k) {
    ring.await_full();
    const unsigned rows = ring.slot(), rows_empty = ring.empty();
    ring.advance();
    unsigned columns_empty = 0;
    if constexpr (kPart == Part::across) {
      columns_empty = ring.empty();
      ring.advance();
    }
    load_int4<kPart>(even, sums, rows, warpgroup, warp, lane, 0);
    cuda::await(stages.full(), stages.turn);
    const unsigned columns = stages.stage();
    multiply_step<kPart>(sums, even, columns, warpgroup, 0);
    cuda::wait_products<1>();
    if (k > 0 && lane == 0) cuda::arrive(before);
    before = stages.empty();
    stages.advance();
    load_int4<kPart>(odd, sums, rows, warpgroup, warp, lane, 1);
    multiply_step<kPart>(sums, odd, columns, warpgroup, 1);
    cuda::wait_products<1>();
    load_int4<kPart>(even, sums, rows, warpgroup, warp, lane, 2);
    multiply_step<kPart>(sums, even, columns + kSlotBytes, warpgroup, 0);
    cuda::wait_products<1>();
    load_int4<kPart>(odd, sums, rows, warpgroup, warp, lane, 3);
    multiply_step<kPart>(sums, odd, columns + kSlotBytes, warpgroup, 1);
    cuda::wait_products<1>();
    __syncwarp();
    if (lane == 0) {  // not before the products have taken the rows, see multiply_run()
      cuda::arrive(rows_empty);
      if constexpr (kPart == Part::across) cuda::arrive(columns_empty);
    }
  }
  cuda::wait_products<0>();
  if (lane == 0) cuda::arrive(before);
}

struct Int4Worker {
  const WgmmaArgs& a;
  Stages& stages;

  template <Part kPart>
  __device__ void work(Ring& ring, int, std::int64_t id, const Item& item, int n_blocks,
                       int warpgroup, int warp) const {
    ByteSums sums;
    clear(sums);
    multiply_int4<kPart>(sums, ring, stages, n_blocks, warpgroup, warp, threadIdx.x % 32);
    keep_bytes<kPart>(a, ring, sums, id, item, n_blocks, warpgroup, warp);
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// See the head of this file. kPaired: two channels share a tile, up to 64 inputs.
template <bool kPaired>
__global__ void __launch_bounds__(kAllThreads, 1)
    correlate_wgmma_s4(const __grid_constant__ CUtensorMap map,
                       const __grid_constant__ WgmmaArgs a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::byte memory[];
  const RingMemory m(memory, a.ring);
  std::byte* more = memory + shared_bytes(a.ring.n_slots);
  const unsigned stages_at = round_up_to_swizzle(cuda::shared_address(more));
  auto& stage_barriers = *reinterpret_cast<StageBarriers*>(
      more + (stages_at - cuda::shared_address(more)) + kStages * kStageBytes);
  cuda::let_next_kernel_begin();
  if (threadIdx.x == 0) {
    begin_ring(m.barriers, a.ring, kWarps + kWideners);
    for (int k = 0; k < kStages; ++k) {
      cuda::begin_barrier(&stage_barriers.full[k], kWideners);
      cuda::begin_barrier(&stage_barriers.empty[k], kWarps);
    }
    cuda::barriers_begun();
  }
  __syncthreads();
  cuda::await_kernel_before();
  if (blockIdx.x == 0 && threadIdx.x == 0 && a.ring.other_partition != nullptr)
    *a.ring.other_partition = 0;
  const Tickets tickets{a.ring, m.barriers};
  const Ring ring = m.ring(a.ring);
  Stages stages{stages_at, cuda::shared_address(&stage_barriers)};
  if (threadIdx.x < kThreads) {
    // 384 threads begin with 168 registers each: 128 (168 - 72) = 256 (216 - 168).
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;\n");
    consume<kPaired>(a.ring, tickets, ring, Int4Worker{a, stages});
    if (threadIdx.x % 32 == 0) cuda::wait_bulk_reads<0>();  // of the staging
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 72;\n");
    if (threadIdx.x >= kThreads + 32) {
      widen_columns(a.ring, tickets, ring, stages);
    } else if (threadIdx.x == kThreads) {
      produce(&map, a.ring, tickets, ring);
    }
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

}  // namespace

WgmmaPlan plan_wgmma_s4(std::int64_t n_inputs, std::int64_t n_channels, int device) {
  WgmmaPlan plan = plan_wgmma_s8(n_inputs, n_channels, device);
  plan.shift = 8;
  plan.tuning.slots = std::min(plan.tuning.slots, kMaxSlotsOfInt4);
  for (auto* kernel : {correlate_wgmma_s4<false>, correlate_wgmma_s4<true>}) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_bytes(kMaxSlotsOfInt4) + shared_bytes_of_stages()));
  }
  return plan;
}

void launch_wgmma_s4(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                     const WgmmaMemory& memory, cudaStream_t stream) {
  CudaTuning tuning = tuning_now(plan.tuning);
  tuning.clusters = false;  // half the bytes of ci8: nothing to share
  tuning.slots = std::min(tuning.slots, kMaxSlotsOfInt4);
  WgmmaArgs a;
  a.ring = ring_of(plan, gulp, tuning, min_blocks_of(plan, tuning), nullptr);
  a.ring.next_partition = memory.counter;
  a.ring.other_partition = memory.next_counter;
  a.overwrite = overwrite;
  a.sums = memory.sums;
  if (overwrite) clear_for_cut_items(plan, a, stream);
  launch_ring(plan.layout.paired ? correlate_wgmma_s4<true> : correlate_wgmma_s4<false>, plan, gulp,
              tuning, a, stream, shared_bytes_of_stages());
}

}  // namespace ryle::correlate::detail
