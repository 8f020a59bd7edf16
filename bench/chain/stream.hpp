// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

#include "bench/bench.hpp"

namespace ryle::bench {

struct StreamOptions {
  std::int64_t chunk_mib = 0;  ///< of a feed to the chain; 0 = 64 and 256
  std::int64_t n_inputs = 0;   ///< rows with so many; 0 = all
  bool statistics = true;      ///< of channels
  std::int64_t piece_mib = 0;  ///< of a copy to the device; 0 = the feed
  std::string only;            ///< of "arrays", "run, ..." as in bench_stream(); "" = all
};

/// Samples in host memory through F and X to sums in host memory, by FxChain as `ryle run` has it
/// on the CUDA device: 128, 512 and 1,024 inputs of ci8, 256 channels, from page-locked and from
/// pageable memory, fed 64 and 256 MiB at a time; seconds of MWA-32T, each chunk another array's.
/// The rate is that of samples in; its ceiling the rate of the same memory copied alone, in the
/// same run. Verified: the sums of a short stream are those of the CPU but for codes that rounding
/// may put one apart. Emits nothing without a device. options.quick: small cases; on the CPU if
/// there is no device and it is asked for by name.
void bench_stream(const Options& options, const Emit& emit, const StreamOptions& stream = {});

}  // namespace ryle::bench
