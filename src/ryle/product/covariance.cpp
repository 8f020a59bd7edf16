// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/covariance.hpp"

#include <fitsio.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"

namespace ryle {
namespace {

// Square matrix of doubles; NaN where the file has none.
struct Matrix {
  std::int64_t n = 0;
  std::vector<double> values;
  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * n + column)];
  }
};

[[noreturn]] void throw_fits_error(const std::string& path, const std::string& operation,
                                   int status) {
  char text[FLEN_STATUS] = {};
  fits_get_errstatus(status, text);
  throw FormatError(fmt::format("{}: cannot {}: {} (cfitsio {})", path, operation, text, status));
}

Matrix read_matrix(const std::string& path) {
  if (!std::filesystem::exists(path)) throw IoError::from_errno("open", path, ENOENT);
  fitsfile* raw = nullptr;
  int status = 0;
  // The disk form: a name with brackets or plus signs is a name, not an expression of cfitsio.
  if (fits_open_diskfile(&raw, path.c_str(), READONLY, &status) != 0)
    throw_fits_error(path, "open", status);
  const auto close = [](fitsfile* file) {
    int ignored = 0;
    fits_close_file(file, &ignored);
  };
  const std::unique_ptr<fitsfile, decltype(close)> file(raw, close);
  int n_axes = 0;
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
  Matrix matrix{extent[0], std::vector<double>(static_cast<std::size_t>(extent[0] * extent[1]))};
  double null = std::numeric_limits<double>::quiet_NaN();
  int any_null = 0;
  if (fits_read_img(file.get(), TDOUBLE, 1, extent[0] * extent[1], &null, matrix.values.data(),
                    &any_null, &status) != 0) {
    throw_fits_error(path, "read the image", status);
  }
  return matrix;
}

std::vector<Antenna> read_antennas(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw IoError::from_errno("open", path, errno);
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

// "20191104_033537_..." -> "2019-11-04T03:35:37"; empty when the name does not start so.
std::string utc_of_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.size() < 15 || name[8] != '_') return "";
  for (std::size_t k = 0; k < 15; ++k) {
    if (k != 8 && std::isdigit(static_cast<unsigned char>(name[k])) == 0) return "";
  }
  return name.substr(0, 4) + "-" + name.substr(4, 2) + "-" + name.substr(6, 2) + "T" +
         name.substr(9, 2) + ":" + name.substr(11, 2) + ":" + name.substr(13, 2);
}

void check(const CovarianceFiles& files) {
  if (!(files.frequency_hz > 0) || !std::isfinite(files.frequency_hz)) {
    throw ConfigError(
        files.real_path +
        ": a covariance file does not say its frequency: give it (159.375 MHz for the "
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
  std::vector<bool> seen(static_cast<std::size_t>(real.n), false);
  const auto value = [&](std::int64_t a, std::int64_t b) {
    return cf64{real.at(a, b), imaginary.at(a, b)};
  };
  const auto is_finite = [](cf64 v) { return std::isfinite(v.real()) && std::isfinite(v.imag()); };
  for (std::int64_t j = 0; j < real.n; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      cf64 v = value(i, j);
      if (!is_finite(v)) v = std::conj(value(j, i));
      if (!is_finite(v)) continue;
      const auto at = static_cast<std::size_t>(dump.index(0, pair_index(i, j), 0));
      dump.data[at] = cf32(v);
      dump.counts[at] = 1;
      seen[static_cast<std::size_t>(i)] = seen[static_cast<std::size_t>(j)] = true;
    }
  }
  for (auto& input : file.observation.array.inputs)
    input.bad = !seen[static_cast<std::size_t>(input.antenna)];
}

// Highest value of the dirty image within 0.05 of a direction (east, north).
double brightest_near(const VisibilityFile& file, double east, double north) {
  const auto& antennas = file.observation.array.antennas;
  const VisibilityDump& dump = file.dumps.front();
  const double per_m = 2 * kPi * file.observation.frequency.center_hz(0) / kSpeedOfLight_m_per_s;
  const auto n = static_cast<std::int64_t>(antennas.size());
  double best = -std::numeric_limits<double>::infinity();
  for (int k = 0; k < 121; ++k) {
    const double l = east + 0.01 * (k % 11 - 5), m = north + 0.01 * (k / 11 - 5);
    if (l * l + m * m >= 1) continue;
    const double up = std::sqrt(1 - l * l - m * m);
    // The phase of every antenna once, then sum_ij Re(V_ij conj(s_i) s_j), s_i = exp(2 pi i r_i.s /
    // wavelength).
    std::vector<cf64> steering;
    for (const auto& a : antennas) {
      steering.push_back(
          std::polar(1.0, per_m * (a.enu_m[0] * l + a.enu_m[1] * m + a.enu_m[2] * up)));
    }
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      cf64 row{};
      for (std::int64_t i = 0; i < j; ++i) {
        row += cf64(dump.data[static_cast<std::size_t>(pair_index(i, j))]) *
               std::conj(steering[static_cast<std::size_t>(i)]);
      }
      sum += (row * steering[static_cast<std::size_t>(j)]).real();
    }
    best = std::max(best, sum);
  }
  return best;
}

