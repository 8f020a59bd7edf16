// SPDX-License-Identifier: BSD-3-Clause
// What a configuration must fulfil before anything is planned.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/all_sky_limits.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image {
namespace {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

void require(bool condition, const std::string& message) {
  if (!condition) throw ConfigError("all-sky imager: " + message);
}

void check_array(const AllSkyConfig& c) {
  const auto n = static_cast<std::int64_t>(c.antenna_enu_m.size());
  require(n >= 1, "no antennas; antenna_enu_m needs at least one position");
  require(n <= 8192, text(n, " antennas; at most 8192"));
  for (std::int64_t a = 0; a < n; ++a) {
    const auto& [x, y, z] = c.antenna_enu_m[a];
    require(std::abs(x) < 1e7 && std::abs(y) < 1e7 && std::abs(z) < 1e7,
            text("antenna ", a, " lies at (", x, ", ", y, ", ", z,
                 ") m; positions must be finite and within 1e7 m"));
  }
}

void check_inputs(const AllSkyConfig& c) {
  const auto n = static_cast<std::int64_t>(c.antenna_enu_m.size());
  require(!c.inputs.empty(), "no inputs; every column of the data needs an InputRole");
  std::set<std::pair<std::int64_t, int>> seen;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const auto& input = c.inputs[i];
    require(input.antenna >= 0 && input.antenna < n,
            text("input ", i, " belongs to antenna ", input.antenna, ", but there are ", n,
                 " antennas (0 to ", n - 1, "): the station file does not match the data"));
    require(input.pol == 0 || input.pol == 1,
            text("input ", i, " has polarization ", input.pol, "; it must be 0 (X) or 1 (Y)"));
    require(input.bad || seen.emplace(input.antenna, input.pol).second,
            text("input ", i, " is antenna ", input.antenna, " polarization ",
                 input.pol == 0 ? "X" : "Y", ", as an earlier input is; mark one of them bad"));
  }
  require(!seen.empty(), text("all ", c.inputs.size(), " inputs are marked bad"));
}

void check_axes(const AllSkyConfig& c) {
  require(c.channels.n_channels >= 1,
          text("n_channels is ", c.channels.n_channels, "; it must be at least 1"));
  require(std::isfinite(c.channels.first_center_hz) && c.channels.first_center_hz > 0,
          text("the first channel is at ", c.channels.first_center_hz,
               " Hz; a positive sky frequency is needed"));
  require(std::isfinite(c.channels.channel_width_hz) && c.channels.channel_width_hz >= 0 &&
              (c.channels.channel_width_hz > 0 || c.channels.n_channels == 1),
          text("channel_width_hz is ", c.channels.channel_width_hz,
               "; channels must ascend in sky frequency"));
  require(c.n_channels_per_bin >= 1,
          text("n_channels_per_bin is ", c.n_channels_per_bin, "; it must be at least 1"));
  require(c.n_spectra_per_image >= 1,
          text("n_spectra_per_image is ", c.n_spectra_per_image, "; it must be at least 1"));
}

void check_pixels(const AllSkyConfig& c) {
  require(
      c.n_pixels >= 2 && c.n_pixels <= kMaxPixels && c.n_pixels % 2 == 0,
      text("an image of ", c.n_pixels, " pixels; n_pixels must be even, from 2 to ", kMaxPixels));
  require(c.cell_wavelengths > 0 && c.cell_wavelengths <= 1e6,
          text("cell_wavelengths is ", c.cell_wavelengths,
               "; it must be positive (0.40 images the whole sky)"));
  for (std::size_t i = 0; i < c.directions.size(); ++i) {
    const auto& [l, m, n] = c.directions[i];
    const double length = std::sqrt(l * l + m * m + n * n);
    require(std::abs(length - 1) < 1e-6, text("direction ", i, " (", l, ", ", m, ", ", n,
                                              ") has length ", length, "; it must be 1"));
  }
  checked_product({n_bins(c), n_planes(c), plane_size(c), 4}, "all-sky images");
}

void check_function(const AllSkyConfig& c) {
  const auto& f = c.function;
  require(f.support >= 3 && f.support <= kMaxSupport,
          text("antenna function of ", f.support, " cells; support must be 3 to ", kMaxSupport));
  require(f.beta_per_cell > 0 && f.beta_per_cell <= 10,
          text("beta_per_cell is ", f.beta_per_cell, "; it must be above 0 and at most 10"));
  if (f.apertures.empty()) return;
  const auto wanted = c.antenna_enu_m.size() * static_cast<std::size_t>(n_pols(c));
  require(f.apertures.size() == wanted,
          text(f.apertures.size(), " apertures for ", wanted, " (antennas x polarizations)"));
  for (std::size_t i = 0; i < f.apertures.size(); ++i) {
    const auto& a = f.apertures[i];
    require(a.n >= 1 && a.n <= 4096 && a.step_m > 0 && std::isfinite(a.step_m) &&
                static_cast<std::int64_t>(a.values.size()) == a.n * a.n,
            text("aperture ", i, ": ", a.values.size(), " values on a grid of ", a.n, " x ", a.n,
                 " steps of ", a.step_m, " m; n x n values and a positive step are needed"));
    for (const auto& v : a.values) {
      require(std::isfinite(v.real()) && std::isfinite(v.imag()),
              text("aperture ", i, " has a value that is not finite"));
    }
  }
}

