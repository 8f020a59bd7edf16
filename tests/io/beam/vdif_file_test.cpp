// SPDX-License-Identifier: BSD-3-Clause
// VDIF of beams, read back by our reader of VDIF.
#include "ryle/io/beam/vdif_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

class VdifFile : public ::testing::Test {
 protected:
  VdifFile()
      : folder_(std::filesystem::temp_directory_path() /
                ("ryle_vdif_file_" + std::to_string(::getpid()))),
        path_((folder_ / "beam.vdif").string()) {
    std::filesystem::create_directories(folder_);
  }
  ~VdifFile() override { std::filesystem::remove_all(folder_); }

  static VdifFileInfo info(int bits, std::int64_t rate_hz, std::int64_t channels) {
    VdifFileInfo i;
    i.clock.epoch_tai_ns = tai_ns_from_utc_iso("2025-03-01T12:00:00");
    i.clock.rate_hz = {rate_hz, 1};
    i.n_channels = channels;
    i.n_threads = 2;
    i.bits = bits;
    return i;
  }
  static int code(int bits, std::int64_t c, std::int64_t t, std::int64_t pol, int part) {
    const std::uint64_t x = combine(static_cast<std::uint64_t>(c * 4 + pol * 2 + part),
                                    static_cast<std::uint64_t>(t + 1'000'000));
    return bits == 8 ? static_cast<int>(x % 255) - 127 : static_cast<int>(x % 15) - 7;
  }
  // [channel][time][pol], ticks from `first`
  static std::vector<std::uint8_t> codes(const VdifFileInfo& i, Tick first, std::int64_t n) {
    std::vector<std::uint8_t> out;
    for (std::int64_t c = 0; c < i.n_channels; ++c) {
      for (Tick t = first; t < first + n; ++t) {
        for (std::int64_t pol = 0; pol < i.n_threads; ++pol) {
          const int re = code(i.bits, c, t, pol, 0), im = code(i.bits, c, t, pol, 1);
          if (i.bits == 8) {
            out.push_back(static_cast<std::uint8_t>(re));
            out.push_back(static_cast<std::uint8_t>(im));
          } else {
            out.push_back(static_cast<std::uint8_t>((re & 15) << 4 | (im & 15)));
          }
        }
      }
    }
    return out;
  }
  static void append(VdifWriter& writer, const VdifFileInfo& i, Tick first, std::int64_t n,
                     const std::uint64_t* absent = nullptr) {
    const auto block = codes(i, first, n);
    writer.append(block.data(), n * i.n_threads * i.bits / 4, first, n, absent);
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(VdifFile, ReadsBackBitForBit) {
  for (const int bits : {8, 4}) {
    std::filesystem::remove(path_);
    const VdifFileInfo i = info(bits, 25'000, 16);
    {
      VdifWriter writer(path_, i, true);
      EXPECT_EQ(writer.samples_per_frame() * 16 * 2 * bits / 8 % 8, 0);
      EXPECT_EQ(25'000 % writer.samples_per_frame(), 0);
      // 8000 bytes at most: 250 samples of 32 bytes, 500 of 16.
      EXPECT_EQ(writer.samples_per_frame(), bits == 8 ? 250 : 500);
      for (Tick t = 0; t < 3000; t += 700) append(writer, i, t, std::min<Tick>(700, 3000 - t));
      EXPECT_FALSE(std::filesystem::exists(path_));  // not before finish()
      writer.finish();
      EXPECT_EQ(writer.n_left_out(), 0);
      EXPECT_EQ(writer.n_frames(), 2 * 3000 / writer.samples_per_frame());
      EXPECT_EQ(writer.time_shift_s(), 0);
    }
    const auto recording = open_recording(path_, "auto");
    const RecordingInfo& got = recording->info();
    EXPECT_EQ(got.format, "vdif");
    EXPECT_TRUE(got.channelized);
    EXPECT_EQ(got.n_inputs, 2);
    EXPECT_EQ(got.n_ticks, 3000);
    EXPECT_EQ(got.clock.epoch_tai_ns, i.clock.epoch_tai_ns);
    EXPECT_EQ(got.clock.rate_hz, (Rational{25'000, 1}));
    std::vector<ci8> spectra(3000 * 16 * 2);
    std::vector<AbsentSpan> absent;
    recording->read_spectra(0, 3000, spectra, absent, nullptr);
    EXPECT_TRUE(absent.empty());
    for (std::int64_t t = 0; t < 3000; ++t) {
      for (std::int64_t c = 0; c < 16; ++c) {
        for (std::int64_t pol = 0; pol < 2; ++pol) {
          const ci8 v = spectra[static_cast<std::size_t>((t * 16 + c) * 2 + pol)];
          ASSERT_EQ(v.re, code(bits, c, t, pol, 0)) << bits << " " << t << " " << c;
          ASSERT_EQ(v.im, code(bits, c, t, pol, 1)) << bits << " " << t << " " << c;
        }
      }
    }
  }
}

// A clock that starts between seconds and frames: whole frames only, times true to the sample.
TEST_F(VdifFile, FramesStartWithTheSecond) {
  VdifFileInfo i = info(8, 25'000, 16);
  i.clock.epoch_tai_ns += 999'990'000;  // 10 us before a second: a quarter of a sample
  VdifWriter writer(path_, i, true);
  append(writer, i, 100, 1000);
  writer.finish();
  EXPECT_EQ(writer.n_left_out(), 150 + 100);
  EXPECT_NEAR(writer.time_shift_s(), 10e-6, 1e-12);
  const auto recording = open_recording(path_, "vdif");
  ASSERT_EQ(recording->info().n_ticks, 750);
  EXPECT_EQ(recording->info().clock.epoch_tai_ns,
            tai_ns_from_utc_iso("2025-03-01T12:00:01") + 250 * 40'000);
  std::vector<ci8> spectra(16 * 2);
  std::vector<AbsentSpan> absent;
  recording->read_spectra(0, 1, spectra, absent, nullptr);
  EXPECT_EQ(spectra[0].re, code(8, 0, 250, 0, 0));
}

// What was lost is marked invalid, and time goes on: gaps of ticks and spectra without any input.
TEST_F(VdifFile, LossesAreInvalidFrames) {
  const VdifFileInfo i = info(8, 25'000, 16);
  VdifWriter writer(path_, i, true);
  append(writer, i, 0, 500);
  append(writer, i, 1100, 400);  // 500 .. 1000 missing: two frames; 1000 .. 1100: part of one
  std::vector<std::uint64_t> absent(words_for_bits(500), ~std::uint64_t{0});
  clear_bits(absent.data(), 499, 500);
  append(writer, i, 1500, 500, absent.data());  // first frame wholly lost, one sample of the second
  writer.finish();
  EXPECT_EQ(writer.n_frames(), 2 * 8);
  EXPECT_EQ(writer.n_invalid_frames(), 2 * 3);
  const auto recording = open_recording(path_, "vdif");
  ASSERT_EQ(recording->info().n_ticks, 2000);
  std::vector<ci8> spectra(2000 * 16 * 2);
  std::vector<AbsentSpan> lost;
  recording->read_spectra(0, 2000, spectra, lost, nullptr);
  std::int64_t n_lost = 0;
  for (const auto& a : lost) n_lost += a.end - a.begin;
  EXPECT_EQ(n_lost, 2 * 750);
  EXPECT_EQ(spectra[1050 * 32].re, 0);
  EXPECT_EQ(spectra[1100 * 32].re, code(8, 0, 1100, 0, 0));
  EXPECT_EQ(spectra[1999 * 32].im, code(8, 0, 1999, 0, 1));
}

TEST_F(VdifFile, SaysWhatVdifCannotHold) {
  const auto why = [&](const VdifFileInfo& i) -> std::string {
    try {
      VdifWriter writer(path_, i, false);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "taken";
  };
  VdifFileInfo best2 = info(8, 78'125, 16);
  best2.clock.rate_hz = {78'125, 4};
  EXPECT_NE(why(best2).find("78125/4 complex samples"), std::string::npos);
  EXPECT_NE(why(info(8, 25'000, 132)).find("power of two of channels, not 132"), std::string::npos);
  EXPECT_NE(why(info(16, 25'000, 16)).find("16 bits"), std::string::npos);
  VdifFileInfo old = info(8, 25'000, 16);
  old.clock.epoch_tai_ns = tai_ns_from_utc_iso("1999-12-31T00:00:00");
  EXPECT_NE(why(old).find("2000 to 2031"), std::string::npos);
  // Nothing is left behind by a rejection, or by a writer that did not finish.
  { VdifWriter writer(path_, info(8, 25'000, 16), false); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace ryle
