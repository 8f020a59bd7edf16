// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/dump_journal.hpp"

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/io/base/observation_json.hpp"

namespace ryle::io {
namespace {

using nlohmann::json;

// observation_to_json() leaves the arrays to the format.
json applied_to_json(const AppliedCorrections& applied) {
  std::vector<double> gains;
  for (const cf64 g : applied.gains) {
    gains.push_back(g.real());
    gains.push_back(g.imag());
  }
  return {{"delay_s", applied.delay_s},
          {"gains", gains},
          {"filter_response", applied.filter_response},
          {"input_rms_lsb", applied.input_rms_lsb},
          {"saturated_fraction", applied.saturated_fraction}};
}

/// JSON has no NaN: it is written as null.
std::vector<double> doubles_from_json(const json& in) {
  std::vector<double> values;
  for (const json& value : in)
    values.push_back(value.is_null() ? std::nan("") : value.get<double>());
  return values;
}

void applied_from_json(const json& in, AppliedCorrections& applied) {
  applied.delay_s = doubles_from_json(in.at("delay_s"));
  applied.filter_response = doubles_from_json(in.at("filter_response"));
  applied.input_rms_lsb = doubles_from_json(in.at("input_rms_lsb"));
  applied.saturated_fraction = doubles_from_json(in.at("saturated_fraction"));
  const auto gains = doubles_from_json(in.at("gains"));
  for (std::size_t k = 0; k + 1 < gains.size(); k += 2)
    applied.gains.emplace_back(gains[k], gains[k + 1]);
}

JournalEntry entry_from_json(const json& in) {
  JournalEntry entry;
  in.at("start_tai_ns").get_to(entry.start_tai_ns);
  in.at("centroid_tai_ns").get_to(entry.centroid_tai_ns);
  in.at("interval_s").get_to(entry.interval_s);
  in.at("n_spectra").get_to(entry.n_spectra);
  in.at("crc32c").get_to(entry.crc);
  return entry;
}

}  // namespace

DumpJournal::DumpJournal(std::string path, const Observation& observation)
    : path_(std::move(path)) {
  errno = 0;
  out_.open(path_, std::ios::binary);
  if (!out_.is_open()) throw IoError::from_errno("create", path_, errno != 0 ? errno : EIO, true);
  put(json{{"observation", json::parse(observation_to_json(observation))},
           {"applied", applied_to_json(observation.applied)}}
          .dump());
}

void DumpJournal::append(const JournalEntry& entry) {
  put(json{{"start_tai_ns", entry.start_tai_ns},
           {"centroid_tai_ns", entry.centroid_tai_ns},
           {"interval_s", entry.interval_s},
           {"n_spectra", entry.n_spectra},
           {"crc32c", entry.crc}}
          .dump());
}

void DumpJournal::put(const std::string& line) {
  errno = 0;
  out_ << line << '\n' << std::flush;
  if (!out_) throw IoError::from_errno("write", path_, errno != 0 ? errno : EIO);
}

Journal read_journal(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || in.eof())
    throw FormatError(path + ": no observation in it; the writer was killed before the first dump");
  Journal journal;
  try {
    const json head = json::parse(line);
    journal.observation = observation_from_json(head.at("observation").dump(), path);
    applied_from_json(head.at("applied"), journal.observation.applied);
  } catch (const json::exception& error) {
    throw FormatError(path + ": damaged: " + error.what());
  }
  try {
    while (std::getline(in, line) && !in.eof())
      journal.entries.push_back(entry_from_json(json::parse(line)));
  } catch (const json::exception&) {  // those before it are whole
  }
  return journal;
}

}  // namespace ryle::io
