// SPDX-License-Identifier: BSD-3-Clause
// T-DD-24: SIGPROC of every bit depth, the Parkes bit order, wrong headers, short files.
#include "ryle/io/beam/sigproc.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::contents;
using test::Scratch;

FilterbankInfo some_info(int bits, std::int64_t n_channels = 24) {
  FilterbankInfo info;
  info.n_channels = n_channels;
  info.bits = bits;
  info.channel_width_hz = 0.5e6;
  for (std::int64_t c = 0; c < n_channels; ++c)
    info.channel_center_hz.push_back(400e6 + 0.5e6 * static_cast<double>(c));
  info.sample_interval_s = 69.12e-6;
  info.start_mjd_utc = 60310.25;
  info.telescope = "Northern Cross";
  info.source_name = "B0329+54";
  info.position = {0.9338, 0.9527};
  return info;
}

std::vector<float> some_data(int bits, std::int64_t n_channels, std::int64_t n,
                             std::uint64_t seed) {
  std::vector<float> data(static_cast<std::size_t>(n_channels * n));
  for (std::size_t k = 0; k < data.size(); ++k) {
    const std::uint64_t random = combine(seed, k);
    data[k] = bits == 32 ? static_cast<float>(gaussian(random) * 1e3)
                         : static_cast<float>(random % (std::uint64_t{1} << bits));
  }
  return data;
}

std::vector<float> read_all(const std::string& path, const FilterbankOptions& options = {}) {
  auto reader = open_filterbank(path, options);
  const auto& info = reader->info();
  std::vector<float> data(static_cast<std::size_t>(info.n_channels * info.n_samples), -7.5f);
  reader->read(0, info.n_samples, data.data(), info.n_samples);
  return data;
}

