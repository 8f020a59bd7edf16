// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_products.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/search/search_picture.hpp"

namespace ryle::pipeline {
namespace {

constexpr const char* kTexts[] = {".cand", ".cands", ".singlepulse", ".csv"};
// A run of months: later events are in the database only.
constexpr std::size_t kMaxInTexts = 200'000;
constexpr double kRetry_s = 1;  // to the next attempt at a database that took nothing

}  // namespace

std::string plan_text(const SearchSettings& settings, const std::vector<double>& dms) {
  std::string text = fmt::format("{}, {} trials from {:.6g} to {:.6g} pc/cm3", settings.plan,
                                 dms.size(), dms.front(), dms.back());
  if (settings.plan == "tolerance") text += fmt::format(", tolerance {}", settings.tolerance);
  if (settings.plan == "linear") text += fmt::format(", step {}", settings.dm_step);
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
      "{} hits were left out",
      counts.n_blocks_raised, counts.highest_threshold, counts.n_hits_dropped,
      counts.n_hits_dropped + counts.n_hits);
}

void require_search_outputs(const std::string& directory, const std::string& name, bool overwrite) {
  std::vector<std::string> names;
  for (const char* suffix : {".cand", ".cands", ".singlepulse", ".csv", ".sqlite"})
    names.push_back((std::filesystem::path(directory) / (name + suffix)).string());
  if (!directory.empty()) require_creatable_in(directory, names, overwrite);
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
  begun_ = true;
  if (!live()) return;
  if (!options_.overwrite && std::filesystem::exists(path_of(".sqlite")))
    throw IoError::from_errno("create", path_of(".sqlite"), EEXIST, true);
  if (options_.overwrite) {
    std::error_code ignored;
    std::filesystem::remove(path_of("_unwritten.jsonl"), ignored);
  }
  open_database();
}

void SearchProducts::note_rejection(const std::string& reason) {
  if (reason.empty() || std::exchange(rejected_, true)) return;
  warn_once("the database took no rows for a while, they waited in memory: " + reason);
}

void SearchProducts::open_database() {
  try {
    database_ = std::make_unique<SearchDatabase>(path_of(".sqlite"), description_,
                                                 options_.overwrite, options_.database_patience_s);
  } catch (const Error& e) {
    return note_rejection(e.what());
  }
  if (!events_.empty()) database_->append(events_);
  if (!early_.empty()) database_->append(early_);
  early_ = {};
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
  c.time_error_s = e.pulse.tick_error * interval_s;
  c.scattering_s = e.pulse.scattering_samples * interval_s;
  c.scattering_error_s = e.pulse.scattering_error * interval_s;
  c.smearing_s = band_.smearing_samples(0, std::max(0.0, c.dm_pc_cm3)) * interval_s;
  c.snr = e.pulse.snr;
  c.snr_boxcar = static_cast<double>(best.snr);
  c.boxcar_samples = best.width;
  c.dm_trial = best.trial;
  c.trial_dm_pc_cm3 = dms_[best.trial];
  c.members = e.cluster.n_hits;
  c.begin_sample = origin_samples + e.cluster.begin;
  c.end_sample = origin_samples + e.cluster.end;
  c.beam = b.beam;
  c.n_beams = static_cast<std::int64_t>(b.seen.size());
  if (b.has_position) c.position = b.position;
  c.masked_fraction = e.masked_fraction;
  c.beams = b.seen;
  const CandidateFlags flags = candidate_flags(b, band_.sweep_samples_per_dm(), interval_s,
                                               c.trial_dm_pc_cm3, options_.dm_candidate_min);
  c.flags = flags.names;
  c.reasons = flags.reasons;
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
      live() ? write_event_live(e.event, c) : write_event(e.event, c);
    } else if (!live() && !options_.output_directory.empty() &&
               ++n_flagged_ <= options_.max_pictures) {
      // Whoever searches a file may want to see why. A live run has no time for what is flagged.
      write_picture(e.event, c, path_of(fmt::format("_{:05d}_flagged.png", c.number)));
    }
    events_.push_back(std::move(c));
  }
  events.clear();
  if (database_ == nullptr || events_.size() == first) return;
  database_->append(std::span(events_).subspan(first));
  note_rejection(database_->rejection());
}

