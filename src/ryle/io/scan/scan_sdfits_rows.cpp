// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/scan/scan_sdfits.hpp"

namespace ryle::io {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr int kMaxAxes = 9;

bool starts(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

const ScanColumn* data_column(const ScanTable& table) {
  const std::string name = upper_case(table.name);
  const bool said = name == "SINGLE DISH" || name == "MATRIX";
  const bool axes = table.has("CTYPE1") && table.has("CRVAL1");
  const bool fast = table.has("NCHAN") && table.has("CHAN_BW");
  if (!said && !axes && !fast) return nullptr;
  for (const char* word : {"DATA", "SPECTRUM", "MATRIX"}) {
    const ScanColumn* column = table.find(word);
    if (column != nullptr && column->numbers) return column;
  }
  return nullptr;
}

/// The same text in all rows, or a rejection.
std::string only_text(const std::vector<std::string>& all, const std::string& what,
                      const std::string& where) {
  if (all.empty()) return {};
  for (const auto& text : all)
    if (text != all[0])
      throw FormatError(where + ": " + what + " is \"" + all[0] + "\" in one row and \"" + text +
                        "\" in another; --select takes rows of one kind");
  return all[0];
}

bool says_system(const std::vector<std::string>& radesys) {
  return !radesys.empty() && !radesys[0].empty();
}

std::string projection_of(const std::string& ctype) {
  const auto dash = ctype.find('-');
  if (dash == std::string::npos) return {};
  const auto letter = ctype.find_first_not_of('-', dash);
  return letter == std::string::npos ? std::string() : ctype.substr(letter);
}

bool equal_values(const std::string& text, const std::string& wanted) {
  if (upper_case(text) == upper_case(wanted)) return true;
  const double a = scan_number(text), b = scan_number(wanted);
  return a == b;
}

std::vector<std::int64_t> axes_of_text(const std::string& text) {
  std::vector<std::int64_t> axes;
  std::size_t at = 0;
  while ((at = text.find_first_of("0123456789", at)) != std::string::npos) {
    const auto end = std::min(text.find_first_not_of("0123456789", at), text.size());
    const double n = scan_number(text.substr(at, end - at));
    if (!(n >= 1 && n < 1e12)) return {};
    axes.push_back(static_cast<std::int64_t>(n));
    at = end;
  }
  return axes;
}

}  // namespace

bool SdfitsLayout::same_form(const SdfitsLayout& other) const {
  const RawNumber &a = data->form, &b = other.data->form;
  return n_channels == other.n_channels && channel_step == other.channel_step &&
         n_polarizations == other.n_polarizations && polarization_step == other.polarization_step &&
         a.kind == b.kind && a.bytes == b.bytes && a.scale == b.scale && a.zero == b.zero &&
         a.has_null == b.has_null && a.null == b.null;
}

bool RowAxis::agrees(const RowAxis& other) const {
  if (n_channels != other.n_channels) return false;
  if (!std::isfinite(first_hz + step_hz) && !std::isfinite(other.first_hz + other.step_hz))
    return true;
  const double room = 0.05 * std::abs(other.step_hz);
  const auto last = static_cast<double>(n_channels - 1);
  return std::abs(first_hz - other.first_hz) <= room &&
         std::abs(first_hz + last * step_hz - other.first_hz - last * other.step_hz) <= room;
}

bool SdfitsRows::any(const FitsScans& file) {
  return std::any_of(file.tables.begin(), file.tables.end(),
                     [](const ScanTable& t) { return data_column(t) != nullptr; });
}

SdfitsRows::SdfitsRows(const FitsScans& file, const ScanOptions& options) : path_(file.path) {
  for (const auto& table : file.tables)
    if (data_column(table) != nullptr) tables_.push_back(table);
  for (std::size_t t = 0; t < tables_.size(); ++t)
    for (std::int64_t r = 0; r < tables_[t].n_rows; ++r) rows_.push_back({static_cast<int>(t), r});
  if (rows_.empty()) throw FormatError(path_ + ": an SDFITS file without rows");
  for (const auto& [column, value] : options.select) keep_where(column, value);
  if (rows_.empty()) reject_empty();
  layouts_.resize(tables_.size());
  for (std::size_t t = 0; t < tables_.size(); ++t)
    if (std::any_of(rows_.begin(), rows_.end(),
                    [&](const Row& r) { return r.table == static_cast<int>(t); }))
      lay_out(t);
}

std::size_t SdfitsRows::n_tables_used() const {
  std::set<int> used;
  for (const Row& r : rows_) used.insert(r.table);
  return used.size();
}

void SdfitsRows::keep(const std::vector<bool>& which) {
  std::vector<Row> kept;
  for (std::size_t k = 0; k < rows_.size(); ++k)
    if (which[k]) kept.push_back(rows_[k]);
  rows_ = std::move(kept);
}

void SdfitsRows::keep_where(const std::string& column, const std::string& value) {
  const auto texts_of_rows = texts(column);
  if (texts_of_rows.empty()) {
    if (rows_.empty()) return;
    throw ConfigError(path_ + ": no column " + column + " to select " + column + "=" + value +
                      " by; there are " + list());
  }
  std::vector<bool> which(rows_.size());
  std::set<std::string> there;
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    which[k] = equal_values(texts_of_rows[k], value);
    if (there.size() < 12) there.insert(texts_of_rows[k]);
  }
  keep(which);
  if (!rows_.empty()) return;
  throw ConfigError(fmt::format("{}: no row has {}={}; there are {}", path_, column, value,
                                comma_separated(there)));
}

