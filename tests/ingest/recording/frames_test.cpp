// SPDX-License-Identifier: BSD-3-Clause
// VDIF and CODIF beyond the real samples of vdif_test.cpp: widths of samples, threads and stations,
// validity of channels, places on the sky.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <numbers>
#include <random>

#include "ryle/core/error.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/ingest/recording/vdif_frames.hpp"

namespace ryle {
namespace {

using test::Bytes;
using test::Samples;
using test::Spectra;
using test::VdifFrame;

std::string file_of(const std::string& name, const Bytes& bytes) {
  return test::write_file(std::to_string(::getpid()) + "_" + name, bytes);
}

int level(std::uint32_t bits, int code) {
  if (bits == 1) return 2 * code - 1;
  if (bits == 2) return std::vector<int>{-10, -3, 3, 10}[static_cast<std::size_t>(code)];
  return code - (1 << (bits - 1));
}

// Every width from 1 to 16 bits, real and complex, with headers of either length.
TEST(RecordingFrames, ReadsEveryWidth) {
  std::mt19937 random(11);
  for (std::uint32_t bits = 1; bits <= 16; ++bits) {
    for (const bool complex : {false, true}) {
      for (const bool legacy : {false, true}) {
        const std::size_t per_word =
            complex ? 32 / (2 * bits) * 2 : static_cast<std::size_t>(32) / bits;
        const std::size_t n = per_word * 8;  // elements of a frame of 8 words
        Bytes file;
        std::vector<int> codes;
        for (std::uint32_t frame = 0; frame < 3; ++frame) {
          std::vector<int> part(n);
          for (auto& c : part) c = static_cast<int>(random() % (1U << bits));
          codes.insert(codes.end(), part.begin(), part.end());
          VdifFrame f;
          f.frame = frame;
          f.bits = bits;
          f.complex = complex;
          f.legacy = legacy;
          test::append(file, f(part));
        }
        const std::size_t parts = complex ? 2 : 1, n_samples = n / parts;
        RecordingOptions options;
        options.sample_rate_hz = static_cast<double>(n_samples) * 10;
        const auto recording = open_recording(file_of("width.vdif", file), "vdif", options);
        ASSERT_EQ(recording->info().n_ticks, static_cast<std::int64_t>(3 * n_samples)) << bits;
        EXPECT_EQ(recording->info().layout.format,
                  bits > 8 ? (complex ? SampleFormat::ci16 : SampleFormat::i16)
                           : (complex ? SampleFormat::ci8 : SampleFormat::i8));
        const Samples all(*recording, 0, recording->info().n_ticks);
        EXPECT_TRUE(all.absent.empty());
        for (std::size_t t = 0; t < 3 * n_samples; ++t) {
          const cf64 value = all.at(0, static_cast<std::int64_t>(t));
          ASSERT_EQ(value.real(), level(bits, codes[parts * t])) << bits << " " << t;
          if (complex) {
            ASSERT_EQ(value.imag(), level(bits, codes[parts * t + 1])) << bits << " " << t;
          }
        }
      }
    }
  }
}

// EDV 4: channel 1 of a frame is not valid, of the next one all are.
TEST(RecordingFrames, ChannelsMarkedInvalidAreAbsent) {
  Bytes file;
  for (std::uint32_t frame = 0; frame < 2; ++frame) {
    VdifFrame f;
    f.frame = frame;
    f.log2_channels = 2;
    f.edv = 4;
    f.word4 = 4U << 16;
    f.word6 = frame == 0 ? 0b1101 : 0b1111;
    test::append(file, f(std::vector<int>(32, 200)));
  }
  RecordingOptions options;
  options.sample_rate_hz = 80;
  const auto recording = open_recording(file_of("edv4.vdif", file), "vdif", options);
  const Samples all(*recording, 2, 12);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{1, 2, 8}}));
  EXPECT_EQ(all.at(1, 0).real(), 0);
  EXPECT_EQ(all.at(1, 6).real(), 72);
  EXPECT_EQ(all.at(0, 0).real(), 72);
}

/// Phase and power of samples at a frequency: sum of x(t) exp(-2 pi i f t / rate).
cf64 tone_of(const Samples& samples, std::int64_t input, std::int64_t n, double hz,
             double rate_hz) {
  cf64 sum = 0;
  for (std::int64_t t = 0; t < n; ++t)
    sum += samples.at(input, t) *
           std::polar(1.0, -2 * std::numbers::pi * hz * static_cast<double>(t) / rate_hz);
  return sum / static_cast<double>(n);
}

constexpr double kRate_hz = 8000;
constexpr int kSamples = 400;  // of a frame: 20 a second

