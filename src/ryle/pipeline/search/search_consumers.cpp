// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_consumers.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/search/search_fold_live.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

namespace ryle::pipeline {

namespace {

constexpr std::int64_t kHostBlocks = 3, kDeviceBlocks = 2;

/// Names of engines that devices have, "auto" among them.
bool is_of_devices(const std::string& name) {
  for (const char* known : {"auto", "cuda", "cuda:shared", "cuda:direct", "fdmt", "fdmt:cuda",
                            "fdmt:cuda:tiles", "subband", "subband:cuda"})
    if (name == known) return true;
  return false;
}

std::vector<int> search_devices(const ObservationConfig& config) {
  if (!is_of_devices(config.search.implementation)) return {};
  return beam_devices(config.runtime);
}

}  // namespace

LiveSearchConfig live_search_config(const ObservationConfig& config,
                                    const std::string& command_line) {
  const SearchConfig& s = config.search;
  LiveSearchConfig c;
  static_cast<SearchSettings&>(c) = s;
  for (std::string* name : {&c.dm_file, &c.rfifind_mask, &c.kill_file})
    *name = resolve_path(config, *name);
  if (s.blocks == 1) throw ConfigError("search.blocks = 1: one is gathered while another is read");
  c.n_blocks = s.blocks > 0 ? s.blocks : kHostBlocks;
  c.n_workers = static_cast<int>(config.runtime.threads);
  c.products.output_directory = config.output.directory;
  c.products.name = config.output.name;
  c.products.overwrite = config.output.overwrite;
  c.products.pictures = config.output.pictures;
  c.products.observation = config.source.kind == "network";  // never an alert of a simulation
  c.command_line = command_line;
  return c;
}

std::vector<std::unique_ptr<BeamConsumer>> search_consumers(
    const ObservationConfig& config, const BeamStream& stream, const ArrayLayout& array,
    const std::string& command_line, SearchHooks hooks, const std::vector<int>& devices) {
  std::vector<std::unique_ptr<BeamConsumer>> consumers;
  const SearchConfig& s = config.search;
  if (wants_search(s)) {
    LiveSearchConfig search = live_search_config(config, command_line);
    search.on_candidate = std::move(hooks.on_candidate);
    search.voltage_records = std::move(hooks.voltage_records);
    if (is_of_devices(search.implementation)) search.devices = devices;
    auto live = std::make_unique<LiveSearch>(stream, search);
    live->wait_when_full(!is_real_time(config));
    consumers.push_back(std::move(live));
  }
  if (!s.fold.empty()) {
    LiveFoldConfig fold;
    fold.par = resolve_path(config, s.fold);
    fold.beam = s.fold_beam;
    fold.n_bins = s.fold_bins;
    fold.k_dm = s.k_dm;
    fold.command_line = command_line;
    const auto name =
        std::filesystem::path(config.output.directory) / (config.output.name + "_fold");
    fold.outputs.text = name.string() + ".txt";
    fold.outputs.fits = name.string() + ".fits";
    if (config.output.pictures) fold.outputs.picture = name.string() + ".png";
    fold.outputs.overwrite = config.output.overwrite;
    consumers.push_back(std::make_unique<LiveFold>(stream, array, fold));
  }
  return consumers;
}

SearchConfig planned_search(const ObservationConfig& config, const BeamStream& stream,
                            std::int64_t n_beams, std::int64_t memory_bytes) {
  SearchConfig search = config.search;
  bool on_device = wants_search(search) && !search_devices(config).empty();
  if (on_device && cuda_unavailable_reason().empty())  // else planned for another machine
    on_device = no_device_search(live_search_chain(stream, live_search_config(config, ""))).empty();
  if (search.blocks == 0) search.blocks = on_device ? kDeviceBlocks : kHostBlocks;
  if (search.block_samples > 0) return search;
  search.block_samples = kHostBlock;
  if (!on_device) return search;
  const SearchChainConfig chain = live_search_chain(stream, live_search_config(config, ""));
  const double sweep = chain.band.delay_samples(0, chain.dms.back());
  BlockWish wish;
  wish.again_samples = static_cast<std::int64_t>(sweep) + 1 + chain.max_width;
  wish.sample_interval_s = chain.band.sample_interval_s;
  const double sweep_s = sweep * chain.band.sample_interval_s;
  wish.longest_s = search.block_max_s;
  // A candidate is told a block and its search after the pulse: its voltages are to be there still.
  const double lag_s =
      0.5 * static_cast<double>(chain.baseline_samples) * chain.band.sample_interval_s;
  if (config.voltages.ring_s > 0)
    wish.longest_s = std::min(wish.longest_s,
                              std::max((config.voltages.ring_s - sweep_s - lag_s) / 4,
                                       static_cast<double>(kHostBlock) * wish.sample_interval_s));
  wish.memory_bytes = memory_bytes;
  search.block_samples = choose_block(wish, [&](std::int64_t block) {
    ObservationConfig tried = config;
    tried.search = search;
    tried.search.block_samples = block;
    std::int64_t bytes = 0;
    for (const auto& item : device_search_items(tried, stream, n_beams)) bytes += item.second;
    return bytes;
  });
  return search;
}

std::vector<std::pair<std::string, std::int64_t>> device_search_items(
    const ObservationConfig& config, const BeamStream& stream, std::int64_t n_beams) {
  if (!wants_search(config.search) || search_devices(config).empty()) return {};
  const LiveSearchConfig c = live_search_config(config, "");
  const SearchChainConfig chain = live_search_chain(stream, c);
  auto items = device_search_memory(
      chain, n_beams, std::clamp<std::int64_t>(BeamSearchConfig{}.n_streams, 1, n_beams));
  items.emplace_back("blocks of power",
                     c.n_blocks * n_beams * stream.frequency.n_channels * chain.block_samples * 4);
  return items;
}

std::int64_t search_bytes(const ObservationConfig& config, const FrequencyAxis& frequency,
                          double sample_interval_s, std::int64_t n_beams) {
  if (!wants_search(config.search) || !search_devices(config).empty()) return 0;
  const LiveSearchConfig c = live_search_config(config, "");
  const SearchChainConfig chain =
      search_chain(c, {search_band(frequency, sample_interval_s, c.k_dm), 0, true});
  const std::int64_t trials = std::ssize(chain.dms), width = chain.max_width;
  // As search_chain.cpp and search_engines.cpp allocate.
  const std::int64_t block = chain.block_samples, channels = frequency.n_channels;
  const std::int64_t history = (width + 63) / 64 * 64;
  const auto sweep = static_cast<std::int64_t>(chain.band.delay_samples(0, chain.dms.back())) + 1;
  const std::int64_t late = std::min<std::int64_t>(8 * width + 2 * block, 1 << 16);
  const std::int64_t codes = (sweep + history + late + block - 1) / block * block + 2 * block;
  const std::int64_t beam = channels * (codes + codes / 64) + trials * (2 * history + history / 16);
  const std::int64_t window = chain.baseline_samples;
  const std::int64_t engine = trials * (history + block + 64) * 2 + trials * block / 8;
  const int threads = config.runtime.threads > 0
                          ? static_cast<int>(config.runtime.threads)
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // Power held back for its levels and one block of it levelled, cells of up to 64 samples.
  const std::int64_t lag = (window / 2 + 1023) / 1024 * 1024;
  const std::int64_t held = channels * (lag + 2 * block + (lag + block + window) / 64) * 4;
  return n_beams * (beam + held) + std::min<std::int64_t>(n_beams, threads) * engine +
         c.n_blocks * n_beams * channels * block * 4;
}

}  // namespace ryle::pipeline
