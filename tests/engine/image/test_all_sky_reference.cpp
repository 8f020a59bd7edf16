// SPDX-License-Identifier: BSD-3-Clause
// The equations themselves in double (T-EP-01, T-EP-13), and that gulps do not matter.
#include "ryle/engine/image/reference.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;
using detail::AutoPowers;
using detail::ProductPlanes;
using detail::ReferencePath;

cf64 random_value(std::uint64_t key) {
  return {gaussian(combine(key, 1)), gaussian(combine(key, 1) ^ 1u)};
}

// Spectra, and what a correlator makes of them.
struct Fields {
  std::vector<std::vector<cf64>> spectra;  // [t][element]
  std::vector<cf64> matrix;                // [element][element]
  std::vector<cf64> matrix_without_autos;
  std::vector<AutoPowers> minus_autos;
};

Fields random_fields(const AllSkyConfig& c, int n_spectra) {
  const auto pols = std::size_t(n_pols(c)), n = c.antenna_enu_m.size() * pols;
  Fields f;
  f.matrix.resize(n * n);
  f.minus_autos.resize(c.antenna_enu_m.size());
  for (int t = 0; t < n_spectra; ++t) {
    std::vector<cf64> e(n);
    // Independent noise and common noise, with a gain of its own for every element.
    for (std::size_t k = 0; k < n; ++k) {
      e[k] = (random_value(combine(t, k)) + 0.5 * random_value(combine(t, 9999))) *
             random_value(k + 77);
    }
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) f.matrix[a * n + b] += e[a] * std::conj(e[b]);
    }
    for (std::size_t a = 0; a < f.minus_autos.size(); ++a) {
      const cf64 x = e[a * pols], y = pols == 2 ? e[a * pols + 1] : 0;
      f.minus_autos[a].xx -= std::norm(x);
      f.minus_autos[a].yy -= std::norm(y);
      f.minus_autos[a].xy -= x * std::conj(y);
    }
    f.spectra.push_back(e);
  }
  f.matrix_without_autos = f.matrix;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (a / pols == b / pols) f.matrix_without_autos[a * n + b] = 0;
    }
  }
  return f;
}

// Largest difference above the horizon, of the peak. Gridded images are compared before the
// division by the taper, which far from zenith multiplies the rounding.
double worst_of_peak(const AllSkyConfig& c, bool gridded, const ProductPlanes& a,
                     const ProductPlanes& b) {
  std::vector<double> taper(a.xx.size(), 1.0);
  if (gridded) taper = correlated_taper(c, c.channels.n_channels - 1);
  const double middle = gridded ? taper[a.xx.size() / 2 + std::size_t(c.n_pixels / 2)] : 1;
  double worst = 0, peak = 0;
  const ArrayPlane plane = fit_plane(c);
  for (std::size_t p = 0; p < a.xx.size(); ++p) {
    const auto size = std::size_t(c.n_pixels);
    const auto s = c.directions.empty()
                       ? direction_of_pixel(c, plane, double(p % size), double(p / size))
                       : c.directions[p];
    if (!(s[2] > 0)) continue;
    const double scale = std::min(1.0, std::abs(taper[p] / middle));
    peak = std::max({peak, std::abs(a.xx[p]), std::abs(a.yy[p])});
    worst = std::max({worst, scale * std::abs(a.xx[p] - b.xx[p]),
                      scale * std::abs(a.yy[p] - b.yy[p]), scale * std::abs(a.xy[p] - b.xy[p])});
  }
  EXPECT_GT(peak, 0);
  return worst / peak;
}

// All four products with autocorrelations, then without: removed from the E-field side, skipped on
// the other.
void expect_equal_paths(const AllSkyConfig& c, bool gridded, const std::string& what) {
  const auto path = gridded ? detail::make_reference_moff(c) : detail::make_reference_dft(c);
  const Fields f = random_fields(c, 6);
  const std::int64_t channel = c.channels.n_channels - 1;
  ProductPlanes by_field(plane_size(c)), by_matrix(plane_size(c)), crosses(plane_size(c));
  for (const auto& e : f.spectra) path->add_spectrum(channel, e, by_field);
  path->add_matrix(channel, f.matrix, by_matrix);
  EXPECT_LT(worst_of_peak(c, gridded, by_field, by_matrix), 1e-12) << what;
  path->add_autos(channel, f.minus_autos, by_field);
  path->add_matrix(channel, f.matrix_without_autos, crosses);
  EXPECT_LT(worst_of_peak(c, gridded, by_field, crosses), 1e-12) << what << ", autos removed";
  EXPECT_GT(worst_of_peak(c, gridded, by_field, by_matrix), 1e-3) << what << ": autos are there";
}

