// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ryle/io/beam/voltage_dump.hpp"
#include "ryle/telescope/geometry.hpp"

/// Dispersed pulses as other programs write them, and as pictures.
namespace ryle {

/// What all candidates of a search share.
struct SearchDescription {
  std::string file;  ///< that was searched
  std::string telescope;
  std::string source_name;
  SkyDirection position;
  /// Radius about `position` that holds the source. Files do not say how wide the beam was: 1
  /// degree is the beam of a 25 m dish at 700 MHz (lambda / D).
  double position_error_rad = 0.017453292519943295;
  std::string plan;                ///< of dispersion measures, in words
  double k_dm = 0;                 ///< s MHz^2 pc^-1 cm^3
  double reference_hz = 0;         ///< arrival times hold there: center of the highest channel
  double low_hz = 0, high_hz = 0;  ///< edges of the band
  double sample_interval_s = 0;
  double start_mjd_utc = 0;
  std::int64_t start_tai_ns = 0;
  std::int64_t n_samples = 0, n_channels = 0, n_trials = 0;
  double threshold = 0;
  /// Parts of all samples that were masked, by cause.
  std::vector<std::pair<std::string, double>> masked;
  std::string version, command_line, implementation;
};

struct SearchCandidate {
  std::int64_t number = 0;  ///< 1, 2, ... in order of time
  double tick = 0;          ///< center, samples from the start of the file
  double time_s = 0;        ///< of the center, at reference_hz
  double time_error_s = 0;  ///< 0: not known
  double mjd_utc = 0;
  std::int64_t tai_ns = 0;
  double dm_pc_cm3 = 0, dm_error = 0;
  double width_s = 0, width_error_s = 0;  ///< FWHM
  /// Of the lowest channel: the template of the matched filter has it, width_s has not.
  double smearing_s = 0;
  /// Time of the exponential tail at reference_hz, as nu^-4; 0: none is told. time_s and width_s
  /// are then those of the pulse before it.
  double scattering_s = 0, scattering_error_s = 0;
  double snr = 0;  ///< matched filter
  double snr_boxcar = 0;
  std::int64_t boxcar_samples = 0;
  std::int64_t dm_trial = 0;
  double trial_dm_pc_cm3 = 0;
  std::int64_t members = 0;
  std::int64_t begin_sample = 0, end_sample = 0;
  std::int64_t beam = 0;                 ///< strongest, from 0
  std::int64_t n_beams = 1;              ///< that saw it
  std::vector<std::int64_t> beams;       ///< these, ascending; empty = `beam` alone
  std::optional<SkyDirection> position;  ///< else that of the search
  double masked_fraction = 0;
  std::string flags;    ///< "" = a candidate, else names with a blank between (docs/search.md)
  std::string reasons;  ///< a sentence on each flag, with "; " between
  std::string picture;  ///< name of its PNG, may be empty
};

/// Numbers of the beams that saw it, with a blank between.
std::string beams_text(const SearchCandidate& candidate);

/// Whole files as text. Only unflagged candidates, except in CSV.
std::string heimdall_text(const SearchDescription& search,
                          const std::vector<SearchCandidate>& list);
std::string transientx_text(const SearchDescription& search,
                            const std::vector<SearchCandidate>& list);
std::string singlepulse_text(const SearchDescription& search,
                             const std::vector<SearchCandidate>& list);
std::string candidates_csv(const SearchDescription& search,
                           const std::vector<SearchCandidate>& list);
/// VOEvent 2.0 (IVOA recommendation 2011) of one candidate. @param role "observation" or "test".
/// Throws ConfigError for a candidate without a known instant.
std::string voevent_xml(const SearchDescription& search, const SearchCandidate& candidate,
                        const std::string& role);

/// Keys and values of the table run, without the version of the tables.
using SearchDescriptionValue = std::variant<std::string, double, std::int64_t>;
std::vector<std::pair<std::string, SearchDescriptionValue>> search_description_rows(
    const SearchDescription& search);

/// The master record: tables run(key, value), event(...), trigger(...), dump(...), all numbers
/// exact. Published by rename.
void write_search_database(const std::string& path, const SearchDescription& search,
                           const std::vector<SearchCandidate>& list, bool overwrite);
/// The same, growing under its final name while others read (SQLite's write-ahead log): what the
/// database has taken survives a kill. What it does not take, because another process holds it
/// locked or the disk is full, waits in memory and is tried again. One thread at a time.
class SearchDatabase {
 public:
  /// Throws IoError when there is a file and not `overwrite`, or none can be created.
  /// finish() waits `last_patience_s` for other writers, append() much less.
  SearchDatabase(const std::string& path, const SearchDescription& search, bool overwrite,
                 double last_patience_s = 5);
  ~SearchDatabase();
  SearchDatabase(const SearchDatabase&) = delete;
  SearchDatabase& operator=(const SearchDatabase&) = delete;
  void append(std::span<const SearchCandidate> list);
  /// Triggers and dumps of voltages; a number that is there already is replaced.
  void append(const VoltageRecords& records);
  /// Tries what waits, once.
  void retry();
  std::int64_t n_waiting() const;
  /// Triggers that are in no table: more than VoltageRecords::kMaxWaiting waited.
  std::int64_t n_left_out() const;
  /// Why the last attempt failed; "" = it did not.
  const std::string& rejection() const;
  std::vector<SearchCandidate> waiting_events() const;
  const VoltageRecords& waiting_records() const;
  /// Tries what waits a last time, with patience, writes the final description and folds the log
  /// into the file. Never throws for what the database rejects: see rejection(), n_waiting() and
  /// is_described().
  void finish(const SearchDescription& search);
  bool is_described() const;  ///< whether finish() could write the final description

