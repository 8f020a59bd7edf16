// SPDX-License-Identifier: BSD-3-Clause
// Voltages to image planes in one kernel: grid, transform, multiply, add, with the sums in
// registers from the first spectrum of a gulp to the last. Nothing goes through global memory in
// between.
//
// A thread block makes one parity of columns of one channel (cuda_all_sky_fused.hpp); the two
// blocks of a channel are a cluster. Per spectrum:
//   1 a warp owns four tiles of 4 x 4 cells, eight lanes each, and walks the antennas that touch
//     them (no atomics); the blocks share the tiles and write each to both grids
//   2 rows of the box: 64 = 8 x 8 points, eight threads a row, in place
//   3 columns: even and odd pixels by 64 = 8 x 8 points each, eight threads a column, zero rows
//     skipped; what comes out of the second step is multiplied and added where it is. Warps that
//     have fewer columns calibrate the spectrum after the next and lay more tiles.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda_all_sky_fused.cuh"
#include "ryle/engine/image/cuda_all_sky_voltages.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kWarps = kFusedWarps;
constexpr int kThreads = 32 * kWarps;
// A row lies eight banks (4 bytes each) after the one before: four rows of a tile, 32 bytes each,
// meet no bank twice, nor do two rows two apart, nor four columns of four rows.
constexpr int kPitch = kFusedPitch;

struct Shared {
  float2* grid;      // [pol][row][kPitch]
  int plane;         // float2 of a polarization
  float2* exchange;  // [warp][pol][kFusedExchange]
  float4* field;     // [four spectra][a] X and Y, one more that is 0
  float* weight;     // [round][tile of four][8]
  uint4* who;        // [group of rounds][tile of four]
  float4* turn;      // [h][2][q] w^4, w^2 and w, w W8, where w = exp(2 pi i (2q + h) / 128)
  uint4* tile;       // [quad][tile of four] FusedTile
  unsigned* empty;   // where tiles lie that nobody touches
  unsigned long long* arrivals;  // of what the other block stores
};

__device__ Shared carve(const FusedArgs& a, unsigned char* base) {
  static_assert(kFusedUnroll == 4, "a group of a tile is one uint4 of who");
  static_assert(sizeof(FusedTile) == sizeof(uint4), "read as one");
  Shared s;
  s.plane = a.n_rows * kPitch;
  s.grid = reinterpret_cast<float2*>(base);
  s.exchange = s.grid + 2 * s.plane;
  s.field = reinterpret_cast<float4*>(s.exchange + 2 * kWarps * kFusedExchange);
  s.weight = reinterpret_cast<float*>(s.field + 4 * (a.n_antennas + 1));
  s.who = reinterpret_cast<uint4*>(s.weight + 32 * a.n_rounds);
  s.turn = reinterpret_cast<float4*>(s.who + a.n_rounds + kFusedUnroll);
  s.tile = reinterpret_cast<uint4*>(s.turn + 32);
  s.arrivals = reinterpret_cast<unsigned long long*>(s.tile + 4 * a.n_quads);
  s.empty = reinterpret_cast<unsigned*>(s.arrivals + 2);
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

/// Two spectra of both inputs of an antenna on their way: bytes, or real and imaginary parts.
struct Fetched {
  unsigned x, y;
  float4 factor;
};

// Not moved by the compiler to where the value is used.
__device__ inline unsigned load_two_bytes(const std::byte* from) {
  unsigned short v;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(from));
  return v;
}

// Two spectra of an input; t even.
__device__ inline unsigned fetch_spectra(const FieldBlocks& blocks, int channel, int t, int input) {
  if (input < 0) return 0;
  if (blocks.nibbles) return load_two_bytes(cell_of(blocks, channel, t / 128, input) + t % 128);
  const auto* cell = cell_of(blocks, channel, t / 64, input) + t % 64 / 32 * 64 + t % 32;
  return load_two_bytes(cell) | load_two_bytes(cell + 32) << 16;
}

__device__ inline Fetched fetch_antenna(const FusedArgs& a, int channel, int t, int antenna) {
  Fetched f;
  const int2 input = __ldg(a.input + antenna);
  f.x = fetch_spectra(a.blocks, channel, t, input.x);
  f.y = fetch_spectra(a.blocks, channel, t, input.y);
  const float4* factor = a.factor + static_cast<std::int64_t>(channel) * a.n_antennas + antenna;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(f.factor.x), "=f"(f.factor.y), "=f"(f.factor.z), "=f"(f.factor.w)
               : "l"(factor));
  return f;
}

// The spectrum k of the two.
__device__ inline float2 sample_of(bool nibbles, unsigned fetched, int k) {
  if (nibbles) {
    const unsigned byte = fetched >> (8 * k);
    return {static_cast<float>(high_nibble(byte & 255u)), static_cast<float>(low_nibble(byte))};
  }
  return {static_cast<float>(static_cast<signed char>(fetched >> (8 * k))),
          static_cast<float>(static_cast<signed char>(fetched >> (16 + 8 * k)))};
}

