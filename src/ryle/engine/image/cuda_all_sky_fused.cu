// SPDX-License-Identifier: BSD-3-Clause
// Voltages to image planes in one kernel: grid, transform, multiply, add, with the sums in
// registers from the first spectrum of a gulp to the last. Nothing goes through global memory in
// between.
//
// A thread block makes one parity of columns of one channel (cuda_all_sky_fused.hpp): the two
// blocks of a channel share no data. Per spectrum:
//   1 a warp owns a tile of 8 x 8 cells and walks the antennas that touch it (no atomics)
//   2 rows of the box: 64 = 8 x 8 points, eight threads a row, in place
//   3 columns: 128 = 16 x 8 points, eight threads a column, zero rows skipped; what comes out of
//     the second step is multiplied and added where it is
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda_all_sky_fused.cuh"
#include "ryle/engine/image/cuda_all_sky_voltages.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kMaxThreads = 512;
// Row to row, in float2: rows two apart and columns side by side then lie in different banks.
constexpr int kPitch = 68;
constexpr int kExchange = 4 * kFusedPixels;  // float2 of a warp's four columns

struct Shared {
  float2* grid;         // [pol][row][kPitch]
  int plane;            // float2 of a polarization
  float2* exchange;     // [warp][kExchange]
  float4* field;        // [visit] X and Y
  uint4* raw;           // [a][pol][2] sixteen spectra: bytes, or real and imaginary parts
  float* weight;        // [visit][16]
  float2* row_turn;     // [q][p] exp(2 pi i p (2q + h) / 128)
  float2* column_turn;  // [q][p] exp(2 pi i p q / 128)
  FusedTile* tile;
};

__device__ Shared carve(const FusedArgs& a, unsigned char* base, int n_warps) {
  Shared s;
  const int exchange_bytes = n_warps * kExchange * static_cast<int>(sizeof(float2));
  s.plane = a.n_rows * kPitch;
  s.grid = reinterpret_cast<float2*>(base);
  base += max(2 * s.plane * static_cast<int>(sizeof(float2)), exchange_bytes);
  s.exchange = reinterpret_cast<float2*>(base);
  base += exchange_bytes;
  s.field = reinterpret_cast<float4*>(base);
  base += a.n_visits * sizeof(float4);
  s.raw = reinterpret_cast<uint4*>(base);
  base += a.n_antennas * 4 * sizeof(uint4);
  s.weight = reinterpret_cast<float*>(base);
  base += a.n_visits * 16 * sizeof(float);
  s.row_turn = reinterpret_cast<float2*>(base);
  s.column_turn = s.row_turn + 64;
  base += (64 + 128) * sizeof(float2);
  s.tile = reinterpret_cast<FusedTile*>(base);
  return s;
}

// Loads are not moved up across it: the sums leave no registers for what is needed only later.
__device__ inline void keep_order() { asm volatile("" ::: "memory"); }

__device__ inline float2 root_128(int k) {
  float2 w;
  sincospif(static_cast<float>(k) / 64.0f, &w.y, &w.x);
  return w;
}

// Sixteen spectra of an input, as they lie in its block: loaded together, taken out one by one.
__device__ inline void fetch_spectra(const FusedArgs& a, const Shared& s, int channel, int t,
                                     int slot, int input) {
  if (input < 0) return;
  if (a.blocks.nibbles) {
    const auto* cell = cell_of(a.blocks, channel, t / 128, input) + t % 128 / 16 * 16;
    s.raw[2 * slot] = __ldg(reinterpret_cast<const uint4*>(cell));
    return;
  }
  const auto* cell =
      cell_of(a.blocks, channel, t / 64, input) + t % 64 / 32 * 64 + t % 32 / 16 * 16;
  s.raw[2 * slot] = __ldg(reinterpret_cast<const uint4*>(cell));
  s.raw[2 * slot + 1] = __ldg(reinterpret_cast<const uint4*>(cell + 32));
}

