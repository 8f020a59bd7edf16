// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/bench.hpp"

namespace ryle::bench {

/// The correlator on one, two, ... all CUDA devices of the host, data resident: every device has
/// its share of the channels of 256 and 1,024 inputs, 4,096 spectra. The rate is that of all
/// together; "speedup" that over one device in the same run. Verified: the sums of all shares are
/// those of one device, bit by bit. Emits nothing without a device.
void bench_devices(const Options& options, const Emit& emit);

}  // namespace ryle::bench
