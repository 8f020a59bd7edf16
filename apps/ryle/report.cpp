// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ryle/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/ryle/log.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"

namespace ryle::app {
namespace {

CLI::Validator number_that(const std::string& range, const std::function<bool(double)>& holds) {
  const auto check = [range, holds](const std::string& text) {
    double value = 0;
    if (parse_finite(text, value) && holds(value)) return std::string();
    return "\"" + text + "\" is not a number " + range;
  };
  return CLI::Validator(check, "NUMBER " + range);
}

}  // namespace

CLI::Validator number_in(double low, double high) {
  return number_that(fmt::format("from {:.10g} to {:.10g}", low, high),
                     [=](double v) { return v >= low && v <= high; });
}

CLI::Validator number_from_zero() {
  return number_that("from 0 on", [](double v) { return v >= 0; });
}

CLI::Validator number_above_zero(double high) {
  const std::string end = std::isfinite(high) ? fmt::format(" and up to {:.10g}", high) : "";
  return number_that("above 0" + end, [=](double v) { return v > 0 && v <= high; });
}

void add_common(CLI::App& sub, Context& context) {
  sub.add_flag("--json", context.json, "results as JSON on standard output");
  sub.add_flag("-q,--quiet", context.quiet, "no progress");
  sub.add_option("--log", context.log,
                 "what is said on standard error: text, or json, an object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->each(choose_log);
}

std::vector<std::string> with_simulator_keys(std::vector<std::string> overrides,
                                             const std::vector<std::string>& keys) {
  for (const auto& key : keys) overrides.push_back("simulator." + key);
  return overrides;
}

ProgressPrinter::ProgressPrinter(const Context& context) : silent_(context.quiet) {
  Log::get().begin();
}

void ProgressPrinter::show(const pipeline::Progress& p) {
  if (silent_) return;
  Log& log = Log::get();
  if (!p.warning.empty()) log.line(LogLevel::warning, "warning", p.warning);
  last_ = p;
  waiting_ = true;
  if (log.has_status_line()) {
    log.status(to_text(p, shown_));
    shown_ = p.ingest;
    state_ = p.state;
    return;
  }
  const bool due = !any_ || p.state != state_ || !p.warning.empty() ||
                   Clock::now() - written_ >= std::chrono::minutes(1);
  if (due) write();
}

void ProgressPrinter::write() {
  const bool changed = any_ && last_.state != state_;
  const bool well = last_.state == "OK" || last_.state == "STARTING";
  Log::get().line(well ? LogLevel::info : LogLevel::warning, changed ? "state" : "progress",
                  to_text(last_, shown_), nlohmann::ordered_json::parse(to_json(last_)));
  shown_ = last_.ingest;
  state_ = last_.state;
  written_ = Clock::now();
  any_ = true;
  waiting_ = false;
}

void ProgressPrinter::finish() {
  if (waiting_ && !silent_ && !Log::get().has_status_line()) write();
  Log::get().end_status();
}

TaskProgress::TaskProgress(const Context& context, std::string task)
    : task_(std::move(task)), silent_(context.quiet) {
  Log::get().begin();
}

TaskProgress::~TaskProgress() { Log::get().end_status(); }

bool TaskProgress::go_on(double done) {
  constexpr double kFirst_s = 2;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const auto now = Clock::now();
  const double elapsed_s = seconds(now - start_);
  Log& log = Log::get();
  const bool due = last_ == start_ ? elapsed_s >= kFirst_s
                                   : seconds(now - last_) >= (log.has_status_line() ? 0.5 : 60);
  if (!silent_ && due) {
    last_ = now;
    const double left_s = done > 0 ? elapsed_s * (1 - done) / done : 0;
    std::string line = fmt::format("{}: {:.0f} % in {:.0f} s", task_, 100 * done, elapsed_s);
    if (done > 0) line += fmt::format(", about {:.0f} s to go", left_s);
    if (log.has_status_line()) {
      log.status(line);
    } else {
      log.line(LogLevel::info, "progress", line,
               {{"task", task_},
                {"done_fraction", done},
                {"elapsed_s", elapsed_s},
                {"remaining_s", left_s}});
    }
  }
  return signal_count() == 0;
}

namespace {

void print_text(const pipeline::RunSummary& s) {
  std::uint64_t rejected = 0;
  for (const auto& [reason, count] : s.packets_rejected) rejected += count;
  fmt::print(
      "\n{:.2f} s of data in {:.2f} s ({:.2f}x real time), {} integrations, engines {:.1f}x real "
      "time\n",
      s.data_s, s.elapsed_s, s.real_time_factor, s.integrations, s.engine_margin);
  if (s.packets_received > 0) {
    fmt::print(
        "packets: {} received = {} used + {} rejected; {} samples lost, {} dropped by the kernel\n",
        s.packets_received, s.packets_used, rejected, s.lost_samples, s.kernel_drops);
    for (const auto& [reason, count] : s.packets_rejected) {
      if (count == 0) continue;
      fmt::print("  rejected, {}: {}", reason, count);
      if (const auto last = s.last_rejected.find(reason); last != s.last_rejected.end()) {
        const auto& p = last->second;
        fmt::print("; the last from {}", p.sender);
        if (p.bytes > 0) fmt::print(", {} bytes: {}", p.bytes, p.header);
      }
      fmt::print("\n");
    }
  }
  if (s.undelivered_samples > 0)
    fmt::print("{} samples of inputs that never delivered, which are not counted as lost\n",
               s.undelivered_samples);
  if (s.rejected_connections > 0)
    fmt::print("refused {} connections, the last from {}\n", s.rejected_connections,
               s.last_rejected_connection);
  if (s.senders_replaced > 0)
    fmt::print("{} times a stream went to another sender that contradicted its first\n",
               s.senders_replaced);
  if (s.dropped_chunks > 0)
    fmt::print("dropped {} whole chunks: the engines did not keep up\n", s.dropped_chunks);
  if (s.dropped_dumps > 0)
    fmt::print("{} integrations are missing in products: the disk {}\n", s.dropped_dumps,
               s.errors.empty() ? "did not keep up" : "failed, see the errors");
  if (s.image) fmt::print("{}", pipeline::to_text(*s.image));
  if (s.beams) fmt::print("{}", pipeline::to_text(*s.beams));
  if (s.voltages) fmt::print("{}", pipeline::to_text(*s.voltages));
  fmt::print("ran:");
  for (const auto& name : s.implementations) fmt::print(" {}", name);
  fmt::print("\nmemory: {} at most, {} planned for rings and engines\n",
             bytes_text(static_cast<double>(s.peak_memory_bytes)),
             bytes_text(static_cast<double>(s.planned_memory_bytes)));
  if (s.stopped_by_signal) fmt::print("stopped by a signal; whole integrations were published\n");
  for (const auto& m : s.not_made) fmt::print("not made: {}\n", m);
  for (const auto& w : s.warnings) fmt::print("warning: {}\n", w);
  for (const auto& e : s.errors) fmt::print("error: {}\n", e);
  if (!s.products.empty()) fmt::print("products:\n");
  for (const auto& p : s.products) fmt::print("  {}\n", p);
}

}  // namespace

int report_summary(const Context& context, const pipeline::RunSummary& summary, bool strict) {
  if (context.json) {
    fmt::print("{}\n", pipeline::to_json(summary));
  } else {
    print_text(summary);
  }
  std::fflush(stdout);
  if (!summary.errors.empty()) return static_cast<int>(ExitCode::io);
  if (!summary.not_made.empty())
    return static_cast<int>(summary.packets_received > 0 || summary.data_s > 0
                                ? ExitCode::bad_data
                                : ExitCode::no_input);
  const bool lost = summary.lost_samples > 0 || summary.undelivered_samples > 0 ||
                    summary.dropped_chunks > 0 || summary.dropped_dumps > 0;
  return strict && lost ? static_cast<int>(ExitCode::check_failed) : 0;
}

int run_and_report(const Context& context, const pipeline::ObservationConfig& config, bool strict) {
  if (context.log.empty()) choose_log(config.runtime.log);
  pipeline::RunOptions options;
  options.command_line = context.command_line();
  options.stop = &signal_count();
  ProgressPrinter progress(context);
  options.on_progress = [&](const pipeline::Progress& p) { progress.show(p); };
  const auto summary = pipeline::run_observation(config, options);
  progress.finish();
  return report_summary(context, summary, strict);
}

}  // namespace ryle::app
