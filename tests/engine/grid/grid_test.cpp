// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "tests/engine/grid/grid_cases.hpp"
#include "tests/engine/grid/grid_table.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

TEST(Grid, EqualsTheDirectSumAnywhereOnTheSky) {
  struct Place {
    double lon, lat;
  };
  for (const Place p : {Place{0, 0},
                        {60, 30},
                        {359.9, -45},
                        {0, 60},
                        {120, 75},
                        {0.02, 88},
                        {200, 89.9},
                        {10, -90}}) {
    SCOPED_TRACE(p.lat);
    expect_close(make_case(field(p.lon, p.lat, 37, 24, 3'000), gauss(), 2));
  }
}

// Samples 2e-7 or 3e-8 of the support inside or outside the edge of a cell: float32 offsets of a
// tile, rounded to 2e-6 of it at most, put many of them on the wrong side in every instruction set
// (grid.md 4).
TEST(Grid, TheEdgeOfTheSupportIsDecidedInDouble) {
  const Convolution f = gauss(3);
  Case c = make_case(field(70, 36, 40, 34, 2'000), f, 1);
  add_edge_samples(c, f);
  const auto n = static_cast<std::int64_t>(c.field.lon_deg.size());
  c.data = values(1, n);
  c.samples.channel_stride = n;
  expect_close(c);
}

TEST(Grid, DenseSamplesDoNotBiasTheSums) {
  expect_close(make_case(field(60, 30, 5, 5, 30'000), gauss(), 1));
}

TEST(Grid, AnyNumberOfChannelsIsThatChannelAlone) {
  const Field f = field(60, 30, 18, 11, 1'000);
  const Case all = make_case(f, gauss(), 70);
  for (const auto& name : available_implementations()) {
    const auto whole = run(all, name);
    for (const std::int64_t n : {1, 2, 3, 7, 9, 31, 33, 65}) {
      Case few = all;
      few.config.n_channels = n;
      const auto part = run(few, name);
      for (std::int64_t c = 0; c < n; ++c)
        for (std::int64_t i = 0; i < f.cells.directions.size(); ++i)
          ASSERT_EQ(part->sums().weighted(c, i), whole->sums().weighted(c, i)) << name << " " << n;
    }
    // The other order in memory gives the same bits.
    Case turned = all;
    const auto n = static_cast<std::int64_t>(f.lon_deg.size());
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t c = 0; c < 70; ++c)
        turned.data[static_cast<std::size_t>(k * 70 + c)] =
            all.data[static_cast<std::size_t>(c * n + k)];
    turned.samples.sample_stride = 70;
    turned.samples.channel_stride = 1;
    const auto other = run(turned, name);
    for (std::int64_t c = 0; c < 70; ++c)
      for (std::int64_t i = 0; i < f.cells.directions.size(); ++i)
        ASSERT_EQ(other->sums().weighted(c, i), whole->sums().weighted(c, i)) << name;
  }
}

TEST(Grid, WorkersDoNotChangeABit) {
  const Case c = make_case(field(60, 30, 50, 50, 9'000), gauss(), 3);
  for (const auto& name : available_implementations()) {
    if (name == "reference") continue;
    const auto one = run(c, name, 1), two = run(c, name, 2);
    for (std::int64_t i = 0; i < c.field.cells.directions.size(); ++i) {
      ASSERT_EQ(one->sums().weighted(2, i), two->sums().weighted(2, i));
      ASSERT_EQ(one->sums().moments(0, i).weight, two->sums().moments(0, i).weight);
    }
  }
}

TEST(Grid, FunctionsOfEveryKind) {
  for (const auto& f : functions_of_every_kind()) {
    SCOPED_TRACE(static_cast<int>(f.function));
    Case c = make_case(field(60, 30, 20, 16, 2'500), f, 2);
    const auto want = run(c, "reference");
    for (const auto& name : available_implementations()) {
      const Error e = compare(run(c, name)->sums(), want->sums());
      EXPECT_EQ(e.counts, 0) << name;
      // Negative lobes: sums are small beside their terms, by a factor of up to 3 here.
      EXPECT_LT(e.value, 6e-6) << name;
      EXPECT_LT(e.weight, 6e-6) << name;
    }
  }
}

TEST(Grid, WideSupportsAreMadeInDouble) {
  Convolution f = gauss();
  f.sigma_rad = 10 * kDegree_rad;
  f.support_rad = 50 * kDegree_rad;
  Case c = make_case(field(60, 30, 12, 12, 500), f, 1);
  c.field.cells =
      orthographic(60, 30, 20, 20, 5 * kDegree_rad);  // most of a hemisphere, corners off it
  const auto want = run(c, "reference");
  const auto got = run(c, "auto");
  const Error e = compare(got->sums(), want->sums());
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 1e-12);
  EXPECT_EQ(got->sums().moments(0, 0).count, 0) << "a cell off the sky";
}

TEST(Grid, SightLinesAnywhereAreCells) {
  Case c = make_case(field(60, 30, 30, 30, 4'000), gauss(), 2);
  Queue queue = Queue::cpu(1);
  std::vector<double> lon{60, 60.1, 0, 180, 60.2, 59.9, 59.7},
      lat{30, 30.1, 90, -90, 29.8, 30.05, 30.3};
  c.field.cells = {positions(queue, lon.data(), lat.data(), 7), 0};
  expect_close(c);
}

TEST(Grid, WeightsAreInverseVariances) {
  Case c = make_case(field(60, 30, 20, 20, 5'000), gauss(), 3);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> u(0.2F, 4);
  std::vector<float> weights(3 * 5'000);
  for (auto& w : weights) w = u(random);
  weights[17] = 0;
  weights[18] = kNaN;
  weights[19] = -1;
  c.samples.weights = weights.data();
  expect_close(c);  // one for all channels
  c.samples.weight_channel_stride = 5'000;
  expect_close(c);  // each channel its own
}

TEST(Grid, WhatIsAbsentInOneChannelTouchesNothingElse) {
  constexpr std::size_t kN = 1'500;
  const Case clean = make_case(field(60, 30, 12, 12, kN), gauss(), 70);
  std::vector<std::uint8_t> flags(clean.data.size());
  std::vector<float> ones(clean.data.size(), 1);
  for (const auto& name : available_implementations()) {
    const auto whole = run(clean, name);
    std::vector<std::unique_ptr<Gridder>> forms;
    for (int form = 0; form < 4; ++form) {
      Case c = clean;
      auto f = flags;
      auto w = ones;
      for (std::size_t k = 0; k < kN; k += 7) {
        const std::size_t at = 66 * kN + k;
        if (form == 0) c.data[at] = kNaN;
        if (form == 1) c.data[at] = -kInf;
        if (form == 2) f[at] = 1;
        if (form == 3) w[at] = 0;
      }
      if (form == 2) c.samples.flags = f.data();
      if (form == 3) {
        c.samples.weights = w.data();
        c.samples.weight_channel_stride = kN;
      }
      forms.push_back(run(c, name));
      if (form == 0) {
        const Error e = compare(forms[0]->sums(), run(c, "reference")->sums());
        EXPECT_EQ(e.counts, 0) << name;
        EXPECT_LT(e.value, 2e-6) << name;
        EXPECT_LT(e.weight, 2e-6) << name;
      }
      const Sums &a = forms.back()->sums(), &b = whole->sums(), &first = forms.front()->sums();
      for (std::int64_t i = 0; i < 144; ++i) {
        for (const std::int64_t channel : {0, 65, 69}) {
          ASSERT_EQ(a.weighted(channel, i), b.weighted(channel, i)) << name << " form " << form;
          ASSERT_EQ(a.moments(channel, i).weight, b.moments(channel, i).weight)
              << name << " form " << form;
          ASSERT_EQ(a.moments(channel, i).count, b.moments(channel, i).count) << name;
        }
        ASSERT_EQ(a.weighted(66, i), first.weighted(66, i)) << name << " form " << form;
        ASSERT_EQ(a.moments(66, i).weight, first.moments(66, i).weight) << name << " form " << form;
        ASSERT_LT(a.moments(66, i).count, b.moments(66, i).count) << name;
      }
    }
  }
}

TEST(Grid, AConstantSkyIsThatConstant) {
  Case c = make_case(field(0, 80, 40, 40, 9'000), gauss(), 2);
  std::fill(c.data.begin(), c.data.end(), 7.25F);
  const auto got = run(c, "auto");
  const Plane plane = finish(got->sums(), {}, 1);
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < plane.value.size(); ++i) {
    if (plane.count[i] == 0) {
      EXPECT_TRUE(std::isnan(plane.value[i]));
      EXPECT_EQ(plane.weight[i], 0);
      continue;
    }
    ++covered;
    EXPECT_NEAR(plane.value[i], 7.25, 7.25e-6);
  }
  EXPECT_GT(covered, 1500);
}

TEST(Grid, EmptyCellsAreNaN) {
  Case c = make_case(field(60, 30, 10, 10, 3), gauss(3), 1);
  const auto got = run(c, "auto");
  const Plane all = finish(got->sums(), {}, 0), two = finish(got->sums(), {2, 0}, 0),
              heavy = finish(got->sums(), {1, 0.9}, 0);
  std::int64_t n_all = 0, n_two = 0, n_heavy = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    n_all += std::isnan(all.value[i]) ? 0 : 1;
    n_two += std::isnan(two.value[i]) ? 0 : 1;
    n_heavy += std::isnan(heavy.value[i]) ? 0 : 1;
    EXPECT_EQ(std::isnan(all.value[i]), all.count[i] == 0);
  }
  EXPECT_GT(n_all, n_two);
  EXPECT_GT(n_all, n_heavy);
  EXPECT_LT(n_all, 100);
}

TEST(Grid, PositionsThatAreNoneAreCounted) {
  Queue queue = Queue::cpu(1);
  const std::vector<double> lon{10, kNaN, 20, 400, -350.5, 30},
      lat{10, 0, 90.5, 20, 30, static_cast<double>(kInf)};
  const Positions p = positions(queue, lon.data(), lat.data(), 6);
  auto gridder =
      make_gridder({gauss(), 1, Precision::f32, "auto"}, orthographic(10, 10, 4, 4, 1e-3));
  const auto plan = gridder->plan(queue, p);
  EXPECT_EQ(metadata(*plan).bad_positions, 3);
  EXPECT_EQ(metadata(*plan).out_of_reach, 2);
  for (const std::size_t k : {0U, 3U, 4U}) {
    const double a = lon[k] * kDegree_rad, d = lat[k] * kDegree_rad;
    EXPECT_NEAR(p.x[k], std::cos(d) * std::cos(a), 4e-16);
    EXPECT_NEAR(p.y[k], std::cos(d) * std::sin(a), 4e-16);
    EXPECT_NEAR(p.z[k], std::sin(d), 4e-16);
  }
}

TEST(Grid, ImpossibleMapsSayWhy) {
  Convolution none;
  EXPECT_THROW(make_gridder({none, 1, Precision::f32, "auto"}, orthographic(0, 0, 4, 4, 1e-3)),
               ConfigError);
  EXPECT_THROW(make_gridder({gauss(), 0, Precision::f32, "auto"}, orthographic(0, 0, 4, 4, 1e-3)),
               ConfigError);
  EXPECT_THROW(make_gridder({gauss(), 1, Precision::f32, "auto"}, Cells{}), ConfigError);
  EXPECT_THROW(
      make_gridder({gauss(), 1, Precision::f32, "cpu:mmx"}, orthographic(0, 0, 4, 4, 1e-3)),
      UnsupportedError);
}

}  // namespace
}  // namespace ryle::grid
