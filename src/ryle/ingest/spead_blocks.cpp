// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/spead_source.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kSpectraPerBlock = 64, kHalfBlock = 32;

// Sixteen bytes; the compiler makes shuffles of any machine that has vectors.
using Sixteen = std::uint8_t __attribute__((vector_size(16)));

// 16 spectra of two polarizations: re and im of the first, re and im of the second, sixteen each.
void split_sixteen(const std::byte* from, std::byte* re0, std::byte* im0, std::byte* re1,
                   std::byte* im1) {
  Sixteen v[4];
  std::memcpy(v, from, sizeof v);
  const auto two = [&](const Sixteen& a, const Sixteen& b) {  // byte k of each sample, then k + 1
    return __builtin_shufflevector(a, b, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
  };
  const auto other_two = [&](const Sixteen& a, const Sixteen& b) {
    return __builtin_shufflevector(a, b, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27,
                                   31);
  };
  const Sixteen p = two(v[0], v[1]), q = two(v[2], v[3]);
  const Sixteen r = other_two(v[0], v[1]), s = other_two(v[2], v[3]);
  const auto store = [](std::byte* to, Sixteen value) { std::memcpy(to, &value, sizeof value); };
  store(re0, __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
  store(im0, __builtin_shufflevector(p, q, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                     31));
  store(re1, __builtin_shufflevector(r, s, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
  store(im1, __builtin_shufflevector(r, s, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                     31));
}

/// Where a spectrum of a ci8 block lies in its cell: its real part; the imaginary is behind it by
/// kHalfBlock.
std::int64_t place_in_cell(std::int64_t spectrum) {
  return spectrum / kHalfBlock * 2 * kHalfBlock + spectrum % kHalfBlock;
}

// As unpack_row(), of one polarization.
void unpack_single(const std::byte* row, std::int64_t first, std::int64_t n, std::int64_t channel,
                   std::int64_t input, const BlockView& out) {
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int64_t spectrum = first + t;
    std::byte* cell = out.cell(channel, spectrum / kSpectraPerBlock, input) +
                      place_in_cell(spectrum % kSpectraPerBlock);
    cell[0] = row[2 * t];
    cell[kHalfBlock] = row[2 * t + 1];
  }
}

// n spectra of one channel of a heap to spectra first, first + 1, ... of two neighbouring inputs.
void unpack_row(const std::byte* row, std::int64_t first, std::int64_t n, std::int64_t channel,
                std::int64_t input, const BlockView& out) {
  for (std::int64_t t = 0; t < n;) {
    const std::int64_t spectrum = first + t;
    const std::int64_t at = place_in_cell(spectrum % kSpectraPerBlock);
    std::byte* cell0 = out.cell(channel, spectrum / kSpectraPerBlock, input) + at;
    std::byte* cell1 = cell0 + out.input_stride_bytes;
    if (spectrum % 16 == 0 && n - t >= 16) {
      split_sixteen(row + 4 * t, cell0, cell0 + kHalfBlock, cell1, cell1 + kHalfBlock);
      t += 16;
      continue;
    }
    cell0[0] = row[4 * t];
    cell0[kHalfBlock] = row[4 * t + 1];
    cell1[0] = row[4 * t + 2];
    cell1[kHalfBlock] = row[4 * t + 3];
    ++t;
  }
}

// Spectra [n, end of its block) of a row of cells.
void clear_tail(std::int64_t n, const BlockView& out) {
  if (n % kSpectraPerBlock == 0) return;
  for (std::int64_t channel = 0; channel < out.n_channels; ++channel) {
    for (std::int64_t input = 0; input < out.n_inputs; ++input) {
      std::byte* cell = out.cell(channel, n / kSpectraPerBlock, input);
      for (std::int64_t t = n % kSpectraPerBlock; t < kSpectraPerBlock; ++t)
        cell[place_in_cell(t)] = cell[place_in_cell(t) + kHalfBlock] = std::byte{0};
    }
  }
}

// Cells [begin, end) of a stream since the beginning of the chunk never came.
void clear_cells(const SpeadSourceConfig& c, std::int64_t stream, std::int64_t begin,
                 std::int64_t end, SpectraMask& mask) {
  const std::int64_t cells_per_heap = c.cells_per_heap();
  const std::int64_t cells_per_row = c.spectra_per_heap * c.spectrum_bytes() / c.cell_bytes();
  const std::int64_t spectra_per_cell = c.cell_bytes() / c.spectrum_bytes();
  const std::int64_t first_channel = stream / c.n_fengines * c.heap_channels();
  const std::int64_t input = stream % c.n_fengines * c.n_pols();
  while (begin < end) {  // row by row
    const std::int64_t heap = begin / cells_per_heap;
    const std::int64_t channel = begin % cells_per_heap / cells_per_row;
    const std::int64_t row_begin = heap * cells_per_heap + channel * cells_per_row;
    const std::int64_t row_end = std::min(end, row_begin + cells_per_row);
    const std::int64_t spectrum = heap * c.spectra_per_heap;
    std::uint64_t* bits = mask.bits.data() + (first_channel + channel) * mask.channel_stride_words +
                          input * mask.words;
    for (std::int64_t pol = 0; pol < c.n_pols(); ++pol)
      clear_bits(bits + pol * mask.words, spectrum + (begin - row_begin) * spectra_per_cell,
                 spectrum + (row_end - row_begin) * spectra_per_cell);
    begin = row_end;
  }
}

}  // namespace

SpectraShape SpeadSourceConfig::shape() const {
  return {n_channels, n_inputs(), chunk_spectra, SampleFormat::ci8, true};
}

FrequencyAxis SpeadSourceConfig::channels() const {
  return {channel_zero_hz + static_cast<double>(first_channel) * channel_width_hz, channel_width_hz,
          n_channels};
}

void unpack_spead(const SpeadSourceConfig& c, const Chunk& chunk, SpectraBlocks& spectra) {
  const BlockView& out = spectra.view;
  RYLE_ASSERT(chunk.n_ticks <= c.chunk_spectra && out.n_inputs == c.n_inputs() &&
              out.n_channels == c.n_channels && out.format == SampleFormat::ci8);
  spectra.n_spectra = chunk.n_ticks;
  spectra.first_spectrum = chunk.first_tick;
  spectra.segment = chunk.segment;
  spectra.complete = chunk.absent.empty();
  const std::int64_t heaps_per_chunk = c.chunk_spectra / c.spectra_per_heap;
  const std::int64_t n_heaps = chunk.n_ticks / c.spectra_per_heap;
  const std::int64_t channels = c.heap_channels();
  for (std::int64_t stream = 0; stream < c.n_streams(); ++stream) {
    const std::byte* heap = chunk.payload.data() + stream * heaps_per_chunk * c.heap_bytes();
    for (std::int64_t h = 0; h < n_heaps; ++h, heap += c.heap_bytes()) {
      for (std::int64_t k = 0; k < channels; ++k)
        (c.beams ? unpack_single : unpack_row)(heap + k * c.spectra_per_heap * c.spectrum_bytes(),
                                               h * c.spectra_per_heap, c.spectra_per_heap,
                                               stream / c.n_fengines * channels + k,
                                               stream % c.n_fengines * c.n_pols(), out);
    }
  }
  clear_tail(chunk.n_ticks, out);
  fill_mask(c.shape(), chunk.n_ticks, spectra.mask);
  const std::int64_t first_cell = chunk.first_tick / c.spectra_per_heap * c.cells_per_heap();
  for (const auto& span : chunk.absent)
    clear_cells(c, span.input, span.begin - first_cell, span.end - first_cell, spectra.mask);
}

}  // namespace ryle
