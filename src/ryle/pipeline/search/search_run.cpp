// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/search/search_files.hpp"
#include "ryle/pipeline/search/search_products.hpp"
#include "ryle/pipeline/search/search_stream.hpp"

namespace ryle::pipeline {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

search::Band band_of(const FilterbankInfo& info, const SearchOptions& o) {
  if (info.n_channels < 2)
    throw ConfigError(info.path +
                      ": one channel only: a time series cannot be searched for dispersed pulses; "
                      "`ryle fold` folds it");
  search::Band band;
  band.center_hz = info.channel_center_hz;
  band.channel_width_hz = info.channel_width_hz;
  band.sample_interval_s = info.sample_interval_s;
  band.k_dm = search::dispersion_constant(o.k_dm);
  return band;
}

search::DmPlanConfig plan_of(const SearchOptions& o, const search::Band& band,
                             const FilterbankInfo& info) {
  search::DmPlanConfig plan = o.plan;
  const double half_file = 0.5 * static_cast<double>(info.n_samples) / band.sweep_samples_per_dm();
  if (!(plan.dm_max > 0)) plan.dm_max = std::max(plan.dm_min + 1, std::min(2000.0, half_file));
  if (plan.kind == "file") plan.file = read_text_file(o.plan_file);
  return plan;
}

std::int64_t width_of(const SearchOptions& o, const FilterbankInfo& info) {
  const double width_s = o.max_width_s > 0 ? o.max_width_s : 0.1;
  const auto samples = static_cast<std::int64_t>(std::llround(width_s / info.sample_interval_s));
  if (o.max_width_s > 0 && samples > search::kMaxWidth)
    throw ConfigError(fmt::format("a width of {} s is {} samples; at most {} ({:.4g} s)",
                                  o.max_width_s, samples, search::kMaxWidth,
                                  static_cast<double>(search::kMaxWidth) * info.sample_interval_s));
  const std::int64_t maximum = o.max_width_s > 0 ? search::kMaxWidth : 1024;
  return std::clamp<std::int64_t>(samples, 8,
                                  std::min(maximum, std::max<std::int64_t>(8, info.n_samples / 8)));
}

/// One search: files in, products out.
class Search {
 public:
  Search(const SearchOptions& options, SearchRecording recording, std::string name)
      : o_(options), recording_(std::move(recording)), name_(std::move(name)) {
    info_ = recording_.beams.front()->info();
    for (const auto& reader : recording_.beams)
      info_.n_samples = std::min(info_.n_samples, reader->info().n_samples);
    band_ = band_of(info_, o_);
  }

  SearchSummary run() {
    const double begin = now_s();
    prepare();
    BeamSearch beams(config_);
    describe(beams);
    SearchProducts products(product_options(), band_, config_.chain.dms);
    products.begin(summary_.description);
    const std::int64_t block = config_.chain.block_samples;
    const std::int64_t beam_stride = info_.n_channels * block;
    std::vector<float> data(static_cast<std::size_t>(
        checked_product({config_.beams.n_beams, beam_stride}, "block of samples")));
    summary_.memory_bytes =
        beams.memory_bytes() + static_cast<std::int64_t>(data.size() * sizeof(float));
    std::vector<BeamEvent> events;
    for (std::int64_t first = 0; first < info_.n_samples; first += block) {
      const std::int64_t n = std::min(block, info_.n_samples - first);
      const double reading = now_s();
      for (std::size_t b = 0; b < recording_.beams.size(); ++b)
        recording_.beams[b]->read(first, n,
                                  data.data() + static_cast<std::int64_t>(b) * beam_stride, block);
      summary_.read_s += now_s() - reading;
      beams.feed(data.data(), beam_stride, block, n, events);
      products.add(events, 0, info_.start_tai_ns);
      summary_.data_s = static_cast<double>(first + n) * info_.sample_interval_s;
      if (!go_on(products.n_candidates())) break;
    }
    beams.finish(events);
    products.add(events, 0, info_.start_tai_ns);
    finish(beams, products);
    summary_.elapsed_s = now_s() - begin;
    return summary_;
  }

