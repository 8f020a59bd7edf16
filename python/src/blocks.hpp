// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <memory>

#include "python/src/bindings.hpp"
#include "ryle/core/blocks.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/correlate/import.hpp"

namespace ryle::python {

/// Spectra as the engines hand them to each other: planar blocks and bit planes of what is valid.
class Blocks {
 public:
  Blocks(SampleFormat format, std::int64_t n_channels, std::int64_t n_spectra,
         std::int64_t n_inputs);

  SampleFormat format() const { return view_.format; }
  std::int64_t n_channels() const { return view_.n_channels; }
  std::int64_t n_spectra() const { return n_spectra_; }
  std::int64_t n_inputs() const { return view_.n_inputs; }
  /// All blocks from the one that begins with spectrum `first`. @pre a multiple of 128
  BlockView from(std::int64_t first) const;

  /// @shape [input][words()], or with per_channel() [channel][input][words()]; empty: all valid
  std::vector<std::uint64_t> valid;
  std::int64_t words() const { return words_; }
  bool per_channel() const { return valid.size() > static_cast<std::size_t>(n_inputs() * words_); }
  const std::uint64_t* valid_from(std::int64_t first) const {
    return valid.empty() ? nullptr : valid.data() + first / 64;
  }
  std::int64_t valid_channel_stride() const { return per_channel() ? n_inputs() * words_ : 0; }
  /// Spectra [first, first + n) as an engine takes them. @pre first a multiple of 128
  template <class Input>
  Input gulp(std::int64_t first, std::int64_t n) const {
    return {.blocks = from(first),
            .n_spectra = n,
            .valid = valid_from(first),
            .valid_words = words(),
            .valid_channel_stride_words = valid_channel_stride()};
  }

 private:
  std::int64_t n_spectra_;
  std::int64_t words_;
  Buffer<std::byte> bytes_;
  BlockView view_;
};

/// Where the samples of an array lie. @shape [channel][spectrum][input], parts of complex integers
/// on a last axis of 2
correlate::VoltageLayout layout_of(const AnyArray& array, SampleFormat format);

/// Spectra of one gulp, in multiples of 128, that take about 64 MiB.
std::int64_t gulp_spectra(std::int64_t bytes_per_spectrum, std::int64_t n_spectra);

}  // namespace ryle::python
