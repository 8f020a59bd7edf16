// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/device/queue.hpp"

/// All-sky imager: direct Fourier sum over visibilities (conventions.md 5).
/// @eq I(l,m) = sum_ij w_ij Re(V_ij exp(-2 pi i [u l + v m + w (n-1)])) / sum_ij w_ij,  n = sqrt(1
/// - l^2 - m^2)
namespace ryle::image {

struct Config {
  std::int64_t n_pixels = 256;  ///< even; square image
  /// Direction cosines spanned by the full width, centred on pixel N/2: 2.0 = the whole hemisphere.
  double width_direction_cosines = 2.0;
  std::string implementation = "auto";  ///< auto | reference | cpu | cpu:avx512 ...
  /// Called between parts of the work with the share that is done; false stops it, and the image is
  /// left empty. The thread is that of execute().
  std::function<bool(double done)> go_on{};
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
  virtual const Config& config() const = 0;
};

std::unique_ptr<Imager> make_imager(Queue& queue, const Config& config);
std::vector<std::string> available_implementations();

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
