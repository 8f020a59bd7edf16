// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string_view>

#include "ryle/engine/correlate/correlate.hpp"

/// Private to the engine: what plan.cpp chooses from. The CUDA ones are in cuda.hpp.
namespace ryle::correlate::detail {

struct CpuKernel;

std::unique_ptr<Correlator> make_reference(const Config& config);
std::unique_ptr<Correlator> make_cpu(Queue& queue, const Config& config, const CpuKernel& kernel);

/// Bytes a cpu correlator keeps: accumulators (all channels), and packing scratch of one worker.
struct CpuMemory {
  std::int64_t accumulator_bytes = 0;
  std::int64_t scratch_bytes_per_worker = 0;
};
CpuMemory cpu_memory(const Config& config, const CpuKernel& kernel);

/// Integer formats accumulate in int64, the others in double.
bool is_integer_format(SampleFormat format);

}  // namespace ryle::correlate::detail
