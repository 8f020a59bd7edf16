// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/sample_path.hpp"

#include "ryle/pipeline/base/level_correction.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

// Images and beams hold still over the ground, and take spectra of up to 8 bits.
ObservationConfig config_for(ObservationConfig config, const SpectraUse& use) {
  if (!use.nodes) return config;
  if (config.correlate.fringe_stopping == "f") config.correlate.fringe_stopping = "x";
  if (config.channelize.bits == 0) config.channelize.bits = 8;
  return config;
}

}  // namespace

SamplePath::SamplePath(const ObservationConfig& config, const SampleMetadata& metadata,
                       const ArrayLayout& array, bool live, const std::string& command_line,
                       SpectraUse use)
    : SamplePath(config, metadata, array, live, command_line, make_queues(config.runtime), use) {}

SamplePath::SamplePath(const ObservationConfig& config, const SampleMetadata& metadata,
                       const ArrayLayout& array, bool live, const std::string& command_line,
                       std::vector<Queue> queues, SpectraUse use)
    : use_(use),
      config_(config_for(config, use)),
      metadata_(metadata),
      array_(array),
      live_(live),
      command_line_(command_line),
      queues_(std::move(queues)),
      setup_(make_chain_setup(config_, metadata, array)),
      frequency_(frequency_axis(setup_.channelize)) {
  require_memory(config_, total_bytes(sums_memory(config_, setup_)));
  const bool tracks = config_.correlate.fringe_stopping == "f";
  if (use_.visibilities)
    require_visibility_outputs(config_, array_.n_antennas(), array_.n_pols(),
                               frequency_.n_channels);
  setup_.correlates = use_.visibilities;
  tracks_late_ = use_.visibilities && config.correlate.fringe_stopping == "f" && !tracks;
  if (use_.nodes)
    setup_.on_spectra = [this](const SpectraGulp& gulp, std::int64_t spectrum, std::int64_t segment,
                               const SampleClock& clock) {
      hand_on(gulp, spectrum, segment, clock);
    };
  chain_ = std::make_unique<FxChain>(
      queues_, setup_,
      [this, tracks](channelize::Channelizer& channelizer, const SampleClock& clock, Tick first,
                     Tick last) {
        if (tracks) channelizer.set_delays(model_->polynomials(clock, first, last));
      },
      [this](RawDump&& dump) { writer_->offer(std::move(dump), chain_->requantiser_scale()); });
  auto gains = calibration_gains(config_, metadata_.n_inputs, frequency_.n_channels);
  if (use_.nodes)
    late_gains_ = std::move(gains);
  else
    chain_->set_calibration(std::move(gains));
}

SpectraMetadata SamplePath::spectra() const {
  const std::int64_t step = channelize::step_length(setup_.channelize);
  SpectraMetadata metadata;
  metadata.frequency = frequency_;
  metadata.clock = metadata_.clock;
  metadata.clock.rate_hz.den *= step;
  metadata.clock.rate_hz = metadata.clock.rate_hz.reduced();
  metadata.max_gulp = chain_->max_gulp();
  metadata.format = setup_.channelize.output;
  metadata.four_bits = metadata.format == SampleFormat::ci4;
  metadata.window_s = metadata_.clock.seconds(channelize::filter_length(setup_.channelize) - 1);
  metadata.time_source = metadata_.time_source;
  metadata.live = live_;
  return metadata;
}

void SamplePath::hand_on(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                         SampleClock clock) {
  clock.rate_hz.den *= channelize::step_length(setup_.channelize);
  clock.rate_hz = clock.rate_hz.reduced();
  for (SpectraNode* node : nodes_) {
    if (!begun_)
      node->set_levels(chain_->requantiser_scale(),
                       sampler_gains(chain_->first_levels(), setup_.channelize.layout));
    node->feed(gulp, first, segment, clock);
  }
  begun_ = true;
}

void SamplePath::set_flux_scale(double jy_per_count2) {
  if (config_.calibration.jy_per_count2 == 0) config_.calibration.jy_per_count2 = jy_per_count2;
}

