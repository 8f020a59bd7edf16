// SPDX-License-Identifier: BSD-3-Clause
// E-field imaging on the CPU: channels (and parts of a gulp, when channels are few) in parallel.
#include <algorithm>
#include <memory>
#include <string>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/image/cpu/field_layout.hpp"
#include "ryle/engine/image/cpu/paths.hpp"

namespace ryle::image::detail {
namespace {

/// Vectors of spectra summed in fp32 before they are added to double.
constexpr std::int64_t kVectorsPerFold = 64;

class FieldCpu final : public FieldImager, private CpuFieldImager {
 public:
  FieldCpu(Queue& queue, const AllSkyConfig& config, std::string_view isa)
      : CpuFieldImager(queue, config, Path::efield, isa),
        sky_(make_sky_columns(config, output_, kernels_.lanes)),
        transform_(config.n_pixels),
        n_parts_(parts_for(n_channels_)),
        channels_(n_channels_) {
    queue.parallel_for(n_channels_, [&](std::int64_t c) {
      make_field_channel(config_, roles_, output_, c, channels_[c]);
    });
    shape_ = {transform_.plan(),     config.function.support, roles_.pols,
              output_.n_sums() == 4, sky_.n_columns,          sky_.padded_rows,
              sky_.column_of.data(), sky_.block_begin.data(), sky_.blocks.data()};
    allocate();
    set_gains(queue, ones());
  }

  void set_gains(Queue&, std::span<const cf32> gains) override {
    take_gains(gains, [&](std::int64_t c, std::span<const cf32> used) {
      set_field_gains(roles_, used, channels_[c]);
    });
  }

  void execute(Queue& queue, const FieldInput& input) override {
    count(input);
    const std::int64_t n_vectors = (input.n_spectra + kernels_.lanes - 1) / kernels_.lanes;
    run_tasks(queue, n_slots_, n_channels_ * n_parts_, [&](std::int64_t slot, std::int64_t task) {
      const std::int64_t part = task % n_parts_;
      image_part(input, slot, task, n_vectors * part / n_parts_, n_vectors * (part + 1) / n_parts_);
    });
  }

  void finish(Queue& queue, Images& images) override {
    output_.prepare(images);
    const std::int64_t n = output_.n_sums() * output_.size();
    run_tasks(queue, n_slots_, n_bins_, [&](std::int64_t, std::int64_t bin) {
      std::vector<double> sums(n), autos(static_cast<std::size_t>(n));
      const std::int64_t last = std::min(n_channels_, (bin + 1) * config_.n_channels_per_bin);
      for (std::int64_t c = bin * config_.n_channels_per_bin; c < last; ++c) {
        add_channel(c, autos, sums);
      }
      output_.write(bin, sums.data(), weights_.data() + 3 * bin, images);
    });
    images.n_spectra = n_spectra_;
    clear();
  }

