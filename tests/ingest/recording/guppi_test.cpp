// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/support/data_path.hpp"

namespace ryle {
namespace {

using test::slurp;
using test::Spectra;
using test::time_of;

TEST(RecordingGuppi, ReadsTheFourOverlappingBlocksOfThePuppiSample) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_puppi.raw");
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  EXPECT_EQ(info.format, "guppi");
  EXPECT_TRUE(info.channelized);
  EXPECT_EQ(info.n_inputs, 2);
  EXPECT_EQ(info.frequency.n_channels, 4);
  EXPECT_EQ(info.n_ticks, 3840);
  EXPECT_EQ(info.counters.at("frames"), 4);
  EXPECT_EQ(info.clock.rate_hz, (Rational{250, 1}));
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2018-01-14T14:11:33"));
  EXPECT_NEAR(info.frequency.band_center_hz(), 356.6875e6, 1e-3);
  EXPECT_FALSE(info.inverted_band);
  EXPECT_EQ(info.header.at("SRC_NAME"), "J1810+1744");
  EXPECT_TRUE(info.warnings.empty());

  const Spectra all(*recording, 0, 3840);
  EXPECT_TRUE(all.absent.empty());
  const auto raw = slurp(path);
  const auto value = [&](std::size_t block, std::size_t channel, std::size_t time,
                         std::size_t pol) {
    const std::size_t at = block * (6400 + 16384) + 6400 + ((channel * 1024 + time) * 2 + pol) * 2;
    return ci8{static_cast<std::int8_t>(raw[at]), static_cast<std::int8_t>(raw[at + 1])};
  };
  for (std::size_t t = 0; t < 3840; ++t) {
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t p = 0; p < 2; ++p) {
        ASSERT_EQ(all.at(static_cast<std::int64_t>(t), static_cast<std::int64_t>(c),
                         static_cast<std::int64_t>(p)),
                  value(t / 960, c, t % 960, p));
      }
    }
  }
  // (The payload of this sample was shortened upstream, so the last 64 samples of a block are not
  // those of the next: only the packet numbers say that they overlap.)
  const Spectra piece(*recording, 955, 10);
  for (std::int64_t t = 0; t < 10; ++t) EXPECT_EQ(piece.at(t, 3, 1), all.at(955 + t, 3, 1));
}

TEST(RecordingGuppi, ALostBlockIsAbsent) {
  RYLE_REQUIRE_DATA(path, "baseband/sample_puppi.raw");
  auto raw = slurp(path);
  raw.erase(raw.begin() + 22784, raw.begin() + 2 * 22784);
  const auto recording = open_recording(test::write_file("lost.raw", raw), "guppi");
  EXPECT_EQ(recording->info().n_ticks, 3840);
  const Spectra all(*recording, 0, 3840);
  EXPECT_EQ(all.absent, (std::vector<AbsentSpan>{{0, 960, 1920}, {1, 960, 1920}}));
  EXPECT_EQ(all.at(1000, 0, 0), ci8{});
  raw.resize(raw.size() - 100);
  const auto cut = open_recording(test::write_file("cut.raw", raw), "guppi");
  EXPECT_EQ(cut->info().n_ticks, 2880);
  EXPECT_EQ(cut->info().counters.at("rejected.cut_frame"), 1);
}

