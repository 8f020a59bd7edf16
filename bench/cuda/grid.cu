// SPDX-License-Identifier: BSD-3-Clause
// Gridder on device 0: cases A, B and H of grid.md 14, from longitudes, latitudes and values in
// page-locked memory to planes of values and weights there. The map is made once and not timed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "bench/bench_cuda.hpp"
#include "bench/grid_case.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/grid/cuda/make.hpp"

namespace ryle::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

bool verify_cells(const GridCase& c, const PinnedCase& p) {
  Queue host = Queue::cpu();
  const std::int64_t n_cells = c.width * c.height;
  return verify_grid_cells(
      host, c, p.values[0].data(),
      [&](std::int64_t, std::int64_t cell) {
        return GridCellSeen{p.count[cell], static_cast<double>(p.weight[cell])};
      },
      [&](std::int64_t channel, std::int64_t cell) { return p.planes[channel * n_cells + cell]; });
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

/// How busy each stage was, ms, and how long after the last copy in everything was home.
void add_stages(const std::vector<grid::CudaMapper::StageTime>& times, Result& r) {
  const auto ms = [](double t) { return std::round(1000 * t) / 1000; };
  std::vector<std::pair<std::string, double>> busy;
  double copied = 0, home = 0;
  for (const auto& t : times) {
    std::string key = t.stage + "_ms";
    std::replace(key.begin(), key.end(), ' ', '_');
    const auto found =
        std::find_if(busy.begin(), busy.end(), [&](const auto& b) { return b.first == key; });
    (found == busy.end() ? busy.emplace_back(key, 0.0) : *found).second += t.end_ms - t.begin_ms;
    if (t.stage == "copy in") copied = std::max(copied, t.end_ms);
    home = std::max(home, t.end_ms);
  }
  for (const auto& [key, t] : busy) r.sizes.emplace_back(key, ms(t));
  r.sizes.emplace_back("after_copies_ms", ms(home - copied));
}

/// Every stage with its begin and end, to stderr.
void print_stages(const std::vector<grid::CudaMapper::StageTime>& times) {
  for (const auto& t : times)
    std::fprintf(stderr, "%-9s %8.3f %8.3f ms\n", t.stage.c_str(), t.begin_ms, t.end_ms);
}

/// `--tune`: other cuts of the work than those that are the default, after it.
std::vector<grid::CudaTuning> tunings_of(const Options& options, std::int64_t n_channels) {
  std::vector<grid::CudaTuning> all{{}};
  if (!options.calibrate) return all;
  all.push_back({});
  all.back().copies_together = false;
  for (const std::int64_t chunk :
       {std::int64_t{1} << 19, std::int64_t{3} << 18, std::int64_t{1} << 20, std::int64_t{5} << 18,
        std::int64_t{1} << 21})
    for (const int channels : {8, 12})
      if (n_channels > 12 || channels == 12) all.push_back({chunk, channels, true});
  return all;
}

void measure_tuning(const Options& options, const GridCase& c, const PinnedCase& pinned,
                    const grid::Cells& cells, const grid::CudaTuning& tuning, double link,
                    std::vector<float>& first, const Emit& emit) {
  const std::int64_t n_cells = c.width * c.height, n_channels = c.n_channels;
  const auto start = Clock::now();
  const auto mapper = grid::make_cuda_mapper(grid_config_of(c, "cuda"), cells, tuning);
  const double make_s = seconds_since(start);
  const grid::PlanMetadata metadata = mapper->map(pinned.input(c, 0), {}, pinned.output());
  Result r;
  r.engine = "grid";
  r.implementation = "grid/" + std::string(mapper->implementation());
  r.device = list_devices().at(1).description;
  double pairs = 0;
  for (std::int64_t i = 0; i < n_cells; ++i) pairs += pinned.count[i];
  r.sizes = {{std::string("case_") + c.name, 1},
             {"n_samples", static_cast<double>(c.n_samples())},
             {"n_channels", static_cast<double>(n_channels)},
             {"n_cells", static_cast<double>(n_cells)},
             {"pairs", pairs},
             {"candidates", static_cast<double>(metadata.n_candidates)},
             {"make_ms", std::round(1e5 * make_s) / 100},
             {"chunk_samples", static_cast<double>(tuning.chunk_samples)},
             {"group", static_cast<double>(tuning.channels)},
             {"copies_together", tuning.copies_together ? 1.0 : 0.0}};
  // Other cuts against the default's planes: the direct sum takes longer than they do.
  const std::int64_t n_values = n_cells * n_channels;
  if (first.empty()) {
    r.verified = c.sums_agree && verify_cells(c, pinned);
    if (r.verified) first.assign(pinned.planes.data(), pinned.planes.data() + n_values);
  } else {
    r.verified = true;
    for (std::int64_t i = 0; r.verified && i < n_values; ++i) {
      const float a = pinned.planes[i], b = first[static_cast<std::size_t>(i)];
      r.verified = (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 2e-5F * std::abs(b);
    }
  }
  r.useful_ops = 2 * pairs * static_cast<double>(n_channels);
  r.bytes = static_cast<double>(c.input_bytes() + 4 * n_cells * (n_channels + 2));
  r.rate_unit = "Msample-channel/s";
  if (r.verified) {
    std::vector<double> times;
    const auto begin = Clock::now();
    const double seconds = options.calibrate ? 0.1 : options.seconds_per_case;
    while (times.size() < 10 || seconds_since(begin) < seconds) {
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
    const auto stages = mapper->time_stages(pinned.input(c, 0), {}, pinned.output());
    add_stages(stages, r);
    if (options.calibrate && tuning.chunk_samples == grid::CudaTuning{}.chunk_samples)
      print_stages(stages);
  }
  emit(r);
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
  std::vector<float> first;
  for (const grid::CudaTuning& tuning : tunings_of(options, n_channels))
    measure_tuning(options, c, pinned, cells, tuning, link, first, emit);
}

}  // namespace

void bench_grid_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const double link = link_bytes_per_s();
  if (options.quick) return measure(options, 'A', 2, 8, link, emit);
  for (const std::int64_t n : {10, 50}) measure(options, 'A', n, 1, link, emit);
  if (!options.calibrate) measure(options, 'B', 2, 1, link, emit);
  measure(options, 'H', 10, 1, link, emit);
}

}  // namespace ryle::bench
