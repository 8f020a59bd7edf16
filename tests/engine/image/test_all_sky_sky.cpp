// SPDX-License-Identifier: BSD-3-Clause
// Sources where they are, with the flux they have: T-EP-03, 04, 06, 08, 09, 14 and the faults of
// LWA_EPIC that lie in an imager (image.md 11). Paths run with the best implementation of this
// machine and with the reference.
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

struct Star {
  std::array<double, 3> s{0, 0, 1};
  double power = 1;
};

Star star(double azimuth_deg, double zenith_distance_deg, double power = 1) {
  const double a = azimuth_deg * kDegree_rad, z = zenith_distance_deg * kDegree_rad;
  return {{std::sin(z) * std::sin(a), std::sin(z) * std::cos(a), std::cos(z)}, power};
}

// Noise-free sums of products of unpolarized, mutually incoherent stars.
std::vector<cf64> observe(const AllSkyConfig& c, const std::vector<Star>& stars) {
  const auto n = static_cast<std::int64_t>(c.inputs.size());
  std::vector<cf64> sums;
  for (std::int64_t channel = 0; channel < c.channels.n_channels; ++channel) {
    const double waves_per_m = c.channels.center_hz(channel) / 299792458.0;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const auto &a = c.inputs[std::size_t(i)], &b = c.inputs[std::size_t(j)];
        const auto &p = c.antenna_enu_m[std::size_t(a.antenna)],
                   &q = c.antenna_enu_m[std::size_t(b.antenna)];
        cf64 v = 0;
        for (const auto& each : stars) {
          if (a.pol != b.pol) continue;
          double turns = 0;
          for (std::size_t k = 0; k < 3; ++k) turns += waves_per_m * (p[k] - q[k]) * each.s[k];
          v += std::polar(each.power, 2 * kPi * turns);
        }
        sums.push_back(v);
      }
    }
  }
  return sums;
}

Images image_of(AllSkyConfig c, Path path, const std::vector<cf64>& sums,
                const std::string& implementation, std::int64_t n_spectra = 1) {
  c.path = path;
  c.implementation = implementation;
  Queue queue = Queue::cpu(1);
  Images images = garbage_images();
  VisInput in;
  in.type = VisInput::Type::cf64;
  in.sums = sums.data();
  in.n_spectra = n_spectra;
  make_vis_imager(queue, c)->execute(queue, in, images);
  return images;
}

struct Peak {
  double x = 0, y = 0, value = 0;
};

// The brightest pixel within 4 of (x0, y0), moved by one Newton step of the quadratic surface
// through its neighbours (the beam of a random array is a slanted ellipse: the cross term counts).
Peak find_peak(const Images& images, std::int64_t n, double x0, double y0) {
  const auto at = [&](std::int64_t x, std::int64_t y) {
    return double(images.pixels[std::size_t(y * n + x)]);
  };
  std::int64_t x = -1, y = -1;
  for (auto v = std::int64_t(y0) - 4; v <= std::int64_t(y0) + 4; ++v) {
    for (auto u = std::int64_t(x0) - 4; u <= std::int64_t(x0) + 4; ++u) {
      if (u < 1 || v < 1 || u > n - 2 || v > n - 2 || std::isnan(at(u, v))) continue;
      if (x < 0 || at(u, v) > at(x, y)) x = u, y = v;
    }
  }
  const double gx = 0.5 * (at(x + 1, y) - at(x - 1, y)), gy = 0.5 * (at(x, y + 1) - at(x, y - 1));
  const double xx = at(x + 1, y) - 2 * at(x, y) + at(x - 1, y);
  const double yy = at(x, y + 1) - 2 * at(x, y) + at(x, y - 1);
  const double xy =
      0.25 * (at(x + 1, y + 1) - at(x - 1, y + 1) - at(x + 1, y - 1) + at(x - 1, y - 1));
  const double det = xx * yy - xy * xy;
  return {double(x) - (yy * gx - xy * gy) / det, double(y) - (xx * gy - xy * gx) / det, at(x, y)};
}

const Path kVisPaths[] = {Path::vis_grid, Path::vis_dft};

