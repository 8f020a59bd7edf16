// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <utility>

#include "tests/engine/image/all_sky_cases.hpp"

/// What every implementation of a path must get right.
namespace ryle::image::test {

inline AllSkyCase case_of(std::string label, AllSkyConfig config, std::int64_t n_spectra = 3) {
  AllSkyCase c;
  c.label = std::move(label);
  c.config = std::move(config);
  c.n_spectra = n_spectra;
  c.seed = mix64(c.label.size() + c.config.antenna_enu_m.size());
  return c;
}

/// A different complex aperture of about `width_m` for every antenna and polarization.
inline void give_apertures(AllSkyConfig& c, double width_m) {
  const auto pols = static_cast<std::uint64_t>(n_pols(c));
  c.function.correlated = true;
  for (std::uint64_t e = 0; e < c.antenna_enu_m.size() * pols; ++e) {
    Aperture a;
    a.n = 16;
    a.step_m = width_m / 14;
    const double radius = (5 + 2 * uniform(combine(e, 1))) * a.step_m;
    const double slope = 0.4 * gaussian(combine(e, 2)), shift_m = 0.3 * uniform(combine(e, 3));
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        const double x = (column - 8) * a.step_m - shift_m, y = (row - 8) * a.step_m;
        const double r2 = (x * x + y * y) / (radius * radius);
        a.values.push_back(r2 < 1 ? std::polar(1 - r2, slope * x / radius) : cf64(0));
      }
    }
    c.function.apertures.push_back(std::move(a));
  }
}

// Cases of all paths.
inline std::vector<AllSkyCase> common_cases() {
  std::vector<AllSkyCase> cases;
  cases.push_back(case_of("16 antennas", random_array(16, 64, 2, 22)));
  cases.push_back(case_of("one antenna, nothing left", random_array(1, 64, 2, 5)));
  cases.push_back(case_of("two antennas", random_array(2, 64, 2, 20)));
  cases.back().config.remove_autos = false;
  cases.push_back(case_of("one polarization", random_array(9, 64, 1, 20), 5));
  cases.push_back(case_of("linear products", random_array(9, 64, 2, 20)));
  cases.back().config.products = Products::linear;
  cases.push_back(case_of("intensity", random_array(9, 64, 2, 20)));
  cases.back().config.products = Products::intensity;
  cases.push_back(case_of("ci8, autos kept", random_array(12, 64, 2, 20), 7));
  cases.back().format = SampleFormat::ci8;
  cases.back().config.remove_autos = false;
  cases.push_back(
      case_of("bins of three channels, the last short", random_array(10, 64, 2, 20), 2));
  cases.back().config.channels = {40e6, 5e6, 5};
  cases.back().config.n_channels_per_bin = 3;
  cases.push_back(case_of("losses, gains, gaps", random_array(14, 64, 2, 20), 150));
  cases.back().lost = 0.2;
  cases.back().random_gains = true;
  cases.back().gaps = true;
  cases.back().gulps = {1, 128, 20, 1};
  cases.push_back(case_of("losses that differ between channels", random_array(14, 64, 2, 20), 70));
  cases.back().lost = 0.1;
  cases.back().masks_per_channel = true;
  cases.back().random_gains = true;
  cases.back().format = SampleFormat::ci8;
  cases.back().gulps = {64, 6};
  cases.push_back(case_of("tilted and rough", random_array(16, 64, 2, 24)));
  tilt(cases.back().config, -0.0262, 0.0178, 0.2);
  cases.push_back(case_of("inputs shuffled, some missing", random_array(12, 64, 2, 24), 4));
  auto& inputs = cases.back().config.inputs;
  std::rotate(inputs.begin(), inputs.begin() + 7, inputs.end());
  std::swap(inputs[2], inputs[11]);
  inputs[4].bad = true;
  inputs[5].bad = true;
  inputs.erase(inputs.begin() + 9);
  cases.push_back(case_of("full scale, in phase", random_array(20, 64, 2, 20), 5));
  cases.back().full_scale = true;
  return cases;
}

