// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "ryle/core/units.hpp"
#include "ryle/io/base/sqlite_file.hpp"
#include "ryle/io/beam/candidate_file.hpp"

/// The database of a search as anyone reads it: by SQL, in order of the numbers.
namespace ryle::test {

inline std::vector<SearchCandidate> read_search_database(const std::string& path) {
  io::Database db(path, io::Database::Mode::read, 5);
  std::vector<SearchCandidate> list;
  io::Statement row(
      db,
      "SELECT id, tick, time_s, mjd_utc, tai_ns, dm, dm_err, width_s, width_err_s, snr, "
      "snr_boxcar, boxcar_samples,"
      " dm_trial, trial_dm, members, begin_sample, end_sample, beam, masked_fraction, "
      "flags, picture, n_beams, ra_deg, dec_deg, smearing_s, beams, reasons, time_err_s, "
      "scattering_s, scattering_err_s FROM event ORDER BY id");
  while (row.step()) {
    SearchCandidate c;
    c.number = row.integer(0);
    c.tick = row.real(1);
    c.time_s = row.real(2);
    c.mjd_utc = row.real(3);
    c.tai_ns = row.integer(4);
    c.dm_pc_cm3 = row.real(5);
    c.dm_error = row.real(6);
    c.width_s = row.real(7);
    c.width_error_s = row.real(8);
    c.snr = row.real(9);
    c.snr_boxcar = row.real(10);
    c.boxcar_samples = row.integer(11);
    c.dm_trial = row.integer(12);
    c.trial_dm_pc_cm3 = row.real(13);
    c.members = row.integer(14);
    c.begin_sample = row.integer(15);
    c.end_sample = row.integer(16);
    c.beam = row.integer(17);
    c.masked_fraction = row.real(18);
    c.flags = row.text(19);
    c.picture = row.text(20);
    c.n_beams = row.integer(21);
    c.position = SkyDirection{row.real(22) * kDegree_rad, row.real(23) * kDegree_rad};
    c.smearing_s = row.real(24);
    std::istringstream beams(row.text(25));
    for (std::int64_t beam = 0; beams >> beam;) c.beams.push_back(beam);
    c.reasons = row.text(26);
    c.time_error_s = row.real(27);
    c.scattering_s = row.real(28);
    c.scattering_error_s = row.real(29);
    list.push_back(c);
  }
  return list;
}

inline VoltageRecords read_voltage_records(const std::string& path) {
  io::Database db(path, io::Database::Mode::read, 5);
  VoltageRecords records;
  io::Statement trigger(db,
                        "SELECT id, event, name, tai_ns, dm, dm_err, width_s, snr, result, dump, "
                        "message FROM trigger ORDER BY id");
  while (trigger.step()) {
    TriggerRecord r;
    r.number = trigger.integer(0);
    r.trigger.event = trigger.integer(1);
    r.trigger.beam = trigger.text(2);
    r.trigger.tai_ns = trigger.integer(3);
    r.trigger.dm_pc_cm3 = trigger.real(4);
    r.trigger.dm_error = trigger.real(5);
    r.trigger.width_s = trigger.real(6);
    r.trigger.snr = trigger.real(7);
    r.result = trigger.text(8);
    r.dump = trigger.integer(9);
    r.message = trigger.text(10);
    records.triggers.push_back(std::move(r));
  }
  io::Statement dump(
      db,
      "SELECT id, file, begin_tai_ns, end_tai_ns, low_hz, high_hz, n_channels, bytes, "
      "packets, absent_packets, left_s, message FROM dump ORDER BY id");
  while (dump.step()) {
    DumpRecord d;
    d.number = dump.integer(0);
    d.file = dump.text(1);
    d.begin_tai_ns = dump.integer(2);
    d.end_tai_ns = dump.integer(3);
    d.low_hz = dump.real(4);
    d.high_hz = dump.real(5);
    d.n_channels = dump.integer(6);
    d.bytes = dump.integer(7);
    d.packets = dump.integer(8);
    d.absent_packets = dump.integer(9);
    d.left_s = dump.real(10);
    d.message = dump.text(11);
    records.dumps.push_back(std::move(d));
  }
  return records;
}

}  // namespace ryle::test
