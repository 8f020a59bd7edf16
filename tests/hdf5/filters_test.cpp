// SPDX-License-Identifier: BSD-3-Clause
// Streams as h5py 3.12 and hdf5plugin 7.1 write them, decoded byte by byte; damaged ones rejected;
// a filter that is missing named. Live streams of both are read in
// tests/peers/test_hdf5_filters.py.
#include "ryle/hdf5/filters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/hdf5/codecs.hpp"

namespace ryle::hdf5 {
namespace {

using testing::HasSubstr;

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> out;
  for (std::size_t k = 0; k + 1 < hex.size(); k += 2)
    out.push_back(static_cast<std::byte>(std::stoi(hex.substr(k, 2), nullptr, 16)));
  return out;
}

/// Runs, repeats and noise: 400 bytes.
std::vector<std::byte> mixed() {
  std::vector<std::byte> out;
  for (int k = 0; k < 400; ++k) {
    const int value = k < 150 ? 7 : (k * k / 7 % 50 + (k % 100 < 60 ? 200 : 0)) & 255;
    out.push_back(static_cast<std::byte>(value));
  }
  std::copy(out.begin() + 100, out.begin() + 200, out.begin() + 300);
  return out;
}

const char* const kLzf_mixed =
    "010707e08b0017d6cfc8f4eee8e2ddd8d30703312d2a272422201e1c1b1a1940001f1a1b1c1e202224272a2d310307"
    "0b10151a20262c0007d6dde5edf5cbd4dde6f01fc8d2dce7f2cbd7e3efc9d6e3f0ccdae8f6d3e2f1cfdfefcddeefce"
    "e0f2d2e4f71fd8ebcde1f5d7eccfe4c8def4d8efd4ebd1e9071f061f062008220a250e29132f191903200b2814001e"
    "0a2916032311311f0e2f1e0e302010012415e12929e027c7010007";

/// k / 9 as 16-bit numbers, little-endian: 131 of them, so that three fill no group of 8.
std::vector<std::byte> steps() {
  std::vector<std::byte> out;
  for (int k = 0; k < 131; ++k) {
    out.push_back(static_cast<std::byte>(k / 9));
    out.push_back(std::byte{0});
  }
  return out;
}

const std::string kPlanes =
    "00fe03f80fe03f80ff00fe03f80fe03f0000fcff0f00c0ffff0000fcff0f00c000000000f0ffffffff00000000f0ff"
    "ff"
    "000000000000000000ffffffffffffff" +
    std::string(2 * (256 - 64), '0') + "0e000e000e00";

TEST(Lzf, StreamOfH5pyDecodesByteByByte) {
  std::vector<std::byte> out(400);
  EXPECT_EQ(decode_lzf(bytes_of(kLzf_mixed), out), 400U);
  EXPECT_EQ(out, mixed());
}

TEST(Lzf, EveryCutAndEveryShortTargetIsRejectedOrWhole) {
  const auto stream = bytes_of(kLzf_mixed);
  for (std::size_t n = 0; n < stream.size(); ++n) {
    std::vector<std::byte> out(400);
    const auto made = decode_lzf(Bytes(stream).first(n), out);
    EXPECT_TRUE(!made || *made < 400) << n;
  }
  for (std::size_t n = 0; n < 400; ++n) {
    std::vector<std::byte> out(n);  // one byte past it is the sanitizer's to see
    EXPECT_FALSE(decode_lzf(stream, out)) << n;
  }
}

// Nothing is read or written past the ends, whatever the bytes say (the sanitizers watch).
TEST(Codecs, RandomAndDamagedStreamsStayWithinBounds) {
  std::mt19937 random(7);
  const auto stream = bytes_of(kLzf_mixed);
  const auto copy = [](Bytes in, std::span<std::byte> out) -> std::optional<std::size_t> {
    if (in.size() > out.size()) return std::nullopt;
    std::copy(in.begin(), in.end(), out.begin());
    return in.size();
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> in = round % 2 == 0 ? stream : std::vector<std::byte>(random() % 64);
    if (round % 2 == 1)
      for (auto& b : in) b = static_cast<std::byte>(random() & 255);
    for (int k = 0; k < 3 && !in.empty(); ++k)
      in[random() % in.size()] = static_cast<std::byte>(random() & 255);
    std::vector<std::byte> out(random() % 512);
    decode_lzf(in, out);
    decode_lz4_chunk(in, out, copy);
    decode_bitshuffle(in, out, 1 + random() % 9, copy);
    decode_bitshuffle(in, out, BitshuffleShape{1 + random() % 9, random() % 64});
  }
}

TEST(Bitshuffle, PlanesOfBitshuffleBecomeElements) {
  const auto planes = bytes_of(kPlanes);
  ASSERT_EQ(planes.size(), 262U);
  std::vector<std::byte> out(262);
  EXPECT_EQ(decode_bitshuffle(planes, out, BitshuffleShape{2, 0}), 262U);
  EXPECT_EQ(out, steps());
}

/// A file of one data set "Data/flags" whose only chunk is `stream`, compressed by `filter`.
class OneChunk {
 public:
  OneChunk(H5Z_filter_t filter, const std::vector<unsigned>& parameters, hid_t type, hsize_t n,
           const std::vector<std::byte>& stream)
      : path_((std::filesystem::temp_directory_path() /
               ("ryle_filter_" + std::to_string(::getpid()) + "_" + std::to_string(filter) + ".h5"))
                  .string()) {
    filter_names();  // registers them: HDF5 asks for the filter when the set is made
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const hid_t file = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(file, "Data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(1, &n, nullptr);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 1, &n);
    H5Pset_filter(properties, filter, H5Z_FLAG_OPTIONAL, parameters.size(), parameters.data());
    const hid_t set = H5Dcreate2(group, "flags", type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    const hsize_t at = 0;
    EXPECT_GE(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &at, stream.size(), stream.data()), 0);
    H5Dclose(set);
    H5Pclose(properties);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
    file_ = open_file(path_);
    set_ = H5Dopen2(file_, "Data/flags", H5P_DEFAULT);
    EXPECT_GE(set_, 0);
  }
  ~OneChunk() {
    H5Dclose(set_);
    H5Fclose(file_);
    std::remove(path_.c_str());
  }
  OneChunk(const OneChunk&) = delete;
  OneChunk& operator=(const OneChunk&) = delete;

  /// The values as they are stored, or nothing when HDF5 fails.
  std::vector<std::byte> values(hid_t type, std::size_t n_bytes) const {
    std::vector<std::byte> out(n_bytes);
    if (read(set_, type, H5S_ALL, H5S_ALL, out.data()) < 0) out.clear();
    return out;
  }
  hid_t set() const { return set_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  hid_t file_ = -1, set_ = -1;
};

TEST(Filters, ChunkOfH5pyIsRead) {
  const OneChunk file(32000, {4, 261, 400}, H5T_STD_U8LE, 400, bytes_of(kLzf_mixed));
  EXPECT_NO_THROW(require_filters(file.set(), file.path()));
  EXPECT_EQ(file.values(H5T_NATIVE_UINT8, 400), mixed());
}

TEST(Filters, ChunkThatDecodesToAnotherSizeIsAnError) {
  // HDF5 would read what lies behind it.
  const OneChunk file(32000, {4, 261, 401}, H5T_STD_U8LE, 401, bytes_of(kLzf_mixed));
  EXPECT_TRUE(file.values(H5T_NATIVE_UINT8, 401).empty());
}

struct Stream {
  const char* name;
  H5Z_filter_t filter;
  std::vector<unsigned> parameters;
  const char* hex;
};

TEST(Filters, StreamsOfHdf5pluginAreReadWhereTheBuildHasTheLibrary) {
  const std::vector<Stream> streams{
      {"bitshuffle", 32008, {0, 4, 2, 0, 0}, kPlanes.c_str()},
      {"LZ4 in bitshuffle",
       32008,
       {0, 4, 2, 0, 2},
       "0000000000000106000020000000003b9300fe03f80fe03f80ff0900930000fcff0f00c0ffff0900700000000"
       "0f0ffff10000109000007000102000014000317000f0200a45000000000000e000e000e00"},
      {"Zstandard in bitshuffle",
       32008,
       {0, 4, 2, 0, 3, 3},
       "0000000000000106000020000000003c28b52ffd600000950100c800fe03f80fe03f80ff0000fcff0f00c0fff"
       "f00000000f0ffff0a0030160aa080ce849b06bb06b0000898190cc8875939020e000e000e00"},
      {"LZ4",
       32004,
       {0},
       "000000000000010600000106000000431d0001001d0102001d0202001d0302001d0402001d0502001d0602001"
       "d0702001d0802001d0902001d0a02001d0b02001d0c02001d0d0200a00e000e000e000e000e00"},
      {"Zstandard",
       32015,
       {3},
       "28b52ffd6006008d01008000000102030405060708090a0b0c0d0e0f00a010301f98199805cc0766066601f38"
       "1998159c07c60666096dc7c118005"},
      {"Blosc",
       32001,
       {2, 2, 2, 262, 5, 1, 1},
       "02012102060100000601000065000000140000003e00000014000100140101001402010014030100140401001"
       "405010014060100140701001408010014090100140a0100140b0100140c0100140d0100500e0e0e0e0e0b0000"
       "001f0001006a500000000000"}};
  for (const Stream& stream : streams) {
    const OneChunk file(stream.filter, stream.parameters, H5T_STD_U16LE, 131, bytes_of(stream.hex));
    try {
      require_filters(file.set(), file.path());
    } catch (const UnsupportedError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::to_string(stream.filter)));
      continue;  // this build lacks the library, and says so
    }
    EXPECT_EQ(file.values(H5T_NATIVE_UINT16, 262), steps()) << stream.name;
  }
}

TEST(Filters, MissingOneIsNamedWithSetFileAndWhatWouldWork) {
  const OneChunk file(32013, {}, H5T_STD_U8LE, 8, bytes_of("0011223344"));
  EXPECT_TRUE(file.values(H5T_NATIVE_UINT8, 8).empty());
  try {
    require_filters(file.set(), file.path());
    ADD_FAILURE() << "not refused";
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("32013 (ZFP)"), HasSubstr("/Data/flags"),
                               HasSubstr(file.path()), HasSubstr("h5repack"), HasSubstr("LZF")));
  }
  const OneChunk odd(32008, {0, 4, 2, 0, 9}, H5T_STD_U16LE, 8, bytes_of("0011"));
  EXPECT_THROW(require_filters(odd.set(), odd.path()), UnsupportedError);
}

}  // namespace
}  // namespace ryle::hdf5