// T-EP-03/04: from zenith to 75 degrees, a tilted plane; beam of 9 pixels, so that the quadratic
// finds its middle.
TEST(AllSkySky, PointSourcesStandWithinATwentiethOfAPixel) {
  for (const double alpha : {0.0, -0.0262}) {
    auto c = random_array(40, 144, 1, 16, 5);
    tilt(c, alpha, -0.68 * alpha, 0);
    c.channels = {60e6, 25e3, 1};
    const ArrayPlane plane = fit_plane(c);
    for (const Path path : kVisPaths) {
      for (const double zd : {0.0, 10.0, 30.0, 60.0, 75.0}) {
        for (const double azimuth : {20.0, 140.0, 260.0}) {
          const Star one = star(azimuth, zd);
          const Images images = image_of(c, path, observe(c, {one}), "auto");
          const auto [x, y] = pixel_of_direction(c, plane, one.s);
          const Peak peak = find_peak(images, 144, x, y);
          EXPECT_NEAR(peak.x, x, 0.05) << name(path) << " " << zd << " " << azimuth;
          EXPECT_NEAR(peak.y, y, 0.05) << name(path) << " " << zd << " " << azimuth;
          EXPECT_NEAR(peak.value, 1, 0.05);
          // North is up, east is left.
          if (zd > 20) {
            EXPECT_EQ(x < 72, azimuth < 180);
          }
          if (zd > 20) {
            EXPECT_EQ(y > 72, azimuth < 90 || azimuth > 270);
          }
        }
      }
    }
  }
}

// T-EP-03: a source of power S per antenna has peak S. 500 directions, pixel centres so that the
// peak is a pixel, both channels.
TEST(AllSkySky, FluxIsRightAtManyDirections) {
  auto c = random_array(30, 64, 1, 24, 6);
  tilt(c, 0.0262, 0.0178, 0);
  c.channels = {40e6, 45e6, 2};  // far apart: fault 2, weights taken from the wrong channel
  const ArrayPlane plane = fit_plane(c);
  Queue queue = Queue::cpu(1);
  std::vector<std::unique_ptr<VisImager>> imagers;
  for (const Path path : kVisPaths) {
    c.path = path;
    imagers.push_back(make_vis_imager(queue, c));
  }
  Images images = garbage_images();
  int n = 0;
  for (int i = 0; n < 500; ++i) {
    const std::int64_t x = std::int64_t(64 * uniform(combine(3, std::uint64_t(i)))),
                       y = std::int64_t(64 * uniform(combine(4, std::uint64_t(i))));
    const auto s = direction_of_pixel(c, plane, double(x), double(y));
    if (!(s[2] > 0.26)) continue;  // 75 degrees
    ++n;
    const auto sums = observe(c, {Star{s, 3}});
    VisInput in;
    in.type = VisInput::Type::cf64;
    in.sums = sums.data();
    in.n_spectra = 1;
    for (const auto& imager : imagers) {
      imager->execute(queue, in, images);
      for (std::size_t bin = 0; bin < 2; ++bin) {
        EXPECT_NEAR(images.pixels[bin * 4096 + std::size_t(y * 64 + x)], 3, 3 * 0.005)
            << name(imager->path()) << " n " << s[2] << " bin " << bin;
      }
    }
  }
}

TEST(AllSkySky, ThreeSourcesAreNotMirrored) {
  auto c = random_array(60, 64, 1, 40, 7);
  c.channels.n_channels = 1;
  const ArrayPlane plane = fit_plane(c);
  const std::vector<Star> stars{star(40, 35, 4), star(190, 50, 2), star(290, 20, 1)};
  const auto sums = observe(c, stars);
  for (const Path path : kVisPaths) {
    const Images images = image_of(c, path, sums, "auto");
    for (const auto& each : stars) {
      const auto [x, y] = pixel_of_direction(c, plane, each.s);
      EXPECT_NEAR(find_peak(images, 64, x, y).value, each.power, 0.25 * each.power + 0.2);
      for (const auto& [u, v] : {std::pair{64 - x, y}, {x, 64 - y}, {64 - x, 64 - y}, {y, x}}) {
        const auto at = images.pixels[std::size_t(std::llround(v) * 64 + std::llround(u))];
        EXPECT_LT(at, 0.5) << name(path);
      }
    }
  }
}

