// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::beamform {

GainMode gain_mode(std::string_view name) {
  if (name == "inverse") return GainMode::inverse;
  if (name == "matched") return GainMode::matched;
  if (name == "phase") return GainMode::phase;
  throw ConfigError("beam weights: no gain mode \"" + std::string(name) +
                    "\"; known: inverse, matched, phase");
}

Normalization normalization(std::string_view name) {
  if (name == "sum") return Normalization::sum;
  if (name == "mean") return Normalization::mean;
  if (name == "noise") return Normalization::noise;
  throw ConfigError("beam weights: no normalization \"" + std::string(name) +
                    "\"; known: sum, mean, noise");
}

std::vector<Steering> steer(const ArrayLayout& array, std::span<const Vector3> directions_enu,
                            double cable_frequency_hz) {
  std::vector<Steering> steering;
  steering.reserve(directions_enu.size() * static_cast<std::size_t>(array.n_inputs()));
  for (const Vector3& direction : directions_enu) {
    for (std::int64_t input = 0; input < array.n_inputs(); ++input)
      steering.push_back({tracking_delay_s(array, input, direction, cable_frequency_hz), 0, 0});
  }
  return steering;
}

std::vector<Steering> steer(const ArrayLayout& array, std::span<const Vector3> directions_enu,
                            std::span<const Vector3> later_enu, double dt_s,
                            double cable_frequency_hz) {
  RYLE_ASSERT(directions_enu.size() == later_enu.size() && dt_s > 0);
  auto now = steer(array, directions_enu, cable_frequency_hz);
  const auto later = steer(array, later_enu, cable_frequency_hz);
  for (std::size_t k = 0; k < now.size(); ++k)
    now[k].rate_s_per_s = (later[k].delay_s - now[k].delay_s) / dt_s;
  return now;
}

double delay_loss(double channel_width_hz, double delay_s) {
  const double x = kPi * channel_width_hz * delay_s;
  return x * x / 3;
}

std::uint32_t turns_of(double phase_turns) {
  const double fraction = phase_turns - std::floor(phase_turns);
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(std::rint(fraction * 0x1p32)));
}

// @eq exp(i (a + d)) = exp(i a) (1 + i d - d^2 / 2 - i d^3 / 6), d < 2 pi / 1024 about the middle
// of a step: d^4 / 24 < 4e-12
cf64 phasor(std::uint32_t turns) {
  constexpr int kBits = 10;
  static const std::array<cf64, 1 << kBits> table = [] {
    std::array<cf64, 1 << kBits> t;
    for (std::size_t k = 0; k < t.size(); ++k)
      t[k] =
          std::polar(1.0, 2 * kPi * (static_cast<double>(k) + 0.5) / static_cast<double>(t.size()));
    return t;
  }();
  constexpr std::uint32_t kRest = (1u << (32 - kBits)) - 1;
  const double rest = static_cast<double>(turns & kRest) - static_cast<double>(kRest / 2 + 1);
  const double d = rest * (2 * kPi * 0x1p-32);
  const cf64 turn(1 - d * d / 2, d - d * d * d / 6);
  return table[turns >> (32 - kBits)] * turn;
}

WeightMaker::WeightMaker(const WeightConfig& config, View<const cf32, 2> gains,
                         std::vector<std::vector<double>> subarrays)
    : config_(config), n_inputs_(config.n_antennas * config.n_pols) {
  const std::int64_t channels = config.channels.n_channels;
  if (config.n_antennas < 1 || config.n_pols < 1 || config.n_pols > 2 || channels < 1)
    throw ConfigError("beam weights: antennas, pols and channels must be at least 1");
  if (!config.sideband.empty() && static_cast<std::int64_t>(config.sideband.size()) != channels)
    throw ConfigError("beam weights: " + std::to_string(config.sideband.size()) +
                      " sidebands for " + std::to_string(channels) + " channels");
  if (gains.data != nullptr && gains.extent != std::array{n_inputs_, channels})
    throw ConfigError("beam weights: gains must be [input][channel] = [" +
                      std::to_string(n_inputs_) + "][" + std::to_string(channels) + "]");
  if (subarrays.empty()) subarrays.emplace_back(static_cast<std::size_t>(config.n_antennas), 1.0);
  n_subarrays_ = static_cast<std::int64_t>(subarrays.size());
  gains_.resize(channels * n_inputs_);
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t input = 0; input < n_inputs_; ++input) {
      const cf64 g = gains.data == nullptr ? cf64(1) : cf64(gains(input, channel));
      const bool good = std::isfinite(g.real()) && std::isfinite(g.imag()) && g != cf64(0);
      n_masked_gains_ += !good;
      gains_[channel * n_inputs_ + input] = good ? g : cf64(0);
    }
  }
  for (const auto& mask : subarrays) {
    bool any = false;
    if (static_cast<std::int64_t>(mask.size()) != config.n_antennas)
      throw ConfigError("beam weights: a sub-array lists " + std::to_string(mask.size()) +
                        " antennas of " + std::to_string(config.n_antennas));
    for (const double m : mask) {
      if (!(m >= 0 && m <= 1))
        throw ConfigError("beam weights: the taper of a sub-array must be 0 to 1");
      any = any || m > 0;
    }
    if (!any) throw ConfigError("beam weights: a sub-array has no antenna");
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      std::vector<cf64> factors(n_inputs_);
      for (std::int64_t pol = 0; pol < config.n_pols; ++pol)
        normalize(mask, channel, pol, factors.data());
      for (const cf64& f : factors) factors_.emplace_back(f);
    }
  }
}

