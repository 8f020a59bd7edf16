// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/csv.hpp"
#include "ryle/telescope/sky_model.hpp"

namespace ryle {
namespace {

constexpr double kArcsecond_rad = kDegree_rad / 3600;
constexpr double kAnyFrequency_hz = std::numeric_limits<double>::infinity();
// Without a spectral index a flux is that of its frequency and 2 % around it.
constexpr double kNarrow = 0.02;

/// A right ascension or declination in degrees; false where the text is none. Letters, blanks and
/// (of declinations of LOFAR) dots part the sixtieths.
bool sky_angle_deg(std::string_view text, bool is_ra, double& degrees) {
  std::string plain(trimmed(text));
  if (plain.size() > 3 && plain.substr(plain.size() - 3) == "deg") {
    plain.resize(plain.size() - 3);
    return parse_finite(plain, degrees);
  }
  if (!plain.empty() && (plain.back() == 's' || plain.back() == 'S')) plain.pop_back();
  for (char& c : plain) {
    if (c == 'h' || c == 'd' || c == 'm' || c == ' ') c = ':';
  }
  if (std::count(plain.begin(), plain.end(), '.') > 1) {
    for (int parts = 0; parts < 2; ++parts) {
      const auto dot = plain.find('.');
      if (dot != std::string::npos) plain[dot] = ':';
    }
  }
  bool sexagesimal = false;
  if (!parse_angle(plain, degrees, sexagesimal)) return false;
  if (sexagesimal && is_ra) degrees *= 15;
  return true;
}

SkyDirection place_of_source(double ra_deg, double dec_deg, const std::string& where) {
  if (!(ra_deg >= -360 && ra_deg <= 360) || !(std::abs(dec_deg) <= 90)) {
    throw FormatError(
        fmt::format("{}: right ascension {:g} and declination {:g} degrees are no place on the sky",
                    where, ra_deg, dec_deg));
  }
  return {std::fmod(ra_deg + 360, 360) * kDegree_rad, dec_deg * kDegree_rad};
}

/// A power law through a flux, of either sign, with a curvature in log10.
FluxLaw power_law(double flux_jy, double frequency_hz, double index, double curvature) {
  FluxLaw law;
  law.reference_hz = frequency_hz;
  law.sign = flux_jy < 0 ? -1 : 1;
  law.coefficients = {std::log10(std::abs(flux_jy)), index, curvature};
  return law;
}

/// Rows that cannot be used, by reason.
class LeftOut {
 public:
  void add(const std::string& why) { ++counts_[why]; }
  void tell(const std::string& path, SkyModel& sky) const {
    for (const auto& [why, count] : counts_)
      sky.notes.push_back(fmt::format("{}: {} of the sources left out: {}", path, count, why));
  }

