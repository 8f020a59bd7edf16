// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/grid/grid.hpp"

/// CUDA back-end of the gridder; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::grid {

/// Scans to planes in one go, everything in pinned host memory: coordinates and values are copied
/// in pieces while those before them are sorted and gridded.
class CudaMapper {
 public:
  struct Input {
    const double *longitude_deg = nullptr, *latitude_deg = nullptr;  ///< [sample]
    std::int64_t n_samples = 0;
    Samples samples;
  };
  struct Output {
    float* values = nullptr;        ///< [channel][cell]
    float* weight = nullptr;        ///< [cell], of all samples with a weight; nullptr: not asked
    std::int32_t* count = nullptr;  ///< [cell], or nullptr
  };
  virtual ~CudaMapper() = default;
  /// Returns when all is there. Buffers are kept from call to call.
  virtual PlanFacts map(const Input& input, const Finish& finish, const Output& output) = 0;
  virtual std::string_view implementation() const = 0;
};
/// On the first of `config.devices`. Throws as make_gridder() does.
std::unique_ptr<CudaMapper> make_cuda_mapper(const Config& config, const Cells& cells);

/// Values in host memory, channels split over `config.devices`; execute() returns when the sums
/// are there.
std::unique_ptr<Gridder> make_cuda_gridder(const Config& config, const Cells& cells);

/// Names usable on this machine; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();

}  // namespace ryle::grid
