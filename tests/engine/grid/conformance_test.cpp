// SPDX-License-Identifier: BSD-3-Clause
// What gridding anywhere on the sky must not get wrong (grid.md 15), and what peers do (grid.md
// 16).
#include <sys/mman.h>

#include <type_traits>

#include "tests/engine/grid/grid_cases.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

constexpr double kTelescopeBeam_rad = 3 * kArcmin_rad;

// One of each kind, for a beam of 3'.
std::vector<Convolution> every_function() {
  std::vector<Convolution> functions;
  for (const char* text :
       {"gauss", "gauss:fwhm=3arcmin,radius=5sigma", "jinc", "jinc:radius=1.88arcmin", "sinc",
        "mean", "ellipse:major=2arcmin,minor=1.2arcmin,pa=25deg"})
    functions.push_back(parse_convolution(text, kTelescopeBeam_rad));
  Convolution table = functions.front();
  table.function = Function::table;
  for (int k = 0; k <= 40; ++k) {
    table.table_theta_rad.push_back(table.support_rad * k / 40);
    table.table_value.push_back(value(functions.front(), table.table_theta_rad.back(), 0, 0));
  }
  functions.push_back(table);
  return functions;
}

Case precise(Case c, Precision precision) {
  c.config.precision = precision;
  return c;
}

// Both precisions of the best instruction set against the direct sum.
void expect_the_direct_sum(const Case& c) {
  const auto want = run(c, "reference");
  for (const Precision p : {Precision::f32, Precision::f64}) {
    const Error e = compare(run(precise(c, p), "auto")->sums(), want->sums());
    EXPECT_EQ(e.counts, 0);
    EXPECT_GT(e.covered, 0);
    EXPECT_LT(e.value, p == Precision::f64 ? 1e-12 : 2e-6);
    EXPECT_LT(e.weight, p == Precision::f64 ? 1e-12 : 2e-6);
  }
}

// Samples in rows and columns about a direction, exactly: an odd number on a side.
Field rows_and_columns(double lon_deg, double lat_deg, std::int64_t side, double step_rad,
                       std::int64_t map_side, double cell_rad) {
  Field f;
  const Cells places = orthographic(lon_deg, lat_deg, side, side, step_rad);
  for (std::size_t k = 0; k < places.directions.x.size(); ++k) {
    f.lon_deg.push_back(std::atan2(places.directions.y[k], places.directions.x[k]) / kDegree_rad);
    f.lat_deg.push_back(std::asin(places.directions.z[k]) / kDegree_rad);
  }
  f.cells = orthographic(lon_deg, lat_deg, map_side, map_side, cell_rad);
  return f;
}

Case with_values(Field f, const Convolution& c, std::vector<float> data) {
  Case result = make_case(std::move(f), c, 1);
  result.data = std::move(data);
  return result;
}

// HEGrid searches longitudes without 1 / cos(dec): weights low by 4e-6 (30 deg) to 7e-2 (68); and
// skips the first ring of its samples. Counts say that no sample is lost.
TEST(GridConformance, DeclinationsWherePeersLoseSamples) {
  for (const double dec : {45.0, -60.0, 68.0, 90.0}) {
    SCOPED_TRACE(dec);
    expect_the_direct_sum(make_case(field(33, dec, 17, 11, 800), gauss(), 1));
  }
}

