// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/pulsar.hpp"

#include <erfa.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/site.hpp"

namespace ryle {
namespace {

constexpr double kTtMinusTai_s = 32.184;
constexpr double kMilliArcsecond_rad = kDegree_rad / 3'600'000;

/// Lines of a .par file by key, the first value of each.
class ParText {
 public:
  ParText(const std::string& text, const std::string& path) : path_(path) {
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      std::istringstream words(line);
      std::string key, value;
      if (!(words >> key) || key[0] == '#' || key == "C") continue;
      if (!(words >> value)) continue;  // tempo ignores keys without values
      if (!lines_.emplace(key, Line{value, number, false}).second)
        reject(key + " is there twice", number);
    }
  }

  bool has(const char* key) const { return lines_.count(key) > 0; }
  std::string text(const char* key) {
    const auto at = lines_.find(key);
    if (at == lines_.end()) return "";
    at->second.used = true;
    return at->second.value;
  }
  double number(const char* key, double otherwise) {
    return has(key) ? parse(text(key), key) : otherwise;
  }
  /// "-08:47:43.7" in units of the first field.
  double sexagesimal(const char* key) {
    const std::string value = text(key);
    const bool negative = !value.empty() && value[0] == '-';
    double total = 0, unit = 1;
    std::istringstream fields(negative || value[0] == '+' ? value.substr(1) : value);
    std::string field;
    int n = 0;
    for (; std::getline(fields, field, ':'); ++n, unit /= 60) {
      const double part = parse(field, key);
      if (part < 0 || (n > 0 && part >= 60)) reject_key(key);
      total += unit * part;
    }
    if (n < 1 || n > 3) reject_key(key);
    return negative ? -total : total;
  }
  std::vector<std::string> unused() const {
    std::vector<std::string> keys;
    for (const auto& [key, line] : lines_)
      if (!line.used) keys.push_back(key);
    return keys;
  }
  [[noreturn]] void reject_key(const char* key) const {
    const Line& line = lines_.at(key);
    reject(std::string(key) + " \"" + line.value + "\" cannot be read", line.number);
  }
  [[noreturn]] void reject(const std::string& what, int number) const {
    throw FormatError(path_ + ": line " + std::to_string(number) + ": " + what);
  }
  [[noreturn]] void lacks(const std::string& what) const {
    throw FormatError(path_ + ": a pulsar ephemeris needs " + what);
  }

 private:
  struct Line {
    std::string value;
    int number;
    bool used;
  };
  double parse(std::string value, const char* key) const {
    for (auto& c : value)
      if (c == 'D' || c == 'd') c = 'e';  // Fortran
    double x = 0;
    if (!parse_finite(value, x)) reject_key(key);
    return x;
  }
  std::string path_;
  std::map<std::string, Line> lines_;
};

void read_spin(ParText& par, Pulsar& p) {
  const char* period = par.has("P0") ? "P0" : "P";
  if (par.has("F0")) {
    p.f0_hz = par.number("F0", 0);
    p.f1_hz_per_s = par.number("F1", 0);
    p.f2_hz_per_s2 = par.number("F2", 0);
  } else if (par.has(period)) {
    const double p0 = par.number(period, 0), p1 = par.number("P1", par.number("PDOT", 0));
    if (!(p0 > 0)) par.reject_key(period);
    p.f0_hz = 1 / p0;
    // Catalogues write P1 in s/s; a value in units of 1e-15 cannot be a pulsar's otherwise.
    p.f1_hz_per_s = -(std::abs(p1) > 1e-5 ? p1 * 1e-15 : p1) / (p0 * p0);
  } else {
    par.lacks("F0 or P0");
  }
  if (!(p.f0_hz > 0)) par.reject_key(par.has("F0") ? "F0" : period);
}

void read_epoch(ParText& par, Pulsar& p) {
  if (!par.has("PEPOCH")) par.lacks("PEPOCH");
  const double mjd = par.number("PEPOCH", 0);
  if (mjd < 15'000 || mjd > 100'000) par.reject_key("PEPOCH");
  const std::string text = par.text("PEPOCH");
  p.epoch_mjd = static_cast<std::int64_t>(std::floor(mjd));
  // The digits behind the point on their own: a day of this size has steps of 0.6 us.
  const auto point = text.find('.');
  if (point != std::string::npos && text.find_first_of("eEdD") == std::string::npos)
    p.epoch_day_fraction = std::stod("0" + text.substr(point));
  else
    p.epoch_day_fraction = mjd - std::floor(mjd);
}

void reject_models(ParText& par, const std::string& path) {
  const auto unsupported = [&](const std::string& what) {
    throw UnsupportedError(path + ": " + what +
                           "; fold isolated pulsars, or give the topocentric period by --period");
  };
  if (par.has("BINARY") || par.has("PB")) unsupported("the pulsar is in a binary");
  const std::string units = par.text("UNITS");
  if (!units.empty() && units != "TDB") unsupported("times in " + units + ", not TDB");
  if (!par.has("RAJ") || !par.has("DECJ")) {
    if (par.has("ELONG") || par.has("LAMBDA")) unsupported("the position is ecliptic");
    par.lacks("RAJ and DECJ");
  }
}

}  // namespace

