// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/search/search.hpp"

/// CUDA back-end of the search; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::search {

/// Codes and sums in device memory. Names: "cuda" (best exact one), "cuda:shared" (sums of 4
/// channels shared between trials), "cuda:direct" (one addition per channel, any plan), "fdmt" or
/// "fdmt:cuda" (the tree, the integers of "fdmt:reference"; sums of 16 bits only),
/// "fdmt:cuda:tiles" (the same without copying ahead, as on devices that are not sm_90a), "subband"
/// or "subband:cuda".
/// @pre queue.back_end() == BackEnd::cuda and config was validated; throws UnsupportedError for an
/// unknown name.
std::unique_ptr<Dedisperser> make_cuda_dedisperser(Queue& queue, const DedisperseConfig& config);

std::unique_ptr<Dedisperser> make_cuda_fdmt(Queue& queue, const DedisperseConfig& config);
/// Two stages: the integers of "subband:reference".
std::unique_ptr<Dedisperser> make_cuda_subbands(Queue& queue, const DedisperseConfig& config);

/// DetectInput::sums and ::weights in device memory; the hits are those of the reference, in the
/// same order. execute() waits for the device.
std::unique_ptr<Detector> make_cuda_detector(Queue& queue, const DetectConfig& config);

/// The same for codes, sums and weights in host memory, on device 0: copied there and back, and
/// execute() returns when all is done. What a CPU queue gets that asks for "cuda" by name.
std::unique_ptr<Dedisperser> make_cuda_dedisperser_for_host(const DedisperseConfig& config);
std::unique_ptr<Detector> make_cuda_detector_for_host(const DetectConfig& config);

/// Names usable on this machine, best first; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();

}  // namespace ryle::search
