// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <vector>

/// Convolution functions of the gridder: the weight of a sample at an angle from a cell.
/// @eq K(0) = 1, K = 0 from the support radius R on (grid.md 2)
namespace ryle::grid {

enum class Function {
  gauss,    ///< exp(-theta^2 / 2 sigma^2)
  ellipse,  ///< exp(-(xi'^2 / 2 minor^2 + eta'^2 / 2 major^2)), turned by the position angle
  jinc,     ///< 2 J1(pi theta / a) / (pi theta / a) exp(-(theta / b)^2)
  sinc,     ///< sinc(theta / a) exp(-(theta / b)^2), sinc(x) = sin(pi x) / (pi x)
  table,    ///< rows of (theta, K)
  mean,     ///< 1
};

struct Convolution {
  Function function = Function::gauss;
  double support_rad = 0;  ///< R; a sample at exactly R does not count
  double sigma_rad = 0;    ///< gauss
  double minor_rad = 0, major_rad = 0, position_angle_rad = 0;  ///< ellipse; north through east
  double a_rad = 0, b_rad = 0;                                  ///< jinc, sinc
  std::vector<double> table_theta_rad, table_value;             ///< ascending from 0
  std::string table_name;                                       ///< the file it was read from
};

/// Throws ConfigError, with what would work, for widths that are not positive and finite, a support
/// beyond half a turn, or a table that does not ascend from 0.
void check(const Convolution& convolution);

/// (xi, eta): east and north offsets of the sample seen from the cell, of length theta. Support not
/// applied. @unit rad
double value(const Convolution& convolution, double theta, double xi, double eta);
/// Only the angle matters.
bool is_radial(const Convolution& convolution);
/// May be negative inside the support.
bool has_negative_lobes(const Convolution& convolution);

/// K(theta) B(theta) with B the Gaussian beam of that FWHM: the weights of what the samples see of
/// a point source in the cell. The same support, so the same geometry.
Convolution times_beam(const Convolution& convolution, double beam_fwhm_rad);

/// Full width at half maximum of K itself, along its longest axis.
double fwhm_rad(const Convolution& convolution);

/// Functions as a user writes them, of a beam of `beam_fwhm_rad` (0: not known): "gauss",
/// "gauss:2.9arcmin" (the FWHM), "gauss:sigma=73.9arcsec,radius=5sigma", "jinc", "sinc:a=..,b=..",
/// "ellipse:major=..,minor=..,pa=30deg", "mean:radius=1.4arcmin", "table:FILE",
/// "table:FILE,radius=4arcmin". Widths need a unit. Throws ConfigError.
Convolution parse_convolution(const std::string& text, double beam_fwhm_rad);
std::string to_string(const Convolution& convolution);

/// Rows "theta K" of a text file, from theta 0 on; K is divided by that of the first row. Columns
/// are separated by blanks, tabs, commas or semicolons. An angle is one of arcmin, or has its unit
/// ("90arcsec", "90 arcsec"), or the first line names it ("theta_deg K"). # begins a remark.
/// The support ends with the last row. Throws ConfigError with the line.
Convolution read_convolution_table(const std::string& path);

}  // namespace ryle::grid
