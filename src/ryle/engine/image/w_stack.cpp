// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/w_stack.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/cpu/plan.hpp"
#include "ryle/engine/image/cpu/stack_kernels.hpp"
#include "ryle/engine/image/grid_function.hpp"

namespace ryle::image::detail {
namespace {

constexpr double kSingleFrom = 1e-5;    // errors from here on allow cells in float
constexpr std::int64_t kChunk = 65536;  // samples
constexpr double kMaxBatchBytes = 2e9;  // of the planes that are made at the same time

bool counts(const Sample& s) {
  return s.weight > 0 && std::isfinite(s.weight) && std::isfinite(std::abs(s.visibility)) &&
         std::isfinite(s.u + s.v + s.w);
}

/// n - 1 spans [-depth, 0] over the picture.
double depth_of(const Config& config) {
  const double width = config.width_direction_cosines;
  const double r2 = std::min(1.0, 0.5 * width * width);
  return r2 / (1 + std::sqrt(1 - r2));
}

double memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Cells along one axis of the grid.
struct CellAxis {
  std::int64_t grid = 0;   ///< points of the transform
  double per_wave = 0;     ///< cells
  std::int64_t first = 0;  ///< cell of the transform that is cell 0 of the memory
  bool wraps = false;      ///< the samples span more than the grid
  std::int64_t tiles = 0, cells = 0, used = 0;

  CellAxis() = default;
  CellAxis(std::int64_t n, double cells_per_wave, double low, double high, std::int64_t support)
      : grid(n), per_wave(cells_per_wave) {
    const double half = 0.5 * static_cast<double>(support);
    const double from = std::floor(std::min(low * per_wave, high * per_wave) - half);
    const double to = std::ceil(std::max(low * per_wave, high * per_wave) + half) + 1;
    wraps = !(to - from <= static_cast<double>(grid));
    first = wraps ? 0 : static_cast<std::int64_t>(from);
    const std::int64_t span = wraps ? grid : static_cast<std::int64_t>(to - from);
    tiles = (span + kStackTileCells - 1) / kStackTileCells;
    cells = tiles * kStackTileCells + kStackTileMargin;
    used = std::min(grid, span);
  }
  /// First cell of a sample in memory, and how far that is above the end of its function.
  std::pair<std::int64_t, double> place(double waves, std::int64_t support) const {
    double x = waves * per_wave;
    const auto points = static_cast<double>(grid);
    x = wraps ? x - std::floor(x / points) * points : x - static_cast<double>(first);
    const double end = x - 0.5 * static_cast<double>(support);
    const double cell = std::ceil(end);
    auto at = static_cast<std::int64_t>(cell);
    if (at < 0) at += grid;
    return {std::clamp<std::int64_t>(at, 0, tiles * kStackTileCells - 1), cell - end};
  }
};

/// Sizes of everything.
struct StackPlan {
  GridFunction function;
  std::int64_t n_pixels = 0;
  double cell = 0;
  double depth = 0;
  double shift = 0;  ///< t = n - 1 + shift
  bool flat = false;
  CellAxis u, v;
  double plane_waves = 1, first_wave = 0;  ///< w of plane p: first_wave + p plane_waves
  std::int64_t n_planes = 1;
  double seconds_at_nominal = 0;  ///< of one worker

