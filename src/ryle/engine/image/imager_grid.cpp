// SPDX-License-Identifier: BSD-3-Clause
// The image of the direct Fourier sum by gridding, transforms and planes of w: the same picture to
// 1e-6 of the mean amplitude, for many visibilities in a small part of the time.
#include "ryle/engine/image/imager_grid.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>

#include "ryle/core/units.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::image::detail {
namespace {

constexpr std::int64_t kSupport = 8;      // cells along u and v, planes along w
constexpr double kBeta = 2.3 * kSupport;  // of the ES function, for grids twice as fine as needed
constexpr std::int64_t kOversampling = 2;
constexpr double kMaxBytes = 2e9;  // of the grids of all workers

double es_value(double cells) {
  const double x = 2 * cells / kSupport;
  return x * x < 1 ? std::exp(kBeta * (std::sqrt(1 - x * x) - 1)) : 0;
}

/// Transform of the ES function. @unit turns_per_cell, at most 1/4 in size
class EsTransform {
 public:
  EsTransform() {
    // Midpoints of half of it: the integrand is even, and all but vanishes at the end.
    for (std::size_t k = 0; k < kPoints; ++k) {
      cells_[k] = 0.5 * kSupport * (static_cast<double>(k) + 0.5) / kPoints;
      weight_[k] = es_value(cells_[k]) * kSupport / kPoints;
    }
  }
  double operator()(double turns_per_cell) const {
    double sum = 0;
    for (std::size_t k = 0; k < kPoints; ++k)
      sum += weight_[k] * std::cos(2 * kPi * cells_[k] * turns_per_cell);
    return sum;
  }

 private:
  static constexpr std::size_t kPoints = 96;
  std::array<double, kPoints> cells_{}, weight_{};
};

/// The ES function between points of a table: linear, 8,192 to a cell, good to 3e-9.
class EsTable {
 public:
  EsTable() {
    for (std::size_t k = 0; k < values_.size(); ++k)
      values_[k] = es_value(static_cast<double>(k) / kPerCell);
  }
  double operator()(double cells) const {
    const double at = std::abs(cells) * kPerCell;
    const auto k = static_cast<std::size_t>(at);
    if (k + 1 >= values_.size()) return 0;
    return values_[k] + (at - static_cast<double>(k)) * (values_[k + 1] - values_[k]);
  }
  static const EsTable& get() {
    static const EsTable table;
    return table;
  }

