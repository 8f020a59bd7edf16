// SPDX-License-Identifier: BSD-3-Clause
// Pulses in the noise of a plane of trials, through boxcars and clusters: one event each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/baseline.hpp"
#include "ryle/engine/search/cluster.hpp"

namespace ryle::search {
namespace {

constexpr double kRms = 250, kMean = 24000;

struct Planted {
  double at = 0, fwhm = 1, sweep = 0, snr = 0;
  double tail = 0;  ///< time constant of scattering, samples
};

/// Trials a sample of sweep apart, summed from channels with noise and pulses of their own.
class Plane {
 public:
  Plane(std::int64_t n_trials, std::int64_t n_columns, std::uint64_t seed)
      : n_trials_(n_trials), n_(n_columns), length_(n_columns + n_trials) {
    for (std::int64_t k = 0; k < kChannels * length_; ++k)
      channels_.push_back(gaussian(combine(seed, static_cast<std::uint64_t>(k))));
  }
  void add(const Planted& p) {
    const double s = p.fwhm / 2.3548200450309493, reach = 6 * s + 8 * p.tail + 2;
    const auto profile = [&](double x) {
      return p.tail > 0 ? (x >= 0 ? std::exp(-x / p.tail) : 0) : std::exp(-0.5 * x * x / (s * s));
    };
    double square = 0;
    for (double x = -std::floor(reach); x < reach; ++x) square += profile(x) * profile(x);
    const double height = p.snr / std::sqrt(square * kChannels);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      const double at = p.at + p.sweep * delay(c);
      for (auto t = static_cast<std::int64_t>(at - reach);
           t < static_cast<std::int64_t>(at + reach); ++t)
        if (t >= 0 && t < length_)
          channels_[static_cast<std::size_t>(c * length_ + t)] +=
              height * profile(static_cast<double>(t) + 0.5 - at);
    }
  }
  std::vector<Cluster> events(std::int64_t max_width = 512) const {
    std::vector<std::uint32_t> sums;
    std::vector<double> row(static_cast<std::size_t>(n_));
    for (std::int64_t trial = 0; trial < n_trials_; ++trial) {
      std::fill(row.begin(), row.end(), 0.0);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const double* x =
            channels_.data() + c * length_ + std::lrint(static_cast<double>(trial) * delay(c));
        for (std::size_t t = 0; t < row.size(); ++t) row[t] += x[t];
      }
      for (const double x : row)
        sums.push_back(static_cast<std::uint32_t>(
            std::lround(kMean + kRms / std::sqrt(static_cast<double>(kChannels)) * x)));
    }
    Queue queue = Queue::cpu(1);
    DetectConfig config;
    config.n_trials = n_trials_;
    config.max_columns = n_;
    config.max_width = max_width;
    config.format = SumFormat::u32;
    DetectInput in;
    in.sums = sums.data();
    in.stride = in.n_columns = in.stat_end = n_;
    in.end_start = (n_ - max_width) / 64 * 64;
    std::vector<Hit> hits;
    make_detector(queue, config)->execute(queue, in, hits);
    ClusterConfig clusters;
    for (std::int64_t k = 0; k < n_trials_; ++k)
      clusters.sweep_samples.push_back(static_cast<double>(k));
    clusters.max_width = max_width;
    clusters.reach_samples = 4096;
    Clusterer clusterer(clusters);
    clusterer.add(hits);
    std::vector<Cluster> closed;
    clusterer.close_all(closed);
    return closed;
  }

 private:
  static constexpr std::int64_t kChannels = 32;
  /// Part of the sweep at which a channel arrives.
  static double delay(std::int64_t channel) {
    return static_cast<double>(kChannels - 1 - channel) / (kChannels - 1);
  }
  std::int64_t n_trials_, n_, length_;
  std::vector<double> channels_;  // [channel][length_]
};

std::string text_of(const std::vector<Cluster>& events) {
  std::string s;
  for (const auto& e : events)
    s += "\n  start " + std::to_string(e.best.start) + " width " + std::to_string(e.best.width) +
         " trial " + std::to_string(e.best.trial) + " S/N " + std::to_string(e.best.snr) +
         " hits " + std::to_string(e.n_hits);
  return s;
}

/// Exactly the planted pulses, in order of time, each within its width.
void expect_each(const std::vector<Planted>& pulses, std::uint64_t seed,
                 std::int64_t max_width = 512, std::int64_t n_trials = 60) {
  Plane plane(n_trials, 8192, seed);
  for (const auto& p : pulses) plane.add(p);
  const auto events = plane.events(max_width);
  ASSERT_EQ(events.size(), pulses.size()) << seed << text_of(events);
  for (const auto& p : pulses)
    EXPECT_TRUE(std::any_of(events.begin(), events.end(),
                            [&](const Cluster& e) {
                              return std::abs(e.best.center() - p.at) <
                                     0.75 * p.fwhm + 2 + 0.75 * p.tail;
                            }))
        << p.at << text_of(events);
}

