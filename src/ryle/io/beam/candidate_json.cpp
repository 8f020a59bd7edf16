// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/beam/candidate_file.hpp"

namespace ryle {
namespace {

using RowObject = nlohmann::ordered_json;

// As the column of the database: NaN is null there.
RowObject finite_or_null(double value) {
  return std::isfinite(value) ? RowObject(value) : RowObject();
}
RowObject above_0_or_null(std::int64_t value) { return value > 0 ? RowObject(value) : RowObject(); }

RowObject event_object(const SearchCandidate& c, const SearchDescription* search) {
  RowObject o{{"id", c.number},
              {"tick", finite_or_null(c.tick)},
              {"time_s", finite_or_null(c.time_s)},
              {"mjd_utc", finite_or_null(c.mjd_utc)},
              {"tai_ns", c.tai_ns},
              {"dm", finite_or_null(c.dm_pc_cm3)},
              {"dm_err", finite_or_null(c.dm_error)},
              {"width_s", finite_or_null(c.width_s)},
              {"width_err_s", finite_or_null(c.width_error_s)},
              {"snr", finite_or_null(c.snr)},
              {"snr_boxcar", finite_or_null(c.snr_boxcar)},
              {"boxcar_samples", c.boxcar_samples},
              {"dm_trial", c.dm_trial},
              {"trial_dm", finite_or_null(c.trial_dm_pc_cm3)},
              {"members", c.members},
              {"begin_sample", c.begin_sample},
              {"end_sample", c.end_sample},
              {"beam", c.beam},
              {"n_beams", c.n_beams},
              {"masked_fraction", finite_or_null(c.masked_fraction)},
              {"flags", c.flags},
              {"picture", c.picture},
              {"smearing_s", finite_or_null(c.smearing_s)},
              {"beams", beams_text(c)},
              {"reasons", c.reasons},
              {"time_err_s", finite_or_null(c.time_error_s)},
              {"scattering_s", finite_or_null(c.scattering_s)},
              {"scattering_err_s", finite_or_null(c.scattering_error_s)}};
  if (c.position || search != nullptr) {
    const SkyDirection at = c.position ? *c.position : search->position;
    o["ra_deg"] = finite_or_null(at.ra_rad / kDegree_rad);
    o["dec_deg"] = finite_or_null(at.dec_rad / kDegree_rad);
  }
  if (search != nullptr) o["f_ref_hz"] = finite_or_null(search->reference_hz);
  return o;
}

RowObject trigger_object(const TriggerRecord& r) {
  const DumpTrigger& t = r.trigger;
  return {{"id", r.number},
          {"event", above_0_or_null(t.event)},
          {"name", t.beam},
          {"tai_ns", t.tai_ns},
          {"dm", finite_or_null(t.dm_pc_cm3)},
          {"dm_err", finite_or_null(t.dm_error)},
          {"width_s", finite_or_null(t.width_s)},
          {"snr", finite_or_null(t.snr)},
          {"result", r.result},
          {"dump", above_0_or_null(r.dump)},
          {"message", r.message}};
}

RowObject dump_object(const DumpRecord& d) {
  return {{"id", d.number},
          {"file", d.file},
          {"begin_tai_ns", d.begin_tai_ns},
          {"end_tai_ns", d.end_tai_ns},
          {"low_hz", d.low_hz},
          {"high_hz", d.high_hz},
          {"n_channels", d.n_channels},
          {"bytes", d.bytes},
          {"packets", d.packets},
          {"absent_packets", d.absent_packets},
          {"left_s", d.left_s},
          {"message", d.message}};
}

void append_row(std::string& text, const char* table, RowObject object) {
  RowObject line{{"table", table}};
  line.update(object);
  text += line.dump(-1, ' ', false, RowObject::error_handler_t::replace) + '\n';
}

/// Bytes of `text` that are whole lines among the first `n`.
std::size_t whole_lines(std::string_view text, std::size_t n) {
  return n == 0 ? 0 : text.rfind('\n', n - 1) + 1;  // npos + 1 = 0
}

/// Appends lines; what a full disk leaves of the last one is taken back. @return lines that are in
/// the file; `error` = 0 or why not all of them
std::int64_t append_lines(const std::string& path, std::string_view text, int& error) {
  error = injected_fault("create", path);
  const Descriptor file(
      error != 0 ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw IoError::from_errno("create", path, error != 0 ? error : errno, true);
  const off_t begin = ::lseek(file.get(), 0, SEEK_END);
  error = injected_fault("write", path);
  std::size_t written = 0;
  if (error == 0) {
    const std::int64_t n = write_bytes(file, text.data(), std::ssize(text));
    written = static_cast<std::size_t>(n);
    if (n < std::ssize(text)) error = errno;
  }
  const std::size_t whole = whole_lines(text, written);
  if (whole < written && ::ftruncate(file.get(), begin + static_cast<off_t>(whole)) != 0 &&
      error == 0)
    error = errno;
  if (::fsync(file.get()) != 0 && error == 0) error = errno;
  return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(whole), '\n');
}

std::string named(const UnwrittenRows& rows) {
  const auto& [events, records, search, describe] = rows;
  const std::size_t n = events.size() + records.triggers.size() + records.dumps.size();
  std::string what;
  if (n > 0)
    what = fmt::format("{} records (events {}, triggers {}, dumps {})", n, events.size(),
                       records.triggers.size(), records.dumps.size());
  if (describe) what += what.empty() ? "what is said of the run" : " and what is said of the run";
  return what + (n > 0 ? " are" : " is");
}

}  // namespace

std::string search_json_lines(const UnwrittenRows& rows) {
  std::string text;
  for (const auto& c : rows.events) append_row(text, "event", event_object(c, rows.search));
  for (const auto& r : rows.records.triggers) append_row(text, "trigger", trigger_object(r));
  for (const auto& d : rows.records.dumps) append_row(text, "dump", dump_object(d));
  if (!rows.describe || rows.search == nullptr) return text;
  for (const auto& [key, value] : search_description_rows(*rows.search))
    append_row(
        text, "run",
        {{"key", key}, {"value", std::visit([](const auto& v) { return RowObject(v); }, value)}});
  return text;
}

std::string keep_unwritten(const std::string& database, const UnwrittenRows& rows,
                           const std::string& reason, std::string& file) {
  const std::string what = fmt::format("{} not in {}: {}", named(rows), database, reason);
  file = std::filesystem::path(database).replace_extension().string() + "_unwritten.jsonl";
  try {
    int error = 0;
    const std::string path = file;
    const std::int64_t n = append_lines(path, search_json_lines(rows), error);
    if (error == 0) return what + "; they are in " + path;
    if (n == 0) {
      std::error_code none;
      if (std::filesystem::is_empty(path, none)) std::filesystem::remove(path, none);
      file.clear();
    }
    const IoError why = IoError::from_errno("write", path, error, false);
    return what +
           (n == 0 ? "; nor elsewhere: "
                   : fmt::format("; the first {} lines of them are in {}, the others nowhere: ", n,
                                 path)) +
           why.what();
  } catch (const Error& e) {
    file.clear();
    return what + "; nor elsewhere: " + e.what();
  }
}

std::string keep_unwritten(const std::string& database, std::span<const SearchCandidate> list,
                           const VoltageRecords& records, const std::string& reason,
                           std::string& file) {
  return keep_unwritten(database, {{list.begin(), list.end()}, records, nullptr, false}, reason,
                        file);
}

}  // namespace ryle
