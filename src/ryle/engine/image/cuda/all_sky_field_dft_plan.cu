// SPDX-License-Identifier: BSD-3-Clause
// Host side of direct Fourier sums of every spectrum on the device.
#include <algorithm>
#include <cmath>

#include "ryle/engine/image/cuda/all_sky_device.cuh"
#include "ryle/engine/image/cuda/all_sky_field_dft.cuh"
#include "ryle/engine/image/cuda/all_sky_half.hpp"
#include "ryle/engine/image/cuda/all_sky_paths.cuh"
#include "ryle/engine/image/weights.hpp"

namespace ryle::image::detail {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{512} << 20;  // of operands
constexpr std::int64_t kBlock = 128;                             // spectra, a multiple of a block's

class FieldDftCuda final : public CudaFieldImager {
 public:
  FieldDftCuda(Queue& queue, const AllSkyConfig& config)
      : config_(config),
        each_channel_(config),
        device_(cuda::device_of(queue)),
        scope_(std::make_unique<cuda::DeviceScope>(device_)),
        used_(used_array(config)) {
    check_channels(config);
    each_channel_.n_channels_per_bin = 1;
    plan_array(queue);
    plan_shape();
    allocate();
    const std::vector<cf32> ones(static_cast<std::size_t>(n_channels()) * config.inputs.size(), 1);
    set_gains(queue, ones);
    RYLE_CUDA(cudaMemsetAsync(operands_.data(), 0, static_cast<std::size_t>(operands_.bytes()),
                              cuda::stream_of(queue)));
    reset(queue);
    scope_.reset();
  }

  void set_gains(Queue& queue, std::span<const cf32> gains) override {
    check_gains(config_, gains);
    const cuda::DeviceScope scope(device_);
    gains_.assign(gains.begin(), gains.end());
    const auto factor = factors(config_, used_, gains, true);
    const auto scale = half_scales(factor, static_cast<std::size_t>(n_channels()), 1);
    queue.synchronize();  // gulps in flight use the old ones
    copy_bytes(queue, factor_.data(), factor.data(), factor_.bytes());
    copy_bytes(queue, scale_.data(), scale.data(), scale_.bytes());
    queue.synchronize();
  }

  void execute(Queue& queue, const FieldInput& input) override {
    const cuda::DeviceScope scope(device_);
    cuda::require_device_memory(input.blocks.data, "imager voltages");
    const auto stream = cuda::stream_of(queue);
    FieldDftArgs args;
    args.dft = dft_;
    args.blocks = {input.blocks.data, input.blocks.channel_stride_bytes,
                   input.blocks.block_stride_bytes, input.blocks.input_stride_bytes,
                   input.blocks.format == SampleFormat::ci4};
    if (!args.blocks.nibbles && input.blocks.format != SampleFormat::ci8) {
      throw UnsupportedError("cuda imager: voltages of format " +
                             std::string(name(input.blocks.format)) + "; ci4 and ci8 work");
    }
    args.pitch = field_dft_pitch(dft_.n_antennas);
    args.operands = reinterpret_cast<__half*>(operands_.data());
    args.input = reinterpret_cast<const int2*>(input_.data());
    args.factor = reinterpret_cast<const float4*>(factor_.data());
    args.scale = scale_.data();
    args.sums = sums_.data();
    if (config_.remove_autos && dft_.n_antennas > 0) {
      VisArray array;
      array.n_antennas = dft_.n_antennas;
      array.input = input_.data();
      array.factor = reinterpret_cast<const float2*>(factor_.data());
      launch_powers(args.blocks, array, n_channels(), static_cast<int>(input.n_spectra),
                    powers_.data(), stream);
    }
    for (std::int64_t first = 0; first < input.n_spectra; first += chunk_spectra_) {
      const std::int64_t spectra = std::min(chunk_spectra_, input.n_spectra - first);
      args.first_spectrum = static_cast<int>(first);
      args.n_batches = static_cast<int>((spectra + shape_.n_spectra - 1) / shape_.n_spectra);
      launch_field_dft(shape_, args, n_slices_, stream);
    }
    add_field_weights(each_channel_, gains_, input, weights_);
    n_spectra_ += input.n_spectra;
  }

  DeviceImages images_on_device(Queue& queue) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    copy_bytes(queue, pairs_.data(), weights_.data(), pairs_.bytes());
    launch_field_dft_join(dft_, n_slices_, config_.remove_autos ? powers_.data() : nullptr,
                          sums_.data(), joined_.data(), stream);
    FinishArgs finish = finish_args(config_, pixels_.data());
    finish.pairs = pairs_.data();
    launch_dft_finish(dft_, joined_.data(), finish, plane_size(config_), stream);
    reset(queue);
    return {pixels_.data(), pixels_.size()};
  }

