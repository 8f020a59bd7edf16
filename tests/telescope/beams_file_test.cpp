// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/beams_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

const char* const kGood = R"([telescope]
name = "four"
layout = "four.csv"
latitude_deg = 44.5
longitude_deg = 11.6
[band]
first_center_mhz = 417.990234375
channel_step_khz = -19.53125
n_channels = 1024
[calibration]
gains = "gains.csv"
mode = "phase"
normalization = "mean"
[subarray.north]
antennas = "2-3"
[subarray.tapered]
antennas = "0,2"
taper = [0.5, 1.0]
[[beam]]
name = "b0329"
frame = "icrs"
ra = "03h32m59.4s"
dec = "+54d34m43s"
[[beam]]
frame = "hadec"
ha_deg = 0.0
dec_deg = 58.8
subarray = "north"
[[beam]]
name = "beside"
relative_to = "b0329"
offset = "tangent"
offset_x_deg = 0.5
[[beam]]
name = "drift"
frame = "icrs"
ra_deg = 10.5
dec_deg = -3
freeze_at_utc = "2025-03-01T12:00:00"
subarray = "tapered"
[[beam_grid]]
around = "b0329"
count = 7
spacing_deg = 0.25
)";

class BeamsFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ryle_beams_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "four.csv")
        << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\na,0,0,0,X,0\nb,5,0,0,X,0\n"
           "c,0,10,0,X,0\nd,5,10,0,X,0\n";
    std::ofstream(folder_ / "gains.csv")
        << "input,amplitude,phase_deg\n0,1,0\n1,2,90\n2,1,0\n3,1,0\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  BeamsFile parse(const std::string& text) const {
    return parse_beams(text, (folder_ / "beams.toml").string());
  }
  void rejected(const std::string& from, const std::string& to, const std::string& line,
                const std::string& word) const {
    std::string text = kGood;
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    try {
      parse(text);
      ADD_FAILURE() << to << " was taken";
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("beams.toml:" + line + ":"), std::string::npos) << message;
      EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  }
  std::filesystem::path folder_;
};

TEST_F(BeamsFileTest, TheRecordingAndOptionsStandInForSections) {
  const std::string beam = "[[beam]]\nframe = \"azel\"\naz_deg = 0.0\nel_deg = 90.0\n";
  const std::string path = (folder_ / "beams.toml").string();
  BeamsContext context;
  context.band_of_data = true;
  context.array = parse(kGood).array;
  const BeamsFile alone = parse_beams(beam, path, context);
  EXPECT_EQ(alone.array.n_inputs(), 4);
  EXPECT_EQ(alone.n_channels, 0);
  // A layout replaces that of the file, which gives the place.
  context.array.reset();
  context.layout = (folder_ / "four.csv").string();
  const BeamsFile placed = parse_beams(
      "[telescope]\nlayout = \"none.csv\"\nlatitude_deg = 44.5\nlongitude_deg = 11.6\n" + beam,
      path, context);
  EXPECT_EQ(placed.array.n_inputs(), 4);
  EXPECT_NEAR(placed.array.latitude_rad, 44.5 * kDegree_rad, 1e-12);
  EXPECT_THROW(parse_beams(beam, path, context), ConfigError);  // no place
  EXPECT_THROW(parse_beams(kGood + std::string("[band]\n"), path), ConfigError);
}

TEST_F(BeamsFileTest, ReadsEverything) {
  const BeamsFile f = parse(kGood);
  EXPECT_EQ(f.array.n_inputs(), 4);
  EXPECT_EQ(f.array.name, "four");
  EXPECT_DOUBLE_EQ(f.channel_step_hz, -19531.25);
  ASSERT_EQ(f.beams.size(), 11u);
  EXPECT_NEAR(f.beams[0].longitude_rad / kDegree_rad, 53.2475, 1e-9);
  EXPECT_NEAR(f.beams[0].latitude_rad / kDegree_rad, 54.578611, 1e-5);
  EXPECT_EQ(f.beams[1].name, "beam1");
  EXPECT_EQ(f.beams[1].frame, BeamFrame::hadec);
  EXPECT_EQ(f.beams[2].frame, BeamFrame::relative_to);
  EXPECT_TRUE(f.beams[3].freeze_at_tai_ns.has_value());
  EXPECT_EQ(f.beams[10].name, "b0329/7");
  EXPECT_EQ(f.subarray_of_beam, (std::vector<std::int64_t>{0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(f.subarrays[1], (std::vector<double>{0, 0, 1, 1}));
  EXPECT_EQ(f.subarrays[2], (std::vector<double>{0.5, 0, 1, 0}));
  ASSERT_EQ(f.gains.size(), 4u);
  EXPECT_NEAR(f.gains[1].imag(), 2, 1e-12);
  EXPECT_EQ(f.gain_mode, "phase");
  EXPECT_EQ(f.normalization, "mean");
}

TEST_F(BeamsFileTest, ErrorsNameLineAndKey) {
  rejected("dec_deg = 58.8", "dec_deg = 98.8", "27", "dec_deg");
  rejected("ha_deg = 0.0", "hour_angle = 0.0", "24", "ha_deg");
  rejected("subarray = \"north\"", "subarray = \"south\"", "28", "tapered");
  rejected("antennas = \"2-3\"", "antennas = \"2-4\"", "15", "0 to 3");
  rejected("taper = [0.5, 1.0]", "taper = [0.5]", "18", "taper");
  rejected("mode = \"phase\"", "mode = \"phases\"", "12", "matched");
  rejected("frame = \"hadec\"", "frame = \"galactic\"", "25", "ephemeris");
  rejected("around = \"b0329\"", "around = \"b\"", "42", "no beam");
  rejected("name = \"four\"", "nam = \"four\"", "2", "nam");
  rejected("[band]", "[bands]", "6", "bands");
  rejected("channel_step_khz = -19.53125", "channel_step_khz = \"x\"", "8", "number");
  rejected("count = 7", "count = 7.5", "43", "whole");
}

}  // namespace
}  // namespace ryle
