// SPDX-License-Identifier: BSD-3-Clause
// Host side of the CUDA correlator: choice, memory, folding before an int32 can overflow, counts.
#include <algorithm>

#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/counts.hpp"
#include "ryle/engine/correlate/cuda.hpp"
#include "ryle/engine/correlate/cuda_kernels.cuh"
#include "ryle/engine/correlate/implementations.hpp"

namespace ryle::correlate {
namespace {

using namespace detail;

class CudaCorrelator final : public Correlator {
 public:
  CudaCorrelator(Queue& queue, const Config& config, bool tensor_cores)
      : config_(config),
        device_(cuda::device_of(queue)),
        tensor_cores_(tensor_cores),
        integer_(is_integer_format(config.format)),
        n_products_(
            checked_product({config.n_channels, n_pairs(config.n_inputs)}, "visibility sums")),
        host_queue_(Queue::cpu()),
        counter_(config, host_queue_.n_workers()) {
    const cuda::DeviceScope scope(device_);
    // One thread block per (channel, tile): at most this many are numbered in one launch.
    const std::int64_t tiles = n_pairs((config.n_inputs + 63) / 64);
    if (config.n_channels * std::max(tiles, config.n_inputs) > std::int64_t{0x7fffffff} / 64) {
      throw ConfigError("cuda correlator: n_channels " + std::to_string(config.n_channels) +
                        " x n_inputs " + std::to_string(config.n_inputs) +
                        " is too large for one launch; split the channels");
    }
    sums_ = Buffer<std::int64_t>(checked_product({n_products_, 2}, "sums"), MemorySpace::device);
    if (tensor_cores_) {
      plan_ = plan_mma_s8(config.format, config.n_inputs, config.n_channels, device_);
      tile_sums_ = Buffer<std::int32_t>(plan_.n_tile_sums, MemorySpace::device);
    }
  }

  void execute(Queue& queue, const Input& input) override {
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(input.blocks.data, "correlator input blocks");
    const std::int64_t per_block = spectra_per_block(config_.format);
    const std::int64_t blocks = n_blocks(config_.format, input.n_spectra);
    const std::int64_t largest = spectra_per_launch() / per_block;
    for (std::int64_t first = 0; first < blocks; first += largest) {
      const std::int64_t n = std::min(largest, blocks - first);
      const CudaGulp gulp{input.blocks.data,
                          input.blocks.channel_stride_bytes,
                          input.blocks.block_stride_bytes,
                          input.blocks.input_stride_bytes,
                          static_cast<int>(config_.n_inputs),
                          static_cast<int>(config_.n_channels),
                          static_cast<int>(first),
                          static_cast<int>(n)};
      add(queue, gulp, n * per_block);
    }
    counter_.add(host_queue_, input);
    n_spectra_ += input.n_spectra;
  }

  void finish(Queue& queue, Sums& sums) override {
    const cuda::DeviceScope scope(device_);
    fold(queue);
    const auto n = static_cast<std::size_t>(n_products_);
    void* to = nullptr;
    if (integer_) {
      sums.integer.resize(n);
      to = sums.integer.data();
    } else {
      sums.real.resize(n);
      to = sums.real.data();
    }
    copy_bytes(queue, to, sums_.data(), sums_.bytes());
    RYLE_CUDA(cudaMemsetAsync(sums_.data(), 0, static_cast<std::size_t>(sums_.bytes()),
                              cuda::stream_of(queue)));
    counter_.finish(sums.counts);
    sums.n_spectra = n_spectra_;
    n_spectra_ = 0;
    queue.synchronize();
  }

  void reset(Queue& queue) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    RYLE_CUDA(cudaMemsetAsync(sums_.data(), 0, static_cast<std::size_t>(sums_.bytes()), stream));
    if (tensor_cores_) {
      RYLE_CUDA(cudaMemsetAsync(tile_sums_.data(), 0, static_cast<std::size_t>(tile_sums_.bytes()),
                                stream));
    }
    counter_.reset();
    n_spectra_ = 0;
    spectra_in_tiles_ = 0;
  }

  std::string_view implementation() const override {
    return tensor_cores_ ? "correlate/cuda/mma_s8" : "correlate/cuda/simt";
  }
  const Config& config() const override { return config_; }

 private:
  // int64 needs no limit; the int count of blocks in a launch does.
  std::int64_t spectra_per_launch() const {
    if (!integer_) return kSpectraPerFloat;
    return config_.format == SampleFormat::ci16 ? std::int64_t{1} << 30 : kSpectraPerInt32;
  }

  void add(Queue& queue, const CudaGulp& gulp, std::int64_t n_spectra) {
    const auto stream = cuda::stream_of(queue);
    if (!tensor_cores_) {
      launch_simt(config_.format, gulp, reinterpret_cast<ci64*>(sums_.data()),
                  reinterpret_cast<cf64*>(sums_.data()), stream);
      return;
    }
#if RYLE_MUTANT == 302
    if (spectra_in_tiles_ + n_spectra > 2 * kSpectraPerInt32) fold(queue);
#else
    if (spectra_in_tiles_ + n_spectra > kSpectraPerInt32) fold(queue);
#endif
    launch_mma_s8(config_.format, plan_, gulp, tile_sums_.data(), stream);
    spectra_in_tiles_ += n_spectra;
  }

  void fold(Queue& queue) {
    if (!tensor_cores_ || spectra_in_tiles_ == 0) return;
    launch_fold_mma_s8(config_.format, plan_, static_cast<int>(config_.n_inputs),
                       static_cast<int>(config_.n_channels), tile_sums_.data(),
                       reinterpret_cast<ci64*>(sums_.data()), cuda::stream_of(queue));
    spectra_in_tiles_ = 0;
  }

  Config config_;
  int device_;
  bool tensor_cores_;
  bool integer_;
  std::int64_t n_products_;
  Queue host_queue_;  // the masks are host memory: their pairs are counted there
  PairCounter counter_;
  MmaPlan plan_;
  Buffer<std::int64_t>
      sums_;  // canonical order, ci64 or cf64 (both 16 bytes, and 0 is all bits 0 in both)
  Buffer<std::int32_t> tile_sums_;
  std::int64_t spectra_in_tiles_ = 0;
  std::int64_t n_spectra_ = 0;
};

}  // namespace

std::vector<std::string> cuda_implementations() {
  if (!cuda_unavailable_reason().empty()) return {};
  return {"cuda:mma_s8", "cuda:simt"};
}

std::unique_ptr<Correlator> make_cuda_correlator(Queue& queue, const Config& config) {
  const bool has_tensor_kernel =
      config.format == SampleFormat::ci4 || config.format == SampleFormat::ci8;
  const std::string& wanted = config.implementation;
  if (wanted == "cuda" || wanted == "auto")
    return std::make_unique<CudaCorrelator>(queue, config, has_tensor_kernel);
  if (wanted == "cuda:simt") return std::make_unique<CudaCorrelator>(queue, config, false);
  if (wanted == "cuda:mma_s8" && has_tensor_kernel)
    return std::make_unique<CudaCorrelator>(queue, config, true);
  throw UnsupportedError("correlator implementation \"" + wanted + "\" for " +
                         std::string(name(config.format)) +
                         ": no such CUDA kernel; these work: cuda, " +
                         (has_tensor_kernel ? "cuda:mma_s8, " : "") + "cuda:simt");
}

}  // namespace ryle::correlate
