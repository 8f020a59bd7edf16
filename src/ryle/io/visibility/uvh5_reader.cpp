// SPDX-License-Identifier: BSD-3-Clause
// UVH5 of any origin. Unphased ("drift", "unprojected") files are turned to the zenith of their
// middle time.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/visibility/dump_builder.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle::io {
namespace {

using h5::Handle;

std::int64_t read_int(hid_t group, const char* name, const std::string& path) {
  const auto values = h5::read_ints(group, name, path);
  if (values.empty()) throw FormatError(path + ": " + name + " is empty");
  return values.front();
}

double read_double(hid_t group, const char* name, const std::string& path) {
  const auto values = h5::read_doubles(group, name, path);
  if (values.empty()) throw FormatError(path + ": " + name + " is empty");
  return values.front();
}

std::vector<int> to_int(const std::vector<std::int64_t>& in) { return {in.begin(), in.end()}; }

std::string text_or(hid_t group, const char* name, const std::string& otherwise,
                    const std::string& path) {
  return h5::exists(group, name) ? h5::read_text(group, name, path) : otherwise;
}

/// Rejects a cube of Data that is missing or has another size than the header says.
void require_size(hid_t data, const char* name, std::int64_t expected, const std::string& path) {
  if (!h5::exists(data, name))
    throw FormatError(path + ": Data/" + name +
                      " is missing; a UVH5 file has visdata, flags and "
                      "nsamples");
  std::int64_t size = 1;
  for (const hsize_t n : h5::shape_of(data, name, path))
    size = checked_file_product({size, static_cast<std::int64_t>(n)}, name);
  if (size == expected) return;
  throw FormatError(path + ": " + name + " has " + std::to_string(size) +
                    " values, the header says " + std::to_string(expected));
}

/// visdata of any number type (float64, the int32 of HERA's correlator), nsamples and flags.
/// rows.weight is nsamples, flags not yet applied.
void read_values(hid_t file, const std::string& path, std::int64_t n_rows, RowSet& rows,
                 std::vector<std::int8_t>& flags) {
  const Handle data = h5::open_group(file, "Data", path);
  const std::int64_t expected = checked_file_product(
      {n_rows, rows.n_file_channels, static_cast<std::int64_t>(rows.products.size())}, "visdata");
  for (const char* name : {"visdata", "flags", "nsamples"})
    require_size(data.get(), name, expected, path);
  const auto n = static_cast<std::size_t>(expected);
  rows.data.resize(n);
  rows.weight.resize(n);
  flags.resize(n);
  h5::read_complex(data.get(), "visdata", rows.data.data(), n, path);
  h5::read_all(data.get(), "nsamples", H5T_NATIVE_FLOAT, rows.weight.data(), n, path);
  h5::read_bools(data.get(), "flags", flags.data(), n, path);
}

/// What a file may say that Ryle cannot image as it is.
void reject_unread(hid_t h, const std::string& path) {
  const auto reject = [&](const std::string& what, const std::string& instead) {
    throw UnsupportedError(path + ": " + what + "; " + instead);
  };
  const std::string time_scale = text_or(h, "timesys", "UTC", path);
  if (time_scale != "UTC" && !time_scale.empty())
    reject("its times are " + time_scale, "ryle reads UTC (timesys)");
  if (h5::exists(h, "flex_spw_polarization_array"))
    reject("its polarization differs between spectral windows (flex_spw_polarization_array)",
           "write one polarization a file, with pyuvdata: UVData.remove_flex_pol()");
  const std::string frame = text_or(h, "telescope_frame", "itrs", path);
  if (frame != "itrs") reject("its telescope stands in the frame " + frame, "ryle reads itrs");
  const auto widths = h5::read_doubles(h, "channel_width", path);
  for (const double width_hz : widths) {
    if (std::abs(width_hz - widths.front()) > 0.01 * std::abs(widths.front()))
      reject("its channels have different widths",
             "select those of one width, with pyuvdata: UVData.select(spws=...)");
  }
}

/// The angle of the X feed of each antenna, from north through east.
std::vector<double> x_feed_angles_rad(hid_t h, const std::string& path, std::size_t n_antennas) {
  const std::string orientation = text_or(h, "x_orientation", "", path);  // up to version 1.1
  const bool east = orientation == "east" || orientation == "EAST" || orientation == "e";
  std::vector<double> x(n_antennas, east ? kPi / 2 : 0);
  if (!h5::exists(h, "feed_angle")) return x;
  const auto angles = h5::read_doubles(h, "feed_angle", path);
  const auto feeds = h5::exists(h, "feed_array") ? h5::read_texts(h, "feed_array", path)
                                                 : std::vector<std::string>{};
  const std::size_t n_feeds = n_antennas > 0 ? angles.size() / n_antennas : 0;
  for (std::size_t a = 0; a < n_antennas; ++a) {
    for (std::size_t f = n_feeds; f-- > 0;) {
      const std::size_t k = a * n_feeds + f;
      if (f == 0 || (k < feeds.size() && (feeds[k] == "x" || feeds[k] == "X"))) {
        x[a] = angles[k];
        break;
      }
    }
  }
  return x;
}

Observation foreign_observation(hid_t h, const std::string& path,
                                const std::vector<std::int64_t>& used, int n_pols) {
  const auto numbers = h5::read_ints(h, "antenna_numbers", path);
  const auto names = h5::read_texts(h, "antenna_names", path);
  const auto positions = h5::read_doubles(h, "antenna_positions", path);
  if (names.size() != numbers.size() || positions.size() != 3 * numbers.size()) {
    throw FormatError(path +
                      ": antenna_numbers, antenna_names and antenna_positions differ in length");
  }
  ArrayLayout site;
  site.latitude_rad = read_double(h, "latitude", path) * kDegree_rad;
  site.longitude_rad = read_double(h, "longitude", path) * kDegree_rad;
  site.height_m = read_double(h, "altitude", path);
  ForeignArray array;
  array.name = h5::read_text(h, "telescope_name", path);
  array.reference_itrf_m = itrf_of_reference(site);
  const auto angles = x_feed_angles_rad(h, path, numbers.size());
  for (const std::int64_t number : used) {
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    if (found == numbers.end())
      throw FormatError(path + ": antenna " + std::to_string(number) + " has no position");
    const auto k = static_cast<std::size_t>(found - numbers.begin());
    array.names.push_back(names[k]);
    array.itrf_m.push_back({array.reference_itrf_m[0] + positions[3 * k],
                            array.reference_itrf_m[1] + positions[3 * k + 1],
                            array.reference_itrf_m[2] + positions[3 * k + 2]});
    array.feed_angle_rad.push_back(angles[k]);
  }
  Observation observation;
  observation.array = array_from_itrf(array, n_pols);
  observation.frequency = axis_from_centers(path, h5::read_doubles(h, "freq_array", path));
  const double width_hz = read_double(h, "channel_width", path);
  if (observation.frequency.n_channels == 1)
    observation.frequency.channel_width_hz = std::abs(width_hz);
  observation.channel_bandwidth_hz = std::abs(width_hz);
  observation.object = text_or(h, "object_name", "", path);
  observation.time_source = TimeSource::header;
  return observation;
}

/// The phase centre that the rows use, as a group of the catalog. Throws when they use several.
Handle open_phase_center(hid_t h, const std::string& path) {
  const Handle catalog = h5::open_group(h, "phase_center_catalog", path);
  std::set<std::int64_t> used;
  if (h5::exists(h, "phase_center_id_array")) {
    for (const std::int64_t id : h5::read_ints(h, "phase_center_id_array", path)) used.insert(id);
  }
  const std::vector<std::string> names = h5::names_in(catalog.get(), path);
  std::vector<std::string> in_use;
  for (const std::string& name : names) {
    // Groups are named by number; up to version 1.1 by the source, with the number inside.
    const Handle entry = h5::open_group(catalog.get(), name, path);
    const bool has_id = h5::exists(entry.get(), "cat_id");
    const std::string id = has_id ? std::to_string(read_int(entry.get(), "cat_id", path)) : name;
    const bool wanted = std::any_of(used.begin(), used.end(), [&](std::int64_t number) {
      return std::to_string(number) == id;
    });
    if (used.empty() || wanted) in_use.push_back(name);
  }
  if (in_use.empty()) throw FormatError(path + ": the phase centre is missing");
  if (in_use.size() > 1) {
    std::string list;
    for (const std::string& name : in_use) {
      const Handle entry = h5::open_group(catalog.get(), name, path);
      list += (list.empty() ? "" : ", ") + text_or(entry.get(), "cat_name", name, path);
    }
    throw UnsupportedError(path + ": it has several phase centres (" + list +
                           "); select one first, with pyuvdata: UVData.select(catalog_names=...)");
  }
  return h5::open_group(catalog.get(), in_use.front(), path);
}

/// Throws for a frame whose directions are not those of ICRS (FK5 at J2000 is, to 0.03 arcsec).
void require_icrs(const std::string& frame, double epoch, const std::string& path) {
  const bool j2000 = (frame == "fk5" || frame == "FK5") && std::abs(epoch - 2000) < 1e-3;
  if (frame.empty() || frame == "icrs" || frame == "ICRS" || j2000) return;
  throw UnsupportedError(path + ": its phase centre is in the frame " + frame +
                         (frame == "fk5" ? " of epoch " + std::to_string(epoch) : "") +
                         "; ryle reads icrs and fk5 of 2000; phase it again with pyuvdata: "
                         "UVData.phase(..., phase_frame=\"icrs\")");
}

double epoch_of(hid_t h, const char* name, const std::string& path) {
  const auto values = h5::exists(h, name) ? h5::read_doubles(h, name, path) : std::vector<double>{};
  return values.empty() ? 2000 : values.front();
}

/// One sidereal direction, a direction that stands still over the ground, or (0, 0, 0): nothing was
/// taken out of the phases.
struct PhasedTo {
  bool sidereal = true;
  Vector3 enu{};

