// SPDX-License-Identifier: BSD-3-Clause
// What headers of streams say is compared with the observation, hostile numbers are refused, and
// streams without a byte end.
#include "ryle/ingest/stream_cutter.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "ryle/core/error.hpp"
#include "ryle/ingest/stream_inputs.hpp"

namespace ryle {
namespace {

struct FoundBlocks final : StreamSink {
  bool on_packet(std::span<const std::byte>) override { return true; }
  void on_header(std::int64_t zero_tai_ns) override { zero = zero_tai_ns; }
  bool on_block(Tick tick, std::span<const std::byte>) override {
    ticks.push_back(tick);
    return true;
  }
  std::int64_t zero = 0;
  std::vector<Tick> ticks;
};

/// Two channels of two inputs, 100 kHz apart, of 8 + 8 bits.
StreamShape shape_of(bool guppi, double sample_rate_hz) {
  StreamShape shape;
  shape.guppi = guppi;
  shape.n_channels = shape.n_inputs = 2;
  shape.sample_rate_hz = sample_rate_hz;
  shape.center_hz = 150e6;
  shape.bandwidth_hz = 200e3;
  shape.block_bytes = 64;
  shape.block_ticks = 8;
  return shape;
}

/// What cutting a header, with `more` of its lines, and one block says; "" where it fits.
std::string cutting(const StreamShape& shape, const std::string& more, FoundBlocks& found) {
  std::string text;
  if (shape.guppi) {
    std::string lines = "NANTS=1\nOBSNCHAN=2\nNPOL=4\nNBITS=8\nBLOCSIZE=64\nOBSFREQ=150\n" + more;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = lines.find('\n', at), is = lines.find('=', at);
      std::string card = lines.substr(at, is - at);
      card.resize(8, ' ');
      card += "= " + lines.substr(is + 1, end - is - 1);
      card.resize(80, ' ');
      text += card;
      at = end + 1;
    }
    text += "END";
    text.resize((text.size() + 79) / 80 * 80, ' ');
  } else {
    text = "HDR_SIZE 4096\nNCHAN 2\nNPOL 2\nNDIM 2\nNBIT 8\nFREQ 150\n" + more;
    text.resize(4096, '\0');
  }
  text.resize(text.size() + 64, '\1');
  const auto cutter = make_stream_cutter(shape);
  try {
    cutter->cut(std::as_bytes(std::span(text.data(), text.size())), found);
  } catch (const FormatError& error) {
    return error.what();
  }
  EXPECT_EQ(found.ticks.size(), 1u);
  return "";
}

std::string cutting(const StreamShape& shape, const std::string& more) {
  FoundBlocks found;
  return cutting(shape, more, found);
}

TEST(StreamCutter, TheIntervalTellsTheRateAndTheBandwidthTheSpacing) {
  const std::string dada = "UTC_START 2026-03-01-12:00:00\n";
  const std::string guppi = "STT_IMJD=61100\nSTT_SMJD=43200\nSTT_OFFS=0\n";
  EXPECT_EQ(cutting(shape_of(false, 100e3), dada + "TSAMP 10\n"), "");
  EXPECT_EQ(cutting(shape_of(false, 100e3), dada + "BW 0.2\n"), "");
  const std::string slow = cutting(shape_of(false, 100e3), dada + "TSAMP 20\n");
  EXPECT_NE(slow.find("source.sample_rate_hz of 50000 Hz"), std::string::npos) << slow;
  const std::string late = cutting(shape_of(true, 100e3), guppi + "TBIN=2e-5\n");
  EXPECT_NE(late.find("source.sample_rate_hz of 50000 Hz"), std::string::npos) << late;
  // Oversampled by 5/4.
  EXPECT_EQ(cutting(shape_of(false, 125e3), dada + "TSAMP 8\nBW 0.2\n"), "");
  EXPECT_EQ(cutting(shape_of(true, 125e3), guppi + "TBIN=8e-6\nOBSBW=0.2\n"), "");
  const std::string wide = cutting(shape_of(false, 125e3), dada + "TSAMP 8\nBW 0.25\n");
  EXPECT_NE(wide.find("source.channel_width_hz of 125000 Hz"), std::string::npos) << wide;
  const std::string down = cutting(shape_of(true, 125e3), guppi + "TBIN=8e-6\nOBSBW=-0.2\n");
  EXPECT_NE(down.find("source.inverted_band = true"), std::string::npos) << down;
}

TEST(StreamCutter, InstantsThatAreNoneAreRejected) {
  const StreamShape guppi = shape_of(true, 100e3), dada = shape_of(false, 100e3);
  FoundBlocks found;
  EXPECT_EQ(cutting(guppi, "STT_IMJD=61100\nSTT_SMJD=43200\nSTT_OFFS=0.5\n", found), "");
  FoundBlocks earlier;
  EXPECT_EQ(cutting(guppi, "STT_IMJD=61100\nSTT_SMJD=43199\nSTT_OFFS=0\n", earlier), "");
  EXPECT_EQ(found.zero - earlier.zero, 1'500'000'000);
  for (const char* start :
       {"STT_IMJD=61100\nSTT_SMJD=9223372036854775807\nSTT_OFFS=0\n",
        "STT_IMJD=61100\nSTT_SMJD=86401\nSTT_OFFS=0\n", "STT_IMJD=61100\nSTT_SMJD=-1\nSTT_OFFS=0\n",
        "STT_IMJD=61100\nSTT_SMJD=0\nSTT_OFFS=1e300\n",
        "STT_IMJD=61100\nSTT_SMJD=0\nSTT_OFFS=-0.5\n",
        "STT_IMJD=9000000000\nSTT_SMJD=0\nSTT_OFFS=0\n"})
    EXPECT_NE(cutting(guppi, start).find("1961 to 2200"), std::string::npos) << start;
  const std::string good = "STT_IMJD=61100\nSTT_SMJD=43200\nSTT_OFFS=0\nPKTSIZE=64\n";
  EXPECT_EQ(cutting(guppi, good + "PKTIDX=1000\n"), "");
  EXPECT_NE(cutting(guppi, good + "PKTIDX=100000000000000\n").find("1961 and 2200"),
            std::string::npos);
  EXPECT_NE(cutting(guppi, good + "PKTIDX=9223372036854775807\n").find("no place in time"),
            std::string::npos);
  EXPECT_NE(cutting(dada, "UTC_START 2026-03-01-12:00:00\nOBS_OFFSET 8000000000000000000\n")
                .find("1961 and 2200"),
            std::string::npos);
  EXPECT_NE(cutting(dada, "MJD_START 61100.5e300\n").find("MJD_START"), std::string::npos);
}

TEST(StreamInputs, AStreamWithoutAByteEnds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  StreamInputs inputs;
  inputs.open(parse_endpoint("fd://" + std::to_string(ends[0])));
  inputs.set_cutters([] { return make_packet_cutter(16); });
  EXPECT_FALSE(inputs.ended());
  ::close(ends[1]);
  std::vector<pollfd> polled;
  inputs.add_polled(polled);
  ASSERT_EQ(::poll(polled.data(), polled.size(), 1000), 1);
  FoundBlocks found;
  for (auto* input : inputs.readable(polled)) inputs.read(*input, 4, found);
  EXPECT_TRUE(inputs.ended());
  ::close(ends[0]);
}

TEST(StreamInputs, LargeBuffersAllowFewConnections) {
  const auto small = make_packet_cutter(8192), large = make_packet_cutter(std::size_t{1} << 30);
  EXPECT_GT(StreamInputs::max_connections(*small), 400u);
  EXPECT_LE(StreamInputs::max_connections(*small) * StreamInputs::buffer_bytes(*small),
            std::size_t{128} << 20);
  EXPECT_EQ(StreamInputs::max_connections(*large), 1u);
}

}  // namespace
}  // namespace ryle
