// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/search/cuda/detect_pairs.cuh"
#include "ryle/engine/search/cuda/detect_start.cuh"

// clang-format off
/// Private to the CUDA detector: boxcars and peaks of rows of 16-bit sums that are read once,
///   S/N = (sum_W x - W mu) / (sigma sqrt(W w)),  mu and sigma between clips of the row.
/// measure_rows brings a row to shared memory, takes its median from there, then moments and the largest windows of
/// every cell of 64 columns in one pass. What the windows are compared with is known only after it, so the
/// comparison is a second kernel, list_blocks.
///
///   array          axes                                type              layout
///   w.in.sums      [trial][column]                     uint16            stride numbers from trial to trial
///   w.in.weights   [trial][cell of 64 columns]         float             nullptr: all have in.level
///   row            [cell of 64][8 pieces of 16 bytes]  uint16            shared memory; pieces exchanged, piece_of()
///   w.starts       [trial]                             TrialStart        median, clip, columns that count
///   w.moments      [trial]                             TrialMoments      n, sum and squares between the clips
///   w.maxima       [trial][tile][window][thread]       2 x uint16        largest windows of cells t and t + half
///   list.hits      [block]                             DeviceHit         blocks of 64 starts to look at exactly
///
/// Who does what: measure_rows has a thread block a trial. All threads copy the row by cp.async, one warp finds median
/// and clip from 512 of its sums, then a thread takes two cells, one in each half of its packed words. list_blocks
/// makes statistics by a lane a trial, then compares by a warp a trial.
///
/// What binds: two rows fit the shared memory of a multiprocessor (kMaxHalf); docs/decisions/0013 lists bounds and
/// times: boxcars and peaks of 4,161 rows take 0.318 ms on one H200.
// clang-format on
///
/// Sums become units u above the lower clip, at most kRowTop. On each level of halved data what
/// lies below the median counts as the median, v = max(u, m) - m, so that a window holds at least
/// what any boxcar in it does. Windows are whole cells of 2, 4 or 8 values: n cells of c hold every
/// boxcar of (n - 1) c + 1 values, wherever it begins. Boxcars over a value at the top, and windows
/// over a cell of more than 16 bits hold five times, are looked at exactly.
namespace ryle::search::detail {

inline constexpr int kListTrials = 8;
inline constexpr int kListThreads = 256;
/// Of a row.
inline int row_threads(int half) { return (half + kRowAhead + 63) / 64 * 64; }

/// How sums of a trial become units.
struct RowUnits {
  int base;   ///< of 0; below is taken for it
  int shift;  ///< a unit is 2^shift
  int end;    ///< sums are cut so much above the base
  int mean;   ///< the median in units
  __device__ explicit RowUnits(const TrialStart& t)
      : base(max(0, t.center - t.clip - 1)), shift(0) {
    while (shift < 6 && (kRowTop << shift) * 2 < 7 * t.clip) ++shift;  // 7.5 sigma above the median
    end = min(kRowTop << shift, 65536 - (1 << shift));
    mean = (t.center - base + (1 << shift) - 1) >> shift;
  }
};

/// Cells that statistics come from.
struct RowCells {
  const RowWork& w;
  const float* weights;  // of cell 0 on; nullptr: one weight

