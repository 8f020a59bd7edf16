// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/grid/grid_bands.hpp"

namespace ryle::pipeline {

OrderRun::OrderRun(Queue& queue, const GridOptions& options, GridSetup& setup,
                   std::vector<ChannelRange> parts, GridSummary& summary)
    : queue_(queue),
      options_(options),
      setup_(setup),
      parts_(std::move(parts)),
      summary_(summary),
      n_(setup.input->metadata().n_samples) {
  const Stopwatch watch(summary_.geometry_s);
  cells_ = grid_cells(queue_, *setup_.cells);
}

void OrderRun::make_plan() {
  if (plan_) return;
  grid::Positions all;
  for (auto* v : {&all.x, &all.y, &all.z}) v->reserve(n_);
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
  const grid::PlanMetadata metadata = grid::metadata(*plan_);
  summary_.bad_positions = metadata.bad_positions;
  summary_.out_of_reach = metadata.out_of_reach;
  summary_.n_candidates = metadata.n_candidates;
  require_some();
}

void OrderRun::require_some() const {
  if (summary_.bad_positions + summary_.out_of_reach < summary_.n_samples) return;
  throw ConfigError("none of the " + std::to_string(summary_.n_samples) +
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
  all_.values.resize(n_channels * n_);
  const bool own_weights = setup_.input->has_channel_weights();
  if (setup_.input->has_weights()) all_.weights.resize(n_);
  if (own_weights) all_.weights.resize(all_.values.size());
  if (setup_.input->has_flags()) all_.flags.assign(all_.values.size(), 0);
  GridBlockData some;
  std::int64_t at = 0;
  for (const GridBlock& block : setup_.input->blocks()) {
    setup_.input->read(block, channels.first, n_channels, some);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      std::copy_n(some.values.data() + c * block.n, block.n, all_.values.data() + c * n_ + at);
      if (!some.flags.empty())
        std::copy_n(some.flags.data() + c * block.n, block.n, all_.flags.data() + c * n_ + at);
      if (own_weights)
        std::copy_n(some.weights.data() + c * block.n, block.n, all_.weights.data() + c * n_ + at);
    }
    if (setup_.input->has_weights())
      std::copy_n(some.weights.data(), block.n, all_.weights.data() + at);
    at += block.n;
  }
}

void OrderRun::count_absent(const grid::Samples& samples, std::int64_t n, std::int64_t n_channels) {
  const auto absent = grid::count_absent(queue_, samples, n, n_channels);
  summary_.absent.nan_value += absent.nan_value;
  summary_.absent.inf_value += absent.inf_value;
  summary_.absent.bad_weight += absent.bad_weight;
  summary_.absent.flagged += absent.flagged;
}

void OrderRun::append_planes_of(std::int64_t n_channels,
                                const std::function<void(std::vector<grid::Plane>)>& append) const {
  const std::int64_t n_cells = cells_.directions.size();
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const std::int64_t a = c * n_cells, b = a + n_cells;
    grid::Plane plane;
    plane.value.assign(value_.begin() + a, value_.begin() + b);
    plane.weight.assign(weight_.begin() + a, weight_.begin() + b);
    plane.count.assign(count_.begin() + a, count_.begin() + b);
    plane.noise.assign(plane.value.size(), std::numeric_limits<float>::quiet_NaN());
    std::vector<grid::Plane> planes;
    planes.push_back(std::move(plane));
    append(std::move(planes));
  }
}

void OrderRun::execute(ChannelRange channels,
                       const std::function<void(std::vector<grid::Plane>)>& append) {
  const std::int64_t n = channels.last - channels.first, n_cells = cells_.directions.size();
  value_.resize(n * n_cells);
  weight_.resize(value_.size());
  count_.resize(value_.size());
  const grid::Samples samples = all_.samples(n_);
  {
    const Stopwatch watch(summary_.grid_s);
    gridder_->execute(queue_, *plan_, samples,
                      {value_.data(), weight_.data(), count_.data(), n_cells});
    count_absent(samples, n_, n);
  }
  summary_.values_gridded += n * n_;
  append_planes_of(n, append);
}

