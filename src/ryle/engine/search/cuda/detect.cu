// SPDX-License-Identifier: BSD-3-Clause
// Detection on the device, host side: one chain of kernels from sums to tokens, one wait at its
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

/// Tokens as kernels append them, behind their number in the first entry's room.
class DeviceTokens {
 public:
  explicit DeviceTokens(std::int64_t capacity)
      : tokens_(capacity + 1, MemorySpace::device), first_(kFirst + 1, MemorySpace::pinned) {}

  void clear(Queue& queue) {
    RYLE_CUDA(cudaMemsetAsync(tokens_.data(), 0, sizeof(unsigned), cuda::stream_of(queue)));
  }
  TokenList list() const {
    return {tokens_.data() + 1, reinterpret_cast<unsigned*>(tokens_.data()),
            static_cast<unsigned>(tokens_.size() - 1)};
  }
  /// Waits for the queue. False: there were more than fit; there is room now, search again. Else
  /// tokens in the order of trial, octave, time.
  bool collect(Queue& queue, std::vector<Token>& tokens) {
    copy_bytes(queue, first_.data(), tokens_.data(), first_.bytes());
    queue.synchronize();
    const unsigned n = *reinterpret_cast<const unsigned*>(first_.data());
    if (n >= tokens_.size()) {
      tokens_ = Buffer<DeviceToken>(std::int64_t{n} + n / 4 + 1, MemorySpace::device);
      return false;
    }
    found_.assign(first_.data() + 1, first_.data() + 1 + std::min<std::int64_t>(n, kFirst));
    if (n > kFirst) {
      found_.resize(n);
      copy_bytes(queue, found_.data() + kFirst, tokens_.data() + 1 + kFirst,
                 static_cast<std::int64_t>((n - kFirst) * sizeof(DeviceToken)));
      queue.synchronize();
    }
    std::erase_if(found_, [](const DeviceToken& t) { return t.width == 0; });
    std::sort(found_.begin(), found_.end(), [](const DeviceToken& a, const DeviceToken& b) {
      if (a.trial != b.trial) return a.trial < b.trial;
      return a.octave != b.octave ? a.octave < b.octave : a.start < b.start;
    });
    for (const DeviceToken& t : found_) tokens.push_back({t.start, t.width, t.trial, t.snr});
    return true;
  }

 private:
  static constexpr std::int64_t kFirst = 2048;  // come with their number
  Buffer<DeviceToken> tokens_, first_;
  std::vector<DeviceToken> found_;
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
        tokens_(1 << 16) {
    const cuda::DeviceScope scope(device_);
    allow_rows();
    most_row_bytes_ = most_row_bytes();
  }

  void execute(Queue& queue, const DetectInput& in, std::vector<Token>& tokens) override {
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
    if (takes_rows_once(input, table_) && row_bytes(row_work(input)) <= most_row_bytes_) {
      search_rows(queue, input, tokens);
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
        tokens_.clear(queue);
        launch_screen(input, table_, screens_.data(), tokens_.list(), stream);
        launch_settle(input, table_, device_statistics_.data(), config_.threshold, tokens_.list(),
                      stream);
      } while (!tokens_.collect(queue, tokens));
    }
    take_statistics();
  }
  const std::vector<SeriesStatistics>& statistics() const override { return statistics_; }
  std::string_view implementation() const override { return "search/cuda"; }
  std::int64_t memory_bytes() const override { return maxima_.bytes(); }

 private:
  void search_rows(Queue& queue, const DeviceInput& in, std::vector<Token>& tokens) {
    const auto stream = cuda::stream_of(queue);
    RowWork work = row_work(in);
    if (maxima_.size() < row_maxima(work))
      maxima_ = Buffer<unsigned>(row_maxima(work), MemorySpace::device);
    work.starts = starts_.data();
    work.moments = moments_.data();
    work.maxima = maxima_.data();
    work.n_listed = tokens_.list().n;
    launch_rows_once(work, stream);
    for (bool again = false;; again = true) {
      if (again) tokens_.clear(queue);
      launch_list(work, table_, device_statistics_.data(), host_statistics_.data(),
                  config_.threshold, tokens_.list(), stream);
      launch_settle(in, table_, device_statistics_.data(), config_.threshold, tokens_.list(),
                    stream);
      if (tokens_.collect(queue, tokens)) return;
    }
  }
  void take_statistics() {
    const auto found = host_statistics_.span();
    std::copy(found.begin(), found.end(), statistics_.begin());
  }

  DetectConfig config_;
  int device_;
  std::int64_t most_row_bytes_ = 0;
  BoxcarTable table_;
  std::vector<SeriesStatistics> statistics_;
  Buffer<TrialStart> starts_;
  Buffer<TrialMoments> moments_;
  Buffer<SeriesStatistics> device_statistics_;
  Buffer<TrialScreen> screens_;
  Buffer<unsigned> maxima_;
  Buffer<SeriesStatistics> host_statistics_;
  DeviceTokens tokens_;
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
