// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/engine/image/all_sky.hpp"
#include "ryle/engine/image/cpu_kernels.hpp"
#include "ryle/engine/image/geometry.hpp"

/// What the CPU paths of the all-sky imager share. Private to the engine.
namespace ryle::image::detail {

/// isa: "avx512", "avx2" or "generic".
const CpuKernels& cpu_kernels(std::string_view isa);

/// Owns the twiddles of a CpuTransform. Not copyable: the plan points into it.
class TransformTables {
 public:
  /// @pre n = 2^a 3^b 5^c, at least two factors
  explicit TransformTables(std::int64_t n);
  TransformTables(const TransformTables&) = delete;
  TransformTables& operator=(const TransformTables&) = delete;
  const CpuTransform& plan() const { return plan_; }

 private:
  CpuTransform plan_;
  std::vector<std::vector<float>> twiddles_;
};

/// Inputs and antennas that take part, in compact lists.
struct CpuRoles {
  int pols = 1;
  std::vector<std::int32_t> inputs;    ///< [slot] index in the data, bad ones left out
  std::vector<std::int32_t> antennas;  ///< [place] antenna of the configuration
  std::vector<std::int32_t> slots;     ///< [place][2] slot of X and Y, -1 = none
  std::vector<std::int32_t> place_of_slot;
  std::vector<int> pol_of_slot;
};
CpuRoles make_roles(const AllSkyConfig& config);

/// Gains of one channel by slot; those of inputs that must not be used are 0.
std::vector<cf32> used_gains(const CpuRoles& roles, std::span<const cf32> gains);
/// Throws ConfigError unless there is a gain for every channel and input.
void check_gains(const AllSkyConfig& config, std::span<const cf32> gains);

/// Pixels (or directions) with sky and how sums become images.
class CpuOutput {
 public:
  explicit CpuOutput(const AllSkyConfig& config);
  /// [sky] index in a plane
  const std::vector<std::int32_t>& pixels() const { return pixels_; }
  std::int64_t size() const { return static_cast<std::int64_t>(pixels_.size()); }
  /// Planes of sums: XX (and YY (and Re XY*, Im XY*)).
  int n_sums() const { return n_sums_; }
  void prepare(Images& images) const;
  /// @shape sums [n_sums][size()], weights [3]
  void write(std::int64_t bin, const double* sums, const double* weights, Images& images) const;

 private:
  int pols_ = 1, n_sums_ = 1;
  bool stokes_ = true;
  std::int64_t n_bins_ = 0, n_planes_ = 0, plane_size_ = 0;
  std::vector<std::int32_t> pixels_;
};

/// Runs body(slot, task) for every task; a slot is one worker's scratch memory.
void run_tasks(Queue& queue, std::int64_t n_slots, std::int64_t n_tasks,
               const std::function<void(std::int64_t, std::int64_t)>& body);

/// Work splits so that at least this many tasks exist: fixed, so that results do not depend on the
/// number of workers.
inline constexpr std::int64_t kTasksWanted = 8;
std::int64_t parts_for(std::int64_t n_units);

}  // namespace ryle::image::detail
