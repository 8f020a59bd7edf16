// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// clang-format off
// Decisions among the channels of a beam, a thread block each: flag_channels.cpp and flag_cells.cpp with their sums in
// the same order, bit for bit (no fused multiply-adds).
//
//   array      axes                        type          content
//   w.typical  [beam][channel]             CellMoments   mean and rms of a channel
//   w.now,     [beam][channel][cell]       CellMoments   of a cell, and the running median
//     w.usual
//   f.basis    [channel][degree + 1]       double        Legendre polynomials of the bandpass fit
//   w.flags    [beam][channel]             uint8         1: the channel is flagged
//   w.bad      [beam][channel][cell]       uint8         reason why a cell is bad, or kNone
//   b.band     [beam][ring of time]        float         sum of all channels, in units of its noise
//   b.found    [beam]                      int           1: a boxcar of the band stands out
//
// The arrays of channels of a thread block lie in shared memory while they fit, else in device memory
// (FlagRoom). Medians are found by selection among all threads (cuda/select.cuh), with barriers between its
// rounds. docs/decisions/0013 records, for 8,192 samples of twice 512 beams on one H200, 2 ms for decisions
// among channels, nearly all of it fits, 1 ms for bad cells and 3 ms for bursts, where codes take 16 ms.
// clang-format on
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/search/cuda/normalize_middle.cuh"
#include "ryle/engine/search/cuda/normalize_work.hpp"
#include "ryle/engine/search/cuda/select.cuh"

namespace ryle::search::detail {

inline constexpr int kTerms = kBandpassDegree + 1;
inline constexpr int kFitRows = 64;
inline constexpr int kMaxLags = 64;
inline constexpr int kCellNeighbors = 8;     // on each side
inline constexpr double kCellMatters = 0.3;  // of the rms

/// What a block needs beside the arrays of channels.
struct FlagMemory {
  SelectMemory select;
  double a[kTerms * kTerms], b[kTerms];
  double rows[kFitRows * kTerms];            // of the basis
  double middle[kMaxLags], limit[kMaxLags];  // of the differences at a lag; limit < 0: no votes
};

static_assert(sizeof(FlagMemory) <= kFlagBlock_bytes);

/// IQRM: flagged[c] = 1.
__device__ inline void iqrm_block(const double* values, const std::uint8_t* good, int n,
                                  int max_lag, double threshold, int* received,
                                  std::uint8_t* flagged, FlagMemory& m) {
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads)
    received[c] = flagged[c] = 0;
  __syncthreads();
  int k = 0;
  for (int step = 1; step <= max_lag; step = max(step + 1, step * 3 / 2)) {
    for (int side = 0; side < 2; ++side, ++k) {
      const int lag = side == 0 ? step : -step;
      const auto difference = [&](int i, double& v) {
        if (i + lag < 0 || i + lag >= n || good[i] == 0 || good[i + lag] == 0) return false;
        v = values[i] - values[i + lag];
        return true;
      };
      const int there = count_values(n, difference, m.select);
      bool votes = there >= 8;
      double middle = 0, limit = 0;
      if (votes) {
        middle = select_rank(n, there / 2, difference, m.select);
        const double upper = select_rank(n, 3 * there / 4, difference, m.select);
        const double lower = select_rank(n, there / 4, difference, m.select);
        limit = threshold * ((upper - lower) / 1.349);
      }
      if (threadIdx.x == 0) {
        m.middle[k] = middle;
        m.limit[k] = votes ? limit : -1;
      }
      for (int i = static_cast<int>(threadIdx.x); votes && i < n; i += kSelectThreads) {
        double v = 0;
        if (difference(i, v) && v - middle > limit) atomicAdd(&received[i], 1);
      }
      __syncthreads();
    }
  }
  // Only the vote of a neighbour that looks better itself counts.
  k = 0;
  for (int step = 1; step <= max_lag; step = max(step + 1, step * 3 / 2)) {
    for (int side = 0; side < 2; ++side, ++k) {
      const int lag = side == 0 ? step : -step;
      if (m.limit[k] < 0) continue;
      for (int i = static_cast<int>(threadIdx.x); i < n; i += kSelectThreads) {
        if (i + lag < 0 || i + lag >= n || good[i] == 0 || good[i + lag] == 0) continue;
        if (values[i] - values[i + lag] - m.middle[k] > m.limit[k] &&
            received[i + lag] < received[i])
          flagged[i] = 1;
      }
    }
  }
  __syncthreads();
}

