// SPDX-License-Identifier: BSD-3-Clause
// The planner (T-EP-12): predictions of the design, the choice, forced paths; bad configurations;
// names of paths and implementations.
#include "ryle/core/error.hpp"
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

// The array of the design's tables: a box of 0.36 x 0.44 of the grid, flat.
AllSkyConfig table_config(std::int64_t antennas, std::int64_t g, std::int64_t n_spectra) {
  auto c = random_array(antennas, g, 2, 10);
  c.channels = {60e6, 25e3, 128};
  c.cell_wavelengths = 0.4476;
  c.n_spectra_per_image = n_spectra;
  c.max_relative_error = 1;
  const double cell_m = 0.4476 * 299792458.0 / c.channels.center_hz(127);
  const double x_m = (0.44 * double(g) - 7) * cell_m, y_m = (0.36 * double(g) - 7) * cell_m;
  for (auto& p : c.antenna_enu_m) {
    p[0] = std::clamp(p[0], -x_m / 2, x_m / 2);
    p[1] = std::clamp(p[1], -y_m / 2, y_m / 2);
  }
  c.antenna_enu_m.front() = {-x_m / 2, -y_m / 2, 0};
  c.antenna_enu_m.back() = {x_m / 2, y_m / 2, 0};
  return c;
}

// bench/results/h200/cuda.jsonl: 256 antennas in an ellipse of 89 m x 110 m, 128^2 pixels, 1000
// spectra, correlator included.
TEST(AllSkyPlan, PredictsWhatAnH200Measured) {
  struct Row {
    Path path;
    std::int64_t channels, support;
    double center_hz, seconds;
    bool correlated = false;
  };
  const Row rows[] = {
      {Path::vis_grid, 128, 5, 60e6, 0.961e-3},       {Path::vis_grid, 128, 7, 60e6, 1.124e-3},
      {Path::vis_grid, 128, 5, 30e6, 0.986e-3},       {Path::vis_grid, 128, 5, 84e6, 0.986e-3},
      {Path::vis_grid, 128, 7, 60e6, 1.773e-3, true}, {Path::vis_dft, 128, 7, 60e6, 4.777e-3},
      {Path::efield, 132, 7, 60e6, 9.99e-3},          {Path::efield, 132, 7, 30e6, 7.99e-3},
      {Path::efield, 132, 7, 84e6, 11.51e-3},         {Path::efield_half, 132, 7, 60e6, 5.715e-3},
      {Path::efield_half, 132, 7, 30e6, 5.499e-3},    {Path::efield_half, 132, 7, 84e6, 6.877e-3},
      {Path::efield_dft, 132, 7, 60e6, 14.25e-3}};
  for (const auto& row : rows) {
    auto c = random_array(256, 128, 2, 10);
    c.channels = {row.center_hz, 25e3, row.channels};
    c.cell_wavelengths = 0.4;
    c.n_spectra_per_image = 1000;
    c.max_relative_error = 1;
    c.function.support = row.support;
    c.function.correlated = row.correlated;
    for (auto& p : c.antenna_enu_m) {
      p[0] = std::clamp(p[0], -44.0, 44.0);
      p[1] = std::clamp(p[1], -54.0, 54.0);
    }
    c.antenna_enu_m.front() = {-44, -54, 0};
    c.antenna_enu_m.back() = {44, 54, 0};
    const auto p = plan(c, default_cost_model(BackEnd::cuda));
    EXPECT_NEAR(of(p, row.path).seconds, row.seconds, 0.2 * row.seconds)
        << name(row.path) << ", support " << row.support << ", " << row.center_hz;
  }
}

TEST(AllSkyPlan, CountsTheCorrelatorOnce) {
  const auto p = plan(table_config(256, 128, 1000), default_cost_model(BackEnd::cuda));
  const auto free = plan(table_config(256, 128, 1000), default_cost_model(BackEnd::cuda), true);
  // Measured: 0.1975 ms of 0.961 ms.
  EXPECT_NEAR(of(p, Path::vis_grid).seconds - of(free, Path::vis_grid).seconds, 0.1975e-3, 0.06e-3);
  EXPECT_EQ(of(free, Path::efield).seconds, of(p, Path::efield).seconds);
  EXPECT_LT(of(free, Path::vis_grid).bytes, of(p, Path::vis_grid).bytes);
}

