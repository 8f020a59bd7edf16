// SPDX-License-Identifier: BSD-3-Clause
// Stacks on the disk: their times and what they lost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "ryle/io/image/image_cube.hpp"
#include "ryle/pipeline/image/sky_products.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPixels = 16;
constexpr std::int64_t kStart_tai_ns = 1'700'000'000'000'000'000;

/// One HDF5 cube of all images, nothing else.
ObservationConfig cube_config(const fs::path& file) {
  ObservationConfig config;
  config.output.directory = file.parent_path().string();
  config.image.fits = false;
  config.image.latest = false;
  config.image.hdf5 = file.string();
  return config;
}

Observation one_channel() {
  Observation observation;
  observation.array.latitude_rad = 0.6;
  observation.array.longitude_rad = -1.9;
  observation.frequency = {60e6, 25e3, 1};
  return observation;
}

/// 10 spectra of 1 ms.
RawImages raw_images(std::int64_t k, double weight) {
  RawImages raw;
  raw.n_spectra = 10;
  raw.first_spectrum = 10 * k;
  raw.clock = {kStart_tai_ns, {1000, 1}};
  raw.images.pixels.assign(kPixels * kPixels, 1.0F);
  raw.images.weights = {weight, 0, 0};
  return raw;
}

// Stacks of four images of 10 spectra of 1 ms, three inputs: 60 pairs an image. Images 2 and 3
// never came, image 1 lost a half: the first stack ends with its own 40 ms.
TEST(StackProducts, HaveTheTimesAndTheLossOfTheirImages) {
  const fs::path file =
      fs::temp_directory_path() / ("ryle-stack-products-" + std::to_string(getpid()) + ".h5");
  fs::remove(file);
  const ObservationConfig config = cube_config(file);
  const Observation observation = one_channel();
  SkyMetadata metadata;
  metadata.sky.antenna_enu_m = {{0, 0, 0}, {10, 0, 0}, {0, 10, 0}};
  metadata.sky.inputs = {{0, 0, false}, {1, 0, false}, {2, 0, false}};
  metadata.sky.channels = observation.frequency;
  metadata.sky.n_pixels = kPixels;
  metadata.sky.n_spectra_per_image = 10;
  metadata.images_per_stack = 4;
  metadata.window_s = 1e-3;
  SkyProducts products(config, observation, metadata);
  for (const std::int64_t k : {0, 1, 4, 5, 6, 7, 8}) {
    RawImages raw = raw_images(k, k == 1 ? 30.0 : 60.0);
    raw.images.n_spectra = 10;
    products.write(raw);
  }
  products.finish();
  ASSERT_TRUE(products.errors().empty()) << products.errors().front();
  {
    const ImageCubeReader cube(file.string());
    ASSERT_EQ(cube.n_images(), 3);
    const std::int64_t starts_ms[] = {0, 40, 80}, ends_ms[] = {20, 80, 90};
    const double loss_ppm[] = {250'000, 0, 0};
    for (std::int64_t k = 0; k < 3; ++k) {
      const SkyImage image = cube.image(k);
      EXPECT_EQ(image.start_tai_ns - kStart_tai_ns, starts_ms[k] * 1'000'000) << k;
      EXPECT_EQ(image.end_tai_ns - kStart_tai_ns, ends_ms[k] * 1'000'000) << k;
      EXPECT_NEAR(image.metadata.loss_ppm, loss_ppm[k], 1e-6) << k;
    }
  }
  fs::remove(file);
}

// Three of four inputs have power and lose nothing: 6 of 12 pairs of a spectrum. A dead input is
// counted apart; an image that lost a half of what the others sent says so.
TEST(StackProducts, ADeadInputIsNoLoss) {
  const fs::path file =
      fs::temp_directory_path() / ("ryle-dead-products-" + std::to_string(getpid()) + ".h5");
  fs::remove(file);
  const ObservationConfig config = cube_config(file);
  const Observation observation = one_channel();
  SkyMetadata metadata;
  metadata.sky.antenna_enu_m = {{0, 0, 0}, {10, 0, 0}, {0, 10, 0}, {9, 9, 0}};
  metadata.sky.inputs = {{0, 0, false}, {1, 0, false}, {2, 0, false}, {3, 0, false}};
  metadata.sky.channels = observation.frequency;
  metadata.sky.n_pixels = kPixels;
  metadata.sky.n_spectra_per_image = 10;
  metadata.window_s = 1e-3;
  SkyProducts products(config, observation, metadata);
  for (std::int64_t k = 0; k < 2; ++k) {
    RawImages raw = raw_images(k, k == 1 ? 30.0 : 60.0);
    raw.n_dead = {1, 0};
    raw.images.n_spectra = 10;
    products.write(raw);
    EXPECT_DOUBLE_EQ(products.weight_fraction(), k == 1 ? 0.25 : 0.5);  // of all that are not bad
  }
  products.finish();
  ASSERT_TRUE(products.errors().empty()) << products.errors().front();
  {
    const ImageCubeReader cube(file.string());
    EXPECT_NEAR(cube.image(0).metadata.loss_ppm, 0, 1e-6);
    EXPECT_NEAR(cube.image(1).metadata.loss_ppm, 500'000, 1e-6);
  }
  fs::remove(file);
}

// Images that the trigger could not search are told, not only the events it found.
TEST(StackProducts, CountWhatTheTriggerSkipped) {
  ObservationConfig config;
  config.output.directory = fs::temp_directory_path().string();
  config.image.fits = false;
  config.image.latest = false;
  config.image.trigger_sigma = 8;
  SkyMetadata metadata;
  metadata.sky.inputs = {{0, 0, false}};
  metadata.sky.channels = {60e6, 25e3, 1};
  metadata.sky.n_pixels = kPixels;
  SkyProducts products(config, {}, metadata);
  for (std::int64_t k = 0; k < 3; ++k) {
    products.write(raw_images(k, k == 1 ? 0.0 : 60.0));
  }
  products.finish();
  EXPECT_EQ(products.images_not_searched(), 1);
  ImageSummary summary;
  summary.images_not_searched = 1;
  EXPECT_NE(to_text(summary).find("1 images not searched"), std::string::npos);
}

}  // namespace
}  // namespace ryle::pipeline
