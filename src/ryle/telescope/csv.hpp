// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ryle::detail {

/// Which columns a table may have, and how they are parted.
enum class CsvStyle {
  strict,     ///< by commas; a column that is not known is an error
  catalogue,  ///< by commas, semicolons or tabs, as the header line is; other columns are passed
              ///< over, and so are the lines of units and dashes below the header of VizieR
};

/// A comma-separated table with a header line, read whole; every complaint names file and line.
class CsvTable {
 public:
  /// Reads `path`. `required` and `optional` are the only column names allowed. Throws IoError,
  /// FormatError.
  CsvTable(const std::string& path, const std::vector<std::string>& required,
           const std::vector<std::string>& optional, CsvStyle style = CsvStyle::strict);

  std::int64_t n_rows() const { return static_cast<std::int64_t>(rows_.size()); }
  bool has(std::string_view column) const;
  const std::string& text(std::int64_t row, std::string_view column) const;
  /// A finite number; throws FormatError with file:line, column and value otherwise.
  double number(std::int64_t row, std::string_view column) const;
  std::int64_t integer(std::int64_t row, std::string_view column) const;
  /// "file:line: message"
  [[noreturn]] void fail(std::int64_t row, const std::string& message) const;
  std::int64_t line(std::int64_t row) const { return rows_[row].line; }
  /// "file:line"
  std::string where(std::int64_t row) const;

 private:
  struct Row {
    std::int64_t line;
    std::vector<std::string> fields;
  };
  std::int64_t column_index(std::string_view column) const;
  void read_header(const std::vector<std::string>& fields, std::int64_t line,
                   const std::vector<std::string>& required,
                   const std::vector<std::string>& optional, CsvStyle style);

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

}  // namespace ryle::detail
