// SPDX-License-Identifier: BSD-3-Clause
// Gridder on device 0: cases A, B and H of grid.md 14, from longitudes, latitudes and values in
// page-locked memory to planes of values and weights there. The map is made once and not timed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "bench/bench_cuda.hpp"
#include "bench/grid_case.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/grid/cuda.hpp"

namespace ryle::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

grid::Config config_of(const GridCase& c, const char* implementation) {
  grid::Config config;
  config.convolution.sigma_rad = kGridSigma_deg * kDegree_rad;
  config.convolution.support_rad = 5 * config.convolution.sigma_rad;
  config.n_channels = c.n_channels;
  config.implementation = implementation;
  return config;
}

/// Page-locked input, twice: values of the second have their channels in the other order.
struct PinnedCase {
  Buffer<double> longitude, latitude;
  Buffer<float> values[2];
  Buffer<float> planes, weight;
  Buffer<std::int32_t> count;

  explicit PinnedCase(const GridCase& c)
      : longitude(c.n_samples(), MemorySpace::pinned),
        latitude(c.n_samples(), MemorySpace::pinned),
        planes(c.width * c.height * c.n_channels, MemorySpace::pinned),
        weight(c.width * c.height, MemorySpace::pinned),
        count(c.width * c.height, MemorySpace::pinned) {
    std::copy(c.longitude_deg.begin(), c.longitude_deg.end(), longitude.data());
    std::copy(c.latitude_deg.begin(), c.latitude_deg.end(), latitude.data());
    for (auto& v : values) v = Buffer<float>(c.values.size(), MemorySpace::pinned);
    std::copy_n(c.values.data(), c.values.size(), values[0].data());
    for (std::int64_t e = 0; e < c.n_channels; ++e)
      std::copy_n(c.values.data() + e * c.n_samples(), c.n_samples(),
                  values[1].data() + (c.n_channels - 1 - e) * c.n_samples());
  }
  grid::CudaMapper::Input input(const GridCase& c, int copy) const {
    grid::CudaMapper::Input in;
    in.longitude_deg = longitude.data();
    in.latitude_deg = latitude.data();
    in.n_samples = c.n_samples();
    in.samples.values = values[copy].data();
    in.samples.channel_stride = c.n_samples();
    return in;
  }
  grid::CudaMapper::Output output() const { return {planes.data(), weight.data(), count.data()}; }
};

/// Some cells against the direct sum in double: counts equal, values and weights to 2e-6 where the
/// weight exceeds 1 (grid.md 4).
bool verify_cells(const GridCase& c, const PinnedCase& p) {
  constexpr std::uint64_t kChecked = 24;
  Queue host = Queue::cpu();
  const std::int64_t n_cells = c.width * c.height;
  std::vector<std::int64_t> chosen;
  std::vector<double> lon, lat;
  for (std::uint64_t k = 0; k < kChecked; ++k) {
    const auto cell =
        static_cast<std::int64_t>(combine(11, k) % static_cast<std::uint64_t>(n_cells));
    chosen.push_back(cell);
    lon.push_back(c.cell_longitude_deg[static_cast<std::size_t>(cell)]);
    lat.push_back(c.cell_latitude_deg[static_cast<std::size_t>(cell)]);
  }
  grid::Cells cells;
  cells.directions = grid::positions(host, lon.data(), lat.data(), kChecked);
  const auto reference = grid::make_gridder(config_of(c, "reference"), std::move(cells));
  const auto plan = reference->plan(
      host, grid::positions(host, c.longitude_deg.data(), c.latitude_deg.data(), c.n_samples()));
  reference->execute(host, *plan, p.input(c, 0).samples);
  std::int64_t covered = 0;
  for (std::int64_t channel = 0; channel < c.n_channels; ++channel) {
    const grid::Plane want = grid::finish(reference->sums(), {}, channel);
    for (std::size_t k = 0; k < kChecked; ++k) {
      if (p.count[chosen[k]] != want.count[k]) return false;
      const float got = p.planes[channel * n_cells + chosen[k]];
      if (std::isnan(got) != std::isnan(want.value[k])) return false;
      if (want.weight[k] <= 1) continue;
      ++covered;
      if (std::abs(got / want.value[k] - 1) > 2e-6F) return false;
      if (std::abs(p.weight[chosen[k]] / want.weight[k] - 1) > 2e-6F) return false;
    }
  }
  return covered > 0;
}

