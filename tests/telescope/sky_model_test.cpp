// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/sky_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/catalog.hpp"

namespace ryle {
namespace {

using testing::HasSubstr;

const SkySource& source_named(const SkyModel& sky, const std::string& name) {
  for (const SkySource& source : sky.sources)
    if (source.name == name) return source;
  ADD_FAILURE() << name << " is not in the model";
  return sky.sources.front();
}

double polynomial_jy(const std::array<double, 6>& a, double ghz) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * std::pow(std::log10(ghz), double(k));
  return std::pow(10.0, sum);
}

std::string rejection_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Coefficients in public code that says it follows Perley & Butler 2017, as found in 2026:
/// `plain` keeps all digits (two programs agree, but for Her A, where one writes -0.1247), `early`
/// has those of the preprint, rounded, with another 3C 353 and a range of 3C 380 that its
/// polynomial cannot bear; a fourth program has the row of Cyg A under the name 3C 444, and 3C 147
/// as 3C 247.
struct Copy {
  const char* name;
  std::array<double, 6> plain, early;
};
const Copy kCopies[] = {
    {"J0133-3629", {1.0440, -0.6619, -0.2252}, {1.0440, -0.6620, -0.225}},
    {"3C 48", {1.3253, -0.7553, -0.1914, 0.0498}, {1.3253, -0.7553, -0.1914, 0.0498}},
    {"For A", {2.2175, -0.6606}, {2.2180, -0.661}},
    {"3C 123",
     {1.8017, -0.7884, -0.1035, -0.0248, 0.0090},
     {1.8017, -0.7884, -0.1035, -0.0248, 0.009}},
    {"J0444-2809", {0.9710, -0.8938, -0.1176}, {0.9710, -0.8940, -0.118}},
    {"3C 138",
     {1.0088, -0.4981, -0.1552, -0.0102, 0.0223},
     {1.0088, -0.4981, -0.155, -0.0100, 0.0220}},
    {"Pic A", {1.9380, -0.7470, -0.0739}, {1.9380, -0.7470, -0.074}},
    {"Tau A", {2.9516, -0.2173, -0.0473, -0.0674}, {2.9516, -0.217, -0.047, -0.067}},
    {"3C 147",
     {1.4516, -0.6961, -0.2007, 0.0640, -0.0464, 0.0289},
     {1.4516, -0.6961, -0.201, 0.064, -0.046, 0.029}},
    {"3C 196",
     {1.2872, -0.8530, -0.1534, -0.0200, 0.0201},
     {1.2872, -0.8530, -0.153, -0.0200, 0.0201}},
    {"Hya A",
     {1.7795, -0.9176, -0.0843, -0.0139, 0.0295},
     {1.7795, -0.9176, -0.084, -0.0139, 0.03}},
    {"Vir A", {2.4466, -0.8116, -0.0483}, {2.4466, -0.8116, -0.048}},
    {"3C 286", {1.2481, -0.4507, -0.1798, 0.0357}, {1.2481, -0.4507, -0.1798, 0.0357}},
    {"3C 295",
     {1.4701, -0.7658, -0.2780, -0.0347, 0.0399},
     {1.4701, -0.7658, -0.278, -0.0347, 0.0399}},
    {"Her A", {1.8298, -1.0247, -0.0951}, {1.8298, -1.0247, -0.0951}},
    {"3C 353", {1.8627, -0.6938, -0.0998, -0.0732}, {1.8627, -0.6938, -0.100, -0.0320}},
    {"3C 380",
     {1.2320, -0.7909, 0.0947, 0.0976, -0.1794, -0.1566},
     {1.2320, -0.7910, 0.095, 0.0980, -0.18, -0.16}},
    {"Cyg A", {3.3498, -1.0022, -0.2246, 0.0227, 0.0425}, {3.3498, -1.0022, -0.225, 0.023, 0.043}},
    {"3C 444", {1.1064, -1.0052, -0.0750, -0.0767}, {1.1064, -1.0050, -0.075, -0.0770}},
    {"Cas A", {3.3584, -0.7518, -0.0347, -0.0705}, {3.3584, -0.7518, -0.035, -0.071}}};

// CA-13: the paper's formula at 1.4 GHz to 0.1 %, and where copies differ from it.
TEST(SkyModel, ScaleSourcesAreThoseOfPerleyAndButler) {
  const SkyModel sky = built_in_sky();
  std::set<std::string> differ;
  for (const Copy& copy : kCopies) {
    const SkySource& source = source_named(sky, copy.name);
    ASSERT_FALSE(source.laws.empty()) << copy.name;
    for (const double ghz : {0.05, 0.2, 0.4, 1.4, 5.0, 20.0}) {
      if (ghz * 1e9 < source.laws[0].min_hz || ghz * 1e9 > source.laws[0].max_hz) continue;
      const double jy = flux_jy(source, ghz * 1e9, 2016);
      EXPECT_NEAR(jy / polynomial_jy(copy.plain, ghz), 1, 1e-9) << copy.name << " " << ghz;
      if (std::abs(jy / polynomial_jy(copy.early, ghz) - 1) > 0.01) differ.insert(copy.name);
    }
  }
  EXPECT_EQ(differ, (std::set<std::string>{"3C 353", "3C 380"}));
  // The paper's own values at 1.4 GHz follow from the formula; some by hand.
  EXPECT_NEAR(flux_jy(source_named(sky, "3C 286"), 1.4e9, 2016), 15.08, 0.02);
  EXPECT_NEAR(flux_jy(source_named(sky, "3C 147"), 1.4e9, 2016), 22.22, 0.2);
  // As the early polynomial would have it, 3C 380 at 50 GHz: nothing. Refused beyond 4 GHz.
  EXPECT_LT(polynomial_jy(kCopies[16].early, 50), 0.01);
  EXPECT_THAT(rejection_of([&] { flux_jy(source_named(sky, "3C 380"), 5e9, 2016); }),
              HasSubstr("50 MHz to 4 GHz"));
}

TEST(SkyModel, OutsideItsRangeASourceIsRefused) {
  const SkyModel sky = built_in_sky();
  const SkySource& fornax = source_named(sky, "For A");
  EXPECT_TRUE(has_flux(fornax, 0.2e9));
  EXPECT_FALSE(has_flux(fornax, 0.1999e9));
  const std::string message = rejection_of([&] { flux_jy(fornax, 159.375e6, 2019); });
  EXPECT_THAT(message, HasSubstr("For A"));
  EXPECT_THAT(message, HasSubstr("200 MHz to 500 MHz"));
  EXPECT_THAT(message, HasSubstr("none is extrapolated"));
  EXPECT_THAT(rejection_of([&] { flux_jy(source_named(sky, "Sun"), 159e6, 2019); }),
              HasSubstr("no flux is known"));
  EXPECT_TRUE(source_named(sky, "Sun").is_flux_free());
  EXPECT_TRUE(source_named(sky, "Cen A").is_flux_free());
}

TEST(SkyModel, CasAFadesAndItsTwoLawsMeet) {
  const SkyModel sky = built_in_sky();
  const SkySource& cas = source_named(sky, "Cas A");
  EXPECT_NEAR(flux_jy(cas, 1e9, 2026) / flux_jy(cas, 1e9, 2016), std::pow(1 - 0.0067, 10), 1e-9);
  // Ten years from the epoch 0.15 % a year is 1.5 %, beside 5 % of the scale.
  const FluxDensity flux = flux_density(cas, 1e9, 2026);
  EXPECT_NEAR(flux.error_jy / flux.jy, std::hypot(0.05, 0.015), 1e-9);
  // Baars et al. of 1965, faded by 51 years, and Perley & Butler meet at 200 MHz.
  EXPECT_NEAR(flux_jy(cas, 199.99e6, 2016) / flux_jy(cas, 200.01e6, 2016), 1, 0.03);
  // 73.8 MHz in 2005: 17 kJy (Kassim et al. 2007; Helmboldt & Kassim 2009).
  EXPECT_NEAR(flux_jy(cas, 73.8e6, 2005), 17'200, 1'200);
  const SkySource& cyg = source_named(sky, "Cyg A");
  EXPECT_NEAR(flux_jy(cyg, 49.99e6, 2016) / flux_jy(cyg, 50.01e6, 2016), 1, 0.06);
  EXPECT_FALSE(has_flux(cyg, 19e6));
}

TEST(SkyModel, JulianYears) {
  EXPECT_NEAR(julian_year(tai_ns_from_utc_iso("2000-01-01T12:00:00")), 2000, 1e-9);
  EXPECT_NEAR(julian_year(tai_ns_from_utc_iso("2025-01-01T12:00:00")), 2025 + 0.0027, 2e-3);
}

TEST(SkyModel, NamesAndGroups) {
  const SkyModel sky = sky_model_named("sun, cas-a, 3C405");
  ASSERT_EQ(sky.sources.size(), 3U);
  EXPECT_EQ(sky.sources[0].name, "Sun");
  EXPECT_EQ(sky.sources[1].name, "Cas A");
  EXPECT_EQ(sky.sources[2].name, "Cyg A");
  EXPECT_FALSE(sky.sources[1].of_group);
  const std::int64_t when = tai_ns_from_utc_iso("2019-11-04T03:35:37");
  EXPECT_NEAR(sky.sources[0].direction(when).ra_rad, sun(when).ra_rad, 1e-6);
  EXPECT_EQ(sky.sources[2].direction(when).dec_rad, body("Cyg A", when).dec_rad);
  const SkyModel group = sky_model_named("a-team,sun");
  EXPECT_EQ(group.sources.size(), 9U);
  EXPECT_TRUE(group.sources.front().of_group);
  EXPECT_FALSE(source_named(sky_model_named("a-team,Her A"), "Her A").of_group);
  EXPECT_THAT(rejection_of([] { sky_model_named("Cas A,3C461"); }), HasSubstr("twice"));
  EXPECT_THAT(rejection_of([] { sky_model_named("3C 168"); }), HasSubstr("3C 196"));
  EXPECT_THAT(rejection_of([] { sky_model_named(" , "); }), HasSubstr("no source"));
  // The catalog knows the flux calibrators too, and marks the same ten as before.
  EXPECT_NEAR(body("3C 286", when).ra_rad / kDegree_rad, 202.7845, 1e-4);
  EXPECT_EQ(catalog_sources().size(), 10U);
}

class SkyModelFile : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "ryle_sky_model";
    std::filesystem::create_directories(folder);
    const std::string path = (folder / name).string();
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(SkyModelFile, OwnTable) {
  const SkyModel sky = read_sky_model(write(
      "own.csv",
      "name,ra_deg,dec_deg,flux_jy,frequency_mhz,spectral_index,min_mhz,max_mhz,major_arcsec,note\n"
      "A,10,-20,4,150,-0.5,100,300,120,x\n"
      "B,01:00:00,-00:30:00,2,150,,,,,y  # flat within 2 %\n"));
  ASSERT_EQ(sky.sources.size(), 2U);
  EXPECT_NEAR(flux_jy(sky.sources[0], 300e6, 2020), 4 / std::sqrt(2.0), 1e-9);
  EXPECT_FALSE(has_flux(sky.sources[0], 301e6));
  EXPECT_NEAR(sky.sources[0].minor_rad, 120 * kDegree_rad / 3600, 1e-12);
  EXPECT_NEAR(sky.sources[1].fixed->ra_rad / kDegree_rad, 15, 1e-9);
  EXPECT_NEAR(sky.sources[1].fixed->dec_rad / kDegree_rad, -0.5, 1e-9);
  EXPECT_TRUE(has_flux(sky.sources[1], 152e6));
  EXPECT_FALSE(has_flux(sky.sources[1], 160e6));
  EXPECT_EQ(sky_model_named(
                write("own.csv", "name,ra_deg,dec_deg,flux_jy,frequency_mhz\nA,1,2,3,4") + ", sun")
                .sources.size(),
            2U);
  EXPECT_THAT(
      rejection_of([&] {
        read_sky_model(write("bad.csv", "name,ra_deg,dec_deg,flux_jy,frequency_mhz\nA,1,95,3,4\n"));
      }),
      HasSubstr("bad.csv:2"));
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("no.csv", "a,b\n1,2\n")); }),
              HasSubstr("Fintfit200"));
}

