// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/finish.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/van_vleck.hpp"

namespace ryle::correlate {
namespace {

void validate(const Sums& sums, const FinishConfig& config, std::int64_t n_inputs,
              std::span<const double> delays_s) {
  const auto reject = [](const std::string& what) {
    throw ConfigError("finish of a dump: " + what);
  };
  if (n_inputs < 1) reject("n_inputs is " + std::to_string(n_inputs) + "; it must be at least 1");
  const std::int64_t pairs = n_pairs(n_inputs);
  const auto n_sums = static_cast<std::int64_t>(std::max(sums.integer.size(), sums.real.size()));
  if (n_sums == 0 || n_sums % pairs != 0 ||
      static_cast<std::int64_t>(sums.counts.size()) != n_sums) {
    reject(std::to_string(n_sums) + " sums and " + std::to_string(sums.counts.size()) +
           " counts are not [channel][" + std::to_string(pairs) + " pairs of " +
           std::to_string(n_inputs) + " inputs]");
  }
  const std::int64_t n_channels = n_sums / pairs;
  if (!config.gains.empty() &&
      static_cast<std::int64_t>(config.gains.size()) != n_inputs * n_channels) {
    reject(std::to_string(config.gains.size()) + " gains; [input][channel] needs " +
           std::to_string(n_inputs * n_channels));
  }
  if (!delays_s.empty()) {
    if (static_cast<std::int64_t>(delays_s.size()) != n_inputs) {
      reject(std::to_string(delays_s.size()) + " delays for " + std::to_string(n_inputs) +
             " inputs");
    }
    if (config.frequency.n_channels != n_channels) {
      reject("delays need the frequency axis of all " + std::to_string(n_channels) +
             " channels, it has " + std::to_string(config.frequency.n_channels));
    }
  }
  if (!config.samplers.empty() && static_cast<std::int64_t>(config.samplers.size()) != n_inputs) {
    reject(std::to_string(config.samplers.size()) + " sampler gains for " +
           std::to_string(n_inputs) + " inputs");
  }
  if (config.van_vleck && config.quantizer.n_levels < 2)
    reject("the quantizer has fewer than 2 levels");
  if (config.order != Order::products) return;
  if (static_cast<std::int64_t>(config.map.input.size()) != 2 * config.map.n_antennas ||
      config.map.n_antennas < 1) {
    reject("order \"products\" needs an input map [2*antenna + pol] of at least one antenna");
  }
  for (const auto input : config.map.input) {
    if (input < -1 || input >= n_inputs) {
      reject("the input map names input " + std::to_string(input) + "; there are " +
             std::to_string(n_inputs));
    }
  }
}

// One channel on its way through: triangle of means, and the factor every input contributes.
struct Channel {
  std::vector<cf64> mean;
  const std::uint32_t* counts = nullptr;
  std::vector<cf64> factor;

  cf64 value(std::int64_t i, std::int64_t j) const {
    return i <= j ? mean[pair_index(i, j)] : std::conj(mean[pair_index(j, i)]);
  }
  std::uint32_t count(std::int64_t i, std::int64_t j) const {
    return counts[i <= j ? pair_index(i, j) : pair_index(j, i)];
  }
};

void take_mean(const Sums& sums, std::int64_t first, Channel& channel) {
  channel.counts = sums.counts.data() + first;
  for (std::size_t p = 0; p < channel.mean.size(); ++p) {
    const std::uint32_t n = channel.counts[p];
    const std::size_t at = static_cast<std::size_t>(first) + p;
    const cf64 sum = sums.integer.empty() ? sums.real[at]
                                          : cf64{static_cast<double>(sums.integer[at].re),
                                                 static_cast<double>(sums.integer[at].im)};
    channel.mean[p] = n == 0 ? cf64{} : sum / static_cast<double>(n);
  }
}

// gain_i exp(-2 pi i nu d_i): the phase is reduced in turns, in double, before sin and cos.
void set_factors(const FinishConfig& config, std::int64_t k, std::int64_t n_channels,
                 std::span<const double> delays_s, Channel& channel) {
  for (std::size_t i = 0; i < channel.factor.size(); ++i) {
    cf64 factor = config.gains.empty() ? cf64{1} : config.gains[i * n_channels + k];
    if (!delays_s.empty()) {
      const double turns = config.frequency.center_hz(k) * delays_s[i];
      const double angle_rad = -2 * std::numbers::pi * (turns - std::round(turns));
      factor *= cf64{std::cos(angle_rad), std::sin(angle_rad)};
    }
    channel.factor[i] = factor;
  }
}

void apply_factors(Channel& channel) {
  const auto n = static_cast<std::int64_t>(channel.factor.size());
  for (std::int64_t j = 0; j < n; ++j) {
    const cf64 right = std::conj(channel.factor[j]);
    for (std::int64_t i = 0; i < j; ++i)
      channel.mean[pair_index(i, j)] *= channel.factor[i] * right;
    channel.mean[pair_index(j, j)] *= std::norm(channel.factor[j]);  // stays real
  }
}

void apply_samplers(std::span<const SamplerGain> samplers, Channel& channel) {
  const auto n = static_cast<std::int64_t>(samplers.size());
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < j; ++i)
      channel.mean[pair_index(i, j)] *= samplers[i].cross * samplers[j].cross;
    channel.mean[pair_index(j, j)] *= samplers[j].autos;
  }
}

