// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "ryle/core/error.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::Samples;
using test::slurp;
using test::time_of;

ci8 nibbles(unsigned char byte) {
  int re = byte / 16, im = byte % 16;
  if (re > 7) re -= 16;
  if (im > 7) im -= 16;
  return {static_cast<std::int8_t>(re), static_cast<std::int8_t>(im)};
}

TEST(RecordingTbx, ReadsTheOneSpectrumOfTheRealFile) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "tbx");
  EXPECT_TRUE(info.channelized);
  EXPECT_EQ(info.n_inputs, 128);
  EXPECT_EQ(info.n_ticks, 1);
  EXPECT_EQ(info.frequency.n_channels, 312);
  EXPECT_DOUBLE_EQ(info.frequency.channel_width_hz, 196e6 / 8192);
  EXPECT_DOUBLE_EQ(info.frequency.first_center_hz, 2176 * (196e6 / 8192));
  EXPECT_EQ(info.clock.rate_hz, (Rational{765625, 32}));
  EXPECT_NEAR(static_cast<double>(info.clock.epoch_tai_ns - time_of("2024-06-27T17:32:26.999975")),
              0, 1000);
  EXPECT_EQ(info.counters.at("frames"), 26);
  EXPECT_EQ(info.counters.at("rejected.cut_frame"), 1);
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("296 of 1564"), std::string::npos) << info.warnings[0];

  std::vector<ci8> spectra(312 * 128 + 4, ci8{-51, -51});
  std::vector<AbsentSpan> absent;
  std::vector<std::uint8_t> missing;
  recording->read_spectra(0, 1, spectra, absent, &missing);
  EXPECT_TRUE(absent.empty());
  EXPECT_EQ(missing, std::vector<std::uint8_t>(312 * 128, 0));
  const auto raw = slurp(path);
  double power = 0;
  for (std::size_t frame = 0; frame < 26; ++frame) {
    for (std::size_t k = 0; k < 12 * 128; ++k) {
      const ci8 expected = nibbles(raw[frame * 1564 + 28 + k]);
      ASSERT_EQ(spectra[frame * 12 * 128 + k], expected) << frame << " " << k;
      power += expected.re * expected.re + expected.im * expected.im;
    }
  }
  const double rms = std::sqrt(power / (312 * 128));
  EXPECT_GT(rms, 3.0);
  EXPECT_LT(rms, 3.4);
  for (std::size_t k = 312 * 128; k < spectra.size(); ++k) EXPECT_EQ(spectra[k], (ci8{-51, -51}));
}

TEST(RecordingTbx, SpectraOutsideTheFileAreAbsent) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto recording = open_recording(path, "tbx");
  std::vector<ci8> spectra(3 * 312 * 128, ci8{-51, -51});
  std::vector<AbsentSpan> absent;
  recording->read_spectra(-1, 3, spectra, absent, nullptr);
  ASSERT_EQ(absent.size(), 256u);
  EXPECT_EQ(absent[0], (AbsentSpan{0, -1, 0}));
  EXPECT_EQ(absent[128], (AbsentSpan{0, 1, 2}));
  EXPECT_EQ(spectra[0], ci8{});
  EXPECT_EQ(spectra[2 * 312 * 128], ci8{});
}

TEST(RecordingTbf, ReadsTheNorthArmFileWithItsGapInFrequency) {
  RYLE_REQUIRE_DATA(path, "lwa/tbf-mini-test.dat");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "tbf");
  EXPECT_EQ(info.n_inputs, 128);
  EXPECT_EQ(info.n_ticks, 1);
  EXPECT_EQ(info.counters.at("frames"), 7);
  EXPECT_EQ(info.frequency.n_channels, 2212 - 640);
  EXPECT_EQ(info.clock.rate_hz, (Rational{765625, 32}));
  // The file's own second is 21:55:29.9999; PROVENANCE rounds it up.
  EXPECT_NEAR(static_cast<double>(info.clock.epoch_tai_ns - time_of("2024-04-29T21:55:30")), 0,
              1e9);
  std::vector<ci8> spectra(static_cast<std::size_t>(info.frequency.n_channels * 128),
                           ci8{-51, -51});
  std::vector<AbsentSpan> absent;
  std::vector<std::uint8_t> missing;
  recording->read_spectra(0, 1, spectra, absent, &missing);
  EXPECT_TRUE(absent.empty());
  const auto raw = slurp(path);
  const int order[7] = {640, 2176, 652, 2188, 664, 2200, 676};
  std::size_t n_missing = 0;
  for (std::size_t c = 0; c < missing.size(); c += 128) n_missing += missing[c];
  EXPECT_EQ(n_missing, static_cast<std::size_t>(info.frequency.n_channels - 84));
  for (std::size_t frame = 0; frame < 7; ++frame) {
    const auto at = static_cast<std::size_t>(order[frame] - 640) * 128;
    EXPECT_EQ(missing[at], 0);
    for (std::size_t k = 0; k < 12 * 128; ++k)
      ASSERT_EQ(spectra[at + k], nibbles(raw[frame * 1560 + 24 + k]));
  }
  EXPECT_EQ(missing[48 * 128], 1);
  EXPECT_EQ(spectra[48 * 128], ci8{});
}

