// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "apps/ryle/command.hpp"
#include "ryle/pipeline/grid/grid_scans.hpp"

namespace ryle::app {

/// A line that rewrites itself, on a terminal's standard error only; nothing with -q.
class GridProgressBar {
 public:
  explicit GridProgressBar(const Context& context);
  ~GridProgressBar() { finish(); }
  GridProgressBar(const GridProgressBar&) = delete;
  GridProgressBar& operator=(const GridProgressBar&) = delete;
  void show(const pipeline::GridProgress& progress);
  void finish();

 private:
  bool shown_;
};

/// Text or one JSON object; the exit code.
int report_grid(const Context& context, const pipeline::GridSummary& summary,
                const std::vector<std::string>& files, const std::string& sums);
void print_grid_plan(const Context& context, const pipeline::GridSummary& summary);
/// One line on standard error before the work begins; nothing with -q or --json.
void announce_grid_plan(const Context& context, const pipeline::GridPlan& plan);

}  // namespace ryle::app
