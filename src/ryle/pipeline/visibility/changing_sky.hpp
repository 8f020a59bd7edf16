// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/simulate/described_sender.hpp"
#include "ryle/simulate/fengine_sender.hpp"
#include "ryle/telescope/array.hpp"

namespace ryle::pipeline {

/// The [simulator] of an F-engine with these channels, `clock` counts its spectra.
simulate::SpectraConfig simulated_spectra(const ObservationConfig& config, const SampleClock& clock,
                                          const FrequencyAxis& channels);

/// A sky that changes at some seconds: one record for every set of sources that shine together.
class ChangingSky {
 public:
  ChangingSky(const ArrayLayout& array, const simulate::Scene& scene,
              simulate::SpectraConfig config);
  const std::vector<simulate::SpectraEpoch>& epochs() const { return epochs_; }

 private:
  std::map<std::vector<bool>, std::unique_ptr<simulate::SpectraRecord>> records_;
  std::vector<simulate::SpectraEpoch> epochs_;
};

/// A sky of pulses that are dispersed or come again: a quiet record, and one more for each source
/// that flashes.
class PulsedSky {
 public:
  PulsedSky(const ArrayLayout& array, const simulate::Scene& scene, simulate::SpectraConfig config);
  const simulate::SpectraRecord& quiet() const { return quiet_; }
  const std::vector<simulate::DispersedPulse>& pulses() const { return pulses_; }

 private:
  simulate::SpectraRecord quiet_;
  std::vector<std::unique_ptr<simulate::SpectraRecord>> records_;
  std::vector<simulate::DispersedPulse> pulses_;
};

}  // namespace ryle::pipeline