  double plane_bytes(double number_bytes) const {
    const auto across = static_cast<double>(u.cells);
    return 2 * number_bytes * across *
           (static_cast<double>(v.cells) + static_cast<double>(n_pixels) + 16);
  }
};

/// Nominal operations of a worker: only their ratios choose the support, and one timed transform
/// scales them for the choice between paths.
constexpr double kNominalFlops = 2e10;
struct StackWork {
  double lay_s = 0, planes_s = 0;
};
StackWork work_of(const StackPlan& plan, std::int64_t n_samples, bool single) {
  const auto support = static_cast<double>(plan.function.support);
  const double lanes = plan.function.support <= 8 ? 8 : 16;
  const double slower = single ? 1 : 2;
  const double reach = plan.flat ? 1 : support;
  const double visit_s = 1.2e-8 + 5e-10 * support * lanes / 8 * slower;
  const auto points = static_cast<double>(plan.u.grid);
  const auto pixels = static_cast<double>(plan.n_pixels);
  const double transforms = static_cast<double>(plan.u.used) + pixels;
  const double plane_s =
      transforms * 5 * points * std::log2(points) / kNominalFlops * slower +
      1.5e-9 * pixels * pixels * slower +
      2e-9 * static_cast<double>(plan.u.cells) * static_cast<double>(plan.v.cells) * slower;
  return {reach * visit_s * static_cast<double>(n_samples),
          plane_s * static_cast<double>(plan.n_planes)};
}

StackPlan plan_with(const Config& config, const SampleExtent& extent, bool flat,
                    const GridFunction& function) {
  StackPlan plan;
  plan.function = function;
  plan.n_pixels = config.n_pixels;
  plan.flat = flat;
  plan.depth = std::max(1e-9, depth_of(config));
  plan.shift = flat ? 0 : plan.depth / 2;
  const std::int64_t support = function.support;
  const std::int64_t grid = transform_size(static_cast<std::int64_t>(
      std::ceil(function.oversampling * static_cast<double>(config.n_pixels))));
  plan.cell = config.width_direction_cosines / static_cast<double>(config.n_pixels);
  const double per_wave = plan.cell * static_cast<double>(grid);
  plan.u = CellAxis(grid, per_wave, extent.min_u, extent.max_u, support);
  plan.v = CellAxis(grid, -per_wave, extent.min_v, extent.max_v, support);
  if (flat) {
    plan.first_wave = (extent.min_w + extent.max_w) / 2;
    return plan;
  }
  plan.plane_waves = 1 / (function.oversampling * plan.depth);
  const double half = 0.5 * static_cast<double>(support);
  const double first = std::ceil(extent.min_w / plan.plane_waves - half);
  plan.first_wave = first * plan.plane_waves;
  plan.n_planes =
      static_cast<std::int64_t>(std::ceil(extent.max_w / plan.plane_waves - half) - first) +
      support;
  return plan;
}

/// Rounding of float cells, which the division by phi^ enlarges at the edge of the picture.
bool rounds_too_much(const GridFunction& function, double max_error) {
  const GridTransform transform(function);
  const double edge = transform(0.5 / function.oversampling) / transform(0);
  return 3e-8 / (edge * edge) > max_error;
}

/// The functions that are exact enough, one of each support. Their search takes milliseconds.
std::vector<GridFunction> functions_for(double max_error, bool single) {
  std::vector<GridFunction> functions;
  for (std::int64_t support = kMinGridSupport; support <= kMaxGridSupport; ++support) {
    // A third for each of u, v and w.
    const auto function = grid_function(support, max_error / 3);
    if (!function) continue;
    if (!single || !rounds_too_much(*function, max_error)) functions.push_back(*function);
    if (function->oversampling <= 1.6) break;  // wider ones win nothing any more
  }
  if (functions.empty()) functions.push_back(*grid_function(kMaxGridSupport, 1e-9));
  return functions;
}

StackPlan make_stack_plan(const Config& config, const SampleExtent& extent, bool flat) {
  const bool single = config.max_error >= kSingleFrom;
  std::optional<StackPlan> best;
  for (const GridFunction& function : functions_for(config.max_error, single)) {
    StackPlan plan = plan_with(config, extent, flat, function);
    const StackWork work = work_of(plan, extent.n, single);
    plan.seconds_at_nominal = work.lay_s + work.planes_s;
    if (!best || plan.seconds_at_nominal < best->seconds_at_nominal) best = plan;
  }
  return *best;
}

template <class Real>
const StackKernels<Real>& stack_kernels(const std::string& isa) {
  if (isa == "avx512") return stack_kernels_avx512<Real>();
  if (isa == "avx2") return stack_kernels_avx2<Real>();
  return stack_kernels_generic<Real>();
}

/// Points of the picture along one axis: l or m in cells of the picture, and where they come from.
struct PictureAxis {
  std::vector<std::int32_t> pixel_of;  ///< [frequency index]
  std::vector<double> turns;           ///< of the first cell in memory
  std::vector<double> correction;      ///< 1 / phi^
  PictureAxis(const StackPlan& plan, const CellAxis& axis, const InverseTransform& inverse)
      : pixel_of(axis.grid, -1) {
    const std::int64_t middle = plan.n_pixels / 2;
    const auto points = static_cast<double>(axis.grid);
    for (std::int64_t x = 0; x < plan.n_pixels; ++x) {
      const std::int64_t k = x - middle;
      pixel_of[k < 0 ? k + axis.grid : k] = static_cast<std::int32_t>(x);
      const std::int64_t turned =
          static_cast<std::int64_t>(static_cast<__int128>(axis.first) * k % axis.grid);
      turns.push_back(static_cast<double>(turned) / points);
      correction.push_back(inverse(static_cast<double>(k) / points));
    }
  }
};

/// One image. Real: of the cells.
template <class Real>
class Stack {
 public:
  Stack(Queue& queue, const Config& config, const StackPlan& plan, const std::string& isa)
      : queue_(queue),
        config_(config),
        plan_(plan),
        kernels_(stack_kernels<Real>(isa)),
        polynomials_(
            grid_polynomials<Real>(plan.function, std::max(1e-15, 0.02 * config.max_error))),
        inverse_(plan.function),
        x_(plan, plan.u, inverse_),
        y_(plan, plan.v, inverse_),
        tables_(plan.u.grid),
        lanes_(kernels_.lanes),
        n_blocks_((plan.n_pixels + lanes_ - 1) / lanes_) {}

