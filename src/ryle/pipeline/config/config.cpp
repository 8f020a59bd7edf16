// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/config/config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <type_traits>

#include "ryle/core/endpoint.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/pipeline/config/config_effect.hpp"
#include "ryle/pipeline/config/config_fields.hpp"
#include "ryle/pipeline/config/config_packet.hpp"
#include "ryle/telescope/toml_text.hpp"
#include "ryle/wire/best2.hpp"

namespace ryle::pipeline {
namespace {

std::string join(const std::vector<std::string_view>& words) {
  std::string text;
  for (const auto w : words) text += (text.empty() ? "\"" : ", \"") + std::string(w) + "\"";
  return text;
}

constexpr std::string_view kOverride = "--set";

bool ends_in_one_of(const std::string& name, const std::vector<std::string_view>& endings) {
  const std::string ending = lower_case(std::filesystem::path(name).extension().string());
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

/// Position "file:line:column" of a node, or the option it came from.
class Origin {
 public:
  explicit Origin(std::string name) : name_(std::move(name)) {}
  std::string operator()(const toml::source_region& where) const {
    // Nodes that an override has put into the table have lost their place.
    if (where.begin.line == 0) return std::string(kOverride);
    const std::string file = where.path ? *where.path : name_;
    return fmt::format("{}:{}:{}", file, where.begin.line, where.begin.column);
  }

 private:
  std::string name_;
};

/// "32000000", "32e6", "1.28e6", "78125/4"; nothing of it is rounded.
std::optional<Rational> exact_rational(const std::string& text) {
  constexpr int kMaxDigits = 18;
  std::int64_t num = 0, den = 1;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%18ld/%18ld%c", &num, &den, &rest) == 2)
    return den > 0 ? std::optional(Rational{num, den}.reduced()) : std::nullopt;
  const std::size_t e = text.find_first_of("eE");
  int exponent = 0;
  if (e != std::string::npos && std::sscanf(text.c_str() + e + 1, "%3d%c", &exponent, &rest) != 1)
    return std::nullopt;
  std::string digits = text.substr(0, e);
  if (const std::size_t dot = digits.find('.'); dot != std::string::npos) {
    exponent -= static_cast<int>(digits.size() - dot - 1);
    digits.erase(dot, 1);
  }
  const bool plain = !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
  if (!plain || static_cast<int>(digits.size()) + std::max(exponent, 0) > kMaxDigits ||
      exponent < -kMaxDigits)
    return std::nullopt;
  num = std::stoll(digits);
  for (int k = 0; k < std::abs(exponent); ++k) (exponent > 0 ? num : den) *= 10;
  return Rational{num, den}.reduced();
}

/// Where a key of the observation file is that once was in another section; "" = it never was.
std::string moved_key(std::string_view section, std::string_view key) {
  if (section != "search") return "";
  if (key == "trigger_socket") return "voltages.socket";
  if (key == "trigger_ahead_s") return "voltages.ahead_s";
  constexpr std::string_view kPrefix = "voltage_";
  return key.starts_with(kPrefix) ? "voltages." + std::string(key.substr(kPrefix.size())) : "";
}

/// Reads the keys of one table into a struct, one call per key.
class Parser {
 public:
  Parser(const toml::table& table, std::string section, const Origin& origin)
      : table_(table), section_(std::move(section)), origin_(origin) {}

  template <class T>
  void operator()(std::string_view key, T& member, const Range& range, std::string_view) {
    known_.push_back({std::string(key), fmt::format("{} .. {}", range.min, range.max)});
    take(key, member, range);
  }
  template <class T>
  void operator()(std::string_view key, T& member, const Choice& choice, std::string_view) {
    known_.push_back({std::string(key), join(choice.words)});
    take(key, member, choice);
  }

  std::vector<GivenKey> given;

  void allow(std::string key) { known_.push_back({std::move(key), ""}); }

  void reject_unknown() const {
    std::vector<std::string> names;
    for (const auto& [name, range] : known_) names.push_back(name);
    for (const auto& [key, node] : table_) {
      const auto found = std::find(names.begin(), names.end(), key.str());
      if (found != names.end()) continue;
      if (const std::string now = moved_key(section_, key.str()); !now.empty())
        throw ConfigError(fmt::format("{}: {}.{} is {} now", origin_(key.source()), section_,
                                      std::string(key.str()), now));
      const std::string close = nearest_word(key.str(), names);
      std::string hint;
      for (const auto& [name, range] : known_) {
        if (name == close && !range.empty()) hint = " (" + range + ")";
      }
      throw ConfigError(fmt::format("{}: unknown key \"{}\" in [{}]; did you mean \"{}\"{}?",
                                    origin_(key.source()), std::string(key.str()), section_, close,
                                    hint));
    }
  }

 private:
  [[noreturn]] void fail(const toml::node& node, std::string_view key,
                         const std::string& what) const {
    std::ostringstream value;
    node.visit([&](const auto& n) {
      if constexpr (toml::is_value<decltype(n)>)
        value << n.get();
      else
        value << "...";
    });
    throw ConfigError(fmt::format("{}: {}.{} = {}: {}", origin_(node.source()), section_, key,
                                  value.str(), what));
  }

  template <class T, class Limits>
  void take(std::string_view key, T& member, const Limits& limits) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    read(*node, key, member, limits);
    std::ostringstream value;
    node->visit([&](const auto& n) { value << n; });
    given.push_back(
        {section_, std::string(key), value.str(), origin_(node->source()), is_nothing(member)});
  }
  static bool is_nothing(const Rational& r) { return r.num == 0; }
  template <class T>
  static bool is_nothing(const T& value) {
    return value == T{};
  }

  void check_range(const toml::node& node, std::string_view key, double value,
                   const Range& range) const {
    if (!(value >= range.min && value <= range.max)) {
      fail(node, key, fmt::format("must lie in {} .. {}", range.min, range.max));
    }
  }

  void read(const toml::node& node, std::string_view key, double& member,
            const Range& range) const {
    const auto value = node.value<double>();
    if (!node.is_number() || !value) fail(node, key, "must be a number");
    check_range(node, key, *value, range);
    member = *value;
  }
  void read(const toml::node& node, std::string_view key, std::int64_t& member,
            const Range& range) const {
    if (!node.is_integer()) fail(node, key, "must be a whole number");
    check_range(node, key, static_cast<double>(*node.value<std::int64_t>()), range);
    member = *node.value<std::int64_t>();
  }
  void read(const toml::node& node, std::string_view key, std::uint64_t& member,
            const Range& range) const {
    std::int64_t value = 0;
    read(node, key, value, range);
    member = static_cast<std::uint64_t>(value);
  }
  void read(const toml::node& node, std::string_view key, Rational& member,
            const Range& range) const {
    if (const auto text = node.value_exact<std::string>()) {
      const auto exact = exact_rational(*text);
      if (!exact)
        fail(node, key, "must be a number or a ratio of whole numbers such as \"78125/4\"");
      member = *exact;
    } else {
      double value = 0;
      read(node, key, value, range);
      if (value != std::floor(value))
        fail(node, key, "a rate that is not whole must be exact: write it as \"78125/4\"");
      member = {static_cast<std::int64_t>(value), 1};
    }
    check_range(node, key, member.value(), range);
  }
  void read(const toml::node& node, std::string_view key, std::string& member,
            const Choice& choice) const {
    const auto value = node.value_exact<std::string>();
    if (!value)
      fail(node, key,
           node.is_date() || node.is_date_time() || node.is_time()
               ? "must be a string: a date is written in quotes, \"2026-01-31T12:00:00\""
               : "must be a string");
    if (!choice.words.empty() &&
        std::find(choice.words.begin(), choice.words.end(), *value) == choice.words.end()) {
      fail(node, key, "must be one of " + join(choice.words));
    }
    if (!choice.endings.empty() && !value->empty() && !ends_in_one_of(*value, choice.endings))
      fail(node, key, "the name must end in one of " + join(choice.endings));
    member = *value;
  }
  void read(const toml::node& node, std::string_view key, bool& member, const Choice&) const {
    if (!node.is_boolean()) fail(node, key, "must be true or false");
    member = *node.value<bool>();
  }
  template <class T, class Limits>
  void read(const toml::node& node, std::string_view key, std::vector<T>& member,
            const Limits& limits) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) fail(node, key, "must be a list");
    member.clear();
    for (const auto& element : *array) read(element, key, member.emplace_back(), limits);
  }

