// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/weight_bank.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"

namespace ryle::beamform::detail {
namespace {

bool all_finite(View<const cf32, 3> weights, std::int64_t beam) {
  bool finite = true;
  for (std::int64_t channel = 0; channel < weights.extent[1]; ++channel)
    for (std::int64_t input = 0; input < weights.extent[2]; ++input) {
      const cf32 w = weights(beam, channel, input);
      finite = finite && std::isfinite(w.real()) && std::isfinite(w.imag());
    }
  return finite;
}

[[noreturn]] void reject(View<const cf32, 3> weights) {
  for (std::int64_t beam = 0; beam < weights.extent[0]; ++beam)
    for (std::int64_t channel = 0; channel < weights.extent[1]; ++channel)
      for (std::int64_t input = 0; input < weights.extent[2]; ++input) {
        const cf32 w = weights(beam, channel, input);
        if (std::isfinite(w.real()) && std::isfinite(w.imag())) continue;
        throw ConfigError("beamformer: weight of beam " + std::to_string(beam) + ", channel " +
                          std::to_string(channel) + ", input " + std::to_string(input) +
                          " is not finite; mask the input with weight 0");
      }
  throw ConfigError("beamformer: weights changed while they were set");
}

/// std::rint() of less than 2^22, without a call where no instruction rounds.
float nearest(float x) {
  constexpr float kWhole = 12582912.0f;  // 1.5 x 2^23: its neighbors are whole numbers
  return (x + kWhole) - kWhole;
}

}  // namespace

WeightBank::WeightBank(const Config& config)
    : n_beams(config.n_beams),
      n_channels(config.n_channels),
      n_inputs(config.n_inputs()),
      n_pols(config.n_pols),
      integer(config.weights == WeightFormat::i8),
      values(n_beams * n_channels * n_inputs),
      scale(n_beams * n_pols * n_channels, 0.0f) {}

void WeightBank::set(View<const cf32, 3> weights, Queue host) {
  if (weights.extent != std::array{n_beams, n_channels, n_inputs}) {
    throw ConfigError("beamformer: weights are [" + std::to_string(weights.extent[0]) + "][" +
                      std::to_string(weights.extent[1]) + "][" + std::to_string(weights.extent[2]) +
                      "]; [beam][channel][input] is [" + std::to_string(n_beams) + "][" +
                      std::to_string(n_channels) + "][" + std::to_string(n_inputs) + "]");
  }
  // Looked at before anything is stored: a rejected table must not leave half of itself.
  std::atomic<bool> rejected{false};
  host.parallel_for(n_beams, [&](std::int64_t beam) {
    if (!all_finite(weights, beam)) rejected = true;
  });
  if (rejected) reject(weights);
  host.parallel_for(n_beams, [&](std::int64_t beam) { set_beam(weights, beam); });
}

void WeightBank::set_beam(View<const cf32, 3> weights, std::int64_t beam) {
  for (std::int64_t channel = 0; channel < n_channels; ++channel) {
    for (std::int64_t pol = 0; pol < n_pols; ++pol) {
      float largest = 0;
      for (std::int64_t input = pol; input < n_inputs; input += n_pols) {
        const cf32 w = weights(beam, channel, input);
        largest = std::max({largest, std::fabs(w.real()), std::fabs(w.imag())});
      }
      float per_code = largest / 127.0f;
      if (!std::isnormal(per_code)) per_code = 0;  // nothing, or too small to divide by
      scale[scale_at(beam, pol, channel)] = integer ? per_code : 1.0f;
      for (std::int64_t input = pol; input < n_inputs; input += n_pols) {
        const cf32 w = weights(beam, channel, input);
        const auto code = [&](float part) {
          return per_code == 0 ? 0.0f : std::clamp(nearest(part / per_code), -127.0f, 127.0f);
        };
        values[at(beam, channel, input)] = integer ? cf32(code(w.real()), code(w.imag())) : w;
      }
    }
  }
}

namespace {

bool bit(const std::uint64_t* present, std::int64_t input) {
  return present == nullptr || test_bit(present, input);
}

void conclude(const Config& config, const double* all, const double* there, Presence& result) {
  result.any = true;
  for (std::int64_t pol = 0; pol < config.n_pols; ++pol) {
    const bool nothing = !(there[pol] > 0);
    const bool whole = there[pol] == all[pol];  // exactly 1, whatever the rounding of a quotient
    const bool raw = config.loss == LossMode::raw;
    result.factor[pol] =
        nothing ? 0.0f : (whole || raw ? 1.0f : static_cast<float>(all[pol] / there[pol]));
    if (nothing) result.any = false;
  }
}

}  // namespace

Presence presence_of(const WeightBank& bank, const Config& config, std::int64_t beam,
                     std::int64_t channel, const std::uint64_t* present) {
  Presence result;
  double all[2] = {}, there[2] = {};
  for (std::int64_t input = 0; input < bank.n_inputs; ++input) {
    const std::int64_t pol = input % bank.n_pols;
    const cf64 w(bank.values[bank.at(beam, channel, input)]);
    const double scale = bank.scale[bank.scale_at(beam, pol, channel)];
    const double size = std::abs(w) * scale;
    all[pol] += size;
    if (!bit(present, input) || size == 0) continue;
    there[pol] += size;
    ++result.n_used;
    result.weight_power += size * size;
  }
  conclude(config, all, there, result);
  return result;
}

Presence incoherent_presence(const Config& config, std::int64_t index,
                             const std::uint64_t* present) {
  Presence result;
  double all[2] = {}, there[2] = {};
  for (std::int64_t antenna = 0; antenna < config.n_antennas; ++antenna) {
    if (config.incoherent[index][antenna] == 0) continue;
    for (std::int64_t pol = 0; pol < config.n_pols; ++pol) {
      all[pol] += 1;
      if (bit(present, antenna * config.n_pols + pol)) there[pol] += 1;
    }
  }
  conclude(config, all, there, result);
  return result;
}

std::int64_t n_slots(const Input& input) {
  if (input.present == nullptr) return 1;
  return (input.n_spectra + input.slot_spectra - 1) / input.slot_spectra;
}

const std::uint64_t* slot_bits(const Config& config, const Input& input, std::int64_t channel,
                               std::int64_t slot) {
  if (input.present == nullptr) return nullptr;
  const std::int64_t row = (input.present_per_channel ? channel * n_slots(input) : 0) + slot;
  return input.present + row * words_for_bits(config.n_inputs());
}

void check_requantization(const Config& config, View<const float, 3> scale,
                          View<const float, 3> offset) {
  const std::array want{config.n_rows(), n_scales(config), config.n_channels};
  if (scale.extent != want || offset.extent != want) {
    throw ConfigError("beamformer: scale and offset must be [row][product][channel] = [" +
                      std::to_string(want[0]) + "][" + std::to_string(want[1]) + "][" +
                      std::to_string(want[2]) + "]");
  }
  for (std::int64_t row = 0; row < want[0]; ++row) {
    for (std::int64_t product = 0; product < want[1]; ++product) {
      for (std::int64_t channel = 0; channel < want[2]; ++channel) {
        if (std::isfinite(scale(row, product, channel)) &&
            std::isfinite(offset(row, product, channel)))
          continue;
        throw ConfigError("beamformer: scale or offset of row " + std::to_string(row) +
                          ", channel " + std::to_string(channel) + " is not finite");
      }
    }
  }
}

Input checked_input(const Config& config, const Input& input) {
  RYLE_ASSERT(input.n_spectra >= 0 && input.n_spectra <= config.max_spectra);
  RYLE_ASSERT(input.samples != nullptr || input.n_spectra == 0);
  RYLE_ASSERT(input.present == nullptr || input.slot_spectra > 0);
  Input dense = input;
  const std::int64_t bytes = bits_per_sample(config.format) / 8;
  const std::int64_t step =
      config.n_inputs() * bytes * (config.order == InputOrder::pairs ? config.block_spectra : 1);
  if (dense.step_stride_bytes == 0) dense.step_stride_bytes = step;
  if (dense.channel_stride_bytes == 0) {
    const std::int64_t per_step = config.order == InputOrder::pairs ? config.block_spectra : 1;
    dense.channel_stride_bytes =
        (input.n_spectra + per_step - 1) / per_step * dense.step_stride_bytes;
  }
  return dense;
}

bool is_integer_format(const Config& config) {
  return config.format != SampleFormat::cf32 && config.format != SampleFormat::cf16;
}

Range value_range(const Config& config) {
  if (!config.table.empty()) {
    Range range{0, 0};
    for (const ci8 value : config.table) {
      range.min = std::min({range.min, std::int32_t{value.re}, std::int32_t{value.im}});
      range.max = std::max({range.max, std::int32_t{value.re}, std::int32_t{value.im}});
    }
    return range;
  }
  if (config.format == SampleFormat::ci4) return {-8, 7};
  if (config.format == SampleFormat::ci8) return {-128, 127};
  return {-32768, 32767};
}

std::int64_t n_scales(const Config& config) {
  return config.output == OutputKind::voltage ? 1 : config.n_products();
}

}  // namespace ryle::beamform::detail
