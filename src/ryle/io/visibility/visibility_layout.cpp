// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/visibility_layout.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ryle/core/baseline.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::io {
namespace {

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

}  // namespace

void check_observation(const Observation& observation) {
  const ArrayLayout& array = observation.array;
  if (array.n_antennas() < 1)
    throw ConfigError("cannot write visibilities: the array has no antennas");
  if (observation.frequency.n_channels < 1)
    throw ConfigError("cannot write visibilities: no frequency channels");
  for (const ArrayInput& input : array.inputs) {
    if (input.antenna < 0 || input.antenna >= array.n_antennas() || input.pol < 0 ||
        input.pol > 1) {
      throw ConfigError("cannot write visibilities: an input names antenna " +
                        std::to_string(input.antenna) + " pol " + std::to_string(input.pol) +
                        ", but the array has " + std::to_string(array.n_antennas()) +
                        " antennas and pols 0 and 1");
    }
  }
}

void check_dump(const Observation& observation, const VisibilityDump& dump) {
  const std::int64_t n_baselines = n_pairs(observation.array.n_antennas());
  const auto reject = [](const char* field, std::int64_t value, std::int64_t expected) {
    throw ConfigError(std::string("cannot write this dump: ") + field + " is " +
                      std::to_string(value) + ", the observation has " + std::to_string(expected));
  };
  if (dump.n_channels != observation.frequency.n_channels) {
    reject("n_channels", dump.n_channels, observation.frequency.n_channels);
  }
  if (dump.n_baselines != n_baselines) reject("n_baselines", dump.n_baselines, n_baselines);
  const std::int64_t n_pols = observation.array.n_pols();
  if (dump.n_pol_products != n_pols * n_pols)
    reject("n_pol_products", dump.n_pol_products, n_pols * n_pols);
  const std::int64_t size = checked_product(
      {dump.n_channels, dump.n_baselines, dump.n_pol_products}, "a visibility dump");
  if (static_cast<std::int64_t>(dump.data.size()) != size) {
    reject("data size", static_cast<std::int64_t>(dump.data.size()), size);
  }
  if (static_cast<std::int64_t>(dump.counts.size()) != size) {
    reject("counts size", static_cast<std::int64_t>(dump.counts.size()), size);
  }
}

std::vector<Vector3> baseline_uvw_m(const Observation& observation, std::int64_t centroid_tai_ns) {
  const ArrayLayout& array = observation.array;
  const auto axes =
      uvw_axes(array, observation.phase_center, centroid_tai_ns, observation.earth_orientation);
  std::vector<Vector3> projected(array.antennas.size());
  for (std::size_t a = 0; a < projected.size(); ++a) {
    const Vector3& position = array.antennas[a].enu_m;
    projected[a] = {dot(axes[0], position), dot(axes[1], position), dot(axes[2], position)};
  }
  std::vector<Vector3> uvw(n_pairs(array.n_antennas()));
  for (std::int64_t j = 0; j < array.n_antennas(); ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      Vector3& out = uvw[pair_index(i, j)];
      for (std::size_t k = 0; k < 3; ++k) {
        out[k] = projected[i][k] - projected[j][k];
      }
    }
  }
  return uvw;
}

void PartVisibilityWriter::begin() { prepare_part(path_, overwrite_); }

void PartVisibilityWriter::require_open() const {
  if (done_)
    throw IoError(ExitCode::io,
                  "cannot write " + path_ + ": it is published, or an earlier write failed");
}

void PartVisibilityWriter::publish_part() {
  done_ = true;
  try {
    ryle::publish_part(path_, overwrite_);
  } catch (...) {
    fail();
  }
}

void PartVisibilityWriter::end() noexcept {
  if (std::exchange(done_, true)) return;
  close_unfinished(true);
  n_dumps_ > 0 ? leave_part(path_) : discard_part(path_);
}

void PartVisibilityWriter::fail() {
  n_dumps_ > 0 ? leave_part(path_) : discard_part(path_);
  try {
    throw;
  } catch (const Error& error) {
    if (n_dumps_ < 1 || !is_recoverable(path_)) throw;
    throw IoError(error.exit_code(), error.what() + kept_in_part(path_, n_dumps_));
  }
}

std::vector<int> casa_pol_order(std::int64_t n_pol_products) {
  return n_pol_products == 4 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0};
}

std::vector<int> aips_pol_order(std::int64_t n_pol_products) {
  return n_pol_products == 4 ? std::vector<int>{0, 3, 1, 2} : std::vector<int>{0};
}

