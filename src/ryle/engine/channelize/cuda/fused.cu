// SPDX-License-Identifier: BSD-3-Clause
// Host side of the fused kernel: which of its instances a configuration takes.
#include "ryle/engine/channelize/cuda/fused_launch.cuh"

#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"

namespace ryle::channelize::detail {
namespace {

constexpr int kDenseBytes = 2;  // samples of ci8 side by side

template <int K, int kTaps, int kStride>
void launch_kernel(const FusedArguments& a, std::int64_t n_groups, cudaStream_t stream) {
  using S = FusedShape<K>;
  fused_channelize<K, kTaps, kStride>
      <<<static_cast<unsigned>(n_groups), S::kThreads, S::kSharedBytes, stream>>>(a);
  RYLE_CUDA_LAUNCHED("fused_channelize");
}

template <int K>
void launch_size(const FusedArguments& a, int n_taps, std::int64_t n_groups, cudaStream_t stream) {
  const bool dense = a.sample_stride_bytes == kDenseBytes && !a.odd;
  if (n_taps == 8) {
    return dense ? launch_kernel<K, 8, kDenseBytes>(a, n_groups, stream)
                 : launch_kernel<K, 8, 0>(a, n_groups, stream);
  }
  return dense ? launch_kernel<K, 4, kDenseBytes>(a, n_groups, stream)
               : launch_kernel<K, 4, 0>(a, n_groups, stream);
}

template <int K, int kTaps, int kStride>
int raise_shared_limit() {
  using S = FusedShape<K>;
  const auto kernel = fused_channelize<K, kTaps, kStride>;
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes));
  int per_sm = 0;
  RYLE_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, S::kThreads, S::kSharedBytes));
  return per_sm;
}

template <int K>
FusedPlan plan_size(int n_taps, int shared_limit) {
  using S = FusedShape<K>;
  FusedPlan plan;
  if (S::kSharedBytes > shared_limit) return plan;
  plan.r1 = S::kR1;
  plan.r2 = S::kR2;
  if (n_taps == 8) {
    raise_shared_limit<K, 8, 0>();
    plan.groups_per_sm = raise_shared_limit<K, 8, kDenseBytes>();
  } else {
    raise_shared_limit<K, 4, 0>();
    plan.groups_per_sm = raise_shared_limit<K, 4, kDenseBytes>();
  }
  return plan;
}

}  // namespace

FusedPlan plan_fused(const Problem& problem, int shared_limit_bytes) {
  const Config& c = problem.config;
  const SampleLayout& layout = c.layout;
  const bool plain = layout.format == SampleFormat::ci8 &&
                     layout.encoding == Encoding::twos_complement &&
                     layout.input_stride_bits % 16 == 0 && layout.sample_stride_bits % 16 == 0;
  const bool codes = c.output == SampleFormat::ci8 || c.output == SampleFormat::ci4;
  const int taps = static_cast<int>(c.n_taps);
  if (!plain || !codes || (taps != 4 && taps != 8) || problem.step != problem.n_points) return {};
  switch (problem.n_points) {
    case 128:
      return plan_size<128>(taps, shared_limit_bytes);
    case 256:
      return plan_size<256>(taps, shared_limit_bytes);
    case 512:
      return plan_size<512>(taps, shared_limit_bytes);
    case 1024:
      return plan_size<1024>(taps, shared_limit_bytes);
    default:
      return {};
  }
}

void launch_fused(FusedArguments a, const FusedPlan& plan, int n_points, int n_taps, int n_sm,
                  cudaStream_t stream) {
  // Tables are made once a thread block, so each makes several blocks, as long as there are enough
  // thread blocks to keep every multiprocessor busy to the end.
  constexpr std::int64_t kRounds = 12;
  constexpr std::int64_t kMax = 16;
  const std::int64_t blocks = n_blocks(a.blocks.format, a.n_spectra);
  const std::int64_t resident = std::int64_t{n_sm} * std::max(plan.groups_per_sm, 1);
  a.blocks_per_group = static_cast<int>(
      std::clamp<std::int64_t>(blocks * a.n_inputs / (resident * kRounds), 1, kMax));
  const std::int64_t n_groups = (blocks + a.blocks_per_group - 1) / a.blocks_per_group * a.n_inputs;
  switch (n_points) {
    case 128:
      return launch_size<128>(a, n_taps, n_groups, stream);
    case 256:
      return launch_size<256>(a, n_taps, n_groups, stream);
    case 512:
      return launch_size<512>(a, n_taps, n_groups, stream);
    default:
      return launch_size<1024>(a, n_taps, n_groups, stream);
  }
}

}  // namespace ryle::channelize::detail
