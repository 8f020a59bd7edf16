// SPDX-License-Identifier: BSD-3-Clause
// Small files of scans, written here and now, and all that a reader gives of one.
#pragma once
#include <fitsio.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/io/scan/scan_file.hpp"

namespace ryle::test {

class ScanFolder {
 public:
  ScanFolder()
      : folder_(std::filesystem::temp_directory_path() /
                ("ryle_scans_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ScanFolder() { std::filesystem::remove_all(folder_); }
  ScanFolder(const ScanFolder&) = delete;
  ScanFolder& operator=(const ScanFolder&) = delete;
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

struct ReadScans {
  ScanMetadata metadata;
  std::vector<double> lon, lat;
  std::vector<float> values, weights;  // [channel][sample]
  std::vector<std::uint8_t> flags;
  float at(std::int64_t channel, std::int64_t sample) const {
    return values[static_cast<std::size_t>(channel * metadata.n_samples + sample)];
  }
  double sum(std::int64_t channel) const {
    double s = 0;
    for (std::int64_t k = 0; k < metadata.n_samples; ++k) s += at(channel, k);
    return s;
  }
  bool warns(const std::string& of) const {
    for (const auto& w : metadata.warnings)
      if (w.find(of) != std::string::npos) return true;
    return false;
  }
};

/// Some of the samples alone are what they are among all.
inline void expect_parts_of(ScanFile& file, const ReadScans& all) {
  const std::int64_t n_all = all.metadata.n_samples, first = n_all / 3, n = n_all / 2;
  const std::int64_t first_channel = all.metadata.n_channels / 4,
                     n_channels = all.metadata.n_channels - first_channel;
  std::vector<double> lon(static_cast<std::size_t>(n), -1), lat(lon);
  std::vector<float> weights(lon.size(), -1),
      values(lon.size() * static_cast<std::size_t>(n_channels), -1);
  std::vector<std::uint8_t> flags(values.size(), 77);
  file.read_positions_of(first, n, lon.data(), lat.data());
  file.read_weights_of(first, n, weights.data());
  file.read_channels_of(first_channel, n_channels, first, n, values.data());
  file.read_flags_of(first_channel, n_channels, first, n, flags.data());
  const auto same = [](const auto* a, const auto* b, std::int64_t count) {
    return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof *a) == 0;
  };
  EXPECT_TRUE(same(lon.data(), all.lon.data() + first, n)) << all.metadata.path;
  EXPECT_TRUE(same(lat.data(), all.lat.data() + first, n)) << all.metadata.path;
  EXPECT_TRUE(same(weights.data(), all.weights.data() + first, n)) << all.metadata.path;
  bool values_same = true, flags_same = true;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const std::int64_t from = (first_channel + c) * n_all + first;
    values_same = values_same && same(values.data() + c * n, all.values.data() + from, n);
    flags_same = flags_same && same(flags.data() + c * n, all.flags.data() + from, n);
  }
  EXPECT_TRUE(values_same) << all.metadata.path;
  EXPECT_TRUE(flags_same) << all.metadata.path;
}

/// Everything, in blocks of `block` channels (0: at once), into memory full of rubbish.
inline ReadScans read_scans(const std::string& path, const ScanOptions& options = {},
                            std::int64_t block = 0) {
  const auto file = open_scans(path, options);
  ReadScans r;
  const std::int64_t n = file->metadata().n_channels, s = file->metadata().n_samples;
  if (block == 0) block = n;
  file->read_positions(r.lon, r.lat);
  r.values.assign(static_cast<std::size_t>(n * s), -12345.0f);
  r.flags.assign(static_cast<std::size_t>(n * s), 77);
  r.weights.assign(static_cast<std::size_t>(s), -12345.0f);
  for (std::int64_t c = 0; c < n; c += block) {
    file->read_channels(c, std::min(block, n - c), r.values.data() + c * s);
    file->read_flags(c, std::min(block, n - c), r.flags.data() + c * s);
  }
  file->read_weights(r.weights.data());
  r.metadata = file->metadata();
  expect_parts_of(*file, r);
  return r;
}

/// What the reader says of a file it rejects; empty when it does not.
inline std::string rejection(const std::string& path, const ScanOptions& options = {}) {
  try {
    read_scans(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline ScanOptions selecting(std::vector<std::pair<std::string, std::string>> select) {
  ScanOptions o;
  o.select = std::move(select);
  return o;
}

struct Column {
  std::string name, form, unit;
  std::vector<double> numbers;     // all rows, one behind the other
  std::vector<std::string> texts;  // instead of numbers
  std::string dimensions;          // TDIM
};
struct Card {
  std::string name, text;
  double number = 0;
};

/// Appends a binary table; makes the file when it is not there.
inline void write_table(const std::string& path, const std::string& name,
                        const std::vector<Column>& columns, const std::vector<Card>& cards = {}) {
  fitsfile* file = nullptr;
  int status = 0;
  if (std::filesystem::exists(path)) {
    fits_open_diskfile(&file, path.c_str(), READWRITE, &status);
    int n = 0;
    fits_get_num_hdus(file, &n, &status);
    fits_movabs_hdu(file, n, nullptr, &status);
  } else {
    fits_create_diskfile(&file, path.c_str(), &status);
    fits_create_img(file, 8, 0, nullptr, &status);
    fits_update_key(file, TSTRING, "TELESCOP", const_cast<char*>("TEST"), nullptr, &status);
  }
  std::vector<char*> names, forms, units;
  for (const auto& c : columns) {
    names.push_back(const_cast<char*>(c.name.c_str()));
    forms.push_back(const_cast<char*>(c.form.c_str()));
    units.push_back(const_cast<char*>(c.unit.c_str()));
  }
  fits_create_tbl(file, BINARY_TBL, 0, static_cast<int>(columns.size()), names.data(), forms.data(),
                  units.data(), name.c_str(), &status);
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const Column& c = columns[k];
    const int number = static_cast<int>(k) + 1;
    if (!c.dimensions.empty())
      fits_update_key(file, TSTRING, ("TDIM" + std::to_string(number)).c_str(),
                      const_cast<char*>(c.dimensions.c_str()), nullptr, &status);
    std::vector<char*> texts;
    for (const auto& t : c.texts) texts.push_back(const_cast<char*>(t.c_str()));
    if (!texts.empty())
      fits_write_col(file, TSTRING, number, 1, 1, static_cast<LONGLONG>(texts.size()), texts.data(),
                     &status);
    else
      fits_write_col(file, TDOUBLE, number, 1, 1, static_cast<LONGLONG>(c.numbers.size()),
                     const_cast<double*>(c.numbers.data()), &status);
  }
  for (const auto& card : cards) {
    if (card.text.empty())
      fits_update_key_dbl(file, card.name.c_str(), card.number, 15, nullptr, &status);
    else
      fits_update_key_str(file, card.name.c_str(), card.text.c_str(), nullptr, &status);
  }
  fits_close_file(file, &status);
  ASSERT_EQ(status, 0) << path;
}

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace ryle::test
