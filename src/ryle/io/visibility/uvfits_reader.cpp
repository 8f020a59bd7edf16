// SPDX-License-Identifier: BSD-3-Clause
// UVFITS random groups of any origin: parameters by name, one IF, linear feeds.
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/dump_builder.hpp"
#include "ryle/io/visibility/dump_journal.hpp"
#include "ryle/io/visibility/uvfits.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle::io {
namespace {

struct Axis {
  std::int64_t size = 1;
  double value = 0, pixel = 1, delta = 1;
};

/// What the primary header says.
struct Header {
  std::int64_t n_groups = 0;
  std::int64_t n_parameters = 0;
  std::vector<std::string> names;
  std::vector<double> scale, zero;
  Axis complex, stokes, frequency, ra, dec;
  double data_scale = 1, data_zero = 0;
  double equinox = 2000;
  std::string unit, pol_convention;
};

struct Antennas {
  ForeignArray array;
  bool tai = false;          ///< times are TAI (AIPS: IAT), not UTC
  std::vector<int> numbers;  ///< NOSTA, one-based as the groups use them
};

/// A key that is a size: 1 .. max.
std::int64_t size_key(const FitsFile& file, const std::string& name, std::int64_t max) {
  const double value = file.number(name.c_str(), 1);
  if (!(value >= 1 && value <= static_cast<double>(max)))
    throw FormatError(file.path() + ": " + name + " is " + std::to_string(value) +
                      "; it must lie in 1 .. " + std::to_string(max));
  return static_cast<std::int64_t>(value);
}

void to_primary(FitsFile& file) {
  int status = 0;
  fits_movabs_hdu(file.get(), 1, nullptr, &status);
  file.check(status, "read the primary header of");
}

Header read_header(FitsFile& file) {
  Header h;
  int naxis = 0;
  int status = 0;
  long axes[16] = {};
  fits_get_img_dim(file.get(), &naxis, &status);
  file.check(status, "read");
  if (naxis < 4 || naxis > 16 || file.number("NAXIS1", -1) != 0 || file.number("PCOUNT", 0) < 1) {
    throw FormatError(
        file.path() +
        ": the primary array is not random groups (NAXIS1 is not 0), so this is no UVFITS");
  }
  fits_get_img_size(file.get(), 16, axes, &status);
  h.n_groups = size_key(file, "GCOUNT", std::int64_t{1} << 40);
  h.n_parameters = size_key(file, "PCOUNT", 999);  // PTYPE1000 would be no keyword of FITS
  for (std::int64_t k = 1; k <= h.n_parameters; ++k) {
    const std::string n = std::to_string(k);
    h.names.emplace_back(trimmed(file.text(("PTYPE" + n).c_str(), "")));
    h.scale.push_back(file.number(("PSCAL" + n).c_str(), 1));
    h.zero.push_back(file.number(("PZERO" + n).c_str(), 0));
  }
  int order = 0;  // COMPLEX, STOKES, FREQ come in this order: the values of a group are read so
  for (int k = 2; k <= naxis; ++k) {
    const std::string n = std::to_string(k);
    const Axis axis{size_key(file, "NAXIS" + n, std::int64_t{1} << 31),
                    file.number(("CRVAL" + n).c_str(), 0), file.number(("CRPIX" + n).c_str(), 1),
                    file.number(("CDELT" + n).c_str(), 1)};
    const std::string type(trimmed(file.text(("CTYPE" + n).c_str(), "")));
    if (type == "COMPLEX") h.complex = axis;
    if (type == "STOKES") h.stokes = axis;
    if (type == "FREQ") h.frequency = axis;
    if (type == "RA") h.ra = axis;
    if (type == "DEC") h.dec = axis;
    const int place = type == "COMPLEX" ? 1 : type == "STOKES" ? 2 : type == "FREQ" ? 3 : 0;
    if (place == 0 && axis.size != 1) {
      throw UnsupportedError(file.path() + ": it has " + std::to_string(axis.size) + " " + type +
                             "s; ryle reads one (split the file; in pyuvdata: "
                             "UVData.select(spws=...))");
    }
    if (place != 0 && place <= order) {
      throw UnsupportedError(file.path() + ": its axis " + type + " comes after " +
                             (order == 3 ? "FREQ" : "STOKES") +
                             "; ryle reads COMPLEX, STOKES, FREQ in this order, as AIPS, CASA "
                             "(exportuvfits) and pyuvdata write them");
    }
    order = std::max(order, place);
  }
  h.equinox = file.number("EQUINOX", file.number("EPOCH", 2000));
  if (h.equinox == 0) h.equinox = 2000;  // AIPS: not known
  h.unit = trimmed(file.text("BUNIT", ""));
  h.pol_convention = trimmed(file.text("POLCONV", ""));
  h.data_scale = file.number("BSCALE", 1);
  h.data_zero = file.number("BZERO", 0);
  if (h.stokes.size > 4)
    throw FormatError(file.path() + ": it has " + std::to_string(h.stokes.size) +
                      " polarizations; 1 to 4 are read");
  if (h.complex.size != 3 && h.complex.size != 2)
    throw FormatError(file.path() + ": the COMPLEX axis is not 2 or 3 long");
  return h;
}

/// Position of a parameter by any of its names, or -1.
int find(const Header& h, std::initializer_list<const char*> names, int from = 0) {
  for (std::size_t k = static_cast<std::size_t>(from); k < h.names.size(); ++k) {
    for (const char* name : names) {
      if (h.names[k] == name) return static_cast<int>(k);
    }
  }
  return -1;
}

int require(const FitsFile& file, const Header& h, std::initializer_list<const char*> names) {
  const int k = find(h, names);
  if (k < 0)
    throw FormatError(file.path() + ": random parameter " + *names.begin() + " is missing");
  return k;
}

/// Rejects a header that promises more than the file holds, before anything is allocated.
void check_size(const FitsFile& file, const Header& h) {
  const std::int64_t group =
      h.n_parameters +
      checked_file_product({h.complex.size, h.stokes.size, h.frequency.size}, "a UVFITS group");
  const auto value_bytes = static_cast<std::int64_t>(std::abs(file.number("BITPIX", -32)) / 8);
  const std::int64_t bytes =
      checked_file_product({h.n_groups, group, value_bytes}, "the UVFITS data");
  const auto actual = static_cast<std::int64_t>(std::filesystem::file_size(file.path()));
  if (bytes > actual) {
    throw FormatError(file.path() + ": the header promises " + std::to_string(bytes) +
                      " bytes of groups, the file has " + std::to_string(actual) +
                      "; it is truncated");
  }
}

int column_of(FitsFile& file, const char* name) {
  int column = 0;
  int status = 0;
  std::string text = name;
  fits_get_colnum(file.get(), CASEINSEN, text.data(), &column, &status);
  if (status != 0) fits_clear_errmsg();
  return status == 0 ? column : 0;
}

std::vector<std::string> read_names(FitsFile& file, int column, LONGLONG n_rows) {
  int status = 0;
  int type = 0;
  long repeat = 0;
  long width = 0;
  fits_get_coltype(file.get(), column, &type, &repeat, &width, &status);
  std::vector<std::string> names;
  std::vector<char> buffer(static_cast<std::size_t>(std::max(repeat, width)) + 1);
  for (LONGLONG row = 1; row <= n_rows; ++row) {
    char* text = buffer.data();
    char null[] = "";
    fits_read_col_str(file.get(), column, row, 1, 1, null, &text, nullptr, &status);
    names.emplace_back(trimmed(text));
  }
  file.check(status, "read the antenna names of");
  return names;
}

Antennas read_antennas(FitsFile& file) {
  int status = 0;
  std::string name = "AIPS AN";
  fits_movnam_hdu(file.get(), BINARY_TBL, name.data(), 0, &status);
  file.check(status, "find the antenna table (AIPS AN) of");
  file.require_data();
  LONGLONG n_rows = 0;
  fits_get_num_rowsll(file.get(), &n_rows, &status);
  const int xyz_column = column_of(file, "STABXYZ");
  const int name_column = column_of(file, "ANNAME");
  const int number_column = column_of(file, "NOSTA");
  if (xyz_column == 0 || name_column == 0)
    throw FormatError(file.path() + ": AIPS AN lacks STABXYZ or ANNAME");
  Antennas out;
  out.array.name = trimmed(file.text("ARRNAM", ""));
  const Vector3 reference{file.number("ARRAYX", 0), file.number("ARRAYY", 0),
                          file.number("ARRAYZ", 0)};
  out.array.reference_itrf_m = reference;
  const std::string scale(trimmed(file.text("TIMSYS", file.text("TIMESYS", "UTC"))));
  out.tai = scale == "IAT" || scale == "TAI";
  if (!out.tai && scale != "UTC" && !scale.empty())
    throw UnsupportedError(file.path() + ": its times are " + scale + "; ryle reads UTC and IAT");
  const double handed = trimmed(file.text("XYZHAND", "RIGHT")) == "LEFT" ? -1 : 1;
  out.array.names = read_names(file, name_column, n_rows);
  const double longitude = std::atan2(reference[1], reference[0]);
  const double c = std::cos(longitude);
  const double s = std::sin(longitude);
  const int angle_column = column_of(file, "POLAA");
  for (LONGLONG row = 1; row <= n_rows; ++row) {
    double xyz[3] = {};
    double angle_deg = 0;
    int number = static_cast<int>(row);
    fits_read_col_dbl(file.get(), xyz_column, row, 1, 3, 0, xyz, nullptr, &status);
    if (number_column != 0)
      fits_read_col_int(file.get(), number_column, row, 1, 1, 0, &number, nullptr, &status);
    if (angle_column != 0)
      fits_read_col_dbl(file.get(), angle_column, row, 1, 1, 0, &angle_deg, nullptr, &status);
    xyz[1] *= handed;
    // x lies in the meridian of the array; with a zero reference the positions are geocentric
    // already.
    out.array.itrf_m.push_back({reference[0] + c * xyz[0] - s * xyz[1],
                                reference[1] + s * xyz[0] + c * xyz[1], reference[2] + xyz[2]});
    out.array.feed_angle_rad.push_back(std::isfinite(angle_deg) ? angle_deg * kDegree_rad : 0);
    out.numbers.push_back(number);
  }
  file.check(status, "read the antenna table of");
  return out;
}

std::vector<int> products_of_axis(const FitsFile& file, const Axis& stokes) {
  std::vector<std::int64_t> codes;
  for (std::int64_t k = 0; k < stokes.size; ++k) {
    codes.push_back(
        std::llround(stokes.value + (static_cast<double>(k) + 1 - stokes.pixel) * stokes.delta));
  }
  return products_of_aips(file.path(), codes);
}

/// Where each random parameter of interest stands.
struct ParameterMap {
  int u, v, w, date, rest, baseline, antenna1, antenna2, interval, source;
};

ParameterMap map_parameters(const FitsFile& file, const Header& h) {
  ParameterMap m{};
  m.u = require(file, h, {"UU", "UU--", "UU---SIN"});
  m.v = require(file, h, {"VV", "VV--", "VV---SIN"});
  m.w = require(file, h, {"WW", "WW--", "WW---SIN"});
  m.date = require(file, h, {"DATE"});
  m.rest = find(h, {"DATE", "_DATE"}, m.date + 1);
  m.baseline = find(h, {"BASELINE"});
  m.antenna1 = find(h, {"ANTENNA1"});
  m.antenna2 = find(h, {"ANTENNA2"});
  m.interval = find(h, {"INTTIM"});
  m.source = find(h, {"SOURCE"});
  if (m.baseline < 0 && (m.antenna1 < 0 || m.antenna2 < 0)) {
    throw FormatError(file.path() + ": neither BASELINE nor ANTENNA1 and ANTENNA2 are there");
  }
  return m;
}

void add_antennas(const ParameterMap& m, const std::vector<double>& p, RowSet& rows) {
  if (m.antenna1 >= 0 && m.antenna2 >= 0) {
    rows.antenna1.push_back(static_cast<int>(std::lround(p[m.antenna1])));
    rows.antenna2.push_back(static_cast<int>(std::lround(p[m.antenna2])));
    return;
  }
  const auto code = static_cast<std::int64_t>(std::floor(p[m.baseline]));
  const bool large = code > 65536;
  rows.antenna1.push_back(static_cast<int>(large ? (code - 65536) / 2048 : code / 256));
  rows.antenna2.push_back(static_cast<int>(large ? (code - 65536) % 2048 : code % 256));
}

/// Returns the number of the source that all groups name; 0: they name none.
int read_groups(FitsFile& file, const Header& h, bool tai, RowSet& rows) {
  int source = 0;
  const ParameterMap m = map_parameters(file, h);
  const auto n_values = static_cast<std::size_t>(h.complex.size * h.stokes.size * h.frequency.size);
  std::vector<double> p(h.n_parameters);
  std::vector<float> values(n_values);
  int status = 0;
  fits_set_bscale(file.get(), 1, 0, &status);
  for (std::int64_t g = 0; g < h.n_groups; ++g) {
    if (g % 256 == 0) require_not_interrupted(file.path());
    fits_read_grppar_dbl(file.get(), g + 1, 1, h.n_parameters, p.data(), &status);
    fits_read_img_flt(file.get(), g + 1, 1, static_cast<LONGLONG>(n_values), 0, values.data(),
                      nullptr, &status);
    if (status != 0) file.check(status, "read group " + std::to_string(g + 1) + " of");
    for (std::size_t k = 0; k < p.size(); ++k) {
      // Dates keep zero point and value apart: their sum would round to 40 microseconds.
      if (static_cast<int>(k) != m.date && static_cast<int>(k) != m.rest)
        p[k] = p[k] * h.scale[k] + h.zero[k];
    }
    const auto date = static_cast<std::size_t>(m.date);
    double fraction = p[date] * h.scale[date];
    double day = h.zero[date];
    if (m.rest >= 0) {
      const auto rest = static_cast<std::size_t>(m.rest);
      fraction += p[rest] * h.scale[rest];
      day += h.zero[rest];
    }
    rows.centroid_tai_ns.push_back(tai_ns_from_julian_date(day, fraction, tai));
    add_antennas(m, p, rows);
    const int named = m.source >= 0 ? static_cast<int>(std::lround(p[m.source])) : 0;
    if (g > 0 && named != source) {
      throw UnsupportedError(file.path() +
                             ": it has several sources; split it first (AIPS SPLIT, "
                             "CASA split; in pyuvdata: UVData.select(catalog_names=...))");
    }
    source = named;
    rows.interval_s.push_back(m.interval >= 0 ? p[m.interval] : 0);
    rows.uvw_m.push_back({p[m.u] * kSpeedOfLight_m_per_s, p[m.v] * kSpeedOfLight_m_per_s,
                          p[m.w] * kSpeedOfLight_m_per_s});
    const auto stride = static_cast<std::size_t>(h.complex.size);
    for (std::size_t k = 0; k < n_values; k += stride) {
      rows.data.emplace_back(static_cast<float>(values[k] * h.data_scale + h.data_zero),
                             static_cast<float>(values[k + 1] * h.data_scale + h.data_zero));
      // Negative weights are flags (AIPS memo 117).
      rows.weight.push_back(
          stride == 3 ? static_cast<float>(values[k + 2] * h.data_scale + h.data_zero) : 1.0F);
    }
  }
  return source;
}

/// The direction of a source as the source table has it; that of the header where there is none.
SkyDirection source_direction(FitsFile& file, const Header& h, int source) {
  const SkyDirection in_header{h.ra.value * kDegree_rad, h.dec.value * kDegree_rad};
  int status = 0;
  std::string name = "AIPS SU";
  fits_movnam_hdu(file.get(), BINARY_TBL, name.data(), 0, &status);
  if (status != 0) fits_clear_errmsg();
  if (source == 0 || status != 0) return icrs_of_equinox(file.path(), in_header, h.equinox);
  LONGLONG n_rows = 0;
  fits_get_num_rowsll(file.get(), &n_rows, &status);
  const auto value = [&](int column, LONGLONG row, double otherwise) {
    double out = otherwise;
    if (column != 0)
      fits_read_col_dbl(file.get(), column, row, 1, 1, otherwise, &out, nullptr, &status);
    return out;
  };
  const int id_column =
      column_of(file, "ID. NO.") != 0 ? column_of(file, "ID. NO.") : column_of(file, "ID_NO.");
  const int ra_column = column_of(file, "RAEPO");
  const int dec_column = column_of(file, "DECEPO");
  const int epoch_column = column_of(file, "EPOCH");
  if (ra_column == 0 || dec_column == 0)
    throw FormatError(file.path() + ": AIPS SU lacks RAEPO or DECEPO");
  for (LONGLONG row = 1; row <= n_rows; ++row) {
    if (static_cast<int>(std::lround(value(id_column, row, static_cast<double>(row)))) != source)
      continue;
    const SkyDirection direction{value(ra_column, row, 0) * kDegree_rad,
                                 value(dec_column, row, 0) * kDegree_rad};
    const double equinox = value(epoch_column, row, h.equinox);
    file.check(status, "read the source table of");
    return icrs_of_equinox(file.path(), direction, equinox == 0 ? 2000 : equinox);
  }
  throw FormatError(file.path() + ": source " + std::to_string(source) +
                    " is not in its source table (AIPS SU)");
}

Observation foreign_observation(FitsFile& file, const Header& h, const Antennas& antennas,
                                const std::vector<std::int64_t>& used, int n_pols, int source) {
  ForeignArray array;
  array.name = antennas.array.name;
  array.reference_itrf_m = antennas.array.reference_itrf_m;
  for (const std::int64_t number : used) {
    const auto found =
        std::find(antennas.numbers.begin(), antennas.numbers.end(), static_cast<int>(number));
    if (found == antennas.numbers.end()) {
      throw FormatError(file.path() + ": antenna " + std::to_string(number) +
                        " is not in the antenna table");
    }
    const auto k = static_cast<std::size_t>(found - antennas.numbers.begin());
    array.names.push_back(antennas.array.names[k]);
    array.itrf_m.push_back(antennas.array.itrf_m[k]);
    array.feed_angle_rad.push_back(antennas.array.feed_angle_rad[k]);
  }
  Observation observation;
  observation.array = array_from_itrf(array, n_pols);
  observation.frequency = {h.frequency.value + (1 - h.frequency.pixel) * h.frequency.delta,
                           h.frequency.delta, h.frequency.size};
  observation.phase_center = source_direction(file, h, source);
  to_primary(file);
  observation.object = trimmed(file.text("OBJECT", ""));
  observation.observer = trimmed(file.text("OBSERVER", ""));
  observation.phase_center_name = observation.object;
  observation.channel_bandwidth_hz = std::abs(h.frequency.delta);
  observation.time_source = TimeSource::header;
  return observation;
}

void restore_times(FitsFile& file, VisibilityFile& out) {
  int status = 0;
  std::string name = "RYLE_DUMP";
  fits_movnam_hdu(file.get(), BINARY_TBL, name.data(), 0, &status);
  LONGLONG n = 0;
  fits_get_num_rowsll(file.get(), &n, &status);
  file.check(status, "read RYLE_DUMP of");
  file.require_data();
  if (n == 0) out.dumps.clear();  // the one group of weight 0 stands for no data
  for (LONGLONG d = 0; d < n && d < static_cast<LONGLONG>(out.dumps.size()); ++d) {
    LONGLONG integers[3] = {};
    double interval_s = 0;
    for (int c = 0; c < 3; ++c) {
      fits_read_col_lnglng(file.get(), c + 1, d + 1, 1, 1, 0, &integers[c], nullptr, &status);
    }
    fits_read_col_dbl(file.get(), 4, d + 1, 1, 1, 0, &interval_s, nullptr, &status);
    set_exact_times(out.dumps[d], integers[0], integers[1], interval_s, integers[2]);
  }
  file.check(status, "read RYLE_DUMP of");
}

float big_endian_float(const char* bytes) {
  std::uint32_t bits = 0;
  for (int k = 0; k < 4; ++k) bits = bits << 8 | static_cast<unsigned char>(bytes[k]);
  return std::bit_cast<float>(bits);
}

/// Files without INTTIM: the smallest step between times.
void guess_intervals(RowSet& rows) {
  if (std::any_of(rows.interval_s.begin(), rows.interval_s.end(), [](double s) { return s > 0; }))
    return;
  std::vector<std::int64_t> times = rows.centroid_tai_ns;
  std::sort(times.begin(), times.end());
  std::int64_t step_ns = 0;
  for (std::size_t k = 1; k < times.size(); ++k) {
    const std::int64_t step = times[k] - times[k - 1];
    if (step > 1'000'000 && (step_ns == 0 || step < step_ns)) step_ns = step;
  }
  std::fill(rows.interval_s.begin(), rows.interval_s.end(), static_cast<double>(step_ns) * 1e-9);
}

}  // namespace