void SdfitsRows::reject_frames() const {
  throw ConfigError(path_ + ": positions in more than one frame; --select takes rows of one");
}

void SdfitsRows::reject_empty() const {
  throw ConfigError(path_ + ": no row has all that is selected");
}

bool SdfitsRows::has_column(const std::string& name) const {
  return std::any_of(tables_.begin(), tables_.end(),
                     [&](const ScanTable& t) { return t.find(name) != nullptr; });
}

std::int64_t SdfitsRows::repeat(const std::string& column) const {
  std::int64_t maximum = 0;
  for (const ScanTable& t : tables_)
    if (const ScanColumn* own = t.find(column); own != nullptr && own->numbers)
      maximum = std::max(maximum, own->repeat);
  return maximum;
}

std::vector<double> SdfitsRows::numbers(const std::string& word, std::int64_t element) const {
  std::vector<std::vector<double>> all;
  bool any = false;
  for (const auto& table : tables_) {
    all.push_back(word.empty() ? std::vector<double>() : table.numbers(word, element));
    any = any || !all.back().empty();
  }
  std::vector<double> out;
  if (!any) return out;
  out.reserve(rows_.size());
  for (const Row& r : rows_) {
    const auto& own = all[r.table];
    out.push_back(own.empty() ? kMissing : own[r.row]);
  }
  return out;
}

std::vector<std::string> SdfitsRows::texts(const std::string& word) const {
  std::vector<std::string> out;
  const bool table_number = upper_case(word) == "TABLE" && tables_[0].find(word) == nullptr;
  std::vector<std::vector<std::string>> all;
  bool any = table_number;
  for (const auto& table : tables_) {
    all.push_back(table_number ? std::vector<std::string>() : table.texts(word));
    any = any || !all.back().empty();
  }
  if (!any) return out;
  out.reserve(rows_.size());
  for (const Row& r : rows_) {
    const auto& own = all[r.table];
    if (table_number)
      out.push_back(std::to_string(r.table + 1));
    else
      out.push_back(own.empty() ? std::string() : own[r.row]);
  }
  return out;
}

std::string SdfitsRows::unit(const std::string& column) const { return tables_[0].unit(column); }

std::string SdfitsRows::list() const { return tables_[0].list(); }

std::string SdfitsRows::stokes_word() const {
  for (int n = 1; n <= kMaxAxes; ++n)
    for (const auto& table : tables_) {
      const auto types = table.texts(fmt::format("CTYPE{}", n));
      if (!types.empty() && starts(types[0], "STOKES")) return fmt::format("CRVAL{}", n);
    }
  return {};
}

std::int64_t SdfitsRows::axis_polarizations() const { return layout(0).n_polarizations; }

