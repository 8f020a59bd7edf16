// SPDX-License-Identifier: BSD-3-Clause
// The codecs but MWA-32T's: headers written out by hand, round trips, lengths (IN-07), ids, and
// damage.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "ryle/wire/best2.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"
#include "ryle/wire/mwa32t.hpp"
#include "ryle/wire/spead.hpp"
#include "ryle/wire/vdif.hpp"
#include "tests/support/data_path.hpp"
#include "tests/wire/support.hpp"

namespace ryle::wire {
namespace {

using test::Bytes;
using test::bytes_of;
using test::expect_mutations_survive;
using test::expect_rejected_lengths;
using test::expect_round_trip;
using test::reason_with;

Bytes slurp(const std::string& path, std::size_t offset, std::size_t size) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  Bytes bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  return bytes;
}

// ---- LWA ----

const Bytes kTbf = bytes_of(
    {0xDE, 0xC0, 0xDE, 0x5C, 1, 0, 1, 2, 0, 0, 0, 0, 2, 0x80, 0, 64, 1, 2, 3, 4, 5, 6, 7, 8},
    24 * 64);
const Bytes kTbx = bytes_of({0xDE, 0xC0, 0xDE, 0x5C, 8, 0,  1, 2, 0, 0, 0, 0, 0, 0,
                             8,    0x80, 0,    64,   0, 12, 1, 2, 3, 4, 5, 6, 7, 8},
                            24 * 64);
const Bytes kTbn = bytes_of(
    {0xDE, 0xC0, 0xDE, 0x5C, 0, 0, 3, 0x48, 0, 9, 0x47, 0x8E, 0, 20, 0, 15, 1, 2, 3, 4, 5, 6, 7, 8},
    1024);

TEST(LwaTbf, HeaderLengthsAndDamage) {
  TbfGeometry geometry{.n_stands = 64, .first_channel = 640 - 24, .n_streams = 10};
  const Packet p = expect_round_trip(geometry, kTbf);
  EXPECT_EQ(p.channel, 640u);
  EXPECT_EQ(p.stream, 2u);
  EXPECT_EQ(p.n_channels, 12u);
  EXPECT_EQ(p.n_inputs, 128u);
  EXPECT_EQ(p.tick_raw, 0x0102030405060708u);
  EXPECT_EQ(p.flags, 0x01000102u);
  expect_rejected_lengths(geometry, kTbf);
  expect_mutations_survive(TbfGeometry{.n_stands = 0}, kTbf);
  EXPECT_EQ(reason_with(geometry, kTbf, 0, 0), "magic");
  EXPECT_EQ(reason_with(geometry, kTbf, 4, 8), "field");
  EXPECT_EQ(reason_with(geometry, kTbf, 15, 63), "field");
  EXPECT_EQ(reason_with(geometry, kTbf, 13, 0x81), "foreign_stream");  // 641: between two streams
  EXPECT_EQ(reason_with(geometry, kTbf, 12, 0), "foreign_stream");     // 128
  EXPECT_EQ(reason_with(geometry, kTbf, 12, 0xFF), "field");           // 65408: beyond 4096
  EXPECT_EQ(reason_with(TbfGeometry{.n_stands = 0}, kTbf, 14, 0xFF), "field");  // 65344 stands
}

TEST(LwaTbx, HeaderLengthsAndDamage) {
  TbxGeometry geometry{.first_channel = 2176, .n_streams = 26};
  const Packet p = expect_round_trip(geometry, kTbx);
  EXPECT_EQ(p.channel, 2176u);
  EXPECT_EQ(p.stream, 0u);
  EXPECT_EQ(p.payload_offset, 28u);
  expect_rejected_lengths(geometry, kTbx);
  expect_mutations_survive(TbxGeometry{.n_stands = 0, .n_channels = 0}, kTbx);
  EXPECT_EQ(reason_with(geometry, kTbx, 4, 1), "field");
  EXPECT_EQ(reason_with(geometry, kTbx, 12, 0xFF),
            "field");  // channel 4 278 192 256: no wrap-around
  EXPECT_EQ(reason_with(geometry, kTbx, 14, 7), "foreign_stream");
  EXPECT_EQ(reason_with(geometry, kTbx, 19, 0), "field");
  EXPECT_EQ(reason_with(TbxGeometry{.n_stands = 0, .n_channels = 0}, kTbx, 18, 0xFF), "field");
}

TEST(LwaTbn, HeaderLengthsAndDamage) {
  const TbnGeometry geometry;
  const Packet p = expect_round_trip(geometry, kTbn);
  EXPECT_EQ(p.stream, 19u);
  EXPECT_EQ(p.channel, 0x9478Eu);
  EXPECT_EQ(p.flags, 0x0F000348u);
  EXPECT_EQ(p.n_ticks, 512u);
  expect_rejected_lengths(geometry, kTbn);
  expect_mutations_survive(geometry, kTbn);
  EXPECT_EQ(reason_with(geometry, kTbn, 13, 0), "foreign_stream");  // id 0: input -1 if trusted
  EXPECT_EQ(reason_with(TbnGeometry{.n_inputs = 19}, kTbn, 13, 20), "foreign_stream");
  EXPECT_EQ(reason_with(geometry, kTbn, 12, 0x80), "field");  // TBW
}

TEST(LwaFrames, RealOnesRoundTrip) {
  {
    RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
    for (std::size_t k = 0; k < 26; ++k)
      expect_round_trip(TbxGeometry{}, slurp(path, k * 1564, 1564));
  }
  {
    RYLE_REQUIRE_DATA(path, "lwa/tbf-mini-test.dat");
    for (std::size_t k = 0; k < 7; ++k)
      expect_round_trip(TbfGeometry{.n_stands = 64}, slurp(path, k * 1560, 1560));
  }
  {
    RYLE_REQUIRE_DATA(path, "lwa/tbf-test.dat");
    const TbfGeometry geometry{.write_second = true};
    for (std::size_t k = 0; k < 5; ++k) expect_round_trip(geometry, slurp(path, k * 6168, 6168));
  }
  RYLE_REQUIRE_DATA(path, "lwa/tbn-test.dat");
  for (std::size_t k = 0; k < 29; ++k)
    expect_round_trip(TbnGeometry{}, slurp(path, k * 1048, 1048));
}

TEST(LwaFrames, AreIdentifiedByTheirFirstBytes) {
  EXPECT_EQ(identify_lwa_frame(kTbf).kind, LwaKind::tbf);
  EXPECT_EQ(identify_lwa_frame(kTbf).bytes, 1560u);
  EXPECT_EQ(identify_lwa_frame(kTbx).bytes, 1564u);
  EXPECT_EQ(identify_lwa_frame(kTbn).bytes, 1048u);
  EXPECT_EQ(identify_lwa_frame(std::span(kTbn).first(27)).kind, LwaKind::none);
  Bytes other = kTbn;
  other[4] = std::byte{9};
  EXPECT_EQ(identify_lwa_frame(other).kind, LwaKind::drx);
  other[3] = std::byte{0};
  EXPECT_EQ(identify_lwa_frame(other).kind, LwaKind::none);
}

// ---- VDIF ----

TEST(Vdif, RealFramesRoundTrip) {
  {
    RYLE_REQUIRE_DATA(path, "baseband/sample.vdif");
    VdifGeometry geometry{.frame_bytes = 5032, .n_streams = 8, .frames_per_second = 1600};
    for (std::size_t k = 0; k < 16; ++k) {
      const Bytes bytes = slurp(path, k * 5032, 5032);
      std::memcpy(geometry.extended.data(), bytes.data() + 16, 16);
      const Packet p = expect_round_trip(geometry, bytes);
      EXPECT_EQ(p.tick_raw, 14363767u * std::uint64_t{1600} + k / 8);
      EXPECT_EQ(p.n_ticks, 20000u);
    }
    const Bytes bytes = slurp(path, 0, 5032);
    expect_rejected_lengths(geometry, bytes);
    VdifHeader header;
    ASSERT_EQ(parse_vdif_header(bytes, header), Reject::none);
    EXPECT_EQ(header.sample_rate_hz, 32000000u);
    EXPECT_EQ(header.station, 0xFFFCu);
    EXPECT_EQ(header.bits, 2u);
  }
  {
    RYLE_REQUIRE_DATA(path, "baseband/sample_mwa.vdif");
    for (std::size_t k = 0; k < 10; ++k)
      expect_round_trip(VdifGeometry{}, slurp(path, k * 544, 544));
  }
  RYLE_REQUIRE_DATA(path, "baseband/sample_arochime.vdif");
  for (std::size_t k = 0; k < 10; ++k) {
    const Packet p = expect_round_trip(VdifGeometry{}, slurp(path, k * 1056, 1056));
    EXPECT_EQ(p.n_channels, 1024u);
    EXPECT_EQ(p.n_ticks, 1u);
    EXPECT_EQ(p.tick_raw, std::uint64_t{514629935} << 24 | (308109 + k / 2));
    EXPECT_EQ(p.tick_bits, 54);
  }
}

// Legacy: 16 bytes of header. Second 5 of epoch 3, frame 9, 4 channels, 24 bytes, 4 bits complex,
// thread 2, station "AB".
const Bytes kLegacy = bytes_of({5, 0, 0, 0x40, 9, 0, 0, 3, 3, 0, 0, 2, 0x41, 0x42, 2, 0x8C}, 8);

TEST(Vdif, LegacyLengthsAndDamage) {
  const VdifGeometry geometry{.frame_bytes = 24, .n_streams = 3};
  const Packet p = expect_round_trip(geometry, kLegacy);
  EXPECT_EQ(p.n_channels, 4u);
  EXPECT_EQ(p.n_ticks, 2u);
  EXPECT_EQ(p.stream, 2u);
  EXPECT_EQ(p.flags & 63, 3u);
  expect_rejected_lengths(geometry, kLegacy);
  expect_mutations_survive(VdifGeometry{}, kLegacy);
  EXPECT_EQ(reason_with(geometry, kLegacy, 3, 0xC0), "sender_invalid");
  EXPECT_EQ(reason_with(geometry, kLegacy, 8, 2), "length");  // no payload
  EXPECT_EQ(reason_with(geometry, kLegacy, 8, 0), "length");
  EXPECT_EQ(reason_with(geometry, kLegacy, 8, 4), "length");  // not the configured one
  EXPECT_EQ(reason_with(geometry, kLegacy, 14, 3), "foreign_stream");
  EXPECT_EQ(reason_with(geometry, kLegacy, 11, 31), "field");  // 2^31 channels do not fit 8 bytes
  EXPECT_EQ(reason_with(VdifGeometry{.frames_per_second = 9}, kLegacy, 4, 9), "field");
  EXPECT_EQ(reason_with(VdifGeometry{.frames_per_second = 10}, kLegacy, 4, 9), "none");
}

TEST(Vdif, UnknownExtendedDataIsNotRejected) {
  RYLE_REQUIRE_DATA(path, "baseband/sample.vdif");
  EXPECT_EQ(reason_with(VdifGeometry{}, slurp(path, 0, 5032), 19, 0x77), "none");
  Bytes bytes = slurp(path, 0, 5032);
  bytes[20] = std::byte{0};  // the sync of EDV 3 damaged: its rate must not be believed
  VdifHeader header;
  ASSERT_EQ(parse_vdif_header(bytes, header), Reject::none);
  EXPECT_EQ(header.sample_rate_hz, 0u);
}

// ---- BEST-2, CHIPS, SPEAD ----

TEST(Best2, HeaderLengthsAndDamage) {
  // Block 0x123456789 and wire channel 5 = 0b101: word = block << 26 | 5 << 16.
  const std::uint64_t word = std::uint64_t{0x123456789} << 26 | std::uint64_t{5} << 16;
  Bytes bytes;
  for (int k = 7; k >= 0; --k) bytes.push_back(std::byte((word >> (8 * k)) & 255));
  bytes.resize(4104, std::byte{0x88});
  const DescribedCodec all(best2_packet(), {0, 1024, 1});
  const Packet p = expect_round_trip(all, bytes);
  EXPECT_EQ(p.tick_raw, 0x123456789u);
  EXPECT_EQ(p.tick_bits, 38);
  EXPECT_EQ(p.channel, 514u);  // odd: 512 + (5-1)/2
  expect_rejected_lengths(all, bytes);
  expect_mutations_survive(all, bytes);
  const auto taken = [](std::uint32_t first, std::uint32_t n) {
    return DescribedCodec(best2_packet(), {first, n, 1});
  };
  EXPECT_EQ(reason_with(taken(515, 10), bytes, 8, 0), "foreign_stream");
  EXPECT_EQ(reason_with(taken(500, 14), bytes, 8, 0), "foreign_stream");
  EXPECT_EQ(reason_with(taken(500, 15), bytes, 8, 0), "none");
  EXPECT_EQ(reason_with(all, bytes, 7, 0xFF), "none");  // low 16 bits are ignored
  std::vector<int> seen(1024, 0);
  for (int c = 0; c < 1024; ++c) {
    bytes[4] = std::byte((word >> 24 & 0xFC) | (c >> 8));
    bytes[5] = std::byte(c & 255);
    ++seen[expect_round_trip(all, bytes).channel];
  }
  EXPECT_EQ(seen, std::vector<int>(1024, 1));
}

TEST(Best2, PayloadIndexIsAPermutation) {
  const PayloadMap map(best2_packet());
  const auto index = [&](std::size_t antenna, std::size_t sample) {
    return static_cast<std::size_t>(map.bits(Axis::input)[antenna] + map.bits(Axis::time)[sample]) /
           8;
  };
  std::vector<int> seen(4096, 0);
  for (std::size_t a = 0; a < 32; ++a) {
    for (std::size_t t = 0; t < 128; ++t) ++seen[index(a, t)];
  }
  EXPECT_EQ(seen, std::vector<int>(4096, 1));
  EXPECT_EQ(index(3, 5), 256u + 10 + 1);
}

const Bytes kChips = bytes_of({2, 1, 3, 22, 5, 16, 0x0A, 0x28, 0, 0, 0, 1, 0, 0, 0, 1}, 96);

TEST(Chips, HeaderLengthsAndDamage) {
  const ChipsGeometry geometry;
  const Packet p = expect_round_trip(geometry, kChips);
  EXPECT_EQ(p.stream, 1u);
  EXPECT_EQ(p.input, 32u);
  EXPECT_EQ(p.tick_raw, std::uint64_t{1} << 32);
  EXPECT_EQ(p.channel, 2600u);
  EXPECT_EQ(p.n_channels, 3u);
  expect_rejected_lengths(geometry, kChips);
  expect_mutations_survive(geometry, kChips);
  EXPECT_EQ(reason_with(geometry, kChips, 0, 0), "field");
  EXPECT_EQ(reason_with(geometry, kChips, 0, 17), "foreign_stream");
  EXPECT_EQ(reason_with(geometry, kChips, 2, 0), "field");
  EXPECT_EQ(reason_with(geometry, kChips, 2, 255), "too_short");
  EXPECT_EQ(reason_with(ChipsGeometry{.n_channels = 4}, kChips, 2, 3), "length");
  Bytes zero = kChips;
  std::fill_n(zero.begin() + 8, 8, std::byte{0});  // the counter is 1-based
  EXPECT_EQ(reason_with(geometry, zero, 1, 1), "field");
}

Bytes spead_packet(std::vector<std::pair<int, std::uint64_t>> items, std::size_t payload) {
  Bytes bytes = bytes_of({0x53, 4, 2, 6, 0, 0, static_cast<int>(items.size() >> 8),
                          static_cast<int>(items.size() & 255)});
  for (const auto& [id, value] : items) {
    const std::uint64_t word = std::uint64_t{1} << 63 | std::uint64_t(id) << 48 | value;
    for (int k = 7; k >= 0; --k) bytes.push_back(std::byte((word >> (8 * k)) & 255));
  }
  for (std::size_t k = 0; k < payload; ++k) bytes.push_back(std::byte(k & 255));
  return bytes;
}

constexpr std::uint64_t kTime = 0xABCDEF012345;
const std::vector<std::pair<int, std::uint64_t>> kItems{
    {1, kTime}, {2, 4096}, {3, 1024}, {4, 1024}, {0x1600, kTime}, {0x4101, 7}, {0x4103, 2048}};

std::string spead_reason(const Bytes& bytes) {
  SpeadPacket ignored;
  return std::string(name(parse_spead(bytes, ignored)));
}

TEST(Spead, HeaderLengthsAndDamage) {
  const Bytes good = spead_packet(kItems, 1024);
  SpeadPacket p;
  ASSERT_EQ(parse_spead(good, p), Reject::none);
  EXPECT_EQ(p.heap_counter, kTime);
  EXPECT_EQ(p.heap_bytes, 4096u);
  EXPECT_EQ(p.offset, 1024u);
  EXPECT_EQ(p.payload_offset, 64u);
  EXPECT_EQ(p.n_items, 3u);
  ASSERT_NE(p.find(kSpeadFrequency), nullptr);
  EXPECT_EQ(p.find(kSpeadFrequency)->value, 2048u);
  EXPECT_EQ(p.find(kSpeadFengRaw), nullptr);
  Bytes again(good.size(), std::byte{0xCD});
  EXPECT_EQ(write_spead_header(p, again), 64u);
  EXPECT_TRUE(std::equal(again.begin(), again.begin() + 64, good.begin()));
  EXPECT_EQ(write_spead_header(p, std::span(again).first(63)), 0u);
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_EQ(spead_reason(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n))),
              "too_short");
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(spead_reason(longer), "too_long");
  const auto with = [&](std::size_t at, int value) {
    Bytes bytes = good;
    bytes[at] = std::byte(value);
    return spead_reason(bytes);
  };
  EXPECT_EQ(with(0, 0x52), "magic");
  EXPECT_EQ(with(1, 3), "version");
  EXPECT_EQ(with(2, 3), "version");       // nine bytes of pointer
  EXPECT_EQ(with(6, 0xFF), "too_short");  // 65 287 items
  const auto changed = [&](std::size_t k, std::uint64_t value) {
    auto items = kItems;
    items[k].second = value;
    return spead_reason(spead_packet(items, 1024));
  };
  const std::uint64_t all = (std::uint64_t{1} << 48) - 1;
  EXPECT_EQ(changed(2, 3073), "length");  // runs past the heap
  EXPECT_EQ(changed(2, all), "length");   // no overflow
  EXPECT_EQ(changed(3, all), "length");
  EXPECT_EQ(changed(1, 2047), "length");
  EXPECT_EQ(changed(3, 0), "too_long");
  for (std::size_t k = 0; k < 4; ++k) {
    auto items = kItems;
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(k));
    EXPECT_EQ(spead_reason(spead_packet(items, 1024)), "field") << k;
  }
  auto many = kItems;
  for (std::size_t k = many.size(); k < 5 + SpeadPacket::kMaxItems; ++k)
    many.emplace_back(0x5000, k);
  EXPECT_EQ(spead_reason(spead_packet(many, 1024)), "field");
}