  __device__ int first() const { return w.stat_begin / 64; }
  __device__ int end() const { return w.stat_end > w.stat_begin ? (w.stat_end + 63) / 64 : 0; }
  __device__ int begin_of(int c) const { return max(w.stat_begin, 64 * c); }
  __device__ int size_of(int c) const { return min(w.stat_end, 64 * c + 64) - begin_of(c); }
  __device__ bool good(int c, float minimum) const {
    return c >= first() && c < end() && (weights == nullptr || weights[c] >= minimum);
  }
};

/// Weights of a trial, by a warp; `list`: cells that count, unless all do.
__device__ inline bool weigh_row(const RowCells& cells, int lane, TrialStart& t,
                                 unsigned short* list) {
  const RowWork& w = cells.w;
  const int n_all = max(w.stat_end - w.stat_begin, 0);
  if (cells.weights == nullptr) {
    t.n_columns = n_all;
    t.weight = static_cast<double>(w.in.level) * static_cast<double>(n_all);  // exact
    if (w.in.level >= kMinWeight) t.minimum = fminf(t.minimum, w.in.level);
    return true;
  }
  float maximum = 0;
  const int searched = static_cast<int>((w.in.first_start - w.first) / 64);
  for (int c = lane; c < (w.n_columns + 63) / 64; c += 32) {
    const float weight = cells.weights[c];
    if (c >= cells.first() && c < cells.end()) maximum = fmaxf(maximum, weight);
    if (c >= searched && weight >= kMinWeight) t.minimum = fminf(t.minimum, weight);
  }
  for (int m = 16; m > 0; m /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(kAll, maximum, m));
    t.minimum = fminf(t.minimum, __shfl_xor_sync(kAll, t.minimum, m));
  }
  // w >= 0.75 most in double is w >= the next float not below it.
  const double minimum = 0.75 * static_cast<double>(maximum);
  t.min_good = minimum > 0 ? __double2float_ru(minimum) : INFINITY;
  int n = 0, n_listed = 0;
  double weight = 0;
  for (int c0 = cells.first(); c0 < cells.end(); c0 += 32) {
    const int c = c0 + lane;
    const bool good = cells.good(c, t.min_good);
    const unsigned all = __ballot_sync(kAll, good);
    if (good) {
      const int size = cells.size_of(c);
      n += size;
      // Exact in any order: floats of at least a quarter of each other, counts below 2^20.
      weight += static_cast<double>(cells.weights[c]) * static_cast<double>(size);
      list[n_listed + __popc(all & ((1u << lane) - 1))] = static_cast<unsigned short>(c);
    }
    n_listed += __popc(all);
  }
  t.n_columns = warp_sum(n);
  t.weight = warp_sum(weight);
  __syncwarp();
  return t.n_columns == n_all;
}

/// Where cells lie: 8 pieces of 16 bytes, exchanged so that threads that read one of neighboring
/// cells each find them in different banks.
__device__ __forceinline__ int piece_of(int cell, int k) { return 8 * cell + (k ^ (cell & 7)); }
__device__ inline int row_value(const uint4* row, int column) {
  const auto* of = reinterpret_cast<const std::uint16_t*>(row);
  return of[8 * piece_of(column / 64, column / 8 % 8) + column % 8];
}

/// Median and clip, by a warp.
__device__ inline void start_row(const RowCells& cells, const uint4* row, int lane, bool all,
                                 const unsigned short* list, TrialStart& t) {
  const int n = static_cast<int>(t.n_columns), step = max((n + kSample - 1) / kSample, 1);
  const int n_sample = (n + step - 1) / step;
  const int begin = cells.w.stat_begin;
  const int head = all || n == 0 ? 0 : cells.size_of(list[0]);
  set_center(
      n_sample, lane,
      [&](int i) {
        const int k = i * step;
        if (all) return row_value(row, begin + k);
        if (k < head) return row_value(row, cells.begin_of(list[0]) + k);
        // Cells behind the first begin with their first column.
        return row_value(row, 64 * list[1 + (k - head) / 64] + (k - head) % 64);
      },
      t);
}

struct RowSums {
  long long n = 0, sum = 0, squares = 0;
  __device__ void add(int x, const TrialStart& t) {
    const long long d = static_cast<long long>(x) - t.center;
    if (d > t.clip || d < -static_cast<long long>(t.clip)) return;
    ++n;
    sum += d;
    squares += d * d;
  }
};

