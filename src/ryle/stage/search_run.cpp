// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/product/publish.hpp"
#include "ryle/stage/search_chain.hpp"
#include "ryle/stage/search_picture.hpp"

namespace ryle::stage {
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
  if (plan.kind == "file") {
    std::ifstream in(o.plan_file);
    if (!in) throw IoError::from_errno("read", o.plan_file, ENOENT);
    std::ostringstream text;
    text << in.rdbuf();
    plan.file = text.str();
  }
  return plan;
}

std::string plan_text(const search::DmPlanConfig& plan, const std::vector<double>& dms) {
  std::string text = fmt::format("{}, {} trials from {:.6g} to {:.6g} pc/cm3", plan.kind,
                                 dms.size(), dms.front(), dms.back());
  if (plan.kind == "tolerance") text += fmt::format(", tolerance {}", plan.tolerance);
  if (plan.kind == "linear") text += fmt::format(", step {}", plan.step);
  return text;
}

std::int64_t width_of(const SearchOptions& o, const FilterbankInfo& info) {
  const double width_s = o.max_width_s > 0 ? o.max_width_s : 0.1;
  const auto samples = static_cast<std::int64_t>(std::llround(width_s / info.sample_interval_s));
  if (o.max_width_s > 0 && samples > search::kMaxWidth)
    throw ConfigError(fmt::format("a width of {} s is {} samples; at most {} ({:.4g} s)",
                                  o.max_width_s, samples, search::kMaxWidth,
                                  static_cast<double>(search::kMaxWidth) * info.sample_interval_s));
  const std::int64_t most = o.max_width_s > 0 ? search::kMaxWidth : 1024;
  return std::clamp<std::int64_t>(samples, 8,
                                  std::min(most, std::max<std::int64_t>(8, info.n_samples / 8)));
}

/// Everything the products need to know about one search.
class Search {
 public:
  explicit Search(const SearchOptions& options)
      : o_(options),
        reader_(open_filterbank(options.file, options.input)),
        info_(reader_->info()),
        band_(band_of(info_, options)),
        queue_(Queue::cpu(options.n_workers)) {}

  SearchSummary run() {
    const double begin = now_s();
    prepare();
    SearchChain chain(queue_, chain_);
    describe(chain);
    const std::int64_t block = chain_.block_samples;
    std::vector<float> data(
        static_cast<std::size_t>(checked_product({info_.n_channels, block}, "block of samples")));
    summary_.memory_bytes =
        chain.memory_bytes() + static_cast<std::int64_t>(data.size() * sizeof(float));
    std::vector<SearchEvent> events;
    for (std::int64_t first = 0; first < info_.n_samples; first += block) {
      const std::int64_t n = std::min(block, info_.n_samples - first);
      const double reading = now_s();
      reader_->read(first, n, data.data(), block);
      summary_.read_s += now_s() - reading;
      chain.feed(data.data(), block, n, events);
      take(events);
      summary_.data_s = static_cast<double>(first + n) * info_.sample_interval_s;
      if (o_.on_progress)
        o_.on_progress(summary_.data_s,
                       static_cast<double>(info_.n_samples) * info_.sample_interval_s,
                       summary_.n_candidates);
      if (o_.stop != nullptr && o_.stop->load() > 0) {
        summary_.stopped = true;
        summary_.warnings.push_back(
            fmt::format("stopped by a signal after {:.3f} s of data", summary_.data_s));
        break;
      }
    }
    chain.finish(events);
    take(events);
    finish(chain);
    summary_.elapsed_s = now_s() - begin;
    return summary_;
  }

 private:
  void prepare() {
    const auto plan = plan_of(o_, band_, info_);
    chain_.band = band_;
    chain_.dms = search::dm_trials(band_, plan);
    chain_.normalize.n_channels = info_.n_channels;
    chain_.normalize.masked = parse_channel_list(o_.mask_channels, info_.n_channels);
    chain_.normalize.flag_channels = o_.flag_channels;
    chain_.threshold = o_.threshold;
    chain_.max_width = width_of(o_, info_);
    chain_.block_samples = o_.block_samples;
    chain_.implementation = o_.implementation;
    summary_.description.plan = plan_text(plan, chain_.dms);
    for (const double samples : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
      const double width_s = samples * info_.sample_interval_s;
      summary_.loss_widths_s.push_back(width_s);
      summary_.loss.push_back(search::worst_response(band_, chain_.dms, width_s));
    }
    summary_.warnings = info_.warnings;
    if (!o_.output_directory.empty()) {
      std::error_code error;
      std::filesystem::create_directories(o_.output_directory, error);
      if (error) throw IoError::from_errno("create", o_.output_directory, error.value(), true);
      for (const char* suffix : {".cand", ".cands", ".singlepulse", ".csv", ".sqlite"})
        prepare_part(product(suffix), o_.overwrite);
    }
  }

  std::string name() const {
    return o_.name.empty() ? std::filesystem::path(o_.file).stem().string() : o_.name;
  }
  std::string product(const std::string& suffix) const {
    return (std::filesystem::path(o_.output_directory) / (name() + suffix)).string();
  }