/// Normal equations by Cholesky, as solve() of flag_channels.cpp: a lane of the first warp a row.
__device__ inline void solve_block(int n, FlagMemory& m) {
  double* a = m.a;
  double* b = m.b;
  if (threadIdx.x < 32) {
    const int i = static_cast<int>(threadIdx.x);
    for (int j = 0; j < n; ++j) {
      if (i == j) {
        double sum = a[j * n + j];
        for (int k = 0; k < j; ++k) sum -= a[j * n + k] * a[j * n + k];
        a[j * n + j] = sum > 1e-9 ? sqrt(sum) : 0;
      }
      __syncwarp();
      if (i > j && i < n) {
        double sum = a[i * n + j];
        for (int k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
        const double pivot = a[j * n + j];
        a[i * n + j] = pivot > 0 ? sum / pivot : 0;
      }
      __syncwarp();
    }
    // Each unknown is taken from the rows that wait for it: theirs lose their terms in the order
    // of the host.
    for (int k = 0; k < n; ++k) {
      if (i == k) b[k] = a[k * n + k] > 0 ? b[k] / a[k * n + k] : 0;
      __syncwarp();
      if (i > k && i < n) b[i] -= a[i * n + k] * b[k];
      __syncwarp();
    }
    if (i == 0) {
      for (int j = n; j-- > 0;) {
        double sum = b[j];
        for (int k = j + 1; k < n; ++k) sum -= a[k * n + j] * b[k];
        b[j] = a[j * n + j] > 0 ? sum / a[j * n + j] : 0;
      }
    }
  }
  __syncthreads();
}

/// Sums of the normal equations, a thread an element: its sum over the channels is in the order of
/// the host. The basis comes through shared memory.
__device__ inline void normal_equations(const double* values, const std::uint8_t* use, int n,
                                        int terms, const double* basis, FlagMemory& m) {
  const int element = static_cast<int>(threadIdx.x);
  const bool right = element >= terms * terms, mine = element < terms * terms + terms;
  const int i = right ? element - terms * terms : element / terms, j = element % terms;
  double sum = 0;
  for (int first = 0; first < n; first += kFitRows) {
    const int rows = min(kFitRows, n - first);
    __syncthreads();
    for (int k = element; k < rows * terms; k += kSelectThreads)
      m.rows[k] = basis[first * terms + k];
    __syncthreads();
    if (!mine || (!right && j > i)) continue;
#pragma unroll 8
    for (int c = 0; c < rows; ++c) {
      const double product =
          m.rows[c * terms + i] * (right ? values[first + c] : m.rows[c * terms + j]);
      sum += use[first + c] != 0 ? product : 0.0;  // adding 0 changes nothing
    }
  }
  if (mine) (right ? m.b[i] : m.a[element]) = sum;
  __syncthreads();
}

/// As legendre_fit(). `use` is scratch.
__device__ inline void fit_block(const double* values, const std::uint8_t* good, int n, int degree,
                                 const double* basis, double* fit, std::uint8_t* use,
                                 FlagMemory& m) {
  const int terms = degree + 1;
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) use[c] = good[c];
  __syncthreads();
  for (int round = 0; round < 5; ++round) {
    normal_equations(values, use, n, terms, basis, m);
    solve_block(terms, m);
    for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
      double sum = 0;
      for (int k = 0; k < terms; ++k) sum += m.b[k] * basis[c * terms + k];
      fit[c] = sum;
    }
    __syncthreads();
    const auto residual = [&](int c, double& v) {
      v = fabs(values[c] - fit[c]);
      return good[c] != 0;
    };
    const double limit = 5 * 1.4826 * median_of_block(n, residual, m.select);
    for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads)
      use[c] = good[c] != 0 && fabs(values[c] - fit[c]) <= limit ? 1 : 0;
    __syncthreads();
  }
}

/// Arrays of channels.
struct ChannelArrays {
  double *first, *second, *fit, *other_fit;
  int* received;
  std::uint8_t *good, *use, *accused;
};
static_assert(kFlagChannel_bytes == 4 * sizeof(double) + sizeof(int) + 3);

__device__ inline ChannelArrays arrays_in(std::uint8_t* memory, int n) {
  ChannelArrays a;
  a.first = reinterpret_cast<double*>(memory);
  a.second = a.first + n;
  a.fit = a.second + n;
  a.other_fit = a.fit + n;
  a.received = reinterpret_cast<int*>(a.other_fit + n);
  a.good = reinterpret_cast<std::uint8_t*>(a.received + n);
  a.use = a.good + n;
  a.accused = a.use + n;
  return a;
}

