// SPDX-License-Identifier: BSD-3-Clause
// Named directions as cells of a gridder.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <memory>
#include <numeric>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/map/cell_table.hpp"
#include "ryle/io/map/healpix.hpp"
#include "ryle/pipeline/grid/cells_region.hpp"
#include "ryle/pipeline/grid/cells_text.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kPanelSide = 400;

io::Point unit_vector(const SightLine& line) {
  const double lon = line.longitude_deg * kDegree_rad, lat = line.latitude_deg * kDegree_rad;
  return {std::cos(lat) * std::cos(lon), std::cos(lat) * std::sin(lon), std::sin(lat)};
}

class SightLineCells final : public SkyCells {
 public:
  SightLineCells(std::vector<SightLine> lines, SkyFrame frame)
      : kept_(std::make_shared<const std::vector<SightLine>>(std::move(lines))), frame_(frame) {
    if (lines_.empty()) throw ConfigError("a list without sight lines: there is nothing to make");
    std::vector<std::int64_t> place;
    for (const SightLine& line : lines_) {
      if (!std::isfinite(line.longitude_deg) || !(std::abs(line.latitude_deg) <= 90))
        throw ConfigError(fmt::format("sight line {}: {} {} deg is no direction", line.name,
                                      line.longitude_deg, line.latitude_deg));
      const auto v = unit_vector(line);
      place.push_back(healpix::nest_of(healpix::kMaxOrder, v[0], v[1], v[2]));
    }
    row_of_cell_.resize(lines_.size());
    std::iota(row_of_cell_.begin(), row_of_cell_.end(), std::size_t{0});
    std::stable_sort(row_of_cell_.begin(), row_of_cell_.end(),
                     [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  }

  std::int64_t n_cells() const override { return static_cast<std::int64_t>(lines_.size()); }
  std::int64_t width() const override { return 0; }
  SkyFrame frame() const override { return frame_; }
  double cell_deg() const override { return 0; }
  std::string description() const override {
    return fmt::format("{} sight line{}", lines_.size(), lines_.size() == 1 ? "" : "s");
  }
  void directions(std::int64_t first_cell, std::int64_t n, double* longitude_deg,
                  double* latitude_deg) const override {
    for (std::int64_t k = 0; k < n; ++k) {
      const SightLine& line = lines_[row_of_cell_[first_cell + k]];
      longitude_deg[k] = line.longitude_deg;
      latitude_deg[k] = line.latitude_deg;
    }
  }
  std::array<double, 2> center() const override {
    const io::Region r = region();
    return {r.longitude_deg, r.latitude_deg};
  }
  std::string definition() const override {
    std::string text = fmt::format("sightlines {}\n", to_string(frame_));
    for (const SightLine& l : lines_)
      text += fmt::format("{:.17g} {:.17g} {}\n", l.longitude_deg, l.latitude_deg, l.name);
    return text;
  }
  // The list and the rows of its cells; their definition, which a growing text may hold twice.
  std::int64_t kept_bytes() const override {
    std::int64_t bytes = static_cast<std::int64_t>(sizeof(SightLine) + 8) * n_cells();
    constexpr std::int64_t kNumbers_bytes = 2 * 20;
    for (const SightLine& line : lines_) {
      const auto name = static_cast<std::int64_t>(line.name.size());
      bytes += 2 * (kNumbers_bytes + name) + (name > 15 ? name + 16 : 0);
    }
    return bytes;
  }
  // The cells of the rows.
  WriterMemory writer_memory(std::int64_t n_channels, CubeValues values) const override {
    return {8 * n_cells() + io::cell_table_bytes(n_cells(), n_channels, values), 0};
  }
  std::unique_ptr<CubeWriter> create(const std::string& path, std::int64_t n_channels,
                                     CubeValues values, const MapMetadata& metadata,
                                     bool overwrite) const override;
  Panel picture(const std::vector<float>& plane, const MapMetadata& metadata) const override;

 private:
  io::Region region() const {
    return io::region_of(n_cells(), [&](std::int64_t i) { return unit_vector(lines_[i]); });
  }

  /// As given, which is how the rows of tables go; the writers of tables share it.
  std::shared_ptr<const std::vector<SightLine>> kept_;
  const std::vector<SightLine>& lines_ = *kept_;
  SkyFrame frame_;
  std::vector<std::size_t> row_of_cell_;
};

std::unique_ptr<CubeWriter> SightLineCells::create(const std::string& path, std::int64_t n_channels,
                                                   CubeValues values, const MapMetadata& metadata,
                                                   bool overwrite) const {
  io::CellTable table;
  table.name = "SIGHTLINES";
  table.n_rows = n_cells();
  table.cell_of_row.resize(lines_.size());
  for (std::size_t cell = 0; cell < lines_.size(); ++cell) {
    table.cell_of_row[row_of_cell_[cell]] = static_cast<std::int64_t>(cell);
  }
  std::size_t longest = 1;
  for (const SightLine& line : lines_) longest = std::max(longest, line.name.size());
  const bool galactic = frame_ == SkyFrame::galactic;
  table.columns = {"NAME", galactic ? "GLON" : "RA", galactic ? "GLAT" : "DEC"};
  table.forms = {fmt::format("{}A", longest), "1D", "1D"};
  table.units = {"", "deg", "deg"};
  table.prefix_bytes = longest + 16;
  table.prefix = [lines = kept_, longest](std::int64_t row, std::uint8_t* to) {
    const SightLine& line = (*lines)[row];
    std::fill_n(to, longest, std::uint8_t{' '});
    // FITS text is ASCII that can be printed.
    std::transform(line.name.begin(), line.name.end(), to, [](char c) {
      return c < ' ' || c > '~' ? std::uint8_t{'?'} : static_cast<std::uint8_t>(c);
    });
    io::put_big_endian(to + longest, std::bit_cast<std::uint64_t>(line.longitude_deg), 8);
    io::put_big_endian(to + longest + 8, std::bit_cast<std::uint64_t>(line.latitude_deg), 8);
  };
  table.header = [frame = frame_](io::FitsFile& file) {
    if (frame == SkyFrame::galactic) return;
    file.key("RADESYS", std::string(frame == SkyFrame::fk5 ? "FK5" : "ICRS"));
    if (frame == SkyFrame::fk5) file.key("EQUINOX", 2000.0);
  };
  return io::create_cell_table(path, std::move(table), n_channels, values, metadata, overwrite);
}

// Spots on a map about them all.
Panel SightLineCells::picture(const std::vector<float>& plane, const MapMetadata& metadata) const {
  io::Region where = region();
  const bool whole = std::isnan(where.longitude_deg);
  where.half_width_deg = std::max(1.1 * where.half_width_deg, 0.5);
  where.half_height_deg = std::max(1.1 * where.half_height_deg, 0.5);
  const double side_deg = 2 * std::max(where.half_width_deg, where.half_height_deg);
  const MapProjection map =
      whole ? io::whole_sky_map(frame_)
            : io::region_map(where, frame_, side_deg / kPanelSide, kPanelSide + 8);
  const double spot_rad = 0.012 * (whole ? 180.0 : side_deg) * kDegree_rad;
  std::vector<io::Point> at;
  for (const std::size_t row : row_of_cell_) at.push_back(unit_vector(lines_[row]));
  return io::sampled_panel(map, metadata, [&](const io::Point& p) {
    double best = spot_rad * spot_rad;
    float shown = kNaN;
    for (std::size_t i = 0; i < at.size(); ++i) {
      double d = 0;
      for (std::size_t a = 0; a < 3; ++a) d += (p[a] - at[i][a]) * (p[a] - at[i][a]);
      if (d >= best) continue;
      best = d;
      shown = plane[i];
    }
    return shown;
  });
}

// Fields of a line; quotes keep commas, two of them mean one.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[++i];
      else
        quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  for (auto& f : fields) f = std::string(trimmed(f));
  return fields;
}

std::ptrdiff_t column_named(const std::vector<std::string>& header,
                            const std::vector<std::string>& names) {
  for (std::size_t k = 0; k < header.size(); ++k) {
    const std::string name = lower_case(header[k]);
    for (const auto& n : names)
      if (name == n || name == n + "_deg") return static_cast<std::ptrdiff_t>(k);
  }
  return -1;
}

}  // namespace

