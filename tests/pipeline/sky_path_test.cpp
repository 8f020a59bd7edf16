// SPDX-License-Identifier: BSD-3-Clause
// Channelized voltages through SkyPath: levels, inputs that die and return, times.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ryle/core/bits.hpp"
#include "ryle/core/random.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kInputs = 6;
constexpr std::int64_t kChannels = 2;
constexpr std::int64_t kSpectra = 100;  // of a gulp, and of an image
constexpr SampleClock kClock{1'700'000'000'000'000'000, {1000, 1}};

class SkyPaths : public ::testing::Test {
 protected:
  SkyPaths()
      : directory_(fs::temp_directory_path() / ("ryle-sky-paths-" + std::to_string(getpid()))),
        bytes_(dense_blocks_bytes(SampleFormat::ci4, kChannels, kSpectra, kInputs)),
        blocks_(dense_blocks(bytes_.data(), SampleFormat::ci4, kChannels, kSpectra, kInputs)) {
    fs::create_directories(directory_);
    std::ofstream(directory_ / "layout.csv")
        << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n"
           "A,0,0,0,X,0\nB,10,0,0,X,0\nC,0,10,0,X,0\nD,-10,3,0,X,0\nE,4,-10,0,X,0\nF,7,7,0,X,0\n";
  }
  ~SkyPaths() override { fs::remove_all(directory_); }

  ObservationConfig config(std::vector<std::string> overrides = {}) const {
    overrides.insert(
        overrides.begin(),
        {"telescope.layout=layout.csv", "telescope.latitude_deg=34", "telescope.longitude_deg=-107",
         "image.n_pixels=32", "image.path=vis-dft", "image.cadence_s=0.1", "image.fits=false",
         "image.latest=false", "image.equalize=yes", "runtime.device=cpu", "runtime.threads=1",
         "output.directory=" + directory_.string()});
    return parse_observation("schema = 1\n", (directory_ / "obs.toml").string(), overrides);
  }

  static SpectraMetadata metadata() {
    SpectraMetadata metadata;
    metadata.frequency = {50e6, 25e3, kChannels};
    metadata.clock = kClock;
    metadata.max_gulp = kSpectra;
    metadata.format = SampleFormat::ci4;
    return metadata;
  }

  /// Noise of every input; `silent`: nothing came from it; `dead`: it sent zeros.
  SpectraGulp gulp(std::int64_t n_spectra, std::int64_t silent, std::int64_t dead) {
    words_ = words_for_bits(n_spectra);
    valid_.assign(static_cast<std::size_t>(kInputs * words_), 0);
    for (std::int64_t p = 0; p < kInputs; ++p) {
      if (p != silent) set_bits(valid_.data() + p * words_, 0, n_spectra);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        for (std::int64_t t = 0; t < n_spectra; ++t) {
          const std::uint64_t k = mix64(++seed_);
          const cf64 v(static_cast<double>(k % 9) - 4, static_cast<double>(k / 16 % 9) - 4);
          set_sample(blocks_, c, t, p, p == silent || p == dead ? cf64{} : v);
        }
      }
    }
    return {blocks_, n_spectra, valid_.data(), words_, 0};
  }

  fs::path directory_;
  Buffer<std::byte> bytes_;
  BlockView blocks_;
  std::vector<std::uint64_t> valid_;
  std::int64_t words_ = 0;
  std::uint64_t seed_ = 0;
};

// A capture node that starts late: its input counts from the image after the first data on.
TEST_F(SkyPaths, TakeUpAnInputThatWasSilentAtTheStart) {
  const auto setup = config();
  SkyPath path(setup, load_array(setup, kInputs), metadata(), "test");
  for (int k = 0; k < 5; ++k)
    path.feed(gulp(kSpectra, k < 2 ? 3 : -1, -1), k * kSpectra, 0, kClock);
  RunSummary summary;
  path.finish({}, summary);
  EXPECT_EQ(summary.image->images, 5);
  EXPECT_EQ(summary.image->n_dead_inputs, 0);
  EXPECT_DOUBLE_EQ(summary.image->weight_fraction, 1);  // of the last image
  ASSERT_EQ(summary.warnings.size(), 1U);
  EXPECT_NE(summary.warnings[0].find("1 have it again"), std::string::npos) << summary.warnings[0];
}

