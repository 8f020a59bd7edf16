// SPDX-License-Identifier: BSD-3-Clause
// HEALPix pixels as cells of a gridder: nested order in memory, either order in the file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/map/cell_table.hpp"
#include "ryle/io/map/healpix.hpp"
#include "ryle/pipeline/grid/cells_region.hpp"
#include "ryle/pipeline/grid/cells_text.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kMaxHealpixCells = std::int64_t{1} << 31;
constexpr std::int64_t kMaxPanelPixels = 1000;

const char* order_name(HealpixOrder order) {
  return order == HealpixOrder::ring ? "ring" : "nested";
}

class HealpixCells final : public SkyCells {
 public:
  HealpixCells(const HealpixRequest& request, std::vector<healpix::Range> ranges)
      : request_(request), order_(healpix::order_of(request.nside)), ranges_(std::move(ranges)) {
    for (const healpix::Range& r : ranges_) {
      before_.push_back(n_cells_);
      n_cells_ += r.last - r.first;
    }
    if (n_cells_ == 0)
      throw ConfigError("no HEALPix pixel is within reach of a sample: there is nothing to map");
    if (n_cells_ > kMaxHealpixCells)
      throw UnsupportedError(
          fmt::format("HEALPix nside {}: {} pixels, more than 2^31; a smaller nside would do",
                      request_.nside, n_cells_));
  }

  std::int64_t n_cells() const override { return n_cells_; }
  std::int64_t width() const override { return 0; }
  SkyFrame frame() const override { return request_.frame; }
  double cell_deg() const override {
    return std::sqrt(kPi / 3) / static_cast<double>(request_.nside) / kDegree_rad;
  }
  std::string description() const override {
    return fmt::format("HEALPix nside {} {}, {}{} pixels", request_.nside,
                       order_name(request_.order), full() ? "all " : "", n_cells_);
  }

  void directions(std::int64_t first_cell, std::int64_t n, double* longitude_deg,
                  double* latitude_deg) const override {
    for (std::int64_t k = 0; k < n; ++k) {
      const auto c = healpix::center_of_nest(order_, pixel_of(first_cell + k));
      const double lon = std::atan2(c[1], c[0]) / kDegree_rad;
      longitude_deg[k] = lon < 0 ? lon + 360 : lon;
      latitude_deg[k] = std::atan2(c[2], std::hypot(c[0], c[1])) / kDegree_rad;
    }
  }

  std::array<double, 2> center() const override {
    const io::Region r = region();
    return {r.longitude_deg, r.latitude_deg};
  }

  std::string definition() const override {
    std::string text = fmt::format("healpix {} {} {}\n", request_.nside, order_name(request_.order),
                                   to_string(request_.frame));
    for (const healpix::Range& r : ranges_) text += fmt::format("{} {}\n", r.first, r.last);
    return text;
  }

  std::unique_ptr<CubeWriter> create(const std::string& path, std::int64_t n_channels,
                                     CubeValues values, const MapMetadata& metadata,
                                     bool overwrite) const override;
  Panel picture(const std::vector<float>& plane, const MapMetadata& metadata) const override;
  // Numbers of the pixels of the rows, in ring order the cells of the rows, too.
  WriterMemory writer_memory(std::int64_t n_channels, CubeValues values) const override {
    const std::int64_t cells = request_.order == HealpixOrder::ring ? 8 * n_cells_ : 0;
    const std::int64_t kept = cells + io::cell_table_bytes(n_cells_, n_channels, values);
    return full() ? WriterMemory{kept, 8 * n_cells_} : WriterMemory{kept + 8 * n_cells_, 0};
  }

 private:
  bool full() const { return n_cells_ == healpix::n_pixels(order_); }
  std::int64_t pixel_of(std::int64_t cell) const {
    const auto r = static_cast<std::size_t>(std::upper_bound(before_.begin(), before_.end(), cell) -
                                            before_.begin() - 1);
    return ranges_[r].first + cell - before_[r];
  }
  /// -1: not covered.
  std::int64_t cell_of(std::int64_t pixel) const {
    const auto next =
        std::upper_bound(ranges_.begin(), ranges_.end(), pixel,
                         [](std::int64_t p, const healpix::Range& r) { return p < r.first; });
    if (next == ranges_.begin()) return -1;
    const auto r = static_cast<std::size_t>(next - ranges_.begin() - 1);
    return pixel < ranges_[r].last ? before_[r] + pixel - ranges_[r].first : -1;
  }
  io::Region region() const {
    return io::region_of(n_cells_, [&](std::int64_t cell) {
      return healpix::center_of_nest(order_, pixel_of(cell));
    });
  }

  HealpixRequest request_;
  int order_;
  std::vector<healpix::Range> ranges_;
  std::vector<std::int64_t> before_;  ///< cells before each range
  std::int64_t n_cells_ = 0;
};

