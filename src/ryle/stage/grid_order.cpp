// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/grid_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/stage/stopwatch.hpp"

namespace ryle::stage {

OrderRun::OrderRun(Queue& queue, const GridOptions& options, GridSetup& setup,
                   std::vector<ChannelRange> parts, GridSummary& summary)
    : queue_(queue),
      options_(options),
      setup_(setup),
      parts_(std::move(parts)),
      summary_(summary),
      n_(setup.input->facts().n_samples) {
  const Stopwatch watch(summary_.geometry_s);
  cells_ = grid_cells(queue_, *setup_.cells);
}

void OrderRun::make_plan() {
  if (plan_) return;
  grid::Positions all;
  for (auto* v : {&all.x, &all.y, &all.z}) v->reserve(static_cast<std::size_t>(n_));
  GridBlockData data;
  for (const GridBlock& block : setup_.input->blocks()) {
    setup_.input->read_positions(block, data);
    for (std::int64_t k = 0; k < block.n; k += grid::kSamplesTogether) {
      const grid::Positions p =
          setup_.directions(queue_, block, data, k, std::min(grid::kSamplesTogether, block.n - k));
      all.x.insert(all.x.end(), p.x.begin(), p.x.end());
      all.y.insert(all.y.end(), p.y.begin(), p.y.end());
      all.z.insert(all.z.end(), p.z.begin(), p.z.end());
    }
  }
  data = {};
  const Stopwatch watch(summary_.geometry_s);
  plan_ = gridder_->plan(queue_, std::move(all));
  const grid::PlanFacts facts = grid::facts(*plan_);
  summary_.bad_positions = facts.bad_positions;
  summary_.out_of_reach = facts.out_of_reach;
  summary_.n_candidates = facts.n_candidates;
  if (facts.bad_positions + facts.out_of_reach == facts.n_samples)
    throw ConfigError("none of the " + std::to_string(n_) +
                      " samples is within reach of the map (" + summary_.projection +
                      "); --target auto makes one that holds them");
}

// Blocks side by side, as one file would have them.
void OrderRun::read(ChannelRange channels) {
  const Stopwatch watch(summary_.read_s);
  const std::int64_t n_channels = channels.last - channels.first;
  if (setup_.input->blocks().size() == 1) {
    setup_.input->read(setup_.input->blocks()[0], channels.first, n_channels, all_);
    return;
  }
  all_.values.resize(static_cast<std::size_t>(n_channels * n_));
  if (setup_.input->has_weights()) all_.weights.resize(static_cast<std::size_t>(n_));
  if (setup_.input->has_flags()) all_.flags.assign(all_.values.size(), 0);
  GridBlockData some;
  std::int64_t at = 0;
  for (const GridBlock& block : setup_.input->blocks()) {
    setup_.input->read(block, channels.first, n_channels, some);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      std::copy_n(some.values.data() + c * block.n, block.n, all_.values.data() + c * n_ + at);
      if (!some.flags.empty())
        std::copy_n(some.flags.data() + c * block.n, block.n, all_.flags.data() + c * n_ + at);
    }
    if (!some.weights.empty()) std::copy_n(some.weights.data(), block.n, all_.weights.data() + at);
    at += block.n;
  }
}

void OrderRun::execute(ChannelRange channels,
                       const std::function<void(std::vector<grid::Plane>)>& append) {
  const std::int64_t n = channels.last - channels.first, n_cells = cells_.directions.size();
  std::vector<float> value(static_cast<std::size_t>(n * n_cells)), weight(value.size());
  std::vector<std::int32_t> count(value.size());
  const grid::Samples samples = all_.samples(n_);
  {
    const Stopwatch watch(summary_.grid_s);
    gridder_->execute(queue_, *plan_, samples,
                      {value.data(), weight.data(), count.data(), n_cells});
    const auto absent = grid::count_absent(queue_, samples, n_, n);
    summary_.absent.nan_value += absent.nan_value;
    summary_.absent.inf_value += absent.inf_value;
    summary_.absent.bad_weight += absent.bad_weight;
    summary_.absent.flagged += absent.flagged;
  }
  summary_.values_gridded += n * n_;
  for (std::int64_t c = 0; c < n; ++c) {
    const std::int64_t a = c * n_cells, b = a + n_cells;
    grid::Plane plane;
    plane.value.assign(value.begin() + a, value.begin() + b);
    plane.weight.assign(weight.begin() + a, weight.begin() + b);
    plane.count.assign(count.begin() + a, count.begin() + b);
    plane.noise.assign(plane.value.size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<grid::Plane> planes;
    planes.push_back(std::move(plane));
    append(std::move(planes));
  }
}

void OrderRun::grid(const std::function<void(std::vector<grid::Plane>)>& append,
                    const std::function<void(double)>& progress) {
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (options_.stop != nullptr && options_.stop->load() > 0) {
      summary_.stopped = true;
      return;
    }
    const std::int64_t n = parts_[p].last - parts_[p].first;
    if (!gridder_ || made_for_ != n) {
      const Stopwatch watch(summary_.geometry_s);
      grid::OrderConfig config{setup_.estimator, n, options_.finish, options_.implementation,
                               setup_.response_beam_rad};
      gridder_ = grid::make_order_gridder(config, cells_);
      made_for_ = n;
      summary_.implementation = gridder_->implementation();
    }
    make_plan();
    read(parts_[p]);
    execute(parts_[p], append);
    ++summary_.blocks_done;
    progress(static_cast<double>(p + 1) / static_cast<double>(parts_.size()));
  }
  summary_.bytes_read = setup_.input->bytes_read();
}

}  // namespace ryle::stage
