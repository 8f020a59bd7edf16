// SPDX-License-Identifier: BSD-3-Clause
// Visibilities through the all-sky imager, from dumps to summary and FITS header.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numbers>

#include "ryle/core/baseline.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/io/image/light_curve.hpp"
#include "ryle/pipeline/image/visibility_imaging.hpp"
#include "tests/support/light_curve_reader.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAntennas = 5;
constexpr std::int64_t kChannels = 2;
constexpr std::uint32_t kCount = 50;

class DumpImages : public ::testing::Test {
 protected:
  DumpImages()
      : directory_(fs::temp_directory_path() / ("ryle-dump-images-" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
    observation_.frequency = {50e6, 25e3, kChannels};
    auto& array = observation_.array;
    array.latitude_rad = 34 * kDegree_rad;
    array.longitude_rad = -107 * kDegree_rad;
    for (std::int64_t a = 0; a < kAntennas; ++a) {
      const auto x = static_cast<double>(a);
      array.antennas.push_back(
          {"A" + std::to_string(a), {9 * std::cos(2 * x), 9 * std::sin(3 * x), 0}});
      array.inputs.push_back({a, 0, 0, 0, 0, false});
      array.inputs.push_back({a, 1, 0, 0, 0, false});
    }
    observation_.phase_center = zenith(array, kStart_tai_ns);
  }
  ~DumpImages() override { fs::remove_all(directory_); }

  /// A source of power 1 at the phase center behind receivers of amplitude a + 1.
  VisibilityDump dump(int k) const {
    VisibilityDump d;
    d.start_tai_ns = kStart_tai_ns + k * 1'000'000'000LL;
    d.centroid_tai_ns = d.start_tai_ns + 500'000'000;
    d.interval_s = 1;
    d.n_spectra = kCount;
    d.n_channels = kChannels;
    d.n_baselines = n_pairs(kAntennas);
    d.n_pol_products = 4;
    d.data.resize(static_cast<std::size_t>(kChannels * d.n_baselines * 4));
    d.counts.assign(d.data.size(), kCount);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      for (std::int64_t b = 0; b < d.n_baselines; ++b) {
        const auto [i, j] = pair_of(b);
        const auto value = static_cast<float>((i + 1) * (j + 1));
        for (const int pol : {0, 3}) d.data[static_cast<std::size_t>(d.index(c, b, pol))] = value;
      }
    }
    return d;
  }

  ObservationConfig config(std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(),
                     {"image.n_pixels=32", "image.path=vis-dft", "image.cadence_s=1",
                      "image.fits=false", "image.latest=false", "runtime.device=cpu",
                      "runtime.threads=1", "output.directory=" + directory_.string()});
    return parse_observation("schema = 1\n", "test", overrides);
  }

  static constexpr std::int64_t kStart_tai_ns = 1'700'000'000'000'000'000;
  fs::path directory_;
  Observation observation_;
};

// The imager of a device reads memory of the device.
TEST_F(DumpImages, AreTheSameOnADevice) {
  if (!cuda_unavailable_reason().empty()) GTEST_SKIP() << cuda_unavailable_reason();
  const std::vector<VisibilityDump> dumps{dump(0), dump(1)};
  const auto host = image_visibilities(config(), observation_, dumps);
  const auto device = image_visibilities(config({"runtime.device=cuda:0"}), observation_, dumps);
  EXPECT_NEAR(device.image->peak->value, host.image->peak->value, 1e-5);
  EXPECT_NEAR(device.image->peak->l, host.image->peak->l, 1e-5);
  EXPECT_DOUBLE_EQ(device.image->weight_fraction, 1);
}

