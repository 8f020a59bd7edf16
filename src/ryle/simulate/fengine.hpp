// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"
#include "ryle/simulate/scene.hpp"

namespace ryle::simulate {

struct SpectraConfig {
  std::int64_t n_spectra = 1000;  ///< period of the record
  Rational spectrum_rate_hz{25'000, 1};
  FrequencyAxis channels;         ///< sky frequencies of the channel centres
  std::int64_t start_tai_ns = 0;  ///< where the sky stands; it is frozen over the record
  double level_lsb = 2.5;         ///< mean over live inputs of the rms of a part
  int n_workers = 0;              ///< threads, 0 = all processors
  EarthOrientation earth_orientation;
  double at_s = 0;  ///< transients that shine at this second of the schedule are in the record
};

struct SpectraRecord;

/// Spectra without a period: the sky turns, pulses come when they are due, later in lower channels,
/// and the noise of no two spectra is the same. Any stretch can be drawn by itself.
/// Directions are those of the middle of each 10 ms: a fringe of 0.1 turns a second is off by
/// 0.0005 turns at most.
class SpectraStream {
 public:
  /// config.n_spectra is the length of a stretch. Throws ConfigError as simulate_spectra().
  SpectraStream(ArrayLayout array, Scene scene, const SpectraConfig& config);

  /// An empty stretch. Its sources_enu are the directions at the start, below the horizon or not.
  SpectraRecord make_record() const;
  /// Spectra [first, first + n_spectra) since start_tai_ns. Deterministic in first, whatever was
  /// drawn before. One thread at a time calls it; n_workers draw.
  void draw(Tick first, SpectraRecord& record) const;
  const SpectraConfig& config() const { return config_; }
  double jy_per_count2() const { return 1 / (counts_ * counts_); }

 private:
  ArrayLayout array_;
  Scene scene_;
  SpectraConfig config_;
  double counts_;
};

/// Periodic channelized voltages of all inputs, 4+4 bits.
/// @shape samples [spectrum][channel][input], byte = (re << 4) | (im & 15), -8..7
struct SpectraRecord {
  std::int64_t n_spectra = 0;
  std::int64_t n_channels = 0;
  std::int64_t n_inputs = 0;
  Rational spectrum_rate_hz{1, 1};
  FrequencyAxis channels;
  std::int64_t start_tai_ns = 0;
  std::vector<std::uint8_t> samples;
  /// V_Jy = V_counts * jy_per_count2 / (g_i conj(g_j)); 0 for drawn_spectra (no flux scale).
  double jy_per_count2 = 0;
  std::vector<double> rms_lsb;           ///< [input], of one part, after quantisation
  std::vector<double> clipped_fraction;  ///< [input], of the parts
  std::vector<Vector3> sources_enu;      ///< [source] unit vectors actually used

  const std::uint8_t* spectrum(std::int64_t t) const {
    return samples.data() + t * n_channels * n_inputs;
  }
};

/// Draws the record of a scene (tones are not supported: ConfigError).
/// @eq v_p(t, nu) = g_p exp(-2 pi i nu cable_p) [ sum_s e_s(t, nu) exp(+2 pi i nu r_p.s/c)
///     + n_p(t, nu) ]   (conventions.md 5), nu = channel centre
///   e_s, n_p white complex Gaussian per (spectrum, channel); rounded to nearest even, saturated at
///   -8 and 7. Delays act as phases: what a real channel loses, delay times channel width (1 % at
///   0.4 us and 25 kHz), is not simulated.
/// Deterministic in (array, scene, config) whatever n_workers. Records of different at_s differ by
/// the transients alone: the level is set by what always shines. Throws ConfigError.
SpectraRecord simulate_spectra(const ArrayLayout& array, const Scene& scene,
                               const SpectraConfig& config);

/// Expected visibility of two inputs at a channel in Jy, gains and cables left out.
cf64 expected_visibility_jy(const ArrayLayout& array, const Scene& scene,
                            const SpectraRecord& record, std::int64_t i, std::int64_t j,
                            std::int64_t channel);

/// A square root of a covariance: root root^H = V, or the nearest non-negative matrix to V.
struct CovarianceRoot {
  std::int64_t n = 0;
  std::vector<cf64> root;          ///< [row][column]
  bool positive_definite = false;  ///< Cholesky: the root is lower triangular and exact
  /// When not: what the projection changed.
  double most_negative_eigenvalue = 0;
  double largest_eigenvalue = 0;
  double rms_change = 0, largest_change = 0;  ///< of the elements
};
/// Cholesky when V is positive definite, else eigen-decomposition (Jacobi) with negative values set
/// to 0. @shape covariance [row][column], Hermitian (the upper triangle is used). Throws
/// ConfigError for values that are not finite.
CovarianceRoot covariance_root(std::span<const cf64> covariance, std::int64_t n);

/// Measured visibilities without autocorrelations to a covariance one can draw from: the largest
/// eigenvalue of the off-diagonal part is scaled to `share` * n, the diagonal is 1 (image.md 10).
/// Returns the factor applied. @shape visibilities [row][column], diagonal ignored, NaN = missing
/// (0)
double make_drawable(std::span<cf64> visibilities, std::int64_t n, double share = 0.05);

/// A fully polarized wave: every input gets amplitude[input] times the same white noise, so V gains
/// the rank-one term a a^H.
struct RankOneTerm {
  std::vector<cf64> amplitude;  ///< [input], in units of the root of the covariance
};
/// Amplitudes of a wave from (l east, m north), with X and Y components given, of an array whose
/// cables are applied when asked.
RankOneTerm polarized_wave(const ArrayLayout& array, double l, double m, cf64 x, cf64 y,
                           double frequency_hz, bool apply_cable_delays);

/// Draws E = A z of both polarizations independently plus the rank-one terms, for the inputs of
/// `array`: input (antenna a, pol p) has row a. A covariance of one unit of noise per antenna gets
/// config.level_lsb. Every channel has the same covariance.
SpectraRecord draw_spectra(const ArrayLayout& array, const CovarianceRoot& root,
                           const std::vector<RankOneTerm>& polarized, std::uint64_t seed,
                           const SpectraConfig& config);

}  // namespace ryle::simulate
