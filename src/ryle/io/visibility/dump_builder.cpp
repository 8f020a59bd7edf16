// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/dump_builder.hpp"

#include <erfa.h>
#include <erfam.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle::io {
namespace {

constexpr double kMjdZero_jd = 2'400'000.5;

std::int64_t tai_ns_of_day(std::int64_t mjd, double seconds, bool tai) {
  if (!tai) return tai_ns_from_mjd_utc(mjd, seconds);
  constexpr std::int64_t kUnixEpoch_mjd = 40587, kDay_ns = 86'400'000'000'000;
  return (mjd - kUnixEpoch_mjd) * kDay_ns + std::llround(seconds * 1e9);
}

/// What a row becomes: element-wise conjugate or not, and XY <-> YX when the file's antenna order
/// was j, i.
struct RowPlan {
  std::int64_t baseline = 0;
  bool swapped = false;
};

RowPlan plan_row(const RowSet& rows, std::size_t row) {
  const auto find = [&](int number) {
    const auto found = rows.antenna_index.find(number);
    if (found == rows.antenna_index.end()) {
      throw FormatError(rows.path + ": row " + std::to_string(row) + " names antenna " +
                        std::to_string(number) + ", which the antenna table does not have");
    }
    return found->second;
  };
  const std::int64_t a = find(rows.antenna1[row]);
  const std::int64_t b = find(rows.antenna2[row]);
  return {pair_index(std::min(a, b), std::max(a, b)), a > b};
}

/// Slope of the file's uvw against r_1 - r_2 over a dump's rows: +1 or -1 in a sound file.
struct Slope {
  double cross = 0;
  double self = 0;
};

void add_slope(const RowSet& rows, std::size_t row, const RowPlan& plan,
               const std::vector<Vector3>& uvw_ij, Slope& slope) {
  const double sign = plan.swapped ? -1 : 1;
  for (std::size_t k = 0; k < 3; ++k) {
    const double expected = sign * uvw_ij[plan.baseline][k];
    slope.cross += rows.uvw_m[row][k] * expected;
    slope.self += expected * expected;
  }
}

std::uint32_t count_of(float weight, double weight_per_count) {
  if (!(weight > 0) || !std::isfinite(weight)) return 0;
  const double count = static_cast<double>(weight) / weight_per_count;
  return static_cast<std::uint32_t>(std::clamp(std::round(count), 1.0, 4294967295.0));
}

/// Weights of others that are no whole counts (fractions of an integration, inverse variances) are
/// scaled by a power of two so that the largest is about a million counts: none loses its ratio.
double foreign_weight_per_count(const std::vector<float>& weights) {
  constexpr float kLargest_whole = 1 << 24;
  float largest = 0;
  bool whole = true;
  for (const float weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight)) continue;
    largest = std::max(largest, weight);
    whole = whole && weight <= kLargest_whole && weight == std::round(weight);
  }
  return whole || largest <= 0 ? 1 : std::exp2(std::ilogb(largest) - 20);
}

/// Rows of a baseline that a dump has: as stored, and as (j, i).
using FilledCells = std::vector<std::array<bool, 2>>;

VisibilityDump empty_dump(const Observation& observation) {
  VisibilityDump dump;
  dump.n_channels = observation.frequency.n_channels;
  dump.n_baselines = n_pairs(observation.array.n_antennas());
  dump.n_pol_products = n_pol_products(observation);
  const auto size = static_cast<std::size_t>(checked_file_product(
      {dump.n_channels, dump.n_baselines, dump.n_pol_products}, "a visibility dump"));
  dump.data.assign(size, cf32(0));
  dump.counts.assign(size, 0);
  return dump;
}

