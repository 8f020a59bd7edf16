// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "bench/bench.hpp"

namespace ryle::bench {

struct ChainOptions {
  std::vector<int> devices{0};
  std::int64_t n_beams = 1024;
  std::int64_t block_samples = 0;  ///< 0: chosen as for a live run, from the memory there is
  int n_streams = 8;
  std::int64_t n_trials = 0;  ///< only the plan with so many; 0: all
};

/// Gate S4: voltages of BEST-2 in host memory to candidates of 1,024 beams, on CUDA devices.
/// Verified: the pulse in the voltages is found once a time in its beam and nowhere else, and the
/// candidates of that beam are those of the CPU for the same power. Emits nothing without a device.
void bench_chain(const Options& options, const ChainOptions& chain, const Emit& emit);

}  // namespace ryle::bench
