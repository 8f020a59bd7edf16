// SPDX-License-Identifier: BSD-3-Clause
// What a search says against its events, and which files it searches together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/pipeline/search/search_beams.hpp"
#include "ryle/pipeline/search/search_checks.hpp"
#include "ryle/pipeline/search/search_files.hpp"
#include "ryle/pipeline/search/search_run.hpp"
#include "tests/io/scratch.hpp"
#include "tests/pipeline/search/pulses.hpp"
#include "tests/support/data_path.hpp"
#include "tests/support/search_database.hpp"

namespace ryle::pipeline {
namespace {

using test::noise_with_pulse;
using test::small_band;
using testing::HasSubstr;

constexpr double kStart_mjd = 60310.25;

/// Samples [first, end) of data with n samples a channel, as 8 bits.
void write_fil(const std::string& path, const std::vector<float>& data, std::int64_t n,
               std::int64_t first, std::int64_t end, double late_s = 0) {
  const auto band = small_band();
  FilterbankInfo info;
  info.n_channels = band.n_channels();
  info.channel_center_hz = band.center_hz;
  info.channel_width_hz = band.channel_width_hz;
  info.bits = 8;
  info.sample_interval_s = band.sample_interval_s;
  info.start_mjd_utc =
      kStart_mjd + (static_cast<double>(first) * band.sample_interval_s + late_s) / 86400;
  SigprocWriter writer(path, info);
  writer.append(data.data() + first, n, end - first);
  writer.finish();
}

SearchOptions options_for(const std::vector<std::string>& files) {
  SearchOptions o;
  o.file = files.front();
  o.more_files.assign(files.begin() + 1, files.end());
  o.dm_max = 120;
  o.block_samples = 1024;
  o.n_workers = 1;
  return o;
}

/// An event of S/N 20 that nothing speaks against.
BeamEvent good_event() {
  BeamEvent b;
  b.seen = {0};
  SearchEvent& e = b.event;
  e.refined = true;
  e.pulse.dm_pc_cm3 = 60;
  e.pulse.dm_error = 0.1;
  e.pulse.fwhm_samples = 4;
  e.pulse.snr = 20;
  e.cluster.best.width = 5;
  e.checks.has_baseline = true;
  e.checks.wander = 1;
  e.checks.local_snr = 20;
  e.checks.widest_samples = 100;
  e.checks.threshold = 7;
  e.checks.trial_gap_pc_cm3 = 0.2;
  return b;
}

CandidateFlags flags_of(const BeamEvent& b, double trial_dm = 60) {
  return candidate_flags(b, 20, 1e-3, trial_dm, 0);
}

TEST(SearchFlags, EachHasItsReason) {
  EXPECT_EQ(flags_of(good_event()).names, "");
  BeamEvent b = good_event();
  b.event.pulse.dm_error = 25;
  EXPECT_EQ(flags_of(b).names, "low_dm");
  b = good_event();
  b.event.rfi_suspect = true;
  EXPECT_EQ(flags_of(b).names, "rfi_suspect");
  b = good_event();
  b.event.pulse.fwhm_samples = 596;
  EXPECT_EQ(flags_of(b).names, "wide");
  EXPECT_THAT(flags_of(b).reasons, HasSubstr("596 ms is beyond the widest boxcar of 100 ms"));
  b = good_event();
  // 20 samples of sweep for 1 pc/cm3: 0.5 pc/cm3 are as much as the width may explain.
  EXPECT_EQ(flags_of(b, 60.7).names, "");
  EXPECT_EQ(flags_of(b, 63).names, "dm_moved");
  EXPECT_THAT(flags_of(b, 63).reasons, HasSubstr("far from that of its boxcar, 63"));
  b.event.checks.off_dm_snr = 14;
  EXPECT_EQ(flags_of(b).names, "");
  b.event.checks.off_dm_snr = 18;
  EXPECT_EQ(flags_of(b).names, "stripe");
  b = good_event();
  b.event.checks.wander = 2;
  b.event.checks.local_snr = 10;
  EXPECT_EQ(flags_of(b).names, "");
  b.event.checks.local_snr = 6;
  EXPECT_EQ(flags_of(b).names, "baseline");
  EXPECT_THAT(flags_of(b).reasons, HasSubstr("scatter 2.0 times"));
  b.event.checks.has_baseline = false;
  EXPECT_EQ(flags_of(b).names, "baseline");
  b = good_event();
  b.event.checks.present = 0.05;
  EXPECT_EQ(flags_of(b).names, "sparse");
  EXPECT_EQ(flags_of(b).reasons, "5 % of the samples about it are there");
  b.event.pulse.fwhm_samples = 596;
  EXPECT_EQ(flags_of(b).names, "wide sparse");
  b = good_event();
  b.event.checks.present_beside = 0.2;
  EXPECT_EQ(flags_of(b).names, "sparse");
}

/// White noise of weight 1, and what wanders under it over some 50 samples.
search::DedispersedCodes series_of(std::int64_t n, double wander, std::uint64_t seed) {
  search::DedispersedCodes s;
  double walk = 0;
  for (std::int64_t t = 0; t < n; ++t) {
    walk = 0.98 * walk + 0.2 * gaussian(combine(seed, static_cast<std::uint64_t>(2 * t)));
    const double x = gaussian(combine(seed, static_cast<std::uint64_t>(2 * t + 1))) + wander * walk;
    s.sums.push_back(static_cast<float>(24 * 64 + 64 * x));
    s.columns.push_back(1);
  }
  s.weights.assign(static_cast<std::size_t>((n + 63) / 64), 1.0f);
  return s;
}

TEST(SearchFlags, AWanderingBaselineIsMeasuredAtTheWidthOfTheEvent) {
  const std::int64_t n = 6000, start = 3000, width = 100;
  const search::Baseline white{24.0 * 64, 64, n, 1};
  int wandering = 0, quiet = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PulseChecks checks;
    check_surroundings(BoxcarSeries(series_of(n, 0.5, seed), white, 64), start, width, 20, checks);
    wandering += checks.wander > 1 && checks.local_snr < 7;
    PulseChecks other;
    check_surroundings(BoxcarSeries(series_of(n, 0, seed), white, 64), start, width, 20, other);
    quiet += other.wander == 1;
  }
  EXPECT_EQ(wandering, 20);
  EXPECT_GE(quiet, 19);
}

// Masked, lost and zero samples are runs of one code, whatever code that is.
TEST(SearchFlags, GapsAreSeenWhateverTheirCode) {
  const auto band = small_band();
  const std::int64_t n = 3000;
  const std::vector<std::uint8_t> none(64, 0);
  const auto checked = [&](std::uint8_t code, std::int64_t from, std::int64_t to) {
    std::vector<std::uint8_t> codes;
    for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(64 * n); ++k)
      codes.push_back(static_cast<std::uint8_t>(
          std::clamp(std::lround(24 + 8 * gaussian(combine(9, k))), 0L, 63L)));
    for (std::int64_t c = 0; c < 64; ++c)
      for (std::int64_t t = from; t < to; ++t) {
        const auto at = t + static_cast<std::int64_t>(band.delay_samples(c, 30));
        if (at < n) codes[static_cast<std::size_t>(c * n + at)] = code;
      }
    PulseChecks checks;
    check_presence(band, 30, 1000, 8, codes, 0, n, none, checks);
    return checks;
  };
  EXPECT_GT(checked(24, 0, 0).present, 0.99);
  EXPECT_GT(checked(24, 0, 0).present_beside, 0.99);
  for (const std::uint8_t code : {0, 16, 24}) {
    EXPECT_LT(checked(code, 0, 995).present_beside, 0.3) << "right before it";
    EXPECT_GT(checked(code, 0, 980).present_beside, 0.9) << "a width away";
    EXPECT_LT(checked(code, 1004, 2000).present_beside, 0.3) << "right behind it";
    EXPECT_LT(checked(code, 0, 980).present, 0.7);
  }
}

