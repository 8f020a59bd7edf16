// SPDX-License-Identifier: BSD-3-Clause
// The tables of a light curve database. Private to io/.
#pragma once
#include <cstdint>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle::io {

inline constexpr std::int64_t kApplicationId = 0x52796c65;  // "Ryle"
/// Raised when a table changes; readers and writers reject what is newer than they are.
inline constexpr std::int64_t kSchemaVersion = 2;

inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE band (
  id INTEGER PRIMARY KEY, n_bins INTEGER NOT NULL, first_center_hz REAL NOT NULL,
  last_center_hz REAL NOT NULL);
CREATE TABLE bin (
  band INTEGER NOT NULL REFERENCES band (id), bin INTEGER NOT NULL, center_hz REAL NOT NULL,
  width_hz REAL NOT NULL, PRIMARY KEY (band, bin)) WITHOUT ROWID;
CREATE TABLE source (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, ra_deg REAL, dec_deg REAL);
CREATE TABLE image (
  id INTEGER PRIMARY KEY, start_tai_ns INTEGER NOT NULL, centroid_tai_ns INTEGER NOT NULL,
  utc TEXT NOT NULL, exposure_s REAL NOT NULL, band INTEGER NOT NULL REFERENCES band (id),
  path TEXT NOT NULL, file TEXT NOT NULL);
CREATE TABLE sample (
  image INTEGER NOT NULL REFERENCES image (id), source INTEGER NOT NULL REFERENCES source (id),
  bin INTEGER NOT NULL, i REAL, q REAL, u REAL, v REAL, weight REAL NOT NULL,
  elevation_deg REAL, l REAL, m REAL, PRIMARY KEY (image, source, bin)) WITHOUT ROWID;
CREATE TABLE event (
  id INTEGER PRIMARY KEY, t_tai_ns INTEGER NOT NULL, utc TEXT NOT NULL, duration_s REAL NOT NULL,
  l REAL NOT NULL, m REAL NOT NULL, ra_deg REAL, dec_deg REAL, low_hz REAL, high_hz REAL,
  snr_i REAL, snr_q REAL, snr_u REAL, snr_v REAL, peak REAL, file TEXT NOT NULL, cutout BLOB,
  cutout_images INTEGER, cutout_planes INTEGER, cutout_rows INTEGER, cutout_columns INTEGER);
CREATE INDEX event_time ON event (t_tai_ns);
CREATE INDEX image_time ON image (start_tai_ns);
CREATE VIEW light_curve AS
  SELECT source.name AS source, image.utc, image.centroid_tai_ns, image.exposure_s, sample.bin,
    bin.center_hz, bin.width_hz, i, q, u, v, weight, elevation_deg, l, m
  FROM sample JOIN image ON image.id = sample.image JOIN source ON source.id = sample.source
    JOIN bin ON bin.band = image.band AND bin.bin = sample.bin;
)sql";

inline void check_schema_version(std::int64_t version, const std::string& path) {
  if (version == kSchemaVersion) return;
  if (version == 1) {
    throw UnsupportedError(
        "light curves of " + path +
        " have schema 1, which has a wrong frequency for a short last bin; read them with the Ryle "
        "that wrote them, or write another file (output.overwrite = true replaces this one)");
  }
  throw UnsupportedError("light curves of " + path + " have schema " + std::to_string(version) +
                         ", this Ryle knows " + std::to_string(kSchemaVersion) +
                         "; use the Ryle that wrote it, or another file");
}

}  // namespace ryle::io
