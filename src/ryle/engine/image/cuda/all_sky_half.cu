// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// half_efield is the E-field imager on tensor cores (path efield-half): mma.sync m16n8k16 with fp16 operands and fp32
// sums. Gridding and transform along x are one matrix for each grid row y (cuda/all_sky_half.hpp):
//   R[y](l) = sum_a wy_a(y) X_a(l) E_a,   B(l, m) = sum_y R[y](l) exp(2 pi i (y - y0) m / G),
//   planes += |B_x|^2, |B_y|^2, Re and Im B_x conj(B_y)
//
//   array      axes                                                         type       unit
//   a.blocks   [channel][block][input][128 bytes]                           ci4, ci8   LSB
//   a.weights  [channel][antenna][x, y][support]                            float
//   table      [tile of 16 antennas][lane]                                  8 x fp16   operand A; shared memory
//   operand    [column][pitch]: real and imaginary parts of 4 spectra       fp16       operand B; shared memory
//   rows       [spectrum][pol][+, -][sign of l][pair][8 |l|][re, im]        fp16       shared memory
//   a.planes   [channel][slice][4][y][x], added to                          float      LSB^2 times gains
//
// Who does what: a thread block of 16 warps makes 8 |l| x 64 |m| (both signs) of one channel. For each batch of 4 or 8
// spectra, with a barrier after each step:
//   0 All threads turn samples, fetched one batch ahead, into the operand.
//   1 Rows: R[y](|l|) as cosine and sine sums over the antennas that touch row y, 16 of them at a time in their order
//     along y. Rows y0 +- (j + 1/2) are added and subtracted and the signs of l told apart in fp32, rounded once.
//   2 Columns: cosine sums of the added rows and sine sums of the subtracted ones give both signs of m; products
//     are added in registers.
// docs/decisions/0006 records 5.5 to 6.8 ms where fused_efield takes 7.9 to 11.3, and no counters of this kernel.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_half.cuh"
#include "ryle/engine/image/cuda/all_sky_operands.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxItems = 2;  // of a thread, per batch

struct Shared {
  __half* rows;  // [spectrum][pol][added, subtracted][sign of l][pair][8 |l|][re, im]
  uint4* table;  // [tile][lane]
  __half* operand;
  OperandSlots slots;
  HalfPair* pairs;
  HalfTile* tiles;
};

__device__ Shared carve(const HalfArgs& a, int spectra, unsigned char* base) {
  Shared s;
  s.rows = reinterpret_cast<__half*>(base);
  base += max(max(4 * spectra * a.plane, 64 * a.n_antennas), 32768);
  s.table = reinterpret_cast<uint4*>(base);
  base += 512 * a.n_tiles;
  s.operand = reinterpret_cast<__half*>(base);
  base += 8 * a.pitch * spectra + 64;
  s.slots.factor = reinterpret_cast<float4*>(base);
  const int n_slots = (a.n_antennas + 1) / 2 * 2;
  base += 16 * n_slots;
  s.slots.input = reinterpret_cast<int2*>(base);
  base += 8 * n_slots;
  s.pairs = reinterpret_cast<HalfPair*>(base);
  base += sizeof(HalfPair) * a.n_pairs;
  s.tiles = reinterpret_cast<HalfTile*>(base);
  return s;
}

// exp(i pi k / n) for k of any size.
__device__ inline float2 half_turns(int k, int n) {
  float2 w;
  sincospif(static_cast<float>(k % (2 * n)) / static_cast<float>(n), &w.y, &w.x);
  return w;
}

