// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// direct and small_beams_direct are the beamformer for up to 32 antennas of ci4 on compute capability 8.0 and newer:
// b = sum_a W v
// with i8 weights, by mma.sync m16n8k32, then power or voltage as cuda/epilogue.cuh stores it.
//
//   array        axes                                           type      unit
//   a.samples    [channel][block][pair][spectrum][2] (pairs4)   ci4       LSB
//                or [channel][spectrum][antenna] (spectra4)
//   a.fragments  [pol][channel][slab][Wr, -Wi, Wi][lane]        4 x 4 i8  codes of weights, as operands
//   weights      [slab][Wr, -Wi, Wi][lane]                      the same, in shared memory (direct only)
//   rows         [slab][16 beams]                               float2    factor and offset of what is stored
//   ring         [warp][stage][piece][lane]                     ci4       samples on their way; shared memory
//   a.values     [row][product][channel][value]                 power or voltage, by a.output
//
// Who does what: a thread block of four warps takes some slabs of 16 beams and some groups of 64 spectra of one
// channel. A warp keeps the operands of a group in registers and walks through the beams of its block, 16 at a time.
// Samples of the next groups come by cp.async through a ring of the warp's own: two stages, four with few beams. The
// only barrier follows the weights; small_beams_direct, for 16 beams or fewer, keeps its weights in registers and has
// none.
//
// What binds: reading samples, for 16 beams or fewer. docs/decisions/0017 records the rates of the others.
// clang-format on
#include <algorithm>
#include <type_traits>

#include "ryle/engine/beamform/cuda/small_beams.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kWarps = 4;
constexpr int kSlabBytes = 3 * 512 + kSlabRows * 8;  // weights, row tables
constexpr int kFewSlabs = 2;                         // then the samples are fetched further ahead
constexpr int kSmallBeamsStages = 4;                 // of the kernel for one slab
constexpr int kSmallBeamsBlocks = 5;

/// Groups on their way to shared memory, kStages - 1 of them ahead of the one worked on.
template <class Loader, int kStages>
struct RingAhead {
  using Vector = typename Loader::Vector;
  static constexpr int kBytes = kStages * Loader::kPieces * 32 * static_cast<int>(sizeof(Vector));
  Loader next;
  const FusedArgs& a;
  const std::uint8_t* samples;
  Vector* ring;  // [stage][piece][place of a lane]
  int end, lane;
  int stage = 0;

  __device__ RingAhead(const FusedArgs& args, const std::uint8_t* samples_, int first, int end_,
                       int lane_, std::byte* memory)
      : a(args),
        samples(samples_),
        ring(reinterpret_cast<Vector*>(memory)),
        end(end_),
        lane(lane_) {
    for (int s = 0; s < kStages - 1; ++s) fetch(first + s * kWarps, s);
  }
  __device__ void fetch(int group, int to) {
    if (group < end) {
      const int other = Loader::fetched_for(lane);
      // All addresses before the first copy, so that they share their arithmetic.
      const std::uint8_t* from[Loader::kPieces];
#pragma unroll
      for (int k = 0; k < Loader::kPieces; ++k)
        from[k] = Loader::address(a, samples, group, 0, other, k);
      const auto address = static_cast<unsigned>(
          __cvta_generic_to_shared(ring + to * Loader::kPieces * 32 + Loader::place(other)));
#pragma unroll
      for (int k = 0; k < Loader::kPieces; ++k) {
        constexpr int kStep = 32 * static_cast<int>(sizeof(Vector));
        if constexpr (sizeof(Vector) == 16) {
          asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address + k * kStep),
                       "l"(from[k])
                       : "memory");
        } else {
          asm volatile("cp.async.ca.shared.global [%0], [%1], 8;\n" ::"r"(address + k * kStep),
                       "l"(from[k])
                       : "memory");
        }
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
  }
  __device__ const Loader& arrived() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(kStages - 2) : "memory");
    // What other lanes fetched is here; and all have read the stage that is filled next.
    __syncwarp();
#pragma unroll
    for (int k = 0; k < Loader::kPieces; ++k)
      next.raw[k] = ring[(stage * Loader::kPieces + k) * 32 + Loader::place(lane)];
    return next;
  }
  __device__ void after(int group) {
    fetch(group + (kStages - 1) * kWarps, (stage + kStages - 1) % kStages);
    stage = (stage + 1) % kStages;
  }
};

/// Blocks that share a multiprocessor: 4 leave 128 registers.
template <class Output>
constexpr int kBlocks =
    Output::kStagingBytes <= Staging<2>::kBytes && !std::is_same_v<Output, VoltageF32> ? 4 : 3;

