// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// correlate_wgmma_s8_three is the correlator of cuda/wgmma_s8.cu (same equation, same arrays, same
// order of sums) for 129 to 256 inputs of ci8, which make two rows of tiles. Three warpgroups
// multiply. The three tiles of a channel become two equal items: item `half` is the tile {half, half}
// on the diagonal and 64 rows of the tile below it. Both items read the same samples at the same
// time, so that samples come from device memory once.
//
//   array         axes                                            type     unit
//   map           [channel][block][input][128 bytes]              ci8      LSB; planar blocks of 64 spectra
//   stage, 5 of   own group [128 inputs][128 bytes], then         ci8      LSB; both swizzled by 128 bytes
//                 other group [64 or 128 inputs][128 bytes]
//   a.sums        [item][re, im][part_sums()], order of sum_at()  int32    LSB^2
//   behind them   [channel][padded input]: sum_t re(v_i)          int32    LSB
//
// Who does what: 512 threads. One thread of the fourth warpgroup brings stages by tensor copies of 64
// inputs. The first warpgroup makes rows 0..63 of the tile on the diagonal (96 sums a thread), the
// second rows 64..127, the third 64 rows of the tile below the diagonal (128 sums a thread each).
// setmaxnreg gives them 136, 168 and 168 registers. What a warp needs only after its products waits
// in shared memory, because registers are short.
//
// What binds (docs/decisions/0008): at 256 inputs, with two warpgroups, the second-level cache works at
// 88 % of its rate and the device at its power limit. This cut takes 7/8 of the bytes from the cache;
// it was measured at 1,130 TOPS where two warpgroups reached 1,075.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "ryle/engine/correlate/cuda/wgmma_bytes.cuh"
#include "ryle/engine/correlate/cuda/wgmma_three_consumers.hpp"