// Positions of the samples that the band may see, and which they are.
void OrderRun::plan_band(const MedianBand& band) {
  const bool first = chosen_.empty();  // of all bands of all channels
  if (first) seen_.assign(summary_.n_samples, false);
  grid::OrderConfig config{setup_.estimator, 1, options_.finish, options_.implementation,
                           setup_.response_beam_rad};
  gridder_ = grid::make_order_gridder(config, cells_of_band(cells_, band));
  summary_.implementation = gridder_->implementation();
  grid::Positions all;
  for (auto* v : {&all.x, &all.y, &all.z}) v->reserve(summary_.plan.band_samples);
  GridBlockData data;
  const auto& blocks = setup_.input->blocks();
  chosen_.assign(blocks.size(), {});
  n_ = 0;
  std::int64_t before = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for_directions(queue_, setup_, blocks[b], data, [&](std::int64_t at, grid::Positions p) {
      if (first)
        summary_.bad_positions +=
            std::count_if(p.x.begin(), p.x.end(), [](double x) { return std::isnan(x); });
      const grid::Positions copy = p;
      for (const std::uint32_t k : gridder_->near(queue_, std::move(p))) {
        chosen_[b].push_back(static_cast<std::uint32_t>(at) + k);
        all.x.push_back(copy.x[k]);
        all.y.push_back(copy.y[k]);
        all.z.push_back(copy.z[k]);
        seen_[static_cast<std::size_t>(before + at) + k] = true;
      }
    });
    n_ += std::ssize(chosen_[b]);
    before += blocks[b].n;
  }
  plan_ = gridder_->plan(queue_, std::move(all));
}

void OrderRun::read_band(ChannelRange channels) {
  const Stopwatch watch(summary_.read_s);
  all_ = {};
  all_.values.resize(n_);
  if (setup_.input->has_weights() || setup_.input->has_channel_weights()) all_.weights.resize(n_);
  if (setup_.input->has_flags()) all_.flags.assign(n_, 0);
  GridBlockData some;
  std::size_t to = 0;
  for (std::size_t b = 0; b < chosen_.size(); ++b) {
    if (chosen_[b].empty()) continue;
    setup_.input->read(setup_.input->blocks()[b], channels.first, 1, some);
    for (const std::uint32_t k : chosen_[b]) {
      all_.values[to] = some.values[k];
      if (!some.weights.empty()) all_.weights[to] = some.weights[k];
      if (!some.flags.empty()) all_.flags[to] = some.flags[k];
      ++to;
    }
  }
}

// One channel, band after band: each has the bits of the whole map.
void OrderRun::execute_bands(ChannelRange channels,
                             const std::function<void(std::vector<grid::Plane>)>& append) {
  value_.resize(cells_.directions.size());
  weight_.resize(value_.size());
  count_.resize(value_.size());
  const bool first = chosen_.empty();
  for (const MedianBand& band : setup_.bands) {
    {
      const Stopwatch watch(summary_.geometry_s);
      plan_band(band);
    }
    read_band(channels);
    const Stopwatch watch(summary_.grid_s);
    const std::int64_t n_cells = band.last_cell - band.first_cell;
    gridder_->execute(queue_, *plan_, all_.samples(n_),
                      {value_.data() + band.first_cell, weight_.data() + band.first_cell,
                       count_.data() + band.first_cell, n_cells});
    if (first) summary_.n_candidates += grid::metadata(*plan_).n_candidates;
    summary_.values_gridded += n_;
  }
  if (first) {
    const auto reached = std::count(seen_.begin(), seen_.end(), true);
    summary_.out_of_reach = summary_.n_samples - summary_.bad_positions - reached;
    require_some();
  }
  // Of all samples, as whole maps count them.
  const Stopwatch watch(summary_.read_s);
  for (const GridBlock& block : setup_.input->blocks()) {
    setup_.input->read(block, channels.first, 1, all_);
    count_absent(all_.samples(block.n), block.n, 1);
  }
  append_planes_of(1, append);
}

void OrderRun::grid(const std::function<void(std::vector<grid::Plane>)>& append,
                    const std::function<void(double)>& progress) {
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    if (options_.stop != nullptr && options_.stop->load() > 0) {
      summary_.stopped = true;
      return;
    }
    if (!setup_.bands.empty()) {
      execute_bands(parts_[p], append);
      ++summary_.blocks_done;
      progress(static_cast<double>(p + 1) / static_cast<double>(parts_.size()));
      continue;
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

}  // namespace ryle::pipeline
