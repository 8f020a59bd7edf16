// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/gain_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sha256.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle {
namespace {

using io::h5::Handle;
namespace h5 = io::h5;

const std::vector<std::string> kCalH5Endings{".h5", ".hdf5", ".calh5"};

// CalH5's codes of Jxx and Jyy.
constexpr std::int64_t kJonesX = -5, kJonesY = -6;

bool is_y_alone(const GainTable& table) {
  return table.n_pols == 1 && gain_polarization(table) == "YY";
}

bool is_csv(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string()) == ".csv";
}

Handle group_of(hid_t file, const char* name, const std::string& path) {
  Handle group(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  h5::check(group.get(), std::string("create ") + name + " in", path);
  return group;
}

hsize_t extent(std::int64_t n) { return static_cast<hsize_t>(n); }

class CalH5Writer {
 public:
  CalH5Writer(const std::string& path, const GainTable& table, bool overwrite)
      : path_(path), table_(table), part_(path, overwrite) {}

  void write() {
    h5::silence();
    file_ = Handle(H5Fcreate(part_.unfinished().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                   H5Fclose);
    h5::check(file_.get(), "create", path_);
    write_header();
    write_data();
    write_own();
    if (!file_.close()) h5::check(-1, "close", path_);
    part_.publish();
  }

 private:
  const ArrayLayout& array() const { return table_.observation.array; }

  void write_header() {
    const Handle header = group_of(file_.get(), "Header", path_);
    const hid_t h = header.get();
    const std::int64_t n = array().n_antennas();
    h5::put_text(h, "version", "0.1", path_);
    h5::put_text(h, "cal_type", "gain", path_);
    h5::put_text(h, "cal_style", "sky", path_);
    h5::put_text(h, "gain_convention", "divide", path_);
    h5::put_text(h, "sky_catalog", table_.model, path_);
    h5::put_text(h, "ref_antenna_name", io::antenna_name(array(), table_.reference_antenna), path_);
    if (!table_.flux_unit.empty()) h5::put_text(h, "gain_scale", table_.flux_unit, path_);
    h5::put_bool(h, "wide_band", false, path_);
    for (const auto& [name, value] :
         {std::pair{"Nants_data", n}, std::pair{"Nants_telescope", n},
          std::pair{"Nfreqs", table_.n_channels()}, std::pair{"Njones", table_.n_pols},
          std::pair{"Nspws", std::int64_t{1}}, std::pair{"Ntimes", std::int64_t{1}}})
      h5::put_int(h, name, value, path_);
    std::string history;
    for (const std::string& line : io::history_lines(table_.observation)) history += line + "\n";
    h5::put_text(h, "history", history, path_);
    write_telescope(h);
    write_axes(h);
  }

  void write_telescope(hid_t h) {
    const std::int64_t n = array().n_antennas();
    const std::string name = array().name.empty() ? "UNKNOWN" : array().name;
    h5::put_text(h, "telescope_name", name, path_);
    h5::put_text(h, "instrument", name, path_);
    h5::put_text(h, "telescope_frame", "itrs", path_);
    h5::put_double(h, "latitude", array().latitude_rad / kDegree_rad, path_);
    h5::put_double(h, "longitude", array().longitude_rad / kDegree_rad, path_);
    h5::put_double(h, "altitude", array().height_m, path_);
    std::vector<std::string> names, mounts, feeds;
    std::vector<std::int64_t> numbers;
    std::vector<double> positions, angles;
    for (std::int64_t a = 0; a < n; ++a) {
      names.push_back(io::antenna_name(array(), a));
      mounts.emplace_back("fixed");
      numbers.push_back(a);
      for (const double x : itrf_offset_of_enu(array(), array().antennas[a].enu_m))
        positions.push_back(x);
      const auto feed_angles = io::feed_angles_rad(array(), a);
      for (std::int64_t pol = 0; pol < table_.n_pols; ++pol) {
        const std::int64_t feed = is_y_alone(table_) ? 1 : pol;
        feeds.emplace_back(feed == 0 ? "x" : "y");
        angles.push_back(feed_angles[feed]);
      }
    }
    const hsize_t rows = extent(n), pols = extent(table_.n_pols);
    h5::put_int(h, "Nfeeds", table_.n_pols, path_);
    h5::put_texts(h, "antenna_names", names, {rows}, path_);
    h5::put_texts(h, "mount_type", mounts, {rows}, path_);
    h5::put_texts(h, "feed_array", feeds, {rows, pols}, path_);
    h5::put_array(h, "feed_angle", H5T_NATIVE_DOUBLE, angles.data(), {rows, pols}, path_);
    h5::put_array(h, "antenna_positions", H5T_NATIVE_DOUBLE, positions.data(), {rows, 3}, path_);
    for (const char* key : {"antenna_numbers", "ant_array"})
      h5::put_array(h, key, H5T_NATIVE_INT64, numbers.data(), {rows}, path_);
  }

  void write_axes(hid_t h) {
    const hsize_t n = extent(table_.n_channels());
    const std::vector<std::int64_t> window(n, 0);
    h5::put_array(h, "freq_array", H5T_NATIVE_DOUBLE, table_.center_hz.data(), {n}, path_);
    // A width that is not known is written as 1 Hz: readers take none for an error.
    std::vector<double> widths = table_.width_hz;
    for (double& w : widths) w = w > 0 ? w : 1;
    h5::put_array(h, "channel_width", H5T_NATIVE_DOUBLE, widths.data(), {n}, path_);
    h5::put_array(h, "flex_spw_id_array", H5T_NATIVE_INT64, window.data(), {n}, path_);
    h5::put_array(h, "spw_array", H5T_NATIVE_INT64, window.data(), {1}, path_);
    const std::int64_t jones[2] = {kJonesX, kJonesY};
    h5::put_array(h, "jones_array", H5T_NATIVE_INT64, is_y_alone(table_) ? jones + 1 : jones,
                  {extent(table_.n_pols)}, path_);
    // A range: readers apply the gains to all times within, not to one instant.
    const double interval_s = table_.interval_s > 0 ? table_.interval_s : 1;
    const std::int64_t half_ns = std::llround(0.5e9 * interval_s);
    double times_jd[2], lsts_rad[2];
    for (int end = 0; end < 2; ++end) {
      const std::int64_t tai_ns = table_.middle_tai_ns + (end == 0 ? -half_ns : half_ns);
      const auto jd = utc_julian_date(tai_ns);
      times_jd[end] = jd[0] + jd[1];
      lsts_rad[end] =
          local_sidereal_time_rad(array(), tai_ns, table_.observation.earth_orientation);
    }
    h5::put_array(h, "time_range", H5T_NATIVE_DOUBLE, times_jd, {1, 2}, path_);
    h5::put_array(h, "lst_range", H5T_NATIVE_DOUBLE, lsts_rad, {1, 2}, path_);
    h5::put_array(h, "integration_time", H5T_NATIVE_DOUBLE, &interval_s, {1}, path_);
  }

  std::vector<hsize_t> shape() const {
    return {extent(array().n_antennas()), extent(table_.n_channels()), 1, extent(table_.n_pols)};
  }

  void write_data() {
    const Handle data = group_of(file_.get(), "Data", path_);
    std::vector<cf32> gains;
    for (const cf64& g : table_.gains) gains.emplace_back(std::conj(g));
    const Handle complex = h5::complex_type(), truth = h5::bool_type();
    h5::put_array(data.get(), "gains", complex.get(), gains.data(), shape(), path_);
    const std::vector<std::int8_t> flags(table_.flags.begin(), table_.flags.end());
    h5::put_array(data.get(), "flags", truth.get(), flags.data(), shape(), path_);
    h5::put_array(data.get(), "qualities", H5T_NATIVE_DOUBLE, table_.chi2.data(), shape(), path_);
  }

  void write_own() {
    const Handle own = group_of(file_.get(), "Ryle", path_);
    h5::put_text(own.get(), "observation", observation_to_json(table_.observation), path_);
    h5::put_text(own.get(), "table_id", gain_table_id(table_), path_);
    h5::put_text(own.get(), "convention",
                 "v_recorded = conj(gains) v_sky of V_ij = <v_i conj(v_j)>; conj(V_ij), as UVH5 "
                 "has it, is divided by gains_i conj(gains_j)",
                 path_);
    h5::put_int(own.get(), "start_tai_ns", table_.start_tai_ns, path_);
    h5::put_int(own.get(), "middle_tai_ns", table_.middle_tai_ns, path_);
    h5::put_double(own.get(), "interval_s", table_.interval_s, path_);
    h5::put_array(own.get(), "sigma_phase_rad", H5T_NATIVE_DOUBLE, table_.sigma_rad.data(), shape(),
                  path_);
    h5::put_array(own.get(), "sigma_amplitude", H5T_NATIVE_DOUBLE, table_.sigma_amplitude.data(),
                  shape(), path_);
  }

  std::string path_;
  const GainTable& table_;
  Part part_;
  Handle file_;
};

/// Delay that turns the gains of a signal path by what neighboring channels differ. @unit s
/// @eq arg(sum_c g_c+1 conj(g_c)) = -2 pi (nu_c+1 - nu_c) delay
double delay_between_channels_s(const GainTable& table, std::int64_t antenna, std::int64_t pol) {
  cf64 turn{};
  for (std::int64_t c = 0; c + 1 < table.n_channels(); ++c) {
    const auto low = table.at(antenna, c, pol), high = table.at(antenna, c + 1, pol);
    if (table.flags[low] == 0 && table.flags[high] == 0)
      turn += table.gains[high] * std::conj(table.gains[low]);
  }
  return -std::arg(turn) / (2 * kPi * (table.center_hz[1] - table.center_hz[0]));
}

/// Mean over the channels of one signal path; nothing where all are flagged. Throws FormatError
/// where the gains turn over the band, so that no one gain stands for them.
cf64 mean_gain(const GainTable& table, std::int64_t antenna, std::int64_t pol,
               const std::string& path) {
  constexpr double kMinCoherence = 0.9;
  cf64 sum{};
  double n = 0;
  double amplitudes = 0;
  for (std::int64_t c = 0; c < table.n_channels(); ++c) {
    const auto k = table.at(antenna, c, pol);
    if (table.flags[k] != 0) continue;
    sum += table.gains[k];
    amplitudes += std::abs(table.gains[k]);
    ++n;
  }
  if (n == 0) return {};
  if (std::abs(sum) < kMinCoherence * amplitudes)
    throw FormatError(fmt::format(
        "{}: a CSV has one gain of an input for all channels, and those of antenna {} turn over "
        "the band, by a delay of about {:.3g} ns: their mean is {:.2g} of their amplitude. Write "
        "the table as .h5, which has a gain for every channel, or state the delay in the layout "
        "(cable_delay_ns)",
        path, io::antenna_name(table.observation.array, antenna),
        1e9 * delay_between_channels_s(table, antenna, pol), std::abs(sum) / amplitudes));
  return sum / n;
}

std::string csv_of(const GainTable& table, const std::string& path) {
  const ArrayLayout& array = table.observation.array;
  std::string text =
      "# v_recorded = g v_sky: calibration divides. Table " + gain_table_id(table) + "\n";
  text += "# " + table.model + "; " + utc_iso(table.middle_tai_ns, 1) + " UTC; phase of " +
          io::antenna_name(array, table.reference_antenna) + " = 0\n";
  std::string rows;
  for (std::int64_t p = 0; p < array.n_inputs(); ++p) {
    const ArrayInput& input = array.inputs[p];
    const std::int64_t pol = std::min<std::int64_t>(input.pol, table.n_pols - 1);
    const cf64 g = mean_gain(table, input.antenna, pol, path);
    if (g == cf64{})
      rows += fmt::format("{},1,0,1\n", p);
    else
      rows += fmt::format("{},{:.9g},{:.6f},0\n", p, std::abs(g), std::arg(g) / kDegree_rad);
  }
  return text + "input,amplitude,phase_deg,flag\n" + rows;
}

/// Rows of the file by antenna number, names and places of foreign files.
void read_array(hid_t header, GainTable& table, const std::string& path) {
  ArrayLayout& array = table.observation.array;
  const auto names = h5::read_texts(header, "antenna_names", path);
  const auto numbers = h5::read_ints(header, "antenna_numbers", path);
  const auto rows = h5::read_ints(header, "ant_array", path);
  if (names.size() != numbers.size())
    throw FormatError(
        fmt::format("{}: {} antenna names for {} numbers", path, names.size(), numbers.size()));
  array.antennas.clear();
  for (const std::int64_t row : rows) {
    const auto found = std::find(numbers.begin(), numbers.end(), row);
    if (found == numbers.end())
      throw FormatError(
          fmt::format("{}: antenna {} of ant_array is not among the {} of the "
                      "telescope",
                      path, row, numbers.size()));
    array.antennas.push_back({names[found - numbers.begin()], {}});
  }
}

std::int64_t first_int(hid_t group, const char* name, const std::string& path) {
  const auto values = h5::read_ints(group, name, path);
  if (values.empty()) throw FormatError(fmt::format("{}: {} has no value", path, name));
  return values.front();
}

/// Place in the file of the gains of X and of Y, by jones_array; of one alone the polarization is
/// noted.
std::vector<std::size_t> places_of_pols(hid_t header, GainTable& table, const std::string& path) {
  const auto codes = h5::read_ints(header, "jones_array", path);
  if (static_cast<std::int64_t>(codes.size()) != table.n_pols)
    throw FormatError(fmt::format("{}: jones_array has {} codes for {} Jones terms", path,
                                  codes.size(), table.n_pols));
  for (const std::int64_t code : codes)
    if (code != kJonesX && code != kJonesY)
      throw UnsupportedError(fmt::format(
          "{}: Jones term {} in jones_array; gains of X (-5) and Y (-6) are read", path, code));
  auto& notes = table.observation.provenance.notes;
  if (codes.size() == 1) {
    if (codes[0] == kJonesY) notes["single_polarization"] = "YY";
    if (codes[0] == kJonesX && gain_polarization(table) == "YY")
      notes["single_polarization"] = "XX";
    return {0};
  }
  if (codes[0] == codes[1])
    throw FormatError(fmt::format("{}: jones_array has {} twice", path, codes[0]));
  return codes[0] == kJonesX ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1, 0};
}

void require_channels(const GainTable& table, const std::string& path) {
  if (table.center_hz.empty() || table.observation.array.antennas.empty() || table.n_pols < 1)
    throw FormatError(
        fmt::format("{}: a table of {} antennas, {} frequencies and {} Jones terms has no gains",
                    path, table.observation.array.n_antennas(), table.n_channels(), table.n_pols));
  for (std::size_t c = 0; c < table.center_hz.size(); ++c) {
    if (!(std::isfinite(table.center_hz[c]) && table.center_hz[c] > 0) ||
        !std::isfinite(table.width_hz[c]))
      throw FormatError(fmt::format("{}: channel {} is {:g} Hz wide at {:g} Hz: no frequency", path,
                                    c, table.width_hz[c], table.center_hz[c]));
  }
}

}  // namespace

