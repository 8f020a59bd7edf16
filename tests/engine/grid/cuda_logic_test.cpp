// SPDX-License-Identifier: BSD-3-Clause
// What the CUDA gridder computes, thread by thread on the host: equal to the direct sum, as its
// kernels will be where nothing but barriers and indices of threads is added.
#include <gtest/gtest.h>

#include "tests/engine/grid/cuda_on_host.hpp"
#include "tests/engine/grid/grid_table.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

template <class Real>
std::unique_ptr<CudaOnHost<Real>> run_on_host(const Case& c, const Samples& samples,
                                              std::int64_t chunk_samples, int maximum = 12) {
  Queue queue = Queue::cpu(1);
  auto gridder =
      std::make_unique<CudaOnHost<Real>>(c.config, c.field.cells, chunk_samples, maximum);
  const auto plan =
      gridder->plan(queue, positions(queue, c.field.lon_deg.data(), c.field.lat_deg.data(),
                                     static_cast<std::int64_t>(c.field.lon_deg.size())));
  gridder->execute(queue, *plan, samples);
  return gridder;
}

std::unique_ptr<Gridder> direct_sum(const TableCase& t) {
  Queue queue = Queue::cpu(1);
  Config config = t.c.config;
  config.implementation = "reference";
  auto gridder = make_gridder(config, t.c.field.cells);
  const auto plan =
      gridder->plan(queue, positions(queue, t.c.field.lon_deg.data(), t.c.field.lat_deg.data(),
                                     static_cast<std::int64_t>(t.c.field.lon_deg.size())));
  gridder->execute(queue, *plan, t.samples());
  return gridder;
}

void expect_near(const Sums& got, const Sums& want, double limit, double min_weight = 1) {
  const Error e = compare(got, want, min_weight);
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, limit);
  EXPECT_LT(e.weight, limit);
  EXPECT_LT(e.square, 2 * limit);
}

void expect_table(const std::vector<TableCase>& table) {
  for (const TableCase& t : table) {
    SCOPED_TRACE(t.name);
    const auto want = direct_sum(t);
    // Several chunks, the last of them a small one.
    const std::int64_t n = static_cast<std::int64_t>(t.c.field.lon_deg.size());
    expect_near(run_on_host<float>(t.c, t.samples(), std::max<std::int64_t>(1, 2 * n / 5))->sums(),
                want->sums(), t.f32_limit, t.min_weight);
    expect_near(run_on_host<double>(t.c, t.samples(), n)->sums(), want->sums(), 1e-12,
                t.min_weight);
  }
}

TEST(CudaGridLogic, EqualsTheDirectSumAnywhere) { expect_table(places_of_table()); }
TEST(CudaGridLogic, FunctionsOfEveryKind) { expect_table(functions_of_table()); }
TEST(CudaGridLogic, WeightsFlagsAndWhatIsAbsent) { expect_table(weights_of_table()); }

void expect_same_bits(const Sums& a, const Sums& b, std::int64_t channel_a,
                      std::int64_t channel_b) {
  for (std::int64_t i = 0; i < a.n_cells(); ++i) {
    const Moments &m = a.moments(channel_a, i), &n = b.moments(channel_b, i);
    ASSERT_EQ(a.weighted(channel_a, i), b.weighted(channel_b, i)) << i;
    ASSERT_EQ(m.weight, n.weight) << i;
    ASSERT_EQ(m.square, n.square) << i;
    ASSERT_EQ(m.magnitude, n.magnitude) << i;
    ASSERT_EQ(m.count, n.count) << i;
  }
}

TEST(CudaGridLogic, GroupsOfChannelsDoNotChangeABit) {
  const Case c = make_case(field(60, 30, 11, 9, 500), gauss(), 13);
  Samples samples = c.samples;
  samples.values = c.data.data();
  const auto whole = run_on_host<float>(c, samples, 300, 12);
  for (const int maximum : {1, 4, 8}) {
    const auto parts = run_on_host<float>(c, samples, 300, maximum);
    for (std::int64_t e = 0; e < 13; ++e) expect_same_bits(whole->sums(), parts->sums(), e, e);
  }
  // Channels in the other order of memory.
  Case turned = c;
  for (std::size_t k = 0; k < 500; ++k)
    for (std::size_t e = 0; e < 13; ++e) turned.data[13 * k + e] = c.data[500 * e + k];
  samples.values = turned.data.data();
  samples.sample_stride = 13;
  samples.channel_stride = 1;
  const auto other = run_on_host<float>(turned, samples, 300);
  expect_same_bits(whole->sums(), other->sums(), 12, 12);
}

