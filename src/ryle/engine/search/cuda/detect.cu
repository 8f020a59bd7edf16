// SPDX-License-Identifier: BSD-3-Clause
// Detection on the device, host side: one chain of kernels from sums to hits, one wait at its
// end.
#include <algorithm>
#include <array>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/detect.cuh"
#include "ryle/engine/search/cuda/make.hpp"
#include "ryle/engine/search/detect_common.hpp"
#include "ryle/engine/search/device_memory.hpp"

namespace ryle::search {
namespace detail {
namespace {

/// Hits as kernels append them, behind their number in the first entry's room.
class DeviceHits {
 public:
  explicit DeviceHits(std::int64_t capacity)
      : hits_(capacity + 1, MemorySpace::device), first_(kFirst + 1, MemorySpace::pinned) {}

  void clear(Queue& queue) {
    RYLE_CUDA(cudaMemsetAsync(hits_.data(), 0, sizeof(unsigned), cuda::stream_of(queue)));
  }
  HitList list() const {
    return {hits_.data() + 1, reinterpret_cast<unsigned*>(hits_.data()),
            static_cast<unsigned>(hits_.size() - 1)};
  }
  /// Waits for the queue. False: there were more than fit; there is room now, search again. Else
  /// hits in the order of trial, octave, time.
  bool collect(Queue& queue, std::vector<Hit>& hits) {
    copy_bytes(queue, first_.data(), hits_.data(), first_.bytes());
    queue.synchronize();
    const unsigned n = *reinterpret_cast<const unsigned*>(first_.data());
    if (n >= hits_.size()) {
      hits_ = Buffer<DeviceHit>(std::int64_t{n} + n / 4 + 1, MemorySpace::device);
      return false;
    }
    found_.assign(first_.data() + 1, first_.data() + 1 + std::min<std::int64_t>(n, kFirst));
    if (n > kFirst) {
      found_.resize(n);
      copy_bytes(queue, found_.data() + kFirst, hits_.data() + 1 + kFirst,
                 static_cast<std::int64_t>((n - kFirst) * sizeof(DeviceHit)));
      queue.synchronize();
    }
    std::erase_if(found_, [](const DeviceHit& t) { return t.width == 0; });
    std::sort(found_.begin(), found_.end(), [](const DeviceHit& a, const DeviceHit& b) {
      if (a.trial != b.trial) return a.trial < b.trial;
      return a.octave != b.octave ? a.octave < b.octave : a.start < b.start;
    });
    for (const DeviceHit& t : found_) hits.push_back({t.start, t.width, t.trial, t.snr});
    return true;
  }

 private:
  static constexpr std::int64_t kFirst = 2048;  // come with their number
  Buffer<DeviceHit> hits_, first_;
  std::vector<DeviceHit> found_;
};

class CudaDetector final : public Detector {
 public:
  CudaDetector(Queue& queue, const DetectConfig& config)
      : config_(config),
        device_(cuda::device_of(queue)),
        table_(boxcar_table(config.max_width, config.threshold)),
        statistics_(static_cast<std::size_t>(config.n_trials)),
        starts_(config.n_trials, MemorySpace::device),
        moments_(config.n_trials, MemorySpace::device),
        device_statistics_(config.n_trials, MemorySpace::device),
        screens_(config.n_trials, MemorySpace::device),
        maxima_(device_detector_bytes(config) / static_cast<std::int64_t>(sizeof(unsigned)),
                MemorySpace::device),
        host_statistics_(config.n_trials, MemorySpace::pinned),
        hits_(1 << 16) {
    const cuda::DeviceScope scope(device_);
    allow_rows();
    max_row_bytes_ = max_row_bytes();
  }

  void execute(Queue& queue, const DetectInput& in, std::vector<Hit>& hits) override {
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(in.sums, "dedispersed sums");
    if (in.weights != nullptr) cuda::require_device_memory(in.weights, "weights");
    const DeviceInput input{in.sums,
                            config_.format == SumFormat::u32,
                            in.stride,
                            in.n_columns,
                            in.first_tick,
                            in.first_start,
                            in.end_start,
                            in.stat_first,
                            in.stat_end,
                            in.weights,
                            in.weight_stride,
                            in.level,
                            static_cast<int>(config_.n_trials)};
    const auto stream = cuda::stream_of(queue);
    if (takes_rows_once(input, table_) && row_bytes(row_work(input)) <= max_row_bytes_) {
      search_rows(queue, input, hits);
      return take_statistics();
    }
    launch_levels({input, starts_.data(), moments_.data(), device_statistics_.data(),
                   screens_.data(), config_.threshold},
                  table_, stream);
    copy_bytes(queue, host_statistics_.data(), device_statistics_.data(), host_statistics_.bytes());
    if (in.end_start <= in.first_start) {
      queue.synchronize();
    } else {
      do {
        hits_.clear(queue);
        launch_screen(input, table_, screens_.data(), hits_.list(), stream);
        launch_confirm(input, table_, device_statistics_.data(), config_.threshold, hits_.list(),
                       stream);
      } while (!hits_.collect(queue, hits));
    }
    take_statistics();
  }
  const std::vector<SeriesStatistics>& statistics() const override { return statistics_; }
  std::string_view implementation() const override { return "search/cuda"; }
  std::int64_t memory_bytes() const override { return maxima_.bytes(); }

 private:
  void search_rows(Queue& queue, const DeviceInput& in, std::vector<Hit>& hits) {
    const auto stream = cuda::stream_of(queue);
    RowWork work = row_work(in);
    if (maxima_.size() < row_maxima(work))
      maxima_ = Buffer<unsigned>(row_maxima(work), MemorySpace::device);
    work.starts = starts_.data();
    work.moments = moments_.data();
    work.maxima = maxima_.data();
    work.n_listed = hits_.list().n;
    launch_rows_once(work, stream);
    for (bool again = false;; again = true) {
      if (again) hits_.clear(queue);
      launch_list(work, table_, device_statistics_.data(), host_statistics_.data(),
                  config_.threshold, hits_.list(), stream);
      launch_confirm(in, table_, device_statistics_.data(), config_.threshold, hits_.list(),
                     stream);
      if (hits_.collect(queue, hits)) return;
    }
  }
  void take_statistics() {
    const auto found = host_statistics_.span();
    std::copy(found.begin(), found.end(), statistics_.begin());
  }

  DetectConfig config_;
  int device_;
  std::int64_t max_row_bytes_ = 0;
  BoxcarTable table_;
  std::vector<SeriesStatistics> statistics_;
  Buffer<TrialStart> starts_;
  Buffer<TrialMoments> moments_;
  Buffer<SeriesStatistics> device_statistics_;
  Buffer<TrialScreen> screens_;
  Buffer<unsigned> maxima_;
  Buffer<SeriesStatistics> host_statistics_;
  DeviceHits hits_;
};

}  // namespace
}  // namespace detail

std::unique_ptr<Detector> make_cuda_detector(Queue& queue, const DetectConfig& config) {
  const std::string& wanted = config.implementation;
  if (wanted == "auto" || wanted.rfind("cuda", 0) == 0 || wanted.rfind("fdmt", 0) == 0)
    return std::make_unique<detail::CudaDetector>(queue, config);
  throw UnsupportedError("search implementation \"" + wanted +
                         "\": no such CUDA kernel; these work: cuda, cuda:shared, cuda:direct");
}

}  // namespace ryle::search
