// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"
#include "ryle/engine/correlate/finish.hpp"

namespace ryle::pipeline {

/// What a path must know of its spectra, whatever they come from.
struct SpectraMetadata {
  FrequencyAxis frequency;
  SampleClock clock;           ///< of spectra
  std::int64_t n_spectra = 0;  ///< 0 = not known (live)
  std::int64_t max_gulp = 512;
  SampleFormat format = SampleFormat::ci8;
  bool four_bits = false;  ///< codes are -8 .. 7, whatever `format` holds them
  double window_s = 0;     ///< first to last sample behind a spectrum; 0 = the interval of spectra
  std::vector<double> scale;  ///< [input] samples were multiplied with it; empty = 1
  std::vector<correlate::SamplerGain> samplers;  ///< [input] of coarse samples; empty = 1
  TimeSource time_source = TimeSource::header;
  double jy_per_count2 = 0;  ///< when the configuration has none (the simulator knows its own)
  bool live = false;
};

}  // namespace ryle::pipeline