  /// False when go_on() stopped it.
  bool run(const std::vector<Sample>& samples, const SampleExtent& extent,
           std::vector<double>& image) {
    sort(samples, extent);
    const auto pixels = static_cast<std::size_t>(n_blocks_ * lanes_ * plan_.n_pixels);
    sums_.assign(pixels, 0.0);
    const double bytes = plan_.plane_bytes(sizeof(Real));
    const auto fitting = static_cast<std::int64_t>(std::max(1.0, kMaxBatchBytes / bytes));
    const std::int64_t batch = std::min<std::int64_t>(
        {plan_.n_planes, fitting, std::max<std::int64_t>(4, queue_.n_workers())});
    grids_.resize(batch);
    middles_.resize(batch);
    for (std::int64_t first = 0; first < plan_.n_planes; first += batch) {
      const std::int64_t count = std::min(batch, plan_.n_planes - first);
      const auto report = [&](double done) {
        return !config_.go_on ||
               config_.go_on((static_cast<double>(first) + done * static_cast<double>(count)) /
                             static_cast<double>(plan_.n_planes));
      };
      if (!report(0) || !lay(first, count, report)) return false;
      if (!report(0.6)) return false;
      transform_columns(count);
      if (!report(0.8)) return false;
      transform_rows(first, count);
    }
    finish(extent, image);
    return true;
  }

  /// Seconds of one transform of the rows of a block: how fast these cores are.
  double timed_transform_s() {
    std::vector<Real> middle(middle_stride(), Real(1));
    std::vector<Real> scratch(scratch_numbers());
    std::vector<double> t(plan_.n_pixels * lanes_), sum(t.size()), turns_y(lanes_);
    StackTransform<Real> transform = transform_plan();
    transform.pixel_of = x_.pixel_of.data();
    const StackPixels pixels{0, 0, t.data(), x_.turns.data(), turns_y.data(), 0, sum.data()};
    kernels_.rows(transform, middle.data(), pixels, scratch.data());  // warms up
    const std::clock_t start = std::clock();  // of the processor: other programs do not count
    int n = 0;
    while (n < 3 || (std::clock() - start < CLOCKS_PER_SEC / 1000 && n < 200)) {
      kernels_.rows(transform, middle.data(), pixels, scratch.data());
      ++n;
    }
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / n;
  }
  std::int64_t lanes() const { return lanes_; }

 private:
  using Placed = StackSample<Real>;

  std::int64_t point() const { return 2 * lanes_; }
  std::int64_t block_stride() const { return plan_.v.cells * point(); }
  std::int64_t middle_stride() const { return plan_.u.cells * point(); }
  std::int64_t scratch_numbers() const { return (n_blocks_ * lanes_ + 2 * plan_.u.grid) * point(); }
  StackTransform<Real> transform_plan() const {
    StackTransform<Real> t;
    t.transform = tables_.plan();
    t.n_pixels = plan_.n_pixels;
    t.n_u = plan_.u.used;
    t.n_v = plan_.v.used;
    t.middle_stride = middle_stride();
    return t;
  }

