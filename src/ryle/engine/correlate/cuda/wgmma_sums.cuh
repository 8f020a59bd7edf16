// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <type_traits>

#include "ryle/engine/correlate/cuda/wgmma_ring.cuh"

/// Sums of the Hopper correlators from registers to device memory, in the order of sum_at(). `to`
/// is the first sum of the part for this warp; the first kRegisters registers are taken.
namespace ryle::correlate::wgmma {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <class T>
using Sums4 = std::conditional_t<std::is_same_v<T, float>, float4, int4>;

/// passing: the sums leave the second-level cache before inputs that other tiles need.
template <int kRegisters, class T>
__device__ inline void store_sums(T* to, const T (&sums)[64], int lane, bool passing = false) {
  auto* mine = reinterpret_cast<Sums4<T>*>(to + sum_at(lane, 0, kRegisters));
#pragma unroll
  for (int r = 0; r < kRegisters; r += 4) {
    const Sums4<T> four{sums[r], sums[r + 1], sums[r + 2], sums[r + 3]};
    if (passing) {
      __stcs(mine + sum_at(0, r, kRegisters) / 4, four);
    } else {
      mine[sum_at(0, r, kRegisters) / 4] = four;
    }
  }
}

/// The copy engine adds them up in the second-level cache: 16 registers of a warp at a time,
/// through two buffers in shared memory.
template <int kRegisters, class T>
__device__ inline void add_sums(T* to, const T (&sums)[64], const Ring& ring, int lane) {
  constexpr int kPiece = 16, kPieceBytes = kPiece * 32 * 4;
  static_assert(2 * kPieceBytes == kStagingBytes && kRegisters % (2 * kPiece) == 0);
#pragma unroll
  for (int first = 0; first < kRegisters; first += kPiece) {
    const unsigned buffer = ring.staging + first / kPiece % 2 * kPieceBytes;
    if (lane == 0) cuda::wait_bulk_reads<1>();
    __syncwarp();
#pragma unroll
    for (int r = first; r < first + kPiece; r += 4) {
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(
                       buffer + 4 * sum_at(lane, r - first, kPiece)),
                   "r"(__builtin_bit_cast(int, sums[r])), "r"(__builtin_bit_cast(int, sums[r + 1])),
                   "r"(__builtin_bit_cast(int, sums[r + 2])),
                   "r"(__builtin_bit_cast(int, sums[r + 3]))
                   : "memory");
    }
    cuda::show_to_products();  // and to copies
    __syncwarp();
    if (lane == 0) cuda::add_bulk(to + sum_at(0, first, kRegisters), buffer, kPieceBytes);
  }
}

#endif

}  // namespace ryle::correlate::wgmma
