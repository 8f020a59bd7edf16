// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/import.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/beamform/cuda/import.hpp"
#endif

namespace ryle::beamform {
namespace {

/// A channel on the CPU, block by block and input by input: an input's samples of a block lie
/// together.
void import_channel(const ConstBlockView& blocks, const BlocksImport& what, std::int64_t channel,
                    std::byte* to) {
  const bool nibbles = blocks.format == SampleFormat::ci4;
  const std::int64_t bytes = nibbles ? 1 : 2, per_block = spectra_per_block(blocks.format);
  const std::int64_t n_inputs = what.n_inputs();
  const bool pairs = what.order == InputOrder::pairs;
  const std::int64_t step = (pairs ? 2 : n_inputs) * bytes;  // from spectrum to spectrum
  for (std::int64_t first = 0; first < what.n_spectra; first += per_block) {
    const std::int64_t n = std::min(per_block, what.n_spectra - first);
    for (std::int64_t k = 0; k < n_inputs; ++k) {
      const std::byte* from = blocks.cell(what.first_channel + channel, first / per_block,
                                          what.inputs[static_cast<std::size_t>(k)]);
      std::byte* at = to + (pairs ? 0 : (first * n_inputs + k) * bytes);
      if (pairs) {
        const std::int64_t block = first / what.block_spectra, t = first % what.block_spectra;
        at += ((block * n_inputs + k / 2 * 2) * what.block_spectra + 2 * t + k % 2) * bytes;
      }
      for (std::int64_t t = 0; t < n; ++t, at += step) {
        if (nibbles) {
          at[0] = from[t];
        } else {  // runs of 32 real, then 32 imaginary parts
          const std::int64_t part = t / 32 * 64 + t % 32;
          at[0] = from[part];
          at[1] = from[part + 32];
        }
      }
    }
  }
}

}  // namespace

std::int64_t sample_bytes(SampleFormat format) {
  if (format == SampleFormat::ci4) return 1;
  if (format == SampleFormat::ci8) return 2;
  throw UnsupportedError("beams are made of blocks of ci4 or ci8, these are " +
                         std::string(name(format)));
}

std::int64_t imported_channel_bytes(const BlocksImport& what, SampleFormat format) {
  const std::int64_t whole = what.order == InputOrder::pairs ? what.block_spectra : 1;
  const std::int64_t n_spectra = (what.n_spectra + whole - 1) / whole * whole;
  return n_spectra * what.n_inputs() * sample_bytes(format);
}

void import_blocks(Queue& queue, const ConstBlockView& blocks, const BlocksImport& what,
                   std::byte* samples) {
  const std::int64_t stride = imported_channel_bytes(what, blocks.format);
  const bool pairs = what.order == InputOrder::pairs;
  RYLE_ASSERT(!pairs || (what.n_inputs() % 2 == 0 &&
                         what.block_spectra % spectra_per_block(blocks.format) == 0));
#ifdef RYLE_HAVE_CUDA
  if (queue.back_end() == BackEnd::cuda) {
    detail::import_blocks_cuda(queue, blocks, what, samples);
    return;
  }
#endif
  queue.parallel_for(what.n_channels, [&](std::int64_t channel) {
    import_channel(blocks, what, channel, samples + channel * stride);
  });
}

}  // namespace ryle::beamform