void put(std::string& to, const void* value, std::size_t n) {
  to.append(static_cast<const char*>(value), n);
}
void text(std::string& to, const std::string& s) {
  const auto n = static_cast<std::int32_t>(s.size());
  put(to, &n, 4);
  to += s;
}
void integer(std::string& to, const std::string& key, std::int32_t v) {
  text(to, key);
  put(to, &v, 4);
}
void real(std::string& to, const std::string& key, double v) {
  text(to, key);
  put(to, &v, 8);
}
void save(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string header(std::int32_t nchans, std::int32_t nbits, std::int32_t nifs = 1,
                   double foff = -0.5) {
  std::string h;
  text(h, "HEADER_START");
  integer(h, "nchans", nchans);
  integer(h, "nbits", nbits);
  integer(h, "nifs", nifs);
  real(h, "fch1", 420);
  real(h, "foff", foff);
  real(h, "tsamp", 1e-3);
  real(h, "tstart", 60310.5);
  return h;
}
std::string ended(std::string h) {
  text(h, "HEADER_END");
  return h;
}

std::string message_of(const std::string& path, const FilterbankOptions& options = {}) {
  try {
    open_filterbank(path, options);
  } catch (const Error& e) {
    return std::to_string(static_cast<int>(e.exit_code())) + " " + e.what();
  }
  return "no error";
}

TEST(Sigproc, EveryBitDepthComesBack) {
  Scratch scratch;
  for (const int bits : {1, 2, 4, 8, 16, 32}) {
    for (const bool descending : {true, false}) {
      const auto info = some_info(bits);
      const std::int64_t n = 131;  // no multiple of the reader's slab
      const auto data = some_data(bits, info.n_channels, n, static_cast<std::uint64_t>(bits));
      const std::string path = scratch / "x.fil";
      SigprocWriter writer(path, info, {true, descending});
      writer.append(data.data(), n, 70);
      writer.append(data.data() + 70, n, n - 70);
      writer.finish();
      EXPECT_EQ(writer.n_clamped_low() + writer.n_clamped_high(), 0);
      EXPECT_EQ(read_all(path), data) << bits;
      const auto back = open_filterbank(path)->info();
      EXPECT_EQ(back.n_samples, n);
      EXPECT_EQ(back.telescope, "Northern Cross");
      EXPECT_EQ(back.telescope_id, 40);
      EXPECT_EQ(back.source_name, "B0329+54");
      EXPECT_DOUBLE_EQ(back.start_mjd_utc, 60310.25);
      EXPECT_NEAR(back.position.ra_rad, info.position.ra_rad, 1e-11);
      EXPECT_NEAR(back.position.dec_rad, info.position.dec_rad, 1e-11);
      for (std::size_t c = 0; c < info.channel_center_hz.size(); ++c)
        EXPECT_NEAR(back.channel_center_hz[c], info.channel_center_hz[c], 1e-3);
      EXPECT_TRUE(back.warnings.empty());
    }
  }
}

TEST(Sigproc, LowestBitsFirstAndChannelsDescendOnDisk) {
  Scratch scratch;
  auto info = some_info(2, 4);
  const float spectrum[4] = {0, 1, 2, 3};  // ascending: on disk 3, 2, 1, 0
  SigprocWriter writer(scratch / "x.fil", info);
  writer.append(spectrum, 1, 1);
  writer.finish();
  const std::string bytes = contents(scratch / "x.fil");
  EXPECT_EQ(static_cast<unsigned char>(bytes.back()), 3u | 2u << 2 | 1u << 4 | 0u << 6);
}

TEST(Sigproc, WriterClampsAndCounts) {
  Scratch scratch;
  SigprocWriter writer(scratch / "x.fil", some_info(4, 2));
  const float data[6] = {-1, 15.4f, 16, 2.5f, 3.5f, std::nanf("")};
  writer.append(data, 3, 3);
  writer.finish();
  EXPECT_EQ(writer.n_clamped_low(), 2);
  EXPECT_EQ(writer.n_clamped_high(), 1);
  EXPECT_EQ(read_all(scratch / "x.fil"), (std::vector<float>{0, 15, 15, 2, 4, 0}));
}

TEST(Sigproc, AnUnfinishedWriterLeavesNothing) {
  Scratch scratch;
  { SigprocWriter writer(scratch / "x.fil", some_info(8)); }
  EXPECT_TRUE(scratch.names().empty());
}

TEST(Sigproc, SignedIsOneByte) {
  Scratch scratch;
  std::string h = header(2, 8);
  text(h, "signed");
  h += '\1';
  save(scratch / "x.fil", ended(h) + std::string("\xff\x02\x80\x7f", 4));
  EXPECT_EQ(read_all(scratch / "x.fil"), (std::vector<float>{2, 127, -1, -128}));
}

TEST(Sigproc, PolarizationsNeedAWordWhenFour) {
  Scratch scratch;
  const std::string four("\x0a\x0b\x14\x15\x1e\x1f\x28\x29", 8);
  save(scratch / "4.fil", ended(header(2, 8, 4)) + four);
  EXPECT_NE(message_of(scratch / "4.fil").find("--pol"), std::string::npos);
  EXPECT_EQ(read_all(scratch / "4.fil", {{}, "I"}), (std::vector<float>{11, 10}));
  EXPECT_EQ(read_all(scratch / "4.fil", {{}, "XXYY"}), (std::vector<float>{16, 15}));
  save(scratch / "2.fil", ended(header(2, 8, 2)) + four);
  EXPECT_EQ(read_all(scratch / "2.fil"), (std::vector<float>{16, 36, 15, 35}));
}

TEST(Sigproc, ATableOfChannels) {
  Scratch scratch;
  std::string h = header(4, 8);
  text(h, "FREQUENCY_START");
  for (const double f : {500.0, 450.0, 410.0, 400.0}) real(h, "fchannel", f);
  text(h, "FREQUENCY_END");
  save(scratch / "x.fil", ended(h) + "abcd");
  const auto info = open_filterbank(scratch / "x.fil")->info();
  EXPECT_EQ(info.channel_center_hz, (std::vector<double>{400e6, 410e6, 450e6, 500e6}));
  EXPECT_EQ(read_all(scratch / "x.fil"), (std::vector<float>{'d', 'c', 'b', 'a'}));
}

TEST(Sigproc, RejectsWithOffsetAndRemedy) {
  Scratch scratch;
  const std::string path = scratch / "x.fil";
  const auto expect = [&](const std::string& bytes, const std::string& words) {
    save(path, bytes);
    const std::string message = message_of(path);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.rfind("65 ", 0), 0u) << message;
  };
  std::string h = header(4, 8);
  const std::string here = "byte " + std::to_string(h.size()) + ": ";
  std::string unknown = h;
  integer(unknown, "npuls", 5);
  expect(ended(unknown) + "abcd", here + "unknown key \"npuls\"");
  std::string twice = h;
  integer(twice, "nbits", 8);
  expect(ended(twice) + "abcd", here + "key \"nbits\" twice");
  std::string giant = h;
  giant += std::string("\xff\xff\xff\x7f", 4);
  expect(giant, here + "length of a key is 2147483647");
  expect(h, here + "the header ends within");
  expect("RIFFsomething", "length of the first string");
  expect("", "the header ends within");
  expect(ended(header(0, 8)) + "abcd", "nchans is 0");
  expect(ended(header(4, 7)) + "abcd", "nbits is 7");
  expect(ended(header(3, 4)) + "abcd", "whole number of bytes");
  expect(ended(header(4, 8, 1, 0)) + "abcd", "steps of 0 MHz");
  expect(ended(header(4, 8)), "no data after the header");
  expect(ended(header(2000000000, 32)) + "abcd", "nchans is 2000000000");
  save(path, ended(unknown) + "abcd");
  EXPECT_EQ(message_of(path, {{"npuls:i32"}, ""}), "no error");
  EXPECT_NE(message_of(path, {{"npuls"}, ""}).find("TYPE"), std::string::npos);
  EXPECT_EQ(message_of(scratch / "none.fil").rfind("66 ", 0), 0u);
}