/// Real samples of a tone at sky_hz with phase `phase` at the start of second 100, through a mixer
/// at zero_hz that starts there with phase 0.
Bytes tone_frames(std::uint32_t station, std::uint32_t first_frame,
                  const std::vector<std::pair<double, bool>>& channels, double sky_hz,
                  double phase) {
  Bytes out;
  for (std::uint32_t frame = first_frame; frame < first_frame + 5; ++frame) {
    VdifFrame f;
    f.second = 100 + frame / 20;
    f.frame = frame % 20;
    f.station = station;
    f.log2_channels = channels.size() == 2 ? 1 : 0;
    std::vector<int> codes;
    for (int t = 0; t < kSamples; ++t) {
      const double time_s = (frame * kSamples + t) / kRate_hz;
      for (const auto& [zero_hz, lower] : channels) {
        const double baseband = lower ? zero_hz - sky_hz : sky_hz - zero_hz;
        const double turned = lower ? -phase : phase;
        codes.push_back(128 +
                        static_cast<int>(std::lround(
                            100 * std::cos(2 * std::numbers::pi * baseband * time_s + turned))));
      }
    }
    test::append(out, f(codes));
  }
  return out;
}

// A tone of known sky frequency in the upper sideband of one station and in the lower one of
// another, whose mixers differ by the width of the band: one frequency and one phase.
TEST(RecordingFrames, LowerSidebandsAreTurnedOver) {
  constexpr double kSky_hz = 1'000'700, kPhase = 0.7;
  RecordingOptions options;
  options.sample_rate_hz = kRate_hz;
  options.channel_map = {"Up:0 1 U", "Lo:0 1.004 L"};
  // An odd number of frames apart: the sign of every other sample counts from a common instant.
  const std::string up = file_of("up.vdif",
                                 tone_frames('U' << 8 | 'p', 0, {{1e6, false}}, kSky_hz, kPhase)),
                    lo = file_of("lo.vdif", tone_frames('L' << 8 | 'o', 1, {{1.004e6, true}},
                                                        kSky_hz, kPhase));
  const auto both = open_recordings({up, lo}, "auto", options);
  EXPECT_EQ(both->info().n_inputs, 2);
  EXPECT_DOUBLE_EQ(both->info().reference_hz, 1e6);
  EXPECT_THROW(open_recording(up, "auto", options), ConfigError);  // "Lo" is not in it
  options.channel_map = {"*  1 U"};
  const auto upper = open_recording(up, "auto", options);
  options.channel_map = {"0 1.004 L"};
  const auto lower = open_recording(lo, "auto", options);
  EXPECT_DOUBLE_EQ(upper->info().reference_hz, 1e6);
  EXPECT_DOUBLE_EQ(lower->info().reference_hz, 1e6);
  const Samples a(*upper, kSamples, 1600), b(*lower, 0, 1600);  // the same times
  const cf64 one = tone_of(a, 0, 1600, 700, kRate_hz), other = tone_of(b, 0, 1600, 700, kRate_hz);
  EXPECT_NEAR(std::abs(one), 50, 0.5);
  EXPECT_NEAR(std::abs(one - other), 0, 0.2);
  EXPECT_LT(std::abs(tone_of(b, 0, 1600, 4000 - 700, kRate_hz)), 0.5);
  const Samples later(*lower, 3, 100);
  for (std::int64_t t = 0; t < 100; ++t) EXPECT_EQ(later.at(0, t), b.at(0, t + 3));
  const Samples c(*both, kSamples, 1600);
  EXPECT_NEAR(std::abs(tone_of(c, 0, 1600, 700, kRate_hz) - one), 0, 1e-12);
  EXPECT_NEAR(std::abs(tone_of(c, 1, 1600, 700, kRate_hz) - other), 0, 1e-12);
}

// The first letter is in the high byte, as DiFX and baseband have it.
TEST(RecordingFrames, StationsHaveTheirLettersInOrder) {
  Bytes file;
  for (std::uint32_t frame = 0; frame < 3; ++frame) {
    VdifFrame f;
    f.frame = frame;
    f.station = static_cast<std::uint32_t>('M') << 8 | 'w';
    test::append(file, f(std::vector<int>(8, 128)));
  }
  RecordingOptions options;
  options.sample_rate_hz = 80;
  options.channel_map = {"Mw:0 2 U"};
  const auto recording = open_recording(file_of("letters.vdif", file), "auto", options);
  EXPECT_EQ(recording->info().input_names, (std::vector<std::string>{"station Mw thread 0"}));
}

