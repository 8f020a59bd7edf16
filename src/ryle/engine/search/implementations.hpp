// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/engine/search/dedisperse.hpp"

/// Private to the engine: what plan.cpp chooses from.
namespace ryle::search::detail {

struct CpuKernel;

std::unique_ptr<Dedisperser> make_reference(const DedisperseConfig& config);
std::unique_ptr<Dedisperser> make_cpu(Queue& queue, const DedisperseConfig& config,
                                      const CpuKernel& kernel);
std::unique_ptr<Dedisperser> make_fdmt_reference(const DedisperseConfig& config);
std::unique_ptr<Dedisperser> make_fdmt_cpu(Queue& queue, const DedisperseConfig& config,
                                           const CpuKernel& kernel);

std::unique_ptr<Dedisperser> make_subband_reference(const DedisperseConfig& config);
std::unique_ptr<Dedisperser> make_subband_cpu(Queue& queue, const DedisperseConfig& config,
                                              const CpuKernel& kernel);

}  // namespace ryle::search::detail
