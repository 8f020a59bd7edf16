// SPDX-License-Identifier: BSD-3-Clause
// The equation, in double. Never optimised; shares the weights, not the code, of the fast ones.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/engine/beamform/dither.hpp"
#include "ryle/engine/beamform/implementations.hpp"
#include "ryle/engine/beamform/weight_bank.hpp"

namespace ryle::beamform::detail {
namespace {

class Reference final : public Beamformer {
 public:
  explicit Reference(const Config& config)
      : config_(config), bank_(config), n_scales_(n_scales(config)) {
    const auto cells = static_cast<std::size_t>(config.n_rows() * n_scales_ * config.n_channels);
    scale_.assign(cells, 1.0f);
    offset_.assign(cells, 0.0f);
    reset();
  }

  void set_weights(Queue&, View<const cf32, 3> weights) override { bank_.set(weights); }
  void set_requantization(Queue&, View<const float, 3> scale,
                          View<const float, 3> offset) override {
    check_requantization(config_, scale, offset);
    for (std::int64_t row = 0; row < config_.n_rows(); ++row) {
      for (std::int64_t product = 0; product < n_scales_; ++product) {
        for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
          scale_[cell(row, product, channel)] = scale(row, product, channel);
          offset_[cell(row, product, channel)] = offset(row, product, channel);
        }
      }
    }
  }

  std::int64_t execute(Queue&, const Input& sparse, const Output& output) override {
    const Input input = checked_input(config_, sparse);
    for (std::int64_t row = 0; row < config_.n_rows(); ++row) {
      for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
        clear_counts(output, row, channel);
        for (std::int64_t t = 0; t < input.n_spectra; ++t) one(input, output, row, channel, t);
      }
    }
    return config_.n_windows(input.first_tick, input.n_spectra);
  }

  void reset() override {
    const auto cells = static_cast<std::size_t>(config_.n_rows() * n_scales_ * config_.n_channels);
    sums_.assign(cells, 0.0);
    spectra_.assign(cells, 0);
    window_.assign(cells, INT64_MIN);
  }
  std::string_view implementation() const override { return "beamform/reference"; }
  const Config& config() const override { return config_; }

 private:
  std::size_t cell(std::int64_t row, std::int64_t product, std::int64_t channel) const {
    return static_cast<std::size_t>((row * n_scales_ + product) * config_.n_channels + channel);
  }

  cf64 sample(const Input& in, std::int64_t channel, std::int64_t t, std::int64_t i) const {
    const std::int64_t bytes = bits_per_sample(config_.format) / 8;
    std::int64_t at = channel * in.channel_stride_bytes;
    if (config_.order == InputOrder::spectra) {
      at += t * in.step_stride_bytes + i * bytes;
    } else {
      const std::int64_t in_block = t % config_.block_spectra;
      at += t / config_.block_spectra * in.step_stride_bytes +
            ((i / 2 * config_.block_spectra + in_block) * 2 + i % 2) * bytes;
    }
    const auto* from = static_cast<const std::uint8_t*>(in.samples) + at;
    if (!config_.table.empty()) {
      const ci8 value = config_.table[*from];
      return {static_cast<double>(value.re), static_cast<double>(value.im)};
    }
    return decode_sample({.format = config_.format}, from, 0, 0);
  }