  bool nothing() const { return enu == Vector3{}; }
  /// The sidereal direction that is there at an instant.
  SkyDirection direction(const Observation& o, std::int64_t tai_ns) const {
    return nothing() ? zenith(o.array, tai_ns, o.earth_orientation)
                     : direction_of_enu(o.array, enu, tai_ns, o.earth_orientation);
  }
};

/// East, north, up. The apparent place of the first row says what was taken out of the phases;
/// azimuth and elevation of the catalog do not: pyuvdata (to 3.2.8) turns their hour angle round.
Vector3 drift_direction(hid_t h, hid_t entry, const std::string& path, double latitude_rad) {
  for (const char* name : {"lst_array", "phase_center_app_ra", "phase_center_app_dec"}) {
    if (h5::exists(h, name)) continue;
    const double azimuth_rad = read_double(entry, "cat_lon", path);
    const double elevation_rad = read_double(entry, "cat_lat", path);
    return {std::cos(elevation_rad) * std::sin(azimuth_rad),
            std::cos(elevation_rad) * std::cos(azimuth_rad), std::sin(elevation_rad)};
  }
  const auto first = [&](const char* name) {
    const auto values = h5::read_doubles(h, name, path);
    if (values.empty()) throw FormatError(path + ": " + name + " is empty");
    return values.front();
  };
  const double hour_angle_rad = first("lst_array") - first("phase_center_app_ra");
  const double dec_rad = first("phase_center_app_dec");
  const double sin_lat = std::sin(latitude_rad), cos_lat = std::cos(latitude_rad);
  const double along = std::cos(dec_rad) * std::cos(hour_angle_rad);
  return {-std::cos(dec_rad) * std::sin(hour_angle_rad),
          std::sin(dec_rad) * cos_lat - along * sin_lat,
          std::sin(dec_rad) * sin_lat + along * cos_lat};
}

/// A sidereal direction is set as the phase centre.
PhasedTo read_phase_center(hid_t h, const std::string& path, Observation& observation) {
  const PhasedTo sidereal;
  const PhasedTo unprojected{false, {}};
  if (h5::exists(h, "phase_center_catalog")) {
    const Handle entry = open_phase_center(h, path);
    observation.phase_center_name = text_or(entry.get(), "cat_name", "", path);
    const std::string type = text_or(entry.get(), "cat_type", "sidereal", path);
    if (type == "unprojected") return unprojected;
    if (type == "driftscan")
      return {false, drift_direction(h, entry.get(), path, observation.array.latitude_rad)};
    if (type != "sidereal")
      throw UnsupportedError(path + ": its phase centre " + observation.phase_center_name +
                             " is of type " + type +
                             "; ryle reads sidereal, driftscan and unprojected ones, which "
                             "pyuvdata makes: UVData.unproject_phase()");
    require_icrs(text_or(entry.get(), "cat_frame", "", path),
                 epoch_of(entry.get(), "cat_epoch", path), path);
    observation.phase_center = {read_double(entry.get(), "cat_lon", path),
                                read_double(entry.get(), "cat_lat", path)};
    return sidereal;
  }
  const std::string type = text_or(h, "phase_type", "drift", path);
  if (type == "drift") return unprojected;
  if (type != "phased") throw UnsupportedError(path + ": phase_type " + type + " is not known");
  require_icrs(text_or(h, "phase_center_frame", "", path), epoch_of(h, "phase_center_epoch", path),
               path);
  observation.phase_center = {read_double(h, "phase_center_ra", path),
                              read_double(h, "phase_center_dec", path)};
  return sidereal;
}

/// Unphased data carry exp(+2 pi i (r_i - r_j).s/c) whole: data phased to a direction have the part
/// along it removed. All dumps are turned to what `phased` stood for at the middle time.
void hold_still(VisibilityFile& file, const PhasedTo& phased) {
  Observation& observation = file.observation;
  if (file.dumps.empty()) return;
  const std::int64_t middle = file.dumps[file.dumps.size() / 2].centroid_tai_ns;
  observation.phase_center = phased.direction(observation, middle);
  const auto& antennas = observation.array.antennas;
  for (VisibilityDump& dump : file.dumps) {
    require_not_interrupted("the data of a UVH5 file");
    const auto uvw = baseline_uvw_m(observation, dump.centroid_tai_ns);
    for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
      const auto [i, j] = pair_of(b);
      double path_m = uvw[b][2];
      for (std::size_t k = 0; k < 3; ++k)
        path_m -= phased.enu[k] * (antennas[i].enu_m[k] - antennas[j].enu_m[k]);
      for (std::int64_t c = 0; c < dump.n_channels; ++c) {
        const double turns = path_m * observation.frequency.center_hz(c) / kSpeedOfLight_m_per_s;
        const double angle_rad = -2 * kPi * (turns - std::round(turns));
        const cf32 factor(static_cast<float>(std::cos(angle_rad)),
                          static_cast<float>(std::sin(angle_rad)));
        for (std::int64_t p = 0; p < dump.n_pol_products; ++p)
          dump.data[dump.index(c, b, p)] *= factor;
      }
    }
  }
  observation.phase_center_name = phased.nothing()
                                      ? "zenith of the middle time"
                                      : observation.phase_center_name + " of the middle time";
}

