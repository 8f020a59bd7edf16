// SPDX-License-Identifier: BSD-3-Clause
// Host side of direct Fourier sums of visibilities on the device.
#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/cuda/all_sky_dft.cuh"
#include "ryle/engine/image/cuda/all_sky_paths.cuh"
#include "ryle/engine/image/cuda/all_sky_products.cuh"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

class VisDftCuda final : public CudaVisImager {
 public:
  VisDftCuda(Queue& queue, const AllSkyConfig& config)
      : CudaVisImager(queue, config, Path::vis_dft) {
    products_.emplace(queue, config, used_, true, std::vector<std::uint8_t>());
    check_shared();
    plan_directions(queue);
    plan_array(queue);
    const std::int64_t channels = config.channels.n_channels;
    const auto device = MemorySpace::device;
    operands_ = Buffer<std::uint32_t>(
        checked_product({channels, 4, dft_tiles(args_.n_antennas), args_.split ? 512 : 256},
                        "operands"),
        device);
    largest_ = Buffer<unsigned>(channels, device);
    sums_ = Buffer<float>(checked_product({channels, 4, args_.n_directions}, "sums"), device);
    scope_.reset();
  }

  DeviceImages run(Queue& queue, const VisInput& input) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    const float4* products = products_->run(queue, input);
    auto* operands = reinterpret_cast<uint4*>(operands_.data());
    launch_dft_operands(args_, products, largest_.data(), operands, stream);
    launch_dft(args_, operands, largest_.data(), sums_.data(), stream);
    launch_dft_finish(args_, sums_.data(), products_->finish(pixels_.data()), plane_size(config_),
                      stream);
    return images();
  }

 private:
  void check_shared() {
    const int maximum = cuda::attribute_of(device_, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    const auto n = static_cast<std::int64_t>(used_.antenna.size());
    // Few baselines average few roundings: their operands are carried as two halves each.
    args_.split = n <= kDftSplitAntennas;
    if (dft_shared_bytes(n, args_.split) > maximum) {
      throw UnsupportedError("cuda imager: vis-dft of " + std::to_string(n) +
                             " antennas needs more shared memory than a block has; use vis-grid or "
                             "the implementation cpu");
    }
    prepare_dft(args_.split, dft_shared_bytes(n, args_.split));
  }

  void plan_directions(Queue& queue) {
    std::vector<double> directions;
    std::vector<std::int32_t> pixels;
    dft_directions(config_, directions, pixels);
    args_.n_directions = static_cast<int>(pixels.size());
    direction_ = to_device(queue, directions);
    pixel_ = to_device(queue, pixels);
    args_.direction = direction_.data();
    args_.pixel = pixel_.data();
  }

  void plan_array(Queue& queue) {
    std::vector<double> enu_m, waves_per_m;
    dft_array(config_, used_, enu_m, waves_per_m);
    enu_m_ = to_device(queue, enu_m);
    waves_per_m_ = to_device(queue, waves_per_m);
    args_.n_antennas = static_cast<int>(used_.antenna.size());
    args_.n_channels = static_cast<int>(config_.channels.n_channels);
    args_.n_baselines = products_->n_baselines();
    args_.autos = !config_.remove_autos;
    args_.enu_m = enu_m_.data();
    args_.waves_per_m = waves_per_m_.data();
  }

  DftArgs args_;
  Buffer<double> direction_, enu_m_, waves_per_m_;
  Buffer<std::int32_t> pixel_;
  Buffer<std::uint32_t> operands_;
  Buffer<unsigned> largest_;
  Buffer<float> sums_;
};

}  // namespace

void dft_directions(const AllSkyConfig& config, std::vector<double>& directions,
                    std::vector<std::int32_t>& pixels) {
  const auto add = [&](const std::array<double, 3>& d, std::size_t pixel) {
    if (!(d[2] > 0)) return;
    directions.insert(directions.end(), {d[0], d[1], d[2] - 1});
    pixels.push_back(static_cast<std::int32_t>(pixel));
  };
  for (std::size_t k = 0; k < config.directions.size(); ++k) add(config.directions[k], k);
  if (!config.directions.empty()) return;
  const ArrayPlane plane = fit_plane(config);
  for (std::int64_t p = 0; p < plane_size(config); ++p) {
    add(direction_of_pixel(config, plane, static_cast<double>(p % config.n_pixels),
                           static_cast<double>(p / config.n_pixels)),
        static_cast<std::size_t>(p));
  }
}

void dft_array(const AllSkyConfig& config, const ArrayOfUsed& used, std::vector<double>& enu_m,
               std::vector<double>& waves_per_m) {
  for (const auto a : used.antenna) {
    for (const double v : config.antenna_enu_m[static_cast<std::size_t>(a)]) enu_m.push_back(v);
  }
  for (std::int64_t channel = 0; channel < config.channels.n_channels; ++channel) {
    waves_per_m.push_back(config.channels.center_hz(channel) / kSpeedOfLight_m_per_s);
  }
}

std::unique_ptr<VisImager> make_vis_dft_cuda(Queue& queue, const AllSkyConfig& config) {
  return std::make_unique<VisDftCuda>(queue, config);
}

}  // namespace ryle::image::detail
