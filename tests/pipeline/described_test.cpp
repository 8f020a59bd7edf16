// SPDX-License-Identifier: BSD-3-Clause
// The five telescopes' packets as descriptions (examples/packets): the same stream, time, channel
// and payload as the codecs written for them, for random packets. And every message of a bad one.
#include <gtest/gtest.h>

#include <random>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/config/config_packet.hpp"
#include "ryle/wire/best2.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"
#include "ryle/wire/mwa32t.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::pipeline {
namespace {

using Bytes = std::vector<std::byte>;

wire::PacketDescription example(const std::string& name) {
  return load_packet(std::string(RYLE_SOURCE_DIR) + "/examples/packets/" + name + ".toml");
}

/// Random packets of the hand-written codec, `shape` sets what its geometry asks for: decoded by
/// both, and those of the description by the hand-written codec.
template <class Geometry, class Shape>
void expect_same(const std::string& name, const Geometry& hand, wire::DescribedGeometry streams,
                 const Shape& shape) {
  const auto packet = example(name);
  const wire::DescribedCodec codec(packet, streams);
  std::mt19937_64 random(11);
  for (int k = 0; k < 200; ++k) {
    wire::Packet sent;
    sent.tick_raw = random() >> 30;
    shape(random, sent);
    Bytes payload(static_cast<std::size_t>(packet.payload_bytes())), bytes(packet.length);
    for (auto& b : payload) b = std::byte(random() & 255);
    ASSERT_EQ(wire::encode(hand, sent, payload, bytes), bytes.size()) << name;
    wire::Packet by_hand, described;
    ASSERT_EQ(wire::decode(hand, bytes, by_hand), wire::Reject::none);
    ASSERT_EQ(wire::name(codec.decode(bytes, described)), "none") << name;
    EXPECT_EQ(described.tick_raw, by_hand.tick_raw);
    EXPECT_EQ(described.tick_bits, by_hand.tick_bits);
    EXPECT_EQ(described.n_ticks, by_hand.n_ticks);
    EXPECT_EQ(described.n_inputs, by_hand.n_inputs);
    EXPECT_EQ(described.payload_offset, by_hand.payload_offset);
    EXPECT_EQ(described.payload_bytes, by_hand.payload_bytes);
    if (packet.has_channels()) {
      EXPECT_EQ(described.channel, by_hand.channel);
    }
    EXPECT_EQ(described.stream % codec.n_boards(), by_hand.input / by_hand.n_inputs);
    // And back.
    Bytes again(packet.length);
    wire::Packet returned;
    ASSERT_EQ(codec.encode(described, payload, again), again.size());
    ASSERT_EQ(wire::name(wire::decode(hand, again, returned)), "none");
    EXPECT_EQ(returned.stream, by_hand.stream);
    EXPECT_EQ(returned.tick_raw, by_hand.tick_raw);
    EXPECT_EQ(returned.channel, by_hand.channel);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), again.begin() + packet.payload_offset));
    // Damage is rejected by both.
    Bytes shorter(bytes.begin(), bytes.end() - 1);
    EXPECT_EQ(codec.decode(shorter, returned), wire::decode(hand, shorter, returned));
  }
}

TEST(DescribedExamples, Best2) {
  // What source.format = "best2" means without a [source.packet].
  const wire::PacketDescription packet = example("best2");
  EXPECT_EQ(packet_toml(packet), packet_toml(wire::best2_packet()));
  // Word: counter in bits 63..26, channel in 25..16. Even channels are the upper half of the band.
  const wire::DescribedCodec codec(packet, {0, 1024, 1});
  for (std::uint64_t c = 0; c < 1024; ++c) {
    const std::uint64_t counter = 0x2a'5a5a'5a5aU + c, word = counter << 26 | c << 16;
    Bytes bytes(4104);
    for (std::size_t k = 0; k < 8; ++k) bytes[k] = std::byte(word >> (56 - 8 * k) & 255);
    wire::Packet decoded;
    ASSERT_EQ(wire::name(codec.decode(bytes, decoded)), "none");
    EXPECT_EQ(decoded.tick_raw, counter & ((std::uint64_t{1} << 38) - 1));
    EXPECT_EQ(decoded.channel, c % 2 == 0 ? c / 2 : 512 + (c - 1) / 2);
    EXPECT_EQ(decoded.stream, decoded.channel);
    EXPECT_EQ(decoded.n_ticks, 128u);
    EXPECT_EQ(decoded.n_inputs, 32u);
  }
}

TEST(DescribedExamples, Chips) {
  expect_same("chips", wire::ChipsGeometry{16, 132}, {1600, 264, 16},
              [](auto& random, wire::Packet& p) {
                p.stream = static_cast<std::uint32_t>(random() % 16);
                p.channel = 1600 + 132 * static_cast<std::uint32_t>(random() % 2);
                p.n_channels = 132;
              });
}

