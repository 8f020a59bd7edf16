// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Cold-plasma dispersion and the list of dispersion measures a search tries.
/// @eq t(nu) - t(nu_ref) = k_DM DM (nu^-2 - nu_ref^-2), nu in MHz, DM in pc cm^-3; nu_ref = center
/// of the highest channel (conventions.md 7)
namespace ryle::search {

/// k_DM in s MHz^2 pc^-1 cm^3: "physical" (4148.8064), "tempo" (1/2.41e-4), "best2" (4148.741601),
/// "dedisp" (4150) or a number. Throws ConfigError listing these.
double dispersion_constant(std::string_view name);

/// The band a search works on. @unit center_hz ascending
struct Band {
  std::vector<double> center_hz;
  double channel_width_hz = 0;
  double sample_interval_s = 0;
  double k_dm = 4148.8064;

  std::int64_t n_channels() const { return static_cast<std::int64_t>(center_hz.size()); }
  /// Arrival after the highest channel, in samples, not rounded.
  double delay_samples(std::int64_t channel, double dm_pc_cm3) const;
  /// Delay of the lowest channel for 1 pc cm^-3, in samples.
  double sweep_samples_per_dm() const;
  /// Smearing within one channel, in samples. @eq k_DM DM ((nu - w/2)^-2 - (nu + w/2)^-2)
  double smearing_samples(std::int64_t channel, double dm_pc_cm3) const;
};

/// How the list of trials is made.
struct DmPlanConfig {
  std::string kind = "tolerance";  ///< native | linear | tolerance | ranges | file
  double dm_min = 0;
  double dm_max = 0;
  double step = 0;          ///< linear
  std::int64_t count = 0;   ///< linear: instead of dm_max
  double tolerance = 1.05;  ///< tolerance: broadening of a pulse by the DM error, > 1
  double pulse_s = 40e-6;   ///< tolerance: intrinsic width
  std::string ranges = {};  ///< ranges: "LOW HIGH STEP" lines (or ';'), PRESTO-like
  std::string file = {};    ///< file: its text, one DM a line, '#' comments
  std::int64_t max_trials = 1 << 20;
};

/// Ascending dispersion measures. Throws ConfigError for what cannot be.
/// native: steps of one sample across the band. tolerance (Levin): the next DM x after p solves
/// ts^2 + tp^2 + a^2 x^2 + b^2 (x-p)^2 = eps^2 (ts^2 + tp^2 + a^2 p^2), a = smearing of a channel
/// at band center per DM, b = a n_channels / 4.
std::vector<double> dm_trials(const Band& band, const DmPlanConfig& config);

/// Delays of all trials. @shape [trial][channel], samples, rounded to nearest, >= 0
std::vector<std::int32_t> delay_table(const Band& band, const std::vector<double>& dms);

/// Response to a DM error (Cordes & McLaughlin 2003). @eq sqrt(pi)/2 erf(z)/z, z = 6.91e-3 dDM
/// B_MHz / (W_ms nu_GHz^3)
double dm_error_response(const Band& band, double dm_error, double width_s);
/// Smallest fraction of the S/N left half way between trials for a pulse this wide before it was
/// smeared within the channels.
double worst_response(const Band& band, const std::vector<double>& dms, double width_s);

}  // namespace ryle::search
