// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/reference.hpp"

#include <cmath>

#include "ryle/engine/grid/geometry.hpp"

namespace ryle::grid::detail {
namespace {

class Reference final : public Gridder {
 public:
  Reference(const Config& config, Cells cells)
      : config_(config),
        cells_(std::move(cells)),
        sums_(cells_.directions.size(), config.n_channels) {}

  std::shared_ptr<const GeometryPlan> plan(Queue&, Positions samples) override {
    auto plan = std::make_shared<GeometryPlan>();
    plan->metadata.n_samples = samples.size();
    for (const double x : samples.x) plan->metadata.bad_positions += std::isnan(x) ? 1 : 0;
    plan->samples = std::move(samples);
    return plan;
  }

  void execute(Queue&, const GeometryPlan& plan, const Samples& samples) override {
    sums_.allow_parting();
    const Positions& p = plan.samples;
    const double chord = support_chord(config_.convolution);
    for (std::int64_t cell = 0; cell < sums_.n_cells(); ++cell) {
      const auto i = static_cast<std::size_t>(cell);
      const double cx = cells_.directions.x[i], cy = cells_.directions.y[i],
                   cz = cells_.directions.z[i];
      sums_.part(cell);
      for (std::int64_t k = 0; k < p.size(); ++k) {
        const auto s = static_cast<std::size_t>(k);
        const double dx = p.x[s] - cx, dy = p.y[s] - cy, dz = p.z[s] - cz;
        const double c = std::sqrt(dx * dx + dy * dy + dz * dz);
        if (c < chord) add(cell, k, samples, weight(cx, cy, cz, p.x[s], p.y[s], p.z[s], c));
      }
    }
  }
  const Sums& sums() const override { return sums_; }
  Sums& sums() override { return sums_; }
  std::string_view implementation() const override { return "reference"; }

 private:
  double weight(double cx, double cy, double cz, double x, double y, double z, double chord) const {
    const double theta = 2 * std::asin(0.5 * chord);
    const double across = std::hypot(cx, cy);
    // East and north of the cell; any pair at a pole. (xi, eta) has the length theta.
    const double ex = across < 1e-12 ? 1 : -cy / across, ey = across < 1e-12 ? 0 : cx / across;
    const double e = ex * x + ey * y;
    const double n = -cz * ey * x + cz * ex * y + (cx * ey - cy * ex) * z;
    const double length = std::hypot(e, n);
    const double f = length > 0 ? theta / length : 0;
    return value(config_.convolution, theta, f * e, f * n);
  }

  void add(std::int64_t cell, std::int64_t k, const Samples& s, double w) {
    for (std::int64_t c = 0; c < config_.n_channels; ++c) {
      const std::int64_t at = k * s.sample_stride + c * s.channel_stride;
      const double x = s.values[at];
      const double u = s.weights == nullptr
                           ? 1
                           : s.weights[k * s.weight_sample_stride + c * s.weight_channel_stride];
      if (!std::isfinite(x) || !std::isfinite(u) || u <= 0 ||
          (s.flags != nullptr && s.flags[at] != 0))
        continue;
      sums_.weighted_of(c)[cell] += w * u * x;
      sums_.own(c, cell).add({w * u, w * w * u, std::abs(w) * u, 1});
    }
  }

  Config config_;
  Cells cells_;
  Sums sums_;
};

}  // namespace

std::unique_ptr<Gridder> make_reference(const Config& config, Cells cells) {
  return std::make_unique<Reference>(config, std::move(cells));
}

}  // namespace ryle::grid::detail