TEST(RecordingTbf, ReadsTheSevilletaFileWhoseStandCountIsZero) {
  RYLE_REQUIRE_DATA(path, "lwa/tbf-test.dat");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 512);
  EXPECT_EQ(info.counters.at("frames"), 5);
  EXPECT_EQ(info.counters.at("rejected.cut_frame"), 1);
  EXPECT_EQ(info.clock.rate_hz, (Rational{25000, 1}));
  EXPECT_DOUBLE_EQ(info.frequency.first_center_hz, 58.70e6);
  EXPECT_EQ(info.frequency.n_channels, 60);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2015-11-13T00:59:22"));
}

// Junk in front, a damaged time and a damaged channel number: the rest must read as before.
TEST(RecordingTbx, SurvivesDamagedFrames) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  auto raw = slurp(path);
  raw.resize(26 * 1564);
  std::vector<unsigned char> file{'j', 'u', 'n', 'k', 0xDE, 0xC0};
  for (int spectrum = 0; spectrum < 3;
       ++spectrum) {  // 8192 ticks apart; the third one lost its last frame
    auto copy = raw;
    for (std::size_t frame = 0; frame < 26; ++frame)
      copy[frame * 1564 + 26] += static_cast<unsigned char>(0x20 * spectrum);
    if (spectrum == 2) copy.resize(25 * 1564);
    file.insert(file.end(), copy.begin(), copy.end());
  }
  std::vector<unsigned char> bad_frame(raw.begin(), raw.begin() + 1564);
  auto bad_time = bad_frame, bad_step = bad_frame, bad_channel = bad_frame;
  bad_time[20] = 0x05;  // some 50 years off
  bad_step[27] += 1;    // between two spectra
  bad_channel[14] = 0x08;
  bad_channel[15] = 0x01;  // channel 2049: seen once where others come three times
  for (const auto* f : {&bad_time, &bad_step, &bad_channel, &bad_frame})
    file.insert(file.end(), f->begin(), f->end());
  const std::string damaged = ::testing::TempDir() + "damaged.tbx";
  std::ofstream(damaged, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  const auto recording = open_recording(damaged, "tbx");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_ticks, 3);
  EXPECT_EQ(info.frequency.n_channels, 312);
  EXPECT_EQ(info.counters.at("rejected.magic"), 1);
  EXPECT_EQ(info.counters.at("bytes_skipped"), 6);
  EXPECT_EQ(info.counters.at("rejected.time"), 2);
  EXPECT_EQ(info.counters.at("rejected.channel"), 1);
  EXPECT_EQ(info.counters.at("rejected.duplicate"), 1);
  EXPECT_EQ(info.counters.at("frames"), 26 + 26 + 25) << "a refused frame is not used";
  std::vector<ci8> spectra(3 * 312 * 128, ci8{-51, -51});
  std::vector<AbsentSpan> absent;
  recording->read_spectra(0, 3, spectra, absent, nullptr);
  ASSERT_EQ(absent.size(), 128u);
  EXPECT_EQ(absent[127], (AbsentSpan{127, 2, 3}));
  for (std::size_t k = 0; k < 312 * 128; ++k) {
    const ci8 expected = nibbles(raw[k / 1536 * 1564 + 28 + k % 1536]);
    ASSERT_EQ(spectra[k], expected);
    ASSERT_EQ(spectra[312 * 128 + k], expected);
    ASSERT_EQ(spectra[2 * 312 * 128 + k], ci8{});
  }
}