TEST(AllSky, EfieldEqualsGriddedVisibilities) {
  auto c = random_array(13, 40, 2, 18);
  tilt(c, 0.02, -0.03, 0.3);
  expect_equal_paths(c, true, "antennas inside half the grid");
  c.function.support = 4;
  expect_equal_paths(c, true, "even support");
  c = random_array(13, 40, 2, 36);
  expect_equal_paths(c, true, "aperture 0.9 of the grid: the uv plane wraps");
  c = random_array(13, 40, 2, 70);
  expect_equal_paths(c, true, "antennas wrap");
  c = random_array(10, 48, 2, 20);
  c.function.support = 5;
  c.cell_wavelengths = 0.45;
  give_apertures(c, 9);
  expect_equal_paths(c, true, "own complex function per antenna and polarization");
  c = random_array(9, 40, 1, 20);
  expect_equal_paths(c, true, "one polarization");
}

TEST(AllSky, FourierSumOfFieldsEqualsThatOfVisibilities) {
  auto c = random_array(17, 40, 2, 22);
  tilt(c, 0.02, -0.03, 3);
  expect_equal_paths(c, false, "square");
  c.directions = {{0, 0, 1}, {0.6, 0, 0.8}, {0, -0.6, 0.8}};
  expect_equal_paths(c, false, "list");
}

// ---- T-EP-13: gridding error against the direct sum -----------------------------------------

struct Row {
  std::int64_t support;
  double cell;
  bool direct;
  std::array<double, 4> rms;  // r < 0.3, 0.6, 0.8, 0.95
};
// image.md 2, of the peak; 255 antennas of LWA-SV at 60 MHz.
constexpr Row kTable[] = {
    {5, 0.4476, false, {4.8e-7, 1.6e-6, 5.0e-5, 3.2e-4}},
    {7, 0.4476, false, {5.7e-9, 2.5e-8, 6.1e-6, 1.0e-4}},
    {5, 0.40, false, {4.8e-7, 7.1e-7, 1.5e-5, 1.0e-4}},
    {7, 0.40, false, {4.2e-9, 8.6e-9, 9.8e-7, 1.7e-5}},
    {5, 0.40, true, {8.6e-7, 1.6e-6, 4.5e-5, 2.8e-4}},
    {7, 0.40, true, {1.8e-8, 2.9e-8, 2.9e-6, 4.8e-5}},
};

// Twelve sources of falling power anywhere within |l|, |m| < 0.6 and receiver noise, as in the
// prototype. Errors are largest around the brightest: where that one was put at r = 0.18, those of
// r < 0.3 were 1.6 to 2.3 times the table's for k = 5 (four skies), else 0.8 to 1.3.
Fields station_fields(const AllSkyConfig& c, int n_spectra) {
  Fields f;
  const auto n = c.antenna_enu_m.size();
  f.matrix.resize(n * n);
  const auto used = antennas_used(c);
  for (int t = 0; t < n_spectra; ++t) {
    std::vector<cf64> e(n);
    for (std::size_t a = 0; a < n; ++a) {
      if (!used[a]) continue;
      e[a] = 2.0 * random_value(combine(t, a));
      for (int s = 0; s < 12; ++s) {
        const auto key = combine(4242, std::uint64_t(s));
        const double l = 1.2 * uniform(key) - 0.6;
        const double m = 1.2 * uniform(key + 1) - 0.6;
        const auto& [x, y, z] = c.antenna_enu_m[a];
        const double turns = c.channels.center_hz(0) / kSpeedOfLight_m_per_s * (x * l + y * m);
        e[a] += random_value(combine(t, s, 5)) * (1 - 0.08 * s) * std::polar(1.0, 2 * kPi * turns);
      }
    }
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) f.matrix[a * n + b] += e[a] * std::conj(e[b]);
    }
    f.spectra.push_back(e);
  }
  return f;
}

constexpr double kRadii[] = {0.3, 0.6, 0.8, 0.95};
constexpr std::size_t kPixelsPerRing = 80;

// Pixels at which the exact sum is taken: of every ring of the table the same number, ring by ring.
std::vector<std::int64_t> sampled_pixels(const AllSkyConfig& c) {
  std::vector<std::int64_t> pixels;
  const double step = 1 / (double(c.n_pixels) * c.cell_wavelengths);
  const auto half = c.n_pixels / 2;
  double inner = 0;
  std::uint64_t i = 0;
  for (const double outer : kRadii) {
    const std::size_t until = pixels.size() + kPixelsPerRing;
    while (pixels.size() < until) {
      const auto p = std::int64_t(double(plane_size(c)) * uniform(combine(5, i++)));
      const double r = std::hypot(double(p % c.n_pixels - half), double(p / c.n_pixels - half));
      if (r * step >= inner && r * step < outer) pixels.push_back(p);
    }
    inner = outer;
  }
  return pixels;
}

