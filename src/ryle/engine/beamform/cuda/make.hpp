// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/beamform/beamform.hpp"

/// CUDA back-end of the beamformer; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::beamform {

/// Memory on a CUDA queue: Input::samples and everything of Output in device memory,
/// Input::present in host memory (read before execute() returns). Work is asynchronous.
/// Names: "cuda" (best for the configuration), "cuda:sm90_s8_wgmma" (ci4, i8 weights, 512 antennas
/// or fewer, compute capability 9), "cuda:sm90_s8_few" (the same, 16 beams and 32 antennas or
/// fewer), "cuda:sm80_s8_direct" (ci4, i8 weights, 32 antennas or fewer),
/// "cuda:sm80_s8_tiled" (ci4 to 1024, ci8 and tables to 128 antennas, i8 weights), "cuda:fp32"
/// (everything).
/// Bits: sums of the tensor-core kernels are exact, voltages equal those of the CPU. Windows of
/// powers are added in an order that depends on where gulps are cut, unless T, the first tick and
/// the length of every gulp are multiples of the same of 64, 32, 16, 8: else they agree to 2^-20.
/// cuda:fp32 gives the same bits for any gulps.
/// @pre queue.back_end() == BackEnd::cuda and config was validated; throws UnsupportedError.
std::unique_ptr<Beamformer> make_cuda_beamformer(Queue& queue, const Config& config);

/// Names usable on this machine, best first; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();
/// Those of them that take this configuration.
std::vector<std::string> cuda_implementations(const Config& config);

}  // namespace ryle::beamform