__device__ void fill_tables(const HalfArgs& a, const Shared& s, int channel, int first_l,
                            float scale) {
  const std::int64_t at = static_cast<std::int64_t>(channel) * a.n_antennas;
  const HalfSlot* slots = a.slots + at;
  for (int k = threadIdx.x; k < (a.n_antennas + 1) / 2 * 2; k += kThreads) {
    s.slots.input[k] = {-1, -1};
    s.slots.factor[k] = {0, 0, 0, 0};
    if (k >= a.n_antennas) continue;
    const int antenna = slots[k].antenna;
    const float4 f = a.factor[at + antenna];
    s.slots.input[k] = a.input[antenna];
    s.slots.factor[k] = {scale * f.x, scale * f.y, scale * f.z, scale * f.w};
  }
  for (int k = threadIdx.x; k < a.n_pairs; k += kThreads) {
    s.pairs[k] = a.pairs[static_cast<std::int64_t>(channel) * a.n_pairs + k];
  }
  for (int k = threadIdx.x; k < a.n_tiles; k += kThreads) {
    s.tiles[k] = a.tiles[static_cast<std::int64_t>(channel) * a.n_tiles + k];
  }
  // X_a(l), in the place of the rows.
  auto* transformed = reinterpret_cast<float2*>(s.rows);
  for (int k = threadIdx.x; k < kHalfColumns * a.n_antennas; k += kThreads) {
    const HalfSlot slot = slots[k / kHalfColumns];
    const int l = first_l + k % kHalfColumns;
    const float* weight = a.weights + (at + slot.antenna) * 2 * a.support;
    float2 sum = {0, 0};
    for (int i = 0; i < a.support; ++i) {
      const float2 turn = half_turns(2 * (slot.x + i) * l, a.n_pixels);
      sum.x = fmaf(weight[i], turn.x, sum.x);
      sum.y = fmaf(weight[i], turn.y, sum.y);
    }
    transformed[k] = sum;
  }
  __syncthreads();
  // Register r of a lane holds row lane / 4 + 8 (r % 2) and columns 2 (lane % 4) + 8 (r / 2), + 1:
  // the upper eight rows are cosine sums of the eight |l|, the lower ones sine sums.
  auto* words = reinterpret_cast<unsigned*>(s.table);
  for (int k = threadIdx.x; k < 128 * a.n_tiles; k += kThreads) {
    const HalfTile tile = s.tiles[k / 128];
    const int lane = k / 4 % 32, r = k % 4;
    float v[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int slot = tile.start + 2 * (lane % 4) + 8 * (r / 2) + i;
      if (slot >= a.n_antennas) continue;
      int tap = tile.row - slots[slot].y;
      if (tap < 0) tap += a.n_pixels;
      if (tap >= a.support) continue;
      const float w = a.weights[((at + slots[slot].antenna) * 2 + 1) * a.support + tap];
      const float2 x = transformed[kHalfColumns * slot + lane / 4];
      v[i] = w * (r % 2 == 0 ? x.x : x.y);
    }
    words[k] = pack_fp16(v[0], v[1]);
  }
  __syncthreads();
  auto* rows = reinterpret_cast<unsigned*>(s.rows);
  auto* operand = reinterpret_cast<unsigned*>(s.operand);
  const int row_words = static_cast<int>(reinterpret_cast<unsigned*>(s.table) - rows);
  for (int k = threadIdx.x; k < row_words; k += kThreads) rows[k] = 0;
  const int operand_words = static_cast<int>(reinterpret_cast<unsigned*>(s.slots.factor) - operand);
  for (int k = threadIdx.x; k < operand_words; k += kThreads) operand[k] = 0;
}

template <int N>
__device__ inline void add_tiles(const HalfArgs& a, const Shared& s, int begin, int count,
                                 float (&sum)[N][4]) {
  const int lane = threadIdx.x % 32;
  const int pitch = a.pitch;
  const auto* operand = reinterpret_cast<const unsigned*>(s.operand + lane / 4 * pitch) + lane % 4;
  for (int k = begin; k < begin + count; ++k) {
    const uint4 v = s.table[32 * k + lane];
    const unsigned row[4] = {v.x, v.y, v.z, v.w};
    const unsigned* b = operand + s.tiles[k].start / 2;
#pragma unroll
    for (int n = 0; n < N; ++n) multiply_add(sum[n], row, b[4 * n * pitch], b[4 * n * pitch + 4]);
  }
}

// Fp16 (re, im) of a row: the two fours of |l| change places every four pairs, so that the reads
// of eight pairs meet no bank twice.
__device__ inline int row_at(const HalfArgs& a, int subtracted, int negative, int pair, int four) {
  return ((2 * subtracted + negative) * a.n_pairs + pair) * 16 + 8 * (four ^ (pair >> 2 & 1));
}

__device__ inline void put(const HalfArgs& a, __half* plane, int subtracted, int pair, int l,
                           const float (&c)[4]) {
  const int within = 2 * (l % 4);
  auto at = [&](int negative) {
    return reinterpret_cast<unsigned*>(plane + row_at(a, subtracted, negative, pair, l / 4) +
                                       within);
  };
  *at(0) = pack_fp16(c[0] - c[3], c[1] + c[2]);
  *at(1) = pack_fp16(c[0] + c[3], c[1] - c[2]);
}

