// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "ryle/core/error.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/stage/live_loop.hpp"
#include "ryle/stage/live_spectra.hpp"
#include "ryle/stage/plan.hpp"
#include "ryle/stage/run.hpp"
#include "ryle/stage/run_common.hpp"
#include "ryle/stage/setup.hpp"
#include "ryle/stage/spectra_memory.hpp"
#include "ryle/stage/voltage_imaging.hpp"

/// The live path of an F-engine: sockets -> chunks of packets -> planar blocks -> images.
namespace ryle::stage {
namespace {

class LiveSpectraRun final : public LivePath {
 public:
  LiveSpectraRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        array_(load_array(config, 0)),
        receiver_(live_spectra_config(config, array_)) {
    if (config.image.cadence_s <= 0) {
      throw ConfigError(
          "packets of an F-engine become images: set image.cadence_s, the length of one in "
          "seconds");
    }
    if (!config.output.files.empty()) {
      throw ConfigError(
          "output.files names visibilities; live, packets of an F-engine become images only "
          "(record them, then ryle correlate)");
    }
    SpectraFacts facts;
    facts.frequency = fengine_channels(receiver_);
    facts.clock = receiver_.clock;
    facts.max_gulp = receiver_.chunk_spectra;
    facts.format = SampleFormat::ci4;
    facts.time_source = receiver_.time_source;
    facts.live = true;
    plan(facts);
    source_ = make_fengine_source(receiver_);
    if (config.source.kind == "simulator") {
      simulation_ = std::make_unique<SpectraSimulation>(config, array_, receiver_);
      facts.jy_per_count2 = simulation_->jy_per_count2();
    }
    path_ = std::make_unique<SkyPath>(config, array_, facts, options.command_line);
    spectra_ = std::make_unique<SpectraBlocks>(source_->layout());
  }

  RunSummary run() {
    RunSummary summary;
    summary.planned_memory_bytes = planned_bytes_;
    const double bits_per_s = 8.0 * static_cast<double>(array_.n_inputs() * receiver_.n_channels) *
                              receiver_.clock.rate_hz.value();
    LiveLoop loop(config_, options_, *source_, *this, simulation_.get(), bits_per_s);
    loop.run(summary);
    path_->finish(summary);
    loop.require_balance();
    add_warnings(summary);
    summary.real_time_factor = summary.elapsed_s > 0 ? summary.data_s / summary.elapsed_s : 0;
    note_peak_memory(summary);
    if (!loop.started()) {
      summary.warnings.emplace_back("no image was made: no data arrived on " +
                                    config_.source.listen.front() + " (state " + summary.state +
                                    ")");
    }
    return summary;
  }

  void take(Chunk* chunk) override {
    const SampleClock clock = source_->clock(chunk->segment);
    unpack(source_->layout(), *chunk, *spectra_);
    source_->release(chunk);
    SpectraGulp gulp;
    gulp.blocks = spectra_->blocks();
    gulp.n_spectra = spectra_->n_spectra;
    gulp.valid = spectra_->valid();
    gulp.valid_words = spectra_->mask.words;
    gulp.valid_channel_stride_words = spectra_->mask.channel_stride_words;
    path_->feed(gulp, spectra_->first_spectrum, spectra_->segment, clock);
  }
  bool failed() const override { return path_->failed(); }
  double data_s() const override { return path_->data_s(); }
  double busy_s() const override { return path_->busy_s(); }
  void count(Progress& progress) const override { progress.images = path_->images(); }

 private:
  // Before anything is opened: a run that does not fit must not take the ports of one that does.
  void plan(const SpectraFacts& facts) {
    Queue queue = make_queue(config_.runtime);
    const Cadence cadence = make_cadence(config_.image.cadence_s, facts.clock.rate_hz.value(), 0);
    const auto sky =
        make_sky_config(config_, array_, facts.frequency, cadence.spectra_per_image, {});
    planned_bytes_ =
        total_bytes(live_spectra_memory(config_, receiver_, sky, choose_path(config_, sky, queue)));
    require_memory(config_, planned_bytes_);
  }

  void add_warnings(RunSummary& summary) const {
    const auto& output = config_.output;
    if (output.ms || output.uvfits || output.uvh5) {
      summary.warnings.emplace_back(
          "packets of an F-engine become images only: output.ms, output.uvfits and output.uvh5 "
          "have no effect (false silences this)");
    }
    if (receiver_.time_source == TimeSource::arrival) {
      summary.warnings.emplace_back(
          "times rest on this host's clock: set source.start_utc to the instant of sequence 1");
    }
  }

  const ObservationConfig& config_;
  const RunOptions& options_;
  ArrayLayout array_;
  FengineSourceConfig receiver_;
  std::unique_ptr<FengineSource> source_;
  std::unique_ptr<SpectraSimulation> simulation_;
  std::unique_ptr<SkyPath> path_;
  std::unique_ptr<SpectraBlocks> spectra_;
  std::int64_t planned_bytes_ = 0;
};

}  // namespace

RunSummary run_live_spectra(const ObservationConfig& config, const RunOptions& options) {
  return LiveSpectraRun(config, options).run();
}

}  // namespace ryle::stage
