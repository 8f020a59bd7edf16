// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Statistics of every trial on the device, bit for bit those of the CPU: median and clip from at most 512 values,
// moments between the clips (the one pass over all columns that detection needs before it can compare), then mean,
// rms and the limits of all boxcars.
//
//   array            axes                         type              unit
//   in.sums          [trial][column]              uint16, uint32    sums of codes
//   in.weights       [trial][cell of 64 columns]  float             share of channels that count
//   work.starts      [trial]                      TrialStart        median, clip, columns that count
//   work.moments     [trial]                      TrialMoments      n, sum and squares of x - center, exact integers
//   work.statistics  [trial]                      SeriesStatistics  mu, sigma
//   work.screens     [trial]                      TrialScreen       units and limits for cuda/detect_screen.cu
//
// Which kernel runs: start_and_sum_row where a row fits 32 KiB of shared memory (one reading);
// start_and_sum_long_row for longer rows of one weight (the second reading hits the cache); find_centers and
// sum_between_clips for longer rows of many weights. set_limits follows. Each column is read once or twice and little
// is computed with it; no counters are on record.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/copy.cuh"
#include "ryle/engine/search/cuda/detect.cuh"
#include "ryle/engine/search/cuda/detect_pairs.cuh"
#include "ryle/engine/search/cuda/detect_start.cuh"
#include "ryle/engine/search/detect_unclip.hpp"

namespace ryle::search::detail {
namespace {

constexpr int kStartWarps = 4;
constexpr int kMomentThreads = 256;
/// Of a row in shared memory: one warp finds its median while the others wait, so few of them, and
/// half of that where more rows fit a multiprocessor.
constexpr int kStatRowThreads = 128;
constexpr int kLongThreads = 128;
constexpr std::size_t kShortRow_bytes = 18 * 1024;
/// Longer rows are read twice: two of them fill the shared memory of a multiprocessor, which then
/// waits (0.53 ms instead of 0.44 for boxcars and peaks of 4161 rows of 49,152).
constexpr std::int64_t kMaxRow_bytes = 32 * 1024;
constexpr int kLimitTrials = 8;
constexpr int kLimitThreads = 256;

template <class T>
__device__ const T* series_of(const DeviceInput& in, int trial) {
  return static_cast<const T*>(in.sums) + trial * in.stride;
}
__device__ const float* weights_of(const DeviceInput& in, int trial) {
  return in.weights == nullptr ? nullptr : in.weights + trial * in.weight_stride;
}

/// Cells of 64 columns that statistics are taken from.
struct StatCells {
  const DeviceInput& in;
  const float* weights;
  float minimum;

