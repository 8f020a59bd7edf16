// SPDX-License-Identifier: BSD-3-Clause
// The real files of scans, against what astropy.io.fits and h5dump say of them.
#include <cmath>

#include "tests/io/scan/scan_files.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::read_scans;
using test::rejection;
using test::selecting;

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values)
    if (v == v) sum += v;
  return sum;
}

TEST(RealScans, HegridMock) {
  RYLE_REQUIRE_DATA(path, "singledish/hegrid_mock/mock503.hdf5");
  const auto r = read_scans(path);
  EXPECT_EQ(r.metadata.format, "HEGrid HDF5");
  EXPECT_EQ(r.metadata.n_samples, 1'000);
  EXPECT_EQ(r.metadata.n_channels, 50);
  EXPECT_FALSE(r.metadata.samples_first);
  EXPECT_NEAR(r.at(10, 5), 17.129, 5e-4);  // flux_10 sorts before flux_2
  EXPECT_NEAR(r.at(2, 5), 0.00765371, 5e-9);
  EXPECT_NEAR(r.lon[999], 62.1517, 5e-5);
  EXPECT_EQ(read_scans(path, {}, 7).values, r.values);
}

TEST(RealScans, FastMessier33) {
  RYLE_REQUIRE_DATA(path, "singledish/fast_m33/1421-1425_hor_input1.hdf5");
  const auto r = read_scans(path);
  EXPECT_EQ(r.metadata.n_samples, 69'768);
  EXPECT_EQ(r.metadata.n_channels, 1);
  EXPECT_NEAR(r.at(0, 69'767), 0.0340837, 5e-8);
  EXPECT_FALSE(r.warns("--hours"));  // 22.2 .. 24.7 degrees are not all hours of the day
}

TEST(RealScans, HcgridFits) {
  RYLE_REQUIRE_DATA(path, "singledish/hegrid_mock/input1.fits");
  const auto r = read_scans(path);
  EXPECT_EQ(r.metadata.format, "HCGrid FITS");
  ASSERT_EQ(r.metadata.n_samples, 10'000);
  EXPECT_NEAR(total(r.lon), 600130.559085846, 1e-6);
  EXPECT_NEAR(total(r.lat), 300167.86220932007, 1e-6);
  EXPECT_NEAR(r.sum(0), 9218.856679638993, 1e-7);
  EXPECT_EQ(r.at(0, 123), 0.08397664f);
}

TEST(RealScans, MapsAreNoScans) {
  RYLE_REQUIRE_DATA(path, "singledish/hegrid_mock/target1.fits");
  EXPECT_NE(rejection(path).find("none of scans: it has no table"), std::string::npos);
}

// Two scans whose frequencies are 1.07 channels apart: neither IFNUM nor SCAN alone will do.
TEST(RealScans, GbtPositionSwitch) {
  RYLE_REQUIRE_DATA(path, "singledish/gbt_sdfits_real/AGBT17B_173_04_gdigs-testdata.fits");
  const std::string all = rejection(path);
  EXPECT_NE(all.find("--select IFNUM=0 --select SCAN=6 would do"), std::string::npos) << all;
  const std::string one = rejection(path, selecting({{"IFNUM", "19"}}));
  EXPECT_NE(one.find("4 of 8 rows"), std::string::npos) << one;
  EXPECT_NE(one.find("--select SCAN=6 would do"), std::string::npos) << one;

  const auto r = read_scans(path, selecting({{"IFNUM", "19"}, {"SCAN", "6"}}), 3'000);
  EXPECT_EQ(r.metadata.n_samples, 4);
  EXPECT_EQ(r.metadata.n_channels, 8'192);
  EXPECT_TRUE(r.metadata.samples_first);
  EXPECT_EQ(r.metadata.unit, "Counts");  // TUNIT7 is a column
  EXPECT_EQ(r.metadata.object, "W43G");
  EXPECT_EQ(r.metadata.telescope, "NRAO_GBT");
  EXPECT_EQ(r.metadata.spectral_frame, "TOPOCENT");  // FREQ-OBS
  EXPECT_EQ(r.metadata.polarization, "mean of XX, YY");
  EXPECT_EQ(r.metadata.frame, SkyFrame::fk5);
  EXPECT_EQ(r.metadata.observed_utc, "2017-09-04T03:38:34.00");
  EXPECT_EQ(r.metadata.rest_frequency_hz, 5'148'700'000);
  EXPECT_TRUE(r.warns("CAL=F"));
  EXPECT_EQ(r.at(0, 0), 3518902.75f);  // frequencies ascend: the last channel on disk
  EXPECT_EQ(r.lon[0], 281.0893194749182);
  // CRVAL1 + (8192 - CRPIX1) CDELT1 with CDELT1 < 0.
  EXPECT_DOUBLE_EQ(r.metadata.frequency.first_center_hz, 5146726800.8125 - 4095 * 2861.02294921875);
  EXPECT_EQ(r.metadata.frequency.channel_width_hz, 2861.02294921875);
}

TEST(RealScans, GbtTablesOfDifferentWidths) {
  RYLE_REQUIRE_DATA(
      path,
      "singledish/gbt_sdfits_real/TGBT17A_506_11_TGBT17A_506_11.raw.vegas.A_truncated_rows.fits");
  EXPECT_NE(rejection(path).find("--select SIG=T --select OBJECT=3C286 would do"),
            std::string::npos)
      << rejection(path);
  const auto wide = read_scans(path, selecting({{"object", "3C286"}, {"SIG", "T"}}), 5'000);
  EXPECT_EQ(wide.metadata.n_samples, 2);
  EXPECT_EQ(wide.metadata.n_channels, 32'768);
  EXPECT_EQ(wide.at(0, 0), 3549950.0f);
  EXPECT_EQ(wide.at(32'767, 1), 3281591.5f);
  const auto map = read_scans(path, selecting({{"OBJECT", "NGC6946"}, {"IFNUM", "0"}}));
  EXPECT_EQ(map.metadata.n_samples, 4);
  EXPECT_EQ(map.metadata.n_channels, 4'096);
  EXPECT_EQ(map.at(0, 0), 3643936.75f);
  EXPECT_EQ(map.at(4'095, 3), 3497976.5f);
  EXPECT_EQ(map.metadata.format, "SDFITS (1 table of 2)");
  EXPECT_EQ(read_scans(path, selecting({{"TABLE", "2"}, {"IFNUM", "0"}})).values, map.values);
  ScanOptions yy = selecting({{"TABLE", "2"}, {"IFNUM", "0"}});
  yy.polarization = "YY";
  EXPECT_EQ(read_scans(path, yy).metadata.n_samples, 2);
  EXPECT_EQ(read_scans(path, yy).at(4'095, 1), map.at(4'095, 3));
}

TEST(RealScans, GbtNod) {
  RYLE_REQUIRE_DATA(path, "singledish/gbt_sdfits_real/TRCO_230413_Ka_TRCO_230413_Ka_scan43.fits");
  const auto r = read_scans(path, {}, 100);
  ASSERT_EQ(r.metadata.n_samples, 480);
  EXPECT_NEAR(total(r.lon), 93142.29014124398, 1e-8);
  EXPECT_NEAR(total(r.lat), -2778.8695520854244, 1e-9);
  EXPECT_EQ(r.sum(500), 272578093088.0);
  EXPECT_EQ(r.at(1'023, 479), 2740979.25f);
  EXPECT_EQ(r.metadata.polarization, "mean of RR, LL");
  const auto some = read_scans(path, selecting({{"CAL", "F"}, {"PLNUM", "1"}, {"FDNUM", "0"}}));
  ASSERT_EQ(some.metadata.n_samples, 120);
  EXPECT_NEAR(total(some.lon), 23286.853940314173, 1e-8);
  EXPECT_EQ(some.sum(7), 484246626.25);
  ScanOptions weights;
  weights.weights = "tsys";
  const auto weighted = read_scans(path, weights);
  EXPECT_TRUE(weighted.warns("TSYS is 1"));
  EXPECT_FLOAT_EQ(weighted.weights[0], 0.24935562908649445f);
  weights.weights = "radiometer";
  EXPECT_FLOAT_EQ(read_scans(path, weights).weights[0], 0.24935562908649445f * 1464843.75f);
}

TEST(RealScans, GbtAzimuthsHaveNoPlaceOnTheSky) {
  RYLE_REQUIRE_DATA(path,
                    "singledish/gbt_sdfits_real/"
                    "AGBT22A_325_23_AGBT22A_325_23.raw.vegas_AGBT22A_325_23.raw.vegas.A.fits");
  const auto r = read_scans(path);
  ASSERT_EQ(r.metadata.n_samples, 32);
  EXPECT_TRUE(r.warns("8 of 32 rows have no place on the sky (AZ/EL)"))
      << r.metadata.warnings.size();
  EXPECT_NE(r.lon[0], r.lon[0]);
  EXPECT_NEAR(total(r.lon), 4981.377929480344, 1e-9);
  EXPECT_NEAR(total(r.lat), 1025.9096648807115, 1e-9);
  EXPECT_EQ(r.metadata.frequency.first_center_hz, 111027972904.0);
  EXPECT_EQ(r.at(3, 31), 953372.0f);
}

TEST(RealScans, AllBanksOfArgusOpen) {
  for (const char bank : std::string("BCDEFGH")) {
    const auto path = test::data_file(
        std::string("singledish/gbt_sdfits_real/"
                    "AGBT22A_325_23_AGBT22A_325_23.raw.vegas_AGBT22A_325_23.raw.vegas.") +
        bank + ".fits");
    if (!path) GTEST_SKIP() << "no data";
    const auto r = read_scans(*path);
    EXPECT_EQ(r.metadata.n_samples * r.metadata.n_channels, 32 * 1'024) << bank;
    EXPECT_TRUE(r.warns("8 of 32 rows")) << bank;
  }
}

TEST(RealScans, MedicinaTotalPower) {
  RYLE_REQUIRE_DATA(path, "singledish/srt_medicina/med_data.fits");
  const auto r = read_scans(path);
  ASSERT_EQ(r.metadata.n_samples, 742);
  EXPECT_EQ(r.metadata.n_channels, 1);
  EXPECT_EQ(r.metadata.telescope, "Medicina");
  EXPECT_EQ(r.metadata.object, "3c286");
  EXPECT_EQ(r.metadata.polarization, "mean of RR, LL");
  EXPECT_EQ(r.metadata.frequency.first_center_hz, 8'520e6);  // 8180 .. 8860 MHz
  EXPECT_EQ(r.metadata.frequency.channel_width_hz, 680e6);
  EXPECT_EQ(r.metadata.observed_utc, "2016-02-05T09:05:33.280");
  EXPECT_NEAR(total(r.lon), 150631.25502012693, 1e-7);
  EXPECT_NEAR(total(r.lat), 22745.05511203753, 1e-8);
  EXPECT_NEAR(r.sum(0), (624523.4741821289 + 788348.5991210938) / 2, 0.05);
  EXPECT_EQ(r.at(0, 0), (841.4500122070312f + 1061.875f) / 2);
  ScanOptions left;
  left.polarization = "LL";  // Ch1 there
  EXPECT_EQ(read_scans(path, left).at(0, 0), 1061.875f);
}

TEST(RealScans, SardiniaSpectra) {
  RYLE_REQUIRE_DATA(path, "singledish/srt_medicina/srt_data.fits");
  const auto r = read_scans(path, {}, 300);
  ASSERT_EQ(r.metadata.n_samples, 346);
  ASSERT_EQ(r.metadata.n_channels, 1'024);
  EXPECT_NEAR(r.sum(5), (1617671063.0 + 1581092721.0) / 2, 346 * 0.5);
  ScanOptions left;
  left.polarization = "LL";
  EXPECT_EQ(read_scans(path, left).at(1'023, 345), 675367.0f);
  EXPECT_NEAR(total(r.lat), 14620.873308749979, 1e-8);
}

// astropy's AltAz at the site with the feed's offset turned by the derotator, relative to feed 0.
TEST(RealScans, FeedsOfSardiniaAreWhereTheyLook) {
  RYLE_REQUIRE_DATA(path, "singledish/srt_medicina/srt_data_tp_multif.fits");
  const auto r = read_scans(path);
  ASSERT_EQ(r.metadata.n_samples, 7 * 369);
  const struct {
    std::size_t feed;
    double lon, lat;
  } kPlaces[] = {{1, 5.747222679688288, 64.0174991167634},
                 {4, 5.918661820750208, 64.03181584399529},
                 {6, 5.775863165844467, 64.05360636144643}};
  for (const auto& p : kPlaces) {
    const std::size_t k = p.feed * 369 + 100;
    // 0.5": refraction over 2.3', and the pole of date against that of 2000 (0.1 degrees of 2.3').
    EXPECT_NEAR(r.lon[k] * std::cos(p.lat / 57.29578), p.lon * std::cos(p.lat / 57.29578),
                0.5 / 3600);
    EXPECT_NEAR(r.lat[k], p.lat, 0.5 / 3600);
  }
  EXPECT_FLOAT_EQ(r.at(0, 6 * 369 + 7), 0.97f * (795.8f + 873.85f) / 2);  // relativePower
  const auto one = read_scans(path, selecting({{"FEED", "6"}}));
  ASSERT_EQ(one.metadata.n_samples, 369);
  EXPECT_EQ(one.at(0, 7), r.at(0, 6 * 369 + 7));
}

}  // namespace
}  // namespace ryle
