// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/covariance.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/fits_file.hpp"

namespace ryle {
namespace {

std::string note(const char* name) { return std::string(kCovarianceNote) + name; }

// Square matrix of doubles; NaN where the file has none.
struct Matrix {
  std::int64_t n = 0;
  std::vector<double> values;
  double at(std::int64_t row, std::int64_t column) const { return values[row * n + column]; }
};

[[noreturn]] void throw_fits_error(const std::string& path, const std::string& operation,
                                   int status) {
  char text[FLEN_STATUS] = {};
  fits_get_errstatus(status, text);
  throw FormatError(fmt::format("{}: cannot {}: {} (cfitsio {})", path, operation, text, status));
}

Matrix read_matrix(const std::string& path) {
  const io::FitsFile file = io::FitsFile::open(path);
  int status = 0, n_axes = 0;
  LONGLONG extent[2] = {0, 0};
  if (fits_get_img_dim(file.get(), &n_axes, &status) != 0)
    throw_fits_error(path, "read the size", status);
  if (n_axes == 2 && fits_get_img_sizell(file.get(), 2, extent, &status) != 0) {
    throw_fits_error(path, "read the size", status);
  }
  if (n_axes != 2 || extent[0] != extent[1] || extent[0] < 2 || extent[0] > 16384) {
    throw FormatError(fmt::format(
        "{}: {} axes of {} x {} in the primary image: a covariance is a square of 2 to 16384", path,
        n_axes, extent[0], extent[1]));
  }
  file.require_data();
  Matrix matrix{extent[0], std::vector<double>(extent[0] * extent[1])};
  double null = std::numeric_limits<double>::quiet_NaN();
  int any_null = 0;
  if (fits_read_img(file.get(), TDOUBLE, 1, extent[0] * extent[1], &null, matrix.values.data(),
                    &any_null, &status) != 0) {
    throw_fits_error(path, "read the image", status);
  }
  return matrix;
}

std::vector<Antenna> read_antennas(const std::string& path) {
  std::istringstream in(read_text_file(path));
  std::vector<Antenna> antennas;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream fields(line);
    Antenna antenna;
    if (!(fields >> antenna.name)) continue;
    auto& enu = antenna.enu_m;
    if (!(fields >> enu[0] >> enu[1] >> enu[2])) {
      throw FormatError(fmt::format(
          "{}:{}: \"{}\": must be a name and east, north, height in metres", path, number, line));
    }
    antennas.push_back(std::move(antenna));
  }
  return antennas;
}

bool all_digits(const std::string& text, std::size_t first, std::size_t count) {
  if (first + count > text.size()) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(first),
                     text.begin() + static_cast<std::ptrdiff_t>(first + count),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

// The UTC that was given, or that of the names, which must not disagree.
std::string utc_of(const CovarianceFiles& files) {
  if (!files.utc.empty()) return files.utc;
  const std::string real = utc_of_file_name(files.real_path);
  const std::string imaginary = utc_of_file_name(files.imaginary_path);
  if (real.empty()) {
    throw ConfigError(files.real_path +
                      ": when was it? give the UTC (--utc), or a file name with YYYYMMDD_HHMMSS or "
                      "YYYYMMDDTHHMMSS");
  }
  if (!imaginary.empty() && imaginary != real) {
    throw ConfigError(
        fmt::format("{} is of {}, but {} of {}: are they one pair? --utc says which time holds",
                    files.real_path, real, files.imaginary_path, imaginary));
  }
  return real;
}

void check(const CovarianceFiles& files) {
  if (!(files.frequency_hz > 0) || !std::isfinite(files.frequency_hz)) {
    throw ConfigError(
        files.real_path +
        ": a covariance file does not say its frequency: give it (--frequency-mhz; 159.375 for the "
        "2019 EDA2 set)");
  }
  if (!(std::abs(files.latitude_deg) <= 90) || !(std::abs(files.longitude_deg) <= 360)) {
    throw ConfigError(files.real_path +
                      ": a covariance file does not say where the array is: give latitude and "
                      "longitude in degrees (EDA2: -26.70331940, 116.67081524)");
  }
}

// Fills the dump, and marks antennas without a single value.
void fill(const Matrix& real, const Matrix& imaginary, VisibilityFile& file) {
  VisibilityDump& dump = file.dumps.front();
  std::vector<bool> seen(real.n, false);
  const auto value = [&](std::int64_t a, std::int64_t b) {
    return cf64{real.at(a, b), imaginary.at(a, b)};
  };
  // A correlator that has nothing writes 0: noise is never exactly that.
  const auto is_measured = [](cf64 v) {
    return std::isfinite(v.real()) && std::isfinite(v.imag()) && v != cf64{};
  };
  for (std::int64_t j = 0; j < real.n; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      cf64 v = value(i, j);
      if (!is_measured(v)) v = std::conj(value(j, i));
      if (!is_measured(v)) continue;
      const auto at = static_cast<std::size_t>(dump.index(0, pair_index(i, j), 0));
      dump.data[at] = cf32(v);
      dump.counts[at] = 1;
      seen[i] = seen[j] = true;
    }
  }
  std::string empty;
  for (auto& input : file.observation.array.inputs) {
    const auto a = static_cast<std::size_t>(input.antenna);
    input.bad = !seen[a];
    if (input.bad) empty += (empty.empty() ? "" : ", ") + file.observation.array.antennas[a].name;
  }
  auto& notes = file.observation.provenance.notes;
  const auto n_measured = std::count(dump.counts.begin(), dump.counts.end(), 1U);
  notes[note("pairs")] = fmt::format("{} of {} measured", n_measured, real.n * (real.n - 1) / 2);
  if (!empty.empty()) notes[note("antennas without data")] = empty;
}

// Dirty images of the values and of their conjugates in single directions.
class BothWays {
 public:
  BothWays(const VisibilityFile& file, const Vector3& phase_center)
      : antennas_(file.observation.array.antennas),
        dump_(file.dumps.front()),
        phase_center_(phase_center),
        per_m_(2 * kPi * file.observation.frequency.center_hz(0) / kSpeedOfLight_m_per_s) {}

