// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ryle/engine/image/geometry.hpp"
#include "ryle/engine/image/image.hpp"

/// The equations of the all-sky imager in double, never optimised; shares the geometry but no
/// arithmetic with the fast implementations.
namespace ryle::image::detail {

/// Sums over spectra and channels of products of beams, [pixel]: xx = |B_x|^2, xy = B_x conj(B_y).
struct ProductPlanes {
  std::vector<double> xx, yy;
  std::vector<cf64> xy;
  explicit ProductPlanes(std::int64_t n_pixels = 0) : xx(n_pixels), yy(n_pixels), xy(n_pixels) {}
};

/// Sums of |E_x|^2, |E_y|^2 and E_x conj(E_y) of one antenna.
struct AutoPowers {
  double xx = 0, yy = 0;
  cf64 xy = 0;
};

/// What one spectrum or one set of visibilities adds to the products. "Element" e = antenna *
/// n_pols
/// + pol. Fields are calibrated, the geometry is left to the path; unused elements are 0.
class ReferencePath {
 public:
  virtual ~ReferencePath() = default;
  /// @shape fields [element]
  virtual void add_spectrum(std::int64_t channel, const std::vector<cf64>& fields,
                            ProductPlanes& planes) = 0;
  /// Adds sum_ab V_ab beam_a conj(beam_b). @shape matrix [element][element], Hermitian
  virtual void add_matrix(std::int64_t channel, const std::vector<cf64>& matrix,
                          ProductPlanes& planes) = 0;
  /// The same for a = b only. @shape autos [antenna]
  virtual void add_autos(std::int64_t channel, const std::vector<AutoPowers>& autos,
                         ProductPlanes& planes) = 0;
};
/// Sums over antennas for every pixel (efield-dft, vis-dft).
std::unique_ptr<ReferencePath> make_reference_dft(const AllSkyConfig& config);
/// Fields on the grid, one transform per spectrum; matrices on the grid with K_ab (efield, vis-grid
/// with correlated functions).
std::unique_ptr<ReferencePath> make_reference_moff(const AllSkyConfig& config);
/// Matrices on the grid with w on each baseline (vis-grid, direct).
std::unique_ptr<ReferencePath> make_reference_direct(const AllSkyConfig& config);

/// Element of every input, -1 = not used (bad, or gain 0 or not finite). @shape gains [input]
std::vector<std::int64_t> used_elements(const AllSkyConfig& config, std::span<const cf32> gains);

/// Divides by the weights, makes the planes that were asked for, NaN below the horizon.
/// @shape planes [bin]; weights [bin][3]
void write_images(const AllSkyConfig& config, const std::vector<ProductPlanes>& planes,
                  const std::vector<double>& weights, std::int64_t n_spectra, Images& images);

std::unique_ptr<FieldImager> make_field_reference(const AllSkyConfig& config, Path path);
std::unique_ptr<VisImager> make_vis_reference(const AllSkyConfig& config, Path path);

}  // namespace ryle::image::detail
