// SPDX-License-Identifier: BSD-3-Clause
// FITS image cubes: SIN projection about an ICRS centre, FREQ and STOKES axes (products.md 3).
#include <erfa.h>

#include <cmath>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/product/fits_file.hpp"
#include "ryle/product/image_file.hpp"
#include "ryle/product/publish.hpp"
#include "ryle/product/visibility_layout.hpp"

namespace ryle {
namespace {

using product::FitsFile;

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
  for (std::size_t k = 2; k < image.stokes.size(); ++k) {
    if (image.stokes[k] - image.stokes[k - 1] != image.stokes[1] - image.stokes[0]) {
      throw UnsupportedError("cannot write " + path +
                             ": FITS needs evenly spaced Stokes codes (I Q U V, or XX YY XY YX "
                             "= -5 -6 -7 -8, or one plane a file)");
    }
  }
  if (!(image.cell_direction_cosine > 0)) {
    throw ConfigError("cannot write " + path +
                      ": the pixel size must be a positive direction cosine");
  }
}

/// Right ascension in [0, 360).
double wrapped_deg(double angle_rad) {
  const double angle_deg = std::fmod(angle_rad / kDegree_rad, 360);
  return angle_deg < 0 ? angle_deg + 360 : angle_deg;
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

/// l grows toward smaller x, m toward larger y; l = m = 0 at FITS pixel N/2 + 1 (conventions.md 5).
/// SIN: l = cos(dec) sin(ra - ra0), the same direction cosines the imager uses, so CDELT is the
/// cell in degrees.
void write_wcs(FitsFile& file, const SkyImage& image) {
  const double cell_deg = image.cell_direction_cosine / kDegree_rad;
  const double center = static_cast<double>(image.n_pixels / 2 + 1);
#if RYLE_MUTANT == 709
  write_axis(file, 1, "RA---SIN", "deg", wrapped_deg(image.center.ra_rad), center, cell_deg);
#elif RYLE_MUTANT == 710
  write_axis(file, 1, "RA---SIN", "deg", wrapped_deg(image.center.ra_rad), center - 0.5, -cell_deg);
#else
  write_axis(file, 1, "RA---SIN", "deg", wrapped_deg(image.center.ra_rad), center, -cell_deg);
#endif
  write_axis(file, 2, "DEC--SIN", "deg", image.center.dec_rad / kDegree_rad, center, cell_deg);
  // A single plane made of many channels covers the whole band: its width is the band's.
  const FrequencyAxis& f = image.frequency;
  const bool averaged = image.n_channels == 1 && f.n_channels > 1;
  const double first_hz = averaged ? f.band_center_hz() : f.first_center_hz;
  double step_hz =
      averaged ? f.channel_width_hz * static_cast<double>(f.n_channels) : f.channel_width_hz;
  if (step_hz == 0) step_hz = 1;
  write_axis(file, 3, "FREQ", "Hz", first_hz, 1, step_hz);
  const int stokes_step = image.stokes.size() > 1 ? image.stokes[1] - image.stokes[0] : 1;
  write_axis(file, 4, "STOKES", "", image.stokes.front(), 1, stokes_step);
  file.key("LONPOLE", 180.0);
  file.key("LATPOLE", image.center.dec_rad / kDegree_rad);
  file.key("PV2_1", 0.0, "not slanted: the centre is the pole of l and m");
  file.key("PV2_2", 0.0);
  file.key("RADESYS", std::string("ICRS"));
  file.key("SPECSYS", std::string("TOPOCENT"));
  file.key("RESTFRQ", first_hz, "Hz, centre of the first plane");
}

double modified_julian_date(std::int64_t tai_ns) {
  const auto jd = utc_julian_date(tai_ns);
  return (jd[0] - 2400000.5) + jd[1];
}

std::string now_utc_iso() {
  char text[32] = "";
  int time_is_local = 0;
  int status = 0;
  fits_get_system_time(text, &time_is_local, &status);
  return text;
}

void write_facts(FitsFile& file, const SkyImage& image, const Observation& observation) {
  const ArrayLayout& array = observation.array;
  const Vector3 place = itrf_of_reference(array);
  const std::string name = array.name.empty() ? "UNKNOWN" : array.name;
  file.key("BUNIT", image.unit, "mean of XX and YY for I, not the sum");
  file.key("BTYPE", std::string("Intensity"));
  file.key("OBJECT", product::field_name(observation));
  file.key("TELESCOP", name);
  file.key("INSTRUME", name);
  file.key("OBSERVER",
           observation.observer.empty() ? std::string("unknown") : observation.observer);
  file.key("ORIGIN", std::string("ryle"));
  file.key("CREATOR", "ryle " + std::string(version()));
  file.key("DATE", now_utc_iso(), "file written, UTC");
  file.key("TIMESYS", std::string("UTC"));
  file.key("DATE-OBS", utc_iso(image.start_tai_ns, 6), "first sample");
  file.key("DATE-AVG", utc_iso(image.centroid_tai_ns, 6), "centroid");
  file.key("MJD-OBS", modified_julian_date(image.start_tai_ns), "first sample");
  file.key("MJD-AVG", modified_julian_date(image.centroid_tai_ns), "centroid");
  file.key("EXPTIME", image.exposure_s, "seconds of data in the image");
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
  if (observation.time_source == TimeSource::arrival) {
    file.key("RYLETIME", std::string("UNSYNCHRONISED"), "times rest on packet arrival");
  }
}

void write_content(const std::string& path, const SkyImage& image, const Observation& observation) {
  FitsFile file = FitsFile::create(part_path(path), path);
  LONGLONG axes[4] = {image.n_pixels, image.n_pixels, image.n_channels,
                      static_cast<LONGLONG>(image.stokes.size())};
  int status = 0;
  fits_create_imgll(file.get(), FLOAT_IMG, 4, axes, &status);
  file.check(status, "create");
  write_wcs(file, image);
  write_facts(file, image, observation);
  file.history(product::history_lines(observation));
  file.history(
      {"configuration and all applied corrections: tables RYLE_OBSERVATION, RYLE_APPLIED"});
  if (const int fault = injected_fault("write", path); fault != 0)
    throw IoError::from_errno("write", path, fault);
  fits_write_img_flt(file.get(), 1, 1, static_cast<LONGLONG>(image.pixels.size()),
                     const_cast<float*>(image.pixels.data()), &status);
  file.check(status, "write");
  file.checksum();
  product::append_ryle_tables(file, observation);
  file.close();
}

}  // namespace

void write_fits_image(const std::string& path, const SkyImage& image,
                      const Observation& observation, bool overwrite) {
  check_image(path, image);
  prepare_part(path, overwrite);
  try {
    write_content(path, image, observation);
  } catch (...) {
    discard_part(path);
    throw;
  }
  publish_part(path, overwrite);
}

}  // namespace ryle
