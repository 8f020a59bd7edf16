// SPDX-License-Identifier: BSD-3-Clause
// The gridder on a device: the table of tests/engine/grid against the direct sum, bits that do not
// depend on how channels are cut, and planes in one go.
#include <array>

#include "ryle/core/error.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/grid/cuda/make.hpp"
#endif
#include "tests/cuda/cuda_test.hpp"
#include "tests/engine/grid/cuda_on_host.hpp"
#include "tests/engine/grid/grid_table.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

class CudaGrid : public ryle::test::CudaTest {
 protected:
  static std::unique_ptr<Gridder> grid(const Case& c, const Samples& samples,
                                       const std::string& implementation,
                                       Precision precision = Precision::f32,
                                       const std::vector<int>& devices = {}) {
    Queue host = Queue::cpu(2);
    Config config = c.config;
    config.implementation = implementation;
    config.precision = precision;
    config.devices = devices;
    auto gridder = make_gridder(config, c.field.cells);
    const auto plan =
        gridder->plan(host, positions(host, c.field.lon_deg.data(), c.field.lat_deg.data(),
                                      static_cast<std::int64_t>(c.field.lon_deg.size())));
    gridder->execute(host, *plan, samples);
    return gridder;
  }

  static void expect_table(const std::vector<TableCase>& table) {
    for (const TableCase& t : table) {
      SCOPED_TRACE(t.name);
      const auto want = grid(t.c, t.samples(), "reference");
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        const auto got = grid(t.c, t.samples(), "cuda", precision);
        EXPECT_EQ(got->implementation(), "cuda:gather");
        const Error e = compare(got->sums(), want->sums(), t.min_weight);
        const double limit = precision == Precision::f64 ? 1e-12 : t.f32_limit;
        EXPECT_EQ(e.counts, 0);
        EXPECT_LT(e.value, limit);
        EXPECT_LT(e.weight, limit);
        EXPECT_LT(e.square, 2 * limit);
      }
    }
  }

  static void expect_same_bits(const Sums& a, const Sums& b, std::int64_t channel) {
    for (std::int64_t i = 0; i < a.n_cells(); ++i) {
      ASSERT_EQ(a.weighted(channel, i), b.weighted(channel, i)) << i;
      ASSERT_EQ(a.moments(channel, i).weight, b.moments(channel, i).weight) << i;
      ASSERT_EQ(a.moments(channel, i).square, b.moments(channel, i).square) << i;
      ASSERT_EQ(a.moments(channel, i).count, b.moments(channel, i).count) << i;
    }
  }
};

TEST_F(CudaGrid, EqualsTheDirectSumAnywhere) { expect_table(places_of_table()); }
TEST_F(CudaGrid, FunctionsOfEveryKind) { expect_table(functions_of_table()); }
TEST_F(CudaGrid, WeightsFlagsAndWhatIsAbsent) { expect_table(weights_of_table()); }

TEST_F(CudaGrid, WideSupportsAreMadeInDouble) {
  Convolution f = gauss();
  f.sigma_rad = 10 * kDegree_rad;
  f.support_rad = 50 * kDegree_rad;
  Case c = make_case(field(60, 30, 12, 12, 500), f, 1);
  c.field.cells = orthographic(60, 30, 20, 20, 5 * kDegree_rad);
  Samples samples = c.samples;
  samples.values = c.data.data();
  const Error e = compare(grid(c, samples, "cuda")->sums(), grid(c, samples, "reference")->sums());
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 1e-12);
}

