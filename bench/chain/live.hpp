// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "bench/bench.hpp"

namespace ryle::bench {

struct LiveOptions {
  std::string observation;  ///< of `ryle run`: format "best2", with a search
  int n_blocks = 12;        ///< of the search, timed, after the first four
};

/// The beams and the search of `ryle run OBSERVATION`, by the same stages, from chunks in
/// page-locked memory (noise) as fast as they take them: sockets are all that is left out. The rate
/// is that of blocks once all buffers are full. Verified: all samples were searched, none dropped,
/// and nothing was found in the noise.
void bench_live(const LiveOptions& live, const Emit& emit);

}  // namespace ryle::bench
