// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/scan_body.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/product/scan_file.hpp"

namespace ryle::fuzz {
namespace {

constexpr std::int64_t kMost_numbers = 1 << 22;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken invariant: %s\n", what);
  std::abort();
}

// Numbers asked for are never more than the file can hold (deflate: a thousandfold), every call
// stays within what it was given, and an accepted file can be read to its end or says why not.
void read_all_of(const std::string& path, const ScanOptions& options, std::size_t n_bytes) {
  const auto file = open_scans(path, options);
  const ScanFacts facts = file->facts();
  require(facts.n_samples >= 1 && facts.n_channels >= 1, "an empty file is refused");
  require(static_cast<std::size_t>(facts.n_samples) <= 1100 * n_bytes, "more samples than bytes");
  std::vector<double> lon, lat;
  file->read_positions(lon, lat);
  require(lon.size() == static_cast<std::size_t>(facts.n_samples) && lat.size() == lon.size(),
          "a position a sample");
  const std::int64_t n = std::min<std::int64_t>(facts.n_channels, 7);
  if (facts.n_samples * n > kMost_numbers) return;
  std::vector<float> values(static_cast<std::size_t>(facts.n_samples * n + 1), 77);
  std::vector<float> weights(static_cast<std::size_t>(facts.n_samples + 1), 77);
  std::vector<std::uint8_t> flags(values.size(), 77);
  for (const std::int64_t first : {std::int64_t{0}, facts.n_channels - n}) {
    file->read_channels(first, n, values.data());
    file->read_flags(first, n, flags.data());
  }
  file->read_weights(weights.data());
  require(values.back() == 77 && weights.back() == 77 && flags.back() == 77,
          "nothing behind the end");
}

std::string card(const std::string& key, const std::string& value) {
  std::string text = key;
  text.resize(8, ' ');
  if (!value.empty()) text += "= " + value;
  text.resize(80, ' ');
  return text;
}

void pad(std::string& text, char with) { text.resize((text.size() + 2879) / 2880 * 2880, with); }

struct SeedColumn {
  std::string name, form;
};

/// A table whose rows repeat `row`.
void add_table(std::string& file, const std::string& name, const std::vector<SeedColumn>& columns,
               const std::vector<std::pair<std::string, std::string>>& keys, const std::string& row,
               int n_rows) {
  file += card("XTENSION", "'BINTABLE'") + card("BITPIX", "8") + card("NAXIS", "2") +
          card("NAXIS1", std::to_string(row.size())) + card("NAXIS2", std::to_string(n_rows)) +
          card("PCOUNT", "0") + card("GCOUNT", "1") +
          card("TFIELDS", std::to_string(columns.size()));
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const std::string n = std::to_string(k + 1);
    file += card("TTYPE" + n, "'" + columns[k].name + "'") +
            card("TFORM" + n, "'" + columns[k].form + "'");
  }
  file += card("EXTNAME", "'" + name + "'");
  for (const auto& [key, value] : keys) file += card(key, value);
  file += card("END", "");
  pad(file, ' ');
  for (int r = 0; r < n_rows; ++r) file += row;
  pad(file, '\0');
}

std::string primary() {
  std::string file =
      card("SIMPLE", "T") + card("BITPIX", "8") + card("NAXIS", "0") + card("END", "");
  pad(file, ' ');
  return file;
}

std::string big(double value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, 8);
  std::string text;
  for (int k = 56; k >= 0; k -= 8) text += static_cast<char>(word >> k & 255);
  return text;
}

std::string sdfits_seed() {
  std::string file = primary();
  const std::string row = std::string("(4,2,1,1)") + std::string(32, '\x3f') +
                          std::string(8, '\1') + "RA  " + big(83.5) + big(22) + big(1.42e9) +
                          big(40) + big(2);
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
  std::string file = primary();
  const std::string row = big(10) + big(20) + big(1000) + big(0.5) + big(3) + std::string(24, '\2');
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
  std::string file = primary();
  add_table(file, "SECTION TABLE", {{"id", "D"}, {"bins", "D"}}, {}, big(0) + big(2), 1);
  add_table(file, "RF INPUTS",
            {{"feed", "D"},
             {"ifChain", "D"},
             {"polarization", "3A"},
             {"frequency", "D"},
             {"bandWidth", "D"},
             {"section", "D"}},
            {}, big(0) + big(0) + "LCP" + big(6000) + big(-100) + big(0), 1);
  add_table(file, "FEED TABLE",
            {{"id", "D"}, {"xOffset", "D"}, {"yOffset", "D"}, {"relativePower", "D"}}, {},
            big(0) + big(0.001) + big(0) + big(0.9), 1);
  add_table(file, "DATA TABLE",
            {{"raj2000", "D"},
             {"decj2000", "D"},
             {"el", "D"},
             {"par_angle", "D"},
             {"derot_angle", "D"},
             {"SPECTRUM", "4J"}},
            {}, big(1) + big(0.5) + big(0.7) + big(0.1) + big(0) + std::string(16, '\1'), 4);
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
    std::string packed = content;
    if (deflated) {
      z_stream z{};
      deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
      packed.resize(deflateBound(&z, static_cast<uLong>(content.size())));
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      z.avail_in = static_cast<uInt>(content.size());
      z.next_out = reinterpret_cast<Bytef*>(packed.data());
      z.avail_out = static_cast<uInt>(packed.size());
      deflate(&z, Z_FINISH);
      packed.resize(z.total_out);
      deflateEnd(&z);
    }
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

// HDF5 is left out: its parser is a library's, and is not ours to fuzz.
bool is_scans(std::span<const std::byte> data) {
  static const int descriptor = ::memfd_create("scans", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  require(descriptor >= 0 && ::ftruncate(descriptor, 0) == 0, "a file in memory");
  require(::pwrite(descriptor, data.data(), data.size(), 0) == static_cast<ssize_t>(data.size()),
          "a file in memory");
  if (data.size() >= 4 && std::memcmp(data.data(), "\x89HDF", 4) == 0) return false;
  ScanOptions weighted;
  weighted.weights = "tsys";
  weighted.polarization = "1";
  const bool second = data.size() % 2 == 1 && data[0] == std::byte{'S'};
  try {
    read_all_of(path, second ? weighted : ScanOptions{}, data.size());
  } catch (const Error&) {
    return false;
  }
  return true;
}

void scans(std::span<const std::byte> data) { is_scans(data); }

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
