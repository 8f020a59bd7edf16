// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/convolution.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/engine/grid/radial_table.hpp"
#include "tests/engine/grid/grid_cases.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

constexpr double kBeam_rad = 2.9 * kArcmin_rad;

std::string table_file(const std::string& text) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ryle_table_" + std::to_string(getpid()) + ".txt");
  std::ofstream(path) << text;
  return path.string();
}

// A Gaussian of sigma 1.2', or with a bend at each row.
Convolution table_of(int n_rows, double jag) {
  Convolution f;
  f.function = Function::table;
  for (int k = 0; k <= n_rows; ++k) {
    const double t = 6.0 * k / n_rows;
    f.table_theta_rad.push_back(t * kArcmin_rad);
    f.table_value.push_back(std::exp(-0.5 * t * t / 1.44) * (1 - (k % 2) * jag));
  }
  f.support_rad = f.table_theta_rad.back();
  return f;
}

// grid.md 2: every radial function is a table of cubics with errors below 1e-6.
TEST(Convolution, TablesOfCubicsAreToAMillionth) {
  std::vector<Convolution> functions;
  for (const char* text : {"jinc", "jinc:radius=1.8arcmin", "sinc", "sinc:radius=4arcmin", "mean",
                           "gauss:sigma=74arcsec,radius=5sigma"})
    functions.push_back(parse_convolution(text, kBeam_rad));
  functions.push_back(table_of(60, 0));
  functions.push_back(table_of(2, 0));
  for (const auto& f : functions) {
    SCOPED_TRACE(to_string(f));
    const auto cubic = detail::radial_table(f);
    ASSERT_EQ(cubic.size(), 4U * detail::kRadialIntervals);
    double worst = 0;
    for (int k = 0; k < 9'000; ++k) {
      const double theta = f.support_rad * (k + 0.37) / 9'000;
      const double place =
          theta * theta / (f.support_rad * f.support_rad) * detail::kRadialIntervals;
      const float* a = cubic.data() + 4 * static_cast<std::size_t>(place);
      const auto r = static_cast<float>(place - std::floor(place));
      worst = std::max(
          worst, std::abs(a[0] + r * (a[1] + r * (a[2] + r * a[3])) - value(f, theta, theta, 0)));
    }
    EXPECT_LT(worst, 1e-6);
  }
}

TEST(Convolution, WhatNoTableOfCubicsFollowsIsAskedForEachPair) {
  const Convolution f = table_of(700, 0.2);
  EXPECT_TRUE(detail::radial_table(f).empty());
  const Case c = make_case(field(60, 30, 8, 6, 400), f, 1);
  expect_close(c);
}

TEST(Convolution, IsOneAtItsCenter) {  // Cygrid's Gauss-Bessel is NaN there
  for (const char* text : {"gauss", "jinc", "sinc", "mean", "ellipse", "ellipse:pa=20deg"}) {
    const Convolution f = parse_convolution(text, kBeam_rad);
    EXPECT_EQ(value(f, 0, 0, 0), 1) << text;
  }
  EXPECT_EQ(value(table_of(9, 0), 0, 0, 0), 1);
}

TEST(Convolution, RowsOfUsersBecomeTheirFunction) {
  std::string rows = "# measured on Cas A\ntheta_arcsec, K\n";
  for (int k = 0; k <= 45; ++k)
    rows += std::to_string(8 * k) + ",\t" + std::to_string(2.5 * std::exp(-0.5 * k * k / 81.0)) +
            (k == 3 ? "  # a remark\r\n" : "\n");
  const std::string path = table_file(rows);
  const Convolution f = parse_convolution("table:" + path, 0);
  EXPECT_EQ(f.function, Function::table);
  EXPECT_DOUBLE_EQ(f.support_rad, 6 * kArcmin_rad);
  EXPECT_EQ(to_string(f), "table:" + path + ",radius=360arcsec");
  for (int k = 0; k < 500; ++k) {  // sigma 72"
    const double t = 0.7 * k;
    // Six digits in the file, rows a ninth of sigma apart: cubics are to 1e-6 with slopes through
    // five rows, to 3e-5 through three.
    EXPECT_NEAR(value(f, t / 60 * kArcmin_rad, 0, 0), std::exp(-0.5 * t * t / 5184), 2e-6) << t;
  }
  EXPECT_EQ(value(f, f.support_rad, 0, 0), 0) << "beyond the last row";
  EXPECT_NEAR(fwhm_rad(f), 1.2 * std::sqrt(8 * std::log(2.0)) * kArcmin_rad, 1e-4 * kArcmin_rad);
  EXPECT_DOUBLE_EQ(parse_convolution("table:" + path + ",radius=2arcmin", 0).support_rad,
                   2 * kArcmin_rad);
  EXPECT_THROW(parse_convolution("table:" + path + ",radius=7arcmin", 0), ConfigError);
  EXPECT_THROW(parse_convolution("table:" + path + ",radius=2", 0), ConfigError);
  std::filesystem::remove(path);
}

TEST(Convolution, AnglesOfRowsHaveUnits) {
  for (const char* text :
       {"0 1\n1.5 .5\n3 0", "theta K\n0 1\n1.5 .5\n3 0\n", "0arcsec 1\n90arcsec .5\n180arcsec 0\n",
        "0 arcsec 4\n90 arcsec 2\n180 arcsec 0\n", "theta[deg];K\n0;2\n0.025;1\n0.05;0\n"}) {
    SCOPED_TRACE(text);
    const std::string path = table_file(text);
    const Convolution f = read_convolution_table(path);
    ASSERT_EQ(f.table_theta_rad.size(), 3U);
    EXPECT_NEAR(f.table_theta_rad[1], 1.5 * kArcmin_rad, 1e-15);
    EXPECT_EQ(f.table_value, (std::vector<double>{1, 0.5, 0}));
    std::filesystem::remove(path);
  }
}

TEST(Convolution, BadRowsAreNamed) {
  const auto message = [](const std::string& text) -> std::string {
    const std::string path = table_file(text);
    try {
      read_convolution_table(path);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message("0 1\n1 0.5\n1 0.4\n").find("line 3: angles must ascend"), std::string::npos);
  EXPECT_NE(message("0.5 1\n1 0.5\n").find("line 1: the first row is angle 0"), std::string::npos);
  EXPECT_NE(message("0 0\n1 0.5\n").find("K above 0"), std::string::npos);
  EXPECT_NE(message("0 1\n1 x\n").find("\"x\" is not understood"), std::string::npos);
  EXPECT_NE(message("0 1\n1 nan\n").find("\"nan\" is not understood"), std::string::npos);
  EXPECT_NE(message("0 1\n1 hour 0.5\n").find("\"1hour\" is not"), std::string::npos);
  EXPECT_NE(message("0 1\n1 2 3 4\n").find("line 2: not an angle and K"), std::string::npos);
  EXPECT_NE(message("0 1\n").find("fewer than two rows"), std::string::npos);
  EXPECT_THROW(parse_convolution("table:nowhere.txt", 0), IoError);
}

}  // namespace
}  // namespace ryle::grid
