// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/channelize/cuda/transpose.hpp"

#include <limits>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/channelize/cuda/transpose.cuh"

namespace ryle::channelize::detail {

void transpose_samples_cuda(Queue& queue, const void* samples, std::int64_t n_inputs,
                            std::int64_t n_ticks, const SampleLayout& turned, void* to) {
  if (n_ticks == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  cuda::require_device_memory(samples, "samples to turn");
  cuda::require_device_memory(to, "turned samples");
  constexpr std::int64_t kMax = std::numeric_limits<int>::max() / 2;
  const auto bytes = static_cast<int>(turned.sample_stride_bits / 8);
  const std::int64_t lines = (n_ticks * bytes + 127) / 128;
  const std::int64_t tiles = (n_inputs + kTransposeInputs - 1) / kTransposeInputs;
  if (n_inputs > kMax / 4 || n_ticks > kMax / 4 || tiles > kMax / lines) {
    throw ConfigError("turning " + std::to_string(n_ticks) + " samples of " +
                      std::to_string(n_inputs) + " inputs at once: too many for one launch");
  }
  const TransposeArguments a{static_cast<const std::byte*>(samples),
                             static_cast<std::byte*>(to),
                             n_inputs * bytes,
                             turned.input_stride_bits / 8,
                             static_cast<int>(n_inputs),
                             static_cast<int>(n_ticks),
                             static_cast<int>(tiles)};
  transpose_kernel(a, bytes)<<<static_cast<unsigned>(tiles * lines), kTransposeThreads, 0,
                               cuda::stream_of(queue)>>>(a);
  RYLE_CUDA_LAUNCHED("transpose_tile");
}

}  // namespace ryle::channelize::detail
