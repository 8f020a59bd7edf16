// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_reader.hpp"

#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {

namespace {
constexpr std::size_t kGridBuffers = 2;
}

GridReader::GridReader(GridInput& input, std::vector<GridJob> jobs, int device)
    : input_(input),
      device_(device),
      jobs_(std::move(jobs)),
      free_(kGridBuffers),
      ready_(kGridBuffers) {
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
    if (device_ >= 0) {
      const OnDevice scope(Queue::cuda(device_));
      read_jobs();
    } else {
      read_jobs();
    }
  } catch (...) {
    ready_.close();
    throw;
  }
  ready_.close();
}

void GridReader::read_jobs() {
  for (const GridJob& job : jobs_) {
    auto data = free_.pop();
    if (!data || free_.closed()) return;
    {
      const Stopwatch watch(read_s_);
      const GridBlock& block = input_.blocks()[job.block];
      if (job.positions) input_.read_positions(block, **data);
      input_.read(block, job.channels.first, job.channels.last - job.channels.first, **data);
      if (device_ >= 0) (*data)->values.lock_pages();
    }
    if (ready_.offer(std::move(*data)) != QueueResult::done) return;
  }
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

}  // namespace ryle::pipeline
