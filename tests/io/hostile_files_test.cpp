// SPDX-License-Identifier: BSD-3-Clause
// Files that were made to hurt: each is rejected with code 65 and a sentence, within the memory of
// a small file, and nothing is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>

#include "ryle/core/child.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/io/base/row_file.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/map/map_projection.hpp"
#include "ryle/io/scan/scan_file.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"
#include "tests/support/deflate.hpp"
#include "tests/support/fits_text.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;
using test::card;
using test::Scratch;
using testing::HasSubstr;

/// The FormatError of f, "" when it throws none.
template <class F>
std::string rejection_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::bad_data) << error.what();
    return error.what();
  }
  return "";
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string fits_header(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string file = card("SIMPLE", "T");
  for (const auto& [key, value] : keys) file += card(key, value);
  file += card("END", "");
  test::pad_block(file, ' ');
  return file;
}

/// Peak memory of this process, MiB.
double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

class HostileFile : public testing::Test {
 protected:
  void expect_small() { EXPECT_LT(peak_mib() - before_mib_, 200); }
  std::string uvh5() {
    const std::string path = dir_ / "v.uvh5";
    const Observation o = test::make_observation({});
    auto writer = open_visibility_writer(path, o, true);
    writer->write(test::make_dump(o, {}, 0));
    writer->publish(o);
    return path;
  }
  std::string read(const std::string& path) {
    return rejection_of([&] { read_visibility_file(path); });
  }

  Scratch dir_;
  double before_mib_ = peak_mib();
};

/// Opens to change; replaces a data set by one of another shape, of which nothing is stored.
void replace_set(const std::string& path, const char* name, hid_t type,
                 const std::vector<hsize_t>& shape) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  H5Ldelete(file, name, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  const std::vector<hsize_t> chunk(shape.size(), 1);
  H5Pset_chunk(plist, static_cast<int>(chunk.size()), chunk.data());
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  EXPECT_GE(set, 0);
  H5Dclose(set);
  H5Pclose(plist);
  H5Sclose(space);
  H5Fclose(file);
}

// More values than visdata has were read into its space.
TEST_F(HostileFile, Uvh5WithMoreWeightsThanValues) {
  for (const char* name : {"Data/nsamples", "Data/flags"}) {
    const std::string path = uvh5();
    replace_set(path, name, H5T_NATIVE_FLOAT, {50, 100, 1000});
    EXPECT_NE(read(path), "") << name;
  }
  expect_small();
}

TEST_F(HostileFile, SparseTablesOfUvh5) {
  const std::string path = uvh5();
  replace_set(path, "Header/time_array", H5T_NATIVE_DOUBLE, {700'000'000});
  EXPECT_THAT(read(path), HasSubstr("time_array declares 5.6e+09 bytes"));
  expect_small();
}

