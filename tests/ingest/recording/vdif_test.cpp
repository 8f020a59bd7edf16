// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>

#include "ryle/core/error.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::Samples;
using test::slurp;
using test::Spectra;
using test::time_of;

// 2-bit code k of a payload, first sample in the lowest bits, as ingest.md 2.7 has it.
int two_bits(const std::vector<unsigned char>& raw, std::size_t payload, std::size_t k) {
  const std::array<int, 4> level{-10, -3, 3, 10};
  return level[(raw[payload + k / 4] >> (2 * (k % 4))) & 3u];
}

TEST(RecordingVdif, ReadsEightThreadsOfTheVlbaSample) {
  RYLE_REQUIRE_DATA(path, "baseband/sample.vdif");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "vdif");
  EXPECT_FALSE(info.channelized);
  EXPECT_EQ(info.n_inputs, 8);
  EXPECT_EQ(info.n_ticks, 40000);
  EXPECT_TRUE(info.rate_known);
  EXPECT_EQ(info.clock.rate_hz, (Rational{32000000, 1}));
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2014-06-16T05:56:07"));
  EXPECT_EQ(info.counters.at("frames"), 16);
  EXPECT_EQ(info.header.at("threads"), "0 1 2 3 4 5 6 7");
  EXPECT_EQ(info.header.at("edv"), "3");

  const Samples all(*recording, 0, 40000);
  EXPECT_TRUE(all.absent.empty());
  // Published with this sample: the first twelve values of the first frame (thread 1) in units of
  // the lower level.
  const std::array<int, 12> published{1, 1, 1, -3, 1, 1, -3, -3, -3, 3, 3, -1};
  for (int t = 0; t < 12; ++t) {
    const double level = published[static_cast<std::size_t>(t)];
    EXPECT_EQ(all.at(1, t).real(), std::abs(level) > 1 ? level / 3 * 10 : level * 3) << t;
  }
  const auto raw = slurp(path);
  const std::array<std::int64_t, 8> order{1, 3, 5, 7, 0, 2, 4, 6};
  for (std::size_t frame = 0; frame < 16; ++frame) {
    for (std::size_t t = 0; t < 20000; t += 7) {
      const auto tick = static_cast<std::int64_t>(frame / 8 * 20000 + t);
      ASSERT_EQ(all.at(order[frame % 8], tick).real(), two_bits(raw, frame * 5032 + 32, t));
    }
  }
  const Samples piece(*recording, 19990, 20);
  for (std::int64_t t = 0; t < 20; ++t) EXPECT_EQ(piece.at(5, t), all.at(5, 19990 + t));
}

TEST(RecordingVdif, ThreadsWithAnotherTimeAreLeftOutAndSaid) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_vlbi.vdif");
  const auto recording = open_recording(path, "vdif");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 8);
  EXPECT_EQ(info.n_ticks, 40000);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2014-06-16T05:56:07"));
  EXPECT_EQ(info.counters.at("rejected.time"), 8);
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("0 2 4 6"), std::string::npos) << info.warnings[0];
  const Samples all(*recording, 0, 40000);
  ASSERT_EQ(all.absent.size(), 4u);
  for (std::int64_t k = 0; k < 4; ++k)
    EXPECT_EQ(all.absent[static_cast<std::size_t>(k)], (AbsentSpan{2 * k, 0, 40000}));
  EXPECT_EQ(all.at(0, 100).real(), 0);
  EXPECT_EQ(std::abs(all.at(1, 0).real()), 3);
}

