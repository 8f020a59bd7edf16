// SPDX-License-Identifier: BSD-3-Clause
// What a run of the gridder holds in memory, before it holds it.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/grid/grid_setup.hpp"

namespace ryle::pipeline {
namespace {

/// Lists, weights and 64 channels of 8,192 samples, of a worker.
constexpr std::int64_t kWorkspaceBytes = 4 << 20;
/// Ends of large pages, stacks, what malloc keeps.
constexpr std::int64_t kRoundingBytes = 2 << 20;

/// Channels that a device takes at once (engine/grid/cuda/groups.hpp), and those it is given at a
/// time at least: fewer, and their weights are made too often.
constexpr std::int64_t kDeviceChannels = 12, kFewDeviceChannels = 4;
/// Values of a part for devices: page-locked, and read before the first is gridded.
constexpr std::int64_t kDevicePartBytes = std::int64_t{128} << 20;

/// What grows with the channels taken at a time, and what does not. @unit bytes
struct GridMemory {
  std::int64_t positions = 0, lists = 0, workers = 0, cells = 0, moments = 0, block = 0;
  std::int64_t values = 0, sums = 0, exact = 0, own = 0;  ///< of a channel
  std::int64_t making = 0;                                ///< while cells are laid out
  std::int64_t tables = 0;                                ///< that are written
  std::int64_t planes = 0;                                ///< of each plane on its way to the disk
  std::int64_t first_plane = 0, n_planes = 0;