/// kShared: where the arrays lie; the compiler then knows.
template <bool kShared>
__device__ __forceinline__ ChannelArrays arrays_of_block(const FlagRoom& room, int n) {
  if constexpr (kShared) return arrays_in(static_cast<std::uint8_t*>(cuda::dynamic_shared()), n);
  return arrays_in(room.memory + blockIdx.x * room.stride, n);
}

/// What the typical rms of a channel scatters by, relative (Normalizer).
__device__ inline double error_of_rms_block(const NormalizeWork& w, const FlagWork& f,
                                            const std::uint8_t* good, std::int64_t beam,
                                            FlagMemory& m) {
  if (w.n_cells < 2 && w.n_past_cells == 0)
    return 1 /
           sqrt(static_cast<double>(min(f.n_samples, static_cast<std::int64_t>(w.cell_samples))));
  const auto change = [&](int c, double& v) {
    const std::int64_t row = beam * w.n_channels + c;
    const CellMoments* now = w.now + row * w.n_cells;
    const double one = now[0].rms;
    const double other = w.n_cells < 2 ? w.past[(row + 1) * w.past_room - 1].rms : now[1].rms;
    v = 2 * (one - other) / (one + other);
    return good[c] != 0 && one > 0 && other > 0;
  };
  const double middle = median_of_block(w.n_channels, change, m.select);
  return scatter_of_block(w.n_channels, middle, change, m.select) * f.median_error;
}

/// flags[c] = 1 for those of the suspected channels that are outliers by IQRM.
template <class Suspected>
__device__ inline void flag_outliers_block(const ChannelArrays& a, const double* values, int n,
                                           const FlagWork& f, const Suspected& suspected,
                                           std::uint8_t* flags, FlagMemory& m) {
  if (count_values(n, suspected, m.select) == 0) return;  // nearly always
  iqrm_block(values, a.good, n, max(3, n / 10), f.iqrm_threshold, a.received, a.accused, m);
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    double v = 0;
    if (suspected(c, v) && a.accused[c] != 0) flags[c] = 1;
  }
  __syncthreads();
}

/// Flags channels of a beam: bandpass fit of mean and rms, outliers of the fit, IQRM. A thread
/// block a beam.
template <bool kShared>
__global__ void __launch_bounds__(kSelectThreads)
    channels_kernel(const NormalizeWork w, const FlagWork f, const FlagRoom room) {
  __shared__ FlagMemory m;
  const int n = w.n_channels;
  const ChannelArrays a = arrays_of_block<kShared>(room, n);
  const std::int64_t beam = room.first_block + static_cast<int>(blockIdx.x);
  const CellMoments* typical = w.typical + beam * n;
  std::uint8_t* flags = w.flags + beam * n;
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    a.first[c] = typical[c].mean;
    a.second[c] = typical[c].rms;
    a.good[c] = w.user[c] == 0 && typical[c].rms > 0 ? 1 : 0;
    flags[c] = a.good[c] == 0 ? 1 : 0;
  }
  __syncthreads();
  if (!f.enabled || n < 32) return;
  fit_block(a.first, a.good, n, f.degree, f.basis, a.fit, a.use, m);
  fit_block(a.second, a.good, n, f.degree, f.basis, a.other_fit, a.use, m);
  const auto residual = [&](int c, double& v) {
    v = a.first[c] - a.fit[c];
    return a.good[c] != 0;
  };
  const double center = median_of_block(n, residual, m.select);
  const double limit = f.bandpass_threshold * scatter_of_block(n, center, residual, m.select);
  const double noise_limit = kNoiseThreshold * error_of_rms_block(w, f, a.good, beam, m);
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads)
    if (a.good[c] != 0 && fabs(a.first[c] - a.fit[c]) > fmax(limit, a.second[c])) flags[c] = 1;
  const auto bright = [&](int c, double& v) {
    v = 0;
    return a.good[c] != 0 && a.first[c] - a.fit[c] > a.second[c];
  };
  const auto noisy = [&](int c, double& v) {
    v = 0;
    return a.good[c] != 0 && a.second[c] > 1.05 * a.other_fit[c] &&
           1 - a.other_fit[c] / a.second[c] > noise_limit;
  };
  flag_outliers_block(a, a.first, n, f, bright, flags, m);
  flag_outliers_block(a, a.second, n, f, noisy, flags, m);
}

