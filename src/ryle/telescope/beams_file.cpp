// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/beams_file.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/csv.hpp"
#include "ryle/telescope/dut1.hpp"
#include "ryle/telescope/gains.hpp"
#include "ryle/telescope/toml_table.hpp"
#include "ryle/telescope/toml_text.hpp"

namespace ryle {
namespace {

using Table = detail::TomlTable;

// "03h32m59.4s" and "+54d34m43s" as "03:32:59.4" and "+54:34:43".
std::string with_colons(std::string text) {
  for (char& c : text) {
    if (c == 'h' || c == 'd' || c == 'm') c = ':';
  }
  if (!text.empty() && text.back() == 's') text.pop_back();
  return text;
}

class Loader {
 public:
  Loader(const std::string& text, const std::string& path, const BeamsContext& context)
      : context_(context), path_(path) {
    detail::check_toml_depth(text, path);
    try {
      root_ = toml::parse(text, path);
    } catch (const toml::parse_error& e) {
      throw ConfigError(path + ":" + std::to_string(e.source().begin.line) + ": " +
                        std::string(e.description()));
    }
  }

  BeamsFile load() {
    const std::vector<std::string> sections{"telescope", "band", "calibration",
                                            "subarray",  "beam", "beam_grid"};
    for (const auto& [key, node] : root_) {
      if (std::find(sections.begin(), sections.end(), key.str()) == sections.end())
        throw ConfigError(where(node) + "unknown section [" + std::string(key.str()) +
                          "]; known: " + comma_separated(sections));
    }
    telescope();
    band();
    calibration();
    subarrays();
    for (const auto& [node, number] : tables("beam")) beam(*node, number);
    for (const auto& [node, number] : tables("beam_grid")) grid(*node, number);
    if (out_.beams.empty()) throw ConfigError(path_ + ": there is no [[beam]]");
    // The constructor rejects what cannot be pointed at.
    [[maybe_unused]] const BeamSky sky(out_.array, out_.beams, out_.earth_orientation);
    return std::move(out_);
  }

 private:
  std::string where(const toml::node& node) const {
    return path_ + ":" + std::to_string(node.source().begin.line) + ": ";
  }
  std::string beside(const std::string& file) const {
    const std::filesystem::path p(file);
    return p.is_absolute() ? file : (std::filesystem::path(path_).parent_path() / p).string();
  }
  const toml::table& section(const char* name) const {
    static const toml::table empty;
    const toml::node* node = root_.get(name);
    if (node == nullptr) return empty;
    if (node->as_table() == nullptr)
      throw ConfigError(where(*node) + "\"" + name + "\" must be a section [" + name + "]");
    return *node->as_table();
  }
  std::vector<std::pair<const toml::table*, std::size_t>> tables(const char* name) const {
    std::vector<std::pair<const toml::table*, std::size_t>> list;
    const toml::node* node = root_.get(name);
    if (node == nullptr) return list;
    if (node->as_array() == nullptr)
      throw ConfigError(where(*node) + "\"" + name + "\" must be tables [[" + name + "]]");
    for (const auto& element : *node->as_array()) {
      if (element.as_table() == nullptr)
        throw ConfigError(where(element) + "\"" + name + "\" must be tables [[" + name + "]]");
      list.emplace_back(element.as_table(), list.size());
    }
    return list;
  }

