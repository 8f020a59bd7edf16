// SPDX-License-Identifier: BSD-3-Clause
// Host side of the fused kernel: which of its instances a configuration takes.
#include "ryle/engine/channelize/cuda_fused_launch.cuh"

#include <algorithm>
#include <type_traits>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/channelize/cuda_fused_ring.cuh"

namespace ryle::channelize::detail {
namespace {

constexpr int kDenseBytes = 2;  // samples of ci8 side by side

/// Kernel whose warps take turns at filter and transform.
struct Turns {
  template <int K>
  using Shape = FusedShape<K>;
  template <class S>
  static constexpr int kThreads = S::kThreads;
  template <int K, int kTaps, int kStride>
  static constexpr auto kernel() {
    return fused_channelize<K, kTaps, kStride>;
  }
};
/// Kernel whose warps do one of the two.
struct Ring {
  template <int K>
  using Shape = RingShape<K>;
  template <class S>
  static constexpr int kThreads = S::kAllThreads;
  template <int K, int kTaps, int kStride>
  static constexpr auto kernel() {
    return fused_channelize_ring<RingShape<K>, kTaps, kStride>;
  }
};

template <class Form, int K, int kTaps, int kStride>
void launch_kernel(const FusedArguments& a, std::int64_t n_groups, cudaStream_t stream) {
  using S = typename Form::template Shape<K>;
  Form::template kernel<K, kTaps, kStride>()<<<
      static_cast<unsigned>(n_groups), Form::template kThreads<S>, S::kSharedBytes, stream>>>(a);
  RYLE_CUDA_LAUNCHED("fused_channelize");
}

template <class Form, int K>
void launch_size(const FusedArguments& a, int n_taps, std::int64_t n_groups, cudaStream_t stream) {
  const bool dense = a.sample_stride_bytes == kDenseBytes && !a.odd;
  if (n_taps == 8) {
    return dense ? launch_kernel<Form, K, 8, kDenseBytes>(a, n_groups, stream)
                 : launch_kernel<Form, K, 8, 0>(a, n_groups, stream);
  }
  return dense ? launch_kernel<Form, K, 4, kDenseBytes>(a, n_groups, stream)
               : launch_kernel<Form, K, 4, 0>(a, n_groups, stream);
}

template <class Form, int K, int kTaps, int kStride>
int raise_shared_limit() {
  using S = typename Form::template Shape<K>;
  const auto kernel = Form::template kernel<K, kTaps, kStride>();
  RYLE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes));
  int per_sm = 0;
  RYLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_sm, kernel, Form::template kThreads<S>, S::kSharedBytes));
  return per_sm;
}

template <class Form, int K>
FusedPlan plan_size(int n_taps, int shared_limit) {
  using S = typename Form::template Shape<K>;
  FusedPlan plan;
  if (S::kSharedBytes > shared_limit) return plan;
  plan.ring = std::is_same_v<Form, Ring>;
  plan.r1 = S::kR1;
  plan.r2 = S::kR2;
  if (n_taps == 8) {
    raise_shared_limit<Form, K, 8, 0>();
    plan.groups_per_sm = raise_shared_limit<Form, K, 8, kDenseBytes>();
  } else {
    raise_shared_limit<Form, K, 4, 0>();
    plan.groups_per_sm = raise_shared_limit<Form, K, 4, kDenseBytes>();
  }
  return plan;
}

}  // namespace

FusedPlan plan_fused(const Problem& problem, int shared_limit_bytes, bool ring) {
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
      return plan_size<Turns, 128>(taps, shared_limit_bytes);
    case 256:
      return ring ? plan_size<Ring, 256>(taps, shared_limit_bytes)
                  : plan_size<Turns, 256>(taps, shared_limit_bytes);
    case 512:
      return ring ? plan_size<Ring, 512>(taps, shared_limit_bytes)
                  : plan_size<Turns, 512>(taps, shared_limit_bytes);
    case 1024:
      return ring ? plan_size<Ring, 1024>(taps, shared_limit_bytes)
                  : plan_size<Turns, 1024>(taps, shared_limit_bytes);
    default:
      return {};
  }
}

namespace {

/// Output blocks that a thread block makes. Tables are made once a thread block, which takes about
/// as long as half a block; the last round of thread blocks may leave multiprocessors idle.
std::int64_t blocks_per_group(std::int64_t n_blocks, std::int64_t n_inputs, std::int64_t resident) {
  constexpr std::int64_t kMost = 64;
  constexpr double kTables = 0.5;
  std::int64_t best = 1;
  double best_time = 0;
  for (std::int64_t per_group = 1; per_group <= std::min(kMost, n_blocks); ++per_group) {
    const std::int64_t groups = (n_blocks + per_group - 1) / per_group * n_inputs;
    const std::int64_t rounds = (groups + resident - 1) / resident;
    const double time = static_cast<double>(rounds) * (static_cast<double>(per_group) + kTables);
    if (per_group == 1 || time < best_time) {
      best = per_group;
      best_time = time;
    }
  }
  return best;
}

}  // namespace

void launch_fused(FusedArguments a, const FusedPlan& plan, int n_points, int n_taps, int n_sm,
                  cudaStream_t stream) {
  const std::int64_t blocks = n_blocks(a.blocks.format, a.n_spectra);
  const std::int64_t resident = std::int64_t{n_sm} * std::max(plan.groups_per_sm, 1);
  if (plan.ring) {
    a.blocks_per_group = static_cast<int>(blocks_per_group(blocks, a.n_inputs, resident));
  } else {
    constexpr std::int64_t kRounds = 12;
    constexpr std::int64_t kMost = 16;
    a.blocks_per_group = static_cast<int>(
        std::clamp<std::int64_t>(blocks * a.n_inputs / (resident * kRounds), 1, kMost));
  }
  const std::int64_t n_groups = (blocks + a.blocks_per_group - 1) / a.blocks_per_group * a.n_inputs;
  switch (n_points) {
    case 128:
      return launch_size<Turns, 128>(a, n_taps, n_groups, stream);
    case 256:
      return plan.ring ? launch_size<Ring, 256>(a, n_taps, n_groups, stream)
                       : launch_size<Turns, 256>(a, n_taps, n_groups, stream);
    case 512:
      return plan.ring ? launch_size<Ring, 512>(a, n_taps, n_groups, stream)
                       : launch_size<Turns, 512>(a, n_taps, n_groups, stream);
    default:
      return plan.ring ? launch_size<Ring, 1024>(a, n_taps, n_groups, stream)
                       : launch_size<Turns, 1024>(a, n_taps, n_groups, stream);
  }
}

}  // namespace ryle::channelize::detail
