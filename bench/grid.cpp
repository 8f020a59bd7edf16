// SPDX-License-Identifier: BSD-3-Clause
// Gridder: cases A, B and H of grid.md 14, from longitudes and latitudes in memory to planes of a
// map in memory.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/bench_cuda.hpp"
#include "bench/grid_case.hpp"
#include "ryle/engine/grid/grid.hpp"

namespace ryle::bench {
namespace {

struct Parts {
  double positions_s = 0, cells_s = 0, geometry_s = 0, gridding_s = 0, planes_s = 0;
  double total() const { return positions_s + cells_s + geometry_s + gridding_s + planes_s; }
};

double& add_time(double& to, const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  body();
  return to += std::chrono::duration<double>(Clock::now() - start).count();
}

struct Outcome {
  std::unique_ptr<grid::Gridder> gridder;
  grid::LargeVector<float> planes;
};

/// Samples of one plan.
void grid_some(Queue& queue, const GridCase& c, std::int64_t first, std::int64_t n, Outcome& out,
               Parts& parts) {
  grid::Positions samples;
  std::shared_ptr<const grid::GeometryPlan> plan;
  add_time(parts.positions_s, [&] {
    samples =
        grid::positions(queue, c.longitude_deg.data() + first, c.latitude_deg.data() + first, n);
  });
  add_time(parts.geometry_s, [&] { plan = out.gridder->plan(queue, std::move(samples)); });
  grid::Samples data;
  data.values = c.values.data() + first;
  data.channel_stride = c.n_samples();
  add_time(parts.gridding_s, [&] { out.gridder->execute(queue, *plan, data); });
}

/// Everything from the beginning: nothing is kept from one run to the next.
Outcome run_once(Queue& queue, const GridCase& c, const std::string& implementation, Parts& parts) {
  Outcome out;
  grid::Cells cells;
  add_time(parts.cells_s, [&] {
    cells = {grid::positions(queue, c.cell_longitude_deg.data(), c.cell_latitude_deg.data(),
                             c.width * c.height),
             c.width};
  });
  add_time(parts.geometry_s, [&] {
    out.gridder = grid::make_gridder(grid_config_of(c, implementation), std::move(cells));
  });
  const std::int64_t together = std::min(c.n_samples(), out.gridder->samples_together());
  for (std::int64_t first = 0; first < c.n_samples(); first += together)
    grid_some(queue, c, first, std::min(together, c.n_samples() - first), out, parts);
  add_time(parts.planes_s, [&] {
    out.planes.resize(c.width * c.height * c.n_channels);
    grid::finish_values(queue, out.gridder->sums(), {}, 0, c.n_channels, out.planes.data());
  });
  return out;
}

/// Highest and present resident bytes; 0 where /proc does not say.
struct Resident {
  double peak = 0, now = 0;
};
Resident resident_bytes() {
  std::ifstream in("/proc/self/status");
  Resident r;
  for (std::string word; in >> word;) {
    if (word == "VmHWM:" && in >> r.peak) r.peak *= 1024;
    if (word == "VmRSS:" && in >> r.now) r.now *= 1024;
  }
  return r;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Reading all values once with all workers, bytes per second.
double read_rate(Queue& queue, const GridCase& c) {
  const std::int64_t n = c.values.size(), n_parts = queue.n_workers();
  std::vector<float> sums(n_parts);
  const auto once = [&] {
    queue.parallel_for(n_parts, [&](std::int64_t p) {
      float sum[16] = {};
      for (std::int64_t k = n * p / n_parts; k + 16 <= n * (p + 1) / n_parts; k += 16)
        for (int l = 0; l < 16; ++l) sum[l] += c.values[k + l];
      sums[p] = sum[0];
    });
  };
  return static_cast<double>(c.values.bytes()) / time_runs(0.1, once).second;
}

double pairs_of(const grid::Sums& sums) {
  double pairs = 0;
  for (std::int64_t i = 0; i < sums.n_cells(); ++i)
    pairs += static_cast<double>(sums.moments(0, i).count);
  return pairs;
}

void measure_case(const Options& options, const std::string& implementation, char name,
                  const GridCaseSize& size, const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  const GridCase c = make_grid_case(queue, name, size);
  Result r;
  r.engine = "grid";
  r.device = device_description(options.n_workers);
  Parts parts;
  malloc_trim(0);  // what earlier cases left is not input
  const double before = resident_bytes().now - static_cast<double>(c.input_bytes());
  double pairs = 0;
  {
    forget_peak();
    const Outcome out = run_once(queue, c, implementation, parts);
    const double peak = resident_bytes().peak - before;
    r.implementation = "grid/" + std::string(out.gridder->implementation());
    pairs = pairs_of(out.gridder->sums());
    const grid::Sums& sums = out.gridder->sums();
    r.verified = c.sums_agree && verify_grid_cells(
                                     queue, c, c.values.data(),
                                     [&](std::int64_t channel, std::int64_t cell) {
                                       const grid::Moments& m = sums.moments(channel, cell);
                                       return GridCellSeen{m.count, m.weight};
                                     },
                                     [&](std::int64_t channel, std::int64_t cell) {
                                       return out.planes[channel * sums.n_cells() + cell];
                                     });
    r.sizes = {
        {std::string("case_") + name, 1},
        {"n_samples", static_cast<double>(c.n_samples())},
        {"n_channels", static_cast<double>(c.n_channels)},
        {"n_cells", static_cast<double>(c.width * c.height)},
        {"pairs", pairs},
        {"peak_over_input", std::round(100 * peak / static_cast<double>(c.input_bytes())) / 100}};
  }
  r.useful_ops = 2 * pairs * static_cast<double>(c.n_channels);
  r.bytes = static_cast<double>(c.input_bytes()) +
            4 * static_cast<double>(c.width * c.height * c.n_channels);
  r.rate_unit = "Msample-channel/s";
  if (r.verified) {
    Parts best;
    std::tie(r.median_s, r.min_s) = time_runs(options.seconds_per_case, [&] {
      Parts own;
      run_once(queue, c, implementation, own);
      if (best.total() == 0 || own.total() < best.total()) best = own;
    });
    const auto ms = [](double s) { return std::round(1e5 * s) / 100; };
    r.sizes.insert(r.sizes.end(), {{"positions_ms", ms(best.positions_s)},
                                   {"cells_ms", ms(best.cells_s)},
                                   {"geometry_ms", ms(best.geometry_s)},
                                   {"gridding_ms", ms(best.gridding_s)},
                                   {"planes_ms", ms(best.planes_s)}});
    r.rate = 1e-6 * static_cast<double>(c.n_samples() * c.n_channels) / r.min_s;
    const double read = r.bytes / read_rate(queue, c);
    const double ops = r.useful_ops / (ceiling_fma_f32_ops() * options.n_workers);
    r.roofline_fraction = std::max(read, ops) / r.min_s;
    r.roofline = read > ops ? "input and map read once" : "multiply-adds of all pairs";
  }
  emit(r);
}

}  // namespace

void bench_grid(const Options& options, const Emit& emit) {
#ifdef RYLE_HAVE_CUDA
  bench_grid_cuda(options, emit);
  if (options.implementation.rfind("cuda", 0) == 0) return;
#endif
  std::vector<std::string> names{options.implementation};
  if (options.implementation == "all") {
    names.clear();
    for (const auto& name : grid::available_implementations())
      if (name != "reference" && !name.starts_with("cuda")) names.push_back(name);
  }
  for (const auto& name : names) {
    if (options.quick) {
      measure_case(options, name, 'A', {2, 8, 0.25}, emit);
      continue;
    }
    for (const std::int64_t n : {1, 10, 50}) measure_case(options, name, 'A', {n, 1, 1}, emit);
    for (const std::int64_t n : {1, 10}) measure_case(options, name, 'B', {n, 1, 1}, emit);
    // How the time grows with samples and cells.
    for (const std::int64_t step : {4, 2}) measure_case(options, name, 'A', {10, step, 1}, emit);
    for (const double share : {0.25, 0.5}) measure_case(options, name, 'A', {10, 1, share}, emit);
    const double available =
        static_cast<double>(list_devices().front().memory_bytes) - resident_bytes().now;
    if (available > 6e9) measure_case(options, name, 'H', {10, 1, 1}, emit);
  }
}

}  // namespace ryle::bench