 private:
  std::map<std::string, std::int64_t> counts_;
};

// A field that may be absent or empty.
bool field(const detail::CsvTable& table, std::int64_t row, const char* column, double& value) {
  if (!table.has(column) || table.text(row, column).empty()) return false;
  value = table.number(row, column);
  return true;
}

void own_row(const detail::CsvTable& table, std::int64_t row, SkySource& source) {
  const double flux = table.number(row, "flux_jy");
  const double mhz = table.number(row, "frequency_mhz");
  if (flux == 0 || mhz <= 0) table.fail(row, "flux_jy is 0 or frequency_mhz is not positive");
  double index = 0;
  double curvature = 0;
  const bool has_index = field(table, row, "spectral_index", index);
  field(table, row, "curvature", curvature);
  FluxLaw law = power_law(flux, mhz * 1e6, index, curvature);
  double min_mhz = has_index ? mhz / 2 : mhz * (1 - kNarrow);
  double max_mhz = has_index ? mhz * 2 : mhz * (1 + kNarrow);
  field(table, row, "min_mhz", min_mhz);
  field(table, row, "max_mhz", max_mhz);
  if (!(min_mhz > 0 && min_mhz <= max_mhz)) table.fail(row, "min_mhz is not below max_mhz");
  law.min_hz = min_mhz * 1e6;
  law.max_hz = max_mhz * 1e6;
  double error_jy = 0;
  if (field(table, row, "error_jy", error_jy)) law.relative_error = std::abs(error_jy / flux);
  double percent = 0;
  if (field(table, row, "fading_percent_per_year", percent)) {
    law.fading_per_year = percent / 100;
    if (!field(table, row, "epoch_year", law.epoch_year))
      table.fail(row, "fading_percent_per_year needs epoch_year, the year of flux_jy");
  }
  double major = 0;
  double minor = 0;
  double angle_deg = 0;
  if (field(table, row, "major_arcsec", major)) {
    if (!field(table, row, "minor_arcsec", minor)) minor = major;
    field(table, row, "angle_deg", angle_deg);
    if (major < 0 || minor < 0) table.fail(row, "a size is negative");
  }
  source.major_rad = major * kArcsecond_rad;
  source.minor_rad = minor * kArcsecond_rad;
  source.angle_rad = angle_deg * kDegree_rad;
  law.reference = table.where(row);
  source.laws.push_back(std::move(law));
}

// The columns of a survey, by the names of VizieR and of its own release.
struct Survey {
  const char* flux;
  const char* index;  ///< "" = it has none
  double frequency_hz;
  double min_hz, max_hz;
};
constexpr Survey kSurveys[] = {
    {"Fintfit200", "alpha", 200e6, 72e6, 231e6},  // GLEAM, Hurley-Walker et al. 2017
    {"int_flux_fit_200", "alpha", 200e6, 72e6, 231e6},
    {"Fintwide", "", 200e6, 170e6, 231e6},  // its wide band alone
    {"int_flux_wide", "", 200e6, 170e6, 231e6},
    {"Sp", "", 73.8e6, 73.0e6, 74.6e6},  // VLSSr, Lane et al. 2014
};

SkyModel read_table(const std::string& path) {
  const detail::CsvTable table(
      path, {}, {"name", "ra_deg", "dec_deg", "flux_jy", "frequency_mhz", "RAJ2000", "DEJ2000"},
      detail::CsvStyle::catalogue);
  const bool own = table.has("flux_jy") && table.has("frequency_mhz");
  const char* ra_column = table.has("ra_deg") ? "ra_deg" : "RAJ2000";
  const char* dec_column = table.has("dec_deg") ? "dec_deg" : "DEJ2000";
  const Survey* survey = nullptr;
  for (const Survey& known : kSurveys) {
    if (own || survey != nullptr || !table.has(known.flux)) continue;
    if (*known.index == '\0' || table.has(known.index)) survey = &known;
  }
  if (!table.has(ra_column) || !table.has(dec_column) || (!own && survey == nullptr)) {
    throw FormatError(path +
                      ": no table of sources: it needs name, ra_deg, dec_deg, flux_jy, "
                      "frequency_mhz, or RAJ2000, DEJ2000 and a flux of GLEAM (Fintfit200 and "
                      "alpha, or Fintwide) or VLSSr (Sp)");
  }
  SkyModel sky;
  LeftOut left_out;
  for (std::int64_t row = 0; row < table.n_rows(); ++row) {
    SkySource source;
    source.of_group = true;
    for (const char* column : {"name", "Name", "GLEAM", "VLSSr", "Source"}) {
      if (table.has(column)) source.name = table.text(row, column);
      if (!source.name.empty()) break;
    }
    if (source.name.empty()) source.name = fmt::format("line {}", table.line(row));
    double ra_deg = 0;
    double dec_deg = 0;
    if (!sky_angle_deg(table.text(row, ra_column), true, ra_deg) ||
        !sky_angle_deg(table.text(row, dec_column), false, dec_deg)) {
      table.fail(row, fmt::format("\"{}\", \"{}\" is no place on the sky",
                                  table.text(row, ra_column), table.text(row, dec_column)));
    }
    source.fixed = place_of_source(ra_deg, dec_deg, table.where(row));
    if (own) {
      own_row(table, row, source);
    } else {
      double flux = 0;
      double index = 0;
      if (!field(table, row, survey->flux, flux) || !(flux > 0)) {
        left_out.add(std::string("no flux in ") + survey->flux);
        continue;
      }
      if (*survey->index != '\0' && !field(table, row, survey->index, index)) {
        left_out.add(std::string("no spectral index in ") + survey->index);
        continue;
      }
      FluxLaw law = power_law(flux, survey->frequency_hz, index, 0);
      law.min_hz = survey->min_hz;
      law.max_hz = survey->max_hz;
      law.reference = table.where(row);
      source.laws.push_back(std::move(law));
    }
    sky.sources.push_back(std::move(source));
  }
  left_out.tell(path, sky);
  return sky;
}

// Fields of a line of makesourcedb: commas part them, but not within [] and quotes.
std::vector<std::string> bbs_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  int depth = 0;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      --depth;
    }
    if (c == ',' && depth == 0 && quote == 0)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  for (std::string& f : fields) f = std::string(trimmed(f));
  return fields;
}

