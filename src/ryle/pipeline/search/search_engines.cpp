// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_engines.hpp"

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/search/device_memory.hpp"

namespace ryle::pipeline {

using search::kCell;

search::NormalizeConfig beam_normalization(const SearchChainConfig& c) {
  if (c.normalize.zero_dm != search::ZeroDm::off)
    search::check_zero_dm(c.band, c.dms.back(), 1);  // wider pulses: zero_dm_losses()
  search::NormalizeConfig out = c.normalize;
  out.spectra.band = c.band;
  return out;
}

search::DriftConfig beam_drift(const SearchChainConfig& c) {
  search::DriftConfig out;
  out.n_channels = c.band.n_channels();
  out.window_samples = c.baseline_samples;
  out.multiply = c.normalize.kurtosis_degrees > 0;
  const auto& masked = c.normalize.masked;
  const auto& also = c.normalize.mask.channels;
  out.masked.assign(out.n_channels, 0);
  for (std::size_t k = 0; k < out.masked.size(); ++k)
    out.masked[k] = (!masked.empty() && masked[k] != 0) || (!also.empty() && also[k] != 0) ? 1 : 0;
  return out;
}

namespace {

/// Whole pieces of the tree on a device, the columns that boxcars reach back to among them.
std::int64_t plane_columns(std::int64_t history, std::int64_t block, bool on_device) {
  const std::int64_t columns = history + block + kCell;
  return on_device ? (columns + 1023) / 1024 * 1024 : columns;
}
std::int64_t history_columns(const SearchChainConfig& config) {
  return (config.max_width + kCell - 1) / kCell * kCell;
}
search::DetectConfig detector_of(const SearchChainConfig& config) {
  search::DetectConfig d;
  d.n_trials = static_cast<std::int64_t>(config.dms.size());
  d.max_width = config.max_width;
  d.max_columns = history_columns(config) + config.block_samples + kCell;
  d.threshold = config.threshold;
  d.format = search::sum_format(config.band.n_channels(), search::kMaxCode);
  return d;
}
std::int64_t bytes_of(search::SumFormat format) { return format == search::SumFormat::u16 ? 2 : 4; }

}  // namespace

std::int64_t search_engine_bytes(const SearchChainConfig& config, bool on_device) {
  const std::int64_t stride =
      plane_columns(history_columns(config), config.block_samples, on_device);
  const std::int64_t outputs = on_device ? stride : config.block_samples + kCell;
  const std::int64_t n_channels = config.band.n_channels();
  const std::int64_t trial =
      stride * bytes_of(search::sum_format(n_channels, search::kMaxCode)) +
      outputs / kCell * bytes_of(search::sum_format(n_channels, search::kFullCell)) +
      stride / kCell * static_cast<std::int64_t>(sizeof(float));
  return checked_product({static_cast<std::int64_t>(config.dms.size()), trial},
                         "dedispersed block") +
         (on_device ? search::device_detector_bytes(detector_of(config)) : 0);
}

SearchEngines::SearchEngines(const Queue& q, const SearchChainConfig& config)
    : queue(q), history(history_columns(config)) {
  const OnDevice scope(queue);
  const bool on_device = queue.back_end() == BackEnd::cuda;
  const MemorySpace space = on_device ? MemorySpace::device : MemorySpace::host;
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
  plane_stride = plane_columns(history, block, on_device);
  d.max_outputs = on_device ? plane_stride : block + kCell;
  d.implementation = config.implementation;
  d.smear_samples = config.smear_samples;
  for (const double hz : config.band.center_hz) d.dispersion.push_back(1e18 / (hz * hz));
  dedisperser = search::make_dedisperser(queue, d);
  format = search::sum_format(d.n_channels, d.max_code);
  for (auto& delay : d.delays)
    delay /= static_cast<std::int32_t>(kCell);  // down: never behind the data
  d.max_code = search::kFullCell;
  d.smear_samples = 0;
  d.implementation = on_device ? "cuda" : search::exact_implementation(config.implementation);
  d.max_outputs = d.max_outputs / kCell;
  mask_dedisperser = search::make_dedisperser(queue, d);
  mask_format = search::sum_format(d.n_channels, d.max_code);
  search::DetectConfig e = detector_of(config);
  e.implementation = d.implementation;
  detector = search::make_detector(queue, e);

  plane = Buffer<std::byte>(
      checked_product({n_trials, plane_stride, sum_bytes()}, "dedispersed block"), space);
  mask_sums = Buffer<std::byte>(
      n_trials * d.max_outputs * (mask_format == search::SumFormat::u16 ? 2 : 4), space);
  weights = Buffer<float>(n_trials * (plane_stride / kCell), space);
}

std::int64_t SearchEngines::memory_bytes() const {
  return plane.bytes() + mask_sums.bytes() + weights.bytes() + detector->memory_bytes();
}

}  // namespace ryle::pipeline
