// SPDX-License-Identifier: BSD-3-Clause
// The direct Fourier sum.
#include <cmath>
#include <complex>

#include "ryle/core/units.hpp"
#include "ryle/engine/image/reference.hpp"

namespace ryle::image::detail {
namespace {

class DftReference final : public ReferencePath {
 public:
  explicit DftReference(const AllSkyConfig& config)
      : config_(config), pols_(static_cast<std::size_t>(n_pols(config))) {
    directions_ = config.directions;
    if (!directions_.empty()) return;
    const ArrayPlane plane = fit_plane(config);
    for (std::int64_t y = 0; y < config.n_pixels; ++y) {
      for (std::int64_t x = 0; x < config.n_pixels; ++x) {
        directions_.push_back(
            direction_of_pixel(config, plane, static_cast<double>(x), static_cast<double>(y)));
      }
    }
  }

  // @eq B_p = sum_a E_ap steer_a
  void add_spectrum(std::int64_t channel, const std::vector<cf64>& fields,
                    ProductPlanes& planes) override {
    for (std::size_t pixel = 0; pixel < directions_.size(); ++pixel) {
      if (!(directions_[pixel][2] > 0)) continue;
      const auto steer = steering(channel, directions_[pixel]);
      cf64 x = 0, y = 0;
      for (std::size_t a = 0; a < steer.size(); ++a) {
        x += fields[a * pols_] * steer[a];
        if (pols_ == 2) y += fields[a * pols_ + 1] * steer[a];
      }
      planes.xx[pixel] += std::norm(x);
      planes.yy[pixel] += std::norm(y);
      planes.xy[pixel] += x * std::conj(y);
    }
  }

  // @eq I_pq = sum_ab V_ap,bq steer_a conj(steer_b)
  void add_matrix(std::int64_t channel, const std::vector<cf64>& matrix,
                  ProductPlanes& planes) override {
    for (std::size_t pixel = 0; pixel < directions_.size(); ++pixel) {
      if (!(directions_[pixel][2] > 0)) continue;
      const auto steer = steering(channel, directions_[pixel]);
      planes.xx[pixel] += product(matrix, steer, 0, 0).real();
      if (pols_ == 1) continue;
      planes.yy[pixel] += product(matrix, steer, 1, 1).real();
      planes.xy[pixel] += product(matrix, steer, 0, 1);
    }
  }

  // steer_a conj(steer_a) = 1
  void add_autos(std::int64_t, const std::vector<AutoPowers>& autos,
                 ProductPlanes& planes) override {
    for (const auto& power : autos) {
      for (std::size_t pixel = 0; pixel < directions_.size(); ++pixel) {
        planes.xx[pixel] += power.xx;
        planes.yy[pixel] += power.yy;
        planes.xy[pixel] += power.xy;
      }
    }
  }

 private:
  cf64 product(const std::vector<cf64>& matrix, const std::vector<cf64>& steer, std::size_t p,
               std::size_t q) const {
    const std::size_t n = steer.size();
    cf64 sum = 0;
    for (std::size_t a = 0; a < n; ++a) {
      cf64 row = 0;
      const cf64* values = &matrix[(a * pols_ + p) * n * pols_ + q];
      for (std::size_t b = 0; b < n; ++b) row += values[b * pols_] * std::conj(steer[b]);
      sum += row * steer[a];
    }
    return sum;
  }

  // @eq exp(-2 pi i (nu/c) [x l + y m + z n]), phase reduced in turns
  std::vector<cf64> steering(std::int64_t channel, const std::array<double, 3>& s) const {
    const double waves_per_m = config_.channels.center_hz(channel) / kSpeedOfLight_m_per_s;
    std::vector<cf64> steer;
    for (const auto& [x, y, z] : config_.antenna_enu_m) {
      const double turns = waves_per_m * (x * s[0] + y * s[1] + z * s[2]);
      steer.push_back(std::polar(1.0, -2 * kPi * (turns - std::round(turns))));
    }
    return steer;
  }

  AllSkyConfig config_;
  std::size_t pols_;
  std::vector<std::array<double, 3>> directions_;
};

}  // namespace

std::unique_ptr<ReferencePath> make_reference_dft(const AllSkyConfig& config) {
  return std::make_unique<DftReference>(config);
}

}  // namespace ryle::image::detail
