// SPDX-License-Identifier: BSD-3-Clause
// The live end: any chunks, many beams, gaps, storms; what is on disk while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/search/search_live.hpp"
#include "tests/io/scratch.hpp"
#include "tests/pipeline/search/pulses.hpp"
#include "tests/support/search_database.hpp"

namespace ryle::pipeline {
namespace {

using test::add_pulse;
using test::noise_with_pulse;
using test::small_band;

constexpr std::int64_t kEpoch_tai_ns = 1'700'000'000'000'000'000;

/// Power of some beams in a row, one degree apart along declination.
struct Sky {
  search::Band band = small_band();
  std::int64_t n = 0;
  std::vector<std::vector<float>> beams;  // [beam][channel][n]

  Sky(std::int64_t n_beams, std::int64_t n_samples) : n(n_samples) {
    for (std::int64_t b = 0; b < n_beams; ++b)
      beams.push_back(noise_with_pulse(band, n, -1e6, 0, 0, 100 + static_cast<std::uint64_t>(b)));
  }
  void pulse(std::size_t beam, double tick, double dm, double snr) {
    add_pulse(band, beams[beam].data(), n, tick, dm, snr);
  }
  BeamStream stream(std::size_t incoherent = 1000) const {
    BeamStream s;
    s.frequency = {band.center_hz.front(), band.channel_width_hz, band.n_channels()};
    s.clock = {kEpoch_tai_ns, {1000, 1}};
    s.telescope = "Test";
    for (std::size_t b = 0; b < beams.size(); ++b) {
      BeamInfo info;
      info.position = {1.0, 0.2 + 0.0174533 * static_cast<double>(b)};
      info.incoherent = b == incoherent;
      info.n_antennas = 16;
      s.beams.push_back(info);
    }
    return s;
  }
};

LiveSearchConfig config_for(const std::string& directory) {
  LiveSearchConfig c;
  c.dm_max = 120;
  c.width_max_s = 0.064;
  c.block_samples = 1024;
  c.n_workers = 1;
  c.products.output_directory = directory;
  c.products.name = "live";
  c.products.pictures = false;
  return c;
}

/// Feeds samples [first, end) in chunks of any length.
/// @param in_place where the search has room for them, as far as it has
void feed(LiveSearch& search, const Sky& sky, std::int64_t first, std::int64_t end,
          std::int64_t chunk_samples, std::int64_t segment = 0, bool in_place = false) {
  std::vector<float> values(sky.beams.size() * 64 * static_cast<std::size_t>(chunk_samples));
  std::int64_t next = first;
  for (std::int64_t at = first; at < end; at = next) {
    BeamChunk chunk;
    chunk.n_samples = std::min(chunk_samples, end - at);
    chunk.first_sample = at;
    chunk.segment = segment;
    chunk.clock = {kEpoch_tai_ns + segment * 1'000'000'000'000, {1000, 1}};
    chunk.channel_stride = chunk.n_samples;
    chunk.beam_stride = 64 * chunk.n_samples;
    float* to = values.data();
    if (in_place) {
      const BeamDestination place = search.place(chunk);
      ASSERT_GT(place.n_samples, 0);
      ASSERT_LE(place.n_samples, chunk.n_samples);
      chunk.n_samples = place.n_samples;
      chunk.beam_stride = place.beam_stride;
      chunk.channel_stride = place.channel_stride;
      to = place.values;
    }
    next = at + chunk.n_samples;
    for (std::size_t b = 0; b < sky.beams.size(); ++b)
      for (std::int64_t c = 0; c < 64; ++c)
        std::copy_n(
            sky.beams[b].data() + c * sky.n + at, chunk.n_samples,
            to + static_cast<std::int64_t>(b) * chunk.beam_stride + c * chunk.channel_stride);
    chunk.values = to;
    search.take(chunk);
  }
}

std::vector<SearchCandidate> search_in_chunks(const Sky& sky, std::int64_t chunk_samples,
                                              int n_workers, std::string* csv) {
  test::Scratch scratch;
  LiveSearchConfig config = config_for(scratch.path());
  config.n_workers = n_workers;
  LiveSearch search(sky.stream(), config);
  search.wait_when_full(true);
  feed(search, sky, 0, sky.n, chunk_samples);
  RunSummary summary;
  search.finish(summary);
  EXPECT_TRUE(summary.errors.empty()) << summary.errors.front();
  if (csv != nullptr) *csv = test::contents(scratch / "live.csv");
  return test::read_search_database(scratch / "live.sqlite");
}

// T-DD-19: pulses across the ends of chunks and blocks, in one beam and in two that touch: one
// candidate each, the same bytes in the products whatever the chunks and the workers.
TEST(LiveSearch, GulpsAndWorkersDoNotMatter) {
  Sky sky(3, 6100);
  const double sweep = sky.band.delay_samples(0, 60);
  const double at[] = {300.5, 1024 - sweep, 1999.7, 2900, 4096 + 64.2, 5000};
  for (std::size_t k = 0; k < 6; ++k) {
    sky.pulse(k % 3, at[k], 60, 25);
    if (k % 3 < 2) sky.pulse(k % 3 + 1, at[k], 60, 16);
  }
  std::string expected;
  const auto first = search_in_chunks(sky, 6100, 1, &expected);
  ASSERT_EQ(first.size(), 6U) << expected;
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_EQ(first[k].flags, "");
    EXPECT_NEAR(first[k].tick, at[k], 1.5);
    EXPECT_EQ(first[k].beam, static_cast<std::int64_t>(k % 3));
    EXPECT_EQ(first[k].n_beams, k % 3 < 2 ? 2 : 1);
    EXPECT_NEAR(static_cast<double>(first[k].tai_ns - kEpoch_tai_ns), at[k] * 1e6, 1.5e6);
    // Weighted by S/N: 16 of 41 on the way to the neighbour.
    const double offset = (k % 3 < 2 ? 16.0 / 41 : 0.0) + static_cast<double>(k % 3);
    EXPECT_NEAR((first[k].position->dec_rad - 0.2) / 0.0174533, offset, 0.08);
  }
  for (const std::int64_t chunk : {64, 1000}) {
    std::string csv;
    search_in_chunks(sky, chunk, 2, &csv);
    EXPECT_EQ(csv, expected) << chunk;
  }
}

// Made where the search keeps its blocks, across their ends and a gap: the same bytes as copied.
TEST(LiveSearch, SamplesMadeInItsBlocks) {
  Sky sky(2, 5000);
  sky.pulse(0, 900.5, 60, 25);
  sky.pulse(1, 3000, 60, 25);
  std::string csv[2];
  for (const bool in_place : {false, true}) {
    test::Scratch scratch;
    LiveSearch search(sky.stream(), config_for(scratch.path()));
    search.wait_when_full(true);
    feed(search, sky, 0, 2000, 700, 0, in_place);
    feed(search, sky, 2300, sky.n, 700, 0, in_place);
    RunSummary summary;
    search.finish(summary);
    EXPECT_TRUE(summary.errors.empty());
    EXPECT_EQ(search.progress().candidates, 2);
    EXPECT_EQ(search.progress().dropped_blocks, 0);
    csv[in_place ? 1 : 0] = test::contents(scratch / "live.csv");
  }
  EXPECT_EQ(csv[0], csv[1]);
}

// One burst in many beams that do not touch came in through side lobes; three beams in a row are
// one source. An incoherent beam that sees more than the best coherent one, too.
TEST(LiveSearch, WhatIsInManyBeamsIsInterference) {
  Sky sky(14, 3100);
  for (const std::size_t b : {0U, 2U, 4U, 6U, 8U}) sky.pulse(b, 700, 60, 20);
  // More beams than the limit, but side by side.
  for (const std::size_t b : {8U, 9U, 10U, 11U, 12U}) sky.pulse(b, 1900, 60, b == 10U ? 25 : 14);
  sky.pulse(4, 2500, 30, 14);
  sky.pulse(13, 2500, 30, 25);
  test::Scratch scratch;
  LiveSearch search(sky.stream(13), config_for(scratch.path()));
  search.wait_when_full(true);
  feed(search, sky, 0, sky.n, 500);
  RunSummary summary;
  search.finish(summary);
  const auto events = test::read_search_database(scratch / "live.sqlite");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].flags, "rfi_multibeam");
  EXPECT_EQ(events[0].n_beams, 5);
  EXPECT_EQ(events[1].flags, "");
  EXPECT_EQ(events[1].beam, 10);
  EXPECT_EQ(events[1].n_beams, 5);
  EXPECT_EQ(events[2].flags, "rfi_multibeam");
  EXPECT_EQ(events[2].beam, 4) << "the strongest coherent one";
  EXPECT_EQ(search.progress().candidates, 1);
}

