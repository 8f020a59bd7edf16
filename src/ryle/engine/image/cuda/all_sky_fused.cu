// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// fused_efield is the fp32 E-field imager (path efield; Thyagarajan et al. 2017) in one kernel. For every spectrum t
//   g_p(cell) = sum_a w_a(cell) c_ap v_ap(t),   B_p = FFT[g_p],   planes += |B_x|^2, |B_y|^2, Re and Im B_x conj(B_y)
// The sums of all pixels stay in registers from the first spectrum of a gulp to the last; nothing goes through
// device memory in between.
//
//   array        axes                                      type         unit
//   a.blocks     [channel][block][input][128 bytes]        ci4, ci8     LSB
//   a.factor     [channel][antenna] X and Y                float4       gain times phase of the height
//   a.tiles,     cuda/all_sky_fused.hpp                                 which antennas touch which tile of 4 x 4
//     a.who, a.weights                                                  cells, and with which weights
//   grid         [pol][row of the box][68]                 float2       shared memory; one parity of columns
//   exchange     [warp][pol][270]                          float2       shared memory; columns under way
//   field        [4 spectra][antenna]                      float4       shared memory; calibrated X and Y
//   a.planes     [channel][slice][4][y][x]                 float        LSB^2 times gains; written by the first gulp
//
// Who does what: the two thread blocks of a cluster make the even and the odd columns of one channel, 16 warps each.
//   1 Grid.    A warp owns four tiles of 4 x 4 cells, eight lanes each, and walks the antennas that touch them, without
//              atomics. The blocks share the tiles and write each to both grids (st.async, counted by an mbarrier).
//   2 Rows     of the box: 64 = 8 x 8 points, eight threads a row, in place.
//   3 Columns. Even and odd pixels by 64 = 8 x 8 points each, eight threads a column, zero rows skipped. What comes out
//              is multiplied and added where it is. Warps that have no columns lay more tiles.
// Four warps fetch the samples of the two spectra that follow before step 1 and store their fields after it.
//
// What binds (docs/decisions/0006, H200, 60 MHz): issue of instructions and latency. 62 % of the issue slots are used;
// 15 % of the warp samples wait for the latency of shared memory, 8 % for the tiles of the other block, 8 % for
// other warps of their own.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_fused.cuh"
#include "ryle/engine/image/cuda/all_sky_voltages.cuh"
#include "ryle/engine/image/cuda/cluster.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kWarps = kFusedWarps;
constexpr int kThreads = 32 * kWarps;
// A row lies eight banks (4 bytes each) after the one before: four rows of a tile, 32 bytes each,
// meet no bank twice, nor do two rows two apart, nor four columns of four rows.
constexpr int kPitch = kFusedPitch;

struct Shared {
  float2* grid;      // [pol][row][kPitch]
  float2* exchange;  // [warp][pol][kFusedExchange]
  float4* field;     // [four spectra][a] X and Y, one more that is 0
  float* weight;     // [round][tile of four][8]
  uint4* who;        // [group of rounds][tile of four]
  float4* turn;      // [h][2][q] w^4, w^2 and w, w W8, where w = exp(2 pi i (2q + h) / 128)
  uint4* tile;       // [quad][tile of four] FusedTile
  unsigned* empty;   // where tiles lie that nobody touches
  unsigned long long* arrivals;  // of what the other block stores
};

/// Complex numbers of a polarization's grid.
template <int N>
constexpr int kPlane = fused_grid_rows(8 * N) * kPitch;

