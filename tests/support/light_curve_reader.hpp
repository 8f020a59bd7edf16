// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/sqlite_file.hpp"
#include "ryle/io/image/light_curve.hpp"

/// Light curves as anyone reads them: by SQL.
namespace ryle::test {

struct LightCurvePoint {
  std::int64_t image = 0;
  std::int64_t start_tai_ns = 0, centroid_tai_ns = 0;
  double exposure_s = 0;
  std::int64_t bin = 0;
  double center_hz = 0, width_hz = 0;
  std::array<double, 4> stokes{};
  double weight = 0, elevation_rad = 0, l = 0, m = 0;
};

class LightCurveReader {
 public:
  using Statement = io::Statement;

  explicit LightCurveReader(const std::string& path) : db_(path, io::Database::Mode::read, 5) {}

  std::vector<WatchTarget> sources() {
    std::vector<WatchTarget> out;
    Statement row(db_, "SELECT name, ra_deg, dec_deg FROM source ORDER BY id");
    while (row.step()) {
      WatchTarget target{row.text(0), std::nullopt};
      if (!std::isnan(row.real(1)))
        target.fixed = SkyDirection{row.real(1) * kDegree_rad, row.real(2) * kDegree_rad};
      out.push_back(std::move(target));
    }
    return out;
  }

  std::int64_t n_images() { return db_.number("SELECT count(*) FROM image"); }

  std::vector<LightCurvePoint> light_curve(const std::string& source) {
    Statement find(db_, "SELECT id FROM source WHERE name = ?");
    find.bind(1, std::string_view(source));
    if (!find.step()) {
      std::string names;
      for (const auto& known : sources()) names += (names.empty() ? "" : ", ") + known.name;
      throw ConfigError("no light curve of \"" + source + "\" in " + db_.path() +
                        "; it has: " + names);
    }
    Statement row(
        db_,
        "SELECT image.id, start_tai_ns, centroid_tai_ns, exposure_s, sample.bin, "
        "bin.center_hz, i, q, u, v, weight, elevation_deg, l, m, bin.width_hz FROM sample "
        "JOIN image ON image.id = sample.image JOIN bin ON bin.band = image.band AND "
        "bin.bin = sample.bin WHERE source = ? ORDER BY start_tai_ns, image.id, sample.bin");
    row.bind(1, find.integer(0));
    std::vector<LightCurvePoint> points;
    while (row.step()) {
      LightCurvePoint p;
      p.image = row.integer(0);
      p.start_tai_ns = row.integer(1);
      p.centroid_tai_ns = row.integer(2);
      p.exposure_s = row.real(3);
      p.bin = row.integer(4);
      p.center_hz = row.real(5);
      for (int k = 0; k < 4; ++k) p.stokes[static_cast<std::size_t>(k)] = row.real(6 + k);
      p.weight = row.real(10);
      p.elevation_rad = row.real(11) * kDegree_rad;
      p.l = row.real(12);
      p.m = row.real(13);
      p.width_hz = row.real(14);
      points.push_back(p);
    }
    return points;
  }

  std::vector<ImageEvent> events() {
    Statement row(db_,
                  "SELECT t_tai_ns, duration_s, l, m, ra_deg, dec_deg, low_hz, high_hz, snr_i, "
                  "snr_q, snr_u, snr_v, peak, file, cutout, cutout_images, cutout_planes, "
                  "cutout_rows, cutout_columns FROM event ORDER BY t_tai_ns, id");
    std::vector<ImageEvent> out;
    while (row.step()) {
      ImageEvent e;
      e.tai_ns = row.integer(0);
      e.duration_s = row.real(1);
      e.l = row.real(2);
      e.m = row.real(3);
      e.direction = {row.real(4) * kDegree_rad, row.real(5) * kDegree_rad};
      e.low_hz = row.real(6);
      e.high_hz = row.real(7);
      for (int k = 0; k < 4; ++k) e.snr[static_cast<std::size_t>(k)] = row.real(8 + k);
      e.peak = row.real(12);
      e.file = row.text(13);
      const auto bytes = row.blob(14);
      e.cutout.resize(bytes.size() / sizeof(float));
      if (!e.cutout.empty()) std::memcpy(e.cutout.data(), bytes.data(), bytes.size());
      for (int k = 0; k < 4; ++k) e.cutout_shape[static_cast<std::size_t>(k)] = row.integer(15 + k);
      out.push_back(std::move(e));
    }
    return out;
  }

  /// SQLite's own check of the whole file: "ok" or what is wrong.
  std::string integrity() {
    Statement row(db_, "PRAGMA integrity_check");
    return row.step() ? row.text(0) : "no answer";
  }

 private:
  io::Database db_;
};

}  // namespace ryle::test
