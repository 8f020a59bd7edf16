// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>

#include "ryle/engine/search/cuda/normalize.hpp"
#include "ryle/engine/search/drift.hpp"

/// DriftFilter for many beams on a device; in builds with CUDA only (RYLE_HAVE_CUDA).
namespace ryle::search {

/// Samples that go out of each beam are those of DriftFilter, bit for bit: same steps in the same
/// order (drift_steps.hpp), no fused multiply-adds.
class CudaDriftFilter {
 public:
  CudaDriftFilter(Queue& queue, const DriftConfig& config, std::int64_t n_beams,
                  std::int64_t block);
  ~CudaDriftFilter();
  CudaDriftFilter(const CudaDriftFilter&) = delete;
  CudaDriftFilter& operator=(const CudaDriftFilter&) = delete;

  std::int64_t lag() const;
  /// As DriftFilter::execute(), for all beams; power.n samples of the block came. Nobody reads the
  /// power any more when the queue has got here.
  std::int64_t execute(Queue& queue, const DevicePower& power);
  /// What the last execute() gave. @shape [beam][channel][block] f32, NaN = absent
  DevicePower output() const;
  std::int64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::search