template <int Spectra>
__device__ inline void make_rows(const HalfArgs& a, const Shared& s, int warp) {
  constexpr int kTiles = Spectra / 2;  // of eight columns: four spectra of one polarization
  const int lane = threadIdx.x % 32;
  for (int k = warp; k < a.n_pairs; k += kWarps) {
    const HalfPair pair = s.pairs[k];
    if (pair.plus + pair.minus == 0) continue;
    float plus[kTiles][4] = {}, minus[kTiles][4] = {};
    add_tiles(a, s, pair.begin, pair.plus, plus);
    add_tiles(a, s, pair.begin + pair.plus, pair.minus, minus);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const int t = 4 * (n / 2) + lane % 4;
      __half* plane = s.rows + (2 * t + n % 2) * a.plane;
      float added[4], subtracted[4];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        added[r] = plus[n][r] + minus[n][r];
        subtracted[r] = plus[n][r] - minus[n][r];
      }
      put(a, plane, 0, pair.pair, lane / 4, added);
      put(a, plane, 1, pair.pair, lane / 4, subtracted);
    }
  }
}

__device__ inline void load_rows(const __half* at, unsigned (&b)[4]) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(address));
}

// Cosines and sines of sixteen |m| and all pairs, in registers for all spectra.
template <int Steps>
struct Turns {
  unsigned cosine[Steps][4], sine[Steps][4];
  __device__ Turns(int first_m, int n_pixels) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int m = first_m + lane / 4 + 8 * (r % 2);
        const int j = 16 * step + 2 * (lane % 4) + 8 * (r / 2);
        const float2 p = half_turns((2 * j + 1) * m, n_pixels);
        const float2 q = half_turns((2 * j + 3) * m, n_pixels);
        cosine[step][r] = pack_fp16(p.x, q.x);
        sine[step][r] = pack_fp16(p.y, q.y);
      }
    }
  }
};

// sum[four of |l|][row of the tile / 8][sign of m][product]
template <int Steps, int Spectra>
__device__ inline void make_products(const HalfArgs& a, const Shared& s, const Turns<Steps>& turns,
                                     int negative, int group, float (&sum)[2][2][2][4]) {
  const int lane = threadIdx.x % 32;
  const int pair = lane % 8 + 8 * (lane / 8 % 2);
#pragma unroll 1
  for (int t = group * Spectra / 2; t < (group + 1) * Spectra / 2; ++t) {
#pragma unroll
    for (int four = 0; four < 2; ++four) {
      float added[2][4] = {}, subtracted[2][4] = {};
#pragma unroll
      for (int pol = 0; pol < 2; ++pol) {
        // The pair's bit 2, which moves the fours, is the same in every step of sixteen.
        const __half* at =
            s.rows + (2 * t + pol) * a.plane + row_at(a, lane / 16, negative, pair, four);
#pragma unroll
        for (int step = 0; step < Steps; ++step) {
          unsigned b[4];
          load_rows(at + 256 * step, b);
          multiply_add(added[pol], turns.cosine[step], b[0], b[1]);
          multiply_add(subtracted[pol], turns.sine[step], b[2], b[3]);
        }
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float2 b[2][2];  // [pol][sign of m]: added +- i subtracted
#pragma unroll
        for (int pol = 0; pol < 2; ++pol) {
          const float er = added[pol][2 * h], ei = added[pol][2 * h + 1];
          const float sr = subtracted[pol][2 * h], si = subtracted[pol][2 * h + 1];
          b[pol][0] = {er - si, ei + sr};
          b[pol][1] = {er + si, ei - sr};
        }
        add_products(sum[four][h][0], b[0][0], b[1][0]);
        add_products(sum[four][h][1], b[0][1], b[1][1]);
      }
    }
  }
}

// Warps that took other spectra of the same pixels hand over their sums.
__device__ inline void join_groups(const Shared& s, int partner, int group,
                                   float (&sum)[2][2][2][4]) {
  float* all = &sum[0][0][0][0];
  auto* to = reinterpret_cast<float*>(s.rows) + partner * 1024 + threadIdx.x % 32;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    if (group == 1) to[32 * k] = all[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    if (group == 0) all[k] += to[32 * k];
  }
}

__device__ inline void write_sums(const HalfArgs& a, float* planes, int first_l, int first_m,
                                  int negative, float back, const float (&sum)[2][2][2][4]) {
  const int lane = threadIdx.x % 32, g = a.n_pixels;
  const std::int64_t size = static_cast<std::int64_t>(g) * g;
#pragma unroll
  for (int four = 0; four < 2; ++four) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const int l = first_l + 4 * four + lane % 4, m = first_m + lane / 4 + 8 * h;
        const int x = g / 2 + (negative ? -l : l), y = g / 2 + (below ? -m : m);
        if ((negative && l == 0) || (below && m == 0)) continue;
        if (x < 0 || x >= g || y < 0 || y >= g) continue;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          planes[k * size + static_cast<std::int64_t>(y) * g + x] += back * sum[four][h][below][k];
        }
      }
    }
  }
}

