// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/dump_builder.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/level_correction.hpp"

namespace ryle::pipeline {

correlate::InputMap input_map(const ArrayLayout& array) {
  correlate::InputMap map{array.n_antennas(),
                          std::vector<std::int64_t>(2 * array.n_antennas(), -1)};
  for (std::int64_t p = 0; p < array.n_inputs(); ++p) {
    const auto& input = array.inputs[p];
    auto& slot = map.input[2 * input.antenna + input.pol];
    if (slot >= 0) {
      throw ConfigError("layout: antenna \"" + array.antennas[input.antenna].name +
                        "\" has polarization " + (input.pol == 0 ? "X" : "Y") + " twice (inputs " +
                        std::to_string(slot) + " and " + std::to_string(p) + ")");
    }
    slot = p;
  }
  return map;
}

void DumpBuilder::stamp(const RawDump& raw, VisibilityDump& dump) const {
  const double step_s = raw.clock.seconds(setup_.step_samples);
  dump.start_tai_ns = raw.clock.tai_ns(raw.first_spectrum * setup_.step_samples);
  dump.n_spectra = raw.n_spectra;
  dump.interval_s = step_s * static_cast<double>(raw.n_spectra);
  // Centroid of M spectra: ((M-1) step + L - 1) / 2 samples after the first (conventions.md 4).
  const double half_s = 0.5 * (step_s * static_cast<double>(raw.n_spectra - 1) +
                               raw.clock.seconds(setup_.window_samples - 1));
  dump.centroid_tai_ns = dump.start_tai_ns + static_cast<std::int64_t>(std::llround(half_s * 1e9));
}

std::vector<cf64> DumpBuilder::gains(const std::vector<double>& requantiser_scale) const {
  const std::int64_t n_channels = setup_.finish.frequency.n_channels;
  std::vector<cf64> result(setup_.n_inputs * n_channels, cf64(std::sqrt(setup_.flux_scale), 0));
  for (std::size_t k = 0; k < result.size(); ++k) {
    const std::size_t input = k / static_cast<std::size_t>(n_channels);
    if (!requantiser_scale.empty()) result[k] /= requantiser_scale[input];
    if (!setup_.gains.empty()) result[k] *= cf64(setup_.gains[k]);
  }
  return result;
}

bool DumpBuilder::usable(std::int64_t baseline, std::int64_t pol_product) const {
  if (setup_.bad.empty()) return true;
  const auto [i, j] = pair_of(baseline);
  const auto bad = [&](std::int64_t antenna, std::int64_t pol) {
    const std::int64_t p = setup_.finish.map.input[2 * antenna + pol];
    return p < 0 || setup_.bad[p] != 0;
  };
  return !bad(i, pol_product / 2) && !bad(j, pol_product % 2);
}

VisibilityDump DumpBuilder::build(const RawDump& raw,
                                  const std::vector<double>& requantiser_scale) const {
  VisibilityDump dump;
  stamp(raw, dump);
  correlate::FinishConfig finish = setup_.finish;
  finish.gains = gains(requantiser_scale);
  if (setup_.samples && !raw.levels.empty())
    finish.samplers = sampler_gains(raw.levels, *setup_.samples);
  std::vector<double> delays;
  if (setup_.rotate) delays = setup_.rotate->delays_s(dump.centroid_tai_ns);
  const correlate::Finished finished =
      correlate::finish_dump(raw.sums, finish, setup_.n_inputs, delays);

  dump.n_channels = finish.frequency.n_channels;
  dump.n_baselines = n_pairs(finish.map.n_antennas);
  dump.n_pol_products = setup_.n_pols == 1 ? 1 : 4;
  const std::int64_t finished_pols = finished.n_products / dump.n_baselines;
  const auto size =
      static_cast<std::size_t>(dump.n_channels * dump.n_baselines * dump.n_pol_products);
  dump.data.resize(size);
  dump.counts.resize(size);
  const double minimum = std::max(1.0, static_cast<double>(raw.n_spectra) * setup_.min_fraction);
  for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
    for (std::int64_t pol = 0; pol < dump.n_pol_products; ++pol) {
      if (!usable(b, pol)) continue;
      for (std::int64_t c = 0; c < dump.n_channels; ++c) {
        const auto from =
            static_cast<std::size_t>(c * finished.n_products + b * finished_pols + pol);
        const auto to = static_cast<std::size_t>(dump.index(c, b, pol));
        if (finished.counts[from] < minimum) continue;
        dump.counts[to] = finished.counts[from];
        dump.data[to] = cf32(finished.mean[from]);
      }
    }
  }
  return dump;
}

}  // namespace ryle::pipeline
