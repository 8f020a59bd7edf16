// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/gains.hpp"
#include "ryle/telescope/geometry.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using testing::HasSubstr;

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "ryle_" + test->name() + "_" + std::to_string(++count_) + "_" +
            std::to_string(static_cast<long>(::getpid())) + ".csv";
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_;
};

const std::string kHeader = "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";

std::string layout_error(const std::string& text) {
  const TemporaryFile file(text);
  try {
    read_layout_csv(file.path(), -26.7, 116.67, 377.8);
  } catch (const FormatError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.rfind(file.path() + ":", 0), 0u) << what;
    return what.substr(file.path().size());
  }
  return "no error";
}

TEST(LayoutCsv, ReadsTheExampleArray) {
  const auto array =
      read_layout_csv(RYLE_SOURCE_DIR "/examples/mwa32t.csv", -26.7033, 116.6708, 377.8);
  ASSERT_EQ(array.n_antennas(), 32);
  ASSERT_EQ(array.n_inputs(), 64);
  EXPECT_EQ(array.n_pols(), 2);
  EXPECT_EQ(array.name, "mwa32t");
  double longest_m = 0;
  for (const auto& a : array.antennas) {
    for (const auto& b : array.antennas) {
      longest_m = std::max(longest_m, std::hypot(a.enu_m[0] - b.enu_m[0], a.enu_m[1] - b.enu_m[1]));
    }
  }
  EXPECT_GT(longest_m, 300);
  EXPECT_LT(longest_m, 360);
  for (std::int64_t input = 0; input < 64; ++input) {
    EXPECT_EQ(array.inputs[input].antenna, input / 2);
    EXPECT_EQ(array.inputs[input].pol, input % 2);
    EXPECT_GT(array.inputs[input].cable_delay_s, 10e-9);
    EXPECT_LT(array.inputs[input].cable_delay_s, 1e-6);
  }
  EXPECT_EQ(read_gains_csv(RYLE_SOURCE_DIR "/examples/mwa32t_gains.csv", 64).size(), 64u);
}

TEST(LayoutCsv, ReadsEveryColumnInAnyOrder) {
  const TemporaryFile file(
      "\xef\xbb\xbf# a "
      "comment\r\n\r\npol,antenna,up_m,north_m,east_m,bad,feed_angle_deg,cable_delay_ns\r\n"
      "Y, west , +1.5,2,-3e1,1,45,12.5 # broken\r\nX,west,1.5,2,-30,0,45,10\r\n0,east,0,0,9,,0,0");
  const auto array = read_layout_csv(file.path(), 10, 20, 30);
  ASSERT_EQ(array.n_inputs(), 3);
  ASSERT_EQ(array.n_antennas(), 2);
  EXPECT_EQ(array.antennas[0].name, "west");
  EXPECT_EQ(array.antennas[0].enu_m, (std::array<double, 3>{-30, 2, 1.5}));
  EXPECT_EQ(array.inputs[0].pol, 1);
  EXPECT_TRUE(array.inputs[0].bad);
  EXPECT_FALSE(array.inputs[1].bad);
  EXPECT_NEAR(array.inputs[0].feed_angle_rad, kPi / 4, 1e-15);
  EXPECT_DOUBLE_EQ(array.inputs[0].cable_delay_s, 12.5e-9);
  EXPECT_EQ(array.inputs[2].antenna, 1);
  EXPECT_NEAR(array.latitude_rad, 10 * kDegree_rad, 1e-15);
}

