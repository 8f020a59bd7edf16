// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "ryle/core/angle.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

struct Extent {
  double center_longitude_deg = 0, center_latitude_deg = 0;
  double x_min = 0, x_max = 0, y_min = 0, y_max = 0;  ///< tangent plane of the center
  double widest_rad = 0;
  std::vector<double> x, y;
};

// Samples seen from the mean of their directions: never a mean of right ascensions.
Extent extent_of(const grid::Positions& p, const double* center_deg) {
  Extent e;
  double s[3] = {};
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    if (std::isnan(p.x[i])) continue;
    s[0] += p.x[i];
    s[1] += p.y[i];
    s[2] += p.z[i];
  }
  double lon = std::atan2(s[1], s[0]), lat = std::atan2(s[2], std::hypot(s[0], s[1]));
  if (center_deg != nullptr) {
    lon = center_deg[0] * kDegree_rad;
    lat = center_deg[1] * kDegree_rad;
  }
  e.center_longitude_deg = std::fmod(lon / kDegree_rad + 360, 360);
  e.center_latitude_deg = lat / kDegree_rad;
  const double t[3] = {std::cos(lat) * std::cos(lon), std::cos(lat) * std::sin(lon), std::sin(lat)};
  e.x.reserve(p.x.size());
  e.y.reserve(p.x.size());
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    if (std::isnan(p.x[i])) continue;
    const double x = -std::sin(lon) * p.x[i] + std::cos(lon) * p.y[i];
    const double y =
        -std::sin(lat) * (std::cos(lon) * p.x[i] + std::sin(lon) * p.y[i]) + std::cos(lat) * p.z[i];
    const double z = t[0] * p.x[i] + t[1] * p.y[i] + t[2] * p.z[i];
    e.widest_rad = std::max(e.widest_rad, std::atan2(std::hypot(x, y), z));
    e.x_min = std::min(e.x_min, x);
    e.x_max = std::max(e.x_max, x);
    e.y_min = std::min(e.y_min, y);
    e.y_max = std::max(e.y_max, y);
    e.x.push_back(x);
    e.y.push_back(y);
  }
  return e;
}

[[noreturn]] void reject(const std::string& text, const std::string& why) {
  throw ConfigError("target \"" + text + "\": " + why +
                    "; auto, a FITS file with a map, or \"center=70.04,36.29 size=55x10deg "
                    "cell=2arcmin proj=SIN frame=icrs\", healpix:2048, "
                    "healpix:nside=2048,order=ring,full and sightlines:FILE.csv work");
}

double angle_deg(const std::string& text, const std::string& word) {
  if (const auto angle_rad = parse_angle_rad(word)) return *angle_rad / kDegree_rad;
  reject(text, "\"" + word + "\" needs a unit: deg, arcmin or arcsec");
}

std::map<std::string, std::string> words_of(const std::string& text) {
  std::map<std::string, std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos ||
        (key != "center" && key != "size" && key != "cell" && key != "proj" && key != "frame"))
      reject(text, "\"" + word + "\" is not understood");
    words[key] = word.substr(equals + 1);
  }
  return words;
}

std::int64_t even(double pixels) { return 2 * static_cast<std::int64_t>(std::ceil(pixels / 2)); }

// "2048", "nside=2048", "order=ring", "frame=galactic", "full".
HealpixRequest healpix_request(const std::string& text, const std::string& words, SkyFrame frame,
                               double cell_rad) {
  HealpixRequest request;
  request.frame = frame;
  std::istringstream in(words);
  for (std::string word; std::getline(in, word, ',');) {
    const auto equals = word.find('=');
    const std::string key = equals == std::string::npos ? "nside" : word.substr(0, equals);
    const std::string value = word.substr(equals == std::string::npos ? 0 : equals + 1);
    if (word == "full") {
      request.full = true;
    } else if (key == "nside") {
      char* end = nullptr;
      request.nside = std::strtoll(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0') reject(text, "\"" + word + "\" is not understood");
    } else if (key == "order" && (value == "ring" || value == "nested" || value == "nest")) {
      request.order = value == "ring" ? HealpixOrder::ring : HealpixOrder::nested;
    } else if (key == "frame") {
      request.frame = parse_sky_frame(value);
    } else {
      reject(text, "\"" + word + "\" is not understood");
    }
  }
  if (request.nside == 0)
    for (request.nside = 1; std::sqrt(kPi / 3) / static_cast<double>(request.nside) > cell_rad;)
      request.nside *= 2;
  return request;
}

std::unique_ptr<SkyCells> make_sight_lines(const std::string& path, SkyFrame samples_frame) {
  SightLineFile file = read_sight_lines(path);
  SkyFrame frame = samples_frame;
  if (file.galactic) frame = SkyFrame::galactic;
  if (file.equatorial && frame == SkyFrame::galactic) frame = SkyFrame::icrs;
  return sight_line_cells(std::move(file.lines), frame);
}

constexpr double kWidestSin_rad = 50 * kDegree_rad;
constexpr double kMaxCells = 1e9;

}  // namespace

