// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu_weights.hpp"

#include <algorithm>

namespace ryle::image::detail {
namespace {

/// Counts set bits at 64 places at once: plane b holds bit b of the 64 counts.
class ColumnCounter {
 public:
  void add(std::uint64_t word) {
    for (auto& plane : planes_) {
      const std::uint64_t carry = plane & word;
      plane ^= word;
      word = carry;
      if (word == 0) return;
    }
  }
  std::int64_t count(int place) const {
    std::int64_t n = 0;
    for (std::size_t b = 0; b < kBits; ++b) {
      n |= static_cast<std::int64_t>(planes_[b] >> place & 1u) << b;
    }
    return n;
  }

 private:
  static constexpr std::size_t kBits = 15;
  std::uint64_t planes_[kBits] = {};
};

void add_products(double x, double y, double both, double autos, double times, double* weights) {
  weights[0] += times * (x * x - autos * x);
  weights[1] += times * (y * y - autos * y);
  weights[2] += times * (x * y - autos * both);
}

}  // namespace

FieldWeights::FieldWeights(const AllSkyConfig& config, const CpuRoles& roles)
    : roles_(roles),
      n_channels_(config.channels.n_channels),
      channels_per_bin_(config.n_channels_per_bin),
      remove_autos_(config.remove_autos),
      same_as_(static_cast<std::size_t>(n_channels_)) {}

void FieldWeights::set_used(const std::vector<cf32>& gains) {
  const std::size_t n = roles_.inputs.size();
  used_.resize(gains.size());
  for (std::size_t i = 0; i < gains.size(); ++i) used_[i] = gains[i] != cf32(0);
  for (std::size_t c = 0; c < same_as_.size(); ++c) {
    const auto* row = used_.data() + c * n;
    const bool same = c > 0 && std::equal(row, row + n, used_.data() + n * same_as_[c - 1]);
    same_as_[c] = same ? same_as_[c - 1] : static_cast<std::int64_t>(c);
  }
}

void FieldWeights::add_whole(std::int64_t n_spectra, std::int64_t channel, double* weights) const {
  const auto* used = used_.data() + channel * static_cast<std::int64_t>(roles_.inputs.size());
  double x = 0, y = 0, both = 0;
  for (std::size_t place = 0; place < roles_.antennas.size(); ++place) {
    const std::int32_t sx = roles_.slots[2 * place], sy = roles_.slots[2 * place + 1];
    const bool has_x = sx >= 0 && used[sx], has_y = sy >= 0 && used[sy];
    x += has_x;
    y += has_y;
    both += has_x && has_y;
  }
  add_products(x, y, both, remove_autos_ ? 1 : 0, static_cast<double>(n_spectra), weights);
}

void FieldWeights::add_masked(const FieldInput& input, std::int64_t channel,
                              double* weights) const {
  const auto* used = used_.data() + channel * static_cast<std::int64_t>(roles_.inputs.size());
  const std::uint64_t* mask = input.valid + channel * input.valid_channel_stride_words;
  const auto word_of = [&](std::int32_t slot, std::int64_t w) -> std::uint64_t {
    if (slot < 0 || !used[slot]) return 0;
    return mask[roles_.inputs[static_cast<std::size_t>(slot)] * input.valid_words + w];
  };
  for (std::int64_t w = 0; 64 * w < input.n_spectra; ++w) {
    ColumnCounter x, y, both;
    for (std::size_t place = 0; place < roles_.antennas.size(); ++place) {
      const std::uint64_t vx = word_of(roles_.slots[2 * place], w);
      const std::uint64_t vy = word_of(roles_.slots[2 * place + 1], w);
      x.add(vx);
      y.add(vy);
      both.add(vx & vy);
    }
    const int n = static_cast<int>(std::min<std::int64_t>(64, input.n_spectra - 64 * w));
    for (int t = 0; t < n; ++t) {
      add_products(static_cast<double>(x.count(t)), static_cast<double>(y.count(t)),
                   static_cast<double>(both.count(t)), remove_autos_ ? 1 : 0, 1, weights);
    }
  }
}

void FieldWeights::add(const FieldInput& input, std::vector<double>& weights) {
  const bool shared = input.valid == nullptr || input.valid_channel_stride_words == 0;
  double last[3] = {};
  for (std::int64_t channel = 0; channel < n_channels_; ++channel) {
    if (!shared || same_as_[static_cast<std::size_t>(channel)] == channel) {
      last[0] = last[1] = last[2] = 0;
      if (input.valid == nullptr) {
        add_whole(input.n_spectra, channel, last);
      } else {
        add_masked(input, channel, last);
      }
    }
    for (int p = 0; p < 3; ++p) {
#if RYLE_MUTANT == 167
      weights[static_cast<std::size_t>(3 * (channel / channels_per_bin_) + p)] = last[p];
#else
      weights[static_cast<std::size_t>(3 * (channel / channels_per_bin_) + p)] += last[p];
#endif
    }
  }
}

}  // namespace ryle::image::detail
