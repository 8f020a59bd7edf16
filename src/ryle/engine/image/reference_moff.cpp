// SPDX-License-Identifier: BSD-3-Clause
// Modular optimal frequency Fourier imaging: every spectrum on the grid with antenna functions, and
// its equal, visibilities on the grid with correlated antenna functions.
#include "ryle/engine/image/reference_grid.hpp"

namespace ryle::image::detail {
namespace {

class MoffReference final : public ReferencePath {
 public:
  explicit MoffReference(const AllSkyConfig& config)
      : config_(config),
        pols_(static_cast<std::size_t>(n_pols(config))),
        channels_(config.channels.n_channels) {}

  // @eq g_p(r) = sum_a E_ap w_ap(r); products of the transforms of g_x and g_y
  void add_spectrum(std::int64_t channel, const std::vector<cf64>& fields,
                    ProductPlanes& planes) override {
    const Channel& c = prepared(channel);
    std::vector<ReferenceGrid> grids(2, ReferenceGrid(config_.n_pixels));
    for (std::size_t e = 0; e < fields.size(); ++e) {
      const std::int64_t k = config_.function.support;
      for (std::int64_t r = 0; r < k * k; ++r) {
        grids[e % pols_].add(c.cells[e / pols_].first_y + r / k, c.cells[e / pols_].first_x + r % k,
                             fields[e] * c.weights[e][r]);
      }
    }
    const auto x = grids[0].transformed(), y = grids[1].transformed();
    const std::size_t plane = c.taper.size() > x.size() ? x.size() : 0;
    for (std::size_t p = 0; p < x.size(); ++p) {
      planes.xx[p] += std::norm(x[p]) / c.taper[p];
      planes.yy[p] += std::norm(y[p]) / c.taper[plane + p];
      planes.xy[p] += x[p] * std::conj(y[p]) / c.taper[2 * plane + p];
    }
  }

  // @eq U(d) = sum_ab V_ab K_ab(d), K_ab(d) = sum_r w_a(r + d) conj(w_b(r))
  void add_matrix(std::int64_t channel, const std::vector<cf64>& matrix,
                  ProductPlanes& planes) override {
    const Channel& c = prepared(channel);
    std::vector<ReferenceGrid> grids(3, ReferenceGrid(config_.n_pixels));
    const std::size_t n = c.weights.size();
    for (std::size_t e = 0; e < n; ++e) {
      for (std::size_t f = 0; f < n; ++f) {
        if (matrix[e * n + f] == cf64(0) || e % pols_ > f % pols_) continue;
        add_pair(c, e, f, matrix[e * n + f], grids[e % pols_ != f % pols_ ? 2 : e % pols_]);
      }
    }
    add_tapered(grids[0], grids[1], grids[2], c.taper, planes);
  }

  void add_autos(std::int64_t channel, const std::vector<AutoPowers>& autos,
                 ProductPlanes& planes) override {
    const Channel& c = prepared(channel);
    std::vector<ReferenceGrid> grids(3, ReferenceGrid(config_.n_pixels));
    for (std::size_t a = 0; a < autos.size(); ++a) {
      const std::size_t x = a * pols_, y = x + pols_ - 1;
      add_pair(c, x, x, autos[a].xx, grids[0]);
      add_pair(c, y, y, autos[a].yy, grids[1]);
      add_pair(c, x, y, autos[a].xy, grids[2]);
    }
    add_tapered(grids[0], grids[1], grids[2], c.taper, planes);
  }

 private:
  struct Channel {
    std::vector<AntennaCells> cells;         // [antenna]
    std::vector<std::vector<cf64>> weights;  // [element][k * k], phase of the height included
    std::vector<double> taper;
  };

  void add_pair(const Channel& c, std::size_t e, std::size_t f, cf64 value,
                ReferenceGrid& grid) const {
    const auto k = static_cast<std::size_t>(config_.function.support), n = 2 * k - 1;
    std::vector<cf64> correlated(n * n);  // K_ab, lag 0 at (k - 1, k - 1)
    for (std::size_t r = 0; r < k * k; ++r) {
      for (std::size_t s = 0; s < k * k; ++s) {
        correlated[(r / k + k - 1 - s / k) * n + r % k + k - 1 - s % k] +=
            c.weights[e][r] * std::conj(c.weights[f][s]);
      }
    }
    const auto &a = c.cells[e / pols_], &b = c.cells[f / pols_];
    for (std::size_t d = 0; d < n * n; ++d) {
      const auto lag_y = static_cast<std::int64_t>(d / n) - config_.function.support + 1;
      const auto lag_x = static_cast<std::int64_t>(d % n) - config_.function.support + 1;
      grid.add(a.first_y - b.first_y + lag_y, a.first_x - b.first_x + lag_x, value * correlated[d]);
    }
  }

  const Channel& prepared(std::int64_t channel) {
    auto& slot = channels_[channel];
    if (slot) return *slot;
    slot = std::make_unique<Channel>();
    slot->cells = antenna_cells(config_, channel);
    slot->taper = correlated_taper(config_, channel);
    if (!config_.function.apertures.empty()) slot->weights = aperture_weights(config_, channel);
    const auto k = static_cast<std::size_t>(config_.function.support);
    slot->weights.resize(slot->cells.size() * pols_, std::vector<cf64>(k * k));
    for (std::size_t e = 0; e < slot->weights.size(); ++e) {
      const auto& cells = slot->cells[e / pols_];
      const cf64 height =
          height_phase(config_.channels.center_hz(channel), config_.antenna_enu_m[e / pols_][2]);
      for (std::size_t r = 0; r < k * k; ++r) {
        const double es = cells.weight_y[r / k] * cells.weight_x[r % k];
        auto& w = slot->weights[e][r];
        w = (config_.function.apertures.empty() ? cf64(es) : w) * height;
      }
    }
    return *slot;
  }

  AllSkyConfig config_;
  std::size_t pols_;
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace

std::unique_ptr<ReferencePath> make_reference_moff(const AllSkyConfig& config) {
  return std::make_unique<MoffReference>(config);
}

}  // namespace ryle::image::detail
