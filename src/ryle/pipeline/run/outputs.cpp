// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/outputs.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/beam/beam_files.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/visibility/product_set.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

/// A path and what it is for, as an observer knows it.
using Use = std::pair<std::string, std::string>;

std::vector<Use> outputs_of(const ObservationConfig& config,
                            const std::vector<std::string>& beams) {
  std::vector<Use> uses;
  const fs::path directory(config.output.directory);
  const std::string& name = config.output.name;
  const auto add = [&](const std::string& path, const std::string& what) {
    if (!path.empty()) uses.emplace_back(path, what);
  };
  const auto add_here = [&](const std::string& path, const std::string& what) {
    if (!path.empty()) add((directory / path).string(), what);
  };
  if (makes_visibilities(config)) {
    const char* what = config.output.files.empty() ? "visibilities (output.ms, uvfits, uvh5)"
                                                   : "visibilities (output.files)";
    for (const auto& path : visibility_names(config, "")) add(path, what);
  }
  if (wants_images(config)) {
    const auto& image = config.image;
    add(image.output, "image.output");
    add(image.hdf5, "image.hdf5");
    add(image.movie, "image.movie");
    add(image.picture, "image.picture");
    if (!image.light_curves.empty())
      add(image.light_curves, "image.light_curves");
    else if (!image.watch.empty())
      add_here(name + "_light_curves.sqlite", "light curves (image.watch)");
  }
  if (wants_beams(config)) {
    if (config.beams.filterbank) add(beam_notes_file(config), "notes of beams (beams.filterbank)");
    for (const auto& beam : beams)
      if (config.beams.filterbank) add(beam_file(config, beam), "filterbank of beam " + beam);
    if (wants_search(config.search))
      for (const char* suffix : {".cand", ".cands", ".singlepulse", ".csv", ".sqlite"})
        add_here(name + suffix, "candidates of the search");
  }
  add_here(config.voltages.socket, "voltages.socket");
  add(config.runtime.metrics_file, "runtime.metrics_file");
  add_here(config.runtime.command_socket, "runtime.command_socket");
  return uses;
}

std::vector<Use> inputs_of(const ObservationConfig& config) {
  const bool reads = config.source.kind == "file" || config.source.kind == "pcap";
  std::vector<Use> uses;
  const auto add = [&](const std::string& path, const char* what) {
    if (!path.empty()) uses.emplace_back(path, what);
  };
  if (reads) add(config.source.file, "source.file");
  for (const auto& file : config.source.files) add(file, "source.files");
  for (const auto& [path, what] :
       {std::pair{&config.telescope.layout, "telescope.layout"},
        std::pair{&config.telescope.station, "telescope.station"},
        std::pair{&config.calibration.gains, "calibration.gains"},
        std::pair{&config.beams.file, "beams.file"}, std::pair{&config.search.fold, "search.fold"}})
    if (!path->empty()) add(resolve_path(config, *path), what);
  return uses;
}

std::string same_for_same(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path), error);
  return error ? path : whole.string();
}

}  // namespace

void require_distinct_outputs(const ObservationConfig& config,
                              const std::vector<std::string>& beams) {
  std::map<std::string, std::string> seen;
  for (const auto& [path, what] : inputs_of(config)) seen.emplace(same_for_same(path), what);
  for (const auto& [path, what] : outputs_of(config, beams)) {
    const auto [at, is_new] = seen.emplace(same_for_same(path), what);
    if (is_new) continue;
    throw ConfigError(path + " is asked for twice: as " + at->second + " and as " + what +
                      "; give one of them another name");
  }
}

}  // namespace ryle::pipeline