// One flipped bit in the time tag of one frame of the real file.
TEST(RecordingTbx, AFlippedBitOfATimeTagIsCountedAndMakesNoSpectra) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  for (const auto& [byte, bit] : {std::pair{24, 0x08}, {24, 0x10}, {25, 0x40}, {23, 0x01}}) {
    auto raw = slurp(path);
    raw[11 * 1564 + static_cast<std::size_t>(byte)] ^= static_cast<unsigned char>(bit);
    const auto recording = open_recording(test::write_file("flipped.tbx", raw), "tbx");
    EXPECT_EQ(recording->info().n_ticks, 1) << byte << " " << bit;
    EXPECT_EQ(recording->info().counters.at("rejected.time"), 1);
    EXPECT_EQ(recording->info().counters.at("frames"), 25);
  }
}

// Four spectra of 26 frames: frame 7 of the third is cut out, the last is lost but for frame 25.
TEST(RecordingTbx, ALostFrameIsAGapInItsOwnChannels) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto file = test::tbx_spectra(path, 4, [](int spectrum, int frame) {
    return (spectrum == 2 && frame == 7) || (spectrum == 3 && frame != 25);
  });
  const auto recording = open_recording(test::write_file("gap.tbx", file), "tbx");
  std::vector<ci8> spectra(4 * 312 * 128 + 4, ci8{-51, -51});
  std::vector<AbsentSpan> absent;
  std::vector<std::uint8_t> missing;
  std::vector<ChannelGap> gaps;
  recording->read_spectra(1, 4, spectra, absent, &missing, &gaps);
  EXPECT_EQ(gaps, (std::vector<ChannelGap>{{84, 96, 2, 3}, {0, 300, 3, 4}}));
  ASSERT_EQ(absent.size(), 128u);  // spectrum 4 is beyond the file
  EXPECT_EQ(absent[5], (AbsentSpan{5, 4, 5}));
  EXPECT_EQ(missing, std::vector<std::uint8_t>(312 * 128, 0));
  const auto raw = slurp(path);
  for (std::size_t k = 0; k < 312 * 128; ++k) {
    const ci8 sent = nibbles(raw[k / 1536 * 1564 + 28 + k % 1536]);
    ASSERT_EQ(spectra[k], sent);
    ASSERT_EQ(spectra[312 * 128 + k], k / 1536 == 7 ? ci8{} : sent);
    ASSERT_EQ(spectra[2 * 312 * 128 + k], k / 1536 == 25 ? sent : ci8{});
    ASSERT_EQ(spectra[3 * 312 * 128 + k], ci8{});
  }
}

TEST(RecordingTbn, ReadsTheRealFile) {
  RYLE_REQUIRE_DATA(path, "lwa/tbn-test.dat");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "tbn");
  EXPECT_EQ(info.counters.at("frames"), 29);
  EXPECT_EQ(info.counters.at("rejected.cut_frame"), 1);
  // Ids 1..20 with one tag and 1..9 with the next, 1003520 ticks = 512 x 1960 later: 100 kHz.
  EXPECT_EQ(info.n_inputs, 20);
  EXPECT_EQ(info.n_ticks, 1024);
  EXPECT_TRUE(info.rate_known);
  EXPECT_EQ(info.clock.rate_hz, (Rational{100000, 1}));
  EXPECT_NEAR(info.reference_hz, 27752.7, 1);
  EXPECT_NEAR(static_cast<double>(info.clock.epoch_tai_ns - time_of("1970-01-08T00:55:46")), 0,
              1e9);
  ASSERT_EQ(info.warnings.size(), 2u);  // cut frame, implausible time
  const test::Samples all(*recording, 0, 1024);
  std::vector<AbsentSpan> expected;
  for (std::int64_t p = 9; p < 20; ++p) expected.push_back({p, 512, 1024});
  EXPECT_EQ(all.absent, expected);
  const auto raw = slurp(path);
  for (std::size_t frame = 0; frame < 29; ++frame) {
    for (std::size_t t = 0; t < 512; ++t) {
      const std::size_t at = frame * 1048 + 24 + 2 * t;
      ASSERT_EQ(all.at(static_cast<std::int64_t>(frame % 20),
                       static_cast<std::int64_t>(frame / 20 * 512 + t)),
                cf64(static_cast<std::int8_t>(raw[at]), static_cast<std::int8_t>(raw[at + 1])));
    }
  }
}