// A dump of voltages holds the sweep of one pulse and zeros: 5 % of the samples.
TEST(SearchFlags, MostlyEmptyFilesHaveNoUnflaggedEvents) {
  const auto band = small_band();
  const std::int64_t n = 8000;
  test::Scratch scratch;
  for (const bool swept : {false, true}) {
    auto data = noise_with_pulse(band, n, -1e6, 0, 0, 5);
    for (std::int64_t c = 0; c < band.n_channels(); ++c) {
      const auto from = 2000 + static_cast<std::int64_t>(swept ? band.delay_samples(c, 50) : 0);
      for (std::int64_t t = 0; t < n; ++t)
        if (t < from || t >= from + 400) data[static_cast<std::size_t>(c * n + t)] = 0;
    }
    const std::string path = scratch / (swept ? "swept.fil" : "block.fil");
    write_fil(path, data, n, 0, n);
    const auto s = search_file(options_for({path}));
    EXPECT_EQ(s.n_candidates, 0) << path;
    for (const auto& c : s.events) EXPECT_FALSE(c.reasons.empty()) << c.flags;
  }
}

// The real data of docs/search_recovery.md, without a pulse: what is found there says why it is
// none.
TEST(SearchFlags, RealDataWithoutPulses) {
  RYLE_REQUIRE_DATA(eight, "transients/parkes_uwl_crab/parkes_8bit_1.fil");
  const std::string folder = eight.substr(0, eight.rfind('/') + 1);
  std::int64_t candidates = 0, flagged = 0;
  for (const char* name :
       {"parkes_8bit_1.fil", "parkes_8bit_2.fil", "parkes_4bit.fil", "parkes_2bit.fil"}) {
    SearchOptions o;
    o.file = folder + name;
    const auto s = search_file(o);
    candidates += s.n_candidates;
    flagged += std::ssize(s.events) - s.n_candidates;
    for (const auto& c : s.events) {
      EXPECT_EQ(c.flags.empty(), c.reasons.empty());
      if (c.width_s > 0.1) {
        EXPECT_THAT(c.flags, HasSubstr("wide")) << name;
      }
    }
  }
  RecordProperty("unflagged", static_cast<int>(candidates));
  RecordProperty("flagged", static_cast<int>(flagged));
  EXPECT_EQ(candidates, 0);
}

