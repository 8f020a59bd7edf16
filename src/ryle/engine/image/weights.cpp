// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"

namespace ryle::image {
namespace {

using Weights = std::array<double, 3>;

// 64 counters side by side: plane b holds bit b of each. Inputs are added a word at a time.
class Counters {
 public:
  void add(std::uint64_t bits) {
    for (std::size_t b = 0; bits != 0; ++b) {
      const std::uint64_t carry = planes_[b] & bits;
      planes_[b] ^= bits;
      bits = carry;
      n_planes_ = std::max(n_planes_, b + 1);
    }
  }
  std::int64_t at(int position) const {
    std::int64_t count = 0;
    for (std::size_t b = 0; b < n_planes_; ++b) {
      count |= static_cast<std::int64_t>((planes_[b] >> position) & 1) << b;
    }
    return count;
  }

 private:
  std::array<std::uint64_t, 32> planes_{};
  std::size_t n_planes_ = 0;
};

// The inputs of one antenna, -1 = not used.
struct Receptor {
  std::int64_t x = -1, y = -1;
};

std::vector<Receptor> used_receptors(const AllSkyConfig& config, const cf32* gains) {
  std::vector<Receptor> receptors(config.antenna_enu_m.size());
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const auto& role = config.inputs[i];
    if (!is_used(role, gains[i])) continue;
    auto& receptor = receptors[role.antenna];
    (role.pol == 0 ? receptor.x : receptor.y) = static_cast<std::int64_t>(i);
  }
  return receptors;
}

Weights of_counts(double x, double y, double both, bool remove_autos) {
  const double autos = remove_autos ? 1 : 0;
  return {x * x - autos * x, y * y - autos * y, x * y - autos * both};
}

Weights of_masks(const std::vector<Receptor>& receptors, const std::uint64_t* masks,
                 std::int64_t words, std::int64_t n_spectra, bool remove_autos) {
  Weights sum{};
  for (std::int64_t word = 0; word < words_for_bits(n_spectra); ++word) {
    Counters x, y, both;
    for (const auto& r : receptors) {
      const std::uint64_t bits_x = r.x >= 0 ? masks[r.x * words + word] : 0;
      const std::uint64_t bits_y = r.y >= 0 ? masks[r.y * words + word] : 0;
      x.add(bits_x);
      y.add(bits_y);
      both.add(bits_x & bits_y);
    }
    const std::int64_t n = std::min<std::int64_t>(64, n_spectra - 64 * word);
    for (int t = 0; t < n; ++t) {
      const auto w = of_counts(static_cast<double>(x.at(t)), static_cast<double>(y.at(t)),
                               static_cast<double>(both.at(t)), remove_autos);
      for (std::size_t k = 0; k < 3; ++k) sum[k] += w[k];
    }
  }
  return sum;
}

Weights of_full(const std::vector<Receptor>& receptors, std::int64_t n_spectra, bool remove_autos) {
  double x = 0, y = 0, both = 0;
  for (const auto& r : receptors) {
    x += r.x >= 0;
    y += r.y >= 0;
    both += r.x >= 0 && r.y >= 0;
  }
  auto sum = of_counts(x, y, both, remove_autos);
  for (auto& w : sum) w *= static_cast<double>(n_spectra);
  return sum;
}

bool same_inputs(const AllSkyConfig& config, const cf32* a, const cf32* b) {
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    if (is_used(config.inputs[i], a[i]) != is_used(config.inputs[i], b[i])) return false;
  }
  return true;
}

}  // namespace

bool is_used(const InputRole& input, cf32 gain) {
  return !input.bad && std::isfinite(gain.real()) && std::isfinite(gain.imag()) && gain != cf32(0);
}

void add_field_weights(const AllSkyConfig& config, std::span<const cf32> gains,
                       const FieldInput& input, std::vector<double>& weights) {
  const auto n_inputs = static_cast<std::int64_t>(config.inputs.size());
  Weights of_channel{};
  for (std::int64_t channel = 0; channel < config.channels.n_channels; ++channel) {
    const cf32* gain = gains.data() + channel * n_inputs;
    const bool as_before = channel > 0 &&
                           (input.valid == nullptr || input.valid_channel_stride_words == 0) &&
                           same_inputs(config, gain, gain - n_inputs);
    if (!as_before) {
      const auto receptors = used_receptors(config, gain);
      of_channel =
          input.valid == nullptr
              ? of_full(receptors, input.n_spectra, config.remove_autos)
              : of_masks(receptors, input.valid + channel * input.valid_channel_stride_words,
                         input.valid_words, input.n_spectra, config.remove_autos);
    }
    const auto bin = static_cast<std::size_t>(channel / config.n_channels_per_bin);
    for (std::size_t k = 0; k < 3; ++k) weights[3 * bin + k] += of_channel[k];
  }
}

void add_vis_weights(const AllSkyConfig& config, std::span<const cf32> gains,
                     const std::uint32_t* counts, std::int64_t n_spectra,
                     std::vector<double>& weights) {
  const auto n_inputs = static_cast<std::int64_t>(config.inputs.size());
  for (std::int64_t channel = 0; channel < config.channels.n_channels; ++channel) {
    const cf32* gain = gains.data() + channel * n_inputs;
    double* sums = &weights[3 * static_cast<std::size_t>(channel / config.n_channels_per_bin)];
    if (counts == nullptr) {
      const auto full = of_full(used_receptors(config, gain), n_spectra, config.remove_autos);
      for (std::size_t k = 0; k < 3; ++k) sums[k] += full[k];
      continue;
    }
    for (std::int64_t j = 0; j < n_inputs; ++j) {
      const auto& b = config.inputs[j];
      if (!is_used(b, gain[j])) continue;
      for (std::int64_t i = 0; i <= j; ++i) {
        const auto& a = config.inputs[i];
        if (!is_used(a, gain[i]) || (config.remove_autos && a.antenna == b.antenna)) continue;
        const double n = counts[channel * n_pairs(n_inputs) + pair_index(i, j)];
        sums[a.pol != b.pol ? 2 : a.pol] += a.pol == b.pol && i != j ? 2 * n : n;
      }
    }
  }
}

}  // namespace ryle::image
