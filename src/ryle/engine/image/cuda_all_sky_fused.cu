// SPDX-License-Identifier: BSD-3-Clause
// Voltages to image planes in one kernel: grid, transform, multiply, add, with the sums in
// registers from the first spectrum of a gulp to the last. Nothing goes through global memory in
// between.
//
// A thread block makes one parity of columns of one channel (cuda_all_sky_fused.hpp); the two
// blocks of a channel are a cluster. Per spectrum:
//   1 a warp owns a tile of 8 x 8 cells and walks the antennas that touch it (no atomics); the
//     blocks share the tiles and write each to both grids
//   2 rows of the box: 64 = 8 x 8 points, eight threads a row, in place
//   3 columns: even and odd pixels by 64 = 8 x 8 points each, eight threads a column, zero rows
//     skipped; what comes out of the second step is multiplied and added where it is. Warps that
//     have no columns calibrate the spectrum after the next.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda_all_sky_fused.cuh"
#include "ryle/engine/image/cuda_all_sky_voltages.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kWarps = kFusedWarps;
constexpr int kThreads = 32 * kWarps;
// Rows four apart and two columns side by side then lie in different banks.
constexpr int kPitch = kFusedPitch;

struct Shared {
  float2* grid;      // [pol][row][kPitch]
  int plane;         // float2 of a polarization
  float2* exchange;  // [column warp][pol][kFusedExchange], for rows [warp][kFusedExchange]
  float4* field;     // [odd spectrum][visit] X and Y
  uint4* raw;        // [a][pol][2] sixteen spectra: bytes, or real and imaginary parts
  float* weight;     // [visit][16]
  float4* turn;      // [h][2][q] w^4, w^2 and w, w W8, where w = exp(2 pi i (2q + h) / 128)
  FusedTile* tile;
  unsigned long long* arrivals;  // of what the other block stores
};

__device__ Shared carve(const FusedArgs& a, unsigned char* base, int n_column_warps) {
  Shared s;
  s.plane = a.n_rows * kPitch;
  s.grid = reinterpret_cast<float2*>(base);
  s.exchange = s.grid + 2 * s.plane;
  s.field =
      reinterpret_cast<float4*>(s.exchange + max(2 * n_column_warps, kWarps) * kFusedExchange);
  s.raw = reinterpret_cast<uint4*>(s.field + 2 * a.n_visits);
  s.weight = reinterpret_cast<float*>(s.raw + 4 * a.n_antennas);
  s.turn = reinterpret_cast<float4*>(s.weight + 16 * a.n_visits);
  s.arrivals = reinterpret_cast<unsigned long long*>(s.turn + 32);
  s.tile = reinterpret_cast<FusedTile*>(s.arrivals + 2);
  return s;
}

// Split barrier of both blocks of a channel: what was written (and read) before the one is there
// (and done) before what follows the other.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
// For a thread that has only read: values in use have been read, so there is no store to wait for.
__device__ inline void cluster_arrive_after_reads() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

__device__ inline unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Where `pointer` lies in the shared memory of the other block.
__device__ inline unsigned in_other_block(const void* pointer, unsigned other) {
  unsigned at = shared_address(pointer);
#if __CUDA_ARCH__ >= 900
  asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(other));
#endif
  return at;
}

// A store there counts its bytes at a barrier there, which is all its reader has to wait for: no
// fence that waits for every store of the thread.
__device__ inline void store_there(unsigned at, float4 v, unsigned arrival) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(at),
      "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(arrival)
      : "memory");
#endif
}

__device__ inline void init_arrivals(unsigned long long* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ inline void expect_arrivals(unsigned long long* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
#endif
}

__device__ inline void wait_for_arrivals(unsigned long long* barrier, int phase) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred there;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 there, [%0], %1;\n"
      "@!there bra again_%=;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(phase)
      : "memory");