void apply_flags(const std::vector<std::int8_t>& flags, RowSet& rows) {
  for (std::size_t k = 0; k < flags.size(); ++k) {
    if (flags[k] != 0) rows.weight[k] = 0;
  }
}

/// Throws FormatError when a sum of `name` does not fit: sum_of(dump) is what the data give.
template <class Sum>
void check_sums(hid_t own, const char* name, const std::string& path, std::size_t n_dumps,
                const Sum& sum_of) {
  const auto sums = h5::read_ints(own, name, path);
  if (sums.size() != n_dumps) {
    throw FormatError(path + ": " + name + " has " + std::to_string(sums.size()) +
                      " checksums for " + std::to_string(n_dumps) + " dumps");
  }
  for (std::size_t d = 0; d < n_dumps; ++d) {
    if (sum_of(d) == static_cast<std::uint32_t>(sums[d])) continue;
    throw FormatError(path + ": " + name + " of dump " + std::to_string(d) +
                      " does not fit what it is the checksum of; the file is damaged");
  }
}

void check_crc(hid_t own, const std::string& path, const RowSet& rows,
               const std::vector<std::int8_t>& flags, std::size_t n_dumps) {
  const std::size_t per_dump = n_dumps > 0 ? rows.data.size() / n_dumps : 0;
  check_sums(own, "visdata_crc32c", path, n_dumps, [&](std::size_t d) {
    return crc32c(rows.data.data() + d * per_dump, per_dump * sizeof(cf32));
  });
  if (!h5::exists(own, "weights_crc32c")) return;  // files of before it had one
  check_sums(own, "weights_crc32c", path, n_dumps, [&](std::size_t d) {
    return uvh5_weights_crc(rows.weight.data() + d * per_dump, flags.data() + d * per_dump,
                            per_dump);
  });
}

