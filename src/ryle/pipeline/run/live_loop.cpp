// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_loop.hpp"

#include <algorithm>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"

namespace ryle::pipeline {
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
    if (config_.simulator.wait_for_run)
      simulation_->sender().hold_while([this] { return is_behind(); });
    simulation_->sender().start();
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
  metrics_.end();
  summary.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
  if (simulation_ != nullptr) {
    simulation_->sender().stop();
    simulation_->sender().join();
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
  return simulation_ != nullptr && !simulation_->sender().running() && simulation_has_arrived();
}

/// More packets on their way than a quarter of the receive buffer holds, or half of the ring of
/// chunks waits for the engines. Asked by the thread of the simulator.
bool LiveLoop::is_behind() const {
  constexpr std::int64_t kFewPackets = 16;  // where the system grants a small buffer
  const IngestCounters c = source_.counters();
  std::int64_t sent = 0, bytes = 0;
  for (const auto& link : simulation_->sender().report().receivers) {
    sent += link.packets_sent;
    bytes += link.bytes_sent;
  }
  std::int64_t maximum = kFewPackets;
  if (bytes > 0 && source_.state().find("rcvbuf") == std::string::npos) {
    const double packets_per_s = input_bits_per_s_ / 8 * static_cast<double>(sent) /
                                 static_cast<double>(bytes) *
                                 std::max(config_.simulator.speed, 0.01);
    maximum = std::max(
        maximum, static_cast<std::int64_t>(config_.source.stall_budget_s / 4 * packets_per_s));
  }
  const auto lost = static_cast<std::int64_t>(c.kernel_drops);
  const auto waiting = static_cast<std::int64_t>(c.chunks - c.dropped_chunks) - chunks_done_;
  return sent - static_cast<std::int64_t>(c.received) - lost > maximum ||
         waiting > config_.source.n_chunks / 2;
}

/// What the simulator sent has come, or what is missing has had time to.
bool LiveLoop::simulation_has_arrived() {
  if (!simulation_ended_) simulation_end_ = Clock::now();
  simulation_ended_ = true;
  std::int64_t sent = 0;
  for (const auto& link : simulation_->sender().report().receivers) sent += link.packets_sent;
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
  if (p.warning == warned_) {
    p.warning.clear();
  } else {
    warned_ = p.warning;
  }
  p.state = state(p.data_s, p.margin);
  p.rejected = rejected_text(counters, &reported_);
  if (p.rejected.empty() && p.state != "OK") p.rejected = rejected_text(counters);
  reported_ = counters;
  metrics_.update(counters, p);
  if (options_.on_progress) options_.on_progress(p);
}

std::string LiveLoop::state(double data_s, double margin) const {
  constexpr double kJudged_s = 1;  // of data: the first has waited for engines that were made
  std::string state = source_.state();
  // A sender that waits, or a simulator that takes its time, does not ask for real time.
  const bool slow = !config_.source.lossless && is_real_time(config_) && data_s >= kJudged_s &&
                    margin > 0 && margin < expected_speed(config_);
  if (!slow || state == "NO_DATA" || state == "PRELOCK") return state;
  if (state == "OK") return "DEGRADED(slow)";
  state.insert(state.size() - 1, ",slow");
  return state;
}

std::string LiveLoop::nothing_came() const {
  const IngestCounters counters = source_.counters();
  const std::string rejected = rejected_text(counters);
  const auto time = counters.rejected.find("time");
  const bool undated = time != counters.rejected.end() && time->second > 0;
  const std::string listen = comma_separated(config_.source.listen);
  if (counters.received == 0) {
    return "no data arrived on " + listen + " (state " + source_.state() + ")" +
           (rejected.empty() ? "" : "; " + rejected);
  }
  return std::to_string(counters.received) + " packets arrived on " + listen +
         ", too few of them usable to begin with (state " + source_.state() + ")" +
         (rejected.empty() ? "" : "; " + rejected) +
         (undated
              ? "; they are dated further than source.max_clock_error_s from this host's clock: "
                "is source.start_utc right? 0 takes replays of any date"
              : "");
}

void LiveLoop::note_ingest(RunSummary& summary) const {
  const IngestCounters c = source_.counters();
  summary.packets_received = c.received;
  summary.packets_used = c.used;
  summary.packets_rejected = c.rejected;
  summary.last_rejected = c.last_rejected;
  summary.rejected_connections = c.rejected_connections;
  summary.senders_replaced = c.rebound;
  summary.kernel_drops = c.kernel_drops;
  summary.lost_samples = c.lost_samples;
  summary.undelivered_samples = c.undelivered_samples;
  summary.dropped_chunks = c.dropped_chunks;
  const double busy_s = path_.busy_s();
  summary.state = state(path_.data_s(), busy_s > 0 ? path_.data_s() / busy_s : 0);
}

void LiveLoop::require_balance() const {
  const std::int64_t balance = source_.counters().balance();
  if (balance != 0) {
    throw Error(
        ExitCode::internal,
        "ingest counters do not balance: received - used - rejected = " + std::to_string(balance));
  }
}

}  // namespace ryle::pipeline