TEST(Events, OneForAPulseOfAnyWidthAndStrength) {
  std::uint64_t seed = 1;
  for (const double fwhm : {1.5, 4.0, 20.0, 90.0, 390.0})
    for (const double snr : {9.5, 20.0, 100.0, 1000.0})
      expect_each({{4000.3 + 37 * static_cast<double>(seed), fwhm, 31, snr}}, ++seed);
}

// Two boxcars apart (2.4 FWHM), from the 64 samples on that hits tell apart.
TEST(Events, NearPulsesAreTwo) {
  for (std::uint64_t seed = 40; seed < 44; ++seed) {
    const double at = 3000 + 17 * static_cast<double>(seed);
    expect_each({{at, 28, 30, 20}, {at + 68, 28, 30, 20}}, seed);
    expect_each({{at, 60, 30, 20}, {at + 200, 60, 30, 15}}, seed + 10);
    expect_each({{at, 4, 30, 20}, {at + 130, 4, 30, 20}, {at + 260, 4, 30, 12}}, seed + 20);
  }
}

// A pulse 20 dB (100 times) below another: before it from 3 widths on, behind it from 5, where no
// scattering of it is left.
TEST(Events, WeakNextToStrong) {
  expect_each({{3000, 30, 30, 1000}, {3000 + 200, 30, 30, 10.5}}, 70);
  expect_each({{3000, 30, 30, 1000}, {3000 - 130, 30, 30, 10.5}}, 71);
  expect_each({{3000, 5, 10, 100}, {3300, 5, 50, 12}}, 72);
}

TEST(Events, NarrowOnWide) {
  expect_each({{3000, 200, 30, 25}}, 80);
  expect_each({{3000, 200, 30, 25}, {2950, 4, 30, 15}}, 81);
  expect_each({{3000, 300, 30, 15}, {3050, 3, 30, 40}}, 82);
}

TEST(Events, ScatteredPulsesAreOne) {
  for (const double tail : {20.0, 150.0}) expect_each({{3000, 1, 30, 100, tail}}, 90);
}

// Longer than the widest boxcar: pieces that touch.
TEST(Events, LongerThanTheWidestBoxcarIsOne) {
  Plane plane(40, 8192, 95);
  plane.add({4000, 900, 20, 40});
  const auto events = plane.events(256);
  EXPECT_EQ(events.size(), 1u) << text_of(events);
}

// A train: what one boxcar over several of them has is less than what they have one by one.
TEST(Events, TrainsAreTakenApart) {
  std::vector<Planted> train;
  for (int k = 0; k < 24; ++k) train.push_back({1000.0 + 250 * k, 20, 30, 14});
  expect_each(train, 97);
}

// A pulse of S/N 20 and 390 samples, 0.9 sigma high, hardly lifts the mean nor the rms.
TEST(Baseline, WidePulsesDoNotBiasIt) {
  double bias = 0, ratio = 0;
  constexpr int kSeeds = 20;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::vector<float> x(10240);
    const double s = 390 / 2.3548;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const double z = (static_cast<double>(t) - 5000) / s, y = (static_cast<double>(t) - 9000) / s;
      x[t] = static_cast<float>(kMean +
                                kRms * (gaussian(combine(seed, t)) + 1.07 * std::exp(-0.5 * z * z) +
                                        1.07 * std::exp(-0.5 * y * y)));  // and a neighbor
    }
    const auto b = baseline_about(x, {}, 5000 - 230, 460);
    ASSERT_GT(b.n_samples, 5000);
    bias += (b.mean - kMean) / kRms / kSeeds;
    ratio += b.sigma / kRms / kSeeds;
  }
  // In a boxcar of 460 samples 0.01 of the S/N of 20 is 0.2 = sqrt(460) 0.0093; 20 means of 7000
  // samples scatter by 0.0027.
  EXPECT_NEAR(bias, 0, 0.0093);
  EXPECT_NEAR(ratio, 1, 0.006);
}

TEST(Baseline, WhatIsMaskedSaysNothing) {
  std::vector<float> x(8192), weights(128, 1.0f);
  for (std::size_t t = 0; t < x.size(); ++t)
    x[t] = static_cast<float>(kMean + kRms * gaussian(combine(3, t)));
  for (std::size_t t = 1024; t < 3072; ++t) x[t] = 0;
  std::fill(weights.begin() + 16, weights.begin() + 48, 0.5f);
  const auto b = baseline_about(x, weights, 5000, 20);
  EXPECT_NEAR(b.mean, kMean, 5 * kRms / std::sqrt(6000.0));
  EXPECT_NEAR(b.sigma, kRms, 0.05 * kRms);
  EXPECT_EQ(baseline_about(std::span<const float>(x).first(100), {}, 20, 20).sigma, 0);
}

}  // namespace
}  // namespace ryle::search