void WeightMaker::normalize(const std::vector<double>& mask, std::int64_t channel, std::int64_t pol,
                            cf64* factors) const {
  const cf64* gains = gains_.data() + channel * n_inputs_;
  double gain_power = 0, masks = 0, weight_power = 0;
  for (std::int64_t a = 0; a < config_.n_antennas; ++a) {
    const cf64 g = gains[a * config_.n_pols + pol];
    if (g != cf64(0) && mask[a] > 0) gain_power += std::norm(g);
  }
  for (std::int64_t a = 0; a < config_.n_antennas; ++a) {
    const std::int64_t input = a * config_.n_pols + pol;
    const cf64 g = gains[input];
    const double m = mask[a];
    cf64 factor = 0;
    if (g != cf64(0) && m > 0) {
      if (config_.gain_mode == GainMode::inverse) factor = m / g;
      if (config_.gain_mode == GainMode::matched) factor = m * std::conj(g) / gain_power;
      if (config_.gain_mode == GainMode::phase) factor = m * std::conj(g) / std::abs(g);
      masks += m;
    }
    factors[input] = factor;
    weight_power += std::norm(factor);
  }
  double n = 1;
  if (config_.normalization == Normalization::mean && masks > 0) n = 1 / masks;
  if (config_.normalization == Normalization::noise && weight_power > 0)
    n = 1 / std::sqrt(weight_power);
  for (std::int64_t a = 0; a < config_.n_antennas; ++a) factors[a * config_.n_pols + pol] *= n;
}

Queue weights_queue() { return Queue::cpu(std::max(1, Queue::cpu().n_workers() / 2)); }

void WeightMaker::make(std::span<const Steering> steering, double dt_s,
                       std::span<const std::int64_t> subarray_of_beam,
                       View<cf32, 3> weights) const {
  const std::int64_t n_beams = weights.extent[0], n_channels = config_.channels.n_channels;
  if (weights.extent != std::array{n_beams, n_channels, n_inputs_} ||
      static_cast<std::int64_t>(steering.size()) != n_beams * n_inputs_ ||
      (!subarray_of_beam.empty() &&
       static_cast<std::int64_t>(subarray_of_beam.size()) != n_beams)) {
    throw ConfigError("beam weights: steering, sub-arrays and weights differ in shape");
  }
  std::vector<std::uint32_t> phase(n_inputs_), step(phase.size()), constant(phase.size());
  for (std::int64_t beam = 0; beam < n_beams; ++beam) {
    const std::int64_t subarray = subarray_of_beam.empty() ? 0 : subarray_of_beam[beam];
    if (subarray < 0 || subarray >= n_subarrays_)
      throw ConfigError("beam weights: beam " + std::to_string(beam) + " names sub-array " +
                        std::to_string(subarray) + " of " + std::to_string(n_subarrays_));
    for (std::int64_t input = 0; input < n_inputs_; ++input) {
      const Steering& s = steering[beam * n_inputs_ + input];
      const double delay_s = s.delay_s + s.rate_s_per_s * dt_s;
      // Whole turns go in double; from here on integers add up without loss: k steps are wrong by
      // k 2^-33 turns at most.
      const auto i = static_cast<std::size_t>(input);
      phase[i] = turns_of(-config_.channels.first_center_hz * delay_s);
      step[i] = turns_of(-config_.channels.step_hz * delay_s);
      constant[i] = turns_of(s.phase_turns);
    }
    const cf32* factor = factors_.data() + subarray * n_channels * n_inputs_;
    for (std::int64_t channel = 0; channel < n_channels; ++channel) {
      const bool lower = !config_.sideband.empty() && config_.sideband[channel] < 0;
      for (std::int64_t input = 0; input < n_inputs_; ++input) {
        const auto i = static_cast<std::size_t>(input);
        const std::uint32_t turns = (lower ? 0u - phase[i] : phase[i]) + constant[i];
        weights(beam, channel, input) = cf32(phasor(turns)) * factor[channel * n_inputs_ + input];
        phase[i] += step[i];
      }
    }
  }
}

}  // namespace ryle::beamform
