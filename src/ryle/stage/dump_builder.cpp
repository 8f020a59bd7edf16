// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/dump_builder.hpp"

#include <cmath>

#include "ryle/core/error.hpp"

namespace ryle::stage {

correlate::InputMap input_map(const ArrayLayout& array) {
  correlate::InputMap map{
      array.n_antennas(),
      std::vector<std::int64_t>(static_cast<std::size_t>(2 * array.n_antennas()), -1)};
  for (std::int64_t p = 0; p < array.n_inputs(); ++p) {
    const auto& input = array.inputs[static_cast<std::size_t>(p)];
    auto& slot = map.input[static_cast<std::size_t>(2 * input.antenna + input.pol)];
    if (slot >= 0) {
      throw ConfigError("layout: antenna \"" +
                        array.antennas[static_cast<std::size_t>(input.antenna)].name +
                        "\" has polarization " + (input.pol == 0 ? "X" : "Y") + " twice (inputs " +
                        std::to_string(slot) + " and " + std::to_string(p) + ")");
    }
    slot = p;
  }
  return map;
}

VisibilityDump DumpBuilder::build(const RawDump& raw,
                                  const std::vector<double>& requantiser_scale) const {
  const std::int64_t n_channels = setup_.finish.frequency.n_channels;
  const std::int64_t n_inputs = setup_.n_inputs;

  VisibilityDump dump;
  const Tick first = raw.first_spectrum * setup_.step_samples;
  const auto at = [&](double spectra) {
    return raw.clock.seconds(static_cast<Tick>(setup_.step_samples)) * spectra * 1e9;
  };
  dump.start_tai_ns = raw.clock.tai_ns(first);
  dump.n_spectra = raw.n_spectra;
  dump.interval_s = at(static_cast<double>(raw.n_spectra)) * 1e-9;
  // Centroid of M spectra: ((M-1) step + L - 1) / 2 samples after the first (conventions.md 4).
  const double half_ns = 0.5 * at(static_cast<double>(raw.n_spectra - 1)) +
                         0.5e9 * raw.clock.seconds(setup_.window_samples - 1);
  dump.centroid_tai_ns = dump.start_tai_ns + static_cast<std::int64_t>(std::llround(half_ns));

  correlate::FinishConfig finish = setup_.finish;
  finish.gains.assign(static_cast<std::size_t>(n_inputs * n_channels),
                      cf32(static_cast<float>(std::sqrt(setup_.flux_scale)), 0));
  for (std::int64_t p = 0; p < n_inputs; ++p) {
    for (std::int64_t c = 0; c < n_channels; ++c) {
      auto& g = finish.gains[static_cast<std::size_t>(p * n_channels + c)];
      if (!requantiser_scale.empty())
        g /= static_cast<float>(requantiser_scale[static_cast<std::size_t>(p)]);
      if (!setup_.gains.empty()) g *= setup_.gains[static_cast<std::size_t>(p * n_channels + c)];
    }
  }
  std::vector<double> delays;
  if (setup_.rotate) delays = setup_.rotate->delays_s(dump.centroid_tai_ns);
  const correlate::Finished finished = correlate::finish_dump(raw.sums, finish, n_inputs, delays);

  dump.n_channels = n_channels;
  dump.n_baselines = n_pairs(finish.map.n_antennas);
  dump.n_pol_products = finished.n_products / dump.n_baselines;
  dump.data.resize(finished.mean.size());
  dump.counts = finished.counts;
  const auto least = static_cast<double>(raw.n_spectra) * setup_.min_fraction;
  for (std::size_t k = 0; k < dump.data.size(); ++k) {
    if (dump.counts[k] < least) dump.counts[k] = 0;
    dump.data[k] = dump.counts[k] == 0 ? cf32{} : cf32(finished.mean[k]);
  }
  return dump;
}

}  // namespace ryle::stage