 private:
  static constexpr std::size_t kPerCell = 8192;
  std::array<double, kPerCell * kSupport / 2 + 2> values_{};
};

/// The kSupport cells about a point: the first of them, and their weights.
struct EsFootprint {
  std::int64_t first = 0;
  std::array<double, kSupport> weight{};
  EsFootprint(const EsTable& table, double cells) {
    first = static_cast<std::int64_t>(std::ceil(cells - 0.5 * kSupport));
    for (std::int64_t k = 0; k < kSupport; ++k)
      weight[k] = table(static_cast<double>(first + k) - cells);
  }
};

std::int64_t cyclic_cell(std::int64_t k, std::int64_t n) { return ((k % n) + n) % n; }

bool is_good(const Sample& s) {
  return s.weight > 0 && std::isfinite(s.weight) && std::isfinite(std::abs(s.visibility)) &&
         std::isfinite(s.u + s.v + s.w);
}

/// One sample, ready to be laid down. All have w >= 0: the real part is that of the conjugate.
struct Laid {
  double u_cells = 0, v_cells = 0, w_planes = 0;
  cf64 value;
};

/// Adds `share` of a sample to the cells of a grid, which is cyclic.
void lay_down(const EsTable& table, const Laid& s, double share, std::int64_t grid, cf64* cells) {
  const EsFootprint u(table, s.u_cells);
  const EsFootprint v(table, s.v_cells);
  const cf64 value = share * s.value;
  const std::int64_t first_u = cyclic_cell(u.first, grid);
  for (std::int64_t y = 0; y < kSupport; ++y) {
    cf64* row = cells + cyclic_cell(v.first + y, grid) * grid;
    const double weight = v.weight[y];
    const double re = weight * value.real();
    const double im = weight * value.imag();
    if (first_u + kSupport <= grid) {
      auto* at = reinterpret_cast<double*>(row + first_u);
      for (std::size_t x = 0; x < kSupport; ++x) {
        at[2 * x] += u.weight[x] * re;
        at[2 * x + 1] += u.weight[x] * im;
      }
    } else {
      for (std::int64_t x = 0; x < kSupport; ++x)
        row[(first_u + x) % grid] += u.weight[x] * cf64(re, im);
    }
  }
}

/// Seconds of this thread's processor that an action takes: other programs do not count.
template <class Action>
double processor_seconds(const Action& action) {
  const std::clock_t start = std::clock();
  action();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

struct GridImager::Geometry {
  std::int64_t n, grid;
  double cell, depth, plane_waves;  // depth: of n - 1 over the picture
  explicit Geometry(const Config& config)
      : n(config.n_pixels),
        grid(kOversampling * config.n_pixels),
        cell(config.width_direction_cosines / static_cast<double>(config.n_pixels)) {
    const double r2 =
        std::min(1.0, 0.5 * config.width_direction_cosines * config.width_direction_cosines);
    depth = std::max(1e-6, r2 / (1 + std::sqrt(1 - r2)));
    plane_waves = 1 / (kOversampling * depth);
  }
};

double grid_seconds(const Config& config, const std::vector<Sample>& samples, int n_workers) {
  constexpr double kPixel_s = 4e-8;  // of one plane
  constexpr std::int64_t kTimed = 2000;
  const GridImager::Geometry g(config);
  const auto workers = static_cast<double>(std::max(1, n_workers));
  const auto side = static_cast<double>(g.grid);
  if (16 * side * side * workers > kMaxBytes) return std::numeric_limits<double>::infinity();
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0;
  for (const Sample& s : samples) {
    if (!is_good(s)) continue;
    lowest = std::min(lowest, std::abs(s.w));
    highest = std::max(highest, std::abs(s.w));
  }
  const double planes = std::max(0.0, highest - lowest) / g.plane_waves + kSupport + 1;
  const math::Fft fft(g.grid);
  std::vector<cf64> cells(g.grid * g.grid);
  const EsTable& table = EsTable::get();
  const double lay_s = processor_seconds([&] {
    const auto step = std::max<std::size_t>(1, samples.size() / kTimed);
    for (std::int64_t k = 0; k < kTimed; ++k) {
      const Sample& s = samples[static_cast<std::size_t>(k) * step % samples.size()];
      if (!is_good(s)) continue;
      lay_down(table, {s.u * g.cell * side, s.v * g.cell * side, 0, s.visibility}, 1, g.grid,
               cells.data());
    }
  });
  const double fft_s = processor_seconds([&] {
    for (std::int64_t row = 0; row < std::min<std::int64_t>(64, g.grid); ++row)
      fft.forward(cells.data() + row * g.grid);
  });
  const auto n = static_cast<double>(g.n);
  const double plane_s =
      (side + n) * fft_s / std::min(64.0, side) + kPixel_s * n * n + 2e-9 * side * side;
  return (kSupport * lay_s / kTimed * static_cast<double>(samples.size()) + planes * plane_s) /
         workers;
}

GridImager::GridImager(const Config& config) : config_(config) {}

void GridImager::execute(Queue& queue, const std::vector<Sample>& samples,
                         std::vector<double>& image) {
  const Geometry g(config_);
  const auto n = static_cast<std::size_t>(g.n);
  image.assign(n * n, kNaN);
  std::vector<Laid> laid;
  laid.reserve(samples.size());
  double total_weight = 0;
  for (const Sample& s : samples) {
    if (!is_good(s)) continue;
    total_weight += s.weight;
    const double sign = s.w < 0 ? -1 : 1;
    const cf64 v = s.w < 0 ? std::conj(s.visibility) : s.visibility;
    // n - 1 = t - depth / 2 with |t| <= depth / 2: what the shift adds is exact.
    const double turns = sign * s.w * g.depth / 2;
    const double u_cells = sign * s.u * g.cell * static_cast<double>(g.grid);
    const double v_cells = sign * s.v * g.cell * static_cast<double>(g.grid);
    laid.push_back({u_cells, v_cells, sign * s.w / g.plane_waves,
                    s.weight * v * std::polar(1.0, 2 * kPi * (turns - std::round(turns)))});
  }
  if (laid.empty()) return;
  std::stable_sort(laid.begin(), laid.end(),
                   [](const Laid& a, const Laid& b) { return a.w_planes < b.w_planes; });
  const EsTable& table = EsTable::get();
  const auto first_plane_of = [&](const Laid& s) { return EsFootprint(table, s.w_planes).first; };
  const std::int64_t first_plane = first_plane_of(laid.front());
  const std::int64_t end_plane = first_plane_of(laid.back()) + kSupport;

  const math::Fft fft(g.grid);
  const auto part = static_cast<std::int64_t>(std::max(1, queue.n_workers()));
  std::vector<std::vector<cf64>> grids(part);
  std::vector<std::vector<double>> pictures(part);
  std::vector<double> sum(n * n, 0.0);
  for (std::int64_t first = first_plane; first < end_plane; first += part) {
    const double done =
        static_cast<double>(first - first_plane) / static_cast<double>(end_plane - first_plane);
    if (config_.go_on && !config_.go_on(done)) {
      image.clear();
      return;
    }
    const std::int64_t count = std::min(part, end_plane - first);
    queue.parallel_for(count, [&](std::int64_t k) {
      const std::int64_t plane = first + k;
      auto& cells = grids[k];
      auto& picture = pictures[k];
      const auto grid = static_cast<std::size_t>(g.grid);
      cells.assign(grid * grid, cf64{});
      picture.assign(n * n, 0.0);
      // Samples within half a support of this plane.
      const double reach = 0.5 * kSupport;
      const auto at = [](const Laid& s, double w_planes) { return s.w_planes < w_planes; };
      const auto from =
          std::lower_bound(laid.begin(), laid.end(), static_cast<double>(plane) - reach, at);
      bool any = false;
      for (auto s = from; s != laid.end() && s->w_planes < static_cast<double>(plane) + reach;
           ++s) {
        const double share = table(static_cast<double>(plane) - s->w_planes);
        if (share == 0) continue;
        any = true;
        lay_down(table, *s, share, g.grid, cells.data());
      }
      if (any) transform_plane(fft, static_cast<double>(plane) * g.plane_waves, g, cells, picture);
    });
    for (std::int64_t k = 0; k < count; ++k) {
      const auto& picture = pictures[k];
      for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += picture[p];
    }
  }

  const EsTransform es_transform;
  std::vector<double> along(n);
  for (std::size_t x = 0; x < n; ++x) {
    along[x] = es_transform((static_cast<double>(x) - 0.5 * static_cast<double>(g.n)) /
                            static_cast<double>(g.grid));
  }
  queue.parallel_for(g.n, [&](std::int64_t y) {
    for (std::int64_t x = 0; x < g.n; ++x) {
      const auto [l, m] =
          direction_of_pixel(config_, static_cast<double>(x), static_cast<double>(y));
      const double r2 = l * l + m * m;
      if (r2 >= 1) continue;
      const double t = g.depth / 2 - r2 / (1 + std::sqrt(1 - r2));
      const auto p = static_cast<std::size_t>(y * g.n + x);
      image[p] = sum[p] / (total_weight * along[x] * along[y] * es_transform(t * g.plane_waves));
    }
  });
}

void GridImager::transform_plane(const math::Fft& fft, double w, const Geometry& g,
                                 std::vector<cf64>& cells, std::vector<double>& picture) const {
  const auto grid = static_cast<std::size_t>(g.grid);
  const auto n = static_cast<std::size_t>(g.n);
  // Along u, then along v for the columns of the picture alone: l = (N/2 - x) cells.
  for (std::size_t v = 0; v < grid; ++v) fft.forward(cells.data() + v * grid);
  std::vector<cf64> column(grid);
  for (std::int64_t x = 0; x < g.n; ++x) {
    const auto at = static_cast<std::size_t>(cyclic_cell(g.n / 2 - x, g.grid));
    for (std::size_t v = 0; v < grid; ++v) column[v] = cells[v * grid + at];
    fft.forward(column.data());
    for (std::int64_t y = 0; y < g.n; ++y) {
      const auto [l, m] =
          direction_of_pixel(config_, static_cast<double>(x), static_cast<double>(y));
      const double r2 = l * l + m * m;
      if (r2 >= 1) continue;
      const double turns = w * (g.depth / 2 - r2 / (1 + std::sqrt(1 - r2)));
      const cf64 value = column[cyclic_cell(y - g.n / 2, g.grid)];
      picture[static_cast<std::size_t>(y) * n + static_cast<std::size_t>(x)] =
          (value * std::polar(1.0, -2 * kPi * (turns - std::round(turns)))).real();
    }
  }
}

}  // namespace ryle::image::detail