// Calibrated fields of two spectra, t even.
__device__ inline void put_fields(const FusedArgs& a, const Shared& s, int t, int antenna,
                                  const Fetched& f) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const float2 x = times(float2{f.factor.x, f.factor.y}, sample_of(a.blocks.nibbles, f.x, k));
    const float2 y = times(float2{f.factor.z, f.factor.w}, sample_of(a.blocks.nibbles, f.y, k));
    s.field[((t & 2) + k) * (a.n_antennas + 1) + antenna] = {x.x, x.y, y.x, y.y};
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

/// Where a lane reads what its tile of a quad takes: moves on as it goes.
struct Walk {
  const float *wx, *wy;  // of its two columns, of its row
  const uint4* who;
  const char* field;
};

__device__ inline Pair visits_of(Walk& walk, int groups) {
  Pair sum{};
  uint4 who = *walk.who;
#pragma unroll 1
  for (; groups > 0; --groups) {
    const char* from[kFusedUnroll] = {walk.field + who.x, walk.field + who.y, walk.field + who.z,
                                      walk.field + who.w};
    walk.who += 4;
    who = *walk.who;  // of the next: a latency less in front of its fields
#pragma unroll
    for (int v = 0; v < kFusedUnroll; ++v) {
      const float2 x = *reinterpret_cast<const float2*>(walk.wx + 32 * v);
      const float y = walk.wy[32 * v];
      const float4 e = *reinterpret_cast<const float4*>(from[v]);
      add_visit(sum.left, x.x * y, e);
      add_visit(sum.right, x.y * y, e);
    }
    walk.wx += 32 * kFusedUnroll;
    walk.wy += 32 * kFusedUnroll;
  }
  return sum;
}

