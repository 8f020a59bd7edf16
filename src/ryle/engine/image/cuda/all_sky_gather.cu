// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// gather grids without atomics: grid(cell) = sum over footprints f of wx_f(x) wy_f(y) value_f, for products of
// baselines (N = 2, visibility imaging) or for fields of antennas (N = 1, E-field imaging).
//
//   array         axes                                type       content
//   args.work     [tile that something touches]       TileWork   channel, tile of 8 x 8 cells, entries [begin, end)
//   args.entries  [entry]                             uint32     footprint, and where it lies from the tile
//   args.weights  [channel][footprint][x, y][taps]    float
//   values        [channel][plane][footprint]         N float4   calibrated products, or X and Y
//   grid          [channel][plane][y][x]              N float4   written, not added to
//
// Who does what: a thread block of 8 warps owns the 8 x 8 cells of one tile and walks its list. A warp stages 32
// footprints at a time in shared memory; a lane owns two cells. At the end the sums of the warps are added in a
// fixed order, so that the bits are the same every time. Up to four thread blocks share a multiprocessor. No
// counters of this kernel are on record.
// clang-format on
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kWarps = kGatherThreads / 32;
constexpr int kBatch = 32;  // footprints a warp stages at a time
constexpr unsigned kIndexMask = (1u << kIndexBits) - 1;
constexpr unsigned kOffsetMask = (1u << kOffsetBits) - 1;

/// What a warp reads of its footprints: weights of the eight columns and eight rows of the tile,
/// and the values.
template <int N>  // float4 a value
struct Stage {
  float weight[kBatch][16];
  float4 value[kBatch][N];
};

template <int N>
__device__ void fill(Stage<N>& stage, int n, unsigned entry, const float* weights,
                     const float4* values, int n_taps) {
  const int lane = threadIdx.x % 32;
  const unsigned index = entry & kIndexMask;
  if (lane < n) {
#pragma unroll
    for (int k = 0; k < N; ++k) stage.value[lane][k] = __ldg(values + N * index + k);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) stage.value[lane][k] = {0, 0, 0, 0};
  }
  const int axis = lane % 16 / 8;
  const int cell = lane % 8;
  constexpr int kSteps = kBatch / 2;
  float weight[kSteps];  // all loads are on their way before the first is waited for
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int visit = 2 * step + lane / 16;
    const unsigned other = __shfl_sync(0xffffffffu, entry, visit);
    const int offset =
        static_cast<int>(other >> (kIndexBits + axis * kOffsetBits) & kOffsetMask) - kOffsetBias;
    const int tap = cell - offset;
    const unsigned at = (2 * (other & kIndexMask) + axis) * n_taps + tap;
    weight[step] = 0;
    if (visit < n && static_cast<unsigned>(tap) < static_cast<unsigned>(n_taps))
      weight[step] = __ldg(weights + at);
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    stage.weight[2 * step + lane / 16][lane % 16] = weight[step];
}

// A lane owns cells (column 2 (lane % 4) and the next, row lane / 4).
template <int N>
__device__ inline void add_visits(const Stage<N>& stage, int n, float4 (&sum)[2][N]) {
  const int lane = threadIdx.x % 32;
  const int column = 2 * (lane % 4), row = 8 + lane / 4;
#pragma unroll 4
  for (int visit = 0; visit < n; ++visit) {
    const float2 wx = *reinterpret_cast<const float2*>(&stage.weight[visit][column]);
    const float wy = stage.weight[visit][row];
    const float w[2] = {wx.x * wy, wx.y * wy};
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float4 v = stage.value[visit][k];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        sum[c][k].x = fmaf(w[c], v.x, sum[c][k].x);
        sum[c][k].y = fmaf(w[c], v.y, sum[c][k].y);
        sum[c][k].z = fmaf(w[c], v.z, sum[c][k].z);
        sum[c][k].w = fmaf(w[c], v.w, sum[c][k].w);
      }
    }
  }
}

/// See the head of this file.
template <int N>
__global__ void __launch_bounds__(kGatherThreads, 4)
    gather(GatherArgs args, const float4* values, float4* grid) {
  __shared__ union {
    Stage<N> stage[kWarps];
    float4 sum[kWarps][N][64];
  } shared;
  const TileWork work = args.work[blockIdx.x];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t plane =
      static_cast<std::int64_t>(work.channel - args.first_channel) * args.n_planes + blockIdx.y;
  values += plane * args.n_footprints * N;
  const float* weights =
      args.weights + static_cast<std::int64_t>(work.channel) * args.n_footprints * 2 * args.n_taps;
  float4 sum[2][N] = {};
  const auto entry_at = [&](unsigned k) { return k < work.end ? __ldg(args.entries + k) : 0; };
  unsigned entry = entry_at(work.begin + warp * kBatch + lane);
  for (unsigned base = work.begin + warp * kBatch; base < work.end; base += kWarps * kBatch) {
    const int n = min(static_cast<unsigned>(kBatch), work.end - base);
    const unsigned next = entry_at(base + kWarps * kBatch + lane);
    __syncwarp();
    fill<N>(shared.stage[warp], n, entry, weights, values, args.n_taps);
    __syncwarp();
    add_visits<N>(shared.stage[warp], n, sum);
    entry = next;
  }
  __syncthreads();
  const int cell = lane / 4 * 8 + lane % 4 * 2;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    shared.sum[warp][k][cell] = sum[0][k];
    shared.sum[warp][k][cell + 1] = sum[1][k];
  }
  __syncthreads();
  for (int item = threadIdx.x; item < 64 * N; item += kGatherThreads) {
    const int k = item % N, c = item / N;
    const int x = work.tile_x * kTileCells + c % 8, y = work.tile_y * kTileCells + c / 8;
    if (x >= args.n_pixels || y >= args.n_pixels) continue;
    float4 total = shared.sum[0][k][c];
    for (int w = 1; w < kWarps; ++w) {
      const float4 more = shared.sum[w][k][c];
      total = {total.x + more.x, total.y + more.y, total.z + more.z, total.w + more.w};
    }
    grid[((plane * args.n_pixels + y) * args.n_pixels + x) * N + k] = total;
  }
}

template <int N>
void launch(const GatherArgs& args, const float4* values, float4* grid, cudaStream_t stream) {
  if (args.n_work == 0) return;
  const dim3 blocks(static_cast<unsigned>(args.n_work), static_cast<unsigned>(args.n_planes));
  gather<N><<<blocks, kGatherThreads, 0, stream>>>(args, values, grid);
  RYLE_CUDA_LAUNCHED("gather");
}

}  // namespace

void launch_gather_products(const GatherArgs& args, const float4* values, float4* grid,
                            cudaStream_t stream) {
  launch<2>(args, values, grid, stream);
}

void launch_gather_fields(const GatherArgs& args, const float4* values, float4* grid,
                          cudaStream_t stream) {
  launch<1>(args, values, grid, stream);
}

}  // namespace ryle::image::detail
