// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/drift.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/search.hpp"

namespace ryle::pipeline {

struct SearchChainConfig {
  search::Band band;
  std::vector<double> dms;
  search::NormalizeConfig normalize;
  /// Window of DriftFilter, search::drift_window(); 0 = levels are only those of normalize.
  std::int64_t baseline_samples = 0;
  double threshold = 7;
  std::int64_t max_width = 256;
  std::int64_t block_samples = 8192;  ///< multiple of 1024
  /// More hits than this raise the threshold of the block they are in: a storm of interference
  /// must not stall the clusters.
  double max_hits_per_s = 1e5;
  std::string implementation = "auto";
  double smear_samples = 0;  ///< see search::DedisperseConfig
};

/// The normalizer's part of it, checked. Throws ConfigError.
search::NormalizeConfig beam_normalization(const SearchChainConfig& config);

/// What levels are taken out by. @pre baseline_samples > 0
search::DriftConfig beam_drift(const SearchChainConfig& config);

/// Memory of one block of a beam: plane, sums of the mask, weights.
std::int64_t search_engine_bytes(const SearchChainConfig& config, bool on_device);

/// The engines of a search and the memory of one block: beams with the same plan use them one after
/// another. Nothing in here outlives a block. On a CUDA queue all of it is in device memory, and
/// the columns of boxcars that reach back are summed again instead of kept.
class SearchEngines {
 public:
  SearchEngines(const Queue& queue, const SearchChainConfig& config);
  SearchEngines(const SearchEngines&) = delete;
  SearchEngines& operator=(const SearchEngines&) = delete;

  std::int64_t max_delay() const { return dedisperser->max_delay(); }
  std::int64_t sum_bytes() const { return format == search::SumFormat::u16 ? 2 : 4; }
  std::int64_t memory_bytes() const;

  Queue queue;
  std::int64_t history;  ///< columns of a trial that a boxcar may still need
  std::unique_ptr<search::Dedisperser> dedisperser, mask_dedisperser;
  std::unique_ptr<search::Detector> detector;
  search::SumFormat format, mask_format;
  std::int64_t plane_stride = 0;
  Buffer<std::byte> plane;      ///< [trial][history + new] sums
  Buffer<std::byte> mask_sums;  ///< [trial][new / 64]
  Buffer<float> weights;        ///< [trial][plane_stride / 64]
};

}  // namespace ryle::pipeline
