// SPDX-License-Identifier: BSD-3-Clause
// Host side of the CUDA correlator: choice, memory, folding before an int32 can overflow, counts.
#include <algorithm>
#include <atomic>

#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_support.hpp"
#include "ryle/engine/correlate/counts.hpp"
#include "ryle/engine/correlate/cuda/kernels.cuh"
#include "ryle/engine/correlate/cuda/make.hpp"
#include "ryle/engine/correlate/implementations.hpp"

namespace ryle::correlate {
namespace {

std::atomic<const CudaTuning*> searched_tuning{nullptr};

}  // namespace

namespace detail {

CudaTuning tuning_now(const CudaTuning& row) {
  const CudaTuning* searched = searched_tuning.load();
  return searched != nullptr ? *searched : row;
}

}  // namespace detail

void set_cuda_tuning(const CudaTuning* tuning) { searched_tuning.store(tuning); }

namespace {

using namespace detail;

enum class Kernel : std::uint8_t { mma_s8, wgmma_s8, wgmma_s4, wgmma_f16, mma_f16, simt };
/// Best first.
constexpr Kernel kKernels[] = {Kernel::wgmma_s8, Kernel::wgmma_s4, Kernel::wgmma_f16,
                               Kernel::mma_s8,   Kernel::mma_f16,  Kernel::simt};
constexpr const char* kNames[] = {"mma_s8",         "sm90_s8_wgmma", "sm90_ci4_wgmma",
                                  "sm90_f16_wgmma", "mma_f16",       "simt"};

std::string name_of(Kernel kernel) { return kNames[static_cast<int>(kernel)]; }

bool wgmma_of_bytes(Kernel kernel) {
  return kernel == Kernel::wgmma_s8 || kernel == Kernel::wgmma_s4;
}

bool of_fp16(Kernel kernel) { return kernel == Kernel::wgmma_f16 || kernel == Kernel::mma_f16; }

bool takes(Kernel kernel, SampleFormat format) {
  if (kernel == Kernel::simt) return true;
  if (of_fp16(kernel)) return format == SampleFormat::cf16;
  if (kernel == Kernel::wgmma_s4) return format == SampleFormat::ci4;
  return format == SampleFormat::ci8 || (kernel == Kernel::mma_s8 && format == SampleFormat::ci4);
}

bool runs_on(Kernel kernel, int device) {
  const bool wgmma = wgmma_of_bytes(kernel) || kernel == Kernel::wgmma_f16;
  return !wgmma || cuda::has_warpgroup_products(device);
}

class CudaCorrelator final : public Correlator {
 public:
  CudaCorrelator(Queue& queue, const Config& config, Kernel kernel)
      : config_(config),
        device_(cuda::device_of(queue)),
        kernel_(kernel),
        tensor_cores_(kernel != Kernel::simt),
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
    if (kernel_ == Kernel::mma_s8) {
      plan_ = plan_mma_s8(config.format, config.n_inputs, config.n_channels, device_);
      tile_sums_ = Buffer<std::int32_t>(plan_.n_tile_sums, MemorySpace::device);
    }
    if (wgmma_of_bytes(kernel_)) {
      const auto plan = kernel_ == Kernel::wgmma_s4 ? plan_wgmma_s4 : plan_wgmma_s8;
      wgmma_ = plan(config.n_inputs, config.n_channels, device_);
      tile_sums_ = Buffer<std::int32_t>(wgmma_.n_ints, MemorySpace::device);
      counter_words_ = Buffer<int>(2, MemorySpace::device);
      keep_cta_pairs(queue, wgmma_.cta_pair_list);
      tiles_are_stale_ = true;
    }
    if (of_fp16(kernel_)) {
      if (kernel_ == Kernel::wgmma_f16)
        wgmma_f16_ = plan_wgmma_f16(config.n_inputs, config.n_channels, device_);
      const F16Plan plan = kernel_ == Kernel::wgmma_f16
                               ? wgmma_f16_
                               : plan_mma_f16(config.n_inputs, config.n_channels, device_);
      real_tiles_ = Buffer<float>(plan.n_sums, MemorySpace::device);
      parts_ = Buffer<float>(plan.n_part_sums, MemorySpace::device);
      arrived_ = Buffer<int>(plan.n_arrived, MemorySpace::device);
      counter_words_ = Buffer<int>(2, MemorySpace::device);
      keep_cta_pairs(queue, wgmma_f16_.cta_pair_list);
      tiles_are_stale_ = true;
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
    clear_if_handed_over(queue);
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
    folded_ = false;
    counter_.finish(sums.counts);
    sums.n_spectra = n_spectra_;
    n_spectra_ = 0;
    queue.synchronize();
  }

