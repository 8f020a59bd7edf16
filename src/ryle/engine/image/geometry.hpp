// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "ryle/engine/image/image.hpp"

/// Geometry that all paths share (image.md 2, 3): the plane of the array, pixels, cells, weights.
namespace ryle::image {

/// Least-squares plane z = alpha x + beta y + z0 through the antennas that are used.
struct ArrayPlane {
  double alpha = 0;  ///< dz / d east
  double beta = 0;   ///< dz / d north
  double z0_m = 0;
  double residual_rms_m = 0;
  std::vector<double> residual_m;  ///< [antenna] height above the plane
};
ArrayPlane fit_plane(const AllSkyConfig& config);
/// |mean_a exp(2 pi i (nu/c) rho_a (cos z - 1))|: what ignoring the residual heights costs.
double plane_coherence(const ArrayPlane& plane, const std::vector<std::uint8_t>& antenna_used,
                       double frequency_hz, double zenith_distance_rad);
/// What the residual heights that gridding leaves out do to an image at a zenith distance.
/// @eq phi_a = 2 pi (nu/c) rho_a (cos z - 1);  flux_loss = 1 - < cos(phi_a - phi_b) >_{a != b}
/// Pixels of noise differ from those of the exact sum by sqrt(2 flux_loss) of the noise, rms: pairs
/// turn by exp(i (phi_a - phi_b)), of which |exp(i phi) - 1|^2 = 2 - 2 cos phi.
struct HeightError {
  double phase_rad = 0;  ///< rms over the antennas, of phi_a
  double flux_loss = 0;  ///< of a point source, autocorrelations removed
};
HeightError height_error(const ArrayPlane& plane, const std::vector<std::uint8_t>& antenna_used,
                         double frequency_hz, double zenith_distance_rad);

/// True direction (l, m, n) behind a pixel of the slant orthographic image: gridded paths image a
/// source at l' = l - alpha (1 - n), m' = m - beta (1 - n). n = NaN below the horizon.
std::array<double, 3> direction_of_pixel(const AllSkyConfig& config, const ArrayPlane& plane,
                                         double x, double y);
/// Fractional pixel of a direction.
std::array<double, 2> pixel_of_direction(const AllSkyConfig& config, const ArrayPlane& plane,
                                         const std::array<double, 3>& direction);

/// Largest support an antenna function may have.
inline constexpr std::int64_t kMaxSupport = 9;

/// Where one antenna (or, in the direct form, one baseline) lies on the grid of a channel. Cell j_x
/// = G/2 + x nu/(c delta), j_y = G/2 - y nu/(c delta): both axes then take the + transform and
/// pixels need no reversal. Cell j is centred at coordinate j. Cells are cyclic.
struct AntennaCells {
  std::int64_t first_x = 0;  ///< may be negative or >= G: taken modulo G
  std::int64_t first_y = 0;
  std::array<double, kMaxSupport> weight_x{};  ///< separable (ES)
  std::array<double, kMaxSupport> weight_y{};
};
/// @eq w(u) = exp(beta (sqrt(1 - (2u/k)^2) - 1)), 0 for |u| >= k/2   @unit u_cells: cells
double es_function(const AntennaFunction& function, double u_cells);
/// The k x k cells nearest to a point given in cells, with the ES weights w(first + i - point).
AntennaCells cells_around(const AntennaFunction& function, double x_cells, double y_cells);
/// Fractional cells (j_x, j_y) of the antennas, the middle of the used ones moved to G/2: a common
/// shift, which no product sees. @shape [antenna]
std::vector<std::array<double, 2>> antenna_positions_cells(const AllSkyConfig& config,
                                                           std::int64_t channel);
/// cells_around the antenna_positions_cells: the box of occupied cells is centred, hence small. A
/// baseline a, b of the direct form lies at cells_around the difference of the two positions, where
/// cell 0 is u = 0. @shape [antenna]
std::vector<AntennaCells> antenna_cells(const AllSkyConfig& config, std::int64_t channel);
/// Cells between the outermost used antennas, east-west and north-south, at the highest frequency.
std::array<double, 2> aperture_extent_cells(const AllSkyConfig& config);
/// User apertures sampled (bilinear) at the true sub-cell offset on the cells of antenna_cells(),
/// unit sum. Throws ConfigError when no cell centre meets an aperture.
/// @shape [antenna * n_pols + pol][y * k + x]
std::vector<std::vector<cf64>> aperture_weights(const AllSkyConfig& config, std::int64_t channel);

/// Phase that calibration leaves to geometry: exp(-2 pi i nu z_a / c). Gridded E-fields are
/// multiplied with it (heights phased to zenith); Fourier sums use the whole z_a n instead, the
/// same at zenith. Neither is part of the gains.
cf64 height_phase(double frequency_hz, double up_m);

/// Taper every gridded image is divided by. @shape [y][x] G*G
/// E-field and correlated functions: mean over used antennas of |FFT w_a|^2. With user apertures
/// one plane per product, [XX, YY, XY][y][x] (one polarization: one plane); that of XY is
/// sqrt(XX YY), real, so that phases of XY* stay as measured.
std::vector<double> correlated_taper(const AllSkyConfig& config, std::int64_t channel);
/// Direct: w^ on the baseline, separable, quadrature in double. The same for all channels.
std::vector<double> direct_taper(const AllSkyConfig& config);

/// Antennas with at least one good input.
std::vector<std::uint8_t> antennas_used(const AllSkyConfig& config);

}  // namespace ryle::image