 private:
  void prepare() {
    const auto plan = plan_of(o_, band_, info_);
    SearchChainConfig& chain = config_.chain;
    chain.band = band_;
    chain.dms = search::dm_trials(band_, plan);
    chain.normalize.n_channels = info_.n_channels;
    chain.normalize.masked = parse_channel_list(o_.mask_channels, info_.n_channels);
    chain.normalize.flag_channels = o_.flag_channels;
    chain.normalize.mask = user_mask();
    chain.normalize.spectra.threshold = o_.spectra_threshold;
    chain.normalize.kurtosis_degrees = o_.kurtosis_degrees;
    chain.normalize.zero_dm = search::zero_dm_of(o_.zero_dm);
    chain.threshold = o_.threshold;
    chain.max_width = width_of(o_, info_);
    chain.baseline_samples =
        search::drift_window(o_.baseline_s, info_.sample_interval_s, chain.max_width);
    chain.block_samples = o_.block_samples;
    chain.implementation = o_.implementation;
    chain.smear_samples = o_.smear_samples;
    config_.n_workers = o_.n_workers;
    prepare_beams();
    prepare_devices();
    summary_.description.plan = plan_text(plan, chain.dms);
    for (const double samples : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
      const double width_s = samples * info_.sample_interval_s;
      summary_.loss_widths_s.push_back(width_s);
      summary_.loss.push_back(search::worst_response(band_, chain.dms, width_s));
    }
    if (chain.normalize.zero_dm != search::ZeroDm::off)
      if (auto losses = search::zero_dm_losses(band_, chain.dms.front(), chain.max_width);
          !losses.empty())
        summary_.warnings.push_back(std::move(losses));
    for (const auto& reader : recording_.beams) {
      for (const auto& warning : reader->info().warnings) summary_.warnings.push_back(warning);
      const std::int64_t longer = reader->info().n_samples - info_.n_samples;
      if (longer > 0)
        summary_.warnings.push_back(fmt::format(
            "{}: its last {} samples ({:.3f} s) are not searched, another beam ends "
            "there",
            reader->info().path, longer, static_cast<double>(longer) * info_.sample_interval_s));
    }
  }

  search::UserMask user_mask() const {
    search::UserMask mask;
    if (!o_.rfifind_mask.empty())
      mask = search::parse_rfifind_mask(read_text_file(o_.rfifind_mask), o_.rfifind_mask, band_);
    if (!o_.kill_file.empty())
      mask.add_channels(search::parse_kill_file(read_text_file(o_.kill_file), o_.kill_file, band_,
                                                info_.descending));
    const auto times = search::parse_time_ranges(o_.mask_times, band_.sample_interval_s);
    mask.blocks.insert(mask.blocks.end(), times.begin(), times.end());
    mask.sort();
    return mask;
  }

  void prepare_beams() {
    BeamGroupConfig& beams = config_.beams;
    beams.n_beams = summary_.n_beams = std::ssize(recording_.beams);
    beams.max_beams = o_.max_beams;
    if (beams.n_beams == 1) return;
    for (const auto& reader : recording_.beams) beams.positions.push_back(reader->info().position);
    const double radius = o_.adjacent_rad > 0 ? o_.adjacent_rad : usual_adjacency(beams.positions);
    beams.neighbours = beam_neighbours(beams.positions, radius);
    if (!(radius > 0)) {
      beams.positions.clear();
      beams.neighbours.clear();
      summary_.warnings.emplace_back(
          "the files do not say where their beams point: no two of them count as adjacent");
    }
  }

  /// All of the search on devices that were named. With "cuda" as implementation only, what the
  /// device does not do runs on the CPU, and codes and sums travel.
  void prepare_devices() {
    config_.devices = o_.devices;
    const std::string& name = o_.implementation;
    if (config_.devices.empty() &&
        (name.rfind("cuda", 0) == 0 || name.rfind("fdmt:cuda", 0) == 0 || name == "subband:cuda"))
      config_.devices = {0};
    if (config_.devices.empty()) return;
    const std::string why = no_device_search(config_.chain);
    if (why.empty()) return;
    if (!o_.devices.empty()) throw UnsupportedError("search on devices: " + why);
    config_.devices.clear();
    summary_.warnings.push_back("flags, clusters and refinement are on the CPU: " + why);
  }

  SearchProductOptions product_options() const {
    SearchProductOptions p;
    p.output_directory = o_.output_directory;
    p.name = name_;
    p.overwrite = o_.overwrite;
    p.pictures = o_.pictures;
    p.voevents = o_.voevents;
    p.max_pictures = o_.max_pictures;
    p.dm_candidate_min = o_.dm_candidate_min;
    return p;
  }

  void describe(const BeamSearch& beams) {
    auto& d = summary_.description;
    d.file = name_of_files(recording_.files);
    d.telescope = info_.telescope;
    d.source_name = info_.source_name;
    d.position = info_.position;
    if (o_.position_error_rad > 0) d.position_error_rad = o_.position_error_rad;
    d.start_mjd_utc = info_.start_mjd_utc;
    d.start_tai_ns = info_.start_tai_ns;
    d.n_samples = info_.n_samples;
    d.command_line = o_.command_line;
    describe_search(config_.chain, beams, d);
  }

