// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/channelize/channelize.hpp"

/// CUDA back-end of the channelizer; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::channelize {

/// Memory spaces on a CUDA queue: Input.samples and Output.blocks in device memory; Output.valid
/// and Output.statistics in host memory. `valid` is complete when execute() returns, `statistics`
/// after Queue::synchronize(). Names: "cuda:fused" (one kernel from samples to blocks, for the
/// common sizes of 8-bit complex samples), "cuda:shared" (unpack, FIR and FFT in shared memory,
/// then phase, gain and rounding; everything), "cuda" = the first that takes the configuration.
/// @pre queue.back_end() == BackEnd::cuda and config was validated; throws UnsupportedError for an
/// unknown name.
std::unique_ptr<Channelizer> make_cuda_channelizer(Queue& queue, const Config& config);

/// Names usable on this machine, best first; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();

}  // namespace ryle::channelize