Pulsar parse_par(const std::string& text, const std::string& path) {
  ParText par(text, path);
  reject_models(par, path);
  Pulsar p;
  for (const char* key : {"PSRB", "PSR", "PSRJ"})
    if (par.has(key)) p.name = par.text(key);
  read_spin(par, p);
  read_epoch(par, p);
  p.position.ra_rad = par.sexagesimal("RAJ") * 15 * kDegree_rad;
  p.position.dec_rad = par.sexagesimal("DECJ") * kDegree_rad;
  if (std::abs(p.position.dec_rad) > kPi / 2) par.reject_key("DECJ");
  p.position_mjd = par.number("POSEPOCH", static_cast<double>(p.epoch_mjd) + p.epoch_day_fraction);
  p.pm_ra_rad_per_year = par.number("PMRA", 0) * kMilliArcsecond_rad;
  p.pm_dec_rad_per_year = par.number("PMDEC", 0) * kMilliArcsecond_rad;
  p.dm_pc_cm3 = par.number("DM", 0);
  if (p.dm_pc_cm3 < 0) par.reject_key("DM");  // a delay before the pulse left
  p.ignored = par.unused();
  return p;
}

Pulsar read_par(const std::string& path) { return parse_par(read_text_file(path), path); }

std::optional<ArrayLayout> known_telescope(const std::string& name) {
  struct Site {
    const char* name;
    double latitude_deg, longitude_deg, height_m;
  };
  static constexpr Site kSites[] = {
      {"Arecibo", 18.3442, -66.7528, 498},      {"Parkes", -32.9984, 148.2635, 415},
      {"Jodrell", 53.2367, -2.3085, 78},        {"GBT", 38.4331, -79.8398, 807},
      {"GMRT", 19.0965, 74.0497, 650},          {"Effelsberg", 50.5247, 6.8828, 369},
      {"FAST", 25.6529, 106.8566, 1110},        {"MeerKAT", -30.7130, 21.4430, 1086},
      {"CHIME", 49.3207, -119.6236, 545},       {"VLA", 34.0787, -107.6183, 2124},
      {"Northern Cross", 44.5206, 11.6470, 25}, {"ASKAP", -26.6970, 116.6310, 370}};
  for (const Site& place : kSites) {
    if (name != place.name) continue;
    ArrayLayout site;
    site.name = name;
    detail::set_site(site, place.latitude_deg, place.longitude_deg, place.height_m);
    return site;
  }
  return std::nullopt;
}

PulsarClock::PulsarClock(const Pulsar& pulsar, const ArrayLayout* site, bool barycentric)
    : pulsar_(pulsar), barycentric_(barycentric) {
  if (site != nullptr) site_ = *site;
}

double PulsarClock::barycentric_s(std::int64_t tai_ns) const {
  // Whole nanoseconds from PEPOCH's day are exact; the rest is small.
  const std::int64_t from_day_ns =
      tai_ns - (pulsar_.epoch_mjd - kUnixEpoch_mjd) * std::int64_t{86'400'000'000'000};
  const double tt_s =
      static_cast<double>(from_day_ns) * 1e-9 + kTtMinusTai_s - pulsar_.epoch_day_fraction * kDay_s;
  if (barycentric_) return tt_s;
  const double mjd_tt = static_cast<double>(tai_ns) * 1e-9 / kDay_s +
                        static_cast<double>(kUnixEpoch_mjd) + kTtMinusTai_s / kDay_s;
  const double tdb_s = eraDtdb(kMjdZero_jd, mjd_tt, 0, 0, 0, 0);
  const double years = (mjd_tt - pulsar_.position_mjd) / 365.25;
  const double dec = pulsar_.position.dec_rad + years * pulsar_.pm_dec_rad_per_year;
  const double ra = pulsar_.position.ra_rad +
                    years * pulsar_.pm_ra_rad_per_year / std::cos(pulsar_.position.dec_rad);
  const Vector3 n{std::cos(dec) * std::cos(ra), std::cos(dec) * std::sin(ra), std::sin(dec)};
  Vector3 r_au{};
  if (site_) {
    const auto utc = utc_julian_date(tai_ns);
    eraASTROM astrom{};
    double origins = 0;
    if (eraApco13(utc[0], utc[1], 0.0, site_->longitude_rad, site_->latitude_rad, site_->height_m,
                  0.0, 0.0, 0.0, 0.0, 0.0, 0.55, &astrom, &origins) < 0)
      throw ConfigError("no place of the Earth for TAI " + std::to_string(tai_ns) + " ns");
    std::copy_n(astrom.eb, 3, r_au.begin());
  } else {
    double heliocentric[2][3], barycentric[2][3];
    eraEpv00(kMjdZero_jd, mjd_tt, heliocentric, barycentric);
    std::copy_n(barycentric[0], 3, r_au.begin());
  }
  constexpr double kAu_s = 149'597'870'700.0 / kSpeedOfLight_m_per_s;
  const double roemer_s = kAu_s * (r_au[0] * n[0] + r_au[1] * n[1] + r_au[2] * n[2]);
  return tt_s + tdb_s + roemer_s;
}

long double PulsarClock::absolute_turns(std::int64_t tai_ns) const {
  const auto t = static_cast<long double>(barycentric_s(tai_ns));
  return t * (static_cast<long double>(pulsar_.f0_hz) +
              t * (static_cast<long double>(pulsar_.f1_hz_per_s) / 2 +
                   t * static_cast<long double>(pulsar_.f2_hz_per_s2) / 6));
}

double PulsarClock::turns(std::int64_t tai_ns, std::int64_t reference_tai_ns) const {
  return static_cast<double>(absolute_turns(tai_ns) - std::floor(absolute_turns(reference_tai_ns)));
}

double PulsarClock::spin_hz(std::int64_t tai_ns) const {
  constexpr std::int64_t kHalf_ns = 5'000'000'000;
  return static_cast<double>(absolute_turns(tai_ns + kHalf_ns) -
                             absolute_turns(tai_ns - kHalf_ns)) /
         10;
}

}  // namespace ryle
