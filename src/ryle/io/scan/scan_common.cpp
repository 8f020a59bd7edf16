// SPDX-License-Identifier: BSD-3-Clause
// What the readers of scans share, and the choice among them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/scan/scan_formats.hpp"

namespace ryle {
namespace io {
namespace {

/// Channels may be off a linear axis by this much of one, no more (they would be smeared).
constexpr double kMaxChannels_off = 0.05;

}  // namespace

std::string FitsScans::key(const std::string& word) const {
  const auto found = primary.find(upper_case(word));
  return found == primary.end() ? std::string() : found->second;
}

const ScanTable* FitsScans::table(const std::string& name) const {
  for (const auto& t : tables)
    if (upper_case(t.name) == upper_case(name)) return &t;
  return nullptr;
}

double degrees_in(const std::string& unit, const std::string& where) {
  const std::string u = upper_case(unit);
  if (u.empty() || u.rfind("DEG", 0) == 0) return 1;
  if (u.rfind("RAD", 0) == 0) return 1 / kDegree_rad;
  if (u == "H" || u.rfind("HOUR", 0) == 0 || u == "HR") return 15;
  if (u == "ARCMIN") return 1 / 60.0;
  if (u == "ARCSEC") return 1 / 3600.0;
  throw UnsupportedError(
      where + ": the unit \"" + unit +
      "\" of positions is not known; deg, rad, hourangle, arcmin and arcsec are");
}

SkyFrame equatorial_frame(const std::string& system, double equinox, const std::string& where) {
  const std::string word = upper_case(system);
  const bool said = std::isfinite(equinox) && equinox != 0;
  const bool j2000 = word == "FK5" || word == "J2000" || word == "FK5 J2000" || word == "J2000.0";
  if (word == "ICRS" || word == "ICRF") return SkyFrame::icrs;
  if ((said && equinox != 2000) || !(word.empty() || j2000))
    throw UnsupportedError(fmt::format(
        "{}: positions of {}{}; ICRS, FK5 of 2000 and galactic ones are read", where,
        word.empty() ? "the equinox" : word, said ? fmt::format(" {}", equinox) : std::string()));
  return j2000 || said ? SkyFrame::fk5 : SkyFrame::icrs;
}

double hertz_in(const std::string& unit, double otherwise, const std::string& where) {
  const std::string u = upper_case(unit);
  if (u.empty()) return otherwise;
  if (u == "HZ") return 1;
  if (u == "KHZ") return 1e3;
  if (u == "MHZ") return 1e6;
  if (u == "GHZ") return 1e9;
  throw UnsupportedError(where + ": the unit \"" + unit +
                         "\" of frequencies is not known; Hz, kHz, MHz and GHz are");
}

double longitude_degrees(const ScanOptions& options, const std::string& unit,
                         ScanMetadata& metadata) {
  metadata.longitude_unit_known = !options.longitude_unit.empty() || !unit.empty();
  if (options.longitude_unit == "hours") return 15;
  if (options.longitude_unit == "deg") return 1;
  if (!options.longitude_unit.empty())
    throw ConfigError("the unit \"" + options.longitude_unit +
                      "\" of longitudes is not known; hours and deg are (--ra-unit)");
  return degrees_in(unit, metadata.path);
}

void check_longitudes(const std::vector<double>& longitude_deg,
                      const std::vector<double>& latitude_deg, ScanMetadata& metadata) {
  PositionExtremes e;
  e.add(longitude_deg.data(), latitude_deg.data(), static_cast<std::int64_t>(longitude_deg.size()));
  const std::string text = doubt_of_longitudes(e, metadata);
  if (!text.empty() && std::find(metadata.warnings.begin(), metadata.warnings.end(), text) ==
                           metadata.warnings.end())
    metadata.warnings.push_back(text);
}

FrequencyAxis linear_axis(const std::vector<double>& center_hz, bool& descending,
                          const std::string& where) {
  FrequencyAxis axis;
  axis.n_channels = static_cast<std::int64_t>(center_hz.size());
  descending = center_hz.size() > 1 && center_hz.back() < center_hz.front();
  if (center_hz.empty()) return axis;
  axis.first_center_hz = descending ? center_hz.back() : center_hz.front();
  if (center_hz.size() < 2) return axis;
  axis.channel_width_hz =
      std::abs(center_hz.back() - center_hz.front()) / static_cast<double>(center_hz.size() - 1);
  for (std::size_t c = 0; c < center_hz.size(); ++c) {
    const auto place = static_cast<std::int64_t>(descending ? center_hz.size() - 1 - c : c);
    const double off_hz = std::abs(center_hz[c] - axis.center_hz(place));
    if (!(off_hz <= kMaxChannels_off * axis.channel_width_hz) || !(axis.channel_width_hz > 0))
      throw FormatError(fmt::format(
          "{}: the frequencies are not evenly spaced: channel {} is at {:.9g} Hz, {:.3g} channels "
          "off; spectra on an even grid are read",
          where, c, center_hz[c], off_hz / axis.channel_width_hz));
  }
  return axis;
}

std::string stokes_name(double code) {
  static const char* const kNames[] = {"YX", "XY", "YY", "XX", "LR", "RL", "LL",
                                       "RR", "",   "I",  "Q",  "U",  "V"};
  const double index = code + 8;
  return index >= 0 && index <= 12 && index == std::floor(index)
             ? kNames[static_cast<std::size_t>(index)]
             : "";
}

ChosenPolarizations choose_polarizations(const std::vector<std::string>& names,
                                         const std::string& wanted, const std::string& where) {
  const auto at = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    return static_cast<std::size_t>(found - names.begin());
  };
  const auto both = [&](const char* a, const char* b) {
    return at(a) < names.size() && at(b) < names.size();
  };
  const auto one = [&](std::size_t k) { return ChosenPolarizations{{k}, names[k]}; };
  const auto mean = [&](std::size_t a, std::size_t b) {
    return ChosenPolarizations{{a, b}, "mean of " + names[a] + ", " + names[b]};
  };
  const std::string word = upper_case(wanted);
  if (word == "ANY" && !names.empty()) return one(0);
  if (names.size() == 1 && (word == "MEAN" || word.empty())) return one(0);
  if (at(word) < names.size()) return one(at(word));
  if (word == "MEAN" || word.empty() || word == "I") {
    if (both("XX", "YY")) return mean(at("XX"), at("YY"));
    if (both("RR", "LL")) return mean(at("RR"), at("LL"));
    if (at("I") < names.size()) return one(at("I"));
    if (word != "I" && names.size() >= 2 && names[0] == "0") return mean(0, 1);
    if (word != "I" && names.size() == 2) return mean(0, 1);
  }
  const double number = scan_number(word);
  if (number >= 0 && number < static_cast<double>(names.size()) && number == std::floor(number))
    return one(static_cast<std::size_t>(number));
  throw ConfigError(where + ": no polarization \"" + wanted + "\"; there are " +
                    comma_separated(names) + ", or their numbers from 0");
}

const std::vector<std::string>& flag_names() {
  static const std::vector<std::string> kNames{"is_rfi", "flagged", "flags", "flag", "mask"};
  return kNames;
}

void reject_flags(const ScanOptions& options, const std::string& where) {
  if (options.flags.empty() || options.flags == "none") return;
  throw ConfigError(where + ": --flags " + options.flags +
                    ": this format has no flags of that name");
}

// Fliegel and Van Flandern 1968.
std::string iso_of_mjd(double mjd) {
  if (!(mjd > 0 && mjd < 200000)) return {};
  auto milliseconds = static_cast<std::int64_t>(std::llround((mjd - std::floor(mjd)) * 86'400'000));
  auto day = static_cast<std::int64_t>(mjd);
  if (milliseconds == 86'400'000) {
    ++day;
    milliseconds = 0;
  }
  std::int64_t l = day + 2'400'001 + 68'569;
  const std::int64_t n = 4 * l / 146'097;
  l -= (146'097 * n + 3) / 4;
  const std::int64_t i = 4'000 * (l + 1) / 1'461'001;
  l += 31 - 1'461 * i / 4;
  const std::int64_t j = 80 * l / 2'447;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}", 100 * (n - 49) + i + j / 11,
                     j + 2 - 12 * (j / 11), l - 2'447 * j / 80, milliseconds / 3'600'000,
                     milliseconds / 60'000 % 60, milliseconds / 1'000 % 60, milliseconds % 1'000);
}

std::string weights_column(const std::string& weights) {
  if (weights.empty() || weights == "none" || weights == "tsys" || weights == "radiometer")
    return {};
  if (weights.rfind("column:", 0) == 0 && weights.size() > 7) return weights.substr(7);
  throw ConfigError("weights \"" + weights +
                    "\" are not known; none, tsys, radiometer and column:NAME are");
}

std::vector<float> system_weights(const WeightColumns& columns, double channel_width_hz) {
  std::vector<float> weights(columns.system_temperature_k.size());
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const double t = columns.system_temperature_k[k];
    const double exposure = columns.exposure_s[k];
    const bool known = t > 0 && std::isfinite(t) && exposure > 0 && std::isfinite(exposure);
    weights[k] = known ? static_cast<float>(channel_width_hz * exposure / (t * t)) : 0.0f;
  }
  return weights;
}

}  // namespace io

