// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

/// One file per sub-command: add_NAME() declares its options and sets `action` when the user chose
/// it.
namespace ryle::app {

/// Options every sub-command shares and the way it reports.
struct Context {
  std::vector<std::string> arguments;  ///< the full command line
  bool json = false;
  bool quiet = false;
  bool debug = false;
  std::string log;              ///< of --log; empty: what the observation file says
  std::function<int()> action;  ///< set by the chosen sub-command; returns the exit code
  std::string command_line() const;
};

void add_run(CLI::App& app, Context& context);
void add_correlate(CLI::App& app, Context& context);
void add_recover(CLI::App& app, Context& context);
void add_image(CLI::App& app, Context& context);
void add_apply(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_flag(CLI::App& app, Context& context);
void add_search(CLI::App& app, Context& context);
void add_grid(CLI::App& app, Context& context);
void add_fold(CLI::App& app, Context& context);
void add_trigger(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_command(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_capture(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_beamform(CLI::App& app, Context& context);
void add_beampattern(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_manual(CLI::App& app, Context& context);

/// A finite number from `low` to `high`; anything else is a usage error that says the range.
/// CLI::Range takes nan.
CLI::Validator number_in(double low, double high);
/// From 0 on; above 0. For options whose default is not a number that can be given.
CLI::Validator number_from_zero();
CLI::Validator number_above_zero(double high = std::numeric_limits<double>::infinity());

/// Number of SIGINT/SIGTERM received since install_signal_handlers(); a second one ends the process
/// with 130/143.
std::atomic<int>& signal_count();
void install_signal_handlers();

/// A word as a shell takes it, between single quotes where it must be.
std::string shell_quoted(const std::string& word);

/// "12.3 MB", "1.20 GiB".
std::string bytes_text(double bytes);

}  // namespace ryle::app