  const toml::table& table_;
  std::string section_;
  const Origin& origin_;
  std::vector<std::pair<std::string, std::string>> known_;
};

/// Writes keys as TOML.
class Printer {
 public:
  explicit Printer(std::string& text) : text_(text) {}
  template <class T, class Limits>
  void operator()(std::string_view key, T& member, const Limits&, std::string_view) {
    text_ += fmt::format("{} = {}\n", key, value(member));
  }

 private:
  static std::string value(const std::string& s) {
    std::ostringstream out;
    out << toml::value<std::string>(s);
    return out.str();
  }
  static std::string value(bool b) { return b ? "true" : "false"; }
  static std::string value(double d) {
    const std::string text = fmt::format("{}", d);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  static std::string value(std::int64_t i) { return std::to_string(i); }
  static std::string value(std::uint64_t i) { return std::to_string(i); }
  static std::string value(const Rational& r) {
    return r.den == 1 ? std::to_string(r.num) : fmt::format("\"{}/{}\"", r.num, r.den);
  }
  template <class T>
  static std::string value(const std::vector<T>& list) {
    std::string text = "[";
    for (const auto& element : list) text += (text.size() > 1 ? ", " : "") + value(element);
    return text + "]";
  }
  std::string& text_;
};

void parse_sources(const toml::table& simulator, SimulatorConfig& config, const Origin& origin) {
  const toml::node* node = simulator.get("source");
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  if (array == nullptr || !array->is_array_of_tables()) {
    throw ConfigError(origin(node->source()) +
                      ": simulator.source must be written as [[simulator.source]]");
  }
  for (const auto& element : *array) {
    SimulatedSourceConfig source;
    Parser parser(*element.as_table(), "simulator.source", origin);
    fields(parser, source);
    parser.reject_unknown();
    const auto& table = *element.as_table();
    const bool has_lm = table.contains("l") || table.contains("m");
    source.by_ra_dec = table.contains("ra_deg") || table.contains("dec_deg");
    if (has_lm == source.by_ra_dec) {
      throw ConfigError(origin(element.source()) +
                        ": a simulated source needs either l and m or ra_deg and dec_deg");
    }
    if (source.l * source.l + source.m * source.m >= 1) {
      throw ConfigError(fmt::format(
          "{}: simulated source at l = {}, m = {} lies below the horizon (l^2 + m^2 < 1)",
          origin(element.source()), source.l, source.m));
    }
    config.sources.push_back(std::move(source));
  }
}

/// [source.packet], or the name of a file with its keys.
void read_packet(const toml::table& table, SourceConfig& source, const Origin& origin,
                 const std::string& observation) {
  const toml::node* node = table.get("packet");
  const toml::node* format = table.get("format");
  if (node == nullptr) {
    if (source.format == "described")
      throw ConfigError(origin(format->source()) +
                        ": source.format = described: [source.packet] is missing, the layout of "
                        "the datagrams (docs/bring_up.md)");
    return;
  }
  if (format == nullptr) source.format = "described";
  if (source.format != "described" && source.format != "best2")
    throw ConfigError(
        fmt::format("{}: source.format = {}: [source.packet] describes packets of "
                    "source.format = \"described\" and \"best2\"",
                    origin(format->source()), source.format));
  if (const auto file = node->value_exact<std::string>()) {
    const std::filesystem::path folder = std::filesystem::path(observation).parent_path();
    source.packet = load_packet((folder / *file).string());
    return;
  }
  if (node->as_table() == nullptr)
    throw ConfigError(origin(node->source()) +
                      ": source.packet must be a section, or the name of a file with its keys");
  source.packet = parse_packet(*node->as_table(), [&](const auto& where) { return origin(where); });
}

void apply_override(toml::table& root, const std::string& text) {
  const auto equals = text.find('=');
  const auto dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
    throw ConfigError("--set " + text +
                      ": write section.key=value, e.g. --set correlate.integration_s=0.5");
  }
  const std::string key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  toml::table patch;
  detail::check_toml_depth(key + " = " + value, "--set");
  try {
    patch = toml::parse(key + " = " + value, kOverride);
  } catch (const toml::parse_error&) {
    std::ostringstream quoted;
    quoted << toml::value<std::string>(value);
    patch = toml::parse(key + " = " + quoted.str(), kOverride);
  }
  for (auto& [section, node] : patch) {
    if (!root.contains(section)) root.insert(section, toml::table{});
    toml::table* target = root.get(section)->as_table();
    if (target == nullptr || node.as_table() == nullptr)
      throw ConfigError("--set " + text + ": no such section");
    for (auto& [k, v] : *node.as_table()) target->insert_or_assign(k, v);
  }
}