__device__ inline float2 fetched(const FusedArgs& a, const Shared& s, int t, int slot) {
  const auto* bytes = reinterpret_cast<const signed char*>(s.raw + 2 * slot) + t % 16;
  if (a.blocks.nibbles) {
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(bytes[0]));
    return {static_cast<float>(high_nibble(byte)), static_cast<float>(low_nibble(byte))};
  }
  return {static_cast<float>(bytes[0]), static_cast<float>(bytes[16])};
}

// Calibrated fields of one spectrum, once for every tile an antenna touches. A thread reads only
// what it has fetched itself.
__device__ inline void load_fields(const FusedArgs& a, const Shared& s, int channel, int t,
                                   bool first) {
  for (int antenna = threadIdx.x; antenna < a.n_antennas; antenna += blockDim.x) {
    const std::int64_t at = static_cast<std::int64_t>(channel) * a.n_antennas + antenna;
    const float4 f = __ldg(a.factor + at);
    const ushort4 slot = __ldg(a.slots + at);
    if (first || t % 16 == 0) {
      const int2 input = __ldg(a.input + antenna);
      fetch_spectra(a, s, channel, t, 2 * antenna, input.x);
      fetch_spectra(a, s, channel, t, 2 * antenna + 1, input.y);
    }
    const float2 x = times(float2{f.x, f.y}, fetched(a, s, t, 2 * antenna));
    const float2 y = times(float2{f.z, f.w}, fetched(a, s, t, 2 * antenna + 1));
    const float4 e = {x.x, x.y, y.x, y.y};
    if (slot.x != 0xffff) s.field[slot.x] = e;
    if (slot.y != 0xffff) s.field[slot.y] = e;
    if (slot.z != 0xffff) s.field[slot.z] = e;
    if (slot.w != 0xffff) s.field[slot.w] = e;
  }
}

__device__ inline void add_visit(float4& sum, float w, float4 e) {
  sum.x = fmaf(w, e.x, sum.x);
  sum.y = fmaf(w, e.y, sum.y);
  sum.z = fmaf(w, e.z, sum.z);
  sum.w = fmaf(w, e.w, sum.w);
}

// Every tile is written, empty ones too: the grid held something else in the meantime.
__device__ inline void lay_on_grid(const FusedArgs& a, const Shared& s, int warp, int n_warps) {
  const int lane = threadIdx.x % 32;
  const int column = 2 * (lane % 4);
  // Rows two apart within a quarter of the warp: a store of 16 bytes a lane meets no bank twice.
  const int i = lane / 4;
  const int row = (i & 4) | (i & 1) << 1 | (i >> 1 & 1);
  for (int round = 0; round * n_warps < a.n_tiles; ++round) {
    // There and back along the tiles, busiest first: warps get about the same number of visits.
    const int index = round * n_warps + (round % 2 == 0 ? warp : n_warps - 1 - warp);
    if (index >= a.n_tiles) continue;
    const FusedTile tile = s.tile[index];
    const float* weight = s.weight + 16 * tile.begin;
    const float4* field = s.field + tile.begin;
    float4 left = {0, 0, 0, 0}, right = {0, 0, 0, 0};
#pragma unroll 4
    for (int v = 0; v < tile.count; ++v) {
      const float2 wx = *reinterpret_cast<const float2*>(weight + 16 * v + column);
      const float wy = weight[16 * v + 8 + row];
      const float4 e = field[v];
      add_visit(left, wx.x * wy, e);
      add_visit(right, wx.y * wy, e);
    }
    const int at = (tile.tile_y * 8 + row) * kPitch + tile.tile_x * 8 + column;
    *reinterpret_cast<float4*>(s.grid + at) = {left.x, left.y, right.x, right.y};
    *reinterpret_cast<float4*>(s.grid + s.plane + at) = {left.z, left.w, right.z, right.w};
  }
}

