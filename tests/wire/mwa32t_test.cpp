// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/mwa32t.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace ryle::wire {
namespace {

std::vector<std::byte> packet_bytes(std::uint8_t receiver, std::uint16_t n, std::uint64_t first) {
  // Written out by hand, sharing nothing with encode().
  std::vector<std::byte> bytes{std::byte{0x4D},   std::byte{0x57},   std::byte{0x33},
                               std::byte{0x32},   std::byte{1},      std::byte{receiver},
                               std::byte(n >> 8), std::byte(n & 255)};
  for (int k = 7; k >= 0; --k) bytes.push_back(std::byte((first >> (8 * k)) & 255));
  for (int k = 0; k < n * 32; ++k) bytes.push_back(std::byte((k * 7 + 3) & 255));
  return bytes;
}

TEST(Mwa32tUdp, DecodesTheHeaderByteByByte) {
  const Mwa32tGeometry geometry;
  const auto bytes = packet_bytes(3, 256, 0x0102030405060708u);
  ASSERT_EQ(bytes.size(), 8208u);
  Packet p;
  ASSERT_EQ(decode(geometry, bytes, p), Reject::none);
  EXPECT_EQ(p.stream, 3u);
  EXPECT_EQ(p.tick_raw, 0x0102030405060708u);
  EXPECT_EQ(p.tick_bits, 64);
  EXPECT_EQ(p.n_ticks, 256u);
  EXPECT_EQ(p.input, 48u);
  EXPECT_EQ(p.n_inputs, 16u);
  EXPECT_EQ(p.payload_offset, 16u);
  EXPECT_EQ(p.payload_bytes, 8192u);
}

TEST(Mwa32tUdp, EncodeInvertsDecode) {
  std::mt19937_64 random(2);
  for (const std::uint32_t n : {1u, 44u, 256u, 2046u}) {
    Mwa32tGeometry geometry;
    geometry.n_instants = n;
    const auto bytes = packet_bytes(static_cast<std::uint8_t>(random() % 4),
                                    static_cast<std::uint16_t>(n), random());
    Packet p;
    ASSERT_EQ(decode(geometry, bytes, p), Reject::none);
    std::vector<std::byte> again(bytes.size() + 8, std::byte{0xCD});
    ASSERT_EQ(
        encode(geometry, p, std::span(bytes).subspan(p.payload_offset, p.payload_bytes), again),
        bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), again.begin()));
    for (std::size_t k = bytes.size(); k < again.size(); ++k) EXPECT_EQ(again[k], std::byte{0xCD});
  }
}

