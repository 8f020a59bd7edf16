// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"
#include "ryle/telescope/array.hpp"

namespace ryle::pipeline {

/// The inputs that beams are made of: antenna * n_pols + pol.
struct BeamInputs {
  std::vector<std::int64_t> order;     ///< input of the samples
  std::vector<std::int64_t> antennas;  ///< of the layout
  std::int64_t n_pols = 1;
};
/// @param pol auto (both where the layout has both), X or Y
BeamInputs choose_inputs(const ArrayLayout& array, const std::string& pol);
/// The layout with these inputs alone, in their order.
ArrayLayout with_inputs(ArrayLayout array, const BeamInputs& inputs);

/// Gulps of planar blocks as the beamformer reads them: channels selected, inputs in the order
/// antenna * n_pols + pol, and runs of spectra in which the same samples are there.
class BeamSamples {
 public:
  /// Engine input k is input order[k] of the gulps; channels [first, first + n).
  BeamSamples(const std::vector<std::int64_t>& order, std::int64_t first_channel,
              std::int64_t n_channels);

  /// Copies the samples, channels shared by the workers of `host`; the masks stay the gulp's.
  void load(const SpectraGulp& gulp, Queue& host);
  /// The masks alone: the samples are read elsewhere.
  void load_masks(const SpectraGulp& gulp);
  /// Spectra [begin, result) have one mask. @pre begin < spectra of the gulp
  std::int64_t end_of_run(std::int64_t begin) const;
  /// The gulp's spectra [begin, end), which lie in one run.
  beamform::Input input(std::int64_t begin, std::int64_t end, Tick first_tick);
  /// Nothing at all is there in the run that holds `begin`.
  bool absent(std::int64_t begin) const;

  /// @shape [channel][spectrum][input], dense
  const std::byte* data() const { return samples_.data(); }
  std::int64_t channel_stride_bytes() const;
  /// All masks of the gulp, a slot being the most spectra that no change of a mask splits: a power
  /// of two up to 128, returned. 0: everything is there.
  /// @shape present [channel or 1][slot][words_for_bits(inputs)]
  std::int64_t masks(std::vector<std::uint64_t>& present) const;
  bool mask_per_channel() const { return valid_channel_stride_words_ != 0; }
  /// Bits of spectra of which no input is there in a channel. @shape [words_for_bits(n_spectra)]
  void absent_spectra(std::int64_t channel, std::vector<std::uint64_t>& bits) const;

 private:
  bool valid(std::int64_t channel, std::int64_t input, std::int64_t t) const;
  void find_runs(const SpectraGulp& gulp);

  std::vector<std::int32_t> order_;
  std::int64_t first_channel_, n_channels_, n_spectra_ = 0;
  std::int64_t bytes_ = 1;
  std::vector<std::byte> samples_;  ///< [channel][time][input]
  const std::uint64_t* valid_ = nullptr;
  std::int64_t valid_words_ = 0, valid_channel_stride_words_ = 0;
  std::vector<std::uint64_t> changes_;  ///< bit t: the mask of t is not that of t - 1
  std::vector<std::uint64_t> present_;  ///< [channel or 1][words]
};

}  // namespace ryle::pipeline
