// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_fp16.h>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/cuda/kernels.cuh"

/// Private to the CUDA beamformer: what the tensor-core kernels do with their sums: detection,
/// integration, requantisation and stores. A warp has 16 beams x 64 spectra: rows g = lane / 4 and
/// g + 8; columns 2 q and 2 q + 1 (q = lane % 4) of 8 tiles, where column n of tile j is spectrum
/// 8 n + j. A lane so has 16 successive spectra of two beams.
namespace ryle::beamform::detail {

/// 1.5 2^23: for |n| < 2^22 the last bits of kBias + n, rounded to even, are n.
inline constexpr float kBias = 12582912.0f;
/// The bits of kBias: a sum |n| < 2^22 that begins here is the float kBias + n, and a subtraction
/// makes a float of it where a conversion would wait for the pipe that unpacks samples.
inline constexpr int kBiasBits = 0x4B400000;

/// What a row of a slab needs: its sums times mul, plus add (requantisation). Sums are
/// exact integers, floats of them too: below 2^24, or multiples of 16 below 2^28.
struct RowTable {
  float mul[2], add[2];  // of rows g and g + 8
};

/// What the table of a beam is made of, as it lies in memory.
struct RowParts {
  float weight = 0, scale = 1, offset = 0;
};
__device__ inline bool is_power(const FusedArgs& a) {
  return a.output == FusedOutput::integrated || a.output == FusedOutput::power_f32 ||
         a.output == FusedOutput::power_u8;
}
__device__ inline RowParts row_parts(const FusedArgs& a, int row, int channel) {
  RowParts parts;
  if (row >= a.n_beams) return parts;
  const bool codes = a.output == FusedOutput::power_u8 || a.output == FusedOutput::ci8 ||
                     (a.output == FusedOutput::integrated && a.as_bytes);
  parts.weight =
      a.weight_scale == nullptr
          ? 1.0f
          : a.weight_scale[(static_cast<std::int64_t>(row) * a.n_pols + a.pol) * a.n_channels +
                           channel];
  if (!codes) return parts;
  const std::int64_t at =
      (static_cast<std::int64_t>(row) * a.n_products + a.product) * a.n_channels + channel;
  parts.scale = a.scale[at];
  if (is_power(a)) parts.offset = a.offset[at];
  return parts;
}
/// {mul, add}; a sum of 1 is `unit` LSB.
__device__ inline float2 row_entry(const FusedArgs& a, const RowParts& parts, float unit) {
  float w = unit * parts.weight;
  if (is_power(a)) w = w * w * a.gain;
  return {w * parts.scale, parts.offset};
}
__device__ inline float2 row_entry(const FusedArgs& a, int row, int channel, float unit) {
  return row_entry(a, row_parts(a, row, channel), unit);
}

__device__ inline RowTable table_of(const float2* rows, int lane) {
  const float2 upper = rows[lane >> 2], lower = rows[(lane >> 2) + 8];
  return {{upper.x, lower.x}, {upper.y, lower.y}};
}

/// Tables of a block's rows in shared memory.
__device__ inline void fill_rows(const FusedArgs& a, float2* rows, int first_row, int n_rows,
                                 int channel, float unit) {
  for (int r = threadIdx.x; r < n_rows; r += blockDim.x)
    rows[r] = row_entry(a, first_row + r, channel, unit);
}

/// Rows are 16-byte aligned, nothing is lost, nothing counted.
__host__ __device__ inline bool is_plain(const FusedArgs& a) {
  return a.vectors && a.loss.factor == nullptr && a.low == nullptr && a.high == nullptr;
}

/// Where a lane's values of a slab of 16 beams go, for any group of spectra.
struct Destination {
  std::byte* row;    // of beam first_row + Output::row_of(lane)
  int first_row;     // of the slab, of all beams
  int channel;       // of all
  int whole_groups;  // groups up to this one need no test: plain, all rows and values exist
};

template <class Output>
__device__ inline Destination destination(const FusedArgs& a, int first_row, int local_channel,
                                          int channel, int lane) {
  const bool plain = is_plain(a) && first_row + kSlabRows <= a.n_beams;
  return {a.values + (first_row + Output::row_of(lane)) * a.row_stride_bytes +
              local_channel * a.channel_stride_out_bytes,
          first_row, channel, plain ? static_cast<int>(a.n_values / Output::kValues) : 0};
}

/// One slab of 16 beams x 64 spectra on its way out. `half` gets tiles 4 H .. 4 H + 3 in order.
/// kRows: 2, or 1 where rows g + 8 are no beams. kPlain: as is_plain() says, and all 16 rows and 64
/// spectra exist; the tests of the other case cost registers.
/// kBiased: sums have begun at kBiasBits.
template <int kRowsOfLane, bool kPlain, bool kBiased = false>
struct Epilogue {
  static constexpr int kRows = kRowsOfLane;
  static constexpr bool kIsPlain = kPlain;
  static __device__ float value(int sum) {
    if constexpr (kBiased) return __int_as_float(sum) - kBias;
    return static_cast<float>(sum);
  }
  const FusedArgs& a;
  const Destination& to;
  RowTable table;
  int group;
  int lane;