// A pulse across the border of two files is found once; a third file, of another time, is searched
// by itself.
TEST(SearchFiles, ThoseThatFollowInTimeAreOne) {
  const auto band = small_band();
  const std::int64_t n = 6000, border = 3011;
  const auto data = noise_with_pulse(band, n, border - 100.0, 60, 25, 17);
  test::Scratch scratch;
  const std::string a = scratch / "a.fil", b = scratch / "b.fil", c = scratch / "c.fil";
  write_fil(a, data, n, 0, border);
  write_fil(b, data, n, border, n);
  write_fil(c, data, n, border, n, 100);
  const auto one = search_files(options_for({b, a}));  // in any order
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].description.file, "a.fil+b.fil");
  EXPECT_EQ(one[0].description.n_samples, n);
  ASSERT_EQ(one[0].events.size(), 1U);
  EXPECT_NEAR(one[0].events[0].time_s, (border - 100) * 1e-3, 2e-3);
  EXPECT_EQ(one[0].events[0].flags, "");
  EXPECT_THAT(one[0].notes, testing::ElementsAre(HasSubstr("follow each other in time")));
  const auto three = search_files(options_for({a, c, b}));
  ASSERT_EQ(three.size(), 2U);
  EXPECT_EQ(three[1].description.file, "c.fil");
  EXPECT_EQ(three[0].events.size(), 1U);
  EXPECT_THAT(three[0].notes, testing::ElementsAre(HasSubstr("follow each other"),
                                                   HasSubstr("searched one by one")));
  EXPECT_THROW(search_file(options_for({a, c})), ConfigError);
  EXPECT_THROW(search_files(options_for({a, a})), ConfigError);
  // Files that start together are beams.
  write_fil(scratch / "d.fil", data, n, 0, border);
  const auto beams = search_files(options_for({a, scratch / "d.fil"}));
  ASSERT_EQ(beams.size(), 1U);
  EXPECT_EQ(beams[0].n_beams, 2);
}

TEST(SearchFiles, ParkesFilesFollowEachOther) {
  RYLE_REQUIRE_DATA(first, "transients/parkes_uwl_crab/parkes_8bit_1.fil");
  RYLE_REQUIRE_DATA(second, "transients/parkes_uwl_crab/parkes_8bit_2.fil");
  std::vector<std::string> notes;
  const auto found = open_search_files({second, first}, {}, notes);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].beams.size(), 1U);
  EXPECT_EQ(found[0].files, (std::vector<std::string>{first, second}));
  EXPECT_EQ(found[0].beams[0]->info().n_samples, 8192);
  // The joined reader gives what the files hold, across the border, too.
  const std::int64_t channels = found[0].beams[0]->info().n_channels;
  std::vector<float> joined(static_cast<std::size_t>(channels * 10)),
      apart(static_cast<std::size_t>(channels * 10));
  found[0].beams[0]->read(4090, 10, joined.data(), 10);
  open_filterbank(first)->read(4090, 6, apart.data(), 10);
  open_filterbank(second)->read(0, 4, apart.data() + 6, 10);
  EXPECT_EQ(joined, apart);
}

