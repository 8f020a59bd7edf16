// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "apps/ryle/command.hpp"
#include "ryle/pipeline/run/run.hpp"

namespace ryle::app {

/// --json, -q: on every sub-command.
void add_common(CLI::App& sub, Context& context);

/// --simulate KEY=VALUE of `ryle run` and `ryle simulate`, as overrides of [simulator] behind the
/// others.
std::vector<std::string> with_simulator_keys(std::vector<std::string> overrides,
                                             const std::vector<std::string>& keys);
inline constexpr const char* kSimulatorKeysHelp =
    "a key of [simulator]: loss=0.01, reorder=0.02, duplicate=0.001, bursts=0.0001, "
    "dying_receiver=1, clock_step_s=0.5, sky=moving ... (repeatable)";

/// Progress on stderr: on a terminal one line that rewrites itself. Otherwise the first line at
/// once, then one a minute, and the last; a change of state and a warning are written when they
/// come. Nothing with -q.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Context& context);
  void show(const pipeline::Progress& progress);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void write();

  bool silent_;
  bool any_ = false, waiting_ = false;  // a line is out; the last record is in none
  pipeline::Progress last_;
  IngestCounters shown_;  // of the last line
  std::string state_;
  Clock::time_point written_;
};

/// Progress of one long task of known length, on stderr: silent for 2 s, then what is done and an
/// estimate of the rest; one line that rewrites itself on a terminal, else one a minute. Nothing
/// with -q.
class TaskProgress {
 public:
  TaskProgress(const Context& context, std::string task);
  ~TaskProgress();
  TaskProgress(const TaskProgress&) = delete;
  TaskProgress& operator=(const TaskProgress&) = delete;
  /// Call it often, with the share that is done; false once a signal asks to stop.
  bool go_on(double done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string task_;
  bool silent_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

/// Prints the summary (text or one JSON object) and returns the exit code: 0; 74 when a product
/// failed; 1 with `strict` when samples, inputs, chunks or integrations were lost.
int report_summary(const Context& context, const pipeline::RunSummary& summary, bool strict);

/// Runs an observation with progress on stderr until it ends or a signal stops it, then
/// report_summary().
int run_and_report(const Context& context, const pipeline::ObservationConfig& config, bool strict);

}  // namespace ryle::app