TEST(LayoutCsv, EveryMistakeIsNamedWithItsLine) {
  EXPECT_THAT(layout_error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(layout_error("# nothing\n"), HasSubstr("the file is empty"));
  EXPECT_THAT(layout_error(kHeader), HasSubstr("no data line"));
  EXPECT_THAT(layout_error("antenna,east_m,north_m,up_m,pol\na,0,0,0,X\n"),
              HasSubstr(":1: column \"cable_delay_ns\" is missing"));
  EXPECT_THAT(layout_error("antenna,east_m,north_m,up_m,pol,cable_delay_ns,cable_m\n"),
              HasSubstr(":1: unknown column \"cable_m\"; known are"));
  EXPECT_THAT(layout_error(kHeader + "a,0,0,0,X\n"), HasSubstr(":2: 5 fields"));
  EXPECT_THAT(layout_error(kHeader + "a,0,nan,0,X,0\n"),
              HasSubstr(":2: north_m = \"nan\" is not a finite number"));
  EXPECT_THAT(layout_error(kHeader + "a,0,1e999,0,X,0\n"), HasSubstr("not a finite number"));
  EXPECT_THAT(layout_error(kHeader + "a,0,1.5m,0,X,0\n"), HasSubstr("\"1.5m\""));
  EXPECT_THAT(layout_error(kHeader + "a,0,2e7,0,X,0\n"), HasSubstr("beyond 10000 km"));
  EXPECT_THAT(layout_error(kHeader + "a,0,0,0,Z,0\n"), HasSubstr(":2: pol = \"Z\" is unknown"));
  EXPECT_THAT(layout_error(kHeader + "\na,0,0,0,X,0\na,0,0,0,X,0\n"),
              HasSubstr(":4: antenna \"a\" pol X is listed twice (also on line 3)"));
  EXPECT_THAT(layout_error(kHeader + "a,0,0,0,X,0\na,0,0,1,Y,0\n"),
              HasSubstr(":3: antenna \"a\" stands at another place than on line 2"));
  EXPECT_THAT(layout_error(kHeader + ",0,0,0,X,0\n"), HasSubstr("no name"));
}

TEST(LayoutCsv, MissingFileAndImpossibleSite) {
  try {
    read_layout_csv("no/such/layout.csv", 0, 0, 0);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::no_input);
    EXPECT_THAT(error.what(), HasSubstr("no/such/layout.csv"));
  }
  const TemporaryFile file(kHeader + "a,0,0,0,X,0\n");
  EXPECT_THROW(read_layout_csv(file.path(), 91, 0, 0), ConfigError);
  EXPECT_THROW(read_layout_csv(file.path(), NAN, 0, 0), ConfigError);
  EXPECT_THROW(read_layout_csv(file.path(), 0, 361, 0), ConfigError);
  EXPECT_THROW(read_layout_csv(file.path(), 0, 0, INFINITY), ConfigError);
}

TEST(Gains, EveryMistakeIsNamedWithItsLine) {
  const auto message = [](const std::string& text) -> std::string {
    const TemporaryFile file("input,amplitude,phase_deg\n" + text);
    try {
      read_gains_csv(file.path(), 2, [] {});
    } catch (const FormatError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("0,1,0\n2,1,0\n"), HasSubstr(":3: input = 2 is not between 0 and 1"));
  EXPECT_THAT(message("0,1,0\n0,1,0\n"), HasSubstr(":3: input 0 was already given on line 2"));
  EXPECT_THAT(message("1,1,0\n"), HasSubstr("input 0 is missing"));
  EXPECT_THAT(message("0,-1,0\n1,1,0\n"), HasSubstr("not positive"));
  EXPECT_THAT(message("0.5,1,0\n1,1,0\n"), HasSubstr("not a whole number"));
  const TemporaryFile good("phase_deg,input,amplitude\n90,1,2\n0,0,1\n");
  const auto gains = read_gains_csv(good.path(), 2);
  EXPECT_NEAR(std::abs(gains[1] - cf64(0, 2)), 0, 1e-15);
}

// A last line without an end may be half a number: 9 of 90.
TEST(Gains, AreReadWhenTheyAreWritten) {
  const TemporaryFile file("input,amplitude,phase_deg\n0,1,0\n");
  std::vector<std::string> rest = {"1,2,9", "0\n"};
  const auto gains = read_gains_csv(file.path(), 2, [&] {
    if (rest.empty()) return;
    std::ofstream(file.path(), std::ios::app) << rest.front();
    rest.erase(rest.begin());
  });
  EXPECT_TRUE(rest.empty());
  EXPECT_NEAR(std::abs(gains[1] - cf64(0, 2)), 0, 1e-15);
  const TemporaryFile by_hand("input,amplitude,phase_deg\n0,1,0\n1,2,90");
  int pauses = 0;
  EXPECT_NEAR(std::abs(read_gains_csv(by_hand.path(), 2, [&] { ++pauses; })[1] - cf64(0, 2)), 0,
              1e-15);
  EXPECT_EQ(pauses, 1);
  const auto forever = [&] { std::ofstream(file.path(), std::ios::app) << "# more\n"; };
  try {
    read_gains_csv(file.path(), 3, forever);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("changes while it is read"));
  }
}

