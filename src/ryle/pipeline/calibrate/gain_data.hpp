// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/calibrate/calibrate.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/sky_visibilities.hpp"

namespace ryle::pipeline {

/// Channels [first, last) that share a gain.
struct ChannelGroup {
  std::int64_t first = 0, last = 0;
};

/// Visibilities of a file beside a model of the sky: from here the engine of gains takes its
/// equations. Rows are divided by the root of their mean autocorrelation where there are any, so
/// that noise is the same for all inputs: gains of the engine are those of the signal path times
/// whitening(). Inputs of a set are the antennas, in their order.
class GainData {
 public:
  /// @param set_products pol products (3 pol) of each set of gains: {{0}, {3}}, or {{0, 3}}
  GainData(const VisibilityFile& file, const SkyModel& sky, const CalibrateConfig& settings,
           const ElementBeam& beam, std::int64_t channels_per_solution);

  const Observation& observation() const { return file_.observation; }
  std::int64_t n_antennas() const { return n_antennas_; }
  std::int64_t n_pols() const { return n_pols_; }
  std::int64_t n_sets() const { return static_cast<std::int64_t>(sets_.size()); }
  /// "X", "Y", "X and Y".
  std::string set_name(std::int64_t set) const;
  /// Polarizations that take the gains of a set.
  const std::vector<std::int64_t>& pols_of(std::int64_t set) const { return sets_[set]; }
  const std::vector<ChannelGroup>& groups() const { return groups_; }
  std::int64_t n_solutions() const { return static_cast<std::int64_t>(groups_.size()); }

  /// w of a value is the number of its independent samples where that is known, else its count.
  calibrate::Equations equations(Queue& queue, std::int64_t set) const;
  /// Mean |V_ab|^2 of the pairs over the band, as the file has it; 0 = no data. @shape [a][b]
  std::vector<double> pair_powers(std::int64_t set) const;
  bool has_autos() const { return has_autos_; }
  /// 1 / root of the mean autocorrelation over the channels of a solution; of an antenna without
  /// one the median of the others. Without any autocorrelations one number for all, which makes the
  /// rms of the visibilities 1.
  double whitening(std::int64_t set, std::int64_t solution, std::int64_t antenna) const {
    return whitening_[static_cast<std::size_t>((set * n_solutions() + solution) * n_antennas_ +
                                               antenna)];
  }
  /// Independent samples behind the values of a pair that lost nothing, in a solution; 0 = it has
  /// no data, or the file does not say.
  double n_samples(std::int64_t solution) const;
  /// Spectra of all dumps together.
  std::int64_t n_spectra() const;

  /// Names of the sources, in the order of the flux factors.
  const std::vector<std::string>& source_names() const { return source_names_; }
  /// Factors on the fluxes of the model, 1 at first.
  std::vector<double>& flux_factors() { return flux_factors_; }
  const std::vector<double>& flux_factors() const { return flux_factors_; }
  /// Relative error of the summed flux of the model, errors of sources independent; 0 = not known.
  double flux_error() const;
  bool is_flux_free(std::int64_t source) const { return flux_free_[source] != 0; }
  /// [source] Factors in standard errors of their fit, infinite where nothing was fitted.
  std::vector<double>& flux_significance() { return flux_significance_; }
  bool is_seen(std::int64_t source) const {
    return flux_factors_[source] > 0 && flux_significance_[source] > kMinFluxSignificance;
  }
  /// Whether a source has a known flux and is seen in the data: it may carry the scale in Jy.
  bool carries_scale(std::int64_t source) const { return !is_flux_free(source) && is_seen(source); }
  /// Least-squares factors of the sources, the gains given, from at most 16 solutions; those below
  /// 0 are 0. @eq minimise sum w |V - g conj(g) sum_k f_k M_k|^2
  void fit_fluxes(std::int64_t set, const calibrate::Solutions& solutions);

  /// M_ab of a solution at the middle of its channels and of the data, the diagonal too: what the
  /// error bound needs. @shape [a][b]
  std::vector<cf64> model_matrix(std::int64_t set, std::int64_t solution) const;

  const std::vector<std::string>& left_out() const { return left_out_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// The sources with their elevations, for products.
  std::string model_text() const { return model_text_; }

 private:
  static constexpr double kMinFluxSignificance = 5;  // as a source of an image is believed
  struct Moment {
    std::vector<ApparentSource> sources;
    std::vector<std::int64_t> source_index;  ///< in source_names_
    Vector3 phase_center{};
  };
  void find_sources(const SkyModel& sky, const CalibrateConfig& settings, const ElementBeam& beam);
  std::int64_t product_of(std::int64_t pol) const {
    return n_pols_ == 1 ? single_product_ : 3 * pol;
  }
  void find_whitening();
  void scale_without_autos();
  void find_flagged();
  /// Model of one channel of a dump for a product. @param only a source, or -1 for all
  std::vector<cf64> model(std::int64_t dump, std::int64_t channel, std::int64_t product,
                          std::int64_t only) const;
  template <class Use>
  void visit(std::int64_t set, std::int64_t dump, std::int64_t channel, const Use& use) const;

  const VisibilityFile& file_;
  std::int64_t n_antennas_, n_pols_;
  double uv_min_;
  std::vector<std::vector<std::int64_t>> sets_;
  std::vector<ChannelGroup> groups_;
  std::int64_t channels_per_solution_ = 1;
  std::int64_t single_product_ = 0;  ///< of the model, for visibilities of one polarization
  double samples_per_count_ = 0;     ///< 0 = not known
  bool has_autos_ = false;
  std::vector<double> whitening_;
  std::vector<std::uint8_t> flagged_;  ///< [antenna][pol]
  std::vector<std::string> source_names_;
  std::vector<std::uint8_t> flux_free_;
  std::vector<double> flux_factors_, flux_significance_;
  std::vector<Moment> moments_;  ///< of each dump
  std::vector<std::string> left_out_, warnings_;
  std::string model_text_;
};

}  // namespace ryle::pipeline