// "# (Name, Type) = format" or "FORMAT = Name, Type": the names; empty for another line.
std::string bbs_format(std::string_view line) {
  const auto equals_last = line.rfind('=');
  const auto equals_first = line.find('=');
  if (equals_first == std::string_view::npos) return "";
  if (lower_case(std::string(trimmed(line.substr(equals_last + 1)))) == "format") {
    std::string names(line.substr(0, equals_last));
    const auto open = names.find('(');
    const auto close = names.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open) return "";
    return names.substr(open + 1, close - open - 1);
  }
  std::string key = lower_case(std::string(trimmed(line.substr(0, equals_first))));
  if (!key.empty() && key.front() == '#') key = std::string(trimmed(key.substr(1)));
  return key == "format" ? std::string(line.substr(equals_first + 1)) : "";
}

struct BbsColumn {
  std::string name;
  std::string default_value;
};

class BbsReader {
 public:
  explicit BbsReader(std::string path) : path_(std::move(path)) {}

  SkyModel read() {
    std::istringstream in(read_text_file(path_));
    std::string line;
    for (number_ = 1; std::getline(in, line); ++number_) {
      const std::string format = columns_.empty() ? bbs_format(line) : "";
      if (!format.empty()) {
        set_columns(format);
        continue;
      }
      const auto content = trimmed(line);
      if (content.empty() || content.front() == '#') continue;
      if (columns_.empty())
        fail("the line \"FORMAT = Name, Type, Ra, Dec, I, ...\" must come before the sources");
      row(bbs_fields(content));
    }
    if (sky_.sources.empty()) throw FormatError(path_ + ": there is no source in it");
    left_out_.tell(path_, sky_);
    sky_.notes.push_back(path_ +
                         ": it states no range of frequencies: its spectra are used at any");
    return std::move(sky_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw FormatError(fmt::format("{}:{}: {}", path_, number_, why));
  }

  void set_columns(const std::string& format) {
    for (const std::string& entry : bbs_fields(format)) {
      const auto equals = entry.find('=');
      BbsColumn column{lower_case(std::string(trimmed(entry.substr(0, equals)))), ""};
      if (equals != std::string::npos) column.default_value = unquoted(entry.substr(equals + 1));
      columns_.push_back(std::move(column));
    }
  }

  static std::string unquoted(std::string_view text) {
    std::string plain(trimmed(text));
    if (plain.size() > 1 && (plain.front() == '\'' || plain.front() == '"') &&
        plain.back() == plain.front())
      plain = plain.substr(1, plain.size() - 2);
    return plain;
  }

  std::string value(const std::vector<std::string>& fields, std::string_view name) const {
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      if (columns_[k].name != name) continue;
      const std::string given = k < fields.size() ? unquoted(fields[k]) : "";
      return given.empty() ? columns_[k].default_value : given;
    }
    return "";
  }

  double number(const std::vector<std::string>& fields, std::string_view name,
                double absent) const {
    const std::string text = value(fields, name);
    double parsed = absent;
    if (!text.empty() && !parse_finite(text, parsed))
      fail(std::string(name) + " = \"" + text + "\" is not a number");
    return parsed;
  }

  std::vector<double> indices(const std::vector<std::string>& fields) const {
    std::string text = value(fields, "spectralindex");
    if (!text.empty() && text.front() == '[') text = text.substr(1);
    if (!text.empty() && text.back() == ']') text.pop_back();
    std::vector<double> list;
    for (const std::string& part : split(text, ',')) {
      double parsed = 0;
      if (part.empty()) continue;
      if (!parse_finite(part, parsed)) fail("SpectralIndex holds \"" + part + "\", no number");
      list.push_back(parsed);
    }
    return list;
  }

