// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <limits>

#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_time.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kNs = 1'000'000'000;

TEST(RecordingTime, LeapSecondsOfKnownDates) {
  EXPECT_EQ(recording_tai_ns_from_unix(0), 8 * kNs);  // 8.000082 s in 1970, rounded
  EXPECT_EQ(recording_tai_ns_from_unix(946684800), (946684800 + 32) * kNs);  // 2000-01-01
  EXPECT_EQ(recording_tai_ns_from_unix(1483228799),
            (1483228799 + 36) * kNs);  // 2016-12-31T23:59:59
  EXPECT_EQ(recording_tai_ns_from_unix(1483228800),
            (1483228800 + 37) * kNs);  // the second after the leap second
  EXPECT_EQ(recording_tai_ns_from_unix(1483228800, 25), (1483228800 + 37) * kNs + 25);
  EXPECT_FALSE(recording_tai_ns_from_unix(std::numeric_limits<std::int64_t>::max()));
  EXPECT_FALSE(recording_tai_ns_from_unix(std::numeric_limits<std::int64_t>::min()));
}

TEST(RecordingTime, TheLeapSecondItselfIsATime) {
  const auto before = recording_tai_ns_from_text("2016-12-31T23:59:59").value();
  EXPECT_EQ(recording_tai_ns_from_text("2016-12-31T23:59:60").value(), before + kNs);
  EXPECT_EQ(recording_tai_ns_from_text("2017-01-01T00:00:00").value(), before + 2 * kNs);
}

TEST(RecordingTime, TextInItsSpellings) {
  const auto t = recording_tai_ns_from_unix(1781263240).value();
  for (const char* text : {"2026-06-12T11:20:40+00:00", "2026-06-12T11:20:40",
                           "2026-06-12 11:20:40Z", "2026-06-12-11:20:40", "2026/6/12 11:20:40.000",
                           "2026-06-12T13:50:40+02:30", "2026-06-12T08:20:40-0300"}) {
    EXPECT_EQ(recording_tai_ns_from_text(text), t) << text;
  }
  EXPECT_EQ(recording_tai_ns_from_text("2026-06-12T11:20:40.1234567891"), t + 123456789);
  for (const char* bad :
       {"", "now", "2026-06-12", "2026-13-01T00:00:00", "2026-02-30T00:00:00",
        "2026-06-12T24:00:00", "2026-06-12T11:60:00", "2026-06-12T11:20:40.",
        "2026-06-12T11:20:40 UTC", "1026-06-12T11:20:40", "2026-06-12T11:20:40+99:00"}) {
    EXPECT_FALSE(recording_tai_ns_from_text(bad)) << bad;
  }
  EXPECT_EQ(recording_utc_text(t), "2026-06-12T11:20:40");
}

TEST(RecordingTime, VdifSecondsCountLeapSeconds) {
  // Epoch 33 begins 2016-07-01; the leap second of that December makes 2017-01-01 second 184 *
  // 86400 + 1.
  EXPECT_EQ(recording_tai_ns_from_vdif(33, 184 * 86400 + 1),
            recording_tai_ns_from_text("2017-01-01T00:00:00"));
  EXPECT_EQ(recording_tai_ns_from_vdif(34, 0), recording_tai_ns_from_text("2017-01-01T00:00:00"));
  EXPECT_EQ(recording_tai_ns_from_vdif(28, 14363767),
            recording_tai_ns_from_text("2014-06-16T05:56:07"));
  EXPECT_FALSE(recording_tai_ns_from_vdif(64, 0));
}

TEST(RecordingTime, MjdDayAndNanoseconds) {
  EXPECT_EQ(recording_tai_ns_from_mjd(58132, 51093 * kNs),
            recording_tai_ns_from_text("2018-01-14T14:11:33"));
  EXPECT_FALSE(recording_tai_ns_from_mjd(58132, 86401 * kNs));
  EXPECT_FALSE(recording_tai_ns_from_mjd(0, 0));
  EXPECT_FALSE(recording_tai_ns_from_mjd(std::numeric_limits<std::int64_t>::max(), 0));
}