  __device__ Epilogue(const FusedArgs& args, const RowTable& table_, const Destination& to_,
                      int group_, int lane_)
      : a(args), to(to_), table(table_), group(group_), lane(lane_) {
    if (kPlain || a.loss.factor == nullptr || a.output == FusedOutput::integrated) return;
    apply_loss(a.output == FusedOutput::power_f32 || a.output == FusedOutput::power_u8);
  }
  __device__ bool whole() const { return kPlain || group < to.whole_groups; }
  __device__ int row(int h) const { return to.first_row + (lane >> 2) + 8 * h; }
  __device__ bool exists(int h) const { return row(h) < a.n_beams; }
  /// For outputs with row_of(lane) = lane / 4.
  __device__ std::byte* at(int h) const { return to.row + 8 * h * a.row_stride_bytes; }
  __device__ bool counts() const { return a.low != nullptr || a.high != nullptr; }
  __device__ float factor(int h, std::int64_t slot) const {
    const CudaFactors& loss = a.loss;
    return loss
        .factor[((a.pol * loss.n_rows + row(h)) * loss.n_channels + to.channel) * loss.n_slots +
                slot];
  }
  /// Slots are whole groups: one factor.
  __device__ void apply_loss(bool power) {
    const std::int64_t slot =
        static_cast<std::int64_t>(group) * kGroupSpectra / a.loss.slot_spectra;
#pragma unroll
    for (int h = 0; h < kRows; ++h) {
      if (!exists(h)) continue;
      const float f = factor(h, slot);
      table.mul[h] *= power ? f * f : f;
    }
  }
  /// Counts of the four lanes of a row, added to the row's.
  __device__ void count(int h, unsigned low, unsigned high) const {
    for (int k = 1; k < 4; k *= 2) {
      low += __shfl_xor_sync(~0u, low, k);
      high += __shfl_xor_sync(~0u, high, k);
    }
    if ((lane & 3) != 0 || !exists(h)) return;
    const std::int64_t cell =
        (static_cast<std::int64_t>(row(h)) * a.n_products + a.product) * a.n_channels + to.channel;
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
  static constexpr int kPieces = kRowBytes / 16, kRowsAtOnce = 32 / kPieces;
  static constexpr int kPerPiece = 16 / Bytes;
  static __device__ int row_of(int lane) { return lane / kPieces; }
  static __device__ int place(int row, int piece) {
    if constexpr (Bytes == 4) return (piece ^ (piece >> 3 & 1)) ^ ((row & 1) << 1);
    return piece ^ (row & 1);
  }
  static __device__ int offset(int row, int piece) {
    return row * kRowBytes + place(row, piece) * 16;
  }
  template <class E>
  static __device__ void flush(const E& e, const std::byte* memory) {
    __syncwarp();
    const int piece = e.lane % kPieces;
    const std::int64_t first =
        static_cast<std::int64_t>(e.group) * kGroupSpectra + piece * kPerPiece;
    int r = row_of(e.lane);
    std::byte* to = e.to.row + first * Bytes;
    const std::int64_t stride = kRowsAtOnce * e.a.row_stride_bytes;
    const auto piece_of = [&] {
      return *reinterpret_cast<const uint4*>(memory + offset(r, piece));
    };
    if (e.whole()) {
#pragma unroll
      for (int k = 0; k < kSlabRows / kRowsAtOnce; ++k, r += kRowsAtOnce, to += stride)
        store_whole(to, piece_of());
    } else {
      for (; r < kSlabRows; r += kRowsAtOnce, to += stride)
        if (e.to.first_row + r < e.a.n_beams) store_part(e, to, first, piece_of());
    }
    __syncwarp();
  }
  /// As fast as memory: keep the samples in L2.
  static __device__ void store_whole(std::byte* to, uint4 v) {
    __stcs(reinterpret_cast<uint4*>(to), v);
  }
  template <class E>
  static __device__ void store_part(const E& e, std::byte* to, std::int64_t first, uint4 v) {
    if (e.a.vectors && first + kPerPiece <= e.a.n_values) {
      *reinterpret_cast<uint4*>(to) = v;
      return;
    }
    const auto* from = reinterpret_cast<const std::byte*>(&v);
    for (int k = 0; k < kPerPiece && first + k < e.a.n_values; ++k)
      for (int b = 0; b < Bytes; ++b) to[k * Bytes + b] = from[k * Bytes + b];
  }
};

/// Powers added over T = 8, 16, 32 or 64 spectra: f32 or u8.
template <int T>
struct Integrated {
  static constexpr int kStagingBytes = 0, kValues = kGroupSpectra / T;
  static __device__ int row_of(int lane) { return lane >> 2; }
  float sum[2][2] = {};
  template <int H, class E>
  __device__ void half(const E& e, const int (&re)[4][4], const int (&im)[4][4], std::byte*) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int c = 0; c < 2 * E::kRows; ++c) {
        const float x = E::value(re[k][c]), y = E::value(im[k][c]);
        sum[c / 2][c % 2] = fmaf(y, y, fmaf(x, x, sum[c / 2][c % 2]));
      }
    }
  }
  template <class E>
  __device__ void finish(const E& e, std::byte*) {
    const FusedArgs& a = e.a;
    const int q = e.lane & 3;
    const int index = T == 8 ? 2 * q : T == 16 ? q : T == 32 ? q / 2 : 0;
    const std::int64_t at = static_cast<std::int64_t>(e.group) * kValues + index;
    const bool mine = T <= 16 || (T == 32 ? q % 2 == 0 : q == 0);
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      if (T > 8) sum[h][0] += sum[h][1];
      if (T > 16) sum[h][0] += __shfl_xor_sync(~0u, sum[h][0], 1);
      if (T > 32) sum[h][0] += __shfl_xor_sync(~0u, sum[h][0], 2);
    }
    if (e.whole()) {
#pragma unroll
      for (int h = 0; h < E::kRows; ++h) store_whole(e, h, at, mine);
      return;
    }
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      const bool two = T == 8 && at + 1 < a.n_values;
      const bool stores = mine && e.exists(h) && at < a.n_values;
      float f0 = e.table.mul[h], f1 = f0;
      if (a.loss.factor != nullptr && e.exists(h) && at < a.n_values) {
        lose(e, h, at, f0);
        if (two) lose(e, h, at + 1, f1);
      }
      if (!a.as_bytes) {
        float* out = reinterpret_cast<float*>(e.at(h)) + at;
        if (stores) out[0] = sum[h][0] * f0;
        if (stores && two) out[1] = sum[h][1] * f1;
        continue;
      }
      store_bytes(e, h, at, stores, two, fmaf(sum[h][0], f0, e.table.add[h]),
                  fmaf(sum[h][1], f1, e.table.add[h]));
    }
  }
  template <class E>
  __device__ void store_whole(const E& e, int h, std::int64_t at, bool mine) const {
    const float mul = e.table.mul[h], add = e.table.add[h];
    if (!e.a.as_bytes) {
      float* out = reinterpret_cast<float*>(e.at(h)) + at;
      if constexpr (T == 8) {
        *reinterpret_cast<float2*>(out) = {sum[h][0] * mul, sum[h][1] * mul};
      } else if (mine) {
        *out = sum[h][0] * mul;
      }
      return;
    }
    auto* out = reinterpret_cast<std::uint8_t*>(e.at(h)) + at;
    const unsigned first = code(rintf(fmaf(sum[h][0], mul, add)));
    if constexpr (T == 8) {
      const unsigned second = code(rintf(fmaf(sum[h][1], mul, add)));
      *reinterpret_cast<std::uint16_t*>(out) = static_cast<std::uint16_t>(first | second << 8);
    } else if (mine) {
      *out = static_cast<std::uint8_t>(first);
    }
  }
  static __device__ unsigned code(float rounded) {
    return static_cast<unsigned>(fminf(fmaxf(rounded, 0.0f), 255.0f));
  }
  template <class E>
  static __device__ void store_bytes(const E& e, int h, std::int64_t at, bool stores, bool two,
                                     float first, float second) {
    const float v0 = rintf(first), v1 = rintf(second);
    auto* out = reinterpret_cast<std::uint8_t*>(e.at(h)) + at;
    if (stores) out[0] = static_cast<std::uint8_t>(code(v0));
    if (stores && two) out[1] = static_cast<std::uint8_t>(code(v1));
    if (!e.counts()) return;
    e.count(h, stores ? (v0 < 0) + (two && v1 < 0) : 0,
            stores ? (v0 > 255) + (two && v1 > 255) : 0);
  }
  template <class E>
  static __device__ void lose(const E& e, int h, std::int64_t window, float& factor) {
    const float f = e.factor(h, window * T / e.a.loss.slot_spectra);
    factor *= f * f;
  }
};

