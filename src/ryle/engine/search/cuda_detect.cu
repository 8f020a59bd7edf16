// SPDX-License-Identifier: BSD-3-Clause
// Detection on the device: moments of every trial, statistics on the host (its exp and erf, so that
// they are those of the CPU bit for bit), then boxcars from prefix sums in shared memory.
#include <algorithm>
#include <cmath>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda.hpp"
#include "ryle/engine/search/cuda_detect.cuh"
#include "ryle/engine/search/cuda_detect_plan.hpp"
#include "ryle/engine/search/detect_common.hpp"

namespace ryle::search {
namespace detail {
namespace {

constexpr int kThreads = 256;
constexpr int kSegment = 4096;  // starts of a thread block: 64 of every halving
constexpr int kSample = 512;    // values the median comes from

struct MeasuredTrial {
  long long n_columns, center, clip, n, sum, squares;
  double weight;  // of the columns, summed
  float least;
};

struct DeviceInput {
  const void* sums;
  std::int64_t stride, n_columns, first_tick, first_start, end_start, stat_first, stat_end;
  const float* weights;
  std::int64_t weight_stride;
};

__device__ long long block_sum(long long value, long long* scratch) {
  for (int m = 16; m > 0; m /= 2) value += __shfl_xor_sync(0xffffffffu, value, m);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  long long sum = 0;
  for (int k = 0; k < kThreads / 32; ++k) sum += scratch[k];
  return sum;
}

/// The value of rank n / 2, by counting smaller ones.
// Sums stay below 2^31: at most 2^20 channels of 255.
__device__ int median_of_sample(const int* values, int n, int* result) {
  __syncthreads();
  for (int k = threadIdx.x; k < n; k += kThreads) {
    int less = 0, equal = 0;
    for (int m = 0; m < n; ++m) {
      less += values[m] < values[k];
      equal += values[m] == values[k];
    }
    if (less <= n / 2 && n / 2 < less + equal) *result = values[k];
  }
  __syncthreads();
  return *result;
}

/// Cells of 64 columns that statistics are taken from.
struct Cells {
  const DeviceInput& in;
  const float* weights;  // of the trial, or nullptr
  double least;

