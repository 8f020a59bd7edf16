// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/array.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/csv.hpp"
#include "ryle/telescope/site.hpp"

namespace ryle {
namespace {

constexpr double kLargestOffset_m = 1e7;  // nothing on Earth is further from an array reference

int parse_pol(const detail::CsvTable& table, std::int64_t row) {
  const std::string& text = table.text(row, "pol");
  if (text == "X" || text == "x" || text == "0") return 0;
  if (text == "Y" || text == "y" || text == "1") return 1;
  table.fail(row, "pol = \"" + text + "\" is unknown; use X or Y (or 0, 1)");
}

bool parse_bad(const detail::CsvTable& table, std::int64_t row) {
  if (!table.has("bad")) return false;
  const std::string& text = table.text(row, "bad");
  if (text.empty() || text == "0" || text == "false") return false;
  if (text == "1" || text == "true") return true;
  table.fail(row, "bad = \"" + text + "\" is unknown; use 0 or 1");
}

std::array<double, 3> parse_position(const detail::CsvTable& table, std::int64_t row) {
  const char* columns[3] = {"east_m", "north_m", "up_m"};
  std::array<double, 3> position{};
  for (int axis = 0; axis < 3; ++axis) {
    position[axis] = table.number(row, columns[axis]);
    if (std::abs(position[axis]) > kLargestOffset_m) {
      table.fail(row, std::string(columns[axis]) + " = " + table.text(row, columns[axis]) +
                          " m is beyond 10000 km; offsets from the array reference are wanted, in "
                          "metres east, north and up");
    }
  }
  return position;
}

}  // namespace

namespace detail {

void set_site(ArrayLayout& array, double latitude_deg, double longitude_deg, double height_m) {
  if (!(std::abs(latitude_deg) <= 90)) {
    throw ConfigError("latitude_deg = " + std::to_string(latitude_deg) +
                      " is not between -90 and 90");
  }
  if (!(std::abs(longitude_deg) <= 360)) {
    throw ConfigError("longitude_deg = " + std::to_string(longitude_deg) +
                      " is not between -360 and 360 (east is positive)");
  }
  if (!(std::abs(height_m) <= 1e5)) {
    throw ConfigError("height_m = " + std::to_string(height_m) +
                      " is not within 100 km of the ellipsoid");
  }
  array.latitude_rad = latitude_deg * kDegree_rad;
  array.longitude_rad = longitude_deg * kDegree_rad;
  array.height_m = height_m;
}

std::string base_name(const std::string& path) {
  const auto slash = path.find_last_of('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace detail

std::int64_t ArrayLayout::n_pols() const {
  std::int64_t n = 1;
  for (const auto& input : inputs) n = std::max<std::int64_t>(n, input.pol + 1);
  return n;
}

double cable_delay_s(const ArrayInput& input, double frequency_hz) {
  if (input.cable_dispersion_s == 0) return input.cable_delay_s;
  return input.cable_delay_s + input.cable_dispersion_s * std::sqrt(10e6 / frequency_hz);
}

ArrayLayout read_layout_csv(const std::string& path, double latitude_deg, double longitude_deg,
                            double height_m) {
  ArrayLayout array;
  array.name = detail::base_name(path);
  detail::set_site(array, latitude_deg, longitude_deg, height_m);
  const detail::CsvTable table(path,
                               {"antenna", "east_m", "north_m", "up_m", "pol", "cable_delay_ns"},
                               {"feed_angle_deg", "bad"});
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> known;  // name -> antenna, row
  std::map<std::pair<std::int64_t, int>, std::int64_t> rows;           // (antenna, pol) -> row
  for (std::int64_t row = 0; row < table.n_rows(); ++row) {
    const std::string& name = table.text(row, "antenna");
    if (name.empty()) table.fail(row, "the antenna has no name");
    const auto position = parse_position(table, row);
    const auto [found, is_new] = known.try_emplace(name, array.n_antennas(), row);
    const auto [antenna, first_row] = found->second;
    if (is_new) {
      array.antennas.push_back({name, position});
    } else if (array.antennas[antenna].enu_m != position) {
      table.fail(row, "antenna \"" + name + "\" stands at another place than on line " +
                          std::to_string(table.line(first_row)) +
                          "; both lines of an antenna must give the same position");
    }
    ArrayInput input;
    input.antenna = antenna;
    input.pol = parse_pol(table, row);
    input.cable_delay_s = table.number(row, "cable_delay_ns") * 1e-9;
    if (table.has("feed_angle_deg")) {
      input.feed_angle_rad = table.number(row, "feed_angle_deg") * kDegree_rad;
    }
    input.bad = parse_bad(table, row);
    const auto [earlier, unique] = rows.try_emplace({antenna, input.pol}, row);
    if (!unique) {
      table.fail(row, "antenna \"" + name + "\" pol " + (input.pol == 0 ? "X" : "Y") +
                          " is listed twice (also on line " +
                          std::to_string(table.line(earlier->second)) +
                          "); every input needs its own antenna name and pol");
    }
    array.inputs.push_back(input);
  }
  return array;
}

}  // namespace ryle
