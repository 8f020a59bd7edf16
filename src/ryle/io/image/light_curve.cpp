// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/image/light_curve.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/sqlite_file.hpp"
#include "ryle/io/beam/voevent.hpp"
#include "ryle/io/image/light_curve_schema.hpp"

namespace ryle {
namespace {

using io::Database;
using io::Statement;

void drop_everything(Database& db) {
  std::vector<std::string> drops;
  {
    Statement row(
        db,
        "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'table') AND name NOT "
        "LIKE 'sqlite_%'");
    while (row.step()) drops.push_back("DROP " + row.text(0) + " \"" + row.text(1) + "\"");
  }
  for (const auto& drop : drops) db.run(drop.c_str());
}

/// A file that is there must be ours before a byte of it changes.
void check_or_create_schema(Database& db, bool overwrite) {
  // The first statement that reads the file tells whether it is a database at all.
  const std::int64_t version = db.number("PRAGMA user_version");
  const std::int64_t id = db.number("PRAGMA application_id");
  const std::int64_t n_tables = db.number("SELECT count(*) FROM sqlite_master");
  const bool ours = id == io::kApplicationId;
  if (ours && !overwrite) {
    io::check_schema_version(version, db.path());
    return;
  }
  if (!ours && (n_tables > 0 || id != 0)) {
    throw FormatError("cannot write light curves to " + db.path() +
                      ": it is another program's database; choose another name");
  }
  db.run("BEGIN IMMEDIATE");
  if (ours) drop_everything(db);
  db.run(io::kSchema);
  db.run(("PRAGMA application_id = " + std::to_string(io::kApplicationId)).c_str());
  db.run(("PRAGMA user_version = " + std::to_string(io::kSchemaVersion)).c_str());
  db.run("COMMIT");
  // Gives the space back; while others read it is kept for what comes.
  if (ours) sqlite3_exec(db.get(), "VACUUM", nullptr, nullptr, nullptr);
}

bool same_bins(const std::vector<FrequencyBin>& a, const std::vector<FrequencyBin>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.center_hz == y.center_hz && x.width_hz == y.width_hz;
  });
}

std::vector<FrequencyBin> bins_of(Database& db, std::int64_t band) {
  Statement row(db, "SELECT center_hz, width_hz FROM bin WHERE band = ? ORDER BY bin");
  row.bind(1, band);
  std::vector<FrequencyBin> bins;
  while (row.step()) bins.push_back({row.real(0), row.real(1), 0});
  return bins;
}

}  // namespace

struct LightCurveStore::Impl {
  Impl(const std::string& path, const LightCurveOptions& wanted)
      : db(path, Database::Mode::create, wanted.busy_timeout_s), options(wanted) {}

