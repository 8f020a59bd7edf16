// SPDX-License-Identifier: BSD-3-Clause
// Voltages to images, spectrum by spectrum.
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/image/reference.hpp"

namespace ryle::image::detail {
namespace {

class FieldReference final : public FieldImager {
 public:
  FieldReference(const AllSkyConfig& config, Path path)
      : config_(config),
        path_(path),
        sums_(path == Path::efield_dft ? make_reference_dft(config) : make_reference_moff(config)),
        gains_(static_cast<std::size_t>(config.channels.n_channels) * config.inputs.size(), 1.0f),
        n_elements_(config.antenna_enu_m.size() * static_cast<std::size_t>(n_pols(config))) {
    clear();
  }

  void set_gains(Queue&, std::span<const cf32> gains) override {
    if (gains.size() != gains_.size()) {
      throw ConfigError("imager gains: " + std::to_string(gains.size()) + " values for " +
                        std::to_string(gains_.size()) + " (channels x inputs)");
    }
    gains_.assign(gains.begin(), gains.end());
  }

  void execute(Queue&, const FieldInput& input) override {
    for (std::int64_t channel = 0; channel < config_.channels.n_channels; ++channel) {
      for (std::int64_t t = 0; t < input.n_spectra; ++t) add(input, channel, t);
    }
    n_spectra_ += input.n_spectra;
  }

  void finish(Queue&, Images& images) override {
    for (std::int64_t channel = 0; channel < config_.channels.n_channels; ++channel) {
      if (config_.remove_autos) {
        sums_->add_autos(channel, minus_autos_[channel], planes_[bin(channel)]);
      }
    }
    write_images(config_, planes_, weights_, n_spectra_, images);
    clear();
  }
  void reset(Queue&) override { clear(); }
  Path path() const override { return path_; }
  std::string_view implementation() const override { return "reference"; }
  const AllSkyConfig& config() const override { return config_; }

 private:
  std::size_t bin(std::int64_t channel) const {
    return static_cast<std::size_t>(channel / config_.n_channels_per_bin);
  }

  void add(const FieldInput& input, std::int64_t channel, std::int64_t t) {
    const std::size_t n_inputs = config_.inputs.size();
    const std::span<const cf32> gains(gains_.data() + static_cast<std::size_t>(channel) * n_inputs,
                                      n_inputs);
    const auto element = used_elements(config_, gains);
    std::vector<cf64> fields(n_elements_);
    std::vector<double> valid(n_elements_);
    for (std::size_t i = 0; i < n_inputs; ++i) {
      if (element[i] < 0) continue;
      const auto e = static_cast<std::size_t>(element[i]);
      const auto n = static_cast<std::int64_t>(i);
      fields[e] = cf64(gains[i]) * get_sample(input.blocks, channel, t, n);
      const auto* mask = input.valid;
      if (mask != nullptr) mask += channel * input.valid_channel_stride_words;
      valid[e] = mask == nullptr || test_bit(mask + n * input.valid_words, t) ? 1 : 0;
    }
    sums_->add_spectrum(channel, fields, planes_[bin(channel)]);
    add_weights(valid, &weights_[3 * bin(channel)]);
    auto& autos = minus_autos_[channel];
    const auto pols = static_cast<std::size_t>(n_pols(config_));
    for (std::size_t a = 0; a < autos.size(); ++a) {
      const cf64 x = fields[a * pols], y = pols == 2 ? fields[a * pols + 1] : 0;
      autos[a].xx -= std::norm(x);
      autos[a].yy -= std::norm(y);
      autos[a].xy -= x * std::conj(y);
    }
  }

  // @eq W_pq = (sum_a valid_ap) (sum_b valid_bq) - [autos removed] sum_a valid_ap valid_aq
  void add_weights(const std::vector<double>& valid, double* weights) const {
    const auto pols = static_cast<std::size_t>(n_pols(config_));
    double x = 0, y = 0, both = 0;
    for (std::size_t e = 0; e < n_elements_; e += pols) {
      x += valid[e];
      if (pols == 2) y += valid[e + 1];
      if (pols == 2) both += valid[e] * valid[e + 1];
    }
    const double autos = config_.remove_autos ? 1 : 0;
    weights[0] += x * x - autos * x;
    weights[1] += y * y - autos * y;
    weights[2] += x * y - autos * both;
  }

  void clear() {
    const auto bins = static_cast<std::size_t>(n_bins(config_));
    planes_.assign(bins, ProductPlanes(plane_size(config_)));
    weights_.assign(3 * bins, 0);
    minus_autos_.assign(config_.channels.n_channels,
                        std::vector<AutoPowers>(config_.antenna_enu_m.size()));
    n_spectra_ = 0;
  }

  AllSkyConfig config_;
  Path path_;
  std::unique_ptr<ReferencePath> sums_;
  std::vector<cf32> gains_;
  std::size_t n_elements_;
  std::vector<ProductPlanes> planes_;
  std::vector<double> weights_;
  std::vector<std::vector<AutoPowers>> minus_autos_;  // [channel][antenna]
  std::int64_t n_spectra_ = 0;
};

}  // namespace

std::unique_ptr<FieldImager> make_field_reference(const AllSkyConfig& config, Path path) {
  return std::make_unique<FieldReference>(config, path);
}

}  // namespace ryle::image::detail
