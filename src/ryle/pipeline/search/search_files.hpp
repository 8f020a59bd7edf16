// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/beam/filterbank_file.hpp"

namespace ryle::pipeline {

/// Files that are searched together.
struct SearchRecording {
  std::vector<std::unique_ptr<FilterbankReader>> beams;  ///< same channels, interval, first sample
  std::vector<std::string> files;                        ///< in order of time, then of beams
};

/// Files of the same start are the beams of one recording. Recordings that follow each other in
/// time, with as many beams in the same directions, are joined to one, so that a pulse across the
/// border is found once. What belongs to no other is a recording of its own. `notes` says which
/// files became what, where they are not one recording of one file a beam. In order of time.
/// Throws ConfigError for a file that is given twice.
std::vector<SearchRecording> open_search_files(const std::vector<std::string>& files,
                                               const FilterbankOptions& options,
                                               std::vector<std::string>& notes);

/// Names without directories: "a.fil", "a.fil+b.fil", "a.fil+...+z.fil".
std::string name_of_files(const std::vector<std::string>& files);

}  // namespace ryle::pipeline
