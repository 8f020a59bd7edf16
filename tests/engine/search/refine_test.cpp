// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/refine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/random.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

struct Injected {
  std::vector<std::uint8_t> codes;
  double ideal = 0;
};

/// A pulse integrated over channel and sample by brute force (20 x 20 points), on noise of rms 8.
Injected inject(const Band& band, const Pulse& pulse, std::int64_t n, std::uint64_t seed) {
  Injected out;
  const double sigma = pulse.fwhm_samples / 2.3548200450309493;
  std::vector<double> add(static_cast<std::size_t>(band.n_channels() * n));
  double squares = 0;
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    for (int k = 0; k < 20; ++k) {
      const double nu = band.center_hz[static_cast<std::size_t>(c)] +
                        band.channel_width_hz * ((k + 0.5) / 20 - 0.5);
      const double top = band.center_hz.back();
      const double at = pulse.tick + band.k_dm * pulse.dm_pc_cm3 * 1e12 *
                                         (1 / (nu * nu) - 1 / (top * top)) / band.sample_interval_s;
      const auto middle = static_cast<std::int64_t>(at);
      const auto reach = static_cast<std::int64_t>(5 * sigma) + 3;
      for (std::int64_t t = std::max<std::int64_t>(0, middle - reach);
           t < std::min(n, middle + reach); ++t) {
        const double z = (static_cast<double>(t) - at) / sigma / std::sqrt(2.0),
                     half = 0.5 / sigma / std::sqrt(2.0);
        add[static_cast<std::size_t>(c * n + t)] +=
            0.5 * (std::erf(z + half) - std::erf(z - half)) / 20;
      }
    }
  }
  for (const double v : add) squares += v * v;
  out.ideal = pulse.snr;
  for (std::size_t k = 0; k < add.size(); ++k) {
    const double value =
        24 + 8 * (gaussian(combine(seed, k)) + pulse.snr * add[k] / std::sqrt(squares));
    out.codes.push_back(static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0, 63.0)));
  }
  return out;
}

// T-DD-16: refined S/N >= 0.98 of the ideal one on average, DM and time right within their errors.
TEST(Refine, RecoversPulsesAndTheirParameters) {
  const Band band = test::best2_band(128);
  double total = 0, pulls = 0;
  int count = 0;
  for (const double fwhm : {1.0, 4.0, 30.0}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Pulse truth{20 + 0.013 * static_cast<double>(seed),
                        400 + 0.37 * static_cast<double>(seed), fwhm, 30};
      const std::int64_t n = 2000;
      const auto injected = inject(band, truth, n, 10 * seed + static_cast<std::uint64_t>(fwhm));
      RefineInput in;
      in.codes = injected.codes.data();
      in.stride = in.n_samples = n;
      in.mean = 24;
      in.sigma = 8;
      const double w = std::max(1.0, fwhm);
      const Pulse start{truth.dm_pc_cm3 + 0.3 * w / band.sweep_samples_per_dm(),
                        std::round(truth.tick) + 0.3 * w, 1.4 * w, 0};
      const auto found = refine(band, in, start);
      total += found.snr / truth.snr;
      ++count;
      ASSERT_GT(found.dm_error, 0);
      ASSERT_GT(found.tick_error, 0);
      EXPECT_LT(std::abs(found.dm_pc_cm3 - truth.dm_pc_cm3), 5 * found.dm_error)
          << fwhm << " " << seed;
      EXPECT_LT(std::abs(found.tick - truth.tick), 5 * found.tick_error) << fwhm << " " << seed;
      EXPECT_NEAR(found.fwhm_samples, fwhm, 0.25 * fwhm + 0.7) << seed;
      pulls += std::pow((found.dm_pc_cm3 - truth.dm_pc_cm3) / found.dm_error, 2);
    }
  }
  // Each S/N scatters by 1/30 and gains about 1.5/30^2 from the fit; the mean of 12 by 1 %.
  EXPECT_NEAR(total / count, 1.0, 0.04);
  EXPECT_GE(total / count, 0.98);
  EXPECT_LT(pulls / count, 3);
  EXPECT_GT(pulls / count, 0.1);
}