/// The observation exactly as it was written, with its arrays.
Observation own_observation(hid_t own, const std::string& path) {
  Observation observation =
      observation_from_json(h5::read_text(own, "observation_json", path), path);
  AppliedCorrections& applied = observation.applied;
  const auto doubles = [&](const char* name) {
    return h5::exists(own, name) ? h5::read_doubles(own, name, path) : std::vector<double>{};
  };
  applied.delay_s = doubles("delay_s");
  applied.filter_response = doubles("filter_response");
  applied.input_rms_lsb = doubles("input_rms_lsb");
  applied.saturated_fraction = doubles("saturated_fraction");
  const auto parts = doubles("gains");
  for (std::size_t k = 0; k + 1 < parts.size(); k += 2)
    applied.gains.emplace_back(parts[k], parts[k + 1]);
  return observation;
}

void restore_dumps(hid_t own, const std::string& path, VisibilityFile& file) {
  const auto start = h5::read_ints(own, "start_tai_ns", path);
  const auto centroid = h5::read_ints(own, "centroid_tai_ns", path);
  const auto n_spectra = h5::read_ints(own, "n_spectra", path);
  for (std::size_t d = 0; d < file.dumps.size() && d < start.size() && d < n_spectra.size(); ++d) {
    VisibilityDump& dump = file.dumps[d];
    set_exact_times(dump, start[d], centroid[d], dump.interval_s, n_spectra[d]);
  }
}