VisibilityFile read_unfinished_uvfits(const std::string& part) {
  const Journal journal = read_journal(journal_of(part));
  VisibilityFile out;
  out.observation = journal.observation;
  VisibilityDump shape;
  shape.n_channels = out.observation.frequency.n_channels;
  shape.n_pol_products = n_pol_products(out.observation);
  shape.n_baselines = n_pairs(out.observation.array.n_antennas());
  const auto per_row = static_cast<std::size_t>(
      checked_file_product({shape.n_channels, shape.n_pol_products}, "a group"));
  const auto n_rows = static_cast<std::size_t>(shape.n_baselines);
  const std::size_t group_bytes = (uvfits::kParameters + 3 * per_row) * sizeof(float);
  std::ifstream in(part, std::ios::binary);
  // The header ends with the block that has END; its count of groups is older than the groups.
  std::string block(2880, ' ');
  bool end = false;
  while (!end && in.read(block.data(), static_cast<std::streamsize>(block.size()))) {
    for (std::size_t card = 0; card < block.size(); card += 80)
      end = end || block.compare(card, 8, "END     ") == 0;
  }
  if (!end) throw FormatError(part + ": its header has no end");
  const double per_count = weight_per_count(out.observation);
  const std::vector<int> order = aips_pol_order(shape.n_pol_products);
  std::string group(group_bytes, '\0');
  for (const JournalEntry& entry : journal.entries) {
    std::vector<float> values;
    while (values.size() < 3 * per_row * n_rows &&
           in.read(group.data(), static_cast<std::streamsize>(group_bytes))) {
      for (std::size_t k = uvfits::kParameters * sizeof(float); k < group_bytes; k += sizeof(float))
        values.push_back(big_endian_float(group.data() + k));
    }
    if (values.size() < 3 * per_row * n_rows ||
        crc32c(values.data(), values.size() * sizeof(float)) != entry.crc)
      break;
    std::vector<cf32> data(per_row * n_rows);
    std::vector<float> weight(data.size());
    for (std::size_t k = 0; k < data.size(); ++k) {
      data[k] = {values[3 * k], values[3 * k + 1]};
      weight[k] = values[3 * k + 2];
    }
    VisibilityDump dump = shape;
    set_exact_times(dump, entry.start_tai_ns, entry.centroid_tai_ns, entry.interval_s,
                    entry.n_spectra);
    rows_to_dump(dump, data.data(), order, dump.data, [](cf32 v) { return v; });
    rows_to_dump(dump, weight.data(), order, dump.counts, [per_count](float w) {
      return static_cast<std::uint32_t>(std::llround(static_cast<double>(w) / per_count));
    });
    out.dumps.push_back(std::move(dump));
  }
  return out;
}

