// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

#include "ryle/device/cuda/kernel.cuh"

// clang-format off
/// import_tile moves samples from planar blocks to the order that the beamformer reads; no sample changes.
///
///   array    axes                                 type           layout
///   from     [channel][block][input]              128 bytes      strides of the blocks; ci4 128 spectra, ci8 64
///   tile     [32 inputs][33 words]                uint32         in shared memory; 33: no bank conflicts
///   to       [channel][time][input]               1 or 2 bytes   spectra, dense
///            [channel][block][input / 2][time][2] 1 or 2 bytes   pairs, dense
///
/// A thread block of 256 threads takes 32 inputs of one block of a channel: it reads whole lines of 128 bytes, and
/// writes samples one by one, those of neighbouring threads side by side. Stores bind: each moves one sample, a
/// sector of 32 bytes by 32 threads. The samples were copied to the device before, at a tenth of this rate.
// clang-format on
namespace ryle::beamform::detail {

struct ImportArguments {
  const std::byte* from;
  std::byte* to;
  const std::int32_t* inputs;  ///< [n_inputs] input of the blocks
  std::int64_t channel_stride_bytes, block_stride_bytes, input_stride_bytes;  ///< of the blocks
  std::int64_t to_channel_bytes;
  std::int64_t n_spectra;
  std::int64_t block_spectra;  ///< of pairs; 0: spectra
  int n_inputs, n_blocks, n_tiles;
};

constexpr int kImportThreads = 256;
constexpr int kImportInputs = 32;
constexpr int kImportWords = 32;  // of a block of 128 bytes

struct ImportTile {
  // A word more than a block: threads of a warp then meet different banks.
  unsigned words[kImportInputs * (kImportWords + 1)];
};

/// Grid: tiles of inputs x blocks x channels along x.
template <bool kNibbles>
__global__ void __launch_bounds__(kImportThreads) import_tile(ImportArguments a) {
  constexpr int kSpectra = kNibbles ? 128 : 64;
  auto& tile = cuda::shared<ImportTile>();
  const auto thread = static_cast<int>(threadIdx.x);
  const int first_input = static_cast<int>(blockIdx.x) % a.n_tiles * kImportInputs;
  const int rest = static_cast<int>(blockIdx.x) / a.n_tiles;
  const int block = rest % a.n_blocks;
  const std::int64_t channel = rest / a.n_blocks;
  const std::byte* from = a.from + channel * a.channel_stride_bytes + block * a.block_stride_bytes;
  for (int k = thread; k < kImportInputs * kImportWords; k += kImportThreads) {
    const int row = k / kImportWords, input = first_input + row;
    if (input >= a.n_inputs) break;
    const auto* line =
        reinterpret_cast<const unsigned*>(from + a.inputs[input] * a.input_stride_bytes);
    tile.words[row * (kImportWords + 1) + k % kImportWords] = line[k % kImportWords];
  }
  __syncthreads();
  std::byte* to = a.to + channel * a.to_channel_bytes;
  const std::int64_t first = std::int64_t{block} * kSpectra;
  for (int k = thread; k < kImportInputs * kSpectra; k += kImportThreads) {
    // Neighbours along what lies together in the result.
    const bool pairs = a.block_spectra != 0;
    const int row = pairs ? k / (2 * kSpectra) * 2 + k % 2 : k % kImportInputs;
    const int at = pairs ? k / 2 % kSpectra : k / kImportInputs;
    const std::int64_t input = first_input + row, t = first + at;
    if (input >= a.n_inputs || t >= a.n_spectra) continue;
    std::int64_t sample = t * a.n_inputs + input;
    if (pairs) {
      const std::int64_t whole = t / a.block_spectra, in_block = t % a.block_spectra;
      sample = (whole * a.n_inputs + input / 2 * 2) * a.block_spectra + 2 * in_block + input % 2;
    }
    const auto* bytes =
        reinterpret_cast<const unsigned char*>(tile.words + row * (kImportWords + 1));
    if constexpr (kNibbles) {
      reinterpret_cast<unsigned char*>(to)[sample] = bytes[at];
    } else {  // runs of 32 real, then 32 imaginary parts
      const int part = at / 32 * 64 + at % 32;
      reinterpret_cast<unsigned short*>(to)[sample] =
          static_cast<unsigned short>(bytes[part] | bytes[part + 32] << 8);
    }
  }
}

}  // namespace ryle::beamform::detail
