// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/device/cuda/kernel.cuh"

// clang-format off
/// import_blocks turns voltages of other systems into planar blocks on the device. Samples are only
/// moved, or widened to floats, never rounded; samples that are not valid become 0.
///
///   array         axes                                              type               layout
///   source        [channel], [input], [spectrum], [heap], any order 1, 2, 4, 8 bytes   strides from_* in bytes
///   valid         [channel][input][word of 64 spectra]              uint64             nullptr: all are valid
///   tile          [64 columns][kColumnWords]                        uint32             in shared memory
///   to            [channel][block][input][128 or 256 bytes]         planar block       strides to_* in bytes
///
/// Who does what: a column is one input of one channel, inputs fastest. A thread block of 256 threads
/// reads 64 columns of one block of spectra along the fast axis of the source, in pieces of 16 bytes
/// where alignment allows, and transposes them in shared memory. Then four threads write the cell of
/// each column. Both sides so move whole sectors of memory, whichever axis of the source is the fast one.
/// Memory bandwidth binds by construction: each byte is read once and written once.
// clang-format on
namespace ryle::correlate::detail {

/// VoltageLayout and BlockView with what a thread needs; strides in bytes.
struct ImportArguments {
  const std::byte* source;
  std::int64_t from_channel, from_input, from_spectrum, from_heap;
  int spectra_per_heap;  ///< beyond any number of spectra where there are no heaps
  std::byte* to;
  std::int64_t to_channel, to_block, to_input;
  const std::uint64_t* valid;  ///< [input][words], nullptr = all
  std::int64_t valid_words, valid_channel_words;
  int n_spectra;
  int n_inputs;
  int n_columns;  ///< channels x inputs
  int n_tiles;    ///< of columns
};

constexpr int kImportThreads = 256;
constexpr int kImportColumns = 64;

/// Spectra of a heap that holds them all; a whole number of pieces.
constexpr std::int64_t kNoHeaps = std::int64_t{1} << 30;

/// What is read at once: pieces of 16 bytes along the source's fast axis, or sample by sample.
enum class ImportRead : std::uint8_t { columns_16, spectra_16, columns, spectra };

/// kSample bytes a sample, kSpectra spectra a block; to_floats: blocks are cf32.
template <int kSample, int kSpectra>
struct ImportTile {
  // A word more than a column takes: threads of a warp then meet different banks.
  static constexpr int kColumnWords = kSample * kSpectra / 4 + 1;
  unsigned words[kImportColumns * kColumnWords];
};

/// Sample of kSample bytes, or the first so many of a piece.
struct ImportSample {
  unsigned low, high;
};

template <int kSample>
__device__ inline ImportSample read_sample(const std::byte* from) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  unsigned words[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < kSample; ++k) words[k / 4] |= unsigned{bytes[k]} << (8 * (k % 4));
  return {words[0], words[1]};
}

/// Sample k of 16 bytes.
template <int kSample>
__device__ inline ImportSample of_piece(const uint4& piece, int k) {
  const unsigned words[4] = {piece.x, piece.y, piece.z, piece.w};
  if constexpr (kSample == 8) {
    return {words[2 * k], words[2 * k + 1]};
  } else {
    constexpr unsigned kMask = kSample == 4 ? ~0u : (1u << (8 * kSample % 32)) - 1;
    return {words[k * kSample / 4] >> (8 * (k * kSample % 4)) & kMask, 0};
  }
}

template <int kSample, int kSpectra>
__device__ inline void put_sample(ImportTile<kSample, kSpectra>& tile, int column, int t,
                                  const ImportSample& s) {
  unsigned* words = tile.words + column * tile.kColumnWords;
  if constexpr (kSample == 1)
    reinterpret_cast<unsigned char*>(words)[t] = static_cast<unsigned char>(s.low);
  if constexpr (kSample == 2)
    reinterpret_cast<unsigned short*>(words)[t] = static_cast<unsigned short>(s.low);
  if constexpr (kSample == 4) words[t] = s.low;
  if constexpr (kSample == 8) {
    words[2 * t] = s.low;
    words[2 * t + 1] = s.high;
  }
}

__device__ inline bool is_valid(const ImportArguments& a, int column, int t) {
  if (a.valid == nullptr) return true;
  const std::uint64_t* plane =
      a.valid + column / a.n_inputs * a.valid_channel_words + column % a.n_inputs * a.valid_words;
  return (plane[t / 64] >> (t % 64) & 1u) != 0;
}

__device__ inline const std::byte* source_of(const ImportArguments& a, int column, int t) {
  const auto heap =
      static_cast<int>(static_cast<unsigned>(t) / static_cast<unsigned>(a.spectra_per_heap));
  return a.source + column / a.n_inputs * a.from_channel + column % a.n_inputs * a.from_input +
         heap * a.from_heap + (t - heap * a.spectra_per_heap) * a.from_spectrum;
}