/// Columns of a cell that count, one by one.
__device__ inline void add_some(const RowCells& cells, const uint4* row, int c, const TrialStart& t,
                                RowSums& sums) {
  const int begin = cells.begin_of(c);
  for (int k = begin; k < begin + cells.size_of(c); ++k) sums.add(row_value(row, k), t);
}

/// Constants of both halves of words.
struct RowWords {
  unsigned base2, minus2, end2, add2, mask2;
  unsigned mean2, less2;  // of one value, of two
  int shift;
  __device__ explicit RowWords(const RowUnits& u)
      : base2(0x10001u * static_cast<unsigned>(u.base)),
        minus2(0x10001u * ((0x10000u - static_cast<unsigned>(u.base)) & 0xffffu)),
        end2(0x10001u * static_cast<unsigned>(u.end)),
        add2(0x10001u * ((1u << u.shift) - 1)),
        mask2(0x10001u * (0xffffu >> u.shift)),
        mean2(0x10001u * static_cast<unsigned>(u.mean)),
        less2(0u - 2 * mean2),
        shift(u.shift) {}
  /// Above the base, of two values.
  __device__ unsigned above(unsigned x) const {
    return __viaddmin_u16x2(__vmaxu2(x, base2), minus2, end2);
  }
  template <bool kWhole>
  __device__ unsigned units(unsigned x) const {
    return kWhole ? x : (x + add2) >> shift & mask2;
  }
  /// v of two sums of 2^h values, added.
  __device__ unsigned pair(unsigned a, unsigned b, int h) const {
    return __vmaxu2(a, mean2 << h) + __vmaxu2(b, mean2 << h) + (less2 << h);
  }
};

inline constexpr unsigned kMaxCell = 13107;  ///< five fit 16 bits
inline constexpr unsigned kMaxCell2 = 0x10001u * kMaxCell;
__device__ __forceinline__ unsigned cell_of(unsigned a, unsigned b) {
  return __viaddmin_u16x2(a, b, kMaxCell2);
}

/// Largest windows of 4 and 5 cells that begin in the first N.
template <int N>
__device__ __forceinline__ void longest(const unsigned (&cell)[N + 4], unsigned& most4,
                                        unsigned& most5) {
  unsigned two[N + 3];
#pragma unroll
  for (int k = 0; k < N + 3; ++k) two[k] = cell[k] + cell[k + 1];
  most4 = most5 = 0;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    most4 = __viaddmax_u16x2(two[k], two[k + 2], most4);
    most5 = __viaddmax_u16x2(two[k] + cell[k + 2], two[k + 3], most5);
  }
}
/// The same, the largest number where a cell is full.
template <int N>
__device__ __forceinline__ void longest_of_cut(const unsigned (&cell)[N + 4], unsigned& most4,
                                               unsigned& most5) {
  longest<N>(cell, most4, most5);
  unsigned maximum = kMaxCell2 - 0x10001u;
#pragma unroll
  for (int k = 0; k < N + 4; ++k) maximum = __vmaxu2(maximum, cell[k]);
  const unsigned full = (maximum - (kMaxCell2 - 0x10001u)) * 0xffffu;
  most4 |= full;
  most5 |= full;
}
/// Largest windows of 2 .. 5 fours. Behind the beginning of a cell sums of less than a window are
/// no more than the window that begins there.
struct FourWindows {
  unsigned maximum[4] = {};                            // of 2, 3, 4, 5
  unsigned two_a = 0, two_b = 0, two_c = 0, last = 0;  // sums of two: the last three; the last four
  /// The next four fours; of windows that end in them those that begin before their number `n`.
  template <bool kAll>
  __device__ __forceinline__ void add(const unsigned (&g)[4]) {
    const unsigned two[4] = {last + g[0], g[0] + g[1], g[1] + g[2], g[2] + g[3]};
    const unsigned three[4] = {two_c + g[0], two[0] + g[1], two[1] + g[2], two[2] + g[3]};
    const unsigned before[4] = {two_a, two_b, two_c, two[0]};  // five cells' first two
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (kAll || k < 1) maximum[0] = __vmaxu2(maximum[0], two[k]);
      if (kAll || k < 2) maximum[1] = __vmaxu2(maximum[1], three[k]);
      const unsigned earlier = k == 0 ? two_b : k == 1 ? two_c : two[k - 2];
      if (kAll || k < 3) maximum[2] = __viaddmax_u16x2(two[k], earlier, maximum[2]);
      maximum[3] = __viaddmax_u16x2(three[k], before[k], maximum[3]);
    }
    two_a = two[1], two_b = two[2], two_c = two[3], last = g[3];
  }
};

