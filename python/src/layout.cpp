// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include "python/src/bindings.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/telescope/array.hpp"

namespace ryle::python {
namespace {

nb::dict layout_info(const ArrayLayout& array) {
  nb::list antennas, inputs;
  for (const auto& a : array.antennas) antennas.append(nb::make_tuple(a.name, a.enu_m));
  for (const auto& i : array.inputs) inputs.append(nb::make_tuple(i.antenna, i.pol, i.bad));
  nb::dict d;
  d["name"] = array.name;
  d["latitude_deg"] = array.latitude_rad / kDegree_rad;
  d["longitude_deg"] = array.longitude_rad / kDegree_rad;
  d["height_m"] = array.height_m;
  d["antennas"] = antennas;
  d["inputs"] = inputs;
  return d;
}

/// Delays of the cables. @shape [channel][input]
Result<double> cable_delays_s(const ArrayLayout& array, const DenseArray<double, 1>& frequency_hz) {
  std::vector<double> delays;
  for (std::size_t c = 0; c < frequency_hz.size(); ++c)
    for (const auto& input : array.inputs) delays.push_back(cable_delay_s(input, frequency_hz(c)));
  return to_array(std::move(delays), {frequency_hz.size(), array.inputs.size()});
}

}  // namespace

void bind_layout(nb::module_& m) {
  nb::class_<ArrayLayout>(m, "ArrayLayout")
      .def("info", &layout_info)
      .def("cable_delays_s", &cable_delays_s, nb::arg("frequency_hz").noconvert())
      .def(
          "zenith",
          [](const ArrayLayout& array, std::int64_t tai_ns) {
            SkyImage image;
            image.centroid_tai_ns = tai_ns;
            place_at_zenith(image, array);
            return nb::make_tuple(image.center.ra_rad / kDegree_rad,
                                  image.center.dec_rad / kDegree_rad, image.north_angle_rad);
          },
          nb::arg("tai_ns"));
  m.def("read_layout_csv", &read_layout_csv, nb::arg("path"), nb::arg("latitude_deg"),
        nb::arg("longitude_deg"), nb::arg("height_m"));
  m.def("read_lwa_ssmif", &read_lwa_ssmif, nb::arg("path"));
  m.def("read_tart_positions", &read_tart_positions, nb::arg("path"), nb::arg("latitude_deg"),
        nb::arg("longitude_deg"), nb::arg("height_m"));
}

}  // namespace ryle::python
