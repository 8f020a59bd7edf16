// SPDX-License-Identifier: BSD-3-Clause
// Dialects of SDFITS, each written here by its own rules, read back exactly.
#include <cmath>
#include <limits>

#include "tests/io/scan/scan_files.hpp"

namespace ryle {
namespace {

using test::Card;
using test::Column;
using test::read_scans;
using test::rejection;
using test::selecting;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// n numbers a row: 1000 row + place.
std::vector<double> counted(int n_rows, int n) {
  std::vector<double> out;
  for (int r = 0; r < n_rows; ++r)
    for (int k = 0; k < n; ++k) out.push_back(1000 * r + k);
  return out;
}

struct Gbt {
  std::vector<Column> columns{
      {"OBJECT", "8A", "", {}, {"A", "A", "B", "B"}, ""},
      {"DATA", "6E", "K", counted(4, 6), {}, ""},
      {"TDIM2", "16A", "", {}, {"(6,1,1,1)", "(6,1,1,1)", "(6,1,1,1)", "(6,1,1,1)"}, ""},
      {"CTYPE1", "8A", "", {}, {"FREQ-LSR", "FREQ-LSR", "FREQ-LSR", "FREQ-LSR"}, ""},
      {"CRVAL1", "1D", "Hz", {1.42e9, 1.42e9, 1.42e9 + 40, 1.42e9}, {}, ""},
      {"CRPIX1", "1D", "", {2, 2, 2, 2}, {}, ""},
      {"CDELT1", "1D", "Hz", {1000, 1000, 1000, 1000}, {}, ""},
      {"CTYPE2", "4A", "", {}, {"RA", "RA", "RA", "????"}, ""},
      {"CRVAL2", "1D", "deg", {10, 11, 12, 13}, {}, ""},
      {"CTYPE3", "4A", "", {}, {"DEC", "DEC", "DEC", "????"}, ""},
      {"CRVAL3", "1D", "deg", {-1, -2, -3, -4}, {}, ""},
      {"CRVAL4", "1I", "", {-5, -6, -5, -6}, {}, ""},
      {"TSYS", "1D", "K", {20, 0, kNaN, -5}, {}, ""},
      {"EXPOSURE", "1D", "s", {2, 2, 2, 2}, {}, ""},
      {"MINE", "1E", "", {0.5, 0.25, 8, 4}, {}, ""}};
  std::vector<Card> cards{
      {"CTYPE4", "STOKES"}, {"RADESYS", "FK5"}, {"RESTFREQ", "", 1420405751.786}};
};

TEST(Sdfits, Gbt) {
  const test::ScanFolder folder;
  const Gbt gbt;
  const std::string path = folder.file("gbt.fits");
  test::write_table(path, "SINGLE DISH", gbt.columns, gbt.cards);
  const auto r = read_scans(path, {}, 4);
  ASSERT_EQ(r.metadata.n_samples, 4);
  ASSERT_EQ(r.metadata.n_channels, 6);
  for (int s = 0; s < 4; ++s)
    for (int c = 0; c < 6; ++c) EXPECT_EQ(r.at(c, s), 1000 * s + c);
  EXPECT_EQ(r.metadata.frequency.first_center_hz, 1.42e9 - 1000);
  EXPECT_EQ(r.metadata.spectral_frame, "LSRK");
  EXPECT_EQ(r.metadata.rest_frequency_hz, 1420405751.786);
  EXPECT_EQ(r.metadata.unit, "K");
  EXPECT_EQ(r.metadata.object, "");
  EXPECT_EQ(r.lon[2], 12);
  EXPECT_TRUE(std::isnan(r.lon[3]));
  EXPECT_TRUE(r.warns("1 of 4 rows have no place on the sky (\?\?\?\?/\?\?\?\?)"));
  EXPECT_FALSE(r.warns("--hours"));
  EXPECT_EQ(r.weights, std::vector<float>(4, 1.0f));
}

TEST(Sdfits, WeightsOfUnknownTemperaturesAreNone) {
  const test::ScanFolder folder;
  const Gbt gbt;
  const std::string path = folder.file("gbt.fits");
  test::write_table(path, "SINGLE DISH", gbt.columns, gbt.cards);
  ScanOptions o;
  o.weights = "tsys";
  EXPECT_EQ(read_scans(path, o).weights, (std::vector<float>{0.005f, 0, 0, 0}));
  o.weights = "radiometer";
  EXPECT_EQ(read_scans(path, o).weights, (std::vector<float>{5, 0, 0, 0}));
  o.weights = "column:MINE";
  EXPECT_EQ(read_scans(path, o).weights, (std::vector<float>{0.5, 0.25, 8, 4}));
  o.weights = "column:YOURS";
  EXPECT_NE(rejection(path, o).find("there are OBJECT, DATA [6]"), std::string::npos);
  o.weights = "heavy";
  EXPECT_NE(rejection(path, o).find("column:NAME"), std::string::npos);
}

TEST(Sdfits, RowsAreSelected) {
  const test::ScanFolder folder;
  const Gbt gbt;
  const std::string path = folder.file("gbt.fits");
  test::write_table(path, "SINGLE DISH", gbt.columns, gbt.cards);
  const auto b = read_scans(path, selecting({{"OBJECT", "B"}}));
  ASSERT_EQ(b.metadata.n_samples, 2);
  EXPECT_EQ(b.at(0, 0), 2000);
  EXPECT_EQ(b.metadata.object, "B");
  ScanOptions y;
  y.polarization = "YY";
  EXPECT_EQ(read_scans(path, y).at(5, 1), 3005);
  y.polarization = "1";
  EXPECT_EQ(read_scans(path, y).at(5, 1), 3005);
  y.polarization = "LL";
  EXPECT_NE(rejection(path, y).find("there are XX, YY"), std::string::npos);
  EXPECT_NE(rejection(path, selecting({{"OBJECT", "C"}})).find("there are A, B"),
            std::string::npos);
  EXPECT_NE(rejection(path, selecting({{"NOTHING", "1"}})).find("no column NOTHING"),
            std::string::npos);
}

TEST(Sdfits, RowsOffByATwentiethOfAChannelAreRejected) {
  const test::ScanFolder folder;
  Gbt gbt;
  const std::string path = folder.file("gbt.fits");
  gbt.columns[4].numbers[2] = 1.42e9 + 51;
  test::write_table(path, "SINGLE DISH", gbt.columns, gbt.cards);
  EXPECT_NE(rejection(path).find("1 of 4 rows have other channels"), std::string::npos)
      << rejection(path);
  EXPECT_NE(rejection(path).find("--select OBJECT=A would do"), std::string::npos)
      << rejection(path);
  EXPECT_EQ(rejection(path, selecting({{"OBJECT", "A"}})), "");
  // The first channels agree to 0.02 of one, the last ones do not.
  Gbt wider;
  wider.columns[6].numbers[1] = 1020;
  test::write_table(folder.file("wider.fits"), "SINGLE DISH", wider.columns, wider.cards);
  EXPECT_NE(rejection(folder.file("wider.fits")).find("row 2: 6 from"), std::string::npos)
      << rejection(folder.file("wider.fits"));
}

// (1, 4, nchan): the axis of the polarizations lies first; CTYPEn say so.
TEST(Sdfits, AxesAreWhatTheyAreSaidToBe) {
  const test::ScanFolder folder;
  const std::string path = folder.file("axes.fits");
  const int n = 5;
  test::write_table(path, "SINGLE DISH",
                    {{"CRVAL3", "1D", "MHz", {100, 100}, {}, ""},
                     {"CDELT3", "1D", "MHz", {-0.5, -0.5}, {}, ""},
                     {"DATA", "20I", "", counted(2, 4 * n), {}, "(1,4,5)"},
                     {"GLON", "1D", "rad", {0.1, 0.2}, {}, ""},
                     {"GLAT", "1D", "rad", {0.3, 0.4}, {}, ""}},
                    {{"CTYPE2", "STOKES"},
                     {"CRVAL2", "", -1},
                     {"CRPIX2", "", 1},
                     {"CDELT2", "", -1},
                     {"CTYPE3", "FREQ"},
                     {"CRPIX3", "", 1},
                     {"SPECSYS", "BARYCENT"}});
  const auto r = read_scans(path, {}, 2);
  ASSERT_EQ(r.metadata.n_channels, n);
  EXPECT_EQ(r.metadata.polarization, "mean of RR, LL");
  EXPECT_EQ(r.metadata.frame, SkyFrame::galactic);
  EXPECT_EQ(r.metadata.spectral_frame, "BARYCENT");
  EXPECT_DOUBLE_EQ(r.metadata.frequency.first_center_hz, 98e6);
  EXPECT_DOUBLE_EQ(r.metadata.frequency.channel_width_hz, 0.5e6);
  EXPECT_NEAR(r.lon[1], 0.2 * 57.29577951308232, 1e-12);
  // Ascending frequency: channel c is n - 1 - c of the file; RR and LL are places 0 and 1 of four.
  for (int c = 0; c < n; ++c) EXPECT_EQ(r.at(c, 1), 1000 + 4 * (n - 1 - c) + 0.5f);
  ScanOptions o;
  o.polarization = "LR";
  EXPECT_EQ(read_scans(path, o).at(0, 0), 4 * (n - 1) + 3);
}

TEST(Sdfits, Fast) {
  const test::ScanFolder folder;
  const std::string path = folder.file("fast.fits");
  const int n = 6;
  test::write_table(path, "SINGLE DISH",
                    {{"OBJ_RA", "1D", "deg", {150, 151, 152}, {}, ""},
                     {"OBJ_DEC", "1D", "deg", {30, 31, 32}, {}, ""},
                     {"FREQ", "1D", "", {1000, 1000, 1000}, {}, ""},
                     {"CHAN_BW", "1D", "", {0.25, 0.25, 0.25}, {}, ""},
                     {"NCHAN", "1J", "", {6, 6, 6}, {}, ""},
                     {"DATA", "24E", "", counted(3, 4 * n), {}, "(4,6)"}});
  const auto r = read_scans(path);
  ASSERT_EQ(r.metadata.n_channels, n);
  ASSERT_EQ(r.metadata.n_samples, 3);
  EXPECT_EQ(r.metadata.frequency.first_center_hz, 1e9);
  EXPECT_EQ(r.metadata.frequency.channel_width_hz, 0.25e6);
  for (int c = 0; c < n; ++c) EXPECT_EQ(r.at(c, 2), 2000 + 4 * c + 0.5f);
  EXPECT_TRUE(r.warns("those of the source"));
  ScanOptions o;
  o.polarization = "3";
  EXPECT_EQ(read_scans(path, o).at(5, 0), 23);
}

TEST(Sdfits, Parkes) {
  const test::ScanFolder folder;
  const std::string path = folder.file("parkes.fits");
  const int n = 8;
  std::vector<double> flagged(3 * 16, 0);
  flagged[0 * 16 + 2] = 1;      // row 0, channel 2 of polarization 0
  flagged[2 * 16 + 8 + 7] = 1;  // row 2, channel 7 of polarization 1
  test::write_table(path, "SINGLE DISH",
                    {{"DATE-OBS", "10A", "", {}, {"2019-07-01", "2019-07-01", "2019-07-01"}, ""},
                     {"TIME", "1D", "s", {3723.5, 3724, 3725}, {}, ""},
                     {"EXPOSURE", "1E", "s", {5, 5, 5}, {}, ""},
                     {"TSYS", "2E", "K", {30, 40, 30, 40, 30, 0}, {}, ""},
                     {"CRVAL1", "1D", "Hz", {1.4e9, 1.4e9, 1.4e9}, {}, ""},
                     {"CRVAL3", "1D", "deg", {80, 81, 359.9}, {}, ""},
                     {"CRVAL4", "1D", "deg", {-60, -61, -89}, {}, ""},
                     {"FLAGGED", "16B", "", flagged, {}, "(8,2,1,1)"},
                     {"DATA", "16E", "Jy", counted(3, 16), {}, "(8,2,1,1)"}},
                    {{"CTYPE1", "FREQ"},
                     {"CRPIX1", "", 4.5},
                     {"CDELT1", "", 62500},
                     {"CTYPE2", "STOKES"},
                     {"CRVAL2", "", -5},
                     {"CRPIX2", "", 1},
                     {"CDELT2", "", -1},
                     {"CTYPE3", "RA"},
                     {"CTYPE4", "DEC"},
                     {"EQUINOX", "", 2000},
                     {"SPECSYS", "TOPOCENT"}});
  ScanOptions o;
  o.weights = "tsys";
  const auto r = read_scans(path, o, 3);
  ASSERT_EQ(r.metadata.n_channels, n);
  EXPECT_EQ(r.metadata.unit, "Jy");
  EXPECT_EQ(r.metadata.polarization, "mean of XX, YY");
  EXPECT_EQ(r.metadata.frame, SkyFrame::fk5);
  EXPECT_EQ(r.metadata.observed_utc, "2019-07-01T01:02:03.500");
  EXPECT_DOUBLE_EQ(r.metadata.frequency.first_center_hz, 1.4e9 - 3.5 * 62500);
  EXPECT_EQ(r.lon[2], 359.9);
  for (int s = 0; s < 3; ++s)
    for (int c = 0; c < n; ++c) {
      EXPECT_EQ(r.at(c, s), 1000 * s + c + 4);  // mean of places c and 8 + c
      const bool bad = (s == 0 && c == 2) || (s == 2 && c == 7);
      EXPECT_EQ(r.flags[static_cast<std::size_t>(c * 3 + s)], bad ? 1 : 0) << s << " " << c;
    }
  // 1/variance of the mean: T^2 = (30^2 + 40^2)/4 = 625; a polarization of unknown TSYS spoils it.
  EXPECT_EQ(r.weights, (std::vector<float>{0.008f, 0.008f, 0}));
  o.polarization = "XX";
  const auto x = read_scans(path, o);
  EXPECT_EQ(x.flags[7 * 3 + 2], 0);
  EXPECT_FLOAT_EQ(x.weights[2], 5.0f / 900);
}

TEST(Sdfits, Class) {
  const test::ScanFolder folder;
  const std::string path = folder.file("class.fits");
  test::write_table(path, "MATRIX",
                    {{"CDELT2", "1D", "", {0.5, -0.25}, {}, ""},
                     {"CDELT3", "1D", "", {0, 1}, {}, ""},
                     {"TSYS", "1E", "", {100, 200}, {}, ""},
                     {"OBSTIME", "1E", "", {10, 20}, {}, ""},
                     {"SPECTRUM", "4E", "", counted(2, 4), {}, ""}},
                    {{"MAXIS", "", 4},
                     {"MAXIS1", "", 4},
                     {"MAXIS2", "", 1},
                     {"MAXIS3", "", 1},
                     {"CTYPE1", "FREQ"},
                     {"CRVAL1", "", 0},
                     {"CDELT1", "", -1e6},
                     {"CRPIX1", "", 2},
                     {"CTYPE2", "RA---GLS"},
                     {"CRVAL2", "", 83},
                     {"CRPIX2", "", 0},
                     {"CTYPE3", "DEC--GLS"},
                     {"CRVAL3", "", 59},
                     {"CRPIX3", "", 0},
                     {"EQUINOX", "", 2000},
                     {"RESTFREQ", "", 1.15e11}});
  ScanOptions o;
  o.weights = "tsys";
  const auto r = read_scans(path, o);
  ASSERT_EQ(r.metadata.n_channels, 4);
  EXPECT_EQ(r.at(0, 1), 1003);
  EXPECT_DOUBLE_EQ(r.metadata.frequency.first_center_hz, 1.15e11 - 2e6);
  EXPECT_NEAR(r.lon[0], 83 + 0.5 / std::cos(59 * 0.017453292519943295), 1e-12);
  EXPECT_NEAR(r.lon[1], 83 - 0.5, 1e-12);  // cos 60 = 1/2
  EXPECT_EQ(r.lat[1], 60);
  EXPECT_FLOAT_EQ(r.weights[1], 20.0f / 40000);
}

TEST(Sdfits, WhatCannotBeReadIsSaid) {
  const test::ScanFolder folder;
  const auto with = [&](const std::string& name, std::vector<Column> columns,
                        std::vector<Card> cards) {
    const std::string path = folder.file(name);
    test::write_table(path, "SINGLE DISH", columns, cards);
    return rejection(path);
  };
  Gbt old;
  old.cards[1] = {"RADESYS", "FK4"};
  EXPECT_NE(with("fk4.fits", old.columns, old.cards).find("FK4"), std::string::npos);
  Gbt large;
  large.columns[2].texts.assign(4, "(6,1000000,1000000,1000000)");
  EXPECT_NE(with("large.fits", large.columns, large.cards).find("more than its 6 numbers"),
            std::string::npos);
  Gbt beams;
  beams.columns[2].texts.assign(4, "(2,3)");
  EXPECT_NE(with("beams.fits", beams.columns, beams.cards).find("axis 2 of DATA has 3 places"),
            std::string::npos);
  EXPECT_NE(with("none.fits", {{"DATA", "3E", "", {1, 2, 3}, {}, ""}}, {{"CTYPE1", "FREQ"}})
                .find("no place on the sky"),
            std::string::npos);
}

}  // namespace
}  // namespace ryle