/// What a thread has of its two cells, in both halves of words.
struct RowCellSums {
  unsigned top = 0, pairs = 0;  // largest value above the base, largest two pairs
  unsigned first_pair = 0, last_pair = 0;
  FourWindows fours;
  unsigned n16[4] = {}, n32[2] = {}, n64 = 0;  // cells of 8 of the halved data
};

/// Which of the two cells go to the moments whole: the other counts as the median.
struct RowCounts {
  int n;  // columns
  unsigned keep2, fill2;
  bool masked;  // in any thread of the warp not both count
};

template <bool kMasked>
__device__ __forceinline__ void add_moments(const unsigned (&x)[8], const RowCounts& counts,
                                            PairSums& pairs) {
#pragma unroll
  for (int m = 0; m < 8; m += 4) {
    unsigned u[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      u[i] = __vminu2(x[m + i], pairs.end2);
      if (kMasked) u[i] = (u[i] & counts.keep2) | counts.fill2;
    }
    pairs.add_clamped(u);
  }
}

/// First cells of every size, and all eights, go to the place of a cell `at` whose pieces were read
/// by this thread: fours 0 .. 3, eights 0 .. 3; 16s; first pair, 32s, 64; eights 4 .. 7.
template <bool kWhole>
__device__ __forceinline__ void sum_cells(uint4* row, int a_cell, int b_cell, int at,
                                          const RowWords& words, const RowCounts& counts,
                                          PairSums& pairs, RowCellSums& s) {
  unsigned before4 = 0, before8 = 0, of8[2] = {};
#pragma unroll 1
  for (int turn = 0; turn < 4; ++turn) {
    unsigned four[4], eight[2], eight2[2], pair4[2], y8[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const uint4 a = row[piece_of(a_cell, 2 * turn + k)], b = row[piece_of(b_cell, 2 * turn + k)];
      const unsigned wa[4] = {a.x, a.y, a.z, a.w}, wb[4] = {b.x, b.y, b.z, b.w};
      unsigned x[8];
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        x[2 * m] = words.above(__byte_perm(wa[m], wb[m], 0x5410));
        x[2 * m + 1] = words.above(__byte_perm(wa[m], wb[m], 0x7632));
        s.top = __vmaxu2(__vmaxu2(x[2 * m], x[2 * m + 1]), s.top);
      }
      if (counts.masked)
        add_moments<true>(x, counts, pairs);
      else
        add_moments<false>(x, counts, pairs);
#pragma unroll
      for (int m = 0; m < 8; ++m) x[m] = words.units<kWhole>(x[m]);
      unsigned pair[4], two[4];
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        pair[m] = words.pair(x[2 * m], x[2 * m + 1], 0);
        two[m] = x[2 * m] + x[2 * m + 1];
        s.pairs = __viaddmax_u16x2(m == 0 ? s.last_pair : pair[m - 1], pair[m], s.pairs);
      }
      if (k == 0 && turn == 0) s.first_pair = pair[0];
      s.last_pair = pair[3];
      four[2 * k] = pair[0] + pair[1];
      four[2 * k + 1] = pair[2] + pair[3];
      eight[k] = cell_of(four[2 * k], four[2 * k + 1]);
      // The same of values halved in time once, twice, three times.
      eight2[k] = words.pair(two[0], two[1], 1) + words.pair(two[2], two[3], 1);
      const unsigned y4[2] = {two[0] + two[1], two[2] + two[3]};
      pair4[k] = words.pair(y4[0], y4[1], 2);
      y8[k] = y4[0] + y4[1];
    }
    s.fours.add<true>(four);
    if (turn == 0) row[piece_of(at, 0)] = {four[0], four[1], four[2], four[3]};
    auto* eights = reinterpret_cast<unsigned*>(row + piece_of(at, turn < 2 ? 1 : 4));
    eights[2 * (turn & 1)] = eight[0];
    eights[2 * (turn & 1) + 1] = eight[1];
    s.n16[0] = s.n16[1], s.n16[1] = s.n16[2], s.n16[2] = s.n16[3];
    s.n16[3] = cell_of(eight2[0], eight2[1]);
    const unsigned four4 = cell_of(pair4[0], pair4[1]);
    const unsigned pair8 = __vminu2(words.pair(y8[0], y8[1], 3), kMaxCell2);
    if ((turn & 1) != 0) {
      s.n32[0] = s.n32[1], s.n32[1] = cell_of(before4, four4);
      of8[0] = of8[1], of8[1] = cell_of(before8, pair8);
    }
    before4 = four4;
    before8 = pair8;
  }
  s.n64 = cell_of(of8[0], of8[1]);
  row[piece_of(at, 2)] = {s.n16[0], s.n16[1], s.n16[2], s.n16[3]};
  row[piece_of(at, 3)] = {s.first_pair, s.n32[0], s.n32[1], s.n64};
}