TEST(RecordingFrames, RareThreadsAreLeftOutAndSaid) {
  Bytes file;
  for (std::uint32_t frame = 0; frame < 20; ++frame) {
    VdifFrame f;
    f.frame = frame;
    f.thread = frame == 7 ? 9 : 2;
    test::append(file, f(std::vector<int>(8, 128)));
  }
  const auto recording = open_recording(file_of("rare.vdif", file), "auto");
  EXPECT_EQ(recording->info().counters.at("rejected.foreign_stream"), 1);
  std::string text;
  for (const auto& warning : recording->info().warnings) text += warning + "\n";
  EXPECT_NE(text.find("left out, station 0 thread 9 (1)"), std::string::npos) << text;
}

TEST(RecordingFrames, OneBandIsChosenOfSeveral) {
  const std::string path =
      file_of("bands.vdif", tone_frames(5, 0, {{2e6, false}, {2.008e6, true}}, 2'004'500, 0));
  RecordingOptions options;
  options.sample_rate_hz = kRate_hz;
  options.channel_map = {"0/0 2 U", "0/1 2.008 L"};
  const auto low = open_recording(path, "auto", options);
  EXPECT_DOUBLE_EQ(low->info().reference_hz, 2e6);
  EXPECT_EQ(low->info().n_inputs, 1);
  ASSERT_EQ(low->info().warnings.size(), 1u);
  EXPECT_NE(low->info().warnings[0].find("2.004000 to 2.008000"), std::string::npos)
      << low->info().warnings[0];
  options.reference_hz = 2.006e6;
  const auto high = open_recording(path, "auto", options);
  EXPECT_DOUBLE_EQ(high->info().reference_hz, 2.004e6);
  EXPECT_TRUE(high->info().warnings.empty());
  const Samples all(*high, 0, 1600);
  EXPECT_NEAR(std::abs(tone_of(all, 0, 1600, 500, kRate_hz)), 50, 0.5);
  options.reference_hz = 3e6;
  EXPECT_THROW(open_recording(path, "auto", options), ConfigError);
  // Also where the map has one band only.
  options.channel_map = {"0/0 2 U"};
  EXPECT_THROW(open_recording(path, "auto", options), ConfigError);
  options.reference_hz = 2.001e6;
  EXPECT_DOUBLE_EQ(open_recording(path, "auto", options)->info().reference_hz, 2e6);
}

