// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/pairs.hpp"

#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/engine/image/weights.hpp"

namespace ryle::image::detail {

PairSource pair_source(const AllSkyConfig&, const CpuRoles& roles, std::int64_t a, std::int64_t b) {
  PairSource source{};
  source.a = static_cast<std::int32_t>(a);
  source.b = static_cast<std::int32_t>(b);
  for (int p = 0; p < 2; ++p) {
    for (int q = 0; q < 2; ++q) {
      const int product = 2 * p + q;
      const std::int32_t sa = roles.slots[2 * a + p];
      const std::int32_t sb = roles.slots[2 * b + q];
      if (sa < 0 || sb < 0) {
        source.index[product] = -1;
        source.conjugate |= 16 << product;
        continue;
      }
      const std::int64_t i = roles.inputs[sa];
      const std::int64_t j = roles.inputs[sb];
      source.index[product] =
          static_cast<std::int32_t>(i <= j ? pair_index(i, j) : pair_index(j, i));
      if (i > j) source.conjugate |= 1 << product;
    }
  }
  return source;
}

std::vector<PairSource> make_pairs(const AllSkyConfig& config, const CpuRoles& roles, bool autos) {
  std::vector<PairSource> pairs;
  const auto n = static_cast<std::int64_t>(roles.antennas.size());
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t a = 0; a < b; ++a) pairs.push_back(pair_source(config, roles, a, b));
    if (autos) pairs.push_back(pair_source(config, roles, b, b));
  }
  return pairs;
}

void PairGainTables::set(const CpuRoles& roles, std::span<const cf32> gains,
                         const std::vector<cf64>& heights) {
  const std::size_t n = roles.antennas.size();
  first.assign(8 * n, 0);
  second.assign(8 * n, 0);
  for (std::size_t place = 0; place < n; ++place) {
    cf32 g[2] = {};
    for (std::size_t pol = 0; pol < 2; ++pol) {
      const std::int32_t slot = roles.slots[2 * place + pol];
      if (slot < 0) continue;
      const cf64 height = heights.empty() ? cf64(1) : heights[place];
      g[pol] = cf32(cf64(gains[slot]) * height);
    }
    for (std::size_t q = 0; q < 4; ++q) {
      first[8 * place + q] = g[q / 2].real();
      first[8 * place + 4 + q] = g[q / 2].imag();
      second[8 * place + q] = g[q % 2].real();
      second[8 * place + 4 + q] = g[q % 2].imag();
    }
  }
}

SumType sum_type(VisInput::Type type) {
  switch (type) {
    case VisInput::Type::ci32:
      return SumType::ci32;
    case VisInput::Type::ci64:
      return SumType::ci64;
    case VisInput::Type::cf32:
      return SumType::cf32;
    case VisInput::Type::cf64:
      break;
  }
  return SumType::cf64;
}

const void* channel_sums(const VisInput& input, std::int64_t channel, std::int64_t n_inputs) {
  const bool narrow = input.type == VisInput::Type::ci32 || input.type == VisInput::Type::cf32;
  return static_cast<const std::byte*>(input.sums) +
         channel * n_pairs(n_inputs) * (narrow ? 8 : 16);
}

bool needs_counting(const VisInput& input) {
  return input.counts != nullptr || input.type == VisInput::Type::cf32 ||
         input.type == VisInput::Type::cf64;
}

std::vector<double> uncounted_weights(const AllSkyConfig& config, std::span<const cf32> gains,
                                      const VisInput& input) {
  std::vector<double> weights(3 * n_bins(config));
  if (needs_counting(input)) return weights;
  FieldInput whole;
  whole.n_spectra = input.n_spectra;
  add_field_weights(config, gains, whole, weights);
  return weights;
}

