// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/order_statistics.hpp"

#include <functional>

#include "ryle/core/error.hpp"
#include "ryle/engine/grid/order_select.hpp"
#include "tests/engine/grid/grid_cases.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

struct OrderMaps {
  std::vector<float> value, weight;
  std::vector<std::int32_t> count;
};

OrderMaps order_maps(const Case& c, const Estimator& estimator, const std::string& implementation,
                     int n_workers = 2, const Finish& finish = {}) {
  Queue queue = Queue::cpu(n_workers);
  const std::int64_t cells = c.field.cells.directions.size(), n = c.config.n_channels;
  auto gridder = make_order_gridder({estimator, n, finish, implementation}, c.field.cells);
  EXPECT_TRUE(implementation == "auto" || gridder->implementation() == implementation);
  const auto size = static_cast<std::size_t>(cells * n);
  OrderMaps maps{std::vector<float>(size, 99), std::vector<float>(size, 99),
                 std::vector<std::int32_t>(size, 99)};
  Samples samples = c.samples;
  samples.values = c.data.data();
  const auto plan =
      gridder->plan(queue, positions(queue, c.field.lon_deg.data(), c.field.lat_deg.data(),
                                     static_cast<std::int64_t>(c.field.lon_deg.size())));
  gridder->execute(queue, *plan, samples,
                   {maps.value.data(), maps.weight.data(), maps.count.data(), cells});
  return maps;
}

void expect_same(const OrderMaps& got, const OrderMaps& want) {
  for (std::size_t i = 0; i < want.value.size(); ++i) {
    ASSERT_TRUE(got.value[i] == want.value[i] ||
                (std::isnan(got.value[i]) && std::isnan(want.value[i])))
        << i << ": " << got.value[i] << " is not " << want.value[i];
    ASSERT_EQ(got.weight[i], want.weight[i]) << i;
    ASSERT_EQ(got.count[i], want.count[i]) << i;
    ASSERT_EQ(std::isnan(want.value[i]), want.count[i] == 0) << i;
  }
}

Estimator estimator_of(Statistic statistic) { return {statistic, gauss(2)}; }

constexpr Statistic kMedians[] = {Statistic::median, Statistic::weighted_median};