// IN-07
TEST(Mwa32tUdp, RejectsEveryOtherLength) {
  const Mwa32tGeometry geometry;
  auto bytes = packet_bytes(0, 256, 0);
  bytes.resize(65507);
  for (const std::size_t size : {0u, 1u, 7u, 15u, 16u, 1500u, 8207u, 8209u, 9000u, 65507u}) {
    Packet p;
    p.stream = 77;
    // A copy of exactly this size, so that a sanitizer sees any read beyond it.
    const std::vector<std::byte> exact(bytes.begin(),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(decode(geometry, exact, p), size < 8208 ? Reject::too_short : Reject::too_long)
        << size;
    EXPECT_EQ(p.stream, 77u) << "a refused packet must leave the result alone";
  }
}

TEST(Mwa32tUdp, RejectsWrongFields) {
  const Mwa32tGeometry geometry;
  Packet p;
  auto with = [](std::size_t offset, std::uint8_t value) {
    auto bytes = packet_bytes(0, 256, 0);
    bytes[offset] = std::byte{value};
    return bytes;
  };
  EXPECT_EQ(decode(geometry, with(0, 0), p), Reject::magic);
  EXPECT_EQ(decode(geometry, with(4, 2), p), Reject::version);
  EXPECT_EQ(decode(geometry, with(5, 4), p), Reject::foreign_stream);
  EXPECT_EQ(decode(geometry, with(5, 255), p), Reject::foreign_stream);
  EXPECT_EQ(decode(geometry, with(7, 1), p), Reject::length);
  EXPECT_EQ(decode(geometry, with(6, 255), p), Reject::length);
  Mwa32tGeometry any = geometry;
  any.n_instants = 0;
  EXPECT_EQ(decode(any, with(6, 0), p), Reject::length);  // n = 0
  EXPECT_EQ(decode(any, with(6, 255), p), Reject::length);
  EXPECT_EQ(decode(any, with(6, 2), p), Reject::too_short);
  EXPECT_EQ(decode(any, packet_bytes(0, 44, 0), p), Reject::none);
}

TEST(Mwa32tUdp, EncodeRejectsWhatDoesNotFit) {
  const Mwa32tGeometry geometry;
  std::vector<std::byte> payload(8192), out(8208);
  Packet p;
  p.n_ticks = 256;
  EXPECT_EQ(encode(geometry, p, payload, out), 8208u);
  EXPECT_EQ(encode(geometry, p, payload, std::span(out).first(8207)), 0u);
  EXPECT_EQ(encode(geometry, p, std::span(payload).first(8190), out), 0u);
  p.stream = 4;
  EXPECT_EQ(encode(geometry, p, payload, out), 0u);
  p.stream = 0;
  p.n_ticks = 255;
  EXPECT_EQ(encode(geometry, p, payload, out), 0u);
}

TEST(Mwa32tWord, RoundTripsAllSamplesAndIgnoresSpareBits) {
  for (int re = -16; re < 16; ++re) {
    for (int im = -16; im < 16; ++im) {
      const ci8 sample{static_cast<std::int8_t>(re), static_cast<std::int8_t>(im)};
      const std::uint16_t word = pack_mwa32t_word(sample);
      ASSERT_EQ(word & 0xFC00, 0);
      ASSERT_EQ(unpack_mwa32t_word(word), sample);
      ASSERT_EQ(unpack_mwa32t_word(word | 0xFC00), sample);
      ASSERT_EQ(unpack_mwa32t_word(pack_mwa32t_word(sample, 5, 0), 5, 0), sample);
      ASSERT_EQ(unpack_mwa32t_word(pack_mwa32t_word(sample, 11, 3), 11, 3), sample);
    }
  }
  // By hand: real 1 in bit 0, imaginary -1 in bits 9..5.
  EXPECT_EQ(pack_mwa32t_word({1, -1}), 0x03E1);
  SampleLayout layout;
  layout.format = SampleFormat::ci5;
  const std::uint16_t word = pack_mwa32t_word({-16, 7});
  EXPECT_EQ(decode_sample(layout, &word, 0, 0), cf64(-16, 7));
}

TEST(Mwa32tMarker, CounterFindsTheNearestInstant) {
  Mwa32tMarker marker;
  marker.value = 65000;
  for (const std::int64_t expected :
       {std::int64_t{0}, std::int64_t{70'000}, std::int64_t{1} << 40}) {
    for (const std::int64_t jump : {0, 1, -1, 100, -100, 32767, -32768}) {
      const auto check =
          check_mwa32t_marker(marker, mwa32t_marker_word(marker, expected + jump), expected);
      EXPECT_TRUE(check.valid);
      EXPECT_EQ(check.instant, expected + jump);
    }
    // IN-12: jumps of a whole turn and around it are congruent; 65 535 looks like -1, 65 536 like
    // 0, 65 537 like +1.
    for (const std::int64_t jump : {65535, 65536, 65537}) {
      const auto check =
          check_mwa32t_marker(marker, mwa32t_marker_word(marker, expected + jump), expected);
      EXPECT_EQ(check.instant, expected + jump - 65536);
    }
  }
}

TEST(Mwa32tMarker, OtherWidthsAndIncrements) {
  for (const int bits : {4, 9, 16}) {
    for (const std::uint32_t increment : {1u, 3u, 7u, 2u, 12u, 0xFFFFFFFFu}) {
      Mwa32tMarker marker;
      marker.bits = bits;
      marker.increment = increment;
      marker.value = 5;
      for (std::int64_t t = 1000; t < 1600; ++t) {
        const auto word = mwa32t_marker_word(marker, t + 1);
        ASSERT_EQ(word >> bits, 0);
        const auto check = check_mwa32t_marker(marker, word, t);
        ASSERT_TRUE(check.valid);
        ASSERT_EQ(check.instant, t + 1) << bits << " " << increment;
      }
    }
  }
  Mwa32tMarker even;
  even.increment = 2;
  EXPECT_FALSE(check_mwa32t_marker(even, 7, 0).valid);  // no instant has an odd marker
}

TEST(Mwa32tMarker, ConstantAndIgnore) {
  Mwa32tMarker marker;
  marker.mode = MarkerMode::constant;
  marker.bits = 12;
  marker.value = 0xABC;
  EXPECT_TRUE(check_mwa32t_marker(marker, 0x5ABC, 9).valid);
  EXPECT_EQ(check_mwa32t_marker(marker, 0x5ABC, 9).instant, 9);
  EXPECT_FALSE(check_mwa32t_marker(marker, 0x5ABD, 9).valid);
  marker.mode = MarkerMode::ignore;
  EXPECT_TRUE(check_mwa32t_marker(marker, 0x1234, 9).valid);
}

TEST(Mwa32tGroup, IsSeventeenLittleEndianWords) {
  std::array<std::uint16_t, 16> words;
  for (int k = 0; k < 16; ++k)
    words[static_cast<std::size_t>(k)] = static_cast<std::uint16_t>(0x100 * k + 1);
  std::array<std::byte, 36> out;
  out.fill(std::byte{0xCD});
  encode_mwa32t_group(Mwa32tMarker{}, 0x10203, words, std::span<std::byte, 34>(out.data() + 1, 34));
  EXPECT_EQ(out[0], std::byte{0xCD});
  EXPECT_EQ(out[35], std::byte{0xCD});
  EXPECT_EQ(out[1], std::byte{0x03});
  EXPECT_EQ(out[2], std::byte{0x02});
  EXPECT_EQ(out[3], std::byte{0x01});
  EXPECT_EQ(out[4], std::byte{0x00});
  EXPECT_EQ(out[33], std::byte{0x01});
  EXPECT_EQ(out[34], std::byte{0x0F});
}

TEST(Reject, EveryReasonHasAName) {
  for (int k = 0; k < 10; ++k) EXPECT_NE(name(static_cast<Reject>(k)), "unknown");
  EXPECT_EQ(name(Reject::foreign_stream), "foreign_stream");
  EXPECT_EQ(name(Reject::sender_invalid), "sender_invalid");
}

}  // namespace
}  // namespace ryle::wire