std::string message_of(const std::string& path) {
  try {
    open_recording(path, "auto");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "opened";
}

TEST(RecordingGuppi, BlocksThatAreNotInTheFileAreRejectedWithTheSizes) {
  {
    RYLE_REQUIRE_DATA(path, "baseband/sample_vegas.raw");
    EXPECT_NE(message_of(path).find("132186112 bytes but 7920 follow"), std::string::npos)
        << message_of(path);
  }
  RYLE_REQUIRE_DATA(path, "baseband/sample_blc.raw");
  EXPECT_NE(message_of(path).find("134217728 bytes but 0 follow"), std::string::npos)
      << message_of(path);
}

std::vector<unsigned char> guppi_file(const std::vector<std::string>& cards, std::size_t payload) {
  std::vector<unsigned char> raw;
  for (auto card : cards) {
    card.resize(80, ' ');
    raw.insert(raw.end(), card.begin(), card.end());
  }
  const std::string end = "END" + std::string(77, ' ');
  raw.insert(raw.end(), end.begin(), end.end());
  raw.resize((raw.size() + 511) / 512 * 512, ' ');
  for (std::size_t k = 0; k < payload; ++k) raw.push_back(static_cast<unsigned char>(k * 37 + 11));
  return raw;
}

const std::vector<std::string> kCards{"OBSNCHAN= '4       '",
                                      "NPOL    = '4       '",
                                      "NBITS   =                    8",
                                      "BLOCSIZE=                  320",
                                      "OBSBW   = '-8      '",
                                      "OBSFREQ = '1000.0'",
                                      "STT_IMJD= 60000",
                                      "STT_SMJD= 43200",
                                      "STT_OFFS= 0.25",
                                      "DIRECTIO= '1       '",
                                      "TBIN    = 5e-07"};

// Quoted numbers, padding to 512 bytes, an inverted band: channels ascend and samples are
// conjugated.
TEST(RecordingGuppi, InvertedBandComesOutAscendingAndConjugated) {
  const auto raw = guppi_file(kCards, 320);
  const auto recording = open_recording(test::write_file("inverted.raw", raw), "auto");
  const auto& info = recording->info();
  EXPECT_TRUE(info.inverted_band);
  EXPECT_EQ(info.clock.rate_hz, (Rational{2000000, 1}));
  EXPECT_EQ(info.n_ticks, 20);
  EXPECT_DOUBLE_EQ(info.frequency.first_center_hz, 997e6);
  EXPECT_DOUBLE_EQ(info.frequency.channel_width_hz, 2e6);
  EXPECT_EQ(info.clock.epoch_tai_ns, time_of("2023-02-25T12:00:00.25"));
  const Spectra all(*recording, 0, 20);
  const std::size_t data = raw.size() - 320;
  for (std::size_t t = 0; t < 20; ++t) {
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t at = data + ((c * 20 + t) * 2 + p) * 2;
        const int im = static_cast<std::int8_t>(raw[at + 1]);
        const ci8 expected{static_cast<std::int8_t>(raw[at]),
                           static_cast<std::int8_t>(im == -128 ? 127 : -im)};
        ASSERT_EQ(all.at(static_cast<std::int64_t>(t), static_cast<std::int64_t>(3 - c),
                         static_cast<std::int64_t>(p)),
                  expected);
      }
    }
  }
}

TEST(RecordingGuppi, FourBitsAntennasAndSimpleOrder) {
  auto cards = kCards;
  cards[2] = "NBITS   = 4";
  cards[4] = "OBSBW   = 8";
  cards.push_back("NANTS   = 2");
  cards.push_back("PKTFMT  = 'SIMPLE  '");
  const auto raw = guppi_file(cards, 320);
  const auto recording = open_recording(test::write_file("simple.raw", raw), "guppi");
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 4);
  EXPECT_EQ(info.frequency.n_channels, 2);
  EXPECT_EQ(info.n_ticks, 40);
  const Spectra all(*recording, 0, 40);
  const std::size_t data = raw.size() - 320;
  for (std::size_t a = 0; a < 2; ++a) {
    for (std::size_t t = 0; t < 40; ++t) {
      for (std::size_t c = 0; c < 2; ++c) {
        for (std::size_t p = 0; p < 2; ++p) {
          const int byte = raw[data + ((a * 40 + t) * 2 + c) * 2 + p];
          const auto part = [](int code) {
            return static_cast<std::int8_t>(code > 7 ? code - 16 : code);
          };
          ASSERT_EQ(all.at(static_cast<std::int64_t>(t), static_cast<std::int64_t>(c),
                           static_cast<std::int64_t>(2 * a + p)),
                    (ci8{part(byte / 16), part(byte % 16)}));
        }
      }
    }
  }
}

TEST(RecordingGuppi, WrongCardsAreNamed) {
  const std::vector<std::pair<std::size_t, std::string>> bad{
      {0, "OBSNCHAN= 0"},
      {0, "OBSNCHAN= 999999999999999999999"},
      {1, "NPOL    = 3"},
      {2, "NBITS   = 2"},
      {3, "BLOCSIZE= 321"},
      {3, "BLOCSIZE= -320"},
      {4, "OBSBW   = 0"},
      {4, "OBSBW   = wide"},
      {6, "STT_IMJD= 'x'"},
      {7, "STT_SMJD= 90000"},
      {8, "STT_OFFS= nan"},
      {9, "DIRECTIO= 7"},
      {3, "BLOCSIZE= 9223372036854775807"},
      {10, "TBIN    = 0"},
  };
  for (const auto& [k, card] : bad) {
    auto cards = kCards;
    cards[k] = card;
    const std::string key = card.substr(0, card.find_first_of(" ="));
    EXPECT_NE(message_of(test::write_file("bad.raw", guppi_file(cards, 320))).find(key),
              std::string::npos)
        << card;
  }
}

}  // namespace
}  // namespace ryle
