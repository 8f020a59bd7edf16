// SPDX-License-Identifier: BSD-3-Clause
// Named arrays: HDF5 of several layouts, .npz, FITS tables.
#include <hdf5.h>
#include <zlib.h>

#include <cmath>
#include <cstring>

#include "tests/io/scan/scan_files.hpp"
#include "tests/support/deflate.hpp"

namespace ryle {
namespace {

using test::read_scans;
using test::rejection;

class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Hdf5Writer() { H5Fclose(file_); }
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  void group(const char* name) {
    H5Gclose(H5Gcreate2(file_, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  void put(const char* name, const std::vector<double>& values, std::vector<hsize_t> shape,
           hid_t type = H5T_IEEE_F64LE, std::vector<hsize_t> chunk = {}) {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk.empty()) {
      H5Pset_chunk(plist, static_cast<int>(chunk.size()), chunk.data());
      H5Pset_shuffle(plist);
      H5Pset_deflate(plist, 4);
    }
    const hid_t set = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (!values.empty())
      H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Pclose(plist);
    H5Sclose(space);
  }
  void attribute(const char* of, const char* name, long long value) {
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t a = H5Acreate_by_name(file_, of, name, H5T_STD_I64LE, space, H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_LLONG, &value);
    H5Aclose(a);
    H5Sclose(space);
  }
  void attribute(const char* of, const char* name, const std::string& text) {
    const hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, text.size());
    const hid_t a =
        H5Acreate_by_name(file_, of, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(a, type, text.data());
    H5Aclose(a);
    H5Tclose(type);
    H5Sclose(space);
  }

 private:
  hid_t file_;
};

constexpr int kTimes = 70, kChannels = 9;

/// [polarization][time][channel] as HiFAST writes it: 1000 time + channel, + 0.5 in the second.
std::string hifast(const test::ScanFolder& folder, const std::string& name,
                   std::vector<hsize_t> chunk, hid_t type) {
  const std::string path = folder.file(name);
  Hdf5Writer file(path);
  file.group("S");
  file.group("Header");
  file.attribute("Header", "frame", "LSRK");
  std::vector<double> ra, dec, mjd, freq, flux, rfi(kTimes * kChannels, 0);
  for (int t = 0; t < kTimes; ++t) {
    ra.push_back(100 + 0.01 * t);
    dec.push_back(20 - 0.01 * t);
    mjd.push_back(59000.25 + t);
  }
  for (int c = 0; c < kChannels; ++c) freq.push_back(1420 - 0.5 * c);
  for (int p = 0; p < 2; ++p)
    for (int t = 0; t < kTimes; ++t)
      for (int c = 0; c < kChannels; ++c) flux.push_back(1000 * t + c + 0.5 * p);
  rfi[3 * kChannels + 2] = 1;
  file.put("S/ra", ra, {kTimes});
  file.put("S/dec", dec, {kTimes});
  file.put("S/mjd", mjd, {kTimes});
  file.put("S/freq", freq, {kChannels});
  file.put("S/flux", flux, {2, kTimes, kChannels}, type, chunk);
  file.put("S/is_rfi", rfi, {kTimes, kChannels}, H5T_STD_I8LE);
  return path;
}

TEST(NamedScans, Hifast) {
  const test::ScanFolder folder;
  const std::string plain = hifast(folder, "M33-M07_W-20200531-flux.hdf5", {}, H5T_IEEE_F32BE);
  const std::string packed = hifast(folder, "packed-M19.hdf5", {1, 16, 4}, H5T_IEEE_F32LE);
  for (const std::string& path : {plain, packed}) {
    const auto r = read_scans(path, {}, 4);
    ASSERT_EQ(r.metadata.n_samples, kTimes);
    ASSERT_EQ(r.metadata.n_channels, kChannels);
    EXPECT_EQ(r.metadata.unit, "Jy/beam");
    EXPECT_EQ(r.metadata.spectral_frame, "LSRK");
    EXPECT_EQ(r.metadata.polarization, "mean of XX, YY");
    EXPECT_EQ(r.metadata.observed_utc, "2020-05-31T06:00:00.000");
    EXPECT_TRUE(r.metadata.samples_first);
    EXPECT_DOUBLE_EQ(r.metadata.frequency.first_center_hz, 1416e6);
    EXPECT_DOUBLE_EQ(r.metadata.frequency.channel_width_hz, 0.5e6);
    for (int c = 0; c < kChannels; ++c)
      for (int t = 0; t < kTimes; ++t)
        ASSERT_EQ(r.at(c, t), 1000 * t + (kChannels - 1 - c) + 0.25f) << path << c << " " << t;
    for (int c = 0; c < kChannels; ++c)
      for (int t = 0; t < kTimes; ++t)
        ASSERT_EQ(r.flags[static_cast<std::size_t>(c * kTimes + t)],
                  t == 3 && c == kChannels - 1 - 2 ? 1 : 0);
    ScanOptions y;
    y.polarization = "YY";
    EXPECT_EQ(read_scans(path, y).at(0, 69), 69'008.5f);
  }
  EXPECT_EQ(read_scans(plain).metadata.format, "HiFAST HDF5 (flux), beam M07");
}

TEST(NamedScans, FrequenciesOffTheGridAreRejected) {
  const test::ScanFolder folder;
  const std::string path = folder.file("uneven.h5");
  {
    Hdf5Writer file(path);
    file.put("ra", {1, 2}, {2});
    file.put("dec", {1, 2}, {2});
    file.put("freq", {1e9, 1.1e9, 1.206e9, 1.3e9}, {4});
    file.put("Ta", std::vector<double>(8, 1), {2, 4});
  }
  EXPECT_NE(rejection(path).find("not evenly spaced: channel 2"), std::string::npos)
      << rejection(path);
}

TEST(NamedScans, HcgridAndHegridHdf5) {
  const test::ScanFolder folder;
  const std::string path = folder.file("hcgrid.h5");
  {
    Hdf5Writer file(path);
    file.group("coords");
    file.group("signal");
    file.put("coords/xcoords", {10, 20, 30}, {3});
    file.put("coords/ycoords", {1, 2, 3}, {3});
    for (int c = 0; c < 11; ++c)
      file.put(("signal/signal_" + std::to_string(c)).c_str(), {c + .1, c + .2, c + .3}, {3, 1},
               H5T_IEEE_F32LE);
  }
  const auto r = read_scans(path, {}, 3);
  EXPECT_EQ(r.metadata.format, "HCGrid HDF5");
  ASSERT_EQ(r.metadata.n_channels, 11);
  EXPECT_EQ(r.at(10, 2), 10.3f);
  EXPECT_EQ(r.at(2, 0), 2.1f);
  const std::string lying = folder.file("hegrid.h5");
  {
    Hdf5Writer file(lying);
    file.group("coords");
    file.group("freq");
    file.group("value");
    file.attribute("freq", "channel_num", 5LL);
    file.put("coords/ra", {10, 20, 30}, {3});
    file.put("coords/dec", {1, 2, 3}, {3});
    file.put("value/flux_0", {1, 2, 3}, {3, 1});
  }
  EXPECT_NE(rejection(lying).find("channel_num is 5, there are 1"), std::string::npos);
}

TEST(NamedScans, MappedSetsWithWeights) {
  const test::ScanFolder folder;
  const std::string path = folder.file("mapped.h5");
  {
    Hdf5Writer file(path);
    file.put("x", {1, 13, 23.5}, {3});
    file.put("y", {-5, 5, 6}, {3});
    file.put("w", {1, 0.5, 2}, {3}, H5T_IEEE_F32LE);
    file.put("cube", {1, 2, 3, 4, 5, 6}, {2, 3}, H5T_STD_I16BE);  // [channel][sample]
  }
  ScanOptions o;
  o.longitude = "/x";
  o.latitude = "/y";
  o.data = "/cube";
  o.weights = "column:/w";
  auto r = read_scans(path, o, 1);
  EXPECT_EQ(r.values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(r.weights, (std::vector<float>{1, 0.5f, 2}));
  EXPECT_FALSE(r.metadata.samples_first);
  EXPECT_TRUE(r.warns("--ra-unit hours"));  // 1 .. 23.5
  o.longitude_unit = "deg";
  EXPECT_FALSE(read_scans(path, o).warns("--ra-unit"));
  o.longitude_unit = "hours";
  r = read_scans(path, o);
  EXPECT_EQ(r.lon[2], 23.5 * 15);
  EXPECT_FALSE(r.warns("--ra-unit"));
  o.weights = "tsys";
  EXPECT_NE(rejection(path, o).find("column:NAME"), std::string::npos);
}

// Files of more than a megabyte a channel are read in pieces by several threads: planes, spectra
// and positions (some of them: read_scans() compares).
TEST(NamedScans, PiecesThatThreadsReadLieWhereTheyBelong) {
  constexpr std::size_t kSamples = 300'000;
  const test::ScanFolder folder;
  std::vector<double> lon(kSamples), lat(kSamples), first(kSamples), second(kSamples), spectra;
  for (std::size_t k = 0; k < kSamples; ++k) {
    lon[k] = 30 + 1e-5 * static_cast<double>(k);
    lat[k] = 1e-5 * static_cast<double>(k);
    first[k] = static_cast<double>(k);
    second[k] = -first[k];
    spectra.insert(spectra.end(), {first[k], second[k], 0.5});
  }
  const auto write = [&](const std::string& name, bool planes) {
    Hdf5Writer file(folder.file(name));
    file.group("coords");
    file.put("coords/ra", lon, {kSamples});
    file.put("coords/dec", lat, {kSamples});
    if (planes) {
      file.group("value");
      file.put("value/flux_0", first, {kSamples}, H5T_IEEE_F32LE);
      file.put("value/flux_1", second, {kSamples}, H5T_IEEE_F32LE);
    } else {
      file.put("spectra", spectra, {kSamples, 3}, H5T_IEEE_F32LE);
    }
    return folder.file(name);
  };
  for (const bool planes : {true, false}) {
    SCOPED_TRACE(planes);
    const auto r = read_scans(write(planes ? "planes.h5" : "spectra.h5", planes));
    ASSERT_EQ(r.metadata.n_samples, static_cast<std::int64_t>(kSamples));
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < kSamples; ++k)
      wrong += r.lon[k] != lon[k] || r.lat[k] != lat[k] ||
                       r.at(0, static_cast<std::int64_t>(k)) != static_cast<float>(first[k]) ||
                       r.at(1, static_cast<std::int64_t>(k)) != static_cast<float>(second[k])
                   ? 1
                   : 0;
    EXPECT_EQ(wrong, 0U);
  }
}

// A shape of 10^15 numbers that were never written asks for no memory.
TEST(NamedScans, ShapesThatAreNotStoredAreRejected) {
  const test::ScanFolder folder;
  const std::string path = folder.file("sparse.h5");
  {
    Hdf5Writer file(path);
    const hsize_t n = hsize_t{1} << 50;
    file.put("ra", {}, {n}, H5T_IEEE_F64LE, {1024});
    file.put("dec", {}, {n}, H5T_IEEE_F64LE, {1024});
    file.put("Ta", {}, {n}, H5T_IEEE_F32LE, {1024});
  }
  EXPECT_NE(rejection(path).find("are believed"), std::string::npos);
}

TEST(NamedScans, FitsTableOfColumns) {
  const test::ScanFolder folder;
  const std::string path = folder.file("table.fits");
  test::write_table(path, "SCANS",
                    {{"RA", "1D", "rad", {0.5, 1}, {}, ""},
                     {"DEC", "1D", "rad", {0.1, -0.1}, {}, ""},
                     {"W", "1E", "", {3, 4}, {}, ""},
                     {"T", "3E", "mK", {1, 2, 3, 4, 5, 6}, {}, ""},
                     {"U", "3E", "mK", {1, 2, 3, 4, 5, 6}, {}, "(4,2)"}});
  ScanOptions o;
  o.data = "T";
  o.weights = "column:W";
  const auto r = read_scans(path, o, 2);
  EXPECT_EQ(r.values, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(r.metadata.unit, "mK");
  EXPECT_NEAR(r.lon[1], 57.29577951308232, 1e-12);
  EXPECT_EQ(r.weights, (std::vector<float>{3, 4}));
  EXPECT_NE(rejection(path, test::selecting({{"W", "3"}})).find("SDFITS"), std::string::npos);
}

// B1950 is no J2000, in whichever way a file says it.
TEST(NamedScans, TheSystemOfPositionsIsRead) {
  const test::ScanFolder folder;
  const auto with = [&](const std::string& name, const std::vector<test::Card>& cards,
                        const std::string& ra = "RA") {
    const std::string path = folder.file(name);
    test::write_table(path, "SCANS",
                      {{ra, "1D", "deg", {10, 11}, {}, ""},
                       {"DEC", "1D", "deg", {1, 2}, {}, ""},
                       {"T", "3E", "K", {1, 2, 3, 4, 5, 6}, {}, ""}},
                      cards);
    return path;
  };
  EXPECT_NE(rejection(with("b.fits", {{"EQUINOX", "", 1950}})).find("1950"), std::string::npos);
  EXPECT_NE(rejection(with("c.fits", {{"RADESYS", "FK4"}})).find("FK4"), std::string::npos);
  EXPECT_NE(rejection(with("d.fits", {{"RADESYS", "GAPPT"}})).find("GAPPT"), std::string::npos);
  EXPECT_EQ(read_scans(with("e.fits", {{"RADESYS", "FK5"}})).metadata.frame, SkyFrame::fk5);
  const auto said = read_scans(with("f.fits", {{"RADESYS", "ICRS"}})).metadata;
  EXPECT_EQ(said.frame, SkyFrame::icrs);
  EXPECT_TRUE(said.frame_known);
  EXPECT_FALSE(read_scans(with("g.fits", {})).metadata.frame_known);
  EXPECT_EQ(read_scans(with("h.fits", {}, "RA2000")).metadata.frame, SkyFrame::fk5);
  const std::string path = folder.file("old.h5");
  {
    Hdf5Writer file(path);
    file.put("ra", {1, 2}, {2});
    file.put("dec", {1, 2}, {2});
    file.put("Ta", {1, 2}, {2});
    file.attribute("/", "equinox", 1950);
  }
  EXPECT_NE(rejection(path).find("1950"), std::string::npos);
}

// Flags and weights beside the values: of samples, or of all their channels.
TEST(NamedScans, FlagsAndWeightsLieBesideTheValues) {
  const test::ScanFolder folder;
  const std::string path = folder.file("beside.h5");
  {
    Hdf5Writer file(path);
    file.put("ra", {1, 2}, {2});
    file.put("dec", {1, 2}, {2});
    file.put("cube", {1, 2, 3, 4, 5, 6}, {2, 3}, H5T_IEEE_F32LE, {1, 3});
    file.put("flags", {0, 1, 0, 0, 0, 1}, {2, 3}, H5T_STD_U8LE, {2, 2});
    file.put("bad", {0, 1}, {2}, H5T_STD_I16LE);
    file.put("w", {1, 2, 3, 4, 5, 6}, {2, 3});
    file.put("odd", {1, 2, 3, 4, 5}, {5});
    file.put("freq", {1.40, 1.41, 1.42}, {3});
  }
  ScanOptions o;
  o.data = "cube";
  o.weights = "column:w";
  auto r = read_scans(path, o);
  EXPECT_EQ(r.flags, (std::vector<std::uint8_t>{0, 0, 1, 0, 0, 1}));
  ASSERT_EQ(r.metadata.choices.size(), 2U);
  EXPECT_NE(r.metadata.choices[0].find("GHz"), std::string::npos);
  EXPECT_EQ(r.metadata.frequency.first_center_hz, 1.40e9);
  const auto file = open_scans(path, o);
  EXPECT_TRUE(file->has_channel_weights());
  EXPECT_FALSE(file->has_weights());
  std::vector<float> w(2);
  file->read_channel_weights_of(1, 2, 1, 1, w.data());
  EXPECT_EQ(w, (std::vector<float>{5, 6}));
  o.flags = "bad";
  EXPECT_EQ(read_scans(path, o).flags, (std::vector<std::uint8_t>{0, 1, 0, 1, 0, 1}));
  o.flags = "none";
  EXPECT_EQ(read_scans(path, o).flags, std::vector<std::uint8_t>(6, 0));
  o.flags = "odd";
  EXPECT_NE(rejection(path, o).find("neither a flag"), std::string::npos);
  o.weights = "column:odd";
  EXPECT_NE(rejection(path, o).find("neither a number"), std::string::npos);
}

std::string word(std::uint64_t value, int bytes) {
  std::string out;
  for (int k = 0; k < bytes; ++k) out += static_cast<char>(value >> (8 * k) & 255);
  return out;
}

/// A zip by hand: (name, content) stored or deflated; `zip64` as numpy.savez writes it.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members, bool deflated,
                   bool zip64) {
  std::string zip, directory;
  for (const auto& [name, content] : members) {
    const std::string packed = deflated ? test::deflated(content, -15) : content;
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string sizes =
        zip64 ? word(0xFFFFFFFFFFFFFFFF, 8) : word(packed.size(), 4) + word(content.size(), 4);
    const std::string extra =
        zip64 ? word(1, 2) + word(16, 2) + word(content.size(), 8) + word(packed.size(), 8) : "";
    const std::string common = word(deflated ? 8 : 0, 2) + word(0, 4) + word(crc, 4) + sizes +
                               word(name.size(), 2) + word(extra.size(), 2);
    directory += word(0x02014b50, 4) + word(45, 2) + word(45, 2) + word(0, 2) + common +
                 word(0, 2) + word(0, 4) + word(0, 4) + word(zip.size(), 4) + name + extra;
    zip += word(0x04034b50, 4) + word(45, 2) + word(0, 2) + common + name + extra + packed;
  }
  return zip + directory + word(0x06054b50, 4) + word(0, 4) + word(members.size(), 2) +
         word(members.size(), 2) + word(directory.size(), 4) + word(zip.size(), 4) + word(0, 2);
}

template <class T>
std::string npy(const std::string& descr, const std::string& shape, const std::vector<T>& values,
                bool fortran = false, bool swap = false) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 10, ' ');
  std::string out = std::string("\x93NUMPY\x01\x00", 8) + word(header.size(), 2) + header;
  for (const T v : values) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &v, sizeof(T));
    if (swap) std::reverse(bytes, bytes + sizeof(T));
    out.append(bytes, sizeof(T));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> some_members() {
  // 3 samples, 2 channels: sample s, channel c = 10 s + c. In Fortran's order the sample is
  // fastest.
  return {{"ra.npy", npy<double>("<f8", "(3,)", {100, 200, 300})},
          {"dec.npy", npy<float>(">f4", "(3,)", {-1, -2, -3}, false, true)},
          {"name.npy", npy<std::int32_t>("<U1", "(2,)", {65, 66})},
          {"data.npy", npy<double>(">f8", "(3, 2)", {0, 10, 20, 1, 11, 21}, true, true)},
          {"w.npy", npy<std::int64_t>("<i8", "(3,)", {1, 2, 3})}};
}

TEST(NamedScans, NumpyStoredDeflatedAndWide) {
  const test::ScanFolder folder;
  const std::string path = folder.file("scans.npz");
  ScanOptions o;
  o.data = "data";
  o.weights = "column:w";
  for (const bool deflated : {false, true})
    for (const bool zip64 : {false, true}) {
      test::put_bytes(path, zip_of(some_members(), deflated, zip64));
      const auto r = read_scans(path, o, 1);
      ASSERT_EQ(r.metadata.n_samples, 3);
      ASSERT_EQ(r.metadata.n_channels, 2);
      EXPECT_EQ(r.values, (std::vector<float>{0, 10, 20, 1, 11, 21})) << deflated << zip64;
      EXPECT_EQ(r.lon, (std::vector<double>{100, 200, 300}));
      EXPECT_EQ(r.lat, (std::vector<double>{-1, -2, -3}));
      EXPECT_EQ(r.weights, (std::vector<float>{1, 2, 3}));
    }
  auto c_order = some_members();
  c_order[3].second = npy<float>("<f4", "(3, 2)", {0, 1, 10, 11, 20, 21});
  test::put_bytes(path, zip_of(c_order, true, false));
  EXPECT_EQ(read_scans(path, o).values, (std::vector<float>{0, 10, 20, 1, 11, 21}));
}

TEST(NamedScans, NumpyThatLies) {
  const test::ScanFolder folder;
  const std::string path = folder.file("lies.npz");
  const auto with = [&](const std::string& data, bool deflated) {
    auto members = some_members();
    members[3].second = data;
    test::put_bytes(path, zip_of(members, deflated, false));
    return rejection(path);
  };
  for (const bool deflated : {false, true}) {
    EXPECT_NE(with(npy<float>("<f4", "(3, 9000000000000)", {1}), deflated).find("asks for more"),
              std::string::npos);
    EXPECT_NE(with(npy<float>("<f4", "(3, 1)", {1, 2, 3, 4}), deflated).find("it has 4"),
              std::string::npos);
    EXPECT_NE(with("what is this?", deflated).find("no magic number"), std::string::npos);
  }
  // A checksum that is not that of the content.
  std::string zip = zip_of(some_members(), true, false);
  const auto at = zip.rfind("data.npy") - 46 + 16;
  zip[at] = static_cast<char>(zip[at] ^ 1);
  test::put_bytes(path, zip);
  EXPECT_NE(rejection(path).find("checksum"), std::string::npos) << rejection(path);
}

}  // namespace
}  // namespace ryle
