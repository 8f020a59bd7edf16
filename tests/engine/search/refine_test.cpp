// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/refine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

// A wide pulse and a stronger narrow one on its slope: what fits both is a maximum along no line of
// widths, so that the curvature gives no errors. A DM with error 0 would count as certain.
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
