// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/statistics.hpp"
#include "ryle/product/covariance.hpp"
#include "ryle/product/picture_products.hpp"
#include "ryle/product/visibility_file.hpp"
#include "ryle/stage/imaging.hpp"
#include "ryle/stage/setup.hpp"

namespace ryle::app {
namespace {

struct ImageArguments {
  std::string file;
  std::string imaginary;
  std::string antennas;
  CovarianceFiles covariance;  // place and time of a covariance pair
  double frequency_mhz = 0;
  std::string output;
  std::string png;
  std::string equalize = "auto";
  stage::ImagingOptions imaging;
  bool overwrite = false;
};

VisibilityFile read_input(const ImageArguments& a) {
  if (a.imaginary.empty()) return read_visibility_file(a.file);
  if (a.antennas.empty())
    throw ConfigError("a covariance pair needs --antennas FILE (name east north height)");
  CovarianceFiles files = a.covariance;
  files.real_path = a.file;
  files.imaginary_path = a.imaginary;
  files.antennas_path = a.antennas;
  files.frequency_hz = a.frequency_mhz * 1e6;
  return read_covariance(files);
}

int run(const Context& context, ImageArguments a) {
  if (a.output.empty() && a.png.empty())
    throw ConfigError("nothing to write: give -o FILE.fits, --png FILE.png or both");
  const VisibilityFile file = read_input(a);
  if (file.dumps.empty()) throw FormatError(a.file + ": holds no integration");
  // Uncalibrated receivers differ in gain by factors: equal weights are then the better picture.
  a.imaging.equalize_inputs =
      a.equalize == "yes" || (a.equalize == "auto" && file.observation.flux_unit != "Jy");
  Queue queue = Queue::cpu();  // this imager has CPU implementations only
  const auto result = stage::make_image(queue, file.observation, file.dumps, a.imaging);
  const image::Config geometry{a.imaging.n_pixels, a.imaging.width, "auto"};
  const std::vector<double> pixels(result.image.pixels.begin(), result.image.pixels.end());
  const auto peak = image::peak_of(geometry, pixels);
  const auto [l, m] = peak.direction;
  const SkyDirection direction =
      direction_of_enu(file.observation.array, {l, m, std::sqrt(std::max(0.0, 1 - l * l - m * m))},
                       result.image.centroid_tai_ns, file.observation.earth_orientation);
  std::vector<std::string> products;
  if (!a.output.empty()) {
    write_fits_image(a.output, result.image, file.observation, a.overwrite);
    products.push_back(a.output);
  }
  if (!a.png.empty()) {
    write_sky_png(a.png, result.image, {}, file.observation, a.overwrite);
    products.push_back(a.png);
  }
  const nlohmann::ordered_json json{{"products", products},
                                    {"implementation", result.implementation},
                                    {"n_samples", result.n_samples},
                                    {"n_pixels", a.imaging.n_pixels},
                                    {"equalized_inputs", a.imaging.equalize_inputs},
                                    {"peak",
                                     {{"l", l},
                                      {"m", m},
                                      {"value", peak.value},
                                      {"sigma", peak.sigmas},
                                      {"ra_deg", direction.ra_rad / kDegree_rad},
                                      {"dec_deg", direction.dec_rad / kDegree_rad}}}};
  if (context.json) {
    fmt::print("{}\n", json.dump());
    return 0;
  }
  fmt::print("{} visibilities -> {} x {} pixels by {}\n", result.n_samples, a.imaging.n_pixels,
             a.imaging.n_pixels, result.implementation);
  fmt::print(
      "brightest point {:.1f} sigma at l = {:.4f}, m = {:.4f} (RA {:.3f} deg, Dec {:.3f} deg)\n",
      peak.sigmas, l, m, direction.ra_rad / kDegree_rad, direction.dec_rad / kDegree_rad);
  for (const auto& p : products) fmt::print("  {}\n", p);
  return 0;
}

}  // namespace

void add_image(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("image", "all-sky image from visibilities (direct Fourier sum)");
  auto a = std::make_shared<ImageArguments>();
  sub->add_option("file", a->file,
                  "visibilities: .ms, .uvfits, .uvh5, or the real part of a covariance FITS pair")
      ->required();
  sub->add_option("--imag", a->imaginary, "imaginary part of a covariance FITS pair");
  sub->add_option("--antennas", a->antennas, "antenna positions of a covariance FITS pair");
  sub->add_option("--frequency-mhz", a->frequency_mhz, "of a covariance FITS pair");
  sub->add_option("--latitude-deg", a->covariance.latitude_deg, "of a covariance FITS pair");
  sub->add_option("--longitude-deg", a->covariance.longitude_deg, "of a covariance FITS pair");
  sub->add_option("--height-m", a->covariance.height_m, "of a covariance FITS pair");
  sub->add_option("--utc", a->covariance.utc, "of a covariance FITS pair; default: from its name");
  sub->add_option("-o,--output", a->output, "FITS image");
  sub->add_option("--png", a->png, "picture");
  sub->add_option("--pixels", a->imaging.n_pixels, "pixels on a side, even")->capture_default_str();
  sub->add_option("--width", a->imaging.width, "direction cosines across; 2 = horizon to horizon")
      ->capture_default_str();
  sub->add_option("--channel-average", a->imaging.channel_average,
                  "channels averaged before imaging")
      ->capture_default_str();
  sub->add_option("--taper", a->imaging.taper_fwhm,
                  "uv taper to a beam this wide (FWHM, direction cosines)");
  sub->add_option("--stokes", a->imaging.stokes, "I, XX or YY")->capture_default_str();
  sub->add_option("--equalize", a->equalize,
                  "divide by the auto-correlations: auto (uncalibrated data), yes, no")
      ->check(CLI::IsMember({"auto", "yes", "no"}));
  sub->add_option("--implementation", a->imaging.implementation, "of the imager")
      ->capture_default_str();
  sub->add_flag("--autos", a->imaging.autocorrelations, "include auto-correlations");
  sub->add_flag("--overwrite", a->overwrite, "replace files of the same name");
  add_common(*sub, context);
  sub->callback([&context, a] { context.action = [&context, a] { return run(context, *a); }; });
}

}  // namespace ryle::app