__device__ __forceinline__ void store_windows(const uint4* row, int own, const int (&at)[kRowAhead],
                                              RowCellSums& s, unsigned* to) {
  const uint4 f = row[piece_of(at[0], 0)];
  s.fours.add<false>({f.x, f.y, f.z, f.w});
  const uint4 next = row[piece_of(at[0], 3)], second = row[piece_of(at[1], 3)];
  s.pairs = __viaddmax_u16x2(s.last_pair, next.x, s.pairs);
  unsigned maximum[kRowWindows] = {s.top,
                                   s.pairs,
                                   s.fours.maximum[0],
                                   s.fours.maximum[1],
                                   s.fours.maximum[2],
                                   s.fours.maximum[3]};
  const uint4 e0 = row[piece_of(own, 1)], e1 = row[piece_of(own, 4)], e2 = row[piece_of(at[0], 1)];
  longest_of_cut<8>({e0.x, e0.y, e0.z, e0.w, e1.x, e1.y, e1.z, e1.w, e2.x, e2.y, e2.z, e2.w},
                    maximum[6], maximum[7]);
  const uint4 n16 = row[piece_of(at[0], 2)];
  longest_of_cut<4>({s.n16[0], s.n16[1], s.n16[2], s.n16[3], n16.x, n16.y, n16.z, n16.w},
                    maximum[8], maximum[9]);
  longest_of_cut<2>({s.n32[0], s.n32[1], next.y, next.z, second.y, second.z}, maximum[10],
                    maximum[11]);
  const unsigned last = row[piece_of(at[3], 3)].w;
  longest_of_cut<1>({s.n64, next.w, second.w, row[piece_of(at[2], 3)].w, last}, maximum[12],
                    maximum[13]);
#pragma unroll
  for (int k = 0; k < kRowWindows; ++k) to[32 * k] = maximum[k];
}

