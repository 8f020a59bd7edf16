// SPDX-License-Identifier: BSD-3-Clause
// The equations themselves: E-field images equal gridded visibilities, gulps do not matter.
#include "ryle/engine/image/reference.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

Images by_field(const AllSkyCase& c, Path path) {
  Queue queue = Queue::cpu(1);
  return field_images(queue, "reference", path, c);
}

Images by_vis(const AllSkyCase& c, Path path) {
  Queue queue = Queue::cpu(1);
  return vis_images(queue, "reference", path, c, VisInput::Type::ci64);
}

double worst_of_peak(const Images& a, const Images& b) {
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double worst = 0, peak = 0;
  for (std::size_t p = 0; p < a.pixels.size(); ++p) {
    EXPECT_EQ(std::isnan(a.pixels[p]), std::isnan(b.pixels[p])) << p;
    if (std::isnan(a.pixels[p])) continue;
    worst = std::max(worst, std::abs(double(a.pixels[p]) - double(b.pixels[p])));
    peak = std::max(peak, std::abs(double(a.pixels[p])));
  }
  EXPECT_GT(peak, 0);
  return worst / peak;
}

// T-EP-01 on images (float): rounding of the output is 6e-8.
TEST(AllSky, EfieldEqualsGriddedVisibilities) {
  for (auto c : grid_cases()) {
    if (c.config.n_pixels > 96) continue;
    c.config.function.correlated = true;
    SCOPED_TRACE(c.label);
    if (c.label == "one antenna, nothing left") {
      EXPECT_EQ(by_field(c, Path::efield).weights, by_vis(c, Path::vis_grid).weights);
      continue;
    }
    EXPECT_LT(worst_of_peak(by_field(c, Path::efield), by_vis(c, Path::vis_grid)), 2e-7);
  }
}

TEST(AllSky, FourierSumOfFieldsEqualsThatOfVisibilities) {
  for (const auto& c : dft_cases()) {
    if (c.config.antenna_enu_m.size() > 20 || c.label == "one antenna, nothing left") continue;
    SCOPED_TRACE(c.label);
    EXPECT_LT(worst_of_peak(by_field(c, Path::efield_dft), by_vis(c, Path::vis_dft)), 2e-7);
  }
}

}  // namespace
}  // namespace ryle::image