  /// Samples by tile, in each by their first plane, else in the order they came in.
  void sort(const std::vector<Sample>& samples, const SampleExtent& extent) {
    const auto n = static_cast<std::int64_t>(samples.size());
    const std::int64_t n_chunks = (n + kChunk - 1) / kChunk;
    const std::int64_t n_tiles = plan_.u.tiles * plan_.v.tiles;
    // The tile of a sample, then its place in the list.
    std::vector<std::int64_t> place_of(n, -1);
    const auto in_chunks = [&](const std::function<void(std::int64_t)>& body) {
      queue_.parallel_for(n_chunks, [&](std::int64_t chunk) {
        const std::int64_t end = std::min(n, (chunk + 1) * kChunk);
        for (std::int64_t k = chunk * kChunk; k < end; ++k) body(k);
      });
    };
    in_chunks([&](std::int64_t k) {
      if (counts(samples[k])) place_of[k] = tile_of(samples[k]);
    });
    begin_.assign(n_tiles + 1, 0);
    for (const std::int64_t tile : place_of)
      if (tile >= 0) ++begin_[tile + 1];
    for (std::int64_t tile = 0; tile < n_tiles; ++tile) begin_[tile + 1] += begin_[tile];
    std::vector<std::int64_t> next(begin_.begin(), begin_.end() - 1);
    for (std::int64_t& place : place_of)
      if (place >= 0) place = next[place]++;
    sorted_.resize(begin_.back());
    const double scale = extent.max_amplitude > 0 ? 1 / extent.max_amplitude : 0;
    in_chunks([&](std::int64_t k) {
      if (place_of[k] >= 0) fill(samples[k], scale, sorted_[place_of[k]]);
    });
    for (auto& list : tiles_) list.clear();
    for (std::int64_t tile = 0; tile < n_tiles; ++tile) {
      if (begin_[tile] == begin_[tile + 1]) continue;
      const std::int64_t row = tile / plan_.u.tiles, column = tile % plan_.u.tiles;
      tiles_[2 * (row % 2) + column % 2].push_back(tile);
    }
    for (const auto& list : tiles_) {
      queue_.parallel_for(static_cast<std::int64_t>(list.size()), [&](std::int64_t k) {
        const std::int64_t tile = list[k];
        std::stable_sort(sorted_.begin() + begin_[tile], sorted_.begin() + begin_[tile + 1],
                         [](const Placed& a, const Placed& b) { return a.plane < b.plane; });
      });
    }
  }

  std::int64_t tile_of(const Sample& s) const {
    const double sign = s.w < 0 ? -1 : 1;
    const std::int64_t support = plan_.function.support;
    const std::int64_t u = plan_.u.place(sign * s.u, support).first;
    const std::int64_t v = plan_.v.place(sign * s.v, support).first;
    return v / kStackTileCells * plan_.u.tiles + u / kStackTileCells;
  }

  void fill(const Sample& s, double scale, Placed& placed) const {
    const double sign = s.w < 0 ? -1 : 1;
    const std::int64_t support = plan_.function.support;
    const auto [u, fraction_u] = plan_.u.place(sign * s.u, support);
    const auto [v, fraction_v] = plan_.v.place(sign * s.v, support);
    placed.u = static_cast<std::int16_t>(u % kStackTileCells);
    placed.v = static_cast<std::int16_t>(v % kStackTileCells);
    placed.fraction_u = static_cast<Real>(fraction_u);
    placed.fraction_v = static_cast<Real>(fraction_v);
    const double w = sign * s.w;
    if (!plan_.flat) {
      const double end =
          (w - plan_.first_wave) / plan_.plane_waves - 0.5 * static_cast<double>(support);
      const double plane =
          std::clamp(std::ceil(end), 0.0, static_cast<double>(plan_.n_planes - support));
      placed.plane = static_cast<std::int32_t>(plane);
      placed.fraction_w = static_cast<Real>(std::clamp(plane - end, 0.0, 1.0));
    }
    // n - 1 = t - shift: what the shift adds is exact.
    const double turns = w * plan_.shift;
    const cf64 visibility = s.w < 0 ? std::conj(s.visibility) : s.visibility;
    const cf64 value =
        s.weight * scale * visibility * std::polar(1.0, 2 * kPi * (turns - std::round(turns)));
    placed.re = static_cast<Real>(value.real());
    placed.im = static_cast<Real>(value.imag());
  }