// Fault 10: the n term of the Fourier sums is the true one, and positions are not rounded.
TEST(AllSkySky, FourierSumsAreExactForAnyHeights) {
  auto c = random_array(25, 64, 1, 30, 8);
  tilt(c, 0.1, -0.2, 4);
  c.channels.n_channels = 1;
  const Star one = star(200, 60);
  c.directions = {one.s, {0, 0, 1}};
  const auto exact = image_of(c, Path::vis_dft, observe(c, {one}), "auto");
  EXPECT_NEAR(exact.pixels[0], 1, 1e-4);
  c.directions.clear();
  c.cell_wavelengths = 0.45;
  const auto gridded = image_of(c, Path::vis_grid, observe(c, {one}), "auto");
  const auto [x, y] = pixel_of_direction(c, fit_plane(c), one.s);
  EXPECT_LT(find_peak(gridded, 64, x, y).value, 0.7);  // what the planner's coherence is about
}

// What the planner says that heights cost is what the images show: the flux of a source, and the
// difference of pixels of noise.
TEST(AllSkySky, HeightsCostWhatIsPredicted) {
  auto c = random_array(60, 64, 1, 30, 12);
  tilt(c, 0.02, 0.01, 0.4);
  c.channels.n_channels = 1;
  c.function.support = 7;
  c.cell_wavelengths = 0.40;
  const double nu_hz = c.channels.center_hz(0), z_deg = 55;
  const ArrayPlane plane = fit_plane(c);
  const auto used = antennas_used(c);
  const HeightError error = height_error(plane, used, nu_hz, z_deg * kDegree_rad);
  ASSERT_GT(error.flux_loss, 0.02);
  const Star one = star(120, z_deg);
  const auto sums = observe(c, {one});
  const auto [x, y] = pixel_of_direction(c, plane, one.s);
  const double exact = find_peak(image_of(c, Path::vis_dft, sums, "auto"), 64, x, y).value;
  const double gridded = find_peak(image_of(c, Path::vis_grid, sums, "auto"), 64, x, y).value;
  EXPECT_NEAR(gridded / exact, 1 - error.flux_loss, 0.004);  // peaks of a parabola: 0.2 % each
  // Noise: independent products. A pixel of radius r has its own error; about 300 beams in the sky.
  std::vector<cf64> noise(sums.size());
  for (std::size_t k = 0; k < noise.size(); ++k)
    noise[k] = cf64(gaussian(2 * k), gaussian(2 * k + 1));
  const Images a = image_of(c, Path::vis_dft, noise, "auto");
  const Images b = image_of(c, Path::vis_grid, noise, "auto");
  double expected = 0, seen = 0;
  for (std::int64_t row = 0; row < 64; ++row) {
    for (std::int64_t column = 0; column < 64; ++column) {
      const auto s = direction_of_pixel(c, plane, double(column), double(row));
      if (!(s[2] > std::cos(65 * kDegree_rad))) continue;
      const auto k = std::size_t(row * 64 + column);
      const double e = height_error(plane, used, nu_hz, std::acos(s[2])).flux_loss;
      expected += 2 * e * double(a.pixels[k]) * double(a.pixels[k]);
      seen += std::pow(double(a.pixels[k]) - double(b.pixels[k]), 2);
    }
  }
  // Both sums are of some hundred independent beams: 1 / sqrt(100) each way.
  EXPECT_NEAR(std::sqrt(seen / expected), 1, 0.15);
}

// ---- polarization --------------------------------------------------------------------------

// Fields that an antenna on the ground sees from zenith: the same sample everywhere, Y through a
// gain. `n` integers (re, im), so ci8 holds them exactly.
Images zenith_images(AllSkyConfig c, const std::string& implementation,
                     const std::vector<std::array<cf64, 2>>& xy, cf32 gain_x, cf32 gain_y) {
  c.channels.n_channels = 1;
  c.path = Path::efield;
  c.implementation = implementation;
  const auto n_spectra = static_cast<std::int64_t>(xy.size()), n = std::int64_t(c.inputs.size());
  Buffer<std::byte> memory(dense_blocks_bytes(SampleFormat::ci8, 1, n_spectra, n));
  const BlockView view = dense_blocks(memory.data(), SampleFormat::ci8, 1, n_spectra, n);
  std::vector<cf32> gains;
  for (std::int64_t p = 0; p < n; ++p) {
    const int pol = c.inputs[std::size_t(p)].pol;
    for (std::int64_t t = 0; t < n_spectra; ++t)
      set_sample(view, 0, t, p, xy[std::size_t(t)][std::size_t(pol)]);
    gains.push_back(pol == 0 ? gain_x : gain_y);
  }
  Queue queue = Queue::cpu(1);
  auto imager = make_field_imager(queue, c);
  imager->set_gains(queue, gains);
  FieldInput in;
  in.blocks = view;
  in.n_spectra = n_spectra;
  imager->execute(queue, in);
  Images images = garbage_images();
  imager->finish(queue, images);
  return images;
}

