// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Benchmarks behind `ryle bench`. Rules (architecture.md 9, correlate.md 10): the result is
/// verified against the reference before timing (a failed check gives no rate), data are random,
/// buffers rotate beyond the last-level cache, only useful operations count, one JSON object a line
/// with the same fields for every engine.
namespace ryle::bench {

/// One measured case.
struct Result {
  std::string engine;          ///< "correlate", "channelize", "ingest", "path"
  std::string implementation;  ///< "correlate/cpu/avx512_vnni"
  std::string device;          ///< "Intel Xeon ..., 1 core" / "NVIDIA H200"
  std::vector<std::pair<std::string, double>> sizes;  ///< the case: {"n_inputs", 64}, ...
  double median_s = 0;
  double min_s = 0;
  double useful_ops = 0;         ///< per timed run
  double bytes = 0;              ///< moved per timed run (inputs read once + outputs written once)
  double rate = 0;               ///< in rate_unit, from the median
  std::string rate_unit;         ///< "GOPS", "Gsamples/s", "Gb/s", "x real time"
  double roofline_fraction = 0;  ///< of the ceiling measured in the same run
  std::string roofline;          ///< which ceiling: "vpdpbusd 1 core 512.3 GOPS"
  bool verified = false;         ///< result compared with the reference before timing
};

/// The result as one JSON object on one line (result.cpp): the row of bench/results/*.json.
std::string to_json(const Result& result);

struct Options {
  std::string implementation = "auto";  ///< or a name, or "all"
  int n_workers = 1;
  bool quick = false;  ///< one small case, for tests
  double seconds_per_case = 0.5;
  std::string path = "all";  ///< image: one path by name, "w-stacked" included
  bool calibrate = false;    ///< image: measure the rates of the planner first and keep them
  std::function<void(const std::string&)> notice = [](const std::string&) {};
};

using Emit = std::function<void(const Result&)>;

void bench_correlate(const Options& options, const Emit& emit);
/// The published GPU correlators, level by level (docs/levels.md). Throws UnsupportedError without
/// a CUDA build and device.
void bench_levels(const Options& options, const Emit& emit);
/// Gains of every channel from sums of visibilities and model: StEFCal, 60 rounds.
void bench_calibrate(const Options& options, const Emit& emit);
void bench_channelize(const Options& options, const Emit& emit);
/// BEST-2 heaps in memory to beams: gate G5 of the beamformer.
void bench_beamform(const Options& options, const Emit& emit);
/// Scattered samples in memory to maps in memory: cases A, B and H of grid.md.
void bench_grid(const Options& options, const Emit& emit);
void bench_ingest(const Options& options, const Emit& emit);
/// Voltages or visibilities in memory to all-sky images; rows carry the planner's prediction.
void bench_image(const Options& options, const Emit& emit);
/// Visibilities in memory to a dirty image by w-stacking, at three accuracies.
void bench_sample_image(const Options& options, const Emit& emit);
/// The block of Magro 2014: exact dedispersion, boxcars and peaks.
void bench_search(const Options& options, const Emit& emit);
void bench_path(const Options& options,
                const Emit& emit);  ///< MWA-32T samples in memory to visibilities

/// Runs `body` until `seconds` have passed (at least 5 times) and returns {median_s, min_s} of one
/// run.
std::pair<double, double> time_runs(double seconds, const std::function<void()>& body);
/// Single-core ceilings measured now, 2 operations per multiply-add, in operations per second; 0 =
/// not available here.
double ceiling_vpdpbusd_ops();
double ceiling_amx_int8_ops();
double ceiling_fma_f32_ops();
/// "Intel(R) Xeon(R) ..., 1 core".
std::string device_description(int n_workers);

}  // namespace ryle::bench