  void reset(Queue&) override { clear(); }
  Path path() const override { return Path::efield; }
  std::string_view implementation() const override { return name_; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  struct Slot {
    Buffer<float> inputs, grid, middle, points, planes, autos;
  };

  std::int64_t plane_floats() const { return sky_.n_columns * sky_.padded_rows; }

  void allocate() {
    const std::int64_t point = 2 * kernels_.lanes;
    std::int64_t grid = 0, box_y = 0;
    for (const auto& c : channels_) {
      grid = std::max(grid, c.view.grid_x * c.view.grid_y);
      box_y = std::max(box_y, c.view.box_y);
    }
    const auto n_slots = static_cast<std::int64_t>(roles_.inputs.size());
    const auto n_antennas = static_cast<std::int64_t>(roles_.antennas.size());
    for (std::int64_t s = 0; s < n_slots_; ++s) {
      Slot slot;
      slot.inputs = Buffer<float>(n_slots * point);
      slot.grid = Buffer<float>(grid * point);
      slot.middle = Buffer<float>(roles_.pols * sky_.n_columns * box_y * point);
      slot.points = Buffer<float>(4 * sky_.padded_rows * point);
      slot.planes = Buffer<float>(output_.n_sums() * plane_floats());
      slot.autos = Buffer<float>(n_antennas * 4 * kernels_.lanes);
      slots_.push_back(std::move(slot));
    }
    const auto n_parts = static_cast<std::size_t>(n_channels_ * n_parts_);
    planes_.assign(n_parts * static_cast<std::size_t>(output_.n_sums() * plane_floats()), 0);
    autos_.assign(n_parts * static_cast<std::size_t>(4 * n_antennas), 0);
  }

  void image_part(const FieldInput& input, std::int64_t slot_index, std::int64_t task,
                  std::int64_t first, std::int64_t last) {
    const std::int64_t channel = task / n_parts_;
    auto& slot = slots_[slot_index];
    const FieldSamples samples = samples_of(input, channel);
    const FieldScratch scratch{slot.inputs.data(), slot.grid.data(), slot.middle.data(),
                               slot.points.data()};
    double* planes = planes_.data() + task * slot.planes.size();
    const auto n_antennas = static_cast<std::int64_t>(roles_.antennas.size());
    for (std::int64_t v = first; v < last; v += kVectorsPerFold) {
      const std::int64_t end = std::min(last, v + kVectorsPerFold);
      std::fill_n(slot.planes.data(), slot.planes.size(), 0.0f);
      std::fill_n(slot.autos.data(), slot.autos.size(), 0.0f);
      kernels_.field_run(shape_, channels_[channel].view, samples, v * kernels_.lanes,
                         end * kernels_.lanes, scratch, slot.planes.data(),
                         config_.remove_autos ? slot.autos.data() : nullptr);
      for (std::int64_t i = 0; i < slot.planes.size(); ++i) {
        planes[i] += static_cast<double>(slot.planes[i]);
      }
      for (std::int64_t i = 0; i < slot.autos.size(); ++i) {
        autos_[task * 4 * n_antennas + i / kernels_.lanes] += static_cast<double>(slot.autos[i]);
      }
    }
  }

  // Parts in fixed order, less the autocorrelations, over the taper.
  void add_channel(std::int64_t channel, std::vector<double>& autos,
                   std::vector<double>& sums) const {
    const std::int64_t n = output_.size();
    const auto n_powers = 4 * roles_.antennas.size();
    if (config_.remove_autos) {
      std::vector<double> powers(n_powers);
      for (std::int64_t part = 0; part < n_parts_; ++part) {
        const double* from =
            autos_.data() + (channel * n_parts_ + part) * static_cast<std::int64_t>(n_powers);
        for (std::size_t i = 0; i < n_powers; ++i) powers[i] += from[i];
      }
      autos_image(config_, roles_, output_, channels_[channel], powers, autos);
    }
    const auto& taper = channels_[channel].inverse_taper;
    for (int p = 0; p < output_.n_sums(); ++p) {
      const float* inverse =
          taper.data() + (taper.size() > std::size_t(n) ? std::min(p, 2) * n : 0);
      for (std::int64_t s = 0; s < n; ++s) {
        double value = config_.remove_autos ? -autos[p * n + s] : 0.0;
        for (std::int64_t part = 0; part < n_parts_; ++part) {
          value += planes_[((channel * n_parts_ + part) * output_.n_sums() + p) * plane_floats() +
                           sky_.position[s]];
        }
        sums[p * n + s] += value * static_cast<double>(inverse[s]);
      }
    }
  }

  void clear() {
    std::fill(planes_.begin(), planes_.end(), 0.0);
    std::fill(autos_.begin(), autos_.end(), 0.0);
    clear_counts();
  }

  SkyColumns sky_;
  TransformTables transform_;
  std::int64_t n_parts_;
  std::vector<FieldChannelData> channels_;
  FieldShape shape_;
  std::vector<Slot> slots_;
  std::vector<double> planes_;  // [channel][part][sum][column][row]
  std::vector<double> autos_;   // [channel][part][place][4]
};

}  // namespace

std::unique_ptr<FieldImager> make_efield_cpu(Queue& queue, const AllSkyConfig& config,
                                             std::string_view isa) {
  return std::make_unique<FieldCpu>(queue, config, isa);
}

}  // namespace ryle::image::detail