  void telescope() {
    Table t(section("telescope"), path_, "telescope");
    const bool given = context_.array.has_value();
    const double latitude_deg =
        given ? t.number("latitude_deg", -90, 90, 0) : t.number("latitude_deg", -90, 90);
    const double longitude_deg =
        given ? t.number("longitude_deg", -180, 360, 0) : t.number("longitude_deg", -180, 360);
    const double height_m = t.number("height_m", -500, 9000, 0);
    out_.earth_orientation.dut1_s = t.number("dut1_s", -1, 1, 0);
    if (t.has("dut1_file")) {
      if (t.has("dut1_s")) t.fail("dut1_file", "and dut1_s say the same; give one of them");
      out_.earth_orientation.table =
          std::make_shared<const Dut1Table>(Dut1Table::load(beside(t.text("dut1_file"))));
    }
    if (given || !context_.layout.empty()) t.text("layout", "");  // replaced
    if (given)
      out_.array = *context_.array;
    else
      out_.array =
          read_layout_csv(context_.layout.empty() ? beside(t.text("layout")) : context_.layout,
                          latitude_deg, longitude_deg, height_m);
    out_.array.name = t.text("name", out_.array.name);
    t.finish();
  }
  void band() {
    if (context_.band_of_data && !root_.contains("band")) return;
    Table t(section("band"), path_, "band");
    out_.first_center_hz = t.number("first_center_mhz", 1e-3, 1e6) * 1e6;
    out_.channel_step_hz = t.number("channel_step_khz", -1e6, 1e6, 0) * 1e3;
    out_.n_channels = t.has("n_channels") ? t.integer("n_channels", 1, 1 << 24) : 1;
    if (out_.n_channels > 1 && out_.channel_step_hz == 0)
      t.fail("n_channels", "is more than 1: channel_step_khz is needed and not 0");
    t.finish();
  }
  void calibration() {
    Table t(section("calibration"), path_, "calibration");
    out_.gain_mode = t.word("mode", {"inverse", "matched", "phase"}, "inverse");
    out_.normalization = t.word("normalization", {"sum", "mean", "noise"}, "noise");
    if (t.has("gains")) out_.gains = read_gains_csv(beside(t.text("gains")), out_.array.n_inputs());
    t.finish();
  }

  // "0-15,18": indices of antennas in the layout.
  std::vector<double> antennas(Table& t) {
    std::vector<double> mask(out_.array.n_antennas(), 0.0);
    const std::string list = t.text("antennas");
    std::size_t at = 0;
    while (at <= list.size()) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      const std::string piece(trimmed(std::string_view(list).substr(at, end - at)));
      const std::size_t dash = piece.find('-');
      double first = 0, last = 0;
      const bool good =
          parse_finite(piece.substr(0, dash), first) &&
          parse_finite(dash == std::string::npos ? piece : piece.substr(dash + 1), last);
      if (!good || first != std::floor(first) || last != std::floor(last) || first < 0 ||
          first > last || last >= static_cast<double>(mask.size()))
        t.fail("antennas", "has \"" + piece + "\"; ranges like 0-15,18 of 0 to " +
                               std::to_string(mask.size() - 1) + " are wanted");
      for (auto a = static_cast<std::size_t>(first); a <= static_cast<std::size_t>(last); ++a)
        mask[a] = 1;
      at = end + 1;
    }
    return mask;
  }
  void subarrays() {
    out_.subarray_names.emplace_back("all");
    out_.subarrays.emplace_back(static_cast<std::size_t>(out_.array.n_antennas()), 1.0);
    for (const auto& [key, node] : section("subarray")) {
      const std::string name(key.str());
      if (node.as_table() == nullptr || name == "all")
        throw ConfigError(where(node) + "\"" + name + "\" must be a section [subarray." + name +
                          "], and \"all\" is taken");
      Table t(*node.as_table(), path_, "subarray." + name);
      auto mask = antennas(t);
      if (const toml::node* taper = t.node("taper")) {
        const toml::array* list = taper->as_array();
        std::size_t next = 0;
        for (double& m : mask) {
          if (m == 0 || list == nullptr || next >= list->size()) continue;
          m = list->get(next++)->value<double>().value_or(-1);
        }
        const auto used = static_cast<std::size_t>(
            std::count_if(mask.begin(), mask.end(), [](double m) { return m != 0; }));
        const bool none = taper->value_exact<std::string>() == std::string("none");
        const bool fits =
            list != nullptr && list->size() == next && used == next &&
            std::all_of(mask.begin(), mask.end(), [](double m) { return m >= 0 && m <= 1; });
        if (!none && !fits)
          t.fail("taper", "must be \"none\" or one number from 0 to 1 for each of its antennas");
      }
      t.finish();
      out_.subarray_names.push_back(name);
      out_.subarrays.push_back(std::move(mask));
    }
  }
  void take_subarray(Table& t) {
    const std::string name = t.word("subarray", out_.subarray_names, "all");
    const auto found = std::find(out_.subarray_names.begin(), out_.subarray_names.end(), name);
    out_.subarray_of_beam.push_back(found - out_.subarray_names.begin());
  }
  static OffsetKind offset_kind(Table& t) {
    return t.word("offset", {"tangent", "spherical"}, "spherical") == "tangent"
               ? OffsetKind::tangent
               : OffsetKind::spherical;
  }

