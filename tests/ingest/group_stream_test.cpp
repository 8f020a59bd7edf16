// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/group_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ryle/core/time.hpp"
#include "tests/ingest/pattern.hpp"

namespace ryle {
namespace {

using test::pattern_groups;
using test::pattern_payload;

// Keeps what comes out: tick -> the 32 bytes of the instant, and the refused groups by reason.
class Collector : public GroupSink {
 public:
  void on_run(const Run& run) override {
    for (std::int64_t k = 0; k < run.n_slots; ++k) {
      const std::byte* row = run.data + k * run.stride_bytes;
      rows[run.slot + k].assign(row, row + 32);
      ++n_rows;
    }
  }
  void on_reject(Reason reason, std::uint64_t n, std::span<const std::byte> bytes) override {
    rejected[reason] += n;
    EXPECT_FALSE(bytes.empty());
  }

  // All ticks of [begin, end) except those in `absent` are there with the right bytes, and nothing
  // else.
  void expect_ticks(std::uint32_t receiver, Tick begin, Tick end,
                    const std::vector<std::pair<Tick, Tick>>& absent = {}) {
    std::size_t n = 0, wrong = 0;
    for (Tick t = begin; t < end; ++t) {
      if (std::ranges::any_of(absent, [t](const auto& a) { return t >= a.first && t < a.second; }))
        continue;
      ++n;
      const auto found = rows.find(t);
      wrong += found == rows.end() || found->second != pattern_payload(receiver, t, 1) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(rows.size(), n);
    EXPECT_EQ(n_rows, n);
  }
  std::map<Tick, std::vector<std::byte>> rows;
  std::size_t n_rows = 0;
  std::map<Reason, std::uint64_t> rejected;
};

void feed(GroupStream& stream, std::span<const std::byte> bytes) {
  const auto space = stream.space();
  ASSERT_GE(space.size(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), space.begin());
  stream.commit(bytes.size());
}

// Begins a stream at `tick` with four groups already parsed.
void begin(GroupStream& stream, Collector& out, std::uint32_t receiver, Tick tick) {
  feed(stream, pattern_groups({}, receiver, tick, 4));
  ASSERT_TRUE(stream.ready(out));
  stream.align(tick);
  stream.parse({}, false, 0, out);
}

// IN-12: one byte at a time.
TEST(GroupStream, ReadsOfOneByteGiveWholeGroups) {
  GroupStream stream({}, 2);
  Collector out;
  const auto bytes = pattern_groups({}, 2, 65'400, 300);  // across the wrap
  for (const auto& byte : bytes) {
    feed(stream, {&byte, 1});
    if (!stream.aligned()) {
      if (stream.ready(out)) {
        EXPECT_EQ(stream.first_marker(), 65'400);
        stream.align(65'400);
      }
      continue;
    }
    stream.parse({}, true, 0, out);
  }
  stream.finish(out);
  out.expect_ticks(2, 65'400, 65'700);
  EXPECT_TRUE(out.rejected.empty());
}

TEST(GroupStream, ReadsOfEverySizeGiveTheSame) {
  const auto bytes = pattern_groups({}, 1, 0, 200);
  for (std::size_t size = 1; size < 140; size += 3) {
    GroupStream stream({}, 1);
    Collector out;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      feed(stream, std::span(bytes).subspan(at, std::min(size, bytes.size() - at)));
      if (!stream.aligned() && stream.ready(out)) stream.align(0);
      stream.parse({}, false, 0, out);
    }
    out.expect_ticks(1, 0, 200);
  }
}

// IN-12: jumps of the counter, the others having gone on. 65536 leaves no jump at all: only the
// others tell.
TEST(GroupStream, GapsOfAnyLengthAreExact) {
  for (const Tick gap : {1, 2, 100, 32'767, 32'769, 65'535, 65'536, 65'537, 131'072, 200'000}) {
    GroupStream stream({}, 0);
    Collector out;
    const Tick start = 1'000'000;
    begin(stream, out, 0, start);
    // Blocks of 100, in step with the others.
    Tick tick = start + 4;
    for (int block = 0; block < 20; ++block, tick += 100) {
      feed(stream, pattern_groups({}, 0, tick, 100));
      stream.parse({true, tick + 100}, true, 0, out);
    }
    const Tick gap_begin = tick;
    tick += gap;
    for (int block = 0; block < 40; ++block, tick += 100) {
      feed(stream, pattern_groups({}, 0, tick, 100));
      stream.parse({true, tick + 100}, true, 0, out);
    }
    stream.finish(out);
    out.expect_ticks(0, start, tick, {{gap_begin, gap_begin + gap}});
    EXPECT_TRUE(out.rejected.empty()) << gap;
  }
}

// A stream that only stalled lies as far behind, but what it missed comes at once: it must not be
// moved.
TEST(GroupStream, AStallOfAWholeTurnIsNoGap) {
  GroupStream stream({}, 0);
  Collector out;
  begin(stream, out, 0, 0);
  feed(stream, pattern_groups({}, 0, 4, 100));
  stream.parse({true, 104}, true, 0, out);
  Tick tick = 104;
  const Tick others = 104 + 65'536;
  for (int block = 0; tick < others; ++block, tick += 512) {
    feed(stream, pattern_groups({}, 0, tick, 512));
    stream.parse({true, others + block}, true, block * 10'000, out);
  }
  stream.finish(out);
  out.expect_ticks(0, 0, tick);
}

// Without another receiver a jump goes forward.
TEST(GroupStream, AloneAJumpGoesForward) {
  for (const Tick gap : {1, 40'000, 65'535}) {
    GroupStream stream({}, 0);
    Collector out;
    begin(stream, out, 0, 500);
    feed(stream, pattern_groups({}, 0, 504 + gap, 50));
    stream.parse({}, true, 0, out);
    stream.finish(out);
    out.expect_ticks(0, 500, 504 + gap + 50, {{504, 504 + gap}});
  }
}

TEST(GroupStream, ADamagedMarkerCostsOneGroup) {
  GroupStream stream({}, 0);
  Collector out;
  begin(stream, out, 0, 0);
  auto bytes = pattern_groups({}, 0, 4, 50);
  bytes[34 * 10] ^= std::byte{0x40};
  bytes[34 * 20 + 1] ^= std::byte{0x01};
  bytes[34 * 21 + 1] ^= std::byte{0x02};
  feed(stream, bytes);
  stream.parse({true, 54}, true, 0, out);
  stream.finish(out);
  out.expect_ticks(0, 0, 54, {{14, 15}, {24, 26}});
  EXPECT_EQ(out.rejected[Reason::magic], 3u);
}

// Bytes lost or put in: the step is found again, what was skipped is counted, the positions after
// it are right.
TEST(GroupStream, TheStepIsFoundAgainAfterDamage) {
  for (const std::size_t cut : {1, 2, 17, 33, 35, 100}) {
    GroupStream stream({}, 0);
    Collector out;
    begin(stream, out, 0, 0);
    auto bytes = pattern_groups({}, 0, 4, 60);
    // Group 10 begins with what is left of it: `cut` bytes are missing.
    bytes.erase(bytes.begin() + 34 * 10,
                bytes.begin() + 34 * 10 + static_cast<std::ptrdiff_t>(cut));
    feed(stream, bytes);
    stream.parse({true, 64}, true, 0, out);
    stream.finish(out);
    const Tick lost = static_cast<Tick>((cut + 33) / 34);
    out.expect_ticks(0, 0, 64, {{14, 14 + lost}});
    EXPECT_EQ(out.rejected[Reason::magic], 1u) << cut;  // the rest of one group
  }
  GroupStream stream({}, 0);
  Collector out;
  begin(stream, out, 0, 0);
  auto bytes = pattern_groups({}, 0, 4, 60);
  const std::vector<std::byte> noise(1000, std::byte{0x77});
  bytes.insert(bytes.begin() + 34 * 10, noise.begin(), noise.end());
  feed(stream, bytes);
  stream.parse({true, 64}, true, 0, out);
  stream.finish(out);
  out.expect_ticks(0, 0, 64);
  EXPECT_EQ(out.rejected[Reason::magic], 30u);  // ceil(1000 / 34)
}

TEST(GroupStream, GarbageBeforeTheFirstGroupIsSkipped) {
  GroupStream stream({}, 0);
  Collector out;
  std::vector<std::byte> bytes(77, std::byte{0x31});
  const auto groups = pattern_groups({}, 0, 9, 20);
  bytes.insert(bytes.end(), groups.begin(), groups.end());
  feed(stream, bytes);
  ASSERT_TRUE(stream.ready(out));
  EXPECT_EQ(stream.first_marker(), 9);
  stream.align(9);
  stream.parse({}, true, 0, out);
  out.expect_ticks(0, 9, 29);
  EXPECT_EQ(out.rejected[Reason::magic], 3u);
}

TEST(GroupStream, NoiseForEverIsCountedAndNeverFillsTheBuffer) {
  GroupStream stream({}, 0, 4096);
  Collector out;
  std::vector<std::byte> noise(1000);
  std::size_t fed = 0;
  for (int block = 0; block < 500; ++block) {
    for (std::size_t i = 0; i < noise.size(); ++i) {
      noise[i] = static_cast<std::byte>(combine(static_cast<std::uint64_t>(block), i) & 0xff);
    }
    feed(stream, noise);
    fed += noise.size();
    EXPECT_FALSE(stream.ready(out));
  }
  stream.finish(out);
  EXPECT_EQ(out.rejected[Reason::magic] + out.rejected[Reason::prelock], fed / 34);
  EXPECT_EQ(out.rejected[Reason::too_short], fed % 34 != 0 ? 1u : 0u);
  EXPECT_TRUE(out.rows.empty());
}

// The connection ends inside a group.
TEST(GroupStream, ThePartOfAGroupAtTheEndIsTooShort) {
  GroupStream stream({}, 0);
  Collector out;
  begin(stream, out, 0, 0);
  auto bytes = pattern_groups({}, 0, 4, 10);
  bytes.resize(bytes.size() - 5);
  feed(stream, bytes);
  stream.parse({}, true, 0, out);
  stream.finish(out);
  out.expect_ticks(0, 0, 13);
  EXPECT_EQ(out.rejected[Reason::too_short], 1u);
}

TEST(GroupStream, OtherMarkersAreFollowedToo) {
  wire::Mwa32tMarker narrow;  // an 8-bit counter in steps of 4: a turn of 64 instants
  narrow.bits = 8;
  narrow.increment = 4;
  narrow.value = 3;
  wire::Mwa32tMarker constant;
  constant.mode = wire::MarkerMode::constant;
  constant.value = 0xBEEF;
  wire::Mwa32tMarker ignore;
  ignore.mode = wire::MarkerMode::ignore;
  for (const auto& marker : {narrow, constant, ignore}) {
    GroupStream stream(marker, 3);
    Collector out;
    feed(stream, pattern_groups(marker, 3, 0, 500));
    ASSERT_TRUE(stream.ready(out));
    stream.align(0);
    stream.parse({}, true, 0, out);
    out.expect_ticks(3, 0, 500);
    if (marker.mode != wire::MarkerMode::constant) continue;
    auto bytes = pattern_groups(marker, 3, 500, 20);
    bytes[34 * 5] ^= std::byte{1};
    feed(stream, bytes);
    stream.parse({}, true, 0, out);
    out.expect_ticks(3, 0, 520, {{505, 506}});
  }
}

}  // namespace
}  // namespace ryle