TEST(OrderStatistics, EqualSortingAnywhereOnTheSky) {
  struct Place {
    double lon, lat;
    std::int64_t nx, ny, n;
  };
  // Few samples and many, odd and even counts, cells without any; a pole, the seam, one row.
  for (const Place p : {Place{0, 30, 25, 9, 600},
                        {359.9, -60, 7, 9, 3'000},
                        {10, 90, 17, 17, 900},
                        {200, 0, 1, 40, 700}})
    for (const Statistic s : kMedians) {
      SCOPED_TRACE(p.lat);
      const Case c = make_case(field(p.lon, p.lat, p.nx, p.ny, p.n), gauss(2), 3);
      const OrderMaps want = order_maps(c, estimator_of(s), "reference");
      EXPECT_GT(*std::max_element(want.count.begin(), want.count.end()), 0);
      expect_same(order_maps(c, estimator_of(s), "cpu:selection"), want);
    }
}

TEST(OrderStatistics, TiesFlagsWeightsAndWhatIsNoNumber) {
  for (const Statistic s : kMedians) {
    Case c = make_case(field(60, 30, 12, 10, 1'000), gauss(2), 3);
    std::mt19937 random(11);
    for (auto& x : c.data) x = std::floor(x) - 10;  // about ten different values, zeros among them
    for (std::size_t k = 0; k < c.data.size(); k += 5) c.data[k] *= -1;
    for (std::size_t k = 1; k < c.data.size(); k += 40) c.data[k] = kNaN;
    for (std::size_t k = 2; k < c.data.size(); k += 40) c.data[k] = k % 80 == 2 ? kInf : -kInf;
    std::vector<std::uint8_t> flags(c.data.size());
    for (std::size_t k = 3; k < flags.size(); k += 17) flags[k] = 1;
    c.samples.flags = flags.data();
    std::vector<float> weights(c.data.size());
    for (auto& w : weights) w = static_cast<float>(random() % 4);  // 0 among them
    weights[8] = kNaN;
    weights[9] = kInf;
    weights[10] = -2;
    weights[11] = 1e30F;  // outweighs its neighbours, and nobody else
    c.samples.weights = weights.data();
    for (const std::int64_t stride : {0, 1'000}) {
      c.samples.weight_channel_stride = stride;
      expect_same(order_maps(c, estimator_of(s), "cpu:selection"),
                  order_maps(c, estimator_of(s), "reference"));
    }
  }
}

// Cells in the middle of samples of known values.
TEST(OrderStatistics, AreWhatTheEquationsSay) {
  Case c = make_case(field(60, 30, 1, 1, 0), gauss(2), 1);
  const auto maps = [&](const std::vector<float>& x, const std::vector<float>& u, Statistic s,
                        const Finish& finish) {
    c.field.lon_deg.assign(x.size(), 60);
    c.field.lat_deg.assign(x.size(), 30);
    c.data = x;
    c.samples.weights = u.data();
    const OrderMaps fast = order_maps(c, estimator_of(s), "auto", 1, finish);
    expect_same(fast, order_maps(c, estimator_of(s), "reference", 1, finish));
    return fast;
  };
  const auto median = [&](const std::vector<float>& x) {
    return maps(x, std::vector<float>(x.size(), 3), Statistic::median, {}).value[0];
  };
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({5, 8}), 6.5F);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 5, 1e30F, -3}), 4.5F);
  EXPECT_EQ(median({2, 2, 2, 7}), 2);
  EXPECT_EQ(median({3e38F, 3e38F}), 3e38F) << "the sum of the two middle ones is no float";
  const auto weighted = [&](const std::vector<float>& x, const std::vector<float>& u) {
    return maps(x, u, Statistic::weighted_median, {}).value[0];
  };
  EXPECT_EQ(weighted({1, 2, 3}, {1, 1, 4}), 3);
  EXPECT_EQ(weighted({3, 1, 2}, {3, 1, 2}), 2.5F) << "1 and 2 weigh half exactly";
  EXPECT_EQ(weighted({3, 1, 2}, {3, 1, 2.001F}), 2);
  EXPECT_EQ(weighted({3, 1, 2, 7}, {3, 1, 2, 1e-9F}), 2.5F) << "below 2^-24 of the largest";
  EXPECT_EQ(weighted({1, 2, kNaN}, {1, 3, 1e30F}), 2) << "what is absent outweighs nothing";
  EXPECT_TRUE(std::isnan(weighted({1, 2}, {0, -1})));
  const OrderMaps plain = maps({4, 6, kNaN}, {2, 5, 1}, Statistic::median, {});
  EXPECT_EQ(plain.weight[0], 2);
  EXPECT_EQ(plain.count[0], 2);
  EXPECT_EQ(maps({4, 6}, {2, 5}, Statistic::weighted_median, {}).weight[0], 7);
  EXPECT_TRUE(std::isnan(maps({4, 6}, {2, 5}, Statistic::median, {3, 0}).value[0]));
  EXPECT_TRUE(std::isnan(maps({4, 6}, {2, 5}, Statistic::weighted_median, {1, 7.5}).value[0]));
}