// Time per product of a correlator alone, from the difference that it makes.
double correlator_s(std::int64_t antennas, const CostModel& model) {
  const auto config = table_config(antennas, 128, 1000);
  return of(plan(config, model), Path::vis_dft).seconds -
         of(plan(config, model, true), Path::vis_dft).seconds;
}

TEST(AllSkyPlan, CorrelatorsOfAnySize) {
  CostModel model = default_cost_model(BackEnd::cpu);
  model.correlate_output_bytes = 1e30;
  model.correlate_ops = 1e12;
  const auto flat_s = [](double n) { return 128 * 4 * n * (n + 1) * 1000 / 1e12; };
  model.correlate_shares.clear();
  EXPECT_NEAR(correlator_s(20, model), flat_s(40), 1e-6 * flat_s(40));
  model.correlate_shares = {{32, 0.1}, {128, 0.3}, {512, 1}};
  // Known numbers of inputs, half-way between their logarithms, beyond both ends.
  for (const auto& [antennas, share] : {std::pair<std::int64_t, double>{64, 0.3},
                                        {32, 0.2},
                                        {128, 0.65},
                                        {256, 1},
                                        {300, 1},
                                        {8, 0.1}}) {
    const double want_s = flat_s(2.0 * static_cast<double>(antennas)) / share;
    EXPECT_NEAR(correlator_s(antennas, model), want_s, 1e-6 * want_s) << antennas;
  }
}

// Records of baselines: 64 bytes each per channel for k = 7, 112 for functions on baselines.
TEST(AllSkyPlan, MemoryOfTheWeightsOfBaselines) {
  auto config = table_config(64, 128, 1000);
  const auto bytes = [&] {
    return of(plan(config, default_cost_model(BackEnd::cpu), true), Path::vis_grid).bytes;
  };
  const auto at = [&](std::int64_t channels) {
    config.channels.n_channels = config.n_channels_per_bin = channels;
    return bytes();
  };
  const std::int64_t baselines = 64 * 63 / 2, antennas_bytes = 64 * 8 * 8;
  EXPECT_EQ(at(20) - at(10), 10 * (baselines * 64 + antennas_bytes));
  config.function.correlated = true;
  EXPECT_EQ(at(20) - at(10), 10 * (baselines * 112 + antennas_bytes));
}

// The table "fastest path" of image.md 6 at G = 128.
TEST(AllSkyPlan, ChoosesTheFastestPathOfTheDesign) {
  using enum Path;
  struct Row {
    std::int64_t antennas;
    std::array<Path, 5> at;  // T = 1, 10, 100, 1000, 25000
  };
  const Row rows[] = {{32, {efield_dft, efield_dft, vis_dft, vis_dft, vis_dft}},
                      {64, {efield_dft, efield_dft, vis_grid, vis_grid, vis_grid}},
                      {128, {efield_half, efield_half, vis_grid, vis_grid, vis_grid}},
                      {256, {efield_half, efield_half, efield_half, vis_grid, vis_grid}},
                      {512, {efield_half, efield_half, efield_half, vis_grid, vis_grid}},
                      {2048, {efield_half, efield_half, efield_half, efield_half, vis_grid}}};
  const std::int64_t times[] = {1, 10, 100, 1000, 25000};
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < 5; ++k) {
      const auto p =
          plan(table_config(row.antennas, 128, times[k]), default_cost_model(BackEnd::cuda));
      // The equations are simplified: within 15 % of the best counts (T-EP-12).
      EXPECT_LE(of(p, row.at[k]).seconds, 1.15 * of(p, p.choice).seconds)
          << row.antennas << " T " << times[k] << " chose " << name(p.choice);
      for (const auto& each : p.paths) {
        if (each.why_not.empty()) {
          EXPECT_LE(of(p, p.choice).seconds, each.seconds);
        }
      }
      EXPECT_NE(p.reason.find("fastest within the limits"), std::string::npos) << p.reason;
    }
  }
}