  /// As stored, and conjugated, toward (east, north).
  std::array<double, 2> at(double east, double north) const {
    const double up = std::sqrt(std::max(0.0, 1 - east * east - north * north));
    const Vector3 s{east - phase_center_[0], north - phase_center_[1], up - phase_center_[2]};
    // The phase of every antenna once, then sum_ij Re(V_ij conj(a_i) a_j), a_i = exp(2 pi i r_i.s /
    // wavelength), and the same of conj(V_ij).
    std::vector<cf64> steering;
    steering.reserve(antennas_.size());
    for (const auto& a : antennas_) {
      steering.push_back(
          std::polar(1.0, per_m_ * (a.enu_m[0] * s[0] + a.enu_m[1] * s[1] + a.enu_m[2] * s[2])));
    }
    std::array<double, 2> sum{};
    for (std::size_t j = 0; j < steering.size(); ++j) {
      cf64 row{};
      cf64 conjugated{};
      for (std::size_t i = 0; i < j; ++i) {
        const auto pair = pair_index(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
        const cf64 v(dump_.data[pair]);
        row += v * std::conj(steering[i]);
        conjugated += std::conj(v) * std::conj(steering[i]);
      }
      sum[0] += (row * steering[j]).real();
      sum[1] += (conjugated * steering[j]).real();
    }
    return sum;
  }

 private:
  const std::vector<Antenna>& antennas_;
  const VisibilityDump& dump_;
  Vector3 phase_center_;
  double per_m_;
};

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How far the Sun stands out of the sky as stored, and conjugated: in standard deviations of the
// image, from the median of the distances from its median.
std::array<double, 2> sun_sigmas(const VisibilityFile& file, const Vector3& sun_enu,
                                 const Vector3& phase_center) {
  const BothWays image(file, phase_center);
  constexpr int kSky = 20;  // 41 x 41 directions over the hemisphere
  constexpr int kNear = 5;  // 11 x 11 round the Sun
  constexpr double kStep = 0.01;
  std::vector<double> sky[2];
  for (int y = -kSky; y <= kSky; ++y) {
    for (int x = -kSky; x <= kSky; ++x) {
      const double east = static_cast<double>(x) / kSky, north = static_cast<double>(y) / kSky;
      if (east * east + north * north >= 1) continue;
      const auto values = image.at(east, north);
      for (int way = 0; way < 2; ++way) sky[way].push_back(values[way]);
    }
  }
  std::array<double, 2> best;
  best.fill(-std::numeric_limits<double>::infinity());
  for (int k = 0; k < (2 * kNear + 1) * (2 * kNear + 1); ++k) {
    const double east = sun_enu[0] + kStep * (k % (2 * kNear + 1) - kNear);
    const double north = sun_enu[1] + kStep * (k / (2 * kNear + 1) - kNear);
    if (east * east + north * north >= 1) continue;
    const auto values = image.at(east, north);
    for (std::size_t way = 0; way < 2; ++way) best[way] = std::max(best[way], values[way]);
  }
  for (std::size_t way = 0; way < 2; ++way) {
    const double median = middle_of(sky[way]);
    for (double& v : sky[way]) v = std::abs(v - median);
    const double sigma = 1.4826 * middle_of(sky[way]);
    best[way] = sigma > 0 ? (best[way] - median) / sigma : 0;
  }
  return best;
}

// Whether the Sun says that the values are conjugated, and how clearly.
bool is_conjugated(VisibilityFile& file, const std::string& path) {
  constexpr double kClear_sigma = 10;
  const std::int64_t when = file.dumps.front().centroid_tai_ns;
  const auto& array = file.observation.array;
  const Vector3 enu = enu_of_direction(array, sun(when), when);
  const char* remedy = "say which: --conjugate no (the upper triangle is <v_a conj(v_b)>) or yes";
  if (enu[2] < 0.1 || std::hypot(enu[0], enu[1]) < 0.1) {
    throw ConfigError(fmt::format(
        "{}: the file does not say whether its values are conjugated, and the Sun cannot tell: it "
        "is at elevation {:.1f} deg; {}",
        path, std::asin(std::clamp(enu[2], -1.0, 1.0)) / kDegree_rad, remedy));
  }
  const auto [here, mirrored] =
      sun_sigmas(file, enu, enu_of_direction(array, file.observation.phase_center, when));
  if (std::max(here, mirrored) < kClear_sigma ||
      std::min(here, mirrored) > 0.5 * std::max(here, mirrored)) {
    throw ConfigError(fmt::format(
        "{}: the file does not say whether its values are conjugated, and the Sun at (l, m) = "
        "({:.3f}, {:.3f}) cannot tell: {:.1f} sigma as stored, {:.1f} conjugated; {}",
        path, enu[0], enu[1], here, mirrored, remedy));
  }
  const bool conjugated = mirrored > here;
  file.observation.provenance.notes[note("sign")] = fmt::format(
      "conjugated: {}, found from the Sun at (l, m) of ({:.3f}, {:.3f}): {:.1f} sigma as stored, "
      "{:.1f} conjugated (--conjugate decides otherwise)",
      conjugated ? "yes" : "no", enu[0], enu[1], here, mirrored);
  return conjugated;
}

void note_settings(const CovarianceFiles& files, const std::string& utc,
                   std::map<std::string, std::string>& notes) {
  notes[note("time")] = utc + (files.utc.empty() ? " UTC, from the file name" : " UTC, as given");
  notes[note("phase center")] = "the values are phased to " + files.phased_to +
                                (files.phased_to == "zenith" ? ", assumed" : ", as given");
  notes[note("polarization")] = files.pol.empty() ? "not known: labelled Stokes I (--pol X, Y or I)"
                                                  : files.pol + ", as given";
  notes[note("channel width")] =
      files.channel_width_hz > 0
          ? fmt::format("{:.6g} kHz, as given", files.channel_width_hz * 1e-3)
          : std::string("not known (--channel-width-khz)");
}

}  // namespace

// "20191104_033537_..." or "..._20220406T035747506_..." -> "2022-04-06T03:57:47.506"; digits after
// the seconds are a fraction. Empty where the name holds none.
std::string utc_of_file_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const auto digit_at = [&](std::size_t k) { return all_digits(name, k, 1); };
  for (std::size_t k = 0; k + 15 <= name.size(); ++k) {
    if (k > 0 && digit_at(k - 1)) continue;
    if (!all_digits(name, k, 8) || !all_digits(name, k + 9, 6)) continue;
    if (name[k + 8] != '_' && name[k + 8] != 'T') continue;
    std::string fraction;
    for (std::size_t f = k + 15; digit_at(f); ++f) fraction += name[f];
    const std::string utc = name.substr(k, 4) + "-" + name.substr(k + 4, 2) + "-" +
                            name.substr(k + 6, 2) + "T" + name.substr(k + 9, 2) + ":" +
                            name.substr(k + 11, 2) + ":" + name.substr(k + 13, 2);
    return fraction.empty() ? utc : utc + "." + fraction;
  }
  return "";
}

