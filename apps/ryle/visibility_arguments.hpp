// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/ryle/recording_arguments.hpp"
#include "ryle/io/visibility/covariance.hpp"

namespace ryle::app {

/// Options of the sub-commands that read visibilities: what files do not say of themselves.
struct VisibilityArguments {
  std::string imaginary;       ///< of a covariance pair
  std::string antennas;        ///< of a covariance pair
  CovarianceFiles covariance;  ///< what a covariance pair does not say of itself
  double frequency_mhz = 0;
  double channel_width_khz = 0;
  std::string conjugate = "auto";
  std::string column;             ///< of a Measurement Set
  std::vector<std::string> dead;  ///< antennas
};

void add_visibility_options(CLI::App& sub, VisibilityArguments& arguments);
/// Names of the options of covariance pairs alone.
std::vector<std::string> pair_options();

/// Whether the first file holds visibilities, by its ending and options, and not voltages.
bool is_visibilities(const RecordingArguments& recording, const VisibilityArguments& arguments);

/// Reads them, without the antennas of --dead; says in a line each what was not taken as it
/// stands. Throws FormatError for a file without an integration.
VisibilityFile read_visibilities(const std::string& path, const VisibilityArguments& arguments);

/// What was assumed of a covariance pair, and why: nothing is guessed in silence.
std::vector<std::string> assumptions(const VisibilityFile& file);

}  // namespace ryle::app
