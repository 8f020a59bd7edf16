// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <optional>

#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/engine/image/cuda/all_sky.hpp"
#include "ryle/engine/image/cuda/all_sky_half.hpp"
#include "ryle/engine/image/cuda/all_sky_products.cuh"
#include "ryle/engine/image/weights.hpp"

/// Private to the CUDA imager: what all paths on the device share.
namespace ryle::image::detail {

/// Configuration, device, antennas and images of a plan.
template <class Interface>
class CudaImager : public Interface {
 public:
  Path path() const override { return path_; }
  std::string_view implementation() const override { return "cuda"; }
  const AllSkyConfig& config() const override { return config_; }

 protected:
  CudaImager(Queue& queue, const AllSkyConfig& config, Path path)
      : config_(config),
        path_(path),
        device_(cuda::device_of(queue)),
        scope_(std::make_unique<cuda::DeviceScope>(device_)),
        used_(used_array(config)) {
    check_channels(config);
    pixels_ =
        Buffer<float>(n_bins(config) * n_planes(config) * plane_size(config), MemorySpace::device);
  }
  int n_channels() const { return static_cast<int>(config_.channels.n_channels); }
  int n_antennas() const { return static_cast<int>(used_.antenna.size()); }
  DeviceImages images() const { return {pixels_.data(), pixels_.size()}; }
  void read_pixels(Queue& queue, Images& images) const {
    images.pixels.resize(static_cast<std::size_t>(pixels_.size()));
    copy_bytes(queue, images.pixels.data(), pixels_.data(), pixels_.bytes());
  }

  AllSkyConfig config_;
  Path path_;
  int device_;
  std::unique_ptr<cuda::DeviceScope> scope_;  // of the constructors; the last one ends it
  ArrayOfUsed used_;
  Buffer<float> pixels_;
};

/// Paths that take visibilities.
class CudaVisImager : public CudaImager<VisImager> {
 public:
  /// Asynchronous on the queue.
  virtual DeviceImages run(Queue& queue, const VisInput& input) = 0;

  void set_gains(Queue& queue, std::span<const cf32> gains) override {
    const cuda::DeviceScope scope(device_);
    products_->set_gains(queue, gains);
  }
  void execute(Queue& queue, const VisInput& input, Images& images) override {
    run(queue, input);
    read_pixels(queue, images);
    images.n_spectra = input.n_spectra;
    images.weights = products_->weights(queue);
  }

 protected:
  using CudaImager::CudaImager;
  std::optional<VisProducts> products_;  // of the constructor of a path
};

std::unique_ptr<VisImager> make_vis_dft_cuda(Queue& queue, const AllSkyConfig& config);

/// Paths that take voltages: gains, powers of every antenna, weights of an image.
class CudaFieldImager : public CudaImager<FieldImager> {
 public:
  /// finish() without waiting: images stay on the device.
  virtual DeviceImages images_on_device(Queue& queue) = 0;

  void set_gains(Queue& queue, std::span<const cf32> gains) override {
    check_gains(config_, gains);
    const cuda::DeviceScope scope(device_);
    gains_.assign(gains.begin(), gains.end());
    const auto factor = factors(config_, used_, gains, true);
    queue.synchronize();  // gulps in flight use the old ones
    replace(queue, factor_, factor);
    if (scaled_support_ > 0) {
      const auto channels = static_cast<std::size_t>(n_channels());
      replace(queue, scale_, half_scales(factor, channels, scaled_support_));
    }
    queue.synchronize();
  }
  void execute(Queue& queue, const FieldInput& input) override {
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(input.blocks.data, "imager voltages");
    const auto stream = cuda::stream_of(queue);
    const FieldBlocks blocks{input.blocks.data, input.blocks.channel_stride_bytes,
                             input.blocks.block_stride_bytes, input.blocks.input_stride_bytes,
                             input.blocks.format == SampleFormat::ci4};
    if (!blocks.nibbles && input.blocks.format != SampleFormat::ci8) {
      throw UnsupportedError("cuda imager: voltages of format " +
                             std::string(name(input.blocks.format)) + "; ci4 and ci8 work");
    }
    const auto n_spectra = static_cast<int>(input.n_spectra);
    if (config_.remove_autos && n_antennas() > 0) {
      launch_powers(blocks, array(), n_channels(), n_spectra, powers_.data(), stream);
    }
    run(blocks, n_spectra, stream);
    add_field_weights(each_channel_, gains_, input, weights_);
    n_spectra_ += input.n_spectra;
  }
  void finish(Queue& queue, Images& images) override {
    images.n_spectra = n_spectra_;
    images.weights.assign(3 * static_cast<std::size_t>(n_bins(config_)), 0);
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const std::size_t bin = k / 3 / static_cast<std::size_t>(config_.n_channels_per_bin);
      images.weights[3 * bin + k % 3] += weights_[k];
    }
    images_on_device(queue);
    read_pixels(queue, images);
    queue.synchronize();
  }
  void reset(Queue& queue) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    clear_sums(stream);
    clear(powers_, stream);
    weights_.assign(3 * static_cast<std::size_t>(n_channels()), 0);
    n_spectra_ = 0;
  }

 protected:
  CudaFieldImager(Queue& queue, const AllSkyConfig& config, Path path)
      : CudaImager(queue, config, path), each_channel_(config) {
    each_channel_.n_channels_per_bin = 1;
    const std::int64_t channels = n_channels();
    powers_ = Buffer<double>(channels * n_antennas() * 4, MemorySpace::device);
    pairs_ = Buffer<double>(3 * channels, MemorySpace::device);
  }
  /// A gulp, and what is summed of an image.
  virtual void run(const FieldBlocks& blocks, int n_spectra, cudaStream_t stream) = 0;
  virtual void clear_sums(cudaStream_t stream) = 0;

  /// The last step of a constructor.
  void begin(Queue& queue) {
    set_gains(queue,
              std::vector<cf32>(static_cast<std::size_t>(n_channels()) * config_.inputs.size(), 1));
    reset(queue);
    scope_.reset();
  }
  template <class T>
  static void clear(const Buffer<T>& buffer, cudaStream_t stream) {
    RYLE_CUDA(cudaMemsetAsync(buffer.data(), 0, static_cast<std::size_t>(buffer.bytes()), stream));
  }
  VisArray array() const {
    VisArray a;
    a.n_antennas = n_antennas();
    a.input = input_.data();
    a.factor = reinterpret_cast<const float2*>(factor_.data());
    return a;
  }

  AllSkyConfig each_channel_;
  int scaled_support_ = 0;        // of half_scales(), 0: operands are not scaled
  Buffer<std::int32_t> input_;    // of the constructor of a path
  Buffer<float> factor_, scale_;  // scale: [channel]
  Buffer<double> powers_, pairs_;
  std::vector<cf32> gains_;
  std::vector<double> weights_;  // [channel][3]
  std::int64_t n_spectra_ = 0;

 private:
  static void replace(Queue& queue, Buffer<float>& to, const std::vector<float>& values) {
    if (to.size() == 0) to = Buffer<float>(std::ssize(values), MemorySpace::device);
    copy_bytes(queue, to.data(), values.data(), to.bytes());
  }
};

std::unique_ptr<FieldImager> make_field_dft_cuda(Queue& queue, const AllSkyConfig& config);

}  // namespace ryle::image::detail