TEST_F(HostileFile, Uvh5ThatReachesOutOfItself) {
  std::string path = uvh5();
  put(dir_ / "secret.raw", std::string(4096, 'x'));
  hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_external("other.h5", "/x", file, "away", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(read(path), HasSubstr("/away is a link to another file"));
  path = uvh5();
  file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(plist, (dir_ / "secret.raw").c_str(), 0, 4096);
  const hsize_t size = 512;
  const hid_t space = H5Screate_simple(1, &size, nullptr);
  const hid_t set =
      H5Dcreate2(file, "raw", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  EXPECT_GE(set, 0);
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(plist);
  H5Fclose(file);
  EXPECT_THAT(read(path), HasSubstr("/raw has its data in other files"));
}

TEST_F(HostileFile, GroupsWithinGroups) {
  const std::string path = uvh5();
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  for (int k = 0; k < 2000; ++k) {
    const hid_t next = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    group = next;
  }
  H5Gclose(group);
  H5Fclose(file);
  EXPECT_THAT(read(path), HasSubstr("nested more than 32 deep"));
  EXPECT_THAT(rejection_of([&] { open_scans(path, {}); }), HasSubstr("nested more than 32 deep"));
}

// A row of another time and pair each: a place for every pair of every time would take 300 MB.
TEST_F(HostileFile, RowsWithoutPartners) {
  Observation o = test::make_observation({100, 1, 1});
  const std::string path = dir_ / "sparse.uvh5";
  {
    auto writer = open_visibility_writer(path, o, false);
    writer->write(test::make_dump(o, {}, 0));
    writer->publish(o);
  }
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "Ryle", H5P_DEFAULT);
  const hsize_t n = 100 * 101 / 2;
  const auto times = [&](double step) {
    std::vector<double> values(n);
    for (hsize_t k = 0; k < n; ++k) values[k] = 2461000.5 + step * static_cast<double>(k);
    const hid_t set = H5Dopen2(file, "Header/time_array", H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    H5Dclose(set);
  };
  times(0.01);
  H5Fclose(file);
  EXPECT_THAT(read(path), HasSubstr("fewer than one pair of 64 is there"));
  expect_small();
}

// Text of one letter, and a data set of 8 MB where it is.
TEST_F(HostileFile, TextOfSumsIsOneLine) {
  const std::string path = dir_ / "sums.h5";
  {
    RowFileWriter writer(path, false);
    writer.text("description", "x");
    writer.publish();
  }
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "description", H5P_DEFAULT);
  const hsize_t shape[2] = {1, 8'000'000};
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  const hid_t set = H5Dcreate2(file, "description", H5T_NATIVE_CHAR, space, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT);
  H5Dclose(set);
  H5Sclose(space);
  H5Fclose(file);
  const RowFileReader reader(path);
  EXPECT_THAT(rejection_of([&] { static_cast<void>(reader.text("description")); }),
              HasSubstr("8000000 values"));
}

TEST_F(HostileFile, UvfitsWithAMillionParameters) {
  const std::string path = dir_ / "v.uvfits";
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"PCOUNT", "1000000"},
                                                        {"PCOUNT", "-5"},
                                                        {"GCOUNT", "0"},
                                                        {"NAXIS3", "9999999"},
                                                        {"NAXIS4", "2000000000"},
                                                        {"NAXIS5", "7"}}) {
    std::vector<std::pair<std::string, std::string>> keys{
        {"BITPIX", "-32"},       {"NAXIS", "5"},       {"NAXIS1", "0"},        {"NAXIS2", "3"},
        {"CTYPE2", "'COMPLEX'"}, {"NAXIS3", "1"},      {"CTYPE3", "'STOKES'"}, {"CRVAL3", "-5."},
        {"NAXIS4", "1"},         {"CTYPE4", "'FREQ'"}, {"NAXIS5", "1"},        {"CTYPE5", "'BEAM'"},
        {"GROUPS", "T"},         {"PCOUNT", "6"},      {"GCOUNT", "1"}};
    for (auto& entry : keys) {
      if (entry.first == key) entry.second = value;
    }
    put(path, fits_header(keys) + std::string(2880, '\0'));
    EXPECT_NE(read(path), "") << key << " " << value;
  }
  expect_small();
}

// cfitsio would unpack it in memory, whatever it grows to.
TEST_F(HostileFile, CompressedFits) {
  const std::string packed = test::deflated(
      fits_header({{"BITPIX", "8"}, {"NAXIS", "0"}}) + std::string(64 << 20, '\0'), 31, 9);
  for (const char* name : {"v.uvfits", "m.fits", "f.fits", "c.fits"}) put(dir_ / name, packed);
  put(dir_ / "a.txt", "a 0 0 0\nb 1 0 0\n");
  before_mib_ = peak_mib();
  EXPECT_THAT(read(dir_ / "v.uvfits"), HasSubstr("gunzip"));
  EXPECT_THAT(rejection_of([&] { MapProjection::read(dir_ / "m.fits"); }), HasSubstr("gunzip"));
  CovarianceFiles files;
  files.real_path = files.imaginary_path = dir_ / "c.fits";
  files.antennas_path = dir_ / "a.txt";
  files.frequency_hz = 1e8;
  files.latitude_deg = files.longitude_deg = 0;
  EXPECT_THAT(rejection_of([&] { read_covariance(files); }), HasSubstr("gunzip"));
  EXPECT_NE(rejection_of([&] { open_filterbank(dir_ / "f.fits", {}); }), "");
  EXPECT_LT(peak_mib() - before_mib_, 32);
}

