// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/cpu/gridder.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "ryle/engine/grid/geometry.hpp"
#include "ryle/engine/grid/pair_value.hpp"
#include "ryle/engine/grid/radial_table.hpp"

namespace ryle::grid::detail {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double exact_value(const void* function, const double* cell, const double* sample, double chord) {
  return pair_value(*static_cast<const Convolution*>(function), cell, sample, chord);
}

/// What one worker needs for a tile, whichever.
template <class Real>
class Workspace {
 public:
  Workspace(std::int64_t group, std::int64_t max_blocks)
      : group_(group),
        weighted(at(max_blocks * 4 * group)),
        moments_(at(max_blocks * 4 * 4)),
        complete_(at(group)) {
    const std::int64_t n = kSegment + kPad;
    lists_.resize(at(4 * n));
    reals_.resize(at(5 * n + 8 * n + n * group));
    Real* p = reals_.data();
    const auto take = [&p](std::int64_t count) { return std::exchange(p, p + count); };
    scratch.bins = &bins_;
    scratch.x = take(n);
    scratch.y = take(n);
    scratch.z = take(n);
    scratch.u = take(n);
    scratch.kept_u = take(n);
    scratch.pair = take(4 * n);
    scratch.second = take(4 * n);
    scratch.data = take(n * group);
    scratch.row = lists_.data();
    scratch.bin = lists_.data() + n;
    scratch.kept = lists_.data() + 2 * n;
    scratch.list = lists_.data() + 3 * n;
    scratch.complete = complete_.data();
  }

  /// Where absence is recorded channel by channel: first needed, first made.
  void allow_absence() {
    if (!absence_.empty()) return;
    const std::int64_t n = kSegment + kPad;
    absence_.resize(at(2 * n * group_));
    scratch.present = absence_.data();
    scratch.valid = absence_.data() + n * group_;
    own_.resize(weighted.size() * 4);
  }
  TileSums sums(std::int64_t n_cells, std::int64_t padded, bool own) {
    std::fill_n(weighted.begin(), n_cells * padded, 0.0);
    std::fill_n(moments_.begin(), n_cells * 4, 0.0);
    double* m = moments_.data();
    TileSums s{weighted.data(), m,       m + n_cells, m + 2 * n_cells, m + 3 * n_cells,
               nullptr,         nullptr, nullptr,     nullptr};
    if (own) {
      std::fill_n(own_.begin(), n_cells * padded * 4, 0.0);
      double* o = own_.data();
      const std::int64_t step = n_cells * padded;
      s.own_weight = o;
      s.own_square = o + step;
      s.own_magnitude = o + 2 * step;
      s.own_count = o + 3 * step;
    }
    return s;
  }

 private:
  std::int64_t group_;
  TileBins bins_{};
  std::vector<std::uint32_t> lists_;
  LargeVector<Real> reals_, absence_;
  std::vector<double> own_;

 public:
  std::vector<double> weighted;
  TileScratch<Real> scratch{};

 private:
  std::vector<double> moments_;
  std::vector<std::uint8_t> complete_;
};

template <class Real>
class CpuGridder final : public Gridder {
 public:
  CpuGridder(const Config& config, Cells cells, const TileKernel<Real>& kernel)
      : config_(config),
        kernel_(kernel),
        sums_(cells.directions.size(), config.n_channels),
        tiling_(make_tiles(cells, support_chord(config.convolution))),
        index_(tiling_.tiles, support_chord(config.convolution)) {
    take_cells(cells);
    const Convolution& f = config_.convolution;
    function_.chord = support_chord(f);
    function_.function = &config_.convolution;
    function_.wide = f.support_rad > 1.6 * 0.017453292519943295;
    function_.gauss = f.function == Function::gauss;
    if (sizeof(Real) == 4 && function_.gauss) {
      function_.log2_per_rad2 = -0.5 / (f.sigma_rad * f.sigma_rad * std::log(2.0));
      return;
    }
    if (sizeof(Real) == 4 && is_radial(f)) table_ = radial_table(f);
    if (table_.empty())
      function_.exact = exact_value;
    else
      function_.table = {table_.data(), kRadialIntervals,
                         kRadialIntervals / (f.support_rad * f.support_rad)};
  }

