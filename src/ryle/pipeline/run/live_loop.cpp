// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_loop.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {
namespace {

/// The receiver has no usable data.
bool is_silent(const std::string& receiver) {
  return receiver == "NO_DATA" || receiver == "PRELOCK";
}

std::unique_ptr<CommandSocket> open_command_socket(const ObservationConfig& config) {
  if (config.runtime.command_socket.empty()) return nullptr;
  std::error_code ignored;  // the socket says what is wrong
  std::filesystem::create_directories(config.output.directory, ignored);
  return std::make_unique<CommandSocket>(
      (std::filesystem::path(config.output.directory) / config.runtime.command_socket).string());
}

}  // namespace

CommandResult LivePath::set_gains(const std::string&) {
  return CommandResult::refused(
      "gains of this run cannot change while it goes on; stop it, set calibration.gains (of beams: "
      "[calibration] of beams.file) and start it again");
}
CommandResult LivePath::set_beams(const std::string&) {
  return CommandResult::refused("this run makes no beams that can be pointed anew");
}
CommandResult LivePath::dump(double) {
  return CommandResult::refused(
      "this run keeps no voltages that could be dumped; set voltages.ring_s and start it again");
}
CommandResult LivePath::switch_product(const std::string& product, bool) {
  return CommandResult::refused(
      "\"" + product +
      "\" cannot be begun or ended while this run goes on; \"stop\" "
      "alone ends the run, and [output] chooses the products of the next");
}

LiveLoop::LiveLoop(const ObservationConfig& config, const RunOptions& options, ChunkSource& source,
                   LivePath& path, PacketSimulation* simulation, double input_bits_per_s)
    : config_(config),
      options_(options),
      source_(source),
      path_(path),
      simulation_(simulation),
      input_bits_per_s_(input_bits_per_s),
      metrics_(config.runtime.metrics_file, config),
      commands_(open_command_socket(config)) {}

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
      if (const std::string state = source_.state(); !is_silent(state)) with_data_ = state;
      if (!started_) first_chunk_ = Clock::now();
      started_ = true;
      measure_levels(*chunk);
      path_.take(chunk);
      ++chunks_done_;
    }
    poll_commands(summary);
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
  commands_.reset();
  summary.elapsed_s = started_ ? seconds_since(first_chunk_) : 0;
  if (simulation_ != nullptr) {
    simulation_->sender().stop();
    simulation_->sender().join();
  }
  note_ingest(summary);
}

void LiveLoop::poll_commands(RunSummary& summary) {
  if (!commands_) return;
  commands_->poll([&](const CommandRequest& request) {
    return request.command == "status" ? status_text() : to_json(carry_out(request, summary));
  });
}

CommandResult LiveLoop::carry_out(const CommandRequest& request, RunSummary& summary) {
  const std::int64_t now_tai_ns = path_.data_tai_ns();
  if (request.command == "rotate") return path_.rotate();
  if (request.command == "gains") return path_.set_gains(request.file);
  if (request.command == "beams") return path_.set_beams(request.file);
  if (request.command == "dump") return path_.dump(request.seconds);
  if (!request.product.empty())
    return path_.switch_product(request.product, request.command == "start");
  if (request.command == "mark") {
    if (now_tai_ns == 0)
      return CommandResult::refused("no data have come yet that could be marked; ask again");
    summary.marks.push_back({now_tai_ns, request.text});
    path_.mark(summary.marks.back());
    return {true, "marked; the note is in the open products and in the summary of the run",
            now_tai_ns};
  }
  stop_asked_ = true;
  return {true, "the run closes its open integrations, publishes and ends", now_tai_ns};
}

std::string LiveLoop::status_text() const {
  auto json = nlohmann::ordered_json::parse(to_json(reported_));
  json["result"] = "done";
  json["message"] = to_text(reported_, IngestCounters{});
  if (const std::int64_t tai_ns = path_.data_tai_ns(); tai_ns != 0)
    json["data_utc"] = utc_iso(tai_ns, 6);
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

bool LiveLoop::should_stop(RunSummary& summary) {
  if (stop_asked_) return true;
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
  const std::int64_t waiting = chunks_waiting(c);
  return sent - static_cast<std::int64_t>(c.received) - lost > maximum ||
         waiting > config_.source.n_chunks / 2;
}

std::int64_t LiveLoop::chunks_waiting(const IngestCounters& c) const {
  return static_cast<std::int64_t>(c.chunks - c.dropped_chunks) - chunks_done_;
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

/// Now and then, where somebody may look.
void LiveLoop::measure_levels(const Chunk& chunk) {
  constexpr double kInterval_s = 5;
  if (config_.runtime.metrics_file.empty()) return;
  if (!input_rms_lsb_.empty() && seconds_since(last_levels_) < kInterval_s) return;
  input_rms_lsb_ = levels_.of(source_, chunk);
  last_levels_ = Clock::now();
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
  recent_.add(p.data_s, path_.busy_s(), counters.present_slots, counters.missing_slots);
  p.margin = recent_.margin();
  path_.count(p);
  if (p.warning == warned_) {
    p.warning.clear();
  } else {
    warned_ = p.warning;
  }
  p.state = run_state(condition(p.data_s, p.margin));
  p.ingest = counters;
  p.input_rms_lsb = input_rms_lsb_;
  reported_ = p;
  metrics_.update(p, chunks_waiting(counters));
  if (options_.on_progress) options_.on_progress(p);
}

/// Of the source. A simulator that has sent everything is no silent array, however long the engines
/// work on what waits: then as it was with data.
std::string LiveLoop::receiver_state() const {
  const std::string state = source_.state();
  const bool sent_all = simulation_ != nullptr && !simulation_->sender().running();
  return is_silent(state) && sent_all && !with_data_.empty() ? with_data_ : state;
}

Condition LiveLoop::condition(double data_s, double margin) const {
  Condition c;
  c.receiver = receiver_state();
  c.data_s = data_s;
  c.margin = margin;
  c.needed = expected_speed(config_);
  c.sender_waits = config_.source.lossless || !is_real_time(config_);
  c.lost_fraction = recent_.lost_fraction();
  return c;
}

std::string LiveLoop::nothing_came() const {
  const IngestCounters counters = source_.counters();
  const std::string rejected = rejected_text(counters);
  const auto time = counters.rejected.find("time");
  const bool undated = time != counters.rejected.end() && time->second > 0;
  const std::string listen =
      comma_separated(config_.source.listen) +
      (config_.source.kind == "pcap" ? " of the capture " + config_.source.file : "");
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
  summary.last_rejected_connection = c.last_rejected_connection;
  summary.senders_replaced = c.rebound;
  summary.kernel_drops = c.kernel_drops;
  summary.lost_samples = c.lost_samples;
  summary.undelivered_samples = c.undelivered_samples;
  summary.dropped_chunks = c.dropped_chunks;
  summary.warnings.insert(summary.warnings.end(), c.notes.begin(), c.notes.end());
  Condition at_end = condition(path_.data_s(), recent_.margin());
  at_end.ended = true;
  summary.state = run_state(at_end);
}

void LiveLoop::require_balance() const {
  const IngestCounters counters = source_.counters();
  if (!counters.fault.empty()) throw FormatError(counters.fault);
  const std::int64_t balance = counters.balance();
  if (balance != 0) {
    throw Error(
        ExitCode::internal,
        "ingest counters do not balance: received - used - rejected = " + std::to_string(balance));
  }
}

}  // namespace ryle::pipeline