/// Powers of single spectra, f32.
struct PowerF32 {
  using Store = Staging<4>;
  static constexpr int kStagingBytes = Store::kBytes, kValues = kGroupSpectra;
  static __device__ int row_of(int lane) { return Store::row_of(lane); }
  template <int H, class E>
  __device__ void half(const E& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte* memory) {
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float x = E::value(re[k][2 * h + c]), y = E::value(im[k][2 * h + c]);
          v[k] = fmaf(x, x, y * y) * e.table.mul[h];
        }
        const int r = (e.lane >> 2) + 8 * h, piece = 4 * (e.lane & 3) + 2 * c + H;
        *reinterpret_cast<float4*>(memory + Store::offset(r, piece)) = {v[0], v[1], v[2], v[3]};
      }
    }
  }
  template <class E>
  __device__ void finish(const E& e, std::byte* memory) {
    Store::flush(e, memory);
  }
};

__device__ inline unsigned low_bytes(const float (&f)[4]) {
  const unsigned first = __byte_perm(__float_as_uint(f[0]), __float_as_uint(f[1]), 0x0040);
  const unsigned second = __byte_perm(__float_as_uint(f[2]), __float_as_uint(f[3]), 0x0040);
  return __byte_perm(first, second, 0x5410);
}

/// Powers of single spectra, u8: 16 successive ones of a row are one store.
template <bool kCounts>
struct PowerU8 {
  static constexpr int kStagingBytes = 0, kValues = kGroupSpectra;
  static __device__ int row_of(int lane) { return lane >> 2; }
  unsigned codes[2][4] = {};
  unsigned low[2] = {}, high[2] = {};
  template <int H, class E>
  __device__ void half(const E& e, const int (&re)[4][4], const int (&im)[4][4], std::byte*) {
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      // The saturating multiply-add ends at 0 and 1: codes / 255.
      const float mul = e.table.mul[h] * (1.0f / 255), add = e.table.add[h] * (1.0f / 255);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float x = E::value(re[k][2 * h + c]), y = E::value(im[k][2 * h + c]);
          const float power = fmaf(x, x, y * y);
          if constexpr (kCounts) {
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
  template <class E>
  __device__ void finish(const E& e, std::byte*) {
    const std::int64_t first =
        static_cast<std::int64_t>(e.group) * kGroupSpectra + 16 * (e.lane & 3);
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      auto* to = reinterpret_cast<std::uint8_t*>(e.at(h)) + first;
      const uint4 v = {codes[h][0], codes[h][1], codes[h][2], codes[h][3]};
      if (e.whole() || (e.exists(h) && e.a.vectors && first + 16 <= e.a.n_values)) {
        *reinterpret_cast<uint4*>(to) = v;
      } else if (e.exists(h)) {
#pragma unroll
        for (int k = 0; k < 16; ++k) {
          if (first + k < e.a.n_values)
            to[k] = static_cast<std::uint8_t>(codes[h][k / 4] >> (8 * (k % 4)));
        }
      }
      if constexpr (kCounts) e.count(h, low[h], high[h]);
    }
  }
};

/// Voltages in half precision.
struct VoltageF16 {
  using Store = Staging<4>;
  static constexpr int kStagingBytes = Store::kBytes, kValues = kGroupSpectra;
  static __device__ int row_of(int lane) { return Store::row_of(lane); }
  template <int H, class E>
  __device__ void half(const E& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte* memory) {
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        __half2 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          v[k] = __floats2half2_rn(E::value(re[k][2 * h + c]) * e.table.mul[h],
                                   E::value(im[k][2 * h + c]) * e.table.mul[h]);
        }
        const int r = (e.lane >> 2) + 8 * h, piece = 4 * (e.lane & 3) + 2 * c + H;
        *reinterpret_cast<uint4*>(memory + Store::offset(r, piece)) =
            *reinterpret_cast<const uint4*>(v);
      }
    }
  }
  template <class E>
  __device__ void finish(const E& e, std::byte* memory) {
    Store::flush(e, memory);
  }
};