// Gorski's FITS convention; a part of the sky says its pixels in a column (INDXSCHM EXPLICIT).
std::unique_ptr<CubeWriter> HealpixCells::create(const std::string& path, std::int64_t n_channels,
                                                 CubeValues values, const MapMetadata& metadata,
                                                 bool overwrite) const {
  io::CellTable table;
  table.name = "HEALPIX";
  table.n_rows = n_cells_;
  std::vector<std::int64_t> pixels(n_cells_);  // of the rows
  for (std::int64_t i = 0; i < n_cells_; ++i) pixels[i] = pixel_of(i);
  const bool ring = request_.order == HealpixOrder::ring;
  if (ring) {
    for (auto& p : pixels) p = healpix::ring_of_nest(order_, p);
    auto& cells = table.cell_of_row;
    cells.resize(pixels.size());
    std::iota(cells.begin(), cells.end(), std::int64_t{0});
    std::sort(cells.begin(), cells.end(),
              [&](std::int64_t a, std::int64_t b) { return pixels[a] < pixels[b]; });
    std::sort(pixels.begin(), pixels.end());
  }
  const std::int64_t first = pixels.front(), last = pixels.back();
  if (full()) {
    table.prefix = [](std::int64_t, std::uint8_t*) {};
  } else {
    const bool wide = healpix::n_pixels(order_) > kMaxHealpixCells;
    table.columns = {"PIXEL"};
    table.forms = {wide ? "1K" : "1J"};
    table.units = {""};
    table.prefix_bytes = wide ? 8 : 4;
    table.prefix = [pixels = std::move(pixels), wide](std::int64_t row, std::uint8_t* to) {
      io::put_big_endian(to, static_cast<std::uint64_t>(pixels[row]), wide ? 8 : 4);
    };
  }
  table.header = [this, ring, first, last](io::FitsFile& file) {
    file.key("PIXTYPE", std::string("HEALPIX"));
    file.key("ORDERING", std::string(ring ? "RING" : "NESTED"));
    file.key("NSIDE", static_cast<long long>(request_.nside));
    file.key("FIRSTPIX", static_cast<long long>(first));
    file.key("LASTPIX", static_cast<long long>(last));
    file.key("INDXSCHM", std::string(full() ? "IMPLICIT" : "EXPLICIT"));
    file.key("OBJECT", std::string(full() ? "FULLSKY" : "PARTIAL"), "of the sky");
    const bool galactic = request_.frame == SkyFrame::galactic;
    file.key("COORDSYS", std::string(galactic ? "G" : "C"), galactic ? "galactic" : "celestial");
    if (galactic) return;
    file.key("RADESYS", std::string(request_.frame == SkyFrame::fk5 ? "FK5" : "ICRS"));
    if (request_.frame == SkyFrame::fk5) file.key("EQUINOX", 2000.0);
  };
  return io::create_cell_table(path, std::move(table), n_channels, values, metadata, overwrite);
}

Panel HealpixCells::picture(const std::vector<float>& plane, const MapMetadata& metadata) const {
  const bool wide = 4 * n_cells_ > healpix::n_pixels(order_);
  const MapProjection map =
      wide ? io::whole_sky_map(request_.frame)
           : io::region_map(region(), request_.frame, 0.5 * cell_deg(), kMaxPanelPixels);
  return io::sampled_panel(map, metadata, [&](const io::Point& p) {
    const std::int64_t cell = cell_of(healpix::nest_of(order_, p[0], p[1], p[2]));
    return cell < 0 ? kNaN : plane[cell];
  });
}

}  // namespace

std::unique_ptr<SkyCells> healpix_cells(const HealpixRequest& request, std::int64_t n_samples,
                                        const double* x, const double* y, const double* z) {
  const int order = healpix::order_of(request.nside);
  if (!request.full && !(request.reach_rad > 0))
    throw ConfigError("the covered part of the sky needs the reach of a sample");
  auto ranges = request.full ? std::vector<healpix::Range>{{0, healpix::n_pixels(order)}}
                             : healpix::covered(order, request.reach_rad, n_samples, x, y, z);
  return std::make_unique<HealpixCells>(request, std::move(ranges));
}

namespace io {

std::unique_ptr<SkyCells> healpix_cells_from(const std::string& definition) {
  std::istringstream in(definition);
  std::string word, order, frame;
  HealpixRequest request;
  in >> word >> request.nside >> order >> frame;
  request.order = order == "ring" ? HealpixOrder::ring : HealpixOrder::nested;
  request.frame = parse_sky_frame(frame);
  const std::int64_t n_pixels = healpix::n_pixels(healpix::order_of(request.nside));
  std::vector<healpix::Range> ranges;
  std::int64_t end = 0;
  for (healpix::Range r; in >> r.first >> r.last; end = r.last) {
    if (r.first < end || r.last <= r.first || r.last > n_pixels)
      throw FormatError("definition of HEALPix cells: ranges that do not ascend");
    ranges.push_back(r);
  }
  if (!in.eof()) throw FormatError("definition of HEALPix cells: a range that is none");
  return std::make_unique<HealpixCells>(request, std::move(ranges));
}

}  // namespace io
}  // namespace ryle
