// SPDX-License-Identifier: BSD-3-Clause
// What a Measurement Set under construction cannot say by itself: its sub-tables are written at the
// end. A text file beside the tables holds the observation and one line per whole dump; it goes
// when the set is published. Private to io/.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle::io {

/// One whole dump: its exact times, and CRC-32C of its rows (DATA, then WEIGHT_SPECTRUM).
struct JournalEntry {
  std::int64_t start_tai_ns = 0;
  std::int64_t centroid_tai_ns = 0;
  double interval_s = 0;
  std::int64_t n_spectra = 0;
  std::uint32_t crc = 0;
};

class DumpJournal {
 public:
  /// Throws IoError.
  DumpJournal(std::string path, const Observation& observation);
  /// Once the rows of the dump are with the operating system.
  void append(const JournalEntry& entry);

 private:
  void put(const std::string& line);
  std::string path_;
  std::ofstream out_;
};

struct Journal {
  Observation observation;
  std::vector<JournalEntry> entries;
};

/// Ends before the first entry that is damaged or cut off. Throws FormatError when there is no
/// observation.
Journal read_journal(const std::string& path);

}  // namespace ryle::io
