// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <string>

#include "apps/ryle/command.hpp"
#include "ryle/pipeline/run/run.hpp"

namespace ryle::app {

/// --json, -q: on every sub-command.
void add_common(CLI::App& sub, Context& context);

/// Progress on stderr: one line that rewrites itself on a terminal, one line a second otherwise;
/// nothing with -q.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Context& context);
  void show(const pipeline::Progress& progress);
  void finish();

 private:
  bool silent_;
  bool terminal_;
  bool open_line_ = false;
};

/// Progress of one long task of known length, on stderr: silent for 2 s, then what is done and an
/// estimate of the rest; one line that rewrites itself on a terminal, else one in 5 s. Nothing with
/// -q.
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
  bool terminal_;
  bool open_line_ = false;
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
