// SPDX-License-Identifier: BSD-3-Clause
// A binary table of FITS for the readers of scans: cfitsio reads the header, numbers are read by
// position. Columns and keywords by name only; a keyword stands for a column of one value (the rule
// of SDFITS). Private to io/.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/text.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/scan/scan_raw.hpp"

namespace ryle::io {

struct ScanColumn {
  std::string name, unit;
  int number = 0;                 ///< from 1, as TTYPEn has it
  std::int64_t repeat = 0;        ///< numbers, or characters of a text, a row
  std::int64_t offset_bytes = 0;  ///< in the row
  bool text = false;
  bool numbers = false;  ///< neither text nor bits, complex or of varying length
  RawNumber form;
  std::vector<std::int64_t> axes;  ///< TDIMn, first axis fastest; empty: not said
};

/// Header cards by upper-case name: text without quotes and trailing blanks.
using ScanKeywords = std::map<std::string, std::string>;
ScanKeywords read_scan_keywords(const FitsFile& file);
/// NaN when the text is no number.
double scan_number(const std::string& text);

class ScanTable {
 public:
  /// The current HDU of `file`, a binary table; its rows must lie in `raw`. Throws FormatError.
  ScanTable(const FitsFile& file, std::shared_ptr<const RawFile> raw, int hdu);

  std::int64_t n_rows = 0, row_bytes = 0, first_byte = 0;
  std::string name;  ///< EXTNAME
  int hdu = 0;       ///< from 1: the primary HDU
  std::vector<ScanColumn> columns;
  ScanKeywords keywords;

  const RawFile& raw() const { return *raw_; }
  const ScanColumn* find(const std::string& column) const;  ///< any case; null: none
  /// A column or a keyword of the name is there.
  bool has(const std::string& word) const;
  /// Element `element` of each row of a column, or the keyword for all rows; empty: neither.
  std::vector<double> numbers(const std::string& word, std::int64_t element = 0) const;
  std::vector<std::string> texts(const std::string& word) const;
  /// Unit of the column, empty when there is none.
  std::string unit(const std::string& column) const;
  /// Where element 0 of the column is in each row.
  RawSamples samples(const ScanColumn& column) const;
  /// "TIME, DATA [1024], ..."
  std::string list() const;

 private:
  void read_column(const FitsFile& file, int number, std::int64_t& offset_bytes);
  std::shared_ptr<const RawFile> raw_;
};

/// All binary tables of a file. Throws FormatError when the header lies about the size.
std::vector<ScanTable> read_scan_tables(const FitsFile& file, std::shared_ptr<const RawFile> raw);

}  // namespace ryle::io