  void reset(Queue& queue) override {
    const cuda::DeviceScope scope(device_);
    if (!tensor_cores_ || folded_ || handed_over_ == Handed::sums) {
      RYLE_CUDA(cudaMemsetAsync(sums_.data(), 0, static_cast<std::size_t>(sums_.bytes()),
                                cuda::stream_of(queue)));
    }
    counter_.reset();
    n_spectra_ = 0;
    spectra_in_tiles_ = 0;
    handed_over_ = Handed::nothing;
    tiles_are_stale_ = tensor_cores_;
    folded_ = false;
  }

  DeviceSums on_device(Queue& queue, bool tiles_will_do) {
    const cuda::DeviceScope scope(device_);
    clear_if_handed_over(queue);  // nothing came since the last dump
    DeviceSums out;
    out.n_spectra = n_spectra_;
    out.integer = integer_;
    if (tiles_will_do && kernel_ == Kernel::mma_s8 && !folded_ && spectra_in_tiles_ > 0) {
      out.tiles = tile_sums_.data();
      out.tile_shift = config_.format == SampleFormat::ci4 ? 8 : 0;
      handed_over_ = Handed::tiles;
    } else {
      fold(queue);
      out.sums = sums_.data();
      handed_over_ = Handed::sums;
    }
    spectra_in_tiles_ = 0;
    n_spectra_ = 0;
    return out;
  }

  // Those of the dump that left: empty = n_spectra everywhere.
  void take_counts(std::int64_t n_spectra, std::vector<std::uint32_t>& counts) {
    if (counter_.all_equal(n_spectra)) {
      counts.clear();
      counter_.reset();
    } else {
      counter_.finish(host_queue_, counts);
    }
  }

  // Adds them on the device.
  void bring_counts(Queue& queue, DeviceSums& to) {
    const cuda::DeviceScope scope(device_);
    take_counts(to.n_spectra, host_counts_);
    if (host_counts_.empty()) return;
    if (counts_.size() == 0) counts_ = Buffer<std::uint32_t>(n_products_, MemorySpace::device);
    copy_bytes(queue, counts_.data(), host_counts_.data(), counts_.bytes());
    queue.synchronize();  // host_counts_ may be rewritten
    to.counts = counts_.data();
  }

  std::string_view implementation() const override {
    constexpr const char* kImplementations[] = {
        "correlate/cuda/mma_s8",         "correlate/cuda/sm90_s8_wgmma",
        "correlate/cuda/sm90_ci4_wgmma", "correlate/cuda/sm90_f16_wgmma",
        "correlate/cuda/mma_f16",        "correlate/cuda/simt"};
    return kImplementations[static_cast<int>(kernel_)];
  }
  const Config& config() const override { return config_; }

 private:
  enum class Handed : std::uint8_t { nothing, tiles, sums };

  void keep_cta_pairs(Queue& queue, const std::vector<wgmma::CtaPair>& list) {
    cta_pairs_ =
        Buffer<wgmma::CtaPair>(static_cast<std::int64_t>(list.size()), MemorySpace::device);
    copy_bytes(queue, cta_pairs_.data(), list.data(), cta_pairs_.bytes());
    queue.synchronize();
  }

