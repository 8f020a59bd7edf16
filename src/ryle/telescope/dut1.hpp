// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ryle {

/// UT1 - UTC against time, from a file: `finals2000A.all` or `finals.all` of the IERS as they are
/// distributed, or a table of "mjd,dut1_s" (or two columns with spaces; '#' comments).
class Dut1Table {
 public:
  /// Throws IoError, FormatError with path:line.
  static Dut1Table load(const std::string& path);
  static Dut1Table parse(const std::string& text, const std::string& path);

  /// UT1 - UTC of the UTC day an instant belongs to, as ERFA wants it. UT1 - TAI has no leap
  /// seconds and is what is interpolated, linearly: within 0.1 ms (1.5 mas of sky) of the truth for
  /// rows a day apart. Throws ConfigError outside the table.
  /// @unit tai_ns: nanoseconds TAI; result: seconds
  double at(std::int64_t tai_ns) const;

  std::int64_t first_tai_ns() const { return rows_.front().tai_ns; }
  std::int64_t last_tai_ns() const { return rows_.back().tai_ns; }
  const std::string& path() const { return path_; }

 private:
  struct Row {
    std::int64_t tai_ns;
    double ut1_minus_tai_s;
  };
  std::string path_;
  std::vector<Row> rows_;
};

}  // namespace ryle
