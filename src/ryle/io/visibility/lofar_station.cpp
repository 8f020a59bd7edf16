// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/lofar_station.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "ryle/io/visibility/dump_builder.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kSubbands = 512;
// X of the LBA dipoles and the HBA tiles lies from south-west to north-east of the station's own
// axes, Y across it.
constexpr double kFeedInStation_rad = kPi / 4;

std::string lofar_note(const char* name) { return std::string(kCovarianceNote) + name; }

double mode_clock_hz(std::int64_t rcu_mode) { return rcu_mode == 6 ? 160e6 : 200e6; }

/// A section of an antenna file: the reference and offsets, two polarizations an antenna.
struct AntennaField {
  std::vector<double> reference;                 ///< three numbers
  std::vector<std::array<double, 3>> offsets_m;  ///< of X
  std::vector<double> rotation;  ///< 3 x 3, columns p, q, r in ITRF; empty = not there
};

/// The text of an antenna file as words without comments; brackets stand alone.
class ConfWords {
 public:
  explicit ConfWords(const std::string& path) : path_(path) {
    std::istringstream in(read_text_file(path));
    std::string line;
    for (std::int64_t number = 1; std::getline(in, line); ++number) {
      line.resize(std::min(line.find('#'), line.size()));
      for (const char bracket : {'[', ']'}) {
        for (auto at = line.find(bracket); at != std::string::npos; at = line.find(bracket, at + 3))
          line.replace(at, 1, std::string(" ") + bracket + " ");
      }
      std::istringstream fields(line);
      for (std::string word; fields >> word;) words_.push_back({word, number});
    }
  }

  /// The array that begins at `at` ("3 [ a b c ]" or "96 x 2 x 3 [ ... ]"), and moves `at` behind.
  std::vector<double> array(std::size_t& at, std::vector<std::int64_t>& shape) const {
    shape.clear();
    for (; at < words_.size() && words_[at].text != "["; ++at) {
      if (words_[at].text == "x") continue;
      shape.push_back(static_cast<std::int64_t>(number(at)));
    }
    if (at == words_.size() || shape.empty()) fail(at, "an array \"3 [ ... ]\" is expected");
    std::vector<double> values;
    for (++at; at < words_.size() && words_[at].text != "]"; ++at) values.push_back(number(at));
    if (at == words_.size()) fail(at, "the array has no end ]");
    ++at;
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n = checked_file_product({n, extent}, "antenna array");
    if (n != static_cast<std::int64_t>(values.size())) {
      fail(at - 1, fmt::format("{} numbers in an array of {}", values.size(), n));
    }
    return values;
  }
  bool is_array(std::size_t at) const {
    return at < words_.size() && !words_[at].text.empty() &&
           (std::isdigit(static_cast<unsigned char>(words_[at].text[0])) != 0);
  }
  std::size_t size() const { return words_.size(); }
  const std::string& word(std::size_t at) const { return words_[at].text; }
  [[noreturn]] void fail(std::size_t at, const std::string& why) const {
    throw FormatError(fmt::format("{}:{}: {}", path_,
                                  words_.empty() ? 1 : words_[std::min(at, words_.size() - 1)].line,
                                  why));
  }

 private:
  struct Word {
    std::string text;
    std::int64_t line;
  };
  double number(std::size_t at) const {
    const std::string& text = words_[at].text;
    const char* first = text.data() + (text[0] == '+' ? 1 : 0);
    double value = 0;
    const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
      fail(at, "\"" + text + "\" is no number");
    return value;
  }

  std::string path_;
  std::vector<Word> words_;
};