void SearchProducts::write_event_live(const SearchEvent& e, SearchCandidate& c) {
  try {
    write_event(e, c);
  } catch (const Error& error) {
    if (!std::exchange(unwritten_pictures_, true))
      warn_once(fmt::format("candidate {} and perhaps others have no picture or VOEvent: {}",
                            c.number, error.what()));
  }
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
  std::exception_ptr no_picture;  // others wait for the VOEvent, not for the picture
  try {
    write_picture(e, c, path_of(stem + ".png"));
  } catch (const Error&) {
    no_picture = std::current_exception();
  }
  write_voevent(c, path_of(stem + ".xml"));
  if (no_picture) std::rethrow_exception(no_picture);
}

void SearchProducts::write_picture(const SearchEvent& e, SearchCandidate& c,
                                   const std::string& path) {
  if (!options_.pictures || e.codes.empty() || !(e.noise > 0)) return;
  write_candidate_picture(path, description_, c, candidate_picture(band_, e), options_.overwrite);
  c.picture = std::filesystem::path(path).filename().string();
  products_.push_back(path);
}

void SearchProducts::write_voevent(const SearchCandidate& c, const std::string& path) {
  if (!options_.voevents) return;
  if (c.tai_ns == 0) {
    warn_once("no VOEvents written: the data do not say when they were recorded");
    return;
  }
  publish_bytes(path, voevent_xml(description_, c, options_.observation ? "observation" : "test"),
                options_.overwrite);
  products_.push_back(path);
}

void SearchProducts::write_texts() {
  const auto publish = [&](std::size_t k, const std::string& text) {
    publish_bytes(path_of(kTexts[k]), text, options_.overwrite || text_is_ours_[k]);
    text_is_ours_[k] = true;
  };
  publish(0, heimdall_text(description_, events_));
  publish(1, transientx_text(description_, events_));
  publish(2, singlepulse_text(description_, events_));
  publish(3, candidates_csv(description_, events_));
  n_written_ = events_.size();
}

void SearchProducts::add(const VoltageRecords& records) {
  if (!live() || records.empty()) return;
  if (database_ == nullptr) {
    n_left_out_ += early_.append(records);
    return;
  }
  database_->append(records);
  note_rejection(database_->rejection());
}

void SearchProducts::tick(double now_s) {
  if (!live()) return;
  if (now_s - last_retry_s_ >= kRetry_s) {
    last_retry_s_ = now_s;
    if (database_ != nullptr) database_->retry();
    if (database_ == nullptr && begun_) open_database();
  }
  if (n_written_ == events_.size() || events_.size() > kMaxInTexts ||
      now_s - last_rewrite_s_ < options_.rewrite_s)
    return;
  last_rewrite_s_ = now_s;
  try {
    write_texts();
  } catch (const Error& e) {
    if (!std::exchange(unwritten_texts_, true))
      warn_once(std::string("tables of candidates could not be written for a while: ") + e.what());
  }
}

void SearchProducts::finish(const SearchDescription& description) {
  description_ = description;
  if (options_.output_directory.empty()) return;
  if (live()) return finish_live();
  write_texts();
  write_search_database(path_of(".sqlite"), description_, events_, options_.overwrite);
  for (const char* suffix : kTexts) products_.push_back(path_of(suffix));
  products_.push_back(path_of(".sqlite"));
}

void SearchProducts::finish_live() {
  try {
    write_texts();
    for (const char* suffix : kTexts) products_.push_back(path_of(suffix));
  } catch (const Error& e) {
    errors_.emplace_back(e.what());
  }
  std::string unwritten;
  if (database_ == nullptr) open_database();
  if (database_ == nullptr) {
    errors_.push_back(keep_unwritten(path_of(".sqlite"), {events_, early_, &description_, true},
                                     "it could not be made", unwritten));
  } else {
    products_.push_back(path_of(".sqlite"));
    database_->finish(description_);
    if (database_->n_waiting() > 0 || !database_->is_described()) {
      errors_.push_back(keep_unwritten(path_of(".sqlite"),
                                       {database_->waiting_events(), database_->waiting_records(),
                                        &description_, !database_->is_described()},
                                       database_->rejection(), unwritten));
    } else if (!database_->rejection().empty()) {
      warn_once("the log of the database stays beside it (" + path_of(".sqlite-wal") +
                "), keep both: " + database_->rejection());
    }
    n_left_out_ += database_->n_left_out();
    database_.reset();
  }
  if (n_left_out_ > 0)
    errors_.push_back(fmt::format("{} triggers are in no table: {} waited for the database already",
                                  n_left_out_, VoltageRecords::kMaxWaiting));
  if (!unwritten.empty()) products_.push_back(unwritten);
}

}  // namespace ryle::pipeline