// As the spead2 package sends unless told otherwise: three bytes of id, five of address.
TEST(Spead, IdsAndAddressesOfOtherWidths) {
  Bytes bytes = bytes_of({0x53, 4, 3, 5, 0, 0, 0, 6});
  const auto put = [&bytes](bool immediate, std::uint64_t id, std::uint64_t value) {
    const std::uint64_t word = std::uint64_t{immediate} << 63 | id << 40 | value;
    for (int k = 7; k >= 0; --k) bytes.push_back(std::byte(word >> 8 * k & 255));
  };
  put(true, 1, 9);
  put(true, 2, 24);
  put(true, 3, 0);
  put(true, 4, 24);
  put(false, kSpeadFengRaw, 8);
  put(false, kSpeadTimestamp, 0);
  bytes.resize(bytes.size() + 24);
  SpeadPacket p;
  ASSERT_EQ(parse_spead(bytes, p), Reject::none);
  EXPECT_EQ(p.address_bits, 40);
  EXPECT_EQ(p.end_of(*p.find(kSpeadTimestamp)), 8u);
  EXPECT_EQ(p.end_of(*p.find(kSpeadFengRaw)), 24u);
}

TEST(Spead, StopsAndDescriptors) {
  SpeadPacket p;
  auto items = kItems;
  items.emplace_back(6, 0);
  ASSERT_EQ(parse_spead(spead_packet(items, 1024), p), Reject::none);
  EXPECT_FALSE(p.is_stop());
  items.back().second = 2;
  ASSERT_EQ(parse_spead(spead_packet(items, 1024), p), Reject::none);
  EXPECT_TRUE(p.is_stop());
  const std::string numpy = "{'descr': '|i1', 'fortran_order': False, 'shape': (4, 256, 2, 2)}";
  const auto bytes = spead_descriptor(kSpeadFengRaw, "feng_raw", "samples", numpy);
  const auto d = parse_spead_descriptor(bytes);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->id, kSpeadFengRaw);
  EXPECT_EQ(d->name, "feng_raw");
  EXPECT_EQ(d->numpy, numpy);
  EXPECT_EQ(parse_spead_descriptor(spead_descriptor(1, "n", "", ""))->numpy, "");
  EXPECT_FALSE(parse_spead_descriptor(std::span(bytes).first(bytes.size() - 1)));
}

TEST(Mwa32tUdp, Mutations) {
  Bytes bytes = bytes_of({0x4D, 0x57, 0x33, 0x32, 1, 2, 0, 44, 0, 0, 0, 0, 0, 0, 1, 0}, 44 * 32);
  Mwa32tGeometry geometry;
  geometry.n_instants = 0;
  expect_mutations_survive(geometry, bytes);
  geometry.n_instants = 44;
  expect_round_trip(geometry, bytes);
}

}  // namespace
}  // namespace ryle::wire
