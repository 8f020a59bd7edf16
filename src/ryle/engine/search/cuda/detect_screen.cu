// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Boxcars on the device, in two steps as on the CPU, for sums that cuda/detect_rows.cuh does not take. screen_boxcars
// forms all of them on packed 16-bit units that can only be too large; confirm_blocks looks again, exactly, at the few
// blocks of 64 starts where one reaches its limit:  S/N = (sum_W x - W mu) / (sigma sqrt(W w)).
//
//   array       axes                            type            layout
//   in.sums     [trial][column]                 uint16, uint32  stride numbers from trial to trial
//   in.weights  [trial][cell of 64 columns]     float           nullptr: all have in.level
//   screens     [trial]                         TrialScreen     units, and limits of all windows
//   words       [level of halved data][start]   2 x uint16      starts p and p + half of a segment; shared memory
//   list.hits   [block], then                   DeviceHit       number of the block; confirm_blocks puts the best
//                                                               boxcar in its place
//
// Who does what: a thread block of two warps takes a segment of 4,096 starts of one trial. A lane owns two blocks of 64
// starts, one in each half of its words, and runs along their starts with the last 32 prefix sums in registers: a
// boxcar is a difference of two of them, and difference and maximum are one instruction for both blocks. Data halved
// in time are halved as words. confirm_blocks has a warp a block. docs/decisions/0013 lists what was measured.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/detect.cuh"
#include "ryle/engine/search/cuda/detect_pairs.cuh"
#include "ryle/engine/search/detect_unclip.hpp"

namespace ryle::search::detail {
namespace {

constexpr int kScreenThreads = 64;
constexpr int kHalfSegment = kSegment / 2;
constexpr int kReach = 32;  // widest boxcar of a level
constexpr int kConfirmWarps = 4;
constexpr unsigned kWarp = 0xffffffffu;

// Windows of a level, as boxcar_table() lists them.
struct OwnWindows {
  static constexpr int kN = kFullSlots;
  static constexpr bool kRectified = false;
  __device__ static constexpr int width(int k) {
    constexpr int kWidths[kN] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 23, 27, 32};
    return kWidths[k];
  }
};
struct OwnHalvedWindows {
  static constexpr int kN = kHalvedSlots;
  static constexpr bool kRectified = false;
  __device__ static constexpr int width(int k) {
    constexpr int kWidths[kN] = {19, 23, 27, 32};
    return kWidths[k];
  }
};
struct CoveringWindows {
  static constexpr int kN = 5;
  static constexpr bool kRectified = true;
  __device__ static constexpr int width(int k) {
    constexpr int kWidths[kN] = {1, 3, 8, 16, 32};
    return kWidths[k];
  }
};
struct CoveringHalvedWindows {
  static constexpr int kN = 1;
  static constexpr bool kRectified = true;
  __device__ static constexpr int width(int) { return 32; }
};

/// Words of a level: starts p and p + half of them. 4 words more behind 64, for the banks.
__host__ __device__ constexpr int padded(int p) { return p + 4 * (p >> 6); }
__host__ __device__ constexpr int words_of(int level, int max_halvings) {
  return (kHalfSegment >> level) + (kReach << (max_halvings - level));
}
__host__ __device__ constexpr int room_of(int level, int max_halvings) {
  return padded(words_of(level, max_halvings)) + 4;
}

/// Four successive values from column c on as units in two words.
template <class T>
__device__ __forceinline__ uint2 units_at(const T* x, std::int64_t c, std::int64_t n_columns,
                                          bool vectors, const Units& units) {
  if (vectors && c + 4 <= n_columns) {
    const uint2 w = __ldg(reinterpret_cast<const uint2*>(x + c));
    return {units.pair<false>(w.x), units.pair<false>(w.y)};
  }
  unsigned u[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) u[k] = c + k < n_columns ? units.one(x[c + k]) : 1;
  return {u[0] | u[1] << 16, u[2] | u[3] << 16};
}

/// Units of both halves from word p on, and what ended at the top.
__device__ __forceinline__ void place_units(uint2 a, uint2 b, int p, unsigned* words,
                                            unsigned* saturated) {
  *reinterpret_cast<uint4*>(words + padded(p)) = {
      __byte_perm(a.x, b.x, 0x5410), __byte_perm(a.x, b.x, 0x7632), __byte_perm(a.y, b.y, 0x5410),
      __byte_perm(a.y, b.y, 0x7632)};
  if (((__vmaxu2(__vimax3_u16x2(a.x, a.y, b.x), b.y) + 0x10001u) & 0x08000800u) == 0) return;
  const unsigned max_a = __vmaxu2(a.x, a.y) + 0x10001u, max_b = __vmaxu2(b.x, b.y) + 0x10001u;
  const int cell = p / 64, other = (p + kHalfSegment) / 64;
  if ((max_a & 0x08000800u) != 0) atomicOr(saturated + cell / 32, 1u << cell % 32);
  if ((max_b & 0x08000800u) != 0) atomicOr(saturated + other / 32, 1u << other % 32);
}

template <bool kWhole>
__device__ void fill_pairs(const uint2* from, int first, int n_words, const Units& units,
                           unsigned* words, unsigned* saturated) {
  constexpr int kAhead = 5;  // loads on their way, twice
  constexpr int kStep = 4 * kScreenThreads;
  for (int p = first; p < n_words; p += kAhead * kStep) {
    uint2 a[kAhead] = {}, b[kAhead] = {};
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int at = p + k * kStep;
      if (at >= n_words) continue;
      a[k] = __ldg(from + at / 4);
      b[k] = __ldg(from + (at + kHalfSegment) / 4);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int at = p + k * kStep;
      if (at >= n_words) continue;
      place_units({units.pair<kWhole>(a[k].x), units.pair<kWhole>(a[k].y)},
                  {units.pair<kWhole>(b[k].x), units.pair<kWhole>(b[k].y)}, at, words, saturated);
    }
  }
}

