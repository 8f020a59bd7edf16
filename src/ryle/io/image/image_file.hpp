// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle {

/// Codes of planes that FITS has no real-valued code for: -7 and -8 are the complex correlations XY
/// and YX. Ryle keeps Re and Im of XY* = <X conj(Y)> in memory; the FITS writer puts the pair into
/// an HDU "XY" with a COMPLEX axis (1 real, 2 imaginary) and STOKES -7. YX is its conjugate.
inline constexpr int kPlaneReXY = 101;
inline constexpr int kPlaneImXY = 102;

/// How an image was made: one card each.
struct ImageMetadata {
  std::string path;                ///< "vis-grid", "efield", ...
  std::string function;            ///< "ES k 7, cell 0.40 wavelengths"
  std::string gains_id;            ///< which calibration: file name, "sky 2026-11-21T19:00", "none"
  std::string implementation;      ///< "vis-grid/cpu:avx512"
  double loss_ppm = -1;            ///< samples lost of inputs that have power; negative = not known
  std::int64_t n_dead_inputs = 0;  ///< left out for want of power
};

/// A Gaussian with the main lobe of the dirty beam. @unit rad, full widths at half maximum
struct SynthesizedBeam {
  double major_rad = 0;
  double minor_rad = 0;
  double angle_rad = 0;  ///< of the major axis, from the m axis through l
};

/// One image plane set. @shape pixels [stokes][channel][y][x]; NaN below the horizon
struct SkyImage {
  std::int64_t n_pixels = 0;
  std::int64_t n_channels = 1;  ///< planes along frequency ("bins")
  /// Data channels in a bin; the last bin may hold fewer. 0: one each, or all of them when
  /// n_channels is 1.
  std::int64_t n_channels_per_bin = 0;
  /// FITS STOKES codes: 1 I, 2 Q, 3 U, 4 V, -5 XX, -6 YY, or kPlaneReXY with kPlaneImXY last.
  std::vector<int> stokes{1};
  std::vector<float> pixels;
  /// Pairs of valid inputs behind a plane (0: the plane is empty). @shape [stokes][channel], or
  /// [stokes][channel][y][x], or empty
  std::vector<float> weights;
  double cell_direction_cosine = 0;  ///< |CDELT| in direction cosines (SIN projection)
  SkyDirection center;               ///< ICRS of pixel (N/2, N/2) at the centroid of the data
  /// Position angle of the m axis (north of date) at the center, from ICRS north through east.
  double north_angle_rad = 0;
  /// Slope of the array's plane, dz / d east and dz / d north: a source at (l, m, n) lies at
  /// l' = l - alpha (1 - n), m' = m - beta (1 - n) (slant orthographic, image.md 3).
  double plane_alpha = 0;
  double plane_beta = 0;
  FrequencyAxis frequency;  ///< of the data channels that went into the image
  std::int64_t start_tai_ns = 0;
  std::int64_t centroid_tai_ns = 0;
  std::int64_t end_tai_ns = 0;  ///< 0: start + exposure
  double exposure_s = 0;
  std::string unit = "uncalibrated";
  std::optional<SynthesizedBeam> beam;  ///< none: the antennas do not make one (a line, a pair)
  ImageMetadata metadata;

  std::int64_t plane_size() const { return n_pixels * n_pixels; }
};

/// Channels per bin that an image really has, the 0 of its field resolved; throws ConfigError when
/// bins and channels do not fit together.
std::int64_t channels_per_bin(const SkyImage& image);
/// Centers of the image's planes.
/// @eq b summed channels: first center = nu_0 + (b - 1) dnu / 2, step = b dnu (image.md 3)
FrequencyAxis bin_axis(const SkyImage& image);
/// Exact center and width of one bin, also where the last one is short.
struct FrequencyBin {
  double center_hz = 0;
  double width_hz = 0;
  std::int64_t n_channels = 0;
};
FrequencyBin frequency_bin(const SkyImage& image, std::int64_t bin);