TEST(OrderStatistics, ChannelsAndWorkersDoNotChangeABit) {
  const Case all = make_case(field(60, 30, 18, 17, 2'000), gauss(2), 70);
  for (const Statistic s : kMedians) {
    const OrderMaps whole = order_maps(all, estimator_of(s), "cpu:selection", 2);
    expect_same(order_maps(all, estimator_of(s), "cpu:selection", 1), whole);
    Case one = all;
    one.config.n_channels = 1;
    one.data.assign(all.data.begin() + 69 * 2'000, all.data.end());
    const OrderMaps alone = order_maps(one, estimator_of(s), "cpu:selection");
    for (std::size_t i = 0; i < alone.value.size(); ++i)
      ASSERT_EQ(alone.value[i], whole.value[69 * alone.value.size() + i]);
  }
}

// A tenth of the samples ruined: the mean is gone, the median stands.
TEST(OrderStatistics, InterferenceDoesNotMoveMedians) {
  Case c = make_case(field(60, 30, 10, 10, 3'000), gauss(2), 1);
  for (std::size_t k = 0; k < c.data.size(); k += 10) c.data[k] = 1e6F;
  const auto mean = run(c, "auto");
  for (const Statistic s : kMedians) {
    const OrderMaps maps = order_maps(c, estimator_of(s), "auto");
    for (std::int64_t i = 0; i < 100; ++i) {
      EXPECT_GT(mean->sums().weighted(0, i) / mean->sums().moments(0, i).weight, 100);
      EXPECT_NEAR(maps.value[static_cast<std::size_t>(i)], 10.3, 3.5);
    }
  }
}

TEST(OrderStatistics, SelectionEqualsSortingForEveryOrder) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const auto n = static_cast<std::size_t>(1 + random() % (trial < 200 ? 40 : 3'000));
    std::vector<detail::OrderItem> items(n);
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const auto kind = trial % 4;
      const auto x = static_cast<float>(kind == 0 ? random() % 7 : random() % 100'000);
      items[k] = {kind == 1   ? static_cast<float>(k)
                  : kind == 2 ? static_cast<float>((k * 2 < n ? k : n - k))
                              : x,
                  static_cast<std::uint32_t>(1 + random() % (trial % 3 == 0 ? 1 : 1 << 24))};
      sum += items[k].weight;
    }
    auto sorted = items;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.x < b.x; });
    std::uint64_t cumulative = 0;
    double want = kNaN;
    for (std::size_t k = 0; k < n && std::isnan(want); ++k) {
      cumulative += sorted[k].weight;
      if (2 * cumulative >= sum)
        want =
            0.5 * (static_cast<double>(sorted[k].x) + sorted[2 * cumulative == sum ? k + 1 : k].x);
    }
    std::vector<detail::OrderItem> room(2 * n);
    ASSERT_EQ(detail::weighted_median(items.data(), static_cast<std::int64_t>(n), sum, room.data()),
              want)
        << trial;
  }
}

TEST(OrderStatistics, AreWrittenAsUsersDo) {
  const double beam = 2.9 * kArcmin_rad;
  const Estimator half = parse_estimator("median", beam);
  EXPECT_EQ(half.statistic, Statistic::median);
  EXPECT_DOUBLE_EQ(half.convolution.support_rad, 0.5 * beam);
  const Estimator own = parse_estimator("median:radius=1.4arcmin", 0);
  EXPECT_DOUBLE_EQ(own.convolution.support_rad, 1.4 * kArcmin_rad);
  EXPECT_EQ(to_string(own), "median:radius=84arcsec");
  const Estimator weighted = parse_estimator("wmedian:gauss:sigma=60arcsec,radius=2sigma", 0);
  EXPECT_EQ(weighted.statistic, Statistic::weighted_median);
  EXPECT_DOUBLE_EQ(weighted.convolution.support_rad, 2 * kArcmin_rad);
  EXPECT_EQ(to_string(weighted), "wmedian:gauss:sigma=60arcsec,radius=120arcsec");
  EXPECT_EQ(parse_estimator("wmedian", beam).convolution.function, Function::gauss);
  EXPECT_EQ(parse_estimator("jinc", beam).statistic, Statistic::mean);
  EXPECT_EQ(to_string(parse_estimator("gauss:1arcmin", 0)).rfind("gauss:sigma=", 0), 0U);
  EXPECT_THROW(parse_estimator("median", 0), ConfigError);
  EXPECT_THROW(parse_estimator("median:sigma=2arcmin", beam), ConfigError);
  EXPECT_THROW(parse_estimator("wmedian:jinc", beam), ConfigError) << "negative lobes";
  EXPECT_NO_THROW(parse_estimator("wmedian:sinc", beam)) << "ends at its first zero";
  const Cells cells = orthographic(0, 0, 4, 4, 1e-3);
  EXPECT_THROW(make_order_gridder({{Statistic::mean, gauss()}, 1, {}, "auto"}, cells), ConfigError);
  EXPECT_THROW(make_order_gridder({half, 0, {}, "auto"}, cells), ConfigError);
  EXPECT_THROW(make_order_gridder({half, 1, {}, "auto"}, Cells{}), ConfigError);
  EXPECT_THROW(make_order_gridder({half, 1, {}, "gpu"}, cells), UnsupportedError);
}

}  // namespace
}  // namespace ryle::grid
