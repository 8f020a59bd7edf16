// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/sky_visibilities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

double projected(const Vector3& a, const Vector3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector3 difference(const Vector3& a, const Vector3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

// exp(2 pi i turns), exact for many turns.
cf64 phasor(double turns) { return std::polar(1.0, 2 * kPi * (turns - std::round(turns))); }

// pi^2 / (4 ln 2) ((b . major axis)^2 + (b . minor axis)^2) of a baseline in metres; times
// (nu / c)^2 it is the exponent of the Gaussian. 0 of a point.
double taper_m2(const ApparentSource& source, const Vector3& baseline_m) {
  if (source.major_rad == 0 && source.minor_rad == 0) return 0;
  const double u = projected(baseline_m, source.tangent[0]);
  const double v = projected(baseline_m, source.tangent[1]);
  const double s = std::sin(source.angle_rad), c = std::cos(source.angle_rad);
  const double along = source.major_rad * (u * s + v * c);
  const double across = source.minor_rad * (u * c - v * s);
  return kPi * kPi / (4 * std::log(2.0)) * (along * along + across * across);
}

// One feed angle for all, or a ConfigError: the beam is one for the array.
void require_one_feed_angle(const ArrayLayout& array, const ElementBeam& beam) {
  if (!beam.is_polarized() || array.inputs.empty()) return;
  const double first = array.inputs.front().feed_angle_rad;
  for (const ArrayInput& input : array.inputs) {
    if (std::abs(input.feed_angle_rad - first) > 1e-6) {
      throw ConfigError(fmt::format(
          "element beam {}: the feeds of {} stand at {:.1f} and {:.1f} degrees; one beam for all "
          "antennas needs one angle: take isotropic or power",
          beam.name(), array.name, first / kDegree_rad, input.feed_angle_rad / kDegree_rad));
    }
  }
}

std::string elevation_text(double sine) {
  return fmt::format("{:.1f} deg", std::asin(std::clamp(sine, -1.0, 1.0)) / kDegree_rad);
}

// "" where every frequency has a flux, or the flux is free.
std::string missing_flux(const SkySource& source, std::span<const double> frequencies_hz) {
  if (source.is_flux_free()) return "";
  for (const double hz : frequencies_hz) {
    if (!has_flux(source, hz))
      return fmt::format("its flux at {:g} MHz is not known ({})", hz / 1e6, flux_range(source));
  }
  return "";
}

std::vector<cf64> by_equation(const ArrayLayout& array, std::span<const ApparentSource> sources,
                              std::span<const double> frequencies_hz, const Vector3& s0,
                              std::span<const int> products) {
  const std::int64_t n = array.n_antennas();
  const std::size_t n_products = products.size();
  std::vector<cf64> model(frequencies_hz.size() * n_pairs(n) * n_products);
  for (std::size_t channel = 0; channel < frequencies_hz.size(); ++channel) {
    const double per_m = frequencies_hz[channel] / kSpeedOfLight_m_per_s;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const Vector3 baseline_m = difference(array.antennas[i].enu_m, array.antennas[j].enu_m);
        cf64* out = &model[(channel * n_pairs(n) + pair_index(i, j)) * n_products];
        for (const ApparentSource& source : sources) {
          const cf64 fringe = phasor(per_m * projected(baseline_m, difference(source.enu, s0))) *
                              std::exp(-taper_m2(source, baseline_m) * per_m * per_m);
          for (std::size_t p = 0; p < n_products; ++p)
            out[p] += source.coherency[channel][products[p]] * fringe;
        }
      }
    }
  }
  return model;
}

// sum_i and j of one source and channel: phase_i conj(phase_j), tapered, into rows of pairs.
std::vector<cf64> by_antennas(const ArrayLayout& array, std::span<const ApparentSource> sources,
                              std::span<const double> frequencies_hz, const Vector3& s0,
                              std::span<const int> products) {
  const std::int64_t n = array.n_antennas();
  const auto n_inputs = static_cast<std::size_t>(n);
  const std::size_t n_baselines = n_pairs(n);
  const std::size_t n_products = products.size();
  std::vector<cf64> model(frequencies_hz.size() * n_baselines * n_products);
  std::vector<double> turns_m(n_inputs), re(n_inputs), im(n_inputs), row_re(n_inputs),
      row_im(n_inputs), taper(n_inputs);
  std::vector<double> exponents_m2;
  for (const ApparentSource& source : sources) {
    const Vector3 direction = difference(source.enu, s0);
    for (std::size_t a = 0; a < n_inputs; ++a)
      turns_m[a] = projected(array.antennas[a].enu_m, direction);
    const bool is_point = source.major_rad == 0 && source.minor_rad == 0;
    if (!is_point) {
      exponents_m2.resize(n_baselines);
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) {
          exponents_m2[pair_index(i, j)] =
              taper_m2(source, difference(array.antennas[i].enu_m, array.antennas[j].enu_m));
        }
      }
    }
    for (std::size_t channel = 0; channel < frequencies_hz.size(); ++channel) {
      const double per_m = frequencies_hz[channel] / kSpeedOfLight_m_per_s;
      for (std::size_t a = 0; a < n_inputs; ++a) {
        const cf64 phase = phasor(per_m * turns_m[a]);
        re[a] = phase.real();
        im[a] = phase.imag();
      }
      for (std::size_t j = 0; j < n_inputs; ++j) {
        const std::size_t first = j * (j + 1) / 2;
        for (std::size_t i = 0; i <= j; ++i) {
          row_re[i] = re[i] * re[j] + im[i] * im[j];
          row_im[i] = im[i] * re[j] - re[i] * im[j];
        }
        if (!is_point) {
          for (std::size_t i = 0; i <= j; ++i)
            taper[i] = std::exp(-exponents_m2[first + i] * per_m * per_m);
          for (std::size_t i = 0; i <= j; ++i) {
            row_re[i] *= taper[i];
            row_im[i] *= taper[i];
          }
        }
        cf64* out = &model[(channel * n_baselines + first) * n_products];
        for (std::size_t p = 0; p < n_products; ++p) {
          const cf64 c = source.coherency[channel][products[p]];
          for (std::size_t i = 0; i <= j; ++i) {
            out[i * n_products + p] += cf64(c.real() * row_re[i] - c.imag() * row_im[i],
                                            c.real() * row_im[i] + c.imag() * row_re[i]);
          }
        }
      }
    }
  }
  return model;
}

}  // namespace

