// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Pixels of a sky map and where they are: every projection that wcslib knows.
namespace ryle {

enum class SkyFrame : std::uint8_t { icrs, fk5, galactic };
const char* to_string(SkyFrame frame);
/// "icrs", "fk5", "galactic"; throws ConfigError.
SkyFrame parse_sky_frame(const std::string& name);
/// 3 x 3 rotation, row major: to_vector = R from_vector (ERFA).
std::array<double, 9> frame_rotation(SkyFrame from, SkyFrame to);

struct MapRequest {
  std::string projection = "SIN";  ///< FITS code
  SkyFrame frame = SkyFrame::icrs;
  double center_longitude_deg = 0, center_latitude_deg = 0;
  double cell_deg = 0;
  std::int64_t width = 0, height = 0;  ///< pixels
};

class MapProjection {
 public:
  /// Center at pixel (N/2 + 1, N/2 + 1) counted from 1, longitude growing to smaller x. Throws
  /// ConfigError for a projection that wcslib does not know, or sizes that are none.
  static MapProjection make(const MapRequest& request);
  /// The celestial axes of a FITS image, whichever they are. Throws FormatError when it has none.
  static MapProjection read(const std::string& path);

  /// What cards() gave, for a map of this size. Throws FormatError.
  static MapProjection from_cards(const std::vector<std::string>& cards, std::int64_t width,
                                  std::int64_t height);

  std::int64_t width() const;
  std::int64_t height() const;
  SkyFrame frame() const;
  std::string projection() const;  ///< "SIN"
  double cell_deg() const;         ///< along y
  double cell_aspect() const;      ///< step along y over that along x, in the plane of projection
  /// Longitudes and latitudes of the centers of rows [first, first + n); NaN off the projection.
  void directions(std::int64_t first_row, std::int64_t n_rows, double* longitude_deg,
                  double* latitude_deg) const;
  /// Pixel (from 0, fractional) of a direction; NaN where it is not on the map's projection.
  std::array<double, 2> pixel_of(double longitude_deg, double latitude_deg) const;
  /// Cards of axes 1 and 2 for a FITS header, 80 characters each.
  std::vector<std::string> cards() const;

 private:
  struct Impl;
  explicit MapProjection(std::shared_ptr<const Impl> content) : impl_(std::move(content)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ryle