/// Center and north angle of an image whose (l, m) are east and north at the array's zenith, for
/// the instant image.centroid_tai_ns (ERFA: precession, nutation, aberration, no refraction).
void place_at_zenith(SkyImage& image, const ArrayLayout& array, const EarthOrientation& eo = {});

/// Rows: the l axis, the m axis and the center of an image, in east, north, up at its centroid.
std::array<Vector3, 3> image_axes(const SkyImage& image, const Observation& observation);

/// A point of an image on the sky, at the instant image.centroid_tai_ns.
struct SkyPosition {
  double l = 0, m = 0;       ///< direction cosines about image.center, slant undone
  Vector3 enu{};             ///< east, north, up; NaN where the image shows no direction
  SkyDirection direction;    ///< ICRS; NaN as enu
  double azimuth_rad = 0;    ///< in [0, 2 pi), from north through east
  double elevation_rad = 0;  ///< negative: below the horizon
};
/// What a point (l', m') of an image, l = m = 0 at image.center, is on the sky: the one source of
/// coordinates in text, JSON, marks, light curves and events. It agrees with the world coordinates
/// of the FITS header to what aberration does across the field: 20.5 arcsec times the chord, at
/// most 29 arcsec in a hemisphere.
/// @eq s = l x + m y + n s_0 with image_axes() x, y, s_0
SkyPosition place_of(const SkyImage& image, const Observation& observation, double l, double m);
/// The point (l', m') that shows a direction; none where it lies behind the plane of the image.
std::optional<std::array<double, 2>> point_of(const SkyImage& image, const Observation& observation,
                                              const SkyDirection& direction);
/// "RA 83.633 deg, Dec 22.014 deg, azimuth 12.00 deg, elevation 45.00 deg".
std::string place_text(const SkyPosition& place);

/// Takes over the output of the imager: pixels [bin][plane][y][x] become [plane][bin][y][x] and the
/// weights [bin][3] of XX, YY and XY* (empty: none) those of each plane: I and Q have those of XX
/// and YY together, U, V, Re and Im XY* those of XY*. Sets n_channels, stokes, pixels, weights.
void take_planes(SkyImage& image, std::span<const float> pixels, std::span<const double> weights,
                 std::int64_t n_bins, const std::vector<int>& planes);

/// FITS image, SIN projection (slant with PV2_1, PV2_2), ICRS, CHECKSUM; fitsverify and astropy
/// accept it without a warning (products.md 3). HDUs: the cube [stokes][freq][y][x]; WEIGHT when
/// the image has weights; XY when it has the cross product; BINS when the last bin is short;
/// RYLE_OBSERVATION, RYLE_APPLIED.
void write_fits_image(const std::string& path, const SkyImage& image,
                      const Observation& observation, bool overwrite);

/// Images one after the other in one FITS file: an image HDU for each integration, every one with
/// the coordinates of its own instant (the sky turns under the array), a table BINS after the first
/// image whose last bin is short (EXTVER: its number), and a table TIMES at the end. An image that
/// cannot be written leaves nothing behind; a file that cannot be mended is given up. Grows under
/// ".NAME.part"; for streams of hours use ImageCubeWriter (image_cube.hpp).
class FitsImageSeries {
 public:
  FitsImageSeries(const std::string& path, const Observation& observation, bool overwrite);
  ~FitsImageSeries();  ///< not published: nothing stays
  FitsImageSeries(const FitsImageSeries&) = delete;
  FitsImageSeries& operator=(const FitsImageSeries&) = delete;
  void append(const SkyImage& image);
  std::int64_t n_images() const;
  void publish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "STEM_20260101T000000.000Z.fits", with nanoseconds where an image is shorter than a second: no
/// two images of a sequence share a name, and names sort in the order of time.
std::string image_file_name(const std::string& stem, const SkyImage& image,
                            const std::string& suffix);

}  // namespace ryle
