// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/changing_sky.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::pipeline {

simulate::SpectraConfig simulated_spectra(const ObservationConfig& config, const SampleClock& clock,
                                          const FrequencyAxis& channels) {
  simulate::SpectraConfig spectra;
  spectra.n_spectra = config.simulator.period_samples;
  spectra.spectrum_rate_hz = clock.rate_hz;
  spectra.channels = channels;
  spectra.start_tai_ns = clock.epoch_tai_ns;
  spectra.level_lsb = config.simulator.rms_lsb;
  spectra.n_workers = static_cast<int>(config.runtime.threads);
  spectra.earth_orientation.dut1_s = config.telescope.dut1_s;
  return spectra;
}

ChangingSky::ChangingSky(const ArrayLayout& array, const simulate::Scene& scene,
                         simulate::SpectraConfig config) {
  std::vector<double> changes{0};
  for (const auto& source : scene.sources) {
    if (!simulate::is_transient(source)) continue;
    changes.push_back(source.start_s);
    changes.push_back(source.start_s + source.duration_s);
  }
  std::sort(changes.begin(), changes.end());
  const double rate_hz = config.spectrum_rate_hz.value();
  for (const double at_s : changes) {
    std::vector<bool> on;
    for (const auto& source : scene.sources) on.push_back(simulate::shines(source, at_s));
    auto& record = records_[on];
    config.at_s = at_s;
    if (!record) {
      record = std::make_unique<simulate::SpectraRecord>(
          simulate::simulate_spectra(array, scene, config));
    }
    epochs_.push_back({std::llround(at_s * rate_hz), record.get()});
  }
}

PulsedSky::PulsedSky(const ArrayLayout& array, const simulate::Scene& scene,
                     simulate::SpectraConfig config) {
  config.at_s = -1;  // before all flashes
  quiet_ = simulate::simulate_spectra(array, scene, config);
  const double rate_hz = config.spectrum_rate_hz.value();
  for (std::size_t k = 0; k < scene.sources.size(); ++k) {
    const auto& source = scene.sources[k];
    if (!simulate::is_transient(source)) continue;
    simulate::Scene alone = scene;
    for (std::size_t other = 0; other < scene.sources.size(); ++other) {
      if (other != k && simulate::is_transient(scene.sources[other]))
        alone.sources[other].start_s = 1e9;
    }
    config.at_s = source.start_s;
    records_.push_back(std::make_unique<simulate::SpectraRecord>(
        simulate::simulate_spectra(array, alone, config)));
    pulses_.push_back({source.start_s * rate_hz, source.duration_s * rate_hz,
                       source.period_s * rate_hz, source.dm_pc_cm3, records_.back().get()});
  }
}

}  // namespace ryle::pipeline
