// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/core/blocks.hpp"
#include "ryle/device/queue.hpp"

/// The published ways to correlate on a GPU, one short kernel each, to compare with the correlator
/// of this library (engine/correlate). Present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::correlate::levels {

/// Levels that run on the device of the queue, in the order of their invention: pair, hybrid,
/// group2, group4 (Wayth, Greenhill & Briggs 2009), tiled (Clark, La Plante & Greenhill 2012),
/// dp4a, mma, wgmma (Hopper only).
std::vector<std::string> level_names(Queue& queue);

/// Most spectra of full-range ci8 an int32 holds, in whole blocks.
inline constexpr std::int64_t kMaxSpectra = 65'472;

/// Sets the sums of a gulp; asynchronous on the queue. There are no masks: flagged samples are 0.
/// @pre blocks: ci8 in device memory; sums [channel][pair] {re, im} in device memory
/// @throws UnsupportedError for another format, ConfigError for a name that is none or a gulp that
/// is too long or too large for one launch
void correlate_level(Queue& queue, const std::string& name, const ConstBlockView& blocks,
                     std::int32_t* sums);

}  // namespace ryle::correlate::levels