  void prepare(const Observation& observation) {
    // WAL: readers never wait, a kill loses only what was not committed; NORMAL: fsync at
    // checkpoints.
    check_or_create_schema(db, options.overwrite);
    db.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    if (options.max_bytes > 0) {
      const std::int64_t page = std::max<std::int64_t>(db.number("PRAGMA page_size"), 512);
      db.run(("PRAGMA max_page_count = " + std::to_string(options.max_bytes / page + 1)).c_str());
    }
    insert_image.emplace(db,
                         "INSERT INTO image (start_tai_ns, centroid_tai_ns, utc, exposure_s, band, "
                         "path, file) VALUES (?,?,?,?,?,?,?)");
    insert_sample.emplace(db,
                          "INSERT INTO sample (image, source, bin, i, q, u, v, weight, "
                          "elevation_deg, l, m) VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    run_or_abandon([&] {
      Statement meta(db, "INSERT OR REPLACE INTO meta (key, value) VALUES (?,?)");
      const auto put = [&](const char* key, const std::string& value) {
        meta.bind(1, std::string_view(key)).bind(2, std::string_view(value)).execute();
      };
      put("creator", "ryle " + std::string(version()));
      if (!observation.array.name.empty()) put("telescope", observation.array.name);
      put("observation", observation_to_json(observation));
    });
    commit();
  }

  void begin() {
    if (open) return;
    db.run("BEGIN IMMEDIATE");
    open = true;
    n_pending = 0;
    since = std::chrono::steady_clock::now();
  }

  void roll_back() noexcept {
    if (!open) return;
    sqlite3_exec(db.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    open = false;
    n_lost += n_pending;
    n_pending = 0;
    band_id = 0;
  }

  void commit() {
    if (!open) return;
    try {
      db.run("COMMIT");
      open = false;
      n_pending = 0;
    } catch (...) {
      roll_back();
      throw;
    }
  }

  /// Runs f in the batch; an error takes the batch back.
  template <class F>
  void run_or_abandon(F&& f) {
    try {
      begin();
      f();
    } catch (...) {
      roll_back();
      throw;
    }
  }

  std::int64_t band_of(const std::vector<FrequencyBin>& bins) {
    if (bins.empty()) throw ConfigError("light curves of " + db.path() + ": an image without bins");
    if (band_id != 0 && same_bins(bins, band)) return band_id;
    const auto n = static_cast<std::int64_t>(bins.size());
    std::int64_t id = 0;
    {
      Statement find(db, "SELECT id FROM band WHERE n_bins = ? AND first_center_hz = ?");
      find.bind(1, n).bind(2, bins.front().center_hz);
      while (find.step()) {
        if (id == 0 && same_bins(bins_of(db, find.integer(0)), bins)) id = find.integer(0);
      }
    }
    if (id == 0) id = insert_band(bins);
    band = bins;
    band_id = id;
    return id;
  }

  std::int64_t insert_band(const std::vector<FrequencyBin>& bins) {
    Statement insert(db,
                     "INSERT INTO band (n_bins, first_center_hz, last_center_hz) VALUES (?,?,?)");
    insert.bind(1, static_cast<std::int64_t>(bins.size())).bind(2, bins.front().center_hz);
    insert.bind(3, bins.back().center_hz).execute();
    const std::int64_t id = db.last_row_id();
    Statement row(db, "INSERT INTO bin (band, bin, center_hz, width_hz) VALUES (?,?,?,?)");
    for (std::size_t k = 0; k < bins.size(); ++k) {
      row.bind(1, id).bind(2, static_cast<std::int64_t>(k));
      row.bind(3, bins[k].center_hz).bind(4, bins[k].width_hz).execute();
    }
    return id;
  }

  Database db;
  LightCurveOptions options;
  std::optional<Statement> insert_image, insert_sample;
  std::vector<FrequencyBin> band;
  std::int64_t band_id = 0;
  bool open = false;
  std::int64_t n_pending = 0, n_lost = 0;
  std::chrono::steady_clock::time_point since;
};

LightCurveStore::LightCurveStore(const std::string& path, const Observation& observation,
                                 const LightCurveOptions& options) {
  const bool ours = !std::filesystem::exists(path);
  try {
    impl_ = std::make_unique<Impl>(path, options);
    impl_->prepare(observation);
  } catch (...) {  // an empty database would be in the way of the next attempt
    impl_.reset();
    if (ours) io::remove_database(path);
    throw;
  }
}

LightCurveStore::~LightCurveStore() {
  try {
    commit();
  } catch (...) {  // commit() is there for those who want to know
  }
}

const std::string& LightCurveStore::path() const { return impl_->db.path(); }
std::int64_t LightCurveStore::n_lost_images() const { return impl_->n_lost; }
void LightCurveStore::commit() { impl_->commit(); }