  // What finish_on_device() gave away was needed until now.
  void clear_if_handed_over(Queue& queue) {
    const auto stream = cuda::stream_of(queue);
    if (handed_over_ == Handed::sums)
      RYLE_CUDA(cudaMemsetAsync(sums_.data(), 0, static_cast<std::size_t>(sums_.bytes()), stream));
    if (handed_over_ == Handed::tiles) tiles_are_stale_ = true;
    if (handed_over_ != Handed::nothing) folded_ = false;
    handed_over_ = Handed::nothing;
  }

  // int64 needs no limit; the int count of blocks in a launch does.
  std::int64_t spectra_per_launch() const {
    if (of_fp16(kernel_)) return kSpectraPerF16Sum;
    if (!integer_) return kSpectraPerFloat;
    return config_.format == SampleFormat::ci16 ? std::int64_t{1} << 30 : kSpectraPerInt32;
  }

  void add(Queue& queue, const CudaGulp& gulp, std::int64_t n_spectra) {
    const auto stream = cuda::stream_of(queue);
    clear_if_handed_over(queue);
    if (!tensor_cores_) {
      launch_simt(config_.format, gulp, reinterpret_cast<ci64*>(sums_.data()),
                  reinterpret_cast<cf64*>(sums_.data()), stream);
      return;
    }
    if (spectra_in_tiles_ + n_spectra > (integer_ ? kSpectraPerInt32 : kSpectraPerF16Tile))
      fold(queue);
    if (kernel_ == Kernel::wgmma_f16) {
      launch_wgmma_f16(wgmma_f16_, gulp, tiles_are_stale_,
                       {real_tiles_.data(), parts_.data(), arrived_.data(),
                        counter_words_.data() + n_launches_ % 2,
                        counter_words_.data() + (n_launches_ + 1) % 2, cta_pairs_.data()},
                       stream);
      ++n_launches_;
    } else if (kernel_ == Kernel::mma_f16) {
      launch_mma_f16(gulp, tiles_are_stale_, real_tiles_.data(), stream);
    } else if (wgmma_of_bytes(kernel_)) {
      const auto launch = kernel_ == Kernel::wgmma_s4 ? launch_wgmma_s4 : launch_wgmma_s8;
      launch(wgmma_, gulp, tiles_are_stale_,
             {tile_sums_.data(), counter_words_.data() + n_launches_ % 2,
              counter_words_.data() + (n_launches_ + 1) % 2, cta_pairs_.data()},
             stream);
      ++n_launches_;
    } else {
      launch_mma_s8(config_.format, plan_, gulp, tiles_are_stale_, tile_sums_.data(), stream);
    }
    tiles_are_stale_ = false;
    spectra_in_tiles_ += n_spectra;
  }

  void fold(Queue& queue) {
    if (!tensor_cores_ || spectra_in_tiles_ == 0) return;
    auto* totals = reinterpret_cast<ci64*>(sums_.data());
    const auto stream = cuda::stream_of(queue);
    if (of_fp16(kernel_)) {
      auto* real = reinterpret_cast<cf64*>(sums_.data());
      if (kernel_ == Kernel::wgmma_f16) {
        launch_fold_wgmma_f16(wgmma_f16_, real_tiles_.data(), real, stream);
      } else {
        launch_fold_mma_f16(static_cast<int>(config_.n_inputs),
                            static_cast<int>(config_.n_channels), real_tiles_.data(), real, stream);
      }
      tiles_are_stale_ = true;
    } else if (wgmma_of_bytes(kernel_)) {
      launch_fold_wgmma_s8(wgmma_, tile_sums_.data(), totals, stream);
      tiles_are_stale_ = true;
    } else {
      launch_fold_mma_s8(config_.format, plan_, static_cast<int>(config_.n_inputs),
                         static_cast<int>(config_.n_channels), tile_sums_.data(), totals, stream);
    }
    spectra_in_tiles_ = 0;
    folded_ = true;
  }

