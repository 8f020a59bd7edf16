// SPDX-License-Identifier: BSD-3-Clause
// The whole offline chain: one event per pulse, wherever it lies, and the real data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/pipeline/search/search_chain.hpp"
#include "ryle/pipeline/search/search_fold.hpp"
#include "ryle/pipeline/search/search_run.hpp"
#include "ryle/pipeline/search/search_settings.hpp"
#include "tests/io/scratch.hpp"
#include "tests/pipeline/search/pulses.hpp"
#include "tests/support/data_path.hpp"
#include "tests/support/search_database.hpp"

namespace ryle::pipeline {
namespace {

using test::noise_with_pulse;
using test::small_band;

std::vector<SearchEvent> search_all(const search::Band& band, const std::vector<float>& data,
                                    std::int64_t n, std::int64_t block, int n_workers = 1) {
  Queue queue = Queue::cpu(n_workers);
  SearchChainConfig config;
  config.band = band;
  search::DmPlanConfig plan;
  plan.dm_max = 120;
  config.dms = search::dm_trials(band, plan);
  config.normalize.n_channels = band.n_channels();
  config.max_width = 64;
  config.block_samples = block;
  SearchEngines engines(queue, config);
  SearchChain chain(engines, config);
  std::vector<SearchEvent> events;
  for (std::int64_t first = 0; first < n; first += block)
    chain.feed(engines, data.data() + first, n, std::min(block, n - first), events);
  chain.finish(engines, events);
  return events;
}

// T-DD-12, T-DD-19: exactly one event for a pulse at every kind of place: within a block, across
// its end, across the end of the boxcars' history, near the first and the last sample.
TEST(SearchChain, OneEventWhereverThePulseLies) {
  const auto band = small_band();
  const std::int64_t n = 5000, block = 1024;
  const double dm = 60, sweep = band.delay_samples(0, dm);
  for (const double tick :
       {40.0, 900.5, 1024.0 - sweep, 1023.7, 1024.0 + 64, 2047.5, 2700.2, 5000 - sweep - 20}) {
    const auto events = search_all(band, noise_with_pulse(band, n, tick, dm, 25, 17), n, block);
    ASSERT_EQ(events.size(), 1u) << tick;
    EXPECT_NEAR(events[0].pulse.tick, tick, 1) << tick;
    EXPECT_NEAR(events[0].pulse.dm_pc_cm3, dm, 5 * events[0].pulse.dm_error + 0.05) << tick;
    EXPECT_NEAR(events[0].pulse.snr, 25, 4) << tick;
  }
}

// The last samples: part of the channels lies beyond the end of the file. The S/N falls as the root
// of what is there, and the pulse is still found (PRESTO lost up to 20 % of each file).
TEST(SearchChain, PulsesLeavingTheFileAreFound) {
  const auto band = small_band();
  const std::int64_t n = 5000;
  const double dm = 60, sweep = band.delay_samples(0, dm);
  const auto events =
      search_all(band, noise_with_pulse(band, n, 5000 - 0.6 * sweep, dm, 30, 4), n, 1024);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NEAR(events[0].cluster.best.center(), 5000 - 0.6 * sweep, 8);
}

TEST(SearchChain, NoiseAloneIsQuiet) {
  const auto band = small_band();
  EXPECT_EQ(search_all(band, noise_with_pulse(band, 20000, 1e6, 0, 0, 5), 20000, 2048).size(), 0u);
}

TEST(SearchChain, WorkersDoNotMatter) {
  const auto band = small_band();
  const auto data = noise_with_pulse(band, 4000, 1500.3, 60, 20, 9);
  const auto one = search_all(band, data, 4000, 1024, 1),
             two = search_all(band, data, 4000, 1024, 2);
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t k = 0; k < one.size(); ++k) {
    EXPECT_EQ(one[k].cluster.best, two[k].cluster.best);
    EXPECT_EQ(one[k].pulse.snr, two[k].pulse.snr);
    EXPECT_EQ(one[k].pulse.dm_pc_cm3, two[k].pulse.dm_pc_cm3);
  }
}

TEST(SearchRun, ChannelLists) {
  EXPECT_EQ(parse_channel_list("0-2,5", 7), (std::vector<std::uint8_t>{1, 1, 1, 0, 0, 1, 0}));
  EXPECT_TRUE(parse_channel_list("", 7).empty());
  for (const char* bad : {"7", "3-2", "x", "-1", "1-", "1 2"})
    EXPECT_THROW(parse_channel_list(bad, 7), ConfigError) << bad;
}

// T-DD-26, T-RD-04: the burst of 2018-04-17, from SIGPROC and PSRFITS: the same single candidate.
TEST(SearchRun, Frb180417) {
  RYLE_REQUIRE_DATA(fil, "transients/askap_frb180417/28.fil");
  RYLE_REQUIRE_DATA(fits, "transients/askap_frb180417/28.fits");
  test::Scratch scratch;
  for (const auto& file : {fil, fits}) {
    SearchOptions o;
    o.file = file;
    if (file == fil) o.output_directory = scratch.path();
    const auto s = search_file(o);
    ASSERT_EQ(s.n_candidates, 1) << file;
    ASSERT_EQ(s.events.size(), 1u) << file;
    EXPECT_NEAR(s.events[0].dm_pc_cm3, 474, 3);
    EXPECT_GE(s.events[0].snr, 15.5);
    EXPECT_NEAR(s.events[0].time_s, 2.029, 0.003);
    EXPECT_GT(s.events[0].dm_error, 0);
  }
  EXPECT_EQ(scratch.names(),
            (std::vector<std::string>{"28.cand", "28.cands", "28.csv", "28.singlepulse",
                                      "28.sqlite", "28_00001.png", "28_00001.xml"}));
  const auto back = test::read_search_database(scratch / "28.sqlite");
  ASSERT_EQ(back.size(), 1u);
  EXPECT_NEAR(back[0].dm_pc_cm3, 474, 3);
  EXPECT_NE(test::contents(scratch / "28_00001.xml").find("name=\"dm\" value=\"474."),
            std::string::npos);
  const std::string cand = test::contents(scratch / "28.cand");
  EXPECT_EQ(std::count(cand.begin(), cand.end(), '\t'), 8);
  const std::string cands = test::contents(scratch / "28.cands");
  EXPECT_EQ(std::count(cands.begin(), cands.end(), '\t'), 10);
}

// One recording with 8, 4, 2 and 1 bit: the two brightest events (interference about 0.14 and 0.05
// s long) are the same, in the same order; their times agree within half their lengths.
TEST(SearchRun, ParkesOfAllBitsHasTheSameBrightestEvents) {
  RYLE_REQUIRE_DATA(eight, "transients/parkes_uwl_crab/parkes_8bit_1.fil");
  const std::string folder = eight.substr(0, eight.rfind('/') + 1);
  for (const char* name :
       {"parkes_8bit_1.fil", "parkes_4bit.fil", "parkes_2bit.fil", "parkes_1bit.fil"}) {
    SearchOptions o;
    o.file = folder + name;
    auto events = search_file(o).events;
    ASSERT_GE(events.size(), 2u) << name;
    std::sort(events.begin(), events.end(),
              [](const auto& a, const auto& b) { return a.snr_boxcar > b.snr_boxcar; });
    EXPECT_NEAR(events[0].time_s, 0.998, 0.07) << name;
    EXPECT_NEAR(events[1].time_s, 0.485, 0.025) << name;
    EXPECT_GT(events[1].snr_boxcar, 10) << name;
  }
}

// T-FO-01: J1807-0847 from 820 MHz at the GBT.
TEST(SearchRun, FoldsJ1807) {
  RYLE_REQUIRE_DATA(tim, "transients/gbt_j1807/GBT_J1807-0847.tim");
  FoldOptions o;
  o.file = tim;
  o.period_s = 0.163727;  // catalogue, barycentric: the search finds the topocentric one
  const auto s = fold_file(o);
  EXPECT_NEAR(s.period_s, 0.163711, 2e-6);
  EXPECT_GE(s.reduced_chi2, 600);
  o.search = false;
  EXPECT_LT(fold_file(o).reduced_chi2, s.reduced_chi2);
}

// A period off by 0.8 turns of drift within the file: the edge of the search, 0.5, is not the best.
TEST(SearchRun, AFoldThatStopsAtTheEdgeSaysSo) {
  RYLE_REQUIRE_DATA(tim, "transients/gbt_j1807/GBT_J1807-0847.tim");
  test::Scratch scratch;
  FoldOptions o;
  o.file = tim;
  const double truth_s = 0.163711, duration_s = 131'130 * 163.84e-6;
  o.period_s = 1 / (1 / truth_s + 0.51 / duration_s);
  o.outputs.text = scratch / "edge.txt";
  const auto s = fold_file(o);
  EXPECT_TRUE(s.at_edge);
  ASSERT_FALSE(s.warnings.empty());
  EXPECT_NE(s.warnings.back().find("--drift 2"), std::string::npos) << s.warnings.back();
  EXPECT_NE(test::contents(scratch / "edge.txt").find("at the edge of the periods searched"),
            std::string::npos);
  o.outputs = {};
  o.drift_turns = 2;
  const auto wide = fold_file(o);
  EXPECT_FALSE(wide.at_edge);
  EXPECT_TRUE(wide.warnings.empty());
  EXPECT_NEAR(wide.period_s, truth_s, 2e-6);
  EXPECT_LT(wide.shortest_s, truth_s);
  EXPECT_GT(wide.longest_s, truth_s);
}

}  // namespace
}  // namespace ryle::pipeline