  __device__ std::int64_t first() const { return in.stat_first / 64; }
  __device__ std::int64_t end() const { return (in.stat_end + 63) / 64; }
  __device__ bool good(std::int64_t cell) const { return weights[cell] >= minimum; }
  __device__ std::int64_t begin_of(std::int64_t c) const { return max(in.stat_first, c * 64); }
  __device__ std::int64_t size_of(std::int64_t c) const {
    return min(in.stat_end, c * 64 + 64) - begin_of(c);
  }
};

/// Limits of good cells, their columns and weight.
__device__ void weigh(const DeviceInput& in, const float* weights, int lane, TrialStart& t) {
  if (weights == nullptr) {
    t.n_columns = max(in.stat_end - in.stat_first, std::int64_t{0});
    // Exact, as is the sum over cells.
    t.weight = static_cast<double>(in.level) * static_cast<double>(t.n_columns);
    if (in.level >= kMinWeight) t.minimum = fminf(t.minimum, in.level);
    return;
  }
  StatCells cells{in, weights, 0};
  float maximum = 0;
  for (std::int64_t c = cells.first() + lane; c < cells.end(); c += 32)
    maximum = fmaxf(maximum, weights[c]);
  for (std::int64_t c = in.first_start / 64 + lane; c < (in.n_columns + 63) / 64; c += 32)
    if (weights[c] >= kMinWeight) t.minimum = fminf(t.minimum, weights[c]);
  for (int m = 16; m > 0; m /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(kAll, maximum, m));
    t.minimum = fminf(t.minimum, __shfl_xor_sync(kAll, t.minimum, m));
  }
  // w >= 0.75 most in double is w >= the next float not below it.
  const double minimum = 0.75 * static_cast<double>(maximum);
  t.min_good = minimum > 0 ? __double2float_ru(minimum) : INFINITY;
  cells.minimum = t.min_good;
  long long n = 0;
  double weight = 0;
  for (std::int64_t c = cells.first() + lane; c < cells.end(); c += 32) {
    if (!cells.good(c)) continue;
    n += cells.size_of(c);
    // Exact in any order: floats of at least a quarter of each other, counts below 2^20.
    weight += static_cast<double>(weights[c]) * static_cast<double>(cells.size_of(c));
  }
  t.n_columns = warp_sum(n);
  t.weight = warp_sum(weight);
}

/// Every step-th column of the good cells.
template <class T>
__device__ void take_sample(const DeviceInput& in, const float* weights, const T* x, int lane,
                            const TrialStart& t, std::int64_t step, int n_sample, int* values) {
  if (weights == nullptr) {
    for (int k = lane; k < n_sample; k += 32)
      values[k] = static_cast<int>(x[in.stat_first + k * step]);
    return;
  }
  const StatCells cells{in, weights, t.min_good};
  std::int64_t before = 0;  // columns of earlier cells
  for (std::int64_t c0 = cells.first(); c0 < cells.end(); c0 += 32) {
    const std::int64_t c = c0 + lane;
    const int count = c < cells.end() && cells.good(c) ? static_cast<int>(cells.size_of(c)) : 0;
    int place = count;
    for (int m = 1; m < 32; m *= 2) {
      const int other = __shfl_up_sync(kAll, place, m);
      if (lane >= m) place += other;
    }
    const std::int64_t k = before + place - count;
    for (std::int64_t q = (k + step - 1) / step * step; q < k + count; q += step)
      values[q / step] = static_cast<int>(x[cells.begin_of(c) + (q - k)]);
    before += __shfl_sync(kAll, place, 31);
  }
}

/// Median and clip of a trial by a warp, from at most 512 of its values.
template <class T>
__global__ void __launch_bounds__(32 * kStartWarps)
    find_centers(const DeviceInput in, TrialStart* starts) {
  __shared__ int samples[kStartWarps][kSample];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int trial = static_cast<int>(blockIdx.x) * kStartWarps + warp;
  if (trial >= in.n_trials) return;
  const float* weights = weights_of(in, trial);
  TrialStart t{0, 0, 0, 0, 0, 1.0f};
  weigh(in, weights, lane, t);
  const std::int64_t needed = (t.n_columns + kSample - 1) / kSample, step = max(needed, 1l);
  const int n_sample = static_cast<int>((t.n_columns + step - 1) / step);
  take_sample(in, weights, series_of<T>(in, trial), lane, t, step, n_sample, samples[warp]);
  __syncwarp();
  set_center(
      n_sample, lane, [&](int i) { return samples[warp][i]; }, t);
  if (lane == 0) starts[trial] = t;
}

/// Sums of a thread; kNarrow: 8 squares fit 32 bits.
template <bool kNarrow>
struct Sums {
  int center, clip;
  int n = 0;
  long long sum = 0, squares = 0;

  __device__ void add(const int (&x)[8]) {
    int part = 0;
    unsigned square = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int d = x[k] - center;
      const bool in =
          static_cast<unsigned>(d) + static_cast<unsigned>(clip) <= 2 * static_cast<unsigned>(clip);
      const int v = in ? d : 0;
      n += in;
      if constexpr (kNarrow) {
        part += v;
        square += static_cast<unsigned>(v * v);
      } else {
        sum += v;
        squares += static_cast<long long>(v) * v;
      }
    }
    if constexpr (kNarrow) {
      sum += part;
      squares += square;
    }
  }
  __device__ void add(int x) {
    const long long d = static_cast<long long>(x) - center;
    if (d > clip || d < -static_cast<long long>(clip)) return;
    ++n;
    sum += d;
    squares += d * d;
  }
};

