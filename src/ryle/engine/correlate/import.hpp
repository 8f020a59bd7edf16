// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/core/blocks.hpp"
#include "ryle/device/queue.hpp"

/// Channelized voltages of other systems -> planar blocks (core/blocks.hpp), one pass.
namespace ryle::correlate {

/// Where the complex sample (channel, input, spectrum) lies, in bytes from the start: real part
/// first, then imaginary. One stride may be one sample; the others may be anything. Spectrum t lies
/// at (t / spectra_per_heap) heap_stride + (t % spectra_per_heap) spectrum_stride (0 spectra per
/// heap = no heaps).
struct VoltageLayout {
  SampleFormat format =
      SampleFormat::ci8;  ///< of the source: ci4 (1 byte, high nibble real), ci8, ci16 (LE), cf32
  std::int64_t channel_stride_bytes = 0;
  std::int64_t input_stride_bytes = 0;
  std::int64_t spectrum_stride_bytes = 0;
  std::int64_t spectra_per_heap = 0;
  std::int64_t heap_stride_bytes = 0;
};

/// Bytes of one complex sample in memory.
std::int64_t voltage_bytes(SampleFormat format);

/// [spectrum][channel][input], input unit-stride: FPGA boards, xGPU.
VoltageLayout spectrum_channel_input(SampleFormat format, std::int64_t n_channels,
                                     std::int64_t n_inputs);
/// [channel][input][spectrum], spectrum unit-stride: MWAX, simulation.
VoltageLayout channel_input_spectrum(SampleFormat format, std::int64_t n_inputs,
                                     std::int64_t n_spectra);
/// [heap][input][channel][spectrum]: SPEAD heaps of the MeerKAT F-engine, one after another.
VoltageLayout heap_input_channel_spectrum(SampleFormat format, std::int64_t n_inputs,
                                          std::int64_t n_channels, std::int64_t spectra_per_heap);

/// Which samples are to be used, as correlate::Input has it: bit t % 64 of word t / 64.
/// @shape valid [input][words], with channel_stride_words [channel][input][words]
struct ValidPlanes {
  const std::uint64_t* valid = nullptr;  ///< nullptr: all
  std::int64_t words = 0;
  std::int64_t channel_stride_words = 0;
};

/// Copies n_spectra spectra of every channel and input of `blocks`. Spectra beyond n_spectra in the
/// last block become 0, and samples that are not valid. Formats: equal, or to cf32 from any integer
/// format; others throw UnsupportedError. Whole bytes are moved, nothing is rounded: -128 stays
/// -128. A queue of a GPU throws UnsupportedError.
void import_voltages(Queue& queue, const void* source, const VoltageLayout& layout,
                     std::int64_t n_spectra, const BlockView& blocks,
                     const ValidPlanes& planes = {});

}  // namespace ryle::correlate