std::vector<std::string> SdfitsRows::axis_names(std::int64_t row) const {
  const SdfitsLayout& own = layout(row);
  std::vector<std::string> names;
  const std::string n = std::to_string(own.polarization_axis);
  const auto value = numbers("CRVAL" + n), pixel = numbers("CRPIX" + n),
             step = numbers("CDELT" + n);
  for (std::int64_t p = 0; p < own.n_polarizations; ++p) {
    std::string name;
    if (!value.empty() && !pixel.empty() && !step.empty())
      name = stokes_name(value[0] + (static_cast<double>(p + 1) - pixel[0]) * step[0]);
    names.push_back(name);
  }
  // All by name, or all by number.
  if (std::any_of(names.begin(), names.end(), [](const std::string& s) { return s.empty(); }))
    for (std::size_t p = 0; p < names.size(); ++p) names[p] = std::to_string(p);
  return names;
}

std::vector<std::int64_t> SdfitsRows::begin_bytes(const ScanColumn& column) const {
  std::vector<std::int64_t> offset;
  for (const auto& table : tables_) {
    const ScanColumn* own = table.find(column.name);
    offset.push_back(own == nullptr ? 0 : table.first_byte + own->offset_bytes);
  }
  std::vector<std::int64_t> begin;
  begin.reserve(rows_.size());
  for (const Row& r : rows_) {
    const auto t = static_cast<std::size_t>(r.table);
    begin.push_back(offset[t] + r.row * tables_[t].row_bytes);
  }
  return begin;
}

const ScanColumn* SdfitsRows::same_shape(const std::string& column) const {
  const ScanColumn* first = nullptr;
  std::set<int> used;
  for (const Row& r : rows_) used.insert(r.table);
  for (const int t : used) {
    const ScanColumn* own = tables_[t].find(column);
    const ScanColumn* data = layouts_[t].data;
    if (own == nullptr || !own->numbers || own->repeat != data->repeat) return nullptr;
    if (first != nullptr &&
        (own->form.bytes != first->form.bytes || own->form.kind != first->form.kind))
      return nullptr;
    if (first == nullptr) first = own;
  }
  return first;
}

int SdfitsRows::axis_of(const ScanTable& table, const std::vector<std::string>& words,
                        std::string* type) const {
  const int number = static_cast<int>(&table - tables_.data());
  for (int n = 1; n <= kMaxAxes; ++n) {
    const auto types = table.texts(fmt::format("CTYPE{}", n));
    if (types.empty()) continue;
    for (const Row& r : rows_) {
      if (r.table != number) continue;
      const std::string own = upper_case(types[r.row]);
      for (const auto& word : words)
        if (starts(own, word)) {
          if (type != nullptr) *type = own;
          return n;
        }
    }
  }
  return 0;
}

