// SPDX-License-Identifier: BSD-3-Clause
// The expected maps of Cygrid's own tests: made again from its random numbers (PROVENANCE.md of the
// data), in all but the cells where Cygrid misses a sample at the edge of the support.
#include <array>
#include <fstream>

#include "tests/engine/grid/grid_cases.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::grid {
namespace {

using namespace cases;

// NumPy's RandomState: Mersenne twister, 53-bit uniforms, the polar method for normals.
class NumpyRandom {
 public:
  explicit NumpyRandom(unsigned seed) : twister_(seed) {}
  double unit() {
    const auto high = static_cast<double>(twister_() >> 5);
    const auto low = static_cast<double>(twister_() >> 6);
    return (high * 67'108'864 + low) / 9'007'199'254'740'992;
  }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  double normal(double sigma) {
    if (has_second_) {
      has_second_ = false;
      return sigma * second_;
    }
    double a = 0, b = 0, r2 = 0;
    do {
      a = 2 * unit() - 1;
      b = 2 * unit() - 1;
      r2 = a * a + b * b;
    } while (r2 >= 1 || r2 == 0);
    const double f = std::sqrt(-2 * std::log(r2) / r2);
    second_ = f * a;
    has_second_ = true;
    return sigma * f * b;
  }

 private:
  std::mt19937 twister_;
  double second_ = 0;
  bool has_second_ = false;
};

std::vector<float> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 10> start{};
  file.read(start.data(), 10);
  const auto length =
      static_cast<unsigned char>(start[8]) + 256 * static_cast<unsigned char>(start[9]);
  file.ignore(length);
  std::vector<float> values;
  float v = 0;
  while (file.read(reinterpret_cast<char*>(&v), 4)) values.push_back(v);
  return values;
}

struct Golden {
  Case scans;                    // four channels: powers of the signal
  std::vector<double> lon, lat;  // of the sight lines
};

Golden golden() {
  constexpr std::int64_t kN = 10'000;
  const double half_deg = 0.5 / std::cos(50 * kDegree_rad), sigma_deg = 0.025 / 2.35;
  NumpyRandom random(0);
  Golden g;
  Field f;
  for (int k = 0; k < kN; ++k) f.lon_deg.push_back(random.uniform(131 - half_deg, 131 + half_deg));
  for (int k = 0; k < kN; ++k) f.lat_deg.push_back(random.uniform(49.5, 50.5));
  Convolution c;
  c.sigma_rad = sigma_deg * kDegree_rad;
  c.support_rad = 3 * c.sigma_rad;
  g.scans = make_case(std::move(f), c, 4);
  g.scans.config.precision = Precision::f64;
  for (std::size_t k = 0; k < kN; ++k) {
    const double x = random.normal(0.01);
    for (std::size_t power = 1; power <= 4; ++power)
      g.scans.data[(power - 1) * kN + k] =
          static_cast<float>(std::pow(x, static_cast<double>(power)));
  }
  for (int k = 0; k < 1'000; ++k) g.lon.push_back(random.uniform(131 - half_deg, 131 + half_deg));
  for (int k = 0; k < 1'000; ++k) g.lat.push_back(random.uniform(49.5, 50.5));
  return g;
}

// Cells off by more than rounding of the samples to float32, and the largest difference in plane 0.
struct Apart {
  std::int64_t cells = 0;
  double maximum = 0;
};
Apart differences(const Case& scans, const std::vector<float>& want) {
  const auto got = run(scans, "auto");
  const auto n = static_cast<std::size_t>(got->sums().n_cells());
  Apart apart;
  for (std::size_t i = 0; i < n; ++i) {
    bool off = false;
    for (std::size_t c = 0; c < 4; ++c) {
      const auto cell = static_cast<std::int64_t>(i), channel = static_cast<std::int64_t>(c);
      const double value =
          got->sums().weighted(channel, cell) / got->sums().moments(channel, cell).weight;
      const double difference = std::abs(value - static_cast<double>(want[c * n + i]));
      off = off || difference > 1e-7 * std::pow(0.04, static_cast<double>(c + 1));
      if (c == 0) apart.maximum = std::max(apart.maximum, difference);
    }
    apart.cells += off ? 1 : 0;
  }
  return apart;
}

TEST(CygridGolden, MapsDifferInTwoCells) {
  RYLE_REQUIRE_DATA(path, "singledish/cygrid_golden/cygrid_test_maps.npy");
  const auto want = read_npy(path);
  ASSERT_EQ(want.size(), 4U * 3'600);
  Golden g = golden();
  // CRPIX 30 of 60, counted from 1: the reference is cell 29, orthographic() has it at 30.
  const Cells wide = orthographic(131, 50, 62, 62, 0.05 / 3 * kDegree_rad);
  g.scans.field.cells.width = 60;
  for (std::size_t y = 2; y < 62; ++y)
    for (std::size_t x = 2; x < 62; ++x) {
      Positions& p = g.scans.field.cells.directions;
      p.x.push_back(wide.directions.x[62 * y + x]);
      p.y.push_back(wide.directions.y[62 * y + x]);
      p.z.push_back(wide.directions.z[62 * y + x]);
    }
  const Apart apart = differences(g.scans, want);
  EXPECT_EQ(apart.cells, 2);
  EXPECT_NEAR(apart.maximum, 2.5e-5, 0.1e-5);
}

TEST(CygridGolden, SightLinesDifferInOne) {
  RYLE_REQUIRE_DATA(path, "singledish/cygrid_golden/cygrid_test_sightlines.npy");
  const auto want = read_npy(path);
  ASSERT_EQ(want.size(), 4U * 1'000);
  Golden g = golden();
  // There 1 / 2 sigma^2 was given for sigma: 4,400 degrees.
  const double sigma_deg = 0.025 / 2.35;
  g.scans.config.convolution.sigma_rad = 0.5 / (sigma_deg * sigma_deg) * kDegree_rad;
  Queue queue = Queue::cpu(1);
  g.scans.field.cells = {positions(queue, g.lon.data(), g.lat.data(), 1'000), 0};
  const Apart apart = differences(g.scans, want);
  EXPECT_EQ(apart.cells, 1);
  EXPECT_NEAR(apart.maximum, 3.3e-4, 0.1e-4);
}

}  // namespace
}  // namespace ryle::grid