TEST(ArrangeFrames, ExtremeTimesAreOutvoted) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  std::map<std::string, std::int64_t> counters;
  std::vector<FrameRef> frames{{kMax, 0, 1}, {1030, 0, 2}, {1000, 1, 3}, {kMin, 0, 4},
                               {1010, 0, 5}, {1000, 0, 6}, {1000, 1, 7}, {1015, 0, 8}};
  const auto kept = arrange_frames(frames, 100, 10, counters);
  ASSERT_EQ(kept.size(), 4u);
  EXPECT_EQ(kept[0].offset, 6);
  EXPECT_EQ(kept[1].offset, 3);
  EXPECT_EQ(kept[2].offset, 5);
  EXPECT_EQ(kept[3].offset, 2);
  EXPECT_EQ(counters["rejected.time"], 3);
  EXPECT_EQ(counters["rejected.duplicate"], 1);
  EXPECT_EQ(frames_between(kept, 1000, 1010).size(), 2u);
  EXPECT_EQ(frames_between(kept, 1011, 5000).size(), 1u);
  EXPECT_EQ(frames_between(kept, 2000, 1000).size(), 0u);
  EXPECT_TRUE(arrange_frames({}, 1, 1, counters).empty());
}

/// 20 frames, 10 ticks apart, as they were written.
std::vector<FrameRef> twenty_frames() {
  std::vector<FrameRef> frames;
  for (std::int64_t k = 0; k < 20; ++k) frames.push_back({1000 + 10 * k, 0, k});
  return frames;
}

// One flipped bit of a time tag must not make the recording longer: it is counted, not believed.
TEST(ArrangeFrames, ALoneFrameFarFromTheOthersIsDamaged) {
  for (const std::int64_t bit : {9, 12, 20}) {
    for (const std::size_t which : {0, 7, 19}) {
      auto frames = twenty_frames();
      frames[which].tick += 10 * (std::int64_t{1} << bit);
      std::map<std::string, std::int64_t> counters;
      const auto kept = arrange_frames(frames, std::int64_t{1} << 40, 10, counters);
      EXPECT_EQ(kept.size(), 19u) << bit << " " << which;
      EXPECT_LE(kept.back().tick, 1190) << bit << " " << which;
      EXPECT_EQ(counters["rejected.time"], 1);
      EXPECT_EQ(counters["frames"], 19);
    }
  }
}

// What a loss leaves is borne out by its place in the file, and so is a second part of it.
TEST(ArrangeFrames, FramesBetweenLossesAndAfterAPauseAreKept) {
  auto frames = twenty_frames();
  for (std::size_t k = 10; k < 20; ++k) frames[k].tick += 10'000;
  frames.push_back({5000, 0, 9});  // alone, between the two parts in time and in the file
  for (std::size_t k = 10; k < 20; ++k) frames[k].offset += 10;
  std::map<std::string, std::int64_t> counters;
  EXPECT_EQ(arrange_frames(frames, 100'000, 10, counters).size(), 21u);
  EXPECT_EQ(counters["frames"], 21);
  // Frames that are all far apart have no neighbours to go by.
  std::vector<FrameRef> sparse;
  for (std::int64_t k = 0; k < 20; ++k) sparse.push_back({1000 * k, 0, k});
  EXPECT_EQ(arrange_frames(sparse, 100'000, 10, counters).size(), 20u);
}

TEST(ArrangeFrames, AbsentSpansAreMergedPerInput) {
  std::vector<AbsentSpan> absent{{9, 0, 1}, {1, 4, 6}, {0, 0, 2}, {1, 2, 4}, {0, 2, 3}};
  merge_absent(absent, 1);
  EXPECT_EQ(absent, (std::vector<AbsentSpan>{{9, 0, 1}, {0, 0, 3}, {1, 2, 6}}));
}

}  // namespace
}  // namespace ryle