template <int N>
__device__ Shared carve(const FusedArgs& a, unsigned char* base) {
  static_assert(kFusedUnroll == 4, "a group of a tile is one uint4 of who");
  static_assert(sizeof(FusedTile) == sizeof(uint4), "read as one");
  Shared s;
  s.grid = reinterpret_cast<float2*>(base);
  s.exchange = s.grid + 2 * kPlane<N>;
  s.field = reinterpret_cast<float4*>(s.exchange + 2 * kWarps * kFusedExchange);
  s.weight = reinterpret_cast<float*>(s.field + 4 * (a.n_antennas + 1));
  s.who = reinterpret_cast<uint4*>(s.weight + 32 * a.n_rounds);
  s.turn = reinterpret_cast<float4*>(s.who + a.n_rounds + kFusedUnroll);
  s.tile = reinterpret_cast<uint4*>(s.turn + kFusedTurns);
  s.arrivals = reinterpret_cast<unsigned long long*>(s.tile + 4 * a.n_quads);
  s.empty = reinterpret_cast<unsigned*>(s.arrivals + 2);
  return s;
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

template <int N>
__device__ inline void store_here(const Cells& cells, int at, const Pair& v) {
  float2* x = cells.here + at;
  *reinterpret_cast<float4*>(x) = {v.left.x, v.left.y, v.right.x, v.right.y};
  *reinterpret_cast<float4*>(x + kPlane<N>) = {v.left.z, v.left.w, v.right.z, v.right.w};
}

template <int N>
__device__ inline void store_there(const Cells& cells, int at, const Pair& v) {
  const unsigned x = cells.there + 8 * at;
  store_remote(x, {v.left.x, v.left.y, v.right.x, v.right.y}, cells.arrival);
  store_remote(x + 8 * kPlane<N>, {v.left.z, v.left.w, v.right.z, v.right.w}, cells.arrival);
}

// Both blocks have read the grid before cluster_wait().
template <int N>
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
      store_here<N>(cells, at, sum);
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
      store_here<N>(cells, at, here);
    }
    store_there<N>(cells, at, sum);
  }
  if (!waited) cluster_wait();
  // Rows were transformed in place: what nobody touches is not 0 any more.
  for (int k = threadIdx.x / 8; k < a.n_empty; k += kThreads / 8) {
    if (s.empty[k] != FusedTile::kNone) store_here<N>(cells, static_cast<int>(s.empty[k]), Pair{});
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

// @eq j = p + 8 i, c = q + 8 r, w = W128^(2 q + h):
//     X[2 c + h] = sum_p w^p W8^(p r) sum_i x[p + 8 i] W16^(i (2 q + h)). A warp has four rows of
// one polarization, eight threads each, of which M tiles can be other than zero. Thread p has the
// values q of its points, and takes the value q = p of all; these go through the row itself: (q, p)
// lies at 2 (8 P + (q xor P)) + p mod 2, P = p / 2, so that no access meets a bank twice.
template <int N, int Parity, int M>
__device__ inline void transform_rows(const Shared& s) {
  const int warp = threadIdx.x / 32, line = threadIdx.x % 32 / 8, p = threadIdx.x % 8;
  const Turn turn = turn_of(s, Parity, p);
  const int group = warp / 2;  // and every eighth: four rows, the two of half a warp two apart
  float2* x = s.grid + warp % 2 * kPlane<N> + (group * 4 + (line & 1) * 2 + (line >> 1)) * kPitch;
#pragma unroll 1
  for (int g = group; g < 2 * N; g += kWarps / 2, x += 2 * kWarps * kPitch) {
    float2 v[8];
#pragma unroll
    for (int i = 0; i < M; ++i) v[i] = x[p + 8 * i];
    first_step<Parity, M>(v);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < 8; ++q) x[16 * (p / 2) + p % 2 + 2 * (q ^ (p / 2))] = v[q];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float4 two = *reinterpret_cast<const float4*>(x + 16 * k + 2 * (p ^ k));
      v[2 * k] = {two.x, two.y};
      v[2 * k + 1] = {two.z, two.w};
    }
    __syncwarp();
    second_step(turn, v);
#pragma unroll
    for (int r = 0; r < 8; ++r) x[p + 8 * r] = v[r];
  }
}

template <int N, int Parity>
__device__ inline void transform_rows(const FusedArgs& a, const Shared& s) {
  if (a.n_tile_columns <= 4) {
    transform_rows<N, Parity, 4>(s);
  } else if (a.n_tile_columns <= 6) {
    transform_rows<N, Parity, 6>(s);
  } else {
    transform_rows<N, Parity, 8>(s);
  }
}

/// Half a warp takes four points of each of four columns.
__device__ inline int column_of_warp() { return static_cast<int>(threadIdx.x % 16 / 4); }
__device__ inline int point_of_column() {
  return static_cast<int>(threadIdx.x % 4 + threadIdx.x % 32 / 16 * 4);
}

// What eight threads of each of four columns hand one another: thread p has the values q of its
// points, and takes the value q = p of all. No access meets a bank twice.
// Even pixels, in the column itself: (q, p) goes to row 8 q + (p ^ q mod 4).
class InPlace {
 public:
  explicit __device__ InPlace(float2* column, int p) {
#pragma unroll
    for (int j = 0; j < 4; ++j) to_[j] = column + (p ^ j) * kPitch;
    taken_ = (8 * p - (p & 4)) * kPitch;
  }
  __device__ void put(const float2 (&v)[8], int at) const {
#pragma unroll
    for (int q = 0; q < 8; ++q) to_[q % 4][at + 8 * q * kPitch] = v[q];
  }
  __device__ void get(float2 (&v)[8], int at) const {
#pragma unroll
    for (int p = 0; p < 8; ++p) v[p] = to_[p % 4][taken_ + at + p / 4 * 4 * kPitch];
  }