// Zeros at the start: looked at again after a second, and not lost for ever.
TEST_F(SkyPaths, TakeUpAnInputThatWasDeadAtTheStart) {
  const auto setup = config();
  for (const int returns_at : {3, 99}) {
    SkyPath path(setup, load_array(setup, kInputs), metadata(), "test");
    for (int k = 0; k < 15; ++k)
      path.feed(gulp(kSpectra, -1, k < returns_at ? 3 : -1), k * kSpectra, 0, kClock);
    RunSummary summary;
    path.finish({}, summary);
    const bool back = returns_at < 15;
    EXPECT_EQ(summary.image->n_dead_inputs, back ? 0 : 1);
    // Pairs of the five others of six.
    EXPECT_DOUBLE_EQ(summary.image->weight_fraction, back ? 1 : 20.0 / 30);
    EXPECT_EQ(summary.warnings.size(), back ? 1U : 0U);
  }
}

// Images of 4 spectra: 8 samples an input. What a check sees must not throw living inputs out, and
// levels come from all that was measured.
TEST_F(SkyPaths, JudgeInputsByEnoughSamples) {
  const auto setup =
      config({"image.cadence_s=0.004", "image.dead_below=0.7", "image.dead_above=1.4"});
  SkyPath path(setup, load_array(setup, kInputs), metadata(), "test");
  for (int k = 0; k < 3; ++k) path.measure(gulp(kSpectra, -1, -1));  // 4 % each
  for (int k = 0; k < 1000; ++k) path.feed(gulp(4, -1, -1), 4 * k, 0, kClock);
  RunSummary summary;
  path.finish({}, summary);
  EXPECT_EQ(summary.image->images, 1000);
  EXPECT_EQ(summary.image->n_dead_inputs, 0);
  EXPECT_TRUE(summary.warnings.empty());
  EXPECT_DOUBLE_EQ(summary.image->weight_fraction, 1);
}

// Input 3 came with a hundredth of the power of the others before it was scaled up to theirs.
TEST_F(SkyPaths, JudgeInputsByTheirPowerBeforeScaling) {
  for (const double times : {1.0, 10.0}) {
    const auto setup = config();
    SpectraMetadata scaled = metadata();
    scaled.scale.assign(kInputs, 2);
    scaled.scale[3] *= times;
    SkyPath path(setup, load_array(setup, kInputs), scaled, "test");
    for (int k = 0; k < 12; ++k) path.feed(gulp(kSpectra, -1, -1), k * kSpectra, 0, kClock);
    RunSummary summary;
    path.finish({}, summary);
    EXPECT_EQ(summary.image->n_dead_inputs, times > 1 ? 1 : 0);
    EXPECT_DOUBLE_EQ(summary.image->weight_fraction, times > 1 ? 20.0 / 30 : 1);
    EXPECT_TRUE(summary.warnings.empty());  // as at the start, so later
  }
}

// ((M - 1) step + L - 1) / (2 f_s): without more knowledge a spectrum is as long as its interval.
TEST_F(SkyPaths, CentroidsLieInTheMiddleOfTheData) {
  for (const double window_s : {0.0, 0.007}) {
    const std::string file = (directory_ / "centroid.h5").string();
    const auto setup = config({"image.hdf5=" + file, "output.overwrite=true"});
    SpectraMetadata known = metadata();
    known.window_s = window_s;
    SkyPath path(setup, load_array(setup, kInputs), known, "test");
    path.feed(gulp(kSpectra, -1, -1), 0, 0, kClock);
    RunSummary summary;
    path.finish({}, summary);
    const SkyImage image = ImageCubeReader(file).image(0);
    EXPECT_EQ(image.start_tai_ns, kClock.epoch_tai_ns);
    // 99 intervals of 1 ms and the window, halved.
    EXPECT_EQ(image.centroid_tai_ns - image.start_tai_ns, window_s > 0 ? 53'000'000 : 50'000'000);
  }
}

}  // namespace
}  // namespace ryle::pipeline