TEST_F(CudaGrid, NeitherGroupsNorDevicesNorStridesChangeABit) {
  const Case all = make_case(field(60, 30, 40, 30, 6'000), gauss(), 21);
  Samples samples = all.samples;
  samples.values = all.data.data();
  const auto whole = grid(all, samples, "cuda");
  for (const std::int64_t n : {1, 2, 5, 8, 9, 12, 13}) {
    Case few = all;
    few.config.n_channels = n;
    const auto part = grid(few, samples, "cuda");
    expect_same_bits(part->sums(), whole->sums(), 0);
    expect_same_bits(part->sums(), whole->sums(), n - 1);
  }
  auto turned = all.data;
  for (std::size_t k = 0; k < 6'000; ++k)
    for (std::size_t e = 0; e < 21; ++e) turned[21 * k + e] = all.data[6'000 * e + k];
  samples.values = turned.data();
  samples.sample_stride = 21;
  samples.channel_stride = 1;
  const auto other = grid(all, samples, "cuda");
  for (const std::int64_t e : {0, 7, 8, 20}) expect_same_bits(other->sums(), whole->sums(), e);
  if (list_devices().size() > 2) {
    const auto two = grid(all, samples, "cuda", Precision::f32, {1, 0});
    for (const std::int64_t e : {0, 9, 10, 20}) expect_same_bits(two->sums(), whole->sums(), e);
    Case one = all;  // fewer channels than devices: tiles are split
    one.config.n_channels = 1;
    const auto tiles = grid(one, samples, "cuda", Precision::f32, {1, 0});
    expect_same_bits(tiles->sums(), whole->sums(), 0);
  }
}

// What a plan says of its samples is what the same functions say on the host.
TEST_F(CudaGrid, PlansCountTheirSamples) {
  const TableCase t = places_of_table().back();
  Queue host = Queue::cpu(2);
  const auto places = [&] {
    return positions(host, t.c.field.lon_deg.data(), t.c.field.lat_deg.data(),
                     static_cast<std::int64_t>(t.c.field.lon_deg.size()));
  };
  CudaOnHost<float> expected(t.c.config, t.c.field.cells, std::int64_t{1} << 20, 12);
  const PlanMetadata want = metadata(*expected.plan(host, places()));
  Config config = t.c.config;
  config.implementation = "cuda";
  const auto gridder = make_gridder(config, t.c.field.cells);
  const auto plan = gridder->plan(host, places());
  const PlanMetadata got = metadata(*plan);
  EXPECT_EQ(got.n_samples, want.n_samples);
  EXPECT_EQ(got.bad_positions, want.bad_positions);
  EXPECT_EQ(got.out_of_reach, want.out_of_reach);
  EXPECT_EQ(got.n_tiles, want.n_tiles);
  EXPECT_EQ(got.n_candidates, want.n_candidates);
  // Cells that a plan names hold all that execute() adds.
  gridder->execute(host, *plan, t.samples());
  std::vector<bool> named(static_cast<std::size_t>(gridder->sums().n_cells()));
  for (const CellRange& r : gridder->cells_of(*plan))
    for (std::int64_t i = r.first; i < r.last; ++i) named[static_cast<std::size_t>(i)] = true;
  for (std::size_t i = 0; i < named.size(); ++i)
    ASSERT_TRUE(named[i] || gridder->sums().moments(0, static_cast<std::int64_t>(i)).count == 0);
}

TEST_F(CudaGrid, AbsentInOneChannelTouchesNothingElse) {
  const Case clean = make_case(field(60, 30, 19, 9, 400), gauss(), 14);
  Samples samples = clean.samples;
  samples.values = clean.data.data();
  const auto whole = grid(clean, samples, "cuda");
  auto data = clean.data;
  for (std::size_t k = 10 * 400; k < 10 * 400 + 40; ++k) data[k] = kNaN;
  samples.values = data.data();
  const auto got = grid(clean, samples, "cuda");
  for (const std::int64_t e : {0, 9, 11, 13}) expect_same_bits(got->sums(), whole->sums(), e);
  std::int64_t fewer = 0;
  for (std::int64_t i = 0; i < got->sums().n_cells(); ++i)
    fewer += got->sums().moments(10, i).count < whole->sums().moments(10, i).count ? 1 : 0;
  EXPECT_GT(fewer, 0);
}

// More samples than a chunk holds, one plan for several calls that add up.
TEST_F(CudaGrid, ManyChunksAndCalls) {
  const Case c = make_case(field(60, 30, 6, 6, 2'200'000), gauss(), 1);
  Samples samples = c.samples;
  samples.values = c.data.data();
  Queue host = Queue::cpu(2);
  Config config = c.config;
  std::array<std::unique_ptr<Gridder>, 2> both;
  for (std::size_t k = 0; k < 2; ++k) {
    config.implementation = k == 0 ? "cuda" : "cpu";
    both[k] = make_gridder(config, c.field.cells);
    const auto plan = both[k]->plan(
        host, positions(host, c.field.lon_deg.data(), c.field.lat_deg.data(), 2'200'000));
    for (int call = 0; call < 2; ++call) both[k]->execute(host, *plan, samples);
  }
  const Error e = compare(both[0]->sums(), both[1]->sums());
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 2e-6);
  EXPECT_LT(e.weight, 2e-6);
}

#ifdef RYLE_HAVE_CUDA
TEST_F(CudaGrid, PlanesInOneGoAreThoseOfTheSums) {
  for (const bool absent : {false, true}) {
    SCOPED_TRACE(absent);
    Case c = make_case(field(60, 30, 40, 30, 5'000), gauss(), 14);
    const std::int64_t n_cells = c.field.cells.directions.size();
    if (absent)
      for (std::size_t k = 0; k < c.data.size(); k += 3) c.data[k] = kNaN;
    Samples samples = c.samples;
    samples.values = c.data.data();
    const auto want = grid(c, samples, "cuda");
    c.config.implementation = "cuda";
    const auto mapper = make_cuda_mapper(c.config, c.field.cells);
    EXPECT_EQ(mapper->implementation(), "cuda:gather");
    Buffer<float> values(14 * n_cells, MemorySpace::pinned), weight(n_cells, MemorySpace::pinned);
    Buffer<std::int32_t> count(n_cells, MemorySpace::pinned);
    const CudaMapper::Input input{c.field.lon_deg.data(), c.field.lat_deg.data(), 5'000, samples};
    for (int call = 0; call < 2; ++call) {
      const PlanMetadata f = mapper->map(input, {}, {values.data(), weight.data(), count.data()});
      EXPECT_EQ(f.n_samples, 5'000);
      EXPECT_EQ(f.bad_positions, 0);
    }
    for (std::int64_t e = 0; e < 14; ++e) {
      const Plane plane = finish(want->sums(), {}, e);
      for (std::int64_t i = 0; i < n_cells; ++i) {
        const float got = values[e * n_cells + i], sum = plane.value[static_cast<std::size_t>(i)];
        // Places from the device's sines: 1e-16 of a radian, a few 1e-7 of a value in float32.
        if (std::isnan(sum))
          ASSERT_TRUE(std::isnan(got)) << e << " " << i;
        else
          ASSERT_NEAR(got, sum, 2e-6F * std::abs(sum)) << e << " " << i;
        if (absent) continue;
        ASSERT_EQ(count[i], plane.count[static_cast<std::size_t>(i)]) << i;
        ASSERT_NEAR(weight[i], plane.weight[static_cast<std::size_t>(i)], 1e-5F) << i;
      }
    }
  }
}
#endif

TEST_F(CudaGrid, NothingToGridIsAnEmptyMap) {
  Case c = make_case(field(60, 30, 9, 9, 10), gauss(), 2);
  std::fill(c.field.lat_deg.begin(), c.field.lat_deg.end(), -40);
  Samples samples = c.samples;
  samples.values = c.data.data();
  const auto far = grid(c, samples, "cuda");
  EXPECT_EQ(far->sums().moments(1, 40).count, 0);
  for (auto& x : c.field.cells.directions.x) x = kNaN;
  const auto nowhere = grid(c, samples, "cuda");
  EXPECT_EQ(nowhere->sums().moments(0, 40).count, 0);
}

TEST_F(CudaGrid, NamesThatAreNoneSayWhatThereIs) {
  const Case c = make_case(field(60, 30, 9, 9, 10), gauss(), 2);
  Samples samples = c.samples;
  samples.values = c.data.data();
  EXPECT_THROW(grid(c, samples, "cuda:scatter"), UnsupportedError);
  EXPECT_THROW(grid(c, samples, "cuda", Precision::f32, {0, 0}), ConfigError);
  EXPECT_THROW(grid(c, samples, "cuda", Precision::f32, {63}), DeviceError);
}

}  // namespace
}  // namespace ryle::grid
