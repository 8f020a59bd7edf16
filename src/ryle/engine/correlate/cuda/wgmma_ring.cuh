// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda.h>

#include "ryle/device/cuda/bulk_add.cuh"
#include "ryle/device/cuda/cache_hint.cuh"
#include "ryle/device/cuda/cluster.cuh"
#include "ryle/device/cuda/early_start.cuh"
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/correlate/cuda/tuning.hpp"
#include "ryle/engine/correlate/cuda/wgmma_cta_pairs.hpp"
#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"

// clang-format off
/// What the Hopper correlators share, whatever the samples are. One thread fills a ring of slots in
/// shared memory by tensor copies, two warpgroups multiply from the slots, and a counter deals out
/// partitions of the work. cuda/wgmma_s8.cu shows what a kernel adds: a `Numbers`, see multiply_run(),
/// and a worker, see run_ring().
///
///   shared memory          bytes               written by         read by
///   slots                  n_slots x 16 KiB    tensor copies      ldmatrix (rows), wgmma (columns)
///   staging                8 warps x 4 KiB     a warp's sums      the copy engine, which adds them to
///                                                                 device memory (cuda/wgmma_sums.cuh)
///   RingBarriers           full, empty         see below
///                          tickets             the producer       every warp that multiplies
///
/// A slot passes through four states. (1) The producer waits for `empty`, announces 16 KiB at `full`
/// and starts the copy. (2) The copy completes `full`. (3) Every warp that multiplies waits for
/// `full`, loads its rows into registers and starts products on the columns. (4) Every warp arrives at
/// `empty` when its products have taken what they need: rows after the products of the block, columns
/// after the first products of the next block. With clusters both thread blocks of a cluster wait for
/// and give back every slot, because each brings half of an operand they share.
// clang-format on
namespace ryle::correlate::wgmma {

inline constexpr int kAllThreads = kThreads + 128;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kTickets = 4;  ///< partitions on their way from the counter to the warpgroups
inline constexpr int kSlotAlign = 1024;  ///< a swizzle's period
/// Of a warp, for sums on their way out (cuda/wgmma_sums.cuh).
inline constexpr int kStagingBytes = 4096;

struct RingBarriers {
  std::uint64_t full[kMaxSlots], empty[kMaxSlots];
  std::uint64_t ticket_full[kTickets], ticket_empty[kTickets];
  int tickets[kTickets];
};

struct RingArgs {
  Layout layout;
  Partitions partitions;  ///< of items; clusters: of CTA pairs
  int first_block = 0;
  bool clusters = false;  ///< of two thread blocks, which bring operands for one another
  CtaPairs cta_pairs;     ///< with clusters
  bool hints = false;     ///< CudaTuning::hints
  int burst = 1;          ///< CudaTuning::burst, below n_slots
  int n_slots = 0;
  int* next_partition = nullptr;   ///< 0 before the launch
  int* other_partition = nullptr;  ///< if there is one: 0 after it
};

/// Dynamic shared memory of a kernel.
RYLE_HOST_DEVICE constexpr int shared_bytes(int n_slots) {
  return kSlotAlign + n_slots * kSlotBytes + kWarps * kStagingBytes +
         static_cast<int>(sizeof(RingBarriers));
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
  unsigned staging = 0;  // of this warp
  unsigned peer = 0;     // barriers of the other block of the cluster
  int at = 0;
  unsigned turn = 0;
  bool columns_first = false;  // of a piece: the order of its operands
  bool keeps = true;           // of a piece: its sums count
  bool idle_second = false;    // of a piece: every other slot is for the other block alone
  __device__ unsigned slot() const { return slots + at * kSlotBytes; }
  __device__ unsigned full() const { return barriers + at * 8; }
  __device__ unsigned empty() const { return barriers + kMaxSlots * 8 + at * 8; }
  __device__ void await_full() const { cuda::await(full(), turn); }
  /// One thread of a warp: the slot of this barrier is not needed any more.
  __device__ void release(unsigned its_empty) const {
    cuda::arrive(its_empty);
    if (peer != 0) cuda::arrive_there(peer + (its_empty - barriers));
  }
  __device__ void advance() {
    if (++at < n_slots) return;
    at = 0;
    turn ^= 1;
  }
};

/// Partitions from the counter to the warpgroups (and to the producer of the other block of a
/// cluster).
struct Tickets {
  const RingArgs& a;
  RingBarriers& b;
  unsigned rank = 0;

