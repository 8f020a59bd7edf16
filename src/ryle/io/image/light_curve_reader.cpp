// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sqlite_file.hpp"
#include "ryle/io/beam/voevent.hpp"
#include "ryle/io/image/light_curve.hpp"
#include "ryle/io/image/light_curve_schema.hpp"

namespace ryle {
namespace {

using io::Database;
using io::Statement;

/// Writes `header` and then lines that `next` produces until it returns false; published whole.
void publish_lines(const std::string& path, const std::string& header,
                   const std::function<bool(std::string&)>& next, bool overwrite) {
  prepare_part(path, overwrite);
  const auto fail = [&](const char* operation, int error) {
    discard_part(path);
    throw IoError::from_errno(operation, path, error, true);
  };
  std::FILE* file = std::fopen(part_path(path).c_str(), "wbx");
  if (file == nullptr) fail("create", errno);
  std::string line = header;
  bool good = true;
  int error = 0;
  do {
    line += '\n';
    good = std::fwrite(line.data(), 1, line.size(), file) == line.size();
    if (!good) error = errno;
    line.clear();
  } while (good && next(line));
  if (std::fclose(file) != 0 && good) {
    good = false;
    error = errno;
  }
  if (!good) fail("write", error);
  publish_part(path, overwrite);
}

/// A field of a CSV line: quoted where it must be (RFC 4180).
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

/// Shortest text that reads back as the same double; nothing for NaN.
std::string field(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

}  // namespace

struct LightCurveReader::Impl {
  explicit Impl(const std::string& path) : db(path, Database::Mode::read, 5) {
    const std::int64_t id = db.number("PRAGMA application_id");
    if (id != io::kApplicationId) {
      throw FormatError("cannot read light curves of " + path +
                        ": it is a database of another program");
    }
    io::check_schema_version(db.number("PRAGMA user_version"), path);
  }
  Database db;
};

LightCurveReader::LightCurveReader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
LightCurveReader::~LightCurveReader() = default;

std::vector<WatchTarget> LightCurveReader::sources() {
  std::vector<WatchTarget> out;
  Statement row(impl_->db, "SELECT name, ra_deg, dec_deg FROM source ORDER BY id");
  while (row.step()) {
    WatchTarget target{row.text(0), std::nullopt};
    if (!std::isnan(row.real(1)))
      target.fixed = SkyDirection{row.real(1) * kDegree_rad, row.real(2) * kDegree_rad};
    out.push_back(std::move(target));
  }
  return out;
}

std::int64_t LightCurveReader::n_images() { return impl_->db.number("SELECT count(*) FROM image"); }

std::vector<LightCurvePoint> LightCurveReader::light_curve(const std::string& source) {
  Statement find(impl_->db, "SELECT id FROM source WHERE name = ?");
  find.bind(1, std::string_view(source));
  if (!find.step()) {
    std::string names;
    for (const auto& known : sources()) names += (names.empty() ? "" : ", ") + known.name;
    throw ConfigError("no light curve of \"" + source + "\" in " + impl_->db.path() +
                      "; it has: " + names);
  }
  Statement row(
      impl_->db,
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
    for (int k = 0; k < 4; ++k) p.stokes[k] = row.real(6 + k);
    p.weight = row.real(10);
    p.elevation_rad = row.real(11) * kDegree_rad;
    p.l = row.real(12);
    p.m = row.real(13);
    p.width_hz = row.real(14);
    points.push_back(p);
  }
  return points;
}

std::vector<ImageEvent> LightCurveReader::events() {
  Statement row(impl_->db,
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
    for (int k = 0; k < 4; ++k) e.snr[k] = row.real(8 + k);
    e.peak = row.real(12);
    e.file = row.text(13);
    const auto bytes = row.blob(14);
    e.cutout.resize(bytes.size() / sizeof(float));
    if (!e.cutout.empty()) std::memcpy(e.cutout.data(), bytes.data(), bytes.size());
    for (int k = 0; k < 4; ++k) e.cutout_shape[k] = row.integer(15 + k);
    out.push_back(std::move(e));
  }
  return out;
}

std::string LightCurveReader::integrity() {
  Statement row(impl_->db, "PRAGMA integrity_check");
  return row.step() ? row.text(0) : "no answer";
}

void LightCurveReader::export_samples_csv(const std::string& path, bool overwrite) {
  Statement row(
      impl_->db,
      "SELECT utc, start_tai_ns, exposure_s, name, sample.bin, bin.center_hz, i, q, u, v, "
      "weight, elevation_deg, l, m, image.path, file FROM sample JOIN image ON image.id = "
      "sample.image JOIN bin ON bin.band = image.band AND bin.bin = sample.bin JOIN "
      "source ON source.id = sample.source ORDER BY start_tai_ns, image.id, source.id, "
      "sample.bin");
  publish_lines(
      path,
      "utc,start_tai_ns,exposure_s,source,bin,center_hz,i,q,u,v,weight,elevation_deg,l,m,path,file",
      [&](std::string& line) {
        if (!row.step()) return false;
        line = fmt::format("{},{},{},{},{},{}", row.text(0), row.integer(1), field(row.real(2)),
                           quoted(row.text(3)), row.integer(4), field(row.real(5)));
        for (int k = 6; k <= 13; ++k) line += "," + field(row.real(k));
        line += "," + quoted(row.text(14)) + "," + quoted(row.text(15));
        return true;
      },
      overwrite);
}

void LightCurveReader::export_events_csv(const std::string& path, bool overwrite) {
  Statement row(impl_->db,
                "SELECT utc, t_tai_ns, duration_s, l, m, ra_deg, dec_deg, low_hz, high_hz, snr_i, "
                "snr_q, snr_u, snr_v, peak, file FROM event ORDER BY t_tai_ns, id");
  publish_lines(
      path,
      "utc,t_tai_ns,duration_s,l,m,ra_deg,dec_deg,low_hz,high_hz,snr_i,snr_q,snr_u,snr_v,peak,file",
      [&](std::string& line) {
        if (!row.step()) return false;
        line = fmt::format("{},{}", row.text(0), row.integer(1));
        for (int k = 2; k <= 13; ++k) line += "," + field(row.real(k));
        line += "," + quoted(row.text(14));
        return true;
      },
      overwrite);
}

std::string voevent_xml(const ImageEvent& e, const Observation& observation, std::int64_t number,
                        const VoEventOptions& options) {
  using io::voevent_parameter;
  io::VoEventFrame frame;
  frame.observation = !options.simulated;
  frame.telescope = observation.array.name;
  frame.tai_ns = e.tai_ns;
  frame.author_tai_ns = options.author_tai_ns;
  frame.number = number;
  frame.time_error_s = e.duration_s / 2;
  frame.position = e.direction;
  frame.position_error_rad = options.position_error_rad;
  std::string what = "    <Group name=\"event\">\n";
  what += voevent_parameter("duration", e.duration_s, "s", "time.duration");
  what += voevent_parameter("l", e.l, "", "pos.cartesian.x");
  what += voevent_parameter("m", e.m, "", "pos.cartesian.y");
  what += voevent_parameter("low", e.low_hz, "Hz", "em.freq;stat.min");
  what += voevent_parameter("high", e.high_hz, "Hz", "em.freq;stat.max");
  const char* const names[] = {"snr_i", "snr_q", "snr_u", "snr_v"};
  for (int k = 0; k < 4; ++k) what += voevent_parameter(names[k], e.snr[k], "", "stat.snr");
  what += voevent_parameter("peak", e.peak, observation.flux_unit == "Jy" ? "Jy" : "", "phot.flux");
  what += fmt::format(
      "    </Group>\n    <Description>image-plane trigger of Ryle {}</Description>\n", version());
  // Nobody has looked at it: that it is a flash in the radio sky is all there is to say.
  return io::voevent_document(
      frame, what,
      "  <Why><Inference><Concept>process.variation.burst;em.radio</Concept>"
      "<Description>short flash in all-sky images</Description></Inference></Why>\n");
}

}  // namespace ryle
