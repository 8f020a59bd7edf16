// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/cuda_kernels.cuh"

/// Private to the CUDA beamformer: what the tensor-core kernels share. mma.sync m16n8k32, weights
/// s8 (rows = 16 beams), samples u8 n + 8 or s8 (columns = 8 spectra). The orders of antennas and
/// spectra are free and chosen so that 16-byte loads are operands: lane (n = lane / 4, q = lane %
/// 4) holds spectra 8 n .. 8 n + 7 of a group of 64; tile j (0..7) is spectra {8 n + j}. Sums of a
/// lane: rows g = lane / 4 and g + 8, columns 2 q and 2 q + 1: 16 successive spectra in 8 tiles.
namespace ryle::beamform::detail {

inline constexpr float kBias = 12582912.0f;  // 1.5 2^23: see cuda_plain.cu, pack
inline constexpr int kBiasBits = 0x4B400000;

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

__device__ inline Columns nibbles(unsigned b0, unsigned b1) {
  constexpr unsigned kLow = 0x0F0F0F0Fu, kSign = 0x08080808u;
  return {{((b0 >> 4) & kLow) ^ kSign, ((b1 >> 4) & kLow) ^ kSign},
          {(b0 & kLow) ^ kSign, (b1 & kLow) ^ kSign}};
}

/// BEST-2 heaps [block][pair][spectrum][2].
struct Pairs4 {
  static constexpr bool kSigned = false;
  static constexpr int kPieces = 4;
  using Piece = uint4;
  Piece raw[kPieces];
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
    const int block = group / a.groups_per_block;
    return channel + block * a.block_stride_bytes +
           (group - block * a.groups_per_block) * (2 * kGroupSpectra) + (lane >> 2) * 16 +
           static_cast<std::int64_t>(step * 16 + (lane & 3) + 4 * k) * a.pair_stride_bytes;
  }
  __device__ void load(const FusedArgs& a, const std::uint8_t* channel, int group, int step,
                       int lane) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
      raw[p] = __ldg(reinterpret_cast<const Piece*>(address(a, channel, group, step, lane, p)));
  }
  __device__ static unsigned word(const uint4& v, int k) {
    return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w;
  }
  __device__ Columns tile(int j) const {
    const int k = j / 2;
    const bool high = j % 2 != 0;
    return nibbles(pick(word(raw[0], k), word(raw[1], k), high),
                   pick(word(raw[2], k), word(raw[3], k), high));
  }
};

/// [spectrum][antenna], nibbles.
struct Spectra4 {
  static constexpr bool kSigned = false;
  static constexpr int kPieces = 8;
  using Piece = uint2;
  Piece raw[kPieces];
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
      raw[j] = __ldg(reinterpret_cast<const Piece*>(address(a, channel, group, step, lane, j)));
  }
  __device__ Columns tile(int j) const { return nibbles(raw[j].x, raw[j].y); }
};

/// Planes [real, imaginary][spectrum][antenna], bytes.
struct Spectra8 {
  static constexpr bool kSigned = true;
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

template <bool Signed>
__device__ inline void multiply(int (&d)[4], const uint4& a, const unsigned (&b)[2],
                                const int (&c)[4]) {
  if constexpr (Signed) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};\n"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
          "r"(c[2]), "r"(c[3]));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};\n"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
          "r"(c[2]), "r"(c[3]));
  }
}

/// What a row of a slab needs: its sums times mul, plus add (requantisation).
struct RowTable {
  float mul[2], add[2];  // of rows g and g + 8
};

/// Tables of a block's rows in shared memory: [row]{mul, add}.
__device__ inline void fill_rows(const FusedArgs& a, float2* rows, int first_row, int n_rows,
                                 int channel) {
  const bool power = a.output == FusedOutput::integrated || a.output == FusedOutput::power_f32 ||
                     a.output == FusedOutput::power_u8;
  const bool codes = a.output == FusedOutput::power_u8 || a.output == FusedOutput::ci8 ||
                     (a.output == FusedOutput::integrated && a.as_bytes);
  for (int r = threadIdx.x; r < n_rows; r += blockDim.x) {
    const int row = first_row + r;
    float2 entry{0, 0};
    if (row < a.n_beams) {
      float w =
          a.weight_scale == nullptr
              ? 1.0f
              : a.weight_scale[(static_cast<std::int64_t>(row) * a.n_pols + a.pol) * a.n_channels +
                               channel];
      if (power) w = w * w * a.gain;
      if (codes) {
        const std::int64_t at =
            (static_cast<std::int64_t>(row) * a.n_products + a.product) * a.n_channels + channel;
        w *= a.scale[at];
        entry.y = power ? a.offset[at] : 0.0f;
      }
      entry.x = w;
    }
    rows[r] = entry;
  }
}