/// out[c] = values[c] less the median of the good ones about it.
__device__ inline void less_neighbors_block(const double* values, const std::uint8_t* good, int n,
                                            double* out) {
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    out[c] = 0;
    if (good[c] == 0) continue;
    double around[2 * kCellNeighbors + 1];
    int there = 0;
#pragma unroll
    for (int i = 0; i <= 2 * kCellNeighbors; ++i) {
      const int k = c - kCellNeighbors + i;
      const bool in = k >= 0 && k < n && good[k] != 0;
      around[i] = in ? values[k] : kNoValue;
      there += in ? 1 : 0;
    }
    out[c] = values[c] - middle_of(around, there);
  }
  __syncthreads();
}

/// bad[c * stride] = kBadCell where a value that matters is an outlier.
__device__ inline void outliers_block(const ChannelArrays& a, const double* values, int n,
                                      const FlagWork& f, double error, std::uint8_t* bad,
                                      int stride, FlagMemory& m) {
  const auto matters = [&](int c, double& v) {
    v = 0;
    return a.good[c] != 0 && fabs(values[c]) > kCellMatters;
  };
  if (count_values(n, matters, m.select) == 0) return;  // nearly always
  const auto good = [&](int c, double& v) {
    v = values[c];
    return a.good[c] != 0;
  };
  const double scatter = fmax(error, scatter_of_block(n, 0, good, m.select));
  iqrm_block(values, a.good, n, max(3, n / 10), f.iqrm_threshold, a.received, a.accused, m);
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    if (a.good[c] == 0 || !(fabs(values[c]) > kCellMatters)) continue;
    if (fabs(values[c]) > f.cell_threshold * scatter || a.accused[c] != 0)
      bad[static_cast<std::int64_t>(c) * stride] = kBadCell;
  }
  __syncthreads();
}

/// Finds bad cells: those whose mean or rms stands off its neighbours in frequency. A thread block
/// a beam and cell.
template <bool kShared>
__global__ void __launch_bounds__(kSelectThreads)
    cells_kernel(const NormalizeWork w, const FlagWork f, const FlagRoom room) {
  __shared__ FlagMemory m;
  const int block = room.first_block + static_cast<int>(blockIdx.x);
  const int n = w.n_channels, cell = block % w.n_cells;
  const std::int64_t beam = block / w.n_cells;
  const ChannelArrays a = arrays_of_block<kShared>(room, n);
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    const std::int64_t at = (beam * n + c) * w.n_cells + cell;
    const CellMoments now = w.now[at], usual = w.usual[at];
    const bool use = w.flags[beam * n + c] == 0 && now.rms > 0 && usual.rms > 0;
    a.good[c] = use ? 1 : 0;
    a.first[c] = use ? (now.mean - usual.mean) / usual.rms : 0;
    a.second[c] = use ? now.rms / usual.rms - 1 : 0;
    w.bad[at] = kNone;
  }
  __syncthreads();
  if (!f.enabled) return;
  const std::int64_t n_samples =
      min(static_cast<std::int64_t>(w.cell_samples),
          f.n_samples - static_cast<std::int64_t>(cell) * w.cell_samples);
  const double error = 1 / sqrt(static_cast<double>(n_samples));
  std::uint8_t* bad = w.bad + beam * n * w.n_cells + cell;
  less_neighbors_block(a.first, a.good, n, a.fit);
  outliers_block(a, a.fit, n, f, error, bad, w.n_cells, m);
  less_neighbors_block(a.second, a.good, n, a.fit);
  outliers_block(a, a.fit, n, f, error, bad, w.n_cells, m);
}

/// Which numbers of samples need limits. A thread a cell.
__global__ void __launch_bounds__(256)
    count_samples_kernel(const NormalizeWork w, const KurtosisWork k, std::int64_t n_jobs) {
  const std::int64_t job = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (job < n_jobs) k.seen[w.n_samples[job]] = 1;
}