AntennaField read_field(const std::string& path, const std::string& name) {
  const ConfWords words(path);
  AntennaField field;
  std::vector<std::string> sections;
  for (std::size_t at = 0; at < words.size();) {
    const std::string& kind = words.word(at);
    std::vector<std::int64_t> shape;
    if (kind == "NORMAL_VECTOR" || kind == "ROTATION_MATRIX") {
      const std::string of = at + 1 < words.size() ? words.word(at + 1) : "";
      at += 2;
      auto values = words.array(at, shape);
      if (kind == "ROTATION_MATRIX" && of == name && values.size() == 9) field.rotation = values;
      continue;
    }
    ++at;
    sections.push_back(kind);
    if (!words.is_array(at)) continue;
    auto reference = words.array(at, shape);
    if (reference.size() != 3) words.fail(at - 1, "[" + kind + "] has no reference of 3 numbers");
    std::vector<double> values;
    if (words.is_array(at)) values = words.array(at, shape);
    if (kind != name) continue;
    if (shape.size() != 3 || shape[1] != 2 || shape[2] != 3 || values.empty())
      words.fail(at - 1, "[" + kind + "] has no positions N x 2 x 3");
    field.reference = std::move(reference);
    for (std::size_t a = 0; a < values.size(); a += 6)
      field.offsets_m.push_back({values[a], values[a + 1], values[a + 2]});
  }
  if (field.offsets_m.empty()) {
    std::string known;
    for (const auto& section : sections) known += (known.empty() ? "" : ", ") + section;
    throw FormatError(path + ": no positions of \"" + name + "\"; it has " + known);
  }
  return field;
}

/// Digits behind `mark` in a file name ("mode_3", "sb297"); -1 where there are none.
std::int64_t number_behind(const std::string& path, const std::string& mark) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (auto at = name.find(mark); at != std::string::npos; at = name.find(mark, at + 1)) {
    std::int64_t value = -1;
    const char* first = name.data() + at + mark.size();
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), value);
    if (error == std::errc{} && end != first && value >= 0) return value;
  }
  return -1;
}

bool is_dutch(const std::string& antennas_path) {
  const std::string name = std::filesystem::path(antennas_path).filename().string();
  return name.rfind("CS", 0) == 0 || name.rfind("RS", 0) == 0;
}

bool is_lba(std::int64_t rcu_mode) { return rcu_mode <= 4; }

std::vector<cf64> read_complex(const std::string& path, std::int64_t first_byte,
                               std::int64_t n_values) {
  static_assert(std::endian::native == std::endian::little);
  std::ifstream in(path, std::ios::binary);
  std::vector<cf64> values(static_cast<std::size_t>(n_values));
  in.seekg(first_byte);
  in.read(reinterpret_cast<char*>(values.data()), n_values * 16);
  if (!in) throw FormatError(path + ": it ended while it was read");
  return values;
}

/// Weights or gains of one subband, [rcu].
std::vector<cf64> read_station_table(const std::string& path, std::int64_t subband,
                                     std::int64_t n_rcus, std::string& header) {
  const std::int64_t n_bytes = require_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(std::min<std::int64_t>(n_bytes, 8192)), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::int64_t first = 0;
  if (text.rfind("HeaderStart", 0) == 0) {
    const auto stop = text.find("HeaderStop\n");
    if (stop == std::string::npos) throw FormatError(path + ": its header has no HeaderStop");
    first = static_cast<std::int64_t>(stop) + 11;
    for (const char* key : {"Observation.Station", "Observation.Mode", "Calibration.Date"}) {
      const auto at = text.find(key);
      if (at == std::string::npos || at > stop) continue;
      header += (header.empty() ? "" : ", ") + text.substr(at, text.find('\n', at) - at);
    }
  }
  if (n_bytes - first != kSubbands * n_rcus * 16) {
    throw FormatError(fmt::format(
        "{}: {} bytes of values; a table of {} subbands and {} inputs has {}: is it of another "
        "station?",
        path, n_bytes - first, kSubbands, n_rcus, kSubbands * n_rcus * 16));
  }
  return read_complex(path, first + subband * n_rcus * 16, n_rcus);
}

