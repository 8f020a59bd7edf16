// SPDX-License-Identifier: BSD-3-Clause
// Folding by an ephemeris: real data against their barycentric period, and a tracking beam.
#include <fitsio.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/search/search_fold.hpp"
#include "ryle/pipeline/search/search_fold_live.hpp"
#include "ryle/telescope/site.hpp"
#include "tests/io/scratch.hpp"
#include "tests/pipeline/search/pulses.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::pipeline {
namespace {

const char* const kB0329 =
    "PSRJ J0332+5434\nPSRB B0329+54\nRAJ 03:32:59.4096 1 0.001\nDECJ +54:34:43.329 1\n"
    "F0 1.399541538720 1\nF1 -4.011970D-15\nPEPOCH 46473.00\nDM 26.7641\nEPHVER 2\n";

TEST(Pulsar, ParFiles) {
  const Pulsar p = parse_par(kB0329, "b0329.par");
  EXPECT_EQ(p.name, "J0332+5434");
  EXPECT_DOUBLE_EQ(p.f0_hz, 1.399541538720);
  EXPECT_DOUBLE_EQ(p.f1_hz_per_s, -4.011970e-15);
  EXPECT_EQ(p.epoch_mjd, 46473);
  EXPECT_NEAR(p.position.ra_rad, (3 + 32 / 60.0 + 59.4096 / 3600) * 15 * kDegree_rad, 1e-14);
  EXPECT_NEAR(p.position.dec_rad, (54 + 34 / 60.0 + 43.329 / 3600) * kDegree_rad, 1e-14);
  EXPECT_EQ(p.ignored, std::vector<std::string>{"EPHVER"});
  const std::string place = "RAJ 00:00:01\nDECJ -00:30:00\nPEPOCH 55000.25\n";
  const Pulsar q = parse_par(place + "P0 0.5\nP1 2e-15\n", "x");
  EXPECT_DOUBLE_EQ(q.f0_hz, 2);
  EXPECT_DOUBLE_EQ(q.f1_hz_per_s, -8e-15);
  EXPECT_NEAR(q.position.dec_rad, -0.5 * kDegree_rad, 1e-15) << "the sign of -00";
  EXPECT_EQ(q.epoch_day_fraction, 0.25);
  for (const std::string bad : {"F0 x\n", "F0 -1\n", "F0 1\nF0 2\n", "DM 3\n", "F0 1\nDECJ 1\n"})
    EXPECT_THROW(parse_par(place + bad, "x"), FormatError) << bad;
  EXPECT_THROW(parse_par("F0 1\nPEPOCH 55000\nRAJ 1\nDECJ 95\n", "x"), FormatError);
  EXPECT_THROW(parse_par("F0 1\nRAJ 1\nDECJ 5\n", "x"), FormatError) << "no PEPOCH";
  for (const std::string other : {"BINARY DD\n", "UNITS TCB\n"})
    EXPECT_THROW(parse_par(place + "F0 1\n" + other, "x"), UnsupportedError) << other;
}

// Light reaches the barycenter before the Earth when the pulsar lies behind the Sun, and up to
// 499 s earlier at the Earth half a year on: Roemer's delay with its sign.
TEST(Pulsar, RoemerDelayHasItsSign) {
  Pulsar p;
  p.f0_hz = 1;
  p.epoch_mjd = 60000;
  // The Sun is at RA 18h, Dec -23.4 on 21 December: a pulsar at 6h, +23.4 has the Earth in front.
  p.position = {90 * kDegree_rad, 23.44 * kDegree_rad};
  const std::int64_t december = tai_ns_from_utc_iso("2023-12-22T03:00:00");
  const PulsarClock clock(p, nullptr);
  const PulsarClock bare(p, nullptr, true);
  EXPECT_NEAR(clock.barycentric_s(december) - bare.barycentric_s(december), 499.0 * 0.9836, 4);
}

// T-FO-01: the period of J1807-0847 at the barycenter is 0.163727 s; on 2021-04-09 the Earth moves
// towards it, and the GBT sees 0.163711 s.
TEST(Fold, J1807ByItsEphemeris) {
  RYLE_REQUIRE_DATA(tim, "transients/gbt_j1807/GBT_J1807-0847.tim");
  test::Scratch scratch;
  std::ofstream(scratch / "j1807.par") << "PSRJ J1807-0847\nRAJ 18:07:38.0\nDECJ -08:47:43.7\nP0 "
                                          "0.163727\nPEPOCH 59313\nDM 112.38\n";
  FoldOptions o;
  o.file = tim;
  o.par = scratch / "j1807.par";
  o.outputs.fits = scratch / "j1807.fits";
  o.outputs.text = scratch / "j1807.txt";
  const auto s = fold_file(o);
  RecordProperty("predicted_period_ns", static_cast<int>(s.predicted_period_s * 1e9));
  RecordProperty("period_ns", static_cast<int>(s.period_s * 1e9));
  RecordProperty("chi2", static_cast<int>(s.reduced_chi2));
  EXPECT_NEAR(s.period_s, 0.163711, 2e-6);
  // P0 is given to 1e-6 s; what is left is the drift of a bin within the file.
  EXPECT_NEAR(s.predicted_period_s, s.period_s, 1.5e-6);
  EXPECT_GE(s.reduced_chi2, 600);
  o.search = false;
  o.outputs = {};
  EXPECT_GE(fold_file(o).reduced_chi2, 590) << "the prediction alone";
  fitsfile* file = nullptr;
  int status = 0;
  long rows = 0;
  fits_open_diskfile(&file, (scratch / "j1807.fits").c_str(), READONLY, &status);
  fits_movnam_hdu(file, BINARY_TBL, const_cast<char*>("SUBINT"), 0, &status);
  fits_get_num_rows(file, &rows, &status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rows, 64);
  std::vector<double> snr(128);
  fits_movnam_hdu(file, BINARY_TBL, const_cast<char*>("PROFILE"), 0, &status);
  fits_read_col_dbl(file, 3, 1, 1, 128, 0, snr.data(), nullptr, &status);
  fits_close_file(file, &status);
  EXPECT_EQ(status, 0);
  double chi2 = 0;
  for (const double v : snr) chi2 += v * v / 127;
  EXPECT_NEAR(chi2, s.reduced_chi2, 0.01 * s.reduced_chi2);
  o.period_s = 0.16;
  EXPECT_THROW(fold_file(o), ConfigError) << "either or";
}

// Below 0 samples before the first were read; a drift without end was searched for minutes.
TEST(Fold, NumbersThatCannotBe) {
  test::Scratch scratch;
  FilterbankInfo info;
  info.bits = 8;
  info.n_channels = 4;
  info.sample_interval_s = 1e-3;
  info.channel_width_hz = 1e6;
  for (int c = 0; c < 4; ++c) info.channel_center_hz.push_back(400e6 + 1e6 * c);
  info.start_mjd_utc = 59'000;
  const std::string file = scratch / "x.fil";
  {
    SigprocWriter writer(file, info);
    std::vector<float> data(4 * 4000, 100);
    for (std::size_t k = 0; k < data.size(); k += 7) data[k] = 120;
    writer.append(data.data(), 4000, 4000);
    writer.finish();
  }
  FoldOptions good;
  good.file = file;
  good.period_s = 0.1;
  EXPECT_GT(fold_file(good).n_samples, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double dm : {-1.0, -100.0, -1e300, 1e7, 1e300, nan}) {
    FoldOptions o = good;
    o.dm_pc_cm3 = dm;
    EXPECT_THROW(fold_file(o), ConfigError) << dm;
  }
  for (const double drift : {-1.0, 2147483648.0, 1e300, nan}) {
    FoldOptions o = good;
    o.drift_turns = drift;
    EXPECT_THROW(fold_file(o), ConfigError) << drift;
  }
  FoldOptions o = good;
  o.period_derivative = nan;
  EXPECT_THROW(fold_file(o), ConfigError);
  o = good;
  o.dm_pc_cm3 = 1e5;
  EXPECT_THROW(fold_file(o), ConfigError) << "sweeps beyond the file";
  std::ofstream(scratch / "x.par") << "PSR X\nRAJ 1\nDECJ 5\nF0 10\nPEPOCH 59000\nDM -100\n";
  o = good;
  o.period_s = 0;
  o.par = scratch / "x.par";
  EXPECT_THROW(fold_file(o), FormatError) << "the same from an ephemeris";
}

// T-FO-02 without packets: B0329+54 in a tracking beam at Medicina, dispersed over the band, 200
// pulses in chunks with lost samples. Profile S/N as injected within 3 %, no drift.
TEST(Fold, LiveTrackingBeam) {
  test::Scratch scratch;
  std::ofstream(scratch / "b0329.par") << kB0329;
  const Pulsar pulsar = parse_par(kB0329, "b0329.par");
  auto site = known_telescope("Northern Cross");
  ASSERT_TRUE(site.has_value());
  auto band = test::small_band();
  band.sample_interval_s = 0.004;
  const std::int64_t n = 36'000, start_tai_ns = tai_ns_from_utc_iso("2026-11-22T20:00:00");
  BeamStream stream;
  stream.frequency = {band.center_hz.front(), band.channel_width_hz, 64};
  stream.clock = {start_tai_ns, {250, 1}};
  BeamInfo other, tracking;
  other.name = "other";
  other.position = {1, 0.2};
  tracking.name = "b0329";
  tracking.position = pulsar.position;
  stream.beams = {other, tracking};

  // Phases by a polynomial of degree 2 of an independent evaluation at three instants, dispersed.
  const PulsarClock clock(pulsar, &*site);
  const double duration_s = static_cast<double>(n) * 0.004;
  const auto turns_at = [&](double t_s) {
    return clock.turns(start_tai_ns + std::llround(t_s * 1e9), start_tai_ns);
  };
  const double p0 = turns_at(0), p1 = turns_at(duration_s / 2), p2 = turns_at(duration_s);
  const double width = 0.01, amplitude = 0.5;  // turns (sigma), rms of a sample
  std::vector<float> data(static_cast<std::size_t>(64 * n));
  double injected = 0;
  for (std::int64_t c = 0; c < 64; ++c) {
    const double delay_s = band.delay_samples(c, pulsar.dm_pc_cm3) * 0.004;
    for (std::int64_t t = 0; t < n; ++t) {
      const double x = 2 * ((static_cast<double>(t) + 0.5) * 0.004 - delay_s) / duration_s;
      const double turns = p0 * (1 - x) * (2 - x) / 2 + p1 * x * (2 - x) + p2 * x * (x - 1) / 2;
      const double from_peak = turns - 0.3 - std::round(turns - 0.3);
      const double pulse = amplitude * std::exp(-0.5 * from_peak * from_peak / (width * width));
      injected += pulse * pulse;
      data[static_cast<std::size_t>(c * n + t)] = static_cast<float>(
          50 + 4 * (pulse + gaussian(combine(3, static_cast<std::uint64_t>(c * n + t)))));
    }
  }
  LiveFoldConfig config;
  config.par = scratch / "b0329.par";
  config.n_bins = 128;
  config.outputs.fits = scratch / "live.fits";
  config.outputs.picture = scratch / "live.png";
  LiveFold fold(stream, *site, config);
  const ChannelGap gap{3, 9, 5000, 6000};
  std::int64_t lost = 0;
  for (std::int64_t first = 0; first < n; first += 700) {
    BeamChunk chunk;
    chunk.n_samples = std::min<std::int64_t>(700, n - first);
    chunk.first_sample = first;
    chunk.clock = stream.clock;
    chunk.channel_stride = n;
    chunk.values = data.data() + first;  // the other beam is never looked at
    chunk.beam_stride = 0;
    if (first < 6000 && first + 700 > 5000) chunk.absent = {&gap, 1};
    fold.take(chunk);
    lost += chunk.absent.empty() ? 0 : 1;
  }
  EXPECT_GT(lost, 1);
  RunSummary summary;
  fold.finish(summary);
  EXPECT_TRUE(summary.errors.empty()) << summary.errors.front();
  EXPECT_EQ(summary.products,
            (std::vector<std::string>{scratch / "live.png", scratch / "live.fits"}));
  // Three panels: profile, sub-integrations, bands. Width and height of IHDR.
  const std::string png = test::contents(scratch / "live.png");
  const auto pixels = [&](std::size_t at) {
    return static_cast<unsigned char>(png[at]) * 256 + static_cast<unsigned char>(png[at + 1]);
  };
  EXPECT_GT(pixels(18), 1200);
  EXPECT_GT(pixels(22), 900) << "two rows of panels";
  const auto snr = profile_snr(fold.fold());
  double total = 0;
  for (const double v : snr) total += v * v;
  // Radiometer: the squares of the bins sum to the injected energy in units of the noise plus one
  // for each bin; the mean of the profile takes its part of the energy, sqrt(2 pi) width.
  const double expected = std::sqrt(injected * (1 - 2 * std::sqrt(3.14159265) * width));
  EXPECT_NEAR(std::sqrt(total - 127), expected, 0.03 * expected) << expected;
  // Drift: the peak of the first and last quarter of the sub-integrations.
  const auto& f = fold.fold();
  // Best place of the template: its error is width / (S/N) = 1e-4 turns.
  const auto peak = [&](std::size_t first, std::size_t last) {
    double best = -1, at = 0;
    for (double place = 0.25; place < 0.35; place += 1e-4) {
      double sum = 0;
      for (std::size_t s = first; s < last; ++s)
        for (std::size_t b = 0; b < 128; ++b) {
          const double z = ((static_cast<double>(b) + 0.5) / 128 - place) / width;
          if (std::abs(z) < 5) sum += f.sums[s * 128 + b] * std::exp(-0.5 * z * z);
        }
      if (sum > best) best = sum, at = place;
    }
    return at;
  };
  const std::size_t subs = f.middle_s.size();
  EXPECT_EQ(subs, 15U);
  EXPECT_NEAR(peak(0, subs), 0.3, 0.002);
  EXPECT_NEAR(peak(0, subs / 2), peak(subs / 2, subs), 0.002);
}

}  // namespace
}  // namespace ryle::pipeline