#endif
}

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
// what it has fetched itself: threads first .. kThreads, each always the same antennas.
__device__ inline void load_fields(const FusedArgs& a, const Shared& s, int channel, int half,
                                   int t, bool begins, int first) {
  float4* field = s.field + (t & 1) * a.n_visits;
  for (int antenna = threadIdx.x - first; antenna < a.n_antennas; antenna += kThreads - first) {
    const float4 f = __ldg(a.factor + static_cast<std::int64_t>(channel) * a.n_antennas + antenna);
    const ushort4 slot =
        __ldg(a.slots + static_cast<std::int64_t>(2 * channel + half) * a.n_antennas + antenna);
    if (begins || t % 16 == 0) {
      const int2 input = __ldg(a.input + antenna);
      fetch_spectra(a, s, channel, t, 2 * antenna, input.x);
      fetch_spectra(a, s, channel, t, 2 * antenna + 1, input.y);
    }
    const float2 x = times(float2{f.x, f.y}, fetched(a, s, t, 2 * antenna));
    const float2 y = times(float2{f.z, f.w}, fetched(a, s, t, 2 * antenna + 1));
    const float4 e = {x.x, x.y, y.x, y.y};
    if (slot.x != 0xffff) field[slot.x] = e;
    if (slot.y != 0xffff) field[slot.y] = e;
    if (slot.z != 0xffff) field[slot.z] = e;
    if (slot.w != 0xffff) field[slot.w] = e;
  }
}

__device__ inline void add_visit(float4& sum, float w, float4 e) {
  sum.x = fmaf(w, e.x, sum.x);
  sum.y = fmaf(w, e.y, sum.y);
  sum.z = fmaf(w, e.z, sum.z);
  sum.w = fmaf(w, e.w, sum.w);
}

/// Two cells beside each other, X and Y.
struct Pair {
  float4 left, right;
};

__device__ inline Pair visits_of(const float* wx, const float* wy, const float4* field, int n) {
  Pair sum{};
#pragma unroll 1
  for (; n > 0; n -= kFusedUnroll) {
#pragma unroll
    for (int v = 0; v < kFusedUnroll; ++v) {
      const float2 x = *reinterpret_cast<const float2*>(wx + 16 * v);
      const float y = wy[16 * v];
      const float4 e = field[v];
      add_visit(sum.left, x.x * y, e);
      add_visit(sum.right, x.y * y, e);
    }
    wx += 16 * kFusedUnroll;
    wy += 16 * kFusedUnroll;
    field += kFusedUnroll;
  }
  return sum;
}

/// Where a lane has its two cells of tile (0, 0), here and in the other block.
struct Cells {
  int column, row;
  float2* here;
  unsigned there, arrival;
};

__device__ inline void store_here(const Shared& s, const Cells& cells, int at, const Pair& v) {
  float2* x = cells.here + at;
  *reinterpret_cast<float4*>(x) = {v.left.x, v.left.y, v.right.x, v.right.y};
  *reinterpret_cast<float4*>(x + s.plane) = {v.left.z, v.left.w, v.right.z, v.right.w};
}

__device__ inline void store_there(const Shared& s, const Cells& cells, int at, const Pair& v) {
  const unsigned x = cells.there + 8 * at;
  store_there(x, {v.left.x, v.left.y, v.right.x, v.right.y}, cells.arrival);
  store_there(x + 8 * s.plane, {v.left.z, v.left.w, v.right.z, v.right.w}, cells.arrival);
}