void rotate(grid::Positions& p, const std::array<double, 9>& r) {
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    const double x = p.x[i], y = p.y[i], z = p.z[i];
    p.x[i] = r[0] * x + r[1] * y + r[2] * z;
    p.y[i] = r[3] * x + r[4] * y + r[5] * z;
    p.z[i] = r[6] * x + r[7] * y + r[8] * z;
  }
}

namespace {

MapProjection make_map(const std::string& text, const grid::Positions& samples,
                       SkyFrame samples_frame, double cell_rad) {
  if (text != "auto" && text.find('=') == std::string::npos) {
    if (!std::filesystem::exists(text)) reject(text, "there is no such file");
    return MapProjection::read(text);
  }
  auto words = words_of(text == "auto" ? "" : text);
  MapRequest request;
  request.frame = words.count("frame") != 0 ? parse_sky_frame(words["frame"]) : samples_frame;
  grid::Positions turned;
  if (request.frame != samples_frame) {
    turned = samples;
    rotate(turned, frame_rotation(samples_frame, request.frame));
  }
  const grid::Positions& there = request.frame != samples_frame ? turned : samples;
  double center[2] = {};
  if (words.count("center") != 0) {
    const std::string& w = words["center"];
    char* end = nullptr;
    center[0] = std::strtod(w.c_str(), &end);
    if (*end != ',') reject(text, "center= takes longitude,latitude in degrees");
    center[1] = std::strtod(end + 1, &end);
    if (*end != '\0' || std::abs(center[1]) > 90)
      reject(text, "center= takes longitude,latitude in degrees");
  }
  const Extent extent = extent_of(there, words.count("center") != 0 ? center : nullptr);
  const bool whole = words.count("center") + words.count("size") + words.count("proj") == 3;
  if (extent.x.empty() && !whole)
    throw ConfigError("no sample has a place on the sky: there is nothing to map");
  request.center_longitude_deg = extent.center_longitude_deg;
  request.center_latitude_deg = extent.center_latitude_deg;
  request.cell_deg =
      words.count("cell") != 0 ? angle_deg(text, words["cell"]) : cell_rad / kDegree_rad;
  if (!(request.cell_deg > 0)) reject(text, "the cells need a size above 0");
  request.projection = words.count("proj") != 0             ? words["proj"]
                       : extent.widest_rad < kWidestSin_rad ? "SIN"
                                                            : "ZEA";
  double width_deg = 0, height_deg = 0, ends = 1;  // samples at both ends: a pixel more than steps
  if (words.count("size") != 0) {
    const std::string& w = words["size"];
    const auto times = w.find('x');
    const auto unit =
        w.find_first_not_of("0123456789.", times == std::string::npos ? 0 : times + 1);
    if (times == std::string::npos || unit == std::string::npos)
      reject(text, "size= takes WIDTHxHEIGHT and a unit, such as 55x10deg");
    width_deg = angle_deg(text, w.substr(0, times) + w.substr(unit));
    height_deg = angle_deg(text, w.substr(times + 1));
    ends = -1e-6;
  } else if (request.projection == "SIN") {
    // Symmetric about the center, as CRPIX is; in sines, which the map's pixels are.
    width_deg = 2 * std::max(extent.x_max, -extent.x_min) / kDegree_rad;
    height_deg = 2 * std::max(extent.y_max, -extent.y_min) / kDegree_rad;
  } else {
    width_deg = height_deg = 2 * extent.widest_rad / kDegree_rad;
  }
  const double cells = width_deg * height_deg / (request.cell_deg * request.cell_deg);
  if (!(cells < kMaxCells))
    reject(text, fmt::format("{:.3g} cells are too many; larger cells or a smaller size would do",
                             cells));
  request.width = std::max<std::int64_t>(2, even(width_deg / request.cell_deg + ends));
  request.height = std::max<std::int64_t>(2, even(height_deg / request.cell_deg + ends));
  return MapProjection::make(request);
}

}  // namespace

std::unique_ptr<SkyCells> make_sky_cells(const std::string& text, const grid::Positions& samples,
                                         SkyFrame samples_frame, double cell_rad,
                                         double reach_rad) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (kind == "sightlines") return make_sight_lines(rest, samples_frame);
  if (kind != "healpix") return map_cells(make_map(text, samples, samples_frame, cell_rad));
  HealpixRequest request = healpix_request(text, rest, samples_frame, cell_rad);
  request.reach_rad = reach_rad;
  const auto cover = [&](const grid::Positions& p) {
    return healpix_cells(request, p.size(), p.x.data(), p.y.data(), p.z.data());
  };
  if (request.full || request.frame == samples_frame) return cover(samples);
  grid::Positions there = samples;
  rotate(there, frame_rotation(samples_frame, request.frame));
  return cover(there);
}

}  // namespace ryle::pipeline