/// nsamples = n_ij / N with N of each dump: back to counts.
void scale_own_weights(hid_t own, const std::string& path, RowSet& rows) {
  const auto n_spectra = h5::read_ints(own, "n_spectra", path);
  if (n_spectra.empty()) return;
  const std::size_t per_dump = rows.weight.size() / n_spectra.size();
  for (std::size_t k = 0; k < rows.weight.size(); ++k) {
    rows.weight[k] = static_cast<float>(
        std::round(static_cast<double>(rows.weight[k]) *
                   static_cast<double>(std::max<std::int64_t>(1, n_spectra[k / per_dump]))));
  }
  rows.weight_per_count = 1;
}

RowSet read_rows(hid_t file, hid_t h, const std::string& path, std::vector<std::int8_t>& flags) {
  RowSet rows;
  rows.path = path;
  rows.stored_conjugated = true;
  const std::int64_t n_rows = read_int(h, "Nblts", path);
  const auto codes = h5::read_ints(h, "polarization_array", path);
  rows.products = products_of_aips(path, codes);
  rows.stokes_i = codes.front() == 1;
  rows.n_file_channels = read_int(h, "Nfreqs", path);
  rows.antenna1 = to_int(h5::read_ints(h, "ant_1_array", path));
  rows.antenna2 = to_int(h5::read_ints(h, "ant_2_array", path));
  rows.interval_s = h5::read_doubles(h, "integration_time", path);
  const auto times = h5::read_doubles(h, "time_array", path);
  const auto uvw = h5::read_doubles(h, "uvw_array", path);
  const auto n = static_cast<std::size_t>(n_rows);
  if (rows.antenna1.size() != n || rows.antenna2.size() != n || times.size() != n ||
      rows.interval_s.size() != n || uvw.size() != 3 * n) {
    throw FormatError(path + ": the row arrays of the header do not have Nblts = " +
                      std::to_string(n_rows) + " entries");
  }
  for (const double jd : times) rows.centroid_tai_ns.push_back(tai_ns_from_julian_date(jd, 0));
  for (std::size_t r = 0; r < n; ++r)
    rows.uvw_m.push_back({uvw[3 * r], uvw[3 * r + 1], uvw[3 * r + 2]});
  read_values(file, path, n_rows, rows, flags);
  return rows;
}

