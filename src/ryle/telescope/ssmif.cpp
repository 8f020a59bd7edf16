// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/site.hpp"

namespace ryle {
namespace {

/// What is used of a station file: "KEY value" and "KEY[index] value", '#' starts a comment.
class StationFile {
 public:
  explicit StationFile(const std::string& path) : path_(path) {
    const std::string text = read_text_file(path);
    std::string_view rest = text;
    for (std::int64_t line = 1; !rest.empty(); ++line) {
      const auto end = rest.find('\n');
      const auto raw = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      add(trimmed(raw.substr(0, raw.find('#'))), line);
    }
  }

  double scalar(const std::string& key) const {
    const auto found = scalars_.find(key);
    if (found == scalars_.end()) {
      throw FormatError(path_ + ": \"" + key + "\" is missing; an LWA station file (SSMIF) has it");
    }
    return number(key, found->second);
  }
  std::optional<double> indexed(const std::string& key, std::int64_t index) const {
    const auto table = tables_.find(key);
    if (table != tables_.end()) {
      const auto found = table->second.find(index);
      if (found != table->second.end()) {
        return number(key + "[" + std::to_string(index) + "]", found->second);
      }
    }
    const auto for_all = scalars_.find(key);  // "RPD_VF 83" without index sets every cable
    if (for_all != scalars_.end()) return number(key, for_all->second);
    return std::nullopt;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto found = scalars_.find(key);
    return found == scalars_.end() ? otherwise : found->second.text;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& message) const {
    const auto found = scalars_.find(key);
    const std::string line =
        found == scalars_.end() ? "" : ":" + std::to_string(found->second.line);
    throw FormatError(path_ + line + ": " + message);
  }

 private:
  struct Value {
    std::string text;
    std::int64_t line;
  };

  void add(std::string_view content, std::int64_t line) {
    const auto blank = content.find_first_of(" \t");
    if (blank == std::string_view::npos) return;  // a key without value: the default stands
    const auto word = content.substr(0, blank);
    auto value = trimmed(content.substr(blank));
    value = value.substr(0, value.find_first_of(" \t"));
    const auto bracket = word.find('[');
    const std::string key(word.substr(0, bracket));
    if (bracket == std::string_view::npos) {
      scalars_[key] = {std::string(value), line};
      return;
    }
    const auto inside = word.substr(bracket + 1);
    std::int64_t index = 0;
    const auto result = std::from_chars(inside.data(), inside.data() + inside.size(), index);
    const bool several = inside.find('[') != std::string_view::npos;  // KEY[a][b]: not needed here
    if (result.ec != std::errc() || inside.empty() || inside.back() != ']' || index < 1) {
      throw FormatError(path_ + ":" + std::to_string(line) + ": \"" + std::string(word) +
                        "\" is not KEY[index] with index >= 1");
    }
    if (several) return;
    const auto [earlier, unique] = tables_[key].try_emplace(index, Value{std::string(value), line});
    if (!unique && earlier->second.text != value && kNumeric.count(key) != 0) {
      throw FormatError(path_ + ":" + std::to_string(line) + ": " + std::string(word) + " = " +
                        std::string(value) + " contradicts line " +
                        std::to_string(earlier->second.line) + " (" + earlier->second.text +
                        "); keep one of them");
    }
  }

  double number(const std::string& key, const Value& value) const {
    double result = 0;
    if (!parse_finite(value.text, result)) {
      throw FormatError(path_ + ":" + std::to_string(value.line) + ": " + key + " = \"" +
                        value.text + "\" is not a finite number");
    }
    return result;
  }

  static const std::set<std::string> kNumeric;
  std::string path_;
  std::map<std::string, Value> scalars_;
  std::map<std::string, std::map<std::int64_t, Value>> tables_;
};

const std::set<std::string> StationFile::kNumeric = {"STD_LX",   "STD_LY",   "STD_LZ",
                                                     "ANT_STAT", "RPD_LENG", "RPD_STR"};

/// Only the wiring every station uses is understood: antennas 2s-1 and 2s on stand s.
void check_wiring(const StationFile& file, std::int64_t antenna) {
  const auto stand = file.indexed("ANT_STD", antenna);
  const auto orientation = file.indexed("ANT_ORIE", antenna);
  const double usual_stand = static_cast<double>((antenna - 1) / 2 + 1);
  const double usual_orientation = static_cast<double>((antenna - 1) % 2);
  if ((stand && *stand != usual_stand) || (orientation && *orientation != usual_orientation)) {
    throw UnsupportedError("antenna " + std::to_string(antenna) +
                           " of the station file is not on stand " +
                           std::to_string((antenna - 1) / 2 + 1) +
                           " in the usual orientation (ANT_STD, ANT_ORIE); only the default "
                           "wiring is supported");
  }
}

/// Coax: T = L S / (v c) + dd (L S / 100 m) sqrt(10 MHz / f), RPD_LENG = L, RPD_STR = S, RPD_VF = v
/// in percent (83), RPD_DD = dd in ns (2.4).
void set_cable(const StationFile& file, std::int64_t antenna, ArrayInput& input) {
  const double electrical_m =
      file.indexed("RPD_LENG", antenna).value_or(0) * file.indexed("RPD_STR", antenna).value_or(1);
  const double velocity_factor = file.indexed("RPD_VF", antenna).value_or(83) / 100;
  const double dispersion_s = file.indexed("RPD_DD", antenna).value_or(2.4) * 1e-9;
  input.cable_delay_s = electrical_m / (velocity_factor * kSpeedOfLight_m_per_s);
  input.cable_dispersion_s = dispersion_s * electrical_m / 100;
}

}  // namespace

ArrayLayout read_lwa_ssmif(const std::string& path) {
  const StationFile file(path);
  ArrayLayout array;
  array.name = "LWA-" + file.text("STATION_ID", "unknown");
  const double latitude_deg = file.scalar("GEO_N");
  const double longitude_deg = file.scalar("GEO_E");
  detail::set_site(array, latitude_deg, longitude_deg, file.scalar("GEO_EL"));
  const double n_stands = file.scalar("N_STD");
  if (n_stands < 1 || n_stands > 4096 || n_stands != std::floor(n_stands)) {
    file.fail("N_STD", "N_STD = " + file.text("N_STD", "") + " is not a count from 1 to 4096");
  }
  for (std::int64_t stand = 1; stand <= static_cast<std::int64_t>(n_stands); ++stand) {
    const std::optional<double> position[3] = {file.indexed("STD_LX", stand),
                                               file.indexed("STD_LY", stand),
                                               file.indexed("STD_LZ", stand)};
    const bool surveyed = position[0] && position[1] && position[2];
    Antenna antenna;
    antenna.name = "stand" + std::to_string(stand);
    for (int axis = 0; axis < 3; ++axis) antenna.enu_m[axis] = position[axis].value_or(0);
    array.antennas.push_back(antenna);
    for (int pol = 0; pol < 2; ++pol) {
      const std::int64_t number = 2 * (stand - 1) + pol + 1;  // antennas count from 1
      check_wiring(file, number);
      ArrayInput input;
      input.antenna = stand - 1;
      input.pol = pol;
      input.bad = !surveyed || file.indexed("ANT_STAT", number).value_or(3) != 3;
      set_cable(file, number, input);
      array.inputs.push_back(input);
    }
  }
  return array;
}

}  // namespace ryle
