// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/blocks.hpp"
#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/device/queue.hpp"

/// All-sky imager of an array of antennas: one configuration, five paths that make the same image.
/// @eq B_p(l,m) = sum_a c_ap v_ap exp(-2 pi i (nu/c) [x_a l + y_a m + z_a n]),
///     I_pq = < B_p conj(B_q) >_t   (Thyagarajan et al. 2017, MOFF; Reddy et al. 2023, eq. 1 to 4)
/// @eq < |FFT g|^2 >_t = FFT[ sum_ab V_ab K_ab ], g = sum_a E_a w_a, K_ab = w_a cross-correlated
///     with w_b: the E-field and the visibility paths agree exactly, for any layout and functions
namespace ryle::image {

enum class Path : std::uint8_t {
  automatic,    ///< "auto": the cheapest that meets the limits of the configuration
  efield,       ///< "efield": grid, transform, multiply every spectrum; fp32 (Reddy 2023)
  efield_half,  ///< "efield-half": the same with fp16 operands and fp32 sums
  vis_grid,     ///< "vis-grid": correlate, grid the visibilities, one transform per image
  vis_dft,      ///< "vis-dft": correlate, direct Fourier sum; exact n term, any pixel list
  efield_dft,   ///< "efield-dft": direct Fourier sum of every spectrum; exact n term
};
/// Every path but "auto".
inline constexpr Path kPaths[] = {Path::efield, Path::efield_half, Path::vis_grid, Path::vis_dft,
                                  Path::efield_dft};
std::string_view name(Path path);
/// Inverse of name(); throws UnsupportedError that lists the known names.
Path path_named(std::string_view name);
/// Paths that take voltages (FieldImager); the others take visibilities (VisImager).
bool takes_voltages(Path path);

/// What one input of the data is. Inputs are listed in sample order.
struct InputRole {
  std::int64_t antenna = 0;
  int pol = 0;       ///< 0 = X, 1 = Y
  bool bad = false;  ///< never used
};

/// Aperture of one antenna and polarization on a square metre grid, row = north ascending, column =
/// east ascending, centre at (n/2, n/2): the voltage pattern's transform.
struct Aperture {
  double step_m = 0;
  std::int64_t n = 0;
  std::vector<cf64> values;  ///< [row][column]
};

/// How a voltage (or a visibility) is laid on the grid.
/// @eq ES: w(u) = exp(beta (sqrt(1 - (2u/k)^2) - 1)), |u| < k/2 cells, beta = beta_per_cell * k
struct AntennaFunction {
  std::int64_t support = 7;  ///< k, 3 .. 9 cells per axis
  double beta_per_cell = 2.3;
  /// User apertures, [antenna * n_pols + pol]; empty = ES for all. Sampled per channel.
  std::vector<Aperture> apertures;
  /// Visibility path: grid with K_ab (needed with apertures, equal to E-field imaging to rounding)
  /// instead of w laid directly on the baseline.
  bool correlated = false;
};

enum class Products : std::uint8_t {
  stokes,     ///< I, Q, U, V = (XX+YY)/2, (XX-YY)/2, Re XY*, Im XY* (conventions.md)
  linear,     ///< XX, YY, Re XY*, Im XY*
  intensity,  ///< I only
};

struct AllSkyConfig {
  std::vector<std::array<double, 3>> antenna_enu_m;  ///< [antenna] east, north, up
  std::vector<InputRole> inputs;                     ///< [input]
  FrequencyAxis channels;
  std::int64_t n_channels_per_bin = 1;  ///< image bins; the last bin may be short
  std::int64_t n_spectra_per_image = 1;
  std::int64_t n_pixels = 128;     ///< G: even; gridded paths want 2^a 3^b 5^c
  double cell_wavelengths = 0.40;  ///< delta; pixel = 1 / (G delta) in direction cosine
  /// Directions (l east, m north, n) instead of the square image; Fourier-sum paths only. Output is
  /// then [bin][plane][direction].
  std::vector<std::array<double, 3>> directions;
  AntennaFunction function;
  bool remove_autos = true;
  bool allow_wrap = false;  ///< gridded paths: aperture wider than the grid (exact, but aliased)
  Products products = Products::stokes;
  Path path = Path::automatic;
  std::string implementation = "auto";  ///< auto | reference | cpu | cpu:avx512 | cuda ...
  double max_relative_error = 1e-4;     ///< of the peak; limits the choice of `automatic`
  double max_zenith_distance_rad = 1.31;
  double min_coherence = 0.95;
  std::int64_t max_bytes = 0;  ///< 0 = no limit
};

int n_pols(const AllSkyConfig& config);
std::int64_t n_bins(const AllSkyConfig& config);
/// 4, or 1 for one polarization or Products::intensity.
std::int64_t n_planes(const AllSkyConfig& config);
/// Pixels of one plane: G^2 or the number of directions.
std::int64_t plane_size(const AllSkyConfig& config);
/// Throws ConfigError with the value and what would work. Every make_* and plan() calls it.
void validate(const AllSkyConfig& config);

/// Images of one integration.
/// @shape pixels [bin][plane][y][x] (or [bin][plane][direction]) float; NaN below the horizon.
///        pixel (x, y): l' = -(x - G/2) / (G delta), m' = (y - G/2) / (G delta), slant of the array
///        plane included (geometry.hpp direction_of_pixel); zenith at (G/2, G/2)
/// @shape weights [bin][3]: pairs of valid inputs behind XX, YY and XY*, summed over channels and
///        spectra; 0 = the plane is NaN
struct Images {
  std::vector<float> pixels;
  std::vector<double> weights;
  std::int64_t n_spectra = 0;  ///< nominal, lost ones included
};

/// A gulp of voltages. Absent samples are already 0 in the blocks; the bit planes drive the weights
/// (same meaning as in correlate::Input).
struct FieldInput {
  ConstBlockView blocks;  ///< [channel][block][input], ci4 or ci8; cuda: device memory
  std::int64_t n_spectra = 0;
  const std::uint64_t* valid = nullptr;  ///< [channel or 1][input][valid_words], host
  std::int64_t valid_words = 0;
  std::int64_t valid_channel_stride_words = 0;  ///< 0: one mask for all channels
};

/// Voltages to images, every spectrum transformed. Accumulates until finish().
class FieldImager {
 public:
  virtual ~FieldImager() = default;
  /// Calibration c of conventions.md: v_calibrated = c v, [channel][input]; 0 = not used. Cable
  /// delays are part of c, geometry is not. Takes effect from the next execute(). A gain that is
  /// not finite counts as 0. Before the first call all gains are 1. ConfigError for a wrong number.
  virtual void set_gains(Queue& queue, std::span<const cf32> gains) = 0;
  /// Adds a gulp of any length. Asynchronous on the queue, no allocation.
  virtual void execute(Queue& queue, const FieldInput& input) = 0;
  /// Waits, writes the images of everything since reset() and resets.
  virtual void finish(Queue& queue, Images& images) = 0;
  virtual void reset(Queue& queue) = 0;
  virtual Path path() const = 0;
  /// A name that AllSkyConfig::implementation takes: "reference", "cpu:avx512", "cuda".
  virtual std::string_view implementation() const = 0;
  virtual const AllSkyConfig& config() const = 0;
};

/// Sums of products from a correlator: raw, not divided by anything, not calibrated.
/// @shape sums [channel][pair] complex, pair = pair_index(i, j) over inputs, i <= j
/// (core/baseline.hpp)
/// @shape counts [channel][pair]; nullptr = n_spectra everywhere; 0 = the pair is not used
/// @pre floating-point sums are finite wherever their count is not 0
struct VisInput {
  enum class Type : std::uint8_t { ci32, ci64, cf32, cf64 };
  Type type = Type::ci64;
  const void* sums = nullptr;  ///< cuda: device memory
  /// cuda only, instead of `sums`: int32 sums times 2^tile_shift as the tensor-core correlator
  /// keeps them (correlate/cuda.hpp finish_on_device, order in device/cuda/product_tiles.hpp).
  const std::int32_t* tiles = nullptr;
  int tile_shift = 0;
  const std::uint32_t* counts = nullptr;  ///< cuda: device memory
  std::int64_t n_spectra = 0;
};

/// Visibilities to images.
class VisImager {
 public:
  virtual ~VisImager() = default;
  virtual void set_gains(Queue& queue, std::span<const cf32> gains) = 0;
  /// One set of images from one set of sums.
  virtual void execute(Queue& queue, const VisInput& input, Images& images) = 0;
  virtual Path path() const = 0;
  virtual std::string_view implementation() const = 0;
  virtual const AllSkyConfig& config() const = 0;
};

/// @pre config.path (or plan(config).choice) takes voltages. Throws UnsupportedError naming what
/// works when the implementation cannot run here.
std::unique_ptr<FieldImager> make_field_imager(Queue& queue, const AllSkyConfig& config);
std::unique_ptr<VisImager> make_vis_imager(Queue& queue, const AllSkyConfig& config);
/// "efield/cpu:avx512", "vis-grid/reference", ...
std::vector<std::string> available_all_sky_implementations();

// The sample imager: an image of any list of visibilities (conventions.md 5).
// @eq I(l,m) = sum_ij w_ij Re(V_ij exp(-2 pi i [u l + v m + w (n-1)])) / sum_ij w_ij,  n = sqrt(1
// - l^2 - m^2)

/// How the sample imager makes the sum.
enum class SamplePath : std::uint8_t {
  automatic,  ///< "auto": what is predicted to be the fastest of those within max_error
  direct,     ///< "direct": every sample at every pixel
  gridded,    ///< "gridded": one grid, one transform; leaves out w, but for its middle
  w_stacked,  ///< "w-stacked": planes of w, a grid and a transform each
};
std::string_view name(SamplePath path);
/// Inverse of name(); none for another name.
std::optional<SamplePath> sample_path_named(std::string_view name);

struct Config {
  /// Square image; l = m = 0 is pixel N/2, rounded down. @range 2 .. 65536
  std::int64_t n_pixels = 256;
  /// Direction cosines spanned by the full width: 2.0 = the whole hemisphere.
  double width_direction_cosines = 2.0;
  std::string implementation = "auto";  ///< auto | reference | cpu | cpu:avx512 ...
  /// Called between parts of the work with the share that is done; false stops it, and the image is
  /// left empty. The thread is that of execute().
  std::function<bool(double done)> go_on{};
  SamplePath path = SamplePath::automatic;
  /// Of the paths "gridded" (but for w) and "w-stacked": the largest difference from the exact sum,
  /// as a share of the weighted mean of |V|. @range 1e-12 .. 0.01
  double max_error = 1e-5;
};

/// One visibility sample; (u, v, w) = (r_i - r_j) along l, m, s_0, in wavelengths.
struct Sample {
  double u = 0, v = 0, w = 0;
  cf64 visibility;
  double weight = 0;
};

class Imager {
 public:
  virtual ~Imager() = default;
  /// Image of the samples. Pixels [y][x]: l grows toward smaller x, m toward larger y, l = m = 0 at
  /// (N/2, N/2); NaN where l^2 + m^2 >= 1. @shape image [y][x] N*N doubles
  virtual void execute(Queue& queue, const std::vector<Sample>& samples,
                       std::vector<double>& image) = 0;
  virtual std::string_view implementation() const = 0;
  /// What is taken; of the path "auto": what the last execute() took.
  virtual SamplePath path() const = 0;
  virtual const Config& config() const = 0;
};

std::unique_ptr<Imager> make_imager(Queue& queue, const Config& config);
std::vector<std::string> available_implementations();
/// What the path "gridded" leaves out: the largest phase error at the edge of the picture. @unit
/// rad
double w_phase_error_rad(const Config& config, const std::vector<Sample>& samples);

/// (l, m) of a pixel centre, fractional pixels allowed.
struct Direction {
  double l = 0;
  double m = 0;
};
Direction direction_of_pixel(const Config& config, double x, double y);
/// Fractional pixel of a direction.
struct Pixel {
  double x = 0;
  double y = 0;
};
Pixel pixel_of_direction(const Config& config, double l, double m);

}  // namespace ryle::image
