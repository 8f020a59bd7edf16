// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/product/candidate_file.hpp"
#include "ryle/product/publish.hpp"

namespace ryle {
namespace {

using RowObject = nlohmann::ordered_json;

// As the column of the database: NaN is null there.
RowObject finite_or_null(double value) {
  return std::isfinite(value) ? RowObject(value) : RowObject();
}
RowObject above_0_or_null(std::int64_t value) { return value > 0 ? RowObject(value) : RowObject(); }

RowObject event_object(const SearchCandidate& c) {
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
              {"smearing_s", finite_or_null(c.smearing_s)}};
  if (c.position) {
    o["ra_deg"] = finite_or_null(c.position->ra_rad / kDegree_rad);
    o["dec_deg"] = finite_or_null(c.position->dec_rad / kDegree_rad);
  }
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

void append_to_file(const std::string& path, std::string_view text) {
  int error = injected_fault("create", path);
  const int fd =
      error != 0 ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw IoError::from_errno("create", path, error != 0 ? error : errno, true);
  error = injected_fault("write", path);
  while (error == 0 && !text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) error = errno;
  }
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  ::close(fd);
  if (error != 0) throw IoError::from_errno("write", path, error, false);
}

}  // namespace

std::string search_json_lines(std::span<const SearchCandidate> list,
                              const VoltageRecords& records) {
  std::string text;
  for (const auto& c : list) append_row(text, "event", event_object(c));
  for (const auto& r : records.triggers) append_row(text, "trigger", trigger_object(r));
  for (const auto& d : records.dumps) append_row(text, "dump", dump_object(d));
  return text;
}

std::string keep_unwritten(const std::string& database, std::span<const SearchCandidate> list,
                           const VoltageRecords& records, const std::string& reason,
                           std::string& file) {
  const std::string what =
      fmt::format("{} records (events {}, triggers {}, dumps {}) are not in {}: {}",
                  list.size() + records.triggers.size() + records.dumps.size(), list.size(),
                  records.triggers.size(), records.dumps.size(), database, reason);
  file = std::filesystem::path(database).replace_extension().string() + "_unwritten.jsonl";
  try {
    append_to_file(file, search_json_lines(list, records));
    return what + "; they are in " + file;
  } catch (const Error& e) {
    file.clear();
    return what + "; nor elsewhere: " + e.what();
  }
}

}  // namespace ryle
