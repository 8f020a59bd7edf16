// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/correlate/finish.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"

namespace ryle::pipeline {

/// A recording as gulps of spectra, whatever it holds: spectra of an F-engine as they are, time
/// samples through the channelizer of the observation.
class SpectraReader {
 public:
  virtual ~SpectraReader() = default;
  /// Spectra [first, first + n) of the recording, any order; the gulp is valid until the next call.
  /// @pre n <= max_gulp()
  virtual void read(std::int64_t first, std::int64_t n, SpectraGulp& gulp) = 0;

  FrequencyAxis frequency;
  SampleClock clock;  ///< of spectra
  std::int64_t n_inputs = 0;
  std::int64_t n_spectra = 0;
  std::int64_t max_gulp = 0;
  SampleFormat format = SampleFormat::ci8;
  /// First to last sample behind a spectrum, (L - 1) / f_s (conventions.md 4); 0 = not known: an
  /// F-engine whose spectra lie one after the other.
  double window_s = 0;
  bool four_bits = false;  ///< codes are -8 .. 7, whatever `format` holds them
  /// What the channelizer multiplied the samples of an input with; empty = 1.
  std::vector<double> scale;
  std::vector<correlate::SamplerGain> samplers;  ///< [input] of coarse samples; empty = 1
  std::string implementation;                    ///< of the channelizer; "" when there is none
  std::uint64_t lost_samples = 0;  ///< codes (spectrum, channel, input) or time samples not there
};

/// @throws ConfigError when the rate or the sky frequency is not known
std::unique_ptr<SpectraReader> make_spectra_reader(const ObservationConfig& config,
                                                   Recording& recording);

/// What nodes must know of its spectra, of which `n_spectra` will be read.
SpectraMetadata spectra_metadata(const SpectraReader& reader, const RecordingInfo& info,
                                 std::int64_t n_spectra);
/// Spectra of source.duration_s, or all there are.
std::int64_t wanted_spectra(const ObservationConfig& config, const SpectraReader& reader);

/// Spectra [begin, begin + n) of a gulp of blocks, not of ci16, as a gulp of its own: planar blocks
/// start at whole blocks only, so bytes are moved unless the cut lies there (live images end where
/// their cadence says, not where a chunk does).
class SpectraSlice {
 public:
  SpectraGulp operator()(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n);

 private:
  void copy_blocks(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n);
  void copy_runs(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n);
  void copy_mask(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n);
  Buffer<std::byte> bytes_;
  BlockView blocks_;
  std::vector<std::uint64_t> valid_;
  std::int64_t words_ = 0;
};

/// A gulp through a chain, cut where the chain's integrations or images end.
/// `first`: its first spectrum, counted from the clock's epoch.
template <class Chain>
void feed_in_slices(Chain& chain, SpectraSlice& slice, const SpectraGulp& gulp, std::int64_t first,
                    std::int64_t segment, const SampleClock& clock) {
  for (std::int64_t begin = 0; begin < gulp.n_spectra;) {
    const std::int64_t room = chain.advance(first + begin, segment, clock);
    const std::int64_t n = std::min(room, gulp.n_spectra - begin);
    chain.feed(slice(gulp, begin, n));
    begin += n;
  }
}

}  // namespace ryle::pipeline
