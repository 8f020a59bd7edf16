// SPDX-License-Identifier: BSD-3-Clause
// What pictures of the sky have in common: plane, scale, words, marks, beam. Private to plot/.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ryle/plot/panel.hpp"
#include "ryle/plot/sky.hpp"

namespace ryle::plot {

/// The plane a picture shows. @shape [y][x]. Throws ConfigError for one that is not there.
std::vector<float> plane_of(const SkyImage& image, const SkyPictureOptions& options);
/// Stokes Q, U, V and the parts of XY: their scale is symmetric about 0.
bool is_signed(const SkyImage& image, const SkyPictureOptions& options);
ColorScale scale_of(const std::vector<float>& plane, bool signed_values,
                    const SkyPictureOptions& options);
/// The scale with its unit.
ColorBar color_bar_of(const SkyImage& image, const SkyPictureOptions& options,
                      const std::vector<float>& plane, double unit_px);

std::string duration_text(double seconds);  ///< "41.8 µs", "8 s"
/// The name of what is shown: the object, else the array.
std::string title_text(const Observation& observation, const SkyPictureOptions& options);
std::string stokes_text(const SkyImage& image, const SkyPictureOptions& options);  ///< "Stokes I"
/// Time, frequency, length, loss.
std::string data_text(const SkyImage& image, const SkyPictureOptions& options);
/// Brightest pixel in units of the scatter, robust: 1.4826 x the median of the distances from it.
std::string noise_text(const std::vector<float>& plane, bool signed_values);
/// Implementation, convolution function, version.
std::string making_text(const SkyImage& image);

/// Something with a name. @unit east, north, up
struct SkyMark {
  std::string name;
  Vector3 enu{};
};
/// What is watched, and the bright sources above the horizon.
std::vector<SkyMark> marks_of(const SkyImage& image, const Observation& observation,
                              const SkyPictureOptions& options);

/// Half-power contour of the synthesized beam at the center. @unit direction cosines; full widths,
/// angle of the major axis from m through l
struct LobeShape {
  double major = 0, minor = 0, angle_rad = 0;
};
std::optional<LobeShape> lobe_of(const SkyImage& image, const Observation& observation);
std::string lobe_text(const LobeShape& lobe);  ///< "beam 3.6 x 3.3 deg"

}  // namespace ryle::plot
