// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {

/// How a product was made; written into every product (products.md 4).
struct Provenance {
  std::string version;
  std::string command_line;
  std::string configuration;  ///< resolved TOML text
  std::string configuration_sha256;
  std::string host;
  std::vector<std::string> implementations;  ///< "correlate/cpu/avx512_vnni", ...
  std::map<std::string, std::string>
      notes;  ///< further metadata: "time source", "loss_ppm", "degraded", ...
};

/// What was applied to the signal on its way, per input or per (input, channel); written into
/// products.
struct AppliedCorrections {
  std::vector<double> delay_s;          ///< [input] at the centre of the observation
  std::vector<cf64> gains;              ///< [input][channel], empty = 1
  std::vector<double> filter_response;  ///< prototype filter h, sum h^2 = 1
  std::int64_t n_taps = 0;
  std::string window;
  bool van_vleck = false;
  std::vector<double> input_rms_lsb;       ///< [input] raw level
  std::vector<double> saturated_fraction;  ///< [input] of requantised parts
};

/// Everything about an observation that does not change from dump to dump.
struct Observation {
  ArrayLayout array;
  FrequencyAxis frequency;
  SkyDirection phase_center;  ///< dumps are phased to it: V carries exp(+2 pi i [ul+vm+w(n-1)])
  std::string phase_center_name = "zenith";
  std::string object;
  std::string observer;
  EarthOrientation earth_orientation;
  double nominal_dump_s = 0;
  double spectrum_interval_s = 0;
  double channel_bandwidth_hz = 0;         ///< noise bandwidth, for WEIGHT_SPECTRUM
  std::string flux_unit = "uncalibrated";  ///< "Jy" once calibrated
  TimeSource time_source = TimeSource::packet;
  AppliedCorrections applied;
  Provenance provenance;
};

/// One integration. @shape data, counts [channel][baseline][pol_product], baseline =
/// pair_index(antenna_i, antenna_j), pol_product = 2 pol_i + pol_j (n_pols == 1: one product)
struct VisibilityDump {
  std::int64_t start_tai_ns = 0;     ///< first sample
  std::int64_t centroid_tai_ns = 0;  ///< of a complete dump
  double interval_s = 0;             ///< nominal length
  std::int64_t n_spectra = 0;        ///< nominal number of spectra
  std::int64_t n_channels = 0;
  std::int64_t n_baselines = 0;
  std::int64_t n_pol_products = 4;
  std::vector<cf32> data;             ///< mean V_ij; 0 where the count is 0
  std::vector<std::uint32_t> counts;  ///< spectra behind each value; 0 = flagged

  std::int64_t index(std::int64_t channel, std::int64_t baseline, std::int64_t pol_product) const {
    return (channel * n_baselines + baseline) * n_pol_products + pol_product;
  }
};

}  // namespace ryle
