// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_engines.hpp"

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"

namespace ryle::stage {

using search::kCell;

SearchEngines::SearchEngines(const Queue& q, const SearchChainConfig& config)
    : queue(q), history((config.max_width + kCell - 1) / kCell * kCell) {
  const std::int64_t block = config.block_samples;
  if (block < 1024 || block % 1024 != 0)
    throw ConfigError("search: block_samples is " + std::to_string(block) +
                      "; it must be a multiple of 1024");
  const auto n_trials = static_cast<std::int64_t>(config.dms.size());
  search::DedisperseConfig d;
  d.n_channels = config.band.n_channels();
  d.n_trials = n_trials;
  d.delays = search::delay_table(config.band, config.dms);
  d.max_code = search::kMaxCode;
  d.max_outputs = block + kCell;
  d.implementation = config.implementation;
  for (const double hz : config.band.center_hz) d.dispersion.push_back(1e18 / (hz * hz));
  dedisperser = search::make_dedisperser(queue, d);
  format = search::sum_format(d.n_channels, d.max_code);
  for (auto& delay : d.delays)
    delay /= static_cast<std::int32_t>(kCell);  // down: never behind the data
  d.max_code = search::kFullCell;
  d.implementation = search::exact_implementation(config.implementation);
  d.max_outputs = block / kCell + 1;
  mask_dedisperser = search::make_dedisperser(queue, d);
  mask_format = search::sum_format(d.n_channels, d.max_code);
  search::DetectConfig e;
  e.n_trials = n_trials;
  e.max_width = config.max_width;
  e.max_columns = history + block + kCell;
  e.threshold = config.threshold;
  e.format = format;
  e.implementation = d.implementation;
  detector = search::make_detector(queue, e);

  plane_stride = history + block + kCell;
  plane = Buffer<std::byte>(
      checked_product({n_trials, plane_stride, sum_bytes()}, "dedispersed block"));
  mask_sums = Buffer<std::byte>(n_trials * (block / kCell + 1) *
                                (mask_format == search::SumFormat::u16 ? 2 : 4));
  weights = Buffer<float>(n_trials * (plane_stride / kCell));
}

std::int64_t SearchEngines::memory_bytes() const {
  return plane.bytes() + mask_sums.bytes() + weights.bytes();
}

}  // namespace ryle::stage