namespace {

template <class T>
bool is_finite(const void* sums, std::int64_t index) {
  const T* p = static_cast<const T*>(sums) + 2 * index;
  return std::isfinite(p[0]) && std::isfinite(p[1]);
}

bool is_finite(VisInput::Type type, const void* sums, std::int64_t index) {
  if (type == VisInput::Type::cf32) return is_finite<float>(sums, index);
  if (type == VisInput::Type::cf64) return is_finite<double>(sums, index);
  return true;
}

}  // namespace

namespace {

// Textbook form: any type of sums.
void count_finite(const VisInput& input, const std::uint32_t* counts, const void* sums,
                  std::span<const PairSource> pairs, const PairGains& gains, double* weights) {
  for (const PairSource& pair : pairs) {
    const float* a = gains.first + 8 * pair.a;
    const float* b = gains.second + 8 * pair.b;
    for (int q = 0; q < 4; ++q) {
      const std::int32_t at = pair.index[q];
      if (at < 0 || (a[q] == 0 && a[q + 4] == 0) || (b[q] == 0 && b[q + 4] == 0)) continue;
      if (pair.a == pair.b && q == 2) continue;  // YX of an antenna is its XY again
      if (!is_finite(input.type, sums, at)) continue;
      const double count = counts != nullptr ? counts[at] : static_cast<double>(input.n_spectra);
      // XX and YY: the pair stands for a, b and b, a; XY: a, b, and YX for b, a.
      const bool same_pol = q == 0 || q == 3;
      weights[q == 0 ? 0 : q == 3 ? 1 : 2] += same_pol && pair.a != pair.b ? 2 * count : count;
    }
  }
}

// [place][X, Y] all bits where the gain is not 0.
std::vector<std::uint32_t> usable_masks(const PairGains& gains, std::size_t n) {
  std::vector<std::uint32_t> masks;
  for (std::size_t place = 0; place < n; ++place) {
    const float* g = gains.second + 8 * place;  // X Y X Y
    masks.push_back(g[0] != 0 || g[4] != 0 ? ~0u : 0u);
    masks.push_back(g[1] != 0 || g[5] != 0 ? ~0u : 0u);
  }
  return masks;
}

}  // namespace

void count_pairs(const VisInput& input, std::int64_t channel, std::int64_t n_inputs,
                 std::span<const PairSource> pairs, const PairGains& gains, double* weights) {
  const std::uint32_t* counts =
      input.counts == nullptr ? nullptr : input.counts + channel * n_pairs(n_inputs);
  const bool integers = input.type == VisInput::Type::ci32 || input.type == VisInput::Type::ci64;
  if (counts == nullptr || !integers) {
    const void* sums = channel_sums(input, channel, n_inputs);
    return count_finite(input, counts, sums, pairs, gains, weights);
  }
  if (pairs.empty()) return;
  const auto usable = usable_masks(gains, static_cast<std::size_t>(pairs.back().b) + 1);
  std::uint64_t xx = 0, yy = 0, xy = 0, own_xx = 0, own_yy = 0;
  for (const PairSource& pair : pairs) {
    const std::uint32_t ax = usable[2 * pair.a];
    const std::uint32_t ay = usable[2 * pair.a + 1];
    const std::uint32_t bx = usable[2 * pair.b];
    const std::uint32_t by = usable[2 * pair.b + 1];
    // An absent product has an unused input: what is read in its place is masked.
    const auto at = [&](int q) { return counts[pair.index[q] < 0 ? 0 : pair.index[q]]; };
    const std::uint32_t own = pair.a == pair.b ? ~0u : 0u;
    const std::uint32_t cx = at(0) & ax & bx, cy = at(3) & ay & by;
    xx += cx;
    yy += cy;
    own_xx += cx & own;
    own_yy += cy & own;
    // YX of an antenna is its XY again.
    xy += std::uint64_t{at(1) & ax & by} + (at(2) & ay & bx & ~own);
  }
  // A pair stands for a, b and b, a.
  weights[0] += static_cast<double>(2 * xx - own_xx);
  weights[1] += static_cast<double>(2 * yy - own_yy);
  weights[2] += static_cast<double>(xy);
}

}  // namespace ryle::image::detail