// Both blocks have read the grid before cluster_wait().
__device__ inline void lay_on_grid(const FusedArgs& a, const Shared& s, const float4* field,
                                   const Cells& cells, int parity) {
  bool waited = false;
#pragma unroll 1
  for (int index = threadIdx.x / 32; index < a.n_tiles; index += kWarps) {
    const FusedTile tile = s.tile[index];
    if (tile.tile_y == FusedTile::kNone) continue;
    const float* wx = s.weight + 16 * tile.begin + cells.column;
    const float* wy = s.weight + 16 * tile.begin + 8 + cells.row;
    const int plain = tile.count - tile.n_folded;
    Pair sum = visits_of(wx, wy, field + tile.begin, plain);
    const int at = tile.tile_y * (8 * kPitch) + tile.tile_x * 8;
    if (tile.n_folded == 0) {
      if (!waited) cluster_wait();
      store_here(s, cells, at, sum);
    } else {
      const Pair folded =
          visits_of(wx + 16 * plain, wy + 16 * plain, field + tile.begin + plain, tile.n_folded);
      const float sign = parity == 0 ? 1.0f : -1.0f;
      Pair here = sum;
      add_visit(here.left, sign, folded.left);
      add_visit(here.right, sign, folded.right);
      add_visit(sum.left, -sign, folded.left);
      add_visit(sum.right, -sign, folded.right);
      if (!waited) cluster_wait();
      store_here(s, cells, at, here);
    }
    waited = true;
    // A tile without visits is in the list of the other block too.
    if (tile.count != 0) store_there(s, cells, at, sum);
  }
  if (!waited) cluster_wait();
}

/// Powers of w a transform with inputs times w^p needs; others differ by a factor i.
struct Turn {
  float2 w4, w2, w1, w1_w8;
};

__device__ inline Turn turn_of(const Shared& s, int h, int q) {
  const float4 a = s.turn[16 * h + q], b = s.turn[16 * h + 8 + q];
  return {{a.x, a.y}, {a.z, a.w}, {b.x, b.y}, {b.z, b.w}};
}

/// a + w b and a - w b = 2a - (a + w b): six operations.
__device__ inline void turned(float2 a, float2 b, float2 w, float2& sum, float2& difference) {
  const float2 s = {fmaf(w.x, b.x, fmaf(-w.y, b.y, a.x)), fmaf(w.x, b.y, fmaf(w.y, b.x, a.y))};
  difference = {fmaf(2.0f, a.x, -s.x), fmaf(2.0f, a.y, -s.y)};
  sum = s;
}

__device__ inline void last_stages(const float2 (&even)[4], const float2 (&odd)[4], const Turn& t,
                                   float2 (&v)[8]) {
  float2 a[4], b[4];
  turned(even[0], even[2], t.w2, a[0], a[2]);
  turned(even[1], even[3], times_i(t.w2), a[1], a[3]);
  turned(odd[0], odd[2], t.w2, b[0], b[2]);
  turned(odd[1], odd[3], times_i(t.w2), b[1], b[3]);
  turned(a[0], b[0], t.w1, v[0], v[4]);
  turned(a[1], b[1], t.w1_w8, v[1], v[5]);
  turned(a[2], b[2], times_i(t.w1), v[2], v[6]);
  turned(a[3], b[3], times_i(t.w1_w8), v[3], v[7]);
}

// Second step. @eq v[r] = sum_p w^p v[p] W8^(p r)
__device__ inline void second_step(const Turn& t, float2 (&v)[8]) {
  float2 even[4], odd[4];  // [2 m + r]: inputs 2 m and 2 m + 4 after the first stage
  turned(v[0], v[4], t.w4, even[0], even[1]);
  turned(v[2], v[6], t.w4, even[2], even[3]);
  turned(v[1], v[5], t.w4, odd[0], odd[1]);
  turned(v[3], v[7], t.w4, odd[2], odd[3]);
  last_stages(even, odd, t, v);
}

/// a + b and a - b where Parity is 0, else a + i b and a - i b; b = 0 where it is not there.
template <int Parity, bool There>
__device__ inline void plus_minus(float2 a, float2 b, float2& sum, float2& difference) {
  if constexpr (There) {
    const float2 other = Parity == 0 ? b : times_i(b);
    sum = a + other;
    difference = a - other;
  } else {
    sum = difference = a;
  }
}

