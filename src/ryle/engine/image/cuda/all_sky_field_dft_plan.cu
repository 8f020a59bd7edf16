// SPDX-License-Identifier: BSD-3-Clause
// Host side of direct Fourier sums of every spectrum on the device.
#include <algorithm>
#include <cmath>

#include "ryle/engine/image/cuda/all_sky_field_dft.cuh"
#include "ryle/engine/image/cuda/all_sky_paths.cuh"

namespace ryle::image::detail {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{512} << 20;  // of operands
constexpr std::int64_t kBlock = 128;                             // spectra, a multiple of a block's

class FieldDftCuda final : public CudaFieldImager {
 public:
  FieldDftCuda(Queue& queue, const AllSkyConfig& config)
      : CudaFieldImager(queue, config, Path::efield_dft) {
    scaled_support_ = 1;
    plan_array(queue);
    plan_shape();
    allocate();
    clear(operands_, cuda::stream_of(queue));
    begin(queue);
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
    return images();
  }

 private:
  void run(const FieldBlocks& blocks, int n_spectra, cudaStream_t stream) override {
    FieldDftArgs args;
    args.dft = dft_;
    args.blocks = blocks;
    args.pitch = field_dft_pitch(dft_.n_antennas);
    args.operands = reinterpret_cast<__half*>(operands_.data());
    args.input = reinterpret_cast<const int2*>(input_.data());
    args.factor = reinterpret_cast<const float4*>(factor_.data());
    args.scale = scale_.data();
    args.sums = sums_.data();
    for (std::int64_t first = 0; first < n_spectra; first += chunk_spectra_) {
      const std::int64_t spectra = std::min(chunk_spectra_, n_spectra - first);
      args.first_spectrum = static_cast<int>(first);
      args.n_batches = static_cast<int>((spectra + shape_.n_spectra - 1) / shape_.n_spectra);
      launch_field_dft(shape_, args, n_slices_, stream);
    }
  }
  void clear_sums(cudaStream_t stream) override { clear(sums_, stream); }

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
    const int maximum = cuda::attribute_of(device_, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    const int n_sm = cuda::attribute_of(device_, cudaDevAttrMultiProcessorCount);
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
    // Operands of as many blocks of spectra as the scratch holds, one at least.
    const std::int64_t batch_bytes =
        channels * field_dft_batch_bytes(shape_, dft_.n_antennas) / shape_.n_spectra * kBlock;
    const std::int64_t wanted = (config_.n_spectra_per_image + kBlock - 1) / kBlock;
    const std::int64_t n_blocks =
        std::clamp<std::int64_t>(kScratchBytes / std::max<std::int64_t>(1, batch_bytes), 1,
                                 std::max<std::int64_t>(1, wanted));
    chunk_spectra_ = n_blocks * kBlock;
    operands_ = Buffer<std::byte>(n_blocks * batch_bytes, device);
  }

  DftArgs dft_;
  FieldDftShape shape_;
  int n_slices_ = 1;
  std::int64_t chunk_spectra_ = 0;
  Buffer<std::byte> operands_;
  Buffer<double> direction_, enu_m_, waves_per_m_;
  Buffer<std::int32_t> pixel_;
  Buffer<float> sums_, joined_;
};

}  // namespace

std::unique_ptr<FieldImager> make_field_dft_cuda(Queue& queue, const AllSkyConfig& config) {
  return std::make_unique<FieldDftCuda>(queue, config);
}

}  // namespace ryle::image::detail
