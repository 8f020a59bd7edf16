// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {

/// The entries of image.watch: names of the catalog, "RA,DEC" or "RA/DEC", each perhaps with a name
/// and '=' before it. Throws ConfigError.
std::vector<WatchTarget> watch_targets(const std::vector<std::string>& watch);

/// Exact sums of visibilities at the directions of a watch list, integration by integration.
/// @eq I(s) = sum_{a != b} V_ab exp(-2 pi i (nu/c) (r_a - r_b).s): vis-dft at single directions
class VisibilityWatch {
 public:
  /// `sky`: the problem of the images. @pre array outlives this
  VisibilityWatch(const image::AllSkyConfig& sky, const ArrayLayout& array,
                  const EarthOrientation& eo, std::vector<WatchTarget> targets);
  const std::vector<WatchTarget>& targets() const { return targets_; }
  /// Values of the targets above the horizon at an instant, [bin][plane][direction]; `index`: which
  /// of targets() each direction is.
  void measure(Queue& queue, const image::VisInput& input, std::span<const cf32> gains,
               std::int64_t tai_ns, image::Images& values, std::vector<std::int64_t>& index) const;

 private:
  image::AllSkyConfig sky_;
  const ArrayLayout& array_;
  EarthOrientation earth_orientation_;
  std::vector<WatchTarget> targets_;
};

}  // namespace ryle::pipeline