VisibilityFile read_covariance(const CovarianceFiles& files) {
  check(files);
  const Matrix real = read_matrix(files.real_path), imaginary = read_matrix(files.imaginary_path);
  auto antennas = read_antennas(files.antennas_path);
  if (imaginary.n != real.n || static_cast<std::int64_t>(antennas.size()) != real.n) {
    throw FormatError(fmt::format("{}: {} antennas, but {} has {} and {} has {}", files.real_path,
                                  real.n, files.imaginary_path, imaginary.n, files.antennas_path,
                                  antennas.size()));
  }
  const std::string utc = utc_of(files);
  VisibilityFile file;
  Observation& observation = file.observation;
  // The files carry no name; the folder usually does.
  observation.array.name =
      std::filesystem::absolute(files.antennas_path).parent_path().filename().string();
  observation.array.latitude_rad = files.latitude_deg * kDegree_rad;
  observation.array.longitude_rad = files.longitude_deg * kDegree_rad;
  observation.array.height_m = files.height_m;
  observation.array.antennas = std::move(antennas);
  for (std::int64_t a = 0; a < real.n; ++a) {
    ArrayInput input;
    input.antenna = a;
    observation.array.inputs.push_back(input);
  }
  observation.frequency = {files.frequency_hz, files.channel_width_hz, 1};
  observation.time_source = files.utc.empty() ? TimeSource::header : TimeSource::configured;
  observation.nominal_dump_s = files.integration_s;
  observation.provenance.version = version();

  VisibilityDump dump;
  dump.start_tai_ns = tai_ns_from_utc_iso(utc);
  dump.centroid_tai_ns = dump.start_tai_ns + std::llround(0.5e9 * files.integration_s);
  dump.interval_s = files.integration_s;
  dump.n_spectra = 1;
  dump.n_channels = 1;
  dump.n_baselines = n_pairs(real.n);
  dump.n_pol_products = 1;
  dump.data.assign(dump.n_baselines, {});
  dump.counts.assign(dump.n_baselines, 0);
  observation.phase_center =
      named_direction(files.phased_to, observation.array, dump.centroid_tai_ns,
                      "the phase center of " + files.real_path);
  observation.phase_center_name = files.phased_to;
  file.dumps.push_back(std::move(dump));
  auto& notes = observation.provenance.notes;
  note_settings(files, utc, notes);
  fill(real, imaginary, file);
  const std::string left_out = leave_out(observation, file.dumps, files.dead);
  if (!left_out.empty()) notes[note("antennas left out")] = left_out + ", as given";

  const bool conjugated = files.conjugate == Conjugate::automatic
                              ? is_conjugated(file, files.real_path)
                              : files.conjugate == Conjugate::yes;
  if (files.conjugate != Conjugate::automatic)
    notes[note("sign")] = std::string("conjugated: ") + (conjugated ? "yes" : "no") + ", as given";
  if (conjugated) {
    for (auto& v : file.dumps.front().data) v = std::conj(v);
  }
  if (!files.pol.empty()) notes["single_polarization"] = files.pol;
  return file;
}

}  // namespace ryle
