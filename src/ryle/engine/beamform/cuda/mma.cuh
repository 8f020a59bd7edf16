// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/beamform/cuda/epilogue.cuh"

/// Private to the CUDA beamformer: what the tensor-core kernels share. mma.sync m16n8k32, weights
/// s8 (rows = 16 beams), samples s8, 16 n of nibbles (columns = 8 spectra). The orders of antennas
/// and spectra are free and chosen so that 16-byte loads are operands: lane (n = lane / 4, q = lane
/// % 4) holds spectra 8 n .. 8 n + 7 of a group of 64; tile j (0..7) is spectra {8 n + j}. Sums of
/// a lane: rows g = lane / 4 and g + 8, columns 2 q and 2 q + 1: 16 successive spectra in 8 tiles.
namespace ryle::beamform::detail {

__device__ inline unsigned pick(unsigned a, unsigned b, bool high) {
  return __byte_perm(a, b, high ? 0x7632 : 0x5410);
}

/// Operand B of a tile, real and imaginary.
struct Columns {
  unsigned re[2], im[2];
};

/// Makes the compiler keep what was unpacked instead of unpacking again for every slab.
__device__ inline void keep(Columns& c) {
  asm volatile("" : "+r"(c.re[0]), "+r"(c.re[1]), "+r"(c.im[0]), "+r"(c.im[1]));
}

/// Int4 as signed bytes, 16 times the number: a mask and a shift, no offset.
__device__ inline Columns sixteenfold(uint2 b) {
  constexpr unsigned kHigh = 0xF0F0F0F0u;
  return {{b.x & kHigh, b.y & kHigh}, {(b.x << 4) & kHigh, (b.y << 4) & kHigh}};
}

/// BEST-2 heaps [block][pair][spectrum][2].
struct Pairs4 {
  static constexpr float kUnit = 1.0f / 16;
  static constexpr int kPieces = 4;
  using Vector = uint4;
  Vector raw[kPieces];
  /// Lanes fetch for each other where that makes whole lines of 128 bytes: lane `fetched_for` has
  /// what this one fetches, at `place` of 32 (no bank twice, neither way).
  __device__ static int fetched_for(int lane) { return (lane & 7) * 4 + (lane >> 3); }
  __device__ static int place(int lane) {
    return (lane & 3) * 8 + ((lane >> 2) ^ (2 * (lane & 3)));
  }
  /// Where piece k of lane `lane` lies.
  __device__ static const std::uint8_t* address(const FusedArgs& a, const std::uint8_t* channel,
                                                int group, int step, int lane, int k) {
    group += a.first_group;
    const int block = a.block_shift >= 0 ? group >> a.block_shift : group / a.groups_per_block;
    const std::uint8_t* first =
        channel + block * a.block_stride_bytes +
        (group - block * a.groups_per_block) * (2 * kGroupSpectra) + (lane >> 2) * 16 +
        static_cast<std::int64_t>(step * 16 + (lane & 3)) * a.pair_stride_bytes;
    return first + k * std::int64_t{4} * a.pair_stride_bytes;
  }
  __device__ void load(const FusedArgs& a, const std::uint8_t* channel, int group, int step,
                       int lane) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
      raw[p] = __ldg(reinterpret_cast<const Vector*>(address(a, channel, group, step, lane, p)));
  }
  __device__ static unsigned word(const uint4& v, int k) {
    return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w;
  }
  __device__ uint2 packed(int j) const {
    const int k = j / 2;
    const bool high = j % 2 != 0;
    return {pick(word(raw[0], k), word(raw[1], k), high),
            pick(word(raw[2], k), word(raw[3], k), high)};
  }
  __device__ Columns tile(int j) const { return sixteenfold(packed(j)); }
};

/// [spectrum][antenna], nibbles.
struct Spectra4 {
  static constexpr float kUnit = 1.0f / 16;
  static constexpr int kPieces = 8;
  using Vector = uint2;
  Vector raw[kPieces];
  __device__ static int fetched_for(int lane) { return lane; }
  __device__ static int place(int lane) { return lane; }
  __device__ static const std::uint8_t* address(const FusedArgs& a, const std::uint8_t* channel,
                                                int group, int step, int lane, int k) {
    const std::int64_t first =
        static_cast<std::int64_t>(group + a.first_group) * kGroupSpectra + (lane >> 2) * 8;
    return channel + step * kStepAntennas + (lane & 3) * 8 +
           min(first + k, a.n_spectra - 1) * a.step_stride_bytes;
  }
  __device__ void load(const FusedArgs& a, const std::uint8_t* channel, int group, int step,
                       int lane) {
#pragma unroll
    for (int j = 0; j < kPieces; ++j)
      raw[j] = __ldg(reinterpret_cast<const Vector*>(address(a, channel, group, step, lane, j)));
  }
  __device__ uint2 packed(int j) const { return raw[j]; }
  __device__ Columns tile(int j) const { return sixteenfold(packed(j)); }
};

/// Planes [real, imaginary][spectrum][antenna], bytes.
struct Spectra8 {
  static constexpr float kUnit = 1;
  uint2 re[8], im[8];
  __device__ void load(const FusedArgs& a, const std::uint8_t* channel, int group, int step,
                       int lane) {
    const std::int64_t first =
        static_cast<std::int64_t>(group + a.first_group) * kGroupSpectra + (lane >> 2) * 8;
    const std::uint8_t* from = channel + step * kStepAntennas + (lane & 3) * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::int64_t at = min(first + j, a.n_spectra - 1) * a.step_stride_bytes;
      re[j] = __ldg(reinterpret_cast<const uint2*>(from + at));
      im[j] = __ldg(reinterpret_cast<const uint2*>(from + at + a.plane_stride_bytes));
    }
  }
  __device__ Columns tile(int j) const { return {{re[j].x, re[j].y}, {im[j].x, im[j].y}}; }
};

/// d += a b
__device__ inline void multiply(int (&d)[4], const uint4& a, const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[0]), "r"(b[1]));
}

/// d = kBiasBits + a b
__device__ inline void multiply_biased(int (&d)[4], const uint4& a, const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};\n"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[0]), "r"(b[1]), "r"(kBiasBits));
}

/// A block for every share of beams, spectra and channels.
template <class Kernel>
void launch_partitions(Kernel* kernel, const FusedArgs& a, int threads, std::int64_t shared_bytes,
                       cudaStream_t stream) {
  const int beam_blocks = (a.n_slabs + a.slabs_per_block - 1) / a.slabs_per_block;
  const int items = (a.n_groups + a.groups_per_item - 1) / a.groups_per_item;
  cuda::allow_all_shared(kernel);
  const std::int64_t blocks = std::int64_t{beam_blocks} * items * a.launch_channels;
  kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(shared_bytes),
           stream>>>(a, beam_blocks, items);
  RYLE_CUDA_LAUNCHED("beamform on tensor cores");
}

}  // namespace ryle::beamform::detail