TEST(DescribedExamples, Tbf) {
  expect_same("tbf", wire::TbfGeometry{256, 600, 20, false}, {600, 240, 1},
              [](auto& random, wire::Packet& p) {
                p.channel = 600 + 12 * static_cast<std::uint32_t>(random() % 20);
                p.n_channels = 12;
                p.n_inputs = 512;
                p.flags = (random() % 2 != 0 ? 1u : 5u) << 24 | (random() & 0xFFFF);
              });
}

TEST(DescribedExamples, Tbx) {
  expect_same("tbx", wire::TbxGeometry{64, 12, 600, 20}, {600, 240, 1},
              [](auto& random, wire::Packet& p) {
                p.channel = 600 + 12 * static_cast<std::uint32_t>(random() % 20);
                p.n_channels = 12;
                p.n_inputs = 128;
                p.flags = 8u << 24 | (random() & 0xFFFF);
              });
}

TEST(DescribedExamples, Mwa32t) {
  expect_same("mwa32t", wire::Mwa32tGeometry{}, {0, 0, 4}, [](auto& random, wire::Packet& p) {
    p.stream = static_cast<std::uint32_t>(random() % 4);
    p.n_ticks = 256;
  });
  const auto packet = example("mwa32t");
  const wire::PayloadMap map(packet);
  Bytes payload(static_cast<std::size_t>(packet.payload_bytes()));
  const std::uint16_t word = wire::pack_mwa32t_word({-7, 11});
  std::memcpy(payload.data() + 2 * (3 * 16 + 5), &word, 2);
  EXPECT_EQ(map.part(payload.data(), 0, 3, 5, 0), -7);
  EXPECT_EQ(map.part(payload.data(), 0, 3, 5, 1), 11);
}

// ---- [source.packet] ----

const std::string kPacket =
    "[source]\n[source.packet]\nlength = 28\nheader = [\n"
    "  {field = \"sequence\", type = \"u64be\", offset = 0},\n"
    "  {field = \"board\", type = \"u16le\", offset = 8},\n]\n"
    "payload = {offset = 16, order = [\"time\", \"input\"], extents = {time = 4, input = 3}, "
    "sample = \"i8\"}\n";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kPacket;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string message(const std::string& text) {
  try {
    parse_observation(text, "obs.toml");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(DescribedConfig, IsReadAndPrintedAgain) {
  const auto config = parse_observation(kPacket, "obs.toml");
  EXPECT_EQ(config.source.format, "described");
  ASSERT_TRUE(config.source.packet.has_value());
  EXPECT_FALSE(config.source.packet->has_channels());
  EXPECT_EQ(config.source.packet->header[1].big_endian, false);
  for (const auto* name : {"best2", "chips", "tbf", "tbx", "mwa32t"}) {
    const std::string text = packet_toml(example(name));
    const auto again = parse_observation("[source]\n" + text, "again.toml");
    EXPECT_EQ(packet_toml(*again.source.packet), text);
  }
  const auto printed = parse_observation(to_toml(config), "printed.toml");
  EXPECT_EQ(packet_toml(*printed.source.packet), packet_toml(*config.source.packet));
}

TEST(DescribedConfig, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(message(changed("offset = 8", "ofset = 8")),
            "obs.toml:6:37: unknown key \"ofset\" in source.packet.header; did you mean "
            "\"offset\"?");
  EXPECT_EQ(message(changed("\"sequence\"", "\"sequense\"")),
            "obs.toml:5:12: source.packet.header.field: unknown word \"sequense\"; did you mean "
            "\"sequence\"?");
  EXPECT_EQ(message(changed("u16le", "u16")),
            "obs.toml:6:28: source.packet.header.type: \"u16\" is no word; u8, or u16be, u16le, "
            "... u64be, u64le (order of bytes)");
  EXPECT_EQ(message(changed("\"i8\"", "\"i16\"")),
            "obs.toml:8:94: source.packet.payload.sample: \"i16\" has more than 8 bits: "
            "\"i16be\" or \"i16le\" tells the order of bytes");
  EXPECT_NE(message(changed("length = 28", "length = 27"))
                .find("obs.toml:2:1: source.packet: payload.extents: 12 samples of 8 bits take 12 "
                      "bytes, the payload has 11"),
            std::string::npos);
  EXPECT_NE(message(changed("\"time\", \"input\"]", "\"time\", \"input\", \"time\"]"))
                .find("axis \"time\" comes 2 times"),
            std::string::npos);
  EXPECT_NE(message("[source]\nformat = \"described\"\n").find("[source.packet] is missing"),
            std::string::npos);
  EXPECT_NE(message(changed("[source]\n", "[source]\nformat = \"chips\"\n"))
                .find("describes packets of source.format = \"described\""),
            std::string::npos);
}

}  // namespace
}  // namespace ryle::pipeline