/// A dump has a place for every pair: a small table of rows that all are of other times and
/// antennas would ask for any amount of memory.
void require_dense(const RowSet& rows, std::size_t n_dumps, const Observation& observation) {
  constexpr double kSpare_values = 4 << 20, kMaxRatio_dense = 64;
  const double n_values = static_cast<double>(n_dumps) *
                          static_cast<double>(n_pairs(observation.array.n_antennas())) *
                          static_cast<double>(observation.frequency.n_channels) *
                          static_cast<double>(n_pol_products(observation));
  if (n_values > kSpare_values + kMaxRatio_dense * static_cast<double>(rows.data.size()))
    throw FormatError(rows.path + ": " + std::to_string(rows.data.size()) + " values in " +
                      std::to_string(n_dumps) + " integrations of " +
                      std::to_string(observation.array.n_antennas()) +
                      " antennas: fewer than one pair of 64 is there; select antennas and times "
                      "first");
}

bool is_finite(cf32 value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }

/// Returns how many values counted as valid were no numbers: they are flagged.
std::int64_t place_row(const RowSet& rows, std::size_t row, const RowPlan& plan,
                       double weight_per_count, bool conjugate, bool reverse,
                       VisibilityDump& dump) {
  std::int64_t n_not_finite = 0;
  const std::size_t n_products = rows.products.size();
  const auto n_channels = static_cast<std::size_t>(rows.n_file_channels);
  for (std::size_t c = 0; c < n_channels; ++c) {
    const std::size_t target_channel = reverse ? n_channels - 1 - c : c;
    for (std::size_t q = 0; q < n_products; ++q) {
      const std::size_t source = (row * n_channels + c) * n_products + q;
      const std::uint32_t count = count_of(rows.weight[source], weight_per_count);
      if (count == 0) continue;
      if (!is_finite(rows.data[source])) {
        ++n_not_finite;
        continue;
      }
      int product = dump.n_pol_products == 1 ? 0 : rows.products[q];
      if (plan.swapped && (product == 1 || product == 2)) product = 3 - product;
      const auto target = static_cast<std::size_t>(
          dump.index(static_cast<std::int64_t>(target_channel), plan.baseline, product));
      const cf32 value = rows.data[source];
      // V_ji = conj(V_ij) with the pols exchanged: a row stored as (j, i) is conjugated once more.
      dump.data[target] = conjugate != plan.swapped ? std::conj(value) : value;
      dump.counts[target] = count;
    }
  }
  return n_not_finite;
}

/// A second row of a baseline would replace the first unsaid.
void require_new(const RowSet& rows, std::size_t row, const RowPlan& plan, FilledCells& placed) {
  bool& there = placed[plan.baseline][plan.swapped ? 1 : 0];
  if (there) {
    throw FormatError(rows.path + ": row " + std::to_string(row) + " is a second one of antennas " +
                      std::to_string(rows.antenna1[row]) + " and " +
                      std::to_string(rows.antenna2[row]) + " within a tenth of its interval of " +
                      std::to_string(rows.interval_s[row]) +
                      " s: the interval is wrong, or the file joins several observations; "
                      "split it first");
  }
  there = true;
}

/// Rows of one time, in file order; times closer than a tenth of the interval are one dump.
std::vector<std::vector<std::size_t>> group_by_time(const RowSet& rows) {
  std::vector<std::size_t> order(rows.centroid_tai_ns.size());
  for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rows.centroid_tai_ns[a] < rows.centroid_tai_ns[b];
  });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t row : order) {
    const double tolerance_ns = std::max(1e3, 1e8 * rows.interval_s[row]);
    if (groups.empty() ||
        static_cast<double>(rows.centroid_tai_ns[row] -
                            rows.centroid_tai_ns[groups.back().front()]) > tolerance_ns) {
      groups.emplace_back();
    }
    groups.back().push_back(row);
  }
  return groups;
}

