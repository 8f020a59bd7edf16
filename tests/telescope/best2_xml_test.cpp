// SPDX-License-Identifier: BSD-3-Clause
// T-BF-22: the XML files of BEST-2 and each trap in them.
#include "ryle/telescope/best2_xml.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/xml_text.hpp"

namespace ryle {
namespace {

// The shape of the published antenna file: 8 rows of 4, wavelengths at 408 MHz, ADC channels in an
// order of their own.
std::string antennas_xml() {
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"ISO-8859-15\"?>\n<array name='Medicina : BEST-2'>\n"
      " <receiver><center_freq>0.408</center_freq><!-- GHz --></receiver>\n"
      " <grid><x_spacing>8.0</x_spacing><y_spacing>13.609415</y_spacing></grid>\n <antennas>\n"
      "  <reference><position><lat>44:31:24.88N</lat><long>11:38:45.56E</long></position>"
      "</reference>\n";
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 4; ++column) {
      const int adc = 8 * column + (row % 2 == 0 ? row / 2 : 4 + (row - 1) / 2);
      char text[400];
      std::snprintf(text, sizeof text,
                    "  <ant id='%d' pols='1' name='1N-%d-%d'><adc_chan pol='x'>%d</adc_chan>"
                    "<position><grid x='%d' y='%d'/><x>%.7f</x><y>%.6f</y><z>0.0</z></position>"
                    "</ant>\n",
                    4 * row + column, row + 1, column + 1, adc, column, row,
                    -34.8875321 + 8.0 * column, 6.804708 + 13.609415 * row);
      xml += text;
    }
  }
  return xml + " </antennas>\n</array>\n";
}

const char* const kBeamformer =
    "\t<!-- comment before the root -->\n<observation>\n"
    " <antennas number=\"32\" />\n"
    " <channels nchans=\"1024\" subchannels=\"1024\" startChannel=\"408\" stopChannel=\"412\"/>\n"
    " <timing tsamp=\"0.0000512\" />\n"
    " <samples nsamp=\"8192\" nbits=\"8\" downsample=\"4\" />\n"
    " <beams antennaFile=\"antennas.xml\" >\n"
    "  <!-- <beam beamId=\"9\" dec=\"1\" /> -->\n"
    "  <beam beamId=\"0\" dec=\"54.579\" ra=\"0\" ha=\"0.5\" topFrequency=\"418\" "
    "frequencyOffset=\"0.01953125\"/>\n"
    "  <beam beamId=\"1\" dec=\"64.5\" ra=\"52.25\" ha=\"0\" topFrequency=\"418\" "
    "frequencyOffset=\"0.01953125\"/>\n"
    " </beams>\n</observation>\n";