/// Where a lane has its two cells of a tile at 0, here and in the other block.
struct Cells {
  const float *wx, *wy;  // in the weights of its tile of four
  const uint4 *who, *tile;
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
  for (int index = threadIdx.x / 32; index < a.n_quads; index += kWarps) {
    const uint4 tile = cells.tile[4 * index];
    if (tile.y == 0) break;
    Walk walk{cells.wx + tile.x * (32 * kFusedUnroll), cells.wy + tile.x * (32 * kFusedUnroll),
              cells.who + 4 * tile.x, reinterpret_cast<const char*>(field)};
    const int at = static_cast<int>(tile.z), n_folded = static_cast<int>(tile.y >> 16);
    Pair sum = visits_of(walk, static_cast<int>(tile.y & 0xffff));
    if (n_folded == 0) {
      if (!waited) cluster_wait();
      waited = true;
      if (tile.z == FusedTile::kNone) continue;
      store_here(s, cells, at, sum);
    } else {
      const Pair folded = visits_of(walk, n_folded);
      const float sign = parity == 0 ? 1.0f : -1.0f;
      Pair here = sum;
      add_visit(here.left, sign, folded.left);
      add_visit(here.right, sign, folded.right);
      add_visit(sum.left, -sign, folded.left);
      add_visit(sum.right, -sign, folded.right);
      if (!waited) cluster_wait();
      waited = true;
      if (tile.z == FusedTile::kNone) continue;
      store_here(s, cells, at, here);
    }
    store_there(s, cells, at, sum);
  }
  if (!waited) cluster_wait();
  // Rows were transformed in place: what nobody touches is not 0 any more.
  for (int k = threadIdx.x / 8; k < a.n_empty; k += kThreads / 8) {
    if (s.empty[k] != FusedTile::kNone) store_here(s, cells, static_cast<int>(s.empty[k]), Pair{});
  }
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
// its points, and takes the value q = p of all. Lines lie so that half a warp meets no bank twice:
// eight threads of two rows (72) or four threads of four columns (76).
constexpr int kRowExchange = 72, kColumnExchange = 76;
struct Exchange {
  float2* to;
  const float2* from;
  __device__ Exchange(float2* base, int p) : to(base + p), from(base + 9 * p) {}
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
  const Exchange exchange(s.exchange + warp * kFusedExchange + kRowExchange * line, p);
  const int group = warp / 2;  // and every eighth: four rows, the two of half a warp two apart
  float2* x = s.grid + warp % 2 * s.plane + p + (group * 4 + (line & 1) * 2 + (line >> 1)) * kPitch;
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

constexpr int kAnyRows = 16;  // more than 12 eights

/// Half a warp takes four points of each of four columns.
__device__ inline int column_of_warp() { return static_cast<int>(threadIdx.x % 16 / 4); }
__device__ inline int point_of_column() {
  return static_cast<int>(threadIdx.x % 4 + threadIdx.x % 32 / 16 * 4);
}

// Rows of the box in a column, those from 64 on folded for pixels of one parity; first step.
template <int Parity, int N>
__device__ inline void begin_column(const FusedArgs& a, const float2* grid, float2 (&v)[8]) {
#pragma unroll
  for (int i = 0; i < min(N, 8); ++i) v[i] = grid[8 * i * kPitch];
  if constexpr (N > 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (N == kAnyRows ? 8 * i + 64 >= a.n_rows : i + 8 >= N) break;
      const float2 folded = grid[(8 * i + 64) * kPitch];
      v[i] = Parity == 0 ? v[i] + folded : v[i] - folded;
    }
  }
  first_step<Parity, (N < 8 ? N : 8)>(v);
}

// Pixels y = 2 (q + 8 r) + Parity of four columns, q = the place of the lane in its column.
template <int Parity, int N>
__device__ inline void add_column(const FusedArgs& a, const Shared& s, const float2* grid,
                                  const Exchange& exchange, bool last, float (&sum)[8][4]) {
  float2 x[8], y[8];
  begin_column<Parity, N>(a, grid, x);
  exchange.put(x);
  begin_column<Parity, N>(a, grid + s.plane, y);
  exchange.put(y, kFusedExchange);
  if (last) cluster_arrive_after_reads();
  __syncwarp();
  exchange.get(x);
  exchange.get(y, kFusedExchange);
  const Turn turn = turn_of(s, Parity, point_of_column());
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
  const float* weight = a.weights + at * a.n_rounds * 32;
  for (int k = threadIdx.x; k < a.n_rounds * 32; k += kThreads) s.weight[k] = weight[k];
  const auto* who = reinterpret_cast<const uint4*>(a.who) + at * a.n_rounds;
  for (int k = threadIdx.x; k < a.n_rounds; k += kThreads) s.who[k] = who[k];
  const auto* tile = reinterpret_cast<const uint4*>(a.tiles) + 4 * at * a.n_quads;
  for (int k = threadIdx.x; k < 4 * a.n_quads; k += kThreads) s.tile[k] = tile[k];
  const unsigned* empty = a.empty + static_cast<std::int64_t>(channel) * a.n_empty;
  for (int k = threadIdx.x; k < a.n_empty; k += kThreads) s.empty[k] = empty[k];
  for (int k = threadIdx.x; k < 4; k += kThreads)
    s.field[k * (a.n_antennas + 1) + a.n_antennas] = {0, 0, 0, 0};
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

// Bytes the other block will store here, each spectrum.
__device__ inline int bytes_of_tiles(const FusedTile* tiles, int n) {
  int there = 0;
  for (int k = 0; k < n; ++k) there += tiles[k].at != FusedTile::kNone;
  return there * (2 * kFusedTile * kFusedTile * static_cast<int>(sizeof(float2)));
}

/// Four columns whose pixels of one parity a warp makes.
struct Unit {
  int parity, of_block;  // of_block: the lane's column of this block
};

__device__ inline Unit unit_of(const FusedArgs& a, int index) {
  const int groups = a.n_units / 2;
  const int parity = index < groups ? 0 : 1;
  return {parity, 4 * (index - parity * groups) + column_of_warp()};
}

__device__ inline int column_of(const FusedArgs& a, const Unit& unit, int parity) {
  return min((parity == 0 ? a.first_column[0] : a.first_column[1]) + unit.of_block,
             kFusedColumns - 1);
}

__device__ inline void add_to_planes(const FusedArgs& a, const Unit& unit, int parity, int channel,
                                     const float (&sum)[8][4]) {
  if (unit.of_block >= a.n_columns) return;
  constexpr int kSize = kFusedPixels * kFusedPixels;
  float* plane = a.planes + static_cast<std::int64_t>(channel * gridDim.y + blockIdx.y) * 4 * kSize;
  const int x = 2 * column_of(a, unit, parity) + parity;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int y = 2 * (point_of_column() + 8 * r) + unit.parity;
    const int at = a.transposed ? x * kFusedPixels + y : y * kFusedPixels + x;
#pragma unroll
    for (int k = 0; k < 4; ++k) plane[k * kSize + at] += sum[r][k];
  }
}

// N: rows of the box in eights.
template <int N>
__global__ void RYLE_PAIR_OF_BLOCKS __launch_bounds__(kThreads, 1)
    fused_efield(const __grid_constant__ FusedArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Shared s = carve(a, memory);
  const int parity = blockIdx.x % 2, channel = blockIdx.x / 2, slice = blockIdx.y;
  const int warp = threadIdx.x / 32, p = point_of_column();
  set_up(a, s, channel, parity);
  const int begin = static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * slice / gridDim.y);
  const int end =
      static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * (slice + 1) / gridDim.y);
  const bool has_one = warp < a.n_units, has_two = warp + kWarps < a.n_units;
  const Unit one = unit_of(a, warp), two = unit_of(a, warp + kWarps);  // two: of odd pixels
  const float2* const of_one = s.grid + p * kPitch + column_of(a, one, parity);
  const float2* const of_two = s.grid + p * kPitch + column_of(a, two, parity);
  const Exchange exchange(
      s.exchange + warp * 2 * kFusedExchange + kColumnExchange * column_of_warp(), p);
  const int lane_tile = threadIdx.x % 32 / 8, lane_column = threadIdx.x % 8 / 4 * 2,
            lane_row = threadIdx.x % 4;
  Cells cells;
  cells.wx = s.weight + 8 * lane_tile + lane_column;
  cells.wy = s.weight + 8 * lane_tile + 4 + lane_row;
  cells.who = s.who + lane_tile;
  cells.tile = s.tile + lane_tile;
  cells.here = s.grid + lane_row * kPitch + lane_column;
  cells.there = in_other_block(cells.here, parity ^ 1);
  cells.arrival = in_other_block(s.arrivals, parity ^ 1);
  int arriving = 0;
  if (threadIdx.x == 0) {
    arriving =
        bytes_of_tiles(a.tiles + 4 * (2 * channel + (parity ^ 1)) * a.n_quads, 4 * a.n_quads);
    init_arrivals(s.arrivals);
  }
  const int loader = static_cast<int>(threadIdx.x) - 32 * (kWarps - kFusedLoaders);
  const int half = (a.n_antennas + 1) / 2;
  float sum[2][8][4] = {};
  for (int antenna = threadIdx.x; antenna < a.n_antennas; antenna += kThreads) {
    for (int t = begin & ~1; t < min((begin & ~1) + 4, end); t += 2) {
      put_fields(a, s, t, antenna, fetch_antenna(a, channel, t, antenna));
    }
  }
  __syncthreads();
  cluster_arrive();
  for (int t = begin; t < end; ++t) {
    if (threadIdx.x == 0) expect_arrivals(s.arrivals, arriving);
    // Of the two spectra after those in use half of the antennas beside each. Fetched before the
    // antennas are laid on the grid, put when that is done.
    const int next = (t & ~1) + 2, last = (t & 1) == 0 ? half : a.n_antennas;
    int antenna = loader < 0 || next >= end ? last : loader + (t & 1) * half;
    Fetched fetched;
    if (antenna < last) fetched = fetch_antenna(a, channel, next, antenna);
    lay_on_grid(a, s, s.field + (t & 3) * (a.n_antennas + 1), cells, parity);
    for (; antenna < last; antenna += 32 * kFusedLoaders) {
      put_fields(a, s, next, antenna, fetched);
      if (antenna + 32 * kFusedLoaders < last)
        fetched = fetch_antenna(a, channel, next, antenna + 32 * kFusedLoaders);
    }
    wait_for_arrivals(s.arrivals, (t - begin) & 1);
    __syncthreads();
    if (parity == 0) {
      transform_rows<0>(a, s);
    } else {
      transform_rows<1>(a, s);
    }
    __syncthreads();
    if (has_one) {
      if (one.parity == 0) {
        add_column<0, N>(a, s, of_one, exchange, !has_two, sum[0]);
      } else {
        add_column<1, N>(a, s, of_one, exchange, !has_two, sum[0]);
      }
      if (has_two) add_column<1, N>(a, s, of_two, exchange, true, sum[1]);
    } else {
      cluster_arrive_after_reads();
    }
  }
  cluster_wait();
  if (has_one) add_to_planes(a, one, parity, channel, sum[0]);
  if (has_two) add_to_planes(a, two, parity, channel, sum[1]);
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
  allow(fused_efield<9>);
  allow(fused_efield<10>);
  allow(fused_efield<11>);
  allow(fused_efield<12>);
  allow(fused_efield<kAnyRows>);
}

void launch_fused(const FusedArgs& args, int n_slices, std::int64_t shared_bytes,
                  cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(2 * args.n_channels), static_cast<unsigned>(n_slices));
  const int rows = args.n_rows / 8;
  const auto kernel = rows == 4    ? fused_efield<4>
                      : rows == 5  ? fused_efield<5>
                      : rows == 6  ? fused_efield<6>
                      : rows == 7  ? fused_efield<7>
                      : rows == 8  ? fused_efield<8>
                      : rows == 9  ? fused_efield<9>
                      : rows == 10 ? fused_efield<10>
                      : rows == 11 ? fused_efield<11>
                      : rows == 12 ? fused_efield<12>
                                   : fused_efield<kAnyRows>;
  kernel<<<grid, kThreads, static_cast<std::size_t>(shared_bytes), stream>>>(args);
  RYLE_CUDA_LAUNCHED("fused_efield");
}

}  // namespace ryle::image::detail