// Smearing of 7 to 22 samples within a channel, pulses of 1 to 20 before it: the profile has edges,
// and its curvature at the top says less of the error than the noise does: errors were half as
// large as they are.
TEST(Refine, ErrorsOfSmearedPulsesAreThoseOfTheNoise) {
  const Band band = test::best2_band(128);
  double dm_pulls = 0, tick_pulls = 0;
  int count = 0;
  for (const double dm : {20.0, 60.0}) {
    for (const double fwhm : {1.0, 4.0}) {
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const Pulse truth{dm + 0.0037 * static_cast<double>(seed),
                          500 + 0.37 * static_cast<double>(seed), fwhm, 10};
        const std::int64_t n = 2000 + static_cast<std::int64_t>(dm * 30);
        const auto injected = inject(band, truth, n, 1000 * seed + static_cast<std::uint64_t>(dm));
        RefineInput in;
        in.codes = injected.codes.data();
        in.stride = in.n_samples = n;
        in.mean = 24;
        in.sigma = 8;
        const double w = std::hypot(fwhm, band.smearing_samples(64, dm), 1.0);
        const auto found = refine(band, in,
                                  {truth.dm_pc_cm3 + 0.3 * w / band.sweep_samples_per_dm(),
                                   std::round(truth.tick) + 0.3 * w, 1.2 * w, 0});
        ASSERT_GT(found.dm_error, 0);
        dm_pulls += std::pow((found.dm_pc_cm3 - truth.dm_pc_cm3) / found.dm_error, 2);
        tick_pulls += std::pow((found.tick - truth.tick) / found.tick_error, 2);
        ++count;
      }
    }
  }
  RecordProperty("dm_pull_percent", static_cast<int>(100 * std::sqrt(dm_pulls / count)));
  EXPECT_LT(std::sqrt(dm_pulls / count), 1.7);
  EXPECT_GT(std::sqrt(dm_pulls / count), 0.6);
  EXPECT_LT(std::sqrt(tick_pulls / count), 1.7);
}

/// The same through a tail of `tau` samples at the highest channel, as nu^-4 or another power, by
/// an exponential of eighths of samples.
Injected inject_scattered(const Band& band, const Pulse& pulse, double tau, double index,
                          std::int64_t n, std::uint64_t seed) {
  constexpr int kParts = 8;
  const double sigma = kParts * pulse.fwhm_samples / 2.3548200450309493;
  std::vector<double> add(static_cast<std::size_t>(band.n_channels() * n));
  std::vector<double> fine(static_cast<std::size_t>(n * kParts));
  double squares = 0;
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    std::fill(fine.begin(), fine.end(), 0.0);
    for (int k = 0; k < 8; ++k) {
      const double nu = band.center_hz[static_cast<std::size_t>(c)] +
                        band.channel_width_hz * ((k + 0.5) / 8 - 0.5);
      const double top = band.center_hz.back();
      const double at = kParts * (pulse.tick + 0.5 +
                                  band.k_dm * pulse.dm_pc_cm3 * 1e12 *
                                      (1 / (nu * nu) - 1 / (top * top)) / band.sample_interval_s) -
                        0.5;
      const auto reach = static_cast<std::int64_t>(5 * sigma) + 3;
      const auto middle = static_cast<std::int64_t>(at);
      for (std::int64_t t = std::max<std::int64_t>(0, middle - reach);
           t < std::min<std::int64_t>(std::ssize(fine), middle + reach); ++t) {
        const double z = (static_cast<double>(t) - at) / sigma;
        fine[static_cast<std::size_t>(t)] += std::exp(-0.5 * z * z);
      }
    }
    const double here =
        kParts * tau *
        std::pow(band.center_hz.back() / band.center_hz[static_cast<std::size_t>(c)], index);
    const double stay = here > 0 ? here / (1 + here) : 0;  // mean delay `here`
    double tail = 0;
    for (std::int64_t t = 0; t < std::ssize(fine); ++t) {
      tail = stay * tail + (1 - stay) * fine[static_cast<std::size_t>(t)];
      add[static_cast<std::size_t>(c * n + t / kParts)] += tail;
    }
  }
  for (const double v : add) squares += v * v;
  Injected out;
  out.ideal = pulse.snr;
  for (std::size_t k = 0; k < add.size(); ++k) {
    const double value =
        24 + 8 * (gaussian(combine(seed, k)) + pulse.snr * add[k] / std::sqrt(squares));
    out.codes.push_back(static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0, 63.0)));
  }
  return out;
}