  std::int64_t fixed() const {
    return positions + lists + cells + making + tables + moments + block + first_plane;
  }
  std::int64_t planes_of(std::int64_t channels) const {
    return planes * std::min(n_planes, channels);
  }
  std::int64_t each() const { return values + sums + exact; }
};

// Tiles that a sample may reach: those of 16 x 16 cells, each with the support around it.
double tiles_of_sample(const GridSetup& setup) {
  const double side_rad = 16 * setup.cells->cell_deg() * kDegree_rad;
  if (!(side_rad > 0)) return 4;
  const double reach = 1 + 2 * setup.config.convolution.support_rad / side_rad;
  return std::min(reach * reach, 64.0);
}

/// @param band_samples of medians: at a time; 0: all
GridMemory memory_of(const GridSetup& setup, int n_workers, bool exact, std::int64_t n_jobs,
                     bool keeps_plans, std::int64_t band_samples = 0) {
  const std::int64_t n_cells = setup.cells->n_cells();
  const bool mean = setup.is_mean(), lobes = setup.identity.lobes;
  const std::int64_t block = mean               ? setup.input->max_block_samples()
                             : band_samples > 0 ? band_samples
                                                : setup.input->metadata().n_samples;
  // Means on CPUs plan some samples at a time; others (devices, the reference) take all directions.
  const std::string& name = setup.config.implementation;
  const bool in_pieces = name != "reference" && !name.starts_with("cuda");
  const std::int64_t together = in_pieces ? grid::kSamplesTogether : block;
  const std::int64_t planned = mean && !keeps_plans ? std::min(block, together) : block;
  const std::int64_t searched = mean ? std::min(block, together) : block;
  const std::int64_t buffers = std::min<std::int64_t>(2, n_jobs);
  GridMemory m;
  // A sample: its direction; tiles it reaches while they are looked for (12, more where long lists
  // grow); its offset in each of them (16; in double its number, 4).
  m.positions = 24 * planned;
  const bool offsets = mean && setup.config.precision == grid::Precision::f32;
  // Devices and the reference keep no lists here.
  if (!mean || in_pieces)
    m.lists = (mean ? 12 : 24) * searched +
              static_cast<std::int64_t>((offsets ? 16 : 4) * tiles_of_sample(setup) *
                                        static_cast<double>(planned));
  m.workers = kWorkspaceBytes * n_workers;
  // Cells in tiles, and what finds those of a sample; the mean over channels for the picture, the
  // first planes of weight and count.
  grid::CellMemory tiles = setup.cell_memory;
  if (mean && !in_pieces) tiles = {0, (24 + 9 + 20) * n_cells, 0, 0};  // directions, as they are
  m.cells = tiles.kept + 16 * n_cells + setup.cells->kept_bytes();
  const std::int64_t search_parts =
      std::clamp<std::int64_t>(searched / 16'384, 1, std::int64_t{4} * n_workers);
  m.lists += tiles.planned + 8 * search_parts * tiles.n_tiles;
  if (!mean) m.cells += (24 + 24 + 9) * n_cells;  // for the stage, the tiles and their plans
  m.moments = 33 * n_cells + (exact ? GridSums::bytes_per_cell(lobes) * n_cells : 0);
  m.block = buffers * (16 + (setup.input->has_weights() ? 4 : 0)) * block;
  // Of a channel: values, flags, weights of its own.
  const std::int64_t value_bytes =
      4 + (setup.input->has_flags() ? 1 : 0) + (setup.input->has_channel_weights() ? 4 : 0);
  m.values = buffers * value_bytes * block;
  if (!mean) {  // all samples, read block by block unless there is one
    const bool copied = setup.input->blocks().size() > 1 || band_samples > 0;
    const std::int64_t some = copied ? setup.input->max_block_samples() : 0;
    m.block = (setup.input->has_weights() ? 4 : 0) * (block + some) +
              16 * setup.input->max_block_samples();
    m.values = value_bytes * (block + some);
  }
  m.sums = mean ? 8 * n_cells : 12 * n_cells;
  m.exact = exact ? GridSums::bytes_per_value() * n_cells : 0;
  m.own = 32 * n_cells + (exact ? GridSums::bytes_per_own(lobes) * n_cells : 0);
  if (!mean) m.own = 0;
  if (band_samples > 0) {
    // Pieces of directions while a band's samples are looked for, their numbers while the list
    // grows, and which samples any band has seen.
    m.positions += (24 + 24) * std::min(grid::kSamplesTogether, setup.input->max_block_samples()) +
                   12 * band_samples + setup.input->metadata().n_samples / 8;
    m.sums *= 2;  // of the band beside those of the map
  }
  if (setup.response) {  // another gridder for the same samples
    m.cells += tiles.kept;
    m.workers *= 2;
    for (std::int64_t* twice : {&m.moments, &m.sums, &m.exact, &m.own}) *twice *= 2;
  }
  // Values; weight, noise and count of the first. One batch is written, one waits, one is made of
  // values side by side.
  const std::int64_t real_bytes = setup.config.precision == grid::Precision::f64 ? 8 : 4;
  m.planes = (mean ? real_bytes : 12 + real_bytes) * n_cells;
  m.first_plane = (4 + 2 * real_bytes) * n_cells;
  // What has the sums later is free while the cells are laid out.
  m.making = std::max<std::int64_t>(0, tiles.making - m.moments - m.first_plane);
  const CubeValues real = real_bytes == 8 ? CubeValues::float64 : CubeValues::float32;
  const SkyCells& cells = *setup.cells;
  const auto value = cells.writer_memory(setup.input->metadata().n_channels, real);
  // Weights and counts are made when all is gridded, one behind the other; noise if there is any.
  m.tables = value.kept + cells.writer_memory(1, real).kept +
             cells.writer_memory(1, CubeValues::int32).kept + value.making;
  m.n_planes = 4 * std::int64_t{n_workers};
  return m;
}

/// The largest number up to `maximum` for which `fits` holds; 0: none.
std::int64_t band_samples_that_fit(const std::function<bool(std::int64_t)>& fits,
                                   std::int64_t maximum) {
  std::int64_t low = 0;
  for (std::int64_t high = maximum; low < high;) {
    const std::int64_t tried = low + (high - low + 1) / 2;
    if (fits(tried))
      low = tried;
    else
      high = tried - 1;
  }
  return low;
}

// What files read before occupy is available: the system gives it back.
std::int64_t available_memory_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string key, rest;
  for (std::int64_t kib = 0; in >> key >> kib; std::getline(in, rest))
    if (key == "MemAvailable:") return kib * 1024;
  return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

std::int64_t grid_memory_limit(const GridOptions& options) {
  if (options.memory_bytes > 0) return options.memory_bytes;
  return available_memory_bytes() / 2;
}

std::int64_t grid_resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Of this program: the system's ru_maxrss begins with what the one that started it held.
std::int64_t grid_peak_memory_bytes() {
  std::ifstream in("/proc/self/status");
  std::string key, rest;
  for (std::int64_t kib = 0; in >> key; std::getline(in, rest))
    if (key == "VmHWM:" && in >> kib) return kib * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

GridPlan plan_grid_memory(const GridSetup& setup, const GridOptions& options, int n_workers,
                          bool exact) {
  const std::int64_t n_channels = setup.input->metadata().n_channels,
                     together = std::min(n_channels, setup.input->max_channels_together());
  GridPlan plan;
  plan.limit_bytes = grid_memory_limit(options);
  plan.n_blocks = static_cast<std::int64_t>(setup.input->blocks().size());
  const auto bytes = [&](const GridMemory& m, std::int64_t channels, bool own) {
    return m.fixed() + channels * (m.each() + (own ? m.own : 0)) + m.planes_of(channels);
  };
  // Devices grid faster than files are read: some channels are read while others are gridded, and
  // written meanwhile. Geometry of a single block is kept for all of them.
  const bool on_devices = setup.config.implementation.starts_with("cuda");
  // One part and block are read without a second buffer; whether channels fit says how many parts.
  const std::int64_t n_polarizations = (n_channels + together - 1) / together;
  plan.keeps_plans = plan.n_blocks == 1 && n_polarizations > 1;
  GridMemory m =
      memory_of(setup, n_workers, exact, plan.n_blocks * n_polarizations, plan.keeps_plans);
  std::int64_t fit = together;
  if (on_devices && plan.n_blocks == 1) {
    const std::int64_t n_devices = std::max<std::int64_t>(1, std::ssize(options.devices));
    const std::int64_t channels =
        std::clamp(kDevicePartBytes / (4 * setup.input->max_block_samples()), kFewDeviceChannels,
                   kDeviceChannels);
    const std::int64_t some = channels * n_devices, n = (together + some - 1) / some;
    fit = (together + n - 1) / n;  // parts alike: one gridder for all
    plan.keeps_plans = plan.keeps_plans || fit < together;
    m = memory_of(setup, n_workers, exact, n * n_polarizations, plan.keeps_plans);
  }
  if (bytes(m, fit, true) > plan.limit_bytes) {
    // Made once for all parts where there is one block.
    m = memory_of(setup, n_workers, exact, 2, plan.n_blocks == 1);
    plan.keeps_plans = plan.n_blocks == 1;
    const auto fits = [&] { return bytes(m, 1, true) <= plan.limit_bytes; };
    if (!fits() && plan.keeps_plans) {
      m = memory_of(setup, n_workers, exact, 2, false);
      plan.keeps_plans = false;
    }
    std::int64_t maximum = fit;
    for (fit = 0; fit < maximum;) {
      const std::int64_t tried = (fit + maximum + 1) / 2;
      if (bytes(m, tried, true) <= plan.limit_bytes)
        fit = tried;
      else
        maximum = tried - 1;
    }
  }
  if (fit < 1 && !setup.is_mean()) {
    plan.band_samples = band_samples_that_fit(
        [&](std::int64_t n) {
          m = memory_of(setup, n_workers, exact, 2, false, n);
          return bytes(m, 1, true) <= plan.limit_bytes;
        },
        setup.input->metadata().n_samples);
    m = memory_of(setup, n_workers, exact, 2, false, std::max<std::int64_t>(1, plan.band_samples));
    fit = plan.band_samples > 0 ? 1 : 0;
  }
  if (fit < 1 && !setup.is_mean())
    throw ConfigError(fmt::format(
        "a median of some samples of a channel at a time and {} cells need {:.3f} GiB, {:.3f} GiB "
        "are to be used; smaller files, larger cells, --memory or a mean (--kernel gauss) would do",
        setup.cells->n_cells(), static_cast<double>(bytes(m, 1, true)) / (1 << 30),
        static_cast<double>(plan.limit_bytes) / (1 << 30)));
  if (fit < 1)
    throw ConfigError(fmt::format(
        "{} samples at a time and {} cells need {:.3f} GiB with one channel at a time, {:.3f} GiB "
        "are to be used; fewer cells, --block-samples or --memory would do",
        setup.input->max_block_samples(), setup.cells->n_cells(),
        static_cast<double>(bytes(m, 1, true)) / (1 << 30),
        static_cast<double>(plan.limit_bytes) / (1 << 30)));
  fit = std::max<std::int64_t>(1, fit);
  plan.n_channels_at_a_time = fit;
  plan.n_parts = n_polarizations * ((together + fit - 1) / fit);
  const auto item = [&](const char* what, std::int64_t n) {
    if (n > 0) plan.memory_bytes.emplace_back(what, n);
    plan.total_bytes += n;
  };
  item("directions of samples", m.positions);
  item("lists of samples", m.lists);
  item("cells", m.cells);
  item("more while cells are laid out", m.making);
  item("tables that are written", m.tables);
  item("weights and counts", m.moments);
  item("blocks of samples", m.block + fit * m.values);
  item("sums", fit * m.sums);
  item("exact sums of blocks", fit * m.exact);
  item("planes to be written", m.first_plane + m.planes_of(fit));
  // Weights of channels part their moments from the first block on.
  if (setup.input->has_channel_weights())
    item("weights and counts of channels", fit * m.own);
  else
    plan.absent_bytes = fit * m.own;
  if (setup.choosing_bytes > plan.total_bytes) {
    item("more while the map is chosen", setup.choosing_bytes - plan.total_bytes);
  }
  plan.program_bytes = setup.program_bytes + m.workers + kRoundingBytes;
  return plan;
}

}  // namespace ryle::pipeline
