// SPDX-License-Identifier: BSD-3-Clause
// Kernels for any format and shape: fp32 sums, incoherent powers, and the two that put samples and
// weights into the order of the tensor cores.
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/cuda/samples.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kTileBeams = 64, kTileSpectra = 64, kTileAntennas = 16, kTileThreads = 256;

// clang-format off
/// Sums b[beam][t] = sum_a W[beam][a] v[a][t] in fp32, for any format, weights and shape (cuda:fp32).
///
///   a.samples   any format, CudaSamples                          LSB
///   a.weights   [beam][channel][input]                  float2
///   w, v        [16 antennas][64 beams or spectra + 1]  float2   in shared memory
///   a.sums      [pol][channel][beam][pitch]             float2   before the scale of the weights
///
/// A thread block of 256 threads makes 64 beams x 64 spectra of one (channel, pol); a thread makes 4 x 4 of
/// them. 16 antennas at a time come to shared memory between two barriers. Antennas are added in order, so
/// that no bit depends on tiles. This is the path for what no tensor-core kernel takes.
// clang-format on
__global__ void __launch_bounds__(kTileThreads)
    plain(const PlainArgs a, int time_tiles, int beam_tiles) {
  __shared__ float2 w[kTileAntennas][kTileBeams + 1];
  __shared__ float2 v[kTileAntennas][kTileSpectra + 1];
  std::int64_t id = blockIdx.x;
  const std::int64_t t0 = id % time_tiles * kTileSpectra;
  id /= time_tiles;
  const int b0 = static_cast<int>(id % beam_tiles) * kTileBeams;
  id /= beam_tiles;
  const int pols = a.samples.n_pols;
  const int pol = static_cast<int>(id % pols);
  const int local = static_cast<int>(id / pols);
  const std::int64_t channel = a.first_channel + local;
  const int row = threadIdx.x / 16, column = threadIdx.x % 16;
  float2 sum[4][4] = {};
  for (int first = 0; first < a.n_antennas; first += kTileAntennas) {
    __syncthreads();
    for (int k = threadIdx.x; k < kTileAntennas * 64; k += kTileThreads) {
      const int antenna = k % kTileAntennas, at = k / kTileAntennas;
      const bool inside = first + antenna < a.n_antennas;
      const int input = (first + antenna) * pols + pol;
      const bool beam = inside && b0 + at < a.n_beams;
      w[antenna][at] =
          beam ? a.weights[((b0 + at) * static_cast<std::int64_t>(a.all_channels) + channel) *
                               a.samples.n_inputs +
                           input]
               : float2{0, 0};
      const bool there = inside && t0 + at < a.n_spectra;
      v[antenna][at] = there ? sample_value(a.samples, channel, a.first_spectrum + t0 + at, input)
                             : float2{0, 0};
    }
    __syncthreads();
    for (int antenna = 0; antenna < kTileAntennas; ++antenna) {
      float2 x[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) x[k] = v[antenna][column + 16 * k];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const float2 y = w[antenna][row + 16 * b];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          sum[b][k].x = fmaf(y.x, x[k].x, sum[b][k].x);
          sum[b][k].y = fmaf(y.y, x[k].x, sum[b][k].y);
          sum[b][k].x = fmaf(-y.y, x[k].y, sum[b][k].x);
          sum[b][k].y = fmaf(y.x, x[k].y, sum[b][k].y);
        }
      }
    }
  }
  for (int b = 0; b < 4; ++b) {
    const std::int64_t beam = b0 + row + 16 * b;
    if (beam >= a.n_beams) continue;
    float2* to =
        a.sums +
        ((static_cast<std::int64_t>(pol) * a.n_channels + local) * a.n_beams + beam) * a.pitch;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t t = t0 + column + 16 * k;
      if (t < a.n_spectra) to[t] = sum[b][k];
    }
  }
}

/// Sums power[pol][channel][row][t] = sum of |v|^2 over the antennas of the row's mask. A thread
/// makes one spectrum of one channel, all rows and pols, antennas in order; neighbouring threads
/// take neighbouring spectra. Samples are read once for each row: a second pass over memory beside
/// the coherent beams.
__global__ void incoherent(const IncoherentArgs a) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= a.n_spectra * a.n_channels) return;
  const std::int64_t local = id / a.n_spectra, t = id % a.n_spectra;
  const int pols = a.samples.n_pols;
  for (int row = 0; row < a.n_rows; ++row) {
    float power[2] = {0, 0};
    for (int antenna = 0; antenna < a.n_antennas; ++antenna) {
      if (a.mask[row * a.n_antennas + antenna] == 0) continue;
      for (int pol = 0; pol < pols; ++pol) {
        const float2 v = sample_value(a.samples, a.first_channel + local, a.first_spectrum + t,
                                      antenna * pols + pol);
        power[pol] += v.x * v.x + v.y * v.y;
      }
    }
    for (int pol = 0; pol < pols; ++pol) {
      a.powers[((static_cast<std::int64_t>(pol) * a.n_channels + local) * a.n_rows + row) *
                   a.pitch +
               t] = power[pol];
    }
  }
}

// Antenna of place p (0..31) in a step: k index of the operands 16 h + 4 q + i lies at 8 q + 4 h +
// i; in BEST-2 heaps that is antenna i & 1 of pair q + 4 (i >> 1) + 8 h.
__device__ int antenna_of_place(int place, bool pair_order) {
  if (!pair_order) return place;
  const int q = place >> 3, h = place >> 2 & 1, i = place & 3;
  return 2 * (q + 4 * (i >> 1) + 8 * h) + (i & 1);
}

