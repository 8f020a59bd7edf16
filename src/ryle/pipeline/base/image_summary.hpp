// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ryle::pipeline {

/// Brightest point of the first plane, all bins together.
struct SkyPeak {
  double value = 0;
  double sigma = 0;     ///< above the median, in robust standard deviations of the image
  double l = 0, m = 0;  ///< true direction cosines, east and north, slant undone
  double x = 0, y = 0;  ///< fractional pixel
  double ra_deg = 0, dec_deg = 0;
  double azimuth_deg = 0, elevation_deg = 0;
};

/// A watched source in the last image.
struct WatchedSummary {
  std::string name;
  double elevation_deg = 0;
  double flux = 0;            ///< Stokes I (or the first plane), mean of the bins; NaN when not up
  double mean_flux = 0;       ///< over all images
  std::int64_t n_images = 0;  ///< it was up in
};

/// What imaging did, in the summary of a run.
struct ImageSummary {
  std::int64_t images = 0;
  std::int64_t dropped = 0;
  std::string path;  ///< "vis-grid", ...
  std::string reason;
  std::string implementation;
  double image_s = 0;      ///< data behind an image (a stack has several)
  double predicted_s = 0;  ///< engine time per image the planner expected
  double measured_s = 0;   ///< ... and what it took
  double coherence = 1;
  std::int64_t n_pixels = 0;
  double cell_wavelengths = 0;
  std::int64_t n_bins = 0;
  std::int64_t n_inputs = 0;
  std::int64_t n_bad_inputs = 0;   ///< by the layout or station file
  std::int64_t n_dead_inputs = 0;  ///< by power
  bool equalized = false;
  double weight_fraction = 0;  ///< of the last image: pairs in it over those of all good inputs
  std::int64_t events = 0;     ///< of the trigger
  std::int64_t images_not_searched = 0;  ///< by the trigger: an empty bin or a NaN
  std::int64_t events_in_one_bin = 0;    ///< rejected by the trigger: narrow-band
  std::optional<SkyPeak> peak;
  std::vector<WatchedSummary> watched;
};
/// One JSON object.
std::string to_json(const ImageSummary& summary);
/// Lines for people.
std::string to_text(const ImageSummary& summary);

}  // namespace ryle::pipeline
