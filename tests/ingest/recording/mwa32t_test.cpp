// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "ryle/wire/mwa32t.hpp"
#include "tests/ingest/recording/support.hpp"

namespace ryle {
namespace {

using test::Samples;
using test::write_file;

// Any deterministic 10-bit word of an input at an instant.
std::uint16_t word_of(std::int64_t input, std::int64_t instant) {
  return static_cast<std::uint16_t>(
      (static_cast<std::uint64_t>(input * 7919 + instant * 104729 + 13) >> 3) & 0x3FF);
}

void append_group(std::vector<unsigned char>& out, std::int64_t receiver, std::int64_t instant,
                  std::uint16_t marker) {
  out.push_back(static_cast<unsigned char>(marker & 255));
  out.push_back(static_cast<unsigned char>(marker >> 8));
  for (std::int64_t k = 0; k < 16; ++k) {
    const auto word = word_of(receiver * 16 + k, instant);
    out.push_back(static_cast<unsigned char>(word & 255));
    out.push_back(static_cast<unsigned char>(word >> 8));
  }
}

cf64 value_of(std::int64_t input, std::int64_t instant) {
  const ci8 v = wire::unpack_mwa32t_word(word_of(input, instant));
  return {static_cast<double>(v.re), static_cast<double>(v.im)};
}

// Receivers that start at different instants, across the counter's wrap, with losses: every sample
// in its place.
TEST(RecordingMwa32t, AlignsReceiversByTheirMarkers) {
  const std::int64_t base = 65000;  // marker of instant 0; wraps at instant 536
  const std::array<std::int64_t, 4> start{3, 0, 5, 1};
  std::string paths;
  for (std::int64_t r = 0; r < 4; ++r) {
    std::vector<unsigned char> raw;
    for (std::int64_t t = start[static_cast<std::size_t>(r)]; t < 1000; ++t) {
      if (r == 2 && t >= 400 && t < 700) continue;  // lost
      auto marker = static_cast<std::uint16_t>(base + t);
      if (r == 1 && t == 50) marker = 7;  // damaged
      append_group(raw, r, t, marker);
    }
    if (r == 3) raw.resize(raw.size() - 10);  // cut
    paths += (r ? "," : "") + write_file("r" + std::to_string(r) + ".mwa32t", raw);
  }
  RecordingOptions options;
  options.start_utc = "2008-11-24T04:00:00";
  const auto recording = open_recording(paths, "mwa32t", options);
  const auto& info = recording->info();
  EXPECT_EQ(info.n_inputs, 64);
  EXPECT_EQ(info.n_ticks, 1000);
  EXPECT_EQ(info.clock.rate_hz, (Rational{1280000, 1}));
  EXPECT_EQ(info.time_source, TimeSource::configured);
  EXPECT_EQ(info.counters.at("rejected.marker"), 1);
  EXPECT_EQ(info.counters.at("gaps"), 1);
  const Samples all(*recording, 0, 1000);
  std::vector<AbsentSpan> expected;
  for (std::int64_t p = 0; p < 64; ++p) {
    const std::int64_t r = p / 16;
    if (start[static_cast<std::size_t>(r)] > 0)
      expected.push_back({p, 0, start[static_cast<std::size_t>(r)]});
    if (r == 1) expected.push_back({p, 50, 51});
    if (r == 2) expected.push_back({p, 400, 700});
    if (r == 3) expected.push_back({p, 999, 1000});
  }
  EXPECT_EQ(all.absent, expected);
  for (std::int64_t p = 0; p < 64; ++p) {
    for (std::int64_t t = 0; t < 1000; ++t) {
      bool absent = false;
      for (const auto& a : expected) absent = absent || (a.input == p && t >= a.begin && t < a.end);
      ASSERT_EQ(all.at(p, t), absent ? cf64(0, 0) : value_of(p, t)) << p << " " << t;
    }
  }
  const Samples piece(*recording, 390, 20);
  EXPECT_EQ(piece.at(33, 9), value_of(33, 399));
  EXPECT_EQ(piece.at(33, 10), cf64(0, 0));
}

TEST(RecordingMwa32t, ReadsGroupsInTurnAndOneReceiver) {
  std::vector<unsigned char> turns, one;
  for (std::int64_t t = 0; t < 300; ++t) {
    for (std::int64_t r = 0; r < 4; ++r)
      append_group(turns, r, t, static_cast<std::uint16_t>(65400 + t));
    append_group(one, 0, t, static_cast<std::uint16_t>(t));
  }
  const auto recording = open_recording(write_file("turns.mwa32t", turns), "auto");
  EXPECT_EQ(recording->info().n_inputs, 64);
  EXPECT_EQ(recording->info().n_ticks, 300);
  EXPECT_EQ(recording->info().time_source, TimeSource::arrival);
  const Samples all(*recording, 0, 300);
  EXPECT_TRUE(all.absent.empty());
  for (std::int64_t p = 0; p < 64; ++p) ASSERT_EQ(all.at(p, 299 - p), value_of(p, 299 - p));
  const auto single = open_recording(write_file("one.mwa32t", one), "mwa32t");
  EXPECT_EQ(single->info().n_inputs, 16);
}

TEST(RecordingMwa32t, FindsTheGroupsAgainAfterLostBytes) {
  std::vector<unsigned char> raw;
  for (std::int64_t t = 0; t < 200; ++t) append_group(raw, 0, t, static_cast<std::uint16_t>(t));
  raw.erase(raw.begin() + 100 * 34 + 5, raw.begin() + 100 * 34 + 20);  // 15 bytes of group 100
  const auto recording = open_recording(write_file("slip.mwa32t", raw), "mwa32t");
  EXPECT_EQ(recording->info().n_ticks, 200);
  const Samples all(*recording, 0, 200);
  // Group 100 has its marker and is 15 bytes short, so it runs into 101; both are lost or only 101
  // is, never shifted.
  for (const auto& a : all.absent)
    EXPECT_TRUE(a.begin >= 100 && a.end <= 102) << a.begin << " " << a.end;
  for (std::int64_t t = 0; t < 200; ++t) {
    if (t == 100 || t == 101) continue;
    ASSERT_EQ(all.at(7, t), value_of(7, t)) << t;
  }
}

TEST(RecordingMwa32t, ReadsInterleavedSamples) {
  std::vector<unsigned char> raw;
  for (std::int64_t t = 0; t < 10; ++t) {
    for (std::int64_t p = 0; p < 64; ++p) {
      raw.push_back(static_cast<unsigned char>(word_of(p, t) & 255));
      raw.push_back(static_cast<unsigned char>(word_of(p, t) >> 8));
    }
  }
  raw.resize(raw.size() + 5);
  const auto recording = open_recording(write_file("i.dat", raw), "mwa32t-interleaved");
  EXPECT_EQ(recording->info().n_ticks, 10);
  EXPECT_EQ(recording->samples_bytes(10), 1280);
  const Samples all(*recording, -1, 12);
  for (std::int64_t p = 0; p < 64; ++p) {
    for (std::int64_t t = 0; t < 10; ++t) ASSERT_EQ(all.at(p, t + 1), value_of(p, t));
    EXPECT_EQ(all.absent[static_cast<std::size_t>(2 * p)], (AbsentSpan{p, -1, 0}));
    EXPECT_EQ(all.absent[static_cast<std::size_t>(2 * p + 1)], (AbsentSpan{p, 10, 11}));
  }
}

TEST(RecordingMwa32t, RejectsWhatHasNoGroups) {
  EXPECT_THROW(
      open_recording(write_file("zero.dat", std::vector<unsigned char>(34 * 200, 0)), "mwa32t"),
      FormatError);
  EXPECT_THROW(open_recording(write_file("small.dat", {1, 2, 3}), "mwa32t"), FormatError);
  EXPECT_THROW(open_recording(write_file("small.dat", {1, 2, 3}), "mwa32t-interleaved"),
               FormatError);
  RecordingOptions options;
  options.start_utc = "yesterday";
  EXPECT_THROW(open_recording(write_file("i.dat", std::vector<unsigned char>(1280)),
                              "mwa32t-interleaved", options),
               ConfigError);
}

}  // namespace
}  // namespace ryle
