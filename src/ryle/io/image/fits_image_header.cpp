// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/image/fits_image_header.hpp"

#include <erfa.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle::io {
namespace {

/// Right ascension in [0, 360).
double wrapped_deg(double angle_rad) {
  const double angle_deg = std::fmod(angle_rad / kDegree_rad, 360);
  return angle_deg < 0 ? angle_deg + 360 : angle_deg;
}

double modified_julian_date(std::int64_t tai_ns) {
  const auto jd = utc_julian_date(tai_ns);
  return (jd[0] - kMjdZero_jd) + jd[1];
}

std::string now_utc_iso() {
  char text[32] = "";
  int time_is_local = 0;
  int status = 0;
  fits_get_system_time(text, &time_is_local, &status);
  return text;
}

bool has_cross_product(const SkyImage& image) {
  const auto n = image.stokes.size();
  return n >= 2 && image.stokes[n - 2] == kPlaneReXY && image.stokes[n - 1] == kPlaneImXY;
}

void check_stokes(const std::string& path, const SkyImage& image) {
  const std::int64_t n_real = n_stokes_planes(image);
  if (n_real == 0) {
    throw UnsupportedError("cannot write " + path +
                           ": an image of the cross product alone; add the planes XX and YY");
  }
  for (std::int64_t k = 0; k < n_real; ++k) {
    const int code = image.stokes[k];
    if (code == 0 || code < -8 || code > 4) {
      throw UnsupportedError(
          "cannot write " + path + ": " + std::to_string(code) +
          " is no Stokes code (1..4, -1..-8; Re XY and Im XY together and last)");
    }
    if (k < 2) continue;
    const auto at = static_cast<std::size_t>(k);
    if (image.stokes[at] - image.stokes[at - 1] != image.stokes[1] - image.stokes[0]) {
      throw UnsupportedError("cannot write " + path +
                             ": FITS needs evenly spaced Stokes codes (I Q U V, or XX YY "
                             "= -5 -6 and the cross product, or one plane a file)");
    }
  }
}

}  // namespace

std::int64_t n_stokes_planes(const SkyImage& image) {
  return static_cast<std::int64_t>(image.stokes.size()) - (has_cross_product(image) ? 2 : 0);
}

void check_image(const std::string& path, const SkyImage& image) {
  const auto n_stokes = static_cast<std::int64_t>(image.stokes.size());
  const std::int64_t size =
      checked_product({image.n_pixels, image.n_pixels, image.n_channels, n_stokes}, "a sky image");
  if (image.n_pixels < 1 || image.n_channels < 1 || n_stokes < 1) {
    throw ConfigError("cannot write " + path +
                      ": the image has no pixels, channels or Stokes planes");
  }
  if (static_cast<std::int64_t>(image.pixels.size()) != size) {
    throw ConfigError("cannot write " + path + ": " + std::to_string(image.pixels.size()) +
                      " pixels, but " + std::to_string(image.n_pixels) + " x " +
                      std::to_string(image.n_pixels) + " x " + std::to_string(image.n_channels) +
                      " channels x " + std::to_string(n_stokes) + " Stokes planes were announced");
  }
  const auto n_weights = static_cast<std::int64_t>(image.weights.size());
  if (n_weights != 0 && n_weights != size && n_weights != n_stokes * image.n_channels) {
    throw ConfigError("cannot write " + path + ": " + std::to_string(n_weights) +
                      " weights; one per plane (" + std::to_string(n_stokes * image.n_channels) +
                      ") or one per pixel would do");
  }
  check_stokes(path, image);
  if (!(image.cell_direction_cosine > 0)) {
    throw ConfigError("cannot write " + path +
                      ": the pixel size must be a positive direction cosine");
  }
  static_cast<void>(channels_per_bin(image));
}

void write_axis(FitsFile& file, int number, const char* type, const char* unit, double value,
                double pixel, double delta) {
  const std::string n = std::to_string(number);
  file.key(("CTYPE" + n).c_str(), std::string(type));
  file.key(("CRPIX" + n).c_str(), pixel);
  file.key(("CRVAL" + n).c_str(), value);
  file.key(("CDELT" + n).c_str(), delta);
  if (*unit != '\0') file.key(("CUNIT" + n).c_str(), std::string(unit));
}

