// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>

#include "ryle/engine/image/cuda/all_sky_voltages.cuh"

/// Device code of the tensor-core paths: the matrix instruction, and voltages as its operand.
namespace ryle::image::detail {

__device__ inline unsigned pack_fp16(float low, float high) {
  const __half2 h = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&h);
}

/// What rounding to half precision left behind, for the second of two halves.
__device__ inline float left_behind(float v) { return v - __half2float(__float2half_rn(v)); }

/// to += |x|^2, |y|^2, Re and Im x conj(y).
__device__ inline void add_products(float (&to)[4], float2 x, float2 y) {
  to[0] = fmaf(x.x, x.x, fmaf(x.y, x.y, to[0]));
  to[1] = fmaf(y.x, y.x, fmaf(y.y, y.y, to[1]));
  to[2] = fmaf(x.x, y.x, fmaf(x.y, y.y, to[2]));
  to[3] = fmaf(x.y, y.x, fmaf(-x.x, y.y, to[3]));
}

/// c += a b, 16 x 8 += 16 x 16 x 8, fp16 operands and fp32 sums.
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// An antenna in shared memory: its inputs, and its scaled gains.
struct OperandSlots {
  int2* input;     // -1 = none
  float4* factor;  // X and Y
};

/// Columns of the operand, one row of `pitch` halves each: t = 4 u + s lies in columns
/// 8 (2 u + pol) + 2 s + {0 = re, 1 = im}, so that a lane of a product holds both parts of one
/// sample. A thread fills two antennas, four spectra and one polarization at a time.
struct OperandWork {
  unsigned word[2][2];  ///< [antenna][re, im]; 4-bit samples use the first

  static __device__ int count(int n_antennas, int n_spectra) {
    return (n_antennas + 1) / 2 * 2 * (n_spectra / 4);
  }
  __device__ void fetch(const FieldBlocks& b, const OperandSlots& slots, int n_antennas, int item,
                        int channel, int t) {
    const int n_pairs = (n_antennas + 1) / 2;
    const int pair = item % n_pairs, pol = item / n_pairs % 2, quad = item / n_pairs / 2;
    t += 4 * quad;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      word[k][0] = word[k][1] = 0;
      const int2 inputs = slots.input[2 * pair + k];
      const int input = pol == 0 ? inputs.x : inputs.y;
      if (input < 0) continue;
      if (b.nibbles) {
        word[k][0] =
            __ldg(reinterpret_cast<const unsigned*>(cell_of(b, channel, t / 128, input) + t % 128));
      } else {
        const auto* cell = cell_of(b, channel, t / 64, input) + t % 64 / 32 * 64 + t % 32;
        word[k][0] = __ldg(reinterpret_cast<const unsigned*>(cell));
        word[k][1] = __ldg(reinterpret_cast<const unsigned*>(cell + 32));
      }
    }
  }
  __device__ float2 sample(bool nibbles, int k, int s) const {
    const unsigned shift = 8 * static_cast<unsigned>(s);
    if (nibbles) {
      const unsigned byte = word[k][0] >> shift & 255u;
      return {static_cast<float>(high_nibble(byte)), static_cast<float>(low_nibble(byte))};
    }
    return {static_cast<float>(static_cast<int>(word[k][0] << (24 - shift)) >> 24),
            static_cast<float>(static_cast<int>(word[k][1] << (24 - shift)) >> 24)};
  }
  /// Split: `low` takes what the rounding left behind.
  template <bool Split>
  __device__ void store(bool nibbles, const OperandSlots& slots, int n_antennas, int item,
                        int pitch, __half* operand, __half* low) const {
    const int n_pairs = (n_antennas + 1) / 2;
    const int pair = item % n_pairs, pol = item / n_pairs % 2, quad = item / n_pairs / 2;
    const float4 f = slots.factor[2 * pair], g = slots.factor[2 * pair + 1];
    const float2 first = pol == 0 ? float2{f.x, f.y} : float2{f.z, f.w};
    const float2 second = pol == 0 ? float2{g.x, g.y} : float2{g.z, g.w};
    const int first_half = 8 * (2 * quad + pol) * pitch + 2 * pair;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      const float2 a = times(first, sample(nibbles, 0, s));
      const float2 b = times(second, sample(nibbles, 1, s));
      const int re = first_half + 2 * s * pitch, im = re + pitch;
      *reinterpret_cast<unsigned*>(operand + re) = pack_fp16(a.x, b.x);
      *reinterpret_cast<unsigned*>(operand + im) = pack_fp16(a.y, b.y);
      if constexpr (Split) {
        *reinterpret_cast<unsigned*>(low + re) = pack_fp16(left_behind(a.x), left_behind(b.x));
        *reinterpret_cast<unsigned*>(low + im) = pack_fp16(left_behind(a.y), left_behind(b.y));
      }
    }
  }
};

}  // namespace ryle::image::detail
