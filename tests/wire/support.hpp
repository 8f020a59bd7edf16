// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ryle/wire/packet.hpp"

namespace ryle::wire::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::initializer_list<int> values, std::size_t payload = 0) {
  Bytes bytes;
  for (const int v : values) bytes.push_back(std::byte(v));
  for (std::size_t k = 0; k < payload; ++k) bytes.push_back(std::byte((k * 7 + 3) & 255));
  return bytes;
}

/// decode() must accept, and encode() must give the same bytes back, writing nothing beyond them.
template <class Geometry>
Packet expect_round_trip(const Geometry& geometry, const Bytes& bytes) {
  Packet p;
  EXPECT_EQ(name(decode(geometry, bytes, p)), "none");
  EXPECT_LE(p.payload_offset + p.payload_bytes, bytes.size());
  Bytes again(bytes.size() + 16, std::byte{0xCD});
  const auto payload = std::span(bytes).subspan(p.payload_offset, p.payload_bytes);
  EXPECT_EQ(encode(geometry, p, payload, again), bytes.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), again.begin()));
  for (std::size_t k = bytes.size(); k < again.size(); ++k) EXPECT_EQ(again[k], std::byte{0xCD});
  EXPECT_EQ(encode(geometry, p, payload, std::span(again).first(bytes.size() - 1)), 0u);
  return p;
}

/// IN-07: a copy of every given length, exactly allocated so that a sanitizer sees a read beyond
/// it. Only `whole` may be accepted, and a refused datagram must leave the packet as it was.
template <class Geometry>
void expect_rejected_lengths(const Geometry& geometry, const Bytes& good) {
  Bytes longer = good;
  longer.resize(65507, std::byte{0x5A});
  const std::size_t n = good.size();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8},
                                 std::size_t{15}, std::size_t{16}, std::size_t{31}, n - 1, n, n + 1,
                                 std::size_t{1500}, std::size_t{9000}, std::size_t{65507}}) {
    const Bytes exact(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(size));
    Packet p;
    p.stream = 4242;
    const Reject r = decode(geometry, exact, p);
    if (size == n) {
      EXPECT_EQ(name(r), "none");
    } else {
      EXPECT_EQ(name(r), size < n ? "too_short" : "too_long") << size;
      EXPECT_EQ(p.stream, 4242u);
    }
  }
}

/// Random damage: whatever is accepted lies inside the datagram and survives a second round.
template <class Geometry>
void expect_mutations_survive(const Geometry& geometry, const Bytes& good, int rounds = 4000) {
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int k = 0; k < rounds; ++k) {
    Bytes bytes = good;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int f = 0; f < flips; ++f)
      bytes[random() % std::min<std::size_t>(bytes.size(), 96)] ^= std::byte(1u << (random() % 8));
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    Packet p, q;
    if (decode(geometry, bytes, p) != Reject::none) continue;
    ++accepted;
    ASSERT_LE(std::uint64_t{p.payload_offset} + p.payload_bytes, bytes.size());
    Bytes again(bytes.size() + 128);
    const std::size_t n =
        encode(geometry, p, std::span(bytes).subspan(p.payload_offset, p.payload_bytes), again);
    ASSERT_GT(n, 0u);
    ASSERT_EQ(decode(geometry, std::span<const std::byte>(again).first(n), q), Reject::none);
    ASSERT_EQ(q.stream, p.stream);
    ASSERT_EQ(q.tick_raw, p.tick_raw);
    ASSERT_EQ(q.flags, p.flags);
    ASSERT_EQ(q.channel, p.channel);
  }
  EXPECT_GT(accepted, 0);
}

/// The reason for a good packet with one byte replaced.
template <class Geometry>
std::string_view reason_with(const Geometry& geometry, Bytes bytes, std::size_t offset, int value) {
  bytes[offset] = std::byte(value);
  Packet p;
  return name(decode(geometry, bytes, p));
}

}  // namespace ryle::wire::test