std::int64_t LightCurveStore::source(const WatchTarget& target) {
  Impl& c = *impl_;
  const double ra_deg = target.fixed ? target.fixed->ra_rad / kDegree_rad : kNaN;
  const double dec_deg = target.fixed ? target.fixed->dec_rad / kDegree_rad : kNaN;
  const auto differs = [](double a, double b) {
    return std::isnan(a) != std::isnan(b) || std::abs(a - b) > 1e-9;
  };
  Statement find(c.db, "SELECT id, ra_deg, dec_deg FROM source WHERE name = ?");
  find.bind(1, std::string_view(target.name));
  if (find.step()) {
    if (differs(find.real(1), ra_deg) || differs(find.real(2), dec_deg)) {
      throw ConfigError("source \"" + target.name + "\" of " + c.db.path() +
                        " lies at another place; give the new one another name (NAME=RA,DEC)");
    }
    return find.integer(0);
  }
  std::int64_t id = 0;
  c.run_or_abandon([&] {
    Statement insert(c.db, "INSERT INTO source (name, ra_deg, dec_deg) VALUES (?,?,?)");
    insert.bind(1, std::string_view(target.name)).bind(2, ra_deg).bind(3, dec_deg).execute();
    id = c.db.last_row_id();
  });
  if (c.n_pending == 0) c.commit();  // no lock is held while nothing is measured
  return id;
}

std::int64_t LightCurveStore::append(const LightCurveImage& image,
                                     std::span<const LightCurveSample> samples) {
  Impl& c = *impl_;
  std::int64_t id = 0;
  c.run_or_abandon([&] {
    ++c.n_pending;  // counts as lost when anything below fails
    const std::string utc = utc_iso(image.start_tai_ns, 6);
    c.insert_image->bind(1, image.start_tai_ns)
        .bind(2, image.centroid_tai_ns)
        .bind(3, std::string_view(utc))
        .bind(4, image.exposure_s)
        .bind(5, c.band_of(image.bins))
        .bind(6, std::string_view(image.path))
        .bind(7, std::string_view(image.file))
        .execute();
    id = c.db.last_row_id();
    for (const LightCurveSample& s : samples) {
      Statement& row = *c.insert_sample;
      row.bind(1, id).bind(2, s.source).bind(3, s.bin);
      for (int k = 0; k < 4; ++k) {
        row.bind(4 + k, s.weight > 0 ? s.stokes[k] : kNaN);
      }
      row.bind(8, s.weight).bind(9, s.elevation_rad / kDegree_rad).bind(10, s.l).bind(11, s.m);
      row.execute();
    }
  });
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - c.since;
  if (c.n_pending >= c.options.images_per_commit || age.count() >= c.options.commit_interval_s)
    c.commit();
  return id;
}

std::int64_t LightCurveStore::append(const ImageEvent& e) {
  Impl& c = *impl_;
  std::int64_t n_values = 1;
  for (const std::int64_t n : e.cutout_shape) n_values *= n;
  if (n_values != static_cast<std::int64_t>(e.cutout.size())) {
    throw ConfigError("event cutout: " + std::to_string(e.cutout.size()) + " values for " +
                      std::to_string(n_values));
  }
  std::int64_t id = 0;
  c.run_or_abandon([&] {
    Statement row(c.db,
                  "INSERT INTO event (t_tai_ns, utc, duration_s, l, m, ra_deg, dec_deg, low_hz, "
                  "high_hz, snr_i, snr_q, snr_u, snr_v, peak, file, cutout, cutout_images, "
                  "cutout_planes, cutout_rows, cutout_columns) VALUES "
                  "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    const std::string utc = utc_iso(e.tai_ns, 6);
    row.bind(1, e.tai_ns).bind(2, std::string_view(utc)).bind(3, e.duration_s);
    row.bind(4, e.l).bind(5, e.m);
    row.bind(6, e.direction.ra_rad / kDegree_rad).bind(7, e.direction.dec_rad / kDegree_rad);
    row.bind(8, e.low_hz).bind(9, e.high_hz);
    for (int k = 0; k < 4; ++k) row.bind(10 + k, e.snr[k]);
    row.bind(14, e.peak).bind(15, std::string_view(e.file));
    row.bind_blob(16, std::as_bytes(std::span(e.cutout)));
    for (int k = 0; k < 4; ++k) row.bind(17 + k, e.cutout_shape[k]);
    row.execute();
    id = c.db.last_row_id();
  });
  c.commit();
  return id;
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
