// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/core/samples.hpp"
#include "ryle/device/queue.hpp"

/// transpose_samples() on a device; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::channelize::detail {

void transpose_samples_cuda(Queue& queue, const void* samples, std::int64_t n_inputs,
                            std::int64_t n_ticks, const SampleLayout& turned, void* to);

}  // namespace ryle::channelize::detail