// First step, inputs N .. 7 zero, N >= 4. @eq v[q] = sum_i v[i] W16^(i (2 q + h))
template <int Parity, int N>
__device__ inline void first_step(float2 (&v)[8]) {
  static_assert(N >= 4);
  constexpr float kHalf = 0.70710678118654752f;
  constexpr float kCos = 0.92387953251128674f, kSin = 0.38268343236508977f;
  float2 even[4], odd[4];
  plus_minus<Parity, (N > 4)>(v[0], v[4], even[0], even[1]);
  plus_minus<Parity, (N > 6)>(v[2], v[6], even[2], even[3]);
  plus_minus<Parity, (N > 5)>(v[1], v[5], odd[0], odd[1]);
  plus_minus<Parity, (N > 7)>(v[3], v[7], odd[2], odd[3]);
  if constexpr (Parity == 1) {
    last_stages(even, odd, {{0, 1}, {kHalf, kHalf}, {kCos, kSin}, {kSin, kCos}}, v);
  } else {
    float2 a[4], b[4];
    plus_minus<0, true>(even[0], even[2], a[0], a[2]);
    plus_minus<1, true>(even[1], even[3], a[1], a[3]);
    plus_minus<0, true>(odd[0], odd[2], b[0], b[2]);
    plus_minus<1, true>(odd[1], odd[3], b[1], b[3]);
    plus_minus<0, true>(a[0], b[0], v[0], v[4]);
    turned(a[1], b[1], {kHalf, kHalf}, v[1], v[5]);
    plus_minus<1, true>(a[2], b[2], v[2], v[6]);
    turned(a[3], b[3], {-kHalf, kHalf}, v[3], v[7]);
  }
}

// What eight threads of each of four rows or columns hand one another: thread p has the values q of
// its points, and takes the value q = p of all. Threads and their neighbors meet different banks.
struct Exchange {
  float2* to;
  const float2* from;
  __device__ Exchange(float2* base, int line, int p)
      : to(base + 72 * line + p), from(base + 72 * line + 9 * p) {}
  __device__ void put(const float2 (&v)[8], int at = 0) const {
#pragma unroll
    for (int q = 0; q < 8; ++q) to[at + 9 * q] = v[q];
  }
  __device__ void get(float2 (&v)[8], int at = 0) const {
#pragma unroll
    for (int p = 0; p < 8; ++p) v[p] = from[at + p];
  }
};

// @eq j = p + 8 i, c = q + 8 r, w = W128^(2 q + h):
//     X[2 c + h] = sum_p w^p W8^(p r) sum_i x[p + 8 i] W16^(i (2 q + h)). A warp has four rows of
// one polarization, of which N tiles can be other than zero.
template <int Parity, int N>
__device__ inline void transform_rows(const FusedArgs& a, const Shared& s) {
  const int warp = threadIdx.x / 32, line = threadIdx.x % 32 / 8, p = threadIdx.x % 8;
  const Turn turn = turn_of(s, Parity, p);
  const Exchange exchange(s.exchange + warp * kFusedExchange, line, p);
  const int group = warp / 2;  // and every eighth: four of eight rows
  float2* x = s.grid + warp % 2 * s.plane + p +
              (group / 2 * 8 + group % 2 * 2 + (line & 1) * 4 + (line >> 1)) * kPitch;
  for (int g = group; g < a.n_rows / 4; g += kWarps / 2, x += 2 * kWarps * kPitch) {
    float2 v[8];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = x[8 * i];
    first_step<Parity, N>(v);
    __syncwarp();
    exchange.put(v);
    __syncwarp();
    exchange.get(v);
    second_step(turn, v);
#pragma unroll
    for (int r = 0; r < 8; ++r) x[8 * r] = v[r];
  }
}

template <int Parity>
__device__ inline void transform_rows(const FusedArgs& a, const Shared& s) {
  if (a.n_tile_columns <= 4) {
    transform_rows<Parity, 4>(a, s);
  } else if (a.n_tile_columns <= 6) {
    transform_rows<Parity, 6>(a, s);
  } else {
    transform_rows<Parity, 8>(a, s);
  }
}

