// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>

#include "ryle/engine/search/search.hpp"

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

/// How references write a sum.
inline void store_sum(void* sums, SumFormat format, std::int64_t at, std::int64_t sum) {
  if (format == SumFormat::u16) {
    static_cast<std::uint16_t*>(sums)[at] = static_cast<std::uint16_t>(sum);
  } else {
    static_cast<std::uint32_t*>(sums)[at] = static_cast<std::uint32_t>(sum);
  }
}

}  // namespace ryle::search::detail
