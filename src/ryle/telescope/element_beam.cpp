// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/element_beam.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"

namespace ryle {
namespace {

// Where x lies on an ascending axis: the point before it and the fraction of the way to the next.
struct OnAxis {
  std::size_t first = 0;
  double fraction = 0;
};

OnAxis on_axis(const std::vector<double>& axis, double x) {
  if (axis.size() == 1 || x <= axis.front()) return {0, 0};
  if (x >= axis.back()) return {axis.size() - 2, 1};
  const auto next = std::upper_bound(axis.begin(), axis.end(), x);
  const auto k = static_cast<std::size_t>(next - axis.begin()) - 1;
  return {k, (x - axis[k]) / (axis[k + 1] - axis[k])};
}

bool is_ascending(const std::vector<double>& axis) {
  return !axis.empty() &&
         std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>()) == axis.end();
}

// Response of one frequency plane, linear in both angles; azimuth closes on itself.
std::array<cf64, 4> plane_at(const ElementBeamTable& table, std::size_t frequency, double zenith,
                             double azimuth) {
  const std::size_t n_azimuths = table.azimuth_rad.size();
  const OnAxis z = on_axis(table.zenith_rad, zenith);
  std::size_t before = n_azimuths - 1;
  std::size_t after = 0;
  double part = 0;
  if (n_azimuths > 1) {
    const auto next = std::upper_bound(table.azimuth_rad.begin(), table.azimuth_rad.end(), azimuth);
    after = next == table.azimuth_rad.end()
                ? 0
                : static_cast<std::size_t>(next - table.azimuth_rad.begin());
    before = (after + n_azimuths - 1) % n_azimuths;
    double step = table.azimuth_rad[after] - table.azimuth_rad[before];
    double from = azimuth - table.azimuth_rad[before];
    if (step <= 0) step += 2 * kPi;
    if (from < 0) from += 2 * kPi;
    part = from / step;
  }
  const auto value = [&](std::size_t zenith_index, std::size_t azimuth_index, std::size_t term) {
    const std::size_t row = frequency * table.zenith_rad.size() + zenith_index;
    return table.values[(row * n_azimuths + azimuth_index) * 4 + term];
  };
  std::array<cf64, 4> out{};
  for (std::size_t term = 0; term < 4; ++term) {
    const auto along = [&](std::size_t zenith_index) {
      return (1 - part) * value(zenith_index, before, term) +
             part * value(zenith_index, after, term);
    };
    out[term] = (1 - z.fraction) * along(z.first);
    if (z.fraction > 0) out[term] += z.fraction * along(z.first + 1);
  }
  return out;
}

std::array<cf64, 4> jones_of(const ElementBeamTable& table, const std::string& name,
                             const Vector3& enu, double frequency_hz) {
  const auto& axis = table.frequencies_hz;
  // Half of a step beyond the ends is still the channel of the end.
  const double slack_hz = axis.size() > 1 ? 0.5 * (axis[1] - axis[0]) : 0.01 * axis.front();
  if (frequency_hz < axis.front() - slack_hz || frequency_hz > axis.back() + slack_hz) {
    throw ConfigError(fmt::format("element beam {}: it has {:g} to {:g} MHz, not {:g} MHz", name,
                                  axis.front() / 1e6, axis.back() / 1e6, frequency_hz / 1e6));
  }
  const double zenith = std::acos(std::clamp(enu[2], -1.0, 1.0));
  double azimuth = std::atan2(enu[0], enu[1]);
  if (azimuth < 0) azimuth += 2 * kPi;
  const OnAxis f = on_axis(axis, frequency_hz);
  std::array<cf64, 4> out = plane_at(table, f.first, zenith, azimuth);
  if (f.fraction > 0) {
    const auto next = plane_at(table, f.first + 1, zenith, azimuth);
    for (std::size_t k = 0; k < 4; ++k) out[k] = (1 - f.fraction) * out[k] + f.fraction * next[k];
  }
  return out;
}

}  // namespace

ElementBeam ElementBeam::isotropic() { return {Kind::power, "isotropic"}; }

ElementBeam ElementBeam::power(double exponent) {
  if (!(exponent >= 0 && exponent <= 16)) {
    throw ConfigError(fmt::format(
        "element beam: the exponent {:g} of power n^x is not within 0 to 16", exponent));
  }
  ElementBeam beam(Kind::power, fmt::format("power n^{:g}", exponent));
  beam.exponent_ = exponent;
  return beam;
}