  void describe(const SearchChain& chain) {
    auto& d = summary_.description;
    d.file = std::filesystem::path(o_.file).filename().string();
    d.telescope = info_.telescope;
    d.source_name = info_.source_name;
    d.position = info_.position;
    d.k_dm = band_.k_dm;
    d.reference_hz = band_.center_hz.back();
    d.low_hz = band_.center_hz.front() - 0.5 * band_.channel_width_hz;
    d.high_hz = band_.center_hz.back() + 0.5 * band_.channel_width_hz;
    d.sample_interval_s = info_.sample_interval_s;
    d.start_mjd_utc = info_.start_mjd_utc;
    d.start_tai_ns = info_.start_tai_ns;
    d.n_samples = info_.n_samples;
    d.n_channels = info_.n_channels;
    d.n_trials = static_cast<std::int64_t>(chain_.dms.size());
    d.threshold = o_.threshold;
    d.version = std::string(version());
    d.command_line = o_.command_line;
    d.implementation = chain.implementation();
  }

  void take(std::vector<SearchEvent>& events) {
    for (const auto& e : events) {
      SearchCandidate c = candidate(e);
      c.number = static_cast<std::int64_t>(summary_.events.size()) + 1;
      if (c.flags.empty()) {
        ++summary_.n_candidates;
        write_event(e, c);
      }
      summary_.events.push_back(std::move(c));
    }
    events.clear();
  }

  SearchCandidate candidate(const SearchEvent& e) const {
    SearchCandidate c;
    const auto& best = e.cluster.best;
    c.tick = e.pulse.tick;
    c.time_s = e.pulse.tick * info_.sample_interval_s;
    c.mjd_utc = info_.start_mjd_utc + c.time_s / 86400;
    c.tai_ns = info_.start_tai_ns != 0 ? info_.start_tai_ns + std::llround(c.time_s * 1e9) : 0;
    c.dm_pc_cm3 = e.pulse.dm_pc_cm3;
    c.dm_error = e.pulse.dm_error;
    c.width_s = e.pulse.fwhm_samples * info_.sample_interval_s;
    c.width_error_s = e.pulse.fwhm_error * info_.sample_interval_s;
    c.snr = e.pulse.snr;
    c.snr_boxcar = static_cast<double>(best.snr);
    c.boxcar_samples = best.width;
    c.dm_trial = best.trial;
    c.trial_dm_pc_cm3 = chain_.dms[static_cast<std::size_t>(best.trial)];
    c.members = e.cluster.n_tokens;
    c.begin_sample = e.cluster.begin;
    c.end_sample = e.cluster.end;
    c.masked_fraction = e.masked_fraction;
    // A burst without dispersion, or too wide to tell: local interference until shown otherwise.
    const double surely = c.dm_pc_cm3 - 3 * c.dm_error;
    if (surely <= 0 || c.dm_pc_cm3 < o_.dm_candidate_min) c.flags = "low_dm";
    return c;
  }

  void write_event(const SearchEvent& e, SearchCandidate& c) {
    if (o_.output_directory.empty()) return;
    const std::string stem = fmt::format("_{:05d}", c.number);
    if (o_.pictures && !e.codes.empty() && e.noise > 0 &&
        summary_.n_candidates <= o_.max_pictures) {
      const std::string path = product(stem + ".png");
      c.picture = std::filesystem::path(path).filename().string();
      write_candidate_png(path, summary_.description, c, candidate_picture(band_, e), o_.overwrite);
      summary_.products.push_back(path);
    }
    if (o_.voevents && summary_.n_candidates <= o_.max_pictures) {
      const std::string path = product(stem + ".xml");
      publish_bytes(path, voevent_xml(summary_.description, c, "test"),
                    o_.overwrite);  // offline: never an alert
      summary_.products.push_back(path);
    }
  }

  void finish(const SearchChain& chain) {
    summary_.n_tokens = chain.n_tokens();
    summary_.normalize = chain.normalize_report();
    summary_.flagged_channels = chain.n_flagged_channels();
    summary_.normalize_s = chain.normalize_s();
    summary_.dedisperse_s = chain.dedisperse_s();
    summary_.detect_s = chain.detect_s();
    if (o_.output_directory.empty()) return;
    const auto& d = summary_.description;
    const auto write = [&](const char* suffix, const std::string& text) {
      publish_bytes(product(suffix), text, o_.overwrite);
      summary_.products.push_back(product(suffix));
    };
    write(".cand", heimdall_text(d, summary_.events));
    write(".cands", transientx_text(d, summary_.events));
    write(".singlepulse", singlepulse_text(d, summary_.events));
    write(".csv", candidates_csv(d, summary_.events));
    write_search_database(product(".sqlite"), d, summary_.events, o_.overwrite);
    summary_.products.push_back(product(".sqlite"));
  }

  const SearchOptions& o_;
  std::unique_ptr<FilterbankReader> reader_;
  const FilterbankInfo& info_;
  search::Band band_;
  Queue queue_;
  SearchChainConfig chain_;
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

SearchSummary search_file(const SearchOptions& options) { return Search(options).run(); }

}  // namespace ryle::stage