  void beam(const toml::table& table, std::size_t number) {
    Table t(table, path_, "beam");
    BeamPointing b;
    b.name = t.text("name", "beam" + std::to_string(number));
    const std::string frame =
        t.has("relative_to")
            ? "relative_to"
            : t.word("frame", {"icrs", "apparent", "hadec", "azel", "ephemeris"}, "");
    if (frame == "icrs" || frame == "apparent") {
      b.frame = frame == "icrs" ? BeamFrame::icrs : BeamFrame::apparent;
      if (t.has("ra")) {
        const WatchTarget target =
            parse_watch(with_colons(t.text("ra")) + "," + with_colons(t.text("dec")));
        if (!target.fixed) t.fail("ra", "and dec are no direction");
        b.longitude_rad = target.fixed->ra_rad;
        b.latitude_rad = target.fixed->dec_rad;
      } else {
        b.longitude_rad = t.number("ra_deg", -360, 360) * kDegree_rad;
        b.latitude_rad = t.number("dec_deg", -90, 90) * kDegree_rad;
      }
      if (t.has("freeze_at_utc")) b.freeze_at_tai_ns = tai_ns_from_utc_iso(t.text("freeze_at_utc"));
    } else if (frame == "hadec") {
      b.frame = BeamFrame::hadec;
      b.longitude_rad = t.number("ha_deg", -360, 360) * kDegree_rad;
      b.latitude_rad = t.number("dec_deg", -90, 90) * kDegree_rad;
    } else if (frame == "azel") {
      b.frame = BeamFrame::azel;
      b.longitude_rad = t.number("az_deg", -360, 360) * kDegree_rad;
      b.latitude_rad = t.number("el_deg", -90, 90) * kDegree_rad;
    } else if (frame == "ephemeris") {
      b.frame = BeamFrame::ephemeris;
      const detail::CsvTable rows(beside(t.text("ephemeris")), {"utc", "az_deg", "el_deg"}, {});
      for (std::int64_t row = 0; row < rows.n_rows(); ++row)
        b.ephemeris.push_back({tai_ns_from_utc_iso(rows.text(row, "utc")),
                               rows.number(row, "az_deg") * kDegree_rad,
                               rows.number(row, "el_deg") * kDegree_rad});
    } else {
      b.frame = BeamFrame::relative_to;
      b.base = t.text("relative_to");
    }
    b.offset_kind = offset_kind(t);
    b.offset_x_rad = t.number("offset_x_deg", -90, 90, 0) * kDegree_rad;
    b.offset_y_rad = t.number("offset_y_deg", -90, 90, 0) * kDegree_rad;
    take_subarray(t);
    t.finish();
    out_.beams.push_back(std::move(b));
  }

  void grid(const toml::table& table, std::size_t) {
    Table t(table, path_, "beam_grid");
    const std::string around = t.text("around");
    const auto base = std::find_if(out_.beams.begin(), out_.beams.end(),
                                   [&](const BeamPointing& b) { return b.name == around; });
    if (base == out_.beams.end()) t.fail("around", "is \"" + around + "\", which is no beam");
    const auto pattern = t.word("pattern", {"hex", "square"}, "hex") == "hex" ? GridPattern::hex
                                                                              : GridPattern::square;
    const double spacing_deg = t.number("spacing_deg", 1e-9, 90, 0);
    const double x_deg = spacing_deg > 0 ? spacing_deg : t.number("spacing_x_deg", 1e-9, 90);
    const double y_deg = spacing_deg > 0 ? spacing_deg : t.number("spacing_y_deg", 1e-9, 90);
    const auto offsets = beam_grid(pattern, t.integer("count", 1, 1 << 20), x_deg * kDegree_rad,
                                   y_deg * kDegree_rad);
    const auto kind = offset_kind(t);
    take_subarray(t);
    const std::int64_t subarray = out_.subarray_of_beam.back();
    out_.subarray_of_beam.pop_back();
    t.finish();
    for (auto& b : grid_beams(*base, offsets, kind)) {
      out_.beams.push_back(std::move(b));
      out_.subarray_of_beam.push_back(subarray);
    }
  }

  const BeamsContext& context_;
  std::string path_;
  toml::table root_;
  BeamsFile out_;
};

}  // namespace

BeamsFile parse_beams(const std::string& text, const std::string& path,
                      const BeamsContext& context) {
  if (text.size() > (1 << 20))
    throw ConfigError(path + ": larger than 1 MiB: this is not a beams file");
  return Loader(text, path, context).load();
}

BeamsFile load_beams(const std::string& path, const BeamsContext& context) {
  return parse_beams(read_text_file(path), path, context);
}

}  // namespace ryle
