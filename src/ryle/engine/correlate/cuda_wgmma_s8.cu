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
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/device/cuda/warpgroup_s8.cuh"
#include "ryle/engine/correlate/cuda_kernels.cuh"
#include "ryle/engine/correlate/cuda_tuning.hpp"

namespace ryle::correlate::detail {
namespace {

using namespace wgmma;

constexpr int kAllThreads = kThreads + 128;
[[maybe_unused]] constexpr int kWarps = kThreads / 32;
constexpr int kTickets = 4;       // shares on their way from the counter to the warpgroups
constexpr int kSlotAlign = 1024;  // a swizzle's period

struct RingBarriers {
  std::uint64_t full[kMostSlots], empty[kMostSlots];
  std::uint64_t ticket_full[kTickets], ticket_empty[kTickets];
  int tickets[kTickets];
};

struct WgmmaArgs {
  Layout layout;
  Shares shares;
  int first_block = 0;
  int n_slots = 0;
  bool overwrite = false;  // tiles of whole items hold nothing that counts
  std::int32_t* sums = nullptr;
  int* next_share = nullptr;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

using cuda::arrive;
using cuda::await;
using cuda::multiply_128;
using cuda::multiply_64;
using cuda::settle;
using cuda::shared_address;

/// The slots in the order in which they are filled and emptied.
struct Ring {
  unsigned slots, barriers;  // shared-memory addresses
  int n_slots;
  int at = 0;
  unsigned turn = 0;
  __device__ unsigned slot() const { return slots + at * kSlotBytes; }
  __device__ unsigned full() const { return barriers + at * 8; }
  __device__ unsigned empty() const { return barriers + kMostSlots * 8 + at * 8; }
  __device__ void advance() {
    if (++at < n_slots) return;
    at = 0;
    turn ^= 1;
  }
};

__device__ inline void produce(const CUtensorMap* map, const WgmmaArgs& a, RingBarriers& b,
                               Ring ring) {
  const auto bring = [&](int channel, int first_input, int block) {
    cuda::await_alone(ring.empty(), ring.turn ^ 1);
    cuda::arrive_and_expect(ring.full(), kSlotBytes);
    cuda::copy_box(ring.slot(), map, 0, first_input, block, channel, ring.full());
    ring.advance();
  };
  for (unsigned n = 0;; ++n) {
    const int share = atomicAdd(a.next_share, 1);
    const unsigned t = n % kTickets;
    cuda::await_alone(shared_address(&b.ticket_empty[t]), (n / kTickets & 1) ^ 1);
    b.tickets[t] = share;
    arrive(&b.ticket_full[t]);
    if (share >= a.shares.n()) return;
    for_each_piece(a.shares, share, [&](std::int64_t id, int first_block, int n_blocks) {
      const Item item = a.layout.item(id);
      const bool diagonal = item.tile.row == item.tile.column;
      for (int k = 0; k < n_blocks; ++k) {
        const int block = a.first_block + first_block + k;
        bring(item.channel, item.tile.row * kTile, block);
        if (!diagonal) bring(item.channel, item.tile.column * kTile, block);
      }
    });
  }
}

__device__ inline void load_operand(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// What a warpgroup makes of a tile.
enum class Part {
  across,  // below the diagonal: everything
  upper,   // rows 0..63 of a tile on the diagonal: Re of 64 columns, G of 128
  lower,   // rows 64..127: Re and G of 128
  paired   // all of one channel of two: Re and G of 64 rows and columns
};

/// 64 rows x 32 spectra, as operand A.
struct Rows {
  unsigned re[4], im[4], not_im[4];
};

struct Sums2 {
  int re[64], im[64];
  int inputs[2];  // sum of re of rows l / 4 and l / 4 + 8, this lane's share of the spectra
};

template <Part kPart>
__device__ inline void multiply_step(Sums2& sums, const Rows& rows, unsigned columns, int warpgroup,
                                     int step) {
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
__device__ inline void load_rows(Rows& rows, Sums2& sums, unsigned slot, int warpgroup, int warp,
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

/// Adds n_blocks >= 1 blocks of one item. While the tensor cores work on 32 spectra, the rows of
/// the next 32 are loaded.
template <Part kPart>
__device__ inline void multiply_piece(Sums2& sums, Ring& ring, int n_blocks, int warpgroup,
                                      int warp, int lane) {
  static_assert(kSteps == 2);
  Rows even, odd;
  unsigned before = 0;  // slot of columns in use by the last products
#pragma unroll 1
  for (int k = 0; k < n_blocks; ++k) {
    await(ring.full(), ring.turn);
    const unsigned rows = ring.slot();
    load_rows<kPart>(even, sums, rows, warpgroup, warp, lane, 0);
    const unsigned rows_empty = ring.empty();
    if constexpr (kPart == Part::across) {
      ring.advance();
      await(ring.full(), ring.turn);
    }
    const unsigned columns = ring.slot();
    multiply_step<kPart>(sums, even, columns, warpgroup, 0);
    cuda::wait_products<1>();
    if (k > 0 && lane == 0) arrive(before);
    before = ring.empty();
    ring.advance();
    load_rows<kPart>(odd, sums, rows, warpgroup, warp, lane, 1);
    if constexpr (kPart == Part::across) {  // all rows are in registers
      __syncwarp();
      if (lane == 0) arrive(rows_empty);
    }
    multiply_step<kPart>(sums, odd, columns, warpgroup, 1);
    cuda::wait_products<1>();
  }
  cuda::wait_products<0>();
  if (lane == 0) arrive(before);
}

/// @param to of this thread's first register
template <int kRegisters>
__device__ inline void keep(std::int32_t* to, const int (&sums)[64], bool overwrite) {
#pragma unroll
  for (int r = 0; r < kRegisters; ++r) {
    if (overwrite) {
      to[r * kThreads] = sums[r];
    } else {
      atomicAdd(to + r * kThreads, sums[r]);
    }
  }
}

template <Part kPart>
__device__ inline void work_on(const WgmmaArgs& a, Ring& ring, std::int64_t id, const Item& item,
                               int n_blocks, int warpgroup, int warp) {
  const int lane = threadIdx.x % 32;
  Sums2 sums;
#pragma unroll
  for (int k = 0; k < 64; ++k) sums.re[k] = sums.im[k] = 0;
  sums.inputs[0] = sums.inputs[1] = 0;
  multiply_piece<kPart>(sums, ring, n_blocks, warpgroup, warp, lane);
  settle(sums.re);
  settle(sums.im);
  constexpr bool kHalfRe = kPart == Part::upper || kPart == Part::paired;
  std::int32_t* to = a.sums + id * a.layout.item_sums() + threadIdx.x;
  const bool overwrite = a.overwrite && n_blocks == a.shares.n_blocks;
  keep<kHalfRe ? 32 : 64>(to, sums.re, overwrite);
  keep<kPart == Part::paired ? 32 : 64>(to + a.layout.part_sums(), sums.im, overwrite);
  if (!needs_input_sums(a.layout, item.tile)) return;
  std::int32_t* inputs = a.sums + a.layout.n_sums() +
                         std::int64_t{item.channel} * a.layout.padded_inputs() +
                         item.tile.row * kTile + warpgroup * kGroupRows + warp * 16;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int sum = sums.inputs[h];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (lane % 4 == 0) atomicAdd(inputs + lane / 4 + 8 * h, sum);
  }
}

/// What is the same in all lanes, told to the compiler, which else takes branches on it for
/// divergent and waits after every product.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

template <bool kPaired>
__device__ inline void consume(const WgmmaArgs& a, RingBarriers& b, Ring ring) {
  const int warpgroup = uniform(threadIdx.x / 128), warp = uniform(threadIdx.x / 32 % 4);
  for (unsigned n = 0;; ++n) {
    const unsigned t = n % kTickets;
    await(&b.ticket_full[t], n / kTickets & 1);
    const int share = uniform(b.tickets[t]);
    if (threadIdx.x % 32 == 0) arrive(&b.ticket_empty[t]);
    if (share >= a.shares.n()) return;
    for_each_piece(a.shares, share, [&](std::int64_t id, int, int n_blocks) {
      const Item item = a.layout.item(id);
      if constexpr (kPaired) {
        work_on<Part::paired>(a, ring, id, item, n_blocks, warpgroup, warp);
      } else if (item.tile.row != item.tile.column) {
        work_on<Part::across>(a, ring, id, item, n_blocks, warpgroup, warp);
      } else if (warpgroup == 0) {
        work_on<Part::upper>(a, ring, id, item, n_blocks, warpgroup, warp);
      } else {
        work_on<Part::lower>(a, ring, id, item, n_blocks, warpgroup, warp);
      }
    });
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <bool kPaired>
__global__ void __launch_bounds__(kAllThreads, 1)
    correlate_wgmma_s8(const __grid_constant__ CUtensorMap map,
                       const __grid_constant__ WgmmaArgs a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ std::byte memory[];
  const unsigned begin = shared_address(memory);
  const unsigned slots = (begin + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
  auto& barriers =
      *reinterpret_cast<RingBarriers*>(memory + (slots - begin) + a.n_slots * kSlotBytes);
  if (threadIdx.x == 0) {
    for (int k = 0; k < a.n_slots; ++k) {
      cuda::begin_barrier(&barriers.full[k], 1);
      cuda::begin_barrier(&barriers.empty[k], kWarps);
    }
    for (int k = 0; k < kTickets; ++k) {
      cuda::begin_barrier(&barriers.ticket_full[k], 1);
      cuda::begin_barrier(&barriers.ticket_empty[k], kWarps);
    }
    cuda::barriers_begun();
  }
  __syncthreads();
  const Ring ring{slots, shared_address(&barriers), a.n_slots};
  if (threadIdx.x < kThreads) {
    // 384 threads begin with 168 registers each: 128 (168 - 56) = 256 (224 - 168).
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;\n");
    consume<kPaired>(a, barriers, ring);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;\n");
    if (threadIdx.x == kThreads) produce(&map, a, barriers, ring);
  }
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

std::atomic<const CudaTuning*> searched_tuning{nullptr};

int shared_bytes(int n_slots) {
  return kSlotAlign + n_slots * kSlotBytes + static_cast<int>(sizeof(RingBarriers));
}

/// Boxes of 128 bytes x 128 inputs (paired: 64 inputs x 2 channels) of a gulp, swizzled; inputs and
/// channels beyond the last one are 0.
CUtensorMap map_of(const Layout& layout, const CudaGulp& gulp) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    RYLE_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                               cudaEnableDefault, &found));
#else
    RYLE_CUDA(
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess)
      throw DeviceError("the driver has no cuTensorMapEncodeTiled; use cuda:mma_s8");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t extents[] = {kRowBytes, static_cast<cuuint64_t>(gulp.n_inputs),
                                static_cast<cuuint64_t>(gulp.first_block + gulp.n_blocks),
                                static_cast<cuuint64_t>(gulp.n_channels)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(gulp.input_stride_bytes),
                                static_cast<cuuint64_t>(gulp.block_stride_bytes),
                                static_cast<cuuint64_t>(gulp.channel_stride_bytes)};
  const cuuint32_t box[] = {kRowBytes, static_cast<cuuint32_t>(layout.paired ? kGroupRows : kTile),
                            1, layout.paired ? 2u : 1u};
  const cuuint32_t every[] = {1, 1, 1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, const_cast<std::byte*>(gulp.data), extents,
             strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw DeviceError(
        "cuda:sm90_s8_wgmma: no tensor map for blocks with strides " +
        std::to_string(gulp.input_stride_bytes) + ", " + std::to_string(gulp.block_stride_bytes) +
        ", " + std::to_string(gulp.channel_stride_bytes) + " bytes (CUresult " +
        std::to_string(static_cast<int>(status)) + "); they are multiples of 16 below 2^40");
  }
  return map;
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
  for (auto* kernel : {correlate_wgmma_s8<false>, correlate_wgmma_s8<true>}) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   shared_bytes(kMostSlots)));
  }
  return plan;
}

void launch_wgmma_s8(const WgmmaPlan& plan, const CudaGulp& gulp, bool overwrite,
                     std::int32_t* sums, int* counter, cudaStream_t stream) {
  const CudaTuning* searched = searched_tuning.load();
  const CudaTuning tuning = searched != nullptr ? *searched : plan.tuning;
  WgmmaArgs a;
  a.layout = plan.layout;
  a.shares =
      shares_of(plan.layout.n_items, gulp.n_blocks, plan.concurrent_blocks, tuning.least_blocks);
  a.first_block = gulp.first_block;
  a.n_slots = std::clamp(tuning.slots, kLeastSlots, kMostSlots);
  a.overwrite = overwrite;
  a.sums = sums;
  a.next_share = counter;
  RYLE_CUDA(cudaMemsetAsync(counter, 0, sizeof(*counter), stream));
  if (overwrite) {  // whole items are stored over what there is, the others added up
    const std::int64_t first = a.shares.n_whole * plan.layout.item_sums();
    if (first < plan.n_ints) {
      RYLE_CUDA(cudaMemsetAsync(
          sums + first, 0, static_cast<std::size_t>(plan.n_ints - first) * sizeof(*sums), stream));
    }
  }
  const auto n_blocks = static_cast<unsigned>(std::min(a.shares.n(), plan.concurrent_blocks));
  auto* kernel = plan.layout.paired ? correlate_wgmma_s8<true> : correlate_wgmma_s8<false>;
  kernel<<<n_blocks, kAllThreads, static_cast<std::size_t>(shared_bytes(a.n_slots)), stream>>>(
      map_of(plan.layout, gulp), a);
  RYLE_CUDA_LAUNCHED("correlate_wgmma_s8");
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

namespace ryle::correlate {

void set_cuda_tuning(const CudaTuning* tuning) { detail::searched_tuning.store(tuning); }

}  // namespace ryle::correlate