TEST(AllSkyPlan, SaysWhyNot) {
  auto c = table_config(64, 128, 1000);
  auto p = plan(c, default_cost_model(BackEnd::cpu));
  EXPECT_FALSE(of(p, Path::efield_half).possible);
  EXPECT_NE(of(p, Path::efield_half).why_not.find("no fast code"), std::string::npos);
  ASSERT_EQ(p.paths.size(), 5u);
  EXPECT_EQ(p.paths[0].path, Path::efield);
  EXPECT_EQ(p.paths[4].path, Path::efield_dft);

  c.directions = {{0, 0, 1}};
  p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_NE(of(p, Path::vis_grid).why_not.find("list of directions"), std::string::npos);
  EXPECT_TRUE(p.choice == Path::vis_dft || p.choice == Path::efield_dft);
  c.directions.clear();

  // k = 3 is a rough function: only the Fourier sums are within 1e-4.
  c.function.support = 3;
  c.max_relative_error = 1e-4;
  p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_TRUE(of(p, Path::vis_grid).possible);
  EXPECT_NE(of(p, Path::vis_grid).why_not.find("max_relative_error"), std::string::npos);
  EXPECT_EQ(p.choice, Path::vis_dft);
  c.function.support = 7;

  tilt(c, 0.1, 0.1, 0);
  EXPECT_NEAR(plan(c, default_cost_model(BackEnd::cuda)).coherence, 1, 1e-9);  // a plane is no loss
  tilt(c, 0, 0, 2);
  p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_LT(p.coherence, 0.9);
  EXPECT_NE(of(p, Path::vis_grid).why_not.find("not flat"), std::string::npos);
  EXPECT_TRUE(of(p, Path::vis_grid).possible);
  EXPECT_FALSE(p.choice == Path::vis_grid || p.choice == Path::efield);
  // By name it is made nevertheless, and the reason says what it costs.
  c.path = Path::vis_grid;
  p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_EQ(p.choice, Path::vis_grid);
  EXPECT_NE(p.reason.find("asked for by name, although"), std::string::npos) << p.reason;
}

// The error of the heights stands beside every gridded path, with a warning only where it was asked
// for in spite of it.
TEST(AllSkyPlan, SaysWhatTheHeightsCost) {
  auto c = table_config(64, 128, 1000);
  tilt(c, 0.02, -0.03, 0.15);
  auto p = plan(c, default_cost_model(BackEnd::cuda));
  const double z_rad = c.max_zenith_distance_rad;
  const double rms_m = fit_plane(c).residual_rms_m;
  const double phase_rad =
      2 * kPi * c.channels.center_hz(127) / 299792458.0 * rms_m * (1 - std::cos(z_rad));
  for (const auto& path : p.paths) {
    const bool exact = path.path == Path::vis_dft || path.path == Path::efield_dft;
    EXPECT_NEAR(path.height_phase_rad, exact ? 0 : phase_rad, 1e-12) << name(path.path);
    // Small phases: their variance, phi^4 / 4 and more left out.
    EXPECT_NEAR(path.height_error, exact ? 0 : phase_rad * phase_rad * 64 / 63, 3e-3);
  }
  EXPECT_GT(of(p, Path::vis_grid).height_error, 0.005);
  EXPECT_EQ(p.choice, Path::vis_grid);
  EXPECT_EQ(p.warning, "");
  tilt(c, 0, 0, 2);
  p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_FALSE(p.choice == Path::vis_grid || p.choice == Path::efield);
  EXPECT_EQ(p.warning, "");
  c.path = Path::vis_grid;
  p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_NE(p.warning.find("m rms off its plane lose"), std::string::npos) << p.warning;
  EXPECT_NE(p.warning.find("vis-dft"), std::string::npos) << p.warning;
  c.path = Path::vis_dft;
  EXPECT_EQ(plan(c, default_cost_model(BackEnd::cuda)).warning, "");
}

TEST(AllSkyPlan, ForcedPathsAreTakenOrRejected) {
  auto c = table_config(32, 128, 10);
  for (const Path path :
       {Path::efield, Path::efield_half, Path::vis_grid, Path::vis_dft, Path::efield_dft}) {
    c.path = path;
    const auto p = plan(c, default_cost_model(BackEnd::cuda));
    EXPECT_EQ(p.choice, path);
    EXPECT_EQ(p.reason, "asked for by name");
  }
  c.path = Path::efield_half;
  EXPECT_THROW(plan(c, default_cost_model(BackEnd::cpu)), ConfigError);
}