 private:
  float2* to_[4];
  int taken_;
};
// Odd pixels, in memory of the warp: two values at a time are taken.
class Exchange {
 public:
  __device__ Exchange(float2* base, int column, int p) {
    base += 8 * (column & 1) + 4 * (column >> 1);
    to_ = base + (p & 3) + 16 * (p >> 2);
    from_ = base + kStep * p;
  }
  __device__ void put(const float2 (&v)[8], int at) const {
#pragma unroll
    for (int q = 0; q < 8; ++q) to_[at + kStep * q] = v[q];
  }
  __device__ void get(float2 (&v)[8], int at) const {
#pragma unroll
    for (int p = 0; p < 8; p += 2) {
      const float4 two = *reinterpret_cast<const float4*>(from_ + at + (p < 4 ? p : 12 + p));
      v[p] = {two.x, two.y};
      v[p + 1] = {two.z, two.w};
    }
  }

 private:
  static constexpr int kStep = 34;
  static_assert(7 * kStep + 32 <= kFusedExchange);
  float2* to_;
  const float2* from_;
};

// Rows of the box in a column, those from 64 on folded; first step of pixels of both parities.
template <int N>
__device__ inline void begin_column(const float2* grid, float2 (&even)[8], float2 (&odd)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (i >= N) break;
    const float2 v = grid[8 * i * kPitch];
    even[i] = odd[i] = v;
    if (i + 8 >= N) continue;
    const float2 folded = grid[(8 * i + 64) * kPitch];
    even[i] = v + folded;
    odd[i] = v - folded;
  }
  first_step<0, (N < 8 ? N : 8)>(even);
  first_step<1, (N < 8 ? N : 8)>(odd);
}

__device__ inline void add_products(const float2 (&x)[8], const float2 (&y)[8],
                                    float (&sum)[8][4]) {
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    float(&to)[4] = sum[r];
    to[0] = fmaf(x[r].x, x[r].x, fmaf(x[r].y, x[r].y, to[0]));
    to[1] = fmaf(y[r].x, y[r].x, fmaf(y[r].y, y[r].y, to[1]));
    to[2] = fmaf(x[r].x, y[r].x, fmaf(x[r].y, y[r].y, to[2]));
    to[3] = fmaf(x[r].y, y[r].x, fmaf(-x[r].x, y[r].y, to[3]));
  }
}

// Pixels y = 2 (q + 8 r) + parity of four columns, q = the place of the lane in its column.
template <int N>
__device__ inline void add_columns(const Shared& s, float2* column, const Exchange& exchange,
                                   float (&sum)[2][8][4]) {
  const int p = point_of_column();
  const InPlace in_place(column, p);
  float2 x[8], y[8];
#pragma unroll
  for (int pol = 0; pol < 2; ++pol) {
    begin_column<N>(column + pol * kPlane<N> + p * kPitch, x, y);
    exchange.put(y, pol * kFusedExchange);
    __syncwarp();
    in_place.put(x, pol * kPlane<N>);
  }
  __syncwarp();
  in_place.get(x, 0);
  in_place.get(y, kPlane<N>);
  const Turn even = turn_of(s, 0, p);
  second_step(even, x);
  second_step(even, y);
  cluster_arrive_after_reads(x[0].x, y[0].x);
  add_products(x, y, sum[0]);
  exchange.get(x, 0);
  exchange.get(y, kFusedExchange);
  const Turn odd = turn_of(s, 1, p);
  second_step(odd, x);
  second_step(odd, y);
  add_products(x, y, sum[1]);
}

__device__ inline void set_up(const FusedArgs& a, const Shared& s, int channel, int h) {
  const std::int64_t at = kFusedBlocks * channel + h;
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
    const int parity = threadIdx.x / 8, q = threadIdx.x % 8, turn = 2 * q + parity;
    const float2 w4 = root_128(4 * turn), w2 = root_128(2 * turn);
    const float2 w1 = root_128(turn), w1_w8 = root_128(turn + 16);
    s.turn[16 * parity + q] = {w4.x, w4.y, w2.x, w2.y};
    s.turn[16 * parity + 8 + q] = {w1.x, w1.y, w1_w8.x, w1_w8.y};
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define RYLE_CLUSTER __cluster_dims__(kFusedBlocks, 1, 1)
#else
#define RYLE_CLUSTER
#endif

// Bytes the other block will store here, each spectrum; all threads count.
__device__ inline int bytes_of_tiles(const FusedArgs& a, int channel, int h) {
  static_assert(kFusedBlocks == 2, "one other block");
  const int n = 4 * a.n_quads;
  const FusedTile* tiles =
      a.tiles + static_cast<std::int64_t>(kFusedBlocks * channel + (h ^ 1)) * n;
  int there = 0;
  for (int first = 0; first < n; first += kThreads) {
    const int k = first + static_cast<int>(threadIdx.x);
    there += __syncthreads_count(k < n && tiles[k].at != FusedTile::kNone);
  }
  return there * (2 * kFusedTile * kFusedTile * static_cast<int>(sizeof(float2)));
}

__device__ inline void add_to_planes(const FusedArgs& a, int column, int parity, int channel,
                                     const float (&sum)[8][4]) {
  constexpr int kSize = kFusedPixels * kFusedPixels;
  float* plane = a.planes + static_cast<std::int64_t>(channel * gridDim.y + blockIdx.y) * 4 * kSize;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int y = 2 * (point_of_column() + 8 * r) + parity;
    const int at = a.transposed ? column * kFusedPixels + y : y * kFusedPixels + column;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      plane[k * kSize + at] = a.first_gulp ? sum[r][k] : plane[k * kSize + at] + sum[r][k];
    }
  }
}

