// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/queue.hpp"

namespace ryle {

/// Whether copies on the queue read this host memory by themselves, at the full rate of the bus:
/// page-locked memory for CUDA, any for the CPU.
bool copies_directly(const Queue& queue, const void* host_memory);

}  // namespace ryle
