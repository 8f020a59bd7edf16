// SPDX-License-Identifier: BSD-3-Clause
// Medians by selection, a tile at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ryle/engine/grid/geometry.hpp"
#include "ryle/engine/grid/order_gridders.hpp"
#include "ryle/engine/grid/order_select.hpp"
#include "ryle/engine/grid/pair_value.hpp"

namespace ryle::grid::detail {
namespace {

constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Samples a tile may reach, by how far north they lie: a cell looks at a band of them.
struct TileCandidates {
  std::vector<std::uint32_t> sample;
  std::vector<double> north, x, y, z;

  TileCandidates(const Tile& tile, const GeometryPlan& plan, std::int64_t begin, std::int64_t end) {
    const auto n = end - begin;
    const Positions& p = plan.samples;
    const std::uint32_t* list = plan.lists.data() + begin;
    std::vector<std::pair<double, std::uint32_t>> sorted(place(n));
    for (std::int64_t k = 0; k < n; ++k) {
      const std::size_t i = list[k];
      sorted[place(k)] = {north_of(tile, p.x[i], p.y[i], p.z[i]), list[k]};
    }
    std::sort(sorted.begin(), sorted.end());
    for (auto* v : {&north, &x, &y, &z}) v->reserve(place(n));
    sample.reserve(place(n));
    for (const auto& [far_north, i] : sorted) {
      sample.push_back(i);
      north.push_back(far_north);
      x.push_back(p.x[i]);
      y.push_back(p.y[i]);
      z.push_back(p.z[i]);
    }
  }
  static double north_of(const Tile& t, double x, double y, double z) {
    return (x - t.center[0]) * t.north[0] + (y - t.center[1]) * t.north[1] +
           (z - t.center[2]) * t.north[2];
  }
  std::int64_t size() const { return static_cast<std::int64_t>(sample.size()); }
};

// What one cell sees of them.
struct CellReach {
  std::vector<std::uint32_t> candidate;
  std::vector<double> weight;   // K, where weights count
  std::vector<float> response;  // of the beam to a source in the cell, where asked for
};

// What statistic() works with.
struct OrderRoom {
  std::vector<OrderItem> items;  // [3][candidate]
  std::vector<double> weights;   // of those present
  std::vector<float> response;
};

class OrderSelection final : public OrderGridder {
 public:
  OrderSelection(const OrderConfig& config, Cells cells)
      : config_(config),
        weighted_(config.estimator.statistic == Statistic::weighted_median),
        chord_(support_chord(config.estimator.convolution)),
        cells_(std::move(cells)),
        tiling_(make_tiles(cells_, chord_)),
        planner_(make_gridder({config.estimator.convolution, 1, Precision::f64, "cpu"}, cells_)) {}

  std::shared_ptr<const GeometryPlan> plan(Queue& queue, Positions samples) override {
    return planner_->plan(queue, std::move(samples));
  }
  std::vector<std::uint32_t> near(Queue& queue, Positions samples) override {
    std::vector<std::uint8_t> seen(place(samples.size()));
    const auto plan = planner_->plan(queue, std::move(samples));
    for (const std::uint32_t k : plan->lists) seen[k] = 1;
    std::vector<std::uint32_t> found;
    for (std::size_t k = 0; k < seen.size(); ++k)
      if (seen[k] != 0) found.push_back(static_cast<std::uint32_t>(k));
    return found;
  }
  void execute(Queue& queue, const GeometryPlan& plan, const Samples& in,
               const OrderPlanes& out) override {
    for (std::int64_t c = 0; c < config_.n_channels; ++c) {  // cells off the sky are in no tile
      const std::int64_t at = c * out.channel_stride, n = cells_.directions.size();
      std::fill_n(out.value + at, n, kAbsent);
      std::fill_n(out.weight + at, n, 0.0F);
      std::fill_n(out.count + at, n, 0);
    }
    queue.parallel_for(static_cast<std::int64_t>(tiling_.tiles.size()), [&](std::int64_t t) {
      const std::int64_t begin = plan.begin[place(t)], end = plan.begin[place(t + 1)];
      if (begin < end) run_tile(tiling_.tiles[place(t)], plan, begin, end, in, out);
    });
  }
  std::string_view implementation() const override { return "cpu:selection"; }

 private:
  // Channels of a tile's candidates are taken together, as many as stay in the cache.
  void run_tile(const Tile& tile, const GeometryPlan& plan, std::int64_t begin, std::int64_t end,
                const Samples& in, const OrderPlanes& out) const {
    const TileCandidates near(tile, plan, begin, end);
    const std::int64_t n = near.size();
    const std::int64_t group = std::clamp<std::int64_t>((1 << 18) / n, 1, 64);
    std::vector<float> x(place(group * n)), u(place(in.weights == nullptr ? 0 : group * n));
    OrderRoom room;
    room.items.resize(place(3 * n));
    room.weights.resize(place(weighted_ ? n : 0));
    room.response.resize(place(config_.response_beam_rad > 0 ? n : 0));
    CellReach reach;
    for (std::int64_t c = 0; c < config_.n_channels; c += group) {
      const std::int64_t taken = std::min(group, config_.n_channels - c);
      for (std::int64_t e = 0; e < taken; ++e)
        load(near, in, c + e, x.data() + e * n, u.empty() ? nullptr : u.data() + e * n);
      for (std::int64_t i = 0; i < tile.n_blocks * kBlockCells; ++i) {
        const std::int64_t cell = tiling_.cells[place(tile.first_block * kBlockCells + i)];
        if (cell < 0) continue;
        look(tile, near, cell, reach);
        for (std::int64_t e = 0; e < taken; ++e)
          statistic(reach, x.data() + e * n, u.empty() ? nullptr : u.data() + e * n, room, out,
                    (c + e) * out.channel_stride + cell);
      }
    }
  }

