// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cmath>
#include <memory>

#include "ryle/core/error.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/stage/live_metrics.hpp"
#include "ryle/stage/live_spectra.hpp"
#include "ryle/stage/plan.hpp"
#include "ryle/stage/run.hpp"
#include "ryle/stage/run_common.hpp"
#include "ryle/stage/setup.hpp"
#include "ryle/stage/voltage_imaging.hpp"

/// The live path of an F-engine: sockets -> chunks of packets -> planar blocks -> images.
namespace ryle::stage {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class LiveSpectraRun {
 public:
  LiveSpectraRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        array_(load_array(config, 0)),
        receiver_(live_spectra_config(config, array_)),
        metrics_(config.runtime.metrics_file) {
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
    require_memory(config, fengine_source_chunk_bytes(receiver_));
    source_ = make_fengine_source(receiver_);
    SpectraFacts facts;
    facts.frequency = source_->channels();
    facts.clock = receiver_.clock;
    facts.max_gulp = receiver_.chunk_spectra;
    facts.format = SampleFormat::ci4;
    facts.time_source = receiver_.time_source;
    facts.live = true;
    if (config.source.kind == "simulator") {
      simulation_ = std::make_unique<SpectraSimulation>(config, array_, receiver_);
      facts.jy_per_count2 = simulation_->jy_per_count2();
    }
    path_ = std::make_unique<SkyPath>(config, array_, facts, options.command_line);
    spectra_ = std::make_unique<SpectraBlocks>(source_->layout());
  }

  RunSummary run() {
    summary_.planned_memory_bytes = source_->memory_bytes() + spectra_->bytes.bytes();
    source_->start();
    if (simulation_) simulation_->start();
    loop();
    summary_.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
    if (simulation_) {
      simulation_->stop();
      simulation_->join();
    }
    path_->finish(summary_);
    note_ingest();  // throws when counters do not balance: what was imaged is published by then
    const auto& output = config_.output;
    if (output.ms || output.uvfits || output.uvh5) {
      summary_.warnings.emplace_back(
          "packets of an F-engine become images only: output.ms, output.uvfits and output.uvh5 "
          "have no effect (false silences this)");
    }
    if (receiver_.time_source == TimeSource::arrival) {
      summary_.warnings.emplace_back(
          "times rest on this host's clock: set source.start_utc to the instant of sequence 1");
    }
    summary_.real_time_factor = summary_.elapsed_s > 0 ? summary_.data_s / summary_.elapsed_s : 0;
    note_peak_memory(summary_);
    if (!started_) {
      summary_.warnings.emplace_back("no image was made: no data arrived on " +
                                     config_.source.listen.front() + " (state " + summary_.state +
                                     ")");
    }
    return summary_;
  }

 private:
  void take(Chunk* chunk) {
    if (!started_) first_chunk_ = Clock::now();
    started_ = true;
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

  // One thread feeds the engines; the source and the writer have their own.
  void loop() {
    bool stopping = false;
    auto last_progress = Clock::now();
    while (!source_->ended()) {
      if (Chunk* chunk = source_->next(std::chrono::milliseconds(50))) take(chunk);
      if (!stopping && should_stop()) {
        stopping = true;
        source_->stop();
      }
      if (seconds_since(last_progress) >= options_.progress_interval_s) {
        report(seconds_since(last_progress));
        last_progress = Clock::now();
      }
    }
    report(seconds_since(last_progress));
  }

  bool should_stop() {
    if (options_.stop != nullptr && *options_.stop > 0) {
      summary_.stopped_by_signal = true;
      return true;
    }
    if (path_->failed()) return true;
    if (config_.source.duration_s > 0 && path_->data_s() >= config_.source.duration_s) return true;
    if (simulation_ && !simulation_->running()) {
      if (!simulation_ended_) simulation_end_ = Clock::now();
      simulation_ended_ = true;
      return seconds_since(simulation_end_) > 2e-3 * config_.source.close_after_ms;
    }
    return false;
  }

  void report(double interval_s) {
    const IngestCounters counters = source_->counters();
    Progress p;
    p.data_s = path_->data_s();
    p.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
    p.total_s = simulation_ ? config_.simulator.duration_s : config_.source.duration_s;
    const double bits = 8.0 * static_cast<double>(array_.n_inputs() * receiver_.n_channels) *
                        receiver_.clock.rate_hz.value();
    p.input_gbps =
        std::max(0.0, p.data_s - last_data_s_) / std::max(interval_s, 1e-3) * bits * 1e-9;
    last_data_s_ = p.data_s;
    const double slots = static_cast<double>(counters.present_slots + counters.missing_slots);
    p.lost_fraction = slots > 0 ? static_cast<double>(counters.missing_slots) / slots : 0;
    p.margin = path_->busy_s() > 0 ? p.data_s / path_->busy_s() : 0;
    p.images = path_->images();
    p.state = source_->state();
    metrics_.update(counters, p);
    if (options_.on_progress) options_.on_progress(p);
  }

  void note_ingest() {
    const IngestCounters c = source_->counters();
    summary_.packets_received = c.received;
    summary_.packets_used = c.used;
    summary_.packets_rejected = c.rejected;
    summary_.kernel_drops = c.kernel_drops;
    summary_.lost_samples = c.lost_samples;
    summary_.dropped_chunks = c.dropped_chunks;
    summary_.state = source_->state();
    if (c.balance() != 0) {
      throw Error(ExitCode::internal,
                  "ingest counters do not balance: received - used - rejected = " +
                      std::to_string(c.balance()));
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
  RunSummary summary_;
  LiveMetrics metrics_;
  Clock::time_point first_chunk_, simulation_end_;
  bool started_ = false;
  bool simulation_ended_ = false;
  double last_data_s_ = 0;
};

}  // namespace

RunSummary run_live_spectra(const ObservationConfig& config, const RunOptions& options) {
  return LiveSpectraRun(config, options).run();
}

}  // namespace ryle::stage