/// As bad_kurtosis(): cells beyond the limits, and not with their neighbors. A block a beam and
/// cell.
template <bool kShared>
__global__ void __launch_bounds__(kSelectThreads)
    kurtosis_kernel(const NormalizeWork w, const KurtosisWork k, const FlagRoom room) {
  const int block = room.first_block + static_cast<int>(blockIdx.x);
  const int n = w.n_channels, cell = block % w.n_cells;
  const std::int64_t beam = block / w.n_cells;
  const ChannelArrays a = arrays_of_block<kShared>(room, n);
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    const std::int64_t at = (beam * n + c) * w.n_cells + cell;
    const CellMoments now = w.now[at];
    const bool use = w.flags[beam * n + c] == 0 && w.n_samples[at] >= 32 && now.mean > 0;
    const double m = w.n_samples[at];
    a.good[c] = use ? 1 : 0;
    a.received[c] = w.n_samples[at];
    a.first[c] =
        use ? (m * k.degrees + 1) / (m - 1) * now.rms * now.rms / (now.mean * now.mean) : 1.0;
  }
  __syncthreads();
  less_neighbors_block(a.first, a.good, n, a.fit);
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kSelectThreads) {
    const std::int64_t at = (beam * n + c) * w.n_cells + cell;
    if (a.good[c] == 0 || w.bad[at] != kNone) continue;
    const double low = k.low[a.received[c]], high = k.high[a.received[c]];
    const bool above = a.first[c] > high && a.fit[c] > 0.5 * (high - 1);
    const bool below = a.first[c] < low && a.fit[c] < 0.5 * (low - 1);
    if (above || below) w.bad[at] = kKurtosis;
  }
}

/// Boxcars that the scale is measured from: every step-th, as scale_of() of flag_spectra.cpp.
inline constexpr int kMaxBurstList = 8192;
__host__ __device__ constexpr int burst_step(int n) {
  return n < kMaxBurstList ? 1 : n / kMaxBurstList;
}
/// Shared memory for the boxcars of all widths over n columns.
__host__ __device__ constexpr int burst_list_bytes(int n) {
  int maximum = 0;
  for (int k = 0; k < kBurstWidths; ++k) {
    const int there = n - (1 << k) + 1, step = burst_step(there);
    const int listed = (there + step - 1) / step;
    if (listed > maximum) maximum = listed;
  }
  return 4 * maximum;
}

/// A block a beam and width of boxcar: is a boxcar that reaches into this gulp far off its scale?
__global__ void __launch_bounds__(kSelectThreads) bursts_kernel(const BurstWork b) {
  __shared__ SelectMemory m;
  const int width = 1 << (blockIdx.x % kBurstWidths);
  const std::int64_t beam = blockIdx.x / kBurstWidths;
  const float* band = b.band + beam * b.ring;
  const auto n = static_cast<int>(b.n_past + b.n) - width + 1;
  if (n < 1) return;
  const auto first_column = static_cast<int>((b.first_column + b.ring - b.n_past) % b.ring);
  const auto ring = static_cast<int>(b.ring);
  // The host's running sum of doubles: the same number wherever that one is exact.
  const auto boxcar = [&](int t) {
    int at = first_column + t;
    if (at >= ring) at -= ring;
    double sum = 0;
    for (int k = 0; k < width; ++k) {
      sum += static_cast<double>(band[at]);
      at = at + 1 == ring ? 0 : at + 1;
    }
    return static_cast<float>(sum);
  };
  const int step = burst_step(n), n_list = (n + step - 1) / step;
  auto* list = static_cast<float*>(cuda::dynamic_shared());
  for (int i = static_cast<int>(threadIdx.x); i < n_list; i += kSelectThreads)
    list[i] = boxcar(i * step);
  __syncthreads();
  const auto listed = [&](int i, double& v) {
    v = static_cast<double>(list[i]);
    return true;
  };
  const double center = median_of_block(n_list, listed, m);
  const double scatter = scatter_of_block(n_list, center, listed, m);
  if (!(scatter > 0)) return;
  bool found = false;
  const int from = max(0, static_cast<int>(b.n_past) - width + 1);
  for (int t = from + static_cast<int>(threadIdx.x); t < n; t += kSelectThreads) {
    const auto deviation = static_cast<float>((static_cast<double>(boxcar(t)) - center) / scatter);
    found |= fabs(static_cast<double>(deviation)) > b.threshold;
  }
  if (found) b.found[beam] = 1;
}

/// band[beam][column] = sum of the groups of channels, in units of its noise. A thread a column.
__global__ void band_kernel(const BurstWork b, int first_beam, std::int64_t first_column,
                            std::int64_t n) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (t >= n) return;
  const std::int64_t beam = first_beam + static_cast<int>(blockIdx.y);
  const std::int64_t column = (first_column + t) % b.ring;
  float sum = 0, count = 0;
  for (int g = 0; g < b.n_groups; ++g) {
    sum += b.sums[(beam * b.n_groups + g) * b.ring + column];
    count += b.counts[(beam * b.n_groups + g) * b.ring + column];
  }
  b.band[beam * b.ring + column] = count > 0 ? sum / sqrtf(count) : 0.0f;
}

}  // namespace ryle::search::detail