bool decide_conjugation(const RowSet& rows, const std::vector<std::vector<std::size_t>>& groups,
                        const VisibilityReadOptions& options, Observation& observation) {
  Slope slope;
  for (const auto& group : groups) {
    if (&group - groups.data() >= 8) break;  // a few dumps settle it
    const auto uvw = baseline_uvw_m(observation, rows.centroid_tai_ns[group.front()]);
    for (const std::size_t row : group) add_slope(rows, row, plan_row(rows, row), uvw, slope);
  }
  const double ratio =
      slope.self > 0 ? slope.cross / slope.self : (rows.stored_conjugated ? -1 : 1);
  std::string& note = observation.provenance.notes["uvw"];
  note = "file uvw against r1 - r2 has slope " + std::to_string(ratio);
  if (options.conjugate != Conjugate::automatic) return options.conjugate == Conjugate::yes;
  if (std::abs(std::abs(ratio) - 1) > 0.1)
    note += ", far from 1 and -1: positions or frame in doubt";
  return ratio < 0;
}

}  // namespace

void build_dumps(const RowSet& rows, const VisibilityReadOptions& options, VisibilityFile& file) {
  Observation& observation = file.observation;
  if (rows.antenna1.empty()) return;
  if (rows.n_file_channels != observation.frequency.n_channels) {
    throw FormatError(rows.path + ": " + std::to_string(rows.n_file_channels) +
                      " channels in the data, " + std::to_string(observation.frequency.n_channels) +
                      " on the frequency axis");
  }
  const bool reverse = observation.frequency.channel_width_hz < 0;
  const bool own = rows.weight_per_count > 0;
  const auto groups = group_by_time(rows);
  const double weight_per_count =
      own ? rows.weight_per_count : foreign_weight_per_count(rows.weight);
  std::int64_t n_not_finite = 0;
  const std::map<std::string, std::string> notes = observation.provenance.notes;
  const bool conjugate = decide_conjugation(rows, groups, options, observation);
  if (own)
    observation.provenance.notes = notes;  // our own files come back exactly as they were written
  if (reverse) {
    FrequencyAxis& axis = observation.frequency;
    axis = {axis.center_hz(axis.n_channels - 1), -axis.channel_width_hz, axis.n_channels};
  }
  require_dense(rows, groups.size(), observation);
  for (const auto& group : groups) {
    VisibilityDump& dump = file.dumps.emplace_back(empty_dump(observation));
    const std::size_t first = group.front();
    const double interval_s = rows.interval_s[first];
    set_exact_times(dump, rows.centroid_tai_ns[first] - std::llround(0.5e9 * interval_s),
                    rows.centroid_tai_ns[first], interval_s, 1);
    FilledCells placed(static_cast<std::size_t>(dump.n_baselines));
    for (const std::size_t row : group) {
      const RowPlan plan = plan_row(rows, row);
      require_new(rows, row, plan, placed);
      n_not_finite += place_row(rows, row, plan, weight_per_count, conjugate, reverse, dump);
    }
    dump.n_spectra = *std::max_element(dump.counts.begin(), dump.counts.end());
  }
  auto& found = observation.provenance.notes;
  if (n_not_finite > 0)
    found["not_finite"] = std::to_string(n_not_finite) + " values are no numbers: flagged";
  if (own) return;
  if (weight_per_count != 1)
    found["weights"] = "a count stands for " + std::to_string(weight_per_count) + " of the file";
  observation.nominal_dump_s = file.dumps.front().interval_s;
}

void set_exact_times(VisibilityDump& dump, std::int64_t start_tai_ns, std::int64_t centroid_tai_ns,
                     double interval_s, std::int64_t n_spectra) {
  dump.start_tai_ns = start_tai_ns;
  dump.centroid_tai_ns = centroid_tai_ns;
  dump.interval_s = interval_s;
  dump.n_spectra = n_spectra;
}

std::vector<int> products_of_aips(const std::string& path, const std::vector<std::int64_t>& codes) {
  if (codes == std::vector<std::int64_t>{1}) return {0};
  std::vector<int> products;
  for (const std::int64_t code : codes) {
    switch (code) {
      case -5:
        products.push_back(0);
        break;
      case -6:
        products.push_back(3);
        break;
      case -7:
        products.push_back(1);
        break;
      case -8:
        products.push_back(2);
        break;
      default:
        throw UnsupportedError(path + ": polarization " + std::to_string(code) + " is " +
                               (code < 0 && code > -5 ? "of circular feeds" : "no linear one") +
                               "; ryle reads -5..-8 (XX YY XY YX), and 1 (I) alone");
    }
  }
  return products;
}

