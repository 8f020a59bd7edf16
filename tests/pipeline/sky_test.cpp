// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/image/sky_chain.hpp"
#include "ryle/pipeline/image/sky_stack.hpp"
#include "ryle/pipeline/visibility/spectra_reader.hpp"

namespace ryle::pipeline {
namespace {

ArrayLayout line_array(std::int64_t n) {
  ArrayLayout array;
  array.latitude_rad = 0.6;
  for (std::int64_t a = 0; a < n; ++a) {
    const auto x = static_cast<double>(a);
    array.antennas.push_back({"A" + std::to_string(a), {3 * x, 7 * std::sin(x), 0}});
    array.inputs.push_back({a, 0, 1e-7 * x, 0, 0, false});
    array.inputs.push_back({a, 1, 1e-7 * x + 3e-9, 0, 0, false});
  }
  return array;
}

InputLevels levels_of(std::vector<double> powers) {
  InputLevels levels;
  levels.n.assign(powers.size(), 100);
  for (auto& p : powers) p *= 100;
  levels.sum = std::move(powers);
  return levels;
}

TEST(Cadence, WholeSpectraAndStacksOfAtMostFiveSeconds) {
  EXPECT_EQ(make_cadence(0.04, 25e3, 0).spectra_per_image, 1000);
  EXPECT_EQ(make_cadence(0.04, 25e3, 0).images_per_stack, 1);
  EXPECT_EQ(make_cadence(1e-9, 25e3, 0).spectra_per_image, 1);
  EXPECT_EQ(make_cadence(0, 23925.78125, 1).spectra_per_image, 1);
  EXPECT_EQ(make_cadence(0, 25e3, 777).spectra_per_image, 777);  // not one fewer
  const Cadence minute = make_cadence(60, 25e3, 0);
  EXPECT_EQ(minute.images_per_stack, 12);
  EXPECT_EQ(minute.spectra_per_image, 125000);
}

TEST(DeadInputs, AreJudgedByTheMedianOfTheOthers) {
  ArrayLayout array = line_array(4);
  array.inputs[7].bad = true;
  ImageConfig config;
  // Median of the living 8 .. 12 is 10: below 3 and above 40 is out.
  const auto dead = find_dead(array, levels_of({10, 2.9, 12, 41, 3.1, 8, 0, 10}), config);
  EXPECT_EQ(dead.flags, (std::vector<std::uint8_t>{0, 1, 0, 1, 0, 0, 1, 1}));
  EXPECT_EQ(dead.n_bad, 1);
  EXPECT_EQ(dead.n_dead, 3);
  // Nothing arrived from input 0: it stays what it was.
  InputLevels silent = levels_of({10, 10, 10, 10, 10, 10, 10, 10});
  silent.n[0] = 0;
  EXPECT_EQ(find_dead(array, silent, config, dead.flags).flags[0], 0);
  EXPECT_THROW(find_dead(array, levels_of(std::vector<double>(8, 0.0)), config), FormatError);
}

// c_a = exp(+2 pi i nu cable) / rms: a wave from the zenith comes out of every cable in phase.
TEST(ImagerGains, UndoCablesAndEqualize) {
  const ArrayLayout array = line_array(3);
  const FrequencyAxis axis{50e6, 25e3, 4};
  ObservationConfig config;
  const auto levels = levels_of({4, 9, 16, 25, 36, 49});
  const std::vector<std::uint8_t> dead{0, 0, 1, 0, 0, 0};
  const auto gains = imager_gains(config, array, axis, levels, dead, 0);
  for (std::int64_t c = 0; c < 4; ++c) {
    for (std::int64_t p = 0; p < 6; ++p) {
      const auto i = static_cast<std::size_t>(p);
      const cf64 gain(gains[static_cast<std::size_t>(c * 6 + p)]);
      if (dead[i] != 0) {
        EXPECT_EQ(gain, cf64{});
        continue;
      }
      const double nu = axis.center_hz(c);
      const double rms = static_cast<double>(p + 2);
      const cf64 sample =
          rms * std::polar(1.0, -2 * std::numbers::pi * nu * array.inputs[i].cable_delay_s);
      // float gains: 6e-8 each part.
      EXPECT_NEAR(std::abs(gain * sample - 1.0), 0, 2e-7) << c << " " << p;
    }
  }
  // A flux scale is calibration enough: no equalization, sqrt(Jy per count^2) instead.
  EXPECT_NEAR(std::abs(imager_gains(config, array, axis, levels, dead, 4.0)[0]), 2.0, 1e-6);
}

class SpectraSlices : public ::testing::TestWithParam<SampleFormat> {};

TEST_P(SpectraSlices, AreCutFromBlocksAndMasksAnywhere) {
  constexpr std::int64_t kChannels = 2, kInputs = 3, kSpectra = 300;
  const SampleFormat format = GetParam();
  Buffer<std::byte> bytes(dense_blocks_bytes(format, kChannels, kSpectra, kInputs));
  const BlockView view = dense_blocks(bytes.data(), format, kChannels, kSpectra, kInputs);
  const std::int64_t words = words_for_bits(kSpectra);
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(kChannels * kInputs * words));
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t p = 0; p < kInputs; ++p) {
      for (std::int64_t t = 0; t < kSpectra; ++t) {
        const std::uint64_t k = mix64(static_cast<std::uint64_t>((c * kInputs + p) * 1000 + t));
        set_sample(view, c, t, p,
                   {static_cast<double>(k % 16) - 8, static_cast<double>(k / 16 % 16) - 8});
        if (k / 256 % 3 != 0) set_bit(valid.data() + (c * kInputs + p) * words, t);
      }
    }
  }
  const SpectraGulp gulp{view, kSpectra, valid.data(), words, kInputs * words};
  SpectraSlice slice;
  for (const auto& [begin, n] : {std::pair<std::int64_t, std::int64_t>{0, 300},
                                 {0, 128},
                                 {128, 128},
                                 {1, 299},
                                 {127, 2},
                                 {130, 65},
                                 {299, 1},
                                 {63, 130}}) {
    const SpectraGulp part = slice(gulp, begin, n);
    ASSERT_EQ(part.n_spectra, n);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      for (std::int64_t p = 0; p < kInputs; ++p) {
        const std::uint64_t* row =
            part.valid + c * part.valid_channel_stride_words + p * part.valid_words;
        for (std::int64_t t = 0; t < part.blocks.n_blocks * spectra_per_block(format); ++t) {
          const cf64 wanted = t < n ? get_sample(view, c, begin + t, p) : cf64{};
          if (part.blocks.data == view.data && t >= n) continue;  // the gulp itself
          ASSERT_EQ(get_sample(part.blocks, c, t, p), wanted) << begin << " " << n << " " << t;
        }
        for (std::int64_t t = 0; t < n; ++t) {
          ASSERT_EQ(test_bit(row, t), test_bit(valid.data() + (c * kInputs + p) * words, begin + t))
              << begin << " " << n << " " << t;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SpectraSlices,
                         ::testing::Values(SampleFormat::ci4, SampleFormat::ci8,
                                           SampleFormat::cf32),
                         [](const auto& info) { return std::string(name(info.param)); });

image::AllSkyConfig small_sky(std::int64_t n_pixels) {
  image::AllSkyConfig sky;
  sky.antenna_enu_m = {{0, 0, 0}, {10, 0, 0}, {0, 10, 0}};
  sky.inputs = {{0, 0, false}, {1, 0, false}, {2, 0, false}};
  sky.channels = {50e6, 25e3, 1};
  sky.n_pixels = n_pixels;
  return sky;
}

// -7 and -8 are the complex correlations XY and YX: Re and Im of XY are neither.
TEST(StokesCodes, SayWhatEveryPlaneIs) {
  image::AllSkyConfig sky = small_sky(32);
  EXPECT_EQ(stokes_codes(sky), std::vector<int>{-5});
  sky.inputs[1].pol = 1;
  sky.products = image::Products::intensity;
  EXPECT_EQ(stokes_codes(sky), std::vector<int>{1});
  sky.products = image::Products::stokes;
  EXPECT_EQ(stokes_codes(sky), (std::vector<int>{1, 2, 3, 4}));
  sky.products = image::Products::linear;
  EXPECT_EQ(stokes_codes(sky), (std::vector<int>{-5, -6, kPlaneReXY, kPlaneImXY}));
}

// 64 images of every bin are kept: more than the imager itself needs.
TEST(SkyPlan, CountsTheMemoryOfTheTrigger) {
  image::AllSkyConfig sky = small_sky(64);
  sky.channels.n_channels = 16;
  sky.n_channels_per_bin = 1;
  ObservationConfig config;
  Queue queue = Queue::cpu(1);
  const std::int64_t without = choose_path(config, sky, queue).bytes;
  config.image.trigger_sigma = 8;
  const SkyPlan plan = choose_path(config, sky, queue);
  const math::ImageTrigger trigger(trigger_config(config, sky));
  EXPECT_EQ(plan.bytes - without, trigger.n_bytes());
  EXPECT_GT(trigger.n_bytes(), 64 * 16 * 4 * 1000);
  config.runtime.max_memory_gib = static_cast<double>(plan.bytes - 1) / (1 << 30);
  EXPECT_THROW(choose_path(config, sky, queue), OsLimitError);
}

// Predicted times are those of one speed of the cores.
TEST(SkyPlan, SaysAtWhichSpeedItHolds) {
  Queue queue = Queue::cpu(1);
  SkyPlan plan = choose_path({}, small_sky(64), queue);
  EXPECT_GT(plan.core_speed.ops, 1e8);
  plan.core_speed = {152.4e9, 11.37e9, 910e9};
  EXPECT_NE(plan_text(plan, 1).find("times hold for cores at 152 GFLOPS (fp32 multiply-adds) that "
                                    "read 11.4 GB/s, a small X-engine at 910 GOPS"),
            std::string::npos);
  EXPECT_NE(plan_json(plan, 1).find(R"("core_gflops":152.4)"), std::string::npos);
  plan.core_speed = {};
  EXPECT_EQ(plan_text(plan, 1).find("times hold"), std::string::npos);
}

// Half-way between pixels Keys's weights are -1/16, 9/16, 9/16, -1/16: 0.985 per axis of a Gaussian
// of sigma 1.4 pixels (bilinear: 0.938). Constants are exact everywhere; NaN spreads no further
// than it must.
TEST(SkyStack, InterpolatesByCubicConvolution) {
  std::vector<float> gauss(22 * 22), flat(22 * 22, 3.0F);
  for (std::int64_t y = 0; y < 22; ++y) {
    for (std::int64_t x = 0; x < 22; ++x) {
      const double r2 =
          std::pow(static_cast<double>(x) - 10.5, 2) + std::pow(static_cast<double>(y) - 10.5, 2);
      gauss[static_cast<std::size_t>(y * 22 + x)] =
          static_cast<float>(std::exp(-r2 / (2 * 1.4 * 1.4)));
    }
  }
  EXPECT_NEAR(interpolate(gauss, 22, 10.5, 10.5), 0.985 * 0.985, 0.002);
  EXPECT_FLOAT_EQ(interpolate(gauss, 22, 7, 9), gauss[9 * 22 + 7]);
  EXPECT_FLOAT_EQ(interpolate(flat, 22, 3.3, 17.8), 3.0F);
  flat[5 * 22 + 5] = NAN;
  EXPECT_FLOAT_EQ(interpolate(flat, 22, 6.5, 6.5), 3.0F);  // bilinear: its four are there
  EXPECT_TRUE(std::isnan(interpolate(flat, 22, 5.5, 5.5)));
  EXPECT_TRUE(std::isnan(interpolate(flat, 22, -0.5, 5)));
}

// Twelve images of a sky that turns under the array, stacked in the frame of the stars: the source
// stays where it was, its sum is kept to 2.5 % (the slant), its peak to 2 %.
TEST(SkyStack, KeepsPlaceAndFlux) {
  const image::AllSkyConfig sky = small_sky(128);
  image::ArrayPlane plane;
  plane.alpha = -0.026;
  plane.beta = 0.018;
  ArrayLayout array;
  array.latitude_rad = 34 * kDegree_rad;
  array.longitude_rad = -107 * kDegree_rad;
  const std::int64_t start = tai_ns_from_utc_iso("2024-06-27T06:00:00");
  constexpr std::int64_t kStep_ns = 20'000'000'000;
  const SkyDirection center = zenith(array, start + 6 * kStep_ns);
  const SkyDirection source =
      direction_of_enu(array, {0.45, -0.3, std::sqrt(1 - 0.45 * 0.45 - 0.09)}, start);
  constexpr double kSigma_px = 1.4;
  SkyStack stack(sky, plane);
  for (int k = 0; k < 12; ++k) {
    const std::int64_t t = start + k * kStep_ns;
    const Vector3 enu = enu_of_direction(array, source, t);
    const auto at = image::pixel_of_direction(sky, plane, enu);
    image::Images images;
    images.pixels.assign(128 * 128, 0.0F);
    images.weights = {6, 0, 0};
    images.n_spectra = 10;
    for (std::int64_t y = 0; y < 128; ++y) {
      for (std::int64_t x = 0; x < 128; ++x) {
        const double r2 = std::pow(static_cast<double>(x) - at[0], 2) +
                          std::pow(static_cast<double>(y) - at[1], 2);
        const bool up = !std::isnan(image::direction_of_pixel(sky, plane, static_cast<double>(x),
                                                              static_cast<double>(y))[2]);
        images.pixels[static_cast<std::size_t>(y * 128 + x)] =
            up ? static_cast<float>(100 * std::exp(-r2 / (2 * kSigma_px * kSigma_px))) : NAN;
      }
    }
    stack.add(images, uvw_axes(array, center, t));
  }
  EXPECT_EQ(stack.n_images(), 12);
  const image::Images mean = stack.finish();
  EXPECT_EQ(mean.n_spectra, 120);
  EXPECT_EQ(mean.weights, (std::vector<double>{72, 0, 0}));
  // Where it belongs, by the frame's own axes.
  const auto axes = uvw_axes(array, center, start);
  const Vector3 enu = enu_of_direction(array, source, start);
  std::array<double, 3> lmn{};
  for (std::size_t i = 0; i < 3; ++i)
    lmn[i] = axes[i][0] * enu[0] + axes[i][1] * enu[1] + axes[i][2] * enu[2];
  const auto wanted = image::pixel_of_direction(sky, image::ArrayPlane{}, lmn);
  double sum = 0, sum_x = 0, sum_y = 0, top = 0;
  for (std::int64_t y = 0; y < 128; ++y) {
    for (std::int64_t x = 0; x < 128; ++x) {
      const auto v = static_cast<double>(mean.pixels[static_cast<std::size_t>(y * 128 + x)]);
      if (std::isnan(v) ||
          std::hypot(static_cast<double>(x) - wanted[0], static_cast<double>(y) - wanted[1]) > 8) {
        continue;
      }
      sum += v;
      sum_x += v * static_cast<double>(x);
      sum_y += v * static_cast<double>(y);
      top = std::max(top, v);
    }
  }
  EXPECT_NEAR(sum_x / sum, wanted[0], 0.02);
  EXPECT_NEAR(sum_y / sum, wanted[1], 0.02);
  // The slant frame of an image and that of the stars differ in scale by up to alpha l / n.
  EXPECT_NEAR(sum, 100 * 2 * std::numbers::pi * kSigma_px * kSigma_px, 0.025 * sum);
  // Largest value of a pixel grid against the top of a Gaussian: up to exp(-0.25 / (2 sigma^2)).
  EXPECT_GT(top, 100 * std::exp(-0.5 / (2 * kSigma_px * kSigma_px)) * 0.98);
  EXPECT_LT(top, 101);
  EXPECT_TRUE(std::isnan(mean.pixels[0]));
}

// Independent noise in every image: the variance of a stack of n is the mean variance of n stacks
// of one image each, over n - exactly, in the mean, whatever the interpolation makes of a pixel,
// for it does the same to both. Cubic convolution correlates a pixel with its neighbours by at most
// a factor two in the sum of squared correlations: P pixels are P / 2 independent ones, and a
// variance of P / 2 values is known to sqrt(4 / P). Five of these allowed.
TEST(SkyStack, IndependentNoiseFallsWithTheRootOfTheImages) {
  constexpr std::int64_t kPixels = 128;
  constexpr int kImages = 32;
  const image::AllSkyConfig sky = small_sky(kPixels);
  ArrayLayout array;
  array.latitude_rad = 34 * kDegree_rad;
  const std::int64_t start = tai_ns_from_utc_iso("2024-06-27T06:00:00");
  constexpr std::int64_t kStep_ns = 5'000'000'000;
  const SkyDirection center = zenith(array, start + kImages / 2 * kStep_ns);
  // Pixels that are above the horizon of every image.
  const auto mean_square = [](const std::vector<float>& pixels) {
    double sum = 0;
    std::int64_t n = 0;
    for (std::int64_t y = 0; y < kPixels; ++y) {
      for (std::int64_t x = 0; x < kPixels; ++x) {
        if (std::hypot(x - kPixels / 2, y - kPixels / 2) > 0.8 * 0.4 * kPixels) continue;
        const auto v = static_cast<double>(pixels[static_cast<std::size_t>(y * kPixels + x)]);
        sum += v * v;
        ++n;
      }
    }
    return std::pair{sum / static_cast<double>(n), n};
  };
  SkyStack all(sky, {}), one(sky, {});
  double single = 0;
  for (int k = 0; k < kImages; ++k) {
    image::Images images;
    images.weights = {6, 0, 0};
    images.n_spectra = 10;
    for (std::uint64_t p = 0; p < kPixels * kPixels; ++p)
      images.pixels.push_back(
          static_cast<float>(gaussian(combine(29, static_cast<std::uint64_t>(k), p))));
    const auto axes = uvw_axes(array, center, start + k * kStep_ns);
    all.add(images, axes);
    one.add(images, axes);
    single += mean_square(one.finish().pixels).first / kImages;
  }
  const auto [stacked, n] = mean_square(all.finish().pixels);
  ASSERT_GT(n, 5000);
  EXPECT_GT(single, 0.2);  // smoothed, not smoothed away
  EXPECT_NEAR(stacked * kImages / single, 1, 5 * std::sqrt(4 / static_cast<double>(n)));
}

// One source, every path of SkyChain on every device there is, cut into gulps: same image, exact
// weights, lost spectra.
TEST(SkyChain, PathsAgreeAndLostSpectraCostWeightOnly) {
  constexpr std::int64_t kAntennas = 6, kSpectra = 40;
  image::AllSkyConfig sky = small_sky(32);
  sky.antenna_enu_m.clear();
  sky.inputs.clear();
  for (std::int64_t a = 0; a < kAntennas; ++a) {
    const auto x = static_cast<double>(a);
    sky.antenna_enu_m.push_back({8 * std::cos(2 * x), 8 * std::sin(3 * x), 0});
    sky.inputs.push_back({a, 0, false});
  }
  sky.n_spectra_per_image = kSpectra;
  sky.function.correlated = true;
  Buffer<std::byte> bytes(dense_blocks_bytes(SampleFormat::ci8, 1, kSpectra, kAntennas));
  const BlockView view = dense_blocks(bytes.data(), SampleFormat::ci8, 1, kSpectra, kAntennas);
  const double wave = sky.channels.first_center_hz / kSpeedOfLight_m_per_s;
  for (std::int64_t t = 0; t < kSpectra; ++t) {
    const double phase = static_cast<double>(mix64(static_cast<std::uint64_t>(t)) % 1000) * 6.28e-3;
    for (std::int64_t a = 0; a < kAntennas; ++a) {
      const auto& r = sky.antenna_enu_m[static_cast<std::size_t>(a)];
      const double turns = wave * (0.3 * r[0] - 0.2 * r[1]);
      const cf64 v = std::polar(100.0, phase + 2 * std::numbers::pi * turns);
      set_sample(view, 0, t, a, {std::round(v.real()), std::round(v.imag())});
    }
  }
  // Half of it, the tail of the block 0.
  Buffer<std::byte> half_bytes(dense_blocks_bytes(SampleFormat::ci8, 1, kSpectra / 2, kAntennas));
  const BlockView half =
      dense_blocks(half_bytes.data(), SampleFormat::ci8, 1, kSpectra / 2, kAntennas);
  for (std::int64_t t = 0; t < kSpectra / 2; ++t) {
    for (std::int64_t a = 0; a < kAntennas; ++a)
      set_sample(half, 0, t, a, get_sample(view, 0, t, a));
  }
  const std::int64_t words = words_for_bits(kSpectra);
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(kAntennas * words));
  for (std::int64_t a = 0; a < kAntennas; ++a) set_bits(valid.data() + a * words, 0, kSpectra);
  const SampleClock clock{0, {25'000, 1}};
  std::vector<RawImages> made;
  std::vector<Queue> queues{Queue::cpu(1)};
  if (cuda_unavailable_reason().empty()) queues.push_back(Queue::cuda());
  for (std::size_t run = 0; run < 2 * queues.size(); ++run) {
    const auto path = run % 2 == 0 ? image::Path::efield : image::Path::vis_grid;
    sky.path = path;
    SkyChain::Setup setup;
    setup.sky = sky;
    setup.max_gulp = kSpectra;
    const auto watch = [](std::int64_t) {
      return SkyChain::Watch{{{0.3, -0.2, std::sqrt(1 - 0.13)}}, {5}};
    };
    SkyChain chain(queues[run / 2], setup, std::vector<cf32>(kAntennas, 1.0F), watch,
                   [&](RawImages&& raw) { made.push_back(std::move(raw)); });
    EXPECT_EQ(chain.advance(100, 0, clock), kSpectra);
    chain.feed({view, kSpectra, valid.data(), words, 0});
    // A second image of which the last spectra never came.
    EXPECT_EQ(chain.advance(140, 0, clock), kSpectra);
    chain.feed({half, kSpectra / 2, valid.data(), words, 0});
    chain.advance(180 + 7, 0, clock);
  }
  ASSERT_EQ(made.size(), 4 * queues.size());
  constexpr double kPairs = kAntennas * (kAntennas - 1);
  for (std::size_t k = 0; k < made.size(); ++k) {
    const auto& raw = made[k];
    EXPECT_EQ(raw.first_spectrum, k % 2 == 0 ? 100 : 140);
    EXPECT_EQ(raw.n_spectra, kSpectra);
    EXPECT_DOUBLE_EQ(raw.images.weights[0], kPairs * (k % 2 == 0 ? kSpectra : kSpectra / 2));
    // |v|^2 = 10^4, rounding of the parts 0.3 of 100: the flux is the same with half of the data.
    ASSERT_EQ(raw.watched_index, std::vector<std::int64_t>{5});
    EXPECT_NEAR(raw.watched.pixels[0], 1e4, 30);
  }
  // In fp32, of the peak 1e4 (image.md 12, T-EP-01).
  for (std::size_t i = 2; i < made.size(); ++i) {
    for (std::size_t k = 0; k < made[0].images.pixels.size(); ++k) {
      const float a = made[i % 2].images.pixels[k];
      const float b = made[i].images.pixels[k];
      ASSERT_EQ(std::isnan(a), std::isnan(b));
      if (std::isnan(a)) continue;
      ASSERT_NEAR(a, b, 1.0) << i << " " << k;
    }
  }
}

// Inputs without a gain in any channel are dead; those bad by the layout are not counted.
TEST(SkyChain, CountsTheInputsItLeavesOut) {
  image::AllSkyConfig sky = small_sky(32);
  sky.antenna_enu_m = {{0, 0, 0}, {10, 0, 0}, {0, 10, 0}, {9, 9, 0}};
  sky.inputs = {{0, 0, false}, {1, 0, false}, {2, 1, true}, {3, 1, false}};
  sky.n_spectra_per_image = 8;
  sky.path = image::Path::vis_grid;
  SkyChain::Setup setup;
  setup.sky = sky;
  setup.max_gulp = 8;
  std::vector<cf32> gains(4, 1.0F);
  gains[1] = gains[2] = cf32{};
  std::vector<RawImages> made;
  SkyChain chain(Queue::cpu(1), setup, gains, {},
                 [&](RawImages&& raw) { made.push_back(std::move(raw)); });
  Buffer<std::byte> bytes(dense_blocks_bytes(SampleFormat::ci8, 1, 8, 4));
  const BlockView view = dense_blocks(bytes.data(), SampleFormat::ci8, 1, 8, 4);
  const std::uint64_t valid[4] = {255, 255, 255, 255};
  chain.advance(0, 0, {0, {25'000, 1}});
  chain.feed({view, 8, valid, 1, 0});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].n_dead, (std::array<std::int64_t, 2>{1, 0}));
}

}  // namespace
}  // namespace ryle::pipeline
