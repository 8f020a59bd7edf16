// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ryle/pipeline/grid/grid_input.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {

/// A block for some channels (as in the files).
struct GridJob {
  std::size_t part = 0, block = 0;
  ChannelRange channels;
  bool positions = true;  ///< to be read, too
};

/// Reads the next job while the one before is gridded: two buffers, no more. A thread of its own
/// ("grid-read") reads in the order of the jobs; the gridding thread calls next() and give_back().
/// Ends after the last job, or when reading throws, which next() rethrows.
class GridReader {
 public:
  /// @param device of CUDA that copies from page-locked buffers; less than 0: plain ones
  GridReader(GridInput& input, std::vector<GridJob> jobs, int device = -1);
  ~GridReader();
  GridReader(const GridReader&) = delete;
  GridReader& operator=(const GridReader&) = delete;
  /// The next job's data, in the order of the jobs; rethrows what reading threw.
  std::unique_ptr<GridBlockData> next();
  void give_back(std::unique_ptr<GridBlockData> data);
  /// After the last job. @unit s
  double read_s();

 private:
  void run();
  void read_jobs();
  GridInput& input_;
  int device_;
  std::vector<GridJob> jobs_;
  double read_s_ = 0;
  BoundedQueue<std::unique_ptr<GridBlockData>> free_, ready_;
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle::pipeline
