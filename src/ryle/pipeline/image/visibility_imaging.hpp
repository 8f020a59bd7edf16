// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <functional>
#include <span>
#include <string>

#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/observation.hpp"

namespace ryle::pipeline {

/// All-sky images of visibilities by the all-sky imager, one per dump (stacked to
/// image.cadence_s in the frame of the stars): any path of visibilities, "auto" chooses between
/// vis-grid and vis-dft. The phase centre of the dumps is undone, so images hold still over the
/// ground as those of voltages do.
/// `go_on` is called after every dump with the share that is done; false ends the images there, and
/// what is open is published with its true weight.
/// @eq V_raw = V exp(+2 pi i nu (r_i - r_j).s_0 / c)   (conventions.md 5)
RunSummary image_visibilities(const ObservationConfig& config, const Observation& observation,
                              std::span<const VisibilityDump> dumps,
                              const std::function<bool(double done)>& go_on = {});

}  // namespace ryle::pipeline