 private:
  bool write(const SearchDescription* last);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
/// Rows as lines of JSON, {"table": "event", "trigger", "dump" or "run", column: value, ...}: where
/// they go that no database takes.
struct UnwrittenRows {
  std::vector<SearchCandidate> events;
  VoltageRecords records;
  const SearchDescription* search = nullptr;  ///< f_ref and the position of events
  bool describe = false;                      ///< the rows of `search` are missing, too
};
std::string search_json_lines(const UnwrittenRows& rows);
/// Appends what a database did not take to STEM_unwritten.jsonl beside STEM.sqlite, whole lines
/// only. `file` becomes its path, "" where nothing of it could be written. Returns what to say of
/// it.
std::string keep_unwritten(const std::string& database, const UnwrittenRows& rows,
                           const std::string& reason, std::string& file);
std::string keep_unwritten(const std::string& database, std::span<const SearchCandidate> list,
                           const VoltageRecords& records, const std::string& reason,
                           std::string& file);
/// Adds them to a database that nobody else writes any more.
void append_voltage_records(const std::string& path, const VoltageRecords& records);

/// Arrays behind the picture of a candidate; masked values are NaN.
struct CandidatePicture {
  std::vector<float>
      waterfall;  ///< [frequency bin][time bin], dedispersed, sigma units; lowest first
  std::int64_t n_frequencies = 0, n_times = 0;
  std::vector<float> profile;  ///< [time bin], S/N units
  std::vector<float> model;    ///< [time bin], the template
  std::vector<float> dm_time;  ///< [dm][time bin]
  std::int64_t n_dms = 0;
  double dm_low = 0, dm_high = 0;
  double first_time_s = 0, last_time_s = 0;  ///< outer edges, relative to the center
};
/// PNG: dynamic spectrum, profile with its template, DM-time plane, text.
void write_candidate_picture(const std::string& path, const SearchDescription& search,
                             const SearchCandidate& candidate, const CandidatePicture& picture,
                             bool overwrite);

}  // namespace ryle
