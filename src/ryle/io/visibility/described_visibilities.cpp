// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/described_visibilities.hpp"

#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "ryle/io/visibility/lofar_station.hpp"
#include "ryle/io/visibility/mwax.hpp"
#include "ryle/telescope/toml_table.hpp"
#include "ryle/telescope/toml_text.hpp"

namespace ryle {
namespace {

constexpr const char* kSection = "visibilities";

// A description is a page of text.
std::string description_text(const std::string& path) {
  return read_text_file(path, std::int64_t{1} << 20);
}

class Description {
 public:
  Description(const std::string& path, const VisibilityReadOptions& options)
      : path_(path), options_(options) {
    const std::string text = description_text(path);
    detail::check_toml_depth(text, path);
    try {
      root_ = toml::parse(text, path);
    } catch (const toml::parse_error& e) {
      throw ConfigError(path + ":" + std::to_string(e.source().begin.line) + ": " +
                        std::string(e.description()));
    }
    for (const auto& [key, node] : root_) {
      if (key.str() != kSection || !node.is_table()) {
        throw ConfigError(path + ":" + std::to_string(node.source().begin.line) + ": \"" +
                          std::string(key.str()) +
                          "\": a description of visibilities has the section [visibilities] alone");
      }
    }
    if (!root_.contains(kSection)) throw ConfigError(path + ": it has no section [visibilities]");
  }

  VisibilityFile read() {
    detail::TomlTable t(*root_.get(kSection)->as_table(), path_, kSection);
    const std::string format =
        t.word("format", {"covariance", "lofar-xst", "lofar-acc", "mwax"}, "");
    if (format == "covariance") return covariance(t);
    if (format == "mwax") return mwax(t);
    return lofar(t, format == "lofar-acc");
  }

 private:
  std::string beside(const std::string& name) const {
    if (name.empty() || std::filesystem::path(name).is_absolute()) return name;
    return (std::filesystem::path(path_).parent_path() / name).string();
  }
  std::vector<std::string> all_beside(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const auto& name : names) paths.push_back(beside(name));
    return paths;
  }
  Conjugate conjugate(detail::TomlTable& t) const {
    const std::string word = t.word("conjugate", {"auto", "no", "yes"}, "auto");
    if (options_.conjugate != Conjugate::automatic) return options_.conjugate;
    return word == "yes" ? Conjugate::yes : word == "no" ? Conjugate::no : Conjugate::automatic;
  }

  VisibilityFile covariance(detail::TomlTable& t) const {
    CovarianceFiles f;
    f.real_path = beside(t.text("real"));
    f.imaginary_path = beside(t.text("imaginary"));
    f.antennas_path = beside(t.text("antennas"));
    f.frequency_hz = 1e6 * t.number("frequency_mhz", 1e-3, 1e6);
    f.channel_width_hz = 1e3 * t.number("channel_width_khz", 0, 1e9, 0);
    f.latitude_deg = t.number("latitude_deg", -90, 90);
    f.longitude_deg = t.number("longitude_deg", -360, 360);
    f.height_m = t.number("height_m", -500, 1e4, 0);
    f.utc = t.text("utc", "");
    f.integration_s = t.number("integration_s", 0, 1e6, 0);
    f.pol = t.word("pol", {"", "X", "Y", "I"}, "");
    f.phased_to = t.text("phased_to", "zenith");
    f.dead = t.texts("dead");
    f.conjugate = conjugate(t);
    t.finish();
    return read_covariance(f);
  }

  VisibilityFile lofar(detail::TomlTable& t, bool is_acc) const {
    LofarStationFiles f;
    f.data_paths = all_beside(t.texts("files"));
    if (f.data_paths.empty()) t.missing("files");
    f.is_acc = is_acc;
    if (is_acc && f.data_paths.size() != 1) t.fail("files", "must be one file of format lofar-acc");
    f.antennas_path = beside(t.text("antennas"));
    f.field = t.text("field", "");
    f.n_rcus = t.has("inputs") ? t.integer("inputs", 4, 8192) : 0;
    f.rcu_mode = t.has("rcu_mode") ? t.integer("rcu_mode", 1, 7) : 0;
    f.subband = t.has("subband") ? t.integer("subband", 0, 511) : -1;
    if (is_acc && t.has("integration_s"))
      t.fail("integration_s", "has no effect: the matrices of an ACC file are a second each");
    f.integration_s = is_acc ? 1 : t.number("integration_s", 1e-3, 1e6, 1);
    f.utc = t.text("utc", "");
    f.calibration_path = beside(t.text("calibration", ""));
    f.calibration = t.word("calibration_as", {"weights", "gains"}, "weights") == "gains"
                        ? StationTable::gains
                        : StationTable::weights;
    if (f.calibration_path.empty() && t.has("calibration_as"))
      t.fail("calibration_as", "has no effect without calibration");
    f.dead = t.texts("dead");
    f.conjugate = conjugate(t);
    t.finish();
    return read_lofar_station(f);
  }

  VisibilityFile mwax(detail::TomlTable& t) const {
    MwaxFiles f;
    f.data_paths = all_beside(t.texts("files"));
    if (f.data_paths.empty()) t.missing("files");
    f.metafits_path = beside(t.text("metafits"));
    f.as_recorded = t.word("cables", {"removed", "as-recorded"}, "removed") == "as-recorded";
    f.dead = t.texts("dead");
    f.conjugate = conjugate(t);
    t.finish();
    return read_mwax(f);
  }

  std::string path_;
  VisibilityReadOptions options_;
  toml::table root_;
};

}  // namespace

bool is_visibility_description(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".toml") return false;
  const std::string text = description_text(path);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto first = text.find_first_not_of(" \t", at);
    if (first < end && text.compare(first, 14, "[visibilities]") == 0) return true;
    at = end + 1;
  }
  return false;
}

VisibilityFile read_described_visibilities(const std::string& path,
                                           const VisibilityReadOptions& options) {
  return Description(path, options).read();
}

}  // namespace ryle
