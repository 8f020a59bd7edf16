// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/geometry.hpp"

/// What a beam sees: its power pattern with the weights as they are multiplied.
/// @eq P(s) = |sum_a W_a E(s) exp(+2 pi i nu (r_a . s / c - cable_a))|^2 / |sum_a |W_a||^2, E the
/// amplitude of an element (beamform.md 4)
namespace ryle::beamform {

enum class ElementPattern : std::uint8_t {
  isotropic,
  cosine,    ///< power cos(angle from the axis)^n
  aperture,  ///< a uniform rectangle width_x by width_y across the axis
};
struct Element {
  ElementPattern pattern = ElementPattern::isotropic;
  double exponent = 1;   ///< cosine
  double width_x_m = 0;  ///< aperture
  double width_y_m = 0;
  /// Where the elements point, east, north, up: a dish is steered, a dipole looks up. Behind the
  /// axis an element sees nothing (isotropic ones see everything).
  Vector3 axis{0, 0, 1};
  /// Of the aperture's x side, at right angles to the axis; its y side is axis x x_side.
  Vector3 x_side{1, 0, 0};
};
/// An element with these sizes turned to a direction: x_side level (along the horizon), as an
/// azimuth-elevation mount holds it; east for the zenith.
Element pointed(Element element, const Vector3& enu);

/// i8 codes times their scale, as the beamformer uses them; `weights` of one beam and channel, one
/// pol.
std::vector<cf32> quantized_weights(std::span<const cf32> weights);

/// Pattern of one beam of one polarization at one frequency.
class BeamPattern {
 public:
  /// `inputs` of the layout that belong to the pol, in the order of the weights. Throws ConfigError
  /// when sizes differ or all weights are 0.
  BeamPattern(const ArrayLayout& array, std::span<const std::int64_t> inputs,
              std::span<const cf32> weights, double frequency_hz, const Element& element = {});
  /// Power toward a unit vector (east, north, up); below the horizon 0.
  double power(const Vector3& enu) const;

 private:
  struct Term {
    double turns[3];  ///< per direction cosine
    cf64 weight;      ///< cable included, normalized
  };
  std::vector<Term> terms_;
  Element element_;
  double frequency_hz_;
};

/// Axes at a direction: x east, y toward the pole (north where the direction is the pole).
struct TangentFrame {
  Vector3 x{}, y{}, s{};
  /// (l, m) direction cosines -> unit vector; {0, 0, 0} outside the sphere.
  Vector3 at(double l, double m) const;
};
TangentFrame tangent_frame(const Vector3& enu, double latitude_rad);

/// @shape power [y][x], x toward smaller l (as pictures of the sky), center at (N/2, N/2); NaN
/// below the horizon and outside the sphere
struct PatternGrid {
  std::int64_t n_pixels = 0;
  double cell = 0;  ///< direction cosine
  std::vector<float> power;
};
PatternGrid pattern_grid(const BeamPattern& pattern, const TangentFrame& frame,
                         std::int64_t n_pixels, double half_width);

/// Numbers of a main lobe. @unit rad; angle from y (north) through x (east)
struct LobeShape {
  double widest_rad = 0;  ///< full width at half power
  double narrowest_rad = 0;
  double angle_of_widest_rad = 0;
  double peak = 0;  ///< of the pattern toward the pointing
  double sidelobe_db =
      0;  ///< highest maximum of the grid outside the main lobe, re peak; NaN: none
};
/// `pointing` is the center of the frame. Widths are searched up to half_width.
LobeShape lobe_shape(const BeamPattern& pattern, const TangentFrame& frame, const PatternGrid& grid,
                     double half_width);

/// Loss of S/N (dB) of weights against others of the same array: |sum W g|^2 / sum |W|^2 toward the
/// direction both are steered to.
double weight_loss_db(std::span<const cf32> weights, std::span<const cf32> ideal);

}  // namespace ryle::beamform
