// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/image/image.hpp"

namespace ryle::image {

/// How fast one core is, all that are used running at once. Clocks, other programs and the other
/// thread of a core change it from second to second. @unit per second; 0 = not known
struct CoreSpeed {
  double ops = 0;          ///< fp32 multiply-adds in registers, 2 operations each
  double bytes_per_s = 0;  ///< read from beyond the caches
  double product_ops = 0;  ///< of a small X-engine: units that neighbours share slow it down apart
};

/// Rates of one machine that predict the time of each path; defaults are the design's, `ryle bench
/// image --calibrate` measures them. @unit operations or bytes per second
struct CostModel {
  BackEnd back_end = BackEnd::cpu;
  std::string machine = "default";  ///< name, for reports
  double correlate_ops = 0;         ///< useful X-engine operations (8 per complex multiply-add)
  /// The rate by number of inputs: matrices and their unpacking share the time differently.
  /// {inputs, share of correlate_ops}, inputs increasing; empty = the same for all.
  std::vector<std::array<double, 2>> correlate_shares;
  double correlate_output_bytes = 0;  ///< sums written when an image ends, 8 bytes per pair
  double efield_fft_ops = 0;          ///< 5 n log2 n counting, pruned
  double efield_grid_ops = 0;         ///< gridding and detection
  double efield_half_ops = 0;
  double vis_grid_ops = 0;  ///< footprint cells x 4 Stokes x 8
  double vis_dft_ops = 0;
  double efield_dft_ops = 0;
  double overhead_s = 0;  ///< per image and channel
  // CPU only, 0 = not counted. @unit s
  double vis_pixel_s = 0;     ///< per pixel with sky and plane: what follows a transform, vis-grid
  double efield_pixel_s = 0;  ///< the same and channel when an E-field image ends
  double phasor_s = 0;        ///< per direction, antenna and channel: Fourier sums
  double vis_place_s =
      0;  ///< per place where baselines begin on the uv plane and channel: vis-grid
  double setup_pair_s = 0;   ///< per baseline and channel, once: vis-grid
  double setup_pixel_s = 0;  ///< per pixel (and channel: efield), once: gridded paths
  CoreSpeed measured_at;     ///< CPU: the speed that the rates were measured at
};
/// The rates at another speed of the cores: what sums scales with `ops`, what waits for the memory
/// with `bytes_per_s`, the X-engine with `product_ops` (`ops` where that is not known). A speed
/// that is not known on both sides changes nothing.
CostModel at_core_speed(const CostModel& model, const CoreSpeed& speed);
/// Fixed rates: of one H200, or of two of the cores that the design was measured on.
CostModel default_cost_model(BackEnd back_end);
/// The same scaled to this machine, for n_workers cores: by a multiply-add kernel timed for a few
/// milliseconds, and by the instruction set of the X-engine.
CostModel default_cost_model(BackEnd back_end, int n_workers);

/// What the planner says of one path.
struct PathPrediction {
  Path path = Path::automatic;
  bool possible = false;
  std::string why_not;        ///< reason when not possible or not within the limits
  double seconds = 0;         ///< per set of images, all channels
  double setup_s = 0;         ///< once, when the imager is made (CPU)
  std::int64_t bytes = 0;     ///< memory of the engine, correlator included where needed
  double relative_error = 0;  ///< rms, of the peak, inside r < 0.8
  /// Gridded paths, at max_zenith_distance_rad in the top channel (geometry.hpp HeightError); 0 for
  /// Fourier sums, which have the true heights.
  double height_phase_rad = 0;
  double height_error = 0;  ///< share of a point source's flux that is lost
};
struct Plan {
  Path choice = Path::automatic;
  std::string reason;
  std::string warning;  ///< a gridded path asked for by name over ground that is not flat; else ""
  std::vector<PathPrediction> paths;  ///< all five, in the order of Path
  double coherence = 1;  ///< of the array plane at max_zenith_distance_rad, top channel
};
/// Predicts every path and chooses. `correlator_runs_anyway`: its cost is not counted.
/// `n_sets`: sets of images to be made, 0 = no end; the choice spreads setup_s over them.
Plan plan(const AllSkyConfig& config, const CostModel& model, bool correlator_runs_anyway = false,
          std::int64_t n_sets = 0);

}  // namespace ryle::image
