// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/output_beam.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::grid {
namespace {

constexpr double kBeam_rad = 2.9 / 60 * kDegree_rad;

struct BeamCase {
  const char* kernel;
  double fwhm, area, beams;  ///< of a beam of FWHM 1: the table of grid.md 2
};

TEST(OutputBeam, IsThatOfTheTableForEveryFunction) {
  for (const BeamCase& c : {BeamCase{"gauss", 1.115, 1.241, 0.49},
                            {"gauss:radius=5sigma", 1.118, 1.250, 0.50},
                            {"gauss:2.9arcmin,radius=5sigma", 1.414, 2.000, 2.00},
                            {"jinc", 1.094, 1.114, 0.43},
                            {"jinc:radius=1.827arcmin", 1.145, 1.301, 0.63},  // 0.630 of the beam
                            {"sinc", 1.105, 1.214, 0.46},
                            {"mean", 1.190, 1.386, 0.69}}) {
    const OutputBeam b = output_beam(parse_convolution(c.kernel, kBeam_rad), kBeam_rad);
    EXPECT_NEAR(b.major_rad / kBeam_rad, c.fwhm, 0.0007) << c.kernel;
    EXPECT_EQ(b.minor_rad, b.major_rad) << c.kernel;
    EXPECT_NEAR(b.area_factor, c.area, 0.0007) << c.kernel;
    EXPECT_NEAR(b.n_beams, c.beams, 0.006) << c.kernel;
  }
}

TEST(OutputBeam, OfAnEllipseIsAnEllipse) {
  const auto f =
      parse_convolution("ellipse:major=4arcmin,minor=2arcmin,pa=30deg,radius=6sigma", kBeam_rad);
  const OutputBeam b = output_beam(f, kBeam_rad);
  const double arcmin = kDegree_rad / 60;
  EXPECT_NEAR(b.major_rad / arcmin, std::hypot(2.9, 4), 1e-4);
  EXPECT_NEAR(b.minor_rad / arcmin, std::hypot(2.9, 2), 1e-4);
  EXPECT_NEAR(b.position_angle_rad / kDegree_rad, 30, 1e-12);
  EXPECT_NEAR(b.area_factor, std::hypot(2.9, 4) * std::hypot(2.9, 2) / (2.9 * 2.9), 1e-4);
}

TEST(OutputBeam, OfFunctionsManyBeamsWide) {
  const OutputBeam b =
      output_beam(parse_convolution("gauss:20arcmin,radius=6sigma", kBeam_rad), kBeam_rad);
  EXPECT_NEAR(b.major_rad / kDegree_rad * 60, std::hypot(20, 2.9), 1e-4);
  EXPECT_NEAR(b.area_factor / ((20 * 20 + 2.9 * 2.9) / (2.9 * 2.9)), 1, 1e-4);
}

TEST(OutputBeam, WithoutABeamIsRejected) {
  const auto f = parse_convolution("gauss:1arcmin", 0);
  EXPECT_THROW(output_beam(f, 0), ConfigError);
  EXPECT_THROW(output_beam(f, NAN), ConfigError);
}

}  // namespace
}  // namespace ryle::grid
