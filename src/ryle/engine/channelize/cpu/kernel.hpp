// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/simd/fft_pass.hpp"

/// Interface of the instruction-set files: plain structures only, because those files are compiled
/// with flags that this CPU may not have, and must not define a template or inline function that
/// the linker could pick for other files.
namespace ryle::channelize::detail {

enum class KernelFormat : std::uint8_t { ci8, ci4, cf16, cf32 };

using KernelPass = simd::FftPass<float>;

/// One transform size and filter; read only. Lane = spectrum: a "point" is n_lanes re then n_lanes
/// im floats.
struct KernelPlan {
  std::int64_t n_points;  ///< complex points F of the transform = output channels
  std::int64_t n_taps;
  bool float_stream;       ///< stream of floats instead of int8
  bool real_input;         ///< the points are pairs of real samples: untangle after the transform
  std::int64_t tap_bytes;  ///< from one tap to the next in the stream
  const float*
      filter;  ///< [block of n_lanes points][tap][1, or 2 for real input: re, im][lane], scaled
  // Four-step: F = n_columns * n_rows, n = n1 n_rows + n2, k = k1 + n_columns k2. n_columns = 1:
  // one transform.
  std::int64_t n_columns;
  std::int64_t n_rows;
  std::int64_t row_stride;       ///< points between rows in the work array
  const float* column_twiddles;  ///< [n2][k1 - 1] re, im
  int n_passes;
  const KernelPass* passes;  ///< transform of n_rows points (Bluestein: of n_padded)
  // Bluestein (0 = not used): chirp[F], filter[n_padded] re, im.
  std::int64_t n_padded;
  const float* chirp;
  const float* chirp_filter;
  const float* untangle;  ///< real input: exp(-2 pi i k / 2F) re, im [F/2 + 1]
  // Transform order: place k1 n_rows + k2 holds bin k1 + n_columns k2.
  const std::uint32_t* channel_of;  ///< [place] output channel
  int direction;                    ///< -1: inverted band
  KernelFormat format;
  bool truncate;
  bool dither;
  bool fixed_point;  ///< ci8, dithered, rounded to nearest: quantised in units of 2^-16
  const std::uint32_t* channel_keys;  ///< [place] x ^ x >> 16 of the dither's channel key x
  // Filter in integers (nullptr: in floats). Points then hold 1 / unit times their values.
  const std::int32_t* digits;  ///< [arranged point][1, or 2 for real input][constant term in three
                               ///< pieces, digit 2, 1, 0 of four taps a word]
  const std::int32_t* whole;   ///< [block of n_lanes points][tap][1 or 2][lane]
  float unit;                  ///< a power of two
  std::int64_t arranged_stride;  ///< bytes of 8 arranged rows of all points
};

struct KernelCounts {
  double sum_of_squares;
  std::uint32_t low;
  std::uint32_t high;
};

/// One vector of consecutive spectra of one input.
struct KernelGroup {
  const std::byte* start[16];  ///< window of each spectrum in the stream
  std::uint32_t valid;         ///< bit l: lane l holds a valid spectrum; the others store 0
  bool has_phase;
  std::uint64_t phase_base[16];  ///< 2^-64 turns
  std::uint64_t phase_slope[16];
  std::uint32_t dither_keys[16];  ///< x ^ x >> 16 of x = spectrum key ^ input key
  const float* gains;             ///< [place] re, im; times 2^16 where plan.fixed_point
  std::byte* codes;               ///< [place][piece]: n_lanes codes, real parts first
  KernelCounts* counts;           ///< [place] or nullptr
  /// Sliding spectra and integer filter: samples from lane 0's row on as arrange_rows() leaves
  /// them, windows starting `rotation` points after its point 0. nullptr: read from start[].
  const std::byte* arranged;
  std::int64_t rotation;      ///< 0 unless plan.n_columns is 1
  const std::byte* prefetch;  ///< 2 n_lanes bytes a point that are wanted soon; any address
};

/// How to decode a word of two codes: part = ((word << up) ^ flip) >> down, arithmetically.
struct KernelWords {
  std::uint16_t re_up, im_up, down, flip;
};

struct KernelTable {
  int n_lanes;
  bool wide_radices;  ///< enough registers for radix 8
  /// Bytes of scratch one call of run() uses (aligned to 64).
  std::int64_t (*scratch_bytes)(const KernelPlan&);
  void (*run)(const KernelPlan&, const KernelGroup&, std::byte* scratch);
  /// Gathers one finished block of every channel from the pieces in codes[vector of
  /// spectra][place][piece] to its cell and adds re^2 + im^2 of it to counts[place] (nullptr: no
  /// statistics).
  void (*flush)(const KernelPlan&, const std::byte* codes, std::byte* cells,
                std::int64_t channel_stride_bytes, KernelCounts* counts);
  /// Inputs that unpack_words() takes at a time.
  int n_word_inputs;
  /// Decodes 16-bit words of n_word_inputs neighbouring inputs, ticks `stride` bytes apart, to one
  /// row of byte pairs per input. Returns the ticks done: count rounded down to a multiple of 8.
  std::int64_t (*unpack_words)(const KernelWords&, const unsigned char* bytes, std::int64_t stride,
                               std::int64_t count, std::byte* out, std::int64_t row_bytes);
  /// Integer filter; nullptr where there is none. Rows [first, end) of a stream, one tap apart, to
  /// [8 rows][point][row] words of two bytes x + 128; whole groups of 8 rows are written, and up to
  /// 62 bytes past a row are read.
  void (*arrange_rows)(const KernelPlan&, const std::byte* start, std::int64_t first,
                       std::int64_t end, std::byte* out);
  /// The same from words of n_word_inputs neighbouring inputs, ticks `stride` bytes apart, of which
  /// [begin, end) may be read; cells of the inputs are `cell_bytes` apart.
  void (*arrange_words)(const KernelPlan&, const KernelWords&, const unsigned char* bytes,
                        std::int64_t stride, std::int64_t begin, std::int64_t end, std::byte* out,
                        std::int64_t cell_bytes);
};

#if defined(__x86_64__)
const KernelTable& kernel_avx512_vbmi();
const KernelTable& kernel_avx512();
const KernelTable& kernel_avx2();
#endif
const KernelTable& kernel_generic();

}  // namespace ryle::channelize::detail
