// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"

/// The main path: source -> channelize -> correlate -> products, live or from a file.
namespace ryle::pipeline {

/// Live: packets of the network or of the built-in simulator become what the observation asks for.
/// Ends when the source ends, after source.duration_s, or on a signal: open integrations are closed
/// with their true weight and published.
RunSummary run_live(const ObservationConfig& config, const RunOptions& options);

/// The products of a recording (source.file, source.files): of spectra in one reading, of time
/// samples the visibilities in one, images and beams in another. Bands of source.channel_map are
/// made one after the other where source.center_mhz chooses none.
RunSummary run_file(const ObservationConfig& config, const RunOptions& options);

/// Images of a recording alone, as [image] asks for. Ends at the end of the recording, after
/// source.duration_s, or on a signal: the open image is then published with its true weight.
RunSummary image_file(const ObservationConfig& config, const RunOptions& options);

/// By source.kind and source.format.
RunSummary run_observation(const ObservationConfig& config, const RunOptions& options);

}  // namespace ryle::pipeline