TEST(RecordingFrames, ChannelMapsAreChecked) {
  const std::string path =
      file_of("map.vdif", tone_frames(5, 0, {{2e6, false}, {2e6, false}}, 2.001e6, 0));
  RecordingOptions options;
  options.sample_rate_hz = kRate_hz;
  for (const auto& [entry, word] : {std::pair{"0 2 U", "has 2 channels"},
                                    {"1/0 2 U", "none of its channels"},
                                    {"0/0 2 X", "U or L"},
                                    {"0/0 two U", "no frequency"},
                                    {"0/0", "two or three"},
                                    {"a/0 2", "no number"},
                                    {"6:0/0 2 U", "none of its channels"}}) {
    options.channel_map = {entry};
    try {
      open_recording(path, "auto", options);
      FAIL() << entry;
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  }
  // Two polarizations of one band are two inputs; a channel that is not named is left out and said.
  options.channel_map = {"5:0/0 2 U", "0/1 2 U"};
  EXPECT_EQ(
      open_recording(path, "auto", options)->info().input_names,
      (std::vector<std::string>{"station 5 thread 0 channel 0", "station 5 thread 0 channel 1"}));
  options.channel_map = {"0/1 2 U"};
  const auto one = open_recording(path, "auto", options);
  EXPECT_EQ(one->info().n_inputs, 1);
  EXPECT_NE(one->info().warnings.at(0).find("thread 0 channel 0"), std::string::npos);
}

// Complex channels in the order of their numbers, which is not that of the sky; one conjugated.
TEST(RecordingFrames, ComplexChannelsAreSortedByTheirPlace) {
  Bytes file;
  for (std::uint32_t frame = 0; frame < 2; ++frame) {
    VdifFrame f;
    f.frame = frame;
    f.complex = true;
    f.log2_channels = 1;
    std::vector<int> codes;
    for (int t = 0; t < 4; ++t)
      for (const int value : {10 + t, 20 + t, 30 + t, -128}) codes.push_back(128 + value);
    test::append(file, f(codes));
  }
  const std::string path = file_of("sorted.vdif", file);
  RecordingOptions options;
  options.sample_rate_hz = 40;
  options.channel_map = {"0/0 200.00004 U", "0/1 200 L"};
  const auto recording = open_recording(path, "auto", options);
  EXPECT_DOUBLE_EQ(recording->info().frequency.first_center_hz, 200e6);
  EXPECT_NEAR(recording->info().frequency.channel_width_hz, 40, 1e-6);
  const Spectra all(*recording, 0, 8);
  EXPECT_EQ(all.at(1, 0, 0), (ci8{31, 127}));
  EXPECT_EQ(all.at(1, 1, 0), (ci8{11, 21}));
  options.reference_hz = 200.00003e6;
  EXPECT_DOUBLE_EQ(open_recording(path, "auto", options)->info().frequency.first_center_hz, 200e6);
  options.reference_hz = 201e6;
  EXPECT_THROW(open_recording(path, "auto", options), ConfigError);
}

/// A CODIF frame from the definition: eight little-endian words of 64 bits, then the data array.
Bytes codif_frame(std::uint32_t second, std::uint32_t frame, std::uint32_t thread,
                  std::uint64_t n_in_period, std::uint32_t period_s, const std::vector<int>& values,
                  std::uint32_t invalid = 0) {
  Bytes out(64 + values.size() * 2);
  test::put_word(out, 0, frame);
  test::put_word(out, 4, second);
  // Epoch 40 (2020-01-01), 16 bits, complex (bit 18), two's complement (1 in bits 20..23),
  // version 2.
  test::put_word(out, 8,
                 40U | 16U << 8 | invalid << 17 | 1U << 18 | 1U << 20 | 2U << 24 | 7U << 29);
  test::put_word(out, 12, period_s << 16);
  test::put_word(out, 16, thread);
  test::put_word(out, 20, static_cast<std::uint32_t>('A' << 8 | 'k') << 16);
  test::put_word(out, 24, 1U);
  test::put_word(out, 28, static_cast<std::uint32_t>(values.size() * 2 / 8));
  test::put_word(out, 32, static_cast<std::uint32_t>(n_in_period));
  test::put_word(out, 40, 0xFEEDCAFE);
  for (std::size_t k = 0; k < values.size(); ++k) {
    out[64 + 2 * k] = static_cast<unsigned char>(values[k] & 255);
    out[65 + 2 * k] = static_cast<unsigned char>(values[k] >> 8 & 255);
  }
  return out;
}

// 32/27 Hz: 32 samples in a period of 27 s, four frames of eight.
TEST(RecordingFrames, CodifCountsInPeriods) {
  Bytes file;
  const auto value = [](int tick, int thread, int part) {
    return (tick * 1000 + thread * 77 + part * 5) % 65536 - 32768;
  };
  for (int k = 2; k < 10; ++k) {
    for (int thread = 0; thread < 2; ++thread) {
      std::vector<int> values;
      for (int t = 0; t < 8; ++t)
        for (int part = 0; part < 2; ++part) values.push_back(value(8 * k + t, thread, part));
      test::append(
          file, codif_frame(static_cast<std::uint32_t>(54 + k / 4 * 27),
                            static_cast<std::uint32_t>(k % 4), static_cast<std::uint32_t>(thread),
                            32, 27, values, k == 5 && thread == 1 ? 1 : 0));
    }
  }
  const auto recording = open_recording(file_of("a.codif", file), "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "codif");
  EXPECT_EQ(info.clock.rate_hz, (Rational{32, 27}));
  EXPECT_EQ(info.n_ticks, 64);
  EXPECT_EQ(info.clock.epoch_tai_ns,
            test::time_of("2020-01-01T00:01:07.5"));  // 54 s + 16 x 27/32 s
  EXPECT_EQ(info.input_names,
            (std::vector<std::string>{"station Ak thread 0", "station Ak thread 1"}));
  EXPECT_EQ(info.counters.at("rejected.sender_invalid"), 1);
  const Samples all(*recording, 0, 64);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{1, 24, 32}}));
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(all.at(0, t), cf64(value(16 + t, 0, 0), value(16 + t, 0, 1))) << t;
  }
  // A second file continues it.
  Bytes more;
  for (int k = 10; k < 12; ++k)
    for (int thread = 0; thread < 2; ++thread)
      test::append(
          more, codif_frame(static_cast<std::uint32_t>(54 + k / 4 * 27),
                            static_cast<std::uint32_t>(k % 4), static_cast<std::uint32_t>(thread),
                            32, 27, std::vector<int>(16, k)));
  const auto both = open_recordings({file_of("b.codif", more), file_of("a.codif", file)}, "auto");
  EXPECT_EQ(both->info().n_ticks, 80);
  EXPECT_TRUE(both->info().warnings.empty());
}

}  // namespace
}  // namespace ryle
