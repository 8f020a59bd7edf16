// SPDX-License-Identifier: BSD-3-Clause
// Gridded visibilities on the CPU. Image bins in parallel, and parts of the list of baselines when
// bins are few; every part has its own grid, and grids are added in a fixed order.
#include <algorithm>
#include <memory>
#include <string>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/image/cpu/field_layout.hpp"
#include "ryle/engine/image/cpu/paths.hpp"
#include "ryle/engine/image/cpu/uv_apertures.hpp"
#include "ryle/engine/image/cpu/uv_plan.hpp"

namespace ryle::image::detail {
namespace {

/// Runs a loop, in parallel or not.
using Loop = std::function<void(std::int64_t, const std::function<void(std::int64_t)>&)>;

class VisGridCpu final : public VisImager, private CpuImager {
 public:
  VisGridCpu(Queue& queue, const AllSkyConfig& config, std::string_view isa)
      : CpuImager(queue, config, Path::vis_grid, isa),
        sky_(make_sky_columns(config, output_, kernels_.lanes)),
        transform_(config.n_pixels),
        pairs_(make_pairs(config, roles_, !config.remove_autos)),
        geometry_(make_uv_geometry(config, kernels_)),
        n_parts_(parts_for(n_bins_)),
        apertures_(!config.function.apertures.empty()) {
    if (apertures_) n_parts_ = 1;
    channels_.resize(n_channels_);
    gains_.resize(n_channels_);
    queue.parallel_for(n_channels_, [&](std::int64_t c) {
      channels_[c] = make_uv_channel(config_, roles_, pairs_, geometry_, c, n_parts_);
    });
    if (apertures_) uv_apertures_ = UvApertures(config_, roles_);
    make_tapers(queue);
    make_segments();
    allocate();
    set_gains(queue, ones());
  }

  void set_gains(Queue&, std::span<const cf32> gains) override {
    take_gains(gains, [&](std::int64_t c, std::span<const cf32> used) {
      gains_[c].set(roles_, used, channels_[c].heights);
    });
  }

  void execute(Queue& queue, const VisInput& input, Images& images) override {
    output_.prepare(images);
    std::vector<double> weights(3 * n_bins_ * n_parts_);
    const auto of_bins = uncounted_weights(config_, input_gains_, input);
    for (std::size_t i = 0; i < of_bins.size(); ++i) {
      weights[i / 3 * static_cast<std::size_t>(3 * n_parts_) + i % 3] = of_bins[i];
    }
    if (n_parts_ == 1) {
      const Loop serial = [](std::int64_t n, const std::function<void(std::int64_t)>& body) {
        for (std::int64_t i = 0; i < n; ++i) body(i);
      };
      run_tasks(queue, n_slots_, n_bins_, [&](std::int64_t slot, std::int64_t bin) {
        image_bin(input, bin, slots_[slot], serial, weights, images);
      });
    } else {
      const Loop parallel = [&](std::int64_t n, const std::function<void(std::int64_t)>& body) {
        queue.parallel_for(n, body);
      };
      for (std::int64_t bin = 0; bin < n_bins_; ++bin) {
        image_bin(input, bin, slots_[0], parallel, weights, images);
      }
    }
    images.n_spectra = input.n_spectra;
  }