int n_pols_of(const std::vector<int>& products) {
  return products.size() == 1 && products[0] % 3 == 0 ? 1 : 2;
}

void describe_values(const std::string& unit, const std::string& pol_convention, RowSet& rows,
                     Observation& observation) {
  const bool jansky = unit == "Jy" || unit == "JY";
  if (jansky) observation.flux_unit = "Jy";
  auto& notes = observation.provenance.notes;
  if (n_pols_of(rows.products) == 1)
    notes["single_polarization"] = rows.stokes_i ? "I" : rows.products[0] == 0 ? "XX" : "YY";
  if (!jansky && !unit.empty() && unit != "uncalib" && unit != "UNCALIB")
    notes["unit"] = unit + " in the file, taken as uncalibrated";
  if (!jansky || pol_convention != "sum") return;
  for (cf32& value : rows.data) value *= 2.0F;
  notes["polarization"] = "I is XX + YY in the file: its values were doubled";
}

void phase_from_ground(VisibilityFile& file) {
  const Observation& observation = file.observation;
  for (VisibilityDump& dump : file.dumps) {
    const Vector3 s0 = enu_of_direction(observation.array, observation.phase_center,
                                        dump.centroid_tai_ns, observation.earth_orientation);
    std::vector<double> path_m;
    for (const Antenna& antenna : observation.array.antennas) {
      const auto& r = antenna.enu_m;
      path_m.push_back(r[0] * s0[0] + r[1] * s0[1] + r[2] * s0[2]);
    }
    for (std::int64_t channel = 0; channel < dump.n_channels; ++channel) {
      const double per_m = observation.frequency.center_hz(channel) / kSpeedOfLight_m_per_s;
      for (std::int64_t baseline = 0; baseline < dump.n_baselines; ++baseline) {
        const auto [i, j] = pair_of(baseline);
        const double turns = per_m * (path_m[i] - path_m[j]);
        const cf32 turn(std::polar(1.0, -2 * kPi * (turns - std::round(turns))));
        for (std::int64_t pol = 0; pol < dump.n_pol_products; ++pol)
          dump.data[dump.index(channel, baseline, pol)] *= turn;
      }
    }
  }
}

std::vector<std::int64_t> used_antennas(const std::vector<int>& antenna1,
                                        const std::vector<int>& antenna2) {
  std::set<std::int64_t> used(antenna1.begin(), antenna1.end());
  used.insert(antenna2.begin(), antenna2.end());
  return {used.begin(), used.end()};
}

std::map<std::int64_t, std::int64_t> index_of(const std::vector<std::int64_t>& used) {
  std::map<std::int64_t, std::int64_t> index;
  for (std::size_t k = 0; k < used.size(); ++k) index[used[k]] = static_cast<std::int64_t>(k);
  return index;
}

ArrayLayout array_from_itrf(const ForeignArray& in, int n_pols) {
  Vector3 reference = in.reference_itrf_m;
  if (reference == Vector3{}) {
    for (const Vector3& position : in.itrf_m) {
      for (std::size_t k = 0; k < 3; ++k)
        reference[k] += position[k] / static_cast<double>(in.itrf_m.size());
    }
  }
  ArrayLayout array;
  array.name = in.name;
  double xyz[3] = {reference[0], reference[1], reference[2]};
  if (eraGc2gd(ERFA_WGS84, xyz, &array.longitude_rad, &array.latitude_rad, &array.height_m) != 0) {
    throw FormatError("array " + in.name + ": its reference position is not a place on Earth");
  }
  // Rows of the rotation ITRF -> east, north, up are the ITRF vectors of the ENU axes (its
  // transpose is exact).
  const Vector3 axes[3] = {itrf_offset_of_enu(array, {1, 0, 0}),
                           itrf_offset_of_enu(array, {0, 1, 0}),
                           itrf_offset_of_enu(array, {0, 0, 1})};
  for (std::size_t a = 0; a < in.itrf_m.size(); ++a) {
    Antenna& antenna = array.antennas.emplace_back();
    antenna.name = in.names[a];
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t m = 0; m < 3; ++m)
        antenna.enu_m[k] += axes[k][m] * (in.itrf_m[a][m] - reference[m]);
    }
    for (int pol = 0; pol < n_pols; ++pol) {
      ArrayInput& input = array.inputs.emplace_back();
      input.antenna = static_cast<std::int64_t>(a);
      input.pol = pol;
      input.feed_angle_rad = a < in.feed_angle_rad.size() ? in.feed_angle_rad[a] : 0;
    }
  }
  return array;
}