// N: rows of the box in eights.
template <int N>
__global__ void RYLE_CLUSTER __launch_bounds__(kThreads, 1)
    fused_efield(const __grid_constant__ FusedArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Shared s = carve<N>(a, memory);
  const int h = blockIdx.x % kFusedBlocks, channel = blockIdx.x / kFusedBlocks;
  const int warp = threadIdx.x / 32;
  set_up(a, s, channel, h);
  const auto spectrum = [&](int slice) {
    return static_cast<int>(static_cast<std::int64_t>(a.n_spectra) * slice / gridDim.y);
  };
  const int begin = spectrum(blockIdx.y), end = spectrum(blockIdx.y + 1);
  const bool has_columns = warp < a.n_groups;
  const int column = (h == 0 ? a.first_column[0] : a.first_column[1]) + 4 * warp + column_of_warp();
  const Exchange exchange(s.exchange + warp * 2 * kFusedExchange, column_of_warp(),
                          point_of_column());
  const int lane_tile = threadIdx.x % 32 / 8, lane_column = threadIdx.x % 8 / 4 * 2,
            lane_row = threadIdx.x % 4;
  Cells cells;
  cells.wx = s.weight + 8 * lane_tile + lane_column;
  cells.wy = s.weight + 8 * lane_tile + 4 + lane_row;
  cells.who = s.who + lane_tile;
  cells.tile = s.tile + lane_tile;
  cells.here = s.grid + lane_row * kPitch + lane_column;
  cells.there = in_other_block(cells.here, h ^ 1);
  cells.arrival = in_other_block(s.arrivals, h ^ 1);
  const int arriving = bytes_of_tiles(a, channel, h);
  if (threadIdx.x == 0) init_arrivals(s.arrivals);
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
    lay_on_grid<N>(a, s, s.field + (t & 3) * (a.n_antennas + 1), cells, h);
    for (; antenna < last; antenna += 32 * kFusedLoaders) {
      put_fields(a, s, next, antenna, fetched);
      if (antenna + 32 * kFusedLoaders < last)
        fetched = fetch_antenna(a, channel, next, antenna + 32 * kFusedLoaders);
    }
    wait_for_arrivals(s.arrivals, (t - begin) & 1);
    __syncthreads();
    if (h == 0) {
      transform_rows<N, 0>(a, s);
    } else {
      transform_rows<N, 1>(a, s);
    }
    __syncthreads();
    if (has_columns) {
      add_columns<N>(s, s.grid + column, exchange, sum);
    } else {
      cluster_arrive_after_reads(0, 0);
    }
  }
  cluster_wait();
  if (!has_columns) return;
#pragma unroll
  for (int parity = 0; parity < 2; ++parity) {
    add_to_planes(a, kFusedBlocks * column + h, parity, channel, sum[parity]);
  }
}

}  // namespace

void prepare_fused(std::int64_t shared_bytes) {
  for (auto* kernel : {&fused_efield<4>, &fused_efield<5>, &fused_efield<6>, &fused_efield<7>,
                       &fused_efield<8>, &fused_efield<9>, &fused_efield<10>, &fused_efield<11>,
                       &fused_efield<12>, &fused_efield<16>}) {
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes)));
  }
}

void launch_fused(const FusedArgs& args, int n_slices, std::int64_t shared_bytes,
                  cudaStream_t stream) {
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
                                   : fused_efield<16>;
  const dim3 grid(static_cast<unsigned>(kFusedBlocks * args.n_channels),
                  static_cast<unsigned>(n_slices));
  kernel<<<grid, kThreads, static_cast<std::size_t>(shared_bytes), stream>>>(args);
  RYLE_CUDA_LAUNCHED("fused_efield");
}

}  // namespace ryle::image::detail