/// More than 16 beams: see the head of this file.
template <class Loader, class Ahead, class Output>
__global__ void __launch_bounds__(32 * kWarps, kBlocks<Output>)
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

  uint4* weights = shared;                                           // [slab][3][lane]
  float2* rows = reinterpret_cast<float2*>(weights + n_slabs * 96);  // [slab][16]
  std::byte* staging = reinterpret_cast<std::byte*>(rows + n_slabs * kSlabRows) +
                       warp * (Output::kStagingBytes + Ahead::kBytes);
  const std::int64_t first =
      (static_cast<std::int64_t>(a.pol) * a.n_channels + channel) * a.n_slabs + first_slab;
  for (int k = threadIdx.x; k < n_slabs * 96; k += blockDim.x)
    weights[k] = a.fragments[first * 96 + k];
  fill_rows(a, rows, first_slab * kSlabRows, n_slabs * kSlabRows, channel, Loader::kUnit);
  __syncthreads();

  const std::uint8_t* samples = a.samples + channel * a.channel_stride_bytes;
  const int end = min(first_group + a.groups_per_item, a.n_groups);
  int group = first_group + warp;
  if (group >= end) return;
  Ahead ahead(a, samples, group, end, lane, staging + Output::kStagingBytes);
  for (; group < end; group += kWarps) {
    Columns columns[8];
    const Loader& now = ahead.arrived();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      columns[j] = now.tile(j);
      keep(columns[j]);
    }
    ahead.after(group);
#pragma unroll 1
    for (int slab = 0; slab < n_slabs; ++slab) {
      const uint4 wr = weights[slab * 96 + lane];
      const uint4 minus_wi = weights[slab * 96 + 32 + lane];
      const uint4 wi = weights[slab * 96 + 64 + lane];
      const Destination to =
          destination<Output>(a, (first_slab + slab) * kSlabRows, local, channel, lane);
      const Epilogue<2, false> e(a, table_of(rows + slab * kSlabRows, lane), to, group, lane);
      Output out;
      const auto half = [&]<int H>() {
        int re[4][4] = {}, im[4][4] = {};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          multiply(re[k], wr, columns[4 * H + k].re);
          multiply(im[k], wi, columns[4 * H + k].re);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          multiply(re[k], minus_wi, columns[4 * H + k].im);
          multiply(im[k], wr, columns[4 * H + k].im);
        }
        out.template half<H>(e, re, im, staging);
      };
      half.template operator()<0>();
      half.template operator()<1>();
      out.finish(e, staging);
    }
  }
}

/// 16 beams or fewer: see the head of this file. Memory binds. There are no weights in shared
/// memory and there is no barrier.
template <class Loader, class Output, int kRows, bool kPlain>
__global__ void __launch_bounds__(32 * kWarps, kSmallBeamsBlocks)
    small_beams_direct(const FusedArgs a, int items) {
  extern __shared__ uint4 shared[];
  using Ahead = RingAhead<Loader, kSmallBeamsStages>;
  const int local = static_cast<int>(blockIdx.x) / items;
  const int first_group = (static_cast<int>(blockIdx.x) - local * items) * a.groups_per_item;
  const int channel = a.first_channel + local;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int end = min(first_group + a.groups_per_item, a.n_groups);
  int group = first_group + warp;
  if (group >= end) return;
  std::byte* memory =
      reinterpret_cast<std::byte*>(shared) + warp * (Output::kStagingBytes + Ahead::kBytes);
  Ahead ahead(a, a.samples + channel * a.channel_stride_bytes, group, end, lane,
              memory + Output::kStagingBytes);
  SmallBeamsWeights<kRows> w;
  w.load(a, channel, lane, Loader::kUnit);
  const Destination to = destination<Output>(a, 0, local, channel, lane);
  for (; group < end; group += kWarps) {
    const Loader now = ahead.arrived();
    ahead.after(group);
    work_on<kRows, kPlain, Loader, Output>(a, w, now, to, group, lane, memory);
  }
}

template <class Loader>
void choose_small_beams(const FusedArgs& a, cudaStream_t stream) {
  for_small_beams(a, [&]<class Output, int kRows, bool kPlain>() {
    constexpr int kBytes =
        kWarps * (Output::kStagingBytes + RingAhead<Loader, kSmallBeamsStages>::kBytes);
    auto* kernel = small_beams_direct<Loader, Output, kRows, kPlain>;
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    const int items = (a.n_groups + a.groups_per_item - 1) / a.groups_per_item;
    kernel<<<static_cast<unsigned>(items * a.launch_channels), 32 * kWarps, kBytes, stream>>>(
        a, items);
    RYLE_CUDA_LAUNCHED("beamform few beams");
  });
}

template <class Loader, class Ahead>
void choose_direct(const FusedArgs& a, cudaStream_t stream) {
  for_output(a, [&]<class Output>() {
    const int slabs = std::min(a.slabs_per_block, a.n_slabs);
    launch_partitions(direct<Loader, Ahead, Output>, a, 32 * kWarps,
                      slabs * kSlabBytes + kWarps * (Output::kStagingBytes + Ahead::kBytes),
                      stream);
  });
}

template <class Loader>
void choose_ahead(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_slabs == 1) return choose_small_beams<Loader>(a, stream);
  if (a.n_slabs <= kFewSlabs) return choose_direct<Loader, RingAhead<Loader, 4>>(a, stream);
  choose_direct<Loader, RingAhead<Loader, 2>>(a, stream);
}

}  // namespace

void launch_direct(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_ahead<Pairs4>(a, stream);
  choose_ahead<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
