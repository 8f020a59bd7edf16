// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/scan_body.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/io/scan/scan_file.hpp"
#include "tests/fuzz/bodies.hpp"
#include "tests/support/deflate.hpp"
#include "tests/support/fits_text.hpp"

namespace ryle::fuzz {
namespace {

constexpr std::int64_t kMaxNumbers = 1 << 22;

// Numbers asked for are never more than the file can hold (deflate: a thousandfold), every call
// stays within what it was given, and an accepted file can be read to its end or says why not.
void read_all_of(const std::string& path, const ScanOptions& options, std::size_t n_bytes) {
  const auto file = open_scans(path, options);
  const ScanMetadata metadata = file->metadata();
  require(metadata.n_samples >= 1 && metadata.n_channels >= 1, "an empty file is refused");
  require(static_cast<std::size_t>(metadata.n_samples) <= 1100 * n_bytes,
          "more samples than bytes");
  std::vector<double> lon, lat;
  file->read_positions(lon, lat);
  require(lon.size() == static_cast<std::size_t>(metadata.n_samples) && lat.size() == lon.size(),
          "a position a sample");
  const std::int64_t n = std::min<std::int64_t>(metadata.n_channels, 7);
  if (metadata.n_samples * n > kMaxNumbers) return;
  std::vector<float> values(static_cast<std::size_t>(metadata.n_samples * n + 1), 77);
  std::vector<float> weights(static_cast<std::size_t>(metadata.n_samples + 1), 77);
  std::vector<std::uint8_t> flags(values.size(), 77);
  for (const std::int64_t first : {std::int64_t{0}, metadata.n_channels - n}) {
    file->read_channels(first, n, values.data());
    file->read_flags(first, n, flags.data());
  }
  file->read_weights(weights.data());
  require(values.back() == 77 && weights.back() == 77 && flags.back() == 77,
          "nothing behind the end");
}

using test::add_table, test::big_endian, test::card, test::primary_header;

std::string sdfits_seed() {
  std::string file = primary_header();
  const std::string row = std::string("(4,2,1,1)") + std::string(32, '\x3f') +
                          std::string(8, '\1') + "RA  " + big_endian(83.5) + big_endian(22) +
                          big_endian(1.42e9) + big_endian(40) + big_endian(2);
  add_table(file, "SINGLE DISH",
            {{"TDIM2", "9A"},
             {"DATA", "8E"},
             {"FLAGGED", "8B"},
             {"CTYPE3", "4A"},
             {"CRVAL3", "D"},
             {"CRVAL4", "D"},
             {"CRVAL1", "D"},
             {"TSYS", "D"},
             {"EXPOSURE", "D"}},
            {{"CTYPE1", "'FREQ-OBS'"},
             {"CRPIX1", "1."},
             {"CDELT1", "-1000."},
             {"CTYPE2", "'STOKES'"},
             {"CRVAL2", "-5."},
             {"CRPIX2", "1."},
             {"CDELT2", "-1."},
             {"CTYPE4", "'DEC'"},
             {"EQUINOX", "2000."}},
            row, 3);
  return file;
}

std::string fast_seed() {
  std::string file = primary_header();
  const std::string row = big_endian(10) + big_endian(20) + big_endian(1000) + big_endian(0.5) +
                          big_endian(3) + std::string(24, '\2');
  add_table(file, "T",
            {{"OBJ_RA", "D"},
             {"OBJ_DEC", "D"},
             {"FREQ", "D"},
             {"CHAN_BW", "D"},
             {"NCHAN", "D"},
             {"DATA", "12I"}},
            {{"TDIM6", "'(4,3)'"}, {"TSCAL6", "0.5"}, {"TNULL6", "514"}}, row, 2);
  return file;
}

std::string discos_seed() {
  std::string file = primary_header();
  add_table(file, "SECTION TABLE", {{"id", "D"}, {"bins", "D"}}, {}, big_endian(0) + big_endian(2),
            1);
  add_table(
      file, "RF INPUTS",
      {{"feed", "D"},
       {"ifChain", "D"},
       {"polarization", "3A"},
       {"frequency", "D"},
       {"bandWidth", "D"},
       {"section", "D"}},
      {},
      big_endian(0) + big_endian(0) + "LCP" + big_endian(6000) + big_endian(-100) + big_endian(0),
      1);
  add_table(file, "FEED TABLE",
            {{"id", "D"}, {"xOffset", "D"}, {"yOffset", "D"}, {"relativePower", "D"}}, {},
            big_endian(0) + big_endian(0.001) + big_endian(0) + big_endian(0.9), 1);
  add_table(file, "DATA TABLE",
            {{"raj2000", "D"},
             {"decj2000", "D"},
             {"el", "D"},
             {"par_angle", "D"},
             {"derot_angle", "D"},
             {"SPECTRUM", "4J"}},
            {},
            big_endian(1) + big_endian(0.5) + big_endian(0.7) + big_endian(0.1) + big_endian(0) +
                std::string(16, '\1'),
            4);
  return file;
}

std::string little_word(std::uint64_t value, int bytes) {
  std::string out;
  for (int k = 0; k < bytes; ++k) out += static_cast<char>(k < 8 ? value >> (8 * k) & 255 : 0);
  return out;
}

std::string npz_seed(bool deflated) {
  std::string zip, directory;
  int n = 0;
  for (const char* name : {"ra.npy", "dec.npy", "data.npy"}) {
    const bool data = std::strcmp(name, "data.npy") == 0;
    std::string header = std::string("{'descr': '>f4', 'fortran_order': ") +
                         (data ? "True" : "False") + ", 'shape': " + (data ? "(2, 3)" : "(2,)") +
                         ", }";
    header.resize(118, ' ');
    const std::string content = std::string("\x93NUMPY\x01\x00", 8) + little_word(118, 2) + header +
                                std::string(data ? 24 : 8, '\x3f');
    const std::string packed = deflated ? test::deflated(content, -15) : content;
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string common = little_word(deflated ? 8 : 0, 2) + little_word(0, 4) +
                               little_word(crc, 4) + little_word(packed.size(), 4) +
                               little_word(content.size(), 4) + little_word(std::strlen(name), 2) +
                               little_word(0, 2);
    directory += little_word(0x02014b50, 4) + little_word(20, 2) + little_word(20, 2) +
                 little_word(0, 2) + common + little_word(0, 10) + little_word(zip.size(), 4) +
                 name;
    zip += little_word(0x04034b50, 4) + little_word(20, 2) + little_word(0, 2) + common + name +
           packed;
    ++n;
  }
  return zip + directory + little_word(0x06054b50, 4) + little_word(0, 4) + little_word(n, 2) +
         little_word(n, 2) + little_word(directory.size(), 4) + little_word(zip.size(), 4) +
         little_word(0, 2);
}

}  // namespace

void scans(std::span<const std::byte> data) {
  ScanOptions weighted;
  weighted.weights = "tsys";
  weighted.polarization = "1";
  const bool second = data.size() % 2 == 1 && data[0] == std::byte{'S'};
  accepts([&] { read_all_of(memory_file(data), second ? weighted : ScanOptions{}, data.size()); });
}

std::optional<std::string> scan_values(std::span<const std::byte> data) {
  if (data.size() < 2 || data[0] != std::byte{'P'} || data[1] != std::byte{'K'})
    return std::nullopt;
  return values_if_accepted([&] {
    const auto file = open_scans(memory_file(data), {});
    const ScanMetadata metadata = file->metadata();
    std::vector<double> lon, lat;
    file->read_positions(lon, lat);
    if (metadata.n_samples * metadata.n_channels > kMaxNumbers) return std::string();
    std::vector<float> values(static_cast<std::size_t>(metadata.n_samples * metadata.n_channels));
    file->read_channels(0, metadata.n_channels, values.data());
    return raw_text(lon) + raw_text(lat) + raw_text(values);
  });
}

std::vector<std::vector<std::byte>> scan_seeds() {
  std::vector<std::vector<std::byte>> seeds;
  for (const std::string& text :
       {sdfits_seed(), fast_seed(), discos_seed(), npz_seed(false), npz_seed(true)}) {
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

}  // namespace ryle::fuzz