// Cases of the gridded paths.
inline std::vector<AllSkyCase> grid_cases() {
  auto cases = common_cases();
  for (std::int64_t k = 3; k <= kMaxSupport; ++k) {
    cases.push_back(case_of("support " + std::to_string(k), random_array(12, 64, 2, 30), 2));
    cases.back().config.function.support = k;
  }
  for (const std::int64_t g : {90, 96, 128, 144, 256}) {
    cases.push_back(
        case_of("grid " + std::to_string(g), random_array(15, g, 2, 0.4 * double(g)), 2));
    cases.back().config.channels.n_channels = 1;
  }
  cases.push_back(case_of("aperture 0.9 of the grid", random_array(15, 64, 2, 57)));
  cases.back().config.allow_wrap = true;
  cases.push_back(case_of("aperture 1.6 of the grid", random_array(15, 64, 2, 102)));
  cases.back().config.allow_wrap = true;
  cases.push_back(case_of("cells of 0.4476 wavelengths", random_array(15, 64, 2, 20)));
  cases.back().config.cell_wavelengths = 0.4476;
  return cases;
}

inline AllSkyCase large_case(std::int64_t antennas, std::int64_t g, std::int64_t n_spectra) {
  auto c = case_of(std::to_string(antennas) + " antennas on " + std::to_string(g),
                   random_array(antennas, g, 2, 0.4 * double(g)), n_spectra);
  c.config.channels.n_channels = 1;
  c.random_gains = true;
  return c;
}

inline AllSkyCase aperture_case() {
  auto c = case_of("an aperture per antenna", random_array(10, 64, 2, 20));
  give_apertures(c.config, 10);
  return c;
}

/// LWA-SV, where its station file is present.
inline void add_station_case(std::vector<AllSkyCase>& cases, std::int64_t g) {
  auto config = station_array("lwa/lwasv-ssmif-2022.txt", 60e6, 100);
  if (!config) return;
  config->n_pixels = g;
  cases.push_back(case_of("LWA-SV", *config, 2));
  cases.back().random_gains = true;
}

inline std::vector<AllSkyCase> dft_cases() {
  auto cases = common_cases();
  cases.push_back(case_of("any even size", random_array(12, 74, 2, 20)));
  cases.push_back(case_of("a list of directions", random_array(12, 64, 2, 20)));
  for (int i = 0; i < 101; ++i) {
    const double r = 1.02 * i / 101, angle_rad = 2.4 * i;
    const double n2 = 1 - r * r;
    // The last ones lie below the horizon.
    const double n = n2 > 0 ? std::sqrt(n2) : -0.3, s = n2 > 0 ? r : std::sqrt(0.91);
    cases.back().config.directions.push_back({s * std::cos(angle_rad), s * std::sin(angle_rad), n});
  }
  cases.push_back(case_of("far from flat", random_array(16, 64, 2, 24)));
  tilt(cases.back().config, 0.3, -0.2, 8);
  cases.push_back(large_case(70, 64, 2));
  return cases;
}

/// Cases for a path; check each with check_field_imager() or check_vis_imager().
inline std::vector<AllSkyCase> cases_for(Path path, bool correlated = false) {
  if (path == Path::vis_dft || path == Path::efield_dft) return dft_cases();
  auto cases = grid_cases();
  if (path != Path::vis_grid || correlated) {
    cases.push_back(aperture_case());
    if (path == Path::vis_grid) {
      for (auto& c : cases) c.config.function.correlated = true;
      for (auto& c : cases) c.label += ", correlated functions";
      return cases;
    }
    cases.push_back(large_case(512, 144, 1));
    cases.push_back(large_case(256, 128, 3));
    cases.push_back(case_of("a thousand spectra", random_array(16, 64, 2, 22), 1000));
    cases.back().gulps = {127, 1, 129, 640, 103};
    cases.back().config.channels.n_channels = 1;
    add_station_case(cases, 128);
    return cases;
  }
  cases.push_back(large_case(64, 128, 30));
  cases.push_back(large_case(256, 128, 1));
  return cases;
}

}  // namespace ryle::image::test
