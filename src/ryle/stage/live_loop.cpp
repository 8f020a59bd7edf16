// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/live_loop.hpp"

#include <algorithm>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/stage/stopwatch.hpp"

namespace ryle::stage {
LiveLoop::LiveLoop(const ObservationConfig& config, const RunOptions& options, ChunkSource& source,
                   LivePath& path, PacketSimulation* simulation, double input_bits_per_s)
    : config_(config),
      options_(options),
      source_(source),
      path_(path),
      simulation_(simulation),
      input_bits_per_s_(input_bits_per_s),
      metrics_(config.runtime.metrics_file) {}

void LiveLoop::run(RunSummary& summary) {
  source_.start();
  if (simulation_ != nullptr) {
    if (config_.simulator.wait_for_run) simulation_->hold_while([this] { return is_behind(); });
    simulation_->start();
  }
  bool stopping = false;
  auto last_progress = Clock::now();
  while (!source_.ended()) {
    if (Chunk* chunk = source_.next(std::chrono::milliseconds(50))) {
      if (!started_) first_chunk_ = Clock::now();
      started_ = true;
      path_.take(chunk);
      ++chunks_done_;
    }
    if (!stopping && should_stop(summary)) {
      stopping = true;
      source_.stop();
    }
    if (seconds_since(last_progress) >= options_.progress_interval_s) {
      report(seconds_since(last_progress));
      last_progress = Clock::now();
    }
  }
  report(seconds_since(last_progress));
  summary.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
  if (simulation_ != nullptr) {
    simulation_->stop();
    simulation_->join();
  }
  note_ingest(summary);
}

bool LiveLoop::should_stop(RunSummary& summary) {
  if (options_.stop != nullptr && *options_.stop > 0) {
    summary.stopped_by_signal = true;
    return true;
  }
  if (path_.failed()) return true;
  if (config_.source.duration_s > 0 && path_.data_s() >= config_.source.duration_s) return true;
  return simulation_ != nullptr && !simulation_->running() && simulation_has_arrived();
}

/// More packets on their way than a quarter of the receive buffer holds, or half of the ring of
/// chunks waits for the engines. Asked by the thread of the simulator.
bool LiveLoop::is_behind() const {
  constexpr std::int64_t kFewPackets = 16;  // where the system grants a small buffer
  const IngestCounters c = source_.counters();
  std::int64_t sent = 0, bytes = 0;
  for (const auto& link : simulation_->report().receivers) {
    sent += link.packets_sent;
    bytes += link.bytes_sent;
  }
  std::int64_t most = kFewPackets;
  if (bytes > 0 && source_.state().find("rcvbuf") == std::string::npos) {
    const double packets_per_s = input_bits_per_s_ / 8 * static_cast<double>(sent) /
                                 static_cast<double>(bytes) *
                                 std::max(config_.simulator.speed, 0.01);
    most = std::max(most,
                    static_cast<std::int64_t>(config_.source.stall_budget_s / 4 * packets_per_s));
  }
  const auto lost = static_cast<std::int64_t>(c.kernel_drops);
  const auto waiting = static_cast<std::int64_t>(c.chunks - c.dropped_chunks) - chunks_done_;
  return sent - static_cast<std::int64_t>(c.received) - lost > most ||
         waiting > config_.source.n_chunks / 2;
}

/// What the simulator sent has come, or what is missing has had time to.
bool LiveLoop::simulation_has_arrived() {
  if (!simulation_ended_) simulation_end_ = Clock::now();
  simulation_ended_ = true;
  std::int64_t sent = 0;
  for (const auto& link : simulation_->report().receivers) sent += link.packets_sent;
#if RYLE_MUTANT == 1302
  sent = INT64_MAX;
#endif
  return static_cast<std::int64_t>(source_.counters().received) >= sent ||
         seconds_since(simulation_end_) > 2e-3 * config_.source.close_after_ms;
}

void LiveLoop::report(double interval_s) {
  const IngestCounters counters = source_.counters();
  Progress p;
  p.data_s = path_.data_s();
  p.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
  p.total_s = simulation_ != nullptr ? config_.simulator.duration_s : config_.source.duration_s;
  p.input_gbps = std::max(0.0, p.data_s - last_data_s_) / std::max(interval_s, 1e-3) *
                 input_bits_per_s_ * 1e-9;
  last_data_s_ = p.data_s;
  const double slots = static_cast<double>(counters.present_slots + counters.missing_slots);
  p.lost_fraction = slots > 0 ? static_cast<double>(counters.missing_slots) / slots : 0;
  p.margin = path_.busy_s() > 0 ? p.data_s / path_.busy_s() : 0;
  path_.count(p);
  p.state = source_.state();
  metrics_.update(counters, p);
  if (options_.on_progress) options_.on_progress(p);
}

void LiveLoop::note_ingest(RunSummary& summary) const {
  const IngestCounters c = source_.counters();
  summary.packets_received = c.received;
  summary.packets_used = c.used;
  summary.packets_rejected = c.rejected;
  summary.kernel_drops = c.kernel_drops;
  summary.lost_samples = c.lost_samples;
  summary.dropped_chunks = c.dropped_chunks;
  summary.state = source_.state();
}

void LiveLoop::require_balance() const {
  const std::int64_t balance = source_.counters().balance();
  if (balance != 0) {
    throw Error(
        ExitCode::internal,
        "ingest counters do not balance: received - used - rejected = " + std::to_string(balance));
  }
}

}  // namespace ryle::stage