void write_spectral_axes(FitsFile& file, const SkyImage& image, int number, int first_stokes,
                         int stokes_step) {
  FrequencyAxis axis = bin_axis(image);
  const double step_hz = axis.channel_width_hz == 0 ? 1 : axis.channel_width_hz;
  write_axis(file, number, "FREQ", "Hz", axis.first_center_hz, 1, step_hz);
  write_axis(file, number + 1, "STOKES", "", first_stokes, 1, stokes_step);
  file.key("SPECSYS", std::string("TOPOCENT"));
  file.key("RESTFRQ", axis.first_center_hz, "Hz, centre of the first plane");
  const std::int64_t b = channels_per_bin(image);
  file.key("NCHANBIN", static_cast<long long>(b), "data channels summed in a plane");
  const std::int64_t last = frequency_bin(image, image.n_channels - 1).n_channels;
  if (last != b) {
    file.key("LASTBIN", static_cast<long long>(last), "channels in the last, see table BINS");
  }
}

/// l grows toward smaller x, m toward larger y; l = m = 0 at FITS pixel N/2 + 1 (conventions.md 5).
/// SIN: l = cos(dec) sin(ra - ra0), the same direction cosines the imager uses, so CDELT is the
/// cell in degrees. With r the position angle of the m axis, the plane of projection has
///   xi = l cos r + m sin r, eta = m cos r - l sin r
/// and what the slant adds, -(alpha, beta) (1 - n), turns with it into (PV2_1, PV2_2) (Calabretta &
/// Greisen 2002, eq. 59 and 60).
void write_image_wcs(FitsFile& file, const SkyImage& image, int first_stokes, int stokes_step) {
  const double cell_deg = image.cell_direction_cosine / kDegree_rad;
  const double center = static_cast<double>(image.n_pixels / 2 + 1);
  write_axis(file, 1, "RA---SIN", "deg", wrapped_deg(image.center.ra_rad), center, -cell_deg);
  write_axis(file, 2, "DEC--SIN", "deg", image.center.dec_rad / kDegree_rad, center, cell_deg);
  write_spectral_axes(file, image, 3, first_stokes, stokes_step);
  const double c = std::cos(image.north_angle_rad);
  const double s = std::sin(image.north_angle_rad);
  file.key("PC1_1", c, "north of date against ICRS north");
  file.key("PC1_2", -s);
  file.key("PC2_1", s);
  file.key("PC2_2", c);
  file.key("LONPOLE", 180.0);
  file.key("LATPOLE", image.center.dec_rad / kDegree_rad);
  const double alpha = c * image.plane_alpha + s * image.plane_beta;
  const double beta = c * image.plane_beta - s * image.plane_alpha;
  file.key("PV2_1", alpha == 0 ? 0.0 : -alpha, "minus the slope of the array plane, east");
  file.key("PV2_2", beta == 0 ? 0.0 : -beta, "and north");
  file.key("RADESYS", std::string("ICRS"));
}

std::int64_t end_of(const SkyImage& image) {
  return image.end_tai_ns != 0 ? image.end_tai_ns
                               : image.start_tai_ns + std::llround(image.exposure_s * 1e9);
}

