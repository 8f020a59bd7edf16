// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda.h>

#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/correlate/cuda_tuning.hpp"
#include "ryle/engine/correlate/cuda_wgmma_layout.hpp"

/// What the Hopper correlators share, whatever the samples are: a ring of slots in shared memory
/// that one thread fills by tensor copies, warpgroups that multiply from it, shares of the work
/// from a counter. Nobody waits at a barrier of the block: mbarriers say what is full and what is
/// empty. cuda_wgmma_s8.cu says what a kernel adds: a `Numbers`, see multiply_piece(), and a
/// worker, see run_ring().
namespace ryle::correlate::wgmma {

inline constexpr int kAllThreads = kThreads + 128;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kTickets = 4;       ///< shares on their way from the counter to the warpgroups
inline constexpr int kSlotAlign = 1024;  ///< a swizzle's period

struct RingBarriers {
  std::uint64_t full[kMostSlots], empty[kMostSlots];
  std::uint64_t ticket_full[kTickets], ticket_empty[kTickets];
  int tickets[kTickets];
};

struct RingArgs {
  Layout layout;
  Shares shares;
  int first_block = 0;
  int n_slots = 0;
  int* next_share = nullptr;  ///< 0 before the launch
};

/// Dynamic shared memory of a kernel.
constexpr int shared_bytes(int n_slots) {
  return kSlotAlign + n_slots * kSlotBytes + static_cast<int>(sizeof(RingBarriers));
}

/// What a warpgroup makes of a tile.
enum class Part : std::uint8_t {
  across,  ///< below the diagonal: everything
  upper,   ///< rows 0..63 of a tile on the diagonal: Re of 64 columns, G of 128
  lower,   ///< rows 64..127: Re and G of 128
  paired   ///< all of one channel of two: Re and G of 64 rows and columns
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// The slots in the order in which they are filled and emptied.
struct Ring {
  unsigned slots, barriers;  // shared-memory addresses
  int n_slots;
  int at = 0;
  unsigned turn = 0;
  __device__ unsigned slot() const { return slots + at * kSlotBytes; }
  __device__ unsigned full() const { return barriers + at * 8; }
  __device__ unsigned empty() const { return barriers + kMostSlots * 8 + at * 8; }
  __device__ void await_full() const { cuda::await(full(), turn); }
  __device__ void advance() {
    if (++at < n_slots) return;
    at = 0;
    turn ^= 1;
  }
};

/// One thread: operands of 128 inputs x one block, rows then (below the diagonal) columns, block
/// after block, share after share.
__device__ inline void produce(const CUtensorMap* map, const RingArgs& a, RingBarriers& b,
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
    cuda::await_alone(cuda::shared_address(&b.ticket_empty[t]), (n / kTickets & 1) ^ 1);
    b.tickets[t] = share;
    cuda::arrive(&b.ticket_full[t]);
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

/// Adds n_blocks >= 1 blocks of one item. While the tensor cores work on one step, the rows of
/// the next are loaded. Numbers has
///   Sums; Rows                                         in registers
///   load_rows<Part>(Rows&, Sums&, slot, warpgroup, warp, lane, step)
///   multiply_step<Part>(Sums&, const Rows&, slot, warpgroup, step)    one group of products
template <class Numbers, Part kPart>
__device__ inline void multiply_piece(typename Numbers::Sums& sums, Ring& ring, int n_blocks,
                                      int warpgroup, int warp, int lane) {
  static_assert(kSteps == 2);
  typename Numbers::Rows even, odd;
  unsigned before = 0;  // slot of columns in use by the last products
#pragma unroll 1
  for (int k = 0; k < n_blocks; ++k) {
    ring.await_full();
    const unsigned rows = ring.slot();
    Numbers::template load_rows<kPart>(even, sums, rows, warpgroup, warp, lane, 0);
    const unsigned rows_empty = ring.empty();
    if constexpr (kPart == Part::across) {
      ring.advance();
      ring.await_full();
    }
    const unsigned columns = ring.slot();
    Numbers::template multiply_step<kPart>(sums, even, columns, warpgroup, 0);
    cuda::wait_products<1>();
    if (k > 0 && lane == 0) cuda::arrive(before);
    before = ring.empty();
    ring.advance();
    Numbers::template load_rows<kPart>(odd, sums, rows, warpgroup, warp, lane, 1);
    if constexpr (kPart == Part::across) {  // all rows are in registers
      __syncwarp();
      if (lane == 0) cuda::arrive(rows_empty);
    }
    Numbers::template multiply_step<kPart>(sums, odd, columns, warpgroup, 1);
    cuda::wait_products<1>();
  }
  cuda::wait_products<0>();
  if (lane == 0) cuda::arrive(before);
}

/// What is the same in all lanes, told to the compiler, which else takes branches on it for
/// divergent and waits after every product.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

/// The warpgroups that multiply: worker.work<Part>(ring, share, id, item, n_blocks, warpgroup,
/// warp) for every piece of every share.
template <bool kPaired, class Worker>
__device__ inline void consume(const RingArgs& a, RingBarriers& b, Ring ring,
                               const Worker& worker) {
  const int warpgroup = uniform(threadIdx.x / 128), warp = uniform(threadIdx.x / 32 % 4);
  for (unsigned n = 0;; ++n) {
    const unsigned t = n % kTickets;
    cuda::await(&b.ticket_full[t], n / kTickets & 1);
    const int share = uniform(b.tickets[t]);
    if (threadIdx.x % 32 == 0) cuda::arrive(&b.ticket_empty[t]);
    if (share >= a.shares.n()) return;
    for_each_piece(a.shares, share, [&](std::int64_t id, int, int n_blocks) {
      const Item item = a.layout.item(id);
      if constexpr (kPaired) {
        worker.template work<Part::paired>(ring, share, id, item, n_blocks, warpgroup, warp);
      } else if (item.tile.row != item.tile.column) {
        worker.template work<Part::across>(ring, share, id, item, n_blocks, warpgroup, warp);
      } else if (warpgroup == 0) {
        worker.template work<Part::upper>(ring, share, id, item, n_blocks, warpgroup, warp);
      } else {
        worker.template work<Part::lower>(ring, share, id, item, n_blocks, warpgroup, warp);
      }
    });
  }
}

/// A whole kernel of kAllThreads threads and shared_bytes() of dynamic shared memory `memory`.
template <bool kPaired, class Worker>
__device__ inline void run_ring(std::byte* memory, const CUtensorMap* map, const RingArgs& a,
                                const Worker& worker) {
  const unsigned begin = cuda::shared_address(memory);
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
  const Ring ring{slots, cuda::shared_address(&barriers), a.n_slots};
  if (threadIdx.x < kThreads) {
    // 384 threads begin with 168 registers each: 128 (168 - 56) = 256 (224 - 168).
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;\n");
    consume<kPaired>(a, barriers, ring, worker);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;\n");
    if (threadIdx.x == kThreads) produce(map, a, barriers, ring);
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace ryle::correlate::wgmma