// A power from n spectra is uncertain by 1/sqrt(n): 6 %, so 3 % of the rms.
constexpr std::uint32_t kMinSpectra = 256;

bool knows_levels(const Channel& channel) {
  const auto n = static_cast<std::int64_t>(channel.factor.size());
  std::uint32_t maximum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    maximum = std::max(maximum, channel.counts[pair_index(i, i)]);
  return maximum >= kMinSpectra;
}

// [input], from the power of all channels.
std::vector<SamplerGain> band_gains(const Sums& sums, const Quantizer& quantizer,
                                    std::int64_t n_inputs) {
  const std::int64_t pairs = n_pairs(n_inputs);
  const auto n_channels = static_cast<std::int64_t>(sums.counts.size()) / pairs;
  std::vector<SamplerGain> gains(n_inputs);
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    double power = 0;
    double count = 0;
    for (std::int64_t k = 0; k < n_channels; ++k) {
      const auto at = static_cast<std::size_t>(k * pairs + pair_index(i, i));
      power +=
          sums.integer.empty() ? sums.real[at].real() : static_cast<double>(sums.integer[at].re);
      count += sums.counts[at];
    }
    if (count >= kMinSpectra) gains[i] = quantized_gain(quantizer, power / count);
  }
  return gains;
}

void put_products(const Channel& channel, const InputMap& map, cf64* mean, std::uint32_t* counts) {
  for (std::int64_t j = 0; j < map.n_antennas; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      for (std::int64_t product = 0; product < 4; ++product, ++mean, ++counts) {
        const std::int64_t p = map.input[2 * i + product / 2];
        const std::int64_t q = map.input[2 * j + product % 2];
        if (p < 0 || q < 0) continue;  // an antenna without this polarization: value 0, count 0
        *mean = channel.value(p, q);
        *counts = channel.count(p, q);
      }
    }
  }
}

void put_matrix(const Channel& channel, std::int64_t n_inputs, cf64* mean, std::uint32_t* counts) {
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    for (std::int64_t j = 0; j < n_inputs; ++j) {
      *mean++ = channel.value(i, j);
      *counts++ = channel.count(i, j);
    }
  }
}

std::int64_t products_of(const FinishConfig& config, std::int64_t n_inputs) {
  switch (config.order) {
    case Order::products:
      return 4 * n_pairs(config.map.n_antennas);
    case Order::triangle:
      return n_pairs(n_inputs);
    default:
      return n_inputs * n_inputs;
  }
}

}  // namespace

SamplerGain quantized_gain(const Quantizer& quantizer, double power) {
  const double rms = detail::rms_of_power(quantizer, 0.5 * power);
  if (!(rms > 0)) return {};
  std::array<double, 1> k{};
  detail::hermite_coefficients(quantizer, rms, k);
  return {rms / k[0], rms * rms / (0.5 * power)};
}

Finished finish_dump(const Sums& sums, const FinishConfig& config, std::int64_t n_inputs,
                     std::span<const double> delays_s) {
  validate(sums, config, n_inputs, delays_s);
  const std::int64_t pairs = n_pairs(n_inputs);
  Finished done;
  done.n_channels = static_cast<std::int64_t>(sums.counts.size()) / pairs;
  done.n_products = products_of(config, n_inputs);
  done.n_spectra = sums.n_spectra;
  done.mean.resize(done.n_channels * done.n_products);
  done.counts.resize(done.mean.size());
  Channel channel;
  channel.mean.resize(pairs);
  channel.factor.resize(n_inputs);
  detail::VanVleck van_vleck(config.quantizer, n_inputs);
  std::vector<SamplerGain> first_order;
  for (std::int64_t k = 0; k < done.n_channels; ++k) {
    take_mean(sums, k * pairs, channel);
    const bool full = config.van_vleck && (config.quantizer.dithered || knows_levels(channel));
    if (full) {
      van_vleck.correct(channel.mean);
    } else if (config.van_vleck) {
      if (first_order.empty()) first_order = band_gains(sums, config.quantizer, n_inputs);
      apply_samplers(first_order, channel);
    }
    apply_samplers(config.samplers, channel);
    if (!config.gains.empty() || !delays_s.empty()) {
      set_factors(config, k, done.n_channels, delays_s, channel);
      apply_factors(channel);
    }
    cf64* mean = done.mean.data() + k * done.n_products;
    std::uint32_t* counts = done.counts.data() + k * done.n_products;
    if (config.order == Order::products) {
      put_products(channel, config.map, mean, counts);
    } else if (config.order == Order::matrix) {
      put_matrix(channel, n_inputs, mean, counts);
    } else {
      std::copy(channel.mean.begin(), channel.mean.end(), mean);
      std::copy(channel.counts, channel.counts + pairs, counts);
    }
  }
  return done;
}

}  // namespace ryle::correlate