namespace ryle::correlate::detail {
namespace {

using namespace wgmma;

constexpr int kThreeMultiply = 3 * 128;  // threads
constexpr int kThreeThreads = kThreeMultiply + 128;
constexpr int kThreeWarps = kThreeMultiply / 32;
/// The group of inputs of the tile on the diagonal, then those that only the third warpgroup needs:
/// half 0: its rows, the first 64 inputs of the second group; half 1: its columns, the first group.
constexpr int kThreeStageBytes = 2 * kSlotBytes;
constexpr int kThreeStages = 5;

/// Where everything lies in shared memory, which begins at a multiple of kSlotAlign: addresses are
/// constants, since registers are short.
struct ThreeShared {
  RingBarriers barriers;
  int4 pieces[kThreeWarps];  // of a warp: what it needs again after its products
  unsigned tickets[kThreeWarps];
};
static_assert(sizeof(ThreeShared) <= kSlotAlign);

constexpr int kThreeStagingAt = kSlotAlign + kThreeStages * kThreeStageBytes;
constexpr int kThreeSharedBytes = kThreeStagingAt + kThreeWarps * kStagingBytes;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

extern __shared__ __align__(kSlotAlign) std::byte three_memory[];

__device__ inline ThreeShared& three_shared() {
  return *reinterpret_cast<ThreeShared*>(three_memory);
}

struct ThreeRing {
  int at = 0;  // stage + kThreeStages times the parity of its turn
  __device__ int turn() const { return at >= kThreeStages ? 1 : 0; }
  __device__ int index() const { return at >= kThreeStages ? at - kThreeStages : at; }
  __device__ unsigned stage() const {
    return cuda::shared_address(three_memory) + kSlotAlign + index() * kThreeStageBytes;
  }
  __device__ unsigned full() const {
    return cuda::shared_address(three_shared().barriers.full) + index() * 8;
  }
  __device__ unsigned empty() const {
    return cuda::shared_address(three_shared().barriers.empty) + index() * 8;
  }
  __device__ void advance() {
    if (++at == 2 * kThreeStages) at = 0;
  }
};

/// One thread, by boxes of 64 inputs.
__device__ inline void produce_three(const CUtensorMap* map, const RingArgs& a,
                                     const Tickets& tickets, ThreeRing ring) {
  constexpr int kBox = kTile / 2, kBoxBytes = kSlotBytes / 2;
  for (unsigned n = 0;; ++n) {
    const int partition = tickets.draw(n);
    if (partition >= a.partitions.n()) return;
    for_each_run(a.partitions, partition, [&](std::int64_t id, int first_block, int n_blocks) {
      const auto channel = static_cast<int>(id / 2), half = static_cast<int>(id % 2);
      const int own = first_own_input(half), other = first_other_input(half);
      for (int k = 0; k < n_blocks; ++k) {
        const int block = a.first_block + first_block + k;
        const unsigned to = ring.stage(), full = ring.full();
        cuda::await_alone(ring.empty(), ring.turn() ^ 1);
        cuda::arrive_and_expect(full, kSlotBytes + n_other_inputs(half) * kRowBytes);
        cuda::copy_box(to, map, 0, own, block, channel, full);
        cuda::copy_box(to + kBoxBytes, map, 0, own + kBox, block, channel, full);
        cuda::copy_box(to + kSlotBytes, map, 0, other, block, channel, full);
        if (n_other_inputs(half) > kBox)
          cuda::copy_box(to + kSlotBytes + kBoxBytes, map, 0, other + kBox, block, channel, full);
        ring.advance();
      }
    });
  }
}

/// Where a lane reads its rows within a stage: piece p of them at lane_rows() ^ (p << 4) for even
/// p.
__device__ inline unsigned lane_rows(int row_group, int warp, int lane) {
  return static_cast<unsigned>(operand_a(row_group, warp, lane, 0, 0));
}

template <Part kPart>
__device__ inline void add_inputs(ByteSums& sums, const unsigned (&re)[4]) {
  if constexpr (kPart != Part::across) {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      asm volatile("dp4a.s32.s32 %0, %1, %2, %0;\n"
                   : "+r"(sums.inputs[k & 1])
                   : "r"(re[k]), "r"(0x01010101));
  }
}

/// Products of one step: a group with real parts of rows, one with imaginary parts, one (below the
/// diagonal) with their complement. Rows are in `a`, in `b`, and again in `a`: while one group is
/// at work the registers of the next are loaded.
template <Part kPart, int kStep>
__device__ inline void multiply_three_step(ByteSums& sums, unsigned (&a)[4], unsigned (&b)[4],
                                           unsigned from, std::uint64_t columns) {
  const std::uint64_t re = columns + 4 * kStep, im = re + 2;  // 16-byte units
  cuda::load_matrices(a, from ^ (4 * kStep << 4));
  add_inputs<kPart>(sums, a);
  cuda::begin_products();
  if constexpr (kPart == Part::upper) {
    cuda::multiply_64(sums.re, a, re);
  } else {
    cuda::multiply_128(sums.re, a, re);
  }
  cuda::multiply_128(sums.im, a, im);
  cuda::end_products();
  cuda::wait_products<1>();
  cuda::load_matrices(b, from ^ ((4 * kStep + 2) << 4));
  cuda::begin_products();
  if constexpr (kPart == Part::upper) {
    cuda::multiply_64(sums.re, b, im);
  } else {
    cuda::multiply_128(sums.re, b, im);
  }
  cuda::end_products();
  cuda::wait_products<1>();
  if constexpr (kPart == Part::across) {
#pragma unroll
    for (int k = 0; k < 4; ++k) asm volatile("not.b32 %0, %1;\n" : "=r"(a[k]) : "r"(b[k]));
    cuda::begin_products();
    cuda::multiply_128(sums.im, a, re);
    cuda::end_products();
    cuda::wait_products<1>();
  }
}

/// Adds n_blocks >= 1 blocks.
template <Part kPart>
__device__ inline void multiply_three(ByteSums& sums, ThreeRing& ring, int n_blocks,
                                      const ThreeTask& task, int warp, int lane) {
  const unsigned rows_at =
      (task.rows_other ? kSlotBytes : 0) + lane_rows(task.warpgroup, warp, lane);
  const unsigned columns_at = task.columns_other ? kSlotBytes : 0;
  unsigned a[4], b[4];
#pragma unroll 1
  for (; n_blocks > 0; --n_blocks) {
    cuda::await(ring.full(), ring.turn());
    const unsigned from = ring.stage() + rows_at;
    const std::uint64_t columns = operand_b(ring.stage() + columns_at, 0, 0, 0);
    multiply_three_step<kPart, 0>(sums, a, b, from, columns);
    if constexpr (kPart == Part::across) {
      multiply_three_step<kPart, 1>(sums, b, a, from, columns);
    } else {
      multiply_three_step<kPart, 1>(sums, a, b, from, columns);
    }
    cuda::wait_products<0>();  // the other two warpgroups have work for the tensor cores
    if (lane == 0) cuda::arrive(ring.empty());
    ring.advance();
  }
}

template <Part kPart>
__device__ inline void work_three(const WgmmaArgs& a, ThreeRing& ring, int item, int n_blocks) {
  constexpr int kWarpgroup = kPart == Part::upper ? 0 : kPart == Part::lower ? 1 : 2;
  ByteSums sums;
  clear(sums);
  multiply_three<kPart>(sums, ring, n_blocks, three_task(item % 2, kWarpgroup),
                        uniform(threadIdx.x / 32 % 4), threadIdx.x % 32);
  const int4& kept = three_shared().pieces[threadIdx.x / 32];
  const int channel = kept.x / 2;
  const ThreeTask task = three_task(kept.x % 2, kWarpgroup);
  Ring staging{};
  staging.staging =
      cuda::shared_address(three_memory) + kThreeStagingAt + threadIdx.x / 32 * kStagingBytes;
  keep_bytes<kPart>(a, staging, sums, id_of(a.ring.layout, channel, task.tile),
                    {channel, task.tile}, kept.y, task.warpgroup, threadIdx.x / 32 % 4);
}

template <Part kPart>
__device__ inline void consume_three(const WgmmaArgs& a) {
  ThreeRing ring;
  volatile unsigned& ticket = three_shared().tickets[threadIdx.x / 32];
  int4& kept = three_shared().pieces[threadIdx.x / 32];
  if (threadIdx.x % 32 == 0) ticket = 0;
  __syncwarp();
  for (;;) {
    const unsigned n = ticket;
    const int partition = uniform(Tickets{a.ring, three_shared().barriers}.take(n));
    if (partition >= a.ring.partitions.n()) {
      if (threadIdx.x % 32 == 0) cuda::wait_bulk_reads<0>();  // of the staging
      return;
    }
    const Partitions::Range range = a.ring.partitions.range(partition);
    int4 piece{0, 0, static_cast<int>(range.first), static_cast<int>(range.end)};
    if (threadIdx.x % 32 == 0) ticket = n + 1;
    while (piece.z < piece.w) {
      piece.x = piece.z / a.ring.partitions.n_blocks;  // item
      const int block = piece.z - piece.x * a.ring.partitions.n_blocks;
      piece.y = min(piece.w - piece.z, a.ring.partitions.n_blocks - block);  // blocks
      piece.z += piece.y;
      __syncwarp();
      if (threadIdx.x % 32 == 0) kept = piece;
      __syncwarp();
      work_three<kPart>(a, ring, piece.x, piece.y);
      asm volatile("" ::: "memory");  // from shared memory, not from registers
      piece = kept;
    }
    __syncwarp();
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// See the head of this file.
__global__ void __launch_bounds__(kThreeThreads, 1)
    correlate_wgmma_s8_three(const __grid_constant__ CUtensorMap map,
                             const __grid_constant__ WgmmaArgs a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  RingBarriers& barriers = three_shared().barriers;
  if (threadIdx.x == 0) {
    begin_ring(barriers, a.ring, kThreeWarps);
    cuda::barriers_begun();
  }
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0 && a.ring.other_partition != nullptr)
    *a.ring.other_partition = 0;
  // 512 threads begin with 128 registers each, 4 x 128 = 136 + 2 x 168 + 40.
  const int warpgroup = uniform(threadIdx.x / 128);
  if (warpgroup == 0) {  // 96 sums, the others 128
    asm volatile("setmaxnreg.inc.sync.aligned.u32 136;\n");
    consume_three<Part::upper>(a);
  } else if (warpgroup == 1) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;\n");
    consume_three<Part::lower>(a);
  } else if (warpgroup == 2) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;\n");
    consume_three<Part::across>(a);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
    if (threadIdx.x == kThreeMultiply)
      produce_three(&map, a.ring, Tickets{a.ring, barriers}, ThreeRing{});
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

}  // namespace

void prepare_wgmma_s8_three() {
  RYLE_CUDA(cudaFuncSetAttribute(correlate_wgmma_s8_three,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, kThreeSharedBytes));
}

bool takes_three(const WgmmaPlan& plan, const CudaTuning& tuning) {
  return tuning.three && plan.layout.tile_rows == 2 &&
         2 * plan.layout.n_channels >= plan.concurrent_blocks &&
         plan.layout.n_channels < (1 << 19);  // steps are ints: 1023 blocks at most
}

void launch_wgmma_s8_three(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                           const WgmmaMemory& memory, cudaStream_t stream) {
  const CudaTuning tuning = tuning_now(plan.tuning);
  WgmmaArgs a;
  a.ring.layout = plan.layout;
  a.ring.first_block = gulp.first_block;
  a.ring.hints = tuning.hints;
  a.ring.partitions = partitions_of(std::int64_t{2} * plan.layout.n_channels, gulp.n_blocks,
                                    plan.concurrent_blocks, tuning.min_blocks);
  a.ring.n_slots = kThreeStages;
  a.ring.next_partition = memory.counter;
  a.ring.other_partition = memory.next_counter;
  a.overwrite = overwrite;
  a.sums = memory.sums;
  const std::int64_t whole = a.ring.partitions.n_overwritten();
  if (overwrite && whole < a.ring.partitions.n()) {  // those that are cut are added up from 0
    const std::int64_t begin = whole / 2 * plan.layout.n_tiles * plan.layout.item_sums();
    RYLE_CUDA(cudaMemsetAsync(a.sums + begin, 0,
                              static_cast<std::size_t>(plan.n_ints - begin) * sizeof(*a.sums),
                              stream));
  }
  const auto blocks =
      static_cast<unsigned>(std::min(a.ring.partitions.n(), plan.concurrent_blocks));
  correlate_wgmma_s8_three<<<blocks, kThreeThreads, kThreeSharedBytes, stream>>>(
      wgmma_map(plan.layout, gulp, true, tuning.fetch_bytes), a);
  RYLE_CUDA_LAUNCHED("correlate_wgmma_s8_three");
}

}  // namespace ryle::correlate::detail