// Whether the Sun says that the values are conjugated.
bool is_conjugated(const VisibilityFile& file, const std::string& path) {
  const std::int64_t when = file.dumps.front().centroid_tai_ns;
  const Vector3 enu = enu_of_direction(file.observation.array, sun(when), when);
  if (enu[2] < 0.1 || std::hypot(enu[0], enu[1]) < 0.1) {
    throw ConfigError(path +
                      ": the Sun is too low or too close to the zenith to tell whether the values "
                      "are conjugated: "
                      "say conjugate = yes or no");
  }
  const double here = brightest_near(file, enu[0], enu[1]),
               mirrored = brightest_near(file, -enu[0], -enu[1]);
  if (std::max(here, mirrored) < 1.5 * std::min(here, mirrored)) {
    throw ConfigError(fmt::format(
        "{}: the Sun stands out neither at (l, m) = ({:.3f}, {:.3f}) nor opposite: say conjugate "
        "= yes or no",
        path, enu[0], enu[1]));
  }
#if RYLE_MUTANT == 820
  return mirrored < here;
#else
  return mirrored > here;
#endif
}

}  // namespace

VisibilityFile read_covariance(const CovarianceFiles& files) {
  check(files);
  const Matrix real = read_matrix(files.real_path), imaginary = read_matrix(files.imaginary_path);
  auto antennas = read_antennas(files.antennas_path);
  if (imaginary.n != real.n || static_cast<std::int64_t>(antennas.size()) != real.n) {
    throw FormatError(fmt::format("{}: {} antennas, but {} has {} and {} has {}", files.real_path,
                                  real.n, files.imaginary_path, imaginary.n, files.antennas_path,
                                  antennas.size()));
  }
  const std::string utc = files.utc.empty() ? utc_of_name(files.real_path) : files.utc;
  if (utc.empty()) {
    throw ConfigError(
        files.real_path +
        ": when was it? give the UTC, or a file name that starts with YYYYMMDD_HHMMSS");
  }
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
  dump.data.assign(static_cast<std::size_t>(dump.n_baselines), {});
  dump.counts.assign(static_cast<std::size_t>(dump.n_baselines), 0);
  observation.phase_center = zenith(observation.array, dump.centroid_tai_ns);
  file.dumps.push_back(std::move(dump));
  fill(real, imaginary, file);

  const bool conjugated = files.conjugate == Conjugate::automatic
                              ? is_conjugated(file, files.real_path)
                              : files.conjugate == Conjugate::yes;
  if (conjugated) {
    for (auto& v : file.dumps.front().data) v = std::conj(v);
  }
  observation.provenance.notes["conjugated"] = conjugated ? "yes" : "no";
  return file;
}

}  // namespace ryle
