// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/device/free_memory.hpp"
#include "ryle/engine/grid/cuda/memory.hpp"

namespace ryle::pipeline {
void plan_grid_devices(const GridSetup& setup, const GridOptions& options, GridPlan& plan) {
  if (!setup.config.implementation.starts_with("cuda")) return;
  if (!setup.is_mean())
    throw UnsupportedError("medians are made on CPUs: --device cpu works, or a mean such as gauss");
  const std::string reason = cuda_unavailable_reason();
  if (!reason.empty())
    throw UnsupportedError("gridding on CUDA devices: " + reason + "; --device cpu works");
  const auto n_devices = std::max<std::int64_t>(1, std::ssize(options.devices));
  grid::DeviceLoad load;
  load.n_samples = setup.input->max_block_samples();
  load.n_cells = setup.cells->n_cells();
  load.n_channels = (plan.n_channels_at_a_time + n_devices - 1) / n_devices;
  load.precision = options.precision;
  load.flags = setup.input->has_flags();
  load.weights = setup.input->has_weights();
  load.channel_weights = setup.input->has_channel_weights();
  const grid::DeviceMemory memory = grid::cuda_memory(load);
  // The response of --normalize beam is gridded beside the values.
  const std::int64_t n_gridders = setup.response ? 2 : 1;
  const std::int64_t total_bytes = n_gridders * memory.total_bytes;
  for (const auto& [what, bytes] : memory.items)
    plan.device_memory_bytes.emplace_back(what, n_gridders * bytes);
  plan.device_total_bytes = total_bytes;
  plan.device_pinned_bytes = n_devices * n_gridders * memory.pinned_bytes;
  for (const int device : options.devices.empty() ? std::vector<int>{0} : options.devices)
    for (const DeviceInfo& info : list_devices()) {
      if (info.name != fmt::format("cuda:{}", device)) continue;
      // Others may use the device, too: what they hold is not there.
      const std::int64_t free = std::min(info.memory_bytes, free_device_bytes(device));
      if (total_bytes <= free) continue;
      throw ConfigError(fmt::format(
          "{} samples at a time and {} cells need {:.2f} GiB of {}, which has {:.2f} free; fewer "
          "cells, --block-samples or --device cpu would do",
          load.n_samples, load.n_cells, static_cast<double>(total_bytes) / (1 << 30), info.name,
          static_cast<double>(free) / (1 << 30)));
    }
}

bool worth_a_device(std::int64_t n_values, int n_workers) {
  // Case A from files to files (docs/gridding.md): more than a few workers wait for memory. A
  // device is there after up to 0.3 s.
  constexpr double kValuesOfWorker_per_s = 1.5e8, kMaxValues_per_s = 4e8, kWorth_s = 1;
  const double per_s = std::min(kValuesOfWorker_per_s * n_workers, kMaxValues_per_s);
  return static_cast<double>(n_values) > kWorth_s * per_s;
}

}  // namespace ryle::pipeline
