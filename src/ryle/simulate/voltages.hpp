// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/simulate/scene.hpp"

namespace ryle::simulate {

struct VoltageConfig {
  std::int64_t n_samples = std::int64_t{1}
                           << 18;  ///< period of the record; any size with small prime factors
  Rational sample_rate_hz{1'280'000, 1};
  double center_hz = 150e6;       ///< sky frequency of baseband 0 (upper sideband; real: the edge)
  std::int64_t start_tai_ns = 0;  ///< where the sky stands; it is frozen over the record
  double level_lsb = 4.0;         ///< mean over live inputs of the rms of a part
  int n_workers = 0;              ///< threads, 0 = all processors
  EarthOrientation earth_orientation;
  int bits = 0;       ///< of a part; 0: 5+5 bits in a word
  bool real = false;  ///< real samples of the band from center_hz to center_hz + rate / 2; bits > 0
};

/// Periodic voltages of all inputs, 5+5 bits as the 32-antenna prototype sends them, or parts of
/// VoltageConfig::bits.
/// @shape samples [time][input] u16: bits 4..0 real, 9..5 imaginary, two's complement; with bits
/// [time][input][part], an int16
struct VoltageRecord {
  std::int64_t n_samples = 0;
  std::int64_t n_inputs = 0;
  int n_parts = 0;  ///< 0: words; 1: real; 2: complex
  Rational sample_rate_hz{1, 1};
  double center_hz = 0;
  std::int64_t start_tai_ns = 0;
  std::vector<std::uint16_t> samples;
  /// V_Jy = V_counts * jy_per_count2 / (g_i conj(g_j)), V_counts = <x_i conj(x_j)> of decoded
  /// integer samples, also after a channelizer with sum h^2 = 1.
  double jy_per_count2 = 0;
  std::vector<double> rms_lsb;           ///< [input], of one part, after quantisation
  std::vector<double> clipped_fraction;  ///< [input], of the parts
  std::vector<Vector3> sources_enu;      ///< [source] unit vectors actually used
};

/// Samples without a period: the sky turns, flashes come when they are due, and the noise of no two
/// instants is the same. Any stretch can be drawn by itself.
/// @eq as simulate_voltages(), by overlap and save: blocks of 16384 samples with 1024 more on
/// either side of the white streams of the sources, so that what an antenna has late comes from
/// before. The directions are those of the middle of a block.
class VoltageStream {
 public:
  /// config.n_samples is the length of a stretch. Throws ConfigError for impossible scenes: tones,
  /// a delay beyond 512 samples, dispersion beyond 4 million.
  VoltageStream(ArrayLayout array, Scene scene, const VoltageConfig& config);

  /// An empty stretch. Its sources_enu are the directions at the start, below the horizon or not.
  VoltageRecord make_record() const;
  /// Samples [first, first + n_samples) since start_tai_ns. Deterministic in first, whatever was
  /// drawn before. One thread at a time calls it; n_workers draw. Levels are those of the last
  /// block.
  void draw(Tick first, VoltageRecord& record) const;
  const VoltageConfig& config() const { return config_; }

 private:
  ArrayLayout array_;
  Scene scene_;
  VoltageConfig config_;
};

/// Draws the record.
/// @eq v_p(nu) = g_p exp(-2 pi i nu cable_p) [ sum_s e_s(nu) exp(+2 pi i nu r_p.s/c) + n_p(nu) ]
/// (conventions.md 5)
///   e_s, n_p complex Gaussian, drawn per bin nu_k = center + k rate / n_samples, so every delay is
///   exact and the record repeats without a seam; then rounded to nearest even, saturated at -16
///   and 15, or what `bits` hold. Real samples are sqrt(2) Re of the same sum over the bins of
///   their half of the band; level_lsb is their rms.
/// Deterministic in (array, scene, config) whatever n_workers. Memory: n_samples (4 n_inputs + 32
/// n_sources + 32 n_workers) bytes. Throws ConfigError for impossible scenes.
VoltageRecord simulate_voltages(const ArrayLayout& array, const Scene& scene,
                                const VoltageConfig& config = {});

/// Expected visibility of two inputs at a frequency, in Jy, gains and cables left out: sources and,
/// for i == j, receiver noise; the truth tests and pictures compare with. Tones are not in it.
cf64 expected_visibility_jy(const ArrayLayout& array, const Scene& scene,
                            const VoltageRecord& record, std::int64_t i, std::int64_t j,
                            double frequency_hz);

}  // namespace ryle::simulate
