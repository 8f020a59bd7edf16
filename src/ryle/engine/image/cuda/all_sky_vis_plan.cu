// SPDX-License-Identifier: BSD-3-Clause
// Host side of visibilities on the grid: lists and weights at plan time, four launches an image.
#include <algorithm>

#include "ryle/engine/image/all_sky_factories.hpp"
#include "ryle/engine/image/cuda/all_sky.hpp"
#include "ryle/engine/image/cuda/all_sky_apertures.cuh"
#include "ryle/engine/image/cuda/all_sky_paths.cuh"
#include "ryle/engine/image/cuda/all_sky_products.cuh"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

class VisGridCuda final : public CudaVisImager {
 public:
  VisGridCuda(Queue& queue, const AllSkyConfig& config)
      : CudaVisImager(queue, config, Path::vis_grid),
        positions_(positions_cells(config, used_)),
        flip_(flips(used_, positions_, !config.remove_autos)),
        transform_(queue, config.n_pixels) {
    products_.emplace(queue, config, used_, true, flip_);
    plan_lists(queue);
    plan_weights(queue);
    plan_tapers(queue);
    allocate();
    positions_ = {};
    flip_ = {};
    scope_.reset();
  }

  DeviceImages run(Queue& queue, const VisInput& input) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    const float4* products = products_->run(queue, input);
    auto* grid = reinterpret_cast<float4*>(grid_.data());
    auto* rows = reinterpret_cast<float2*>(rows_.data());
    GatherArgs gather;
    gather.work = work_.data();
    gather.n_work = work_.size();
    gather.entries = entries_.data();
    gather.weights = weights_.data();
    gather.n_footprints = products_->n_baselines();
    gather.n_taps = n_taps();
    gather.n_pixels = static_cast<int>(config_.n_pixels);
    if (config_.function.apertures.empty()) {
      launch_gather_products(gather, products, grid, stream);
    } else {
      launch_gather_aperture_products(gather, reinterpret_cast<const int2*>(baselines_.data()),
                                      static_cast<int>(used_.antenna.size()), support(), products,
                                      grid, stream);
    }
    FinishArgs finish = products_->finish(pixels_.data());
    finish.inverse_taper = taper_.data();
    finish.taper_per_channel = per_channel_taper();
    const int per_bin = finish.n_channels_per_bin;
    launch_product_rows(transform_.fft(), grid, n_channels(), per_channel_taper() ? 1 : per_bin,
                        n_transforms_, rows, stream);
    launch_product_columns(transform_.fft(), rows, per_channel_taper() ? per_bin : 1, n_transforms_,
                           static_cast<int>(n_bins(config_)), finish, stream);
    return images();
  }

 private:
  int support() const { return static_cast<int>(config_.function.support); }
  bool correlated() const { return config_.function.correlated; }
  int n_taps() const { return correlated() ? 2 * support() - 1 : support(); }
  // The taper of correlated functions depends on where the antennas lie in their cells.
  bool per_channel_taper() const { return correlated(); }

  void plan_lists(Queue& queue) {
    std::vector<TileLists> of_channel(static_cast<std::size_t>(n_channels()));
    Queue::cpu().parallel_for(n_channels(), [&](std::int64_t channel) {
      const auto c = static_cast<std::size_t>(channel);
      const auto footprints =
          baseline_footprints(used_, &positions_[2 * c * used_.antenna.size()], flip_,
                              !config_.remove_autos, support(), correlated());
      of_channel[c] = tile_lists(footprints, n_taps(), static_cast<int>(config_.n_pixels),
                                 static_cast<int>(channel));
    });
    TileLists lists;
    for (auto& each : of_channel) append(lists, std::exchange(each, {}));
    work_ = to_device(queue, lists.work);
    entries_ = to_device(queue, lists.entries);
  }

  void plan_weights(Queue& queue) {
    if (!config_.function.apertures.empty()) {
      weights_ = to_device(queue, aperture_table(config_, used_));
      baselines_ = to_device(queue, baseline_antennas(used_, flip_, !config_.remove_autos));
      return;
    }
    const std::int64_t n_baselines = products_->n_baselines();
    weights_ = Buffer<float>(
        checked_product({n_channels(), n_baselines, 2, n_taps()}, "weights of baselines"),
        MemorySpace::device);
    const auto position = to_device(queue, positions_);
    WeightTables tables;
    tables.n_antennas = static_cast<int>(used_.antenna.size());
    tables.autos = !config_.remove_autos;
    tables.n_baselines = n_baselines;
    tables.support = support();
    tables.beta = config_.function.beta_per_cell * static_cast<double>(support());
    tables.position = reinterpret_cast<const double2*>(position.data());
    tables.flip = products_->flip();
    if (n_baselines > 0) {
      launch_baseline_weights(tables, n_channels(), correlated(), weights_.data(),
                              cuda::stream_of(queue));
    }
    queue.synchronize();  // `position` goes
  }

  void plan_tapers(Queue& queue) {
    std::vector<float> tapers;
    if (!correlated()) tapers = inverse_taper(config_, direct_taper(config_));
    for (std::int64_t channel = 0; correlated() && channel < n_channels(); ++channel) {
      const auto one = inverse_taper(config_, correlated_taper(config_, channel));
      tapers.insert(tapers.end(), one.begin(), one.end());
    }
    taper_ = to_device(queue, tapers);
  }

  void allocate() {
    const std::int64_t size = config_.n_pixels * config_.n_pixels;
    n_transforms_ = per_channel_taper() ? n_channels() : static_cast<int>(n_bins(config_));
    const auto device = MemorySpace::device;
    grid_ = Buffer<float>(checked_product({n_channels(), size, 8}, "uv grids"), device);
    rows_ = Buffer<float>(checked_product({n_transforms_, size, 4}, "transforms"), device);
  }

  std::vector<double> positions_;   // of the constructor
  std::vector<std::uint8_t> flip_;  // of the constructor
  GridTransform transform_;
  int n_transforms_ = 0;
  Buffer<TileWork> work_;
  Buffer<std::uint32_t> entries_;
  Buffer<std::int32_t> baselines_;  // of apertures
  Buffer<float> weights_, taper_, grid_, rows_;
};

}  // namespace

std::unique_ptr<VisImager> make_vis_cuda(Queue& queue, const AllSkyConfig& config, Path path) {
  if (path == Path::vis_grid) return std::make_unique<VisGridCuda>(queue, config);
  if (path == Path::vis_dft) return make_vis_dft_cuda(queue, config);
  throw UnsupportedError("imager: path " + std::string(name(path)) +
                         " has no CUDA code; vis-grid and vis-dft have");
}

}  // namespace ryle::image::detail

namespace ryle::image {

DeviceImages execute_on_device(Queue& queue, VisImager& imager, const VisInput& input) {
  auto* cuda = dynamic_cast<detail::CudaVisImager*>(&imager);
  if (cuda == nullptr) {
    throw UnsupportedError("execute_on_device: the imager \"" +
                           std::string(imager.implementation()) +
                           "\" works in host memory; use execute()");
  }
  return cuda->run(queue, input);
}

}  // namespace ryle::image