std::string gains_applied(const Observation& observation) {
  const auto& notes = observation.provenance.notes;
  const auto found = notes.find(kGainsAppliedNote);
  return found == notes.end() ? "" : found->second;
}

std::string lone_polarization(const Observation& observation) {
  const auto& notes = observation.provenance.notes;
  const auto found = notes.find("single_polarization");
  if (found == notes.end() || found->second == "X" || found->second == "XX") return "XX";
  return found->second == "Y" || found->second == "YY" ? "YY" : "I";
}

std::string gain_polarization(const GainTable& table) {
  return table.n_pols == 2 ? "" : lone_polarization(table.observation);
}

std::string gain_table_id(const GainTable& table) {
  io::Sha256 hash;
  const auto add = [&hash](const auto& values) {
    hash.update({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])});
  };
  // As a file holds them: the table that is read has the same id.
  std::vector<cf32> gains;
  for (std::size_t k = 0; k < table.gains.size(); ++k)
    gains.emplace_back(table.flags[k] != 0 ? cf64(1) : table.gains[k]);
  add(gains);
  add(table.flags);
  add(table.center_hz);
  std::string text = gain_polarization(table);
  for (std::int64_t a = 0; a < table.observation.array.n_antennas(); ++a)
    text += "\n" + io::antenna_name(table.observation.array, a);
  add(text);
  return hash.hex().substr(0, 16);
}

