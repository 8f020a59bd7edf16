// SPDX-License-Identifier: BSD-3-Clause
// CUDA engines for callers whose codes and sums are in host memory: what goes in is copied to the
// device, what comes out is copied back.
#include <algorithm>

#include "ryle/core/checked.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/make.hpp"

namespace ryle::search {
namespace {

/// n_rows rows of n bytes, `stride` bytes apart on the host, packed at `pitch` on the device.
struct Rows {
  void* device;
  std::int64_t pitch;
  std::int64_t stride, n, n_rows;
};
void to_device(Queue& queue, const Rows& rows, const void* host) {
  RYLE_CUDA(cudaMemcpy2DAsync(
      rows.device, static_cast<std::size_t>(rows.pitch), host,
      static_cast<std::size_t>(rows.stride), static_cast<std::size_t>(rows.n),
      static_cast<std::size_t>(rows.n_rows), cudaMemcpyHostToDevice, cuda::stream_of(queue)));
}
void to_host(Queue& queue, const Rows& rows, void* host) {
  RYLE_CUDA(cudaMemcpy2DAsync(
      host, static_cast<std::size_t>(rows.stride), rows.device,
      static_cast<std::size_t>(rows.pitch), static_cast<std::size_t>(rows.n),
      static_cast<std::size_t>(rows.n_rows), cudaMemcpyDeviceToHost, cuda::stream_of(queue)));
}
std::int64_t pitch_of(std::int64_t n) { return (n + 127) / 128 * 128; }

class ThroughDedisperser final : public Dedisperser {
 public:
  explicit ThroughDedisperser(const DedisperseConfig& config)
      : queue_(Queue::cuda()),
        engine_(make_cuda_dedisperser(queue_, config)),
        n_channels_(config.n_channels),
        n_trials_(config.n_trials),
        size_(sum_format(config.n_channels, config.max_code) == SumFormat::u16 ? 2 : 4),
        code_pitch_(pitch_of(config.max_outputs + engine_->max_delay())),
        sum_pitch_(pitch_of(config.max_outputs * size_)),
        codes_(checked_product({n_channels_, code_pitch_}, "codes") + kReadAhead,
               MemorySpace::device),
        sums_(checked_product({n_trials_, sum_pitch_}, "dedispersed sums"), MemorySpace::device) {}

  void execute(Queue&, const std::uint8_t* codes, std::int64_t code_stride, std::int64_t n_outputs,
               void* sums, std::int64_t sum_stride) override {
    if (n_outputs <= 0) return;
    const cuda::DeviceScope scope(cuda::device_of(queue_));
    to_device(queue_,
              {codes_.data(), code_pitch_, code_stride, n_outputs + max_delay(), n_channels_},
              codes);
    engine_->execute(queue_, codes_.data(), code_pitch_, n_outputs, sums_.data(),
                     sum_pitch_ / size_);
    to_host(queue_, {sums_.data(), sum_pitch_, sum_stride * size_, n_outputs * size_, n_trials_},
            sums);
    queue_.synchronize();
  }
  std::int64_t max_delay() const override { return engine_->max_delay(); }
  std::string_view implementation() const override { return engine_->implementation(); }

 private:
  Queue queue_;
  std::unique_ptr<Dedisperser> engine_;
  std::int64_t n_channels_, n_trials_, size_, code_pitch_, sum_pitch_;
  Buffer<std::uint8_t> codes_, sums_;
};

class ThroughDetector final : public Detector {
 public:
  explicit ThroughDetector(const DetectConfig& config)
      : queue_(Queue::cuda()),
        engine_(make_cuda_detector(queue_, config)),
        n_trials_(config.n_trials),
        size_(config.format == SumFormat::u16 ? 2 : 4),
        sum_pitch_(pitch_of(config.max_columns * size_)),
        cells_(config.max_columns / 64 + 1),
        sums_(checked_product({n_trials_, sum_pitch_}, "dedispersed sums"), MemorySpace::device),
        weights_(n_trials_ * cells_, MemorySpace::device) {}

  void execute(Queue&, const DetectInput& input, std::vector<Hit>& hits) override {
    const cuda::DeviceScope scope(cuda::device_of(queue_));
    DetectInput in = input;
    to_device(queue_,
              {sums_.data(), sum_pitch_, in.stride * size_, in.n_columns * size_, n_trials_},
              in.sums);
    in.sums = sums_.data();
    in.stride = sum_pitch_ / size_;
    if (in.weights != nullptr) {
      to_device(queue_,
                {weights_.data(), cells_ * 4, in.weight_stride * 4, (in.n_columns + 63) / 64 * 4,
                 n_trials_},
                in.weights);
      in.weights = weights_.data();
      in.weight_stride = cells_;
    }
    engine_->execute(queue_, in, hits);
  }
  const std::vector<SeriesStatistics>& statistics() const override { return engine_->statistics(); }
  std::string_view implementation() const override { return engine_->implementation(); }

 private:
  Queue queue_;
  std::unique_ptr<Detector> engine_;
  std::int64_t n_trials_, size_, sum_pitch_, cells_;
  Buffer<std::uint8_t> sums_;
  Buffer<float> weights_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_cuda_dedisperser_for_host(const DedisperseConfig& config) {
  return std::make_unique<ThroughDedisperser>(config);
}

std::unique_ptr<Detector> make_cuda_detector_for_host(const DetectConfig& config) {
  return std::make_unique<ThroughDetector>(config);
}

}  // namespace ryle::search
