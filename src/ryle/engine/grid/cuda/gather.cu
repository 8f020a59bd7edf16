// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/cuda/gather.cuh"

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/grid/cuda/kernels.cuh"

namespace ryle::grid::detail {
namespace {

unsigned blocks_for(std::int64_t n, int per_block = kThreads) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}
template <class Real, int kChannels>
void launch_grid_of(const GridArgs<Real>& a, cudaStream_t stream) {
  const unsigned blocks = blocks_for(a.chunk.n_jobs, kWarpsPerBlock);
  constexpr int kPerBlock = kWarpsPerBlock * kWarp;
  with_weighing<Real>(a.function.weighing, [&](auto weighing) {
    grid_jobs<Real, kChannels, decltype(weighing)::value><<<blocks, kPerBlock, 0, stream>>>(a);
  });
  RYLE_CUDA_LAUNCHED("grid_jobs");
}

template <class Real, int kChannels>
void launch_load_of(const LoadArgs<Real>& a, cudaStream_t stream) {
  load_values<Real, kChannels><<<blocks_for(a.from.n), kThreads, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("load_values");
}

}  // namespace

void launch_load_weights(const float* weights, const std::uint32_t* row, std::int64_t n, float* to,
                         cudaStream_t stream) {
  load_weights<<<blocks_for(n), kThreads, 0, stream>>>(weights, row, n, to);
  RYLE_CUDA_LAUNCHED("load_weights");
}

template <class Real>
void launch_load(int width, const LoadArgs<Real>& args, cudaStream_t stream) {
  switch (width) {
    case 1:
      return launch_load_of<Real, 1>(args, stream);
    case 4:
      return launch_load_of<Real, 4>(args, stream);
    case 8:
      return launch_load_of<Real, 8>(args, stream);
    default:
      return launch_load_of<Real, 12>(args, stream);
  }
}

template <class Real>
void launch_grid(int width, const GridArgs<Real>& args, cudaStream_t stream) {
  if (args.chunk.n_jobs == 0) return;
  switch (width) {
    case 1:
      return launch_grid_of<Real, 1>(args, stream);
    case 4:
      return launch_grid_of<Real, 4>(args, stream);
    case 8:
      return launch_grid_of<Real, 8>(args, stream);
    default:
      return launch_grid_of<Real, 12>(args, stream);
  }
}

template <class Real>
void launch_own(const OwnArgs<Real>& a, cudaStream_t stream) {
  if (a.chunk.n_jobs == 0) return;
  const unsigned blocks = blocks_for(a.chunk.n_jobs, kWarpsPerBlock);
  constexpr int kPerBlock = kWarpsPerBlock * kWarp;
  with_weighing<Real>(a.function.weighing, [&](auto weighing) {
    own_jobs<Real, decltype(weighing)::value><<<blocks, kPerBlock, 0, stream>>>(a);
  });
  RYLE_CUDA_LAUNCHED("own_jobs");
}

template void launch_load(int, const LoadArgs<float>&, cudaStream_t);
template void launch_load(int, const LoadArgs<double>&, cudaStream_t);
template void launch_grid(int, const GridArgs<float>&, cudaStream_t);
template void launch_grid(int, const GridArgs<double>&, cudaStream_t);
template void launch_own(const OwnArgs<float>&, cudaStream_t);
template void launch_own(const OwnArgs<double>&, cudaStream_t);

void launch_reduce(const ReduceArgs& a, cudaStream_t stream) {
  if (a.map.n_tiles == 0) return;
  reduce_jobs<<<blocks_for(a.map.n_tiles * kWarp), kThreads, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("reduce_jobs");
}

void launch_planes(const PlaneArgs& a, cudaStream_t stream) {
  planes<<<blocks_for(a.n_cells), kThreads, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("planes");
}

void launch_own_planes(const OwnPlaneArgs& a, cudaStream_t stream) {
  if (a.map.n_tiles == 0) return;
  own_planes<<<blocks_for(a.map.n_tiles * kWarp), kThreads, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("own_planes");
}

}  // namespace ryle::grid::detail
