// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/engine/beamform/beamform.hpp"

/// Private to the engine: what plan.cpp chooses from.
namespace ryle::beamform::detail {

struct CpuKernel;

std::unique_ptr<Beamformer> make_reference(const Config& config);
std::unique_ptr<Beamformer> make_cpu(Queue& queue, const Config& config, const CpuKernel& kernel);

/// IEEE half nearest to a float, ties to even, overflow to infinity.
std::uint16_t half_of(float value);
/// Value of a half, exact.
float half_value(std::uint16_t half);

}  // namespace ryle::beamform::detail