struct Pulls {
  int n = 0, n_scattered = 0;
  double dm = 0, tick = 0, tau = 0;  ///< rms in errors; tau of those with a tail
  double dm_mean = 0, tick_mean = 0, snr = 0;
};

Pulls pulls_of(double fwhm, double tau, double snr, double index, int n_seeds) {
  const Band band = test::band_of(1200, 256, 64, 1e-3);
  Pulls p;
  for (int seed = 0; seed < n_seeds; ++seed) {
    const Pulse truth{120 + 0.37 * seed, 300 + 0.37 * seed, fwhm, snr};
    const auto key = static_cast<std::uint64_t>(1000 * seed + std::lround(100 * fwhm + 7 * tau));
    const std::int64_t n = 1200;
    const auto injected = inject_scattered(band, truth, tau, index, n, key);
    RefineInput in;
    in.codes = injected.codes.data();
    in.stride = in.n_samples = n;
    in.mean = 24;
    in.sigma = 8;
    const double w = std::max(1.0, fwhm + tau);
    const auto found = refine(band, in,
                              {truth.dm_pc_cm3 + 0.3 * w / band.sweep_samples_per_dm(),
                               std::round(truth.tick) + 0.3 * w, w, 0});
    const double dm = (found.dm_pc_cm3 - truth.dm_pc_cm3) / found.dm_error;
    const double tick = (found.tick - truth.tick) / found.tick_error;
    p.dm += dm * dm / n_seeds;
    p.tick += tick * tick / n_seeds;
    p.dm_mean += dm / n_seeds;
    p.tick_mean += tick / n_seeds;
    p.snr += found.snr / snr / n_seeds;
    ++p.n;
    if (!(found.scattering_error > 0)) continue;
    ++p.n_scattered;
    p.tau += std::pow((found.scattering_samples - tau) / found.scattering_error, 2);
  }
  p.dm = std::sqrt(p.dm);
  p.tick = std::sqrt(p.tick);
  if (p.n_scattered > 0) p.tau = std::sqrt(p.tau / p.n_scattered);
  return p;
}

// A tail moves the best Gaussian by 3 to 12 of its errors in time and by 1 to 3 in DM. From half
// the width on it is told at S/N 40, from the width on at S/N 20, and center, DM and tail are then
// those of the pulse within their errors, whether it goes as nu^-4 or as nu^-4.4.
TEST(Refine, TailsOfScatteredPulsesAreFitted) {
  struct Case {
    double fwhm, tau, snr, index;
  };
  for (const auto& c :
       {Case{1, 1, 40, 4}, Case{3, 1.5, 40, 4}, Case{10, 5, 40, 4.4}, Case{3, 6, 20, 4.4},
        Case{10, 10, 20, 4}, Case{10, 50, 20, 4}, Case{3, 15, 20, 4.4}}) {
    const auto p = pulls_of(c.fwhm, c.tau, c.snr, c.index, 10);
    const auto name = testing::PrintToString(std::array{c.fwhm, c.tau, c.snr, c.index});
    EXPECT_GE(p.n_scattered, 9) << name;
    EXPECT_LT(p.dm, 1.7) << name;
    EXPECT_LT(p.tick, 1.7) << name;
    EXPECT_LT(p.tau, 2.2) << name;
    EXPECT_LT(std::abs(p.dm_mean), 0.8) << name;
    EXPECT_LT(std::abs(p.tick_mean), 0.8) << name;
    EXPECT_NEAR(p.snr, 1, 0.06) << name;
  }
}

