// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::Samples;
using test::slurp;
using test::Spectra;
using test::time_of;

TEST(RecordingDada, ReadsTheEffelsbergSample) {
  RYLE_REQUIRE_DATA(path, "baseband/sample.dada");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "dada");
  EXPECT_FALSE(info.channelized);
  EXPECT_EQ(info.n_inputs, 2);
  EXPECT_EQ(info.n_ticks, 16000);
  EXPECT_EQ(info.clock.rate_hz, (Rational{16000000, 1}));
  // OBS_OFFSET 6400000000 bytes = 1.6e9 samples = 100 s after 01:37:40.
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2013-07-02T01:39:20"));
  EXPECT_DOUBLE_EQ(info.reference_hz, 320e6);
  EXPECT_EQ(info.layout.format, SampleFormat::ci8);
  EXPECT_EQ(info.header.at("TELESCOPE"), "Effelsberg");
  EXPECT_TRUE(info.warnings.empty());
  const Samples all(*recording, 0, 16000);
  EXPECT_TRUE(all.absent.empty());
  const auto raw = slurp(path);
  for (std::size_t t = 0; t < 16000; ++t) {
    for (std::size_t p = 0; p < 2; ++p) {
      const std::size_t at = 4096 + (t * 2 + p) * 2;
      ASSERT_EQ(all.at(static_cast<std::int64_t>(p), static_cast<std::int64_t>(t)),
                cf64(static_cast<std::int8_t>(raw[at]), static_cast<std::int8_t>(raw[at + 1])));
    }
  }
  const Samples late(*recording, 15990, 20);
  EXPECT_EQ(late.absent, (std::vector<AbsentSpan>{{0, 16000, 16010}, {1, 16000, 16010}}));
  EXPECT_EQ(late.at(1, 15), cf64(0, 0));
}

TEST(RecordingDada, ReadsTheRealSampleWhoseHeaderHasNoEnd) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_meerkat.dada");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 2);
  EXPECT_EQ(info.n_ticks, 14336);
  EXPECT_EQ(info.layout.format, SampleFormat::i8);
  EXPECT_EQ(info.clock.rate_hz, (Rational{800000000, 1}));
  EXPECT_DOUBLE_EQ(info.reference_hz, 1200e6);
  // 4276224000000 bytes of 2 = 2672.64 s after 06:17:50.998315.
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2022-01-17T07:02:23.638315"));
}

TEST(RecordingDada, ReadsTheMeerkatBeamInItsHeaps) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_mkbf.dada");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_TRUE(info.channelized);
  EXPECT_EQ(info.n_inputs, 2);
  EXPECT_EQ(info.frequency.n_channels, 1024);
  EXPECT_EQ(info.n_ticks, 256);
  EXPECT_EQ(info.clock.rate_hz, (Rational{531250, 1}));
  EXPECT_DOUBLE_EQ(info.frequency.first_center_hz, 544e6);
  EXPECT_DOUBLE_EQ(info.frequency.channel_width_hz, 531250);
  // 418222440448 bytes of 4096 a time = 102105088 times = 192.197812... s.
  EXPECT_EQ(info.clock.epoch_tai_ns,
            time_of("2023-07-19T15:24:04") +
                static_cast<std::int64_t>(__int128{102105088} * 1000000000 / 531250));
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("22011707392"), std::string::npos);
  const Spectra all(*recording, 0, 256);
  EXPECT_TRUE(all.absent.empty());
  const auto raw = slurp(path);
  for (std::size_t t = 0; t < 256; t += 5) {
    for (std::size_t c = 0; c < 1024; c += 3) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t at = 4096 + ((p * 1024 + c) * 256 + t) * 2;
        ASSERT_EQ(all.at(static_cast<std::int64_t>(t), static_cast<std::int64_t>(c),
                         static_cast<std::int64_t>(p)),
                  (ci8{static_cast<std::int8_t>(raw[at]), static_cast<std::int8_t>(raw[at + 1])}));
      }
    }
  }
  RecordingOptions options;
  options.axis_order = "TFP";
  const Spectra plain(*open_recording(path, "dada", options), 0, 2);
  EXPECT_EQ(plain.at(1, 2, 1).re, static_cast<std::int8_t>(raw[4096 + ((1024 + 2) * 2 + 1) * 2]));
}

std::vector<unsigned char> dada_file(const std::string& header, std::size_t payload) {
  std::vector<unsigned char> raw(header.begin(), header.end());
  raw.resize(4096, 0);
  for (std::size_t k = 0; k < payload; ++k) raw.push_back(static_cast<unsigned char>(k * 37 + 11));
  return raw;
}