TEST(RecordingVdif, ReadsTwoComplexChannelsOfTheMwaSample) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_mwa.vdif");
  EXPECT_FALSE(open_recording(path, "auto")->info().rate_known);
  RecordingOptions options;
  options.sample_rate_hz = 1.28e6;
  options.reference_hz = 150e6;
  const auto recording = open_recording(path, "auto", options);
  const auto& info = recording->info();
  EXPECT_TRUE(info.rate_known);
  EXPECT_TRUE(info.channelized);
  EXPECT_EQ(info.n_inputs, 1);
  EXPECT_EQ(info.n_ticks, 1280);
  EXPECT_EQ(info.frequency.n_channels, 2);
  EXPECT_EQ(info.input_names.at(0), "station mw thread 0");
  EXPECT_DOUBLE_EQ(info.frequency.center_hz(1), 151.28e6);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2015-10-03T20:49:45"));
  const Spectra all(*recording, 0, 1280);
  EXPECT_TRUE(all.absent.empty());
  const auto raw = slurp(path);
  for (std::size_t t = 0; t < 1280; ++t) {
    for (std::size_t c = 0; c < 2; ++c) {
      const std::size_t at = t / 128 * 544 + 32 + (t % 128 * 2 + c) * 2;
      const ci8 expected{static_cast<std::int8_t>(raw[at] - 128),
                         static_cast<std::int8_t>(raw[at + 1] - 128)};
      ASSERT_EQ(all.at(static_cast<std::int64_t>(t), static_cast<std::int64_t>(c), 0), expected);
    }
  }
}

TEST(RecordingVdif, ReadsOneSpectrumAFrameOfTheChimeSample) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_arochime.vdif");
  RecordingOptions options;
  options.sample_rate_hz = 390625;
  const auto recording = open_recording(path, "auto", options);
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 2);
  EXPECT_EQ(info.n_ticks, 5);
  // Second 514629935 of epoch 0 would be 08:45:35 if VDIF seconds were POSIX seconds; they include
  // the four leap seconds from 2000 to 2016. Frame 308109 at 2.56 us is 0.788759 s.
  EXPECT_EQ(info.frequency.n_channels, 1024);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2016-04-22T08:45:31.78875904"));
  const Spectra all(*recording, 0, 5);
  const auto raw = slurp(path);
  for (std::size_t frame = 0; frame < 10; ++frame) {
    for (std::size_t c = 0; c < 1024; ++c) {
      const int byte = raw[frame * 1056 + 32 + c];
      const ci8 expected{static_cast<std::int8_t>(byte % 16 - 8),
                         static_cast<std::int8_t>(byte / 16 - 8)};
      ASSERT_EQ(
          all.at(static_cast<std::int64_t>(frame / 2), static_cast<std::int64_t>(c), frame % 2),
          expected);
    }
  }
}

TEST(RecordingVdif, ReadsOneBitAndRealChannelsAsInputs) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_bps1.vdif");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 16);
  EXPECT_EQ(info.n_ticks, 8000);
  EXPECT_FALSE(info.rate_known);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2018-09-24T13:11:21"));
  const Samples all(*recording, 0, 8000);
  const auto raw = slurp(path);
  for (std::size_t t = 0; t < 8000; ++t) {
    for (std::size_t c = 0; c < 16; ++c) {
      const std::size_t bit = t % 4000 * 16 + c;
      const int value = (raw[t / 4000 * 8032 + 32 + bit / 8] >> (bit % 8)) & 1 ? 1 : -1;
      ASSERT_EQ(all.at(static_cast<std::int64_t>(c), static_cast<std::int64_t>(t)).real(), value);
    }
  }
}

TEST(RecordingVdif, ReadsTheLwaFile) {
  RYLE_REQUIRE_DATA(path, "lwa/vdif-test.dat");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 4);
  EXPECT_EQ(info.n_ticks, 81920);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2015-04-16T09:41:02"));
  EXPECT_EQ(info.header.at("station"), std::to_string(0x4b54));
  const Samples piece(*recording, 8190, 4);
  const auto raw = slurp(path);
  for (std::size_t t = 8190; t < 8194; ++t) {
    for (std::size_t c = 0; c < 4; ++c) {
      EXPECT_EQ(piece.at(static_cast<std::int64_t>(c), static_cast<std::int64_t>(t - 8190)).real(),
                two_bits(raw, t / 8192 * 8224 + 32, t % 8192 * 4 + c));
    }
  }
}

TEST(RecordingVdif, RejectsTheCorruptedFileAndSaysWhy) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_drao_corrupted.vdif");
  for (const char* format : {"vdif", "auto"}) {
    try {
      open_recording(path, format);
      FAIL();
    } catch (const FormatError& e) {
      EXPECT_NE(std::string(e.what()).find("5"), std::string::npos);
    }
  }
}