  std::shared_ptr<const GeometryPlan> plan(Queue& queue, Positions samples) override {
    return std::make_shared<GeometryPlan>(make_geometry(
        queue, tiling_.tiles, index_, kernel_.search, sizeof(Real) == 4, std::move(samples)));
  }
  void execute(Queue& queue, const GeometryPlan& plan, const Samples& samples) override {
    queue.parallel_for(static_cast<std::int64_t>(tiling_.tiles.size()), [&](std::int64_t t) {
      if (plan.begin[at(t)] == plan.begin[at(t + 1)]) return;
      auto workspace = borrow();
      run_tile(t, plan, samples, *workspace);
      give_back(std::move(workspace));
    });
  }
  std::int64_t samples_together() const override { return kSamplesTogether; }
  std::vector<CellRange> cells_of(const GeometryPlan& plan) const override {
    std::vector<std::int64_t> reached;
    for (std::size_t t = 0; t < tiling_.tiles.size(); ++t) {
      if (plan.begin[t] == plan.begin[t + 1]) continue;
      const Tile& tile = tiling_.tiles[t];
      for (std::int64_t i = 0; i < tile.n_blocks * kBlockCells; ++i)
        if (const std::int64_t cell = tiling_.cells[at(tile.first_block * kBlockCells + i)];
            cell >= 0)
          reached.push_back(cell);
    }
    std::sort(reached.begin(), reached.end());
    std::vector<CellRange> ranges;
    for (const std::int64_t cell : reached)
      if (!ranges.empty() && ranges.back().last == cell)
        ++ranges.back().last;
      else
        ranges.push_back({cell, cell + 1});
    return ranges;
  }
  const Sums& sums() const override { return sums_; }
  Sums& sums() override { return sums_; }
  std::string_view implementation() const override { return kernel_.name; }

 private:
  using Space = Workspace<Real>;