  template <class Report>
  bool lay(std::int64_t first, std::int64_t count, const Report& report) {
    const std::int64_t n_columns = plan_.u.cells / lanes_;
    queue_.parallel_for(count, [&](std::int64_t k) {
      grids_[k].resize(n_columns * block_stride());
      middles_[k].resize(n_blocks_ * middle_stride());
    });
    queue_.parallel_for(count * n_columns, [&](std::int64_t task) {
      auto& grid = grids_[task / n_columns];
      const auto from = grid.begin() + task % n_columns * block_stride();
      std::fill(from, from + block_stride(), Real(0));
    });
    const StackFunction<Real> function{polynomials_.support, polynomials_.degree,
                                       polynomials_.coefficients.data()};
    double done = 0.05;
    // Tiles of a color do not touch, so that the sums of a cell have one order.
    for (const auto& list : tiles_) {
      const auto n_tiles = static_cast<std::int64_t>(list.size());
      queue_.parallel_for(count * n_tiles, [&](std::int64_t task) {
        const std::int64_t k = task / std::max<std::int64_t>(1, n_tiles);
        lay_one(function, list[task % n_tiles], first + k, grids_[k]);
      });
      if (!report(done += 0.13)) return false;
    }
    if (plan_.u.wraps || plan_.v.wraps)
      queue_.parallel_for(count, [&](std::int64_t k) { fold(grids_[k]); });
    return true;
  }

  void lay_one(const StackFunction<Real>& function, std::int64_t tile, std::int64_t plane,
               std::vector<Real>& grid) const {
    const Placed* from = sorted_.data() + begin_[tile];
    const Placed* to = sorted_.data() + begin_[tile + 1];
    if (!plan_.flat) {
      const auto below = [](const Placed& s, std::int64_t p) { return s.plane < p; };
      from = std::lower_bound(from, to, plane - plan_.function.support + 1, below);
      to = std::lower_bound(from, to, plane + 1, below);
    }
    if (from == to) return;
    StackTile<Real> work;
    work.samples = from;
    work.n = to - from;
    work.plane = static_cast<std::int32_t>(plane);
    work.flat = plan_.flat;
    work.block_stride = block_stride();
    const std::int64_t row = tile / plan_.u.tiles, column = tile % plan_.u.tiles;
    work.grid = grid.data() + column * (kStackTileCells / lanes_) * block_stride() +
                row * kStackTileCells * point();
    kernels_.lay_tile(function, work);
  }

  /// Cells beyond the grid belong to its other side.
  void fold(std::vector<Real>& grid) const {
    const auto at = [&](std::int64_t u, std::int64_t v) -> Real* {
      return grid.data() + u / lanes_ * block_stride() + v * point() + u % lanes_;
    };
    const auto add = [&](Real* to, Real* from) {
      to[0] += from[0];
      to[lanes_] += from[lanes_];
      from[0] = from[lanes_] = 0;
    };
    const CellAxis& a = plan_.u;
    const CellAxis& b = plan_.v;
    for (std::int64_t v = b.grid; v < b.cells; ++v)
      for (std::int64_t u = 0; u < a.cells; ++u) add(at(u, v % b.grid), at(u, v));
    for (std::int64_t u = a.grid; u < a.cells; ++u)
      for (std::int64_t v = 0; v < b.used; ++v) add(at(u % a.grid, v), at(u, v));
  }

  std::vector<Real>& scratch_of(std::int64_t slot) {
    scratch_[slot].resize(scratch_numbers());
    return scratch_[slot];
  }

  void transform_columns(std::int64_t count) {
    const std::int64_t n_columns = (plan_.u.used + lanes_ - 1) / lanes_;
    const std::int64_t n_slots = std::max(1, queue_.n_workers());
    scratch_.resize(n_slots);
    StackTransform<Real> transform = transform_plan();
    transform.pixel_of = y_.pixel_of.data();
    run_tasks(queue_, n_slots, count * n_columns, [&](std::int64_t slot, std::int64_t task) {
      const std::int64_t k = task / n_columns, column = task % n_columns;
      kernels_.columns(transform, grids_[k].data() + column * block_stride(), column,
                       middles_[k].data(), scratch_of(slot).data());
    });
  }