void PositionExtremes::add(const double* longitude, const double* latitude_deg, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    if (!std::isfinite(longitude[k]) || !std::isfinite(latitude_deg[k])) continue;
    longitude_low = std::min(longitude_low, longitude[k]);
    longitude_high = std::max(longitude_high, longitude[k]);
    latitude_low_deg = std::min(latitude_low_deg, latitude_deg[k]);
    latitude_high_deg = std::max(latitude_high_deg, latitude_deg[k]);
  }
}

std::string doubt_of_longitudes(const PositionExtremes& e, const ScanMetadata& metadata) {
  constexpr double kMax_deg = 540, kHours = 24, kFullCircle = 12, kDegreesPerHour = 15;
  const double width = e.longitude_high - e.longitude_low,
               height_deg = e.latitude_high_deg - e.latitude_low_deg;
  if (!(width >= 0)) return {};
  if (e.longitude_low < -kMax_deg || e.longitude_high > kMax_deg)
    throw ConfigError(fmt::format(
        "{}: longitudes reach from {:.6g} to {:.6g} degrees as they are read, more than a turn and "
        "a half: they are in another unit; --ra-unit deg and --ra-unit hours say which",
        metadata.path, e.longitude_low, e.longitude_high));
  if (metadata.longitude_unit_known || e.longitude_low < 0 || e.longitude_high > kHours) return {};
  // A field is about as wide as it is high: read as degrees, hours make it a narrow strip.
  const double middle_rad = 0.5 * (e.latitude_low_deg + e.latitude_high_deg) * kDegree_rad;
  const double shape =
      height_deg > 0 ? kDegreesPerHour * width * std::cos(middle_rad) / height_deg : 0;
  const bool strip = shape > 1 / 2.0 && shape < 2;
  if (width < kFullCircle && !strip) return {};
  return fmt::format(
      "longitudes reach from {:.6g} to {:.6g} and are read as degrees; the file does not say their "
      "unit: if these are hours, --ra-unit hours says so, --ra-unit deg ends this warning",
      e.longitude_low, e.longitude_high);
}

