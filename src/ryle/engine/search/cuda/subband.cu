// SPDX-License-Identifier: BSD-3-Clause
// Sub-bands on the device, host side.
#include "ryle/engine/search/cuda/subband.cuh"

#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/to_device.hpp"
#include "ryle/engine/search/cuda/make.hpp"
#include "ryle/engine/search/cuda/subband_plan.hpp"

namespace ryle::search {
namespace {

using namespace detail;

class CudaSubbands final : public Dedisperser {
 public:
  CudaSubbands(Queue& queue, const DedisperseConfig& config)
      : device_(cuda::device_of(queue)),
        wide_(sum_format(config.n_channels, config.max_code) == SumFormat::u32),
        n_trials_(static_cast<int>(config.n_trials)),
        byte_channels_(255 / config.max_code),
        max_outputs_(config.max_outputs),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {
    const cuda::DeviceScope scope(device_);
    const SubbandPlan plan = subband_plan(config);
    const SubbandTables tables = subband_tables(plan, config.n_trials);
    n_subbands_ = static_cast<int>(plan.subbands.size());
    error_ = plan.error;
    work_ = subband_work(plan);
    n_rows_ = static_cast<int>(tables.rows.size());
    stride_ = subband_stride(std::min(config.max_outputs, kSubbandOutputs), tables.max_extra);
    rows_ = to_device(queue, tables.rows);
    relative_ = to_device(queue, tables.relative);
    places_ = to_device(queue, tables.places);
    scratch_ = Buffer<std::uint16_t>(n_rows_ * stride_, MemorySpace::device);
  }

  void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
               std::int64_t n_outputs, void* sums, std::int64_t sum_stride) override {
    if (n_outputs > max_outputs_)
      throw ConfigError("subband:cuda: " + std::to_string(n_outputs) + " outputs, planned for " +
                        std::to_string(max_outputs_));
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(codes, "codes");
    cuda::require_device_memory(sums, "dedispersed sums");
    const auto stream = cuda::stream_of(queue);
    for (std::int64_t first = 0; first < n_outputs; first += kSubbandOutputs) {
      SubbandWork work{};
      work.codes = codes + first;
      work.code_stride = code_stride;
      work.n_outputs = std::min(kSubbandOutputs, n_outputs - first);
      work.rows = rows_.data();
      work.relative = relative_.data();
      work.n_rows = n_rows_;
      work.byte_channels = byte_channels_;
      work.scratch = scratch_.data();
      work.stride = stride_;
      work.places = places_.data();
      work.n_subbands = n_subbands_;
      work.n_trials = n_trials_;
      work.sums = static_cast<std::byte*>(sums) + first * (wide_ ? 4 : 2);
      work.sum_stride = sum_stride;
      launch(work, stream);
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  TrackError track_error() const override { return error_; }
  double work() const override { return work_; }
  std::string_view implementation() const override { return "search/subband/cuda"; }

 private:
  void launch(const SubbandWork& work, cudaStream_t stream) const {
    const auto tiles = [](std::int64_t n) {
      return static_cast<unsigned>((n + kSubbandTile - 1) / kSubbandTile);
    };
    // Rows reach beyond the outputs: whole tiles of the longest.
    const dim3 rows(tiles(stride_), static_cast<unsigned>(std::min(n_rows_, 65535)));
    subband_rows_kernel<<<rows, kSubbandThreads, 0, stream>>>(work);
    RYLE_CUDA_LAUNCHED("rows of sub-bands");
    const dim3 trials(tiles(work.n_outputs),
                      static_cast<unsigned>((n_trials_ + kSubbandTrials - 1) / kSubbandTrials));
    if (wide_)
      subband_trials_kernel<true><<<trials, kSubbandThreads, 0, stream>>>(work);
    else
      subband_trials_kernel<false><<<trials, kSubbandThreads, 0, stream>>>(work);
    RYLE_CUDA_LAUNCHED("trials of sub-bands");
  }

  int device_;
  bool wide_;
  int n_trials_, byte_channels_, n_subbands_ = 0, n_rows_ = 0;
  std::int64_t max_outputs_, max_delay_, stride_ = 0;
  double work_ = 0;
  TrackError error_;
  Buffer<SubbandRow> rows_;
  Buffer<std::int32_t> relative_;
  Buffer<SubbandTerm> places_;
  Buffer<std::uint16_t> scratch_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_cuda_subbands(Queue& queue, const DedisperseConfig& config) {
  return std::make_unique<CudaSubbands>(queue, config);
}

}  // namespace ryle::search