TEST_F(HostileFile, CovariancesLargerThanTheirFile) {
  put(dir_ / "c.fits",
      fits_header({{"BITPIX", "-64"}, {"NAXIS", "2"}, {"NAXIS1", "16384"}, {"NAXIS2", "16384"}}) +
          std::string(2880, '\0'));
  put(dir_ / "a.txt", "a 0 0 0\nb 1 0 0\n");
  CovarianceFiles files;
  files.real_path = files.imaginary_path = dir_ / "c.fits";
  files.antennas_path = dir_ / "a.txt";
  files.frequency_hz = 1e8;
  files.latitude_deg = files.longitude_deg = 0;
  EXPECT_THAT(rejection_of([&] { read_covariance(files); }), HasSubstr("truncated"));
  expect_small();
}

TEST_F(HostileFile, TargetsOfNoPixelsOrTooMany) {
  for (const auto& [width, height] : std::vector<std::pair<std::string, std::string>>{
           {"0", "10"}, {"10", "0"}, {"0", "0"}, {"2000000000", "2000000000"}}) {
    put(dir_ / "t.fits", fits_header({{"BITPIX", "-32"},
                                      {"NAXIS", "2"},
                                      {"NAXIS1", width},
                                      {"NAXIS2", height},
                                      {"CTYPE1", "'RA---SIN'"},
                                      {"CTYPE2", "'DEC--SIN'"},
                                      {"CRVAL1", "30."},
                                      {"CRVAL2", "40."},
                                      {"CDELT1", "-0.1"},
                                      {"CDELT2", "0.1"},
                                      {"CRPIX1", "5."},
                                      {"CRPIX2", "5."}}));
    EXPECT_THAT(rejection_of([&] { MapProjection::read(dir_ / "t.fits"); }),
                HasSubstr("a map has a width and a height of 1 or more"))
        << width << " x " << height;
  }
}

// wcslib copies a string that does not end in its card beyond its buffer.
TEST_F(HostileFile, TargetWithTextThatDoesNotEnd) {
  const std::string good = fits_header({{"BITPIX", "-32"},
                                        {"NAXIS", "2"},
                                        {"NAXIS1", "20"},
                                        {"NAXIS2", "10"},
                                        {"CTYPE1", "'RA---SIN'"},
                                        {"CTYPE2", "'DEC--SIN'"},
                                        {"CRVAL1", "30."},
                                        {"CRVAL2", "40."},
                                        {"CDELT1", "-0.1"},
                                        {"CDELT2", "0.1"},
                                        {"OBJECT", "'O''Neill'"}});
  const auto read_target = [&](const std::string& header) {
    put(dir_ / "t.fits", header);
    return rejection_of([&] { MapProjection::read(dir_ / "t.fits"); });
  };
  EXPECT_EQ(read_target(good), "");
  std::string bad = good;
  bad.replace(bad.find("DEC--SIN'"), 9, "DEC--SIN ");
  EXPECT_THAT(read_target(bad), HasSubstr("CTYPE2   in the header does not end"));
  bad = good;
  bad[bad.find("CRVAL1") - 1] = '\n';
  EXPECT_EQ(read_target(bad), "") << "other letters in a comment";
}

TEST_F(HostileFile, PsrfitsWithoutItsRows) {
  std::string file = test::primary_header({{"FITSTYPE", "'PSRFITS'"}, {"OBS_MODE", "'SEARCH'"}});
  const std::string row(8 + 4 + 4 + 4 + 8, '\1');
  test::add_table(file, "SUBINT",
                  {{"DAT_FREQ", "1D"},
                   {"DAT_WTS", "1E"},
                   {"DAT_OFFS", "1E"},
                   {"DAT_SCL", "1E"},
                   {"DATA", "8B"}},
                  {{"NCHAN", "1"}, {"NPOL", "1"}, {"NBITS", "8"}, {"NSBLK", "8"}, {"TBIN", "1E-3"}},
                  row, 1);
  const auto at = file.find("NAXIS2  = 1");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 20, "NAXIS2  = 9999999999");
  put(dir_ / "f.fits", file);
  EXPECT_THAT(rejection_of([&] { open_filterbank(dir_ / "f.fits", {}); }), HasSubstr("truncated"));
}

