// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/run_common.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <cmath>
#include <numbers>

#include "ryle/core/units.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {

void complete_builder(DumpBuilder::Setup& builder, const ObservationConfig& config,
                      const ArrayLayout& array, const FrequencyAxis& frequency) {
  builder.n_inputs = array.n_inputs();
  builder.n_pols = array.n_pols();
  builder.finish.map = input_map(array);
  builder.finish.frequency = frequency;
  builder.bad = bad_inputs(array);
  builder.flux_scale = config.calibration.jy_per_count2 > 0 ? config.calibration.jy_per_count2 : 1;
  builder.min_fraction = config.correlate.min_fraction;
}

void finish_writer(DumpWriter& writer, Queue& queue,
                   const std::map<std::string, std::string>& notes, RunSummary& summary) {
  writer.finish(queue, summary.implementations, notes);
  summary.integrations = writer.dumps_written();
  summary.dropped_dumps = writer.dumps_dropped() + writer.products().dumps_lost();
  const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(summary.products, writer.products().published());
  append(summary.errors, writer.products().errors());
  append(summary.warnings, writer.products().warnings());
  summary.saturated_fraction = writer.saturated_fraction();
  if (const std::string warning = writer.saturation_warning(); !warning.empty())
    summary.warnings.push_back(warning);
  if (!writer.products().imager().empty())
    summary.implementations.push_back(writer.products().imager());
}

CommandResult change_visibilities(DumpWriter* writer, const ObservationConfig& config,
                                  std::int64_t from_tai_ns, DumpWriter::Change change) {
  if (writer == nullptr)
    return CommandResult::refused(
        "no data have come yet: there are no files to be ended; ask again");
  if (!config.output.files.empty())
    return CommandResult::refused(
        "the files have names of their own (output.files), so that there is none for the next; "
        "output.directory and output.name work");
  writer->change(from_tai_ns, std::move(change));
  return {true, "new files with the first integration that begins at this instant or later",
          from_tai_ns};
}

CommandResult switch_visibilities(DumpWriter* writer, const ObservationConfig& config,
                                  std::int64_t from_tai_ns, const std::string& product, bool on) {
  if (product != "ms" && product != "uvfits" && product != "uvh5")
    return CommandResult::refused("\"" + product +
                                  "\" cannot be begun or ended while the run goes on; ms, uvfits "
                                  "and uvh5 can, and \"stop\" alone ends the run");
  require_visibility_suffix("x." + product);
  DumpWriter::Change change;
  change.format = product;
  change.on = on;
  return change_visibilities(writer, config, from_tai_ns, std::move(change));
}

DumpBuilder::Setup sample_builder(const ObservationConfig& config, const FxChain::Setup& chain,
                                  const DelayModel& model) {
  DumpBuilder::Setup builder;
  builder.step_samples = channelize::step_length(chain.channelize);
  builder.window_samples = channelize::filter_length(chain.channelize);
  const SampleFormat output = chain.channelize.output;
  if (output == SampleFormat::ci8 || output == SampleFormat::ci4) {
    builder.finish.quantizer = {output == SampleFormat::ci8 ? 255 : 15, chain.channelize.dither};
    builder.finish.van_vleck = config.correlate.van_vleck == "auto";
  }
  if (config.correlate.van_vleck == "auto") builder.samples = chain.channelize.layout;
  if (config.correlate.fringe_stopping == "x") builder.rotate = model;
  return builder;
}

std::vector<cf32> spectra_gains(const ObservationConfig& config, const ArrayLayout& array,
                                const FrequencyAxis& frequency) {
  std::vector<cf32> gains = calibration_gains(config, array.n_inputs(), frequency.n_channels);
  gains.resize(array.n_inputs() * frequency.n_channels, cf32{1, 0});
  const bool undo_cables = config.correlate.fringe_stopping != "none";
  for (std::int64_t p = 0; undo_cables && p < array.n_inputs(); ++p) {
    const auto& input = array.inputs[p];
    const double center_s = cable_delay_s(input, frequency.band_center_hz());
    for (std::int64_t c = 0; c < frequency.n_channels; ++c) {
      const double nu = frequency.center_hz(c);
      const double turns = nu * (cable_delay_s(input, nu) - center_s);
      gains[p * frequency.n_channels + c] *=
          cf32(std::polar(1.0, 2 * std::numbers::pi * (turns - std::floor(turns))));
    }
  }
  return gains;
}

void fill_applied(Observation& observation, const ObservationConfig& config,
                  const AppliedMetadata& metadata) {
  auto& applied = observation.applied;
  applied.delay_s.assign(observation.array.n_inputs(), 0);
  if (config.correlate.fringe_stopping != "none") {
    const DelayModel model(observation.array, observation.earth_orientation,
                           observation.phase_center, observation.frequency.band_center_hz());
    applied.delay_s = model.delays_s(metadata.start_tai_ns);
  }
  applied.filter_response.assign(metadata.filter.begin(), metadata.filter.end());
  applied.gains = metadata.gains;
  applied.van_vleck = metadata.van_vleck;
  if (!metadata.filter.empty()) {
    applied.n_taps = config.channelize.taps;
    applied.window = config.channelize.taps == 1 ? "rectangular" : config.channelize.window;
  }
  observation.provenance.notes["fringe_stopping"] = config.correlate.fringe_stopping;
}

std::unique_ptr<Recording> open_source(const ObservationConfig& config) {
  const SourceConfig& source = config.source;
  RecordingOptions options;
  options.sample_rate_hz = source.sample_rate_hz.value();
  options.reference_hz = source.center_mhz * 1e6;
  if (source.start_utc != "now") options.start_utc = source.start_utc;
  options.files_as = source.files_as;
  options.channel_map = source.channel_map;
  if (source.files.empty()) return open_recording(source.file, source.format, options);
  return open_recordings(source.files, source.format, options);
}

std::string source_name(const ObservationConfig& config) {
  const auto& files = config.source.files;
  if (files.empty()) return config.source.file;
  return files.size() == 1 ? files[0] : fmt::format("{} and {} more", files[0], files.size() - 1);
}

void note_what_is_missing(const ObservationConfig& config, RunSummary& summary) {
  if (!summary.errors.empty()) return;  // they say it
  const bool live = config.source.kind != "file";
  const auto miss = [&](const std::string& what, const std::string& needs) {
    std::string why;
    if (live && summary.packets_received == 0)
      why = fmt::format("no packets arrived on {}", fmt::join(config.source.listen, ", "));
    else if (live && summary.packets_used == 0)
      why =
          fmt::format("all of the {} packets that arrived were rejected", summary.packets_received);
    else
      why = fmt::format("{:.6g} s of data are too short for {}", summary.data_s, needs);
    summary.not_made.push_back(what + ": " + why);
  };
  const bool beams = !config.beams.file.empty();
  if (beams && config.beams.filterbank && (!summary.beams || summary.beams->samples == 0))
    miss("filterbanks of beams", "one sample of power");
  const bool images = wants_images(config);
  if (images && (!summary.image || summary.image->images == 0))
    miss("all-sky images",
         fmt::format("an image of {:.6g} s (image.cadence_s)", config.image.cadence_s));
  if ((wants_visibilities(config) || (config.output.pictures && !images && !beams)) &&
      summary.integrations == 0)
    miss("visibilities",
         fmt::format("an integration: filter, delays across the array and at least one spectrum of "
                     "the {:.6g} s (correlate.integration_s)",
                     config.correlate.integration_s));
}

void note_peak_memory(RunSummary& summary) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  summary.peak_memory_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace ryle::pipeline