/// See the head of this file.
template <int Steps, int Spectra>
__global__ void __launch_bounds__(kThreads, 1) half_efield(HalfArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Shared s = carve(a, Spectra, memory);
  const int channel = blockIdx.x / a.n_blocks, slice = blockIdx.y;
  const HalfBlock pixels = a.pixels[blockIdx.x % a.n_blocks];
  const int warp = threadIdx.x / 32;
  // A scheduler has warps of every tile of rows: those that see no sky leave none idle.
  const int tile = warp / 4, negative = warp % 2, group = warp / 2 % 2;
  const bool sees_sky = tile < static_cast<int>(pixels.n_row_tiles);
  const int first_m = pixels.first_m + 16 * tile;
  const float scale = a.scale[channel] * (a.blocks.nibbles ? 1.0f : 1.0f / 16);
  fill_tables(a, s, channel, pixels.first_l, scale);
  __syncthreads();
  const Turns<Steps> turns(first_m, a.n_pixels);
  const int units = (a.n_spectra + 15) / 16;
  const int begin = 16 * static_cast<int>(static_cast<std::int64_t>(units) * slice / gridDim.y);
  const int end = min(a.n_spectra, 16 * static_cast<int>(static_cast<std::int64_t>(units) *
                                                         (slice + 1) / gridDim.y));
  const int n_items = OperandWork::count(a.n_antennas, Spectra);
  OperandWork work[kMaxItems];
  const auto fetch = [&](int t) {
#pragma unroll
    for (int k = 0; k < kMaxItems; ++k) {
      const int item = threadIdx.x + k * kThreads;
      if (item < n_items) work[k].fetch(a.blocks, s.slots, a.n_antennas, item, channel, t);
    }
  };
  float sum[2][2][2][4] = {};
  if (begin < end) fetch(begin);
  for (int t = begin; t < end; t += Spectra) {
#pragma unroll
    for (int k = 0; k < kMaxItems; ++k) {
      const int item = threadIdx.x + k * kThreads;
      if (item < n_items) {
        work[k].store<false>(a.blocks.nibbles, s.slots, a.n_antennas, item, a.pitch, s.operand,
                             nullptr);
      }
    }
    __syncthreads();
    if (t + Spectra < end) fetch(t + Spectra);
    make_rows<Spectra>(a, s, warp);
    __syncthreads();
    if (sees_sky) make_products<Steps, Spectra>(a, s, turns, negative, group, sum);
  }
  join_groups(s, 2 * tile + negative, group, sum);
  if (!sees_sky || group != 0) return;
  float* planes = a.planes + (static_cast<std::int64_t>(channel) * gridDim.y + slice) * 4 *
                                 a.n_pixels * a.n_pixels;
  write_sums(a, planes, pixels.first_l, first_m, negative, 1 / (scale * scale), sum);
}

template <int Steps>
void launch(const HalfArgs& args, int spectra_at_a_time, dim3 grid, std::int64_t shared_bytes,
            cudaStream_t stream) {
  const auto kernel = spectra_at_a_time == 8 ? half_efield<Steps, 8> : half_efield<Steps, 4>;
  kernel<<<grid, kThreads, static_cast<std::size_t>(shared_bytes), stream>>>(args);
  RYLE_CUDA_LAUNCHED("half_efield");
}

}  // namespace

void prepare_half(std::int64_t shared_bytes) {
  const auto allow = [&](auto kernel) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)));
  };
  allow(half_efield<1, 4>), allow(half_efield<1, 8>);
  allow(half_efield<2, 4>), allow(half_efield<2, 8>);
  allow(half_efield<3, 4>), allow(half_efield<3, 8>);
  allow(half_efield<4, 4>), allow(half_efield<4, 8>);
}

void launch_half(const HalfArgs& args, int spectra_at_a_time, int n_slices,
                 std::int64_t shared_bytes, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(args.n_channels * args.n_blocks),
                  static_cast<unsigned>(n_slices));
  switch (args.n_pairs / 16) {
    case 1:
      return launch<1>(args, spectra_at_a_time, grid, shared_bytes, stream);
    case 2:
      return launch<2>(args, spectra_at_a_time, grid, shared_bytes, stream);
    case 3:
      return launch<3>(args, spectra_at_a_time, grid, shared_bytes, stream);
    default:
      return launch<4>(args, spectra_at_a_time, grid, shared_bytes, stream);
  }
}

}  // namespace ryle::image::detail