/// Sums of all threads of a block, to memory.
__device__ inline void store_row_moments(const RowSums& own, long long (*parts)[3],
                                         TrialMoments* moments) {
  // Of at most 128 values of 16 bits a thread: n and sum fit 32 bits, squares 40.
  constexpr int kLow = 26;
  const auto low = static_cast<unsigned>(own.squares & ((1 << kLow) - 1));
  const auto high = static_cast<unsigned>(own.squares >> kLow);
  const long long sums[3] = {__reduce_add_sync(kAll, static_cast<int>(own.n)),
                             __reduce_add_sync(kAll, static_cast<int>(own.sum)),
                             (static_cast<long long>(__reduce_add_sync(kAll, high)) << kLow) +
                                 __reduce_add_sync(kAll, low)};
#pragma unroll
  for (int k = 0; k < 3; ++k)
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32][k] = sums[k];
  __syncthreads();
  if (threadIdx.x != 0) return;
  long long total[3] = {};
  for (int k = 0; k < 3; ++k)
    for (unsigned m = 0; m < blockDim.x / 32; ++m) total[k] += parts[m][k];
  *moments = {total[0], total[1], total[2]};
}

struct RowMemory {
  TrialStart start;
  long long parts[kRowThreads / 32][3];
  unsigned short list[2 * kMaxHalf];
};

template <bool kWhole>
__device__ __forceinline__ void measure_cells(const RowWork& w, uint4* row, const RowCells& cells,
                                              const TrialStart& start, const RowUnits& units,
                                              long long (*parts)[3]) {
  const int t = static_cast<int>(threadIdx.x), trial = static_cast<int>(blockIdx.x);
  const auto slot = [&](int cell) { return cell < w.half ? cell : cell + w.half; };
  RowSums sums;
  RowCellSums s;
  PairSums pairs(start.center, start.clip);
  // The middle is half of the end.
  RowCounts counts{0, 0, pairs.end2 / 2, false};
  if (t < w.half + kRowAhead) {
    const bool packed = PairSums::fits(start.center, start.clip);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int c = t + k * w.half;
      const bool here = t < w.half && cells.good(c, start.min_good);
      if (here && packed && cells.size_of(c) == 64) {
        counts.n += 64;
        counts.keep2 |= 0xffffu << 16 * k;
      } else if (here) {
        add_some(cells, row, c, start, sums);
      }
    }
    counts.fill2 &= ~counts.keep2;
  }
  counts.masked = __any_sync(kAll, counts.n != 128) != 0;
  if (t < w.half + kRowAhead) {
    sum_cells<kWhole>(row, t, t + w.half, slot(t), RowWords(units), counts, pairs, s);
    if (counts.n > 0) {
      const PairSums::Moments m = pairs.moments(128);
      sums.n += m.n - (128 - counts.n);
      sums.sum += m.sum;
      sums.squares += m.squares;
    }
  }
  store_row_moments(sums, parts, w.moments + trial);  // meets
  if (t >= w.half) return;
  store_windows(
      row, slot(t), {slot(t + 1), slot(t + 2), slot(t + 3), slot(t + 4)}, s,
      w.maxima +
          ((static_cast<std::int64_t>(trial) * w.n_tiles + t / 32) * kRowWindows * 32 + t % 32));
}

/// Some time; zeros behind the end of the row. Threads are whole eights of pieces of eight, so that
/// what one copies lies in equal places of its cells.
__device__ __forceinline__ void bring_row(const RowWork& w, const std::uint16_t* series,
                                          uint4* row) {
  const int tid = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  const int n_full = w.n_columns / 8, n = 8 * (2 * w.half + kRowAhead);
  unsigned to = ryle::cuda::shared_address(row + piece_of(tid / 8, tid % 8));
  int p = tid;
  for (; p < n_full; p += step, to += 16 * step) ryle::cuda::copy_16(to, series + 8 * p, 16);
  for (; p < n; p += step, to += 16 * step)
    ryle::cuda::copy_16(to, series + 8 * min(p, n_full), p == n_full ? 2 * (w.n_columns % 8) : 0);
}