__device__ __forceinline__ void load8(const std::uint16_t* x, bool vectors, int (&v)[8]) {
  if (!vectors) {
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = x[k];
    return;
  }
  const uint4 w = __ldg(reinterpret_cast<const uint4*>(x));
  const unsigned words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[2 * k] = static_cast<int>(words[k] & 0xffff);
    v[2 * k + 1] = static_cast<int>(words[k] >> 16);
  }
}
__device__ __forceinline__ void load8(const std::uint32_t* x, bool vectors, int (&v)[8]) {
  if (!vectors) {
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = static_cast<int>(x[k]);
    return;
  }
  const int4 low = __ldg(reinterpret_cast<const int4*>(x));
  const int4 high = __ldg(reinterpret_cast<const int4*>(x) + 1);
  v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
  v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

__device__ __forceinline__ void from_shared(const std::uint16_t* x, int (&v)[8]) {
  const uint4 w = *reinterpret_cast<const uint4*>(x);
  const unsigned words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[2 * k] = static_cast<int>(words[k] & 0xffff);
    v[2 * k + 1] = static_cast<int>(words[k] >> 16);
  }
}
__device__ __forceinline__ void from_shared(const std::uint32_t* x, int (&v)[8]) {
#pragma unroll
  for (int k = 0; k < 8; ++k) v[k] = static_cast<int>(x[k]);
}

template <bool kNarrow, class T>
__device__ void add_columns(const DeviceInput& in, const T* x, const float* weights,
                            const TrialStart& t, Sums<kNarrow>& sums) {
  const StatCells cells{in, weights, t.min_good};
  const auto good = [&](std::int64_t column) {
    return weights == nullptr || cells.good(column / 64);
  };
  const std::int64_t first = (in.stat_first + 7) / 8, end = in.stat_end / 8;
  const int tid = static_cast<int>(threadIdx.x), n_threads = static_cast<int>(blockDim.x);
  if (first >= end) {
    for (std::int64_t c = in.stat_first + tid; c < in.stat_end; c += n_threads)
      if (good(c)) sums.add(static_cast<int>(x[c]));
    return;
  }
  // Columns beside whole eights.
  for (std::int64_t c = in.stat_first + tid; c < first * 8; c += n_threads)
    if (good(c)) sums.add(static_cast<int>(x[c]));
  for (std::int64_t c = end * 8 + tid; c < in.stat_end; c += n_threads)
    if (good(c)) sums.add(static_cast<int>(x[c]));
  const bool vectors = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  std::int64_t k = first + tid;
  if (weights == nullptr && vectors) {
    for (; k + 3 * n_threads < end; k += 4 * n_threads) {
      int v[4][8];
#pragma unroll
      for (int m = 0; m < 4; ++m) load8(x + 8 * (k + m * n_threads), true, v[m]);
#pragma unroll
      for (int m = 0; m < 4; ++m) sums.add(v[m]);
    }
  }
  for (; k < end; k += n_threads) {
    if (!good(8 * k)) continue;
    int v[8];
    load8(x + 8 * k, vectors, v);
    sums.add(v);
  }
}

/// Sums of all threads of a block, to memory.
template <bool kNarrow>
__device__ void store_moments(const Sums<kNarrow>& sums, TrialMoments* moments) {
  __shared__ long long parts[3][kMomentThreads / 32];
  const long long own[3] = {warp_sum(static_cast<long long>(sums.n)), warp_sum(sums.sum),
                            warp_sum(sums.squares)};
#pragma unroll
  for (int k = 0; k < 3; ++k)
    if (threadIdx.x % 32 == 0) parts[k][threadIdx.x / 32] = own[k];
  __syncthreads();
  if (threadIdx.x != 0) return;
  long long total[3] = {};
  for (int k = 0; k < 3; ++k)
    for (unsigned m = 0; m < blockDim.x / 32; ++m) total[k] += parts[k][m];
  *moments = {total[0], total[1], total[2]};
}

