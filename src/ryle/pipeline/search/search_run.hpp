// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/io/beam/filterbank_file.hpp"

/// Offline search of a filterbank: file -> codes -> dedispersion -> boxcars -> clusters ->
/// candidates -> products.
namespace ryle::pipeline {

struct SearchOptions {
  std::string file;
  std::vector<std::string> more_files;  ///< see open_search_files()
  FilterbankOptions input;
  std::string output_directory;  ///< "" = nothing is written
  std::string name;              ///< of the products; "" = name of the file
  bool overwrite = false;
  bool pictures = true;
  bool voevents = true;
  std::int64_t max_pictures = 100;

  search::DmPlanConfig plan;  ///< dm_max 0 = 2000, or what sweeps half of the file
  std::string plan_file;      ///< plan.kind "file": its path
  std::string k_dm = "physical";
  double threshold = 7;
  double max_width_s = 0;         ///< 0 = 0.1 s
  double baseline_s = 0;          ///< see search::drift_window()
  double dm_candidate_min = 0;    ///< events below are kept with the flag low_dm
  std::int64_t max_beams = 4;     ///< see BeamGroupConfig
  double adjacent_rad = 0;        ///< beams closer touch; 0 = 1.5 times the smallest distance
  double position_error_rad = 0;  ///< of VOEvents; 0 = that of SearchDescription
  std::string mask_channels;      ///< "0-3,17": numbers in ascending frequency
  std::string mask_times;         ///< "12.5-13.1,40-41": seconds from the start
  std::string rfifind_mask;       ///< path of a PRESTO .mask
  std::string kill_file;          ///< path, see parse_kill_file()
  bool flag_channels = true;
  double spectra_threshold = 7;       ///< sigma of bursts without dispersion; 0 = they stay
  double kurtosis_degrees = 0;        ///< d of the power; 0 = no spectral kurtosis
  std::string zero_dm = "off";        ///< off, mean or weighted
  std::int64_t block_samples = 8192;  ///< of the processing; part of the plan, results depend on it
  std::string implementation = "auto";
  double smear_samples = 0;  ///< see search::DedisperseConfig
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

/// "0-3,17" to [channel] 1 = masked. Throws ConfigError.
std::vector<std::uint8_t> parse_channel_list(const std::string& text, std::int64_t n_channels);

}  // namespace ryle::pipeline