  static void load(const TileCandidates& near, const Samples& in, std::int64_t channel, float* x,
                   float* u) {
    for (std::int64_t k = 0; k < near.size(); ++k) {
      const std::int64_t i = near.sample[place(k)];
      const std::int64_t at = i * in.sample_stride + channel * in.channel_stride;
      const float value = in.values[at];
      bool here = std::isfinite(value) && (in.flags == nullptr || in.flags[at] == 0);
      if (u != nullptr) {
        u[k] = in.weights[i * in.weight_sample_stride + channel * in.weight_channel_stride];
        here = here && u[k] > 0 && std::isfinite(u[k]);
      }
      x[k] = here ? value + 0.0F : kAbsent;  // one zero, not two
    }
  }

  void look(const Tile& tile, const TileCandidates& near, std::int64_t cell,
            CellReach& reach) const {
    reach.candidate.clear();
    reach.weight.clear();
    reach.response.clear();
    const auto i = place(cell);
    const double c[3] = {cells_.directions.x[i], cells_.directions.y[i], cells_.directions.z[i]};
    // No further north or south than the chord; rounding must not lose a sample at the edge.
    const double north = TileCandidates::north_of(tile, c[0], c[1], c[2]);
    const double margin = chord_ * (1 + 1e-9) + 1e-15;
    const auto first =
        std::lower_bound(near.north.begin(), near.north.end(), north - margin) - near.north.begin();
    const auto last =
        std::upper_bound(near.north.begin(), near.north.end(), north + margin) - near.north.begin();
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
      const double s[3] = {near.x[k], near.y[k], near.z[k]};
      const double dx = s[0] - c[0], dy = s[1] - c[1], dz = s[2] - c[2];
      const double chord = std::sqrt(dx * dx + dy * dy + dz * dz);
      if (!(chord < chord_)) continue;
      reach.candidate.push_back(static_cast<std::uint32_t>(k));
      if (weighted_) reach.weight.push_back(pair_value(config_.estimator.convolution, c, s, chord));
      if (config_.response_beam_rad > 0)
        reach.response.push_back(beam_response(config_.response_beam_rad, chord));
    }
  }

  void statistic(const CellReach& reach, const float* x, const float* u, OrderRoom& room,
                 const OrderPlanes& out, std::int64_t at) const {
    OrderItem* const items = room.items.data();
    std::vector<double>& weights = room.weights;
    std::int64_t n = 0;
    double largest = weighted_ ? 0 : 1;
    for (std::size_t k = 0; k < reach.candidate.size(); ++k) {
      const std::uint32_t i = reach.candidate[k];
      items[n] = {x[i], 1};
      if (!room.response.empty()) room.response[place(n)] = reach.response[k];
      if (weighted_) {
        const double w = (u == nullptr ? 1 : static_cast<double>(u[i])) * reach.weight[k];
        weights[place(n)] = w;
        largest = !std::isnan(x[i]) && w > largest ? w : largest;
      }
      n += std::isnan(x[i]) ? 0 : 1;
    }
    const std::int64_t count = n;
    int exponent = 0;
    std::frexp(largest, &exponent);
    auto sum = static_cast<std::uint64_t>(n);
    if (weighted_) {
      sum = 0;
      n = 0;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::uint32_t w = rounded_weight(weights[place(k)], exponent);
        items[n] = {items[k].x, w};
        sum += w;
        n += w > 0 ? 1 : 0;  // what weighs nothing moves nothing
      }
    }
    const double total = weighted_ ? std::ldexp(static_cast<double>(sum), exponent - kWeightBits)
                                   : static_cast<double>(sum);
    if (sum == 0 || count < config_.finish.min_count || total < config_.finish.min_weight) return;
    double middle = weighted_median(items, n, sum, items + n);
    if (!room.response.empty()) {
      n = 0;
      for (std::int64_t k = 0; k < count; ++k) {
        const std::uint32_t w = weighted_ ? rounded_weight(weights[place(k)], exponent) : 1;
        items[n] = {room.response[place(k)], w};
        n += w > 0 ? 1 : 0;
      }
      middle /= weighted_median(items, n, sum, items + n);
    }
    out.value[at] = static_cast<float>(middle);
    out.weight[at] = static_cast<float>(total);
    out.count[at] = static_cast<std::int32_t>(count);
  }

  OrderConfig config_;
  bool weighted_;
  double chord_;
  Cells cells_;
  Tiling tiling_;
  std::unique_ptr<Gridder> planner_;  // of means, with the same tiles
};

}  // namespace

std::unique_ptr<OrderGridder> make_order_selection(const OrderConfig& config, Cells cells) {
  return std::make_unique<OrderSelection>(config, std::move(cells));
}

}  // namespace ryle::grid::detail