template <bool kNarrow, class T>
__device__ void sum_trial(const DeviceInput& in, int trial, const TrialStart& t,
                          TrialMoments* moments) {
  Sums<kNarrow> sums{t.center, t.clip};
  add_columns(in, series_of<T>(in, trial), weights_of(in, trial), t, sums);
  store_moments(sums, moments + trial);
}

/// Moments of a trial between its clips, by a thread block; threads read 8 columns at a time.
template <class T>
__global__ void __launch_bounds__(kMomentThreads)
    sum_between_clips(const DeviceInput in, const TrialStart* starts, TrialMoments* moments) {
  const int trial = static_cast<int>(blockIdx.x);
  const TrialStart t = starts[trial];
  if (sizeof(T) == 2 && t.clip <= 23'000) {  // 8 clip^2 < 2^32
    sum_trial<true, T>(in, trial, t, moments);
  } else {
    sum_trial<false, T>(in, trial, t, moments);
  }
}

/// Columns that statistics come from, as they lie in shared memory: whole eights.
struct RowSpan {
  std::int64_t first;
  int n_eights, begin, end;  // columns [begin, end) of them count
};
__host__ __device__ inline RowSpan row_span(const DeviceInput& in) {
  const std::int64_t first = in.stat_first / 8 * 8, end = in.stat_end < first ? first : in.stat_end;
  return {first, static_cast<int>((end - first + 7) / 8), static_cast<int>(in.stat_first - first),
          static_cast<int>(end - first)};
}

/// Cells of a row in shared memory; those of a row of one weight all count.
struct StatRow {
  std::int64_t first;  // cell of the row's first column
  const std::uint8_t* good;
};

/// body(eight) where all of its columns count, else of(value) for those that do.
template <class T, class Body, class Value>
__device__ __forceinline__ void for_eights(const T* row, const RowSpan& piece, const StatRow& cells,
                                           const Body& body, const Value& of) {
  for (int k = static_cast<int>(threadIdx.x); k < piece.n_eights;
       k += static_cast<int>(blockDim.x)) {
    if (cells.good != nullptr && cells.good[(piece.first + 8 * k) / 64 - cells.first] == 0)
      continue;
    if (8 * k >= piece.begin && 8 * k + 8 <= piece.end) {
      body(row + 8 * k);
      continue;
    }
    for (int i = max(8 * k, piece.begin); i < min(8 * k + 8, piece.end); ++i)
      of(static_cast<int>(row[i]));
  }
}

template <bool kNarrow, class T>
__device__ void sum_row(const T* row, const RowSpan& piece, const StatRow& cells,
                        const TrialStart& t, TrialMoments* moments) {
  Sums<kNarrow> sums{t.center, t.clip};
  for_eights(
      row, piece, cells,
      [&](const T* eight) {
        int v[8];
        from_shared(eight, v);
        sums.add(v);
      },
      [&](int x) { sums.add(x); });
  store_moments(sums, moments);
}

__device__ __forceinline__ void add_pairs(const PairSums& pairs, int n, Sums<true>& sums) {
  const PairSums::Moments m = pairs.moments(n);
  sums.n += static_cast<int>(m.n);
  sums.sum += m.sum;
  sums.squares += m.squares;
}

__device__ void sum_row_of_pairs(const std::uint16_t* row, const RowSpan& piece,
                                 const StatRow& cells, const TrialStart& t, TrialMoments* moments) {
  Sums<true> sums{t.center, t.clip};
  PairSums pairs(t.center, t.clip);
  int n = 0;
  for_eights(
      row, piece, cells,
      [&](const std::uint16_t* eight) {
        const uint4 w = *reinterpret_cast<const uint4*>(eight);
        pairs.add({w.x, w.y, w.z, w.w});
        n += 8;
      },
      [&](int x) { sums.add(x); });
  add_pairs(pairs, n, sums);
  store_moments(sums, moments);
}