void SdfitsRows::lay_out(std::size_t t) {
  const ScanTable& table = tables_[t];
  const std::string where = fmt::format("{}: table {}", path_, t + 1);
  SdfitsLayout& own = layouts_[t];
  own.data = data_column(table);
  const auto selected = [&](const std::vector<std::string>& all) {
    std::vector<std::string> mine;
    for (const Row& r : rows_)
      if (r.table == static_cast<int>(t) && !all.empty()) mine.push_back(all[r.row]);
    return mine;
  };
  const auto first_number = [&](const std::string& word) {
    const auto mine = selected(table.texts(word));
    return mine.empty() ? kMissing : scan_number(mine[0]);
  };
  std::vector<std::int64_t> axes = own.data->axes;
  const std::string tdim = fmt::format("TDIM{}", own.data->number);
  if (axes.empty()) axes = axes_of_text(only_text(selected(table.texts(tdim)), tdim, where));
  for (int n = 1; axes.size() + 1 == static_cast<std::size_t>(n) && n <= kMaxAxes; ++n) {
    const double length = first_number(fmt::format("MAXIS{}", n));  // the MATRIX convention
    if (length >= 1 && length < 1e12) axes.push_back(static_cast<std::int64_t>(length));
  }
  if (axes.empty()) axes = {own.data->repeat};
  std::int64_t total = 1;
  for (const std::int64_t n : axes) {
    if (n > own.data->repeat / total)
      throw FormatError(fmt::format("{}: the axes of {} ask for more than its {} numbers a row",
                                    where, own.data->name, own.data->repeat));
    total *= n;
  }

  int frequency = axis_of(table, {"FREQ"}, &own.frequency_type);
  if (frequency == 0) {
    frequency = axis_of(table, {"VELO", "VRAD", "VOPT", "FELO", "WAVE"}, &own.frequency_type);
    if (frequency > 0) own.axis_note = "the axis is " + own.frequency_type;
  }
  int polarization = axis_of(table, {"STOKES"}, nullptr);
  if (frequency == 0 && table.has("NCHAN") && table.has("CHAN_BW")) {
    own.fast_axis = true;
    const double n_channels = first_number("NCHAN");
    for (std::size_t n = 0; n < axes.size(); ++n) {
      if (static_cast<double>(axes[n]) == n_channels)
        frequency = static_cast<int>(n) + 1;
      else if (axes[n] > 1 && axes[n] <= 4)
        polarization = static_cast<int>(n) + 1;
    }
    if (frequency == 0)
      throw FormatError(fmt::format("{}: NCHAN is {}, no axis of {} has that length", where,
                                    n_channels, own.data->name));
  }
  if (frequency == 0) {
    for (std::size_t n = 0; n < axes.size(); ++n)
      if (axes[n] > 1 && std::count_if(axes.begin(), axes.end(), [](auto a) { return a > 1; }) == 1)
        frequency = static_cast<int>(n) + 1;
    if (total == 1) frequency = 1;
    own.axis_note = "no CTYPEn is FREQ";
  }
  if (frequency == 0 || frequency > static_cast<int>(axes.size()))
    throw UnsupportedError(
        fmt::format("{}: {} has {} axes and none of them is said to be frequency (CTYPEn, NCHAN)",
                    where, own.data->name, axes.size()));
  own.frequency_axis = frequency;
  std::int64_t step = 1;
  for (std::size_t n = 0; n < axes.size(); ++n) {
    if (static_cast<int>(n) + 1 == frequency) {
      own.n_channels = axes[n];
      own.channel_step = step;
    } else if (static_cast<int>(n) + 1 == polarization && axes[n] > 1) {
      own.polarization_axis = polarization;
      own.n_polarizations = axes[n];
      own.polarization_step = step;
    } else if (axes[n] > 1) {
      throw UnsupportedError(
          fmt::format("{}: axis {} of {} has {} places; frequency and STOKES are read", where,
                      n + 1, own.data->name, axes[n]));
    }
    step *= axes[n];
  }
  const double value = first_number(fmt::format("CRVAL{}", frequency)),
               rest = first_number("RESTFREQ");
  own.class_axis = upper_case(own.data->name) != "DATA" && starts(own.frequency_type, "FREQ") &&
                   rest > 0 && std::abs(value) < rest / 2;
}

std::vector<RowAxis> SdfitsRows::frequency_axes() const {
  std::vector<RowAxis> out(rows_.size());
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const SdfitsLayout& own = layouts_[t];
    if (own.data == nullptr) continue;
    const ScanTable& table = tables_[t];
    const std::string n = std::to_string(own.frequency_axis);
    std::string unit = table.unit(own.fast_axis ? "FREQ" : "CRVAL" + n);
    const auto said = table.keywords.find("CUNIT" + n);
    if (unit.empty() && said != table.keywords.end()) unit = said->second;
    const double hz = own.axis_note.empty() ? hertz_in(unit, own.fast_axis ? 1e6 : 1, path_) : 1;
    const auto value = table.numbers(own.fast_axis ? "FREQ" : "CRVAL" + n);
    const auto step = table.numbers(own.fast_axis ? "CHAN_BW" : "CDELT" + n);
    const auto pixel = table.numbers("CRPIX" + n);
    const auto rest = own.class_axis ? table.numbers("RESTFREQ") : std::vector<double>();
    const auto channels = own.fast_axis ? table.numbers("NCHAN") : std::vector<double>();
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      if (rows_[k].table != static_cast<int>(t)) continue;
      const auto r = static_cast<std::size_t>(rows_[k].row);
      const double reference = own.fast_axis ? 1 : pixel.empty() ? 0 : pixel[r];
      out[k].n_channels = channels.empty()
                              ? own.n_channels
                              : static_cast<std::int64_t>(std::clamp(channels[r], 0., 1e12));
      out[k].step_hz = step.empty() ? kMissing : step[r] * hz;
      out[k].first_hz = value.empty() ? kMissing
                                      : value[r] * hz + (1 - reference) * out[k].step_hz +
                                            (rest.empty() ? 0 : rest[r]);
    }
  }
  return out;
}