void reject_unknown_sections(const toml::table& root, const Origin& origin) {
  std::vector<std::string> known{"schema"};
  ObservationConfig scratch;
  sections([&](const char* name, auto&) { known.emplace_back(name); }, scratch);
  for (const auto& [key, node] : root) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    throw ConfigError(fmt::format("{}: unknown section [{}]; did you mean [{}]?",
                                  origin(key.source()), std::string(key.str()),
                                  nearest_word(key.str(), known)));
  }
}

/// What format = "best2" stands for. Its packets become beams unless visibilities are asked for by
/// name; without a [source.packet] packets, rate and band are those of the array BEST-2.
void set_defaults_of_format(ObservationConfig& config) {
  SourceConfig& source = config.source;
  if (source.kind == "file" || !is_live_beams(source)) return;
  const auto unless_given = [&](std::string_view section, std::string_view key, auto& member,
                                const auto& value) {
    const bool given = std::any_of(config.given.begin(), config.given.end(), [&](const auto& g) {
      return g.section == section && g.key == key;
    });
    if (!given) member = value;
  };
  unless_given("output", "ms", config.output.ms, false);
  unless_given("output", "uvfits", config.output.uvfits, false);
  unless_given("output", "uvh5", config.output.uvh5, false);
  if (source.packet) return;
  source.packet = wire::best2_packet();
  unless_given("source", "sample_rate_hz", source.sample_rate_hz, Rational{78'125, 4});
  unless_given("source", "channel_zero_mhz", source.channel_zero_mhz, 417.990234375);
  unless_given("source", "channel_width_hz", source.channel_width_hz, 19531.25);
  unless_given("source", "inverted_band", source.inverted_band, true);
}

ObservationConfig from_table(const toml::table& root, const std::string& name) {
  const Origin origin(name);
  reject_unknown_sections(root, origin);
  ObservationConfig config;
  config.path = name;
  if (const auto* schema = root.get("schema")) {
    if (schema->value<std::int64_t>() != 1) {
      throw ConfigError(origin(schema->source()) +
                        ": schema must be 1, the only version this ryle knows");
    }
  }
  sections(
      [&](const char* section, auto& target) {
        const toml::node* node = root.get(section);
        if (node == nullptr) return;
        const toml::table* table = node->as_table();
        if (table == nullptr)
          throw ConfigError(
              fmt::format("{}: {} must be a section", origin(node->source()), section));
        Parser parser(*table, section, origin);
        fields(parser, target);
        if constexpr (std::is_same_v<std::decay_t<decltype(target)>, SimulatorConfig>) {
          parser.allow("source");
          parse_sources(*table, target, origin);
        }
        if constexpr (std::is_same_v<std::decay_t<decltype(target)>, SourceConfig>) {
          parser.allow("packet");
          read_packet(*table, target, origin, name);
        }
        parser.reject_unknown();
        config.given.insert(config.given.end(), parser.given.begin(), parser.given.end());
      },
      config);
  config.source.listen = expand_endpoints(config.source.listen);
  if (!config.source.file.empty() && !config.source.files.empty())
    throw ConfigError(name +
                      ": source.file and source.files are both given; one of them names what is "
                      "read");
  set_defaults_of_format(config);
  config.text = to_toml(config);
  return config;
}

}  // namespace

ObservationConfig parse_observation(const std::string& text, const std::string& origin,
                                    const std::vector<std::string>& overrides) {
  constexpr std::size_t kLargestText = 1 << 20;
  if (text.size() > kLargestText)
    throw ConfigError(origin + ": larger than 1 MiB: this is not an observation file");
  detail::check_toml_depth(text, origin);
  toml::table root;
  try {
    root = toml::parse(text, origin);
    for (const auto& o : overrides) apply_override(root, o);
  } catch (const toml::parse_error& e) {
    throw ConfigError(Origin(origin)(e.source()) + ": " + std::string(e.description()));
  }
  return from_table(root, origin);
}

ObservationConfig load_observation(const std::string& path,
                                   const std::vector<std::string>& overrides) {
  return parse_observation(read_text_file(path), path, overrides);
}

std::string to_toml(const ObservationConfig& config) {
  std::string text = "schema = 1\n";
  ObservationConfig copy = config;
  sections(
      [&](const char* section, auto& target) {
        text += fmt::format("\n[{}]\n", section);
        Printer printer(text);
        auto print = [&](std::string_view key, auto& member, const auto& limits,
                         std::string_view help) {
          // As a comment, so that what is printed is accepted again.
          if (!reason_without_effect(config, section, key).empty()) text += "# no effect here: ";
          printer(key, member, limits, help);
        };
        fields(print, target);
        if constexpr (std::is_same_v<std::decay_t<decltype(target)>, SourceConfig>) {
          if (target.packet) text += packet_toml(*target.packet);
        }
      },
      copy);
  for (auto& source : copy.simulator.sources) {
    text += "\n[[simulator.source]]\n";
    Printer printer(text);
    const auto skip = [&](std::string_view key) {
      return source.by_ra_dec ? key == "l" || key == "m" : key == "ra_deg" || key == "dec_deg";
    };
    auto chosen = [&](std::string_view key, auto& member, const auto& limits,
                      std::string_view help) {
      if (!skip(key)) printer(key, member, limits, help);
    };
    fields(chosen, source);
  }
  return text;
}

std::vector<std::string> overrides_of(const SkySettings& settings) {
  const auto lines = [](SkySettings values) {
    std::vector<std::string> list;
    auto add = [&](std::string_view key, auto& member, const auto& limits, std::string_view help) {
      std::string text = "image.";
      Printer print(text);
      print(key, member, limits, help);
      list.push_back(std::move(text));
    };
    fields(add, values);
    return list;
  };
  std::vector<std::string> given = lines(settings);
  const auto defaults = lines({});
  std::erase_if(given, [&](const std::string& line) {
    return std::find(defaults.begin(), defaults.end(), line) != defaults.end();
  });
  return given;
}

std::string resolve_path(const ObservationConfig& config, const std::string& name) {
  const std::filesystem::path path(name);
  if (path.is_absolute() || name.empty()) return name;
  return (std::filesystem::path(config.path).parent_path() / path).string();
}

bool is_received(const SourceConfig& source) {
  return source.kind == "network" || source.kind == "pcap";
}

bool is_described(const SourceConfig& source) {
  return source.format == "described" || is_standard(source) ||
         (source.kind != "file" && is_live_beams(source));
}

bool is_standard(const SourceConfig& source) {
  return source.kind != "file" &&
         (source.format == "vdif" || source.format == "codif" || is_recorded_stream(source));
}

bool is_recorded_stream(const SourceConfig& source) {
  return source.kind != "file" && (source.format == "dada" || source.format == "guppi");
}

namespace {

bool is_stream(const std::string& endpoint) { return !endpoint.starts_with("udp://"); }

}  // namespace

bool all_streams(const SourceConfig& source) {
  return !source.listen.empty() &&
         std::all_of(source.listen.begin(), source.listen.end(), is_stream);
}

bool is_live_samples(const SourceConfig& source) {
  return !is_live_spectra(source) && !is_live_beams(source);
}

bool is_live_spectra(const SourceConfig& source) {
  if (is_live_beams(source)) return false;
  // Several complex channels of a frame are those of an F-engine, several real ones are inputs.
  if (is_standard(source)) return source.n_channels > 1 && source.sample.starts_with("c");
  if (is_described(source)) return source.packet && source.packet->has_channels();
  return source.format == "chips" || source.format == "tbf" || source.format == "tbx" ||
         is_live_spead(source);
}

bool is_live_spead(const SourceConfig& source) { return source.format == "spead"; }

bool is_live_beams(const SourceConfig& source) { return source.format == "best2"; }

bool wants_visibilities(const ObservationConfig& config) {
  const auto& output = config.output;
  return output.ms || output.uvfits || output.uvh5 || !output.files.empty() ||
         !output.spead.empty();
}

bool wants_images(const ObservationConfig& config) { return config.image.cadence_s > 0; }

bool wants_search(const SearchSettings& settings) {
  const std::string& plan = settings.plan;
  return settings.dm_max > 0 || plan == "file" || plan == "ranges" || settings.dm_count > 0;
}

std::string option_name(std::string_view key, bool turns_off) {
  if (key.starts_with("n_")) key.remove_prefix(2);
  for (const std::string_view unit : {"_s", "_deg", "_wavelengths", "_sigma", "_spectra"})
    if (key.ends_with(unit)) key.remove_suffix(unit.size());
  std::string name = (turns_off ? "--no-" : "--") + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace ryle::pipeline