/// What a thread reads at once.
template <int kSample, ImportRead kRead>
__device__ inline uint4 read_piece(const ImportArguments& a, int column, int t) {
  constexpr int kPiece = 16 / kSample;
  if (column >= a.n_columns || t >= a.n_spectra) return {0, 0, 0, 0};
  const std::byte* from = source_of(a, column, t);
  if (kRead == ImportRead::columns_16 || t + kPiece <= a.n_spectra)
    return *reinterpret_cast<const uint4*>(from);
  unsigned words[4] = {0, 0, 0, 0};  // memory may end with the last spectrum
  for (int s = 0; s < a.n_spectra - t; ++s) {
    for (int k = 0; k < kSample; ++k) {
      const int at = s * kSample + k;
      words[at / 4] |= static_cast<unsigned>(from[at]) << (8 * (at % 4));
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Columns [first, first + 64) of spectra [begin, begin + kSpectra) into the tile; 0 where nothing
/// is. All reads of a thread are on their way before the first is needed.
template <int kSample, int kSpectra, ImportRead kRead>
__device__ inline void read_tile(const ImportArguments& a, int first, int begin,
                                 ImportTile<kSample, kSpectra>& tile) {
  constexpr bool kWide = kRead == ImportRead::columns_16 || kRead == ImportRead::spectra_16;
  constexpr bool kAlongColumns = kRead == ImportRead::columns_16 || kRead == ImportRead::columns;
  constexpr int kPiece = kWide ? 16 / kSample : 1;
  constexpr int kPieces = kImportColumns * kSpectra / kPiece;
  constexpr int kAcross = (kAlongColumns ? kImportColumns : kSpectra) / kPiece;
  constexpr int kRounds = (kPieces + kImportThreads - 1) / kImportThreads;
  const auto column_of = [](int k) { return kAlongColumns ? k % kAcross * kPiece : k / kAcross; };
  const auto spectrum_of = [](int k) { return kAlongColumns ? k / kAcross : k % kAcross * kPiece; };
  uint4 pieces[kRounds];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int k = static_cast<int>(threadIdx.x) + round * kImportThreads;
    const int column = first + column_of(k);
    const int t = begin + spectrum_of(k);
    pieces[round] = {0, 0, 0, 0};
    if (kPieces % kImportThreads != 0 && k >= kPieces) continue;
    if constexpr (kWide) {
      pieces[round] = read_piece<kSample, kRead>(a, column, t);
    } else if (column < a.n_columns && t < a.n_spectra) {
      const ImportSample s = read_sample<kSample>(source_of(a, column, t));
      pieces[round] = {s.low, s.high, 0, 0};
    }
  }
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int k = static_cast<int>(threadIdx.x) + round * kImportThreads;
    if (kPieces % kImportThreads != 0 && k >= kPieces) continue;
#pragma unroll
    for (int s = 0; s < kPiece; ++s) {
      const int column = column_of(k) + (kAlongColumns ? s : 0);
      const int t = spectrum_of(k) + (kAlongColumns ? 0 : s);
      const bool there = first + column < a.n_columns && begin + t < a.n_spectra;
      const bool keep = there && is_valid(a, first + column, begin + t);
      put_sample(tile, column, t, keep ? of_piece<kSample>(pieces[round], s) : ImportSample{0, 0});
    }
  }
}

/// Bytes `byte` and `byte` + 2 of both words, in order: parts of ci8 samples come two a word.
__device__ inline unsigned every_second(unsigned a, unsigned b, unsigned byte) {
  return __byte_perm(a, b, 0x6420u + 0x1111u * byte);
}
/// Byte `byte` of four words, for ci16 samples, one a word.
__device__ inline unsigned one_of_each(const unsigned* words, unsigned byte) {
  const unsigned low = __byte_perm(words[0], words[1], (4 + byte) << 4 | byte);
  const unsigned high = __byte_perm(words[2], words[3], (4 + byte) << 4 | byte);
  return (low & 65535u) | high << 16;
}

__device__ inline void write_16(std::byte* to, const unsigned (&w)[4]) {
  *reinterpret_cast<uint4*>(to) = {w[0], w[1], w[2], w[3]};
}

__device__ inline unsigned bits_of(int value) {
  return static_cast<unsigned>(__float_as_int(static_cast<float>(value)));
}

/// Quarter g of a column whose samples begin at `words`, to its cell.
template <int kSample, bool kFloats>
__device__ inline void write_quarter(const unsigned* words, int g, std::byte* cell) {
  unsigned re[4], im[4];
  if constexpr (kSample == 8) {  // 16 spectra: 16 re, 16 im
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      re[k] = words[8 * g + 2 * k];
      im[k] = words[8 * g + 2 * k + 1];
    }
    write_16(cell + 16 * g, re);
    write_16(cell + 64 + 16 * g, im);
  } else if constexpr (kFloats) {  // the same, widened
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int t = 4 * g + k;
      const unsigned word = words[t * kSample / 4] >> (8 * (t * kSample % 4));
      if constexpr (kSample == 1) {
        re[k] = bits_of(static_cast<int>(word << 24) >> 28);
        im[k] = bits_of(static_cast<int>(word << 28) >> 28);
      } else if constexpr (kSample == 2) {
        re[k] = bits_of(static_cast<int>(word << 24) >> 24);
        im[k] = bits_of(static_cast<int>(word << 16) >> 24);
      } else {
        re[k] = bits_of(static_cast<int>(word << 16) >> 16);
        im[k] = bits_of(static_cast<int>(word) >> 16);
      }
    }
    write_16(cell + 16 * g, re);
    write_16(cell + 64 + 16 * g, im);
  } else if constexpr (kSample == 1) {  // 128 spectra as they are
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      re[k] = words[8 * g + k];
      im[k] = words[8 * g + 4 + k];
    }
    write_16(cell + 32 * g, re);
    write_16(cell + 32 * g + 16, im);
  } else {  // ci8, or high then low bytes of ci16: runs of 32 re, 32 im
    std::byte* to = cell + g / 2 * 64 + g % 2 * 16;
    if constexpr (kSample == 2) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const unsigned a = words[8 * g + 2 * k];
        const unsigned b = words[8 * g + 2 * k + 1];
        re[k] = every_second(a, b, 0);
        im[k] = every_second(a, b, 1);
      }
      write_16(to, re);
      write_16(to + 32, im);
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          re[k] = one_of_each(words + 16 * g + 4 * k, half == 0 ? 1u : 0u);
          im[k] = one_of_each(words + 16 * g + 4 * k, half == 0 ? 3u : 2u);
        }
        write_16(to + 128 * half, re);
        write_16(to + 128 * half + 32, im);
      }
    }
  }
}