/// Voltages as codes -127..127.
template <bool kCounts>
struct VoltageI8 {
  using Store = Staging<2>;
  static constexpr int kStagingBytes = Store::kBytes, kValues = kGroupSpectra;
  static __device__ int row_of(int lane) { return Store::row_of(lane); }
  unsigned low[2] = {}, high[2] = {};
  uint2 early[2][2];  // of the first half: both are one piece of 16 bytes
  __device__ float code(float value, float mul, int h, bool inside) {
    // 127 + code lies in 0..254; the low byte of the biased float is then the code.
    if constexpr (!kCounts) {
      return fmaf(__saturatef(fmaf(value, mul * (1.0f / 254), 0.5f)), 254.0f, kBias - 127.0f);
    } else {
      const float rounded = rintf(value * mul);
      low[h] += inside && rounded < -127;
      high[h] += inside && rounded > 127;
      return fminf(fmaxf(rounded, -127.0f), 127.0f) + kBias;
    }
  }
  template <int H, class E>
  __device__ void half(const E& e, const int (&re)[4][4], const int (&im)[4][4],
                       std::byte* memory) {
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      const float mul = e.table.mul[h];
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
            const bool inside = !kCounts || t < e.a.n_values;
            v[2 * k] = code(E::value(re[tile][2 * h + c]), mul, h, inside);
            v[2 * k + 1] = code(E::value(im[tile][2 * h + c]), mul, h, inside);
          }
          words[pair] = low_bytes(v);
        }
        if constexpr (H == 0) {
          early[h][c] = {words[0], words[1]};
          continue;
        }
        const int r = (e.lane >> 2) + 8 * h, piece = 2 * (e.lane & 3) + c;
        *reinterpret_cast<uint4*>(memory + Store::offset(r, piece)) = {early[h][c].x, early[h][c].y,
                                                                       words[0], words[1]};
      }
    }
  }
  template <class E>
  __device__ void finish(const E& e, std::byte* memory) {
    Store::flush(e, memory);
    if constexpr (kCounts) {
      for (int h = 0; h < E::kRows; ++h) e.count(h, low[h], high[h]);
    }
  }
};

