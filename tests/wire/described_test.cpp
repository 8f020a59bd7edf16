// SPDX-License-Identifier: BSD-3-Clause
// Descriptions of datagrams: what is refused and why, bit fields, numbering, samples of 1 to 16
// bits and the plan of strided copies.
#include "ryle/wire/described.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ryle/core/error.hpp"
#include "ryle/wire/strided_copy.hpp"
#include "tests/wire/support.hpp"

namespace ryle::wire {
namespace {

using test::Bytes;

HeaderField field(FieldMeaning meaning, std::uint32_t offset, int bytes) {
  HeaderField f;
  f.meaning = meaning;
  f.offset = offset;
  f.bytes = bytes;
  f.n_bits = 8 * bytes;
  return f;
}

/// 16 bytes of header, then 4 instants of 3 inputs, i8.
PacketDescription small() {
  PacketDescription d;
  d.length = 28;
  d.header = {field(FieldMeaning::sequence, 0, 8), field(FieldMeaning::board, 8, 2)};
  d.payload_offset = 16;
  d.order = {{Axis::time, 4}, {Axis::input, 3}};
  d.sample.complex = false;
  return d;
}

std::string refusal(const PacketDescription& d) {
  try {
    validate(d);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

Bytes datagram(const PacketDescription& d) {
  Bytes bytes(d.length);
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = std::byte((k * 37 + 11) & 255);
  return bytes;
}

TEST(Described, RejectionsSayWhatIsWrong) {
  EXPECT_EQ(refusal(small()), "");
  auto d = small();
  d.length = 30;
  EXPECT_EQ(refusal(d),
            "payload.extents: 12 samples of 8 bits take 12 bytes, the payload has 14 (length - "
            "offset - trailer = 30 - 16 - 0)");
  d = small();
  d.header[1].offset = 6;
  EXPECT_EQ(refusal(d),
            "header field \"board\" at offset 6 overlaps header field \"sequence\" at offset 0 in "
            "byte 7");
  d = small();
  d.header[1].offset = 15;
  EXPECT_EQ(refusal(d), "header field \"board\" at offset 15 lies in the payload, bytes 16 to 27");
  d = small();
  d.header.erase(d.header.begin());
  EXPECT_EQ(refusal(d),
            "header: one field = \"sequence\" is needed, the counter that tells the time");
  d = small();
  d.ticks_per_count = 3;
  EXPECT_EQ(refusal(d),
            "header: packets of 4 ticks do not step a counter of ticks_per_count = 3 by whole "
            "counts");
  d = small();
  d.header.push_back(field(FieldMeaning::constant, 10, 1));
  EXPECT_EQ(refusal(d), "header field \"constant\" at offset 10: give value, what it always holds");
  d = small();
  d.header.push_back(field(FieldMeaning::board, 10, 1));
  EXPECT_NE(refusal(d).find("all but the first need count"), std::string::npos);
  d = small();
  d.header.push_back(field(FieldMeaning::first_channel, 10, 2));
  d.header.back().count = std::int64_t{1} << 40;
  d.header.back().step = std::int64_t{1} << 40;
  EXPECT_NE(refusal(d).find("their product is 0 to 4294967296"), std::string::npos) << refusal(d);
  d.header.back().step = 1;
  d.header.back().count = -1;
  EXPECT_NE(refusal(d).find("count = -1"), std::string::npos) << refusal(d);
}

TEST(Described, HeaderLengthsAndDamage) {
  auto d = small();
  d.header.push_back(field(FieldMeaning::constant, 10, 1));
  d.header.back().values = {7, 9};
  const DescribedCodec codec(d, {0, 0, 1000});
  Bytes bytes = datagram(d);
  bytes[8] = std::byte{1};
  bytes[9] = std::byte{2};
  bytes[10] = std::byte{9};
  Packet p;
  ASSERT_EQ(name(codec.decode(bytes, p)), "none");
  EXPECT_EQ(p.stream, 258u);
  EXPECT_EQ(p.input, 258u * 3);
  EXPECT_EQ(p.n_ticks, 4u);
  EXPECT_EQ(p.tick_bits, 64);
  EXPECT_EQ(p.payload_offset, 16u);
  EXPECT_EQ(p.payload_bytes, 12u);
  for (std::size_t size = 0; size < 60; ++size) {
    Bytes other = bytes;
    other.resize(size);
    Packet q;
    EXPECT_EQ(name(codec.decode(other, q)), size < 28   ? "too_short"
                                            : size > 28 ? "too_long"
                                                        : "none");
  }
  bytes[10] = std::byte{8};
  EXPECT_EQ(name(codec.decode(bytes, p)), "magic");
  bytes[10] = std::byte{7};
  bytes[8] = std::byte{4};
  EXPECT_EQ(name(codec.decode(bytes, p)), "foreign_stream");
}

TEST(Described, DamagedDatagramsAreRejectedOrDecodeAgain) {
  auto d = small();
  d.order = {{Axis::channel, 2}, {Axis::input, 6}};
  d.header.push_back(field(FieldMeaning::first_channel, 12, 2));
  d.header.back().big_endian = false;
  d.header.back().step = 2;
  d.header.push_back(field(FieldMeaning::constant, 10, 1));
  d.header.back().values = {0xA5};
  d.header[0].base = 1;
  const DescribedCodec codec(d, {4, 1024, 64});
  Packet p;
  p.stream = 300;
  p.tick_raw = 77;
  Bytes good(d.length);
  ASSERT_EQ(codec.encode(p, Bytes(12, std::byte{3}), good), good.size());
  test::expect_round_trip(codec, good);
  test::expect_rejected_lengths(codec, good);
  test::expect_mutations_survive(codec, good);
}

TEST(Described, BitFieldsOfOneWord) {
  PacketDescription d = small();
  d.header = {field(FieldMeaning::sequence, 0, 8), field(FieldMeaning::board, 0, 8)};
  d.header[0].low_bit = 26;
  d.header[0].n_bits = 38;
  d.header[1].low_bit = 16;
  d.header[1].n_bits = 10;
  for (const bool big : {true, false}) {
    for (auto& f : d.header) f.big_endian = big;
    const DescribedCodec codec(d, {0, 0, 1024});
    Packet p, q;
    p.stream = 677;
    p.tick_raw = 0x2A'5555'AAAA & ((std::uint64_t{1} << 38) - 1);
    Bytes out(d.length);
    const Bytes payload(12, std::byte{5});
    ASSERT_EQ(codec.encode(p, payload, out), 28u);
    ASSERT_EQ(codec.decode(out, q), Reject::none);
    EXPECT_EQ(q.stream, p.stream);
    EXPECT_EQ(q.tick_raw, p.tick_raw);
    EXPECT_EQ(q.tick_bits, 38);
    const std::uint64_t word = p.tick_raw << 26 | std::uint64_t{677} << 16;
    for (int k = 0; k < 8; ++k)
      EXPECT_EQ(std::to_integer<std::uint64_t>(out[k]), word >> (8 * (big ? 7 - k : k)) & 255);
  }
}

TEST(Described, NumbersWithBaseStepMapInterleaveAndSeveralDigits) {
  PacketDescription d = small();
  d.order = {{Axis::channel, 2}, {Axis::input, 6}};
  d.header = {field(FieldMeaning::sequence, 0, 8), field(FieldMeaning::first_channel, 8, 1),
              field(FieldMeaning::board, 9, 1), field(FieldMeaning::board, 10, 1)};
  d.header[0].base = 1;
  d.header[1].base = 3;
  d.header[1].step = 2;
  d.header[2].map = {2, 0, 1};
  d.header[3].count = 2;
  d.header[3].base = 1;
  const DescribedCodec codec(d, {4, 8, 6});
  EXPECT_EQ(codec.n_streams(), 24u);
  const Bytes payload(12);
  for (std::uint32_t stream = 0; stream < 24; ++stream) {
    Packet p, q;
    p.stream = stream;
    p.tick_raw = 100 + stream;
    Bytes out(d.length);
    ASSERT_EQ(codec.encode(p, payload, out), 28u);
    EXPECT_EQ(std::to_integer<std::uint32_t>(out[8]), 3 + (4 + stream / 6 * 2) / 2);
    EXPECT_EQ(std::to_integer<std::uint32_t>(out[10]), 1 + stream % 2);
    ASSERT_EQ(codec.decode(out, q), Reject::none);
    EXPECT_EQ(q.stream, stream);
    EXPECT_EQ(q.tick_raw, p.tick_raw);
    EXPECT_EQ(q.channel, 4 + stream / 6 * 2);
    out[0] = out[1] = out[2] = out[3] = out[4] = out[5] = out[6] = out[7] = std::byte{0};
    EXPECT_EQ(name(codec.decode(out, q)), "field");  // below its base
  }
}

/// Every part of every sample is where the definition says, bit by bit.
TEST(Described, SamplesOfOneToSixteenBits) {
  std::mt19937_64 random(3);
  for (int bits = 1; bits <= 16; ++bits) {
    for (int kind = 0; kind < 16; ++kind) {
      PacketDescription d = small();
      d.sample.bits = bits;
      d.sample.complex = (kind & 1) != 0;
      d.sample.msb_first = (kind & 2) != 0;
      d.sample.re_first = (kind & 4) != 0;
      if ((kind & 8) != 0) d.sample.encoding = Encoding::offset_binary;
      d.order = {{Axis::input, 2}, {Axis::time, 4}, {Axis::input, 4}};
      d.length = 16 + static_cast<std::uint32_t>(32 * d.sample.stride_bits() / 8);
      ASSERT_EQ(refusal(d), "");
      const PayloadMap map(d);
      Bytes payload(static_cast<std::size_t>(d.payload_bytes()));
      const int half = 1 << (bits - 1);
      std::vector<int> values;
      for (int i = 0; i < 8; ++i) {
        for (int t = 0; t < 4; ++t) {
          for (int part = 0; part < d.sample.n_parts(); ++part) {
            values.push_back(static_cast<int>(random() % (2u << (bits - 1))) - half);
            map.set_part(payload.data(), 0, t, i, part, values.back());
          }
        }
      }
      std::size_t k = 0;
      for (int i = 0; i < 8; ++i) {
        for (int t = 0; t < 4; ++t) {
          for (int part = 0; part < d.sample.n_parts(); ++part, ++k) {
            ASSERT_EQ(map.part(payload.data(), 0, t, i, part), values[k]);
            // The definition: bit after bit of the payload, in the order of the axes.
            const int first = d.sample.complex && (part == 1) == d.sample.re_first ? bits : 0;
            const std::int64_t at = (i / 4 * 16 + t * 4 + i % 4) * d.sample.stride_bits() + first;
            int code = 0;
            for (int b = 0; b < bits; ++b) {
              const auto byte = std::to_integer<int>(payload[static_cast<std::size_t>(at + b) / 8]);
              const auto in_byte = static_cast<int>((at + b) % 8);
              const int bit = byte >> (d.sample.msb_first ? 7 - in_byte : in_byte) & 1;
              code |= bit << (d.sample.msb_first ? bits - 1 - b : b);
            }
            const bool offset = d.sample.encoding == Encoding::offset_binary;
            ASSERT_EQ(offset ? code - half : (code ^ half) - half, values[k])
                << bits << " " << kind;
          }
        }
      }
    }
  }
}

TEST(Described, StridedCopiesFollowTheirAxes) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 400; ++round) {
    // Axes in a random order on each side, dense.
    std::vector<CopyAxis> axes(1 + random() % 4);
    std::vector<std::size_t> order(axes.size());
    for (std::size_t k = 0; k < axes.size(); ++k) order[k] = k;
    const int element = 1 << random() % 3;
    for (auto& a : axes) a.n = 1 + static_cast<std::int64_t>(random() % (round % 2 ? 40 : 6));
    std::int64_t bytes = element;
    for (auto& a : axes) {
      a.from = bytes;
      bytes *= a.n;
    }
    std::shuffle(order.begin(), order.end(), random);
    std::int64_t to = element;
    for (const auto k : order) {
      axes[k].to = to;
      to *= axes[k].n;
    }
    if (bytes > 1 << 20) continue;
    Bytes from(static_cast<std::size_t>(bytes)), got(from.size()), want(from.size());
    for (auto& b : from) b = std::byte(random() & 255);
    const StridedCopy copy(axes, element);
    ASSERT_EQ(copy.bytes(), bytes);
    copy.run(from.data(), got.data());
    for (std::int64_t at = 0; at < bytes / element; ++at) {
      std::int64_t left = at, target = 0;
      for (const auto& a : axes) {
        target += left % a.n * a.to;
        left /= a.n;
      }
      std::copy_n(from.begin() + at * element, element, want.begin() + target);
    }
    ASSERT_EQ(got, want);
    EXPECT_TRUE(copy.equal(from.data(), got.data()));
    got[random() % got.size()] ^= std::byte{1};
    EXPECT_FALSE(copy.equal(from.data(), got.data()));
  }
}

}  // namespace
}  // namespace ryle::wire