/// Antennas of the correlator among those of the field, and the inputs' feed angle.
ArrayLayout array_of(const LofarStationFiles& files, std::int64_t rcu_mode, std::int64_t n_rcus,
                     std::string& which) {
  std::string name = files.field;
  if (name.empty()) name = is_lba(rcu_mode) ? "LBA" : "HBA";
  AntennaField field = read_field(files.antennas_path, name);
  const auto n_wanted = static_cast<std::size_t>(n_rcus / 2);
  which =
      fmt::format("{} of {}", name, std::filesystem::path(files.antennas_path).filename().string());
  if (field.offsets_m.size() == 2 * n_wanted && is_lba(rcu_mode)) {
    // Dutch stations have 96 LBA dipoles and 48 pairs of receivers: the inner or the outer half.
    const bool outer = rcu_mode <= 2;
    if (outer)
      field.offsets_m.erase(field.offsets_m.begin(),
                            field.offsets_m.begin() + static_cast<std::ptrdiff_t>(n_wanted));
    field.offsets_m.resize(n_wanted);
    which += outer ? ", the outer half" : ", the inner half";
  }
  if (field.offsets_m.size() != n_wanted) {
    throw FormatError(
        fmt::format("{}: {} has {} antennas, the data {} inputs of {}; say which (field, inputs)",
                    files.antennas_path, name, field.offsets_m.size(), n_rcus, n_wanted));
  }
  io::ForeignArray foreign;
  const std::string file_name = std::filesystem::path(files.antennas_path).filename().string();
  foreign.name = file_name.substr(0, file_name.find('-'));
  const auto& r = field.reference;
  const bool is_itrf = std::hypot(r[0], r[1], r[2]) > 6e6;
  ArrayLayout array;
  if (is_itrf) {
    foreign.reference_itrf_m = {r[0], r[1], r[2]};
    for (std::size_t a = 0; a < n_wanted; ++a) {
      foreign.names.push_back(fmt::format("{}{:02}", name, a));
      const auto& offset = field.offsets_m[a];
      foreign.itrf_m.push_back({r[0] + offset[0], r[1] + offset[1], r[2] + offset[2]});
    }
    array = io::array_from_itrf(foreign, 2);
  } else {
    if (!(std::abs(r[0]) <= 90) || !(std::abs(r[1]) <= 180)) {
      throw FormatError(fmt::format(
          "{}: the reference {:g} {:g} {:g} of {} is neither a place in ITRF nor latitude, "
          "longitude and height",
          files.antennas_path, r[0], r[1], r[2], name));
    }
    array.name = foreign.name;
    array.latitude_rad = r[0] * kDegree_rad;
    array.longitude_rad = r[1] * kDegree_rad;
    array.height_m = r[2];
    for (std::size_t a = 0; a < n_wanted; ++a) {
      const auto& offset = field.offsets_m[a];
      array.antennas.push_back({fmt::format("{}{:02}", name, a), offset});
      for (int pol = 0; pol < 2; ++pol)
        array.inputs.push_back({.antenna = static_cast<std::int64_t>(a), .pol = pol});
    }
  }
  // The station's axes p (about east) and q (about north) seen from the ground.
  double turn_rad = 0;
  if (is_itrf && field.rotation.size() == 9) {
    const Vector3 east = itrf_offset_of_enu(array, {1, 0, 0});
    const Vector3 north = itrf_offset_of_enu(array, {0, 1, 0});
    double q_east = 0;
    double q_north = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      q_east += east[k] * field.rotation[3 * k + 1];
      q_north += north[k] * field.rotation[3 * k + 1];
    }
    turn_rad = std::atan2(q_east, q_north);
  }
  for (ArrayInput& input : array.inputs) input.feed_angle_rad = kFeedInStation_rad + turn_rad;
  return array;
}

struct Selection {
  std::int64_t rcu_mode = 0;
  std::int64_t subband = 0;
  std::int64_t n_rcus = 0;
  std::int64_t start_tai_ns = 0;
  std::string utc;
};