double spectrum_interval_s(const Observation& observation) {
  return observation.spectrum_interval_s > 0 ? observation.spectrum_interval_s
                                             : observation.nominal_dump_s;
}

double noise_bandwidth_hz(const Observation& observation) {
  return observation.channel_bandwidth_hz > 0 ? observation.channel_bandwidth_hz
                                              : std::abs(observation.frequency.channel_width_hz);
}

double weight_per_count(const Observation& observation) {
  const double weight = noise_bandwidth_hz(observation) * spectrum_interval_s(observation);
  return weight > 0 ? weight : 1.0;
}

bool is_unprojected(const Observation& observation) {
  const auto& notes = observation.provenance.notes;
  const auto found = notes.find("fringe_stopping");
  return found != notes.end() && found->second == "none";
}

std::int64_t n_pol_products(const Observation& observation) {
  return observation.array.n_pols() * observation.array.n_pols();
}

std::string antenna_name(const ArrayLayout& array, std::int64_t antenna) {
  const std::string& name = array.antennas[antenna].name;
  return name.empty() ? "ANT" + std::to_string(antenna) : name;
}

std::string field_name(const Observation& observation) {
  if (!observation.object.empty()) return observation.object;
  return observation.phase_center_name.empty() ? "zenith" : observation.phase_center_name;
}

std::string flux_unit(const Observation& observation) {
  return observation.flux_unit == "Jy" ? "Jy" : "uncalib";
}

std::array<double, 2> feed_angles_rad(const ArrayLayout& array, std::int64_t antenna) {
  // Every input states the angle of X (array.hpp); where X and Y disagree the X input is believed.
  double x_angle_rad = 0;
  bool from_x = false;
  for (const ArrayInput& input : array.inputs) {
    if (input.antenna != antenna || from_x) continue;
    x_angle_rad = input.feed_angle_rad;
    from_x = input.pol == 0;
  }
  return {x_angle_rad, x_angle_rad + kPi / 2};
}

ApparentCenter apparent_center(const Observation& observation, std::int64_t tai_ns) {
  const ArrayLayout& array = observation.array;
  const auto axes =
      uvw_axes(array, observation.phase_center, tai_ns, observation.earth_orientation);
  const Vector3& s = axes[2];
  const double sin_lat = std::sin(array.latitude_rad);
  const double cos_lat = std::cos(array.latitude_rad);
  ApparentCenter out;
  out.lst_rad = local_sidereal_time_rad(array, tai_ns, observation.earth_orientation);
  out.dec_rad = std::asin(std::clamp(s[1] * cos_lat + s[2] * sin_lat, -1.0, 1.0));
  // Hour angle from (east, north, up): west is positive.
  const double hour_angle = std::atan2(-s[0], s[2] * cos_lat - s[1] * sin_lat);
  out.ra_rad = std::remainder(out.lst_rad - hour_angle, 2 * kPi);
  if (out.ra_rad < 0) out.ra_rad += 2 * kPi;
  const Vector3 pole{0, cos_lat, sin_lat};
  const Vector3 east = cross(pole, s);
  const Vector3 north = cross(s, east);
  out.frame_pa_rad = std::atan2(dot(axes[1], east), dot(axes[1], north));
  return out;
}

std::vector<std::string> history_lines(const Observation& observation) {
  const Provenance& provenance = observation.provenance;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what, std::string value) {
    // CARTA parses "BMAJ = ..." out of HISTORY (products.md 3): no equals sign survives here.
    std::replace(value.begin(), value.end(), '=', ':');
    for (auto& line : printable_lines(what + ": " + value, 70)) lines.push_back(std::move(line));
  };
  add("ryle version", provenance.version.empty() ? std::string(version()) : provenance.version);
  if (!provenance.command_line.empty()) add("command", provenance.command_line);
  if (!provenance.configuration_sha256.empty())
    add("configuration sha256", provenance.configuration_sha256);
  if (!provenance.host.empty()) add("host", provenance.host);
  for (const std::string& name : provenance.implementations) add("implementation", name);
  for (const auto& [key, value] : provenance.notes) add("note, " + key, value);
  if (observation.applied.van_vleck) add("correction", "van vleck");
  if (observation.applied.n_taps > 0) {
    add("channelizer",
        std::to_string(observation.applied.n_taps) + " taps, window " + observation.applied.window);
  }
  add("polarization", "I is the mean of XX and YY, not the sum");
  return lines;
}

}  // namespace ryle::io