// A cut last frame, an invalid one, one with a wrong length, one with a thread seen nowhere else, a
// frame number beyond the second: each costs its own slot, no more.
TEST(RecordingVdif, SurvivesDamage) {
  RYLE_REQUIRE_DATA(path, "baseband/sample.vdif");
  const auto two = slurp(path);
  std::vector<unsigned char> raw(two);
  raw.insert(raw.end(), two.begin(), two.end());
  for (std::size_t frame = 16; frame < 32; ++frame)
    raw[frame * 5032 + 4] += 2;  // frame numbers 2 and 3
  raw[8 * 5032 + 3] |= 0x80;     // thread 1 of slot 1: invalid
  raw[9 * 5032 + 8] ^= 0x10;     // thread 3 of slot 1: length
  raw[10 * 5032 + 14] = 0x55;    // thread 5 of slot 1 becomes 85
  raw[11 * 5032 + 6] = 0x7F;     // thread 7 of slot 1: frame 8 million
  raw.resize(31 * 5032 + 100);   // thread 6 of slot 3: cut
  const auto recording = open_recording(test::write_file("damaged.vdif", raw), "vdif");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 8);
  EXPECT_EQ(info.n_ticks, 80000);
  EXPECT_EQ(info.counters.at("rejected.sender_invalid"), 1);
  EXPECT_EQ(info.counters.at("rejected.field"), 1);
  EXPECT_EQ(info.counters.at("rejected.foreign_stream"), 1);
  EXPECT_EQ(info.counters.at("rejected.time"), 1);
  EXPECT_EQ(info.counters.at("rejected.cut_frame"), 1);
  EXPECT_EQ(info.counters.at("frames"), 32 - 5) << "a refused frame is not used";
  const Samples all(*recording, 0, 80000);
  const std::vector<AbsentSpan> expected{{1, 20000, 40000},
                                         {3, 20000, 40000},
                                         {5, 20000, 40000},
                                         {6, 60000, 80000},
                                         {7, 20000, 40000}};
  EXPECT_EQ(all.absent, expected);
  for (std::int64_t t = 20000; t < 40000; t += 11) {
    EXPECT_EQ(all.at(1, t).real(), 0);
    EXPECT_EQ(all.at(0, t).real(),
              two_bits(two, 12 * 5032 + 32, static_cast<std::size_t>(t - 20000)));
  }
}

// EDV 0 has no rate: the frames of a completed second tell it.
TEST(RecordingVdif, CountsTheRateFromAWholeSecond) {
  std::vector<unsigned char> raw;
  for (int frame = 0; frame < 15; ++frame) {  // frames 5..9 of second 100, 0..9 of 101: 10 a second
    const int number = (frame + 5) % 10, second = 100 + (frame + 5) / 10;
    std::vector<unsigned char> f(32 + 8, 0);
    f[0] = static_cast<unsigned char>(second);
    f[4] = static_cast<unsigned char>(number);
    f[7] = 40;       // 2020-01-01
    f[8] = 5;        // 40 bytes
    f[15] = 7 << 2;  // 8 bits
    f[32] = static_cast<unsigned char>(frame);
    raw.insert(raw.end(), f.begin(), f.end());
  }
  const auto recording = open_recording(test::write_file("edv0.vdif", raw), "auto");
  EXPECT_TRUE(recording->info().rate_known);
  EXPECT_EQ(recording->info().clock.rate_hz, (Rational{80, 1}));
  EXPECT_EQ(recording->info().n_ticks, 120);
  EXPECT_EQ(recording->info().clock.epoch_tai_ns, time_of("2020-01-01T00:01:40.5"));
  const Samples all(*recording, -4, 130);
  EXPECT_EQ(all.at(0, 4 + 8 * 14).real(), 14 - 128);
  const std::vector<AbsentSpan> outside{{0, -4, 0}, {0, 120, 126}};
  EXPECT_EQ(all.absent, outside);
}

}  // namespace
}  // namespace ryle