// Several devices for fewer channels: each has some tiles, and no cell of the others.
TEST(CudaGridLogic, SharesOfTheMapAreItsCells) {
  Case c = make_case(field(60, 30, 79, 61, 2'000), gauss(), 2);  // 160 tiles: runs of 64 and a rest
  for (std::size_t k = 0; k < 300; ++k) c.data[k] = kNaN;
  Samples samples = c.samples;
  samples.values = c.data.data();
  const auto whole = run_on_host<float>(c, samples, 700);
  Queue queue = Queue::cpu(2);
  std::size_t n_tiles = 0;
  std::vector<int> holders(static_cast<std::size_t>(whole->sums().n_cells()));
  for (std::int64_t share = 0; share < 3; ++share) {
    CudaOnHost<float> part(c.config, c.field.cells, 700, 12, share, 3);
    n_tiles += part.tiling().tiles.size();
    const auto plan =
        part.plan(queue, positions(queue, c.field.lon_deg.data(), c.field.lat_deg.data(), 2'000));
    part.execute(queue, *plan, samples);
    for (std::int64_t i = 0; i < whole->sums().n_cells(); ++i)
      for (std::int64_t e = 0; e < 2; ++e) {
        const Moments &m = part.sums().moments(e, i), &n = whole->sums().moments(e, i);
        if (m.count == 0) {
          ASSERT_EQ(part.sums().weighted(e, i), 0);
          continue;
        }
        holders[static_cast<std::size_t>(i)] |= 1 << share;
        ASSERT_EQ(m.count, n.count) << i;
        ASSERT_EQ(m.weight, n.weight) << i;
        ASSERT_EQ(part.sums().weighted(e, i), whole->sums().weighted(e, i)) << i;
      }
  }
  EXPECT_EQ(n_tiles, detail::make_warp_tiles(c.field.cells, c.config.convolution).tiles.size());
  int held[8] = {};
  for (std::int64_t i = 0; i < whole->sums().n_cells(); ++i) {
    const int by = holders[static_cast<std::size_t>(i)];
    ++held[by];
    ASSERT_EQ(by != 0, whole->sums().moments(1, i).count > 0) << i;
  }
  EXPECT_EQ(held[3] + held[5] + held[6] + held[7], 0) << "cells of two shares";
  for (const int share : {1, 2, 4}) EXPECT_GT(held[share], 500);
}

TEST(CudaGridLogic, CellsOfReachedTilesAreTheirs) {
  const Case c = make_case(field(60, 30, 79, 61, 10), gauss(), 1);
  const detail::WarpTiling all = detail::make_warp_tiles(c.field.cells, c.config.convolution);
  std::vector<bool> reached(all.tiles.size());
  std::vector<std::int64_t> want;
  for (std::size_t t = 0; t < reached.size(); ++t) {
    reached[t] = t % 3 == 1 || t == 5;
    for (std::size_t lane = 0; reached[t] && lane < detail::kWarp; ++lane)
      if (all.cells[t * detail::kWarp + lane] >= 0)
        want.push_back(all.cells[t * detail::kWarp + lane]);
  }
  std::sort(want.begin(), want.end());
  std::vector<CellRange> cells;
  detail::add_cells(all, reached, cells);
  std::vector<std::int64_t> got;
  std::int64_t last = -1;
  for (const CellRange& r : detail::joined(cells)) {
    EXPECT_GT(r.first, last) << "apart, or they would be one";
    for (std::int64_t i = r.first; i < r.last; ++i) got.push_back(i);
    last = r.last;
  }
  EXPECT_EQ(got, want);
}

TEST(CudaGridLogic, AProductBeyondFloatIsNothingOutOfReach) {
  const float x[] = {1e20F, -1e20F}, u[] = {1e30F, 1e30F};
  const detail::LoadView from{1, 2, x, nullptr, u};
  float values[2];
  const detail::Presence p = detail::load_sample<float, 2>(from, 0, values, nullptr);
  EXPECT_EQ(p.valid, 3U);
  for (const float v : values) EXPECT_EQ(0 * v, 0);
  EXPECT_GT(values[0], 3e38F);
  EXPECT_LT(values[1], -3e38F);
  double exact[2];
  detail::load_sample<double, 2>(from, 0, exact, nullptr);
  EXPECT_NEAR(exact[0] / 1e50, 1, 1e-6);  // floats of 1e20 and 1e30, each to 6e-8
}

TEST(CudaGridLogic, WhatIsAbsentInOneChannelTouchesNothingElse) {
  constexpr std::size_t kN = 400;
  const Case clean = make_case(field(60, 30, 19, 9, kN), gauss(), 14);
  Samples samples = clean.samples;
  samples.values = clean.data.data();
  const auto whole = run_on_host<float>(clean, samples, 250);
  std::unique_ptr<CudaOnHost<float>> first;
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    auto data = clean.data;
    std::vector<std::uint8_t> flags(data.size());
    std::vector<float> ones(data.size(), 1);
    for (std::size_t k = 10 * kN; k < 10 * kN + 40; ++k) {  // the first scans only
      if (form == 0) data[k] = kNaN;
      if (form == 1) data[k] = kInf;
      if (form == 2) flags[k] = 1;
      if (form == 3) ones[k] = 0;
    }
    samples = clean.samples;
    samples.values = data.data();
    if (form == 2) samples.flags = flags.data();
    if (form == 3) {
      samples.weights = ones.data();
      samples.weight_channel_stride = kN;
    }
    auto got = run_on_host<float>(clean, samples, 250);
    for (const std::int64_t e : {0, 9, 11, 13}) expect_same_bits(got->sums(), whole->sums(), e, e);
    if (form == 0)
      first = std::move(got);
    else
      expect_same_bits(got->sums(), first->sums(), 10, 10);
  }
}

// 2,048 samples in one place, each 0.1: in float32 alone the sum drifts by 2^-24 of itself with
// each of them, 1e-5 and more in all; 256 of them may err by 256 x 2^-24.
TEST(CudaGridLogic, ShortSumsGoIntoDouble) {
  Convolution f = gauss();
  f.function = Function::mean;
  Case c = make_case(field(60, 30, 1, 1, 2'048), f, 1);
  std::fill(c.field.lon_deg.begin(), c.field.lon_deg.end(), 60);
  std::fill(c.field.lat_deg.begin(), c.field.lat_deg.end(), 30);
  double worst = 0;
  for (const float x : {0.1F, 0.7F, 1.3F}) {
    std::fill(c.data.begin(), c.data.end(), x);
    Samples samples = c.samples;
    samples.values = c.data.data();
    const auto got = run_on_host<float>(c, samples, 2'048);
    ASSERT_EQ(got->sums().moments(0, 0).count, 2'048);
    worst =
        std::max(worst, std::abs(got->sums().weighted(0, 0) / 2048 / static_cast<double>(x) - 1));
  }
  EXPECT_LT(worst, 3e-6);
  RecordProperty("worst", std::to_string(worst));
}

TEST(CudaGridLogic, SamplesAreFoundAndCounted) {
  // A sample is a candidate of every tile it matters to; those beyond all tiles are counted.
  const TableCase t = places_of_table().back();
  Queue queue = Queue::cpu(1);
  CudaOnHost<float> gridder(t.c.config, t.c.field.cells, 250, 12);
  const Positions p = positions(queue, t.c.field.lon_deg.data(), t.c.field.lat_deg.data(), 600);
  const PlanMetadata found = metadata(*gridder.plan(queue, p));
  std::int64_t bad = 0, near = 0, beyond = 0;
  const Positions& cells = t.c.field.cells.directions;
  for (std::size_t k = 0; k < 600; ++k) {
    bad += std::isnan(p.x[k]) ? 1 : 0;
    double minimum = 4;
    for (std::size_t i = 0; i < cells.x.size(); ++i) {
      const double d = std::hypot(p.x[k] - cells.x[i], p.y[k] - cells.y[i], p.z[k] - cells.z[i]);
      if (d < minimum) minimum = d;
    }
    near += minimum < gridder.tiling().chord ? 1 : 0;
    beyond += minimum > 3 * gridder.tiling().chord ? 1 : 0;
  }
  EXPECT_EQ(found.n_samples, 600);
  EXPECT_EQ(found.bad_positions, bad);
  EXPECT_LE(found.out_of_reach, 600 - bad - near);
  EXPECT_GE(found.out_of_reach, beyond - bad);
  EXPECT_GE(found.n_candidates, near);
}

TEST(CudaGridLogic, KeysAndNodesAgree) {
  // The node of a key holds the place the key was made of, at every level, corners of faces too.
  std::mt19937 random(5);
  std::uniform_real_distribution<double> u(-1, 1);
  for (int k = 0; k < 2'000; ++k) {
    double p[3] = {u(random), u(random), u(random)};
    if (k % 10 == 0) p[k / 10 % 3] = 0;
    if (k % 7 == 0) p[0] = p[1];
    if (k % 77 == 0 && p[1] != 0) p[2] = -p[1];
    const double r = std::hypot(p[0], p[1], p[2]);
    for (double& v : p) v /= r;
    for (const int order : {0, 3, 8, detail::kMaxOrder}) {
      const std::uint32_t key = detail::sky_key(p[0], p[1], p[2], order);
      ASSERT_LT(key, detail::kFaces << (2 * order));
      const detail::SkyNode node = detail::sky_node(key, order);
      const double d =
          std::hypot(p[0] - node.center[0], p[1] - node.center[1], p[2] - node.center[2]);
      ASSERT_LE(d, node.radius) << order;
      ASSERT_LT(node.radius, 1.3 / (1 << order));  // and is no larger than it must be
    }
  }
}

}  // namespace
}  // namespace ryle::grid
