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
  /// When a stage had the device, from the start of map().
  struct StageTime {
    std::string stage;  ///< "copy in", "sort", "load", "grid", "reduce", "planes", "copy out"
    double begin_ms = 0, end_ms = 0;
  };
  virtual ~CudaMapper() = default;
  /// Returns when all is there. Buffers are kept from call to call.
  virtual PlanMetadata map(const Input& input, const Finish& finish, const Output& output) = 0;
  /// The same, with events around each stage, which cost some time.
  virtual std::vector<StageTime> time_stages(const Input& input, const Finish& finish,
                                             const Output& output) = 0;
  virtual std::string_view implementation() const = 0;
};
/// How the work is cut. Where samples are cut decides the last bits of sums, nothing else does.
struct CudaTuning {
  std::int64_t chunk_samples = std::int64_t{1} << 20;  ///< one is gridded while the next is copied
  int channels = 12;                                   ///< of a group at most; no more than 12
  bool copies_together = true;                         ///< channels of a group in one copy
};
/// On the first of `config.devices`. Throws as make_gridder() does.
std::unique_ptr<CudaMapper> make_cuda_mapper(const Config& config, const Cells& cells,
                                             const CudaTuning& tuning = {});

/// Values in host memory, channels split over `config.devices`; execute() returns when the sums
/// are there.
std::unique_ptr<Gridder> make_cuda_gridder(const Config& config, const Cells& cells);
/// How long values, and sums, were on their way in the last execute(), beside which others are
/// gridded: that of the device that took longest; 0 for gridders of CPUs. @unit s
double cuda_transfer_s(const Gridder& gridder);

/// Names usable on this machine; empty when cuda_unavailable_reason() is not "".
std::vector<std::string> cuda_implementations();

}  // namespace ryle::grid
