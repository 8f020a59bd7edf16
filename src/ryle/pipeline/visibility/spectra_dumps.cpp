// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/spectra_dumps.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ryle/pipeline/base/level_correction.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {

SpectraChain::Setup spectra_chain_setup(const ObservationConfig& config, std::int64_t n_inputs,
                                        const SpectraMetadata& metadata) {
  SpectraChain::Setup setup;
  setup.n_inputs = n_inputs;
  setup.n_channels = metadata.frequency.n_channels;
  setup.format = metadata.format;
  setup.max_gulp = metadata.max_gulp;
  setup.spectra_per_dump = std::max<std::int64_t>(
      1, std::llround(config.correlate.integration_s * metadata.clock.rate_hz.value()));
  setup.implementation = config.correlate.implementation;
  return setup;
}

SpectraDumps::SpectraDumps(const ObservationConfig& config, const ArrayLayout& array,
                           SpectraMetadata metadata, const std::string& command_line)
    : config_(config),
      array_(array),
      metadata_(std::move(metadata)),
      command_line_(command_line),
      queue_(make_queue(config.runtime)) {
  if (config_.calibration.jy_per_count2 == 0)
    config_.calibration.jy_per_count2 = metadata_.jy_per_count2;
  // Rejects a wrong table or phase center before data flow.
  calibration_gains(config_, array_.n_inputs(), 1);
  const std::int64_t start_tai_ns = metadata_.clock.epoch_tai_ns;
  low_center_ = metadata_.live ? require_live_phase_center(config_, array_, start_tai_ns)
                               : require_phase_center(config_, array_, start_tai_ns,
                                                      metadata_.clock.seconds(metadata_.n_spectra));
  require_visibility_outputs(config_, array_.n_antennas(), array_.n_pols(),
                             metadata_.frequency.n_channels);
  chain_ = std::make_unique<SpectraChain>(
      queue_, spectra_chain_setup(config_, array_.n_inputs(), metadata_),
      [this](RawDump&& dump) { writer_->offer(std::move(dump), metadata_.scale); });
}

void SpectraDumps::begin(std::int64_t first, const SampleClock& clock) {
  const std::int64_t start = clock.tai_ns(first);
  Observation observation = make_observation(config_, array_, metadata_.frequency, clock.seconds(1),
                                             start, command_line_);
  observation.time_source = metadata_.time_source;
  observation.provenance.implementations = {chain_->implementation()};
  DumpBuilder::Setup builder;
  complete_builder(builder, config_, array_, metadata_.frequency);
  builder.gains = spectra_gains(config_, array_, metadata_.frequency);
  // Dumps follow the phase center: spectra are as the ground sees the sky.
  if (config_.correlate.fringe_stopping != "none") {
    builder.rotate = DelayModel(array_, observation.earth_orientation, observation.phase_center,
                                metadata_.frequency.band_center_hz());
  }
  if (metadata_.four_bits) {
    builder.finish.quantizer = four_bit_codes();
    builder.finish.van_vleck = config_.correlate.van_vleck == "auto";
  }
  if (config_.correlate.van_vleck == "auto") builder.finish.samplers = metadata_.samplers;
  AppliedMetadata applied;
  applied.start_tai_ns = start;
  applied.van_vleck = builder.finish.van_vleck || !builder.finish.samplers.empty();
  for (const auto g : builder.gains) applied.gains.emplace_back(g);
  fill_applied(observation, config_, applied);
  writer_ =
      std::make_unique<DumpWriter>(config_, DumpBuilder(std::move(builder)), std::move(observation),
                                   std::vector<SourceMark>{}, metadata_.live, on_dump_);
}

std::int64_t SpectraDumps::room(std::int64_t first) {
  std::int64_t room = metadata_.max_gulp;
  loss_.guard([&] { room = std::min(room, chain_->advance(first, 0, metadata_.clock)); });
  return room;
}

void SpectraDumps::feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                        const SampleClock& clock) {
  if (!writer_) begin(first, clock);
  SampleClock centered = clock;  // of a filter's window, which is longer than a spectrum
  if (metadata_.window_s > 0)
    centered.epoch_tai_ns += std::llround(0.5e9 * (metadata_.window_s - clock.seconds(1)));
  loss_.guard([&] { feed_in_slices(*chain_, slice_, gulp, first, segment, centered); });
}

CommandResult SpectraDumps::set_gains(const std::string& file, std::int64_t from_tai_ns) {
  ObservationConfig config = config_;
  config.calibration.gains = file;
  DumpWriter::Change change;
  change.gains = spectra_gains(config, array_, metadata_.frequency);
  for (const auto g : *change.gains) change.applied_gains.emplace_back(g);
  return change_visibilities(writer_.get(), config_, from_tai_ns, std::move(change));
}

void SpectraDumps::finish(const std::map<std::string, std::string>& notes, RunSummary& summary) {
  loss_.guard([&] { chain_->flush(); });
  if (!low_center_.empty()) summary.warnings.push_back(low_center_);
  summary.data_s = std::max(summary.data_s, data_s());
  summary.implementations.push_back(chain_->implementation());
  Queue drawing = loss_.lost() ? Queue::cpu(static_cast<int>(config_.runtime.threads)) : queue_;
  if (writer_) finish_writer(*writer_, drawing, notes, summary);
  loss_.report(summary);
}

}  // namespace ryle::pipeline