// What a CUDA imager would reject when it is made is not chosen.
TEST(AllSkyPlan, KnowsWhatCudaCannotDo) {
  const auto model = default_cost_model(BackEnd::cuda);
  auto p = plan(aperture_case().config, model);
  EXPECT_TRUE(of(p, Path::efield).possible);
  EXPECT_TRUE(of(p, Path::vis_grid).possible);
  EXPECT_FALSE(of(p, Path::efield_half).possible);
  EXPECT_NE(
      of(p, Path::efield_half).why_not.find("apertures per antenna have no CUDA code in half"),
      std::string::npos)
      << of(p, Path::efield_half).why_not;
  EXPECT_FALSE(of(p, Path::vis_dft).possible);
  EXPECT_FALSE(of(p, Path::efield_dft).possible);
  p = plan(table_config(2048, 128, 10), model);
  EXPECT_FALSE(of(p, Path::efield_half).possible);
  EXPECT_NE(of(p, Path::efield_half).why_not.find("shared memory"), std::string::npos);
  EXPECT_FALSE(of(p, Path::efield_dft).possible);
  EXPECT_TRUE(of(p, Path::efield).possible);
  p = plan(random_array(256, 256, 2, 180), model);
  EXPECT_NE(of(p, Path::efield_half).why_not.find("rows of cells"), std::string::npos);
  EXPECT_TRUE(of(plan(table_config(256, 128, 10), model), Path::efield_half).possible);
}

// One H200, 200 spectra of 16 channels, support 7, seconds per channel.
TEST(AllSkyPlan, AperturesCostOnCudaWhatWasMeasured) {
  struct Row {
    std::int64_t antennas, pixels;
    Path path;
    double us;
  };
  const Row rows[] = {{64, 128, Path::efield, 200 * 0.952 + 6.0},
                      {64, 256, Path::efield, 200 * 3.788 + 11.5},
                      {256, 128, Path::efield, 200 * 1.011 + 13.7},
                      {256, 256, Path::efield, 200 * 3.850 + 19.2},
                      {64, 128, Path::vis_grid, 35.8},
                      {256, 128, Path::vis_grid, 506.2}};
  const auto model = default_cost_model(BackEnd::cuda);
  for (const auto& row : rows) {
    auto c = random_array(row.antennas, row.pixels, 2, 0.43 * static_cast<double>(row.pixels));
    c.channels.n_channels = 1;
    c.n_spectra_per_image = 200;
    give_apertures(c, 10);
    const double us = 1e6 * of(plan(c, model, true), row.path).seconds;
    EXPECT_NEAR(us / row.us, 1, 0.15) << name(row.path) << " " << row.antennas << " antennas on "
                                      << row.pixels << ": " << us << " us";
  }
}

TEST(AllSkyPlan, MemoryIsALimit) {
  auto c = table_config(256, 128, 1000);
  c.channels.n_channels = 792;
  const auto all = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_GT(of(all, Path::vis_grid).bytes, std::int64_t{1} << 31);  // 512 inputs x 792 channels
  EXPECT_LT(of(all, Path::efield).bytes, std::int64_t{1} << 30);
  c.max_bytes = std::int64_t{1} << 30;
  const auto p = plan(c, default_cost_model(BackEnd::cuda));
  EXPECT_FALSE(of(p, Path::vis_grid).possible);
  EXPECT_NE(of(p, Path::vis_grid).why_not.find("GiB"), std::string::npos);
  EXPECT_TRUE(takes_voltages(p.choice));
  c.max_bytes = 1000;
  try {
    plan(c, default_cost_model(BackEnd::cuda));
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("no path fits"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("efield-dft: it needs"), std::string::npos) << e.what();
  }
  c.path = Path::efield;
  c.implementation = "reference";
  Queue queue = Queue::cpu(1);
  EXPECT_THROW(make_field_imager(queue, c), ConfigError);
}

