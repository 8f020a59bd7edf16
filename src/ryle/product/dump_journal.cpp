// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/dump_journal.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/product/observation_json.hpp"

namespace ryle::product {
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

void applied_from_json(const json& in, AppliedCorrections& applied) {
  in.at("delay_s").get_to(applied.delay_s);
  in.at("filter_response").get_to(applied.filter_response);
  in.at("input_rms_lsb").get_to(applied.input_rms_lsb);
  in.at("saturated_fraction").get_to(applied.saturated_fraction);
  const auto gains = in.at("gains").get<std::vector<double>>();
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
    : path_(std::move(path)), out_(path_, std::ios::binary) {
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
    while (std::getline(in, line) && !in.eof())
      journal.entries.push_back(entry_from_json(json::parse(line)));
  } catch (const json::exception& error) {
    throw FormatError(path + ": damaged: " + error.what());
  }
  return journal;
}

}  // namespace ryle::product
