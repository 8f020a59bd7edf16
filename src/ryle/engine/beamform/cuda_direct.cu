// SPDX-License-Identifier: BSD-3-Clause
// Up to 32 antennas of 4 bits: a warp keeps the operands of 64 spectra in registers and walks
// through the beams of its block, 16 at a time, whose weights lie in shared memory. No barrier but
// the one after the weights; the next group's samples are on their way meanwhile.
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/cuda_mma.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kWarps = 4;
constexpr int kSlabBytes = 3 * 512 + 512 + kSlabRows * 8;  // weights, bases, row tables

template <class Loader, class Output>
__global__ void __launch_bounds__(32 * kWarps, 3)
    direct(const FusedArgs a, int beam_blocks, int items) {
  extern __shared__ uint4 shared[];
  std::int64_t id = blockIdx.x;
  const int first_slab = static_cast<int>(id % beam_blocks) * a.slabs_per_block;
  id /= beam_blocks;
  const int first_group = static_cast<int>(id % items) * a.groups_per_item;
  const int local = static_cast<int>(id / items);
  const int channel = a.first_channel + local;
  const int n_slabs = min(a.slabs_per_block, a.n_slabs - first_slab);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

  uint4* weights = shared;                                            // [slab][3][lane]
  float4* bases = reinterpret_cast<float4*>(weights + n_slabs * 96);  // [slab][lane]
  float2* rows = reinterpret_cast<float2*>(bases + n_slabs * 32);     // [slab][16]
  std::byte* staging =
      reinterpret_cast<std::byte*>(rows + n_slabs * kSlabRows) + warp * Output::kStagingBytes;
  const std::int64_t first =
      (static_cast<std::int64_t>(a.pol) * a.n_channels + channel) * a.n_slabs + first_slab;
  for (int k = threadIdx.x; k < n_slabs * 96; k += blockDim.x)
    weights[k] = a.fragments[first * 96 + k];
  for (int k = threadIdx.x; k < n_slabs * 32; k += blockDim.x) bases[k] = a.bases[first * 32 + k];
  fill_rows(a, rows, first_slab * kSlabRows, n_slabs * kSlabRows, channel);
  __syncthreads();

  const std::uint8_t* samples = a.samples + channel * a.channel_stride_bytes;
  const int end = min(first_group + a.groups_per_item, a.n_groups);
  int group = first_group + warp;
  if (group >= end) return;
  int bias[4] = {kBiasBits, kBiasBits, kBiasBits, kBiasBits};
  asm volatile("" : "+r"(bias[0]), "+r"(bias[1]), "+r"(bias[2]), "+r"(bias[3]));
  Loader next;
  next.load(a, samples, group, 0, lane);
  for (; group < end; group += kWarps) {
    Columns columns[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      columns[j] = next.tile(j);
      keep(columns[j]);
    }
    if (group + kWarps < end) next.load(a, samples, group + kWarps, 0, lane);
#pragma unroll 1
    for (int slab = 0; slab < n_slabs; ++slab) {
      const uint4 wr = weights[slab * 96 + lane];
      const uint4 minus_wi = weights[slab * 96 + 32 + lane];
      const uint4 wi = weights[slab * 96 + 64 + lane];
      const Epilogue e(a, rows + slab * kSlabRows, bases[slab * 32 + lane],
                       (first_slab + slab) * kSlabRows, local, channel, group, lane);
      Output out;
      const auto half = [&]<int H>() {
        int re[4][4], im[4][4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          multiply<false>(re[k], wr, columns[4 * H + k].re, bias);
          multiply<false>(im[k], wi, columns[4 * H + k].re, bias);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          multiply<false>(re[k], minus_wi, columns[4 * H + k].im, re[k]);
          multiply<false>(im[k], wr, columns[4 * H + k].im, im[k]);
        }
        out.template half<H>(e, re, im, staging);
      };
      half.template operator()<0>();
      half.template operator()<1>();
      out.finish(e, channel, staging);
    }
  }
}

template <class Loader, class Output>
void run(const FusedArgs& a, cudaStream_t stream) {
  const int beam_blocks = (a.n_slabs + a.slabs_per_block - 1) / a.slabs_per_block;
  const int items = (a.n_groups + a.groups_per_item - 1) / a.groups_per_item;
  const int shared =
      std::min(a.slabs_per_block, a.n_slabs) * kSlabBytes + kWarps * Output::kStagingBytes;
  RYLE_CUDA(cudaFuncSetAttribute(direct<Loader, Output>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const std::int64_t blocks = std::int64_t{beam_blocks} * items * a.launch_channels;
  direct<Loader, Output>
      <<<static_cast<unsigned>(blocks), 32 * kWarps, shared, stream>>>(a, beam_blocks, items);
  RYLE_CUDA_LAUNCHED("beamform direct");
}

template <class Loader>
void choose(const FusedArgs& a, cudaStream_t stream) {
  switch (a.output) {
    case FusedOutput::integrated:
      return run<Loader, Integrated>(a, stream);
    case FusedOutput::power_f32:
      return run<Loader, PowerF32>(a, stream);
    case FusedOutput::power_u8:
      return run<Loader, PowerU8>(a, stream);
    case FusedOutput::cf32:
      return run<Loader, VoltageF32>(a, stream);
    case FusedOutput::cf16:
      return run<Loader, VoltageF16>(a, stream);
    case FusedOutput::ci8:
      return run<Loader, VoltageI8>(a, stream);
  }
}

}  // namespace

void launch_direct(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose<Pairs4>(a, stream);
  choose<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
