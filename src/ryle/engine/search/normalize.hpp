// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/search/flag_spectra.hpp"
#include "ryle/engine/search/mask.hpp"
#include "ryle/engine/search/zero_dm.hpp"

/// Detected power to codes of 6 bits: bandpass and gain drift taken out, interference flagged.
/// @eq q = clamp(rne(24 + 8 (x - mu_c) / sigma_c), 0, 63)   (search.md 3)
namespace ryle::search {

inline constexpr int kCodeMean = 24;
inline constexpr int kCodeSigma = 8;
inline constexpr int kMaxCode = 63;
/// Samples per value of the mask; a full cell is kFullCell.
inline constexpr std::int64_t kCell = 64;
inline constexpr int kFullCell = 63;

struct NormalizeConfig {
  std::int64_t n_channels = 0;
  std::vector<std::uint8_t> masked;        ///< [channel], 1 = the user wants it out; empty = none
  std::int64_t statistics_samples = 1024;  ///< mean and rms are taken over so many
  std::int64_t median_cells = 16;          ///< running median over so many of them
  bool flag_channels = true;               ///< bandpass fit, IQRM
  double bandpass_threshold = 5;           ///< MADs of the residual of the Legendre fit
  double iqrm_threshold = 3;
  double cell_threshold = 5;  ///< MADs of one cell of one channel among its neighbors
  UserMask mask;              ///< further channels, and times
  /// d of the power (spectral kurtosis of every cell); 0 = not known, not tested. The power must
  /// have its true zero.
  double kurtosis_degrees = 0;
  /// Spectra with broad-band interference, pulses guarded (flag_spectra.hpp); needs spectra.band,
  /// without one or with flag_channels false nothing is done.
  bool flag_spectra = true;
  SpectraConfig spectra;
  ZeroDm zero_dm = ZeroDm::off;  ///< check_zero_dm() first
};

/// What became of one gulp.
struct NormalizeReport {
  std::int64_t n_samples = 0;
  std::int64_t masked_user = 0;      ///< channel-samples by cause, first cause counts
  std::int64_t masked_time = 0;      ///< times and cells the user masks
  std::int64_t masked_absent = 0;    ///< dead spectra and numbers that are not finite
  std::int64_t masked_channel = 0;   ///< whole channels: dead, bandpass, IQRM
  std::int64_t masked_cell = 0;      ///< cells of 1024 samples: MAD, IQRM
  std::int64_t masked_kurtosis = 0;  ///< cells by spectral kurtosis
  std::int64_t masked_spectra = 0;   ///< bursts without dispersion
  std::int64_t written = 0;          ///< channel-samples with a code of their own
  SpectraReport spectra;
  std::int64_t clipped_low = 0, clipped_high = 0;
  void add(const NormalizeReport& other);

  struct Part {
    const char* cause;
    double fraction;  ///< of all channel-samples
  };
  /// user, time, absent, channel, cell, kurtosis, spectra.
  std::vector<Part> masked_parts() const;
};

class Normalizer {
 public:
  explicit Normalizer(const NormalizeConfig& config);
  ~Normalizer();
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;

  /// Gulps must be multiples of statistics_samples except the last one. A spectrum whose channels
  /// all have one value (lost data, padding) is absent.
  /// @shape data [channel][time] f32   @shape codes [channel][time] u8, kCodeMean where masked
  /// @shape cells [channel][time / 64] u8, kFullCell x unmasked fraction, rounded
  void execute(Queue& queue, const float* data, std::int64_t stride, std::int64_t n,
               std::uint8_t* codes, std::int64_t code_stride, std::uint8_t* cells,
               std::int64_t cell_stride, NormalizeReport& report);
  /// Samples that never came: the clock goes on.
  void skip(std::int64_t n);
  /// [channel] of the last gulp: 1 = masked all along.
  const std::vector<std::uint8_t>& channel_flags() const;
  /// Bursts that may be pulses and were left in, arrival at the highest channel in ticks.
  const std::vector<TickRange>& undecided() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Robust polynomial over channels. @eq sum_k a_k P_k(u), u in [-1, 1], Legendre, 5 rounds of
/// clipping at 5 MAD @shape values, good [n]; returns the fit [n]
std::vector<double> legendre_fit(const std::vector<double>& values,
                                 const std::vector<std::uint8_t>& good, int degree);

/// Inter-quartile range mitigation (Morello, Rajwade & Stappers 2022): 1 where `values` is an
/// outlier, comparing with neighbours at lags 1, 2, 3, 5, 7, 11 ... up to max_lag.
std::vector<std::uint8_t> iqrm(const std::vector<double>& values,
                               const std::vector<std::uint8_t>& good, std::int64_t max_lag,
                               double threshold);

}  // namespace ryle::search
