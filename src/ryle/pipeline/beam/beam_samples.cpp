// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_samples.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/beamform/import.hpp"

namespace ryle::pipeline {

BeamInputs choose_inputs(const ArrayLayout& array, const std::string& pol) {
  BeamInputs chosen;
  std::vector<std::array<std::int64_t, 2>> of_antenna(array.antennas.size(), {-1, -1});
  for (std::int64_t i = 0; i < array.n_inputs(); ++i) {
    const ArrayInput& input = array.inputs[i];
    of_antenna[input.antenna][input.pol] = i;
  }
  const bool x =
      std::any_of(of_antenna.begin(), of_antenna.end(), [](auto& a) { return a[0] >= 0; });
  const bool y =
      std::any_of(of_antenna.begin(), of_antenna.end(), [](auto& a) { return a[1] >= 0; });
  if (pol != "auto" && pol != "X" && pol != "Y")
    throw ConfigError("beams.pol = " + pol + ": auto, X or Y is wanted");
  const bool both = pol == "auto" && x && y;
  const std::size_t only = pol == "Y" || (pol == "auto" && !x) ? 1 : 0;
  chosen.n_pols = both ? 2 : 1;
  for (std::size_t a = 0; a < of_antenna.size(); ++a) {
    const auto& inputs = of_antenna[a];
    if (both && (inputs[0] < 0) != (inputs[1] < 0))
      throw ConfigError("antenna " + array.antennas[a].name +
                        " has one polarization only: take X or Y (beams.pol, --pol)");
    if ((both ? inputs[0] : inputs[only]) < 0) continue;
    chosen.antennas.push_back(static_cast<std::int64_t>(a));
    for (std::size_t p = 0; p < 2; ++p) {
      if (both || p == only) chosen.order.push_back(inputs[p]);
    }
  }
  if (chosen.order.empty()) throw ConfigError("the layout has no input of polarization " + pol);
  return chosen;
}

ArrayLayout with_inputs(ArrayLayout array, const BeamInputs& inputs) {
  const auto all = std::move(array.inputs);
  array.inputs.clear();
  for (const std::int64_t i : inputs.order) array.inputs.push_back(all[i]);
  return array;
}

BeamSamples::BeamSamples(const std::vector<std::int64_t>& order, std::int64_t first_channel,
                         std::int64_t n_channels)
    : order_(order.begin(), order.end()), first_channel_(first_channel), n_channels_(n_channels) {}

void BeamSamples::load(const SpectraGulp& gulp, Queue& host) {
  load_masks(gulp);
  beamform::BlocksImport what;
  what.first_channel = first_channel_;
  what.n_channels = n_channels_;
  what.inputs = order_;
  what.n_spectra = n_spectra_;
  samples_.resize(n_channels_ * channel_stride_bytes());
  beamform::import_blocks(host, gulp.blocks, what, samples_.data());
}

void BeamSamples::load_masks(const SpectraGulp& gulp) {
  n_spectra_ = gulp.n_spectra;
  bytes_ = beamform::sample_bytes(gulp.blocks.format);
  valid_ = gulp.valid;
  valid_words_ = gulp.valid_words;
  valid_channel_stride_words_ = gulp.valid_channel_stride_words;
  find_runs(gulp);
}

void BeamSamples::find_runs(const SpectraGulp& gulp) {
  changes_.assign(words_for_bits(n_spectra_), 0);
  if (gulp.valid == nullptr) return;
  const std::int64_t masks = gulp.valid_channel_stride_words == 0 ? 1 : n_channels_;
  for (std::int64_t c = 0; c < masks; ++c) {
    for (const std::int64_t input : order_) {
      const std::uint64_t* row =
          gulp.valid + (masks == 1 ? 0 : (first_channel_ + c) * gulp.valid_channel_stride_words) +
          input * gulp.valid_words;
      std::uint64_t before = row[0] & 1u;
      for (std::size_t w = 0; w < changes_.size(); ++w) {
        changes_[w] |= row[w] ^ (row[w] << 1 | before);
        before = row[w] >> 63;
      }
    }
  }
}

bool BeamSamples::valid(std::int64_t channel, std::int64_t input, std::int64_t t) const {
  const std::int64_t c = valid_channel_stride_words_ == 0 ? 0 : first_channel_ + channel;
  return test_bit(valid_ + c * valid_channel_stride_words_ + input * valid_words_, t);
}

std::int64_t BeamSamples::end_of_run(std::int64_t begin) const {
  std::int64_t t = begin + 1;
  for (; t < n_spectra_; t = t / 64 * 64 + 64) {
    const std::uint64_t rest = changes_[t / 64] >> (t % 64);
    if (rest != 0) return std::min<std::int64_t>(n_spectra_, t + std::countr_zero(rest));
  }
  return n_spectra_;
}

beamform::Input BeamSamples::input(std::int64_t begin, std::int64_t end, Tick first_tick) {
  const auto n_inputs = static_cast<std::int64_t>(order_.size());
  beamform::Input in;
  in.samples = samples_.data() + begin * n_inputs * bytes_;
  in.n_spectra = end - begin;
  in.first_tick = first_tick;
  in.step_stride_bytes = n_inputs * bytes_;
  in.channel_stride_bytes = n_spectra_ * in.step_stride_bytes;
  if (valid_ == nullptr) return in;
  const std::int64_t masks = valid_channel_stride_words_ == 0 ? 1 : n_channels_;
  const std::int64_t words = words_for_bits(n_inputs);
  present_.assign(masks * words, 0);
  bool whole = true;
  for (std::int64_t c = 0; c < masks; ++c) {
    for (std::int64_t k = 0; k < n_inputs; ++k) {
      if (valid(c, order_[k], begin)) {
        set_bit(present_.data() + c * words, k);
      } else {
        whole = false;
      }
    }
  }
  if (whole) return in;
  in.present = present_.data();
  in.slot_spectra = in.n_spectra;
  in.present_per_channel = masks > 1;
  return in;
}

std::int64_t BeamSamples::channel_stride_bytes() const {
  return n_spectra_ * static_cast<std::int64_t>(order_.size()) * bytes_;
}

std::int64_t BeamSamples::masks(std::vector<std::uint64_t>& present) const {
  present.clear();
  if (valid_ == nullptr) return 0;
  const auto n_inputs = static_cast<std::int64_t>(order_.size());
  const std::int64_t n_masks = mask_per_channel() ? n_channels_ : 1;
  std::int64_t slot = 128;
  for (std::int64_t t = 1; t < n_spectra_; ++t)
    while (test_bit(changes_.data(), t) && t % slot != 0) slot /= 2;
  const std::int64_t n_slots = (n_spectra_ + slot - 1) / slot, words = words_for_bits(n_inputs);
  present.assign(n_masks * n_slots * words, 0);
  bool whole = true;
  for (std::int64_t c = 0; c < n_masks; ++c) {
    for (std::int64_t s = 0; s < n_slots; ++s) {
      std::uint64_t* mask = present.data() + (c * n_slots + s) * words;
      for (std::int64_t k = 0; k < n_inputs; ++k) {
        if (valid(c, order_[k], s * slot)) {
          set_bit(mask, k);
        } else {
          whole = false;
        }
      }
    }
  }
  return whole ? 0 : slot;
}

void BeamSamples::absent_spectra(std::int64_t channel, std::vector<std::uint64_t>& bits) const {
  bits.assign(words_for_bits(n_spectra_), 0);
  if (valid_ == nullptr) return;
  const std::int64_t c = mask_per_channel() ? first_channel_ + channel : 0;
  for (const std::int64_t input : order_) {
    const std::uint64_t* row = valid_ + c * valid_channel_stride_words_ + input * valid_words_;
    for (std::size_t w = 0; w < bits.size(); ++w) bits[w] |= row[w];
  }
  for (auto& word : bits) word = ~word;
  clear_bits(bits.data(), n_spectra_, static_cast<std::int64_t>(bits.size()) * 64);
}

bool BeamSamples::absent(std::int64_t begin) const {
  if (valid_ == nullptr) return false;
  const std::int64_t masks = valid_channel_stride_words_ == 0 ? 1 : n_channels_;
  for (std::int64_t c = 0; c < masks; ++c) {
    for (const std::int64_t input : order_) {
      if (valid(c, input, begin)) return false;
    }
  }
  return true;
}

}  // namespace ryle::pipeline
