// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ryle/engine/grid/order_statistics.hpp"
#include "ryle/pipeline/grid/grid_setup.hpp"

namespace ryle::pipeline {

/// Maps of medians: all samples at once, some channels at a time; or band after band of the map,
/// the samples that each may see.
class OrderRun {
 public:
  OrderRun(Queue& queue, const GridOptions& options, GridSetup& setup,
           std::vector<ChannelRange> parts, GridSummary& summary);
  void grid(const std::function<void(std::vector<grid::Plane>)>& append,
            const std::function<void(double)>& progress);

 private:
  void make_plan();
  void plan_band(const MedianBand& band);
  void require_some() const;
  void read(ChannelRange channels);
  void read_band(ChannelRange channels);
  void count_absent(const grid::Samples& samples, std::int64_t n, std::int64_t n_channels);
  void execute_bands(ChannelRange channels,
                     const std::function<void(std::vector<grid::Plane>)>& append);
  void append_planes_of(std::int64_t n_channels,
                        const std::function<void(std::vector<grid::Plane>)>& append) const;
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
  std::int64_t n_ = 0;  ///< samples, or those of the band
  GridBlockData all_;
  std::vector<std::vector<std::uint32_t>> chosen_;  ///< of each block, by the band
  std::vector<bool> seen_;                          ///< by any band
  std::vector<float> value_, weight_;               ///< [channel][cell]
  std::vector<std::int32_t> count_;
};

}  // namespace ryle::pipeline