double SamplePath::data_s() const {
  return static_cast<double>(chain_->spectra_done()) *
         metadata_.clock.seconds(channelize::step_length(setup_.channelize));
}

void SamplePath::begin(const SampleClock& clock, Tick first) {
  const std::int64_t start = clock.tai_ns(first);
  Observation observation = make_observation(
      config_, array_, frequency_, clock.seconds(channelize::step_length(setup_.channelize)), start,
      command_line_);
  observation.time_source = metadata_.time_source;
  observation.provenance.implementations = implementations();
  model_.emplace(array_, observation.earth_orientation, observation.phase_center,
                 frequency_.band_center_hz());

  DumpBuilder::Setup builder = sample_builder(config_, setup_, *model_);
  builder.gains = late_gains_;
  complete_builder(builder, config_, array_, frequency_);
  AppliedMetadata applied;
  applied.start_tai_ns = start;
  applied.filter = chain_->channelizer().filter();
  applied.van_vleck = builder.finish.van_vleck || (builder.samples && is_coarse(*builder.samples));
  for (const auto g : use_.nodes ? late_gains_ : chain_->calibration())
    applied.gains.emplace_back(g);
  fill_applied(observation, config_, applied);
  writer_ = std::make_unique<DumpWriter>(config_, DumpBuilder(std::move(builder)),
                                         std::move(observation), marks_, live_, on_dump_);
}

void SamplePath::feed(const void* samples, Tick first, std::int64_t n,
                      std::span<const AbsentSpan> absent, std::int64_t segment,
                      const SampleClock& clock) {
  if (use_.visibilities && !writer_) begin(clock, first);
  loss_.guard([&] { chain_->feed(samples, first, n, absent, segment, clock); });
  data_tai_ns_ = clock.tai_ns(first + n);
}

void SamplePath::mark(const OperatorMark& mark) {
  if (writer_) writer_->mark(mark);
}

CommandResult SamplePath::rotate() {
  return change_visibilities(writer_.get(), config_, data_tai_ns_, {});
}

/// The channelizer goes on with the old gains; what is left to do comes after correlation.
CommandResult SamplePath::set_gains(const std::string& file) {
  ObservationConfig config = config_;
  config.calibration.gains = file;
  const std::vector<cf32> wanted =
      calibration_gains(config, metadata_.n_inputs, frequency_.n_channels);
  const std::vector<cf32>& applied = chain_->calibration();
  DumpWriter::Change change;
  change.gains = wanted;
  for (std::size_t k = 0; k < applied.size(); ++k)
    (*change.gains)[k] = applied[k] == cf32(0) ? cf32(0) : wanted[k] / applied[k];
  for (const auto g : wanted) change.applied_gains.emplace_back(g);
  return change_visibilities(writer_.get(), config_, data_tai_ns_, std::move(change));
}

CommandResult SamplePath::switch_product(const std::string& product, bool on) {
  return switch_visibilities(writer_.get(), config_, data_tai_ns_, product, on);
}

std::int64_t SamplePath::memory_bytes() const {
  return total_bytes(sums_memory(config_, setup_)) + total_bytes(engines_memory(setup_, *chain_));
}

std::vector<std::string> SamplePath::implementations() const {
  std::vector<std::string> names{std::string(chain_->channelizer().implementation())};
  if (use_.visibilities) names.emplace_back(chain_->correlator().implementation());
  if (chain_->n_parts() > 1)
    names.push_back("channels on " + std::to_string(chain_->n_parts()) + " devices");
  return names;
}

void SamplePath::finish(RunSummary& summary, const std::map<std::string, std::string>& notes) {
  summary.planned_memory_bytes += memory_bytes();
  summary.implementations = implementations();
  loss_.guard([&] { chain_->flush(); });
  chain_->wait_readback();
  summary.data_s = data_s();
  summary.engine_margin = busy_s() > 0 ? summary.data_s / busy_s() : 0;
  Queue drawing =
      loss_.lost() ? Queue::cpu(static_cast<int>(config_.runtime.threads)) : queues_.front();
  if (writer_) finish_writer(*writer_, drawing, notes, summary);
  loss_.report(summary);
}

}  // namespace ryle::pipeline
