// SPDX-License-Identifier: BSD-3-Clause
// Host side of the CUDA dedisperser: choice, tables in device memory.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/to_device.hpp"
#include "ryle/engine/search/cuda/dedisperse.cuh"
#include "ryle/engine/search/cuda/dedisperse_plan.hpp"
#include "ryle/engine/search/cuda/make.hpp"

namespace ryle::search {
namespace {

using namespace detail;

/// That a thread block can ask for.
int max_shared_bytes(const Queue& queue) {
  return cuda::attribute_of(cuda::device_of(queue), cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

class CudaDedisperser final : public Dedisperser {
 public:
  CudaDedisperser(Queue& queue, const DedisperseConfig& config, bool shared)
      : device_(cuda::device_of(queue)),
        shared_(shared),
        wide_(sum_format(config.n_channels, config.max_code) == SumFormat::u32),
        n_channels_(config.n_channels),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {
    const cuda::DeviceScope scope(device_);
    if (shared_) {
      plan_ = plan_shared(config);
      tiles_ = to_device(queue, plan_.tiles);
      stage_at_ = to_device(queue, plan_.stage_at);
      stages_ = to_device(queue, plan_.stages);
    } else {
      plan_.direct.push_back({0, config.n_trials});
    }
    if (!plan_.direct.empty()) delays_ = to_device(queue, config.delays);
  }

  void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
               std::int64_t n_outputs, void* sums, std::int64_t sum_stride) override {
    if (n_outputs <= 0) return;
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(codes, "codes");
    cuda::require_device_memory(sums, "dedispersed sums");
    const auto stream = cuda::stream_of(queue);
    if (!plan_.tiles.empty()) {
      SharedWork work{};
      work.codes = codes;
      work.end = codes + (n_channels_ - 1) * code_stride + n_outputs + max_delay_ + kReadAhead;
      work.code_stride = code_stride;
      work.n_outputs = n_outputs;
      work.sums = sums;
      work.sum_stride = sum_stride;
      work.tiles = tiles_.data();
      work.stage_at = stage_at_.data();
      work.stages = stages_.data();
      work.n_tiles = static_cast<int>(plan_.tiles.size());
      work.wide = wide_;
      launch_shared(plan_.trials_per_warp, work, stream);
    }
    for (const auto& run : plan_.direct) {
      launch_direct({codes, code_stride, n_outputs, sums, sum_stride, delays_.data(),
                     static_cast<int>(run.first), static_cast<int>(run.n),
                     static_cast<int>(n_channels_), wide_},
                    stream);
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override {
    return shared_ ? "search/cuda/shared" : "search/cuda/direct";
  }

 private:
  int device_;
  bool shared_, wide_;
  std::int64_t n_channels_, max_delay_;
  SharedPlan plan_;
  Buffer<TileHead> tiles_;
  Buffer<std::int32_t> stage_at_, delays_;
  Buffer<std::uint8_t> stages_;
};

}  // namespace

std::vector<std::string> cuda_implementations() {
  if (!cuda_unavailable_reason().empty()) return {};
  return {"cuda:shared", "cuda:direct", "fdmt:cuda", "subband:cuda"};
}

std::unique_ptr<Dedisperser> make_cuda_dedisperser(Queue& queue, const DedisperseConfig& config) {
  const std::string& wanted = config.implementation;
  const int shared_bytes = max_shared_bytes(queue);
  const bool fits = kStageShared_bytes <= shared_bytes;
  if (wanted == "cuda:shared" && !fits)
    throw UnsupportedError("search implementation \"cuda:shared\": a thread block needs " +
                           std::to_string(kStageShared_bytes) +
                           " bytes of shared memory, this device gives " +
                           std::to_string(shared_bytes) + "; \"cuda:direct\" runs on any");
  if (wanted == "auto" || wanted == "cuda" || wanted == "cuda:shared")
    return std::make_unique<CudaDedisperser>(queue, config, fits);
  if (wanted == "cuda:direct") return std::make_unique<CudaDedisperser>(queue, config, false);
  if (wanted == "fdmt" || wanted == "fdmt:cuda" || wanted == "fdmt:cuda:tiles")
    return make_cuda_fdmt(queue, config);
  if (wanted == "subband" || wanted == "subband:cuda") return make_cuda_subbands(queue, config);
  throw UnsupportedError("search implementation \"" + wanted +
                         "\": no such CUDA kernel; these work: cuda, cuda:shared, cuda:direct, "
                         "fdmt:cuda, fdmt:cuda:tiles, subband:cuda");
}

}  // namespace ryle::search