/// Puts any input into the order that the tensor-core kernels read: a.out is
/// [channel][plane][time][padded antennas], one plane of nibbles or two of bytes. A thread moves 8
/// antennas of one spectrum. Memory binds by construction: each sample is moved once.
__global__ void repack(const RepackArgs a) {
  std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t t = id % a.n_spectra;
  id /= a.n_spectra;
  const int piece = static_cast<int>(id % (4 * a.n_steps));
  const std::int64_t channel = id / (4 * a.n_steps);
  if (channel >= a.n_channels) return;
  std::uint64_t first = 0, second = 0;
  for (int k = 0; k < 8; ++k) {
    const int antenna =
        piece / 4 * kStepAntennas + antenna_of_place(piece % 4 * 8 + k, a.pair_order);
    if (antenna >= a.n_antennas) continue;
    const int input = antenna * a.samples.n_pols + a.pol;
    if (!a.bytes) {
      first |= std::uint64_t{*sample_address(a.samples, channel, t, input, 1)} << (8 * k);
      continue;
    }
    const float2 v = sample_value(a.samples, channel, t, input);
    first |= std::uint64_t{static_cast<std::uint8_t>(static_cast<int>(v.x))} << (8 * k);
    second |= std::uint64_t{static_cast<std::uint8_t>(static_cast<int>(v.y))} << (8 * k);
  }
  const std::int64_t width = std::int64_t{kStepAntennas} * a.n_steps;
  const std::int64_t plane = a.n_spectra * width;
  std::uint8_t* to = a.out + channel * plane * (a.bytes ? 2 : 1) + t * width + piece * 8;
  *reinterpret_cast<std::uint64_t*>(to) = first;
  if (a.bytes) *reinterpret_cast<std::uint64_t*>(to + plane) = second;
}

__device__ char2 code_at(const PackArgs& a, int beam, int channel, int antenna, int pol) {
  if (beam >= a.n_beams || antenna >= a.n_antennas) return {0, 0};
  return a
      .codes[((static_cast<std::int64_t>(beam) * a.n_channels + channel) * a.n_antennas + antenna) *
                 a.n_pols +
             pol];
}

// One thread: a lane of the operands of one (pol, channel, slab), all steps.
/// Puts codes of weights, [beam][channel][input], into the order of tensor-core operands:
/// a.fragments is [pol][channel][slab][step][Wr, -Wi, Wi][lane], 16 codes each. A thread makes one
/// lane of one slab. It runs once for each set of weights.
__global__ void pack(const PackArgs a) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(id % 32);
  const std::int64_t cell = id / 32;  // [pol][channel][slab]
  if (cell >= static_cast<std::int64_t>(a.n_pols) * a.n_channels * a.n_slabs) return;
  const int slab = static_cast<int>(cell % a.n_slabs);
  const int channel = static_cast<int>(cell / a.n_slabs % a.n_channels);
  const int pol = static_cast<int>(cell / a.n_slabs / a.n_channels);
  const int g = lane / 4, q = lane % 4;
  for (int step = 0; step < a.n_steps; ++step) {
    unsigned planes[3][4] = {};
    for (int r = 0; r < 4; ++r) {  // row g + 8 (r & 1), k = 16 (r >> 1) + 4 q + i
      for (int i = 0; i < 4; ++i) {
        const int antenna =
            step * kStepAntennas + antenna_of_place(8 * q + 4 * (r >> 1) + i, a.pair_order);
        const char2 w = code_at(a, slab * kSlabRows + g + 8 * (r & 1), channel, antenna, pol);
        planes[0][r] |= static_cast<unsigned>(static_cast<unsigned char>(w.x)) << (8 * i);
        planes[1][r] |= static_cast<unsigned>(static_cast<unsigned char>(-w.y)) << (8 * i);
        planes[2][r] |= static_cast<unsigned>(static_cast<unsigned char>(w.y)) << (8 * i);
      }
    }
    uint4* to = a.fragments + (cell * a.n_steps + step) * 3 * 32 + lane;
    for (int p = 0; p < 3; ++p)
      to[32 * p] = {planes[p][0], planes[p][1], planes[p][2], planes[p][3]};
  }
}

unsigned grid_of(std::int64_t threads, int per_block) {
  return static_cast<unsigned>((threads + per_block - 1) / per_block);
}

}  // namespace

void launch_plain(const PlainArgs& a, cudaStream_t stream) {
  if (a.n_spectra == 0 || a.n_beams == 0) return;
  const int time_tiles = static_cast<int>((a.n_spectra + kTileSpectra - 1) / kTileSpectra);
  const int beam_tiles = (a.n_beams + kTileBeams - 1) / kTileBeams;
  const std::int64_t blocks =
      std::int64_t{time_tiles} * beam_tiles * a.samples.n_pols * a.n_channels;
  plain<<<static_cast<unsigned>(blocks), kTileThreads, 0, stream>>>(a, time_tiles, beam_tiles);
  RYLE_CUDA_LAUNCHED("beamform plain");
}

void launch_incoherent(const IncoherentArgs& a, cudaStream_t stream) {
  if (a.n_spectra == 0 || a.n_rows == 0) return;
  incoherent<<<grid_of(a.n_spectra * a.n_channels, 128), 128, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("beamform incoherent");
}

void launch_repack(const RepackArgs& a, cudaStream_t stream) {
  if (a.n_spectra == 0) return;
  repack<<<grid_of(a.n_spectra * 4 * a.n_steps * a.n_channels, 256), 256, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("beamform repack");
}

void launch_pack(const PackArgs& a, cudaStream_t stream) {
  if (a.n_slabs == 0) return;
  pack<<<grid_of(std::int64_t{a.n_pols} * a.n_channels * a.n_slabs * 32, 128), 128, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("beamform pack");
}

}  // namespace ryle::beamform::detail