  Path path() const override { return Path::vis_grid; }
  std::string_view implementation() const override { return name_; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  struct Slot {
    std::vector<Buffer<float>> grids, products;  // [part]
    Buffer<float> cells;                         // [row][G][8]
    Buffer<float> middle;
    Buffer<float> planes;   // [XX, YY, U, V][frequency index y][column]
    Buffer<float> scratch;  // [part]: 4 transforms
    std::vector<double> sums;
  };
  /// Neighbours in the image that are neighbours in the planes, too.
  struct Segment {
    std::int64_t sky, plane, n;  // places in the list of pixels with sky, in a plane; length
  };

  std::int64_t rows_per_vector() const { return kernels_.lanes / 4; }
  std::int64_t padded_rows(std::int64_t n) const {
    return (n + rows_per_vector() - 1) / rows_per_vector() * rows_per_vector();
  }
  std::int64_t chunk_pairs() const {
    return (sky_.n_columns + 2 * rows_per_vector() - 1) / (2 * rows_per_vector());
  }
  // Columns as the transform writes them, the last ones without sky.
  std::int64_t plane_row() const { return 2 * rows_per_vector() * chunk_pairs(); }
  std::int64_t plane_floats() const { return geometry_.g * plane_row(); }
  std::int64_t scratch_floats() const { return 4 * config_.n_pixels * 2 * kernels_.lanes; }

  void make_tapers(Queue& queue) {
    // Direct: one for all channels. Correlated: one, or three with apertures, per channel.
    inverse_tapers_.resize(config_.function.correlated ? static_cast<std::size_t>(n_channels_) : 1);
    queue.parallel_for(static_cast<std::int64_t>(inverse_tapers_.size()), [&](std::int64_t c) {
      const auto taper =
          config_.function.correlated ? correlated_taper(config_, c) : direct_taper(config_);
      const std::size_t plane = static_cast<std::size_t>(config_.n_pixels * config_.n_pixels);
      auto& inverse = inverse_tapers_[c];
      for (std::size_t t = 0; t < taper.size() / plane; ++t) {
        for (const std::int32_t p : output_.pixels()) {
          inverse.push_back(1 / taper[t * plane + static_cast<std::size_t>(p)]);
        }
      }
    });
  }

  // Frequencies begin in the middle of the image: its rows come in two halves.
  void make_segments() {
    const std::int64_t g = geometry_.g;
    for (const auto& run : output_.runs()) {
      const std::int64_t y = (run.pixel / g + g - g / 2) % g;
      for (std::int64_t i = 0; i < run.n;) {
        const std::int64_t x = run.pixel % g + i;
        const std::int64_t n = x < g / 2 ? std::min(run.n - i, g / 2 - x) : run.n - i;
        const std::int64_t column = sky_.column_of[(x + g - g / 2) % g];
        segments_.push_back({run.sky + i, y * plane_row() + column, n});
        i += n;
      }
    }
  }

  void allocate() {
    const auto n_pairs = static_cast<std::int64_t>(pairs_.size());
    for (std::int64_t s = 0; s < (n_parts_ == 1 ? n_slots_ : 1); ++s) {
      Slot slot;
      for (std::int64_t part = 0; part < n_parts_; ++part) {
        if (apertures_) continue;
        slot.grids.emplace_back(geometry_.size());
        slot.products.emplace_back((n_pairs / n_parts_ + 1) * kCellFloats);
      }
      const std::int64_t rows = padded_rows(geometry_.g / 2 + 1);
      slot.cells = Buffer<float>(rows * geometry_.g * kCellFloats);
      slot.middle = Buffer<float>(2 * chunk_pairs() * rows * 2 * kernels_.lanes);
      slot.planes = Buffer<float>(4 * plane_floats());
      // Scratch for the tasks that may run at once: row groups, or pairs of chunks.
      const std::int64_t at_once =
          n_parts_ == 1 ? 1 : std::max(rows / rows_per_vector(), chunk_pairs());
      slot.scratch = Buffer<float>(at_once * scratch_floats());
      slot.sums.resize(output_.n_sums() * output_.size());
      slots_.push_back(std::move(slot));
    }
  }

  void image_bin(const VisInput& input, std::int64_t bin, Slot& slot, const Loop& loop,
                 std::vector<double>& weights, Images& images) {
    double* w = weights.data() + 3 * bin * n_parts_;
    const std::int64_t first = bin * config_.n_channels_per_bin;
    const std::int64_t last = std::min(n_channels_, first + config_.n_channels_per_bin);
    // Pixels are the same in all channels: where the taper is, too, channels share a transform.
    const std::int64_t step = config_.function.correlated ? 1 : last - first;
    for (std::int64_t c = first; c < last; c += step) {
      std::int64_t n_rows = 0;
      for (std::int64_t i = c; i < c + step; ++i) {
        n_rows = std::max(n_rows, channels_[i].n_rows);
      }
      if (apertures_) {
        n_rows = geometry_.g / 2 + 1;
        grid_apertures(input, c, slot, w);
      } else {
        grid_parts(input, c, c + step, slot, loop, w);
        loop(n_rows, [&](std::int64_t v) {
          const float* grids[kTasksWanted];
          for (std::int64_t p = 0; p < n_parts_; ++p) grids[p] = slot.grids[std::size_t(p)].data();
          fold_row(geometry_, grids, n_parts_, v,
                   slot.cells.data() + v * geometry_.g * kCellFloats);
        });
      }
      transform(n_rows, slot, loop);
      add_planes(c, c == first, slot, loop);
    }
    double total[3] = {};
    for (std::int64_t part = 0; part < n_parts_; ++part) {
      for (int p = 0; p < 3; ++p) total[p] += w[3 * part + p];
    }
    output_.write(bin, slot.sums.data(), total, images);
  }

  void grid_parts(const VisInput& input, std::int64_t first, std::int64_t last, Slot& slot,
                  const Loop& loop, double* weights) {
    const auto n_inputs = static_cast<std::int64_t>(config_.inputs.size());
    const auto n_pairs = static_cast<std::int64_t>(pairs_.size());
    loop(n_parts_, [&](std::int64_t part) {
      const std::int64_t begin = n_pairs * part / n_parts_, end = n_pairs * (part + 1) / n_parts_;
      Buffer<float>& grid = slot.grids[part];
      std::fill_n(grid.data(), grid.size(), 0.0f);
      float* products = slot.products[part].data();
      for (std::int64_t c = first; c < last; ++c) {
        const auto& channel = channels_[c];
        const PairGains gains = gains_[c].view();
        kernels_.convert(sum_type(input.type), channel_sums(input, c, n_inputs),
                         pairs_.data() + begin, end - begin, gains, channel.flip.data() + begin,
                         products);
        kernels_.grid(channel.table(geometry_, part), products, grid.data());
        if (needs_counting(input)) {
          count_pairs(input, c, n_inputs,
                      {pairs_.data() + begin, static_cast<std::size_t>(end - begin)}, gains,
                      weights + 3 * part);
        }
      }
    });
  }

  void grid_apertures(const VisInput& input, std::int64_t channel, Slot& slot, double* weights) {
    const auto n_inputs = static_cast<std::int64_t>(config_.inputs.size());
    const PairGains gains = gains_[channel].view();
    std::vector<float> products(pairs_.size() * static_cast<std::size_t>(kCellFloats));
    kernels_.convert(sum_type(input.type), channel_sums(input, channel, n_inputs), pairs_.data(),
                     static_cast<std::int64_t>(pairs_.size()), gains, nullptr, products.data());
    uv_apertures_.grid(config_, roles_, channel, pairs_, products, slot.cells.data());
    if (needs_counting(input)) count_pairs(input, channel, n_inputs, pairs_, gains, weights);
  }

  // Rows, then columns of the half plane to slot.planes.
  void transform(std::int64_t n_rows, Slot& slot, const Loop& loop) {
    const UvImage image{transform_.plan(),     n_rows,      sky_.n_columns,
                        sky_.column_of.data(), plane_row(), plane_floats()};
    const std::int64_t row_floats = geometry_.g * kCellFloats;
    const std::int64_t rows = padded_rows(n_rows);
    std::fill(slot.cells.data() + n_rows * row_floats, slot.cells.data() + rows * row_floats, 0.0f);
    const auto scratch = [&](std::int64_t i) {
      return slot.scratch.data() + (n_parts_ == 1 ? 0 : i) * scratch_floats();
    };
    loop(rows / rows_per_vector(), [&](std::int64_t i) {
      kernels_.uv_rows(image, slot.cells.data(), row_floats, i * rows_per_vector(),
                       slot.middle.data(), scratch(i));
    });
    loop(chunk_pairs(), [&](std::int64_t i) {
      kernels_.uv_columns(image, slot.middle.data(), 2 * i, slot.planes.data(), scratch(i));
    });
  }

  // Adds planes over taper to slot.sums, or begins them.
  void add_planes(std::int64_t channel, bool begin, Slot& slot, const Loop& loop) const {
    const auto& taper = inverse_tapers_[config_.function.correlated ? std::size_t(channel) : 0];
    const std::int64_t n = output_.size();
    const bool several = static_cast<std::int64_t>(taper.size()) > n;
    loop(output_.n_sums(), [&](std::int64_t p) {
      const float* plane = slot.planes.data() + p * plane_floats();
      const double* inverse = taper.data() + (several ? std::min<std::int64_t>(p, 2) * n : 0);
      double* sums = slot.sums.data() + p * n;
      for (const Segment& s : segments_) {
        const float* from = plane + s.plane;
        const double* factor = inverse + s.sky;
        double* to = sums + s.sky;
        if (begin) {
          for (std::int64_t i = 0; i < s.n; ++i) to[i] = static_cast<double>(from[i]) * factor[i];
        } else {
          for (std::int64_t i = 0; i < s.n; ++i) to[i] += static_cast<double>(from[i]) * factor[i];
        }
      }
    });
  }

  SkyColumns sky_;
  TransformTables transform_;
  std::vector<PairSource> pairs_;
  UvGeometry geometry_;
  std::int64_t n_parts_;
  bool apertures_;
  std::vector<UvChannel> channels_;
  std::vector<PairGainTables> gains_;
  UvApertures uv_apertures_;
  std::vector<std::vector<double>> inverse_tapers_;  // [channel or 1][1 or 3][sky]
  std::vector<Segment> segments_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<VisImager> make_vis_grid_cpu(Queue& queue, const AllSkyConfig& config,
                                             std::string_view isa) {
  return std::make_unique<VisGridCpu>(queue, config, isa);
}

}  // namespace ryle::image::detail
