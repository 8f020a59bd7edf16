// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/covariance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/engine/image/statistics.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

const std::string kFolder = "eda2_20191104/";
const std::string kReal =
    kFolder + "20191104_033537_eda2_ch1_ant256_midday_avg1_vis_real_channel000_time000000.fits";
const std::string kImaginary =
    kFolder + "20191104_033537_eda2_ch1_ant256_midday_avg1_vis_imag_channel000_time000000.fits";

class Eda2 : public testing::Test {
 protected:
  void SetUp() override {
    RYLE_REQUIRE_DATA(real, kReal);
    RYLE_REQUIRE_DATA(imaginary, kImaginary);
    RYLE_REQUIRE_DATA(antennas, kFolder + "antenna_locations.txt");
    files_.real_path = real;
    files_.imaginary_path = imaginary;
    files_.antennas_path = antennas;
    files_.frequency_hz = 159.375e6;
    files_.latitude_deg = -26.70331940;
    files_.longitude_deg = 116.67081524;
    files_.height_m = 377;
  }
  CovarianceFiles files_;
};

// Image about the zenith in the frame of the array: l east, m north.
image::Peak peak_of(const VisibilityFile& file, const image::Config& config,
                    const std::vector<std::int64_t>& without) {
  const auto& dump = file.dumps.front();
  const double per_m = file.observation.frequency.center_hz(0) / kSpeedOfLight_m_per_s;
  std::vector<image::Sample> samples;
  for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
    const auto [i, j] = pair_of(b);
    const auto at = static_cast<std::size_t>(b);
    if (dump.counts[at] == 0) continue;
    if (std::find(without.begin(), without.end(), i) != without.end()) continue;
    if (std::find(without.begin(), without.end(), j) != without.end()) continue;
    const auto& p = file.observation.array.antennas[static_cast<std::size_t>(i)].enu_m;
    const auto& q = file.observation.array.antennas[static_cast<std::size_t>(j)].enu_m;
    samples.push_back({(p[0] - q[0]) * per_m, (p[1] - q[1]) * per_m, (p[2] - q[2]) * per_m,
                       cf64(dump.data[at]), 1});
  }
  Queue queue = Queue::cpu();
  std::vector<double> image;
  image::make_imager(queue, config)->execute(queue, samples, image);
  return image::peak_of(config, image);
}

TEST_F(Eda2, TheSunStandsWhereItWas) {
  const auto file = read_covariance(files_);
  EXPECT_EQ(file.observation.array.n_antennas(), 256);
  EXPECT_EQ(
      std::count_if(file.observation.array.inputs.begin(), file.observation.array.inputs.end(),
                    [](const ArrayInput& input) { return input.bad; }),
      13);
  EXPECT_EQ(utc_iso(file.dumps.front().start_tai_ns, 0), "2019-11-04T03:35:37");
  const image::Config config{180, 2.0, "cpu"};
  const auto sun = peak_of(file, config, {});
  EXPECT_NEAR(sun.direction.l, 0.09, 0.02);
  EXPECT_NEAR(sun.direction.m, 0.20, 0.02);
  EXPECT_GT(sun.sigmas, 60);
  // Two antennas with outlying rows hide a third of it (image.md 10).
  EXPECT_NEAR(peak_of(file, config, {30, 43}).sigmas, 85, 85 * 0.05);
}

TEST_F(Eda2, TheSunTellsWhichWayRoundTheFileIs) {
  const auto notes = read_covariance(files_).observation.provenance.notes;
  EXPECT_NE(notes.at("covariance sign").find("conjugated: no, found from the Sun"),
            std::string::npos);
  files_.conjugate = Conjugate::yes;
  const auto mirrored = peak_of(read_covariance(files_), {180, 2.0, "cpu"}, {});
  EXPECT_NEAR(mirrored.direction.l, -0.09, 0.02);
  EXPECT_NEAR(mirrored.direction.m, -0.20, 0.02);
  // As good an image, which is why its height cannot tell.
  EXPECT_GT(mirrored.sigmas, 60);
  files_.conjugate = Conjugate::automatic;
  files_.utc = "2019-11-04T15:35:37";  // night
  EXPECT_THROW(read_covariance(files_), ConfigError);
}

TEST_F(Eda2, SaysWhatIsMissing) {
  const auto message_of = [](const CovarianceFiles& files) -> std::string {
    try {
      read_covariance(files);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  auto wrong = files_;
  wrong.frequency_hz = 0;
  EXPECT_NE(message_of(wrong).find("frequency"), std::string::npos);
  wrong = files_;
  wrong.latitude_deg = std::nan("");
  EXPECT_NE(message_of(wrong).find("latitude"), std::string::npos);
  wrong = files_;
  wrong.imaginary_path = "no/such/file.fits";
  EXPECT_THROW(read_covariance(wrong), IoError);
  wrong = files_;
  wrong.imaginary_path = wrong.antennas_path;
  EXPECT_THROW(read_covariance(wrong), FormatError);
  const auto few = std::filesystem::path(testing::TempDir()) / "ryle_few_antennas.txt";
  std::ofstream(few) << "# two\nA 0 0 0\nB 1 0 0 # east\n\n";
  wrong = files_;
  wrong.antennas_path = few.string();
  EXPECT_NE(message_of(wrong).find("has 2"), std::string::npos) << message_of(wrong);
  std::ofstream(few) << "A 0 0 0\nB 1 zero 0\n";
  EXPECT_NE(message_of(wrong).find(":2:"), std::string::npos) << message_of(wrong);
  std::filesystem::remove(few);
}

}  // namespace
}  // namespace ryle