  bool go_on(std::int64_t n_candidates) {
    if (o_.on_progress)
      o_.on_progress(summary_.data_s,
                     static_cast<double>(info_.n_samples) * info_.sample_interval_s, n_candidates);
    if (o_.stop == nullptr || o_.stop->load() == 0) return true;
    summary_.stopped = true;
    summary_.warnings.push_back(
        fmt::format("stopped by a signal after {:.3f} s of data", summary_.data_s));
    return false;
  }

  void finish(const BeamSearch& beams, SearchProducts& products) {
    const SearchCounts counts = beams.counts();
    summary_.n_hits = counts.n_hits;
    summary_.n_hits_dropped = counts.n_hits_dropped;
    summary_.normalize = counts.normalize;
    summary_.flagged_channels = beams.n_flagged_channels();
    summary_.normalize_s = counts.normalize_s;
    summary_.dedisperse_s = counts.dedisperse_s;
    summary_.detect_s = counts.detect_s + counts.cluster_s;
    for (const auto& part : counts.normalize.masked_parts())
      summary_.description.masked.emplace_back(part.cause, part.fraction);
    products.finish(summary_.description);
    summary_.events = products.events();
    summary_.n_candidates = products.n_candidates();
    summary_.products = products.products();
    for (const auto& w : products.warnings()) summary_.warnings.push_back(w);
    if (counts.n_blocks_raised > 0) summary_.warnings.push_back(storm_warning(counts));
  }

  const SearchOptions& o_;
  SearchRecording recording_;
  std::string name_;
  FilterbankInfo info_;
  search::Band band_;
  BeamSearchConfig config_;
  SearchSummary summary_;
};

}  // namespace

std::vector<std::uint8_t> parse_channel_list(const std::string& text, std::int64_t n_channels) {
  if (text.empty()) return {};
  std::vector<std::uint8_t> masked(static_cast<std::size_t>(n_channels), 0);
  std::istringstream in(text);
  std::string word;
  while (std::getline(in, word, ',')) {
    std::int64_t first = 0, last = 0;
    try {
      std::size_t used = 0;
      first = last = std::stoll(word, &used);
      if (used < word.size() && word[used] == '-') {
        std::size_t more = 0;
        last = std::stoll(word.substr(used + 1), &more);
        used += 1 + more;
      }
      if (used != word.size() || first < 0 || last < first || last >= n_channels)
        throw std::out_of_range(word);
    } catch (const std::logic_error&) {
      throw ConfigError(
          fmt::format("channels \"{}\": write numbers and ranges within 0 .. {}, such as 0-3,17",
                      word, n_channels - 1));
    }
    std::fill(masked.begin() + first, masked.begin() + last + 1, std::uint8_t{1});
  }
  return masked;
}

std::vector<SearchSummary> search_files(const SearchOptions& options) {
  std::vector<std::string> files{options.file}, notes;
  files.insert(files.end(), options.more_files.begin(), options.more_files.end());
  const auto name_of = [&](const std::string& file) {
    return options.name.empty() ? std::filesystem::path(file).stem().string() : options.name;
  };
  const auto require_outputs = [&](const std::string& name) {
    require_search_outputs(options.output_directory, name, options.overwrite);
  };
  if (files.size() == 1) require_outputs(name_of(files.front()));
  auto recordings = open_search_files(files, options.input, notes);
  std::vector<std::string> names;
  for (const auto& recording : recordings) {
    std::string name = name_of(recording.files.front());
    while (std::find(names.begin(), names.end(), name) != names.end())
      name += fmt::format("_{}", names.size() + 1);
    require_outputs(name);
    names.push_back(std::move(name));
  }
  std::vector<SearchSummary> out;
  for (std::size_t k = 0; k < recordings.size(); ++k) {
    out.push_back(Search(options, std::move(recordings[k]), names[k]).run());
    if (!out.back().stopped) continue;
    for (++k; k < recordings.size(); ++k)
      out.back().warnings.push_back(name_of_files(recordings[k].files) + " was not searched");
  }
  out.front().notes = std::move(notes);
  return out;
}

SearchSummary search_file(const SearchOptions& options) {
  std::vector<std::string> files{options.file}, notes;
  files.insert(files.end(), options.more_files.begin(), options.more_files.end());
  if (open_search_files(files, options.input, notes).size() > 1) throw ConfigError(notes.back());
  return std::move(search_files(options).front());
}

}  // namespace ryle::pipeline