void require_gain_suffix(const std::string& path, const std::string& option) {
  std::vector<std::string> endings = kCalH5Endings;
  endings.emplace_back(".csv");
  require_ending(path, option, endings);
}

void write_gain_table(const std::string& path, const GainTable& table, bool overwrite) {
  require_gain_suffix(path, "a table of gains");
  if (is_csv(path))
    publish_bytes(path, csv_of(table, path), overwrite);
  else
    CalH5Writer(path, table, overwrite).write();
}

GainTable read_gain_table(const std::string& path) {
  const Handle file = h5::open_file(path);
  const Handle header = h5::open_group(file.get(), "Header", path);
  const Handle data = h5::open_group(file.get(), "Data", path);
  GainTable table;
  const bool own = h5::exists(file.get(), "Ryle");
  if (own) {
    const Handle ryle = h5::open_group(file.get(), "Ryle", path);
    table.observation = observation_from_json(h5::read_text(ryle.get(), "observation", path), path);
    table.start_tai_ns = first_int(ryle.get(), "start_tai_ns", path);
    table.middle_tai_ns = first_int(ryle.get(), "middle_tai_ns", path);
  }
  if (h5::read_text(header.get(), "cal_type", path) != "gain")
    throw FormatError(path + ": holds delays, not gains");
  const auto shape = h5::shape_of(data.get(), "gains", path);
  if (shape.size() != 4 || shape[2] != 1)
    throw FormatError(fmt::format(
        "{}: gains have {} axes{}: [antenna][frequency][1 time][Jones] "
        "is read",
        path, shape.size(), shape.size() == 4 ? fmt::format(" and {} times", shape[2]) : ""));
  if (shape[3] > 2)
    throw FormatError(fmt::format("{}: {} Jones terms; gains of X and Y are read", path, shape[3]));
  table.n_pols = static_cast<std::int64_t>(shape[3]);
  table.center_hz = h5::read_doubles(header.get(), "freq_array", path);
  table.width_hz = h5::read_doubles(header.get(), "channel_width", path);
  table.model = h5::exists(header.get(), "sky_catalog")
                    ? h5::read_text(header.get(), "sky_catalog", path)
                    : "";
  if (h5::exists(header.get(), "gain_scale"))
    table.flux_unit = h5::read_text(header.get(), "gain_scale", path);
  if (!own) read_array(header.get(), table, path);
  const std::size_t n = shape[0] * shape[1] * shape[3];
  if (table.center_hz.size() != shape[1] || table.width_hz.size() != shape[1] ||
      table.observation.array.antennas.size() != shape[0])
    throw FormatError(fmt::format("{}: {} x {} gains for {} antennas and {} frequencies", path,
                                  shape[0], shape[1], table.observation.array.antennas.size(),
                                  table.center_hz.size()));
  require_channels(table, path);
  const auto places = places_of_pols(header.get(), table, path);
  std::vector<cf32> gains(n);
  std::vector<std::int8_t> flags(n);
  h5::read_complex(data.get(), "gains", gains.data(), n, path);
  h5::read_bools(data.get(), "flags", flags.data(), n, path);
  const std::string convention = h5::read_text(header.get(), "gain_convention", path);
  if (convention != "divide" && convention != "multiply")
    throw FormatError(path + ": gain_convention \"" + convention +
                      "\" is neither divide nor multiply");
  table.gains.resize(n);
  table.flags.resize(n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t in_file = k - k % places.size() + places[k % places.size()];
    const cf64 g = std::conj(cf64(gains[in_file]));
    const bool usable =
        flags[in_file] == 0 && std::isfinite(g.real()) && std::isfinite(g.imag()) && g != cf64{};
    table.flags[k] = usable ? 0 : 1;
    table.gains[k] = !usable ? cf64(1) : convention == "divide" ? g : 1.0 / g;
  }
  return table;
}

}  // namespace ryle