/// Page-locked to device memory, best of some.
double link_bytes_per_s() {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  Queue queue = Queue::cuda();
  const OnDevice on_device(queue);
  const Buffer<std::byte> from(kBytes, MemorySpace::pinned), to(kBytes, MemorySpace::device);
  double best = 0;
  for (int k = 0; k < 5; ++k) {
    const auto start = Clock::now();
    copy_bytes(queue, to.data(), from.data(), kBytes);
    queue.synchronize();
    best = std::max(best, static_cast<double>(kBytes) / seconds_since(start));
  }
  return best;
}

void measure(const Options& options, char name, std::int64_t n_channels, std::int64_t step,
             double link, const Emit& emit) {
  Queue host = Queue::cpu();
  GridCaseSize size;
  size.n_channels = n_channels;
  size.sample_step = step;
  const GridCase c = make_grid_case(host, name, size);
  const PinnedCase pinned(c);
  const std::int64_t n_cells = c.width * c.height;
  grid::Cells cells;
  cells.directions =
      grid::positions(host, c.cell_longitude_deg.data(), c.cell_latitude_deg.data(), n_cells);
  cells.width = c.width;
  const auto start = Clock::now();
  const auto mapper = grid::make_cuda_mapper(config_of(c, "cuda"), cells);
  const double make_s = seconds_since(start);
  const grid::PlanFacts facts = mapper->map(pinned.input(c, 0), {}, pinned.output());
  Result r;
  r.engine = "grid";
  r.implementation = "grid/" + std::string(mapper->implementation());
  r.device = list_devices().at(1).description;
  double pairs = 0;
  for (std::int64_t i = 0; i < n_cells; ++i) pairs += pinned.count[i];
  r.sizes = {{std::string("case_") + name, 1},
             {"n_samples", static_cast<double>(c.n_samples())},
             {"n_channels", static_cast<double>(n_channels)},
             {"n_cells", static_cast<double>(n_cells)},
             {"pairs", pairs},
             {"candidates", static_cast<double>(facts.n_candidates)},
             {"make_ms", std::round(1e5 * make_s) / 100}};
  r.verified = c.sums_agree && verify_cells(c, pinned);
  r.useful_ops = 2 * pairs * static_cast<double>(n_channels);
  r.bytes = static_cast<double>(c.input_bytes() + 4 * n_cells * (n_channels + 2));
  r.rate_unit = "Msample-channel/s";
  if (r.verified) {
    std::vector<double> times;
    const auto begin = Clock::now();
    while (times.size() < 10 || seconds_since(begin) < options.seconds_per_case) {
      const auto from = Clock::now();
      mapper->map(pinned.input(c, static_cast<int>(times.size() % 2)), {}, pinned.output());
      times.push_back(seconds_since(from));
    }
    std::sort(times.begin(), times.end());
    r.median_s = times[times.size() / 2];
    r.min_s = times.front();
    r.rate = 1e-6 * static_cast<double>(c.n_samples() * n_channels) / r.median_s;
    r.roofline_fraction = static_cast<double>(c.input_bytes()) / link / r.median_s;
    r.roofline = "input over the link once";
  }
  emit(r);
}

}  // namespace

void bench_grid_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const double link = link_bytes_per_s();
  if (options.quick) return measure(options, 'A', 2, 8, link, emit);
  for (const std::int64_t n : {10, 50}) measure(options, 'A', n, 1, link, emit);
  measure(options, 'B', 2, 1, link, emit);
  measure(options, 'H', 10, 1, link, emit);
}

}  // namespace ryle::bench
