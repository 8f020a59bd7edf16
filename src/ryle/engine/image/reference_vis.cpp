// SPDX-License-Identifier: BSD-3-Clause
// Sums of products to images.
#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/image/reference.hpp"

namespace ryle::image::detail {
namespace {

cf64 sum_at(const VisInput& input, std::int64_t index) {
  switch (input.type) {
    case VisInput::Type::ci32: {
      const auto& v = static_cast<const ci32*>(input.sums)[index];
      return {static_cast<double>(v.re), static_cast<double>(v.im)};
    }
    case VisInput::Type::ci64: {
      const auto& v = static_cast<const ci64*>(input.sums)[index];
      return {static_cast<double>(v.re), static_cast<double>(v.im)};
    }
    case VisInput::Type::cf32:
      return cf64(static_cast<const cf32*>(input.sums)[index]);
    case VisInput::Type::cf64:
      break;
  }
  return static_cast<const cf64*>(input.sums)[index];
}

class VisReference final : public VisImager {
 public:
  VisReference(const AllSkyConfig& config, Path path)
      : config_(config),
        path_(path),
        sums_(path == Path::vis_dft        ? make_reference_dft(config)
              : config.function.correlated ? make_reference_moff(config)
                                           : make_reference_direct(config)),
        gains_(static_cast<std::size_t>(config.channels.n_channels) * config.inputs.size(), 1.0f),
        n_elements_(config.antenna_enu_m.size() * static_cast<std::size_t>(n_pols(config))) {}

  void set_gains(Queue&, std::span<const cf32> gains) override {
    if (gains.size() != gains_.size()) {
      throw ConfigError("imager gains: " + std::to_string(gains.size()) + " values for " +
                        std::to_string(gains_.size()) + " (channels x inputs)");
    }
    gains_.assign(gains.begin(), gains.end());
  }

  void execute(Queue&, const VisInput& input, Images& images) override {
    const auto bins = static_cast<std::size_t>(n_bins(config_));
    std::vector<ProductPlanes> planes(bins, ProductPlanes(plane_size(config_)));
    std::vector<double> weights(3 * bins);
    for (std::int64_t channel = 0; channel < config_.channels.n_channels; ++channel) {
      const auto bin = static_cast<std::size_t>(channel / config_.n_channels_per_bin);
      sums_->add_matrix(channel, calibrated(input, channel, &weights[3 * bin]), planes[bin]);
    }
    write_images(config_, planes, weights, input.n_spectra, images);
  }
  Path path() const override { return path_; }
  std::string_view implementation() const override { return "reference"; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  // @eq E_i conj(E_j) = c_i conj(c_j) V_ij for every ordered pair of used elements
  std::vector<cf64> calibrated(const VisInput& input, std::int64_t channel, double* weights) const {
    const auto n_inputs = static_cast<std::int64_t>(config_.inputs.size());
    const auto pols = n_pols(config_);
    const auto* gain = &gains_[channel * n_inputs];
    const auto element = used_elements(config_, {gain, static_cast<std::size_t>(n_inputs)});
    std::vector<cf64> matrix(n_elements_ * n_elements_);
    for (std::int64_t j = 0; j < n_inputs; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const auto e = element[i], f = element[j];
        if (e < 0 || f < 0) continue;
        if (config_.remove_autos && e / pols == f / pols) continue;
        const std::int64_t at = channel * n_pairs(n_inputs) + pair_index(i, j);
        const cf64 value = cf64(gain[i]) * std::conj(cf64(gain[j])) * sum_at(input, at);
        const double count =
            input.counts != nullptr ? input.counts[at] : static_cast<double>(input.n_spectra);
        if (count == 0 || !std::isfinite(value.real()) || !std::isfinite(value.imag())) continue;
        const auto row = static_cast<std::size_t>(e), column = static_cast<std::size_t>(f);
        matrix[row * n_elements_ + column] = value;
        matrix[column * n_elements_ + row] = std::conj(value);
        const auto p = e % pols, q = f % pols;
        weights[p != q ? 2 : p] += p == q && e != f ? 2 * count : count;
      }
    }
    return matrix;
  }

  AllSkyConfig config_;
  Path path_;
  std::unique_ptr<ReferencePath> sums_;
  std::vector<cf32> gains_;
  std::size_t n_elements_;
};

}  // namespace

std::unique_ptr<VisImager> make_vis_reference(const AllSkyConfig& config, Path path) {
  return std::make_unique<VisReference>(config, path);
}

}  // namespace ryle::image::detail