class Best2Xml : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("ryle_best2_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    antennas_ = write("antennas.xml", antennas_xml());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  Best2Observation read(const std::string& text, Best2Band band = Best2Band::descending,
                        Best2Positions positions = Best2Positions::wavelengths) const {
    return read_best2(write("observation.xml", text), antennas_, positions, band);
  }
  // The message of the error, or "".
  std::string error_of(const std::string& text) const {
    try {
      read(text);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "";
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  std::filesystem::path folder_;
  std::string antennas_;
};

TEST_F(Best2Xml, ReadsTheShippedShapes) {
  const auto o = read(kBeamformer);
  EXPECT_TRUE(o.warnings.empty()) << o.warnings.front();
  EXPECT_NEAR(o.array.latitude_rad / kDegree_rad, 44.523578, 1e-6);
  EXPECT_NEAR(o.array.longitude_rad / kDegree_rad, 11.645989, 1e-6);
  // Wavelengths at 408 MHz: 5.878 x 10.000 m spacings, 17.63 x 70.00 m in all.
  EXPECT_NEAR(o.aperture_m[0], 17.63, 0.01);
  EXPECT_NEAR(o.aperture_m[1], 70.00, 0.01);
  // ADC channel 1 is row 3 (id 8), channel 4 row 2 (id 4), channel 8 the second column.
  ASSERT_EQ(o.array.n_inputs(), 32);
  EXPECT_EQ(o.array.antennas[1].name, "1N-3-1");
  EXPECT_EQ(o.array.antennas[4].name, "1N-2-1");
  EXPECT_EQ(o.array.antennas[8].name, "1N-1-2");
  EXPECT_NEAR(o.array.antennas[1].enu_m[1] - o.array.antennas[0].enu_m[1], 20.0, 1e-3);
  EXPECT_EQ(o.n_channels, 1024);
  EXPECT_NEAR(o.first_center_hz, 418e6 - 0.5 * 19531.25, 1e-3);
  EXPECT_EQ(o.channel_step_hz, -19531.25);
  EXPECT_EQ(o.block_spectra, 8192);
  EXPECT_EQ(o.bits, 8);
  ASSERT_EQ(o.beams.size(), 2u);  // the one in the comment is none
  EXPECT_EQ(o.beams[0].frame, BeamFrame::hadec);
  EXPECT_NEAR(o.beams[0].longitude_rad, 0.5 * kDegree_rad, 1e-12);
  EXPECT_EQ(o.beams[1].frame, BeamFrame::icrs);
  EXPECT_NEAR(o.beams[1].longitude_rad, 52.25 * kDegree_rad, 1e-12);
}

TEST_F(Best2Xml, MetersWhenAskedFor) {
  const auto o = read(kBeamformer, Best2Band::descending, Best2Positions::meters);
  EXPECT_NEAR(o.aperture_m[0], 24, 0.01);
  EXPECT_NEAR(o.aperture_m[1], 95.27, 0.01);
}

TEST_F(Best2Xml, TheOtherDialectIsTakenAndWarnedOf) {
  auto text = replaced(kBeamformer, "nsamp=\"8192\" nbits=\"8\"", "number=\"16384 \" bits=\"4\"");
  const auto o = read(text);
  EXPECT_EQ(o.block_spectra, 16384);
  EXPECT_EQ(o.bits, 4);
  ASSERT_EQ(o.warnings.size(), 2u);
  EXPECT_NE(o.warnings[0].find(":6: \"number\""), std::string::npos) << o.warnings[0];
  EXPECT_NE(o.warnings[0].find("took 0"), std::string::npos);
  text = replaced(kBeamformer, "nsamp=\"8192\"", "nsamp=\"8192\" number=\"1\"");
  EXPECT_NE(error_of(text).find("differ"), std::string::npos);
  // Search files: directions are missing, frequencyOffset is negative.
  const auto search = read(
      "<observation><channels nchans=\"1024\" npols=\"1\" ncoeffs=\"12\"/><timing "
      "tsamp=\"0.0000512\"/><detection threshold=\"5\"/><clustering minPuleWidth=\"0.1\"/><gpus "
      "ids=\"1\"/><writer filePrefix=\"a\" baseDirectory=\".\" secondsPerFile=\"300\"/><beams>"
      "<beam beamId=\"0\" topFrequency=\"418\" frequencyOffset=\"-0.01953125\"/></beams>"
      "</observation>");
  EXPECT_TRUE(search.beams.empty());
  EXPECT_EQ(search.channel_step_hz, -19531.25);
  EXPECT_EQ(search.warnings.size(), 6u);
}

TEST_F(Best2Xml, BandDirectionIsAskedAndCompared) {
  const auto up = read(kBeamformer, Best2Band::ascending);
  EXPECT_EQ(up.channel_step_hz, 19531.25);
  EXPECT_NEAR(up.first_center_hz, 398e6 + 0.5 * 19531.25, 1e-3);
  ASSERT_EQ(up.warnings.size(), 1u);
  EXPECT_NE(up.warnings[0].find("other way"), std::string::npos);
  std::string text = kBeamformer;
  for (int k = 0; k < 2; ++k) text = replaced(text, "topFrequency=\"418\"", "topFrequency=\"408\"");
  const auto shifted = read(text);
  ASSERT_EQ(shifted.warnings.size(), 1u);
  EXPECT_NE(shifted.warnings[0].find("topFrequency"), std::string::npos);
  EXPECT_NEAR(shifted.first_center_hz, 418e6 - 0.5 * 19531.25, 1e-3);
}

TEST_F(Best2Xml, ErrorsNameLineAndAttribute) {
  const auto expect = [&](const std::string& text, const std::string& line,
                          const std::string& word) {
    const std::string message = error_of(text);
    EXPECT_NE(message.find("observation.xml:" + line + ":"), std::string::npos) << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
  };
  expect(replaced(kBeamformer, "nbits", "nbit"), "6", "nsamp, number");
  expect(replaced(kBeamformer, "<timing", "<timings"), "5", "timings");
  expect(replaced(kBeamformer, "54.579", "54.5x"), "9", "dec");
  expect(replaced(kBeamformer, "54.579", "94.5"), "9", "dec");
  expect(replaced(kBeamformer, "nchans=\"1024\"", "nchans=\"0\""), "4", "nchans");
  expect(replaced(kBeamformer, "nchans=\"1024\" ", ""), "4", "nchans");
  expect(replaced(kBeamformer, "number=\"32\"", "number=\"31\""), "3", "31");
  expect(replaced(kBeamformer, "beamId=\"1\"", "beamId=\"0\""), "10", "beam0");
  expect(replaced(kBeamformer, "frequencyOffset=\"0.01953125\"", "frequencyOffset=\"0\""), "9",
         "frequencyOffset");
  expect(replaced(kBeamformer, "<observation>", "<!DOCTYPE a [<!ENTITY b \"c\">]>\n<observation>"),
         "2", "document types");
  expect(replaced(kBeamformer, "antennas.xml", "&amp;"), "7", "entities");
  expect(replaced(kBeamformer, " </beams>", " </beam>"), "11", "closes");
  std::string twice = antennas_xml();
  twice = replaced(twice, "<adc_chan pol='x'>8<", "<adc_chan pol='x'>0<");
  write("antennas.xml", twice);
  EXPECT_NE(error_of(kBeamformer).find("adc_chan"), std::string::npos);
  write("antennas.xml", replaced(antennas_xml(), "44:31:24.88N", "44:61:24.88N"));
  EXPECT_NE(error_of(kBeamformer).find("lat"), std::string::npos);
}

// 300 mutations of the files: an answer or a FormatError, never anything else.
TEST_F(Best2Xml, SurvivesMutations) {
  int rejected = 0;
  for (std::uint64_t k = 0; k < 300; ++k) {
    const bool of_antennas = k % 2 == 1;
    std::string text = of_antennas ? antennas_xml() : kBeamformer;
    for (std::uint64_t n = 0; n <= k % 3; ++n) {
      const auto key = combine(k, n);
      const std::size_t at = key % text.size();
      switch (mix64(key) % 3) {
        case 0:
          text[at] = static_cast<char>(mix64(key + 1));
          break;
        case 1:
          text.erase(at, 1 + mix64(key + 2) % 40);
          break;
        default:
          text.insert(at, text.substr(mix64(key + 3) % text.size(), 30));
      }
    }
    write("antennas.xml", of_antennas ? text : antennas_xml());
    try {
      read(of_antennas ? kBeamformer : text);
    } catch (const FormatError&) {
      ++rejected;
    } catch (const ConfigError&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 150);
  EXPECT_THROW(detail::parse_xml(std::string(2 << 20, ' '), "big"), FormatError);
  std::string deep;
  for (int k = 0; k < 40; ++k) deep += "<a>";
  EXPECT_THROW(detail::parse_xml(deep, "deep"), FormatError);
}

TEST_F(Best2Xml, WritesALayoutThatReadsBack) {
  const auto o = read(kBeamformer);
  const std::string path = write("best2.csv", best2_layout_csv(o));
  const ArrayLayout array = read_layout_csv(path, 44, 11, 0);
  ASSERT_EQ(array.n_inputs(), 32);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(array.antennas[i].name, o.array.antennas[i].name);
    EXPECT_NEAR(array.antennas[i].enu_m[1], o.array.antennas[i].enu_m[1], 1e-6);
  }
  const std::string toml = best2_beams_toml(o, "best2.csv");
  EXPECT_NE(toml.find("channel_step_khz = -19.531250000"), std::string::npos) << toml;
  EXPECT_NE(toml.find("name = \"beam1\"\nframe = \"icrs\"\nra_deg = 52.250000000"),
            std::string::npos)
      << toml;
}

}  // namespace
}  // namespace ryle