ApparentSky apparent_sky(const SkyModel& sky, const ArrayLayout& array, std::int64_t tai_ns,
                         std::span<const double> frequencies_hz, const ElementBeam& beam,
                         double min_elevation_rad, const EarthOrientation& eo) {
  RYLE_ASSERT(!frequencies_hz.empty());
  require_one_feed_angle(array, beam);
  const double lowest = std::sin(min_elevation_rad);
  const double year = julian_year(tai_ns);
  std::vector<SkyDirection> directions;
  directions.reserve(sky.sources.size() + 1);
  for (const SkySource& source : sky.sources) directions.push_back(source.direction(tai_ns));
  directions.push_back(sun(tai_ns));
  const auto enu = enu_of_directions(array, directions, tai_ns, eo);
  ApparentSky apparent;
  bool has_sun = false;
  std::int64_t n_low = 0;
  for (std::size_t k = 0; k < sky.sources.size(); ++k) {
    const SkySource& source = sky.sources[k];
    has_sun = has_sun || !source.fixed;
    if (enu[k][2] <= std::max(0.0, lowest)) {
      ++n_low;
      apparent.left_out.push_back(source.name + ": at elevation " + elevation_text(enu[k][2]));
      continue;
    }
    const std::string missing = missing_flux(source, frequencies_hz);
    if (!missing.empty()) {
      if (!source.of_group) {
        throw ConfigError(source.name + ": " + missing +
                          ", and none is extrapolated; give a model file that has it, or leave the "
                          "source out");
      }
      apparent.left_out.push_back(source.name + ": " + missing);
      continue;
    }
    ApparentSource seen;
    seen.name = source.name;
    seen.enu = enu[k];
    seen.major_rad = source.major_rad;
    seen.minor_rad = source.minor_rad;
    seen.angle_rad = source.angle_rad;
    if (source.major_rad > 0 || source.minor_rad > 0) {
      const auto axes = uvw_axes(array, directions[k], tai_ns, eo);
      seen.tangent = {axes[0], axes[1]};
    }
    seen.is_flux_free = source.is_flux_free();
    for (const double hz : frequencies_hz) {
      auto c = beam.coherency(seen.enu, hz);
      const double jy = seen.is_flux_free ? 1 : flux_jy(source, hz, year);
      for (cf64& value : c) value *= jy;
      seen.coherency.push_back(c);
    }
    if (!seen.is_flux_free) {
      const FluxDensity flux =
          flux_density(source, frequencies_hz[frequencies_hz.size() / 2], year);
      seen.relative_error = flux.jy != 0 ? std::abs(flux.error_jy / flux.jy) : 0;
    }
    apparent.sources.push_back(std::move(seen));
  }
  constexpr std::size_t kLines = 32;  // of a catalogue a count says more
  if (apparent.left_out.size() > kLines) {
    const auto n_unknown = static_cast<std::int64_t>(apparent.left_out.size()) - n_low;
    apparent.left_out = {fmt::format("{} sources below the elevation limit", n_low)};
    if (n_unknown > 0) {
      apparent.left_out.push_back(
          fmt::format("{} sources whose flux at these frequencies is not known", n_unknown));
    }
  }
  if (apparent.sources.empty()) {
    std::string why;
    for (const std::string& line : apparent.left_out) why += (why.empty() ? "" : "; ") + line;
    throw ConfigError(
        fmt::format("no source of the sky model is above {:.1f} deg with a known flux at {}: {}",
                    std::max(0.0, min_elevation_rad) / kDegree_rad, utc_iso(tai_ns, 0), why));
  }
  if (!has_sun && enu.back()[2] > 0.05) {
    apparent.warnings.push_back("the Sun is up (elevation " + elevation_text(enu.back()[2]) +
                                ") and not in the sky model: below some 500 MHz it is among the "
                                "brightest sources");
  }
  return apparent;
}

std::vector<cf64> model_visibilities(const ArrayLayout& array,
                                     std::span<const ApparentSource> sources,
                                     std::span<const double> frequencies_hz,
                                     const Vector3& phase_center_enu, std::span<const int> products,
                                     ModelMethod method) {
  for (const ApparentSource& source : sources)
    RYLE_ASSERT(source.coherency.size() == frequencies_hz.size());
  for (const int product : products) RYLE_ASSERT(product >= 0 && product < 4);
  return method == ModelMethod::reference
             ? by_equation(array, sources, frequencies_hz, phase_center_enu, products)
             : by_antennas(array, sources, frequencies_hz, phase_center_enu, products);
}

}  // namespace ryle