ElementBeam ElementBeam::dipole(double height_m, double feed_angle_rad) {
  if (!(height_m >= 0 && height_m < 100)) {
    throw ConfigError(fmt::format(
        "element beam: a dipole {:g} m above ground; a height of more than 0 and less than 100 m "
        "is wanted",
        height_m));
  }
  ElementBeam beam(Kind::dipole, height_m > 0 ? fmt::format("dipole {:g} m above ground", height_m)
                                              : "dipole a quarter of a wavelength above ground");
  beam.height_m_ = height_m;
  beam.feed_angle_rad_ = feed_angle_rad;
  return beam;
}

ElementBeam ElementBeam::table(ElementBeamTable table, std::string name) {
  const std::size_t n =
      table.frequencies_hz.size() * table.zenith_rad.size() * table.azimuth_rad.size() * 4;
  if (!is_ascending(table.frequencies_hz) || !is_ascending(table.zenith_rad) ||
      !is_ascending(table.azimuth_rad) || table.frequencies_hz.front() <= 0 ||
      table.azimuth_rad.back() - table.azimuth_rad.front() >= 2 * kPi || table.values.size() != n) {
    throw ConfigError(fmt::format(
        "element beam {}: {} values for {} frequencies, {} zenith angles and {} azimuths; axes "
        "must ascend, azimuths within a turn, with four values at every point",
        name, table.values.size(), table.frequencies_hz.size(), table.zenith_rad.size(),
        table.azimuth_rad.size()));
  }
  ElementBeam beam(Kind::table, std::move(name));
  beam.table_ = std::make_shared<const ElementBeamTable>(std::move(table));
  return beam;
}

ElementBeam ElementBeam::named(const std::string& text, double feed_angle_rad) {
  const std::string_view all = trimmed(text);
  const auto blank = all.find(' ');
  const std::string kind = lower_case(std::string(all.substr(0, blank)));
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : trimmed(all.substr(blank));
  double value = 0;
  if (kind == "isotropic" && rest.empty()) return isotropic();
  if (kind == "dipole" && rest.empty()) return dipole(0, feed_angle_rad);
  if (kind == "dipole" && parse_finite(rest, value) && value > 0)
    return dipole(value, feed_angle_rad);
  if (kind == "power" && parse_finite(rest, value)) return power(value);
  throw ConfigError(
      "element beam \"" + text +
      "\": must be isotropic, dipole, \"dipole HEIGHT_M\", \"power EXPONENT\" or a table (.h5)");
}

std::array<cf64, 4> ElementBeam::coherency(const Vector3& enu, double frequency_hz) const {
  if (enu[2] <= 0) return {};
  if (kind_ == Kind::power) {
    const double power = exponent_ == 0 ? 1 : std::pow(enu[2], exponent_);
    return {power, 0.0, 0.0, power};
  }
  if (kind_ == Kind::dipole) {
    const double wavelength_m = kSpeedOfLight_m_per_s / frequency_hz;
    const double turns = height_m_ > 0 ? height_m_ / wavelength_m : 0.25;
    const double zenith = std::sin(2 * kPi * turns);
    if (std::abs(zenith) < 0.05) {
      throw ConfigError(
          fmt::format("element beam {}: at {:g} MHz it is {:.3f} wavelengths high and blind to the "
                      "zenith; give "
                      "another height",
                      name_, frequency_hz / 1e6, turns));
    }
    const double field = std::sin(2 * kPi * turns * enu[2]) / zenith;
    // (d_p . theta)(d_q . theta) + (d_p . phi)(d_q . phi) = d_p . d_q - (d_p . s)(d_q . s)
    const double along_x = enu[0] * std::sin(feed_angle_rad_) + enu[1] * std::cos(feed_angle_rad_);
    const double along_y = enu[0] * std::cos(feed_angle_rad_) - enu[1] * std::sin(feed_angle_rad_);
    const double power = field * field;
    return {power * (1 - along_x * along_x), -power * along_x * along_y, -power * along_x * along_y,
            power * (1 - along_y * along_y)};
  }
  const auto j = jones_of(*table_, name_, enu, frequency_hz);
  return {std::norm(j[0]) + std::norm(j[1]), j[0] * std::conj(j[2]) + j[1] * std::conj(j[3]),
          j[2] * std::conj(j[0]) + j[3] * std::conj(j[1]), std::norm(j[2]) + std::norm(j[3])};
}

}  // namespace ryle