template <class T>
__device__ void fill_units(const DeviceInput& in, const T* x, std::int64_t column, int n_words,
                           const TrialScreen& screen, unsigned* words, unsigned* saturated) {
  // 2046 << 5 and the rounding fit 16 bits.
  const bool vectors =
      sizeof(T) == 2 && screen.shift <= 5 && reinterpret_cast<std::uintptr_t>(x) % 8 == 0;
  const Units units(screen.low, screen.shift, vectors);
  const int first = 4 * static_cast<int>(threadIdx.x);
  constexpr int kStep = 4 * kScreenThreads;
  if (!vectors || column + kHalfSegment + n_words > in.n_columns) {
    for (int p = first; p < n_words; p += kStep) {
      const uint2 a = units_at(x, column + p, in.n_columns, vectors, units);
      const uint2 b = units_at(x, column + p + kHalfSegment, in.n_columns, vectors, units);
      place_units(a, b, p, words, saturated);
    }
    return;
  }
  const auto* from = reinterpret_cast<const uint2*>(x + column);
  if (units.whole)
    fill_pairs<true>(from, first, n_words, units, words, saturated);
  else
    fill_pairs<false>(from, first, n_words, units, words, saturated);
}

/// Pairs of units averaged, upwards, four words: those from word p on.
__device__ __forceinline__ uint4 halved(const unsigned* from, int p) {
  const auto mean = [](unsigned a, unsigned b) { return ((a + b + 0x10001u) >> 1) & 0x0fff0fffu; };
  const uint4 a = *reinterpret_cast<const uint4*>(from + padded(2 * p));
  const uint4 b = *reinterpret_cast<const uint4*>(from + padded(2 * p + 4));
  return {mean(a.x, a.y), mean(a.z, a.w), mean(b.x, b.y), mean(b.z, b.w)};
}
/// Of all data, by all threads; the first level takes the place of the data.
__device__ void halve_all(unsigned* words, int levels) {
  constexpr int kStep = 4 * kScreenThreads;
  constexpr int kOwn = (kHalfSegment / 2 + (kReach << (kMaxHalvings - 1))) / kStep;
  const int first = 4 * static_cast<int>(threadIdx.x);
  uint4 own[kOwn];
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    if (first + k * kStep < words_of(1, levels)) own[k] = halved(words, first + k * kStep);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kOwn; ++k)
    if (first + k * kStep < words_of(1, levels))
      *reinterpret_cast<uint4*>(words + padded(first + k * kStep)) = own[k];
  __syncthreads();
  unsigned* at = words;
  for (int h = 2; h <= levels; ++h) {
    unsigned* next = at + room_of(h - 1, levels);
    for (int p = first; p < words_of(h, levels); p += kStep)
      *reinterpret_cast<uint4*>(next + padded(p)) = halved(at, p);
    __syncthreads();
    at = next;
  }
}

