// SPDX-License-Identifier: BSD-3-Clause
// What the planner counts on a CPU.
#include "ryle/engine/image/cost_model.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

const PathPrediction& of(const Plan& plan, Path path) {
  for (const auto& p : plan.paths) {
    if (p.path == path) return p;
  }
  throw std::logic_error("no such path");
}

AllSkyConfig array_of(std::int64_t n_spectra) {
  auto c = random_array(64, 128, 2, 50);
  c.channels = {60e6, 25e3, 128};
  c.n_spectra_per_image = n_spectra;
  c.max_relative_error = 1;
  return c;
}

// Vectors and triples of spectra are filled up on a CPU; phasors and the end of an image are there
// for a single spectrum, too.
TEST(AllSkyCpuCost, OneSpectrumCostsAWholeVectorOnTheCpu) {
  CostModel model = default_cost_model(BackEnd::cpu);
  const auto seconds = [&](Path path, std::int64_t n_spectra) {
    return of(plan(array_of(n_spectra), model), path).seconds;
  };
  EXPECT_EQ(seconds(Path::efield, 1), seconds(Path::efield, 16));
  EXPECT_GT(seconds(Path::efield, 17), seconds(Path::efield, 16));
  EXPECT_EQ(seconds(Path::efield_dft, 1), seconds(Path::efield_dft, 3));
  EXPECT_GT(seconds(Path::efield_dft, 4), seconds(Path::efield_dft, 3));
  for (const auto& [path, cost] : {std::pair{Path::efield, &CostModel::efield_pixel_s},
                                   {Path::vis_grid, &CostModel::vis_pixel_s},
                                   {Path::vis_dft, &CostModel::phasor_s},
                                   {Path::efield_dft, &CostModel::phasor_s}}) {
    const double before_s = seconds(path, 1);
    model.*cost += 1e-6;
    EXPECT_GT(seconds(path, 1), before_s + 1e-6 * 128 * 4000) << name(path);
    model.*cost -= 1e-6;
  }
}

// What is spent once decides for one image and not for many.
TEST(AllSkyCpuCost, OneSetOfImagesCountsItsSetUp) {
  CostModel model = default_cost_model(BackEnd::cpu);
  const auto config = array_of(1000);
  const auto endless = plan(config, model);
  ASSERT_EQ(endless.choice, Path::vis_grid);
  const double setup_s = of(endless, Path::vis_grid).setup_s;
  EXPECT_NEAR(setup_s, 128 * 64 * 63 / 2 * model.setup_pair_s + 128 * 128 * model.setup_pixel_s,
              1e-9);
  model.setup_pair_s = 1;
  EXPECT_EQ(plan(config, model).choice, Path::vis_grid);
  const auto one = plan(config, model, false, 1);
  EXPECT_NE(one.choice, Path::vis_grid);
  EXPECT_EQ(of(one, Path::vis_grid).seconds, of(endless, Path::vis_grid).seconds);
  EXPECT_EQ(plan(config, model, false, 1'000'000'000).choice, Path::vis_grid);
}

// Without a calibration: fixed costs scale with the machine, and more workers are faster.
TEST(AllSkyCpuCost, DefaultsScaleWithTheMachine) {
  const auto one = default_cost_model(BackEnd::cpu, 1), four = default_cost_model(BackEnd::cpu, 4);
  const auto fixed = default_cost_model(BackEnd::cpu);
  EXPECT_DOUBLE_EQ(four.vis_dft_ops, 4 * one.vis_dft_ops);
  EXPECT_DOUBLE_EQ(one.phasor_s, 4 * four.phasor_s);
  EXPECT_DOUBLE_EQ(one.efield_fft_ops / fixed.efield_fft_ops, one.vis_dft_ops / fixed.vis_dft_ops);
  EXPECT_GT(one.vis_dft_ops, 0);
  const auto cuda = default_cost_model(BackEnd::cuda, 4);
  EXPECT_EQ(cuda.vis_dft_ops, default_cost_model(BackEnd::cuda).vis_dft_ops);
}

// Sums take as much longer as the cores are slower, what is written as much as the memory is, the
// X-engine as much as a small one does, and gridding lies between; without a speed to compare with
// nothing changes.
TEST(AllSkyCpuCost, FollowsTheSpeedOfTheCores) {
  CostModel model = default_cost_model(BackEnd::cpu);
  model.measured_at = {160e9, 12e9, 900e9};
  const auto seconds = [](const CostModel& m, Path path) {
    return of(plan(array_of(64), m, true), path).seconds;
  };
  const auto slow = at_core_speed(model, {80e9, 12e9, 300e9});
  const auto far = at_core_speed(model, {160e9, 4e9, 900e9});
  EXPECT_EQ(slow.measured_at.ops, 80e9);
  for (const Path path : {Path::efield, Path::vis_dft, Path::efield_dft}) {
    EXPECT_DOUBLE_EQ(seconds(slow, path), 2 * seconds(model, path)) << name(path);
    EXPECT_DOUBLE_EQ(seconds(far, path), seconds(model, path)) << name(path);
  }
  const double grid_s = seconds(model, Path::vis_grid);
  EXPECT_GT(seconds(slow, Path::vis_grid), 1.4 * grid_s);
  EXPECT_LT(seconds(slow, Path::vis_grid), 1.9 * grid_s);
  EXPECT_GT(seconds(far, Path::vis_grid), 1.5 * grid_s);
  EXPECT_DOUBLE_EQ(slow.correlate_ops, model.correlate_ops / 3);
  EXPECT_DOUBLE_EQ(far.correlate_ops, model.correlate_ops);
  EXPECT_DOUBLE_EQ(at_core_speed(model, {80e9, 0, 0}).correlate_ops, model.correlate_ops / 2);
  EXPECT_DOUBLE_EQ(slow.correlate_output_bytes, model.correlate_output_bytes);
  EXPECT_DOUBLE_EQ(far.correlate_output_bytes, model.correlate_output_bytes / 3);
  const auto back = at_core_speed(slow, model.measured_at);
  EXPECT_DOUBLE_EQ(back.correlate_ops, model.correlate_ops);
  EXPECT_DOUBLE_EQ(at_core_speed(model, {}).vis_grid_ops, model.vis_grid_ops);
  model.measured_at = {};
  EXPECT_DOUBLE_EQ(at_core_speed(model, {80e9, 4e9, 1e9}).vis_grid_ops, model.vis_grid_ops);
}

}  // namespace
}  // namespace ryle::image
