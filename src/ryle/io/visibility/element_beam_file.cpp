// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/element_beam_file.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/hdf5_file.hpp"

namespace ryle {

ElementBeam read_element_beam(const std::string& path) {
  namespace h5 = io::h5;
  const auto file = h5::open_file(path);
  for (const char* name : {"frequency_hz", "zenith_deg", "azimuth_deg", "jones"}) {
    if (!h5::exists(file.get(), name)) {
      throw FormatError(path + ": no table of an element beam: it lacks " + name +
                        " (frequency_hz, zenith_deg, azimuth_deg, jones)");
    }
  }
  ElementBeamTable table;
  table.frequencies_hz = h5::read_doubles(file.get(), "frequency_hz", path);
  table.zenith_rad = h5::read_doubles(file.get(), "zenith_deg", path);
  table.azimuth_rad = h5::read_doubles(file.get(), "azimuth_deg", path);
  for (double& angle : table.zenith_rad) angle *= kDegree_rad;
  for (double& angle : table.azimuth_rad) angle *= kDegree_rad;
  const auto shape = h5::shape_of(file.get(), "jones", path);
  const std::vector<hsize_t> wanted{table.frequencies_hz.size(), table.zenith_rad.size(),
                                    table.azimuth_rad.size(), 2, 2};
  if (shape != wanted) {
    throw FormatError(fmt::format(
        "{}: jones is not [{}][{}][{}][2][2], as its axes of frequency, zenith and azimuth are",
        path, wanted[0], wanted[1], wanted[2]));
  }
  const std::int64_t n = checked_file_product(
      {static_cast<std::int64_t>(wanted[0]), static_cast<std::int64_t>(wanted[1]),
       static_cast<std::int64_t>(wanted[2]), 4},
      "an element beam");
  std::vector<cf32> values(static_cast<std::size_t>(n));
  h5::read_complex(file.get(), "jones", values.data(), values.size(), path);
  table.values.assign(values.begin(), values.end());
  return ElementBeam::table(std::move(table), std::filesystem::path(path).filename().string());
}

ElementBeam element_beam_of(const std::string& text, double feed_angle_rad) {
  const std::string ending = lower_case(std::filesystem::path(text).extension().string());
  return ending == ".h5" || ending == ".hdf5" ? read_element_beam(text)
                                              : ElementBeam::named(text, feed_angle_rad);
}

}  // namespace ryle