/// Complex sums in f32, straight from the registers: 32 bytes a row.
struct VoltageF32 {
  static constexpr int kStagingBytes = 0, kValues = kGroupSpectra;
  static __device__ int row_of(int lane) { return lane >> 2; }
  template <int H, class E>
  __device__ void half(const E& e, const int (&re)[4][4], const int (&im)[4][4], std::byte*) {
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      if (!e.whole() && !e.exists(h)) continue;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const std::int64_t t =
            static_cast<std::int64_t>(e.group) * kGroupSpectra + (2 * (e.lane & 3) + c) * 8 + 4 * H;
        float2 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          v[k] = {E::value(re[k][2 * h + c]) * e.table.mul[h],
                  E::value(im[k][2 * h + c]) * e.table.mul[h]};
        }
        auto* to = reinterpret_cast<float2*>(e.at(h)) + t;
        if (e.whole() || (e.a.vectors && t + 4 <= e.a.n_values)) {
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
  template <class E>
  __device__ void finish(const E&, std::byte*) {}
};

/// Values of a group of 64 spectra.
inline int values_of_group(const FusedArgs& a) {
  return a.output == FusedOutput::integrated ? kGroupSpectra / a.integration : kGroupSpectra;
}

/// Calls body.operator()<Output>() for the output of a launch; kPlain: nothing counted.
template <bool kPlain = false, class Body>
void for_output(const FusedArgs& a, const Body& body) {
  const bool counts = !kPlain && (a.low != nullptr || a.high != nullptr);
  switch (a.output) {
    case FusedOutput::integrated:
      if (a.integration == 8) return body.template operator()<Integrated<8>>();
      if (a.integration == 16) return body.template operator()<Integrated<16>>();
      if (a.integration == 32) return body.template operator()<Integrated<32>>();
      return body.template operator()<Integrated<64>>();
    case FusedOutput::power_f32:
      return body.template operator()<PowerF32>();
    case FusedOutput::power_u8:
      if (counts) return body.template operator()<PowerU8<!kPlain>>();
      return body.template operator()<PowerU8<false>>();
    case FusedOutput::cf32:
      return body.template operator()<VoltageF32>();
    case FusedOutput::cf16:
      return body.template operator()<VoltageF16>();
    case FusedOutput::ci8:
      if (counts) return body.template operator()<VoltageI8<!kPlain>>();
      return body.template operator()<VoltageI8<false>>();
  }
}

}  // namespace ryle::beamform::detail
