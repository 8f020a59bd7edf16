// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/image/image_setup.hpp"

namespace ryle::pipeline {

/// What a run will need and how fast this machine does it. The margin is measured: the engines work
/// on random samples of the observation's own shape for a fraction of a second.
struct Plan {
  std::string title;
  std::vector<std::pair<std::string, std::string>>
      ports;  ///< "channelize: samples" -> "[time][input 64] ci5, 128 B ..."
  std::vector<std::pair<std::string, std::int64_t>> memory_bytes;
  std::int64_t total_memory_bytes = 0;
  /// Of the CUDA device with the most rows of beams; empty when none is to be used.
  std::vector<std::pair<std::string, std::int64_t>> device_memory_bytes;
  std::int64_t total_device_memory_bytes = 0;
  double input_gbps = 0;
  double channelize_gflops = 0;  ///< at the live rate
  double correlate_gops = 0;
  double beamform_gops = 0;
  double output_mb_per_hour = 0;
  /// Of the graph: x real time, measured here or predicted (images); 0 = not known.
  struct Node {
    std::string name;
    double margin = 0;
    std::string reads = "";  ///< node it reads; "" = the source
    std::vector<std::string> makes = {};
  };
  std::vector<Node> nodes;
  std::string source;           ///< what the nodes read: "chips live"
  double predicted_margin = 0;  ///< x real time of all nodes together, which take turns
  double search_margin = 0;     ///< x real time of the search alone; 0 = none, or not measured
  double decorrelation =
      0;  ///< worst amplitude loss of delays left to the correlator (fringe_stopping x, none)
  std::vector<std::string> implementations;
  std::vector<std::string> warnings;
  /// All-sky images: what every path would cost, and the choice.
  std::optional<SkyPlan> sky;
  double image_s = 0;  ///< data behind one image
  std::int64_t n_image_spectra = 0;
};

/// Throws like the run itself would: ConfigError for impossible sizes, OsLimitError when memory
/// does not suffice.
Plan make_plan(const ObservationConfig& config);
std::string to_text(const Plan& plan);
std::string to_json(const Plan& plan);
/// The graph as a drawing (SVG): source, nodes with their margins, what each makes.
std::string to_svg(const Plan& plan);

}  // namespace ryle::pipeline