/// Largest sum of every window over 32 of the 64 starts from run[0] on, those from 32 `part` on, in
/// both halves. Carries between the halves are worth one unit.
template <class Windows>
__device__ __forceinline__ void largest(const unsigned* run, int part, unsigned mean2,
                                        unsigned (&maximum)[Windows::kN]) {
  unsigned ring[kReach];  // prefix sums at the starts t .. t + 31
  unsigned sum = 0, last = 0;
#pragma unroll
  for (int k = 0; k < Windows::kN; ++k) maximum[k] = 0;
  const unsigned* own = run + kReach * part;
#pragma unroll
  for (int g = 0; g < kReach / 4; ++g) {
    const uint4 w = reinterpret_cast<const uint4*>(own)[g];
    const unsigned u[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      sum += last;
      ring[4 * g + k] = sum;
      last = Windows::kRectified ? __vmaxu2(u[k], mean2) : u[k];
    }
  }
  const unsigned* ahead = run + padded(kReach + kReach * part);
#pragma unroll
  for (int g = 0; g < kReach / 4; ++g) {
    const uint4 w = reinterpret_cast<const uint4*>(ahead)[g];
    const unsigned u[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const int i = 4 * g + m;
      sum += last;
      last = Windows::kRectified ? __vmaxu2(u[m], mean2) : u[m];
      const unsigned minus = 0u - ring[i];
#pragma unroll
      for (int k = 0; k < Windows::kN; ++k) {
        const int width = Windows::width(k);
        const unsigned end = width == kReach ? sum : ring[(i + width) % kReach];
        maximum[k] = __viaddmax_u16x2(end, minus, maximum[k]);
      }
      ring[i] = sum;
    }
  }
}

/// The larger of both warps', in the first.
template <int N>
__device__ __forceinline__ void join(unsigned (&maximum)[N], unsigned (*others)[32], int lane) {
  if (threadIdx.x >= 32) {
#pragma unroll
    for (int k = 0; k < N; ++k) others[k][lane] = maximum[k];
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
#pragma unroll
  for (int k = 0; k < N; ++k) maximum[k] = __vmaxu2(maximum[k], others[k][lane]);
}

/// Blocks of one segment: those that reach a limit go to the list.
struct Reporter {
  const DeviceInput& in;
  const BoxcarTable& table;
  const HitList& list;
  const unsigned* saturated;
  int trial, segment;

  /// Units that ended at the top make every boxcar over them doubtful.
  __device__ bool doubtful(int halvings, int block) const {
    const int first = block << halvings, n = max(2, 3 << halvings >> 1);
    for (int k = first; k < first + n; ++k)
      if ((saturated[k / 32] >> k % 32 & 1) != 0) return true;
    return false;
  }
  __device__ void report(int halvings, int block, unsigned slots) const {
    const std::int64_t all =
        (in.end_start - in.first_start + (std::int64_t{1} << halvings) - 1) >> halvings;
    const std::int64_t number =
        static_cast<std::int64_t>(segment) * (kSegment / 64 >> halvings) + block;
    if (number * 64 >= all) return;
    if (doubtful(halvings, block)) slots = 0xffff;
    for (int o = 0; o < table.n_octaves; ++o) {
      if (table.octaves[o].halvings != halvings || (table.octaves[o].slots & slots) == 0) continue;
      const unsigned at = atomicAdd(list.n, 1u);
      if (at < list.capacity) list.hits[at] = {number, 0, trial, 0.0f, o};
    }
  }
  /// `maximum` of the two blocks of a lane.
  template <int N>
  __device__ void compare(int halvings, int low_block, int high_block, const unsigned (&maximum)[N],
                          const std::uint16_t* limits) const {
    unsigned low = 0, high = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const unsigned limit = limits[k];
      low |= (maximum[k] & 0xffff) >= limit ? 1u << k : 0u;
      high |= maximum[k] >> 16 >= limit ? 1u << k : 0u;
    }
    const bool any = (saturated[0] | saturated[1] | saturated[2] | saturated[3]) != 0;
    if (low_block == high_block) low |= high, high = 0;
    if (low != 0 || any) report(halvings, low_block, low);
    if (low_block != high_block && (high != 0 || any)) report(halvings, high_block, high);
  }
};

