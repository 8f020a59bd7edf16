// SPDX-License-Identifier: BSD-3-Clause
// Gridding with planes of w (improved w-stacking: Arras et al. 2021, A&A 646, A58; the ES function
// of Barnett et al. 2019). Private to engine/image.
#pragma once
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/engine/image/image.hpp"

namespace ryle::math {
class Fft;
}

namespace ryle::image::detail {

/// @eq I(l,m) = Re sum_p exp(-2 pi i w_p t) FFT[ sum_k c_k phi(u - u_k) phi(v - v_k) phi(w_p - w_k)
/// ]
///     / (phi^(l) phi^(m) phi^(t)), t = n - 1 + depth / 2, phi the ES function of 8 cells on a grid
///     twice as fine as the picture needs
/// Numeric contract: within 1e-6 of sum |c| / sum of weights, rms; the same bits for any number of
/// workers.
class GridImager final : public Imager {
 public:
  explicit GridImager(const Config& config);
  void execute(Queue& queue, const std::vector<Sample>& samples,
               std::vector<double>& image) override;
  std::string_view implementation() const override { return "image/cpu/grid"; }
  const Config& config() const override { return config_; }
  struct Geometry;

 private:
  void transform_plane(const math::Fft& fft, double w, const Geometry& g, std::vector<cf64>& cells,
                       std::vector<double>& picture) const;
  Config config_;
};

/// Predicted time, from one transform timed here; infinite where the grids would take more than
/// 2 GB.
double grid_seconds(const Config& config, const std::vector<Sample>& samples, int n_workers);

}  // namespace ryle::image::detail
