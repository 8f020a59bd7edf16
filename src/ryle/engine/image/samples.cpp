// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/samples.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::image {
namespace {

// Products of a dump that make one Stokes parameter: sum of sign * V / n.
struct Recipe {
  int n = 1;
  int pol[2] = {0, 0};  // diagonal products: pol of both inputs
  double sign[2] = {1, 1};
};

Recipe recipe_of(int stokes, std::int64_t n_pol_products) {
  if (n_pol_products == 1 && (stokes == 1 || stokes == -5)) return {};
  if (n_pol_products == 4) {
    if (stokes == 1) return {2, {0, 1}, {1, 1}};
    if (stokes == 2) return {2, {0, 1}, {1, -1}};
    if (stokes == -5) return {1, {0, 0}, {1, 0}};
    if (stokes == -6) return {1, {1, 1}, {1, 0}};
  }
  throw UnsupportedError(
      "image of STOKES " + std::to_string(stokes) + " from " + std::to_string(n_pol_products) +
      " product(s) a baseline: there are 1 (I), 2 (Q), -5 (XX) and -6 (YY); one pol has 1 and -5");
}

class Collector {
 public:
  Collector(const Observation& observation, const VisibilityDump& dump, const Selection& selection)
      : observation_(observation),
        dump_(dump),
        selection_(selection),
        recipe_(recipe_of(selection.stokes, dump.n_pol_products)) {
    const std::int64_t n_antennas = observation.array.n_antennas();
    if (dump.n_baselines != n_pairs(n_antennas)) {
      throw ConfigError("dump has " + std::to_string(dump.n_baselines) + " baselines, but " +
                        std::to_string(n_antennas) + " antennas have " +
                        std::to_string(n_pairs(n_antennas)));
    }
    const auto size =
        static_cast<std::size_t>(dump.n_channels * dump.n_baselines * dump.n_pol_products);
    if (dump.data.size() != size || dump.counts.size() != size) {
      throw ConfigError("dump holds " + std::to_string(dump.data.size()) + " values and " +
                        std::to_string(dump.counts.size()) + " counts where " +
                        std::to_string(size) + " belong");
    }
    channel_end_ =
        selection.n_channels > 0 ? selection.first_channel + selection.n_channels : dump.n_channels;
    if (selection.first_channel < 0 || channel_end_ > dump.n_channels) {
      throw ConfigError("channels " + std::to_string(selection.first_channel) + " to " +
                        std::to_string(channel_end_ - 1) + " of " +
                        std::to_string(dump.n_channels));
    }
    usable_.assign(static_cast<std::size_t>(2 * n_antennas), observation.array.inputs.empty());
    for (const auto& input : observation.array.inputs) {
      if (!input.bad) usable_[static_cast<std::size_t>(2 * input.antenna + input.pol)] = true;
    }
    axes_ = uvw_axes(observation.array, observation.phase_center, dump.centroid_tai_ns,
                     observation.earth_orientation);
  }

  void append(std::vector<Sample>& samples) const {
    for (std::int64_t j = 0; j < observation_.array.n_antennas(); ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        if ((i == j && !selection_.autocorrelations) || !is_usable(i) || !is_usable(j)) continue;
        append_baseline(i, j, samples);
      }
    }
  }

 private:
  bool is_usable(std::int64_t antenna) const {
    for (int k = 0; k < recipe_.n; ++k) {
      if (!usable_[static_cast<std::size_t>(2 * antenna + recipe_.pol[k])]) return false;
    }
    return true;
  }

  Vector3 uvw_m(std::int64_t i, std::int64_t j) const {
    const auto& a = observation_.array.antennas[static_cast<std::size_t>(i)].enu_m;
    const auto& b = observation_.array.antennas[static_cast<std::size_t>(j)].enu_m;
    Vector3 uvw{};
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t k = 0; k < 3; ++k) uvw[row] += axes_[row][k] * (a[k] - b[k]);
    }
    return uvw;
  }

  void append_baseline(std::int64_t i, std::int64_t j, std::vector<Sample>& samples) const {
    const Vector3 uvw = uvw_m(i, j);
    const double length_m = std::sqrt(uvw[0] * uvw[0] + uvw[1] * uvw[1] + uvw[2] * uvw[2]);
    for (std::int64_t channel = selection_.first_channel; channel < channel_end_; ++channel) {
      const double per_m = observation_.frequency.center_hz(channel) / kSpeedOfLight_m_per_s;
      const double length = length_m * per_m;
      if (length < selection_.min_baseline_wavelengths) continue;
      if (selection_.max_baseline_wavelengths > 0 && length > selection_.max_baseline_wavelengths)
        continue;
      Sample s;
      if (!combine(channel, i, j, s)) continue;
      s.u = uvw[0] * per_m;
      s.v = uvw[1] * per_m;
      s.w = uvw[2] * per_m;
      samples.push_back(s);
    }
  }

  // Mean of the products and its weight, that of the same number of equal spectra: n^2 / sum(1 /
  // count).
  bool combine(std::int64_t channel, std::int64_t i, std::int64_t j, Sample& s) const {
    double sum_of_inverses = 0;
    for (int k = 0; k < recipe_.n; ++k) {
      const int pol_product = dump_.n_pol_products == 1 ? 0 : 3 * recipe_.pol[k];
      const auto at = static_cast<std::size_t>(dump_.index(channel, pair_index(i, j), pol_product));
      if (dump_.counts[at] == 0) return false;
      double gain = 1;
      if (selection_.equalize_inputs) {
        const double power =
            auto_power(channel, i, pol_product) * auto_power(channel, j, pol_product);
        if (!(power > 0)) return false;
        gain = 1 / std::sqrt(power);
      }
      s.visibility += recipe_.sign[k] * gain / recipe_.n * cf64(dump_.data[at]);
      sum_of_inverses += 1.0 / dump_.counts[at];
    }
    s.weight = recipe_.n / sum_of_inverses;
    return true;
  }

  double auto_power(std::int64_t channel, std::int64_t antenna, int pol_product) const {
    return static_cast<double>(dump_
                                   .data[static_cast<std::size_t>(dump_.index(
                                       channel, pair_index(antenna, antenna), pol_product))]
                                   .real());
  }

  const Observation& observation_;
  const VisibilityDump& dump_;
  const Selection& selection_;
  Recipe recipe_;
  std::int64_t channel_end_ = 0;
  std::vector<bool> usable_;  // [antenna][pol]
  std::array<Vector3, 3> axes_{};
};

}  // namespace

std::vector<Sample> samples_of(const Observation& observation, const VisibilityDump& dump,
                               const Selection& selection) {
  std::vector<Sample> samples;
  Collector(observation, dump, selection).append(samples);
  return samples;
}

std::vector<Sample> samples_of(const Observation& observation,
                               const std::vector<VisibilityDump>& dumps,
                               const Selection& selection) {
  std::vector<Sample> samples;
  for (const auto& dump : dumps) Collector(observation, dump, selection).append(samples);
  return samples;
}

}  // namespace ryle::image