void SdfitsRows::reject_mixture(const std::vector<bool>& good, std::size_t bad,
                                const std::vector<RowAxis>& axes) const {
  std::vector<std::pair<std::string, std::vector<std::string>>> words;
  for (const char* word : {"IFNUM", "SIG", "IF", "OBJECT", "SCAN", "FDNUM", "BEAM", "TABLE"}) {
    auto all = texts(word);
    if (!all.empty()) words.emplace_back(word, std::move(all));
  }
  const auto would_do = [&](std::size_t a, std::size_t b) {
    for (std::size_t k = 0; k < good.size(); ++k)
      if (words[a].second[k] == words[a].second[0] && words[b].second[k] == words[b].second[0] &&
          !good[k])
        return false;
    return true;
  };
  std::string advice = "--select takes rows of one kind";
  const auto say = [&](std::size_t k) {
    return fmt::format("--select {}={}", words[k].first, words[k].second[0]);
  };
  bool found = false;
  for (std::size_t a = 0; a < words.size() && !found; ++a)
    if ((found = would_do(a, a))) advice = say(a) + " would do";
  for (std::size_t a = 0; a < words.size() && !found; ++a)
    for (std::size_t b = a + 1; b < words.size() && !found; ++b)
      if ((found = would_do(a, b))) advice = say(a) + " " + say(b) + " would do";
  throw ConfigError(
      fmt::format("{}: {} of {} rows have other channels than the first ({} from {:.9g} Hz by "
                  "{:.9g} Hz; row {}: "
                  "{} from {:.9g} Hz by {:.9g} Hz); {}",
                  path_, std::count(good.begin(), good.end(), false), good.size(),
                  axes[0].n_channels, axes[0].first_hz, axes[0].step_hz, bad + 1,
                  axes[bad].n_channels, axes[bad].first_hz, axes[bad].step_hz, advice));
}

// EPOCH is what older headers call the equinox.
std::vector<double> SdfitsRows::equinoxes() const {
  auto years = numbers("EQUINOX");
  if (!years.empty()) return years;
  years = numbers("EPOCH");
  for (double& y : years)
    if (!(y > 1800 && y < 2200)) y = kMissing;
  return years;
}