TEST(Sigproc, CountsSamplesItself) {
  Scratch scratch;
  std::string h = header(4, 8);
  integer(h, "nsamples", 77);
  save(scratch / "x.fil", ended(h) + "abcdefghij");
  const auto info = open_filterbank(scratch / "x.fil")->info();
  EXPECT_EQ(info.n_samples, 2);
  ASSERT_EQ(info.warnings.size(), 2u);
  EXPECT_NE(info.warnings[0].find("cut short: 2 of 4"), std::string::npos);
  EXPECT_NE(info.warnings[1].find("says 77 samples, the file holds 2"), std::string::npos);
}

// 300 mutated headers: an answer or a FormatError each, never a crash, a hang or another error.
TEST(Sigproc, MutatedHeaders) {
  Scratch scratch;
  const std::string good = ended(header(4, 8)) + "abcdefgh";
  const auto n_header = good.size() - 8;
  std::int64_t rejected = 0;
  for (std::uint64_t k = 0; k < 300; ++k) {
    std::string bytes = good;
    for (std::uint64_t m = 0; m <= combine(1, k) % 3; ++m)
      bytes[combine(2, k, m) % n_header] = static_cast<char>(combine(3, k, m));
    if (k % 5 == 0) bytes.resize(combine(4, k) % bytes.size());
    save(scratch / "x.fil", bytes);
    try {
      auto reader = open_filterbank(scratch / "x.fil");
      std::vector<float> data(
          static_cast<std::size_t>(reader->info().n_channels * reader->info().n_samples));
      reader->read(0, reader->info().n_samples, data.data(), reader->info().n_samples);
    } catch (const FormatError&) {
      ++rejected;
    } catch (const ConfigError&) {  // nifs became 4
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 150);
  EXPECT_LT(rejected, 300);
}

TEST(Sigproc, SexagesimalRoundTrip) {
  EXPECT_NEAR(sigproc_degrees_to_rad(-3000.0), -0.5 * kDegree_rad, 1e-15);  // -0d30m
  EXPECT_DOUBLE_EQ(rad_to_sigproc_degrees(-0.5 * kDegree_rad), -3000.0);
  EXPECT_NEAR(sigproc_hours_to_rad(123045.6), (12 + 30.0 / 60 + 45.6 / 3600) * 15 * kDegree_rad,
              1e-14);
  for (std::uint64_t k = 0; k < 200; ++k) {
    const double ra_rad = 2 * kPi * uniform(combine(5, k)),
                 dec_rad = kPi * (uniform(combine(6, k)) - 0.5);
    EXPECT_NEAR(sigproc_hours_to_rad(rad_to_sigproc_hours(ra_rad)), ra_rad, 1e-11);
    EXPECT_NEAR(sigproc_degrees_to_rad(rad_to_sigproc_degrees(dec_rad)), dec_rad, 1e-11);
  }
}

/// Correlation of two files, channel means removed.
double correlation(const std::vector<float>& a, const std::vector<float>& b,
                   std::int64_t n_channels) {
  const auto n = static_cast<std::int64_t>(a.size()) / n_channels;
  double ab = 0, aa = 0, bb = 0;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    double ma = 0, mb = 0;
    for (std::int64_t t = 0; t < n; ++t) {
      ma += static_cast<double>(a[c * n + t]);
      mb += static_cast<double>(b[c * n + t]);
    }
    ma /= static_cast<double>(n);
    mb /= static_cast<double>(n);
    for (std::int64_t t = 0; t < n; ++t) {
      const double x = static_cast<double>(a[c * n + t]) - ma,
                   y = static_cast<double>(b[c * n + t]) - mb;
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
  }
  return ab / std::sqrt(aa * bb);
}

TEST(Sigproc, ParkesBitOrder) {
  RYLE_REQUIRE_DATA(eight, "transients/parkes_uwl_crab/parkes_8bit_1.fil");
  RYLE_REQUIRE_DATA(one, "transients/parkes_uwl_crab/parkes_1bit.fil");
  const auto reference = read_all(eight);
  const std::string folder = eight.substr(0, eight.rfind('/') + 1);
  // Measured with the right order 0.977, 0.926, 0.784; with the other below 0.04.
  EXPECT_GE(correlation(reference, read_all(folder + "parkes_4bit.fil"), 832), 0.97);
  EXPECT_GE(correlation(reference, read_all(folder + "parkes_2bit.fil"), 832), 0.92);
  EXPECT_GE(correlation(reference, read_all(one), 832), 0.78);
}

TEST(Psrfits, TheSameSamplesAsTheFilterbank) {
  RYLE_REQUIRE_DATA(fits, "transients/askap_frb180417/28.fits");
  RYLE_REQUIRE_DATA(fil, "transients/askap_frb180417/28.fil");
  auto reader = open_filterbank(fits);
  const auto info = reader->info();
  EXPECT_EQ(info.format, "psrfits");
  EXPECT_EQ(info.n_samples, 5523);
  EXPECT_EQ(info.n_channels, 336);
  EXPECT_DOUBLE_EQ(info.channel_center_hz.back(), 1465e6);
  EXPECT_NEAR(info.channel_width_hz, 1e6, 1);
  const std::vector<float> expected = read_all(fil);
  std::vector<float> data(336 * 5120, -1.0f);
  reader->read(0, 1000, data.data(), 5120);  // across rows of 789
  reader->read(1000, 4120, data.data() + 1000, 5120);
  EXPECT_EQ(data, expected);
  const auto sigproc = open_filterbank(fil)->info();
  EXPECT_NEAR(sigproc.start_mjd_utc, info.start_mjd_utc, 1e-9);
  EXPECT_NEAR(sigproc.position.ra_rad, info.position.ra_rad, 1e-8);
}

TEST(Psrfits, FourBitsFourProducts) {
  RYLE_REQUIRE_DATA(path, "transients/parkes_uwl_crab/parkes_4bit.sf");
  auto reader = open_filterbank(path);
  const auto info = reader->info();
  EXPECT_EQ(info.n_channels, 416);
  EXPECT_EQ(info.n_samples, 4096);
  EXPECT_DOUBLE_EQ(info.channel_center_hz.front(), 708e6);
  EXPECT_DOUBLE_EQ(info.channel_center_hz.back(), 4028e6);
  std::vector<float> data(static_cast<std::size_t>(416 * 4096));
  reader->read(0, 4096, data.data(), 4096);
  // Mean of two 4-bit values minus 7.5, scaled per channel: finite, and the rms differs from 0.
  double power = 0;
  for (const float v : data) power += static_cast<double>(v) * static_cast<double>(v);
  EXPECT_TRUE(std::isfinite(power));
  EXPECT_GT(power, 0);
}

}  // namespace
}  // namespace ryle