// 12-bit samples of both polarizations of stands 1 and 2, three bytes hold X then Y.
TEST(RecordingTbw, ReadsTheRealFile) {
  RYLE_REQUIRE_DATA(path, "lwa/tbw-test.dat");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "tbw");
  EXPECT_EQ(info.layout.format, SampleFormat::i16);
  EXPECT_EQ(info.counters.at("frames"), 8);
  EXPECT_EQ(info.clock.rate_hz, (Rational{196000000, 1}));
  EXPECT_TRUE(info.from_zero_hz);
  EXPECT_NEAR(static_cast<double>(info.clock.epoch_tai_ns - time_of("2010-10-07T02:09:48")), 0,
              1e9);
  const auto raw = slurp(path);
  const auto tag_of = [&](std::size_t frame) {
    std::uint64_t tag = 0;
    for (std::size_t k = 16; k < 24; ++k) tag = tag << 8 | raw[frame * 1224 + k];
    return static_cast<std::int64_t>(tag);
  };
  std::int64_t first = tag_of(0), last = tag_of(0);
  for (std::size_t f = 1; f < 8; ++f) {
    first = std::min(first, tag_of(f));
    last = std::max(last, tag_of(f));
  }
  EXPECT_EQ(info.n_ticks, last - first + 400);
  const auto value = [](int code) { return static_cast<double>((code ^ 2048) - 2048); };
  for (std::size_t f = 0; f < 8; ++f) {
    const Samples all(*recording, tag_of(f) - first, 400);
    const std::int64_t input = 2 * ((raw[f * 1224 + 12] << 8 | raw[f * 1224 + 13]) % 0x4000 - 1);
    for (std::size_t t = 0; t < 400; ++t) {
      const unsigned char* p = raw.data() + f * 1224 + 24 + 3 * t;
      ASSERT_EQ(all.at(input, static_cast<std::int64_t>(t)).real(), value(p[0] << 4 | p[1] >> 4));
      ASSERT_EQ(all.at(input + 1, static_cast<std::int64_t>(t)).real(),
                value((p[1] & 15) << 8 | p[2]));
    }
  }
}

// 4-bit TBW frames have 1200 samples; no real file of them is there.
TEST(RecordingTbw, ReadsFourBits) {
  std::vector<unsigned char> file;
  for (int frame = 0; frame < 2; ++frame) {
    std::vector<unsigned char> f(1224);
    const unsigned char head[] = {0xDE, 0xC0, 0xDE, 0x5C, 0, 0, 0, 1, 0, 0, 0, 0, 0xC0, 1};
    std::copy(std::begin(head), std::end(head), f.begin());
    std::uint64_t tag = 1'600'000'000ULL * 196'000'000 + 1200ULL * static_cast<unsigned>(frame);
    for (std::size_t k = 24; k-- > 16; tag >>= 8) f[k] = static_cast<unsigned char>(tag);
    for (std::size_t t = 0; t < 1200; ++t)
      f[24 + t] = static_cast<unsigned char>(t * 31 + static_cast<std::size_t>(frame));
    file.insert(file.end(), f.begin(), f.end());
  }
  const auto recording = open_recording(test::write_file("four.tbw", file), "auto");
  EXPECT_EQ(recording->info().n_ticks, 2400);
  EXPECT_EQ(recording->info().n_inputs, 2);
  const Samples all(*recording, 0, 2400);
  EXPECT_TRUE(all.absent.empty());
  for (std::int64_t t = 0; t < 2400; ++t) {
    const ci8 both = nibbles(static_cast<unsigned char>(t % 1200 * 31 + t / 1200));
    ASSERT_EQ(all.at(0, t).real(), both.re);
    ASSERT_EQ(all.at(1, t).real(), both.im);
  }
}

TEST(RecordingDrx, ReadsTheRealFile) {
  RYLE_REQUIRE_DATA(path, "lwa/drx-test.dat");
  RecordingOptions options;
  options.reference_hz = 40e6;  // the tuning words of this file are 0
  const auto recording = open_recording(path, "auto", options);
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "drx");
  EXPECT_EQ(info.n_inputs, 2);
  EXPECT_EQ(info.input_names,
            (std::vector<std::string>{"beam 4 polarization 0", "beam 4 polarization 1"}));
  EXPECT_EQ(info.clock.rate_hz, (Rational{19600000, 1}));
  EXPECT_EQ(info.reference_hz, 40e6);
  // The file begins and ends between the two polarizations of a time.
  EXPECT_EQ(info.n_ticks, 9 * 4096);
  EXPECT_NEAR(static_cast<double>(info.clock.epoch_tai_ns - time_of("2011-08-11T05:15:04.566")), 0,
              1e6);
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("1 is read"), std::string::npos) << info.warnings[0];
  const Samples all(*recording, 0, info.n_ticks);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{0, 0, 4096}, {1, 8 * 4096, 9 * 4096}}));
  const auto raw = slurp(path);
  std::array<std::int64_t, 2> seen{1, 0};
  for (std::size_t frame = 0; frame < 32; ++frame) {
    const unsigned id = raw[frame * 4128 + 4];
    if ((id >> 3 & 7) != 1) continue;
    const std::size_t pol = id >> 7;
    for (std::size_t t = 0; t < 4096; ++t) {
      const ci8 sent = nibbles(raw[frame * 4128 + 32 + t]);
      ASSERT_EQ(
          all.at(static_cast<std::int64_t>(pol), seen[pol] * 4096 + static_cast<std::int64_t>(t)),
          cf64(sent.re, sent.im));
    }
    ++seen[pol];
  }
  EXPECT_EQ(seen, (std::array<std::int64_t, 2>{9, 8}));
}