TEST_F(SkyModelFile, SurveysAsVizierWritesThem) {
  const SkyModel gleam = read_sky_model(
      write("gleam.tsv",
            "#RESOURCE=yCat\n\nGLEAM\tRAJ2000\tDEJ2000\tFintwide\talpha\tFintfit200\n"
            "\tdeg\tdeg\tJy\t\tJy\n------\t-----\t-----\t----\t----\t----\n"
            "J000000-300000\t0.0001\t-30\t5.5\t-0.8\t5.0\nJ000100-300000\t0.25\t-30.5\t1\t\t\n"));
  ASSERT_EQ(gleam.sources.size(), 1U);
  EXPECT_EQ(gleam.sources[0].name, "J000000-300000");
  EXPECT_NEAR(flux_jy(gleam.sources[0], 100e6, 2015), 5 * std::pow(2, 0.8), 1e-9);
  EXPECT_FALSE(has_flux(gleam.sources[0], 60e6));
  ASSERT_EQ(gleam.notes.size(), 1U);
  EXPECT_THAT(gleam.notes[0], HasSubstr("1 of the sources left out"));
  const SkyModel vlssr =
      read_sky_model(write("vlssr.csv",
                           "RAJ2000;DEJ2000;Sp\n\"h:m:s\";\"d:m:s\";Jy\n-----;-----;--\n"
                           "12 30 49.40;+12 23 28.0;2300\n"));
  ASSERT_EQ(vlssr.sources.size(), 1U);
  EXPECT_NEAR(vlssr.sources[0].fixed->ra_rad / kDegree_rad, 187.70583, 1e-4);
  EXPECT_NEAR(flux_jy(vlssr.sources[0], 74e6, 2015), 2300, 1e-9);
  EXPECT_FALSE(has_flux(vlssr.sources[0], 80e6));
}

