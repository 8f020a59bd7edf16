// SPDX-License-Identifier: BSD-3-Clause
// Visibilities on the grid with w laid on each baseline.
#include "ryle/core/error.hpp"
#include "ryle/engine/image/reference_grid.hpp"

namespace ryle::image::detail {
namespace {

class DirectReference final : public ReferencePath {
 public:
  explicit DirectReference(const AllSkyConfig& config)
      : config_(config),
        pols_(static_cast<std::size_t>(n_pols(config))),
        taper_(direct_taper(config)) {}

  void add_spectrum(std::int64_t, const std::vector<cf64>&, ProductPlanes&) override {
    RYLE_ASSERT(!"functions on baselines need visibilities");
  }

  // @eq U(d) = sum_ab V_ab w(d - (j_a - j_b))
  void add_matrix(std::int64_t channel, const std::vector<cf64>& matrix,
                  ProductPlanes& planes) override {
    const auto positions = antenna_positions_cells(config_, channel);
    const double nu_hz = config_.channels.center_hz(channel);
    const std::size_t n = positions.size() * pols_;
    std::vector<ReferenceGrid> grids(3, ReferenceGrid(config_.n_pixels));
    for (std::size_t e = 0; e < n; ++e) {
      for (std::size_t f = 0; f < n; ++f) {
        const std::size_t a = e / pols_, b = f / pols_, p = e % pols_, q = f % pols_;
        if (matrix[e * n + f] == cf64(0) || p > q) continue;
        const cf64 heights = height_phase(nu_hz, config_.antenna_enu_m[a][2]) *
                             std::conj(height_phase(nu_hz, config_.antenna_enu_m[b][2]));
        const AntennaCells cells = cells_around(config_.function, positions[a][0] - positions[b][0],
                                                positions[a][1] - positions[b][1]);
        const std::int64_t k = config_.function.support;
        for (std::int64_t r = 0; r < k * k; ++r) {
          grids[p != q ? 2 : p].add(
              cells.first_y + r / k, cells.first_x + r % k,
              matrix[e * n + f] * heights * cells.weight_y[r / k] * cells.weight_x[r % k]);
        }
      }
    }
    add_tapered(grids[0], grids[1], grids[2], taper_, planes);
  }

  void add_autos(std::int64_t, const std::vector<AutoPowers>&, ProductPlanes&) override {
    RYLE_ASSERT(!"functions on baselines need visibilities");
  }

 private:
  AllSkyConfig config_;
  std::size_t pols_;
  std::vector<double> taper_;
};

}  // namespace

std::unique_ptr<ReferencePath> make_reference_direct(const AllSkyConfig& config) {
  return std::make_unique<DirectReference>(config);
}

}  // namespace ryle::image::detail