// Where a tail is too short to be told, errors hold what it may have done.
TEST(Refine, ErrorsHoldTailsThatAreNotTold) {
  double dm = 0, tick = 0;
  int n_scattered = 0;
  for (const double fwhm : {1.0, 3.0, 10.0}) {
    const auto p = pulls_of(fwhm, 0.5 * fwhm, 15, 4, 10);
    n_scattered += p.n_scattered;
    dm += p.dm * p.dm / 3;
    tick += p.tick * p.tick / 3;
  }
  EXPECT_LT(n_scattered, 15);
  EXPECT_LT(std::sqrt(dm), 1.5);
  EXPECT_LT(std::sqrt(tick), 2.0);
}

// One pulse of 740 without a tail gains 9 by one.
TEST(Refine, PulsesWithoutATailHaveNone) {
  double dm = 0, tick = 0;
  int n = 0, n_scattered = 0;
  for (const double fwhm : {1.0, 3.0, 10.0})
    for (const double snr : {10.0, 20.0, 40.0}) {
      const auto p = pulls_of(fwhm, 0, snr, 4, 10);
      n += p.n;
      n_scattered += p.n_scattered;
      dm += p.dm * p.dm / 9;
      tick += p.tick * p.tick / 9;
    }
  EXPECT_EQ(n, 90);
  EXPECT_LE(n_scattered, 1);
  EXPECT_GT(std::sqrt(dm), 0.6);
  EXPECT_LT(std::sqrt(dm), 1.5);
  EXPECT_GT(std::sqrt(tick), 0.6);
  EXPECT_LT(std::sqrt(tick), 1.5);
}

TEST(Refine, MaskedChannelsDoNotCount) {
  const Band band = test::best2_band(64);
  const Pulse truth{10, 200, 4, 30};
  const auto injected = inject(band, truth, 1000, 3);
  std::vector<std::uint8_t> masked(64, 0);
  for (std::size_t c = 0; c < 32; ++c) masked[2 * c] = 1;
  RefineInput in{injected.codes.data(), 1000, 0, 1000, masked.data(), 24, 8};
  EXPECT_NEAR(matched_snr(band, in, truth), 30 * std::sqrt(0.5), 4);
  in.masked = nullptr;
  EXPECT_NEAR(matched_snr(band, in, truth), 30, 4);
}

// A wide pulse and narrow ones on its slopes: what fits all is a maximum along no line of widths,
// so that the curvature gives no errors. A DM with error 0 would count as certain.
TEST(Refine, ErrorsWhereThereIsNoCurvature) {
  const Band band = test::best2_band(128);
  const std::int64_t n = 2000;
  const auto wide = inject(band, {0, 600, 100, 30}, n, 1);
  const auto narrow = inject(band, {3, 720, 25, 40}, n, 2);
  std::vector<std::uint8_t> codes;
  for (std::size_t k = 0; k < wide.codes.size(); ++k)
    codes.push_back(static_cast<std::uint8_t>(
        std::clamp(int{wide.codes[k]} + int{narrow.codes[k]} - 24, 0, 63)));
  RefineInput in;
  in.codes = codes.data();
  in.stride = in.n_samples = n;
  in.mean = 24;
  in.sigma = 8 * std::sqrt(2.0);
  const auto found = refine(band, in, {0, 600, 100, 0});
  double mean = 0, square = 0;
  for (std::int64_t c = 0; c < 128; ++c) {
    mean += band.delay_samples(c, 1) / 128;
    square += band.delay_samples(c, 1) * band.delay_samples(c, 1) / 128;
  }
  const double tick = std::sqrt(2.0) * found.fwhm_samples / 2.3548200450309493 / found.snr;
  const double dm = tick / std::sqrt(square - mean * mean);
  // Smearing within a channel adds 1e-6 of it.
  EXPECT_NEAR(found.dm_error, dm, 1e-5 * dm);
  EXPECT_NEAR(found.tick_error, std::hypot(tick, dm * mean), 1e-5 * found.tick_error);
  EXPECT_NEAR(found.fwhm_error, std::sqrt(2.0) / found.snr * found.fwhm_samples,
              1e-9 * found.fwhm_samples);
}

}  // namespace
}  // namespace ryle::search