/// One slab of 16 beams x 64 spectra on its way out. `half` gets tiles 4 H .. 4 H + 3 in order.
struct Epilogue {
  const FusedArgs& a;
  RowTable table;
  float4 base;  // what the sums of rows g, g + 8 begin with: real, real, imaginary, imaginary
  int row;      // g of the slab's rows, of all beams
  int channel;  // of the launch
  int group;
  int lane;

  __device__ Epilogue(const FusedArgs& args, const float2* rows, float4 base_, int first_row,
                      int local_channel, int all_channel, int group_, int lane_)
      : a(args),
        base(base_),
        row(first_row + (lane_ >> 2)),
        channel(local_channel),
        group(group_),
        lane(lane_) {
    const float2 low = rows[lane >> 2], high = rows[(lane >> 2) + 8];
    table = {{low.x, high.x}, {low.y, high.y}};
    if (a.loss.factor == nullptr || a.output == FusedOutput::integrated) return;
    const bool power = a.output == FusedOutput::power_f32 || a.output == FusedOutput::power_u8;
    apply_loss(all_channel, power);
  }
  __device__ float real(int bits, int h) const {
    return __int_as_float(bits) - (h == 0 ? base.x : base.y);
  }
  __device__ float imaginary(int bits, int h) const {
    return __int_as_float(bits) - (h == 0 ? base.z : base.w);
  }
  /// Slots are whole groups: one factor.
  __device__ void apply_loss(int all_channel, bool power) {
    const std::int64_t slot =
        static_cast<std::int64_t>(group) * kGroupSpectra / a.loss.slot_spectra;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row + 8 * h >= a.n_beams) continue;
      const float f =
          a.loss.factor[((a.pol * a.loss.n_rows + row + 8 * h) * a.loss.n_channels + all_channel) *
                            a.loss.n_slots +
                        slot];
      table.mul[h] *= power ? f * f : f;
    }
  }
  __device__ bool exists(int h) const { return row + 8 * h < a.n_beams; }
  __device__ std::byte* at(int to_row) const {
    return a.values + to_row * a.row_stride_bytes + channel * a.channel_stride_out_bytes;
  }
  /// Counts of the four lanes of a row, added to the row's.
  __device__ void count(int h, int all_channel, unsigned low, unsigned high) const {
    for (int k = 1; k < 4; k *= 2) {
      low += __shfl_xor_sync(~0u, low, k);
      high += __shfl_xor_sync(~0u, high, k);
    }
    if ((lane & 3) != 0 || !exists(h)) return;
    const std::int64_t cell =
        (static_cast<std::int64_t>(row + 8 * h) * a.n_products + a.product) * a.n_channels +
        all_channel;
    if (low != 0 && a.low != nullptr) atomicAdd(a.low + cell, low);
    if (high != 0 && a.high != nullptr) atomicAdd(a.high + cell, high);
  }
};

/// Rows of 64 values of `Bytes` each, staged in shared memory and stored as whole lines. Pieces of
/// 16 bytes are swapped so that neither side meets a bank twice.
template <int Bytes>
struct Staging {
  static constexpr int kRowBytes = kGroupSpectra * Bytes;
  static constexpr int kBytes = kSlabRows * kRowBytes;
  static __device__ int place(int row, int piece) {
    if constexpr (Bytes == 4) return (piece ^ (piece >> 3 & 1)) ^ ((row & 1) << 1);
    return piece ^ (row & 1);
  }
  static __device__ void flush(const Epilogue& e, const std::byte* memory) {
    constexpr int kPieces = kRowBytes / 16, kRowsAtOnce = 32 / kPieces;
    constexpr int kPerPiece = 16 / Bytes;
    __syncwarp();
    const int piece = e.lane % kPieces;
    const std::int64_t first =
        static_cast<std::int64_t>(e.group) * kGroupSpectra + piece * kPerPiece;
    const int slab_row = e.row - (e.lane >> 2);
#pragma unroll
    for (int r = e.lane / kPieces; r < kSlabRows; r += kRowsAtOnce) {
      const uint4 v =
          *reinterpret_cast<const uint4*>(memory + r * kRowBytes + place(r, piece) * 16);
      if (slab_row + r >= e.a.n_beams) continue;
      std::byte* to = e.at(slab_row + r) + first * Bytes;
      if (e.a.vectors && first + kPerPiece <= e.a.n_values) {
        *reinterpret_cast<uint4*>(to) = v;
        continue;
      }
      const auto* from = reinterpret_cast<const std::byte*>(&v);
      for (int k = 0; k < kPerPiece && first + k < e.a.n_values; ++k)
        for (int b = 0; b < Bytes; ++b) to[k * Bytes + b] = from[k * Bytes + b];
    }
    __syncwarp();
  }
};

