// SPDX-License-Identifier: BSD-3-Clause
// Rates of a machine, kept from one run to the next.
#include "ryle/pipeline/image/image_calibration.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::pipeline {
namespace {

/// A cache folder of its own, for the time of a test.
class CalibrationFile : public testing::Test {
 protected:
  CalibrationFile() {
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("ryle-calibration-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    file_ = image_calibration_file(image_machine(BackEnd::cpu, 2));
  }
  ~CalibrationFile() override {
    std::filesystem::remove_all(folder_);
    if (old_.empty()) {
      ::unsetenv("XDG_CACHE_HOME");
    } else {
      ::setenv("XDG_CACHE_HOME", old_.c_str(), 1);
    }
  }

  std::string old_, file_;
  std::filesystem::path folder_;
};

// No two rates are the same, so that none can be kept in the place of another.
image::CostModel some_model() {
  image::CostModel m;
  m.back_end = BackEnd::cpu;
  m.machine = "a machine";
  double next = 1.5e9;
  for (double image::CostModel::*rate :
       {&image::CostModel::correlate_ops, &image::CostModel::correlate_output_bytes,
        &image::CostModel::efield_fft_ops, &image::CostModel::efield_grid_ops,
        &image::CostModel::efield_half_ops, &image::CostModel::vis_grid_ops,
        &image::CostModel::vis_dft_ops, &image::CostModel::efield_dft_ops}) {
    m.*rate = next;
    next *= 1.0 / 3 + 1;
  }
  m.overhead_s = 1.0 / 7e5;
  double cost_s = 1.0 / 9e8;
  for (double image::CostModel::*cost :
       {&image::CostModel::vis_pixel_s, &image::CostModel::efield_pixel_s,
        &image::CostModel::phasor_s, &image::CostModel::vis_place_s,
        &image::CostModel::setup_pair_s, &image::CostModel::setup_pixel_s}) {
    m.*cost = cost_s;
    cost_s *= 1.0 / 3 + 1;
  }
  m.measured_at = {1.0e11 / 7, 1.0e10 / 3, 1.0e12 / 9};
  m.correlate_shares = {{32, 0.1}, {64, 1.0 / 3}, {512, 1}};
  return m;
}

void expect_same(const image::CostModel& a, const image::CostModel& b) {
  EXPECT_EQ(a.back_end, b.back_end);
  EXPECT_EQ(a.machine, b.machine);
  EXPECT_EQ(a.correlate_ops, b.correlate_ops);
  EXPECT_EQ(a.correlate_shares, b.correlate_shares);
  EXPECT_EQ(a.correlate_output_bytes, b.correlate_output_bytes);
  EXPECT_EQ(a.efield_fft_ops, b.efield_fft_ops);
  EXPECT_EQ(a.efield_grid_ops, b.efield_grid_ops);
  EXPECT_EQ(a.efield_half_ops, b.efield_half_ops);
  EXPECT_EQ(a.vis_grid_ops, b.vis_grid_ops);
  EXPECT_EQ(a.vis_dft_ops, b.vis_dft_ops);
  EXPECT_EQ(a.efield_dft_ops, b.efield_dft_ops);
  EXPECT_EQ(a.overhead_s, b.overhead_s);
  EXPECT_EQ(a.vis_pixel_s, b.vis_pixel_s);
  EXPECT_EQ(a.efield_pixel_s, b.efield_pixel_s);
  EXPECT_EQ(a.phasor_s, b.phasor_s);
  EXPECT_EQ(a.vis_place_s, b.vis_place_s);
  EXPECT_EQ(a.setup_pair_s, b.setup_pair_s);
  EXPECT_EQ(a.setup_pixel_s, b.setup_pixel_s);
  EXPECT_EQ(a.measured_at.ops, b.measured_at.ops);
  EXPECT_EQ(a.measured_at.bytes_per_s, b.measured_at.bytes_per_s);
  EXPECT_EQ(a.measured_at.product_ops, b.measured_at.product_ops);
}

TEST_F(CalibrationFile, IsUsedOnceItIsSaved) {
  EXPECT_EQ(file_, (folder_ / "ryle" / ("image-" + image_machine(BackEnd::cpu, 2) + ".json")));
  EXPECT_FALSE(load_image_calibration(file_).has_value());
  expect_same(image_cost_model(BackEnd::cpu, 2), image::default_cost_model(BackEnd::cpu, 2));
  save_image_calibration(some_model(), file_);  // makes the folder, too
  const auto loaded = load_image_calibration(file_);
  ASSERT_TRUE(loaded.has_value());
  expect_same(*loaded, some_model());
  expect_same(image_cost_model(BackEnd::cpu, 2), some_model());
  // Another number of workers is another machine.
  expect_same(image_cost_model(BackEnd::cpu, 3), image::default_cost_model(BackEnd::cpu, 3));
}

TEST_F(CalibrationFile, DamageIsNamedWithTheWayOut) {
  save_image_calibration(some_model(), file_);
  const auto good = nlohmann::json::parse(to_json(some_model()));
  const auto rejected = [&](const std::string& text, const std::string& why) {
    std::ofstream(file_) << text;
    try {
      image_cost_model(BackEnd::cpu, 2);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const FormatError& e) {
      const std::string what = e.what();
      EXPECT_NE(what.find(why), std::string::npos) << what;
      EXPECT_NE(what.find(file_), std::string::npos) << what;
      EXPECT_NE(what.find("ryle bench image --calibrate"), std::string::npos) << what;
    }
  };
  rejected("", "not a JSON object");
  rejected("[1, 2]", "not a JSON object");
  rejected(good.dump().substr(0, good.dump().size() / 2), "not a JSON object");
  const auto with = [&](const char* key, const nlohmann::json& value) {
    auto json = good;
    json[key] = value;
    return json.dump();
  };
  rejected(with("back_end", "tpu"), "back_end must be cpu or cuda");
  rejected(with("back_end", 5), "back_end must be cpu or cuda");
  rejected(with("vis_grid_ops", "fast"), "vis_grid_ops is missing");
  rejected(with("vis_grid_ops", 0), "vis_grid_ops is 0");
  rejected(with("overhead_s", -1), "overhead_s is -1");
  rejected(with("core_ops", -1), "core_ops is no speed");
  rejected(with("core_bytes_per_s", "fast"), "core_bytes_per_s is no speed");
  using Json = nlohmann::json;
  for (const Json& bad :
       {Json(nullptr), Json(5), Json::array({Json::array({64})}),
        Json::array({Json::array({64, 0})}), Json::array({Json::array({64, "x"})}),
        Json::array({Json::array({64, 1}), Json::array({64, 1})})}) {
    rejected(with("correlate_shares", bad), "correlate_shares must be");
  }
  for (const auto& [key, value] : good.items()) {
    // A file of before places were counted is still good: they cost nothing there. Nor did older
    // ones know a speed.
    if (key == "machine" || key == "vis_place_s" || key.starts_with("core_")) continue;
    auto json = good;
    json.erase(key);
    rejected(json.dump(), key);
  }
}

// Who plans while another calibrates has the old rates until the new ones are whole.
TEST_F(CalibrationFile, IsWholeWhenever) {
  save_image_calibration(some_model(), file_);
  auto faster = some_model();
  faster.vis_grid_ops *= 2;
  int looks = 0;
  set_publish_fault_hook([&](std::string_view, const std::string&) {
    const auto seen = load_image_calibration(file_);
    looks += seen.has_value() && (seen->vis_grid_ops == some_model().vis_grid_ops ||
                                  seen->vis_grid_ops == faster.vis_grid_ops);
    return 0;
  });
  save_image_calibration(faster, file_);
  set_publish_fault_hook({});
  EXPECT_GE(looks, 3);
  expect_same(load_image_calibration(file_).value(), faster);
}

TEST_F(CalibrationFile, WhatCannotBeWrittenIsSaid) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "ryle") << "a file where the folder should be";
  EXPECT_THROW(save_image_calibration(some_model(), file_), IoError);
}

}  // namespace
}  // namespace ryle::pipeline