FrequencyAxis axis_from_centers(const std::string& path, const std::vector<double>& centers_hz) {
  if (centers_hz.empty()) throw FormatError(path + ": it has no frequency channels");
  FrequencyAxis axis{centers_hz.front(), 0, static_cast<std::int64_t>(centers_hz.size())};
  if (centers_hz.size() == 1) return axis;
  axis.channel_width_hz =
      (centers_hz.back() - centers_hz.front()) / static_cast<double>(centers_hz.size() - 1);
  for (std::size_t c = 0; c < centers_hz.size(); ++c) {
    if (std::abs(axis.center_hz(static_cast<std::int64_t>(c)) - centers_hz[c]) >
        0.01 * std::abs(axis.channel_width_hz)) {
      throw UnsupportedError(path + ": channel " + std::to_string(c) +
                             " is off an even grid by more than 1 % of a " +
                             "channel; ryle reads one window of evenly spaced channels: select "
                             "it first (CASA split; in pyuvdata UVData.select(spws=...))");
    }
  }
  return axis;
}

SkyDirection icrs_of_equinox(const std::string& path, const SkyDirection& direction,
                             double equinox) {
  constexpr double kDirect_years = 1e-3;  // precession of 0.05 arcsec
  if (std::abs(equinox - 2000) < kDirect_years) return direction;
  SkyDirection out;
  if (equinox < 1984) {  // FITS: the system is FK4 then
    if (std::abs(equinox - 1950) > kDirect_years) {
      throw UnsupportedError(
          path + ": its phase centre is of equinox " + std::to_string(equinox) +
          "; ryle reads those of 1950 (FK4), and of any year from 1984 on (FK5)");
    }
    eraFk45z(direction.ra_rad, direction.dec_rad, 1950.0, &out.ra_rad, &out.dec_rad);
    return out;
  }
  constexpr double kJulianYear_days = 365.25;
  double from_j2000[3][3];
  eraPmat06(ERFA_DJ00, (equinox - 2000) * kJulianYear_days, from_j2000);
  double of_date[3];
  double j2000[3];
  eraS2c(direction.ra_rad, direction.dec_rad, of_date);
  eraTrxp(from_j2000, of_date, j2000);
  eraC2s(j2000, &out.ra_rad, &out.dec_rad);
  out.ra_rad = eraAnp(out.ra_rad);
  return out;
}

std::int64_t tai_ns_from_mjd_seconds(double mjd_s, bool tai) {
  const double day = std::floor(mjd_s / kDay_s);
  return tai_ns_of_day(static_cast<std::int64_t>(day), mjd_s - day * kDay_s, tai);
}

std::int64_t tai_ns_from_julian_date(double day, double fraction, bool tai) {
  const double mjd = day - kMjdZero_jd;
  const double whole = std::floor(mjd);
  double seconds = ((mjd - whole) + fraction) * kDay_s;
  const double extra = std::floor(seconds / kDay_s);
  seconds -= extra * kDay_s;
  return tai_ns_of_day(static_cast<std::int64_t>(whole + extra), seconds, tai);
}

}  // namespace ryle::io
