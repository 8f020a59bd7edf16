// SPDX-License-Identifier: BSD-3-Clause
// Direct Fourier sum of every spectrum on the CPU: blocks of directions in parallel.
#include <algorithm>
#include <memory>
#include <string>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/image/cpu/directions.hpp"
#include "ryle/engine/image/cpu/paths.hpp"

namespace ryle::image::detail {
namespace {

/// Spectra unpacked at a time: a multiple of every vector and of three.
constexpr std::int64_t kChunkSpectra = 192;
constexpr std::int64_t kAntennasPerTask = 16;

class FieldDftCpu final : public FieldImager, private CpuFieldImager {
 public:
  FieldDftCpu(Queue& queue, const AllSkyConfig& config, std::string_view isa)
      : CpuFieldImager(queue, config, Path::efield_dft, isa),
        directions_(config, roles_, output_),
        n_antennas_(static_cast<std::int64_t>(roles_.antennas.size())) {
    voltages_ = Buffer<float>(kChunkSpectra * n_antennas_ * 4);
    auto_lanes_ = Buffer<float>(n_antennas_ * 4 * kernels_.lanes);
    for (std::int64_t s = 0; s < n_slots_; ++s) {
      phasors_.emplace_back(2 * kDirectionsPerBlock * n_antennas_);
    }
    for (std::int64_t c = 0; c < n_channels_; ++c) {
      waves_.push_back(directions_.waves(config_.channels.center_hz(c)));
    }
    set_gains(queue, ones());
    clear();
  }

  void set_gains(Queue&, std::span<const cf32> gains) override {
    gains_.resize(static_cast<std::size_t>(n_channels_) * roles_.inputs.size());
    take_gains(gains, [&](std::int64_t c, std::span<const cf32> used) {
      std::copy(used.begin(), used.end(),
                gains_.begin() + c * static_cast<std::int64_t>(roles_.inputs.size()));
    });
  }

  void execute(Queue& queue, const FieldInput& input) override {
    count(input);
    for (std::int64_t c = 0; c < n_channels_; ++c) {
      for (std::int64_t t = 0; t < input.n_spectra; t += kChunkSpectra) {
        add_chunk(queue, input, c, t, std::min(kChunkSpectra, input.n_spectra - t));
      }
    }
  }

  void finish(Queue&, Images& images) override {
    output_.prepare(images);
    const std::int64_t n = output_.size();
    std::vector<double> planes(output_.n_sums() * n);
    for (std::int64_t bin = 0; bin < n_bins_; ++bin) {
      const double* sums = sums_.data() + bin * block_sums();
      for (std::int64_t p = 0; p < output_.n_sums(); ++p) {
        const double autos = config_.remove_autos ? autos_[4 * bin + p] : 0;
        for (std::int64_t s = 0; s < n; ++s) {
          planes[p * n + s] = sums[(s / kDirectionsPerBlock * 4 + p) * kDirectionsPerBlock +
                                   s % kDirectionsPerBlock] -
                              autos;
        }
      }
      output_.write(bin, planes.data(), weights_.data() + 3 * bin, images);
    }
    images.n_spectra = n_spectra_;
    clear();
  }

  void reset(Queue&) override { clear(); }
  Path path() const override { return Path::efield_dft; }
  std::string_view implementation() const override { return name_; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  std::int64_t block_sums() const { return directions_.n_blocks() * 4 * kDirectionsPerBlock; }

  void add_chunk(Queue& queue, const FieldInput& input, std::int64_t channel, std::int64_t first,
                 std::int64_t n) {
    const FieldSamples samples = samples_of(input, channel);
    const std::int64_t n_groups = (n + kernels_.lanes - 1) / kernels_.lanes;
    const auto* gains = reinterpret_cast<const float*>(
        gains_.data() + channel * static_cast<std::int64_t>(roles_.inputs.size()));
    std::fill_n(auto_lanes_.data(), auto_lanes_.size(), 0.0f);
    queue.parallel_for(
        (n_antennas_ + kAntennasPerTask - 1) / kAntennasPerTask, [&](std::int64_t task) {
          const std::int64_t end = std::min(n_antennas_, (task + 1) * kAntennasPerTask);
          for (std::int64_t a = task * kAntennasPerTask; a < end; ++a) {
            kernels_.field_unpack(samples, roles_.inputs.data(), gains, roles_.slots.data(),
                                  n_antennas_, a, first, n_groups, voltages_.data(),
                                  auto_lanes_.data());
          }
        });
    const std::int64_t bin = channel / config_.n_channels_per_bin;
    for (std::int64_t i = 0; i < auto_lanes_.size(); ++i) {
      autos_[4 * bin + i / kernels_.lanes % 4] += static_cast<double>(auto_lanes_[i]);
    }
    const double* waves = waves_[channel].data();
    run_tasks(queue, n_slots_, directions_.n_blocks(), [&](std::int64_t slot, std::int64_t block) {
      float* phasors = phasors_[slot].data();
      kernels_.phasors(waves, n_antennas_, directions_.l(block), directions_.m(block),
                       directions_.t(block), kernels_.phasor_group_field, phasors);
      kernels_.field_sum(voltages_.data(), (n + 2) / 3, n_antennas_, phasors,
                         sums_.data() + bin * block_sums() + block * 4 * kDirectionsPerBlock);
    });
  }

  void clear() {
    sums_.assign(n_bins_ * block_sums(), 0.0);
    autos_.assign(4 * n_bins_, 0.0);
    clear_counts();
  }

  CpuDirections directions_;
  std::int64_t n_antennas_;
  std::vector<cf32> gains_;                 // [channel][slot]
  std::vector<std::vector<double>> waves_;  // [channel]
  Buffer<float> voltages_, auto_lanes_;
  std::vector<Buffer<float>> phasors_;  // [slot]
  std::vector<double> sums_;            // [bin][block][4][kDirectionsPerBlock]
  std::vector<double> autos_;           // [bin][4]
};

}  // namespace

std::unique_ptr<FieldImager> make_efield_dft_cpu(Queue& queue, const AllSkyConfig& config,
                                                 std::string_view isa) {
  return std::make_unique<FieldDftCpu>(queue, config, isa);
}

}  // namespace ryle::image::detail
