// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/core/baseline.hpp"
#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/engine/image/cuda/all_sky_device.cuh"
#include "ryle/engine/image/cuda/all_sky_host.hpp"

/// Private to the CUDA imager: what both visibility paths begin with and divide by.
namespace ryle::image::detail {

/// Sums of a correlator to calibrated products per baseline, and the pairs behind them.
class VisProducts {
 public:
  /// `heights`: gains take in the phases of the heights. `flip` as in VisArray, may be empty.
  VisProducts(Queue& queue, const AllSkyConfig& config, const ArrayOfUsed& used, bool heights,
              const std::vector<std::uint8_t>& flip)
      : config_(config), used_(used), heights_(heights) {
    const auto n = static_cast<std::int64_t>(used.antenna.size());
    n_baselines_ = config.remove_autos ? n * (n - 1) / 2 : n * (n + 1) / 2;
    flip_ = to_device(queue, flip.empty()
                                 ? std::vector<std::uint8_t>(static_cast<std::size_t>(n_baselines_))
                                 : flip);
    input_ = to_device(queue, used.input);
    products_ =
        Buffer<float>(checked_product({config.channels.n_channels, n_baselines_, 8}, "products"),
                      MemorySpace::device);
    pair_counts_ = Buffer<unsigned long long>(3 * config.channels.n_channels, MemorySpace::device);
    const auto inputs = static_cast<std::size_t>(config.channels.n_channels) * config.inputs.size();
    set_gains(queue, std::vector<cf32>(inputs, 1));
  }

  void set_gains(Queue& queue, std::span<const cf32> gains) {
    check_gains(config_, gains);
    const auto factor = factors(config_, used_, gains, heights_);
    pairs_host_ = pairs_per_spectrum(config_, gains);
    queue.synchronize();  // images in flight use the old ones
    if (factor_.size() == 0) {
      factor_ = Buffer<float>(std::ssize(factor), MemorySpace::device);
      pairs_ = Buffer<double>(std::ssize(pairs_host_), MemorySpace::device);
    }
    copy_bytes(queue, factor_.data(), factor.data(), factor_.bytes());
    copy_bytes(queue, pairs_.data(), pairs_host_.data(), pairs_.bytes());
    queue.synchronize();
  }

  const float4* run(Queue& queue, const VisInput& input) {
    const auto stream = cuda::stream_of(queue);
    const SumsView sums = view_of(input);
    const bool real = sums.kind == SumsView::Kind::cf32 || sums.kind == SumsView::Kind::cf64;
    counted_ = input.counts != nullptr || real;  // floats that are not finite do not count
    times_ = input.counts != nullptr ? 1.0 : static_cast<double>(input.n_spectra);
    if (counted_) {
      RYLE_CUDA(cudaMemsetAsync(pair_counts_.data(), 0,
                                static_cast<std::size_t>(pair_counts_.bytes()), stream));
    }
    VisArray array;
    array.n_antennas = static_cast<int>(used_.antenna.size());
    array.autos = !config_.remove_autos;
    array.n_baselines = n_baselines_;
    array.input = input_.data();
    array.factor = reinterpret_cast<const float2*>(factor_.data());
    array.flip = flip_.data();
    auto* products = reinterpret_cast<float4*>(products_.data());
    launch_products(sums, array, static_cast<int>(config_.channels.n_channels), input.counts,
                    counted_ ? pair_counts_.data() : nullptr, products, stream);
    return products;
  }

  FinishArgs finish(float* pixels) const {
    FinishArgs args = finish_args(config_, pixels);
    args.pairs = pairs_.data();
    args.counted = counted_ ? pair_counts_.data() : nullptr;
    args.times = times_;
    return args;
  }

  /// Weights of the last run; waits for it.
  std::vector<double> weights(Queue& queue) const {
    std::vector<unsigned long long> counted(pairs_host_.size());
    if (counted_) copy_bytes(queue, counted.data(), pair_counts_.data(), pair_counts_.bytes());
    queue.synchronize();
    std::vector<double> weights(3 * static_cast<std::size_t>(n_bins(config_)));
    for (std::size_t k = 0; k < pairs_host_.size(); ++k) {
      const double pairs = counted_ ? static_cast<double>(counted[k]) : pairs_host_[k];
      const std::size_t bin = k / 3 / static_cast<std::size_t>(config_.n_channels_per_bin);
      weights[3 * bin + k % 3] += pairs * times_;
    }
    return weights;
  }

  std::int64_t n_baselines() const { return n_baselines_; }
  const std::uint8_t* flip() const { return flip_.data(); }

 private:
  SumsView view_of(const VisInput& input) const {
    SumsView view;
    view.n_inputs = static_cast<int>(config_.inputs.size());
    view.channel_stride = n_pairs(view.n_inputs);
    view.data = input.sums;
    if (input.tiles != nullptr) {
      cuda::require_device_memory(input.tiles, "tiles of visibilities");
      view.kind = SumsView::Kind::tiles;
      view.data = input.tiles;
      view.tile_shift = input.tile_shift;
      view.channel_stride =
          cuda::ProductTiles::n_tiles(view.n_inputs) * cuda::ProductTiles::kSumsPerTile;
      return view;
    }
    cuda::require_device_memory(input.sums, "visibility sums");
    if (input.type == VisInput::Type::ci32) view.kind = SumsView::Kind::ci32;
    if (input.type == VisInput::Type::ci64) view.kind = SumsView::Kind::ci64;
    if (input.type == VisInput::Type::cf32) view.kind = SumsView::Kind::cf32;
    if (input.type == VisInput::Type::cf64) view.kind = SumsView::Kind::cf64;
    return view;
  }

  AllSkyConfig config_;
  ArrayOfUsed used_;
  bool heights_;
  std::int64_t n_baselines_ = 0;
  Buffer<std::uint8_t> flip_;
  Buffer<std::int32_t> input_;
  Buffer<float> factor_, products_;
  Buffer<double> pairs_;
  Buffer<unsigned long long> pair_counts_;
  std::vector<double> pairs_host_;
  bool counted_ = false;
  double times_ = 1;
};

}  // namespace ryle::image::detail
