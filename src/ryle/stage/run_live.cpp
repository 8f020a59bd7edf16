// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cmath>
#include <memory>

#include "ryle/core/error.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/stage/live_metrics.hpp"
#include "ryle/stage/plan.hpp"
#include "ryle/stage/run.hpp"
#include "ryle/stage/run_common.hpp"
#include "ryle/stage/sample_path.hpp"
#include "ryle/stage/setup.hpp"
#include "ryle/stage/simulation.hpp"

/// The live path: sockets -> chunks -> SamplePath, with the simulator on the other end of the
/// sockets when asked.
namespace ryle::stage {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

wire::MarkerMode marker_mode(const std::string& name) {
  if (name == "counter") return wire::MarkerMode::counter;
  return name == "constant" ? wire::MarkerMode::constant : wire::MarkerMode::ignore;
}

Mwa32tSourceConfig source_config(const ObservationConfig& config, const SampleFacts& facts) {
  const auto& s = config.source;
  Mwa32tSourceConfig source;
  source.endpoints = s.listen;
  source.geometry.marker.mode = marker_mode(s.marker);
  source.clock = facts.clock;
  source.time_source = facts.time_source;
  source.chunk_ticks = facts.max_feed_ticks;
  source.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  source.window_chunks = static_cast<int>(s.window_chunks);
  source.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  source.offline = s.lossless;
  const double speed =
      s.kind == "simulator" && config.simulator.speed > 0 ? config.simulator.speed : 1;
  source.rate_factor =
      speed * facts.clock.rate_hz.value() / static_cast<double>(wire::kMwa32tSampleRateHz);
  source.stall_budget_s = s.stall_budget_s;
  source.allow_small_rcvbuf = s.allow_small_rcvbuf;
  source.close_after_ns = static_cast<MonotonicNs>(s.close_after_ms * 1e6);
  source.patience_ns = static_cast<MonotonicNs>(s.no_data_s * 1e9);
  return source;
}

class LiveRun {
 public:
  LiveRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        facts_(live_sample_facts(config)),
        metrics_(config.runtime.metrics_file) {
    facts_.clock.epoch_tai_ns = simulation_start_tai_ns(config);
    facts_.time_source = TimeSource::configured;
    const ArrayLayout array = load_array(config, facts_.n_inputs);
    const Mwa32tSourceConfig receiver = source_config(config, facts_);
    require_memory(config, mwa32t_source_chunk_bytes(receiver));
    path_ = std::make_unique<SamplePath>(config, facts_, array, true, options.command_line);
    source_ = make_mwa32t_source(receiver);
    if (config.source.kind == "simulator") {
      simulation_ = std::make_unique<Simulation>(config, facts_.clock.epoch_tai_ns);
      path_->set_marks(simulation_->marks());
      path_->set_flux_scale(simulation_->jy_per_count2());
    }
  }

  RunSummary run() {
    summary_.planned_memory_bytes = source_->memory_bytes();
    source_->start();
    if (simulation_) simulation_->start();
    loop();
    summary_.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
    if (simulation_) {
      simulation_->stop();
      simulation_->join();
    }
    note_ingest();
    path_->finish(summary_, notes());
    summary_.real_time_factor = summary_.elapsed_s > 0 ? summary_.data_s / summary_.elapsed_s : 0;
    note_peak_memory(summary_);
    if (config_.image.cadence_s > 0) {
      summary_.warnings.emplace_back(
          "image.cadence_s has no effect on live samples: all-sky images need spectra of an "
          "F-engine, or a recording (ryle image)");
    }
    if (summary_.integrations == 0) {
      summary_.warnings.emplace_back("no integration was made: no data arrived on " +
                                     config_.source.listen.front() + " and its neighbours (state " +
                                     summary_.state + ")");
    }
    return summary_;
  }

 private:
  // One thread feeds the engines; the source and the writer have their own.
  void loop() {
    bool stopping = false;
    auto last_progress = Clock::now();
    while (!source_->ended()) {
      if (Chunk* chunk = source_->next(std::chrono::milliseconds(50))) {
        if (!started_) first_chunk_ = Clock::now();
        started_ = true;
        SampleClock clock = source_->info().clock;
        path_->feed(chunk->payload.data(), chunk->first_tick, chunk->n_ticks, chunk->absent,
                    chunk->segment, clock);
        source_->release(chunk);
      }
      if (!stopping && should_stop()) {
        stopping = true;
        source_->stop();
      }
      if (std::chrono::duration<double>(Clock::now() - last_progress).count() >=
          options_.progress_interval_s) {
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
    // The simulator has sent everything and the ring has had time to drain.
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
    const double slots = static_cast<double>(counters.present_slots + counters.missing_slots);
    const double bits =
        static_cast<double>(facts_.layout.sample_stride_bits) * facts_.clock.rate_hz.value();
    p.input_gbps =
        std::max(0.0, p.data_s - last_data_s_) / std::max(interval_s, 1e-3) * bits * 1e-9;
    last_data_s_ = p.data_s;
    p.lost_fraction = slots > 0 ? static_cast<double>(counters.missing_slots) / slots : 0;
    p.margin = path_->busy_s() > 0 ? p.data_s / path_->busy_s() : 0;
    p.integrations = path_->integrations();
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

  std::map<std::string, std::string> notes() const {
    const double slots =
        static_cast<double>(facts_.n_inputs) * path_->data_s() * facts_.clock.rate_hz.value();
    const double lost_ppm =
        slots > 0 ? 1e6 * static_cast<double>(summary_.lost_samples) / slots : 0;
    return {{"loss_ppm", std::to_string(lost_ppm)}, {"ingest_state", summary_.state}};
  }

  const ObservationConfig& config_;
  const RunOptions& options_;
  SampleFacts facts_;
  std::unique_ptr<SamplePath> path_;
  std::unique_ptr<ChunkSource> source_;
  std::unique_ptr<Simulation> simulation_;
  RunSummary summary_;
  LiveMetrics metrics_;
  Clock::time_point first_chunk_, simulation_end_;
  bool started_ = false;
  bool simulation_ended_ = false;
  double last_data_s_ = 0;
};

}  // namespace

RunSummary run_live(const ObservationConfig& config, const RunOptions& options) {
  return LiveRun(config, options).run();
}

}  // namespace ryle::stage