/// Powers added over 8, 16, 32 or 64 spectra: f32 or u8.
struct Integrated {
  static constexpr int kStagingBytes = 0;
  float sum[2][2] = {};
  template <int H>
  __device__ void half(const Epilogue& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte*) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float x = e.real(re[k][c], c / 2), y = e.imaginary(im[k][c], c / 2);
#if RYLE_MUTANT == 943
        sum[c / 2][c % 2] = fmaf(x, x, sum[c / 2][c % 2]) - y * y;
#else
        sum[c / 2][c % 2] = fmaf(y, y, fmaf(x, x, sum[c / 2][c % 2]));
#endif
      }
    }
  }
  __device__ void finish(const Epilogue& e, int all_channel, std::byte*) {
    const FusedArgs& a = e.a;
    const int q = e.lane & 3, n = a.windows_per_group;
    const int index = a.integration == 8    ? 2 * q
                      : a.integration == 16 ? q
                      : a.integration == 32 ? q / 2
                                            : 0;
    const std::int64_t at = static_cast<std::int64_t>(e.group) * n + index;
    const bool mine = a.integration <= 16 || (a.integration == 32 ? q % 2 == 0 : q == 0);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float first = sum[h][0], second = sum[h][1];
      if (a.integration > 8) first += second;
      if (a.integration > 16) first += __shfl_xor_sync(~0u, first, 1);
      if (a.integration > 32) first += __shfl_xor_sync(~0u, first, 2);
      const bool two = a.integration == 8 && at + 1 < a.n_values;
      float f0 = e.table.mul[h], f1 = f0;
      if (a.loss.factor != nullptr && e.exists(h) && at < a.n_values) {
        lose(e, h, all_channel, at, f0);
        if (two) lose(e, h, all_channel, at + 1, f1);
      }
      const bool stores = mine && e.exists(h) && at < a.n_values;
      std::byte* to = e.at(e.row + 8 * h);
      if (!a.as_bytes) {
        if (!stores) continue;
        float* out = reinterpret_cast<float*>(to) + at;
        if (two && a.vectors) {
          *reinterpret_cast<float2*>(out) = {first * f0, second * f1};
        } else {
          out[0] = first * f0;
          if (two) out[1] = second * f1;
        }
        continue;
      }
      const float v0 = rintf(fmaf(first, f0, e.table.add[h]));
      const float v1 = rintf(fmaf(second, f1, e.table.add[h]));
      const unsigned c0 = static_cast<unsigned>(fminf(fmaxf(v0, 0.0f), 255.0f));
      const unsigned c1 = static_cast<unsigned>(fminf(fmaxf(v1, 0.0f), 255.0f));
      auto* out = reinterpret_cast<std::uint8_t*>(to) + at;
      if (stores && two && a.vectors) {
        *reinterpret_cast<std::uint16_t*>(out) = static_cast<std::uint16_t>(c0 | c1 << 8);
      } else if (stores) {
        out[0] = static_cast<std::uint8_t>(c0);
        if (two) out[1] = static_cast<std::uint8_t>(c1);
      }
      if (a.low == nullptr && a.high == nullptr) continue;
      const bool counts = mine && at < a.n_values;
      e.count(h, all_channel, counts ? (v0 < 0) + (two && v1 < 0) : 0,
              counts ? (v0 > 255) + (two && v1 > 255) : 0);
    }
  }
  static __device__ void lose(const Epilogue& e, int h, int all_channel, std::int64_t window,
                              float& factor) {
    const CudaFactors& loss = e.a.loss;
    const std::int64_t slot = window * e.a.integration / loss.slot_spectra;
    const float f =
        loss.factor[((e.a.pol * loss.n_rows + e.row + 8 * h) * loss.n_channels + all_channel) *
                        loss.n_slots +
                    slot];
    factor *= f * f;
  }
};