  __device__ unsigned peer(const void* p) const {
    return cuda::address_in(rank ^ 1, cuda::shared_address(p));
  }
  __device__ int draw(unsigned n) const {
    const unsigned t = n % kTickets, parity = n / kTickets & 1;
    if (rank != 0) {
      cuda::await_cluster_alone(cuda::shared_address(&b.ticket_full[t]), parity);
      const int partition = b.tickets[t];
      cuda::arrive_there(peer(&b.ticket_empty[t]));
      return partition;
    }
    const int partition = atomicAdd(a.next_partition, 1);
    cuda::await_alone(cuda::shared_address(&b.ticket_empty[t]), parity ^ 1);
    b.tickets[t] = partition;
    if (a.clusters) cuda::store_there(peer(&b.tickets[t]), partition);
    cuda::arrive(&b.ticket_full[t]);
    if (a.clusters) cuda::arrive_there_with_stores(peer(&b.ticket_full[t]));
    return partition;
  }
  /// A warp that multiplies: the same number, then the counter's next.
  __device__ int take(unsigned n) const {
    const unsigned t = n % kTickets, parity = n / kTickets & 1;
    if (rank != 0) {
      cuda::await_cluster_alone(cuda::shared_address(&b.ticket_full[t]), parity);
    } else {
      cuda::await_alone(cuda::shared_address(&b.ticket_full[t]), parity);
    }
    __syncwarp();
    const int partition = b.tickets[t];
    if (threadIdx.x % 32 == 0) {
      if (rank != 0) {
        cuda::arrive_there(peer(&b.ticket_empty[t]));
      } else {
        cuda::arrive(&b.ticket_empty[t]);
      }
    }
    return partition;
  }
};

/// One thread: operands of 128 inputs x one block, rows then (below the diagonal) columns, block
/// after block, partition after partition.
__device__ inline void produce(const CUtensorMap* map, const RingArgs& a, const Tickets& tickets,
                               Ring ring) {
  const std::uint64_t normal = cuda::evicted_normally();
  const std::uint64_t last_time = a.hints ? cuda::evicted_first() : normal;
  const auto bring = [&](int channel, int first_input, int block, std::uint64_t policy) {
    cuda::await_alone(ring.empty(), ring.turn ^ 1);
    cuda::arrive_and_expect(ring.full(), kSlotBytes);
    cuda::copy_box(ring.slot(), map, 0, first_input, block, channel, ring.full(), policy);
    ring.advance();
  };
  for (unsigned n = 0;; ++n) {
    const int partition = tickets.draw(n);
    if (partition >= a.partitions.n()) return;
    for_each_run(a.partitions, partition, [&](std::int64_t id, int first_block, int n_blocks) {
      const Item item = a.layout.item(id);
      const bool diagonal = item.tile.row == item.tile.column;
      // Of two rows of tiles, those on the diagonal are faster and read first.
      const std::uint64_t policy = a.layout.tile_rows == (diagonal ? 1 : 2) ? last_time : normal;
      for (int k = 0; k < n_blocks; ++k) {
        const int block = a.first_block + first_block + k;
        if (diagonal && a.burst > 1 && k % a.burst == 0) {
          Ring last = ring;  // is free when those before it are
          const int ahead = min(a.burst, n_blocks - k) - 1;
          for (int m = 0; m < ahead; ++m) last.advance();
          cuda::await_alone(last.empty(), last.turn ^ 1);
        }
        bring(item.channel, item.tile.row * kTile, block, policy);
        if (!diagonal) bring(item.channel, item.tile.column * kTile, block, policy);
      }
    });
  }
}

/// The same in a cluster, by boxes of half the inputs: of an operand in common each block brings
/// one half to both, when the slot is empty in both.
__device__ inline void produce_cta_pairs(const CUtensorMap* map, const RingArgs& a,
                                         const Tickets& tickets, Ring ring) {
  const auto rank = static_cast<int>(tickets.rank);
  const auto bring = [&](int channel, int group, int block, bool common) {
    constexpr int kHalf = kTile / 2, kHalfBytes = kSlotBytes / 2;
    cuda::await_alone(ring.empty(), ring.turn ^ 1);
    cuda::arrive_and_expect(ring.full(), kSlotBytes);
    if (common) {
      cuda::copy_box_to(3, ring.slot() + rank * kHalfBytes, map, 0, group * kTile + rank * kHalf,
                        block, channel, ring.full());
    } else {
      cuda::copy_box(ring.slot(), map, 0, group * kTile, block, channel, ring.full());
      cuda::copy_box(ring.slot() + kHalfBytes, map, 0, group * kTile + kHalf, block, channel,
                     ring.full());
    }
    ring.advance();
  };
  for (unsigned n = 0;; ++n) {
    const int partition = tickets.draw(n);
    if (partition >= a.partitions.n()) return;
    for_each_run(a.partitions, partition, [&](std::int64_t id, int first_block, int n_blocks) {
      const CtaPairTask task = a.cta_pairs.task(a.layout, id, rank);
      for (int k = 0; k < n_blocks; ++k) {
        const int block = a.first_block + first_block + k;
        bring(task.item.channel, task.first, block, task.common_first);
        if (task.idle_second) {
          cuda::await_alone(ring.empty(), ring.turn ^ 1);
          cuda::arrive(ring.full());
          ring.advance();
        } else if (task.first != task.second) {
          bring(task.item.channel, task.second, block, false);
        }
      }
    });
  }
}

/// Products of one step as one group: `rows` as operand A against the columns of a slot; Rows has
/// re, im and minus_im, the last for tiles below the diagonal.
template <Part kPart, class Sums, class Rows>
__device__ inline void multiply_step(Sums& sums, const Rows& rows, unsigned columns, int warpgroup,
                                     int step) {
  const int first = kPart == Part::paired ? warpgroup * kGroupRows : 0;
  const std::uint64_t re = operand_b(columns, first, step, 0);
  const std::uint64_t im = operand_b(columns, first, step, 1);
  cuda::begin_products();
  if constexpr (kPart == Part::upper) {
    cuda::multiply_64(sums.re, rows.re, re);
    cuda::multiply_128(sums.im, rows.re, im);
    cuda::multiply_64(sums.re, rows.im, im);
  } else if constexpr (kPart == Part::paired) {
    cuda::multiply_64(sums.re, rows.re, re);
    cuda::multiply_64(sums.im, rows.re, im);
    cuda::multiply_64(sums.re, rows.im, im);
  } else {
    cuda::multiply_128(sums.re, rows.re, re);
    cuda::multiply_128(sums.im, rows.re, im);
    cuda::multiply_128(sums.re, rows.im, im);
    if constexpr (kPart == Part::across) cuda::multiply_128(sums.im, rows.minus_im, re);
  }
  cuda::end_products();
}

/// Adds n_blocks >= 1 blocks of one item. While the tensor cores work on one step, the rows of
/// the next are loaded. Numbers has
///   Sums; Rows                                         in registers
///   load_rows<Part>(Rows&, Sums&, slot, warpgroup, warp, lane, step)
template <class Numbers, Part kPart>
__device__ inline void multiply_run(typename Numbers::Sums& sums, Ring& ring, int n_blocks,
                                    int warpgroup, int warp, int lane) {
  static_assert(kSteps == 2);
  typename Numbers::Rows even, odd;
  unsigned before = 0;  // slot of columns in use by the last products
#pragma unroll 1
  for (int k = 0; k < n_blocks; ++k) {
    ring.await_full();
    unsigned rows = ring.slot(), rows_empty = ring.empty();
    unsigned columns = rows, columns_empty = rows_empty;
    if constexpr (kPart == Part::across) {
      ring.advance();
      ring.await_full();
      (ring.columns_first ? rows : columns) = ring.slot();
      (ring.columns_first ? rows_empty : columns_empty) = ring.empty();
    }
    Numbers::template load_rows<kPart>(even, sums, rows, warpgroup, warp, lane, 0);
    multiply_step<kPart>(sums, even, columns, warpgroup, 0);
    cuda::wait_products<1>();
    if (k > 0 && lane == 0) ring.release(before);
    before = columns_empty;
    ring.advance();
    if constexpr (kPart == Part::upper || kPart == Part::lower) {
      if (ring.idle_second) {
        ring.await_full();
        if (lane == 0) ring.release(ring.empty());
        ring.advance();
      }
    }
    Numbers::template load_rows<kPart>(odd, sums, rows, warpgroup, warp, lane, 1);
    multiply_step<kPart>(sums, odd, columns, warpgroup, 1);
    cuda::wait_products<1>();
    if constexpr (kPart == Part::across) {
      // Not before the products have taken them: an arrival does not wait for loads on their way,
      // which a copy into the slot would overtake.
      __syncwarp();
      if (lane == 0) ring.release(rows_empty);
    }
  }
  cuda::wait_products<0>();
  if (lane == 0) ring.release(before);
}

/// What is the same in all lanes, told to the compiler, which else takes branches on it for
/// divergent and waits after every product.
__device__ inline int uniform(int value) { return __shfl_sync(0xffffffffu, value, 0); }

/// The warpgroups that multiply: worker.work<Part>(ring, partition, id, item, n_blocks, warpgroup,
/// warp) for every run of every partition.
template <bool kPaired, class Worker>
__device__ inline void consume(const RingArgs& a, const Tickets& tickets, Ring ring,
                               const Worker& worker) {
  const int warpgroup = uniform(threadIdx.x / 128), warp = uniform(threadIdx.x / 32 % 4);
  for (unsigned n = 0;; ++n) {
    const int partition = uniform(tickets.take(n));
    if (partition >= a.partitions.n()) return;
    for_each_run(a.partitions, partition, [&](std::int64_t id, int, int n_blocks) {
      Item item;
      if (a.clusters) {
        const CtaPairTask task = a.cta_pairs.task(a.layout, id, static_cast<int>(tickets.rank));
        item = task.item;
        id = task.id;
        ring.columns_first = uniform(task.columns_first) != 0;
        ring.keeps = task.keeps;
        ring.idle_second = uniform(task.idle_second) != 0;
      } else {
        item = a.layout.item(id);
      }
      if constexpr (kPaired) {
        worker.template work<Part::paired>(ring, partition, id, item, n_blocks, warpgroup, warp);
      } else if (item.tile.row != item.tile.column) {
        worker.template work<Part::across>(ring, partition, id, item, n_blocks, warpgroup, warp);
      } else if (warpgroup == 0) {
        worker.template work<Part::upper>(ring, partition, id, item, n_blocks, warpgroup, warp);
      } else {
        worker.template work<Part::lower>(ring, partition, id, item, n_blocks, warpgroup, warp);
      }
    });
  }
}

__device__ inline unsigned round_up_to_swizzle(unsigned address) {
  return (address + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
}

/// Dynamic shared memory, shared_bytes() of it.
struct RingMemory {
  unsigned slots;
  RingBarriers& barriers;

  __device__ RingMemory(std::byte* memory, const RingArgs& a)
      : slots(round_up_to_swizzle(cuda::shared_address(memory))),
        barriers(*reinterpret_cast<RingBarriers*>(memory + (slots - cuda::shared_address(memory)) +
                                                  a.n_slots * kSlotBytes +
                                                  kWarps * kStagingBytes)) {}
  __device__ Ring ring(const RingArgs& a) const {
    Ring r{slots, cuda::shared_address(&barriers), a.n_slots};
    r.staging = slots + a.n_slots * kSlotBytes + threadIdx.x / 32 * kStagingBytes;
    return r;
  }
};

/// One thread, before barriers_begun(). @param warps that let go of every slot and take tickets
__device__ inline void begin_ring(RingBarriers& b, const RingArgs& a, unsigned warps) {
  const unsigned n_peers = a.clusters ? 1 : 0;
  for (int k = 0; k < a.n_slots; ++k) {
    cuda::begin_barrier(&b.full[k], 1);
    cuda::begin_barrier(&b.empty[k], warps * (1 + n_peers));
  }
  for (int k = 0; k < kTickets; ++k) {  // the other block's producer takes tickets, too
    cuda::begin_barrier(&b.ticket_full[k], 1);
    cuda::begin_barrier(&b.ticket_empty[k], warps + n_peers * (warps + 1));
  }
}

/// A whole kernel of kAllThreads threads and shared_bytes() of dynamic shared memory `memory`.
template <bool kPaired, class Worker>
__device__ inline void run_ring(std::byte* memory, const CUtensorMap* map, const RingArgs& a,
                                const Worker& worker) {
  const RingMemory m(memory, a);
  cuda::let_next_kernel_begin();
  if (threadIdx.x == 0) {
    begin_ring(m.barriers, a, kWarps);
    cuda::barriers_begun();
  }
  __syncthreads();
  cuda::await_kernel_before();
  if (blockIdx.x == 0 && threadIdx.x == 0 && a.other_partition != nullptr) *a.other_partition = 0;
  const Tickets tickets{a, m.barriers, a.clusters ? cuda::cluster_rank() : 0};
  Ring ring = m.ring(a);
  if (a.clusters) {
    ring.peer = cuda::address_in(tickets.rank ^ 1, ring.barriers);
    cuda::synchronize_cluster();  // its barriers have begun, too
  }
  if (threadIdx.x < kThreads) {
    // 384 threads begin with 168 registers each: 128 (168 - 56) = 256 (224 - 168).
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;\n");
    consume<kPaired>(a, tickets, ring, worker);
    if (threadIdx.x % 32 == 0) cuda::wait_bulk_reads<0>();  // of the staging
    if (a.clusters) cuda::synchronize_cluster();  // nobody reaches into a block that is gone
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;\n");
    if (threadIdx.x == kThreads) {
      if (a.clusters) {
        produce_cta_pairs(map, a, tickets, ring);
      } else {
        produce(map, a, tickets, ring);
      }
    }
    if (a.clusters) cuda::synchronize_cluster();
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace ryle::correlate::wgmma