  void row(const std::vector<std::string>& fields) {
    const std::string name = value(fields, "name");
    const std::string type = upper_case(value(fields, "type"));
    if (name.empty() && type.empty()) return;  // a patch: a name for the sources that follow
    if (type != "POINT" && type != "GAUSSIAN") {
      left_out_.add("type " + type + ", not POINT or GAUSSIAN");
      return;
    }
    double ra_deg = 0;
    double dec_deg = 0;
    if (!sky_angle_deg(value(fields, "ra"), true, ra_deg) ||
        !sky_angle_deg(value(fields, "dec"), false, dec_deg)) {
      fail("\"" + value(fields, "ra") + "\", \"" + value(fields, "dec") +
           "\" is no place on the sky");
    }
    const double flux = number(fields, "i", 0);
    if (flux == 0) {
      left_out_.add("a flux of 0");
      return;
    }
    for (const char* stokes : {"q", "u", "v"}) {
      if (number(fields, stokes, 0) != 0) {
        left_out_.add("it is polarized (Q, U or V)");
        return;
      }
    }
    const auto list = indices(fields);
    const double reference_hz = number(fields, "referencefrequency", 0);
    const bool flat = std::all_of(list.begin(), list.end(), [](double a) { return a == 0; });
    if (!flat && lower_case(value(fields, "logarithmicsi")) == "false") {
      left_out_.add("LogarithmicSI is false");
      return;
    }
    if (!flat && !(reference_hz > 0)) fail("SpectralIndex without ReferenceFrequency");
    SkySource source;
    source.name = name;
    source.of_group = true;
    source.fixed = place_of_source(ra_deg, dec_deg, fmt::format("{}:{}", path_, number_));
    FluxLaw law = power_law(flux, reference_hz > 0 ? reference_hz : 1e9, 0, 0);
    law.coefficients.resize(1);
    law.coefficients.insert(law.coefficients.end(), list.begin(), list.end());
    law.max_hz = kAnyFrequency_hz;
    law.reference = fmt::format("{}:{}", path_, number_);
    source.laws.push_back(std::move(law));
    if (type == "GAUSSIAN") {
      source.major_rad = number(fields, "majoraxis", 0) * kArcsecond_rad;
      source.minor_rad = number(fields, "minoraxis", 0) * kArcsecond_rad;
      source.angle_rad = number(fields, "orientation", 0) * kDegree_rad;
    }
    sky_.sources.push_back(std::move(source));
  }

  std::string path_;
  std::int64_t number_ = 0;
  std::vector<BbsColumn> columns_;
  SkyModel sky_;
  LeftOut left_out_;
};

using nlohmann::json;

class HyperdriveReader {
 public:
  explicit HyperdriveReader(std::string path) : path_(std::move(path)) {}

  SkyModel read() {
    json root;
    try {
      root = json::parse(read_text_file(path_));
    } catch (const json::parse_error& error) {
      throw FormatError(path_ + ": not JSON at byte " + std::to_string(error.byte));
    }
    if (!root.is_object()) throw FormatError(path_ + ": not {\"NAME\": [component, ...], ...}");
    for (const auto& [name, components] : root.items()) {
      where_ = path_ + ": source \"" + name + "\"";
      if (!components.is_array()) throw FormatError(where_ + " is no list of components");
      for (const json& component : components) add(name, component);
    }
    if (sky_.sources.empty()) throw FormatError(path_ + ": there is no source in it");
    left_out_.tell(path_, sky_);
    sky_.notes.push_back(path_ +
                         ": power laws in it state no range of frequencies: they are used at any");
    return std::move(sky_);
  }

