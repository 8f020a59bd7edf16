// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "bench/bench.hpp"

namespace ryle::bench {

/// The correlator on one, two, ... all CUDA devices of the host, data resident: every device has
/// its share of the channels of 256 and 1,024 inputs, 4,096 spectra. The rate is that of all
/// together; "speedup" that over one device in the same run. Verified: the sums of all shares are
/// those of one device, bit by bit, and the reference's (chosen inputs, channels at the borders).
/// Emits nothing without a device.
/// @param n_channels instead of those of the cases; 0 = theirs
void bench_devices(const Options& options, const Emit& emit, std::int64_t n_channels = 0);

}  // namespace ryle::bench
