// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/engine/grid/geometry.hpp"
#include "ryle/engine/grid/order_gridders.hpp"
#include "ryle/engine/grid/pair_value.hpp"

namespace ryle::grid::detail {
namespace {

struct Weighed {
  float x;
  double weight;
  float response = 1;  // of the beam to a source in the cell
};

// Sorting in the order of the equations. Of two zeros there is one: -0 + 0 is 0.
class OrderReference final : public OrderGridder {
 public:
  OrderReference(const OrderConfig& config, Cells cells)
      : config_(config), cells_(std::move(cells)) {}

  std::shared_ptr<const GeometryPlan> plan(Queue&, Positions samples) override {
    auto plan = std::make_shared<GeometryPlan>();
    plan->metadata.n_samples = samples.size();
    for (const double x : samples.x) plan->metadata.bad_positions += std::isnan(x) ? 1 : 0;
    plan->samples = std::move(samples);
    return plan;
  }
  void execute(Queue&, const GeometryPlan& plan, const Samples& in,
               const OrderPlanes& out) override {
    for (std::int64_t cell = 0; cell < cells_.directions.size(); ++cell)
      for (std::int64_t c = 0; c < config_.n_channels; ++c) {
        const std::int64_t at = c * out.channel_stride + cell;
        statistic(within_reach(plan.samples, in, cell, c), out.value[at], out.weight[at],
                  out.count[at]);
      }
  }
  std::string_view implementation() const override { return "reference"; }

 private:
  std::vector<Weighed> within_reach(const Positions& p, const Samples& in, std::int64_t cell,
                                    std::int64_t channel) const {
    const Convolution& f = config_.estimator.convolution;
    const bool weighted = config_.estimator.statistic == Statistic::weighted_median;
    const auto i = static_cast<std::size_t>(cell);
    const double c[3] = {cells_.directions.x[i], cells_.directions.y[i], cells_.directions.z[i]};
    std::vector<Weighed> found;
    for (std::int64_t k = 0; k < p.size(); ++k) {
      const auto n = static_cast<std::size_t>(k);
      const double s[3] = {p.x[n], p.y[n], p.z[n]};
      const double dx = s[0] - c[0], dy = s[1] - c[1], dz = s[2] - c[2];
      const double chord = std::sqrt(dx * dx + dy * dy + dz * dz);
      const std::int64_t at = k * in.sample_stride + channel * in.channel_stride;
      const double u =
          in.weights == nullptr
              ? 1
              : in.weights[k * in.weight_sample_stride + channel * in.weight_channel_stride];
      if (!(chord < support_chord(f)) || !std::isfinite(in.values[at]) || !std::isfinite(u) ||
          u <= 0 || (in.flags != nullptr && in.flags[at] != 0))
        continue;
      found.push_back({in.values[at] + 0.0F, weighted ? u * pair_value(f, c, s, chord) : 1});
      if (config_.response_beam_rad > 0)
        found.back().response = beam_response(config_.response_beam_rad, chord);
    }
    return found;
  }

  void statistic(std::vector<Weighed> found, float& value, float& weight,
                 std::int32_t& count) const {
    double largest = 0;
    for (const Weighed& w : found) largest = std::max(largest, w.weight);
    int exponent = 0;
    std::frexp(largest, &exponent);
    std::int64_t sum = 0;
    for (const Weighed& w : found) sum += rounded_weight(w.weight, exponent);
    value = std::numeric_limits<float>::quiet_NaN();
    weight = 0;
    count = 0;
    const auto n = static_cast<std::int64_t>(found.size());
    const double total = std::ldexp(static_cast<double>(sum), exponent - kWeightBits);
    if (sum == 0 || n < config_.finish.min_count || total < config_.finish.min_weight) return;
    weight = static_cast<float>(total);
    count = static_cast<std::int32_t>(n);
    value = static_cast<float>(middle(found, sum, exponent, &Weighed::x) /
                               middle(found, sum, exponent, &Weighed::response));
  }

  static double middle(std::vector<Weighed>& found, std::int64_t sum, int exponent,
                       float Weighed::*what) {
    std::sort(found.begin(), found.end(),
              [&](const Weighed& a, const Weighed& b) { return a.*what < b.*what; });
    const auto carries = [&](const Weighed& w) { return rounded_weight(w.weight, exponent) > 0; };
    std::int64_t cumulative = 0;
    auto w = found.begin();
    while (2 * (cumulative += rounded_weight(w->weight, exponent)) < sum) ++w;
    const auto next = 2 * cumulative == sum ? std::find_if(w + 1, found.end(), carries) : w;
    return 0.5 * (static_cast<double>((*w).*what) + (*next).*what);
  }

  OrderConfig config_;
  Cells cells_;
};

}  // namespace

std::unique_ptr<OrderGridder> make_order_reference(const OrderConfig& config, Cells cells) {
  return std::make_unique<OrderReference>(config, std::move(cells));
}

}  // namespace ryle::grid::detail
