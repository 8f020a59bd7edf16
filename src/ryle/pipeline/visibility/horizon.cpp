// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/horizon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kDay_ns = 86'400'000'000'000;
constexpr std::int64_t kRiseStep_ns = 300'000'000'000;

double altitude_deg(const ArrayLayout& array, const SkyDirection& direction, std::int64_t tai_ns,
                    const EarthOrientation& eo) {
  const double up = enu_of_direction(array, direction, tai_ns, eo)[2];
  return std::asin(std::clamp(up, -1.0, 1.0)) / kDegree_rad;
}

/// The first instant of the next day, to a second, at which a direction below the horizon is above.
std::optional<std::int64_t> next_rise(const ArrayLayout& array, const SkyDirection& direction,
                                      std::int64_t tai_ns, const EarthOrientation& eo) {
  const auto up = [&](std::int64_t t) { return altitude_deg(array, direction, t, eo) > 0; };
  std::int64_t below = tai_ns;
  for (; below < tai_ns + kDay_ns && !up(below + kRiseStep_ns); below += kRiseStep_ns) {
  }
  if (below >= tai_ns + kDay_ns) return std::nullopt;
  std::int64_t above = below + kRiseStep_ns;
  while (above - below > 1'000'000'000) {
    const std::int64_t middle = below + (above - below) / 2;
    (up(middle) ? above : below) = middle;
  }
  return above;
}

}  // namespace

std::string altitude_text(const ArrayLayout& array, const SkyDirection& direction,
                          std::int64_t tai_ns, const EarthOrientation& eo) {
  std::string text = fmt::format(
      "is at altitude {:.1f} deg at {} UTC as seen from latitude {:.4f} deg, longitude {:.4f} deg",
      altitude_deg(array, direction, tai_ns, eo), utc_iso(tai_ns, 0),
      array.latitude_rad / kDegree_rad, array.longitude_rad / kDegree_rad);
  if (altitude_deg(array, direction, tai_ns, eo) > 0) return text;
  const auto rise = next_rise(array, direction, tai_ns, eo);
  return text + (rise ? fmt::format("; it rises at {} UTC", utc_iso(*rise, 0))
                      : std::string("; it does not rise there on that day"));
}

std::string require_phase_center(const ObservationConfig& config, const ArrayLayout& array,
                                 std::int64_t start_tai_ns, double length_s) {
  const SkyDirection center = phase_center(config, array, start_tai_ns);
  if (config.correlate.phase_center == "zenith") return "";
  const EarthOrientation eo{config.telescope.dut1_s};
  const std::int64_t end_tai_ns = start_tai_ns + std::llround(1e9 * length_s);
  const bool up_at_start = altitude_deg(array, center, start_tai_ns, eo) > 0;
  const bool up_at_end = altitude_deg(array, center, end_tai_ns, eo) > 0;
  const std::string what = "correlate.phase_center = \"" + config.correlate.phase_center + "\" ";
  if (!up_at_start && !up_at_end) {
    throw ConfigError(what + altitude_text(array, center, start_tai_ns, eo) +
                      "; a phase center above the horizon or \"zenith\" would work");
  }
  if (up_at_start && up_at_end) return "";
  return what + "is below the horizon for a part of the data: it " +
         altitude_text(array, center, up_at_start ? end_tai_ns : start_tai_ns, eo);
}

std::string require_live_phase_center(const ObservationConfig& config, const ArrayLayout& array,
                                      std::int64_t start_tai_ns) {
  double length_s = config.source.duration_s;
  if (config.source.kind == "simulator")
    length_s = length_s > 0 ? std::min(length_s, config.simulator.duration_s)
                            : config.simulator.duration_s;
  return require_phase_center(config, array, start_tai_ns, length_s);
}

}  // namespace ryle::pipeline
