// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/beamform/cuda_mma.cuh"

/// Private to the CUDA beamformer: products of a warpgroup with spectra as rows (left operand, from
/// registers) and beams as columns (right operand, in shared memory). Sums d[b] of a lane: rows
/// lane / 4 {real, imaginary} and that + 8 {real, imaginary} of beam 4 b + lane % 4.
namespace ryle::beamform::detail {

constexpr int kMostShared = 227 << 10;  // of a block

/// Column of the right operand with the real sums of a beam; the imaginary ones lie in the next.
__device__ inline int column_of(int beam) { return beam / 4 * 8 + beam % 4 * 2; }

/// Core matrices of 8 columns x 16 antennas, [columns / 8][antennas / 16].
__device__ inline int place_in_plane(int column, int k) {
  return column / 8 * 256 + k / 16 * 128 + column % 8 * 16 + k % 16;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// sums (64 spectra x 8 kTiles columns) [+]= samples (64 x 32, registers) b (32 x 8 kTiles, shared)
template <bool kAdds>
__device__ inline void multiply_rows(int (&d)[4][4], const unsigned (&s)[4], std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
      "{%16,%17,%18,%19}, %20, p;\n}\n"
      : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
        "+r"(d[1][2]), "+r"(d[1][3]), "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3]),
        "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[3][2]), "+r"(d[3][3])
      : "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "l"(b), "n"(kAdds ? 1 : 0));
}
template <bool kAdds>
__device__ inline void multiply_rows(int (&d)[2][4], const unsigned (&s)[4], std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 "
      "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, p;\n}\n"
      : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
        "+r"(d[1][2]), "+r"(d[1][3])
      : "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "l"(b), "n"(kAdds ? 1 : 0));
}
template <int kTiles>
__device__ inline void settle_rows(int (&d)[kTiles][4]) {
#pragma unroll
  for (int k = 0; k < kTiles; ++k)
    asm volatile("" : "+r"(d[k][0]), "+r"(d[k][1]), "+r"(d[k][2]), "+r"(d[k][3])::"memory");
}

__device__ inline std::uint64_t right_operand(unsigned plane) {
  constexpr std::uint64_t kAlongAntennas = 128, kAlongColumns = 256;
  return plane >> 4 | (kAlongAntennas >> 4) << 16 | (kAlongColumns >> 4) << 32;
}

__device__ inline void team_barrier(int team) {
  asm volatile("bar.sync %0, 128;\n" ::"r"(team + 1) : "memory");
}

#endif

}  // namespace ryle::beamform::detail
