// SPDX-License-Identifier: BSD-3-Clause
// Standards as descriptions: frames that the codec of VDIF writes, samples by the definition of
// their bits, reference epochs, what is refused and why, blocks of recorded streams.
#include "ryle/wire/frame_layouts.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ryle/core/error.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/vdif.hpp"
#include "tests/wire/support.hpp"

namespace ryle::wire {
namespace {

using FrameBytes = std::vector<std::byte>;

FrameLayout layout_of(int bits, bool complex, std::int64_t n_channels, std::int64_t frame_bytes) {
  FrameLayout layout;
  layout.bits = bits;
  layout.complex = complex;
  layout.n_channels = n_channels;
  layout.frame_bytes = frame_bytes;
  layout.threads = {5, 0, 7};
  for (int e = 0; e < 64; ++e) layout.epoch_seconds.push_back(std::uint64_t(e) * 15'800'000);
  return layout;
}

/// Elementary sample k of a payload by the definition of VDIF: words of 32 bits, little endian, the
/// first in the lowest bits, pairs of complex samples whole in a word.
std::uint32_t element(const std::byte* payload, std::int64_t k, int bits, bool complex) {
  const std::int64_t of_word = 32 / (complex ? 2 * bits : bits) * (complex ? 2 : 1);
  const auto word = load_le<std::uint32_t>(payload + 4 * (k / of_word));
  return word >> (k % of_word * bits) & ((std::uint32_t{1} << bits) - 1);
}

TEST(FrameLayouts, SamplesOfEveryWidthAreWhereVdifHasThem) {
  std::mt19937_64 random(5);
  for (int bits = 1; bits <= 16; ++bits) {
    for (const bool complex : {false, true}) {
      for (const std::int64_t n_channels : {1, 2, 4}) {
        const std::int64_t per_word = 32 / (complex ? 2 * bits : bits);
        if (per_word % n_channels != 0 && n_channels % per_word != 0) continue;
        FrameLayout layout = layout_of(bits, complex, n_channels, 32 + 160);
        const std::int64_t n_times = per_word * 40 / n_channels;
        layout.samples_per_period = n_times * 100;
        const PacketDescription d = vdif_packet(layout);
        ASSERT_EQ(d.extent(Axis::time), n_times) << bits << complex << n_channels;
        ASSERT_EQ(d.counts_per_period, 100);
        ASSERT_EQ(d.has_channels(), complex && n_channels > 1);
        const PayloadMap map(d);
        FrameBytes payload(160);
        for (auto& b : payload) b = std::byte(random() & 255);
        const int parts = complex ? 2 : 1;
        for (std::int64_t t = 0; t < n_times; ++t) {
          for (std::int64_t c = 0; c < n_channels; ++c) {
            for (int part = 0; part < parts; ++part) {
              const std::int64_t k = (t * n_channels + c) * parts + part;
              const auto code = static_cast<int>(element(payload.data(), k, bits, complex));
              const int got = complex ? map.part(payload.data(), c, t, 0, part)
                                      : map.part(payload.data(), 0, t, c, part);
              ASSERT_EQ(got, code - (1 << (bits - 1))) << bits << " " << t << " " << c;
            }
          }
        }
      }
    }
  }
}

TEST(FrameLayouts, HeadersAreThoseOfTheCodec) {
  FrameLayout layout = layout_of(2, false, 1, 1032);
  layout.samples_per_period = 4000 * 1600;
  layout.stations = {vdif_station("Ef"), vdif_station("0x11")};
  layout.prefix_bytes = 8;
  const PacketDescription d = vdif_packet(layout);
  const DescribedCodec codec(d, {0, 0, 6});
  VdifGeometry geometry;
  geometry.frames_per_second = 1600;
  const FrameBytes payload(1000, std::byte{0x1B});
  for (const std::uint32_t station : {0x4566u, 0x11u}) {
    for (const std::uint32_t thread : {5u, 0u, 7u}) {
      Packet frame;
      frame.stream = thread;
      frame.tick_raw = std::uint64_t{12'345'678} * 1600 + 1599;
      frame.n_ticks = 4000;
      frame.n_channels = 1;
      frame.flags = 44 | 1u << 8 | station << 16;
      FrameBytes packet(1040);
      ASSERT_EQ(encode(geometry, frame, payload, std::span(packet).subspan(8)), 1032u);
      Packet found;
      ASSERT_EQ(name(codec.decode(packet, found)), "none");
      const std::uint32_t digit = thread == 5 ? 0 : thread == 0 ? 1 : 2;
      EXPECT_EQ(found.stream, (station == 0x11 ? 3 : 0) + digit);
      EXPECT_EQ(found.tick_raw, (std::uint64_t{44} * 15'800'000 + 12'345'678) * 1600 + 1599);
      EXPECT_EQ(found.tick_bits, 64);
      EXPECT_EQ(found.payload_offset, 40u);
      // And back: the epoch is the latest that has begun.
      FrameBytes again(1040);
      ASSERT_EQ(codec.encode(found, payload, again), 1040u);
      EXPECT_EQ(again, packet);
    }
  }
}

TEST(FrameLayouts, WhatIsNotExpectedIsRejectedByItsReason) {
  FrameLayout layout = layout_of(2, false, 1, 1032);
  layout.samples_per_period = 4000 * 1600;
  const DescribedCodec codec(vdif_packet(layout), {0, 0, 3});
  FrameBytes good(1032);
  Packet packet;
  packet.stream = 1;
  packet.tick_raw = 77;
  ASSERT_EQ(codec.encode(packet, FrameBytes(1000), good), 1032u);
  const auto reason = [&](std::size_t word, std::uint32_t flip) {
    FrameBytes bytes = good;
    store_le(bytes.data() + 4 * word, load_le<std::uint32_t>(bytes.data() + 4 * word) ^ flip);
    Packet found;
    return name(codec.decode(bytes, found));
  };
  EXPECT_EQ(reason(0, 0), "none");
  EXPECT_EQ(reason(0, 1u << 31), "sender_invalid");
  EXPECT_EQ(reason(0, 1u << 30), "field");           // legacy
  EXPECT_EQ(reason(1, 2048), "field");               // frame 2125 of 1600
  EXPECT_EQ(reason(2, 1), "length");                 // of the frame
  EXPECT_EQ(reason(2, 1u << 24), "field");           // two channels
  EXPECT_EQ(reason(2, 1u << 29), "none");            // version
  EXPECT_EQ(reason(3, 1u << 27), "field");           // bits
  EXPECT_EQ(reason(3, 1u << 31), "field");           // complex
  EXPECT_EQ(reason(3, 1u << 16), "foreign_stream");  // thread 1
  EXPECT_EQ(reason(3, 1), "none");                   // any station
  EXPECT_EQ(reason(4, 3u << 24), "none");            // extended data
  good.resize(1024);
  EXPECT_EQ(reason(0, 0), "too_short");
}

std::string refusal_of(const FrameLayout& layout) {
  try {
    vdif_packet(layout);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(FrameLayouts, WhatDoesNotFitIsToldBeforeData) {
  FrameLayout layout = layout_of(2, false, 1, 1032);
  layout.samples_per_period = 4000 * 1600 + 1;
  EXPECT_NE(refusal_of(layout).find("no whole number of frames of 4000 samples"),
            std::string::npos);
  layout.samples_per_period = 4000 * 1600;
  layout.threads = {0, 1024};
  EXPECT_NE(refusal_of(layout).find("source.threads: 1024 is not in 0 .. 1023"), std::string::npos);
  layout.threads = {3, 3};
  EXPECT_NE(refusal_of(layout).find("comes twice"), std::string::npos);
  layout.threads = {0};
  layout.frame_bytes = 1030;
  EXPECT_NE(refusal_of(layout).find("source.frame_bytes = 1030"), std::string::npos);
  layout.frame_bytes = 1032;
  layout.n_channels = 3;
  EXPECT_NE(refusal_of(layout).find("1, 2, 4, 8"), std::string::npos);
  EXPECT_THROW(vdif_station("Eff"), ConfigError);
  EXPECT_THROW(vdif_station("65536"), ConfigError);
  EXPECT_THROW(vdif_station("1a"), ConfigError);
  EXPECT_EQ(vdif_station("017"), 17);
  EXPECT_EQ(vdif_station("17"), 17);
  EXPECT_EQ(vdif_station("E1"), 0x4531);
}

TEST(FrameLayouts, CodifCountsInPeriods) {
  FrameLayout layout = layout_of(16, true, 8, 64 + 8192);
  layout.encoding = Encoding::twos_complement;
  layout.period_s = 27;
  layout.samples_per_period = 256 * 125'000;
  const PacketDescription d = codif_packet(layout);
  EXPECT_EQ(d.extent(Axis::time), 256);
  EXPECT_EQ(d.extent(Axis::channel), 8);
  const DescribedCodec codec(d, {0, 8, 3});
  Packet packet;
  packet.stream = 2;
  packet.tick_raw = std::uint64_t{20'000'000} * 125'000 + 124'999;
  FrameBytes bytes(64 + 8192);
  ASSERT_EQ(codec.encode(packet, FrameBytes(8192), bytes), bytes.size());
  EXPECT_EQ(load_le<std::uint32_t>(bytes.data()), 124'999u);
  // 540,000,000 s are 34 epochs of 15,800,000 s and 2,800,000 s.
  EXPECT_EQ(load_le<std::uint32_t>(bytes.data() + 4), 2'800'000u);
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 34);
  EXPECT_EQ(std::to_integer<int>(bytes[9]), 16);
  EXPECT_EQ(std::to_integer<int>(bytes[10]), 0x14);  // complex, two's complement
  EXPECT_EQ(load_le<std::uint16_t>(bytes.data() + 14), 27);
  EXPECT_EQ(load_le<std::uint16_t>(bytes.data() + 16), 7);  // thread
  EXPECT_EQ(load_le<std::uint16_t>(bytes.data() + 24), 8);
  EXPECT_EQ(load_le<std::uint64_t>(bytes.data() + 32), std::uint64_t{256} * 125'000);
  Packet found;
  ASSERT_EQ(name(codec.decode(bytes, found)), "none");
  EXPECT_EQ(found.stream, 2u);
  EXPECT_EQ(found.tick_raw, packet.tick_raw);
  EXPECT_EQ(load_le<std::uint32_t>(bytes.data() + 40), 0xFEEDCAFE);  // as the reader of files has
  store_le(bytes.data() + 40, std::uint32_t{0xFEEDCAFF});
  EXPECT_EQ(name(codec.decode(bytes, found)), "magic");
}

TEST(FrameLayouts, BlocksOfRecordedStreams) {
  FrameLayout layout;
  layout.complex = true;
  layout.encoding = Encoding::twos_complement;
  layout.n_channels = 4;
  layout.n_inputs = 4;  // two antennas
  layout.frame_bytes = 4 * 4 * 2 * 100;
  layout.overlap_samples = 36;
  const PacketDescription guppi = guppi_block(layout);
  EXPECT_EQ(guppi.extent(Axis::time), 64);
  EXPECT_EQ(guppi.payload_bytes(), layout.frame_bytes);
  FrameBytes block(static_cast<std::size_t>(layout.frame_bytes));
  // [antenna][channel][time][polarization][part]
  const auto at = [&](int a, int c, int t, int p, int part) -> std::byte& {
    return block[static_cast<std::size_t>((((a * 4 + c) * 100 + t) * 2 + p) * 2 + part)];
  };
  at(1, 2, 63, 1, 1) = std::byte{0x85};
  const PayloadMap map(guppi);
  EXPECT_EQ(map.part(block.data(), 2, 63, 3, 1), -123);
  layout.conjugate = true;
  EXPECT_EQ(PayloadMap(guppi_block(layout)).part(block.data(), 2, 63, 3, 1), 123);
  at(1, 2, 63, 1, 1) = std::byte{0x80};
  EXPECT_EQ(PayloadMap(guppi_block(layout)).part(block.data(), 2, 63, 3, 1), 127);
  layout.axis_order = "PFT256";
  const PacketDescription dada = dada_block(layout);
  EXPECT_EQ(dada.payload_bytes(), 4 * 4 * 256 * 2);
  layout.axis_order = "FTP";
  EXPECT_THROW(dada_block(layout), ConfigError);
  layout.axis_order = "TFP";
  EXPECT_EQ(dada_block(layout).extent(Axis::time), 128);
}

}  // namespace
}  // namespace ryle::wire
