// SPDX-License-Identifier: BSD-3-Clause
// One table of cases for implementations that are compared with the direct sum outside of
// available_implementations(): the CUDA gridder on a GPU, and its functions on the host.
#pragma once
#include <functional>
#include <string>

#include "tests/engine/grid/grid_cases.hpp"

namespace ryle::grid::cases {

struct TableCase {
  std::string name;
  Case c;
  double f32_limit = 2e-6;  ///< of values and weights where the weight exceeds 1
  std::vector<float> weights;
  std::vector<std::uint8_t> flags;
  double min_weight = 1;  ///< of cells whose values and weights are compared

  Samples samples() const {
    Samples s = c.samples;
    s.values = c.data.data();
    if (!weights.empty()) s.weights = weights.data();
    if (!flags.empty()) s.flags = flags.data();
    return s;
  }
};

inline std::vector<Convolution> functions_of_every_kind() {
  const double beam = 2.9 * kArcmin_rad;
  std::vector<Convolution> functions(6, gauss());
  functions[0].function = Function::jinc;
  functions[0].a_rad = 1.55 * beam / 3;
  functions[0].b_rad = 2.52 * beam / 3;
  functions[0].support_rad = beam;
  functions[1] = functions[0];
  functions[1].function = Function::sinc;
  functions[2].function = Function::ellipse;
  functions[2].minor_rad = 0.4 * beam;
  functions[2].major_rad = 0.7 * beam;
  functions[2].position_angle_rad = 0.6;
  functions[2].support_rad = 2.1 * beam;
  functions[3].function = Function::mean;
  functions[3].support_rad = 1.5 * beam;
  functions[4].function = Function::table;
  for (int k = 0; k <= 60; ++k) {
    const double t = 0.03 * beam * k;
    functions[4].table_theta_rad.push_back(t);
    functions[4].table_value.push_back(std::exp(-4 * std::log(2.0) * (t / beam) * (t / beam)));
  }
  functions[4].support_rad = 1.8 * beam;
  functions[5].sigma_rad = 1.2 * kDegree_rad;  // theta^2 from the chord needs its further terms
  functions[5].support_rad = 5 * kDegree_rad;
  return functions;
}

/// Samples 2e-7 or 3e-8 of the support inside or outside the edge of every second cell, behind
/// those of `c`.
inline void add_edge_samples(Case& c, const Convolution& f) {
  const Positions& cells = c.field.cells.directions;
  std::mt19937 random(9);
  std::uniform_real_distribution<double> angle(0, 2 * kPi);
  for (std::size_t i = 0; i < cells.x.size(); i += 2) {
    const double lon = std::atan2(cells.y[i], cells.x[i]), lat = std::asin(cells.z[i]);
    const double beyond = i % 8 < 4 ? 2e-7 : 3e-8;
    const double r = f.support_rad * (1 + (i % 4 == 0 ? beyond : -beyond)), b = angle(random);
    const double to =
        std::asin(std::sin(lat) * std::cos(r) + std::cos(lat) * std::sin(r) * std::cos(b));
    const double by = std::atan2(std::sin(b) * std::sin(r) * std::cos(lat),
                                 std::cos(r) - std::sin(lat) * std::sin(to));
    c.field.lon_deg.push_back((lon + by) / kDegree_rad);
    c.field.lat_deg.push_back(to / kDegree_rad);
  }
}

inline Case edge_case(std::int64_t n_around) {
  const Convolution f = gauss(3);
  Case c = make_case(field(70, 36, 24, 18, n_around), f, 1);
  add_edge_samples(c, f);
  return c;
}

inline void refill(Case& c) {
  const auto n = static_cast<std::int64_t>(c.field.lon_deg.size());
  c.data = values(c.config.n_channels, n);
  c.samples.channel_stride = n;
}

inline std::vector<TableCase> places_of_table() {
  std::vector<TableCase> table;
  struct Place {
    double lon, lat;
  };
  for (const Place p : {Place{0, 0}, {60, 30}, {359.9, -45}, {45, 35.264}, {0.02, 88}, {10, -90}})
    table.push_back({"at latitude " + std::to_string(p.lat),
                     make_case(field(p.lon, p.lat, 19, 14, 900), gauss(), 2),
                     2e-6,
                     {},
                     {}});
  table.push_back({"edge of the support", edge_case(500), 2e-6, {}, {}});
  refill(table.back().c);
  table.push_back({"dense", make_case(field(60, 30, 3, 3, 20'000), gauss(), 1), 2e-6, {}, {}});
  table.push_back({"one sample", make_case(field(60, 30, 9, 5, 1), gauss(), 1), 2e-6, {}, {}, 0.1});
  table.push_back({"one row", make_case(field(60, 30, 33, 1, 400), gauss(), 3), 2e-6, {}, {}});
  // Sight lines here and there, poles among them.
  Case lines = make_case(field(60, 30, 20, 20, 2'000), gauss(), 2);
  Queue queue = Queue::cpu(1);
  const std::vector<double> lon{60, 60.1, 0, 180, 60.2, 59.9, 59.7},
      lat{30, 30.1, 90, -90, 29.8, 30.05, 30.3};
  lines.field.cells = {positions(queue, lon.data(), lat.data(), 7), 0};
  table.push_back({"sight lines", std::move(lines), 2e-6, {}, {}});
  // Cells that are nowhere, positions that are none, samples far from the map.
  Case odd = make_case(field(60, 30, 17, 13, 600), gauss(), 2);
  for (std::size_t i = 0; i < odd.field.cells.directions.x.size(); i += 5)
    odd.field.cells.directions.x[i] = kNaN;
  for (std::size_t k = 0; k < 600; k += 9) odd.field.lat_deg[k] = k % 2 == 0 ? 91 : -30;
  table.push_back({"cells and samples that are nowhere", std::move(odd), 2e-6, {}, {}});
  return table;
}

inline std::vector<TableCase> functions_of_table() {
  std::vector<TableCase> table;
  for (const auto& f : functions_of_every_kind())
    // Negative lobes: sums are small beside their terms, by a factor of up to 3 here.
    table.push_back({"function " + std::to_string(static_cast<int>(f.function)),
                     make_case(field(60, 30, 14, 11, 900), f, 2),
                     6e-6,
                     {},
                     {}});
  return table;
}

inline std::vector<TableCase> weights_of_table() {
  std::vector<TableCase> table;
  constexpr std::size_t kN = 700;
  const Case clean = make_case(field(60, 30, 13, 9, kN), gauss(), 14);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> u(0.2F, 4);
  std::vector<float> weights(14 * kN);
  for (auto& w : weights) w = u(random);
  weights[17] = 0;
  weights[18] = kNaN;
  weights[19] = -1;
  weights[20] = kInf;
  table.push_back({"weights of samples", clean, 2e-6, weights, {}});
  table.push_back({"weights of channels", clean, 2e-6, weights, {}});
  table.back().c.samples.weight_channel_stride = kN;
  std::vector<std::uint8_t> flags(clean.data.size());
  for (std::size_t k = 0; k < flags.size(); k += 11) flags[k] = 1;
  table.push_back({"flags", clean, 2e-6, {}, flags});
  TableCase absent{"absent values", clean, 2e-6, weights, flags};
  for (std::size_t k = 3; k < absent.c.data.size(); k += 7)
    absent.c.data[k] = k % 2 == 0 ? kNaN : -kInf;
  for (std::size_t k = 0; k < kN; ++k) absent.c.data[13 * kN + k] = kNaN;  // a dead channel
  table.push_back(std::move(absent));
  return table;
}

}  // namespace ryle::grid::cases
