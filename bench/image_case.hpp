// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/core_speed.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/image/cost_model.hpp"
#include "ryle/engine/image/image.hpp"

/// Arrays, random voltages and timed runs that the image benchmark and its calibration share.
namespace ryle::bench {

/// Dual-polarization antennas strewn over an ellipse of 100 m x 120 m, at least `spacing_m` apart,
/// on a plane tilted like LWA-SV's: a stand-in for its station file.
image::AllSkyConfig scattered_array(std::int64_t n_antennas, std::int64_t n_channels,
                                    std::int64_t n_spectra, image::Path path);

/// ci4 gulps of random voltages, together beyond the last-level cache.
class ImageData {
 public:
  ImageData(const image::AllSkyConfig& config, std::int64_t n_spectra, bool beyond_cache);
  std::int64_t n_gulps() const { return n_gulps_; }
  image::FieldInput field(std::int64_t gulp) const;
  correlate::Input correlator(std::int64_t gulp) const;

 private:
  ConstBlockView blocks(std::int64_t gulp) const;
  std::int64_t n_channels_, n_inputs_, n_spectra_, gulp_bytes_, n_gulps_;
  Buffer<std::byte> memory_;
};

correlate::Sums correlated(Queue& queue, const image::AllSkyConfig& config, const ImageData& data,
                           std::int64_t n_gulps);
image::VisInput vis_input(const correlate::Sums& sums);

/// One set of images: execute and finish, or one set of sums.
TimedAtSpeed time_image(Queue& queue, CoreSpeedProbe& probe, const image::AllSkyConfig& config,
                        const ImageData& data, double seconds);

/// Measures every rate on this machine with the workers of the queue, and the speed of the cores
/// that the rates hold at.
image::CostModel calibrate_image(Queue& queue, CoreSpeedProbe& probe, double seconds);

}  // namespace ryle::bench
