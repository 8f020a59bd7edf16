// SPDX-License-Identifier: BSD-3-Clause
// Files that end too early or are none: a sentence, no crash, no memory.
#include "tests/io/scan/scan_files.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::rejection;

TEST(DamagedScans, WhatIsNoFileOfScans) {
  const test::ScanFolder folder;
  const std::string path = folder.file("some.dat");
  EXPECT_NE(rejection(path).find("cannot open"), std::string::npos);
  test::put_bytes(path, "");
  EXPECT_NE(rejection(path).find("is empty"), std::string::npos);
  test::put_bytes(path, "x");
  EXPECT_NE(rejection(path).find("NumPy .npz are read"), std::string::npos);
  test::put_bytes(path, "\x1f\x8b\x08 and so on");
  EXPECT_NE(rejection(path).find("gunzip"), std::string::npos);
}

TEST(DamagedScans, FilesCutAnywhereAreRejected) {
  const test::ScanFolder folder;
  for (const char* name :
       {"singledish/hegrid_mock/mock503.hdf5", "singledish/hegrid_mock/input1.fits",
        "singledish/srt_medicina/med_data.fits",
        "singledish/gbt_sdfits_real/"
        "AGBT22A_325_23_AGBT22A_325_23.raw.vegas_AGBT22A_325_23.raw.vegas.B.fits"}) {
    const auto data = test::data_file(name);
    if (!data) GTEST_SKIP() << "no " << name;
    const std::string bytes = test::bytes_of_file(*data);
    for (const double part : {0.001, 0.02, 0.1, 0.35, 0.6, 0.8, 0.9}) {
      const std::string path = folder.file("cut");
      test::put_bytes(
          path,
          bytes.substr(0, static_cast<std::size_t>(part * static_cast<double>(bytes.size()))));
      EXPECT_NE(rejection(path), "") << name << " " << part;
    }
  }
}

// NAXIS2 says ten times the rows: the message says how many there are.
TEST(DamagedScans, RowsThatAreNotThere) {
  RYLE_REQUIRE_DATA(data,
                    "singledish/gbt_sdfits_real/"
                    "AGBT22A_325_23_AGBT22A_325_23.raw.vegas_AGBT22A_325_23.raw.vegas.A.fits");
  const test::ScanFolder folder;
  std::string bytes = test::bytes_of_file(data);
  const auto at = bytes.find("NAXIS2  =                   32");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 30, "NAXIS2  =           9999999999");
  test::put_bytes(folder.file("lie.fits"), bytes);
  EXPECT_NE(rejection(folder.file("lie.fits")).find("says it has 9999999999 rows of 4722 bytes"),
            std::string::npos)
      << rejection(folder.file("lie.fits"));
}

TEST(DamagedScans, ColumnsThatFitsDoesNotAllow) {
  const test::ScanFolder folder;
  const std::string path = folder.file("columns.fits");
  test::write_table(path, "T", {{"RA", "1D", "", {1}, {}, ""}});
  std::string bytes = test::bytes_of_file(path);
  const auto at = bytes.find("TFIELDS =                    1");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 30, "TFIELDS =             20000000");
  test::put_bytes(path, bytes);
  EXPECT_NE(rejection(path).find("FITS allows 999"), std::string::npos) << rejection(path);
  bytes.replace(at, 30, "TFIELDS =                    1");
  const auto name = bytes.find("TTYPE1  = ");
  ASSERT_NE(name, std::string::npos);
  bytes.replace(name + 10, 70, std::string(70, 'x'));
  test::put_bytes(path, bytes);
  EXPECT_NE(rejection(path).find("no text in quotes"), std::string::npos) << rejection(path);
}

}  // namespace
}  // namespace ryle