/// Median, clip and moments of a trial by a thread block, which brings the row to shared memory
/// once.
template <class T>
__global__ void __launch_bounds__(kStatRowThreads)
    start_and_sum_row(const DeviceInput in, TrialStart* starts, TrialMoments* moments) {
  extern __shared__ __align__(16) unsigned char row_memory[];
  __shared__ TrialStart start;
  __shared__ int samples[kSample];
  __shared__ std::uint8_t good[kMaxRow_bytes / 2 / 64 + 2];
  auto* row = reinterpret_cast<T*>(row_memory);
  const int trial = static_cast<int>(blockIdx.x), n_threads = static_cast<int>(blockDim.x);
  const RowSpan piece = row_span(in);
  constexpr int kPerEight = static_cast<int>(sizeof(T)) / 2;  // pieces of 16 bytes
  const auto* from = reinterpret_cast<const uint4*>(series_of<T>(in, trial) + piece.first);
  auto* to = reinterpret_cast<uint4*>(row);
  const int n_pieces = kPerEight * piece.n_eights;
  for (int k = static_cast<int>(threadIdx.x); k < n_pieces; k += n_threads)
    copy16(to + k, from + k, true);
  wait_all();
  __syncthreads();
  const float* weights = weights_of(in, trial);
  if (threadIdx.x < 32) {
    const int lane = static_cast<int>(threadIdx.x);
    TrialStart t{0, 0, 0, 0, 0, 1.0f};
    weigh(in, weights, lane, t);
    const std::int64_t needed = (t.n_columns + kSample - 1) / kSample, step = max(needed, 1l);
    const int n_sample = static_cast<int>((t.n_columns + step - 1) / step);
    take_sample(in, weights, row - piece.first, lane, t, step, n_sample, samples);
    __syncwarp();
    set_center(
        n_sample, lane, [&](int i) { return samples[i]; }, t);
    if (lane == 0) starts[trial] = start = t;
  }
  __syncthreads();
  StatRow cells{piece.first / 64, nullptr};
  if (weights != nullptr) {
    const int n_cells =
        static_cast<int>((piece.first + 8 * piece.n_eights + 63) / 64 - cells.first);
    for (int c = static_cast<int>(threadIdx.x); c < n_cells; c += n_threads)
      good[c] = weights[cells.first + c] >= start.min_good ? 1 : 0;
    cells.good = good;
    __syncthreads();
  }
  if constexpr (sizeof(T) == 2) {
    if (PairSums::fits(start.center, start.clip))
      return sum_row_of_pairs(row, piece, cells, start, moments + trial);
  }
  if (sizeof(T) == 2 && start.clip <= 23'000)  // 8 clip^2 < 2^32
    sum_row<true>(row, piece, cells, start, moments + trial);
  else
    sum_row<false>(row, piece, cells, start, moments + trial);
}

__device__ void sum_pairs(const DeviceInput& in, const std::uint16_t* x, const TrialStart& t,
                          TrialMoments* moments) {
  Sums<true> sums{t.center, t.clip};
  PairSums pairs(t.center, t.clip);
  const std::int64_t first = (in.stat_first + 7) / 8, end = in.stat_end / 8;
  const int tid = static_cast<int>(threadIdx.x);
  for (std::int64_t c = in.stat_first + tid; c < first * 8; c += kLongThreads)
    sums.add(static_cast<int>(x[c]));
  for (std::int64_t c = end * 8 + tid; c < in.stat_end; c += kLongThreads)
    sums.add(static_cast<int>(x[c]));
  const auto* eights = reinterpret_cast<const uint4*>(x);
  int n = 0;
  std::int64_t k = first + tid;
  for (; k + 3 * kLongThreads < end; k += 4 * kLongThreads, n += 32) {
    uint4 w[4];
#pragma unroll
    for (int m = 0; m < 4; ++m) w[m] = __ldg(eights + k + m * kLongThreads);
#pragma unroll
    for (int m = 0; m < 4; ++m) pairs.add({w[m].x, w[m].y, w[m].z, w[m].w});
  }
  for (; k < end; k += kLongThreads, n += 8) {
    const uint4 w = __ldg(eights + k);
    pairs.add({w.x, w.y, w.z, w.w});
  }
  add_pairs(pairs, n, sums);
  store_moments(sums, moments);
}

/// Median, clip and moments of a longer row of one weight, by a thread block: what the median was
/// taken from is in the cache when the row is summed.
template <class T>
__global__ void __launch_bounds__(kLongThreads)
    start_and_sum_long_row(const DeviceInput in, TrialStart* starts, TrialMoments* moments) {
  __shared__ TrialStart start;
  const int trial = static_cast<int>(blockIdx.x);
  const T* x = series_of<T>(in, trial);
  if (threadIdx.x < 32) {
    const int lane = static_cast<int>(threadIdx.x);
    TrialStart t{0, 0, 0, 0, 0, 1.0f};
    weigh(in, nullptr, lane, t);
    const std::int64_t needed = (t.n_columns + kSample - 1) / kSample, step = max(needed, 1l);
    set_center(
        static_cast<int>((t.n_columns + step - 1) / step), lane,
        [&](int i) { return static_cast<int>(x[in.stat_first + i * step]); }, t);
    if (lane == 0) starts[trial] = start = t;
  }
  __syncthreads();
  if constexpr (sizeof(T) == 2) {
    // Counts of a thread fit 16 bits.
    if (PairSums::fits(start.center, start.clip) && start.n_columns < 8'000'000 &&
        in.stat_first / 8 < in.stat_end / 8 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0)
      return sum_pairs(in, x, start, moments + trial);
  }
  if (sizeof(T) == 2 && start.clip <= 23'000)  // 8 clip^2 < 2^32
    sum_trial<true, T>(in, trial, start, moments);
  else
    sum_trial<false, T>(in, trial, start, moments);
}

/// Whether rows lie in whole words and fit.
template <class T>
bool takes_rows(const DeviceInput& in) {
  return in.stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(in.sums) % 16 == 0 &&
         (in.stat_end - in.stat_first + 16) * static_cast<std::int64_t>(sizeof(T)) <= kMaxRow_bytes;
}
template <class T>
void launch_rows(const LevelWork& work, cudaStream_t stream) {
  const RowSpan piece = row_span(work.in);
  const std::size_t bytes = 8 * sizeof(T) * static_cast<std::size_t>(piece.n_eights);
  const int threads = bytes > kShortRow_bytes ? kStatRowThreads : kStatRowThreads / 2;
  start_and_sum_row<T><<<static_cast<unsigned>(work.in.n_trials), threads, bytes, stream>>>(
      work.in, work.starts, work.moments);
  RYLE_CUDA_LAUNCHED("start_and_sum_row");
}

/// Smallest sum of units in a window over a boxcar worth a hit, when no unit of it is the last.
// Units are rounded up, u >= 1 + (x - low) / 2^shift, also when halved; x - W mu above the
// threshold is safe by one count against the rounding of confirm_blocks(), and one unit may be lost
// where packed numbers borrow from each other.
__device__ double limit_of(const SeriesStatistics& s, const TrialScreen& screen, double threshold,
                           double minimum, int narrow, int window, int halvings) {
  const int full = narrow << halvings;
  const double needed = full * s.mu + threshold * s.sigma * sqrt(full * minimum) - 1;
  const double units = full + ldexp(needed - full * static_cast<double>(screen.low), -screen.shift);
  return floor(ldexp(units, -halvings)) + (window - narrow) * screen.mean - 1;
}

/// Statistics by a lane each (a long chain of divisions), limits by a warp a trial.
__global__ void __launch_bounds__(kLimitThreads)
    set_limits(const LevelWork work, const BoxcarTable table) {
  __shared__ SeriesStatistics statistics[kLimitTrials];
  __shared__ int limits[kLimitThreads / 32][kScreenSlots];
  const int first = static_cast<int>(blockIdx.x) * kLimitTrials;
  const int n = min(kLimitTrials, work.in.n_trials - first);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (static_cast<int>(threadIdx.x) < n) {
    const int trial = first + static_cast<int>(threadIdx.x);
    const SeriesStatistics s = statistics_of(work.starts[trial], work.moments[trial]);
    statistics[threadIdx.x] = s;
    work.statistics[trial] = s;
  }
  __syncthreads();
  for (int k = warp; k < n; k += kLimitThreads / 32) {
    const SeriesStatistics s = statistics[k];
    const double minimum = static_cast<double>(work.starts[first + k].minimum);
    TrialScreen& screen = work.screens[first + k];
    TrialScreen own{};
    own.searched = s.sigma > 0;
    // What is below the mean counts as the mean anyway where windows cover more than one width.
    const double below = table.covering ? 1.5 : 6, above = table.covering ? 6 : 10;
    own.low = static_cast<int>(floor(s.mu - below * s.sigma));
    while (ldexp(2046.0, own.shift) < (below + above) * s.sigma && own.shift < 20) ++own.shift;
    own.mean = 1 + static_cast<int>(ceil(ldexp(s.mu - own.low, -own.shift)));
    int* of_trial = limits[warp];
    for (int slot = lane; slot < kScreenSlots; slot += 32) of_trial[slot] = 65535;
    __syncwarp();
    for (int i = lane; i < table.n_widths; i += 32) {
      const int slot = table.slot[i];
      const int halvings = slot < kFullSlots ? 0 : 1 + (slot - kFullSlots) / kHalvedSlots;
      const double limit =
          limit_of(s, own, work.threshold, minimum, table.widths[i], table.windows[slot], halvings);
      atomicMin(of_trial + slot, static_cast<int>(fmax(fmin(limit, 65535.0), 0.0)));
    }
    __syncwarp();
    for (int slot = lane; slot < kScreenSlots; slot += 32)
      screen.limits[slot] = static_cast<std::uint16_t>(of_trial[slot]);
    __syncwarp();
    if (lane != 0) continue;
    screen.searched = own.searched;
    screen.low = own.low;
    screen.shift = own.shift;
    screen.mean = own.mean;
  }
}

template <class T>
void launch_moments(const LevelWork& work, cudaStream_t stream) {
  if (takes_rows<T>(work.in)) return launch_rows<T>(work, stream);
  const auto n = static_cast<unsigned>(work.in.n_trials);
  if (work.in.weights == nullptr) {
    start_and_sum_long_row<T><<<n, kLongThreads, 0, stream>>>(work.in, work.starts, work.moments);
    RYLE_CUDA_LAUNCHED("start_and_sum_long_row");
    return;
  }
  find_centers<T>
      <<<(n + kStartWarps - 1) / kStartWarps, 32 * kStartWarps, 0, stream>>>(work.in, work.starts);
  RYLE_CUDA_LAUNCHED("find_centers");
  sum_between_clips<T><<<n, kMomentThreads, 0, stream>>>(work.in, work.starts, work.moments);
  RYLE_CUDA_LAUNCHED("sum_between_clips");
}

}  // namespace

void launch_levels(const LevelWork& work, const BoxcarTable& table, cudaStream_t stream) {
  work.in.wide ? launch_moments<std::uint32_t>(work, stream)
               : launch_moments<std::uint16_t>(work, stream);
  const auto n_blocks = static_cast<unsigned>((work.in.n_trials + kLimitTrials - 1) / kLimitTrials);
  set_limits<<<n_blocks, kLimitThreads, 0, stream>>>(work, table);
  RYLE_CUDA_LAUNCHED("set_limits");
}

}  // namespace ryle::search::detail
