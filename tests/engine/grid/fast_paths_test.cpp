// SPDX-License-Identifier: BSD-3-Clause
// What the fast gridder does differently from sample to sample: scans in order, plans in parts,
// planes in parts.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/engine/grid/grid_cases.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

// Tracks along x, sample after sample, as a telescope gives them: runs of a tile's list stand
// together in memory.
Field tracks(std::int64_t n_tracks, std::int64_t n_per_track) {
  Field f = field(60, 30, 30, 20, 1);
  f.lon_deg.clear();
  f.lat_deg.clear();
  for (std::int64_t t = 0; t < n_tracks; ++t)
    for (std::int64_t k = 0; k < n_per_track; ++k) {
      f.lon_deg.push_back(60 +
                          (static_cast<double>(k) / static_cast<double>(n_per_track) - 0.5) * 1.4);
      f.lat_deg.push_back(30 +
                          (static_cast<double>(t) / static_cast<double>(n_tracks) - 0.5) * 0.8);
    }
  return f;
}

TEST(GridFastPaths, ScansInOrderAreSamplesLikeAny) {
  constexpr std::int64_t kChannels = 19;
  const Case c = make_case(tracks(25, 97), gauss(), kChannels);
  expect_close(c);
  const auto n = static_cast<std::int64_t>(c.field.lon_deg.size());
  Case turned = c;  // [sample][channel]: read row by row
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t e = 0; e < kChannels; ++e)
      turned.data[static_cast<std::size_t>(k * kChannels + e)] =
          c.data[static_cast<std::size_t>(e * n + k)];
  turned.samples.sample_stride = kChannels;
  turned.samples.channel_stride = 1;
  for (const auto& name : available_implementations()) {
    const auto a = run(c, name), b = run(turned, name);
    for (std::int64_t e = 0; e < kChannels; ++e)
      for (std::int64_t i = 0; i < c.field.cells.directions.size(); ++i)
        ASSERT_EQ(a->sums().weighted(e, i), b->sums().weighted(e, i)) << name;
  }
}

// 80,000 samples are planned in 1, 4 and 8 parts by 1, 2 and 3 workers.
TEST(GridFastPaths, PlansInPartsAreOnePlan) {
  Case c = make_case(field(60, 30, 12, 12, 80'000), gauss(), 1);
  c.field.lat_deg[5] = 91;
  c.field.lon_deg[70'000] = kNaN;
  const auto want = run(c, "reference");
  const auto one = run(c, "auto", 1);
  const Error e = compare(one->sums(), want->sums());
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 2e-6);
  for (const int n_workers : {2, 3}) {
    const auto many = run(c, "auto", n_workers);
    for (std::int64_t i = 0; i < 144; ++i)
      ASSERT_EQ(one->sums().weighted(0, i), many->sums().weighted(0, i));
    Queue queue = Queue::cpu(n_workers);
    const auto plan =
        many->plan(queue, positions(queue, c.field.lon_deg.data(), c.field.lat_deg.data(), 80'000));
    EXPECT_EQ(metadata(*plan).bad_positions, 2);
    EXPECT_EQ(metadata(*plan).out_of_reach, 0);
  }
}

TEST(GridFastPaths, ValuesOfAllChannelsAreThoseOfPlanes) {
  Case c = make_case(field(60, 30, 80, 60, 6'000), gauss(2), 3);  // more than a part of 4096 cells
  Queue queue = Queue::cpu(2);
  for (const bool absent : {false, true}) {
    if (absent)
      for (std::size_t k = 6'000; k < 12'000; k += 3) c.data[k] = kNaN;  // of channel 1
    const auto got = run(c, "auto");
    EXPECT_NE(got->sums().uniform(), absent);
    const Finish options{3, 0.5};
    const auto n = static_cast<std::size_t>(c.field.cells.directions.size());
    std::vector<float> values(2 * n, 99);
    finish_values(queue, got->sums(), options, 1, 2, values.data());
    std::int64_t shown = 0;
    for (std::int64_t channel = 1; channel < 3; ++channel) {
      const Plane plane = finish(got->sums(), options, channel);
      for (std::size_t i = 0; i < n; ++i) {
        const float v = values[static_cast<std::size_t>(channel - 1) * n + i];
        ASSERT_EQ(std::isnan(v), std::isnan(plane.value[i])) << i;
        if (std::isnan(v)) continue;
        ASSERT_EQ(v, plane.value[i]) << i;
        ++shown;
      }
    }
    EXPECT_GT(shown, 1000);
    EXPECT_LT(shown, static_cast<std::int64_t>(2 * n));
  }
}

}  // namespace
}  // namespace ryle::grid
