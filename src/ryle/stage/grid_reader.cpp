// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/grid_reader.hpp"

#include "ryle/core/error.hpp"
#include "ryle/stage/stopwatch.hpp"

namespace ryle::stage {

namespace {
constexpr std::size_t kGridBuffers = 2;
}

GridReader::GridReader(GridInput& input, std::vector<GridJob> jobs)
    : input_(input), jobs_(std::move(jobs)), free_(kGridBuffers), ready_(kGridBuffers) {
  for (std::size_t k = 0; k < kGridBuffers; ++k) free_.offer(std::make_unique<GridBlockData>());
  thread_ = std::make_unique<StageThread>(
      "grid-read", [this](const std::stop_token&) { run(); },
      [this] {
        free_.close();
        ready_.close();
      });
}
GridReader::~GridReader() = default;

void GridReader::run() {
  try {
    for (const GridJob& job : jobs_) {
      auto data = free_.pop();
      if (!data || free_.closed()) break;
      {
        const Stopwatch watch(read_s_);
        const GridBlock& block = input_.blocks()[job.block];
        if (job.positions) input_.read_positions(block, **data);
        input_.read(block, job.channels.first, job.channels.last - job.channels.first, **data);
      }
      if (ready_.offer(std::move(*data)) != QueueResult::done) break;
    }
  } catch (...) {
    ready_.close();
    throw;
  }
  ready_.close();
}

std::unique_ptr<GridBlockData> GridReader::next() {
  auto data = ready_.pop();
  if (!data) {
    thread_->join();
    throw IoError(ExitCode::io, "reading ended before the last block of samples");
  }
  return std::move(*data);
}
void GridReader::give_back(std::unique_ptr<GridBlockData> data) { free_.offer(std::move(data)); }
double GridReader::read_s() {
  thread_->request_stop();  // a run that ends early leaves jobs
  thread_->join();
  return read_s_;
}

}  // namespace ryle::stage
