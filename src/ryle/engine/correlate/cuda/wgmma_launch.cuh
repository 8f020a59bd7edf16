// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/wgmma_map.hpp"
#include "ryle/engine/correlate/cuda/wgmma_ring.cuh"

/// Host side of a launch of run_ring(). A plan has layout, cta_pairs and concurrent_blocks.
namespace ryle::correlate::wgmma {

/// @param min_blocks of a cut partition
template <class Plan>
RingArgs ring_of(const Plan& plan, const detail::CudaGulp& gulp, const CudaTuning& tuning,
                 std::int64_t min_blocks, const CtaPair* cta_pairs) {
  RingArgs a;
  a.layout = plan.layout;
  a.first_block = gulp.first_block;
  a.clusters = tuning.clusters && plan.layout.tile_rows > 1;
  a.hints = tuning.hints;
  a.cta_pairs = plan.cta_pairs;
  a.cta_pairs.cta_pairs = cta_pairs;
  a.partitions =
      partitions_of(a.clusters ? a.cta_pairs.n(plan.layout) : plan.layout.n_items, gulp.n_blocks,
                    a.clusters ? plan.concurrent_blocks / 2 : plan.concurrent_blocks, min_blocks);
  a.burst = std::min(tuning.burst, std::max(1, tuning.slots - 2));
  a.n_slots = std::clamp(tuning.slots, a.clusters ? kMinSlotsOfClusters : kMinSlots, kMaxSlots);
  return a;
}

/// Less than a round of work is cut, so that all multiprocessors have some.
template <class Plan>
std::int64_t min_blocks_of(const Plan& plan, const CudaTuning& tuning) {
  constexpr int kMinOfFew = 8;
  return plan.layout.n_items < plan.concurrent_blocks ? std::min(tuning.min_blocks, kMinOfFew)
                                                      : tuning.min_blocks;
}

/// `args` has the ring in args.ring. more_shared_bytes: behind those of the ring.
template <class Plan, class Args>
void launch_ring(void (*kernel)(CUtensorMap, Args), const Plan& plan, const detail::CudaGulp& gulp,
                 const CudaTuning& tuning, const Args& args, cudaStream_t stream,
                 int more_shared_bytes = 0) {
  const RingArgs& ring = args.ring;
  const std::int64_t cluster = ring.clusters ? 2 : 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = static_cast<unsigned>(
      std::min(ring.partitions.n(), plan.concurrent_blocks / cluster) * cluster);
  launch.blockDim = kAllThreads;
  launch.dynamicSmemBytes =
      static_cast<std::size_t>(shared_bytes(ring.n_slots) + more_shared_bytes);
  launch.stream = stream;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  launch.attrs = attributes;
  launch.numAttrs = tuning.early ? 2 : 1;
  RYLE_CUDA(cudaLaunchKernelEx(
      &launch, kernel, detail::wgmma_map(plan.layout, gulp, ring.clusters, tuning.fetch_bytes),
      args));
}

}  // namespace ryle::correlate::wgmma