std::unique_ptr<SkyCells> sight_line_cells(std::vector<SightLine> lines, SkyFrame frame) {
  return std::make_unique<SightLineCells>(std::move(lines), frame);
}

SightLineFile read_sight_lines(const std::string& path) {
  std::istringstream in(read_text_file(path));
  SightLineFile file;
  auto& lines = file.lines;
  std::string text;
  std::ptrdiff_t name = -1, lon = -1, lat = -1;
  for (int number = 1; std::getline(in, text); ++number) {
    if (trimmed(text).empty() || trimmed(text)[0] == '#') continue;
    const auto fields = csv_fields(text);
    if (lon < 0) {
      name = column_named(fields, {"name", "source", "id"});
      lon = column_named(fields, {"lon", "longitude", "ra", "glon", "l"});
      lat = column_named(fields, {"lat", "latitude", "dec", "glat", "b"});
      if (lon < 0 || lat < 0)
        throw FormatError(fmt::format(
            "{} line {}: the columns name, lon, lat (degrees) are to be named here, got \"{}\"",
            path, number, trimmed(text)));
      file.equatorial = column_named(fields, {"ra"}) == lon;
      file.galactic = column_named(fields, {"glon", "l"}) == lon;
      continue;
    }
    const auto number_at = [&](std::ptrdiff_t k) {
      const std::string field = static_cast<std::size_t>(k) < fields.size() ? fields[k] : "";
      double value = 0;
      if (!parse_finite(field, value))
        throw FormatError(
            fmt::format("{} line {}: \"{}\" is no angle in degrees", path, number, field));
      return value;
    };
    SightLine line{"", number_at(lon), number_at(lat)};
    if (name >= 0 && static_cast<std::size_t>(name) < fields.size()) line.name = fields[name];
    if (line.name.empty()) line.name = std::to_string(lines.size() + 1);
    if (std::abs(line.latitude_deg) > 90)
      throw FormatError(fmt::format("{} line {}: latitude {} deg is beyond a pole", path, number,
                                    line.latitude_deg));
    lines.push_back(std::move(line));
  }
  if (lines.empty()) throw FormatError(path + ": no sight line in it");
  lines.shrink_to_fit();
  return file;
}

std::unique_ptr<SkyCells> cells_from_definition(const std::string& definition) {
  const std::string kind = definition.substr(0, definition.find(' '));
  if (kind == "map") return io::map_cells_from(definition);
  if (kind == "healpix") return io::healpix_cells_from(definition);
  if (kind == "sightlines") return io::sight_line_cells_from(definition);
  throw FormatError("definition of cells: \"" + kind.substr(0, 40) +
                    "\" is none of map, healpix, sightlines");
}

namespace io {

std::unique_ptr<SkyCells> sight_line_cells_from(const std::string& definition) {
  std::istringstream in(definition);
  std::string word, frame, text;
  in >> word >> frame;
  std::getline(in, text);
  std::vector<SightLine> lines;
  while (std::getline(in, text)) {
    SightLine line;
    std::istringstream row(text);
    row >> line.longitude_deg >> line.latitude_deg;
    if (!row) throw FormatError("definition of sight lines: \"" + text + "\" is none");
    row.get();
    std::getline(row, line.name);
    lines.push_back(std::move(line));
  }
  return sight_line_cells(std::move(lines), parse_sky_frame(frame));
}

}  // namespace io
}  // namespace ryle
