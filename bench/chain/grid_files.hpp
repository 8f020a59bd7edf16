// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "bench/bench.hpp"

namespace ryle::bench {

/// Case A of the gridder from a file to files: HEGrid's HDF5 that was just written, and therefore
/// is in the page cache, to a FITS cube, its weights and counts, as `ryle grid` makes them.
struct GridFilesOptions {
  std::string folder = "/dev/shm";  ///< for the input and what is made of it; 0.8 GB
  std::int64_t n_channels = 50;
};

/// Verified: cells of the files against the direct sum. `first_ms` is the first run of the process,
/// with all that is allocated once but without `context_ms`, the start of the CUDA device.
void bench_grid_files(const Options& options, const GridFilesOptions& files, const Emit& emit);

}  // namespace ryle::bench