// A pulse of 4 ms with a tail of 10 ms is a candidate like others, and every product says the tail.
TEST(SearchFiles, AScatteredPulseIsACandidateWithItsTail) {
  const auto band = small_band();
  const std::int64_t n = 6000;
  constexpr double kTail_samples = 10, kTick = 2000.4;
  std::vector<float> pulse(static_cast<std::size_t>(band.n_channels() * n));
  test::add_pulse(band, pulse.data(), n, kTick, 60, 90);
  auto data = noise_with_pulse(band, n, -1e6, 0, 0, 23);
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    const double tau =
        kTail_samples *
        std::pow(band.center_hz.back() / band.center_hz[static_cast<std::size_t>(c)], 4);
    double y = 0;
    for (std::int64_t t = 0; t < n; ++t) {
      const auto at = static_cast<std::size_t>(c * n + t);
      y += (static_cast<double>(pulse[at]) - y) / (1 + tau);  // mean delay tau
      data[at] += static_cast<float>(y);
    }
  }
  test::Scratch scratch;
  write_fil(scratch / "s.fil", data, n, 0, n);
  auto options = options_for({scratch / "s.fil"});
  options.output_directory = scratch / "out";
  const auto found = search_file(options);
  ASSERT_EQ(found.n_candidates, 1);
  const auto& c = found.events.front();
  EXPECT_GT(c.scattering_error_s, 0);
  EXPECT_NEAR(c.scattering_s, 1e-3 * kTail_samples, 4 * c.scattering_error_s);
  EXPECT_LT(c.scattering_error_s, 2.5e-3);
  EXPECT_NEAR(c.dm_pc_cm3, 60, 4 * c.dm_error);
  EXPECT_NEAR(c.time_s, 1e-3 * kTick, 4 * c.time_error_s);
  EXPECT_LT(c.time_error_s, 3e-3);
  const auto kept = test::read_search_database(scratch / "out/s.sqlite");
  ASSERT_EQ(kept.size(), found.events.size());
  EXPECT_EQ(kept.front().scattering_s, c.scattering_s);
  EXPECT_EQ(kept.front().scattering_error_s, c.scattering_error_s);
  EXPECT_EQ(kept.front().time_error_s, c.time_error_s);
  EXPECT_THAT(candidates_csv(found.description, found.events),
              HasSubstr(",time_error_s,scattering_s,scattering_error_s\n"));
  EXPECT_THAT(voevent_xml(found.description, c, "test"), HasSubstr("\"scattering\""));
}

/// Events of the same pulse in some of the beams of a hexagonal grid of 19 (or 7).
BeamEvent merged_of(std::int64_t n_beams, const std::vector<std::int64_t>& seeing) {
  BeamGroupConfig c;
  c.n_beams = n_beams;
  const int rings = n_beams == 7 ? 1 : 2;
  for (int q = -rings; q <= rings; ++q)
    for (int r = std::max(-rings, -q - rings); r <= std::min(rings, -q + rings); ++r)
      c.positions.push_back({1 + 0.01 * (q + 0.5 * r), 0.01 * 0.8660254 * r});
  EXPECT_EQ(std::ssize(c.positions), n_beams);
  c.neighbours = beam_neighbours(c.positions, usual_adjacency(c.positions));
  const auto band = small_band();
  BeamGrouper grouper(c, band, 64);
  for (const std::int64_t beam : seeing) {
    std::vector<SearchEvent> events(1);
    events[0].pulse = {{60, 1000, 4, 20}, 0.1, 0.1, 0.1, 1};
    events[0].cluster.best.width = 5;
    grouper.add(beam, events);
  }
  std::vector<BeamEvent> out;
  grouper.take_all(out);
  EXPECT_EQ(out.size(), 1U);
  return out.empty() ? BeamEvent{} : std::move(out.front());
}

TEST(SearchBeams, ACompactGroupOfBeamsIsOneEvent) {
  // The middle of 19 beams and its ring: no pulse of the sky is in two places, but here is one.
  const std::vector<std::int64_t> compact{4, 5, 8, 9, 10, 13, 14};
  const auto one = merged_of(19, compact);
  EXPECT_FALSE(one.multibeam);
  EXPECT_EQ(one.n_groups, 1);
  EXPECT_EQ(one.seen, compact);
  std::vector<std::int64_t> all(19);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_TRUE(merged_of(19, all).multibeam);
  all.resize(7);
  EXPECT_TRUE(merged_of(7, all).multibeam) << "the middle touches all others, they do not";
  all.pop_back();
  EXPECT_FALSE(merged_of(7, all).multibeam);
  // Corners of the outer ring: five groups.
  const auto apart = merged_of(19, {0, 2, 7, 9, 11});
  EXPECT_EQ(apart.n_groups, 5);
  EXPECT_TRUE(apart.multibeam);
}

}  // namespace
}  // namespace ryle::pipeline
