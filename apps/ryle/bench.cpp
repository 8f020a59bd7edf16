// SPDX-License-Identifier: BSD-3-Clause
#include "bench/bench.hpp"
#include "bench/chain/chain.hpp"
#include "bench/chain/devices.hpp"
#include "bench/chain/grid_files.hpp"
#include "bench/chain/nodes.hpp"
#include "bench/chain/stream.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "apps/ryle/command.hpp"
#include "apps/ryle/log.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"

namespace ryle::app {
namespace {

void print_json(const bench::Result& r) {
  fmt::print("{}\n", bench::to_json(r));
  std::fflush(stdout);
}

void print_text(const bench::Result& r) {
  std::string sizes;
  for (const auto& [name, value] : r.sizes) sizes += fmt::format("{}={:g} ", name, value);
  fmt::print("{:<34} {:<52} {:10.3f} {:<12} {:5.1f} % of {}{}\n", r.implementation, sizes, r.rate,
             r.rate_unit, 100 * r.roofline_fraction, r.roofline,
             r.verified ? "" : "   NOT VERIFIED");
  std::fflush(stdout);
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand("bench", "measure an engine: result verified first, then timed");
  auto engine = std::make_shared<std::string>();
  auto options = std::make_shared<bench::Options>();
  auto files = std::make_shared<bench::GridFilesOptions>();
  files->folder.clear();
  sub->add_option(
         "engine", *engine,
         "beamform, calibrate, chain (beams and search on a GPU), correlate, channelize, devices "
         "(X on all "
         "GPUs), grid, image, ingest, levels (the published correlators of GPUs), nodes (the "
         "products "
         "of --observation on one stream), path, search or stream (F and X of samples in host "
         "memory "
         "on a GPU)")
      ->required()
      ->check(CLI::IsMember({"beamform", "calibrate", "chain", "correlate", "channelize", "devices",
                             "grid", "image", "ingest", "levels", "nodes", "path", "search",
                             "stream"}));
  sub->add_option("--implementation", options->implementation,
                  "auto, all or a name that `ryle info` lists");
  sub->add_option("--workers", options->n_workers, "threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_option("--seconds", options->seconds_per_case, "time per case")->capture_default_str();
  sub->add_flag("--quick", options->quick, "one small case");
  sub->add_option("--path", options->path,
                  "image: all, efield, vis-grid, vis-dft, efield-dft or w-stacked")
      ->capture_default_str();
  sub->add_flag("--calibrate", options->calibrate,
                "image: measure the rates that the planner uses and keep them for this machine");
  sub->add_flag("--tune", options->calibrate,
                "beamform, correlate: on a GPU, every tuning of the search instead of the table's");
  sub->add_option(
      "--files", files->folder,
      "grid: from an HDF5 file to FITS files in this folder, such as /dev/shm, instead");
  auto observation = std::make_shared<std::string>();
  sub->add_option("--observation", *observation,
                  "nodes: an observation whose spectra come from outside");
  add_common(*sub, context);
  sub->callback([&context, engine, options, files, observation] {
    context.action = [&context, engine, options, files, observation] {
      bool all_verified = true;
      const bench::Emit emit = [&](const bench::Result& r) {
        all_verified = all_verified && r.verified;
        context.json ? print_json(r) : print_text(r);
      };
      options->notice = [](const std::string& text) {
        Log::get().line(LogLevel::info, "note", text);
      };
      if (*engine == "beamform") bench::bench_beamform(*options, emit);
      if (*engine == "calibrate") bench::bench_calibrate(*options, emit);
      if (*engine == "chain") bench::bench_chain(*options, {}, emit);
      if (*engine == "correlate") bench::bench_correlate(*options, emit);
      if (*engine == "channelize") bench::bench_channelize(*options, emit);
      if (*engine == "devices") bench::bench_devices(*options, emit);
      if (*engine == "grid" && files->folder.empty()) bench::bench_grid(*options, emit);
      if (*engine == "grid" && !files->folder.empty())
        bench::bench_grid_files(*options, *files, emit);
      if (*engine == "image") bench::bench_image(*options, emit);
      if (*engine == "ingest") bench::bench_ingest(*options, emit);
      if (*engine == "levels") bench::bench_levels(*options, emit);
      if (*engine == "nodes") bench::bench_nodes(*observation, *options, emit);
      if (*engine == "path") bench::bench_path(*options, emit);
      if (*engine == "stream") bench::bench_stream(*options, emit);
      if (*engine == "search") bench::bench_search(*options, emit);
      return all_verified ? 0 : static_cast<int>(ExitCode::check_failed);
    };
  });
}

}  // namespace ryle::app