  // @eq b = r sum_a W v; a window's power is the mean over the spectra that were there
  void one(const Input& in, const Output& out, std::int64_t row, std::int64_t channel,
           std::int64_t t) {
    const bool coherent = row < config_.n_beams;
    const std::int64_t slot = in.present == nullptr ? 0 : t / in.slot_spectra;
    const auto* present = slot_bits(config_, in, channel, slot);
    const Presence there = coherent ? presence_of(bank_, config_, row, channel, present)
                                    : incoherent_presence(config_, row - config_.n_beams, present);
    cf64 beam[2] = {};
    double power[2] = {};
    for (std::int64_t i = 0; i < config_.n_inputs(); ++i) {
      const cf64 v = sample(in, channel, t, i);
      const std::int64_t pol = i % config_.n_pols;
      if (coherent) {
        beam[pol] += cf64(bank_.values[bank_.at(row, channel, i)]) *
                     double{bank_.scale[bank_.scale_at(row, pol, channel)]} * v;
      } else if (config_.incoherent[row - config_.n_beams][i / config_.n_pols] != 0) {
        power[pol] += std::norm(v);
      }
    }
    for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
      beam[pol] *= double{there.factor[pol]};
      power[pol] = coherent ? std::norm(beam[pol]) : power[pol] * double{there.factor[pol]};
    }
    if (coherent) count(in, out, row, channel, there);
    if (config_.output == OutputKind::voltage) {
      for (std::int64_t pol = 0; pol < config_.n_pols; ++pol)
        store_voltage(out, row, channel, t, in.first_tick + t, pol, beam[pol]);
      return;
    }
    double products[4] = {power[0], power[1], 0, 0};
    const cf64 xy = beam[0] * std::conj(beam[1]);
    if (config_.output != OutputKind::power) {
      products[0] = (power[0] + power[1]) / 2;
      products[1] = (power[0] - power[1]) / 2;
      products[2] = xy.real();
      products[3] = xy.imag();
    }
    for (std::int64_t product = 0; product < n_scales_; ++product)
      integrate(in, out, row, product, channel, t, products[product], there.any);
  }

  void integrate(const Input& in, const Output& out, std::int64_t row, std::int64_t product,
                 std::int64_t channel, std::int64_t t, double value, bool any) {
    const std::size_t at = cell(row, product, channel);
    const Tick tick = in.first_tick + t;
    const std::int64_t window = floor_divide(tick, config_.integration);
    if (window != window_[at]) {
      window_[at] = window;
      sums_[at] = 0;
      spectra_[at] = 0;
    }
    sums_[at] += any ? value : 0;
    spectra_[at] += any;
    if (floor_divide(tick + 1, config_.integration) == window) return;
    const std::int64_t n = config_.loss == LossMode::raw ? config_.integration : spectra_[at];
    store_power(out, row, product, channel,
                window - floor_divide(in.first_tick, config_.integration),
                n == 0 ? 0 : sums_[at] / static_cast<double>(n));
    window_[at] = INT64_MIN;  // done: a tick that came twice would not reopen it
  }

  void store_power(const Output& out, std::int64_t row, std::int64_t product, std::int64_t channel,
                   std::int64_t index, double value) {
    auto* to = static_cast<std::byte*>(out.values) + row * out.row_stride_bytes +
               product * out.product_stride_bytes + channel * out.channel_stride_bytes;
    const std::size_t at = cell(row, product, channel);
    if (config_.output_format == OutputFormat::f32) {
      reinterpret_cast<float*>(to)[index] = static_cast<float>(value);
    } else if (config_.output_format == OutputFormat::f16) {
      const auto rounded = static_cast<float>(value);
      const double nearest = double{half_value(half_of(rounded))};
      if (nearest < -65504 && out.saturated_low != nullptr) ++out.saturated_low[at];
      if (nearest > 65504 && out.saturated_high != nullptr) ++out.saturated_high[at];
      reinterpret_cast<std::uint16_t*>(to)[index] =
          half_of(std::clamp(rounded, -65504.0f, 65504.0f));
    } else if (config_.output_format == OutputFormat::u16) {
      reinterpret_cast<std::uint16_t*>(to)[index] = static_cast<std::uint16_t>(
          quantize(out, at, value * double{scale_[at]} + double{offset_[at]}, 0, 65535));
    } else {
      reinterpret_cast<std::uint8_t*>(to)[index] = static_cast<std::uint8_t>(
          quantize(out, at, value * double{scale_[at]} + double{offset_[at]}, 0, 255));
    }
  }

  void store_voltage(const Output& out, std::int64_t row, std::int64_t channel, std::int64_t t,
                     Tick tick, std::int64_t pol, cf64 value) {
    auto* to = static_cast<std::byte*>(out.values) + row * out.row_stride_bytes +
               channel * out.channel_stride_bytes;
    const std::int64_t index = t * config_.n_pols + pol;
    const cf32 rounded(value);
    if (config_.output_format == OutputFormat::cf32) {
      reinterpret_cast<cf32*>(to)[index] = rounded;
      return;
    }
    if (config_.output_format == OutputFormat::cf16) {
      reinterpret_cast<std::uint16_t*>(to)[2 * index] = half_of(rounded.real());
      reinterpret_cast<std::uint16_t*>(to)[2 * index + 1] = half_of(rounded.imag());
      return;
    }
    const std::size_t at = cell(row, 0, channel);
    double parts[2] = {value.real() * double{scale_[at]}, value.imag() * double{scale_[at]}};
    const double maximum = config_.output_format == OutputFormat::ci8 ? 127 : 7;
    std::int64_t codes[2];
    for (int part = 0; part < 2; ++part) {
      if (config_.dither)
        parts[part] += dither(dither_key(config_.seed, row, channel, pol), tick, part);
      codes[part] = quantize(out, at, parts[part], -maximum, maximum);
    }
    if (config_.output_format == OutputFormat::ci8) {
      reinterpret_cast<ci8*>(to)[index] = {static_cast<std::int8_t>(codes[0]),
                                           static_cast<std::int8_t>(codes[1])};
    } else {
      to[index] = static_cast<std::byte>((codes[0] & 15) << 4 | (codes[1] & 15));
    }
  }

  static std::int64_t quantize(const Output& out, std::size_t at, double value, double low,
                               double high) {
    const double code = std::rint(value);
    if (code < low && out.saturated_low != nullptr) ++out.saturated_low[at];
    if (code > high && out.saturated_high != nullptr) ++out.saturated_high[at];
    return static_cast<std::int64_t>(std::clamp(code, low, high));
  }

  void clear_counts(const Output& out, std::int64_t row, std::int64_t channel) const {
    for (std::int64_t product = 0; product < n_scales_; ++product) {
      if (out.saturated_low != nullptr) out.saturated_low[cell(row, product, channel)] = 0;
      if (out.saturated_high != nullptr) out.saturated_high[cell(row, product, channel)] = 0;
    }
    if (row >= config_.n_beams) return;
    if (out.n_used != nullptr) out.n_used[row * config_.n_channels + channel] = 0;
    if (out.weight_power != nullptr) out.weight_power[row * config_.n_channels + channel] = 0;
  }

  void count(const Input& in, const Output& out, std::int64_t row, std::int64_t channel,
             const Presence& there) const {
    const std::int64_t at = row * config_.n_channels + channel;
    if (out.n_used != nullptr) out.n_used[at] += there.n_used;
    if (out.weight_power != nullptr) {
      out.weight_power[at] +=
          static_cast<float>(there.weight_power / static_cast<double>(in.n_spectra));
    }
  }

  Config config_;
  WeightBank bank_;
  std::int64_t n_scales_;
  std::vector<float> scale_, offset_;
  std::vector<double> sums_;
  std::vector<std::int64_t> spectra_, window_;
};

}  // namespace

std::unique_ptr<Beamformer> make_reference(const Config& config) {
  return std::make_unique<Reference>(config);
}

}  // namespace ryle::beamform::detail