std::array<double, 4> planes_at_zenith(const Images& images, std::int64_t g) {
  std::array<double, 4> out{};
  for (std::size_t k = 0; k < 4; ++k) {
    out[k] = images.pixels[k * std::size_t(g * g) + std::size_t(g / 2 * g + g / 2)];
  }
  return out;
}

// Fault 1: "U" of ReX ImX + ReY ImY, "V" its modulus. The example of image.md 1.
TEST(AllSkyStokes, TheExampleOfTheNote) {
  const auto c = random_array(6, 64, 2, 20);
  for (const std::string implementation : {"reference", "auto"}) {
    const auto images = zenith_images(c, implementation, {{cf64(60, -80), cf64(60, -80)}}, 1,
                                      cf32(std::polar(0.5, 0.7)));
    const auto [i, q, u, v] = planes_at_zenith(images, 64);
    const double s = 1e4;
    EXPECT_NEAR(i / s, 0.625, 2e-6);
    EXPECT_NEAR(q / s, 0.375, 2e-6);
    EXPECT_NEAR(u / s, 0.382421, 2e-6);
    EXPECT_NEAR(v / s, -0.322109, 2e-6);
  }
}

TEST(AllSkyStokes, LinearPolarizationAtFourAngles) {
  const auto c = random_array(6, 64, 2, 20);
  for (const double angle_deg : {0.0, 30.0, 90.0, 135.0}) {
    const double angle_rad = angle_deg * kDegree_rad;
    const auto images =
        zenith_images(c, "auto", {{cf64(100, 20), cf64(100, 20)}},
                      float(std::cos(angle_rad)) + 1e-9f, float(std::sin(angle_rad)) + 1e-9f);
    const auto [i, q, u, v] = planes_at_zenith(images, 64);
    double found_deg = 0.5 * std::atan2(u, q) / kDegree_rad;
    if (found_deg < -1) found_deg += 180;
    EXPECT_NEAR(found_deg, angle_deg, 0.1);
    EXPECT_NEAR(std::hypot(q, u), i, 1e-4 * i);
    EXPECT_NEAR(v, 0, 1e-5 * i);
  }
}

// Independent X and Y: Q, U and V are noise. 400 spectra of one bright source, so the standard
// error of Q, U, V is I / sqrt(400) times 1/sqrt(2) at most; 5 sigma.
TEST(AllSkyStokes, UnpolarizedStaysUnpolarized) {
  const auto c = random_array(4, 30, 2, 10);
  std::vector<std::array<cf64, 2>> xy;
  for (std::uint64_t t = 0; t < 400; ++t) {
    std::array<cf64, 2> e;
    for (std::uint64_t pol = 0; pol < 2; ++pol) {
      const auto key = combine(99, t, pol);
      e[pol] = {std::nearbyint(20 * gaussian(key)), std::nearbyint(20 * gaussian(key ^ 1u))};
    }
    xy.push_back(e);
  }
  const auto [i, q, u, v] = planes_at_zenith(zenith_images(c, "auto", xy, 1, 1), 30);
  EXPECT_NEAR(i, 800, 5 * 800 / std::sqrt(800.0));
  for (const double other : {q, u, v}) EXPECT_LT(std::abs(other), 5 * i / std::sqrt(800.0));
}

// ---- autocorrelations, weights, sums --------------------------------------------------------