// HEGrid leaves 450 and 540 of 8,100 cells of such maps empty.
TEST(GridConformance, TheSeamOfRightAscensionLosesNoCell) {
  for (const double lon : {0.0, 359.9}) {
    const Case c = make_case(field(lon, lon > 0 ? -30 : 30, 23, 14, 2'000), gauss(), 1);
    expect_the_direct_sum(c);
    const Plane plane = finish(run(c, "auto")->sums(), {}, 0);
    EXPECT_EQ(std::count(plane.count.begin(), plane.count.end(), 0), 0);
  }
}

TEST(GridConformance, SupportsOfAnArcsecondAndOfTwentyDegrees) {
  constexpr double kArcsec_rad = kArcmin_rad / 60;
  Convolution f = gauss();
  for (const double radius_rad : {kArcsec_rad, 20 * kDegree_rad}) {
    f.support_rad = radius_rad;
    f.sigma_rad = radius_rad / 5;
    const double step_rad = radius_rad / 4;
    Case c = make_case(rows_and_columns(211, -35, 21, step_rad, 13, 0.77 * step_rad), f, 1);
    expect_the_direct_sum(c);
  }
}

// Where three or four base pixels of HEALPix meet, and the poles: places like any other.
TEST(GridConformance, CornersOfHealpix) {
  Case c = make_case({}, gauss(), 1);
  std::mt19937 random(2);
  std::uniform_real_distribution<double> offset(-0.1, 0.1);
  std::vector<double> lon, lat;
  for (const auto& [l, b] : {std::pair{0.0, 0.0},
                             {45.0, 0.0},
                             {0.0, 41.8103148957786},
                             {270.0, 41.8103148957786},
                             {90.0, -41.8103148957786},
                             {12.0, 90.0},
                             {0.0, -90.0}}) {
    const double stretch = 1 / std::max(0.01, std::cos(b * kDegree_rad));
    for (int k = 0; k < 200; ++k) {
      c.field.lon_deg.push_back(l + stretch * offset(random));
      c.field.lat_deg.push_back(std::clamp(b + offset(random), -90.0, 90.0));
      if (k % 20 != 0) continue;
      lon.push_back(l + 0.3 * stretch * offset(random));
      lat.push_back(std::clamp(b + 0.3 * offset(random), -90.0, 90.0));
    }
  }
  Queue queue = Queue::cpu(1);
  const auto n = static_cast<std::int64_t>(c.field.lon_deg.size());
  c.field.cells = {positions(queue, lon.data(), lat.data(), static_cast<std::int64_t>(lon.size())),
                   0};
  c.data = values(1, n);
  expect_the_direct_sum(c);
}

TEST(GridConformance, AMapAndAListOfItsPlacesAgree) {
  Case map = make_case(field(60, 30, 21, 19, 1'500), gauss(3), 1), list = map;
  list.field.cells.width = 0;
  const Error e = compare(run(list, "auto")->sums(), run(map, "auto")->sums());
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 2e-6);
  EXPECT_LT(e.weight, 2e-6);
}

// HCGrid+ launches by the wrong axis; the gridder of the LMT warns of maps that are not square.
TEST(GridConformance, MapsOfAnyShape) {
  for (const auto& [nx, ny] : {std::pair{1, 300}, {300, 1}, {7, 13}}) {
    SCOPED_TRACE(nx);
    expect_the_direct_sum(make_case(field(60, 30, nx, ny, 500), gauss(), 1));
  }
}

TEST(GridConformance, TurnsOfTheSkyChangeNothing) {
  const Case still = make_case(field(0.4, 50, 19, 17, 1'500), gauss(3), 1);
  const auto want = run(still, "auto");
  for (const double turn_deg : {7.123, 180.0, 271.77, 359.5, -360.0, 720.0}) {
    SCOPED_TRACE(turn_deg);
    Case turned = still;
    for (double& lon : turned.field.lon_deg) lon += turn_deg;
    turned.field.cells = orthographic(0.4 + turn_deg, 50, 19, 17, 2 * kArcmin_rad);
    const Error e = compare(run(turned, "auto")->sums(), want->sums());
    EXPECT_EQ(e.counts, 0);
    EXPECT_LT(e.value, 1e-6);
    EXPECT_LT(e.weight, 1e-6);
  }
  // -180 .. 180 and 0 .. 360 name the same places.
  Case other = still;
  for (double& lon : other.field.lon_deg) lon += lon < 0.4 ? 360 : 0;
  EXPECT_EQ(compare(run(other, "auto")->sums(), want->sums()).counts, 0);
  EXPECT_LT(compare(run(other, "auto")->sums(), want->sums()).value, 1e-6);
}

TEST(GridConformance, AConstantSkyUnderEveryFunction) {
  for (const auto& f : every_function())
    for (const Precision p : {Precision::f32, Precision::f64}) {
      SCOPED_TRACE(to_string(f));
      Case c = precise(make_case(field(0, -75, 9, 9, 1'500), f, 1), p);
      std::fill(c.data.begin(), c.data.end(), 7.25F);
      const auto got = run(c, "auto");
      for (std::int64_t i = 0; i < 81; ++i) {
        const Moments& m = got->sums().moments(0, i);
        ASSERT_GT(m.count, 0);
        // Rounding of sums is by their terms, which negative lobes cancel in part.
        const double lost = m.magnitude / m.weight;
        ASSERT_NEAR(got->sums().weighted(0, i) / m.weight, 7.25,
                    7.25 * lost * (p == Precision::f64 ? 1e-14 : 1e-6));
      }
    }
}

TEST(GridConformance, ARampStaysARampUnderEveryFunction) {
  constexpr std::int64_t kSide = 61;
  for (const auto& f : every_function()) {
    SCOPED_TRACE(to_string(f));
    std::vector<float> ramp;
    for (std::int64_t k = 0; k < kSide * kSide; ++k)
      ramp.push_back(static_cast<float>(10 + 0.125 * static_cast<double>(k % kSide - kSide / 2)));
    // Cells on every fourth sample, at whose symmetric neighbours the ramp is odd.
    const auto got =
        run(with_values(rows_and_columns(60, 30, kSide, 0.5 * kArcmin_rad, 5, 2 * kArcmin_rad), f,
                        ramp),
            "auto");
    const Plane plane = finish(got->sums(), {}, 0);
    for (int i = 0; i < 25; ++i)
      EXPECT_NEAR(plane.value[static_cast<std::size_t>(i)], 10 + 0.5 * (i % 5 - 2), 1e-5) << i;
  }
}

// Flux, peak and width of a point source against the table of grid.md 2.
TEST(GridConformance, PointSourcesUnderEveryFunction) {
  struct Known {
    double fwhm, area;
  };
  const double half = 1.2 / 3;  // the ellipse's minor axis; the source's cut runs along a row
  const Known known[] = {{1.115, 1.241}, {1.414, 2.000}, {1.094, 1.114}, {1.145, 1.301},
                         {1.105, 1.214}, {1.190, 1.386}, {0, 0},         {1.115, 1.241}};
  const auto functions = every_function();
  constexpr std::int64_t kSide = 61, kMap = 37;
  constexpr double kStep_rad = 0.4 * kArcmin_rad;
  std::vector<float> source;
  double total = 0;
  for (std::int64_t k = 0; k < kSide * kSide; ++k) {
    const double x = static_cast<double>(k % kSide - kSide / 2) * 0.4 / 3,
                 y = static_cast<double>(k / kSide - kSide / 2) * 0.4 / 3;
    source.push_back(static_cast<float>(std::exp(-4 * std::log(2.0) * (x * x + y * y))));
    total += static_cast<double>(source.back());
  }
  for (std::size_t n = 0; n < functions.size(); ++n) {
    SCOPED_TRACE(to_string(functions[n]));
    const auto got = run(with_values(rows_and_columns(60, 30, kSide, kStep_rad, kMap, kStep_rad),
                                     functions[n], source),
                         "auto");
    const Plane plane = finish(got->sums(), {}, 0);
    double flux = 0;
    for (const float v : plane.value) flux += static_cast<double>(v);
    EXPECT_NEAR(flux, total, 0.005 * total);
    const auto row = [&](std::int64_t x) {
      return static_cast<double>(
          plane.value[static_cast<std::size_t>(kMap / 2 * kMap + kMap / 2 + x)]);
    };
    if (known[n].area == 0) {  // two Gaussians: areas by axes
      EXPECT_NEAR(row(0), 1 / (std::hypot(1, 2.0 / 3) * std::hypot(1, half)), 0.01);
      continue;
    }
    // A support of a few samples is not the integral of the table.
    EXPECT_NEAR(row(0), 1 / known[n].area, 0.02 / known[n].area);
    std::int64_t x = 0;
    while (row(x) > 0.5 * row(0)) ++x;
    const double crossing =
        static_cast<double>(x) - (0.5 * row(0) - row(x)) / (row(x - 1) - row(x));
    EXPECT_NEAR(2 * crossing * 0.4 / 3, known[n].fwhm, 0.015 * known[n].fwhm);
  }
}

TEST(GridConformance, AnyNumberOfSamples) {
  for (const std::int64_t n : {0, 1, 31, 33}) {
    SCOPED_TRACE(n);
    const Case c = make_case(field(60, 30, 9, 9, n), gauss(), 2);
    const auto want = run(c, "reference");
    for (const Precision p : {Precision::f32, Precision::f64}) {
      const auto got = run(precise(c, p), "auto");
      const Error e = compare(got->sums(), want->sums(), 1e-3);
      EXPECT_EQ(e.counts, 0);
      EXPECT_LT(e.value, 2e-5);
      EXPECT_EQ(e.covered > 0, n > 0);
      EXPECT_EQ(std::isnan(finish(got->sums(), {}, 1).value[40]),
                want->sums().moments(1, 40).count == 0);
    }
  }
}

// Cygrid's Gauss-Bessel is NaN for a sample on the cell; all samples in one bin of one tile.
TEST(GridConformance, AllSamplesOnOneCell) {
  constexpr std::int64_t kN = 4'000;
  for (const auto& f : every_function()) {
    SCOPED_TRACE(to_string(f));
    Field one = field(60, 30, 3, 3, 0);
    one.lon_deg.assign(kN, 60);
    one.lat_deg.assign(kN, 30);
    const auto got = run(with_values(one, f, std::vector<float>(kN, 3)), "auto");
    const Moments& m = got->sums().moments(0, 4);
    EXPECT_EQ(m.count, kN);
    EXPECT_NEAR(m.weight, kN, 1e-6 * kN) << "K(0) = 1";
    EXPECT_NEAR(got->sums().weighted(0, 4), 3.0 * kN, 3e-6 * kN);
  }
}

// Indices are 64 bits wide wherever a product of samples, channels and cells can stand.
static_assert(std::is_same_v<decltype(Samples::channel_stride), std::int64_t> &&
              std::is_same_v<decltype(Samples::sample_stride), std::int64_t> &&
              std::is_same_v<decltype(std::declval<const Sums&>().n_cells()), std::int64_t> &&
              std::is_same_v<decltype(std::declval<const Sums&>().n_channels()), std::int64_t> &&
              std::is_same_v<decltype(Moments::count), std::int64_t>);

TEST(GridConformance, ValuesBeyondTwoToThe31) {
  constexpr std::size_t kStride = (std::size_t{1} << 32) + 12'345, kN = 300;
  constexpr std::size_t kBytes = 4 * (kStride + kN);
  void* room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) GTEST_SKIP() << "skipped: no address space of 17 GB";
  auto* sparse = static_cast<float*>(room);
  const Case near = make_case(field(60, 30, 5, 5, kN), gauss(), 2);
  std::copy_n(near.data.data(), kN, sparse);
  std::copy_n(near.data.data() + kN, kN, sparse + kStride);
  Queue queue = Queue::cpu(1);
  auto gridder = make_gridder(near.config, near.field.cells);
  const auto plan = gridder->plan(
      queue, positions(queue, near.field.lon_deg.data(), near.field.lat_deg.data(), kN));
  Samples samples;
  samples.values = sparse;
  samples.channel_stride = kStride;
  gridder->execute(queue, *plan, samples);
  const auto want = run(near, "auto");
  for (std::int64_t i = 0; i < 25; ++i)
    EXPECT_EQ(gridder->sums().weighted(1, i), want->sums().weighted(1, i));
  munmap(room, kBytes);
}

// --- absence ---

// A cell all of whose samples are absent in a channel is empty in it; elsewhere nothing moves.
TEST(GridConformance, ADeadCellIsEmptyInItsChannelAlone) {
  for (const Precision p : {Precision::f32, Precision::f64}) {
    const Case whole = precise(make_case(field(60, 30, 9, 9, 900), gauss(2), 5), p);
    Case dead = whole;
    const auto plane_of = [](const Gridder& g, std::int64_t c) { return finish(g.sums(), {}, c); };
    const Positions& cells = whole.field.cells.directions;
    Queue queue = Queue::cpu(1);
    const Positions s =
        positions(queue, whole.field.lon_deg.data(), whole.field.lat_deg.data(), 900);
    for (std::size_t k = 0; k < 900; ++k)
      if (std::hypot(s.x[k] - cells.x[40], s.y[k] - cells.y[40], s.z[k] - cells.z[40]) <
          1.001 * whole.config.convolution.support_rad)
        dead.data[3 * 900 + k] = kNaN;
    const auto a = run(whole, "auto"), b = run(dead, "auto");
    const Plane empty = plane_of(*b, 3);
    EXPECT_TRUE(std::isnan(empty.value[40]) && std::isnan(empty.noise[40]));
    EXPECT_EQ(empty.weight[40], 0);
    EXPECT_EQ(empty.count[40], 0);
    for (const std::int64_t c : {0, 1, 2, 4}) {
      const Plane x = plane_of(*a, c), y = plane_of(*b, c);
      EXPECT_EQ(x.value, y.value);
      EXPECT_EQ(x.weight, y.weight);
      EXPECT_EQ(x.count, y.count);
    }
  }
}

// A sample that is absent everywhere: by NaN, by u = 0, by not being there.
TEST(GridConformance, AnAbsentSampleIsNoSample) {
  constexpr std::int64_t kN = 1'200, kLeft = kN - kN / 6;
  for (const Precision p : {Precision::f32, Precision::f64}) {
    const Case whole = precise(make_case(field(60, 30, 9, 9, kN), gauss(3), 2), p);
    Case nan = whole, weightless = whole, removed = whole;
    std::vector<float> u(kN, 1);
    removed.field.lon_deg.clear();
    removed.field.lat_deg.clear();
    removed.data.assign(2 * kLeft, 0);
    for (std::size_t k = 0, left = 0; k < kN; ++k) {
      if (k % 6 == 5) {
        nan.data[k] = kNaN;
        nan.data[kN + k] = kInf;
        u[k] = 0;
        continue;
      }
      removed.field.lon_deg.push_back(whole.field.lon_deg[k]);
      removed.field.lat_deg.push_back(whole.field.lat_deg[k]);
      removed.data[left] = whole.data[k];
      removed.data[kLeft + left++] = whole.data[kN + k];
    }
    removed.samples.channel_stride = kLeft;
    weightless.samples.weights = u.data();
    const auto a = run(nan, "auto"), b = run(weightless, "auto"), c = run(removed, "auto");
    for (const auto* other : {b.get(), c.get()}) {
      const Error e = compare(other->sums(), a->sums(), 0);
      EXPECT_EQ(e.counts, 0);
      // The grouping of the sums moves (grid.md 7).
      EXPECT_LT(e.value, p == Precision::f64 ? 1e-13 : 1e-6);
      EXPECT_LT(e.weight, p == Precision::f64 ? 1e-13 : 1e-6);
    }
  }
}

// 2 % of NaN leave 31 % of a map of Cygrid finite.
TEST(GridConformance, TwoPercentOfNaNLeaveTheMapWhole) {
  Case c = make_case(field(60, 30, 14, 14, 2'000), gauss(), 3);
  for (std::size_t k = 0; k < c.data.size(); k += 50) c.data[k] = kNaN;
  const auto got = run(c, "auto");
  const auto want = run(c, "reference");
  const Error e = compare(got->sums(), want->sums());
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 2e-6);
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const Plane plane = finish(got->sums(), {}, channel);
    for (const float v : plane.value) ASSERT_TRUE(std::isfinite(v));
  }
}

// gbtgridder: equal weights count twice, and weights of 0 become 1e-16 and fill empty cells.
TEST(GridConformance, WeightsOfOneAreNoWeightsAndOfZeroNoSamples) {
  Case none = make_case(field(60, 30, 9, 9, 700), gauss(3), 2), ones = none, zeros = none;
  const std::vector<float> one(700, 1), zero(700, 0);
  ones.samples.weights = one.data();
  zeros.samples.weights = zero.data();
  const auto a = run(none, "auto"), b = run(ones, "auto"), c = run(zeros, "auto");
  for (std::int64_t i = 0; i < 81; ++i) {
    EXPECT_EQ(a->sums().weighted(1, i), b->sums().weighted(1, i));
    EXPECT_EQ(a->sums().moments(1, i).weight, b->sums().moments(1, i).weight);
    EXPECT_EQ(c->sums().moments(1, i).count, 0);
  }
  const Plane empty = finish(c->sums(), {}, 0);
  for (const float v : empty.value) EXPECT_TRUE(std::isnan(v));
}

TEST(GridConformance, WorkersBesideAbsentValues) {
  Case c = make_case(field(60, 30, 40, 40, 3'000), gauss(), 5);
  for (std::size_t k = 3; k < c.data.size(); k += 61) c.data[k] = kNaN;
  const auto one = run(c, "auto", 1);
  for (const int n : {2, 3, 5}) {
    const auto many = run(c, "auto", n);
    for (std::int64_t channel = 0; channel < 5; ++channel)
      for (std::int64_t i = 0; i < 1'600; ++i) {
        ASSERT_EQ(one->sums().weighted(channel, i), many->sums().weighted(channel, i));
        ASSERT_EQ(one->sums().moments(channel, i).weight, many->sums().moments(channel, i).weight);
        ASSERT_EQ(one->sums().moments(channel, i).square, many->sums().moments(channel, i).square);
      }
  }
}

// Samples that come in two pieces are those that come at once, up to the grouping of sums.
TEST(GridConformance, PiecesOfTimeAdd) {
  constexpr std::int64_t kN = 2'000, kFirst = 777;
  const Case whole = make_case(field(60, 30, 15, 15, kN), gauss(3), 2);
  const auto want = run(whole, "auto");
  Queue queue = Queue::cpu(2);
  auto gridder = make_gridder(whole.config, whole.field.cells);
  for (const auto& [begin, n] : {std::pair{std::int64_t{0}, kFirst}, {kFirst, kN - kFirst}}) {
    const auto plan = gridder->plan(queue, positions(queue, whole.field.lon_deg.data() + begin,
                                                     whole.field.lat_deg.data() + begin, n));
    Samples samples = whole.samples;
    samples.values = whole.data.data() + begin;
    gridder->execute(queue, *plan, samples);
  }
  const Error e = compare(gridder->sums(), want->sums(), 0);
  EXPECT_EQ(e.counts, 0);
  EXPECT_LT(e.value, 1e-6);
  EXPECT_LT(e.weight, 1e-6);
}

// Where u = 1 / sigma^2 the noise plane is the scatter of maps of noise: a thousand of them.
TEST(GridConformance, TheNoisePlaneIsTheScatterOfNoiseMaps) {
  constexpr std::int64_t kMaps = 1'000, kN = 220;
  Case c = make_case(field(60, 30, 4, 4, kN), gauss(3), kMaps);
  std::mt19937 random(21);
  std::normal_distribution<float> unit(0, 1);
  std::uniform_real_distribution<float> scatter(0.5F, 3);
  std::vector<float> u;
  for (std::int64_t k = 0; k < kN; ++k) {
    const float sigma = scatter(random);
    u.push_back(1 / (sigma * sigma));
    for (std::int64_t m = 0; m < kMaps; ++m)
      c.data[static_cast<std::size_t>(m * kN + k)] = sigma * unit(random);
  }
  c.samples.weights = u.data();
  const auto got = run(c, "auto");
  const Plane plane = finish(got->sums(), {}, 0);
  double ratios = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    double squares = 0;
    for (std::int64_t m = 0; m < kMaps; ++m) {
      const double v = got->sums().weighted(m, i) / got->sums().moments(m, i).weight;
      squares += v * v;
    }
    const double ratio =
        std::sqrt(squares / kMaps) / static_cast<double>(plane.noise[static_cast<std::size_t>(i)]);
    EXPECT_NEAR(ratio, 1, 5 / std::sqrt(2.0 * kMaps)) << i;
    ratios += ratio / 16;
  }
  EXPECT_NEAR(ratios, 1, 0.05) << "cells share samples: about four are independent";
}

}  // namespace
}  // namespace ryle::grid