// A pipe nobody writes to made every reader wait for ever.
TEST_F(HostileFile, PipesAndDevices) {
  for (const char* name : {"v.uvfits", "v.uvh5", "f.fil", "t.fits", "s.h5", "a.txt"})
    ASSERT_EQ(::mkfifo((dir_ / name).c_str(), 0600), 0);
  const auto expect_rejected = [](const std::string& message) {
    EXPECT_THAT(message, HasSubstr("not a regular file"));
  };
  expect_rejected(read(dir_ / "v.uvfits"));
  expect_rejected(read(dir_ / "v.uvh5"));
  expect_rejected(rejection_of([&] { open_filterbank(dir_ / "f.fil", {}); }));
  expect_rejected(rejection_of([&] { MapProjection::read(dir_ / "t.fits"); }));
  expect_rejected(rejection_of([&] { open_scans(dir_ / "s.h5", {}); }));
  expect_rejected(rejection_of([&] { static_cast<void>(read_text_file(dir_ / "a.txt")); }));
  expect_rejected(rejection_of([&] { static_cast<void>(read_text_file("/dev/zero")); }));
  EXPECT_EQ(test::exit_code_of([&] { static_cast<void>(read_text_file(dir_.path())); }),
            ExitCode::no_input);
}

TEST_F(HostileFile, MeasurementSetWithAPipeOrAFileForAFolder) {
  if (!measurement_sets_supported()) GTEST_SKIP() << "skipped: built without casacore";
  const Observation o = test::make_observation({});
  const std::string path = dir_ / "v.ms";
  {
    auto writer = open_visibility_writer(path, o, false);
    writer->write(test::make_dump(o, {}, 0));
    writer->publish(o);
  }
  EXPECT_EQ(read(path), "");
  fs::remove(path + "/table.lock");
  ASSERT_EQ(::mkfifo((path + "/table.lock").c_str(), 0600), 0);
  EXPECT_THAT(read(path), HasSubstr("not a regular file"));
  put(dir_ / "f.ms", "not a folder");
  EXPECT_THAT(read(dir_ / "f.ms"), HasSubstr("it is a file, not a folder"));
}

/// A whole file of simulated visibilities.
std::string visibilities(const Scratch& scratch, const std::string& suffix) {
  const Observation o = test::make_observation({3, 2, 2});
  const std::string path = scratch / ("x" + suffix);
  const auto writer = open_visibility_writer(path, o, true);
  writer->write(test::make_dump(o, {}, 0));
  writer->publish(o);
  return path;
}