  __device__ std::int64_t first_cell() const { return in.stat_first / 64; }
  __device__ std::int64_t end_cell() const { return (in.stat_end + 63) / 64; }
  __device__ bool good(std::int64_t cell) const {
    return weights == nullptr || (least > 0 && static_cast<double>(weights[cell]) >= least);
  }
  __device__ std::int64_t begin(std::int64_t cell) const { return max(in.stat_first, cell * 64); }
  __device__ std::int64_t end(std::int64_t cell) const { return min(in.stat_end, cell * 64 + 64); }
};

template <class T>
__global__ void __launch_bounds__(kThreads) measure(const DeviceInput in, MeasuredTrial* out) {
  __shared__ int values[kSample], result;
  __shared__ long long scratch[kThreads / 32], place[kThreads];
  const int trial = blockIdx.x, tid = threadIdx.x;
  const T* x = static_cast<const T*>(in.sums) + trial * in.stride;
  const float* weights = in.weights == nullptr ? nullptr : in.weights + trial * in.weight_stride;
  Cells cells{in, weights, 0};
  MeasuredTrial m{};
  float most = weights == nullptr ? 1.0f : 0.0f;
  m.least = 1.0f;
  if (weights != nullptr) {
    for (std::int64_t c = cells.first_cell() + tid; c < cells.end_cell(); c += kThreads)
      most = fmaxf(most, weights[c]);
    for (std::int64_t c = in.first_start / 64 + tid; c < (in.n_columns + 63) / 64; c += kThreads)
      if (weights[c] >= kMinWeight) m.least = fminf(m.least, weights[c]);
    // Not negative: bit patterns are ordered as the numbers are.
    __shared__ int bits[2];
    if (tid == 0) bits[0] = 0, bits[1] = __float_as_int(1.0f);
    __syncthreads();
    atomicMax(&bits[0], __float_as_int(most));
    atomicMin(&bits[1], __float_as_int(m.least));
    __syncthreads();
    most = __int_as_float(bits[0]);
    m.least = __int_as_float(bits[1]);
  }
  cells.least = 0.75 * static_cast<double>(most);
  long long n = 0;
  double weight = 0;
  for (std::int64_t c = cells.first_cell() + tid; c < cells.end_cell(); c += kThreads) {
    if (!cells.good(c)) continue;
    const std::int64_t k = cells.end(c) - cells.begin(c);
    n += k;
    // Exact in any order: floats of at least a quarter of each other, counts below 2^20.
    weight += (weights == nullptr ? 1.0 : static_cast<double>(weights[c])) * static_cast<double>(k);
  }
  m.n_columns = block_sum(n, scratch);
  __shared__ double total;
  if (tid == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, weight);
  __syncthreads();
  m.weight = total;

  const std::int64_t needed = (m.n_columns + kSample - 1) / kSample, step = needed > 1 ? needed : 1;
  const int n_sample = static_cast<int>((m.n_columns + step - 1) / step);
  std::int64_t before = 0;  // columns of earlier rounds
  for (std::int64_t c0 = cells.first_cell(); c0 < cells.end_cell(); c0 += kThreads) {
    const std::int64_t c = c0 + tid;
    const bool good = c < cells.end_cell() && cells.good(c);
    const std::int64_t count = good ? cells.end(c) - cells.begin(c) : 0;
    __syncthreads();
    place[tid] = count;
    for (int reach = 1; reach < kThreads; reach *= 2) {
      __syncthreads();
      const long long add = tid >= reach ? place[tid - reach] : 0;
      __syncthreads();
      place[tid] += add;
    }
    __syncthreads();
    const std::int64_t k = before + place[tid] - count;
    for (std::int64_t q = (k + step - 1) / step * step; q < k + count; q += step)
      values[q / step] = static_cast<int>(x[cells.begin(c) + (q - k)]);
    before += place[kThreads - 1];
  }
  if (n_sample >= 16) {
    m.center = median_of_sample(values, n_sample, &result);
    __syncthreads();
    for (int k = tid; k < n_sample; k += kThreads)
      values[k] = abs(values[k] - static_cast<int>(m.center));
    const int mad = median_of_sample(values, n_sample, &result);
    m.clip = static_cast<long long>(ceil(__dmul_rn(3 * 1.4826, static_cast<double>(mad))));
    if (mad == 0)
      for (int k = 0; k < n_sample; ++k) m.clip = max(static_cast<int>(m.clip), values[k]);
  }
  const int center = static_cast<int>(m.center);
  const int clip = static_cast<int>(m.clip < 0x7fffffff ? m.clip : 0x7fffffff);
  long long sum = 0, squares = 0;
  int kept = 0;
#pragma unroll 4
  for (std::int64_t t = in.stat_first + tid; t < in.stat_end; t += kThreads) {
    if (!cells.good(t / 64)) continue;
    const int d = static_cast<int>(x[t]) - center;
    if (d > clip || d < -clip) continue;
    ++kept;
    sum += d;
    squares += static_cast<long long>(d) * d;
  }
  m.n = block_sum(kept, scratch);
  m.sum = block_sum(sum, scratch);
  m.squares = block_sum(squares, scratch);
  if (tid == 0) out[trial] = m;
}

/// prefix[k] = sum of the first k values; n values at prefix[0 .. n) before. n + 1 entries.
__device__ void prefix_in_place(int* prefix, int n, int* scratch) {
  const int per_thread = (n / kThreads + 1) | 1;  // odd: no bank conflicts
  const int first = threadIdx.x * per_thread, end = min(first + per_thread, n + 1);
  __syncthreads();
  int own = 0;
  for (int k = first; k < end; ++k) own += k < n ? prefix[k] : 0;
  int scan = own;
  for (int m = 1; m < 32; m *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, scan, m);
    if (threadIdx.x % 32 >= m) scan += other;
  }
  if (threadIdx.x % 32 == 31) scratch[threadIdx.x / 32] = scan;
  __syncthreads();
  int sum = scan - own;
  for (int k = 0; k < static_cast<int>(threadIdx.x / 32); ++k) sum += scratch[k];
  for (int k = first; k < end; ++k) {
    const int value = k < n ? prefix[k] : 0;
    prefix[k] = sum;
    sum += value;
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    search(const DeviceInput in, const BoxcarTable table, const TrialLevels* levels,
           double threshold, const TokenList list) {
  extern __shared__ int prefix[];
  __shared__ int2 boxcars[kMaxWidths];  // samples, smallest sum
  __shared__ int scratch[kThreads / 32];
  const int trial = blockIdx.y, tid = threadIdx.x, lane = tid % 32;
  const TrialLevels s = levels[trial];
  if (!(s.sigma > 0)) return;
  const T* x = static_cast<const T*>(in.sums) + trial * in.stride;
  const float* weights = in.weights == nullptr ? nullptr : in.weights + trial * in.weight_stride;
  const std::int64_t column = in.first_start + static_cast<std::int64_t>(blockIdx.x) * kSegment;
  const int n = kSegment + table.max_width;
  for (int k = tid; k < n; k += kThreads)
    prefix[k] = column + k < in.n_columns ? static_cast<int>(x[column + k]) - s.center : 0;
  for (int o = 0; o < table.n_octaves; ++o) {
    const auto& octave = table.octaves[o];
    for (int k = octave.first + tid; k < octave.first + octave.n; k += kThreads) {
      const int full = table.widths[k] << octave.halvings;
      boxcars[k] = {full, boxcar_limit(s, threshold, full)};
    }
  }
  prefix_in_place(prefix, n, scratch);
  const std::int64_t left = in.end_start - column;
  for (int o = 0; o < table.n_octaves; ++o) {
    const auto& octave = table.octaves[o];
    const int h = octave.halvings;
    const int starts = static_cast<int>(min(std::int64_t{kSegment}, left) + (1 << h) - 1) >> h;
    for (int first = tid / 32 * 64; first < starts; first += kThreads * 2) {
      bool hit = false;
      const int* low = prefix + ((first + lane) << h);
      const int* high = low + (32 << h);
      const int begin[2] = {*low, *high};
      for (int k = octave.first; k < octave.first + octave.n; ++k) {
        const int2 boxcar = boxcars[k];
        hit |= low[boxcar.x] - begin[0] >= boxcar.y;
        hit |= high[boxcar.x] - begin[1] >= boxcar.y;
      }
      if (!__any_sync(0xffffffffu, hit)) continue;
      const BestBoxcar best = best_boxcar(
          prefix, s, table.widths + octave.first, octave.n, h, first, min(64, starts - first),
          threshold, kMinWeight,
          [&](int t) { return weights == nullptr ? 1.0f : weights[(column + t) / 64]; });
      if (lane == 0 && best.snr > 0) {
        const std::int64_t t = column + ((first + best.order / octave.n) << h);
        append(list, {in.first_tick + t, table.widths[octave.first + best.order % octave.n] << h,
                      trial, best.snr, o});
      }
    }
  }
}

class CudaDetector final : public Detector {
 public:
  CudaDetector(Queue& queue, const DetectConfig& config)
      : config_(config),
        device_(cuda::device_of(queue)),
        table_(boxcar_table(config.max_width)),
        statistics_(static_cast<std::size_t>(config.n_trials)),
        measured_(config.n_trials, MemorySpace::device),
        levels_(config.n_trials, MemorySpace::device),
        host_measured_(static_cast<std::size_t>(config.n_trials)),
        host_levels_(static_cast<std::size_t>(config.n_trials)),
        tokens_(queue, 1 << 16) {}

  void execute(Queue& queue, const DetectInput& in, std::vector<Token>& tokens) override {
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(in.sums, "dedispersed sums");
    if (in.weights != nullptr) cuda::require_device_memory(in.weights, "weights");
    const DeviceInput input{in.sums,        in.stride,       in.n_columns,  in.first_tick,
                            in.first_start, in.end_start,    in.stat_first, in.stat_end,
                            in.weights,     in.weight_stride};
    find_levels(queue, input);
    if (in.end_start <= in.first_start) return;
    do {
      tokens_.clear(queue);
      launch_search(queue, input);
    } while (!tokens_.collect(queue, tokens));
  }
  const std::vector<SeriesStatistics>& statistics() const override { return statistics_; }
  std::string_view implementation() const override { return "search/cuda"; }

 private:
  void find_levels(Queue& queue, const DeviceInput& input) {
    const auto blocks = static_cast<unsigned>(config_.n_trials);
    if (config_.format == SumFormat::u16) {
      measure<std::uint16_t>
          <<<blocks, kThreads, 0, cuda::stream_of(queue)>>>(input, measured_.data());
    } else {
      measure<std::uint32_t>
          <<<blocks, kThreads, 0, cuda::stream_of(queue)>>>(input, measured_.data());
    }
    RYLE_CUDA_LAUNCHED("measure");
    copy_bytes(queue, host_measured_.data(), measured_.data(), measured_.bytes());
    queue.synchronize();
    constexpr std::int64_t kTrialsPerTask = 64;
    const std::int64_t n_tasks = (config_.n_trials + kTrialsPerTask - 1) / kTrialsPerTask;
    host_queue_.parallel_for(n_tasks, [this](std::int64_t task) {
      const std::int64_t end = std::min(config_.n_trials, (task + 1) * kTrialsPerTask);
      for (std::int64_t k = task * kTrialsPerTask; k < end; ++k)
        find_level(static_cast<std::size_t>(k));
    });
    copy_bytes(queue, levels_.data(), host_levels_.data(), levels_.bytes());
  }

  void find_level(std::size_t k) {
    const MeasuredTrial& m = host_measured_[k];
    SeriesStatistics s = unclipped({m.n, m.sum, m.squares, m.center, m.clip});
    if (m.n_columns > 0) s.sigma /= std::sqrt(m.weight / static_cast<double>(m.n_columns));
    statistics_[k] = s;
    host_levels_[k] = {s.mu, s.sigma, static_cast<int>(m.center), m.least};
  }

  void launch_search(Queue& queue, const DeviceInput& input) {
    const auto segments = (input.end_start - input.first_start + kSegment - 1) / kSegment;
    const int shared_bytes = (kSegment + table_.max_width + 1) * 4;
    // Starts beyond the last one are looked at, never reported: their boxcars must lie inside.
    const dim3 grid(static_cast<unsigned>(segments), static_cast<unsigned>(config_.n_trials));
    if (config_.n_trials > 65535)
      throw ConfigError("cuda detection: " + std::to_string(config_.n_trials) +
                        " trials; at most 65535 in one detector");
    if (config_.format == SumFormat::u16) {
      search<std::uint16_t>
          <<<grid, kThreads, static_cast<std::size_t>(shared_bytes), cuda::stream_of(queue)>>>(
              input, table_, levels_.data(), config_.threshold, tokens_.list());
    } else {
      search<std::uint32_t>
          <<<grid, kThreads, static_cast<std::size_t>(shared_bytes), cuda::stream_of(queue)>>>(
              input, table_, levels_.data(), config_.threshold, tokens_.list());
    }
    RYLE_CUDA_LAUNCHED("search");
  }

  DetectConfig config_;
  int device_;
  Queue host_queue_ = Queue::cpu();
  BoxcarTable table_;
  std::vector<SeriesStatistics> statistics_;
  Buffer<MeasuredTrial> measured_;
  Buffer<TrialLevels> levels_;
  std::vector<MeasuredTrial> host_measured_;
  std::vector<TrialLevels> host_levels_;
  DeviceTokens tokens_;
};

}  // namespace

BoxcarTable boxcar_table(std::int64_t max_width) {
  BoxcarTable table{};
  for (const Octave& octave : octaves(boxcar_widths(max_width))) {
    table.octaves[table.n_octaves++] = {octave.halvings, table.n_widths,
                                        static_cast<int>(octave.widths.size())};
    for (const std::int32_t w : octave.widths) {
      table.widths[table.n_widths++] = w;
      table.max_width = std::max(table.max_width, w << octave.halvings);
    }
  }
  return table;
}

DeviceTokens::DeviceTokens(Queue&, std::int64_t capacity)
    : tokens_(capacity, MemorySpace::device), n_(1, MemorySpace::device) {}

void DeviceTokens::clear(Queue& queue) {
  RYLE_CUDA(cudaMemsetAsync(n_.data(), 0, sizeof(unsigned), cuda::stream_of(queue)));
}

TokenList DeviceTokens::list() const {
  return {tokens_.data(), n_.data(), static_cast<unsigned>(tokens_.size())};
}

bool DeviceTokens::collect(Queue& queue, std::vector<Token>& tokens) {
  unsigned n = 0;
  copy_bytes(queue, &n, n_.data(), sizeof(n));
  queue.synchronize();
  if (n > tokens_.size()) {
    tokens_ = Buffer<DeviceToken>(std::int64_t{n} + n / 4, MemorySpace::device);
    return false;
  }
  host_.resize(n);
  if (n == 0) return true;
  copy_bytes(queue, host_.data(), tokens_.data(),
             static_cast<std::int64_t>(n * sizeof(DeviceToken)));
  queue.synchronize();
  std::sort(host_.begin(), host_.end(), [](const DeviceToken& a, const DeviceToken& b) {
    if (a.trial != b.trial) return a.trial < b.trial;
    return a.octave != b.octave ? a.octave < b.octave : a.start < b.start;
  });
  for (const DeviceToken& t : host_) tokens.push_back({t.start, t.width, t.trial, t.snr});
  return true;
}

}  // namespace detail

std::unique_ptr<Detector> make_cuda_detector(Queue& queue, const DetectConfig& config) {
  const std::string& wanted = config.implementation;
  if (wanted == "auto" || wanted.rfind("cuda", 0) == 0 || wanted.rfind("fdmt", 0) == 0)
    return std::make_unique<detail::CudaDetector>(queue, config);
  throw UnsupportedError("search implementation \"" + wanted +
                         "\": no such CUDA kernel; these work: cuda, cuda:shared, cuda:direct");
}

}  // namespace ryle::search
