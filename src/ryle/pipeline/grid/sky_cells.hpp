// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/image/cube_writer.hpp"
#include "ryle/io/map/map_projection.hpp"
#include "ryle/plot/picture.hpp"

/// Where a gridder makes its sums: pixels of a map, HEALPix pixels, or a list of sight lines. One
/// interface tells the directions of the cells, writes the products and draws.
namespace ryle {

/// Immutable; any number of threads.
class SkyCells {
 public:
  virtual ~SkyCells() = default;
  virtual std::int64_t n_cells() const = 0;
  /// Cells in a row of a map, which divides their number; 0: a list, neighbours of which are
  /// neighbours on the sky.
  virtual std::int64_t width() const = 0;
  virtual SkyFrame frame() const = 0;
  /// "1650 x 300 SIN", "HEALPix nside 2048 nested, 81234 pixels", "12 sight lines"
  virtual std::string description() const = 0;
  virtual double cell_deg() const = 0;  ///< side of a cell; 0: it has none
  /// Centers of cells [first, first + n); NaN off the projection. @unit degrees
  virtual void directions(std::int64_t first_cell, std::int64_t n, double* longitude_deg,
                          double* latitude_deg) const = 0;
  /// Longitude and latitude of the middle; NaN where there is none. @unit degrees
  virtual std::array<double, 2> center() const = 0;
  /// A text from which cells_from_definition() makes the same cells: equal texts, equal cells.
  virtual std::string definition() const = 0;
  /// Throws IoError when the file exists and not `overwrite`, UnsupportedError when the format
  /// cannot hold it.
  virtual std::unique_ptr<CubeWriter> create(const std::string& path, std::int64_t n_channels,
                                             CubeValues values, const MapMetadata& metadata,
                                             bool overwrite) const = 0;
  /// What the list of cells itself takes, its definition included. @unit bytes
  virtual std::int64_t kept_bytes() const { return 0; }
  /// What a file of create() holds while it is written, and more while it is made. @unit bytes
  struct WriterMemory {
    std::int64_t kept = 0, making = 0;
  };
  virtual WriterMemory writer_memory(std::int64_t /*n_channels*/, CubeValues /*values*/) const {
    return {};
  }
  /// A picture of one plane with its coordinates and the beam of the metadata; title, color label
  /// and color map are the caller's.
  virtual Panel picture(const std::vector<float>& plane, const MapMetadata& metadata) const = 0;
};

/// The pixels of a map, row by row; FITS cubes.
std::unique_ptr<SkyCells> map_cells(const MapProjection& map);

enum class HealpixOrder : std::uint8_t { nested, ring };
struct HealpixRequest {
  std::int64_t nside = 0;                     ///< a power of two up to 2^29
  HealpixOrder order = HealpixOrder::nested;  ///< of the file; the cells are always in nested order
  SkyFrame frame = SkyFrame::icrs;
  bool full = false;  ///< the whole sky; else pixels whose centers are nearer than `reach_rad` to a
                      ///< sample
  double reach_rad = 0;
};
/// Unit vectors of the samples in the frame of the request, NaN = none; not looked at when `full`.
/// Throws ConfigError for an nside that is none, UnsupportedError for more than 2^31 cells.
std::unique_ptr<SkyCells> healpix_cells(const HealpixRequest& request, std::int64_t n_samples,
                                        const double* x, const double* y, const double* z);

struct SightLine {
  std::string name;
  double longitude_deg = 0, latitude_deg = 0;
};
/// The cells are in the order of neighbours on the sky, the rows of the tables in the given order.
std::unique_ptr<SkyCells> sight_line_cells(std::vector<SightLine> lines, SkyFrame frame);
struct SightLineFile {
  std::vector<SightLine> lines;
  bool equatorial = false, galactic = false;  ///< what the names of the columns say
};
/// CSV with the columns name, lon and lat (or ra and dec, or glon and glat) in degrees, named by
/// its first line; the name may be absent. Throws FormatError with the line at fault.
SightLineFile read_sight_lines(const std::string& path);

/// What definition() wrote. Throws FormatError.
std::unique_ptr<SkyCells> cells_from_definition(const std::string& definition);

}  // namespace ryle
