// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ryle/grid_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/ryle/log.hpp"
#include "ryle/core/error.hpp"

namespace ryle::app {
namespace {

using GridJson = nlohmann::ordered_json;

GridJson number_or_null(double x) { return std::isfinite(x) ? GridJson(x) : GridJson(nullptr); }

GridJson plan_json(const pipeline::GridPlan& p) {
  GridJson memory;
  for (const auto& [what, bytes] : p.memory_bytes) memory[what] = bytes;
  return {{"memory_bytes", memory},
          {"total_memory_bytes", p.total_bytes},
          {"program_bytes", p.program_bytes},
          {"absent_bytes", p.absent_bytes},
          {"limit_bytes", p.limit_bytes},
          {"channels_at_a_time", p.n_channels_at_a_time},
          {"parts", p.n_parts},
          {"bands", p.n_bands},
          {"blocks", p.n_blocks}};
}

void print_grid_json(const pipeline::GridSummary& s) {
  const GridJson json{{"format", s.format},
                      {"implementation", s.implementation},
                      {"kernel", s.kernel},
                      {"unit", s.unit},
                      {"n_files", s.n_files},
                      {"n_samples", s.n_samples},
                      {"n_channels", s.n_channels},
                      {"width", s.width},
                      {"height", s.height},
                      {"projection", s.projection},
                      {"frame", s.frame},
                      {"cell_deg", s.cell_deg},
                      {"beam_fwhm_deg", s.beam_fwhm_deg},
                      {"area_factor", s.area_factor},
                      {"covered_cells", s.covered_cells},
                      {"absent",
                       {{"bad_position", s.bad_positions},
                        {"out_of_reach", s.out_of_reach},
                        {"nan_value", s.absent.nan_value},
                        {"inf_value", s.absent.inf_value},
                        {"bad_weight", s.absent.bad_weight},
                        {"flagged", s.absent.flagged}}},
                      {"peak",
                       {{"value", s.peak_value},
                        {"longitude_deg", number_or_null(s.peak_longitude_deg)},
                        {"latitude_deg", number_or_null(s.peak_latitude_deg)}}},
                      {"seconds",
                       {{"read", s.read_s},
                        {"geometry", s.geometry_s},
                        {"transfer", s.transfer_s},
                        {"grid", s.grid_s},
                        {"add", s.add_s},
                        {"write", s.write_s},
                        {"elapsed", s.elapsed_s}}},
                      {"bytes_read", s.bytes_read},
                      {"bytes_written", s.bytes_written},
                      {"values_gridded", s.values_gridded},
                      {"blocks_done", s.blocks_done},
                      {"blocks_resumed", s.blocks_resumed},
                      {"plan", plan_json(s.plan)},
                      {"peak_memory_bytes", s.peak_memory_bytes},
                      {"stopped", s.stopped},
                      {"beam", s.beam},
                      {"choices", s.choices},
                      {"missing", s.missing},
                      {"products", s.products},
                      {"warnings", s.warnings}};
  fmt::print("{}\n", json.dump());
}

void print_stage(const char* name, double busy_s, double amount, const char* unit) {
  if (busy_s <= 0 && amount <= 0) return;
  fmt::print("  {:<10}{:9.3f} s", name, busy_s);
  if (amount > 0 && busy_s > 0)
    fmt::print("  {:>10}  {:8.1f} M{}/s", bytes_text(amount), amount / busy_s * 1e-6, unit);
  fmt::print("\n");
}

void print_stages(const pipeline::GridSummary& s) {
  print_stage("read", s.read_s, static_cast<double>(s.bytes_read), "B");
  print_stage("geometry", s.geometry_s, 0, "");
  print_stage("transfer", s.transfer_s, 0, "");
  fmt::print("  {:<10}{:9.3f} s", "grid", s.grid_s);
  if (s.values_gridded > 0 && s.grid_s > 0)
    fmt::print("  {:>10.4g}  {:8.1f} Mvalues/s", static_cast<double>(s.values_gridded),
               static_cast<double>(s.values_gridded) / s.grid_s * 1e-6);
  fmt::print("\n");
  print_stage("add", s.add_s, 0, "");
  print_stage("write", s.write_s, static_cast<double>(s.bytes_written), "B");
  fmt::print("  {:<10}{:9.3f} s  memory {} at most, {} planned\n", "in all", s.elapsed_s,
             bytes_text(static_cast<double>(s.peak_memory_bytes)),
             bytes_text(static_cast<double>(s.plan.total_bytes + s.plan.program_bytes)));
}

std::string cuts_text(const pipeline::GridPlan& p) {
  return fmt::format("{} block{} of samples, {} channel{} at a time in {} part{}", p.n_blocks,
                     p.n_blocks == 1 ? "" : "s", p.n_channels_at_a_time,
                     p.n_channels_at_a_time == 1 ? "" : "s", p.n_parts, p.n_parts == 1 ? "" : "s");
}

std::string head_of(const pipeline::GridSummary& s, const std::vector<std::string>& files) {
  std::string name = files[0];
  if (files.size() > 1) name += fmt::format(" and {} more", files.size() - 1);
  std::string text =
      fmt::format("{}: {}, {} samples x {} channel{} -> {} {}", name, s.format, s.n_samples,
                  s.n_channels, s.n_channels == 1 ? "" : "s", s.frame, s.projection);
  if (s.cell_deg > 0) text += fmt::format(", cells of {:.4g} arcmin", s.cell_deg * 60);
  return text + fmt::format(", {}    grid/{}", s.kernel, s.implementation);
}

void print_grid_text(const pipeline::GridSummary& s, const std::vector<std::string>& files) {
  fmt::print("{}\n", head_of(s, files));
  for (const auto& w : s.warnings) fmt::print("warning: {}\n", w);
  for (const auto& m : s.missing) fmt::print("warning: missing: {}\n", m);
  for (const auto& c : s.choices) fmt::print("{}\n", c);
  if (!s.beam.empty()) fmt::print("{}\n", s.beam);
  if (s.covered_cells > 0)
    fmt::print("{} of {} cells covered; brightest {:.5g}{} at {:.4f} {:.4f} deg\n", s.covered_cells,
               s.width * s.height, s.peak_value, s.unit.empty() ? s.unit : " " + s.unit,
               s.peak_longitude_deg, s.peak_latitude_deg);
  if (s.area_factor != 1)
    fmt::print("values multiplied by {:.4f}, the beam of the map over the telescope's\n",
               s.area_factor);
  const auto& a = s.absent;
  if (s.bad_positions + s.out_of_reach > 0)
    fmt::print("samples without a place {}, out of reach {}\n", s.bad_positions, s.out_of_reach);
  if (a.nan_value + a.inf_value + a.bad_weight + a.flagged > 0)
    fmt::print("values NaN {}, infinite {}, without a weight {}, flagged {}\n", a.nan_value,
               a.inf_value, a.bad_weight, a.flagged);
  if (s.blocks_resumed > 0)
    fmt::print("{} blocks of samples were there already, {} were gridded\n", s.blocks_resumed,
               s.blocks_done);
  print_stages(s);
  for (const auto& p : s.products) fmt::print("  {}\n", p);
}

}  // namespace

GridProgressBar::GridProgressBar(const Context& context)
    : shown_(!context.quiet && !context.json && Log::get().has_status_line()) {}

void GridProgressBar::show(const pipeline::GridProgress& p) {
  if (!shown_) return;
  constexpr int kWidth = 28;
  const int full = static_cast<int>(kWidth * std::clamp(p.done, 0.0, 1.0));
  std::string line = fmt::format("[{}{}] {:3.0f} %  {}", std::string(full, '#'),
                                 std::string(kWidth - full, '-'), 100 * p.done, p.stage);
  if (p.rate_per_s > 0) line += fmt::format("  {:.1f} Mvalues/s", p.rate_per_s * 1e-6);
  if (p.remaining_s > 0) {
    const auto s = static_cast<long>(p.remaining_s);
    line += fmt::format("  {}:{:02}:{:02} left", s / 3600, s / 60 % 60, s % 60);
  }
  Log::get().status(line);
}

void GridProgressBar::finish() { Log::get().end_status(true); }

int report_grid(const Context& context, const pipeline::GridSummary& summary,
                const std::vector<std::string>& files, const std::string& sums) {
  if (context.json)
    print_grid_json(summary);
  else if (!context.quiet && !summary.stopped)
    print_grid_text(summary, files);
  std::fflush(stdout);
  if (!summary.stopped) return 0;
  Log::get().line(
      LogLevel::warning, "stopped",
      fmt::format("stopped by a signal after {} blocks: no map was written{}", summary.blocks_done,
                  sums.empty() ? "" : "; " + sums + " has their sums, --resume goes on"));
  return static_cast<int>(ExitCode::try_again);
}

void announce_grid_plan(const Context& context, const pipeline::GridPlan& p) {
  if (context.json || context.quiet) return;
  Log::get().begin();
  Log::get().line(LogLevel::info, "plan",
                  fmt::format("{}: {} of memory, {} may be used", cuts_text(p),
                              bytes_text(static_cast<double>(p.total_bytes)),
                              bytes_text(static_cast<double>(p.limit_bytes))),
                  {{"total_bytes", p.total_bytes}, {"limit_bytes", p.limit_bytes}});
}

void print_grid_plan(const Context& context, const pipeline::GridSummary& s) {
  const pipeline::GridPlan& p = s.plan;
  if (context.json) {
    GridJson json = plan_json(p);
    json["n_samples"] = s.n_samples;
    json["n_channels"] = s.n_channels;
    json["projection"] = s.projection;
    json["kernel"] = s.kernel;
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{} samples x {} channels -> {} {}, {}\n", s.n_samples, s.n_channels, s.frame,
             s.projection, s.kernel);
  fmt::print("{}\n", cuts_text(p));
  if (p.n_bands > 0)
    fmt::print("medians in {} bands of the map, at most {} samples each\n", p.n_bands,
               p.band_samples);
  for (const auto& [what, bytes] : p.memory_bytes)
    fmt::print("  {:<32}{:>12}\n", what, bytes_text(static_cast<double>(bytes)));
  fmt::print("  {:<32}{:>12}\n", "in all", bytes_text(static_cast<double>(p.total_bytes)));
  if (p.absent_bytes > 0)
    fmt::print("  {:<32}{:>12}\n", "more where values are absent",
               bytes_text(static_cast<double>(p.absent_bytes)));
  fmt::print("  {:<32}{:>12}\n", "limit", bytes_text(static_cast<double>(p.limit_bytes)));
  if (p.device_memory_bytes.empty()) return;
  fmt::print("of each device:\n");
  for (const auto& [what, bytes] : p.device_memory_bytes)
    fmt::print("  {:<32}{:>12}\n", what, bytes_text(static_cast<double>(bytes)));
  fmt::print("  {:<32}{:>12}\n", "in all", bytes_text(static_cast<double>(p.device_total_bytes)));
  fmt::print("  {:<32}{:>12}\n", "page-locked on the host",
             bytes_text(static_cast<double>(p.device_pinned_bytes)));
}

}  // namespace ryle::app
