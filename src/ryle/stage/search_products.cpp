// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/product/publish.hpp"
#include "ryle/stage/search_picture.hpp"

namespace ryle::stage {
namespace {

constexpr const char* kTexts[] = {".cand", ".cands", ".singlepulse", ".csv"};
// A run of months: later events are in the database only.
constexpr std::size_t kMostInTexts = 200'000;

}  // namespace

std::string plan_text(const search::DmPlanConfig& plan, const std::vector<double>& dms) {
  std::string text = fmt::format("{}, {} trials from {:.6g} to {:.6g} pc/cm3", plan.kind,
                                 dms.size(), dms.front(), dms.back());
  if (plan.kind == "tolerance") text += fmt::format(", tolerance {}", plan.tolerance);
  if (plan.kind == "linear") text += fmt::format(", step {}", plan.step);
  return text;
}

void describe_search(const SearchChainConfig& chain, const BeamSearch& beams,
                     SearchDescription& d) {
  const search::Band& band = chain.band;
  d.k_dm = band.k_dm;
  d.reference_hz = band.center_hz.back();
  d.low_hz = band.center_hz.front() - 0.5 * band.channel_width_hz;
  d.high_hz = band.center_hz.back() + 0.5 * band.channel_width_hz;
  d.sample_interval_s = band.sample_interval_s;
  d.n_channels = band.n_channels();
  d.n_trials = static_cast<std::int64_t>(chain.dms.size());
  d.threshold = chain.threshold;
  d.version = std::string(version());
  d.implementation = beams.implementation();
  const search::TrackError error = beams.track_error();
  if (error.max_samples > 0)
    d.plan +=
        fmt::format("; {}: channels within {:.0f} sample{} of the plan, rms {:.2f}",
                    d.implementation.find("subband") != std::string::npos ? "sub-bands" : "a tree",
                    error.max_samples, error.max_samples > 1 ? "s" : "", error.rms_samples);
}

std::string storm_warning(const SearchCounts& counts) {
  return fmt::format(
      "a storm of interference: the threshold was raised in {} blocks (up to S/N {:.1f}) and {} of "
      "{} tokens were left out",
      counts.n_blocks_raised, counts.highest_threshold, counts.n_tokens_dropped,
      counts.n_tokens_dropped + counts.n_tokens);
}

SearchProducts::SearchProducts(const SearchProductOptions& options, const search::Band& band,
                               const std::vector<double>& dms)
    : options_(options), band_(band), dms_(dms) {
  if (options_.output_directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.output_directory, error);
  if (error) throw IoError::from_errno("create", options_.output_directory, error.value(), true);
  for (const char* suffix : kTexts) prepare_part(path_of(suffix), options_.overwrite);
  if (!(options_.rewrite_s > 0)) prepare_part(path_of(".sqlite"), options_.overwrite);
}
SearchProducts::~SearchProducts() = default;

std::string SearchProducts::path_of(const std::string& suffix) const {
  return (std::filesystem::path(options_.output_directory) / (options_.name + suffix)).string();
}

void SearchProducts::warn_once(const std::string& text) {
  if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
    warnings_.push_back(text);
}

void SearchProducts::begin(const SearchDescription& description) {
  description_ = description;
  if (options_.output_directory.empty() || !(options_.rewrite_s > 0)) return;
  database_ =
      std::make_unique<SearchDatabase>(path_of(".sqlite"), description_, options_.overwrite);
}

SearchCandidate SearchProducts::candidate(const BeamEvent& b, std::int64_t origin_samples,
                                          std::int64_t origin_tai_ns) const {
  const SearchEvent& e = b.event;
  const double interval_s = band_.sample_interval_s;
  SearchCandidate c;
  const auto& best = e.cluster.best;
  c.tick = static_cast<double>(origin_samples) + e.pulse.tick;
  c.time_s = c.tick * interval_s;
  c.mjd_utc = description_.start_mjd_utc + c.time_s / 86400;
  if (origin_tai_ns != 0) c.tai_ns = origin_tai_ns + std::llround(e.pulse.tick * interval_s * 1e9);
  c.dm_pc_cm3 = e.pulse.dm_pc_cm3;
  c.dm_error = e.pulse.dm_error;
  c.width_s = e.pulse.fwhm_samples * interval_s;
  c.width_error_s = e.pulse.fwhm_error * interval_s;
  c.smearing_s = band_.smearing_samples(0, std::max(0.0, c.dm_pc_cm3)) * interval_s;
  c.snr = e.pulse.snr;
  c.snr_boxcar = static_cast<double>(best.snr);
  c.boxcar_samples = best.width;
  c.dm_trial = best.trial;
  c.trial_dm_pc_cm3 = dms_[static_cast<std::size_t>(best.trial)];
  c.members = e.cluster.n_tokens;
  c.begin_sample = origin_samples + e.cluster.begin;
  c.end_sample = origin_samples + e.cluster.end;
  c.beam = b.beam;
  c.n_beams = static_cast<std::int64_t>(b.seen.size());
  if (b.has_position) c.position = b.position;
  c.masked_fraction = e.masked_fraction;
  // A burst without dispersion, or too wide to tell: local interference until shown otherwise.
  const double surely = c.dm_pc_cm3 - 3 * c.dm_error;
  if (surely <= 0 || c.dm_pc_cm3 < options_.dm_candidate_min) c.flags = "low_dm";
  if (e.rfi_suspect) c.flags += c.flags.empty() ? "rfi_suspect" : " rfi_suspect";
  if (b.multibeam) c.flags += c.flags.empty() ? "rfi_multibeam" : " rfi_multibeam";
  return c;
}

void SearchProducts::add(std::vector<BeamEvent>& events, std::int64_t origin_samples,
                         std::int64_t origin_tai_ns) {
  const std::size_t first = events_.size();
  for (const auto& e : events) {
    SearchCandidate c = candidate(e, origin_samples, origin_tai_ns);
    c.number = static_cast<std::int64_t>(events_.size()) + 1;
    if (c.flags.empty()) {
      ++n_candidates_;
      write_event(e.event, c);
    }
    events_.push_back(std::move(c));
  }
  events.clear();
  if (database_ && events_.size() > first) database_->append(std::span(events_).subspan(first));
}

void SearchProducts::write_event(const SearchEvent& e, SearchCandidate& c) {
  if (options_.output_directory.empty()) return;
  if (n_candidates_ > options_.max_pictures) {
    if (options_.pictures || options_.voevents)
      warn_once(
          fmt::format("candidates after number {} have no picture and no VOEvent of their own",
                      options_.max_pictures));
    return;
  }
  const std::string stem = fmt::format("_{:05d}", c.number);
  if (options_.pictures && !e.codes.empty() && e.noise > 0) {
    const std::string path = path_of(stem + ".png");
    c.picture = std::filesystem::path(path).filename().string();
    write_candidate_png(path, description_, c, candidate_picture(band_, e), options_.overwrite);
    products_.push_back(path);
  }
  if (!options_.voevents) return;
  if (c.tai_ns == 0) {
    warn_once("no VOEvents written: the data do not say when they were recorded");
    return;
  }
  const std::string path = path_of(stem + ".xml");
  publish_bytes(path, voevent_xml(description_, c, options_.observation ? "observation" : "test"),
                options_.overwrite);
  products_.push_back(path);
}

void SearchProducts::write_texts(bool again) {
  const bool overwrite = options_.overwrite || again;
  publish_bytes(path_of(".cand"), heimdall_text(description_, events_), overwrite);
  publish_bytes(path_of(".cands"), transientx_text(description_, events_), overwrite);
  publish_bytes(path_of(".singlepulse"), singlepulse_text(description_, events_), overwrite);
  publish_bytes(path_of(".csv"), candidates_csv(description_, events_), overwrite);
  n_written_ = events_.size();
  texts_exist_ = true;
}

void SearchProducts::add(const VoltageRecords& records) {
  if (database_ && !records.empty()) database_->append(records);
}

void SearchProducts::tick(double now_s) {
  if (!database_ || n_written_ == events_.size() || events_.size() > kMostInTexts ||
      now_s - last_rewrite_s_ < options_.rewrite_s)
    return;
  last_rewrite_s_ = now_s;
  write_texts(texts_exist_);
}

void SearchProducts::finish(const SearchDescription& description) {
  description_ = description;
  if (options_.output_directory.empty()) return;
  write_texts(texts_exist_);
  if (database_) {
    database_->finish(description_);
    database_.reset();
  } else {
    write_search_database(path_of(".sqlite"), description_, events_, options_.overwrite);
  }
  for (const char* suffix : kTexts) products_.push_back(path_of(suffix));
  products_.push_back(path_of(".sqlite"));
}

}  // namespace ryle::stage