  void transform_rows(std::int64_t first, std::int64_t count) {
    const std::int64_t n_slots = std::max(1, queue_.n_workers());
    StackTransform<Real> transform = transform_plan();
    transform.pixel_of = x_.pixel_of.data();
    std::vector<std::vector<double>> t(n_slots);
    run_tasks(queue_, n_slots, n_blocks_, [&](std::int64_t slot, std::int64_t block) {
      t[slot].resize(plan_.n_pixels * lanes_);
      std::vector<double> turns_y(lanes_, 0.0);
      StackPixels pixels;
      depths(block, t[slot], turns_y, pixels);
      if (pixels.first >= pixels.last) return;
      pixels.sum = sums_.data() + block * lanes_ * plan_.n_pixels;
      for (std::int64_t k = 0; k < count; ++k) {
        pixels.w_waves = plan_.first_wave + static_cast<double>(first + k) * plan_.plane_waves;
        kernels_.rows(transform, middles_[k].data() + block * middle_stride(), pixels,
                      scratch_of(slot).data());
      }
    });
  }

  /// t of the pixels of a block of rows, and the columns that have sky in any of them.
  void depths(std::int64_t block, std::vector<double>& t, std::vector<double>& turns_y,
              StackPixels& pixels) const {
    const std::int64_t n = plan_.n_pixels, middle = n / 2;
    double lowest = 2;
    for (std::int64_t lane = 0; lane < lanes_; ++lane) {
      const std::int64_t y = std::min(n - 1, block * lanes_ + lane);
      const double m = static_cast<double>(y - middle) * plan_.cell;
      turns_y[lane] = y_.turns[y];
      lowest = std::min(lowest, std::abs(m));
      for (std::int64_t x = 0; x < n; ++x) {
        const double l = static_cast<double>(x - middle) * plan_.cell;
        const double r2 = std::min(1.0, l * l + m * m);
        t[x * lanes_ + lane] = plan_.shift - r2 / (1 + std::sqrt(1 - r2));
      }
    }
    pixels.t = t.data();
    pixels.turns_x = x_.turns.data();
    pixels.turns_y = turns_y.data();
    if (lowest >= 1) return;
    const double reach = std::ceil(std::sqrt(1 - lowest * lowest) / plan_.cell);
    const auto half = static_cast<std::int64_t>(std::min(reach, static_cast<double>(n)));
    pixels.first = std::max<std::int64_t>(0, middle - half);
    pixels.last = std::min(n, middle + half + 1);
  }

  void finish(const SampleExtent& extent, std::vector<double>& image) {
    const std::int64_t n = plan_.n_pixels, middle = n / 2;
    const double scale = extent.max_amplitude / extent.total_weight;
    queue_.parallel_for(n, [&](std::int64_t y) {
      const double m = static_cast<double>(y - middle) * plan_.cell;
      const double* sum = sums_.data() + y / lanes_ * lanes_ * n + y % lanes_;
      for (std::int64_t x = 0; x < n; ++x) {
        const double l = static_cast<double>(x - middle) * plan_.cell;
        const double r2 = l * l + m * m;
        if (r2 >= 1) continue;
        const double t = plan_.shift - r2 / (1 + std::sqrt(1 - r2));
        const double along_w = plan_.flat ? 1 : inverse_(t * plan_.plane_waves);
        image[y * n + x] = scale * sum[x * lanes_] * x_.correction[x] * y_.correction[y] * along_w;
      }
    });
  }