  void finish(Queue& queue, Images& images) override {
    images.n_spectra = n_spectra_;
    images.weights.assign(3 * static_cast<std::size_t>(n_bins(config_)), 0);
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const std::size_t bin = k / 3 / static_cast<std::size_t>(config_.n_channels_per_bin);
      images.weights[3 * bin + k % 3] += weights_[k];
    }
    images_on_device(queue);
    images.pixels.resize(static_cast<std::size_t>(pixels_.size()));
    copy_bytes(queue, images.pixels.data(), pixels_.data(), pixels_.bytes());
    queue.synchronize();
  }

  void reset(Queue& queue) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    const auto clear = [&](const auto& buffer) {
      RYLE_CUDA(
          cudaMemsetAsync(buffer.data(), 0, static_cast<std::size_t>(buffer.bytes()), stream));
    };
    clear(sums_);
    clear(powers_);
    weights_.assign(3 * static_cast<std::size_t>(n_channels()), 0);
    n_spectra_ = 0;
  }

  Path path() const override { return Path::efield_dft; }
  std::string_view implementation() const override { return "cuda"; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  int n_channels() const { return static_cast<int>(config_.channels.n_channels); }

  void plan_array(Queue& queue) {
    std::vector<double> directions, enu_m, waves_per_m;
    std::vector<std::int32_t> pixels;
    dft_directions(config_, directions, pixels);
    dft_array(config_, used_, enu_m, waves_per_m);
    direction_ = to_device(queue, directions);
    pixel_ = to_device(queue, pixels);
    enu_m_ = to_device(queue, enu_m);
    waves_per_m_ = to_device(queue, waves_per_m);
    input_ = to_device(queue, used_.input);
    dft_.n_antennas = static_cast<int>(used_.antenna.size());
    dft_.n_channels = n_channels();
    dft_.n_directions = static_cast<int>(pixels.size());
    dft_.direction = direction_.data();
    dft_.pixel = pixel_.data();
    dft_.enu_m = enu_m_.data();
    dft_.waves_per_m = waves_per_m_.data();
  }

  void plan_shape() {
    int maximum = 0, n_sm = 0;
    RYLE_CUDA(cudaDeviceGetAttribute(&maximum, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_));
    RYLE_CUDA(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, device_));
    shape_ = field_dft_shape(dft_.n_antennas, maximum);
    if (shape_.tiles_per_warp == 0) {
      throw UnsupportedError("cuda imager: efield-dft of " + std::to_string(dft_.n_antennas) +
                             " antennas needs more shared memory than a block has; use efield or "
                             "the implementation cpu");
    }
    // Time is split where directions and channels alone leave multiprocessors idle.
    const auto longest = std::max<std::int64_t>(1, config_.n_spectra_per_image / 64);
    const std::int64_t blocks = std::max<std::int64_t>(
        1, std::int64_t{field_dft_blocks(shape_, dft_.n_directions)} * n_channels());
    n_slices_ = static_cast<int>(
        std::clamp<std::int64_t>(n_sm / blocks, 1, std::min<std::int64_t>(16, longest)));
  }

  void allocate() {
    const std::int64_t channels = n_channels();
    const auto device = MemorySpace::device;
    sums_ =
        Buffer<float>(checked_product({channels, n_slices_, 4, dft_.n_directions}, "sums"), device);
    joined_ = Buffer<float>(checked_product({channels, 4, dft_.n_directions}, "sums"), device);
    pixels_ = Buffer<float>(n_bins(config_) * n_planes(config_) * plane_size(config_), device);
    powers_ = Buffer<double>(channels * dft_.n_antennas * 4, device);
    pairs_ = Buffer<double>(3 * channels, device);
    // Operands of as many blocks of spectra as the scratch holds, one at least.
    const std::int64_t batch_bytes =
        channels * field_dft_batch_bytes(shape_, dft_.n_antennas) / shape_.n_spectra * kBlock;
    const std::int64_t wanted = (config_.n_spectra_per_image + kBlock - 1) / kBlock;
    const std::int64_t n_blocks =
        std::clamp<std::int64_t>(kScratchBytes / std::max<std::int64_t>(1, batch_bytes), 1,
                                 std::max<std::int64_t>(1, wanted));
    chunk_spectra_ = n_blocks * kBlock;
    operands_ = Buffer<std::byte>(n_blocks * batch_bytes, device);
    factor_ = Buffer<float>(channels * dft_.n_antennas * 4, device);
    scale_ = Buffer<float>(channels, device);
  }

  AllSkyConfig config_, each_channel_;
  int device_;
  std::unique_ptr<cuda::DeviceScope> scope_;  // of the constructor
  ArrayOfUsed used_;
  DftArgs dft_;
  FieldDftShape shape_;
  int n_slices_ = 1;
  std::int64_t chunk_spectra_ = 0;
  Buffer<std::byte> operands_;
  Buffer<double> direction_, enu_m_, waves_per_m_, powers_, pairs_;
  Buffer<std::int32_t> pixel_, input_;
  Buffer<float> factor_, scale_, sums_, joined_, pixels_;
  std::vector<cf32> gains_;
  std::vector<double> weights_;  // [channel][3]
  std::int64_t n_spectra_ = 0;
};

}  // namespace

std::unique_ptr<FieldImager> make_field_dft_cuda(Queue& queue, const AllSkyConfig& config) {
  return std::make_unique<FieldDftCuda>(queue, config);
}

}  // namespace ryle::image::detail
