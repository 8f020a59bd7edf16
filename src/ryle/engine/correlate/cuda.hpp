// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/correlate/correlator.hpp"

/// CUDA back-end of the correlator; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::correlate {

/// Memory spaces on a CUDA queue: Input.blocks in device memory; Input.valid and Sums in host
/// memory (execute() reads `valid` before it returns, so it may be reused at once). Names: "cuda"
/// (best for the format), "cuda:mma_s8" (tensor cores, ci4 ci8), "cuda:simt" (every format).
/// @pre queue.back_end() == BackEnd::cuda and config was validated; throws UnsupportedError for an
/// unknown name.
std::unique_ptr<Correlator> make_cuda_correlator(Queue& queue, const Config& config);

/// Names usable on this machine, best first; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();

}  // namespace ryle::correlate
