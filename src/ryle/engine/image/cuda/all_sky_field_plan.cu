// SPDX-License-Identifier: BSD-3-Clause
// Host side of voltages to images on the device: tables at plan time, batches or the fused kernel,
// autocorrelations taken out once an image.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ryle/engine/image/all_sky_factories.hpp"
#include "ryle/engine/image/cuda/all_sky_apertures.cuh"
#include "ryle/engine/image/cuda/all_sky_fused.cuh"
#include "ryle/engine/image/cuda/all_sky_half.cuh"
#include "ryle/engine/image/cuda/all_sky_paths.cuh"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{256} << 20;  // of grids and of their rows

class EfieldCuda final : public CudaFieldImager {
 public:
  EfieldCuda(Queue& queue, const AllSkyConfig& config, Path path)
      : CudaFieldImager(queue, config, path), transform_(queue, config.n_pixels) {
    if (apertures() && path == Path::efield_half) {
      throw UnsupportedError(
          "cuda imager: efield-half makes rows of separable functions; apertures per antenna have "
          "no CUDA code in half precision: use the path efield");
    }
    if (path == Path::efield_half) scaled_support_ = support();
    plan_antennas(queue);
    allocate();
    begin(queue);
  }

  DeviceImages images_on_device(Queue& queue) override {
    const cuda::DeviceScope scope(device_);
    const auto stream = cuda::stream_of(queue);
    copy_bytes(queue, pairs_.data(), weights_.data(), pairs_.bytes());
    float* lags = nullptr;
    if (config_.remove_autos && apertures()) {
      auto* complex_lags = reinterpret_cast<float2*>(lags_.data());
      launch_aperture_lags(powers_.data(), antenna_weights_.data(), n_antennas(), support(),
                           n_channels(), complex_lags, stream);
      launch_subtract_lags(static_cast<int>(config_.n_pixels), complex_lags, support(),
                           n_channels(), n_slices_, planes_.data(), stream);
    } else if (config_.remove_autos) {
      lags = lags_.data();
      launch_auto_lags(powers_.data(), antenna_weights_.data(), n_antennas(), support(),
                       n_channels(), lags, stream);
    }
    if (planes_unwritten_) clear(planes_, stream);  // nothing came
    FinishArgs finish = finish_args(config_, pixels_.data());
    finish.pairs = pairs_.data();
    finish.inverse_taper = taper_.data();
    launch_field_finish(static_cast<int>(config_.n_pixels), planes_.data(), n_slices_, lags,
                        support(), finish, stream);
    reset(queue);
    return images();
  }

 private:
  void run(const FieldBlocks& blocks, int n_spectra, cudaStream_t stream) override {
    if (path_ == Path::efield_half) {
      run_half(blocks, n_spectra, stream);
    } else if (fused_.fits) {
      run_fused(blocks, n_spectra, stream);
    } else {
      run_batches(blocks, n_spectra, stream);
    }
  }
  void clear_sums(cudaStream_t stream) override {
    // The fused kernel writes the first gulp over what is there.
    planes_unwritten_ = fused_.fits;
    if (!fused_.fits) clear(planes_, stream);
  }
  bool apertures() const { return !config_.function.apertures.empty(); }
  int support() const { return static_cast<int>(config_.function.support); }

  void plan_antennas(Queue& queue) {
    const auto positions = positions_cells(config_, used_);
    TileLists lists;
    first_work_.push_back(0);
    std::vector<float> tapers;
    for (int channel = 0; channel < n_channels(); ++channel) {
      const auto at = static_cast<std::size_t>(channel) * used_.antenna.size();
      const auto footprints = antenna_footprints(used_, &positions[2 * at], support());
      append(lists, tile_lists(footprints, support(), static_cast<int>(config_.n_pixels), channel));
      first_work_.push_back(std::ssize(lists.work));
      const auto one = inverse_taper(config_, correlated_taper(config_, channel));
      tapers.insert(tapers.end(), one.begin(), one.end());
    }
    work_ = to_device(queue, lists.work);
    entries_ = to_device(queue, lists.entries);
    input_ = to_device(queue, used_.input);
    taper_ = to_device(queue, tapers);
    if (apertures()) {  // complex and not separable: on the grid in batches
      antenna_weights_ = to_device(queue, aperture_table(config_, used_));
      return;
    }
    const auto position = to_device(queue, positions);
    antenna_weights_ = Buffer<float>(std::int64_t{n_channels()} * n_antennas() * 2 * support(),
                                     MemorySpace::device);
    WeightTables tables;
    tables.n_antennas = n_antennas();
    tables.support = support();
    tables.beta = config_.function.beta_per_cell * static_cast<double>(support());
    tables.position = reinterpret_cast<const double2*>(position.data());
    launch_antenna_weights(tables, n_channels(), antenna_weights_.data(), cuda::stream_of(queue));
    queue.synchronize();  // `position` goes
    if (path_ == Path::efield_half) {
      plan_half(queue, positions);
    } else {
      plan_fused(queue, positions);
    }
  }

