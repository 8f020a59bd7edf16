// SPDX-License-Identifier: BSD-3-Clause
// T-FX-05/06: filter designs against the table computed once for the design (offsets in channels).
#include "ryle/math/window.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ryle::math {
namespace {

struct Design {
  const char* name;
  WindowShape shape;
  double beta;
  std::int64_t taps;
  double half_db, ripple_db, one_db, stop_db, width_channels,
      noise_bandwidth;  // one_db = 0: a null
};

constexpr Design kDesigns[] = {
    {"1 rectangular", WindowShape::rectangular, 0, 1, -3.92, 1.825, 0, -13.4, 0.886, 1.000},
    {"4 Hamming", WindowShape::hamming, 0, 4, -6.08, 2.021, -50.2, -68.0, 0.797, 0.799},
    {"4 Hann", WindowShape::hann, 0, 4, -6.12, 2.298, -44.4, -63.4, 0.774, 0.776},
    {"8 Hann", WindowShape::hann, 0, 8, -6.03, 0.502, -62.4, -81.3, 0.892, 0.895},
    {"8 Hamming", WindowShape::hamming, 0, 8, -6.01, 0.366, -64.0, -67.5, 0.901, 0.907},
    {"8 Kaiser 5", WindowShape::kaiser, 5, 8, -6.02, 0.333, -78.4, -72.5, 0.901, 0.905},
    {"8 Kaiser 8", WindowShape::kaiser, 8, 8, -6.02, 0.806, -83.1, -94.9, 0.876, 0.876},
    {"16 Hann", WindowShape::hann, 0, 16, -6.02, 0.038, -80.4, -99.3, 0.946, 0.949},
    {"16 Kaiser 8", WindowShape::kaiser, 8, 16, -6.02, 0.007, -112.6, -102.1, 0.938, 0.938},
};

double db(double amplitude) { return 20 * std::log10(amplitude); }

TEST(Filter, designs_have_the_tabulated_response) {
  constexpr std::int64_t kPoints = 32;
  for (const Design& d : kDesigns) {
    const auto h = prototype_filter(d.shape, d.beta, kPoints, d.taps);
    const auto response = [&](double offset) { return db(filter_response(h, kPoints, offset)); };
    EXPECT_NEAR(response(0.5), d.half_db, 0.02) << d.name;
    double minimum = 0;
    double maximum = 0;
    for (double x = 0; x <= 0.35; x += 1.0 / 256) {
      minimum = std::fmin(minimum, response(x));
      maximum = std::fmax(maximum, response(x));
    }
    minimum = std::fmin(minimum, response(0.35));
    EXPECT_NEAR(maximum - minimum, d.ripple_db, 0.02) << d.name;
    if (d.one_db != 0) {
      EXPECT_NEAR(response(1), d.one_db, 0.5) << d.name;
    } else {
      EXPECT_LT(response(1), -200) << d.name;
    }
    double stop = -400;
    // At 1.5 channels the plain transform has its first side lobe; a 32-point filter repeats at 32
    // channels.
    for (double x = d.taps == 1 ? 1.0 : 1.5; x <= 16;
         x += 1.0 / (16.0 * static_cast<double>(d.taps))) {
      stop = std::fmax(stop, response(x));
    }
    EXPECT_NEAR(stop, d.stop_db, 0.2) << d.name;
    double width = 0.95 * d.width_channels;
    while (response(width / 2) > -3.0103) width += 1e-4;
    EXPECT_NEAR(width / d.width_channels, 1, 0.005) << d.name;
    double sum = 0;
    double energy = 0;
    for (const double c : h) {
      sum += c;
      energy += c * c;
    }
    EXPECT_NEAR(energy, 1, 1e-14) << d.name;
    EXPECT_NEAR(kPoints * energy / (sum * sum), d.noise_bandwidth, 0.005 * d.noise_bandwidth)
        << d.name;
  }
}

TEST(Filter, is_symmetric_and_scales_with_the_number_of_points) {
  for (const std::int64_t k : {7, 60, 1024}) {
    const auto h = prototype_filter(WindowShape::hann, 0, k, 8);
    for (std::size_t n = 0; n < h.size(); ++n)
      EXPECT_NEAR(h[n], h[h.size() - 1 - n], 1e-15) << k << " " << n;
    EXPECT_NEAR(db(filter_response(h, k, 0.5)), -6.03, 0.02) << k;
  }
}

TEST(Window, known_values) {
  EXPECT_DOUBLE_EQ(window(WindowShape::hann, 0.5, 0), 1);
  EXPECT_NEAR(window(WindowShape::hamming, 0, 0), 0.08, 1e-15);
  EXPECT_NEAR(window(WindowShape::blackman, 0, 0), 0, 1e-15);
  EXPECT_NEAR(window(WindowShape::kaiser, 0, 8), 1 / bessel_i0(8), 1e-15);
  EXPECT_EQ(window(WindowShape::hann, -0.1, 0), 0);
  EXPECT_NEAR(bessel_i0(1), 1.2660658777520084, 1e-15);
  EXPECT_NEAR(bessel_i0(10) / 2815.716628466254, 1, 1e-14);
}

}  // namespace
}  // namespace ryle::math
