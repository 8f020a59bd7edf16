// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "ryle/core/random.hpp"

namespace ryle::search {
namespace {

ClusterConfig native(std::int64_t n_trials) {
  ClusterConfig config;
  for (std::int64_t k = 0; k < n_trials; ++k)
    config.sweep_samples.push_back(static_cast<double>(k));
  return config;
}

/// What a pulse of a width and S/N leaves in a native plan: at a sweep error d a boxcar of about
/// W + |d| with S/N falling as 1/sqrt, spread in time by half of d.
std::vector<Token> pulse(std::int64_t at, std::int32_t trial, std::int32_t width, double snr,
                         std::int64_t n_trials) {
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < n_trials; ++i) {
    const double d = std::abs(i - trial);
    const double response = snr * std::sqrt(width / (width + d));
    const std::int32_t best = std::min(256, width + static_cast<std::int32_t>(d));
    for (std::int32_t w = 1; w <= best; w *= 2) {
      const double s = response * std::sqrt(static_cast<double>(w) / (width + d));
      if (s >= 7) tokens.push_back({at - (i - trial) / 2 - w / 2, w, i, static_cast<float>(s)});
    }
  }
  return tokens;
}

void expect_same(const std::vector<Cluster>& a, const std::vector<Cluster>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].best, b[k].best);
    EXPECT_EQ(a[k].n_tokens, b[k].n_tokens);
    EXPECT_EQ(a[k].begin, b[k].begin);
    EXPECT_EQ(a[k].end, b[k].end);
    EXPECT_EQ(a[k].lowest_trial, b[k].lowest_trial);
    EXPECT_EQ(a[k].highest_trial, b[k].highest_trial);
  }
}

TEST(Cluster, OnePulseIsOneCluster) {
  for (const double snr : {12.0, 20.0, 100.0, 2000.0}) {
    for (const std::int32_t width : {1, 4, 16, 128}) {
      Clusterer clusterer(native(500));
      clusterer.add(pulse(100000, 200, width, snr, 500));
      std::vector<Cluster> closed;
      clusterer.close_all(closed);
      ASSERT_EQ(closed.size(), 1u) << snr << " " << width;
      EXPECT_EQ(closed[0].best.trial, 200);
      EXPECT_EQ(
          closed[0].best.snr,
          static_cast<float>(snr * std::sqrt(std::min(256, width) / static_cast<double>(width)) *
                             std::sqrt(std::bit_floor(static_cast<unsigned>(width)) /
                                       static_cast<double>(width))));
    }
  }
}

TEST(Cluster, PulsesApartAreTwo) {
  Clusterer clusterer(native(500));
  clusterer.add(pulse(10000, 100, 4, 10, 500));
  clusterer.add(pulse(10400, 100, 4, 10, 500));
  clusterer.add(pulse(10000, 400, 4, 10, 500));
  std::vector<Cluster> closed;
  clusterer.close_all(closed);
  EXPECT_EQ(closed.size(), 3u);
}

std::vector<Token> storm(std::uint64_t n, std::int64_t span, std::int64_t n_trials) {
  std::vector<Token> tokens;
  for (std::uint64_t k = 0; k < n; ++k) {
    tokens.push_back(
        {static_cast<std::int64_t>(combine(1, k) % static_cast<std::uint64_t>(span)),
         1 << (combine(2, k) % 9),
         static_cast<std::int32_t>(combine(3, k) % static_cast<std::uint64_t>(n_trials)),
         static_cast<float>(7 + 3 * uniform(combine(4, k)))});
  }
  return tokens;
}

// The clusters do not depend on the order of tokens, nor on the blocks they come in.
TEST(Cluster, OrderAndBlocksDoNotMatter) {
  auto tokens = storm(3000, 400000, 800);
  for (const auto& t : pulse(123456, 300, 5, 50, 800)) tokens.push_back(t);
  std::vector<Cluster> expected;
  {
    Clusterer clusterer(native(800));
    clusterer.add(tokens);
    clusterer.close_all(expected);
  }
  EXPECT_GT(expected.size(), 100u);
  std::sort(tokens.begin(), tokens.end(),
            [](const Token& a, const Token& b) { return a.start < b.start; });
  for (const std::int64_t block : {512, 4096, 100000}) {
    Clusterer clusterer(native(800));
    std::vector<Cluster> got;
    std::size_t at = 0;
    std::int64_t most_open = 0;
    for (std::int64_t tick = block; at < tokens.size(); tick += block) {
      std::vector<Token> part;
      for (; at < tokens.size() && tokens[at].start < tick; ++at) part.push_back(tokens[at]);
      std::reverse(part.begin(), part.end());
      clusterer.add(part);
      clusterer.close_before(tick, got);
      most_open = std::max(most_open, clusterer.n_open_cells());
    }
    clusterer.close_all(got);
    std::sort(got.begin(), got.end(), [](const Cluster& a, const Cluster& b) {
      return std::tie(a.best.start, a.best.trial, a.best.width) <
             std::tie(b.best.start, b.best.trial, b.best.width);
    });
    expect_same(got, expected);
    if (block < 100000) {
      EXPECT_LT(most_open, 1000);  // they do close on the way
    }
  }
}

// T-DD-22: the time grows with the number of tokens, not with its square: a quadratic method needs
// 16 times as long for 4 times the tokens.
TEST(Cluster, StormsTakeLinearTime) {
  const auto took = [](std::uint64_t n) {
    const auto tokens = storm(n, static_cast<std::int64_t>(n) / 25, 800);
    Clusterer clusterer(native(800));
    const std::clock_t begin = std::clock();
    clusterer.add(tokens);
    std::vector<Cluster> closed;
    clusterer.close_all(closed);
    std::int64_t total = 0;
    for (const auto& c : closed) total += c.n_tokens;
    EXPECT_EQ(total, static_cast<std::int64_t>(n));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  took(50'000);
  const double small_s = took(50'000), large_s = took(200'000);
  RecordProperty("milliseconds_200000", static_cast<int>(large_s * 1e3));
  EXPECT_LT(large_s, 10 * small_s);
}

}  // namespace
}  // namespace ryle::search
