// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "ryle/ingest/source.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/run/command_socket.hpp"
#include "ryle/pipeline/run/live_levels.hpp"
#include "ryle/pipeline/run/live_metrics.hpp"
#include "ryle/pipeline/run/live_state.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

namespace ryle::pipeline {

/// What a live run makes of its chunks, as the loop sees it. Every function is called on the thread
/// of LiveLoop::run().
class LivePath {
 public:
  virtual ~LivePath() = default;
  /// Works on a chunk and gives it back to the source as soon as it can.
  virtual void take(Chunk* chunk) = 0;
  /// Nothing more will be written and the observation asks to stop then.
  virtual bool failed() const = 0;
  virtual double data_s() const = 0;
  virtual double busy_s() const = 0;
  /// Products so far: integrations, images.
  virtual void count(Progress& progress) const = 0;

  // What an operator may ask for (CommandSocket). A path that cannot do it says what would work.

  /// The instant up to which the data were worked on, TAI; 0 = no data yet.
  virtual std::int64_t data_tai_ns() const { return 0; }
  /// Keeps a note in the products that are open at this instant.
  virtual void mark(const OperatorMark&) {}
  /// New files from the next integration on.
  virtual CommandResult rotate() {
    return CommandResult::refused("this run has no files that can be ended while it goes on");
  }
  /// Gains of the signal path, divided out from now on. @param file CSV as calibration.gains
  virtual CommandResult set_gains(const std::string& file);
  /// Directions and weights of the beams from now on. @param file as beams.file
  virtual CommandResult set_beams(const std::string& file);
  /// Writes the voltages of the last seconds; 0 = all that are kept.
  virtual CommandResult dump(double seconds);
  /// Begins or ends one product while the others go on.
  virtual CommandResult switch_product(const std::string& product, bool on);
};

/// Drives a live run from the first chunk to the last.
/// - Thread: the caller of run() feeds the engines; the source and the writers have their own
/// threads.
/// - Reads chunks of the source, and hands each to the path, which gives it back.
/// - Ends when the source ends, after source.duration_s, on a signal, when the path has failed, or
///   when the simulator has sent everything.
/// - A gap is the source's affair: chunks say what is absent, the path decides what becomes of it.
class LiveLoop {
 public:
  /// `simulation` may be null; input_bits_per_s is of packets at their nominal rate.
  LiveLoop(const ObservationConfig& config, const RunOptions& options, ChunkSource& source,
           LivePath& path, PacketSimulation* simulation, double input_bits_per_s);

  /// Starts source and simulator, and returns when both are done. Fills in what the summary knows
  /// of packets and of time.
  void run(RunSummary& summary);
  /// A chunk came.
  bool started() const { return started_; }
  /// Why no chunk came: nothing arrived, or what arrived was refused. @pre !started()
  std::string nothing_came() const;
  /// Throws when packets are unaccounted for, or a capture is damaged: after the products are
  /// published.
  void require_balance() const;

 private:
  using Clock = std::chrono::steady_clock;

  void poll_commands(RunSummary& summary);
  CommandResult carry_out(const CommandRequest& request, RunSummary& summary);
  std::string status_text() const;
  bool should_stop(RunSummary& summary);
  bool simulation_has_arrived();
  bool is_behind() const;
  std::int64_t chunks_waiting(const IngestCounters& counters) const;
  void measure_levels(const Chunk& chunk);
  void report(double interval_s);
  Condition condition(double data_s, double margin) const;
  std::string receiver_state() const;
  void note_ingest(RunSummary& summary) const;

  const ObservationConfig& config_;
  const RunOptions& options_;
  ChunkSource& source_;
  LivePath& path_;
  PacketSimulation* simulation_;
  double input_bits_per_s_;
  LiveMetrics metrics_;
  std::unique_ptr<CommandSocket> commands_;
  bool stop_asked_ = false;
  Progress reported_;  // the last
  RecentRates recent_;
  LiveLevels levels_;
  std::vector<double> input_rms_lsb_;
  Clock::time_point last_levels_;
  std::string warned_;     // the last warning in one
  std::string with_data_;  // state of the receiver when data last came
  Clock::time_point first_chunk_, simulation_end_;
  std::atomic<std::int64_t> chunks_done_{0};
  bool started_ = false;
  bool simulation_ended_ = false;
  double last_data_s_ = 0;
};

}  // namespace ryle::pipeline
