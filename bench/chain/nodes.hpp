// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "bench/bench.hpp"

namespace ryle::bench {

/// The nodes of `ryle run OBSERVATION` on spectra of noise in page-locked memory, as fast as they
/// take them: visibilities, images and beams (with their search) each alone, then all of them on
/// one stream. What the observation leaves out is asked for: UVH5, an image every 0.5 s. The rate
/// is seconds of data a second; `of_own_times` the seconds of all together over the sum of each
/// alone, `copied` the bytes that went to devices over those of the stream as shared blocks.
/// Verified: every node has had all of the data and made its products.
void bench_nodes(const std::string& observation, const Options& options, const Emit& emit);

}  // namespace ryle::bench