TEST(Ssmif, ReadsTheNorthArm) {
  RYLE_REQUIRE_DATA(path, "lwa/lwana-ssmif-2024may.txt");
  const auto array = read_lwa_ssmif(path);
  EXPECT_EQ(array.name, "LWA-NA");
  ASSERT_EQ(array.n_antennas(), 64);
  ASSERT_EQ(array.n_inputs(), 128);
  EXPECT_NEAR(array.latitude_rad / kDegree_rad, 34.247, 1e-12);
  EXPECT_NEAR(array.longitude_rad / kDegree_rad, -107.640, 1e-12);
  EXPECT_DOUBLE_EQ(array.height_m, 2133.6);
  EXPECT_EQ(array.antennas[0].enu_m, (std::array<double, 3>{-31.724, 4.274, 1.632}));
  EXPECT_EQ(array.antennas[63].enu_m, (std::array<double, 3>{11.049, 36.077, 1.695}));
  std::int64_t n_bad = 0;
  for (const auto& input : array.inputs) n_bad += input.bad;
  EXPECT_EQ(n_bad, 16);              // the sixteen ANT_STAT lines of the file
  EXPECT_TRUE(array.inputs[9].bad);  // ANT_STAT[10] 1
  EXPECT_FALSE(array.inputs[8].bad);
  EXPECT_TRUE(array.inputs[127].bad);
  EXPECT_EQ(array.inputs[5].antenna, 2);
  EXPECT_EQ(array.inputs[5].pol, 1);
}

TEST(Ssmif, CableDelayOfEveryStationMatchesTheFormula) {
  struct Case {
    const char* file;
    std::int64_t input, n_stands;
    double length_m, stretch, dispersion_ns;
  };
  // Numbers read by eye from the files: RPD_LENG[input + 1], RPD_STR[input + 1]; RPD_DD where the
  // file has it.
  const Case cases[] = {
      {"lwa/lwana-ssmif-2024may.txt", 0, 64, 73.37905, 0.9766, 2.4},
      {"lwa/lwasv-ssmif.txt", 280, 256, NAN, 1.0350, 2.4},
  };
  for (const auto& c : cases) {
    RYLE_REQUIRE_DATA(path, c.file);
    const auto array = read_lwa_ssmif(path);
    ASSERT_EQ(array.n_antennas(), c.n_stands);
    double length_m = c.length_m;
    std::ifstream lines(path);
    const std::string key = "RPD_LENG[" + std::to_string(c.input + 1) + "]";
    for (std::string line; std::isnan(length_m) && std::getline(lines, line);) {
      if (line.rfind(key, 0) == 0) length_m = std::stod(line.substr(key.size()));
    }
    for (const double nu_hz : {10e6, 38e6, 74e6}) {
      const double ls_m = length_m * c.stretch;
      const double expected_s = ls_m / (0.83 * 299792458.0) +
                                c.dispersion_ns * 1e-9 * ls_m / 100 / std::sqrt(nu_hz / 10e6);
      EXPECT_NEAR(cable_delay_s(array.inputs[c.input], nu_hz), expected_s, 1e-16) << c.file;
    }
  }
}

