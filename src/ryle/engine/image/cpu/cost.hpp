// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/image/cost_model.hpp"

/// What the CPU paths cost, correlator apart. Private to the planner.
/// Every prediction is a sum of counts times seconds, so that counts are what a calibration fits.
namespace ryle::image::detail {

/// Sizes of one set of images.
struct CpuSizes {
  double antennas = 0;
  double pols = 0;
  double planes = 0;     ///< of an image
  double products = 0;   ///< complex products of a Fourier sum: 1 .. 3
  double grid = 0;       ///< cells per side
  double support = 0;    ///< of the antenna function
  double footprint = 0;  ///< of the function on a baseline
  double places = 0;     ///< where baselines begin, vis-grid: those of one place share registers
  double spectra = 0;
  double channels = 0;
  double transforms = 0;  ///< of vis-grid: bins, or channels where each has its own taper
  double pixels = 0;      ///< with sky
  double fft_share = 1;   ///< of a pruned transform
};
/// Places of the baselines of the middle channel; a place is two neighbouring cells (AVX-512).
double places_of_baselines(const AllSkyConfig& config);
/// One set of images.
double cpu_images_s(const CpuSizes& sizes, const CostModel& model, Path path);
/// Once, when the imager is made.
double cpu_setup_s(const CpuSizes& sizes, const CostModel& model, Path path);

/// Multiply-adds per second of this core now, measured on the kernel of vis-dft: the best of
/// n_bursts of 20 microseconds each. @unit operations, 2 per multiply-add
double cpu_ops_now(int n_bursts);
/// The same of a few milliseconds, measured once per process.
double cpu_quick_ops();

}  // namespace ryle::image::detail
