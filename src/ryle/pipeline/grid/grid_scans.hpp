// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/engine/grid/grid.hpp"
#include "ryle/io/scan/scan_file.hpp"

/// Single-dish scans to maps and cubes: read, plan once, grid every channel, write. Samples are
/// gridded in blocks and channels in parts, whatever fits; blocks are added exactly
/// (grid_sums.hpp), so that no way of cutting a run changes a bit of its map.
namespace ryle::pipeline {

/// Samples of a block: 2^22, counted from the start of each file.
inline constexpr std::int64_t kGridBlockSamples = std::int64_t{1} << 22;
inline constexpr std::int64_t kMaxBlockSamples = std::int64_t{1} << 30;

struct GridProgress {
  std::string stage;       ///< "positions", "grid", "write"
  double done = 0;         ///< of 1
  double rate_per_s = 0;   ///< values (samples x channels) a second
  double remaining_s = 0;  ///< 0: not known
};

/// What a run holds in memory at most, item by item, before it begins.
struct GridPlan {
  std::vector<std::pair<std::string, std::int64_t>> memory_bytes;
  std::int64_t total_bytes = 0;
  /// On top of the total, and not within the limit: the program with its open files, and what its
  /// workers work with.
  std::int64_t program_bytes = 0;
  /// More, once a value is absent in one channel and not in another: within the limit, too.
  std::int64_t absent_bytes = 0;
  std::int64_t limit_bytes = 0;
  std::int64_t n_channels_at_a_time = 0, n_parts = 0, n_blocks = 0;
  /// The same of each CUDA device, and page-locked memory of the host for them.
  std::vector<std::pair<std::string, std::int64_t>> device_memory_bytes;
  std::int64_t device_total_bytes = 0, device_pinned_bytes = 0;
  /// Of medians that do not fit at once: samples a band of the map may see, and how many bands
  /// there are; 0: all at once.
  std::int64_t band_samples = 0, n_bands = 0;
  bool keeps_plans = false;  ///< geometry of all samples, made once for several parts
};

struct GridOptions {
  std::vector<std::string> files;
  ScanOptions scans;
  /// "auto", a FITS file whose map is to be made again, "center=70.04,36.29 size=55x10deg
  /// cell=2arcmin proj=SIN frame=icrs" (any part may be left out), HEALPix or sight lines
  /// (make_sky_cells()).
  std::string target = "auto";
  std::string kernel = "gauss";
  std::string channels;  ///< "10:20", "1419MHz:1422MHz"; empty: all
  std::string gains;     ///< file of BeamGains that kelvins are divided by
  /// What values are those of: "auto" multiplies values per beam by the solid angle of the map's
  /// beam over the telescope's, "none" nothing; "beam" divides every value by the same mean (or
  /// median) of the beam's response to a source in the cell, of the samples behind it.
  std::string normalize = "auto";
  double beam_fwhm_rad = 0;  ///< 0: as the file says, of a known dish, or of the samples' spacing
  std::string unit;          ///< of the values, whatever the files say; empty: theirs
  grid::Precision precision = grid::Precision::f32;
  std::string implementation = "auto";
  std::vector<int> devices;  ///< of implementation "cuda": channels are split over them; empty: 0
  grid::Finish finish;
  std::string output;   ///< value cube; NAME.weight.fits and NAME.count.fits beside it
  std::string picture;  ///< PNG of the mean over the channels
  std::string object;   ///< OBJECT of the header, title of the picture; empty: what the file says
  bool weights = true, noise = false;
  bool one_file = false;  ///< weights, counts and noise as extensions of the output
  bool velocity_axis = false;
  bool overwrite = false;
  std::int64_t memory_bytes = 0;  ///< most for data and sums at a time; 0: half of what is free
  std::int64_t block_samples = kGridBlockSamples;
  int n_workers = 0;

  std::string accumulate;  ///< file of sums to go on from, if there, and to leave behind
  std::string checkpoint;  ///< the same for a run that may be killed: removed when it is done
  bool resume = false;     ///< what is in the file of sums already is left out instead of rejected
  double checkpoint_interval_s = 60;
  /// This of so many runs, counted from 1: channels where there are enough, else blocks.
  std::int64_t shard = 1, n_shards = 1;

  std::string command_line;
  std::function<void(const GridPlan&)> on_plan;  ///< once, before anything is gridded
  std::function<void(const GridProgress&)> on_progress;
  const std::atomic<int>* stop = nullptr;  ///< not 0: end soon, leave no product
};

struct GridSummary {
  std::string format, implementation, kernel, projection, frame, unit;
  std::int64_t n_files = 0, n_samples = 0, n_channels = 0, width = 0, height = 0, covered_cells = 0;
  std::int64_t bad_positions = 0, out_of_reach = 0, n_candidates = 0;
  grid::AbsentCounts absent;
  double center_longitude_deg = 0, center_latitude_deg = 0, cell_deg = 0, beam_fwhm_deg = 0;
  double area_factor = 1;
  /// Busy time; reading and writing go on beside gridding, so that their sum may exceed elapsed_s.
  /// Gridding holds the transfers to and from devices.
  double read_s = 0, geometry_s = 0, transfer_s = 0, grid_s = 0, add_s = 0, write_s = 0,
         elapsed_s = 0;
  std::int64_t bytes_read = 0, bytes_written = 0, values_gridded = 0, peak_memory_bytes = 0;
  double peak_value = 0, peak_longitude_deg = 0, peak_latitude_deg = 0;
  GridPlan plan;
  bool stopped = false;  ///< by the caller: no product was written
  std::int64_t blocks_done = 0, blocks_resumed = 0;
  std::vector<std::string> products, warnings;
  std::vector<std::string> choices;  ///< what was taken where more than one thing was there
  std::vector<std::string> missing;  ///< from the sums: shards, samples of runs that ended early
  std::string beam;                  ///< the telescope's, and where it is from; empty: not known
};

/// Throws ConfigError for what makes no map, or does not fit into memory.
GridSummary grid_scans(const GridOptions& options);
/// As far as the plan: nothing is read but positions, nothing written.
GridSummary plan_grid(const GridOptions& options);

struct GridMergeOptions {
  std::vector<std::string> files;  ///< of sums, in any order
  std::string output, picture;
  std::string accumulate;  ///< file of the sums of all; empty: none
  grid::Finish finish;
  bool weights = true, noise = false, one_file = false, velocity_axis = false, overwrite = false;
  bool partial = false;  ///< a map without what is missing, which it names, in place of an error
  int n_workers = 0;
  std::string command_line;
  std::function<void(const GridProgress&)> on_progress;
  const std::atomic<int>* stop = nullptr;
};

/// The map of all samples in several files of sums: the bits of a single run. Throws ConfigError
/// for other targets, functions, weights or channels, for samples that two of them hold, and for
/// channels that not all samples reached, and for shards and samples of the runs that are missing.
GridSummary merge_grids(const GridMergeOptions& options);

}  // namespace ryle::pipeline