// times exp(2 pi i k / 16), k known at compile time.
__device__ inline float2 turned_16(float2 v, int k) {
  constexpr float kCos[8] = {
      1.0f, 0.92387953251128674f,  0.70710678118654752f,  0.38268343236508977f,
      0.0f, -0.38268343236508977f, -0.70710678118654752f, -0.92387953251128674f};
  constexpr float kSin[8] = {
      0.0f, 0.38268343236508977f, 0.70710678118654752f, 0.92387953251128674f,
      1.0f, 0.92387953251128674f, 0.70710678118654752f, 0.38268343236508977f};
  return k == 0 ? v : times(v, float2{kCos[k], kSin[k]});
}

// @eq j = p + 8 i, c = q + 8 r: X[c] = sum_p W64^(p q) W8^(p r) sum_i x[p + 8 i] W8^(i q); odd
//     columns first times exp(2 pi i j / 128) = W128^p W16^i. A warp has four rows.
__device__ inline void transform_rows(const FusedArgs& a, const Shared& s, int warp, int n_warps,
                                      bool odd) {
  const int lane = threadIdx.x % 32;
  const int sub = lane / 8, p = lane % 8;
  const int groups = a.n_rows / 4;
  for (int unit = warp; unit < 2 * groups; unit += n_warps) {
    const int pol = unit >= groups ? 1 : 0;
    const int first_row = 4 * (unit - pol * groups);
    float2* x = s.grid + pol * s.plane + (first_row + (sub & 1) * 2 + (sub >> 1)) * kPitch;
    float2 v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = x[p + 8 * i];
    if (odd) {
#pragma unroll
      for (int i = 1; i < 8; ++i) v[i] = turned_16(v[i], i);
    }
    Butterfly<8>::run(v);
#pragma unroll
    for (int q = 0; q < 8; ++q) v[q] = times(v[q], s.row_turn[8 * q + p]);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < 8; ++q) x[8 * q + (p ^ q)] = v[q];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = x[8 * p + (i ^ p)];
    Butterfly<8>::run(v);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 8; ++r) x[p + 8 * r] = v[r];
  }
}

// First step of a column, rows j = p + 8 i of the box: v[q] = W128^(p q) sum_i x[j] W16^(i q).
__device__ inline void first_step(const FusedArgs& a, const Shared& s, const float2* grid,
                                  int column, int p, float2 (&v)[16]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    v[i] = {0, 0};
    if (8 * i < a.n_rows) v[i] = grid[(p + 8 * i) * kPitch + column];
  }
  Butterfly<16>::run(v);
#pragma unroll
  for (int q = 1; q < 16; ++q) {
    if (q % 4 == 1) keep_order();
    v[q] = times(v[q], s.column_turn[8 * q + p]);
  }
}

__device__ inline int exchange_at(int q, int p, int column) {
  return 32 * q + 4 * ((p + q) & 7) + column;
}

__device__ inline void put(float2* exchange, int p, int column, const float2 (&v)[16]) {
#pragma unroll
  for (int q = 0; q < 16; ++q) exchange[exchange_at(q, p, column)] = v[q];
}