namespace {

void write_times(FitsFile& file, const SkyImage& image) {
  file.key("TIMESYS", std::string("UTC"));
  file.key("DATE-OBS", utc_iso(image.start_tai_ns, 6), "first sample");
  file.key("DATE-BEG", utc_iso(image.start_tai_ns, 6), "first sample");
  file.key("DATE-AVG", utc_iso(image.centroid_tai_ns, 6), "centroid: coordinates are for it");
  file.key("DATE-END", utc_iso(end_of(image), 6), "end of the last sample");
  file.key("MJD-OBS", modified_julian_date(image.start_tai_ns), "first sample");
  file.key("MJD-BEG", modified_julian_date(image.start_tai_ns));
  file.key("MJD-AVG", modified_julian_date(image.centroid_tai_ns), "centroid");
  file.key("MJD-END", modified_julian_date(end_of(image)));
  file.key("EXPTIME", image.exposure_s, "seconds of data in the image");
}

void write_place(FitsFile& file, const ArrayLayout& array) {
  const Vector3 place = itrf_of_reference(array);
  file.key("OBSGEO-X", place[0], "ITRF of the array, metres");
  file.key("OBSGEO-Y", place[1]);
  file.key("OBSGEO-Z", place[2]);
  // The same place again, on the IAU 1976 ellipsoid that FITS prescribes: without it astropy warns
  // that it adds them.
  double longitude_rad = 0;
  double latitude_rad = 0;
  double height_m = 0;
  double xyz[3] = {place[0], place[1], place[2]};
  eraGc2gde(6378140.0, 1.0 / 298.2577, xyz, &longitude_rad, &latitude_rad, &height_m);
  file.key("OBSGEO-L", longitude_rad / kDegree_rad, "degrees, IAU 1976 ellipsoid");
  file.key("OBSGEO-B", latitude_rad / kDegree_rad);
  file.key("OBSGEO-H", height_m);
}

/// BPA is from ICRS north through east; the m axis lies at north_angle_rad from it.
void write_beam(FitsFile& file, const SkyImage& image) {
  if (!image.beam) return;
  double angle_deg = std::fmod((image.beam->angle_rad + image.north_angle_rad) / kDegree_rad, 180);
  if (angle_deg > 90) angle_deg -= 180;
  if (angle_deg <= -90) angle_deg += 180;
  file.key("BMAJ", image.beam->major_rad / kDegree_rad, "deg, Gaussian fit of the dirty beam");
  file.key("BMIN", image.beam->minor_rad / kDegree_rad, "deg, at the center of the image");
  file.key("BPA", angle_deg, "deg, major axis, north through east");
}

void write_making(FitsFile& file, const ImageMetadata& metadata) {
  if (!metadata.path.empty()) file.key("IMGPATH", metadata.path, "path of the imager");
  if (!metadata.implementation.empty()) file.key("IMPLEMNT", metadata.implementation, "what ran");
  if (!metadata.function.empty()) file.key("ANTFUNC", metadata.function, "antenna function");
  if (!metadata.gains_id.empty()) file.key("GAINSID", metadata.gains_id, "calibration applied");
  if (metadata.loss_ppm >= 0) file.key("LOSSPPM", metadata.loss_ppm, "samples lost, per million");
  if (metadata.n_dead_inputs > 0) {
    file.key("NDEAD", static_cast<long long>(metadata.n_dead_inputs),
             "inputs without power, left out");
  }
}

}  // namespace

void write_image_metadata(FitsFile& file, const SkyImage& image, const Observation& observation) {
  const ArrayLayout& array = observation.array;
  const std::string name = array.name.empty() ? "UNKNOWN" : array.name;
  file.key("BUNIT", image.unit, "mean of XX and YY for I, not the sum");
  file.key("BTYPE", std::string("Intensity"));
  if (image.stokes.front() >= 1) {
    file.key("POLFRAME", std::string("FEED"), "Q, U are those of the feeds, not of the sky");
  }
  write_beam(file, image);
  file.key("OBJECT", field_name(observation));
  file.key("TELESCOP", name);
  file.key("INSTRUME", name);
  file.key("OBSERVER",
           observation.observer.empty() ? std::string("unknown") : observation.observer);
  file.key("ORIGIN", std::string("ryle"));
  file.key("CREATOR", "ryle " + std::string(version()));
  file.key("DATE", now_utc_iso(), "file written, UTC");
  write_times(file, image);
  write_place(file, array);
  write_making(file, image.metadata);
  if (observation.time_source == TimeSource::arrival) {
    file.key("RYLETIME", std::string("UNSYNCHRONISED"), "times rest on packet arrival");
  }
}

}  // namespace ryle::io
