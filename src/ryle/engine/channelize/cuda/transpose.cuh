// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/device/cuda/kernel.cuh"

// clang-format off
/// transpose_tile transposes samples from [tick][input] to [input][tick]; no sample changes.
///
///   array    axes                                     type              layout
///   from     [tick][input]                            1, 2 or 4 bytes   from_stride bytes from tick to tick
///   tile     [64 inputs][33 words]                    uint32            in shared memory; 33: no bank conflicts
///   to       [input][tick]                            1, 2 or 4 bytes   to_stride bytes from input to input
///
/// A thread block of 256 threads takes 64 inputs of as many ticks as fill a line of 128 bytes of an input's
/// row. All reads are on their way before the first is needed: pieces of 16 bytes where ticks begin at
/// multiples of 16 bytes, else single samples. Writes are whole lines. Memory bandwidth binds by
/// construction, as each sample is read once and written once.
// clang-format on
namespace ryle::channelize::detail {

struct TransposeArguments {
  const std::byte* from;
  std::byte* to;
  std::int64_t from_stride;  ///< bytes from tick to tick
  std::int64_t to_stride;    ///< bytes from input to input
  int n_inputs;
  int n_ticks;
  int n_tiles;  ///< of inputs
};

constexpr int kTransposeThreads = 256;
constexpr int kTransposeInputs = 64;
constexpr int kTransposeWords = 32;  // of a line

struct TransposeTile {
  // A word more than a line: threads of a warp then meet different banks.
  unsigned words[kTransposeInputs * (kTransposeWords + 1)];
};

template <class Sample>
__device__ inline Sample* line_of(TransposeTile& tile, int input) {
  return reinterpret_cast<Sample*>(tile.words + input * (kTransposeWords + 1));
}

/// Sample s of 16 bytes.
template <class Sample>
__device__ inline Sample of_words(const unsigned (&words)[4], int s) {
  constexpr int kBytes = sizeof(Sample);
  return static_cast<Sample>(words[s * kBytes / 4] >> (8 * (s * kBytes % 4)));
}

/// Sample: unsigned of 1, 2 or 4 bytes. Grid: tiles of inputs x lines of ticks along x, so that
/// blocks that run together read rows that lie together.
template <class Sample, bool kPieces>
__global__ void __launch_bounds__(kTransposeThreads) transpose_tile(TransposeArguments a) {
  constexpr int kTicks = 128 / static_cast<int>(sizeof(Sample));
  constexpr int kPiece = kPieces ? 16 / static_cast<int>(sizeof(Sample)) : 1;
  constexpr int kAcross = kTransposeInputs / kPiece;
  constexpr int kRounds = kAcross * kTicks / kTransposeThreads;
  auto& tile = cuda::shared<TransposeTile>();
  const int first_input = static_cast<int>(blockIdx.x) % a.n_tiles * kTransposeInputs;
  const int first_tick = static_cast<int>(blockIdx.x) / a.n_tiles * kTicks;
  const auto thread = static_cast<int>(threadIdx.x);
  unsigned pieces[kRounds][4];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {  // all on their way before one is needed
    const int k = thread + round * kTransposeThreads;
    const int input = first_input + k % kAcross * kPiece;
    const int tick = first_tick + k / kAcross;
    for (unsigned& word : pieces[round]) word = 0;
    if (input >= a.n_inputs || tick >= a.n_ticks) continue;
    const std::byte* from = a.from + tick * a.from_stride;
    if constexpr (kPieces) {
      const auto* at = from + input * static_cast<int>(sizeof(Sample));
      const uint4 piece = *reinterpret_cast<const uint4*>(at);
      pieces[round][0] = piece.x;
      pieces[round][1] = piece.y;
      pieces[round][2] = piece.z;
      pieces[round][3] = piece.w;
    } else {
      pieces[round][0] = reinterpret_cast<const Sample*>(from)[input];
    }
  }
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int k = thread + round * kTransposeThreads;
#pragma unroll
    for (int s = 0; s < kPiece; ++s)
      line_of<Sample>(tile, k % kAcross * kPiece + s)[k / kAcross] =
          of_words<Sample>(pieces[round], s);
  }
  __syncthreads();
  for (int input = thread / kTransposeWords;
       input < kTransposeInputs && first_input + input < a.n_inputs;
       input += kTransposeThreads / kTransposeWords) {
    auto* row = reinterpret_cast<unsigned*>(a.to + (first_input + input) * a.to_stride);
    row[first_tick * static_cast<int>(sizeof(Sample)) / 4 + thread % kTransposeWords] =
        tile.words[input * (kTransposeWords + 1) + thread % kTransposeWords];
  }
}

using TransposeKernel = void (*)(TransposeArguments);

inline TransposeKernel transpose_kernel(const TransposeArguments& a, int sample_bytes) {
  const bool pieces = a.n_inputs * sample_bytes % 16 == 0 && a.from_stride % 16 == 0 &&
                      reinterpret_cast<std::uintptr_t>(a.from) % 16 == 0;
  if (sample_bytes == 1)
    return pieces ? transpose_tile<unsigned char, true> : transpose_tile<unsigned char, false>;
  if (sample_bytes == 2)
    return pieces ? transpose_tile<unsigned short, true> : transpose_tile<unsigned short, false>;
  return pieces ? transpose_tile<unsigned, true> : transpose_tile<unsigned, false>;
}

}  // namespace ryle::channelize::detail
