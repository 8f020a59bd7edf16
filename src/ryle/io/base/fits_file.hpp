// SPDX-License-Identifier: BSD-3-Clause
// A FITS file through cfitsio, with every status checked. Private to io/.
#pragma once
#include <fitsio.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle::io {

/// Owns a fitsfile. Names go through the "diskfile" calls only: cfitsio's extended file names reach
/// networks and programs (products.md 1). A destroyed file that was not closed is closed without
/// error.
class FitsFile {
 public:
  static FitsFile create(const std::string& disk_path, const std::string& shown_path);
  static FitsFile open(const std::string& disk_path);
  static FitsFile open_to_write(const std::string& disk_path, const std::string& shown_path);
  ~FitsFile();
  FitsFile(FitsFile&& other) noexcept
      : file_(other.file_), path_(std::move(other.path_)), writing_(other.writing_) {
    other.file_ = nullptr;
  }
  FitsFile& operator=(FitsFile&&) = delete;

  fitsfile* get() const { return file_; }
  const std::string& path() const { return path_; }
  /// Throws IoError (writing) or FormatError (reading) with cfitsio's own words when status is set.
  void check(int status, const std::string& what) const;
  void close();  ///< flushes; throws when the system did not take everything

  void key(const char* name, const std::string& value, const char* comment = nullptr);
  void key(const char* name, double value, const char* comment = nullptr);
  void key(const char* name, long long value, const char* comment = nullptr);
  void key(const char* name, int value, const char* comment = nullptr) {
    key(name, static_cast<long long>(value), comment);
  }
  void key(const char* name, bool value, const char* comment = nullptr);
  void history(const std::vector<std::string>& lines);
  void checksum();  ///< CHECKSUM and DATASUM of the current HDU
  /// The same of a header whose data have this sum: they are not read.
  void checksum(std::uint64_t data_sum);

  /// Throws FormatError when the data that the header of the current HDU promises end behind the
  /// file, are compressed tiles of far more than it can hold (before anything is allocated), or
  /// fail require_data_sum().
  void require_data() const;
  /// Throws FormatError naming the HDU when its data do not add up to its DATASUM. An HDU without
  /// the card is not read. Error (75) when a signal comes meanwhile.
  void require_data_sum() const;
  double number(const char* name, double otherwise) const;  ///< key or `otherwise`
  std::string text(const char* name, const std::string& otherwise) const;

 private:
  static FitsFile open(const std::string& disk_path, const std::string& shown_path, bool writing);
  FitsFile(fitsfile* file, std::string path, bool writing)
      : file_(file), path_(std::move(path)), writing_(writing) {}
  fitsfile* file_;
  std::string path_;
  bool writing_;
};

/// Appends a binary table of n_rows empty rows; forms and units as FITS writes them ("1D", "Hz").
void create_table(FitsFile& file, const char* name, std::vector<std::string> names,
                  std::vector<std::string> forms, std::vector<std::string> units, LONGLONG n_rows);
/// Appends the RYLE_TEXT table: NAME, TEXT rows with the observation as JSON and the configuration,
/// 80 bytes a row, and RYLE_APPLIED: one row per input. Keyword-like text stays out of HISTORY that
/// way.
void append_ryle_tables(FitsFile& file, const Observation& observation);
/// Reads them back; false when the file has none.
bool read_ryle_tables(FitsFile& file, Observation& observation);

}  // namespace ryle::io
