// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/dispersion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"

namespace ryle::search {
namespace {

double inverse_square_mhz(double hz) { return 1e12 / (hz * hz); }

double band_center_hz(const Band& band) {
  return 0.5 * (band.center_hz.front() + band.center_hz.back());
}

[[noreturn]] void reject(const std::string& why) { throw ConfigError("DM plan: " + why); }

std::string text_of(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

void check_range(const DmPlanConfig& c) {
  if (!(std::isfinite(c.dm_min) && std::isfinite(c.dm_max) && c.dm_min >= 0 && c.dm_max > c.dm_min))
    reject("from " + text_of(c.dm_min) + " to " + text_of(c.dm_max) +
           " pc/cm3; needs 0 <= dm_min < dm_max");
}

void append(std::vector<double>& dms, double dm, const DmPlanConfig& c) {
  if (static_cast<std::int64_t>(dms.size()) >= c.max_trials)
    reject("more than " + std::to_string(c.max_trials) +
           " trials; lower dm_max or widen the steps");
  dms.push_back(dm);
}

std::vector<double> regular(double first, double last, double step, const DmPlanConfig& c) {
  if (!(step > 0 && std::isfinite(step)))
    reject("a step of " + text_of(step) + " pc/cm3; it must be above 0");
  std::vector<double> dms;
  for (std::int64_t k = 0;; ++k) {
    const double dm = first + static_cast<double>(k) * step;
    if (dm > last + 1e-9 * step) return dms;
    append(dms, dm, c);
  }
}

std::vector<double> by_tolerance(const Band& band, const DmPlanConfig& c) {
  check_range(c);
  if (!(c.tolerance > 1 && c.tolerance < 10))
    reject("tolerance " + text_of(c.tolerance) + "; it must lie between 1 and 10, 1.05 is usual");
  const double nu_ghz = band_center_hz(band) * 1e-9;
  const double a = 8.3e-6 * band.channel_width_hz * 1e-6 / (nu_ghz * nu_ghz * nu_ghz);
  const double a2 = a * a;
  const auto n = static_cast<double>(band.n_channels());
  const double b2 = a2 * n * n / 16;
  const double fixed = band.sample_interval_s * band.sample_interval_s + c.pulse_s * c.pulse_s;
  const double e2 = c.tolerance * c.tolerance;
  std::vector<double> dms;
  append(dms, c.dm_min, c);
  while (dms.back() < c.dm_max) {
    const double p = dms.back();
    const double right = fixed * (e2 - 1) + e2 * a2 * p * p;
    const double x =
        (b2 * p + std::sqrt(std::max(0.0, (a2 + b2) * right - a2 * b2 * p * p))) / (a2 + b2);
    if (!(x > p)) reject("tolerance steps vanish; use another plan");
    append(dms, x, c);
  }
  return dms;
}

std::vector<double> sorted(std::vector<double> dms) {
  std::sort(dms.begin(), dms.end());
  dms.erase(std::unique(dms.begin(), dms.end()), dms.end());
  return dms;
}

/// Lines of numbers; '#' begins a comment, ';' ends a line, too.
std::vector<std::vector<double>> number_lines(std::string text, const char* what) {
  std::replace(text.begin(), text.end(), ';', '\n');
  std::vector<std::vector<double>> lines;
  std::istringstream in(text);
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<double> values;
    std::string word;
    while (words >> word) {
      double value = 0;
      if (!parse_finite(word, value) || value < 0)
        reject(std::string(what) + ", line " + std::to_string(number) + ": \"" + word +
               "\" is no number >= 0");
      values.push_back(value);
    }
    if (!values.empty()) lines.push_back(values);
  }
  return lines;
}

std::vector<double> by_ranges(const DmPlanConfig& c) {
  std::vector<double> dms;
  for (const auto& line : number_lines(c.ranges, "ranges")) {
    if (line.size() != 3 || line[1] <= line[0])
      reject("ranges: each line is LOW HIGH STEP with LOW < HIGH");
    for (const double dm : regular(line[0], line[1], line[2], c)) append(dms, dm, c);
  }
  return sorted(dms);
}

std::vector<double> by_file(const DmPlanConfig& c) {
  std::vector<double> dms;
  for (const auto& line : number_lines(c.file, "file"))
    for (const double dm : line) append(dms, dm, c);
  return sorted(dms);
}

}  // namespace

double dispersion_constant(std::string_view name) {
  if (name == "physical") return 4148.8064;
  if (name == "tempo") return 1 / 2.41e-4;
  if (name == "best2") return 4148.741601;
  if (name == "dedisp") return 4150;
  double value = 0;
  std::istringstream in{std::string(name)};
  if (in >> value && in.eof() && value > 4000 && value < 4300) return value;
  throw ConfigError("dispersion constant \"" + std::string(name) +
                    "\": physical, tempo, best2, dedisp or a number between 4000 and 4300");
}

double Band::delay_samples(std::int64_t channel, double dm_pc_cm3) const {
  const double x = inverse_square_mhz(center_hz[channel]) - inverse_square_mhz(center_hz.back());
  return k_dm * dm_pc_cm3 * x / sample_interval_s;
}

double Band::sweep_samples_per_dm() const { return delay_samples(0, 1); }

double Band::smearing_samples(std::int64_t channel, double dm_pc_cm3) const {
  const double nu = center_hz[channel];
  const double half = 0.5 * channel_width_hz;
  return k_dm * dm_pc_cm3 * (inverse_square_mhz(nu - half) - inverse_square_mhz(nu + half)) /
         sample_interval_s;
}

std::vector<double> dm_trials(const Band& band, const DmPlanConfig& c) {
  std::vector<double> dms;
  if (c.kind == "native") {
    check_range(c);
    const double sweep = band.sweep_samples_per_dm();
    if (!(sweep > 0)) reject("native steps need more than one channel");
    dms = regular(c.dm_min, c.dm_max, 1 / sweep, c);
  } else if (c.kind == "linear") {
    if (c.count > 0) {
      dms = regular(c.dm_min, c.dm_min + c.step * (static_cast<double>(c.count - 1) + 0.25), c.step,
                    c);
    } else {
      check_range(c);
      dms = regular(c.dm_min, c.dm_max, c.step, c);
    }
  } else if (c.kind == "tolerance") {
    dms = by_tolerance(band, c);
  } else if (c.kind == "ranges") {
    dms = by_ranges(c);
  } else if (c.kind == "file") {
    dms = by_file(c);
  } else {
    reject("\"" + c.kind + "\" is no plan; native, linear, tolerance, ranges and file are");
  }
  if (dms.empty()) reject("no trials");
  return dms;
}

std::vector<std::int32_t> delay_table(const Band& band, const std::vector<double>& dms) {
  const std::int64_t n = band.n_channels();
  std::vector<std::int32_t> table;
  table.reserve(dms.size() * static_cast<std::size_t>(n));
  for (const double dm : dms) {
    for (std::int64_t c = 0; c < n; ++c) {
      const double delay_in_samples = band.delay_samples(c, dm);
      if (!(delay_in_samples < 1e9))
        throw ConfigError("DM plan: DM " + text_of(dm) + " sweeps " + text_of(delay_in_samples) +
                          " samples; lower dm_max");
      table.push_back(static_cast<std::int32_t>(std::lrint(delay_in_samples)));
    }
  }
  return table;
}

double dm_error_response(const Band& band, double dm_error, double width_s) {
  const double nu_ghz = band_center_hz(band) * 1e-9;
  const double bandwidth_mhz =
      band.channel_width_hz * static_cast<double>(band.n_channels()) * 1e-6;
  const double z =
      6.91e-3 * std::abs(dm_error) * bandwidth_mhz / (width_s * 1e3 * nu_ghz * nu_ghz * nu_ghz);
  if (z < 1e-6) return 1;
  return std::sqrt(kPi) / 2 * std::erf(z) / z;
}

double worst_response(const Band& band, const std::vector<double>& dms, double width_s) {
  double worst = 1;
  for (std::size_t k = 1; k < dms.size(); ++k) {
    const double middle = 0.5 * (dms[k] + dms[k - 1]);
    const double smear_s =
        band.smearing_samples(band.n_channels() / 2, middle) * band.sample_interval_s;
    const double wide_s = std::hypot(width_s, smear_s);
    worst = std::min(worst, dm_error_response(band, middle - dms[k - 1], wide_s));
  }
  return worst;
}

}  // namespace ryle::search
