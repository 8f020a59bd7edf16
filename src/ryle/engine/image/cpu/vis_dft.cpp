// SPDX-License-Identifier: BSD-3-Clause
// Direct Fourier sum of visibilities on the CPU: blocks of directions in parallel.
#include <algorithm>
#include <memory>
#include <string>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/image/cpu/directions.hpp"
#include "ryle/engine/image/cpu/pairs.hpp"
#include "ryle/engine/image/cpu/paths.hpp"

namespace ryle::image::detail {
namespace {

/// Pairs converted by one task.
constexpr std::int64_t kPairsPerTask = 4096;

class VisDftCpu final : public VisImager, private CpuImager {
 public:
  VisDftCpu(Queue& queue, const AllSkyConfig& config, std::string_view isa)
      : CpuImager(queue, config, Path::vis_dft, isa),
        directions_(config, roles_, output_),
        pairs_(make_pairs(config, roles_, false)) {
    const auto n = static_cast<std::int64_t>(roles_.antennas.size());
    for (std::int64_t a = 0; a < n; ++a) autos_.push_back(pair_source(config_, roles_, a, a));
    products_ = Buffer<float>(static_cast<std::int64_t>(pairs_.size()) * kCellFloats);
    sums_.resize(directions_.n_blocks() * 4 * kDirectionsPerBlock);
    for (std::int64_t s = 0; s < n_slots_; ++s) {
      phasors_.emplace_back(2 * kDirectionsPerBlock * n);
    }
    gains_.resize(n_channels_);
    set_gains(queue, ones());
  }

  void set_gains(Queue&, std::span<const cf32> gains) override {
    take_gains(gains, [&](std::int64_t c, std::span<const cf32> used) {
      gains_[c].set(roles_, used, {});
    });
  }

  void execute(Queue& queue, const VisInput& input, Images& images) override {
    output_.prepare(images);
    std::vector<double> weights = uncounted_weights(config_, input_gains_, input);
    std::vector<double> planes(output_.n_sums() * output_.size());
    for (std::int64_t bin = 0; bin < n_bins_; ++bin) {
      std::fill(sums_.begin(), sums_.end(), 0.0);
      const std::int64_t first = bin * config_.n_channels_per_bin;
      const std::int64_t last = std::min(n_channels_, first + config_.n_channels_per_bin);
      for (std::int64_t c = first; c < last; ++c) {
        add_channel(queue, input, c, weights.data() + 3 * bin);
      }
      for (std::size_t i = 0; i < planes.size(); ++i) {
        const auto p = static_cast<std::int64_t>(i) / output_.size();
        const auto s = static_cast<std::int64_t>(i) % output_.size();
        planes[i] = sums_[(s / kDirectionsPerBlock * 4 + p) * kDirectionsPerBlock +
                          s % kDirectionsPerBlock];
      }
      output_.write(bin, planes.data(), weights.data() + 3 * bin, images);
    }
    images.n_spectra = input.n_spectra;
  }

  Path path() const override { return Path::vis_dft; }
  std::string_view implementation() const override { return name_; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  void add_channel(Queue& queue, const VisInput& input, std::int64_t channel, double* weights) {
    const auto n_inputs = static_cast<std::int64_t>(config_.inputs.size());
    const auto n = static_cast<std::int64_t>(roles_.antennas.size());
    const auto n_pairs = static_cast<std::int64_t>(pairs_.size());
    const PairGains gains = gains_[channel].view();
    const void* from = channel_sums(input, channel, n_inputs);
    queue.parallel_for((n_pairs + kPairsPerTask - 1) / kPairsPerTask, [&](std::int64_t i) {
      const std::int64_t begin = i * kPairsPerTask;
      kernels_.convert(sum_type(input.type), from, pairs_.data() + begin,
                       std::min(kPairsPerTask, n_pairs - begin), gains, nullptr,
                       products_.data() + begin * kCellFloats);
    });
    const std::vector<double> constant = auto_sums(input, channel, gains);
    if (needs_counting(input)) {
      count_pairs(input, channel, n_inputs, pairs_, gains, weights);
      if (!config_.remove_autos) count_pairs(input, channel, n_inputs, autos_, gains, weights);
    }
    const auto waves = directions_.waves(config_.channels.center_hz(channel));
    run_tasks(queue, n_slots_, directions_.n_blocks(), [&](std::int64_t slot, std::int64_t block) {
      float* phasors = phasors_[slot].data();
      kernels_.phasors(waves.data(), n, directions_.l(block), directions_.m(block),
                       directions_.t(block), kernels_.phasor_group_vis, phasors);
      double* sums = sums_.data() + block * 4 * kDirectionsPerBlock;
      kernels_.vis_sum(products_.data(), n, phasors, output_.n_sums(), sums);
      for (int p = 0; p < 4; ++p) {
        for (std::int64_t i = 0; i < kDirectionsPerBlock; ++i) {
          sums[p * kDirectionsPerBlock + i] += constant[p];
        }
      }
    });
  }

  // a = b adds the same to every direction.
  std::vector<double> auto_sums(const VisInput& input, std::int64_t channel,
                                const PairGains& gains) const {
    std::vector<double> constant(4);
    if (config_.remove_autos) return constant;
    std::vector<float> products(autos_.size() * static_cast<std::size_t>(kCellFloats));
    kernels_.convert(sum_type(input.type),
                     channel_sums(input, channel, static_cast<std::int64_t>(config_.inputs.size())),
                     autos_.data(), static_cast<std::int64_t>(autos_.size()), gains, nullptr,
                     products.data());
    for (std::size_t a = 0; a < autos_.size(); ++a) {
      for (std::size_t p = 0; p < 4; ++p) {
        constant[p] += static_cast<double>(products[a * kCellFloats + p]);
      }
    }
    return constant;
  }

  CpuDirections directions_;
  std::vector<PairSource> pairs_, autos_;
  std::vector<PairGainTables> gains_;
  Buffer<float> products_;              // [pair][8]
  std::vector<Buffer<float>> phasors_;  // [slot]
  std::vector<double> sums_;            // [block][4][kDirectionsPerBlock]
};

}  // namespace

std::unique_ptr<VisImager> make_vis_dft_cpu(Queue& queue, const AllSkyConfig& config,
                                            std::string_view isa) {
  return std::make_unique<VisDftCpu>(queue, config, isa);
}

}  // namespace ryle::image::detail