// Rows of the box in a column, those from 64 on folded for pixels of one parity; first step.
template <int Parity, int N>
__device__ inline void begin_column(const FusedArgs& a, const float2* grid, float2 (&v)[8]) {
#pragma unroll
  for (int i = 0; i < min(N, 8); ++i) v[i] = grid[8 * i * kPitch];
  if constexpr (N > 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (8 * i + 64 >= a.n_rows) break;
      const float2 folded = grid[(8 * i + 64) * kPitch];
      v[i] = Parity == 0 ? v[i] + folded : v[i] - folded;
    }
  }
  first_step<Parity, (N < 8 ? N : 8)>(v);
}

// Pixels y = 2 (q + 8 r) + Parity of four columns, q = the place of the lane in its column.
template <int Parity, int N>
__device__ inline void add_column(const FusedArgs& a, const Shared& s, const float2* grid,
                                  const Exchange& exchange, float (&sum)[8][4]) {
  float2 x[8], y[8];
  begin_column<Parity, N>(a, grid, x);
  exchange.put(x);
  begin_column<Parity, N>(a, grid + s.plane, y);
  exchange.put(y, kFusedExchange);
  if (Parity == 1) cluster_arrive_after_reads();
  __syncwarp();
  exchange.get(x);
  exchange.get(y, kFusedExchange);
  const Turn turn = turn_of(s, Parity, threadIdx.x % 8);
  second_step(turn, x);
  second_step(turn, y);
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    float(&to)[4] = sum[r];
    to[0] = fmaf(x[r].x, x[r].x, fmaf(x[r].y, x[r].y, to[0]));
    to[1] = fmaf(y[r].x, y[r].x, fmaf(y[r].y, y[r].y, to[1]));
    to[2] = fmaf(x[r].x, y[r].x, fmaf(x[r].y, y[r].y, to[2]));
    to[3] = fmaf(x[r].y, y[r].x, fmaf(-x[r].x, y[r].y, to[3]));
  }
  __syncwarp();
}