// Fault 3: one antenna alone has signal, so there are no pairs: nothing may be left of its power,
// in any plane, XY* included. Kept, its power is there.
TEST(AllSkyAutos, PowerOfOneAntennaGoesAway) {
  AllSkyCase c = case_of("one loud antenna", random_array(5, 64, 2, 30));
  c.config.channels.n_channels = 1;
  c.config.products = Products::linear;
  c.format = SampleFormat::ci8;
  for (const bool remove : {true, false}) {
    c.config.remove_autos = remove;
    for (const Path path : {Path::efield, Path::efield_dft}) {
      const std::string implementation = path == Path::efield ? "auto" : "reference";
      Queue queue = Queue::cpu(1);
      AllSkyConfig config = c.config;
      config.path = path;
      config.implementation = implementation;
      auto imager = make_field_imager(queue, config);
      CaseData data(c);
      std::vector<cf32> gains(10, cf32(1));
      auto input = data.input(0, 2);  // a copy: silence all antennas but the third
      for (std::int64_t t = 0; t < 2; ++t) {
        for (std::int64_t p = 0; p < 10; ++p) {
          const BlockView writable{const_cast<std::byte*>(input.blocks.data),
                                   input.blocks.format,
                                   input.blocks.n_channels,
                                   input.blocks.n_blocks,
                                   input.blocks.n_inputs,
                                   input.blocks.channel_stride_bytes,
                                   input.blocks.block_stride_bytes,
                                   input.blocks.input_stride_bytes};
          set_sample(writable, 0, t, p, p / 2 == 2 ? cf64(100, -50 + 90 * double(p % 2)) : cf64(0));
        }
      }
      imager->set_gains(queue, gains);
      imager->execute(queue, input);
      Images images = garbage_images();
      imager->finish(queue, images);
      double largest = 0;
      for (const float p : images.pixels) {
        if (!std::isnan(p)) largest = std::max(largest, std::abs(double(p)));
      }
      // Power 12500 per antenna; kept, one of 25 pairs. Taper at the horizon: 1/40 of zenith.
      if (remove) {
        EXPECT_LT(largest, 12500.0 / 20 * 40 * 3e-7) << name(path);
      }
      if (!remove) {
        EXPECT_GT(largest, 400) << name(path);
      }
    }
  }
}

// Lost packets: the flux scale does not change. Constant signals, so that every pair is exact.
TEST(AllSkyWeights, LostPacketsDoNotDimASource) {
  for (const Path path : {Path::efield, Path::vis_grid, Path::vis_dft}) {
    AllSkyCase c = case_of("constant", random_array(9, 64, 2, 20), 200);
    c.config.channels.n_channels = 2;
    c.full_scale = true;
    c.lost = 0.4;
    c.masks_per_channel = true;
    Queue queue = Queue::cpu(1);
    const Images images = takes_voltages(path)
                              ? field_images(queue, "auto", path, c)
                              : vis_images(queue, "auto", path, c, VisInput::Type::ci64);
    for (std::size_t bin = 0; bin < 2; ++bin) {
      const double i = images.pixels[bin * 4 * 4096 + 32 * 64 + 32];
      const double u = images.pixels[(bin * 4 + 2) * 4096 + 32 * 64 + 32];
      EXPECT_NEAR(i, 128, 128 * 1e-4) << name(path);
      EXPECT_NEAR(u, 128, 128 * 1e-4) << name(path);
      EXPECT_LT(images.weights[3 * bin], 0.45 * 200 * 72) << "0.6 * 0.6 of all pairs";
      EXPECT_GT(images.weights[3 * bin], 0.27 * 200 * 72);
    }
  }
}

// Faults 4 and 5: no overflow and no loss in long sums, whatever the amplitude. bf16 sums keep
// 0.76.
TEST(AllSkySums, LongCoherentSumsKeepTheFlux) {
  AllSkyCase c = case_of("a thousand equal spectra", random_array(8, 30, 2, 10), 1000);
  c.config.channels.n_channels = 1;
  c.full_scale = true;
  c.format = SampleFormat::ci8;
  Queue queue = Queue::cpu(1);
  const Images images = field_images(queue, "auto", Path::efield, c);
  EXPECT_NEAR(images.pixels[15 * 30 + 15], 2 * 128 * 128, 2 * 128 * 128 * 1e-5);
}

// Antennas without any weight leave planes of NaN, not of zeros.
TEST(AllSkyWeights, NothingValidIsNaN) {
  AllSkyCase c = case_of("all lost", random_array(4, 30, 2, 10), 5);
  c.lost = 1;
  Queue queue = Queue::cpu(1);
  const Images images = field_images(queue, "auto", Path::efield, c);
  for (const float p : images.pixels) EXPECT_TRUE(std::isnan(p));
  for (const double w : images.weights) EXPECT_EQ(w, 0);
}

}  // namespace
}  // namespace ryle::image
