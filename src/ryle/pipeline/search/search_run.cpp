// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/search/search_files.hpp"
#include "ryle/pipeline/search/search_settings.hpp"
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
    std::vector<float> data(
        checked_product({config_.beams.n_beams, beam_stride}, "block of samples"));
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
    SearchChainConfig& chain = config_.chain;
    const SearchInput input{band_, info_.n_samples, info_.descending};
    chain = search_chain(o_, input);
    config_.n_workers = o_.n_workers;
    prepare_beams();
    prepare_devices();
    summary_.description.plan = plan_text(o_, chain.dms);
    for (const double samples : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
      const double width_s = samples * info_.sample_interval_s;
      summary_.loss_widths_s.push_back(width_s);
      summary_.loss.push_back(search::worst_response(band_, chain.dms, width_s));
    }
    if (auto losses = zero_dm_warning(chain); !losses.empty())
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

  void prepare_beams() {
    BeamGroupConfig& beams = config_.beams;
    beams.n_beams = summary_.n_beams = std::ssize(recording_.beams);
    beams.max_beams = o_.max_beams;
    if (beams.n_beams == 1) return;
    for (const auto& reader : recording_.beams) beams.positions.push_back(reader->info().position);
    const double radius =
        o_.adjacent_deg > 0 ? o_.adjacent_deg * kDegree_rad : usual_adjacency(beams.positions);
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
    if (config_.devices.empty() && search::names_cuda(o_.implementation)) config_.devices = {0};
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
    set_products(o_, p);
    return p;
  }

  void describe(const BeamSearch& beams) {
    auto& d = summary_.description;
    d.file = name_of_files(recording_.files);
    d.telescope = info_.telescope;
    d.source_name = info_.source_name;
    d.position = info_.position;
    if (o_.position_error_deg > 0) d.position_error_rad = o_.position_error_deg * kDegree_rad;
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