/// Powers of single spectra, f32.
struct PowerF32 {
  static constexpr int kStagingBytes = Staging<4>::kBytes;
  template <int H>
  __device__ void half(const Epilogue& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte* memory) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float x = e.real(re[k][2 * h + c], h), y = e.imaginary(im[k][2 * h + c], h);
          v[k] = fmaf(x, x, y * y) * e.table.mul[h];
        }
        const int r = (e.lane >> 2) + 8 * h, piece = 4 * (e.lane & 3) + 2 * c + H;
        *reinterpret_cast<float4*>(memory + r * Staging<4>::kRowBytes +
                                   Staging<4>::place(r, piece) * 16) = {v[0], v[1], v[2], v[3]};
      }
    }
  }
  __device__ void finish(const Epilogue& e, int, std::byte* memory) {
    Staging<4>::flush(e, memory);
  }
};

__device__ inline unsigned low_bytes(const float (&f)[4]) {
  const unsigned first = __byte_perm(__float_as_uint(f[0]), __float_as_uint(f[1]), 0x0040);
  const unsigned second = __byte_perm(__float_as_uint(f[2]), __float_as_uint(f[3]), 0x0040);
  return __byte_perm(first, second, 0x5410);
}

/// Powers of single spectra, u8: 16 successive ones of a row are one store.
struct PowerU8 {
  static constexpr int kStagingBytes = 0;
  unsigned codes[2][4] = {};
  unsigned low[2] = {}, high[2] = {};
  template <int H>
  __device__ void half(const Epilogue& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte*) {
    const bool counting = e.a.low != nullptr || e.a.high != nullptr;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      // The saturating multiply-add ends at 0 and 1: codes / 255.
      const float mul = e.table.mul[h] * (1.0f / 255), add = e.table.add[h] * (1.0f / 255);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float x = e.real(re[k][2 * h + c], h), y = e.imaginary(im[k][2 * h + c], h);
          const float power = fmaf(x, x, y * y);
          if (counting) {
            const float code = rintf(fmaf(power, e.table.mul[h], e.table.add[h]));
            const std::int64_t t = static_cast<std::int64_t>(e.group) * kGroupSpectra +
                                   (2 * (e.lane & 3) + c) * 8 + 4 * H + k;
            low[h] += t < e.a.n_values && code < 0;
            high[h] += t < e.a.n_values && code > 255;
            v[k] = fminf(fmaxf(code, 0.0f), 255.0f) + kBias;
          } else {
            v[k] = fmaf(__saturatef(fmaf(power, mul, add)), 255.0f, kBias);
          }
        }
        codes[h][2 * c + H] = low_bytes(v);
      }
    }
  }
  __device__ void finish(const Epilogue& e, int all_channel, std::byte*) {
    const std::int64_t first =
        static_cast<std::int64_t>(e.group) * kGroupSpectra + 16 * (e.lane & 3);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (e.exists(h)) {
        auto* to = reinterpret_cast<std::uint8_t*>(e.at(e.row + 8 * h)) + first;
        if (e.a.vectors && first + 16 <= e.a.n_values) {
          *reinterpret_cast<uint4*>(to) = {codes[h][0], codes[h][1], codes[h][2], codes[h][3]};
        } else {
#pragma unroll
          for (int k = 0; k < 16; ++k) {
            if (first + k < e.a.n_values)
              to[k] = static_cast<std::uint8_t>(codes[h][k / 4] >> (8 * (k % 4)));
          }
        }
      }
      if (e.a.low != nullptr || e.a.high != nullptr) e.count(h, all_channel, low[h], high[h]);
    }
  }
};

/// Voltages in half precision.
struct VoltageF16 {
  static constexpr int kStagingBytes = Staging<4>::kBytes;
  template <int H>
  __device__ void half(const Epilogue& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte* memory) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        __half2 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          v[k] = __floats2half2_rn(e.real(re[k][2 * h + c], h) * e.table.mul[h],
                                   e.imaginary(im[k][2 * h + c], h) * e.table.mul[h]);
        }
        const int r = (e.lane >> 2) + 8 * h, piece = 4 * (e.lane & 3) + 2 * c + H;
        *reinterpret_cast<uint4*>(memory + r * Staging<4>::kRowBytes +
                                  Staging<4>::place(r, piece) * 16) =
            *reinterpret_cast<const uint4*>(v);
      }
    }
  }
  __device__ void finish(const Epilogue& e, int, std::byte* memory) {
    Staging<4>::flush(e, memory);
  }
};