VisibilityFile read_uvfits(const std::string& path, const VisibilityReadOptions& options) {
  FitsFile file = FitsFile::open(path);
  const Header h = read_header(file);
  check_size(file, h);
  RowSet rows;
  rows.path = path;
  rows.products = products_of_axis(file, h.stokes);
  rows.stokes_i = h.stokes.size == 1 && std::llround(h.stokes.value) == 1;
  rows.n_file_channels = h.frequency.size;
  VisibilityFile out;
  const bool own = read_ryle_tables(file, out.observation);
  Antennas antennas;
  if (!own) antennas = read_antennas(file);
  to_primary(file);
  file.require_data_sum();
  const int source = read_groups(file, h, antennas.tai, rows);
  guess_intervals(rows);
  std::vector<std::int64_t> used;
  if (own) {
    for (std::int64_t a = 1; a <= out.observation.array.n_antennas(); ++a) used.push_back(a);
    rows.weight_per_count = weight_per_count(out.observation);
  } else {
    used = used_antennas(rows.antenna1, rows.antenna2);
    out.observation =
        foreign_observation(file, h, antennas, used, n_pols_of(rows.products), source);
    describe_values(h.unit, h.pol_convention, rows, out.observation);
  }
  rows.antenna_index = index_of(used);
  build_dumps(rows, options, out);
  if (own) restore_times(file, out);
  return out;
}

}  // namespace ryle::io
