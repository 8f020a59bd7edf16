// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ryle/engine/grid/order_statistics.hpp"
#include "ryle/stage/grid_setup.hpp"

namespace ryle::stage {

/// Maps of medians: all samples at once, some channels at a time.
class OrderRun {
 public:
  OrderRun(Queue& queue, const GridOptions& options, GridSetup& setup,
           std::vector<ChannelRange> parts, GridSummary& summary);
  void grid(const std::function<void(std::vector<grid::Plane>)>& append,
            const std::function<void(double)>& progress);

 private:
  void make_plan();
  void read(ChannelRange channels);
  void execute(ChannelRange channels, const std::function<void(std::vector<grid::Plane>)>& append);
  Queue& queue_;
  const GridOptions& options_;
  GridSetup& setup_;
  std::vector<ChannelRange> parts_;
  GridSummary& summary_;
  grid::Cells cells_;
  std::unique_ptr<grid::OrderGridder> gridder_;
  std::int64_t made_for_ = 0;  ///< channels
  std::shared_ptr<const grid::GeometryPlan> plan_;
  std::int64_t n_ = 0;  ///< samples
  GridBlockData all_;
};

}  // namespace ryle::stage