/// Statistics and largest windows of one trial by a thread block: see the head of this file.
__global__ void __launch_bounds__(kRowThreads, 2) measure_rows(const RowWork w) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *w.n_listed = 0;
  auto* row = static_cast<uint4*>(ryle::cuda::dynamic_shared());
  auto& memory = ryle::cuda::shared<RowMemory>();
  const int trial = static_cast<int>(blockIdx.x), tid = static_cast<int>(threadIdx.x);
  const auto* series = static_cast<const std::uint16_t*>(w.in.sums) + trial * w.in.stride + w.first;
  bring_row(w, series, row);
  ryle::cuda::commit_copies();
  const RowCells cells{w, w.in.weights == nullptr
                              ? nullptr
                              : w.in.weights + trial * w.in.weight_stride + w.first / 64};
  TrialStart t{0, 0, 0, 0, 0, 1.0f};
  bool all = true;
  if (tid < 32) all = weigh_row(cells, tid, t, memory.list);
  ryle::cuda::wait_copies<0>();
  __syncthreads();
  if (tid < 32) {
    start_row(cells, row, tid, all, memory.list, t);
    if (tid == 0) w.starts[trial] = memory.start = t;
  }
  __syncthreads();
  const TrialStart start = memory.start;
  const RowUnits units(start);
  if (units.shift == 0)
    measure_cells<true>(w, row, cells, start, units, memory.parts);
  else
    measure_cells<false>(w, row, cells, start, units, memory.parts);
}

inline constexpr unsigned kSaturated = 1u << kRowWindows;

/// Blocks of a trial whose windows reach their limits, from what was found of each cell.
struct RowLister {
  const RowWork& w;
  const BoxcarTable& table;
  const HitList& list;
  const unsigned short* found;  // windows that reach their limit, bit each, and kSaturated
  int trial;
  bool saturated;  // a sum of the trial was cut

  __device__ unsigned reached(int cell, int h) const {
    return h == 0 ? found[cell] & ((1u << kRowFull) - 1)
                  : found[cell] >> (kRowFull + 2 * (h - 1)) & 3u;
  }
  __device__ bool doubtful(int cell, int h) const {
    for (int c = cell; c < min(cell + max(2, 3 << h >> 1), 2 * w.half); ++c)
      if ((found[c] & kSaturated) != 0) return true;
    return false;
  }
  /// Blocks of all levels that the cell lies in, unless an earlier cell of theirs does it.
  __device__ void report(int cell) const {
    const int origin = static_cast<int>((w.in.first_start - w.first) / 64);
    if (cell < origin) return;
    for (int h = 0; h <= table.max_halvings; ++h) {
      const int number = (cell - origin) >> h, first = origin + (number << h);
      const std::int64_t starts =
          (w.in.end_start - w.in.first_start + (std::int64_t{1} << h) - 1) >> h;
      if (std::int64_t{number} * 64 >= starts) continue;
      unsigned slots = 0xffff;
      if (saturated && doubtful(first, h)) {
        if (cell != first) continue;
      } else {
        slots = reached(cell, h);
        for (int c = first; c < cell && slots != 0; ++c)
          if (reached(c, h) != 0) slots = 0;
        if (slots == 0) continue;
        for (int c = cell + 1; c < min(first + (1 << h), 2 * w.half); ++c) slots |= reached(c, h);
      }
      for (int o = 0; o < table.n_octaves; ++o) {
        if (table.octaves[o].halvings != h || (table.octaves[o].row_slots & slots) == 0) continue;
        const unsigned at = atomicAdd(list.n, 1u);
        if (at < list.capacity) list.hits[at] = {number, 0, trial, 0.0f, o};
      }
    }
  }
};

/// Smallest sum of v in a window over a boxcar of `width` columns worth a hit; safe by one count
/// against the rounding of confirm_blocks(). Units are rounded up.
__device__ inline int row_window_limit(const SeriesStatistics& s, const TrialStart& t,
                                       double threshold, int width, int slot) {
  const RowUnits units(t);
  const double above = width * (s.mu - units.base) +
                       threshold * s.sigma * sqrt(width * static_cast<double>(t.minimum)) - 1;
  if (slot == 0) return static_cast<int>(fmax(fmin(floor(above), 70000.0), 0.0));
  const double v = floor(ldexp(above, -units.shift)) - static_cast<double>(width) * units.mean;
  return static_cast<int>(fmax(fmin(v, 65535.0), 0.0));
}