/// See the head of this file. Full, Halved: the windows on data as they are and on halved data.
template <class T, class Full, class Halved>
__global__ void __launch_bounds__(kScreenThreads)
    screen_boxcars(const DeviceInput in, const BoxcarTable table, const TrialScreen* screens,
                   const HitList list, int n_segments) {
  extern __shared__ __align__(16) unsigned words[];
  // Cells of 64 columns with a value at the top: 64 of the segment, and those its boxcars reach.
  __shared__ unsigned saturated[4];
  __shared__ unsigned others[Full::kN][32];
  static_assert(Halved::kN <= Full::kN);
  const int trial = static_cast<int>(blockIdx.x) / n_segments;
  const int segment = static_cast<int>(blockIdx.x) - trial * n_segments;
  const TrialScreen& screen = screens[trial];
  if (screen.searched == 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, levels = table.max_halvings;
  if (threadIdx.x < 4) saturated[threadIdx.x] = 0;
  __syncthreads();
  fill_units(in, static_cast<const T*>(in.sums) + trial * in.stride,
             in.first_start + static_cast<std::int64_t>(segment) * kSegment, words_of(0, levels),
             screen, words, saturated);
  __syncthreads();
  const Reporter reporter{in, table, list, saturated, trial, segment};
  const unsigned mean2 = 0x10001u * static_cast<unsigned>(screen.mean);
  const int part = static_cast<int>(threadIdx.x) / 32;  // of the starts
  {
    unsigned maximum[Full::kN];
    largest<Full>(words + padded(64 * lane), part, mean2, maximum);
    join(maximum, others, lane);
    if (part == 0) reporter.compare(0, lane, lane + 32, maximum, screen.limits);
  }
  if (levels == 0) return;
  halve_all(words, levels);
  // Lanes 0..15 take the first halving, 16..23 the second and so on, 31 the sixth, which has one
  // block only: both its halves.
  const int level = lane == 31 ? 6 : 5 - (31 - __clz(31 - lane));
  const unsigned* run = words;
  for (int h = 1; h < min(level, levels); ++h) run += room_of(h, levels);
  const int block = lane - (32 - (32 >> (level - 1)));
  unsigned maximum[Halved::kN] = {};
  if (level <= levels && (part == 0 || level < 6))
    largest<Halved>(run + padded(64 * block), part, mean2, maximum);
  join(maximum, others, lane);
  if (part == 0 && level <= levels)
    reporter.compare(level, block, level < 6 ? block + (32 >> level) : block, maximum,
                     screen.limits + kFullSlots + kHalvedSlots * (level - 1));
}

/// @eq S/N = (sum_W x - W mu) / (sigma sqrt(W w)), rounded operation by operation as on the CPU
__device__ double snr_of(const SeriesStatistics& s, std::int64_t sum, std::int64_t width,
                         double weight) {
  const auto n = static_cast<double>(width);
  return __ddiv_rn(__dsub_rn(static_cast<double>(sum), __dmul_rn(n, s.mu)),
                   __dmul_rn(s.sigma, __dsqrt_rn(__dmul_rn(n, weight))));
}

/// prefix[j] = sum of the values of the first j starts from `column` on; 97 of them.
template <class T>
__device__ void sum_starts(const T* x, std::int64_t column, std::int64_t n_columns, int halvings,
                           int lane, long long* prefix) {
  // Loads of three starts at a time: the next does not wait for their sum.
  long long own[3] = {};
  const int n = 1 << halvings;
  const std::int64_t first = column + (static_cast<std::int64_t>(3 * lane) << halvings);
  const T* from = x + first;
  const int there =
      static_cast<int>(min(max(n_columns - first, std::int64_t{0}), std::int64_t{3} << halvings));
#pragma unroll 4
  for (int c = 0; c < n; ++c) {
#pragma unroll
    for (int k = 0; k < 3; ++k)
      if (c + k * n < there) own[k] += from[c + k * n];
  }
  own[1] += own[0];
  own[2] += own[1];
  long long before = own[2];
  for (int m = 1; m < 32; m *= 2) {
    const long long other = __shfl_up_sync(kWarp, before, m);
    if (lane >= m) before += other;
  }
  before -= own[2];
  __syncwarp();
  if (lane == 0) prefix[0] = 0;
#pragma unroll
  for (int k = 0; k < 3; ++k) prefix[3 * lane + k + 1] = before + own[k];
  __syncwarp();
}

/// Looks at every listed block exactly: a warp makes the 97 prefix sums of its starts, then each
/// lane tries all widths of the octave at two starts, and the best boxcar (the earliest, narrowest
/// of equals) replaces the entry of the list.
template <class T>
__global__ void __launch_bounds__(32 * kConfirmWarps)
    confirm_blocks(const DeviceInput in, const BoxcarTable table,
                   const SeriesStatistics* statistics, double threshold, const HitList list) {
  __shared__ long long sums[kConfirmWarps][97];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  long long* prefix = sums[warp];
  const unsigned n = min(*list.n, list.capacity);
  for (unsigned k = blockIdx.x * kConfirmWarps + warp; k < n; k += gridDim.x * kConfirmWarps) {
    const DeviceHit block = list.hits[k];
    const SeriesStatistics s = statistics[block.trial];
    const auto& octave = table.octaves[block.octave];
    const int h = octave.halvings;
    const float* weights =
        in.weights == nullptr ? nullptr : in.weights + block.trial * in.weight_stride;
    const std::int64_t column = in.first_start + (block.start * 64 << h);
    const std::int64_t starts =
        ((in.end_start - in.first_start + (std::int64_t{1} << h) - 1) >> h) - block.start * 64;
    sum_starts(static_cast<const T*>(in.sums) + block.trial * in.stride, column, in.n_columns, h,
               lane, prefix);
    const float enough = static_cast<float>(0.999 * threshold * s.sigma);
    float best = 0;
    int order = 0x7fffffff;  // start x n + index of the width: the earliest, narrowest of equals
    for (int j = lane; j < min(std::int64_t{64}, starts); j += 32) {
      for (int i = 0; i < octave.n; ++i) {
        const int narrow = table.widths[octave.first + i];
        const std::int64_t width = static_cast<std::int64_t>(narrow) << h;
        const std::int64_t middle = column + (static_cast<std::int64_t>(j) << h) + width / 2;
        const float w = weights == nullptr ? in.level : weights[middle / 64];
        if (w < kMinWeight) continue;
        const long long sum = prefix[j + narrow] - prefix[j];
        // What is far below needs no quotient.
        const auto above = static_cast<float>(static_cast<double>(sum) - width * s.mu);
        if (above * rsqrtf(static_cast<float>(width) * w) < enough) continue;
        const double snr = snr_of(s, sum, width, static_cast<double>(w));
        if (snr >= threshold && static_cast<float>(snr) > best) {
          best = static_cast<float>(snr);
          order = j * octave.n + i;
        }
      }
    }
    for (int m = 16; m > 0; m /= 2) {
      const float other = __shfl_xor_sync(kWarp, best, m);
      const int at = __shfl_xor_sync(kWarp, order, m);
      if (other > best || (other == best && at < order)) best = other, order = at;
    }
    if (lane != 0 || best == 0) continue;
    list.hits[k] = {in.first_tick + column + (static_cast<std::int64_t>(order / octave.n) << h),
                    table.widths[octave.first + order % octave.n] << h, block.trial, best,
                    block.octave};
  }
}

}  // namespace

