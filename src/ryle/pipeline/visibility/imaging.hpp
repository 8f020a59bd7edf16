// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/engine/image/weighting.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

struct ImagingOptions {
  std::int64_t n_pixels = 256;
  double width = 2.0;  ///< direction cosines across
  std::int64_t channel_average = 1;
  bool autocorrelations = false;
  /// Divide V_ij by sqrt(V_ii V_jj): gives every input the same weight where gains are unknown.
  bool equalize_inputs = false;
  /// Gaussian uv taper that makes the beam this wide (FWHM, direction cosines); 0 = none. For
  /// pictures coarser than the longest baseline.
  double taper_fwhm = 0;
  std::string stokes = "I";  ///< I (mean of XX and YY), XX or YY
  std::string implementation = "auto";
  image::SamplePath path = image::SamplePath::automatic;
  double max_error = 1e-5;  ///< as image::Config::max_error
  image::Weighting weighting = image::Weighting::natural;
  double robust = 0;      ///< of Weighting::briggs
  bool want_psf = false;  ///< make ImagingResult::psf too
  /// As image::Config::go_on.
  std::function<bool(double done)> go_on{};
};

/// Visibility samples of an image: baselines, channel groups, the chosen polarization, weights =
/// exact counts, changed by the weighting and the taper.
std::vector<image::Sample> image_samples(const Observation& observation,
                                         std::span<const VisibilityDump> dumps,
                                         const ImagingOptions& options);

struct ImagingResult {
  SkyImage image;
  std::string implementation;
  std::int64_t n_samples = 0;
  bool equalized = false;  ///< asked for, and there were autocorrelations to do it by
  image::SamplePath path = image::SamplePath::direct;  ///< what was taken
  /// The dirty beam: the picture of a source of 1 at the center. Empty unless asked for.
  std::optional<SkyImage> psf;
  std::vector<std::string> warnings;
};
/// Dirty image of all dumps about the phase center. Throws FormatError when nothing is
/// unflagged, Error (exit 75) when options.go_on stopped it.
ImagingResult make_image(Queue& queue, const Observation& observation,
                         std::span<const VisibilityDump> dumps, const ImagingOptions& options);

/// "XX", "YY" or "I": the one polarization of a file that says so (note "single_polarization"); ""
/// where it holds several or does not say.
std::string single_polarization(const Observation& observation);
/// FITS code of I, XX or YY.
int stokes_code(const std::string& stokes);

/// Turns dumps to another phase center.
/// @eq V' = V exp(-2 pi i nu (r_i - r_j).(s' - s_0) / c)   (conventions.md 5)
void rephase(Observation& observation, std::span<VisibilityDump> dumps, const SkyDirection& center,
             const std::string& name);

/// A warning when the phase center of dumps is below the horizon in any of them, else "".
std::string low_phase_center(const Observation& observation, std::span<const VisibilityDump> dumps);

}  // namespace ryle::pipeline