  void plan_half(Queue& queue, const std::vector<double>& positions) {
    const int maximum = cuda::attribute_of(device_, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    half_ = half_tables(config_, used_, positions, maximum);
    if (!half_.why_not.empty()) {
      throw UnsupportedError("cuda imager: efield-half of " + half_.why_not +
                             "; use the path efield");
    }
    prepare_half(half_bytes());
    half_slots_ = to_device(queue, half_.slots);
    half_tiles_ = to_device(queue, half_.tiles);
    half_pairs_ = to_device(queue, half_.pairs);
    half_blocks_ = to_device(queue, half_.blocks);
    n_slices_ = slices_for(std::ssize(half_.blocks) * n_channels());
  }

  std::int64_t half_bytes() const {
    return half_shared_bytes(half_.n_antennas, half_.n_pairs, half_.n_tiles, half_.n_spectra);
  }

  void plan_fused(Queue& queue, const std::vector<double>& positions) {
    if (cuda::attribute_of(device_, cudaDevAttrComputeCapabilityMajor) < 9)
      return;  // no clusters of thread blocks
    const int maximum = cuda::attribute_of(device_, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    fused_ = fused_tables(config_, used_, positions, maximum);
    if (!fused_.fits) return;
    prepare_fused(fused_shared_bytes(fused_));
    fused_tiles_ = to_device(queue, fused_.tiles);
    fused_empty_ = to_device(queue, fused_.empty);
    fused_who_ = to_device(queue, fused_.who);
    fused_weights_ = to_device(queue, fused_.weights);
    n_slices_ = slices_for(2 * n_channels());
  }

  // Time is split where channels alone leave multiprocessors idle: as many waves of blocks as
  // share the work best, and pieces of 32 spectra at least.
  int slices_for(std::int64_t blocks_of_all) const {
    const int n_sm = cuda::attribute_of(device_, cudaDevAttrMultiProcessorCount);
    int n_slices = 1;
    double best = 0;
    const auto longest = std::max<std::int64_t>(1, config_.n_spectra_per_image / 32);
    for (int slices = 1; slices <= std::min<std::int64_t>(16, longest); ++slices) {
      const double blocks = static_cast<double>(blocks_of_all) * slices;
      const double used = blocks / (std::ceil(blocks / n_sm) * n_sm);
      if (used > best + 0.02) {
        best = used;
        n_slices = slices;
      }
    }
    return n_slices;
  }

  void allocate() {
    const std::int64_t size = config_.n_pixels * config_.n_pixels, channels = n_channels();
    const auto device = MemorySpace::device;
    planes_ =
        Buffer<float>(checked_product({channels, n_slices_, 4, size}, "image planes"), device);
    const std::int64_t n_lags = 2 * support() - 1;
    lags_ = Buffer<float>(
        channels * (apertures() ? 6 * n_lags * n_lags : 4 * support() * support()), device);
    if (fused_.fits || path_ == Path::efield_half) return;
    // One (channel, spectrum) takes 16 bytes a cell on the grid and 16 as rows.
    const std::int64_t maximum = std::max<std::int64_t>(1, kScratchBytes / (32 * size));
    batch_channels_ = static_cast<int>(std::min<std::int64_t>(channels, maximum));
    batch_spectra_ = static_cast<int>(std::min<std::int64_t>(
        {maximum / batch_channels_, 64, std::max<std::int64_t>(1, config_.n_spectra_per_image)}));
    const std::int64_t both = std::int64_t{batch_channels_} * batch_spectra_;
    fields_ = Buffer<float>(both * n_antennas() * 4, device);
    grid_ = Buffer<float>(both * size * 4, device);
    rows_ = Buffer<float>(both * size * 4, device);
  }

  void run_fused(const FieldBlocks& blocks, int n_spectra, cudaStream_t stream) {
    FusedArgs args;
    args.blocks = blocks;
    args.n_channels = n_channels();
    args.n_antennas = n_antennas();
    args.n_spectra = n_spectra;
    args.n_rows = fused_.n_rows;
    args.n_tile_columns = fused_.n_tile_columns;
    args.n_quads = fused_.n_quads;
    args.n_empty = fused_.n_empty;
    args.n_rounds = fused_.n_rounds;
    args.n_groups = fused_.n_groups;
    args.first_column[0] = fused_.first_column[0];
    args.first_column[1] = fused_.first_column[1];
    args.transposed = fused_.transposed;
    args.first_gulp = std::exchange(planes_unwritten_, false);
    args.input = reinterpret_cast<const int2*>(input_.data());
    args.factor = reinterpret_cast<const float4*>(factor_.data());
    args.tiles = fused_tiles_.data();
    args.empty = fused_empty_.data();
    args.who = fused_who_.data();
    args.weights = fused_weights_.data();
    args.planes = planes_.data();
    launch_fused(args, n_slices_, fused_shared_bytes(fused_), stream);
  }

  void run_half(const FieldBlocks& blocks, int n_spectra, cudaStream_t stream) {
    if (n_antennas() == 0) return;
    HalfArgs args;
    args.blocks = blocks;
    args.n_channels = n_channels();
    args.n_antennas = n_antennas();
    args.n_spectra = n_spectra;
    args.n_pixels = static_cast<int>(config_.n_pixels);
    args.support = support();
    args.n_pairs = half_.n_pairs;
    args.n_tiles = half_.n_tiles;
    args.n_blocks = static_cast<int>(half_.blocks.size());
    args.pitch = operand_pitch(n_antennas());
    args.plane = half_plane(half_.n_pairs);
    args.input = reinterpret_cast<const int2*>(input_.data());
    args.factor = reinterpret_cast<const float4*>(factor_.data());
    args.scale = scale_.data();
    args.weights = antenna_weights_.data();
    args.slots = half_slots_.data();
    args.tiles = half_tiles_.data();
    args.pairs = half_pairs_.data();
    args.pixels = half_blocks_.data();
    args.planes = planes_.data();
    launch_half(args, half_.n_spectra, n_slices_, half_bytes(), stream);
  }

  void run_batches(const FieldBlocks& blocks, int n_spectra, cudaStream_t stream) {
    auto* fields = reinterpret_cast<float4*>(fields_.data());
    auto* grid = reinterpret_cast<float4*>(grid_.data());
    auto* rows = reinterpret_cast<float2*>(rows_.data());
    const std::int64_t size = config_.n_pixels * config_.n_pixels;
    for (int channel = 0; channel < n_channels(); channel += batch_channels_) {
      const int channels = std::min(batch_channels_, n_channels() - channel);
      // Which tiles are touched differs between channels: what is not must be 0.
      RYLE_CUDA(cudaMemsetAsync(grid, 0, static_cast<std::size_t>(grid_.bytes()), stream));
      int planes = 0;
      for (int first = 0; first < n_spectra; first += batch_spectra_) {
        const int spectra = std::min(batch_spectra_, n_spectra - first);
        if (planes != 0 && planes != spectra) {  // another layout
          RYLE_CUDA(cudaMemsetAsync(grid, 0, static_cast<std::size_t>(grid_.bytes()), stream));
        }
        planes = spectra;
        launch_fields(blocks, array(), channel, channels, first, spectra, fields, stream);
        GatherArgs gather;
        gather.work = work_.data() + first_work_[static_cast<std::size_t>(channel)];
        gather.n_work = first_work_[static_cast<std::size_t>(channel + channels)] -
                        first_work_[static_cast<std::size_t>(channel)];
        gather.entries = entries_.data();
        gather.weights = antenna_weights_.data();
        gather.n_footprints = n_antennas();
        gather.n_taps = support();
        gather.n_pixels = static_cast<int>(config_.n_pixels);
        gather.first_channel = channel;
        gather.n_planes = spectra;
        if (apertures()) {
          launch_gather_aperture_fields(gather, fields, grid, stream);
        } else {
          launch_gather_fields(gather, fields, grid, stream);
        }
        launch_field_rows(transform_.fft(), grid, channels * spectra, rows, stream);
        launch_field_columns(transform_.fft(), rows, channels, spectra,
                             planes_.data() + channel * 4 * size, stream);
      }
    }
  }

  GridTransform transform_;
  Buffer<TileWork> work_;
  std::vector<std::int64_t> first_work_;  // [channel]
  Buffer<std::uint32_t> entries_;
  Buffer<float> antenna_weights_, taper_, fields_, grid_, rows_, planes_, lags_;
  FusedTables fused_;
  Buffer<FusedTile> fused_tiles_;
  Buffer<std::uint32_t> fused_who_, fused_empty_;
  Buffer<float> fused_weights_;
  HalfTables half_;
  Buffer<HalfSlot> half_slots_;
  Buffer<HalfTile> half_tiles_;
  Buffer<HalfPair> half_pairs_;
  Buffer<HalfBlock> half_blocks_;
  bool planes_unwritten_ = false;  // since reset()
  int n_slices_ = 1;
  int batch_channels_ = 1;
  int batch_spectra_ = 1;
};

}  // namespace

std::unique_ptr<FieldImager> make_field_cuda(Queue& queue, const AllSkyConfig& config, Path path) {
  if (path == Path::efield || path == Path::efield_half) {
    return std::make_unique<EfieldCuda>(queue, config, path);
  }
  if (path == Path::efield_dft) return make_field_dft_cuda(queue, config);
  throw UnsupportedError("imager: path " + std::string(name(path)) + " takes no voltages");
}

}  // namespace ryle::image::detail

namespace ryle::image {

DeviceImages finish_on_device(Queue& queue, FieldImager& imager) {
  auto* cuda = dynamic_cast<detail::CudaFieldImager*>(&imager);
  if (cuda == nullptr) {
    throw UnsupportedError("finish_on_device: the imager \"" +
                           std::string(imager.implementation()) +
                           "\" works in host memory; use finish()");
  }
  return cuda->images_on_device(queue);
}

}  // namespace ryle::image