TEST_F(SkyModelFile, MakesourcedbText) {
  const SkyModel sky = read_sky_model(write(
      "a.skymodel",
      "# (Name, Type, Patch, Ra, Dec, I, Q, U, V, ReferenceFrequency='74e6', SpectralIndex='[]', "
      "MajorAxis, MinorAxis, Orientation) = format\n\n"
      ", , CygA, 19:59:28, +40.44.02\n"
      "CygA_1, POINT, CygA, 19:59:28.3, +40.44.02.0, 1000, 0, 0, 0, 74.0e6, [-0.5, -0.1]\n"
      "CygA_2, GAUSSIAN, CygA, 19:59:28.3, -00.30.00.0, 10, , , , , [-1], 60, 30, 45\n"
      "CygA_3, SHAPELET, CygA, 19:59:28.3, +40.44.02.0, 10\n"));
  ASSERT_EQ(sky.sources.size(), 2U);
  EXPECT_NEAR(sky.sources[0].fixed->ra_rad / kDegree_rad, 15 * (19 + 59 / 60. + 28.3 / 3600), 1e-9);
  EXPECT_NEAR(sky.sources[0].fixed->dec_rad / kDegree_rad, 40 + 44 / 60. + 2 / 3600., 1e-9);
  EXPECT_NEAR(flux_jy(sky.sources[0], 740e6, 2020), 1000 * std::pow(10, -0.6), 1e-9);
  EXPECT_NEAR(flux_jy(sky.sources[1], 148e6, 2020), 5, 1e-9);
  EXPECT_NEAR(sky.sources[1].fixed->dec_rad / kDegree_rad, -0.5, 1e-9);
  EXPECT_NEAR(sky.sources[1].angle_rad / kDegree_rad, 45, 1e-9);
  EXPECT_THAT(sky.notes[0], HasSubstr("SHAPELET"));
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("b.skymodel", "A, POINT, 1:2:3\n")); }),
              HasSubstr("b.skymodel:1"));
}