// Second step: pixels y = q + 16 r.
__device__ inline void second_step(const float2* exchange, int q, int column, float2 (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = exchange[exchange_at(q, i, column)];
  Butterfly<8>::run(v);
}

template <int MaxThreads>  // fewer threads, more registers each
__global__ void __launch_bounds__(MaxThreads, 1) fused_efield(FusedArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int n_warps = blockDim.x / 32;
  const Shared s = carve(a, memory, n_warps);
  const int parity = blockIdx.x % 2, channel = blockIdx.x / 2, slice = blockIdx.y;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  {
    const float* weight =
        a.weights + static_cast<std::int64_t>(parity * a.n_channels + channel) * a.n_visits * 16;
    for (int k = threadIdx.x; k < a.n_visits * 16; k += blockDim.x) s.weight[k] = weight[k];
    const FusedTile* tile = a.tiles + static_cast<std::int64_t>(channel) * a.n_tiles;
    for (int k = threadIdx.x; k < a.n_tiles; k += blockDim.x) s.tile[k] = tile[k];
    for (int k = threadIdx.x; k < a.n_visits; k += blockDim.x) s.field[k] = {0, 0, 0, 0};
    for (int k = threadIdx.x; k < 4 * a.n_antennas; k += blockDim.x) s.raw[k] = {0, 0, 0, 0};
    for (int k = threadIdx.x; k < 64; k += blockDim.x)
      s.row_turn[k] = root_128(k % 8 * (2 * (k / 8) + parity));
    for (int k = threadIdx.x; k < 128; k += blockDim.x)
      s.column_turn[k] = root_128(k % 8 * (k / 8));
  }
  const int begin = static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * slice / gridDim.y);
  const int end =
      static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * (slice + 1) / gridDim.y);
  const int p = lane / 4, local = lane % 4;
  const int of_block = 4 * warp + local;  // column of this block
  const int column =
      min((parity == 0 ? a.first_column[0] : a.first_column[1]) + of_block, kFusedColumns - 1);
  float2* const exchange_x = s.exchange + warp * kExchange;
  float2* const exchange_y = s.grid + warp * kExchange;
  float sum[2][8][4] = {};
  __syncthreads();
  if (begin < end) load_fields(a, s, channel, begin, true);
  for (int t = begin; t < end; ++t) {
    __syncthreads();
    lay_on_grid(a, s, warp, n_warps);
    __syncthreads();
    if (t + 1 < end) load_fields(a, s, channel, t + 1, false);
    transform_rows(a, s, warp, n_warps, parity == 1);
    __syncthreads();
    float2 v[16];
    first_step(a, s, s.grid, column, p, v);
    put(exchange_x, p, local, v);
    first_step(a, s, s.grid + s.plane, column, p, v);
    __syncthreads();  // the grid has been read: its place takes Y
    put(exchange_y, p, local, v);
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float2 x[8], y[8];
      second_step(exchange_x, p + 8 * half, local, x);
      second_step(exchange_y, p + 8 * half, local, y);
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        float(&to)[4] = sum[half][r];
        to[0] = fmaf(x[r].x, x[r].x, fmaf(x[r].y, x[r].y, to[0]));
        to[1] = fmaf(y[r].x, y[r].x, fmaf(y[r].y, y[r].y, to[1]));
        to[2] = fmaf(x[r].x, y[r].x, fmaf(x[r].y, y[r].y, to[2]));
        to[3] = fmaf(x[r].y, y[r].x, fmaf(-x[r].x, y[r].y, to[3]));
      }
    }
  }
  if (of_block >= a.n_columns) return;
  constexpr int kSize = kFusedPixels * kFusedPixels;
  float* plane = a.planes + static_cast<std::int64_t>(channel * gridDim.y + slice) * 4 * kSize;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int y = p + 8 * half + 16 * r;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        plane[k * kSize + y * kFusedPixels + 2 * column + parity] += sum[half][r][k];
    }
  }
}

}  // namespace

void prepare_fused(std::int64_t shared_bytes) {
  const auto allow = [&](auto kernel) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)));
  };
  allow(fused_efield<384>);
  allow(fused_efield<416>);
  allow(fused_efield<448>);
  allow(fused_efield<480>);
  allow(fused_efield<kMaxThreads>);
}

void launch_fused(const FusedArgs& args, int n_slices, std::int64_t shared_bytes,
                  cudaStream_t stream) {
  const int threads = 32 * ((args.n_columns + 3) / 4);
  const dim3 grid(static_cast<unsigned>(2 * args.n_channels), static_cast<unsigned>(n_slices));
  const auto kernel = threads <= 384   ? fused_efield<384>
                      : threads <= 416 ? fused_efield<416>
                      : threads <= 448 ? fused_efield<448>
                      : threads <= 480 ? fused_efield<480>
                                       : fused_efield<kMaxThreads>;
  kernel<<<grid, threads, static_cast<std::size_t>(shared_bytes), stream>>>(args);
  RYLE_CUDA_LAUNCHED("fused_efield");
}

}  // namespace ryle::image::detail
