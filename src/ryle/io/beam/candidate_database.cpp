// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <deque>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <variant>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sqlite_file.hpp"
#include "ryle/io/beam/candidate_file.hpp"

namespace ryle {
namespace {

using io::Database;
using io::Statement;

std::string_view bindable(const std::string& text) { return text; }
double bindable(double value) { return value; }
std::int64_t bindable(std::int64_t value) { return value; }

constexpr std::int64_t kCandidateDatabase = 5;  // version of the tables
constexpr const char* kCandidateSchema =
    "PRAGMA application_id = 0x52794c53;"
    "CREATE TABLE run(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE event(id INTEGER PRIMARY KEY, tick REAL, time_s REAL, mjd_utc REAL, tai_ns "
    "INTEGER,"
    " dm REAL, dm_err REAL, width_s REAL, width_err_s REAL, snr REAL, snr_boxcar REAL, "
    "boxcar_samples INTEGER,"
    " dm_trial INTEGER, trial_dm REAL, members INTEGER, begin_sample INTEGER, end_sample INTEGER, "
    "beam INTEGER,"
    " n_beams INTEGER, ra_deg REAL, dec_deg REAL, f_ref_hz REAL, masked_fraction REAL, flags TEXT, "
    "picture TEXT, smearing_s REAL, beams TEXT, reasons TEXT, time_err_s REAL, "
    "scattering_s REAL, scattering_err_s REAL);"
    // event: of the table above, NULL = asked for from outside; dump: NULL = there was none.
    "CREATE TABLE trigger(id INTEGER PRIMARY KEY, event INTEGER, name TEXT, tai_ns INTEGER, dm "
    "REAL, dm_err REAL, width_s REAL, snr REAL, result TEXT, dump INTEGER, message TEXT);"
    "CREATE TABLE dump(id INTEGER PRIMARY KEY, file TEXT, begin_tai_ns INTEGER, end_tai_ns "
    "INTEGER, low_hz REAL, high_hz REAL, n_channels INTEGER, bytes INTEGER, packets INTEGER, "
    "absent_packets INTEGER, left_s REAL, message TEXT);";

void write_run(Database& db, const SearchDescription& s) {
  Statement row(db, "INSERT OR REPLACE INTO run VALUES(?, ?)");
  const auto put = [&](std::string_view key, auto value) {
    row.bind(1, key).bind(2, value).execute();
  };
  put("schema", kCandidateDatabase);
  for (const auto& [key, value] : search_description_rows(s))
    std::visit([&, &name = key](const auto& v) { put(name, bindable(v)); }, value);
}

void write_events(Database& db, const SearchDescription& s, std::span<const SearchCandidate> list) {
  Statement row(
      db,
      "INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  for (const auto& c : list) {
    const SkyDirection at = c.position.value_or(s.position);
    row.bind(1, c.number).bind(2, c.tick).bind(3, c.time_s).bind(4, c.mjd_utc).bind(5, c.tai_ns);
    row.bind(6, c.dm_pc_cm3).bind(7, c.dm_error).bind(8, c.width_s).bind(9, c.width_error_s);
    row.bind(10, c.snr).bind(11, c.snr_boxcar).bind(12, c.boxcar_samples);
    row.bind(13, c.dm_trial).bind(14, c.trial_dm_pc_cm3).bind(15, c.members);
    row.bind(16, c.begin_sample).bind(17, c.end_sample).bind(18, c.beam).bind(19, c.n_beams);
    row.bind(20, at.ra_rad / kDegree_rad).bind(21, at.dec_rad / kDegree_rad);
    row.bind(22, s.reference_hz).bind(23, c.masked_fraction);
    row.bind(24, std::string_view(c.flags)).bind(25, std::string_view(c.picture));
    const std::string beams = beams_text(c);
    row.bind(26, c.smearing_s).bind(27, std::string_view(beams));
    row.bind(28, std::string_view(c.reasons)).bind(29, c.time_error_s);
    row.bind(30, c.scattering_s).bind(31, c.scattering_error_s);
    row.execute();
  }
}

double number_or_null(std::int64_t value) {
  return value > 0 ? static_cast<double>(value) : std::numeric_limits<double>::quiet_NaN();
}

void write_triggers(Database& db, const std::vector<TriggerRecord>& list) {
  Statement row(db, "INSERT OR REPLACE INTO trigger VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  for (const auto& r : list) {
    const DumpTrigger& t = r.trigger;
    row.bind(1, r.number).bind(2, number_or_null(t.event)).bind(3, std::string_view(t.beam));
    row.bind(4, t.tai_ns).bind(5, t.dm_pc_cm3).bind(6, t.dm_error).bind(7, t.width_s);
    row.bind(8, t.snr).bind(9, std::string_view(r.result)).bind(10, number_or_null(r.dump));
    row.bind(11, std::string_view(r.message)).execute();
  }
}

void write_dumps(Database& db, const std::vector<DumpRecord>& list) {
  Statement row(db, "INSERT OR REPLACE INTO dump VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
  for (const auto& d : list) {
    row.bind(1, d.number).bind(2, std::string_view(d.file)).bind(3, d.begin_tai_ns);
    row.bind(4, d.end_tai_ns).bind(5, d.low_hz).bind(6, d.high_hz).bind(7, d.n_channels);
    row.bind(8, d.bytes).bind(9, d.packets).bind(10, d.absent_packets).bind(11, d.left_s);
    row.bind(12, std::string_view(d.message)).execute();
  }
}

/// All of it or nothing.
template <class Write>
void in_transaction(Database& db, const Write& write) {
  db.run("BEGIN");
  try {
    write();
    db.run("COMMIT");
  } catch (...) {
    sqlite3_exec(db.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

// A live search waits so long for another writer.
constexpr double kWriter_s = 0.2;
constexpr std::size_t kMaxEventsAtOnce = 256;

void write_records(Database& db, const VoltageRecords& records) {
  in_transaction(db, [&] {
    write_triggers(db, records.triggers);
    write_dumps(db, records.dumps);
  });
}

void require_candidate_database(Database& db) {
  if (db.number("PRAGMA application_id") != 0x52794c53)
    throw FormatError(db.path() + ": an SQLite file, but not one of a Ryle search");
  const std::int64_t schema = db.number("SELECT value FROM run WHERE key = 'schema'");
  if (schema != kCandidateDatabase)
    throw FormatError(db.path() + ": a search database of another version of Ryle (schema " +
                      std::to_string(schema) + ", not " + std::to_string(kCandidateDatabase) + ")");
}

}  // namespace

void write_search_database(const std::string& path, const SearchDescription& search,
                           const std::vector<SearchCandidate>& list, bool overwrite) {
  Part part(path, overwrite);
  {
    Database db(part.unfinished(), Database::Mode::create, 5);
    db.run("BEGIN");
    db.run(kCandidateSchema);
    write_run(db, search);
    write_events(db, search, list);
    db.run("COMMIT");
  }
  part.publish();
}

std::vector<std::pair<std::string, SearchDescriptionValue>> search_description_rows(
    const SearchDescription& s) {
  std::vector<std::pair<std::string, SearchDescriptionValue>> rows{
      {"file", s.file},
      {"telescope", s.telescope},
      {"source", s.source_name},
      {"plan", s.plan},
      {"k_dm", s.k_dm},
      {"reference_hz", s.reference_hz},
      {"low_hz", s.low_hz},
      {"high_hz", s.high_hz},
      {"sample_interval_s", s.sample_interval_s},
      {"start_mjd_utc", s.start_mjd_utc},
      {"start_tai_ns", s.start_tai_ns},
      {"n_samples", s.n_samples},
      {"n_channels", s.n_channels},
      {"n_trials", s.n_trials},
      {"threshold", s.threshold}};
  for (const auto& [cause, part] : s.masked) rows.emplace_back("masked_" + cause, part);
  rows.insert(rows.end(), {{"version", s.version},
                           {"command_line", s.command_line},
                           {"implementation", s.implementation}});
  return rows;
}

struct SearchDatabase::Impl {
  SearchDescription search;
  Database db;
  std::deque<SearchCandidate> events;  // that wait
  VoltageRecords records;
  std::int64_t n_left_out = 0;  // triggers
  std::string rejection;
  double last_patience_s = 5;
  bool described = false;  // as the search ended
};

SearchDatabase::SearchDatabase(const std::string& path, const SearchDescription& search,
                               bool overwrite, double last_patience_s) {
  if (std::filesystem::exists(path)) {
    if (!overwrite) throw IoError::from_errno("create", path, EEXIST, true);
    io::remove_database(path);
  }
  try {
    impl_.reset(new Impl{search,
                         Database(path, Database::Mode::create, kWriter_s),
                         {},
                         {},
                         0,
                         {},
                         last_patience_s,
                         false});
    Database& db = impl_->db;
    db.number("PRAGMA journal_mode = WAL");
    in_transaction(db, [&] {
      db.run(kCandidateSchema);
      write_run(db, search);
    });
  } catch (...) {  // half a database would be in the way of the next attempt
    impl_.reset();
    io::remove_database(path);
    throw;
  }
}
SearchDatabase::~SearchDatabase() = default;

void SearchDatabase::append(std::span<const SearchCandidate> list) {
  auto& events = impl_->events;
  events.insert(events.end(), list.begin(), list.end());
  retry();
}
void SearchDatabase::append(const VoltageRecords& records) {
  impl_->n_left_out += impl_->records.append(records);
  retry();
}

void SearchDatabase::retry() {
  if (n_waiting() > 0) write(nullptr);
}

// Who has been rejected once must not wait every time: a search goes on meanwhile. For the same
// reason an attempt that fails costs kMaxEventsAtOnce, whatever waits: events go in pieces, each
// of them whole or not at all, and the last with the records.
bool SearchDatabase::write(const SearchDescription* last) {
  Impl& me = *impl_;
  const double patience_s = last != nullptr        ? me.last_patience_s
                            : me.rejection.empty() ? kWriter_s
                                                   : 0;
  sqlite3_busy_timeout(me.db.get(), static_cast<int>(1000 * patience_s));
  try {
    bool done = false;
    while (!done) {
      const std::size_t n = std::min(me.events.size(), kMaxEventsAtOnce);
      done = n == me.events.size();
      const std::vector<SearchCandidate> piece(me.events.begin(), me.events.begin() + n);
      in_transaction(me.db, [&] {
        write_events(me.db, me.search, piece);
        if (!done) return;
        write_triggers(me.db, me.records.triggers);
        write_dumps(me.db, me.records.dumps);
        if (last != nullptr) write_run(me.db, *last);
      });
      me.events.erase(me.events.begin(), me.events.begin() + n);
    }
  } catch (const Error& e) {
    me.rejection = e.what();
    return false;
  }
  me.rejection.clear();
  me.records = {};
  me.described = me.described || last != nullptr;
  return true;
}

std::int64_t SearchDatabase::n_waiting() const {
  return static_cast<std::int64_t>(impl_->events.size() + impl_->records.triggers.size() +
                                   impl_->records.dumps.size());
}
std::int64_t SearchDatabase::n_left_out() const { return impl_->n_left_out; }
const std::string& SearchDatabase::rejection() const { return impl_->rejection; }
std::vector<SearchCandidate> SearchDatabase::waiting_events() const {
  return {impl_->events.begin(), impl_->events.end()};
}
bool SearchDatabase::is_described() const { return impl_->described; }
const VoltageRecords& SearchDatabase::waiting_records() const { return impl_->records; }

void SearchDatabase::finish(const SearchDescription& search) {
  if (!write(&search)) return;
  try {  // a log that stays is read like the file
    impl_->db.number("PRAGMA journal_mode = DELETE");
  } catch (const Error& e) {
    impl_->rejection = e.what();
  }
}

void append_voltage_records(const std::string& path, const VoltageRecords& records) {
  if (records.empty()) return;
  Database db(path, Database::Mode::append, 5);
  require_candidate_database(db);
  write_records(db, records);
}

}  // namespace ryle