// Lost samples are no data, not zeros: a gap, channels of a chunk, and a sender that was started
// again. Each pulse outside is found once, at its own time.
TEST(LiveSearch, GapsAndRestarts) {
  Sky sky(1, 6000);
  for (const double tick : {500.0, 2800.0, 4200.0}) sky.pulse(0, tick, 60, 25);
  test::Scratch scratch;
  LiveSearch search(sky.stream(), config_for(scratch.path()));
  search.wait_when_full(true);
  feed(search, sky, 0, 1500, 300);
  feed(search, sky, 1807, 3500, 300);  // 307 samples never came
  feed(search, sky, 3500, 6000, 300, 1);
  RunSummary summary;
  search.finish(summary);
  const auto events = test::read_search_database(scratch / "live.sqlite");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_NEAR(events[0].tick, 500, 1.5);
  EXPECT_NEAR(events[1].tick, 2800, 1.5);
  // The second segment has a clock of its own, 1000 s later.
  EXPECT_NEAR(static_cast<double>(events[2].tai_ns - kEpoch_tai_ns) * 1e-9, 1004.2, 0.002);
  EXPECT_NEAR(events[2].time_s, 1004.2, 0.002);
  EXPECT_EQ(search.progress().restarts, 1);
}

// Times that the user masks count from the first sample of the run, in every segment.
TEST(LiveSearch, MasksTimesBehindARestart) {
  Sky sky(1, 6000);
  for (const double tick : {500.0, 2800.0, 4200.0}) sky.pulse(0, tick, 60, 25);
  const auto found = [&](const std::string& mask_times) {
    test::Scratch scratch;
    LiveSearchConfig config = config_for(scratch.path());
    config.mask_times = mask_times;
    LiveSearch search(sky.stream(), config);
    search.wait_when_full(true);
    feed(search, sky, 0, 3500, 300);
    feed(search, sky, 3500, 6000, 300, 1);  // at 1003.5 s by its clock
    RunSummary summary;
    search.finish(summary);
    std::vector<double> times_s;
    for (const auto& e : test::read_search_database(scratch / "live.sqlite"))
      times_s.push_back(std::round(e.time_s * 10) / 10);
    return times_s;
  };
  EXPECT_EQ(found("2.7-3.1"), (std::vector<double>{0.5, 1004.2}));
  EXPECT_EQ(found("1004.1-1004.5"), (std::vector<double>{0.5, 2.8}));
}

