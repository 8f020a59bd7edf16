// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>
#include <memory>

#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/pipeline/run/live_loop.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/run/sample_path.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

/// The live path: sockets -> chunks -> SamplePath, with the simulator on the other end of the
/// sockets when asked.
namespace ryle::pipeline {
namespace {

wire::MarkerMode marker_mode(const std::string& name) {
  if (name == "counter") return wire::MarkerMode::counter;
  return name == "constant" ? wire::MarkerMode::constant : wire::MarkerMode::ignore;
}

Mwa32tSourceConfig source_config(const ObservationConfig& config, const SampleMetadata& metadata) {
  const auto& s = config.source;
  Mwa32tSourceConfig source;
  source.endpoints = s.listen;
  source.geometry.marker.mode = marker_mode(s.marker);
  source.clock = metadata.clock;
  source.time_source = metadata.time_source;
  source.chunk_ticks = metadata.max_feed_ticks;
  source.n_chunks = static_cast<int>(s.n_chunks + s.window_chunks);
  source.window_chunks = static_cast<int>(s.window_chunks);
  source.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  source.offline = s.lossless;
  static_cast<ReceiverConfig&>(source) = receiver_config(config);
  source.rate_factor *=
      metadata.clock.rate_hz.value() / static_cast<double>(wire::kMwa32tSampleRateHz);
  if (s.start_utc == "now") source.max_clock_error_s = 0;
  return source;
}

/// A receiver of time samples as the observation describes it; nothing is opened yet.
struct SampleReceiver {
  std::int64_t chunk_bytes = 0;
  std::function<std::unique_ptr<ChunkSource>()> open;
};

SampleReceiver sample_receiver(const ObservationConfig& config, const SampleMetadata& metadata) {
  if (is_described(config.source)) {
    const auto receiver =
        live_described_config(config, metadata.n_inputs, metadata.clock.epoch_tai_ns);
    return {described_source_chunk_bytes(receiver),
            [receiver] { return std::make_unique<DescribedSampleSource>(receiver); }};
  }
  const auto receiver = source_config(config, metadata);
  return {mwa32t_source_chunk_bytes(receiver), [receiver] { return make_mwa32t_source(receiver); }};
}

bool from_own_clock(const ObservationConfig& config) {
  return is_received(config.source) && config.source.start_utc == "now";
}

class LiveRun final : public LivePath {
 public:
  LiveRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config), options_(options), metadata_(live_sample_metadata(config)) {
    metadata_.clock.epoch_tai_ns = simulation_start_tai_ns(config);
    // Counters say how much time has passed; "now" is the clock of this machine.
    if (metadata_.time_source != TimeSource::packet || !is_described(config.source))
      metadata_.time_source = from_own_clock(config) ? TimeSource::arrival : TimeSource::configured;
    const ArrayLayout array = load_array(config, metadata_.n_inputs);
    low_center_ = require_live_phase_center(config, array, metadata_.clock.epoch_tai_ns);
    const SampleReceiver receiver = sample_receiver(config, metadata_);
    ring_bytes_ = receiver.chunk_bytes;
    require_memory(config, ring_bytes_);
    path_ = std::make_unique<SamplePath>(config, metadata_, array, is_real_time(config),
                                         options.command_line);
    require_memory(config, ring_bytes_ + path_->memory_bytes());
    source_ = receiver.open();
    if (config.source.kind == "simulator") {
      const std::int64_t start = metadata_.clock.epoch_tai_ns;
      is_described(config.source)
          ? simulate(std::make_unique<DescribedSimulation>(config, array, start))
          : simulate(std::make_unique<Simulation>(config, start));
    }
  }

  RunSummary run() {
    RunSummary summary;
    summary.planned_memory_bytes = ring_bytes_;  // and what the path adds in finish()
    const double bits_per_s =
        static_cast<double>(metadata_.layout.sample_stride_bits) * metadata_.clock.rate_hz.value();
    LiveLoop loop(config_, options_, *source_, *this, simulation_.get(), bits_per_s);
    loop.run(summary);
    path_->finish(summary, notes(summary));
    loop.require_balance();
    summary.real_time_factor = summary.elapsed_s > 0 ? summary.data_s / summary.elapsed_s : 0;
    note_peak_memory(summary);
    if (!low_center_.empty()) summary.warnings.push_back(low_center_);
    if (metadata_.time_source == TimeSource::arrival)
      summary.warnings.emplace_back(
          "times are from the clock of this machine: set source.start_utc to the instant of sample "
          "0");
    if (summary.integrations == 0) {
      summary.warnings.push_back(
          "no integration was made: " +
          (loop.started() ? "the data are shorter than one" : loop.nothing_came()));
    }
    return summary;
  }

  void take(Chunk* chunk) override {
    path_->feed(chunk->payload.data(), chunk->first_tick, chunk->n_ticks, chunk->absent,
                chunk->segment, source_->info().clock);
    source_->release(chunk);
  }
  bool failed() const override { return path_->failed(); }
  double data_s() const override { return path_->data_s(); }
  double busy_s() const override { return path_->busy_s(); }
  void count(Progress& progress) const override {
    progress.integrations = path_->integrations();
    progress.warning = path_->warning();
  }
  std::int64_t data_tai_ns() const override { return path_->data_tai_ns(); }
  void mark(const OperatorMark& mark) override { path_->mark(mark); }
  CommandResult rotate() override { return path_->rotate(); }
  CommandResult set_gains(const std::string& file) override { return path_->set_gains(file); }
  CommandResult switch_product(const std::string& product, bool on) override {
    return path_->switch_product(product, on);
  }

 private:
  template <class Sky>
  void simulate(std::unique_ptr<Sky> sky) {
    path_->set_marks(sky->marks());
    path_->set_flux_scale(sky->jy_per_count2());
    simulation_ = std::move(sky);
  }

  std::map<std::string, std::string> notes(const RunSummary& summary) const {
    const double slots =
        static_cast<double>(metadata_.n_inputs) * path_->data_s() * metadata_.clock.rate_hz.value();
    const double lost_ppm = slots > 0 ? 1e6 * static_cast<double>(summary.lost_samples) / slots : 0;
    return {{"loss_ppm", std::to_string(lost_ppm)}, {"ingest_state", summary.state}};
  }

  const ObservationConfig& config_;
  const RunOptions& options_;
  SampleMetadata metadata_;
  std::string low_center_;  // a warning about the phase center, or ""
  std::int64_t ring_bytes_ = 0;
  std::unique_ptr<SamplePath> path_;
  std::unique_ptr<ChunkSource> source_;
  std::unique_ptr<PacketSimulation> simulation_;
};

}  // namespace

RunSummary run_live(const ObservationConfig& config, const RunOptions& options) {
  return LiveRun(config, options).run();
}

}  // namespace ryle::pipeline