/// Grid: n_tiles x blocks of spectra along x, so that thread blocks that run together read rows
/// that lie together.
template <int kSample, bool kFloats, ImportRead kRead>
__global__ void __launch_bounds__(kImportThreads) import_blocks(ImportArguments a) {
  constexpr int kSpectra = kFloats || kSample == 8 ? 16 : kSample == 1 ? 128 : 64;
  auto& tile = cuda::shared<ImportTile<kSample, kSpectra>>();
  const int first = static_cast<int>(blockIdx.x) % a.n_tiles * kImportColumns;
  const int block = static_cast<int>(blockIdx.x) / a.n_tiles;
  read_tile<kSample, kSpectra, kRead>(a, first, block * kSpectra, tile);
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x) / 4;
  if (first + column >= a.n_columns) return;
  std::byte* cell = a.to + (first + column) / a.n_inputs * a.to_channel + block * a.to_block +
                    (first + column) % a.n_inputs * a.to_input;
  write_quarter<kSample, kFloats>(tile.words + column * tile.kColumnWords,
                                  static_cast<int>(threadIdx.x) % 4, cell);
}

/// The kernel for a source of this many bytes a sample; nullptr: none.
using ImportKernel = void (*)(ImportArguments);

template <int kSample, bool kFloats>
ImportKernel import_kernel(ImportRead read) {
  switch (read) {
    case ImportRead::columns_16:
      return import_blocks<kSample, kFloats, ImportRead::columns_16>;
    case ImportRead::spectra_16:
      return import_blocks<kSample, kFloats, ImportRead::spectra_16>;
    case ImportRead::columns:
      return import_blocks<kSample, kFloats, ImportRead::columns>;
    default:
      return import_blocks<kSample, kFloats, ImportRead::spectra>;
  }
}

inline ImportKernel import_kernel(int sample_bytes, bool to_floats, ImportRead read) {
  if (sample_bytes == 1)
    return to_floats ? import_kernel<1, true>(read) : import_kernel<1, false>(read);
  if (sample_bytes == 2)
    return to_floats ? import_kernel<2, true>(read) : import_kernel<2, false>(read);
  if (sample_bytes == 4)
    return to_floats ? import_kernel<4, true>(read) : import_kernel<4, false>(read);
  return import_kernel<8, false>(read);
}

/// The widest way to read this source.
inline ImportRead import_read(const ImportArguments& a, int sample_bytes) {
  const auto whole = [](std::int64_t stride) { return stride % 16 == 0; };
  const bool aligned = reinterpret_cast<std::uintptr_t>(a.source) % 16 == 0;
  const std::int64_t per_piece = 16 / sample_bytes;
  // The spectrum after the last of a heap is in the next one.
  const bool heaps_whole = a.spectra_per_heap % per_piece == 0 && whole(a.from_heap);
  if (a.from_spectrum == sample_bytes) {
    return aligned && heaps_whole && whole(a.from_channel) && whole(a.from_input)
               ? ImportRead::spectra_16
               : ImportRead::spectra;
  }
  // Columns go on from channel to channel, or pieces end with the inputs of one.
  const bool rows_whole = whole(a.from_channel) && a.n_inputs % per_piece == 0;
  const bool dense = a.from_channel == std::int64_t{a.n_inputs} * sample_bytes;
  const bool inputs_together = a.from_input == sample_bytes;
  const bool columns_whole = a.n_columns % per_piece == 0;
  return aligned && inputs_together && (rows_whole || (dense && columns_whole)) &&
                 whole(a.from_spectrum) && whole(a.from_heap)
             ? ImportRead::columns_16
             : ImportRead::columns;
}

}  // namespace ryle::correlate::detail