TEST(AllSky, GriddingErrorOfTheTable) {
  auto station = station_array("lwa/lwasv-ssmif-2022.txt", 60e6, 100);
  if (!station) GTEST_SKIP() << "skipped: no data (lwa/lwasv-ssmif-2022.txt)";
  auto& inputs = station->inputs;  // one polarization; the table is of a flat array
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), [](auto& i) { return i.pol == 1; }),
               inputs.end());
  for (auto& input : inputs) {
    const auto& [x, y, z] = station->antenna_enu_m[std::size_t(input.antenna)];
    input.bad = std::hypot(x, y) > 100;  // the outrigger
  }
  for (auto& position : station->antenna_enu_m) position[2] = 0;
  const Fields f = station_fields(*station, 40);
  AllSkyConfig list;
  ProductPlanes exact;
  for (const auto& row : kTable) {
    auto c = *station;
    c.cell_wavelengths = row.cell;
    c.function.support = row.support;
    ProductPlanes gridded(plane_size(c));
    if (row.direct) {
      detail::make_reference_direct(c)->add_matrix(0, f.matrix, gridded);
    } else {
      const auto moff = detail::make_reference_moff(c);
      for (const auto& e : f.spectra) moff->add_spectrum(0, e, gridded);
    }
    const auto pixels = sampled_pixels(c);
    if (row.cell != list.cell_wavelengths || list.directions.empty()) {
      list = c;
      const ArrayPlane flat = fit_plane(c);
      for (const auto p : pixels) {
        list.directions.push_back(direction_of_pixel(c, flat, double(p % 128), double(p / 128)));
      }
      exact = ProductPlanes(plane_size(list));
      const auto dft = detail::make_reference_dft(list);
      for (const auto& e : f.spectra) dft->add_spectrum(0, e, exact);
    }
    const double peak = *std::max_element(gridded.xx.begin(), gridded.xx.end());
    double squares = 0, inner = 0;  // integral over the disc, rings weighted by their area
    for (std::size_t k = 0; k < 4; ++k) {
      double ring = 0;
      for (std::size_t i = k * kPixelsPerRing; i < (k + 1) * kPixelsPerRing; ++i) {
        const double e = gridded.xx[std::size_t(pixels[i])] - exact.xx[i];
        ring += e * e / double(kPixelsPerRing);
      }
      squares += ring * (kRadii[k] * kRadii[k] - inner * inner);
      inner = kRadii[k];
      const double rms = std::sqrt(squares) / inner / peak;
      const std::string what = "support " + std::to_string(row.support) + " cell " +
                               std::to_string(row.cell) + (row.direct ? " direct" : "") + " r < " +
                               std::to_string(inner);
      // Another sky than the table's (T-EP-13).
      EXPECT_LT(rms, 2 * row.rms[k]) << what;
      EXPECT_GT(rms, row.rms[k] / 3) << what << ": is this the function of the table?";
    }
  }
}

// ---- the interface of the reference ---------------------------------------------------------

TEST(AllSky, GulpsDoNotMatterAndWeightsAgree) {
  Queue queue = Queue::cpu(1);
  for (auto c : common_cases()) {
    if (c.label != "losses, gains, gaps" && c.label != "losses that differ between channels")
      continue;
    c.config.n_pixels = 30;  // small: the sums are checked elsewhere
    c.config.function.correlated = true;
    c.config.allow_wrap = true;
    const Images split = field_images(queue, "reference", Path::efield, c);
    c.gulps = {};
    const Images whole = field_images(queue, "reference", Path::efield, c);
    const Images by_vis = vis_images(queue, "reference", Path::vis_grid, c, VisInput::Type::cf64);
    EXPECT_EQ(split.weights, whole.weights);
    EXPECT_EQ(by_vis.weights, whole.weights);
    EXPECT_EQ(split.pixels.size(), whole.pixels.size());
    for (std::size_t p = 0; p < whole.pixels.size(); ++p) {
      if (std::isnan(whole.pixels[p])) continue;
      ASSERT_EQ(split.pixels[p], whole.pixels[p]);
      ASSERT_NEAR(by_vis.pixels[p], whole.pixels[p], 2e-6 * std::abs(whole.pixels[p]) + 1e-5);
    }
  }
}

}  // namespace
}  // namespace ryle::image
