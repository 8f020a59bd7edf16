// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/site.hpp"

namespace ryle {

ArrayLayout read_tart_positions(const std::string& path, double latitude_deg, double longitude_deg,
                                double height_m) {
  ArrayLayout array;
  array.name = "TART";
  detail::set_site(array, latitude_deg, longitude_deg, height_m);
  const std::string text = read_text_file(path);
  nlohmann::json root;
  try {
    root = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw FormatError(path + ": not JSON at byte " + std::to_string(error.byte) +
                      "; {\"antenna_positions\": [[east, north, up], ...]} is wanted");
  }
  const auto& list = root.is_object() ? root["antenna_positions"] : root;
  if (!list.is_array() || list.empty()) {
    throw FormatError(path +
                      ": \"antenna_positions\" is missing or not a list; a list of [east, "
                      "north, up] in metres is wanted");
  }
  for (const auto& entry : list) {
    Antenna antenna;
    antenna.name = "TART" + std::to_string(array.n_antennas());
    bool good = entry.is_array() && entry.size() == 3;
    for (int axis = 0; good && axis < 3; ++axis) {
      good = entry[axis].is_number();
      if (good) antenna.enu_m[axis] = entry[axis].get<double>();
      good = good && std::isfinite(antenna.enu_m[axis]);
    }
    if (!good) {
      throw FormatError(path + ": antenna_positions[" + std::to_string(array.n_antennas()) +
                        "] = " + entry.dump() + " is not [east, north, up] in metres");
    }
    ArrayInput input;
    input.antenna = array.n_antennas();
    array.antennas.push_back(antenna);
    array.inputs.push_back(input);
  }
  return array;
}

}  // namespace ryle