  std::unique_ptr<Space> borrow() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Space>(kernel_.group, tiling_.max_blocks);
    auto space = std::move(free_.back());
    free_.pop_back();
    return space;
  }
  void give_back(std::unique_ptr<Space> space) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(space));
  }

  // Unit vectors in the order of blocks; an absent cell stands where another of its block does.
  void take_cells(const Cells& cells) {
    const auto n = tiling_.cells.size();
    directions_.resize(3 * n);
    live_.resize(n);
    for (std::size_t b = 0; b < n; b += kBlockCells) {
      std::int64_t some = -1;
      for (int q = 0; q < kBlockCells; ++q)
        if (tiling_.cells[b + at(q)] >= 0) some = tiling_.cells[b + at(q)];
      for (int q = 0; q < kBlockCells; ++q) {
        const std::int64_t cell = tiling_.cells[b + at(q)];
        live_[b + at(q)] = cell >= 0 ? 1 : 0;
        const auto i = at(cell >= 0 ? cell : some);
        double* to = directions_.data() + 3 * (b + at(q));
        to[0] = cells.directions.x[i];
        to[1] = cells.directions.y[i];
        to[2] = cells.directions.z[i];
      }
    }
  }

  void run_tile(std::int64_t t, const GeometryPlan& plan, const Samples& in, Space& space) {
    const Tile& tile = tiling_.tiles[at(t)];
    const TileGeometry place{tile.center.data(),
                             tile.east.data(),
                             tile.north.data(),
                             tile.x_min,
                             tile.x_max,
                             tile.y_min,
                             tile.y_max,
                             tile.n_blocks,
                             directions_.data() + 12 * tile.first_block,
                             live_.data() + 4 * tile.first_block};
    TileSamples samples{plan.samples.x.data(),
                        plan.samples.y.data(),
                        plan.samples.z.data(),
                        nullptr,
                        nullptr,
                        0,
                        in.values,
                        in.sample_stride,
                        in.channel_stride,
                        in.weights,
                        in.weight_sample_stride,
                        in.weight_channel_stride,
                        in.flags};
    for (std::int64_t k = plan.begin[at(t)]; k < plan.begin[at(t + 1)]; k += kSegment) {
      if (plan.offsets.empty()) {
        samples.list = plan.lists.data() + k;
      } else {
        samples.offsets = plan.offsets.data() + k;
        samples.list = space.scratch.list;
      }
      samples.n = std::min(kSegment, plan.begin[at(t + 1)] - k);
      kernel_.locate(place, function_, samples, space.scratch);
      run_segment(tile, place, samples, space);
    }
  }

  void run_segment(const Tile& tile, const TileGeometry& place, const TileSamples& samples,
                   Space& space) {
    const std::int64_t n_cells = tile.n_blocks * kBlockCells;
    const std::int64_t* cells = tiling_.cells.data() + tile.first_block * kBlockCells;
    bool apart = sums_.apart(first_live(cells, n_cells));
    std::vector<Moments> shared(at(n_cells));
    if (samples.flags != nullptr || samples.weight_channel_stride != 0) space.allow_absence();
    for (std::int64_t c = 0; c < config_.n_channels; c += kernel_.group) {
      const std::int64_t n = std::min(kernel_.group, config_.n_channels - c);
      const std::int64_t padded = (n + kernel_.lanes - 1) / kernel_.lanes * kernel_.lanes;
      const bool absent = load(samples, c, n, padded, space);
      const TileSums sums = space.sums(n_cells, padded, absent);
      kernel_.sum(place, function_, samples, padded, space.scratch, sums);
      for (std::int64_t i = 0; i < n_cells; ++i)
        shared[at(i)] = {sums.weight[i], sums.square[i], sums.magnitude[i],
                         static_cast<std::int64_t>(sums.count[i])};
      if (absent && !apart) {
        // The channels before this one had everything.
        sums_.allow_parting();
        for (std::int64_t i = 0; i < n_cells; ++i) {
          if (cells[i] < 0) continue;
          sums_.part(cells[i]);
          for (std::int64_t e = 0; e < c; ++e) sums_.own(e, cells[i]).add(shared[at(i)]);
        }
        apart = true;
      }
      add(cells, n_cells, c, n, padded, sums, shared, apart, space);
    }
    if (apart) return;
    for (std::int64_t i = 0; i < n_cells; ++i)
      if (cells[i] >= 0) sums_.shared(cells[i]).add(shared[at(i)]);
  }

  bool load(const TileSamples& samples, std::int64_t c, std::int64_t n, std::int64_t padded,
            Space& space) {
    if (space.scratch.present == nullptr) {
      // Loads first, looks then: only where something is absent the room for saying so is needed.
      TileScratch<Real> scratch = space.scratch;
      if (!kernel_.load(samples, c, n, padded, scratch)) return false;
      space.allow_absence();
    }
    return kernel_.load(samples, c, n, padded, space.scratch);
  }

  void add(const std::int64_t* cells, std::int64_t n_cells, std::int64_t c, std::int64_t n,
           std::int64_t padded, const TileSums& sums, const std::vector<Moments>& shared,
           bool apart, const Space& space) {
    // Eight channels at a time: a line of the sums read, short rows of eight planes written.
    constexpr std::int64_t kTogether = 8;
    for (std::int64_t e0 = 0; e0 < n; e0 += kTogether) {
      double* weighted[kTogether];
      const std::int64_t together = std::min(kTogether, n - e0);
      for (std::int64_t e = 0; e < together; ++e) weighted[e] = sums_.weighted_of(c + e0 + e);
      for (std::int64_t i = 0; i < n_cells; ++i) {
        const std::int64_t cell = cells[i];
        if (cell < 0) continue;
        const double* from = space.weighted.data() + i * padded + e0;
        for (std::int64_t e = 0; e < together; ++e) weighted[e][cell] += from[e];
      }
    }
    if (!apart) return;
    for (std::int64_t e = 0; e < n; ++e) {
      for (std::int64_t i = 0; i < n_cells; ++i) {
        if (cells[i] < 0) continue;
        const std::int64_t k = i * padded + e;
        // Where nothing was absent the channel has the moments of all: the same bits as beside
        // clean data.
        const bool own = sums.own_count != nullptr && space.scratch.complete[e] == 0;
        sums_.own(c + e, cells[i])
            .add(own ? Moments{sums.own_weight[k], sums.own_square[k], sums.own_magnitude[k],
                               static_cast<std::int64_t>(sums.own_count[k])}
                     : shared[at(i)]);
      }
    }
  }
  static std::int64_t first_live(const std::int64_t* cells, std::int64_t n) {
    return *std::find_if(cells, cells + n, [](std::int64_t c) { return c >= 0; });
  }

  Config config_;
  const TileKernel<Real>& kernel_;
  Sums sums_;
  Tiling tiling_;
  TileIndex index_;
  TileFunction function_;
  std::vector<float> table_;
  std::vector<double> directions_;  // [block][4][3]
  std::vector<std::uint8_t> live_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Space>> free_;
};

}  // namespace

template <class Real>
std::unique_ptr<Gridder> make_cpu(const Config& config, Cells cells,
                                  const TileKernel<Real>& kernel) {
  return std::make_unique<CpuGridder<Real>>(config, std::move(cells), kernel);
}
template std::unique_ptr<Gridder> make_cpu<float>(const Config&, Cells, const TileKernel<float>&);
template std::unique_ptr<Gridder> make_cpu<double>(const Config&, Cells, const TileKernel<double>&);

}  // namespace ryle::grid::detail
