// SPDX-License-Identifier: BSD-3-Clause
// Reads a visibility file of a peer as Ryle does and writes what it got as plain arrays, for the
// peer to compare: read_visibilities FILE DIRECTORY.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/telescope/geometry.hpp"

namespace {

using namespace ryle;

template <class T>
void put(const std::string& path, const std::vector<VisibilityDump>& dumps,
         std::vector<T> VisibilityDump::*values) {
  std::ofstream out(path, std::ios::binary);
  for (const VisibilityDump& dump : dumps) {
    out.write(reinterpret_cast<const char*>((dump.*values).data()),
              static_cast<std::streamsize>((dump.*values).size() * sizeof(T)));
  }
}

void write_arrays(const VisibilityFile& file, const std::string& directory) {
  const Observation& o = file.observation;
  nlohmann::json json{{"telescope", o.array.name},
                      {"n_pols", o.array.n_pols()},
                      {"ra_rad", o.phase_center.ra_rad},
                      {"dec_rad", o.phase_center.dec_rad},
                      {"unit", o.flux_unit},
                      {"notes", o.provenance.notes}};
  for (std::int64_t a = 0; a < o.array.n_antennas(); ++a) {
    const Antenna& antenna = o.array.antennas[static_cast<std::size_t>(a)];
    json["antennas"].push_back(antenna.name);
    json["itrf_m"].push_back(itrf_of_enu(o.array, antenna.enu_m));
  }
  for (const ArrayInput& input : o.array.inputs)
    json["x_angle_rad"].push_back(input.feed_angle_rad);
  for (std::int64_t c = 0; c < o.frequency.n_channels; ++c)
    json["center_hz"].push_back(o.frequency.center_hz(c));
  for (const VisibilityDump& dump : file.dumps) {
    json["centroid_tai_ns"].push_back(dump.centroid_tai_ns);
    json["interval_s"].push_back(dump.interval_s);
    json["n_spectra"].push_back(dump.n_spectra);
    json["shape"] = {dump.n_channels, dump.n_baselines, dump.n_pol_products};
  }
  std::filesystem::create_directories(directory);
  put(directory + "/data", file.dumps, &VisibilityDump::data);
  put(directory + "/counts", file.dumps, &VisibilityDump::counts);
  std::ofstream(directory + "/vis.json") << json.dump(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: read_visibilities FILE DIRECTORY\n");
    return 64;
  }
  try {
    write_arrays(read_visibility_file(argv[1]), argv[2]);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
