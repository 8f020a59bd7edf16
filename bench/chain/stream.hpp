// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/bench.hpp"

namespace ryle::bench {

/// Samples in page-locked memory through F and X to sums in page-locked memory, on the CUDA device:
/// 128, 512 and 1,024 inputs of ci8, 256 channels. The rate is that of samples in; its ceiling the
/// rate of the same memory copied alone, in the same run. Verified: the sums are those of the same
/// chunks one after the other, nothing beside anything. Emits nothing without a device.
/// options.quick: one small case; on the CPU if there is no device and it is asked for by name.
void bench_stream(const Options& options, const Emit& emit);

}  // namespace ryle::bench