 private:
  double number(const json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_number())
      throw FormatError(where_ + ": \"" + key + "\" is missing or no number");
    return object[key].get<double>();
  }

  static bool is_polarized(const json& flux) {
    for (const char* stokes : {"q", "u", "v"}) {
      if (flux.is_object() && flux.contains(stokes) && flux[stokes].is_number() &&
          flux[stokes].get<double>() != 0)
        return true;
    }
    return false;
  }

  void add(const std::string& name, const json& component) {
    if (!component.is_object()) throw FormatError(where_ + " has a component that is no object");
    SkySource source;
    source.name = name;
    source.of_group = true;
    source.fixed = place_of_source(number(component, "ra"), number(component, "dec"), where_);
    const json shape = component.value("comp_type", json("point"));
    if (shape.is_object() && shape.contains("gaussian")) {
      source.major_rad = number(shape["gaussian"], "maj") * kArcsecond_rad;
      source.minor_rad = number(shape["gaussian"], "min") * kArcsecond_rad;
      source.angle_rad = number(shape["gaussian"], "pa") * kDegree_rad;
    } else if (!(shape.is_string() && shape.get<std::string>() == "point")) {
      left_out_.add("a shape that is neither point nor gaussian");
      return;
    }
    const json spectrum = component.value("flux_type", json());
    if (spectrum.is_object() && spectrum.contains("list")) {
      add_list(spectrum["list"], source);
    } else {
      const bool curved = spectrum.is_object() && spectrum.contains("curved_power_law");
      if (!curved && !(spectrum.is_object() && spectrum.contains("power_law")))
        throw FormatError(where_ + ": flux_type is no list, power_law or curved_power_law");
      const json& law = spectrum[curved ? "curved_power_law" : "power_law"];
      if (!law.is_object()) throw FormatError(where_ + ": its power law is no object");
      const json fd = law.value("fd", json());
      if (is_polarized(fd)) {
        left_out_.add("it is polarized (Q, U or V)");
        return;
      }
      const double flux = number(fd, "i");
      if (flux == 0 || !(number(fd, "freq") > 0)) {
        left_out_.add("a flux or frequency of 0");
        return;
      }
      // exp(q ln(x)^2) is 10^(q ln(10) log10(x)^2).
      const double curvature = curved ? number(law, "q") * std::log(10.0) : 0;
      FluxLaw power = power_law(flux, number(fd, "freq"), number(law, "si"), curvature);
      power.max_hz = kAnyFrequency_hz;
      power.reference = where_;
      source.laws.push_back(std::move(power));
    }
    if (!source.laws.empty()) sky_.sources.push_back(std::move(source));
  }

  // Between two neighbours of the list a power law; beyond its ends nothing.
  void add_list(const json& list, SkySource& source) {
    if (!list.is_array()) throw FormatError(where_ + ": its list of fluxes is no list");
    std::vector<std::pair<double, double>> points;
    for (const json& entry : list) {
      if (is_polarized(entry)) {
        left_out_.add("it is polarized (Q, U or V)");
        return;
      }
      const double flux = number(entry, "i");
      if (flux != 0) points.emplace_back(number(entry, "freq"), flux);
    }
    std::sort(points.begin(), points.end());
    if (points.empty()) {
      left_out_.add("a flux of 0");
      return;
    }
    for (std::size_t k = 0; k + 1 < points.size(); ++k) {
      const auto [low_hz, low_jy] = points[k];
      const auto [high_hz, high_jy] = points[k + 1];
      if (low_jy * high_jy <= 0 || !(low_hz > 0) || low_hz == high_hz)
        throw FormatError(where_ + ": its list of fluxes changes its sign or repeats a frequency");
      FluxLaw law =
          power_law(low_jy, low_hz, std::log(high_jy / low_jy) / std::log(high_hz / low_hz), 0);
      law.min_hz = low_hz;
      law.max_hz = high_hz;
      law.reference = where_;
      source.laws.push_back(std::move(law));
    }
    if (points.size() == 1) {
      FluxLaw law = power_law(points[0].second, points[0].first, 0, 0);
      law.min_hz = points[0].first * (1 - kNarrow);
      law.max_hz = points[0].first * (1 + kNarrow);
      law.reference = where_;
      source.laws.push_back(std::move(law));
    }
  }

  std::string path_;
  std::string where_;
  SkyModel sky_;
  LeftOut left_out_;
};

/// Components of negative flux are those of a deconvolution beside positive ones: alone they are no
/// sky.
void tell_negative(const std::string& path, SkyModel& sky) {
  const auto n = std::count_if(sky.sources.begin(), sky.sources.end(), [](const SkySource& source) {
    return !source.laws.empty() && source.laws.front().sign < 0;
  });
  if (n == 0) return;
  if (n == static_cast<std::ptrdiff_t>(sky.sources.size()))
    throw FormatError(path +
                      ": all of its fluxes are negative: no sky has such a power; negative "
                      "components go beside the positive ones that they correct");
  sky.notes.push_back(fmt::format("{}: {} of {} components have a negative flux, and are used",
                                  path, n, sky.sources.size()));
}

}  // namespace

SkyModel read_sky_model(const std::string& path) {
  const auto dot = path.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : lower_case(path.substr(dot));
  SkyModel sky;
  if (ending == ".csv" || ending == ".tsv" || ending == ".txt") {
    sky = read_table(path);
  } else if (ending == ".skymodel" || ending == ".bbs") {
    sky = BbsReader(path).read();
  } else if (ending == ".json") {
    sky = HyperdriveReader(path).read();
  } else if (ending == ".yaml" || ending == ".yml") {
    throw UnsupportedError(path +
                           ": source lists of hyperdrive are read as JSON: hyperdrive "
                           "srclist-convert IN.yaml OUT.json");
  } else {
    throw ConfigError(path + ": sky models are .csv, .tsv, .txt, .skymodel, .bbs or .json");
  }
  if (sky.sources.empty()) {
    throw FormatError(path + ": none of its sources can be used" +
                      (sky.notes.empty() ? "" : " (" + sky.notes.front() + ")"));
  }
  tell_negative(path, sky);
  return sky;
}

}  // namespace ryle