int stokes_code(const std::string& name) {
  for (int code = -8; code <= 4; ++code)
    if (!name.empty() && io::stokes_name(code) == name) return code;
  return 0;
}

void ScanFile::read_weights(float* weights) { std::fill_n(weights, metadata().n_samples, 1.0f); }

void ScanFile::read_channel_weights_of(std::int64_t, std::int64_t n_channels, std::int64_t,
                                       std::int64_t n, float* weights) {
  std::fill_n(weights, n_channels * n, 1.0f);
}

void ScanFile::read_flags(std::int64_t, std::int64_t n, std::uint8_t* flags) {
  std::fill_n(flags, n * metadata().n_samples, std::uint8_t{0});
}

std::unique_ptr<ScanFile> open_scans(const std::string& path, const ScanOptions& options) {
  io::weights_column(options.weights);
  char magic[9] = "";
  {
    const io::RawFile file(path);
    if (file.size_bytes() == 0) throw FormatError(path + ": is empty");
    file.read(0, std::min<std::int64_t>(8, file.size_bytes()), magic);
  }
  if (std::memcmp(magic, "\x89HDF\r\n\x1a\n", 8) == 0) return io::open_hdf5_scans(path, options);
  if (std::memcmp(magic, "SIMPLE  ", 8) == 0) return io::open_fits_scans(path, options);
  if (std::memcmp(magic, "PK\x03\x04", 4) == 0) return io::open_npz_scans(path, options);
  if (std::memcmp(magic, "\x1f\x8b", 2) == 0)
    throw UnsupportedError(path + ": is compressed by gzip; gunzip it first");
  throw FormatError(path +
                    ": is no file of scans; HDF5 (HEGrid, HCGrid, HiFAST, named data sets), FITS "
                    "(SDFITS, DISCOS, HCGrid, tables with named columns) and NumPy .npz are read");
}

}  // namespace ryle