TEST(LiveSearch, AbsentChannelsAreMasked) {
  Sky sky(1, 3000);
  sky.pulse(0, 1200, 60, 30);
  test::Scratch scratch;
  LiveSearch search(sky.stream(), config_for(scratch.path()));
  const ChannelGap gap{0, 32, 0, 3000};
  BeamChunk chunk;
  std::vector<float> values = sky.beams[0];
  std::fill_n(values.begin(), 32 * 3000, 0.0F);
  chunk.values = values.data();
  chunk.beam_stride = 64 * 3000;
  chunk.channel_stride = 3000;
  chunk.n_samples = 3000;
  chunk.clock = {kEpoch_tai_ns, {1000, 1}};
  chunk.absent = {&gap, 1};
  search.wait_when_full(true);
  search.take(chunk);
  RunSummary summary;
  search.finish(summary);
  const auto events = test::read_search_database(scratch / "live.sqlite");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_NEAR(events[0].masked_fraction, 0.5, 0.01);
  EXPECT_NEAR(events[0].snr, 30 / std::sqrt(2.0), 3);
}

// Whoever looks while the search runs finds whole files.
TEST(LiveSearch, ProductsAppearOnTheWay) {
  Sky sky(1, 9000);
  sky.pulse(0, 800, 60, 30);
  test::Scratch scratch;
  LiveSearchConfig config = config_for(scratch.path());
  config.products.pictures = true;
  config.products.rewrite_s = 1e-3;
  const auto begin = std::chrono::steady_clock::now();
  LiveSearch search(sky.stream(), config);
  search.wait_when_full(true);
  feed(search, sky, 0, 9000, 1024);
  const auto names = scratch.names();  // the queue holds three blocks of nine at most
  for (const char* name :
       {"live.cand", "live.csv", "live.sqlite", "live_00001.png", "live_00001.xml"})
    EXPECT_THAT(names, testing::Contains(name));
  EXPECT_EQ(test::read_search_database(scratch / "live.sqlite").size(), 1U);
  EXPECT_THAT(test::contents(scratch / "live_00001.xml"), testing::HasSubstr("role=\"test\""));
  RunSummary summary;
  search.finish(summary);
  EXPECT_EQ(summary.products.size(), 7U);
  // From the last sample of a block to its candidates: some of the time that all this took.
  EXPECT_GT(search.progress().latency_s, 0);
  EXPECT_LT(search.progress().latency_s,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

// T-DD-22: a storm in one beam raises the threshold there, and a pulse in another is found.
TEST(LiveSearch, AStormDoesNotHideAPulseInACleanBeam) {
  Sky sky(2, 5000);
  for (int k = 0; k < 600; ++k) {  // bursts of every dispersion, all over
    const auto u = static_cast<std::uint64_t>(k);
    sky.pulse(0, 5000 * uniform(combine(7, u)), 120 * uniform(combine(8, u)), 30);
  }
  sky.pulse(1, 2100, 60, 20);
  test::Scratch scratch;
  LiveSearchConfig config = config_for(scratch.path());
  config.flagging = false;
  config.max_hits_per_s = 250;
  LiveSearch search(sky.stream(), config);
  search.wait_when_full(true);
  feed(search, sky, 0, sky.n, 700);
  RunSummary summary;
  search.finish(summary);
  EXPECT_THAT(summary.warnings, testing::Contains(testing::HasSubstr("the threshold was raised")));
  const auto events = test::read_search_database(scratch / "live.sqlite");
  const auto planted = std::count_if(events.begin(), events.end(), [](const SearchCandidate& c) {
    return std::abs(c.tick - 2100) < 2 && std::abs(c.dm_pc_cm3 - 60) < 2;
  });
  EXPECT_EQ(planted, 1);
}

TEST(SearchProducts, NoInstantNoVoEvent) {
  test::Scratch scratch;
  SearchProductOptions options;
  options.output_directory = scratch.path();
  options.name = "x";
  const auto band = small_band();
  SearchProducts products(options, band, {0.0, 60.0});
  products.begin({});
  std::vector<BeamEvent> events(1);
  events[0].event.cluster.best = {10, 4, 1, 20};
  events[0].event.pulse.dm_pc_cm3 = 60;
  events[0].event.pulse.dm_error = 1;
  products.add(events, 0, 0);
  products.finish({});
  EXPECT_EQ(products.n_candidates(), 1);
  ASSERT_EQ(products.warnings().size(), 1U);
  EXPECT_THAT(products.warnings()[0], testing::HasSubstr("no VOEvents"));
  EXPECT_THAT(scratch.names(), testing::Not(testing::Contains(testing::HasSubstr("xml"))));
  SearchCandidate c;
  EXPECT_THROW(voevent_xml({}, c, "test"), ConfigError);
}

}  // namespace
}  // namespace ryle::pipeline