// Of two tunings the one at the frequency that is asked for.
TEST(RecordingDrx, ATuningIsChosenByItsFrequency) {
  RYLE_REQUIRE_DATA(path, "lwa/drx-test.dat");
  auto raw = slurp(path);
  for (std::size_t frame = 0; frame < 32; ++frame) {
    const bool second = (raw[frame * 4128 + 4] >> 3 & 7) == 2;
    raw[frame * 4128 + 24] = second ? 0x60 : 0x30;  // 73.5 MHz, 36.75 MHz
  }
  const auto tuned = test::write_file("tuned.drx", raw);
  EXPECT_DOUBLE_EQ(open_recording(tuned, "auto")->info().reference_hz, 36.75e6);
  RecordingOptions options;
  options.reference_hz = 70e6;
  const auto recording = open_recording(tuned, "auto", options);
  EXPECT_DOUBLE_EQ(recording->info().reference_hz, 73.5e6);
  EXPECT_TRUE(recording->info().warnings.empty());
  const Samples all(*recording, 0, 1);
  EXPECT_TRUE(all.absent.empty());
  for (std::size_t frame = 0; frame < 32; ++frame) {
    if ((raw[frame * 4128 + 4] >> 3) != 2) continue;  // tuning 2, polarization 0
    EXPECT_EQ(all.at(0, 0),
              cf64(nibbles(raw[frame * 4128 + 32]).re, nibbles(raw[frame * 4128 + 32]).im));
    break;
  }
}

TEST(RecordingDrx, ACenterInNoTuningIsRejected) {
  RYLE_REQUIRE_DATA(path, "lwa/drx-test.dat");
  auto raw = slurp(path);
  for (std::size_t frame = 0; frame < 32; ++frame)
    raw[frame * 4128 + 24] = (raw[frame * 4128 + 4] >> 3 & 7) == 2 ? 0x60 : 0x30;
  RecordingOptions options;
  options.reference_hz = 55e6;
  try {
    open_recording(test::write_file("neither.drx", raw), "auto", options);
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("1 at 36.75"), std::string::npos) << e.what();
  }
}

TEST(RecordingDrx, FramesOffTheGridAreSaid) {
  RYLE_REQUIRE_DATA(path, "lwa/drx-test.dat");
  auto raw = slurp(path);
  std::size_t frame = 16;
  while ((raw[frame * 4128 + 4] >> 3 & 7) != 1) ++frame;  // the tuning that is read
  raw[frame * 4128 + 23] ^= 1;                            // the time tag, by one tick
  const auto recording = open_recording(test::write_file("off_grid.drx", raw), "auto");
  EXPECT_EQ(recording->info().counters.at("rejected.time"), 1);
  std::string text;
  for (const auto& warning : recording->info().warnings) text += warning + "\n";
  EXPECT_NE(text.find("1 frame left out"), std::string::npos) << text;
}

TEST(RecordingLwa, OtherKindsAreRejectedByName) {
  RYLE_REQUIRE_DATA(path, "lwa/cor-test.dat");
  try {
    open_recording(path, "auto");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_NE(std::string(e.what()).find("visibilities"), std::string::npos) << e.what();
  }
  EXPECT_THROW(open_recording(path, "tbx"), FormatError);
  RYLE_REQUIRE_DATA(drx, "lwa/drx-test.dat");
  for (const char* format : {"tbx", "tbn", "tbw"})
    EXPECT_THROW(open_recording(drx, format), FormatError);
  EXPECT_THROW(open_recording("/nonexistent/file", "auto"), IoError);
  EXPECT_THROW(open_recording("/nonexistent/file", "mp3"), UnsupportedError);
}

}  // namespace
}  // namespace ryle