  Config config_;
  int device_;
  Kernel kernel_;
  bool tensor_cores_;  // int32 or fp32 tiles on the way to sums_
  bool integer_;
  std::int64_t n_products_;
  Queue host_queue_;  // the masks are host memory: their pairs are counted there
  PairCounter counter_;
  MmaPlan plan_;
  WgmmaPlan wgmma_;
  WgmmaF16Plan wgmma_f16_;
  Buffer<float> real_tiles_;
  Buffer<float> parts_;  // of items cut along time, see cuda/wgmma_floats.hpp
  Buffer<int> arrived_;
  Buffer<int> counter_words_;  // of partitions taken: a launch's and the next one's
  std::int64_t n_launches_ = 0;
  Buffer<wgmma::CtaPair> cta_pairs_;
  Buffer<std::int64_t>
      sums_;  // canonical order, ci64 or cf64 (both 16 bytes, and 0 is all bits 0 in both)
  Buffer<std::int32_t> tile_sums_;
  std::vector<std::uint32_t> host_counts_;
  Buffer<std::uint32_t> counts_;
  std::int64_t spectra_in_tiles_ = 0;
  std::int64_t n_spectra_ = 0;
  Handed handed_over_ = Handed::nothing;
  bool tiles_are_stale_ = false;  // hold what was handed over or folded
  bool folded_ = false;           // sums_ holds part of this dump
};

}  // namespace

namespace {

CudaCorrelator& on_cuda(Correlator& correlator) {
  auto* cuda = dynamic_cast<CudaCorrelator*>(&correlator);
  if (cuda == nullptr) {
    throw UnsupportedError("finish_on_device: " + std::string(correlator.implementation()) +
                           " keeps its sums in host memory; use finish()");
  }
  return *cuda;
}

}  // namespace

DeviceSums finish_on_device(Queue& queue, Correlator& correlator) {
  DeviceSums sums = on_cuda(correlator).on_device(queue, true);
  on_cuda(correlator).bring_counts(queue, sums);
  return sums;
}

DeviceSums finish_in_order(Queue& queue, Correlator& correlator) {
  DeviceSums sums = on_cuda(correlator).on_device(queue, false);
  on_cuda(correlator).bring_counts(queue, sums);
  return sums;
}

DeviceSums finish_in_order(Queue& queue, Correlator& correlator,
                           std::vector<std::uint32_t>& counts) {
  const DeviceSums sums = on_cuda(correlator).on_device(queue, false);
  on_cuda(correlator).take_counts(sums.n_spectra, counts);
  return sums;
}

std::vector<std::string> cuda_implementations() {
  if (!cuda_unavailable_reason().empty()) return {};
  std::vector<std::string> names;
  for (const Kernel kernel : kKernels) {
    if (runs_on(kernel, 0)) names.push_back("cuda:" + name_of(kernel));
  }
  return names;
}

std::unique_ptr<Correlator> make_cuda_correlator(Queue& queue, const Config& config) {
  const int device = cuda::device_of(queue);
  const std::string& wanted = config.implementation;
  const bool any = wanted == "cuda" || wanted == "auto";
  std::string names = "cuda";
  for (const Kernel kernel : kKernels) {
    if (!takes(kernel, config.format) || !runs_on(kernel, device)) continue;
    if (any || wanted == "cuda:" + name_of(kernel))
      return std::make_unique<CudaCorrelator>(queue, config, kernel);
    names += ", cuda:" + name_of(kernel);
  }
  throw UnsupportedError("correlator implementation \"" + wanted + "\" for " +
                         std::string(name(config.format)) +
                         ": no such CUDA kernel on this device; these work: " + names);
}

}  // namespace ryle::correlate