/// Voltages as codes -127..127.
struct VoltageI8 {
  static constexpr int kStagingBytes = Staging<2>::kBytes;
  unsigned low[2] = {}, high[2] = {};
  __device__ float code(const Epilogue& e, int h, float value, bool inside, bool counting) {
    // 127 + code lies in 0..254; the low byte of the biased float is then the code.
    if (!counting) {
      return fmaf(__saturatef(fmaf(value, e.table.mul[h] * (1.0f / 254), 0.5f)), 254.0f,
                  kBias - 127.0f);
    }
    const float rounded = rintf(value * e.table.mul[h]);
    low[h] += inside && rounded < -127;
    high[h] += inside && rounded > 127;
    return fminf(fmaxf(rounded, -127.0f), 127.0f) + kBias;
  }
  template <int H>
  __device__ void half(const Epilogue& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte* memory) {
    const bool counting = e.a.low != nullptr || e.a.high != nullptr;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        unsigned words[2];
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          float v[4];
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const int tile = 2 * pair + k;
            const std::int64_t t = static_cast<std::int64_t>(e.group) * kGroupSpectra +
                                   (2 * (e.lane & 3) + c) * 8 + 4 * H + tile;
            const bool inside = t < e.a.n_values;
            v[2 * k] = code(e, h, e.real(re[tile][2 * h + c], h), inside, counting);
            v[2 * k + 1] = code(e, h, e.imaginary(im[tile][2 * h + c], h), inside, counting);
          }
          words[pair] = low_bytes(v);
        }
        const int r = (e.lane >> 2) + 8 * h, piece = 2 * (e.lane & 3) + c;
        *reinterpret_cast<uint2*>(memory + r * Staging<2>::kRowBytes +
                                  Staging<2>::place(r, piece) * 16 + 8 * H) = {words[0], words[1]};
      }
    }
  }
  __device__ void finish(const Epilogue& e, int all_channel, std::byte* memory) {
    Staging<2>::flush(e, memory);
    if (e.a.low == nullptr && e.a.high == nullptr) return;
    for (int h = 0; h < 2; ++h) e.count(h, all_channel, low[h], high[h]);
  }
};

/// Complex sums in f32, straight from the registers: 32 bytes a row.
struct VoltageF32 {
  static constexpr int kStagingBytes = 0;
  template <int H>
  __device__ void half(const Epilogue& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte*) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!e.exists(h)) continue;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const std::int64_t t =
            static_cast<std::int64_t>(e.group) * kGroupSpectra + (2 * (e.lane & 3) + c) * 8 + 4 * H;
        float2 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          v[k] = {e.real(re[k][2 * h + c], h) * e.table.mul[h],
                  e.imaginary(im[k][2 * h + c], h) * e.table.mul[h]};
        }
        auto* to = reinterpret_cast<float2*>(e.at(e.row + 8 * h)) + t;
        if (e.a.vectors && t + 4 <= e.a.n_values) {
          reinterpret_cast<float4*>(to)[0] = {v[0].x, v[0].y, v[1].x, v[1].y};
          reinterpret_cast<float4*>(to)[1] = {v[2].x, v[2].y, v[3].x, v[3].y};
          continue;
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (t + k < e.a.n_values) to[k] = v[k];
        }
      }
    }
  }
  __device__ void finish(const Epilogue&, int, std::byte*) {}
};

/// Calls body.operator()<Output>() for the output of a launch.
template <class Body>
void for_output(FusedOutput output, const Body& body) {
  switch (output) {
    case FusedOutput::integrated:
      return body.template operator()<Integrated>();
    case FusedOutput::power_f32:
      return body.template operator()<PowerF32>();
    case FusedOutput::power_u8:
      return body.template operator()<PowerU8>();
    case FusedOutput::cf32:
      return body.template operator()<VoltageF32>();
    case FusedOutput::cf16:
      return body.template operator()<VoltageF16>();
    case FusedOutput::ci8:
      return body.template operator()<VoltageI8>();
  }
}

/// A block for every share of beams, spectra and channels.
template <class Kernel>
void launch_shares(Kernel* kernel, const FusedArgs& a, int threads, std::int64_t shared_bytes,
                   cudaStream_t stream) {
  const int beam_blocks = (a.n_slabs + a.slabs_per_block - 1) / a.slabs_per_block;
  const int items = (a.n_groups + a.groups_per_item - 1) / a.groups_per_item;
  RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes)));
  const std::int64_t blocks = std::int64_t{beam_blocks} * items * a.launch_channels;
  kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(shared_bytes),
           stream>>>(a, beam_blocks, items);
  RYLE_CUDA_LAUNCHED("beamform on tensor cores");
}

}  // namespace ryle::beamform::detail
