// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// tiled is the beamformer for more than 32 antennas, or for samples of 8 bits, on compute capability 8.0 and newer:
// b = sum_a W v with i8 weights, by mma.sync m16n8k32, then power or voltage as cuda/epilogue.cuh stores it.
//
//   array        axes                                            type        unit
//   a.samples    [channel][spectrum][antenna], or heaps; bytes:  ci4, or s8  LSB
//                [channel][re, im][spectrum][antenna]
//   a.fragments  [pol][channel][slab][step][Wr, -Wi, Wi][lane]   4 x 4 i8    codes of weights, as operands
//   weights      [slab][step][Wr, -Wi, Wi][lane]                 the same, of some slabs, in shared memory
//   rows         [slab][16 beams]                                float2      factor and offset of what is stored
//   a.values     [row][product][channel][value]                  power or voltage, by a.output
//
// Who does what: a thread block of 8 warps takes some slabs of 16 beams, whose weights of all antennas stay in
// shared memory, and walks through groups of 64 spectra of one channel. A warp sums 32 beams x 64 spectra in
// registers, a step of 32 antennas after the other, with the samples of the next step on their way from global
// memory. After the barrier behind the weights warps never wait for each other. A lane keeps 128 sums; one
// thread block fits a multiprocessor. docs/decisions/0017 records rates and no counters.
// clang-format on
#include <algorithm>

#include "ryle/engine/beamform/cuda/mma.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kWarps = 8;
constexpr int kPairSlabs = 2;  // slabs of a warp's tile

/// See the head of this file.
template <class Loader, class Output>
__global__ void __launch_bounds__(32 * kWarps, 1)
    tiled(const FusedArgs a, int beam_blocks, int items) {
  extern __shared__ uint4 shared[];
  std::int64_t id = blockIdx.x;
  const int first_slab = static_cast<int>(id % beam_blocks) * a.slabs_per_block;
  id /= beam_blocks;
  const int first_group = static_cast<int>(id % items) * a.groups_per_item;
  const int local = static_cast<int>(id / items);
  const int channel = a.first_channel + local;
  const int n_slabs = min(a.slabs_per_block, a.n_slabs - first_slab);
  const int n_pairs = (n_slabs + kPairSlabs - 1) / kPairSlabs;
  const int room = n_pairs * kPairSlabs;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int slab_vectors = a.n_steps * 96;

  uint4* weights = shared;  // [slab][step][3][lane]
  float2* rows = reinterpret_cast<float2*>(weights + room * slab_vectors);
  std::byte* staging =
      reinterpret_cast<std::byte*>(rows + room * kSlabRows) + warp * Output::kStagingBytes;
  const std::int64_t first =
      (static_cast<std::int64_t>(a.pol) * a.n_channels + channel) * a.n_slabs + first_slab;
  for (int k = threadIdx.x; k < room * slab_vectors; k += blockDim.x)
    weights[k] = k < n_slabs * slab_vectors ? a.fragments[first * slab_vectors + k] : uint4{};
  fill_rows(a, rows, first_slab * kSlabRows, room * kSlabRows, channel, Loader::kUnit);
  __syncthreads();

  const std::uint8_t* samples = a.samples + channel * a.channel_stride_bytes;
  const int n_groups = min(a.groups_per_item, a.n_groups - first_group);
  const int units = n_pairs * n_groups;
  int unit = warp;
  if (unit >= units) return;
  Loader next;
  next.load(a, samples, first_group + unit / n_pairs, 0, lane);
  for (; unit < units; unit += kWarps) {
    const int group = first_group + unit / n_pairs;
    const int slab = unit % n_pairs * kPairSlabs;
    int re[kPairSlabs][2][4][4] = {}, im[kPairSlabs][2][4][4] = {};
#pragma unroll 1
    for (int step = 0; step < a.n_steps; ++step) {
      const Loader now = next;
      if (step + 1 < a.n_steps) {
        next.load(a, samples, group, step + 1, lane);
      } else if (unit + kWarps < units) {
        next.load(a, samples, first_group + (unit + kWarps) / n_pairs, 0, lane);
      }
      uint4 w[kPairSlabs][3];
#pragma unroll
      for (int s = 0; s < kPairSlabs; ++s)
#pragma unroll
        for (int p = 0; p < 3; ++p)
          w[s][p] = weights[(slab + s) * slab_vectors + step * 96 + p * 32 + lane];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const Columns columns = now.tile(j);
#pragma unroll
        for (int s = 0; s < kPairSlabs; ++s) {
          int(&x)[4] = re[s][j / 4][j % 4];
          int(&y)[4] = im[s][j / 4][j % 4];
          multiply(x, w[s][0], columns.re);
          multiply(y, w[s][2], columns.re);
        }
#pragma unroll
        for (int s = 0; s < kPairSlabs; ++s) {
          int(&x)[4] = re[s][j / 4][j % 4];
          int(&y)[4] = im[s][j / 4][j % 4];
          multiply(x, w[s][1], columns.im);
          multiply(y, w[s][0], columns.im);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < kPairSlabs; ++s) {
      if (slab + s >= n_slabs) continue;  // another block's beams
      const Destination to =
          destination<Output>(a, (first_slab + slab + s) * kSlabRows, local, channel, lane);
      const Epilogue<2, false> e(a, table_of(rows + (slab + s) * kSlabRows, lane), to, group, lane);
      Output out;
      out.template half<0>(e, re[s][0], im[s][0], staging);
      out.template half<1>(e, re[s][1], im[s][1], staging);
      out.finish(e, staging);
    }
  }
}

template <class Loader>
void choose_tiled(const FusedArgs& a, cudaStream_t stream) {
  for_output(a, [&]<class Output>() {
    launch_partitions(tiled<Loader, Output>, a, 32 * kWarps,
                      tiled_shared_bytes(a.slabs_per_block, a.n_steps, a.output), stream);
  });
}

std::int64_t staging_bytes(FusedOutput output) {
  if (output == FusedOutput::power_f32 || output == FusedOutput::cf16)
    return PowerF32::kStagingBytes;
  return output == FusedOutput::ci8 ? VoltageI8<false>::kStagingBytes : 0;
}

}  // namespace

std::int64_t tiled_shared_bytes(int slabs, int steps, FusedOutput output) {
  const std::int64_t room = (slabs + kPairSlabs - 1) / kPairSlabs * kPairSlabs;
  return room * (std::int64_t{steps} * 3 * 512 + kSlabRows * 8) + kWarps * staging_bytes(output);
}

void launch_tiled(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_tiled<Pairs4>(a, stream);
  if (a.layout == FusedLayout::spectra4) return choose_tiled<Spectra4>(a, stream);
  choose_tiled<Spectra8>(a, stream);
}

}  // namespace ryle::beamform::detail