// image.md 2: error of LWA-SV, rms over r < 0.8.
TEST(AllSkyPlan, PredictsTheGriddingError) {
  struct Row {
    std::int64_t support;
    double cell, correlated, direct;
  };
  for (const auto& row : {Row{5, 0.4476, 5.0e-5, 0}, Row{7, 0.4476, 6.1e-6, 0},
                          Row{5, 0.40, 1.5e-5, 4.5e-5}, Row{7, 0.40, 9.8e-7, 2.9e-6}}) {
    auto c = table_config(255, 128, 1000);
    c.cell_wavelengths = row.cell;
    c.function.support = row.support;
    const auto p = plan(c, default_cost_model(BackEnd::cuda));
    EXPECT_NEAR(of(p, Path::efield).relative_error, row.correlated, 0.2 * row.correlated);
    if (row.direct > 0) {
      EXPECT_NEAR(of(p, Path::vis_grid).relative_error, row.direct, 0.2 * row.direct);
    }
  }
}

// ---- configurations ------------------------------------------------------------------------

void expect_rejected(const AllSkyConfig& c, const std::string& words) {
  try {
    validate(c);
    ADD_FAILURE() << "not refused: " << words;
  } catch (const ConfigError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find(words), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos);
  }
}

TEST(AllSkyConfigs, BadOnesAreRejectedWithTheValue) {
  const AllSkyConfig good = random_array(4, 64, 2, 20);
  validate(good);
  const auto with = [&](auto&& change) {
    AllSkyConfig c = good;
    change(c);
    return c;
  };
  const double nan = std::nan("");
  expect_rejected(with([](auto& c) { c.antenna_enu_m.clear(); }), "no antennas");
  expect_rejected(with([&](auto& c) { c.antenna_enu_m[2][1] = nan; }), "antenna 2 lies at");
  expect_rejected(with([](auto& c) { c.inputs.clear(); }), "no inputs");
  expect_rejected(with([](auto& c) { c.inputs[3].antenna = 4; }),
                  "input 3 belongs to antenna 4, but there are 4 antennas (0 to 3): the station "
                  "file does not match");
  expect_rejected(with([](auto& c) { c.inputs[3].pol = 2; }), "input 3 has polarization 2");
  expect_rejected(with([](auto& c) { c.inputs[3].pol = 0; }),
                  "input 3 is antenna 1 polarization X, as an earlier");
  expect_rejected(with([](auto& c) {
                    for (auto& i : c.inputs) i.bad = true;
                  }),
                  "all 8 inputs are marked bad");
  expect_rejected(with([](auto& c) { c.channels.n_channels = 0; }), "n_channels is 0");
  expect_rejected(with([](auto& c) { c.channels.first_center_hz = 0; }),
                  "first channel is at 0 Hz");
  expect_rejected(with([](auto& c) { c.channels.channel_width_hz = -1; }), "must ascend");
  expect_rejected(with([](auto& c) { c.n_channels_per_bin = 0; }), "n_channels_per_bin is 0");
  expect_rejected(with([](auto& c) { c.n_spectra_per_image = 0; }), "n_spectra_per_image is 0");
  expect_rejected(with([](auto& c) { c.n_pixels = 63; }), "63 pixels");
  expect_rejected(with([](auto& c) { c.n_pixels = 1 << 20; }), "even, from 2 to 8192");
  expect_rejected(with([&](auto& c) { c.cell_wavelengths = nan; }), "cell_wavelengths is nan");
  expect_rejected(with([](auto& c) {
                    c.directions = {{0, 0, 1}, {1, 1, 0}};
                  }),
                  "direction 1 (1, 1, 0) has length 1.41");
  expect_rejected(with([](auto& c) { c.function.support = 2; }), "support must be 3 to 9");
  expect_rejected(with([](auto& c) { c.function.support = 10; }), "10 cells");
  expect_rejected(with([](auto& c) { c.function.beta_per_cell = 0; }), "beta_per_cell is 0");
  expect_rejected(with([](auto& c) { c.function.apertures.resize(3); }), "3 apertures for 8");
  expect_rejected(with([](auto& c) { c.function.apertures.resize(8); }), "aperture 0: 0 values");
  expect_rejected(with([](auto& c) { c.max_relative_error = 0; }), "max_relative_error is 0");
  expect_rejected(with([](auto& c) { c.max_zenith_distance_rad = 2; }),
                  "max_zenith_distance_rad is 2");
  expect_rejected(with([](auto& c) { c.min_coherence = 1.5; }), "min_coherence is 1.5");
  expect_rejected(with([](auto& c) { c.max_bytes = -1; }), "max_bytes is -1");
}

