// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/search/search_beams.hpp"
#include "ryle/pipeline/search/search_stream.hpp"

namespace ryle::pipeline {

/// The plan of dispersion measures in words.
std::string plan_text(const SearchSettings& settings, const std::vector<double>& dms);
/// What the products say of band, plan and program.
void describe_search(const SearchChainConfig& chain, const BeamSearch& beams,
                     SearchDescription& description);
/// What a summary says of a threshold that was raised.
std::string storm_warning(const SearchCounts& counts);

struct SearchProductOptions {
  std::string output_directory;  ///< "" = nothing is written
  std::string name;              ///< of the products
  bool overwrite = false;
  bool pictures = true;
  bool voevents = true;
  std::int64_t max_pictures = SearchSettings{}.max_pictures;
  double dm_candidate_min = 0;  ///< events below are kept with the flag low_dm
  bool observation = false;     ///< VOEvents of role "observation": someone may point a telescope
  /// Live: the database grows under its name, texts are replaced whole at most so often. 0 =
  /// everything is written at the end.
  double rewrite_s = 0;
  /// Live: how long the end waits for others who write to the database.
  double database_patience_s = 5;
};

/// Before the input is opened: throws IoError for a table or database of
/// this name that is there (and not `overwrite`) or cannot be made. "" = nothing is written.
void require_search_outputs(const std::string& directory, const std::string& name, bool overwrite);

/// Makes candidates of events and writes every product of a search: a picture and a VOEvent each at
/// once, tables at the end or (live) on the way.
class SearchProducts {
 public:
  SearchProducts(const SearchProductOptions& options, const search::Band& band,
                 const std::vector<double>& dms);
  ~SearchProducts();
  SearchProducts(const SearchProducts&) = delete;
  SearchProducts& operator=(const SearchProducts&) = delete;

  /// Before the first event: what all products say.
  void begin(const SearchDescription& description);
  /// Takes events of data whose sample 0 is `origin_samples` after the start of the search, at the
  /// instant `origin_tai_ns` (0 = not known).
  void add(std::vector<BeamEvent>& events, std::int64_t origin_samples, std::int64_t origin_tai_ns);
  /// Live: triggers and dumps of voltages, for the database.
  void add(const VoltageRecords& records);
  /// Live: writes texts again when it is time, and what the database did not take. `now_s` of a
  /// steady clock.
  void tick(double now_s);
  /// Live: what cannot be written on the way is a warning and tried again, what cannot be written
  /// here an error of errors(), and rows go to NAME_unwritten.jsonl. Else throws.
  void finish(const SearchDescription& description);

  const std::vector<SearchCandidate>& events() const { return events_; }
  std::int64_t n_candidates() const { return n_candidates_; }
  const std::vector<std::string>& products() const { return products_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::string path_of(const std::string& suffix) const;
  SearchCandidate candidate(const BeamEvent& e, std::int64_t origin_samples,
                            std::int64_t origin_tai_ns) const;
  void write_event(const SearchEvent& e, SearchCandidate& c);
  void write_picture(const SearchEvent& e, SearchCandidate& c, const std::string& path);
  void write_voevent(const SearchCandidate& c, const std::string& path);
  void write_texts();
  void warn_once(const std::string& text);
  bool live() const { return options_.rewrite_s > 0 && !options_.output_directory.empty(); }
  void write_event_live(const SearchEvent& e, SearchCandidate& c);
  void open_database();
  void note_rejection(const std::string& reason);
  void finish_live();

  SearchProductOptions options_;
  search::Band band_;
  std::vector<double> dms_;
  SearchDescription description_;
  std::unique_ptr<SearchDatabase> database_;  // live only, once it can be made
  VoltageRecords early_;                      // what came before it
  std::int64_t n_left_out_ = 0;               // triggers that found no room in either
  double last_retry_s_ = -1e300;
  bool begun_ = false, rejected_ = false, unwritten_pictures_ = false, unwritten_texts_ = false;
  std::vector<SearchCandidate> events_;
  std::int64_t n_candidates_ = 0, n_flagged_ = 0;
  std::size_t n_written_ = 0;  // events in the texts on disk
  double last_rewrite_s_ = -1e300;
  std::array<bool, 4> text_is_ours_{};  // each of kTexts, which a rewrite may replace
  std::vector<std::string> products_, warnings_, errors_;
};

}  // namespace ryle::pipeline
