// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ryle/ingest/recording.hpp"
#include "ryle/pipeline/base/command_result.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/dump_writer.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/telescope/observation.hpp"

/// What live runs and file runs share.
namespace ryle::pipeline {

/// Finishing of channelized samples: quantiser, window and, with fringe_stopping = "x", the
/// rotation.
DumpBuilder::Setup sample_builder(const ObservationConfig& config, const FxChain::Setup& chain,
                                  const DelayModel& model);

/// What every builder needs of the array: antenna order, bad inputs, flux scale.
void complete_builder(DumpBuilder::Setup& builder, const ObservationConfig& config,
                      const ArrayLayout& array, const FrequencyAxis& frequency);

/// Drains and publishes; notes what ran and what was written in the summary and in the products.
void finish_writer(DumpWriter& writer, Queue& queue,
                   const std::map<std::string, std::string>& notes, RunSummary& summary);

/// What operators ask of visibilities while they are written: new files from the first integration
/// on that begins at `from_tai_ns`, or later, with a change. `writer` is null before the first
/// data.
CommandResult change_visibilities(DumpWriter* writer, const ObservationConfig& config,
                                  std::int64_t from_tai_ns, DumpWriter::Change change);
/// The same for "ms", "uvfits" and "uvh5"; others are rejected.
CommandResult switch_visibilities(DumpWriter* writer, const ObservationConfig& config,
                                  std::int64_t from_tai_ns, const std::string& product, bool on);

/// What a delay at the band center leaves to do for spectra of an external F-engine: the
/// calibration and the dispersion of the cables. [input][channel]
/// @eq g_p(nu) = f_p exp(+2 pi i nu [cable_p(nu) - cable_p(nu_center)])
std::vector<cf32> spectra_gains(const ObservationConfig& config, const ArrayLayout& array,
                                const FrequencyAxis& frequency);

/// Writes what is applied to the signal at the start of the data into the product header. `filter`
/// and `gains` may be empty (spectra of an external F-engine).
struct AppliedMetadata {
  std::int64_t start_tai_ns = 0;
  std::span<const double> filter;
  std::vector<cf64> gains;  ///< [input][channel]
  bool van_vleck = false;
};
void fill_applied(Observation& observation, const ObservationConfig& config,
                  const AppliedMetadata& metadata);

/// The recording of source.file, or of source.files together. Throws as open_recordings() does.
std::unique_ptr<Recording> open_source(const ObservationConfig& config);
/// What messages call it: its file, or the first and how many more.
std::string source_name(const ObservationConfig& config);

void note_peak_memory(RunSummary& summary);

/// Writes into summary.not_made which products of the observation a run that ended without an error
/// did not make, and why.
void note_what_is_missing(const ObservationConfig& config, RunSummary& summary);

}  // namespace ryle::pipeline