// One wrong bit in the data of a file that has a DATASUM; the HDU is named.
TEST_F(HostileFile, DataThatAreNotThoseOfTheirDatasum) {
  const std::string path = visibilities(dir_, ".uvfits");
  std::string bytes = test::contents(path);
  std::size_t end = bytes.find("END" + std::string(77, ' '));
  ASSERT_EQ(end % 80, 0U);
  const std::size_t data = (end + 2880) / 2880 * 2880;
  bytes[data + 30] = static_cast<char>(bytes[data + 30] ^ 4);
  put(path, bytes);
  EXPECT_THAT(rejection_of([&] { read_visibility_file(path); }),
              AllOf(HasSubstr("HDU 0"), HasSubstr("DATASUM"), HasSubstr("damaged")));

  // Scans: the sum of their words, or another one.
  const std::string row = test::big_endian(10) + test::big_endian(20) + test::big_endian(1000) +
                          test::big_endian(0.5) + test::big_endian(3) + std::string(24, '\2');
  const auto table = [&](const std::string& sum) {
    std::string file = test::primary_header();
    test::add_table(file, "T",
                    {{"OBJ_RA", "D"},
                     {"OBJ_DEC", "D"},
                     {"FREQ", "D"},
                     {"CHAN_BW", "D"},
                     {"NCHAN", "D"},
                     {"DATA", "12I"}},
                    {{"TDIM6", "'(4,3)'"}, {"DATASUM", "'" + sum + "'"}}, row, 2);
    put(dir_ / "scans.fits", file);
    return rejection_of([&] { open_scans(dir_ / "scans.fits", {}); });
  };
  std::uint64_t sum = 0;
  for (int n = 0; n < 2; ++n)
    for (std::size_t k = 0; k < row.size(); k += 4)
      sum += static_cast<std::uint64_t>(static_cast<unsigned char>(row[k])) << 24 |
             static_cast<std::uint64_t>(static_cast<unsigned char>(row[k + 1])) << 16 |
             static_cast<std::uint64_t>(static_cast<unsigned char>(row[k + 2])) << 8 |
             static_cast<std::uint64_t>(static_cast<unsigned char>(row[k + 3]));
  while (sum >> 32 != 0) sum = (sum & 0xffffffff) + (sum >> 32);
  EXPECT_EQ(table(std::to_string(sum)), "");
  EXPECT_EQ(table("  " + std::to_string(sum)), "");
  EXPECT_THAT(table(std::to_string(sum + 1)), AllOf(HasSubstr("HDU 1 (T)"), HasSubstr("DATASUM")));
}

// After a signal every reader of a whole file ends with 75, the parent of a reading child too.
TEST(Interrupt, ReadersOfWholeFilesStop) {
  const Scratch scratch;
  std::vector<std::string> suffixes{".uvfits", ".uvh5"};
  if (measurement_sets_supported()) suffixes.emplace_back(".ms");
  for (const std::string& suffix : suffixes) {
    const std::string path = visibilities(scratch, suffix);
    const std::atomic<int> signals{1};
    set_interrupt_count(&signals);
    EXPECT_EQ(test::exit_code_of([&] { read_visibility_file(path); }), ExitCode::try_again) << path;
    set_interrupt_count(nullptr);
    EXPECT_EQ(read_visibility_file(path).dumps.size(), 1U) << path;
  }
}

TEST(Child, HandsOverWhatItFound) {
  int result = 0;
  run_in_child(
      "X", {}, [] {},
      [](const ChildPipe& pipe) {
        const int n = 42;
        pipe.write(&n, sizeof n);
      },
      [&](const ChildPipe& pipe) { pipe.read(&result, sizeof result); });
  EXPECT_EQ(result, 42);
  EXPECT_EQ(test::exit_code_of(
                [] { run_in_child("X", {}, [] { throw UnsupportedError("no such filter"); }); }),
            ExitCode::unavailable);
}

TEST(Child, DiesInPlaceOfItsParent) {
  const auto what = [](const ChildLimits& limits, const std::function<void()>& work) {
    return rejection_of([&] { run_in_child("file X", limits, work); });
  };
  EXPECT_THAT(what({}, [] { throw std::runtime_error("bad magic"); }),
              HasSubstr("cannot read file X: bad magic"));
  EXPECT_THAT(what({}, [] { std::abort(); }), HasSubstr("died of it (Aborted)"));
  EXPECT_THAT(what({}, [] { ::raise(SIGSEGV); }), HasSubstr("died of it (Segmentation fault)"));
  EXPECT_THAT(what({512 << 20, 1},
                   [] {
                     std::atomic<int> spin{0};
                     for (;;) ++spin;
                   }),
              HasSubstr("it took more than 1 s"));
#ifndef __SANITIZE_ADDRESS__  // whose allocator reports in its own way
  EXPECT_THAT(what({64 << 20, 5}, [] { std::vector<char>(std::size_t{8} << 30, 'x'); }),
              HasSubstr("it asks for more than 67108864 bytes of memory"));
#endif
}

}  // namespace
}  // namespace ryle
