// SPDX-License-Identifier: BSD-3-Clause
// Host side of the fused kernel: which of its instances a configuration takes.
#include "ryle/engine/channelize/cuda_fused_launch.cuh"

#include "ryle/device/cuda/runtime.hpp"

namespace ryle::channelize::detail {
namespace {

constexpr int kDenseBytes = 2;  // samples of ci8 side by side

template <int K, int kTaps, int kStride>
void launch_kernel(const FusedArguments& a, std::int64_t n_units, cudaStream_t stream) {
  using S = FusedShape<K>;
  fused_channelize<K, kTaps, kStride>
      <<<static_cast<unsigned>(n_units), S::kThreads, S::kSharedBytes, stream>>>(a);
  RYLE_CUDA_LAUNCHED("fused_channelize");
}

template <int K, int kTaps>
void launch_taps(const FusedArguments& a, std::int64_t n_units, cudaStream_t stream) {
  a.sample_stride_bytes == kDenseBytes ? launch_kernel<K, kTaps, kDenseBytes>(a, n_units, stream)
                                       : launch_kernel<K, kTaps, 0>(a, n_units, stream);
}

template <int K>
void launch_size(const FusedArguments& a, int n_taps, std::int64_t n_units, cudaStream_t stream) {
  n_taps == 8 ? launch_taps<K, 8>(a, n_units, stream) : launch_taps<K, 4>(a, n_units, stream);
}

template <int K, int kTaps, int kStride>
void raise_shared_limit() {
  RYLE_CUDA(cudaFuncSetAttribute(fused_channelize<K, kTaps, kStride>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 FusedShape<K>::kSharedBytes));
}

template <int K>
FusedPlan plan_size(int n_taps, int shared_limit) {
  FusedPlan plan;
  if (FusedShape<K>::kSharedBytes > shared_limit) return plan;
  if (n_taps == 8) {
    raise_shared_limit<K, 8, kDenseBytes>();
    raise_shared_limit<K, 8, 0>();
  } else {
    raise_shared_limit<K, 4, kDenseBytes>();
    raise_shared_limit<K, 4, 0>();
  }
  plan.r1 = FusedShape<K>::kR1;
  plan.r2 = FusedShape<K>::kR2;
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

void launch_fused(const FusedArguments& a, int n_points, int n_taps, std::int64_t n_units,
                  cudaStream_t stream) {
  switch (n_points) {
    case 128:
      return launch_size<128>(a, n_taps, n_units, stream);
    case 256:
      return launch_size<256>(a, n_taps, n_units, stream);
    case 512:
      return launch_size<512>(a, n_taps, n_units, stream);
    default:
      return launch_size<1024>(a, n_taps, n_units, stream);
  }
}

}  // namespace ryle::channelize::detail