void launch_screen(const DeviceInput& in, const BoxcarTable& table, const TrialScreen* screens,
                   const HitList& list, cudaStream_t stream) {
  const std::int64_t segments = (in.end_start - in.first_start + kSegment - 1) / kSegment;
  const std::int64_t blocks = segments * in.n_trials;
  if (blocks > 0x7fffffff)
    throw ConfigError("cuda detection: " + std::to_string(in.n_trials) + " trials of " +
                      std::to_string(in.n_columns) + " columns; search fewer at a time");
  const std::size_t bytes = 4 * static_cast<std::size_t>(room_of(0, table.max_halvings));
  const auto of = [&]<class T>(T) {
    return table.covering ? screen_boxcars<T, CoveringWindows, CoveringHalvedWindows>
                          : screen_boxcars<T, OwnWindows, OwnHalvedWindows>;
  };
  const auto kernel = in.wide ? of(std::uint32_t{}) : of(std::uint16_t{});
  RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  kernel<<<static_cast<unsigned>(blocks), kScreenThreads, bytes, stream>>>(
      in, table, screens, list, static_cast<int>(segments));
  RYLE_CUDA_LAUNCHED("screen_boxcars");
}

void launch_confirm(const DeviceInput& in, const BoxcarTable& table,
                    const SeriesStatistics* statistics, double threshold, const HitList& list,
                    cudaStream_t stream) {
  constexpr unsigned kBlocks = 1056;
  const auto kernel = in.wide ? confirm_blocks<std::uint32_t> : confirm_blocks<std::uint16_t>;
  kernel<<<kBlocks, 32 * kConfirmWarps, 0, stream>>>(in, table, statistics, threshold, list);
  RYLE_CUDA_LAUNCHED("confirm_blocks");
}

}  // namespace ryle::search::detail
