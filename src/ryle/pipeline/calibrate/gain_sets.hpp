// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <vector>

#include "ryle/engine/calibrate/error_bound.hpp"
#include "ryle/pipeline/calibrate/calibrate_run.hpp"
#include "ryle/pipeline/calibrate/gain_data.hpp"

namespace ryle::pipeline {

/// One set of gains on its way from visibilities to a table.
class GainSet {
 public:
  GainSet(Queue& queue, GainData& data, const CalibrateConfig& settings, std::int64_t set);

  /// Leaves out inputs by their power. Throws FormatError where too few are left.
  void screen();
  /// Predicts the error. Throws FormatError where it is above max_sigma_deg.
  void require_sensitivity();
  /// Factors of the fluxes: gains and fluxes by turns, begun with each source alone; what leaves
  /// least of the data is taken.
  void fit_fluxes();
  /// Solves, leaves out what does not see the model, solves again, and takes the halves apart.
  void solve();
  /// Phases against this antenna; delays then.
  void set_reference(std::int64_t antenna);

  const calibrate::Solutions& solutions() const { return solutions_; }
  /// 1 sigma of phases, radians, and of amplitudes. @shape [solution][antenna]
  const std::vector<double>& phase_sigma() const { return phase_sigma_; }
  const std::vector<double>& amplitude_sigma() const { return amplitude_sigma_; }
  const std::vector<DroppedInput>& dropped() const { return dropped_; }
  const GainSetReport& report() const { return report_; }
  const std::string& implementation() const { return implementation_; }
  std::int64_t set() const { return set_; }

 private:
  calibrate::Solutions solved(const calibrate::Equations& equations);
  void drop(const std::vector<calibrate::Dropped>& why, const std::vector<double>& ratios);
  void require_inputs() const;
  void rebuild();
  double fit_fluxes_from(std::int64_t source);
  void find_sigma();
  void find_scatter();
  void compare_halves();
  std::vector<std::int64_t> sampled_solutions() const;
  calibrate::ErrorBound ratios_to_least_squares(std::int64_t solution) const;
  std::string name_of(std::int64_t antenna) const;
  std::string where() const;  ///< "polarization X: ", or nothing

  Queue& queue_;
  GainData& data_;
  const CalibrateConfig& settings_;
  std::int64_t set_;
  calibrate::Equations equations_;
  calibrate::Solutions solutions_;
  std::vector<std::uint8_t> is_dropped_;
  std::vector<DroppedInput> dropped_;
  std::vector<double> phase_sigma_, amplitude_sigma_;
  GainSetReport report_;
  std::string implementation_;
};

}  // namespace ryle::pipeline
