// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ryle/engine/search/normalize.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/pipeline/config/config.hpp"

/// Offline search of a filterbank: file -> codes -> dedispersion -> boxcars -> clusters ->
/// candidates -> products.
namespace ryle::pipeline {

struct SearchOptions : SearchSettings {
  std::string file;
  std::vector<std::string> more_files;  ///< see open_search_files()
  FilterbankOptions input;
  std::string output_directory;  ///< "" = nothing is written
  std::string name;              ///< of the products; "" = name of the file
  bool overwrite = false;
  bool pictures = true;
  std::vector<int> devices;  ///< see BeamSearchConfig; "cuda" alone = the first, where it can
  int n_workers = 0;

  std::string command_line;
  std::atomic<int>* stop = nullptr;
  std::function<void(double data_s, double total_s, std::int64_t candidates)> on_progress;
};

struct SearchSummary {
  SearchDescription description;
  std::vector<SearchCandidate> events;  ///< flagged ones included, numbered as they were found
  std::int64_t n_candidates = 0;        ///< without flags
  std::int64_t n_hits = 0;
  std::int64_t n_hits_dropped = 0;  ///< of storms: the threshold was raised
  std::int64_t n_beams = 1;
  search::NormalizeReport normalize;
  std::int64_t flagged_channels = 0;  ///< at the end
  double data_s = 0, elapsed_s = 0;
  double dedisperse_s = 0, detect_s = 0, normalize_s = 0, read_s = 0;
  std::vector<double> loss_widths_s, loss;  ///< worst response of the plan to pulses this wide
  std::int64_t memory_bytes = 0;
  std::vector<std::string> products, warnings;
  std::vector<std::string> notes;  ///< which files were searched together
  bool stopped = false;
};

/// All files, recording by recording (open_search_files()). Products of several recordings are
/// named after the first file of each. Throws FormatError, ConfigError, IoError, UnsupportedError.
std::vector<SearchSummary> search_files(const SearchOptions& options);
/// The same of files that are one recording; ConfigError where they are not.
SearchSummary search_file(const SearchOptions& options);

}  // namespace ryle::pipeline