TEST_F(SkyModelFile, HyperdriveLists) {
  const SkyModel sky =
      read_sky_model(write("h.json",
                           R"({"one": [{"ra": 10, "dec": -27, "comp_type": "point", "flux_type":
          {"list": [{"freq": 170e6, "i": 5.0}, {"freq": 150e6, "i": 10.0}]}}],
          "two": [{"ra": 0, "dec": -35, "comp_type": {"gaussian": {"maj": 20, "min": 10, "pa": 75}},
          "flux_type": {"power_law": {"si": -0.8, "fd": {"freq": 170e6, "i": 5.0}}}},
          {"ra": 0, "dec": -35, "comp_type": "point", "flux_type": {"curved_power_law":
          {"si": -0.6, "fd": {"freq": 150e6, "i": 50.0}, "q": 0.5}}}]})"));
  ASSERT_EQ(sky.sources.size(), 3U);
  EXPECT_NEAR(flux_jy(sky.sources[0], 150e6, 2020), 10, 1e-9);
  EXPECT_NEAR(flux_jy(sky.sources[0], 170e6, 2020), 5, 1e-9);
  EXPECT_FALSE(has_flux(sky.sources[0], 140e6));
  EXPECT_NEAR(flux_jy(sky.sources[1], 340e6, 2020), 5 * std::pow(2, -0.8), 1e-9);
  const double x = std::log(200.0 / 150);
  EXPECT_NEAR(flux_jy(sky.sources[2], 200e6, 2020), 50 * std::exp(-0.6 * x + 0.5 * x * x), 1e-9);
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("h.yaml", "")); }),
              HasSubstr("srclist-convert"));
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("w.json", "{\"a\": [{\"ra\": 1}]}")); }),
              HasSubstr("\"dec\""));
  for (const char* component :
       {R"("flux_type": {"power_law": 5})", R"("flux_type": {"list": 5})", R"("flux_type": 5)"}) {
    const std::string text =
        std::string(R"({"a": [{"ra": 1, "dec": 2, "comp_type": "point", )") + component + "}]}";
    EXPECT_THAT(rejection_of([&] { read_sky_model(write("w.json", text)); }), HasSubstr("\"a\""));
  }
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("w.json", R"({"a": [5]})")); }),
              HasSubstr("no object"));
}

TEST_F(SkyModelFile, WithoutAUsefulSourceAreRefusedInTheirOwnWords) {
  const std::string header = "name,ra_deg,dec_deg,flux_jy,frequency_mhz\n";
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("none.csv", header)); }),
              HasSubstr("one line per source"));
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("empty.csv", "")); }),
              HasSubstr("name, ra_deg"));
  EXPECT_THAT(rejection_of([&] { read_sky_model(write("neg.csv", header + "A,1,2,-3,4\n")); }),
              HasSubstr("negative"));
  const SkyModel both = read_sky_model(write("both.csv", header + "A,1,2,-3,4\nB,1,2,5,4\n"));
  ASSERT_EQ(both.notes.size(), 1U);
  EXPECT_THAT(both.notes[0], HasSubstr("1 of 2 components"));
}

}  // namespace
}  // namespace ryle