RowPositions SdfitsRows::positions(const ScanOptions& options, ScanMetadata& metadata) const {
  RowPositions out;
  out.longitude_deg.assign(rows_.size(), kMissing);
  out.latitude_deg.assign(rows_.size(), kMissing);
  std::set<std::string> others;
  std::set<SkyFrame> frames;
  std::int64_t n_without = 0;
  bool axes = false;
  const auto radesys = texts(texts("RADESYS").empty() ? "RADECSYS" : "RADESYS");
  const auto equinox = equinoxes();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const ScanTable& table = tables_[t];
    int lon = axis_of(table, {"RA", "GLON"}, nullptr),
        lat = axis_of(table, {"DEC", "GLAT"}, nullptr);
    if (lon == 0 || lat == 0) {
      lon = axis_of(table, {"AZ", "?", "HA"}, nullptr);
      lat = axis_of(table, {"EL", "?"}, nullptr);
    }
    if (lon == 0 || lat == 0) continue;
    axes = true;
    const std::string a = std::to_string(lon), b = std::to_string(lat);
    const auto lon_type = table.texts("CTYPE" + a), lat_type = table.texts("CTYPE" + b);
    const auto value_a = table.numbers("CRVAL" + a), value_b = table.numbers("CRVAL" + b);
    const auto step_a = table.numbers("CDELT" + a), step_b = table.numbers("CDELT" + b);
    const auto pixel_a = table.numbers("CRPIX" + a), pixel_b = table.numbers("CRPIX" + b);
    const double unit_a = longitude_degrees(options, table.unit("CRVAL" + a), metadata);
    const double unit_b = degrees_in(table.unit("CRVAL" + b), path_);
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      if (rows_[k].table != static_cast<int>(t)) continue;
      const auto r = static_cast<std::size_t>(rows_[k].row);
      const std::string type = upper_case(lon_type[r]), partner = upper_case(lat_type[r]);
      const bool equatorial = starts(type, "RA") && starts(partner, "DEC");
      const bool galactic = starts(type, "GLON") && starts(partner, "GLAT");
      const bool placed = (equatorial || galactic) && !value_a.empty() && !value_b.empty();
      if (!placed) {
        ++n_without;
        others.insert(type + "/" + partner);
        continue;
      }
      // Offsets of the only pixel along the axes of the sky (CLASS).
      const auto offset = [&](const std::vector<double>& step, const std::vector<double>& pixel) {
        return step.empty() ? 0.0 : (1 - (pixel.empty() ? 0 : pixel[r])) * step[r];
      };
      const double x = offset(step_a, pixel_a) * unit_a, y = offset(step_b, pixel_b) * unit_b;
      const std::string projection = projection_of(type);
      const bool sinusoidal = projection == "GLS" || projection == "SFL";
      if (!projection.empty() && !sinusoidal && (x != 0 || y != 0))
        throw UnsupportedError(path_ + ": offsets in the projection " + projection +
                               "; those of GLS and SFL are read");
      out.latitude_deg[k] = value_b[r] * unit_b + y;
      const double shrink = sinusoidal ? std::cos(out.latitude_deg[k] * kDegree_rad) : 1;
      out.longitude_deg[k] = value_a[r] * unit_a + x / shrink;
      frames.insert(galactic ? SkyFrame::galactic
                             : equatorial_frame(radesys.empty() ? std::string() : radesys[k],
                                                equinox.empty() ? kMissing : equinox[k], path_));
    }
  }
  if (!axes) {
    place_on_source(options, metadata, out);
    return out;
  }
  if (frames.size() > 1) reject_frames();
  if (!frames.empty()) out.frame = *frames.begin();
  metadata.frame_known = out.frame != SkyFrame::icrs || says_system(radesys);
  const std::string names = comma_separated(others);
  if (n_without > 0)
    out.warnings.push_back(
        fmt::format("{} of {} rows have no place on the sky ({}) and are left out", n_without,
                    rows_.size(), names));
  return out;
}

void SdfitsRows::place_on_source(const ScanOptions& options, ScanMetadata& metadata,
                                 RowPositions& out) const {
  struct Pair {
    const char *lon, *lat;
    SkyFrame frame;
    bool source;
  };
  for (const Pair& p :
       {Pair{"RA", "DEC", SkyFrame::icrs, false}, Pair{"RAJ2000", "DECJ2000", SkyFrame::fk5, false},
        Pair{"GLON", "GLAT", SkyFrame::galactic, false},
        Pair{"OBJ_RA", "OBJ_DEC", SkyFrame::icrs, true},
        Pair{"OBJ-RA", "OBJ-DEC", SkyFrame::icrs, true}}) {
    const auto lon = numbers(p.lon), lat = numbers(p.lat);
    if (lon.empty() || lat.empty()) continue;
    const double a = longitude_degrees(options, unit(p.lon), metadata),
                 b = degrees_in(unit(p.lat), path_);
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      out.longitude_deg[k] = lon[k] * a;
      out.latitude_deg[k] = lat[k] * b;
    }
    out.frame = p.frame;
    if (p.frame == SkyFrame::icrs) {
      const auto radesys = texts(texts("RADESYS").empty() ? "RADECSYS" : "RADESYS");
      const auto equinox = equinoxes();
      std::set<SkyFrame> frames;
      for (std::size_t k = 0; k < rows_.size(); ++k)
        frames.insert(equatorial_frame(radesys.empty() ? std::string() : radesys[k],
                                       equinox.empty() ? kMissing : equinox[k], path_));
      if (frames.size() > 1) reject_frames();
      out.frame = *frames.begin();
      metadata.frame_known = out.frame != SkyFrame::icrs || says_system(radesys);
    } else {
      metadata.frame_known = true;
    }
    if (p.source)
      out.warnings.push_back(fmt::format(
          "positions are those of the source ({}, {}), not of the telescope", p.lon, p.lat));
    return;
  }
  throw FormatError(path_ +
                    ": no place on the sky: neither CTYPEn of RA, DEC, GLON, GLAT nor columns "
                    "RA, DEC, OBJ_RA, OBJ_DEC; there are " +
                    list());
}

}  // namespace ryle::io