  Queue& queue_;
  const Config& config_;
  const StackPlan& plan_;
  const StackKernels<Real>& kernels_;
  GridPolynomials<Real> polynomials_;
  InverseTransform inverse_;
  PictureAxis x_, y_;
  TransformTablesOf<Real> tables_;
  std::int64_t lanes_, n_blocks_;
  std::vector<Placed> sorted_;
  std::vector<std::int64_t> begin_;                 ///< [tile] of its samples
  std::array<std::vector<std::int64_t>, 4> tiles_;  ///< of a color, those with samples
  std::vector<std::vector<Real>> grids_, middles_, scratch_;
  std::vector<double> sums_;  ///< [block of rows][x][lane]
};

template <class Real>
double stack_speed(const Config& config, const StackPlan& plan, const std::string& isa) {
  Queue one = Queue::cpu(1);
  Stack<Real> stack(one, config, plan, isa);
  const auto points = static_cast<double>(plan.u.grid);
  const double nominal_s = static_cast<double>(stack.lanes()) * 5 * points * std::log2(points) /
                           kNominalFlops * (sizeof(Real) == 4 ? 1 : 2);
  return stack.timed_transform_s() / nominal_s;
}

}  // namespace

SampleExtent extent_of(Queue& queue, const std::vector<Sample>& samples) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t n_chunks = (n + kChunk - 1) / kChunk;
  std::vector<SampleExtent> parts(n_chunks);
  constexpr double kFar = std::numeric_limits<double>::infinity();
  const SampleExtent empty{0, 0, 0, kFar, -kFar, kFar, -kFar, kFar, -kFar};
  queue.parallel_for(n_chunks, [&](std::int64_t chunk) {
    SampleExtent part = empty;
    const std::int64_t end = std::min(n, (chunk + 1) * kChunk);
    for (std::int64_t k = chunk * kChunk; k < end; ++k) {
      const Sample& s = samples[k];
      if (!counts(s)) continue;
      const double sign = s.w < 0 ? -1 : 1;
      ++part.n;
      part.total_weight += s.weight;
      part.max_amplitude = std::max(part.max_amplitude, s.weight * std::abs(s.visibility));
      part.min_u = std::min(part.min_u, sign * s.u);
      part.max_u = std::max(part.max_u, sign * s.u);
      part.min_v = std::min(part.min_v, sign * s.v);
      part.max_v = std::max(part.max_v, sign * s.v);
      part.min_w = std::min(part.min_w, sign * s.w);
      part.max_w = std::max(part.max_w, sign * s.w);
    }
    parts[chunk] = part;
  });
  SampleExtent all = empty;
  for (const SampleExtent& part : parts) {
    all.n += part.n;
    all.total_weight += part.total_weight;
    all.max_amplitude = std::max(all.max_amplitude, part.max_amplitude);
    all.min_u = std::min(all.min_u, part.min_u);
    all.max_u = std::max(all.max_u, part.max_u);
    all.min_v = std::min(all.min_v, part.min_v);
    all.max_v = std::max(all.max_v, part.max_v);
    all.min_w = std::min(all.min_w, part.min_w);
    all.max_w = std::max(all.max_w, part.max_w);
  }
  return all;
}

double flat_phase_error_rad(const Config& config, const SampleExtent& extent) {
  return extent.n == 0 ? 0 : kPi * (extent.max_w - extent.min_w) * depth_of(config);
}

bool w_is_negligible(const Config& config, const SampleExtent& extent) {
  return flat_phase_error_rad(config, extent) <= config.max_error / 3;
}

double stack_seconds(const Config& config, const std::string& isa, const SampleExtent& extent,
                     bool flat, int n_workers) {
  if (extent.n == 0) return 0;
  const StackPlan plan = make_stack_plan(config, extent, flat);
  const bool single = config.max_error >= kSingleFrom;
  if (plan.plane_bytes(single ? 4 : 8) > 0.7 * memory_bytes())
    return std::numeric_limits<double>::infinity();
  const double speed =
      single ? stack_speed<float>(config, plan, isa) : stack_speed<double>(config, plan, isa);
  return speed * plan.seconds_at_nominal / std::max(1, n_workers);
}

StackImager::StackImager(const Config& config, std::string isa, SamplePath path)
    : config_(config), isa_(std::move(isa)), name_("image/cpu/" + isa_), path_(path) {}

void StackImager::execute(Queue& queue, const std::vector<Sample>& samples,
                          std::vector<double>& image) {
  image.assign(config_.n_pixels * config_.n_pixels, kNaN);
  const SampleExtent extent = extent_of(queue, samples);
  if (extent.n == 0) return;
  const bool flat = path_ == SamplePath::gridded;
  const StackPlan plan = make_stack_plan(config_, extent, flat);
  const bool single = config_.max_error >= kSingleFrom;
  const double need = plan.plane_bytes(single ? 4 : 8) +
                      8 * static_cast<double>(config_.n_pixels * config_.n_pixels);
  if (need > memory_bytes()) {
    throw ConfigError(fmt::format(
        "an image of {} x {} pixels takes {:.1f} GB for its grid; this machine has {:.1f} GB: make "
        "fewer pixels",
        config_.n_pixels, config_.n_pixels, need / 1e9, memory_bytes() / 1e9));
  }
  const bool done = single ? Stack<float>(queue, config_, plan, isa_).run(samples, extent, image)
                           : Stack<double>(queue, config_, plan, isa_).run(samples, extent, image);
  if (!done) image.clear();
}

}  // namespace ryle::image::detail