Selection selection_of(const LofarStationFiles& files) {
  if (files.data_paths.empty()) throw ConfigError("LOFAR station data: no file is given");
  const std::string& first = files.data_paths.front();
  Selection s;
  s.rcu_mode = files.rcu_mode > 0 ? files.rcu_mode : number_behind(first, "mode_");
  if (s.rcu_mode < 1 || s.rcu_mode > 7) {
    throw ConfigError(first +
                      ": which receiver mode? give rcu_mode, 1 to 7 (3: LBA 10 to 90 MHz, 5: HBA "
                      "110 to 190 MHz)");
  }
  s.subband = files.subband >= 0 ? files.subband : number_behind(first, "sb");
  if (s.subband < 0 || s.subband >= kSubbands)
    throw ConfigError(first + ": which subband? give subband, 0 to 511");
  for (const auto& path : files.data_paths) {
    const std::int64_t named = number_behind(path, "sb");
    if (!files.is_acc && named >= 0 && named != s.subband) {
      throw ConfigError(fmt::format(
          "{} is of subband {}, {} of {}: files of one subband follow each other in time", first,
          s.subband, path, named));
    }
  }
  s.utc = files.utc.empty() ? utc_of_file_name(first) : files.utc;
  if (s.utc.empty()) {
    throw ConfigError(first + ": when was it? give utc, or a file name with YYYYMMDD_HHMMSS");
  }
  s.start_tai_ns = tai_ns_from_utc_iso(s.utc);
  if (!(files.integration_s > 0)) throw ConfigError(first + ": integration_s must be positive");
  return s;
}

}  // namespace

double lofar_subband_hz(std::int64_t rcu_mode, std::int64_t subband) {
  if (rcu_mode < 1 || rcu_mode > 7)
    throw ConfigError(fmt::format("LOFAR receiver mode {} is not 1 to 7", rcu_mode));
  const double offset_hz = rcu_mode == 5   ? 100e6
                           : rcu_mode == 6 ? 160e6
                           : rcu_mode == 7 ? 200e6
                                           : 0.0;
  return offset_hz + static_cast<double>(subband) * mode_clock_hz(rcu_mode) / 1024;
}