void check_limits(const AllSkyConfig& c) {
  require(c.max_relative_error > 0, text("max_relative_error is ", c.max_relative_error,
                                         "; it must be positive, of the peak"));
  require(
      c.max_zenith_distance_rad >= 0 && c.max_zenith_distance_rad <= 0.5 * kPi,
      text("max_zenith_distance_rad is ", c.max_zenith_distance_rad, "; it must lie in 0..pi/2"));
  require(c.min_coherence >= 0 && c.min_coherence <= 1,
          text("min_coherence is ", c.min_coherence, "; it must lie in 0..1"));
  require(c.max_bytes >= 0, text("max_bytes is ", c.max_bytes, "; 0 means no limit"));
}

bool is_smooth(std::int64_t n) {
  for (const std::int64_t p : {2, 3, 5}) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

// Neighbouring even grid sizes of the form 2^a 3^b 5^c.
std::string neighbours(std::int64_t n) {
  std::int64_t below = n, above = n;
  while (below > 2 && !is_smooth(below)) below -= 2;
  while (!is_smooth(above)) above += 2;
  return text(below, " or ", above);
}

// Farthest non-zero sample from the centre of any aperture, metres along either axis.
double widest_aperture_m(const AllSkyConfig& c) {
  double widest_m = 0;
  for (const auto& a : c.function.apertures) {
    for (std::int64_t k = 0; k < a.n * a.n; ++k) {
      if (a.values[k] == cf64(0)) continue;
      const auto reach = std::max(std::abs(k / a.n - a.n / 2), std::abs(k % a.n - a.n / 2));
      widest_m = std::max(widest_m, 2 * static_cast<double>(reach) * a.step_m);
    }
  }
  return widest_m;
}

}  // namespace

static std::string why_not_gridded(const AllSkyConfig& c, bool needs_correlated) {
  if (!c.directions.empty()) {
    return "a list of directions needs a Fourier-sum path (vis-dft or efield-dft)";
  }
  if (c.cell_wavelengths > 0.5) {
    return text("cells of ", c.cell_wavelengths,
                " wavelengths fold the horizon into the image; gridded paths need 0.5 or less");
  }
  if (!is_smooth(c.n_pixels)) {
    return text("a grid of ", c.n_pixels, " cells is not 2^a 3^b 5^c; use ", neighbours(c.n_pixels),
                " pixels or a Fourier-sum path");
  }
  const auto [east, north] = aperture_extent_cells(c);
  const double widest = std::max(east, north) + static_cast<double>(c.function.support);
  if (widest > static_cast<double>(c.n_pixels) && !c.allow_wrap) {
    return text("the array spans ", std::ceil(east), " x ", std::ceil(north),
                " cells, with a function of ", c.function.support, " more than the grid of ",
                c.n_pixels, ": the beam would be under-sampled; raise n_pixels to ",
                std::ceil(widest),
                ", leave outlying antennas out, or take a Fourier-sum path (vis-dft of "
                "visibilities, efield-dft of voltages)");
  }
  if (!c.function.apertures.empty()) {
    if (needs_correlated) return "antenna apertures need image.correlated_functions = true";
    const double cells = widest_aperture_m(c) * c.channels.center_hz(c.channels.n_channels - 1) /
                         (kSpeedOfLight_m_per_s * c.cell_wavelengths);
    if (cells > static_cast<double>(c.function.support)) {
      return text("an aperture is ", cells, " cells wide at the highest frequency, the function ",
                  c.function.support, "; raise support (at most ", kMaxSupport,
                  ") or cell_wavelengths");
    }
  }
  return "";
}

static std::string why_not_summed(const AllSkyConfig& c) {
  if (c.function.apertures.empty()) return "";
  return "Fourier-sum paths weight all antennas alike; apertures need a gridded path";
}

std::string why_not(const AllSkyConfig& c, Path path) {
  switch (path) {
    case Path::efield:
    case Path::efield_half:
      return why_not_gridded(c, false);
    case Path::vis_grid:
      return why_not_gridded(c, !c.function.correlated);
    case Path::vis_dft:
    case Path::efield_dft:
      return why_not_summed(c);
    case Path::automatic:
      break;
  }
  return "";
}

void validate(const AllSkyConfig& config) {
  check_array(config);
  check_inputs(config);
  check_axes(config);
  check_pixels(config);
  check_function(config);
  check_limits(config);
  const std::string reason = why_not(config, config.path);
  require(reason.empty(), "path " + std::string(name(config.path)) + ": " + reason);
}

}  // namespace ryle::image