TEST(AllSkyConfigs, AForcedPathMustBePossible) {
  AllSkyConfig c = random_array(4, 64, 2, 20);
  c.path = Path::vis_grid;
  c.directions = {{0, 0, 1}};
  expect_rejected(c, "path vis-grid: a list of directions needs a Fourier-sum path");
  c.directions.clear();
  c.n_pixels = 134;
  expect_rejected(c, "use 128 or 144 pixels");
  c.n_pixels = 64;
  c.cell_wavelengths = 0.6;
  expect_rejected(c, "fold the horizon");
  c.cell_wavelengths = 0.4;
  c.antenna_enu_m[0] = {900, 0, 0};
  expect_rejected(c, "under-sampled; raise n_pixels to");
  expect_rejected(c, "or take a Fourier-sum path (vis-dft of visibilities");
  c.allow_wrap = true;
  validate(c);
  c = random_array(4, 64, 2, 20);
  give_apertures(c, 9);
  c.path = Path::vis_grid;
  validate(c);
  c.function.correlated = false;
  expect_rejected(c, "image.correlated_functions = true");
  c.function.correlated = true;
  c.function.support = 3;
  expect_rejected(c, "raise support");
  c.path = Path::vis_dft;
  expect_rejected(c, "apertures need a gridded path");
  c.path = Path::automatic;
  validate(c);  // the planner says it instead
}

TEST(AllSkyNames, PathsAndImplementations) {
  for (const Path path : {Path::automatic, Path::efield, Path::efield_half, Path::vis_grid,
                          Path::vis_dft, Path::efield_dft}) {
    EXPECT_EQ(path_named(name(path)), path);
  }
  try {
    path_named("fft");
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_NE(
        std::string(e.what()).find("auto, efield, efield-half, vis-grid, vis-dft, efield-dft"),
        std::string::npos);
  }
  const auto available = available_all_sky_implementations();
  for (const char* each : {"efield/reference", "vis-grid/reference", "efield-half/reference"}) {
    EXPECT_NE(std::find(available.begin(), available.end(), each), available.end()) << each;
  }
  Queue queue = Queue::cpu(1);
  AllSkyConfig c = random_array(4, 64, 2, 20);
  c.path = Path::efield;
  c.implementation = "cpu:sse2";
  try {
    make_field_imager(queue, c);
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_NE(std::string(e.what()).find("these work here: auto"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("reference"), std::string::npos) << e.what();
  }
  c.implementation = "cuda";
  EXPECT_THROW(make_field_imager(queue, c), UnsupportedError);
  c.implementation = "auto";
  EXPECT_THROW(make_vis_imager(queue, c), ConfigError);  // efield images voltages
  c.path = Path::vis_dft;
  EXPECT_THROW(make_field_imager(queue, c), ConfigError);
  std::vector<cf32> too_few(3);
  auto imager = make_vis_imager(queue, c);
  EXPECT_THROW(imager->set_gains(queue, too_few), ConfigError);
}

TEST(AllSkySizes, BinsPlanesPixels) {
  AllSkyConfig c = random_array(2, 64, 2, 10);
  c.channels.n_channels = 7;
  c.n_channels_per_bin = 3;
  EXPECT_EQ(n_bins(c), 3);
  EXPECT_EQ(n_planes(c), 4);
  EXPECT_EQ(plane_size(c), 4096);
  c.directions = {{0, 0, 1}};
  EXPECT_EQ(plane_size(c), 1);
  c.products = Products::intensity;
  EXPECT_EQ(n_planes(c), 1);
  EXPECT_EQ(n_pols(random_array(2, 64, 1, 10)), 1);
  EXPECT_EQ(n_planes(random_array(2, 64, 1, 10)), 1);
}

}  // namespace
}  // namespace ryle::image