VisibilityFile read_lofar_station(const LofarStationFiles& files) {
  Selection s = selection_of(files);
  VisibilityFile file;
  Observation& observation = file.observation;
  if (files.n_rcus > 0) {
    s.n_rcus = files.n_rcus;
  } else if (is_dutch(files.antennas_path)) {
    s.n_rcus = 96;
  } else {
    std::string field = files.field;
    if (field.empty()) field = is_lba(s.rcu_mode) ? "LBA" : "HBA";
    s.n_rcus =
        2 * static_cast<std::int64_t>(read_field(files.antennas_path, field).offsets_m.size());
  }
  if (s.n_rcus < 4 || s.n_rcus > 8192 || s.n_rcus % 2 != 0) {
    throw ConfigError(fmt::format("{}: {} inputs; an even number from 4 on is wanted",
                                  files.data_paths.front(), s.n_rcus));
  }
  std::string which;
  observation.array = array_of(files, s.rcu_mode, s.n_rcus, which);
  observation.frequency = {lofar_subband_hz(s.rcu_mode, s.subband),
                           mode_clock_hz(s.rcu_mode) / 1024, 1};
  observation.channel_bandwidth_hz = observation.frequency.channel_width_hz;
  observation.time_source = files.utc.empty() ? TimeSource::header : TimeSource::configured;
  observation.nominal_dump_s = files.is_acc ? 1 : files.integration_s;
  observation.provenance.version = version();
  auto& notes = observation.provenance.notes;

  std::vector<cf64> weights(static_cast<std::size_t>(s.n_rcus), cf64(1));
  if (!files.calibration_path.empty()) {
    std::string header;
    weights = read_station_table(files.calibration_path, s.subband, s.n_rcus, header);
    for (cf64& w : weights) {
      if (!std::isfinite(w.real()) || !std::isfinite(w.imag())) w = 0;
      if (files.calibration == StationTable::gains && w != 0.0) w = 1.0 / w;
    }
    notes[lofar_note("calibration")] =
        fmt::format("{}{}{}, {}", std::filesystem::path(files.calibration_path).filename().string(),
                    header.empty() ? "" : ": ", header,
                    files.calibration == StationTable::weights ? "as weights" : "as gains");
    std::string unused;
    for (auto& input : observation.array.inputs) {
      const auto rcu = static_cast<std::size_t>(2 * input.antenna + input.pol);
      if (weights[rcu] != 0.0) continue;
      input.bad = true;
      unused += (unused.empty() ? "" : ", ") + std::to_string(rcu);
    }
    if (!unused.empty()) notes[lofar_note("inputs without calibration")] = unused;
  }

  const bool conjugated = files.conjugate == Conjugate::yes;
  const std::int64_t matrix_bytes = s.n_rcus * s.n_rcus * 16;
  const std::int64_t n_antennas = s.n_rcus / 2;
  const auto interval_ns =
      static_cast<std::int64_t>(std::llround(1e9 * observation.nominal_dump_s));
  std::int64_t index = 0;
  for (const std::string& path : files.data_paths) {
    const std::int64_t n_bytes = require_regular_file(path);
    const std::int64_t n_matrices = n_bytes / matrix_bytes;
    if (n_bytes == 0 || n_bytes % matrix_bytes != 0) {
      throw FormatError(fmt::format(
          "{}: {} bytes are no whole number of matrices of {} x {} inputs ({} bytes); give the "
          "number of inputs",
          path, n_bytes, s.n_rcus, s.n_rcus, matrix_bytes));
    }
    if (files.is_acc && n_matrices != kSubbands) {
      throw FormatError(fmt::format("{}: {} matrices; an ACC file has one of each of {} subbands",
                                    path, n_matrices, kSubbands));
    }
    for (std::int64_t m = 0; m < n_matrices; ++m) {
      if (files.is_acc && m != s.subband) continue;
      const auto matrix = read_complex(path, m * matrix_bytes, s.n_rcus * s.n_rcus);
      VisibilityDump dump;
      dump.start_tai_ns = files.is_acc ? s.start_tai_ns - (kSubbands - m) * kSecond_ns
                                       : s.start_tai_ns + index * interval_ns;
      ++index;
      dump.centroid_tai_ns = dump.start_tai_ns + interval_ns / 2;
      dump.interval_s = observation.nominal_dump_s;
      dump.n_spectra = 1;
      dump.n_channels = 1;
      dump.n_baselines = n_pairs(n_antennas);
      dump.n_pol_products = 4;
      dump.data.assign(dump.n_baselines * 4, {});
      dump.counts.assign(dump.n_baselines * 4, 0);
      for (std::int64_t j = 0; j < n_antennas; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) {
          for (std::int64_t product = 0; product < 4; ++product) {
            const std::int64_t a = 2 * i + product / 2;
            const std::int64_t b = 2 * j + product % 2;
            const cf64 w = weights[a] * std::conj(weights[b]);
            cf64 v = matrix[a * s.n_rcus + b];
            if (conjugated) v = std::conj(v);
            v *= w;
            if (v == 0.0 || !std::isfinite(v.real()) || !std::isfinite(v.imag())) continue;
            const auto at = static_cast<std::size_t>(dump.index(0, pair_index(i, j), product));
            dump.data[at] = cf32(v);
            dump.counts[at] = 1;
          }
        }
      }
      file.dumps.push_back(std::move(dump));
    }
  }
  observation.phase_center = zenith(observation.array, file.dumps.front().centroid_tai_ns);
  io::phase_from_ground(file);
  notes[lofar_note("time")] =
      s.utc + (files.utc.empty() ? " UTC, from the file name" : " UTC, as given") +
      (files.is_acc ? fmt::format(", the end of {} subbands", kSubbands) : "");
  notes[lofar_note("frequency")] =
      fmt::format("subband {} of mode {}: {:.6f} MHz", s.subband, s.rcu_mode,
                  observation.frequency.first_center_hz / 1e6);
  notes[lofar_note("antennas")] = which;
  notes[lofar_note("sign")] =
      fmt::format("conjugated: {}, {}", conjugated ? "yes" : "no",
                  files.conjugate == Conjugate::automatic ? "<v_a conj(v_b)> as stations write it"
                                                          : "as given");
  const std::string left_out = leave_out(observation, file.dumps, files.dead);
  if (!left_out.empty()) notes[lofar_note("antennas left out")] = left_out + ", as given";
  return file;
}

}  // namespace ryle