TEST(Ssmif, EveryStationFileReads) {
  for (const char* name :
       {"lwa/lwa1-ssmif.txt", "lwa/lwana-ssmif.txt", "lwa/lwasv-ssmif-2022.txt"}) {
    RYLE_REQUIRE_DATA(path, name);
    const auto array = read_lwa_ssmif(path);
    EXPECT_EQ(array.n_inputs(), 2 * array.n_antennas());
    for (const auto& input : array.inputs) {
      EXPECT_LT(cable_delay_s(input, 50e6), 5e-6);
      EXPECT_GE(cable_delay_s(input, 50e6), 0);
    }
  }
}

TEST(Ssmif, SunOfTheTbxFileIsWhereItWasPredicted) {
  RYLE_REQUIRE_DATA(path, "lwa/lwana-ssmif-2024may.txt");
  const auto array = read_lwa_ssmif(path);
  const auto t = tai_ns_from_utc_iso("2024-06-27T17:32:26.999975");
  const Vector3 s = enu_of_direction(array, sun(t), t);
  EXPECT_NEAR(s[0], 0.393, 0.001);  // PROVENANCE: predicted (0.393, -0.141)
  EXPECT_NEAR(s[1], -0.141, 0.001);
}

TEST(Ssmif, MistakesAreNamed) {
  const auto message = [](const std::string& text) -> std::string {
    const TemporaryFile file(text);
    try {
      read_lwa_ssmif(file.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string site = "STATION_ID T\nGEO_N 1\nGEO_E 2\nGEO_EL 3\nN_STD 1\n";
  EXPECT_EQ(message(site + "STD_LX[1] 1\nSTD_LY[1] 2\nSTD_LZ[1] 3\n"), "no error");
  EXPECT_THAT(message(""), HasSubstr("\"GEO_N\" is missing"));
  EXPECT_THAT(message("GEO_N 1\nGEO_E 2\nGEO_EL 3\nN_STD 1.5\n"), HasSubstr(":4: N_STD = 1.5"));
  EXPECT_THAT(message(site + "STD_LX[1] here\n"), HasSubstr(":6: STD_LX[1] = \"here\""));
  EXPECT_THAT(message(site + "STD_LX[0] 1\n"), HasSubstr("index >= 1"));
  EXPECT_THAT(message(site + "STD_LX[1 1\n"), HasSubstr(":6:"));
  EXPECT_THAT(message(site + "STD_LX[1] 1\nSTD_LX[1] 2\n"), HasSubstr("contradicts line 6"));
  EXPECT_THAT(message(site + "ANT_STD[1] 2\n"), HasSubstr("default wiring"));
}

TEST(Tart, ReadsThePositions) {
  RYLE_REQUIRE_DATA(path, "tart/antenna_positions.json");
  const auto array = read_tart_positions(path, -18.8971446, 47.5551677, 1280);
  ASSERT_EQ(array.n_antennas(), 24);
  ASSERT_EQ(array.n_inputs(), 24);
  EXPECT_EQ(array.n_pols(), 1);
  EXPECT_EQ(array.antennas[1].enu_m, (std::array<double, 3>{0.285, 0.78, 0}));
}

TEST(Tart, MistakesAreNamed) {
  const auto message = [](const std::string& text) -> std::string {
    const TemporaryFile file(text);
    try {
      read_tart_positions(file.path(), 0, 0, 0);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("[[1,2,3]]"), "no error");
  EXPECT_THAT(message("{"), HasSubstr("not JSON at byte"));
  EXPECT_THAT(message("{}"), HasSubstr("missing or not a list"));
  EXPECT_THAT(message("7"), HasSubstr("not a list"));
  EXPECT_THAT(message("[]"), HasSubstr("not a list"));
  EXPECT_THAT(message("[[1,2,3],[1,2]]"), HasSubstr("antenna_positions[1] = [1,2]"));
  EXPECT_THAT(message("[[1,2,\"x\"]]"), HasSubstr("antenna_positions[0]"));
}

}  // namespace
}  // namespace ryle