__device__ inline void set_up(const FusedArgs& a, const Shared& s, int channel, int half) {
  const std::int64_t at = 2 * channel + half;
  const float* weight = a.weights + at * a.n_visits * 16;
  for (int k = threadIdx.x; k < a.n_visits * 16; k += kThreads) s.weight[k] = weight[k];
  const FusedTile* tile = a.tiles + at * a.n_tiles;
  for (int k = threadIdx.x; k < a.n_tiles; k += kThreads) s.tile[k] = tile[k];
  for (int k = threadIdx.x; k < 2 * a.n_visits; k += kThreads) s.field[k] = {0, 0, 0, 0};
  for (int k = threadIdx.x; k < 4 * a.n_antennas; k += kThreads) s.raw[k] = {0, 0, 0, 0};
  if (threadIdx.x < 16) {
    const int h = threadIdx.x / 8, q = threadIdx.x % 8, turn = 2 * q + h;
    const float2 w4 = root_128(4 * turn), w2 = root_128(2 * turn);
    const float2 w1 = root_128(turn), w1_w8 = root_128(turn + 16);
    s.turn[16 * h + q] = {w4.x, w4.y, w2.x, w2.y};
    s.turn[16 * h + 8 + q] = {w1.x, w1.y, w1_w8.x, w1_w8.y};
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define RYLE_PAIR_OF_BLOCKS __cluster_dims__(2, 1, 1)
#else
#define RYLE_PAIR_OF_BLOCKS
#endif

// N: rows of the box in eights, more than 8: any number.
template <int N>
__global__ void RYLE_PAIR_OF_BLOCKS __launch_bounds__(kThreads, 1)
    fused_efield(const __grid_constant__ FusedArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int n_column_warps = (a.n_columns + 3) / 4;
  const Shared s = carve(a, memory, n_column_warps);
  const int parity = blockIdx.x % 2, channel = blockIdx.x / 2, slice = blockIdx.y;
  const int warp = threadIdx.x / 32;
  set_up(a, s, channel, parity);
  const int begin = static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * slice / gridDim.y);
  const int end =
      static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * (slice + 1) / gridDim.y);
  const int p = threadIdx.x % 8;
  const int of_block = threadIdx.x / 8;  // column of this block
  const int column =
      min((parity == 0 ? a.first_column[0] : a.first_column[1]) + of_block, kFusedColumns - 1);
  const float2* const of_column = s.grid + p * kPitch + column;
  const Exchange exchange(s.exchange + warp * 2 * kFusedExchange, threadIdx.x % 32 / 8, p);
  Cells cells;
  cells.column = threadIdx.x % 4 * 2;
  // Rows four apart within a quarter of the warp: a store of 16 bytes a lane meets no bank twice.
  cells.row = threadIdx.x / 4 % 2 * 4 + threadIdx.x % 32 / 8;
  cells.here = s.grid + cells.row * kPitch + cells.column;
  cells.there = in_other_block(cells.here, parity ^ 1);
  cells.arrival = in_other_block(s.arrivals, parity ^ 1);
  const FusedTile* other_tiles = a.tiles + (2 * channel + (parity ^ 1)) * a.n_tiles;
  int n_arrive = 0;
  for (int k = 0; k < a.n_tiles && threadIdx.x == 0; ++k) n_arrive += other_tiles[k].count != 0;
  if (threadIdx.x == 0) init_arrivals(s.arrivals);
  const int first_loader = n_column_warps < kWarps ? 32 * n_column_warps : 0;
  const bool loads = static_cast<int>(threadIdx.x) >= first_loader;
  float sum[2][8][4] = {};
  __syncthreads();
  for (int t = begin; t < min(begin + 2, end) && loads; ++t)
    load_fields(a, s, channel, parity, t, t == begin, first_loader);
  __syncthreads();
  cluster_arrive();
  for (int t = begin; t < end; ++t) {
    if (threadIdx.x == 0) expect_arrivals(s.arrivals, n_arrive * 1024);
    lay_on_grid(a, s, s.field + (t & 1) * a.n_visits, cells, parity);
    wait_for_arrivals(s.arrivals, (t - begin) & 1);
    __syncthreads();
    if (parity == 0) {
      transform_rows<0>(a, s);
    } else {
      transform_rows<1>(a, s);
    }
    __syncthreads();
    if (warp < n_column_warps) {
      add_column<0, N>(a, s, of_column, exchange, sum[0]);
      add_column<1, N>(a, s, of_column, exchange, sum[1]);
    } else {
      cluster_arrive_after_reads();
    }
    if (t + 2 < end && loads) load_fields(a, s, channel, parity, t + 2, false, first_loader);
  }
  cluster_wait();
  if (of_block >= a.n_columns) return;
  constexpr int kSize = kFusedPixels * kFusedPixels;
  float* plane = a.planes + static_cast<std::int64_t>(channel * gridDim.y + slice) * 4 * kSize;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int y = 2 * (p + 8 * r) + h;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        plane[k * kSize + y * kFusedPixels + 2 * column + parity] += sum[h][r][k];
    }
  }
}

}  // namespace

void prepare_fused(std::int64_t shared_bytes) {
  const auto allow = [&](auto kernel) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)));
  };
  allow(fused_efield<4>);
  allow(fused_efield<5>);
  allow(fused_efield<6>);
  allow(fused_efield<7>);
  allow(fused_efield<8>);
  allow(fused_efield<16>);
}

void launch_fused(const FusedArgs& args, int n_slices, std::int64_t shared_bytes,
                  cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(2 * args.n_channels), static_cast<unsigned>(n_slices));
  const int rows = args.n_rows / 8;
  const auto kernel = rows == 4   ? fused_efield<4>
                      : rows == 5 ? fused_efield<5>
                      : rows == 6 ? fused_efield<6>
                      : rows == 7 ? fused_efield<7>
                      : rows == 8 ? fused_efield<8>
                                  : fused_efield<16>;
  kernel<<<grid, kThreads, static_cast<std::size_t>(shared_bytes), stream>>>(args);
  RYLE_CUDA_LAUNCHED("fused_efield");
}

}  // namespace ryle::image::detail
