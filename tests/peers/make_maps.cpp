// SPDX-License-Identifier: BSD-3-Clause
#include "tests/peers/make_maps.hpp"

#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace {

using namespace ryle;

// Channel 0: the number of the cell; channel 1: 0.5 more.
nlohmann::json write(const SkyCells& cells, const std::string& path) {
  MapMetadata metadata;
  metadata.unit = "K";
  metadata.object = "field";
  metadata.telescope = "GBT";
  metadata.frequency = {1420e6, 1e4, 2};
  metadata.spectral_frame = "LSRK";
  metadata.rest_frequency_hz = 1420.405751768e6;
  metadata.observed_utc = "2024-01-02T03:04:05";
  metadata.beam_fwhm_deg = 0.15;
  metadata.history = {"made to be read by others"};
  const auto n = static_cast<std::size_t>(cells.n_cells());
  const auto writer = cells.create(path, 2, CubeValues::float32, metadata, true);
  std::vector<float> plane(n);
  for (const float more : {0.0F, 0.5F}) {
    for (std::size_t i = 0; i < n; ++i) plane[i] = static_cast<float>(i) + more;
    writer->append(plane.data());
  }
  writer->publish();
  std::vector<double> longitude(n), latitude(n);
  cells.directions(0, cells.n_cells(), longitude.data(), latitude.data());
  return {{"width", cells.width()},
          {"frame", to_string(cells.frame())},
          {"longitude_deg", longitude},
          {"latitude_deg", latitude}};
}

}  // namespace

nlohmann::json write_maps(const std::string& directory) {
  nlohmann::json truth;
  MapRequest request;
  request.width = 12;
  request.height = 9;
  request.cell_deg = 0.05;
  for (const auto& [name, frame, longitude, latitude] :
       {std::tuple{"SIN", SkyFrame::icrs, 23.46, 30.66},
        {"TAN", SkyFrame::fk5, 0.0, 75.0},
        {"ZEA", SkyFrame::galactic, 359.9, -60.0},
        {"CAR", SkyFrame::icrs, 120.0, 0.0},
        {"SFL", SkyFrame::icrs, 200.0, 0.0},
        {"AIT", SkyFrame::galactic, 0.0, 0.0},
        {"STG", SkyFrame::icrs, 10.0, 89.9}}) {
    request.projection = name;
    request.frame = frame;
    request.center_longitude_deg = longitude;
    request.center_latitude_deg = latitude;
    const std::string file = std::string("map_") + name + ".fits";
    truth[file] = write(*map_cells(MapProjection::make(request)), directory + "/" + file);
  }
  HealpixRequest pixels;
  pixels.nside = 32;
  pixels.order = HealpixOrder::ring;
  pixels.reach_rad = 5 * kDegree_rad;
  const double x = std::cos(0.7), y = 0, z = std::sin(0.7);
  truth["healpix_part.fits"] =
      write(*healpix_cells(pixels, 1, &x, &y, &z), directory + "/healpix_part.fits");
  pixels.full = true;
  pixels.nside = 8;
  truth["healpix_full.fits"] =
      write(*healpix_cells(pixels, 0, nullptr, nullptr, nullptr), directory + "/healpix_full.fits");
  truth["sightlines.fits"] = write(
      *sight_line_cells({{"A", 200, 10}, {"B", 20, -10}, {"C", 200.1, 10}}, SkyFrame::galactic),
      directory + "/sightlines.fits");
  return truth;
}
