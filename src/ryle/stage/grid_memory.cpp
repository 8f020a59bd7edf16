// SPDX-License-Identifier: BSD-3-Clause
// What a run of the gridder holds in memory, before it holds it.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/stage/grid_setup.hpp"

namespace ryle::stage {
namespace {

/// What grows with the channels taken at a time, and what does not. @unit bytes
struct GridMemory {
  std::int64_t positions = 0, lists = 0, cells = 0, moments = 0, block = 0;
  std::int64_t values = 0, sums = 0, exact = 0, own = 0;  ///< of a channel
  std::int64_t planes = 0;                                ///< of each plane on its way to the disk
  std::int64_t n_planes = 0;

  std::int64_t fixed() const { return positions + lists + cells + moments + block; }
  std::int64_t planes_of(std::int64_t channels) const {
    return planes * std::min(n_planes, channels);
  }
  std::int64_t each() const { return values + sums + exact; }
};

GridMemory memory_of(const GridSetup& setup, int n_workers, bool exact, std::int64_t n_jobs) {
  const std::int64_t n_cells = setup.cells->n_cells();
  const std::int64_t block =
      setup.is_mean() ? setup.input->most_block_samples() : setup.input->facts().n_samples;
  const std::int64_t buffers = std::min<std::int64_t>(2, n_jobs);
  const bool lobes = setup.identity.lobes;
  GridMemory m;
  // A sample: its direction; its place while lists are made (16) and its entries in the lists of
  // about two tiles (8 + 4 each).
  m.positions = 24 * block;
  m.lists = 40 * block;
  // A cell: its direction twice, its place in a tile and flags; the sum over channels for the mean.
  m.cells = (48 + 20) * n_cells + 8 * n_cells;
  m.moments = 33 * n_cells + (exact ? GridSums::bytes_per_cell(lobes) * n_cells : 0);
  const std::int64_t a_sample = (setup.positions ? 0 : 16) + (setup.input->has_weights() ? 4 : 0);
  m.block = buffers * a_sample * block;
  m.values = buffers * (setup.input->has_flags() ? 5 : 4) * block;
  m.sums = setup.is_mean() ? 8 * n_cells : 12 * n_cells;
  m.exact = exact ? GridSums::bytes_per_value() * n_cells : 0;
  m.own = 32 * n_cells + (exact ? GridSums::bytes_per_own(lobes) * n_cells : 0);
  if (!setup.is_mean()) m.own = 0;
  if (setup.response) {  // another gridder for the same samples
    m.cells += 20 * n_cells;
    for (std::int64_t* twice : {&m.moments, &m.sums, &m.exact, &m.own}) *twice *= 2;
  }
  // Value, weight, noise and count; one batch is written, one waits, one is made.
  m.planes = 16 * n_cells;
  m.n_planes = 3 * std::int64_t{n_workers};
  return m;
}

}  // namespace

std::int64_t grid_memory_limit(const GridOptions& options) {
  if (options.memory_bytes > 0) return options.memory_bytes;
  return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE) / 2;
}

std::int64_t grid_peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

GridPlan plan_grid_memory(const GridSetup& setup, const GridOptions& options, int n_workers,
                          bool exact) {
  const std::int64_t n_channels = setup.input->facts().n_channels,
                     together = std::min(n_channels, setup.input->most_channels_together());
  GridPlan plan;
  plan.limit_bytes = grid_memory_limit(options);
  plan.n_blocks = static_cast<std::int64_t>(setup.input->blocks().size());
  const auto bytes = [&](const GridMemory& m, std::int64_t channels, bool own) {
    return m.fixed() + channels * (m.each() + (own ? m.own : 0)) + m.planes_of(channels);
  };
  // One part and block are read without a second buffer; whether channels fit says how many parts.
  GridMemory m = memory_of(setup, n_workers, exact, plan.n_blocks);
  std::int64_t fit = together;
  if (bytes(m, fit, true) > plan.limit_bytes) {
    m = memory_of(setup, n_workers, exact, 2);
    while (fit > 0 && bytes(m, fit, true) > plan.limit_bytes) {
      const std::int64_t rest = plan.limit_bytes - m.fixed() - m.planes_of(fit);
      fit = std::min(fit - 1, rest / (m.each() + m.own));
    }
  }
#if RYLE_MUTANT != 1274
  if (fit < 1)
    throw ConfigError(fmt::format(
        "{} samples at a time and {} cells need {:.3f} GiB with one channel at a time, {:.3f} GiB "
        "are to be used; fewer cells, --block-samples or --memory would do",
        setup.input->most_block_samples(), setup.cells->n_cells(),
        static_cast<double>(bytes(m, 1, true)) / (1 << 30),
        static_cast<double>(plan.limit_bytes) / (1 << 30)));
#endif
  fit = std::max<std::int64_t>(1, fit);
  plan.n_channels_at_a_time = fit;
  plan.n_parts = (n_channels + together - 1) / together * ((together + fit - 1) / fit);
  const auto item = [&](const char* what, std::int64_t n) {
    if (n > 0) plan.memory_bytes.emplace_back(what, n);
    plan.total_bytes += n;
  };
  item("directions of samples", m.positions);
  item("lists of samples", m.lists);
  item("cells", m.cells);
  item("weights and counts", m.moments);
  item("blocks of samples", m.block + fit * m.values);
  item("sums", fit * m.sums);
  item("exact sums of blocks", fit * m.exact);
  item("planes to be written", m.planes_of(fit));
  plan.absent_bytes = fit * m.own;
  if (setup.choosing_bytes > plan.total_bytes) {
    item("more while the map is chosen", setup.choosing_bytes - plan.total_bytes);
  }
  return plan;
}

}  // namespace ryle::stage