const std::string kHeader =
    "HDR_SIZE 4096\nNCHAN 4\nNPOL 2\nNDIM 2\nNBIT 8\nBW -4.0\nFREQ 1000\nTSAMP 1.0\nMJD_START "
    "60000.5\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(RecordingDada, DoesNotGuessTheOrderOfAxes) {
  const auto path = test::write_file("order.dada", dada_file(kHeader, 4 * 2 * 2 * 16));
  try {
    open_recording(path, "auto");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_NE(std::string(e.what()).find("axis_order"), std::string::npos) << e.what();
  }
  RecordingOptions options;
  for (const char* bad : {"TFF", "TF", "FTP", "PFT0", "PFTx", "PFT99999999999", ""}) {
    options.axis_order = bad;
    EXPECT_ANY_THROW(open_recording(path, "dada", options)) << bad;
  }
  options.axis_order = "FTP8";  // blocks of [channel][8 times][pol]
  const auto raw = slurp(path);
  const auto recording = open_recording(path, "dada", options);
  EXPECT_TRUE(recording->info().inverted_band);
  EXPECT_EQ(recording->info().clock.epoch_tai_ns, time_of("2023-02-25T12:00:00"));
  const Spectra all(*recording, 3, 10);
  for (std::size_t t = 3; t < 13; ++t) {
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t at = 4096 + (t / 8 * 64 + (c * 8 + t % 8) * 2 + p) * 2;
        const int im = static_cast<std::int8_t>(raw[at + 1]);
        ASSERT_EQ(all.at(static_cast<std::int64_t>(t - 3), static_cast<std::int64_t>(3 - c),
                         static_cast<std::int64_t>(p)),
                  (ci8{static_cast<std::int8_t>(raw[at]),
                       static_cast<std::int8_t>(im == -128 ? 127 : -im)}));
      }
    }
  }
}

TEST(RecordingDada, WrongFieldsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"HDR_SIZE 4096", "HDR_SIZE 99999999"},
      {"HDR_SIZE 4096", "HDR_SIZE -1"},
      {"NCHAN 4", "NCHAN 0"},
      {"NCHAN 4", "NCHAN 1048577"},
      {"NPOL 2", "NPOL two"},
      {"NDIM 2", "NDIM 3"},
      {"NBIT 8", "NBIT 2"},
      {"BW -4.0", "BW 0"},
      {"TSAMP 1.0", "TSAMP -1"},
      {"MJD_START 60000.5", "UTC_START now"},
      {"MJD_START 60000.5", "MJD_START x"},
      {"NPOL 2", "NPOL 2\nOBS_OFFSET 17"},
  };
  RecordingOptions options;
  options.axis_order = "TFP";
  for (const auto& [from, to] : bad) {
    const auto path = test::write_file("bad.dada", dada_file(with(kHeader, from, to), 512));
    const std::string key =
        to.find('\n') == std::string::npos ? to.substr(0, to.find(' ')) : "OBS_OFFSET";
    try {
      open_recording(path, "dada", options);
      ADD_FAILURE() << to;
    } catch (const FormatError& e) {
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
    }
  }
  // A product of sizes that overflows 64 bits must be refused, not wrapped.
  const auto huge = with(with(kHeader, "NCHAN 4", "NCHAN 1048576"), "NPOL 2", "NPOL 1048576");
  EXPECT_THROW(open_recording(test::write_file("huge.dada", dada_file(huge, 512)), "dada", options),
               Error);
}

TEST(RecordingDada, OtherSampleTypes) {
  for (const auto& [bits, dims, format] :
       {std::tuple{16, 1, SampleFormat::i16}, std::tuple{16, 2, SampleFormat::ci16},
        std::tuple{32, 2, SampleFormat::cf32}}) {
    auto header =
        with(with(kHeader, "NCHAN 4", "NCHAN 1"), "NBIT 8", "NBIT " + std::to_string(bits));
    header = with(with(header, "NDIM 2", "NDIM " + std::to_string(dims)), "TSAMP 1.0\n", "");
    const auto recording =
        open_recording(test::write_file("types.dada", dada_file(header, 512)), "auto");
    EXPECT_EQ(recording->info().layout.format, format);
    EXPECT_EQ(recording->info().n_ticks, 512 / (2 * dims * bits / 8));
  }
  const auto offset =
      with(with(kHeader, "NCHAN 4", "NCHAN 1\nENCODING OFFSETBINARY"), "TSAMP 1.0\n", "");
  const auto recording =
      open_recording(test::write_file("offset.dada", dada_file(offset, 512)), "auto");
  const Samples s(*recording, -1, 3);
  EXPECT_EQ(s.at(0, 0), cf64(0, 0));  // absent: the code of zero, 128
  EXPECT_EQ(s.at(0, 1), cf64(11 - 128, 48 - 128));
}

}  // namespace
}  // namespace ryle
