// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/engine/image/cpu/kernels.hpp"
#include "ryle/engine/image/geometry.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/math/fft.hpp"

/// What the CPU paths of the all-sky imager share. Private to the engine.
namespace ryle::image::detail {

/// isa: "avx512", "avx2" or "generic".
const CpuKernels& cpu_kernels(std::string_view isa);

/// Owns the passes of a transform with the + sign. Not copyable: the plan points into it.
template <class Real>
class TransformTablesOf {
 public:
  /// @pre n = 2^a 3^b 5^c, at least two factors
  explicit TransformTablesOf(std::int64_t n);
  TransformTablesOf(const TransformTablesOf&) = delete;
  TransformTablesOf& operator=(const TransformTablesOf&) = delete;
  const TransformOf<Real>& plan() const { return plan_; }

 private:
  TransformOf<Real> plan_;
  math::FftPasses<Real> passes_;
};
using TransformTables = TransformTablesOf<float>;
/// The smallest size from n on that TransformTablesOf takes.
std::int64_t transform_size(std::int64_t n);

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

/// Pixels (or directions) with sky and how sums become images.
class CpuOutput {
 public:
  explicit CpuOutput(const AllSkyConfig& config);
  /// [sky] index in a plane
  const std::vector<std::int32_t>& pixels() const { return pixels_; }
  std::int64_t size() const { return static_cast<std::int64_t>(pixels_.size()); }
  /// Planes of sums: XX (and YY (and Re XY*, Im XY*)).
  int n_sums() const { return n_sums_; }
  /// Sizes the images; every bin is then to be written.
  void prepare(Images& images) const;
  /// A row (or less) of neighbouring pixels with sky.
  struct Run {
    std::int32_t pixel, sky, n;  ///< first index in a plane, first index in pixels(), length
  };
  const std::vector<Run>& runs() const { return runs_; }
  /// One bin, what holds no sky included. @shape sums [n_sums][size()], weights [3]
  void write(std::int64_t bin, const double* sums, const double* weights, Images& images) const;

 private:
  void find_pixels(const AllSkyConfig& config);

  int pols_ = 1, n_sums_ = 1;
  bool stokes_ = true;
  std::int64_t n_bins_ = 0, n_planes_ = 0, plane_size_ = 0;
  std::vector<std::int32_t> pixels_;
  std::vector<Run> runs_;
};

/// What every path is set up from: configuration, kernels, roles, pixels and the gains in use.
class CpuImager {
 protected:
  CpuImager(Queue& queue, const AllSkyConfig& config, Path path, std::string_view isa);
  /// Checks gains [channel][input] and hands those of a channel by slot to body(channel, gains);
  /// what must not be used is 0. @throws ConfigError for a wrong number
  void take_gains(std::span<const cf32> gains,
                  const std::function<void(std::int64_t, std::span<const cf32>)>& body);
  /// Gains of 1, [channel][input].
  std::vector<cf32> ones() const;

  AllSkyConfig config_;
  const CpuKernels& kernels_;
  std::string name_;
  CpuRoles roles_;
  CpuOutput output_;
  std::vector<cf32> input_gains_;  // [channel][input], for the weights
  std::int64_t n_channels_, n_bins_, n_slots_;
};

/// The same for paths that take voltages: weights and number of spectra of an image.
class CpuFieldImager : protected CpuImager {
 protected:
  CpuFieldImager(Queue& queue, const AllSkyConfig& config, Path path, std::string_view isa);
  /// Counts a gulp. @throws UnsupportedError for other samples than ci4 and ci8
  void count(const FieldInput& input);
  void clear_counts();
  /// Samples of one channel.
  static FieldSamples samples_of(const FieldInput& input, std::int64_t channel);

  std::vector<double> weights_;  // [bin][3]
  std::int64_t n_spectra_ = 0;
};

/// Runs body(slot, task) for every task; a slot is one worker's scratch memory.
void run_tasks(Queue& queue, std::int64_t n_slots, std::int64_t n_tasks,
               const std::function<void(std::int64_t, std::int64_t)>& body);

/// Work splits so that at least this many tasks exist: fixed, so that results do not depend on the
/// number of workers.
inline constexpr std::int64_t kTasksWanted = 8;
std::int64_t parts_for(std::int64_t n_units);

}  // namespace ryle::image::detail
