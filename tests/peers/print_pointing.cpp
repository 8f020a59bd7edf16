// SPDX-License-Identifier: BSD-3-Clause
// print_pointing LATITUDE_DEG LONGITUDE_DEG HEIGHT_M: reads "FRAME UTC DUT1_S LON_DEG LAT_DEG"
// lines, prints the azimuth and elevation in degrees that the beamformer would point at.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/pointing.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  try {
    ryle::ArrayLayout array;
    array.latitude_rad = std::atof(argv[1]) * ryle::kDegree_rad;
    array.longitude_rad = std::atof(argv[2]) * ryle::kDegree_rad;
    array.height_m = std::atof(argv[3]);
    const std::map<std::string, ryle::BeamFrame> frames{{"icrs", ryle::BeamFrame::icrs},
                                                        {"apparent", ryle::BeamFrame::apparent},
                                                        {"hadec", ryle::BeamFrame::hadec}};
    std::string line;
    while (std::getline(std::cin, line)) {
      std::istringstream fields(line);
      std::string frame, utc;
      double dut1_s = 0, lon_deg = 0, lat_deg = 0;
      if (!(fields >> frame >> utc >> dut1_s >> lon_deg >> lat_deg)) return 65;
      ryle::BeamPointing beam;
      beam.name = "b";
      beam.frame = frames.at(frame);
      beam.longitude_rad = lon_deg * ryle::kDegree_rad;
      beam.latitude_rad = lat_deg * ryle::kDegree_rad;
      const ryle::BeamSky sky(array, {beam}, {dut1_s});
      const auto enu = sky.directions_enu(ryle::tai_ns_from_utc_iso(utc))[0];
      std::printf("%.10f %.10f\n", std::atan2(enu[0], enu[1]) / ryle::kDegree_rad,
                  std::asin(enu[2]) / ryle::kDegree_rad);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 70;
  }
  return 0;
}