/// A list with an entry a dump, in pieces of 64: without the last piece where that cannot be read.
std::vector<std::int64_t> ints_there(hid_t own, const char* name, const std::string& part) {
  constexpr hsize_t kPiece = 64;
  const auto shape = h5::shape_of(own, name, part);
  hsize_t n = shape.empty() ? 0 : shape[0];
  std::error_code ignored;
  if (n > std::filesystem::file_size(part, ignored))
    throw FormatError(part + ": " + name + " does not have the length the file says it has");
  std::vector<std::int64_t> values(n);
  try {
    h5::read_rows(own, name, H5T_NATIVE_INT64, n, values.data(), part);
  } catch (const FormatError&) {
    n = (n - 1) / kPiece * kPiece;
    values.resize(n);
    h5::read_rows(own, name, H5T_NATIVE_INT64, n, values.data(), part);
  }
  return values;
}

}  // namespace

VisibilityFile read_unfinished_uvh5(const std::string& part) {
  // As a SWMR reader: the only way to open a file whose writer was killed without changing it.
  const Handle file = h5::open_file(part, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
  if (!h5::exists(file.get(), "Ryle") || !h5::exists(file.get(), "Ryle/observation_json"))
    throw FormatError(part + ": it does not say what it is; the writer was killed as it opened it");
  const Handle own = h5::open_group(file.get(), "Ryle", part);
  const Handle header = h5::open_group(file.get(), "Header", part);
  const Handle data = h5::open_group(file.get(), "Data", part);
  VisibilityFile out;
  out.observation = own_observation(own.get(), part);
  VisibilityDump shape;
  shape.n_channels = out.observation.frequency.n_channels;
  shape.n_pol_products = n_pol_products(out.observation);
  shape.n_baselines = n_pairs(out.observation.array.n_antennas());
  const auto size = static_cast<std::size_t>(checked_file_product(
      {shape.n_channels, shape.n_pol_products, shape.n_baselines}, "a visibility dump"));
  const auto sums = ints_there(own.get(), "visdata_crc32c", part);
  const bool old = !h5::exists(own.get(), "weights_crc32c");
  const auto weight_sums =
      old ? std::vector<std::int64_t>{} : ints_there(own.get(), "weights_crc32c", part);
  const auto start = ints_there(own.get(), "start_tai_ns", part);
  const auto centroid = ints_there(own.get(), "centroid_tai_ns", part);
  const auto n_spectra = ints_there(own.get(), "n_spectra", part);
  const hsize_t n_rows = sums.size() * static_cast<hsize_t>(shape.n_baselines);
  // The file may be anybody's: what is allocated follows from what is in it, not from what it says.
  const auto rows_of = [&](const char* name, std::size_t bytes_each) {
    const auto cube = h5::shape_of(data.get(), name, part);
    const bool fits = size > 0 && cube.size() == 3 &&
                      cube[1] == static_cast<hsize_t>(shape.n_channels) &&
                      cube[2] == static_cast<hsize_t>(shape.n_pol_products);
    std::error_code ignored;
    const auto file_bytes = std::filesystem::file_size(part, ignored);
    // A dump under way may have been made room for and not written: hence the 4.
    if (!fits || cube[0] > 4 * file_bytes / bytes_each / (cube[1] * cube[2]))
      throw FormatError(part + ": " + name + " does not have the shape the file says it has");
    return std::min(cube[0], n_rows);
  };
  const auto intervals = h5::shape_of(header.get(), "integration_time", part);
  const hsize_t n_intervals = intervals.size() == 1 ? intervals[0] : 0;
  const hsize_t n_there =
      std::min({rows_of("visdata", sizeof(cf32)), rows_of("nsamples", sizeof(float)),
                rows_of("flags", 1), n_intervals});
  const std::size_t n_values =
      static_cast<std::size_t>(n_there) * (size / static_cast<std::size_t>(shape.n_baselines));
  std::vector<cf32> values(n_values);
  std::vector<float> samples(n_values);
  std::vector<std::int8_t> flags(n_values);
  std::vector<double> interval(n_there);
  const Handle complex = h5::complex_type();
  const Handle boolean = h5::bool_type();
  h5::read_rows(data.get(), "visdata", complex.get(), n_there, values.data(), part);
  h5::read_rows(data.get(), "nsamples", H5T_NATIVE_FLOAT, n_there, samples.data(), part);
  h5::read_rows(data.get(), "flags", boolean.get(), n_there, flags.data(), part);
  h5::read_rows(header.get(), "integration_time", H5T_NATIVE_DOUBLE, n_there, interval.data(),
                part);
  const std::vector<int> order = aips_pol_order(shape.n_pol_products);
  for (std::size_t d = 0; d < sums.size(); ++d) {  // the checksum is appended last of a dump
    const bool all_there = start.size() > d && centroid.size() > d && n_spectra.size() > d &&
                           values.size() >= (d + 1) * size && samples.size() >= (d + 1) * size &&
                           flags.size() >= (d + 1) * size && (old || weight_sums.size() > d) &&
                           interval.size() > d * static_cast<std::size_t>(shape.n_baselines);
    if (!all_there) break;
    const cf32* from = values.data() + d * size;
    if (crc32c(from, size * sizeof(cf32)) != static_cast<std::uint32_t>(sums[d])) break;
    if (!old && uvh5_weights_crc(samples.data() + d * size, flags.data() + d * size, size) !=
                    static_cast<std::uint32_t>(weight_sums[d])) {
      break;
    }
    VisibilityDump dump = shape;
    set_exact_times(dump, start[d], centroid[d],
                    interval[d * static_cast<std::size_t>(shape.n_baselines)], n_spectra[d]);
    const double whole = static_cast<double>(std::max<std::int64_t>(1, n_spectra[d]));
    rows_to_dump(dump, from, order, dump.data, [](cf32 v) { return std::conj(v); });
    rows_to_dump(dump, samples.data() + d * size, order, dump.counts, [whole](float s) {
      return static_cast<std::uint32_t>(std::llround(static_cast<double>(s) * whole));
    });
    out.dumps.push_back(std::move(dump));
  }
  return out;
}

VisibilityFile read_uvh5(const std::string& path, const VisibilityReadOptions& options) {
  const Handle file = h5::open_file(path);
  const Handle header = h5::open_group(file.get(), "Header", path);
  std::vector<std::int8_t> flags;
  RowSet rows = read_rows(file.get(), header.get(), path, flags);
  VisibilityFile out;
  if (h5::exists(file.get(), "Ryle") && h5::exists(file.get(), "Ryle/observation_json")) {
    const Handle own = h5::open_group(file.get(), "Ryle", path);
    out.observation = own_observation(own.get(), path);
    const std::int64_t per_dump = n_pairs(out.observation.array.n_antennas());
    check_crc(own.get(), path, rows, flags,
              rows.antenna1.size() / static_cast<std::size_t>(per_dump));
    apply_flags(flags, rows);
    scale_own_weights(own.get(), path, rows);
    std::vector<std::int64_t> used;
    for (std::int64_t a = 0; a < out.observation.array.n_antennas(); ++a) used.push_back(a);
    rows.antenna_index = index_of(used);
    rows.weight_per_count = 1;
    build_dumps(rows, options, out);
    restore_dumps(own.get(), path, out);
    if (is_unprojected(out.observation)) {
      hold_still(out, {false, {}});
      out.observation.provenance.notes["fringe_stopping"] = "none in the file, which was turned";
    }
    return out;
  }
  reject_unread(header.get(), path);
  apply_flags(flags, rows);
  const int n_pols = n_pols_of(rows.products);
  const auto used = used_antennas(rows.antenna1, rows.antenna2);
  rows.antenna_index = index_of(used);
  out.observation = foreign_observation(header.get(), path, used, n_pols);
  describe_values(text_or(header.get(), "vis_units", "", path),
                  text_or(header.get(), "pol_convention", "", path), rows, out.observation);
  const PhasedTo phased = read_phase_center(header.get(), path, out.observation);
  if (!phased.sidereal && !rows.centroid_tai_ns.empty())
    out.observation.phase_center = phased.direction(out.observation, rows.centroid_tai_ns.front());
  build_dumps(rows, options, out);
  if (!phased.sidereal) hold_still(out, phased);
  return out;
}

}  // namespace ryle::io
