// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "apps/ryle/command.hpp"
#include "ryle/stage/run.hpp"

namespace ryle::app {

/// --json, -q: on every sub-command.
void add_common(CLI::App& sub, Context& context);

/// Progress on stderr: one line that rewrites itself on a terminal, one line a second otherwise;
/// nothing with -q.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Context& context);
  void show(const stage::Progress& progress);
  void finish();

 private:
  bool silent_;
  bool terminal_;
  bool open_line_ = false;
};

/// Prints the summary (text or one JSON object) and returns the exit code: 0; 74 when a product
/// failed; 1 with `strict` when data were lost or real time was missed.
int report_summary(const Context& context, const stage::RunSummary& summary, bool strict);

/// Runs an observation with progress on stderr until it ends or a signal stops it, then
/// report_summary().
int run_and_report(const Context& context, const stage::ObservationConfig& config, bool strict);

}  // namespace ryle::app