// Antenna 4 has no data in the first dump: it is used where it has some.
TEST_F(DumpImages, TakeAnAntennaThatComesLate) {
  std::vector<VisibilityDump> dumps{dump(0), dump(1)};
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t b = n_pairs(kAntennas - 1); b < n_pairs(kAntennas); ++b) {
      for (int pol = 0; pol < 4; ++pol)
        dumps[0].counts[static_cast<std::size_t>(dumps[0].index(c, b, pol))] = 0;
    }
  }
  const auto summary = image_visibilities(config(), observation_, dumps);
  EXPECT_EQ(summary.image->n_dead_inputs, 0);
  EXPECT_DOUBLE_EQ(summary.image->weight_fraction, 1);  // of the last image
  EXPECT_TRUE(summary.image->equalized);
  EXPECT_NEAR(summary.image->peak->value, 1, 0.02);  // between pixels of the phase center
}

// The table holds the amplitudes a + 1 of the receivers, and says so in the header.
TEST_F(DumpImages, DivideAGivenTableOut) {
  const fs::path table = directory_ / "table.csv";
  std::ofstream out(table);
  out << "input,amplitude,phase_deg\n";
  for (std::int64_t p = 0; p < 2 * kAntennas; ++p) out << p << "," << 3 * (p / 2 + 1) << ",0\n";
  out.close();
  const fs::path file = directory_ / "image.fits";
  const std::vector<VisibilityDump> dumps{dump(0)};
  const auto summary =
      image_visibilities(config({"calibration.gains=" + table.string(), "image.fits=true",
                                 "image.output=" + file.string()}),
                         observation_, dumps);
  EXPECT_FALSE(summary.image->equalized);
  EXPECT_NEAR(summary.image->peak->value, 1.0 / 9, 0.02 / 9);
  std::ifstream in(file, std::ios::binary);
  const std::string fits((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(fits.find("table.csv"), std::string::npos);
  EXPECT_EQ(fits.find("as in the visibilities"), std::string::npos);
}

// A light curve has a row for every integration, at its time, and holds the exact sum: 1 at the
// phase center, whose power is that of the receivers.
TEST_F(DumpImages, HaveLightCurvesWithTheTimesOfTheIntegrations) {
  std::vector<VisibilityDump> dumps{dump(0), dump(1), dump(2)};
  dumps[1].centroid_tai_ns += 7'000'000;  // a filter's delay
  const auto d = observation_.phase_center;
  const fs::path store = directory_ / "watch.sqlite";
  const std::string place =
      std::to_string(d.ra_rad / kDegree_rad) + "/" + std::to_string(d.dec_rad / kDegree_rad);
  const auto summary =
      image_visibilities(config({"image.watch=[\"here=" + place + "\", \"below=10/-80\"]",
                                 "image.light_curves=" + store.string(), "image.path=vis-grid",
                                 "image.channels_per_bin=1"}),
                         observation_, dumps);
  ASSERT_EQ(summary.image->watched.size(), 2U);
  EXPECT_EQ(summary.image->watched[0].n_images, 3);
  EXPECT_NEAR(summary.image->watched[0].mean_flux, 1, 1e-5);
  test::LightCurveReader reader(store);
  const auto curve = reader.light_curve("here");
  ASSERT_EQ(curve.size(), 6U);  // two bins
  for (std::size_t k = 0; k < curve.size(); ++k) {
    EXPECT_EQ(curve[k].start_tai_ns, dumps[k / 2].start_tai_ns);
    EXPECT_EQ(curve[k].centroid_tai_ns, dumps[k / 2].centroid_tai_ns);
    EXPECT_NEAR(curve[k].exposure_s, 1, 1e-9);
    EXPECT_NEAR(curve[k].stokes[0], 1, 1e-5);
    EXPECT_NEAR(curve[k].stokes[1], 0, 1e-5);
    EXPECT_EQ(curve[k].center_hz, 50e6 + 25e3 * static_cast<double>(k % 2));
  }
  for (const auto& point : reader.light_curve("below")) {
    EXPECT_TRUE(std::isnan(point.stokes[0]));
    EXPECT_LT(point.elevation_rad, 0);
  }
}

}  // namespace
}  // namespace ryle::pipeline