/// Compares the windows of kListTrials trials with their limits and lists the blocks that reach
/// one: statistics by a lane a trial, limits and blocks by a warp a trial.
__global__ void __launch_bounds__(kListThreads)
    list_blocks(const RowWork w, const BoxcarTable table, SeriesStatistics* statistics,
                SeriesStatistics* on_host, double threshold, const HitList list) {
  auto& of_trial = ryle::cuda::shared<SeriesStatistics[kListTrials]>();
  auto& found_of = ryle::cuda::shared<unsigned short[kListThreads / 32][2 * kMaxHalf]>();
  auto& limits_of = ryle::cuda::shared<int[kListThreads / 32][kRowWindows]>();
  const int first = static_cast<int>(blockIdx.x) * kListTrials;
  const int n = min(kListTrials, w.in.n_trials - first);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (static_cast<int>(threadIdx.x) < n) {
    const int trial = first + static_cast<int>(threadIdx.x);
    const SeriesStatistics s = statistics_of(w.starts[trial], w.moments[trial]);
    of_trial[threadIdx.x] = statistics[trial] = on_host[trial] = s;
  }
  __syncthreads();
  for (int k = warp; k < n; k += kListThreads / 32) {
    const SeriesStatistics s = of_trial[k];
    if (!(s.sigma > 0)) continue;
    const int trial = first + k;
    const TrialStart t = w.starts[trial];
    int* limits = limits_of[warp];
    if (lane < kRowWindows) limits[lane] = 0x7fffffff;
    __syncwarp();
    for (int i = lane; i < table.n_widths; i += 32) {
      const int slot = table.row_slot[i];
      const int width = table.widths[i] << (slot < kRowFull ? 0 : slot / 2 - 3);
      atomicMin(limits + slot, row_window_limit(s, t, threshold, width, slot));
    }
    __syncwarp();
    int limit[kRowWindows];
#pragma unroll
    for (int m = 0; m < kRowWindows; ++m) limit[m] = limits[m];
    const int top = RowUnits(t).end;
    const unsigned* maxima =
        w.maxima + static_cast<std::int64_t>(trial) * w.n_tiles * kRowWindows * 32;
    unsigned short* found = found_of[warp];
    bool any = false, saturated = false;
#pragma unroll 2
    for (int tile = 0; tile < w.n_tiles; ++tile) {
      const int cell = 32 * tile + lane;
      unsigned low = 0, high = 0;
#pragma unroll
      for (int m = 0; m < kRowWindows; ++m) {
        const unsigned both = cell < w.half ? maxima[(tile * kRowWindows + m) * 32 + lane] : 0;
        const int a = static_cast<int>(both & 0xffffu), b = static_cast<int>(both >> 16);
        low |= a >= limit[m] ? 1u << m : 0u;
        high |= b >= limit[m] ? 1u << m : 0u;
        if (m > 0) continue;
        low |= a >= top ? kSaturated : 0u;
        high |= b >= top ? kSaturated : 0u;
      }
      if (cell >= w.half) continue;
      found[cell] = static_cast<unsigned short>(low);
      found[cell + w.half] = static_cast<unsigned short>(high);
      any |= (low | high) != 0;
      saturated |= ((low | high) & kSaturated) != 0;
    }
    saturated = __any_sync(kAll, saturated);
    any = __any_sync(kAll, any);
    __syncwarp();
    if (any) {
      const RowLister lister{w, table, list, found, trial, saturated};
      for (int cell = lane; cell < 2 * w.half; cell += 32)
        if (saturated || found[cell] != 0) lister.report(cell);
    }
    __syncwarp();
  }
}

}  // namespace ryle::search::detail
