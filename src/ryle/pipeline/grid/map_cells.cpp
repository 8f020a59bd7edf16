// SPDX-License-Identifier: BSD-3-Clause
// The pixels of a map as cells of a gridder.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/io/map/map_file.hpp"
#include "ryle/pipeline/grid/cells_text.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"
#include "ryle/plot/graticule.hpp"

namespace ryle {
namespace {

class MapCells final : public SkyCells {
 public:
  explicit MapCells(const MapProjection& map) : map_(map) {}
  std::int64_t n_cells() const override { return map_.width() * map_.height(); }
  std::int64_t width() const override { return map_.width(); }
  SkyFrame frame() const override { return map_.frame(); }
  double cell_deg() const override { return map_.cell_deg(); }
  std::string description() const override {
    return fmt::format("{} x {} {}", map_.width(), map_.height(), map_.projection());
  }

  void directions(std::int64_t first_cell, std::int64_t n, double* longitude_deg,
                  double* latitude_deg) const override {
    const std::int64_t width = map_.width();
    if (first_cell % width == 0 && n % width == 0) {
      map_.directions(first_cell / width, n / width, longitude_deg, latitude_deg);
      return;
    }
    std::vector<double> lon(width), lat(lon.size());
    for (std::int64_t cell = first_cell, end = first_cell + n; cell < end;) {
      const std::int64_t row = cell / width, x = cell % width;
      const std::int64_t taken = std::min(width - x, end - cell);
      map_.directions(row, 1, lon.data(), lat.data());
      std::copy_n(lon.data() + x, taken, longitude_deg + (cell - first_cell));
      std::copy_n(lat.data() + x, taken, latitude_deg + (cell - first_cell));
      cell += taken;
    }
  }

  std::array<double, 2> center() const override {
    std::array<double, 2> at{};
    directions(map_.height() / 2 * map_.width() + map_.width() / 2, 1, &at[0], &at[1]);
    return at;
  }

  std::string definition() const override {
    std::string text = fmt::format("map {} {}\n", map_.width(), map_.height());
    for (const std::string& card : map_.cards()) text += card + "\n";
    return text;
  }

  std::unique_ptr<CubeWriter> create(const std::string& path, std::int64_t n_channels,
                                     CubeValues values, const MapMetadata& metadata,
                                     bool overwrite) const override {
    return std::make_unique<MapFileWriter>(path, map_, n_channels, values, metadata, overwrite);
  }

  Panel picture(const std::vector<float>& plane, const MapMetadata& metadata) const override {
    return plot::map_panel(map_, plane, metadata);
  }

 private:
  MapProjection map_;
};

}  // namespace

std::unique_ptr<SkyCells> map_cells(const MapProjection& map) {
  return std::make_unique<MapCells>(map);
}

namespace io {

std::unique_ptr<SkyCells> map_cells_from(const std::string& definition) {
  std::istringstream in(definition);
  std::string word, line;
  std::int64_t width = 0, height = 0;
  in >> word >> width >> height;
  std::getline(in, line);
  std::vector<std::string> cards;
  while (std::getline(in, line)) cards.push_back(line);
  if (in.bad() || width < 1 || height < 1)
    throw FormatError("definition of a map: its size is not understood");
  return map_cells(MapProjection::from_cards(cards, width, height));
}

}  // namespace io
}  // namespace ryle
