// SPDX-License-Identifier: BSD-3-Clause
// What the cost model counts of vis-grid against what the imager builds.
#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/random.hpp"
#include "ryle/engine/image/cpu/cost.hpp"
#include "ryle/engine/image/cpu/uv_plan.hpp"

namespace ryle::image::detail {
namespace {

AllSkyConfig scattered(std::int64_t n_antennas) {
  AllSkyConfig config;
  config.channels = {60e6, 25e3, 1};
  config.n_pixels = 128;
  config.allow_wrap = true;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(n_antennas); ++k) {
    const double r_m = 50 * std::sqrt(uniform(combine(1, k))),
                 angle = 6.2832 * uniform(combine(2, k));
    config.antenna_enu_m.push_back({r_m * std::cos(angle), r_m * std::sin(angle), 0});
    config.inputs.push_back({static_cast<std::int64_t>(k), 0, false});
    config.inputs.push_back({static_cast<std::int64_t>(k), 1, false});
  }
  return config;
}

// Few antennas: hardly two baselines in a place. Many: the plane is full. The count is of the
// widest vectors, whose places are two cells, and may differ where a place is cut at the middle.
TEST(PlacesOfBaselines, AreThoseTheImagerBuilds) {
  double fewest = 1;
  for (const std::int64_t n : {8, 64, 256}) {
    const AllSkyConfig config = scattered(n);
    const auto roles = make_roles(config);
    const auto pairs = make_pairs(config, roles, false);
    UvGeometry geometry = make_uv_geometry(config, cpu_kernels("generic"));
    geometry.cells_per_unit = 2;
    const auto channel = make_uv_channel(config, roles, pairs, geometry, 0, 1);
    const auto built = static_cast<double>(channel.parts[0].groups.size());
    const double counted = places_of_baselines(config);
    EXPECT_NEAR(counted / built, 1, 0.1) << n;
    fewest = std::min(fewest, counted / static_cast<double>(pairs.size()));
  }
  EXPECT_LT(fewest, 0.1);  // 256 antennas
}

TEST(PlacesOfBaselines, CostTheirTimeInEveryChannel) {
  AllSkyConfig config = scattered(64);
  config.channels.n_channels = 5;
  CostModel model = default_cost_model(BackEnd::cpu);
  const auto seconds = [&] {
    for (const auto& p : plan(config, model).paths)
      if (p.path == Path::vis_grid) return p.seconds;
    return 0.0;
  };
  const double before_s = seconds();
  model.vis_place_s += 1e-3;
  EXPECT_NEAR(seconds() - before_s, 5e-3 * places_of_baselines(config), 1e-9);
}

}  // namespace
}  // namespace ryle::image::detail
