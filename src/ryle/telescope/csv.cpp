// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/csv.hpp"

#include <algorithm>
#include <charconv>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"

namespace ryle::detail {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

char separator_of(std::string_view header) {
  for (const char c : {'\t', ';'}) {
    if (header.find(c) != std::string_view::npos) return c;
  }
  return ',';
}

bool is_rule(const std::vector<std::string>& fields) {
  return std::all_of(fields.begin(), fields.end(), [](const std::string& f) {
    return !f.empty() && f.find_first_not_of('-') == std::string::npos;
  });
}

}  // namespace

CsvTable::CsvTable(const std::string& path, const std::vector<std::string>& required,
                   const std::vector<std::string>& optional, CsvStyle style)
    : path_(path) {
  const std::string text = read_text_file(path);
  std::string_view rest = text;
  char separator = ',';
  if (rest.substr(0, 3) == "\xef\xbb\xbf")
    rest.remove_prefix(3);  // byte-order mark of spreadsheets
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    const auto whole = rest.substr(0, end).substr(0, rest.substr(0, end).find('#'));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const auto content = separator == '\t' ? whole : trimmed(whole);  // a first field may be empty
    if (trimmed(content).empty()) continue;
    if (columns_.empty() && style == CsvStyle::catalogue) separator = separator_of(content);
    auto fields = split(content, separator);
    if (columns_.empty()) {
      read_header(fields, line, required, optional, style);
    } else if (style == CsvStyle::catalogue && rows_.size() < 2 && is_rule(fields)) {
      rows_.clear();  // what stands between the header and a rule of dashes are units
    } else if (fields.size() != columns_.size()) {
      throw FormatError(path + ":" + std::to_string(line) + ": " + std::to_string(fields.size()) +
                        " fields, but the header line names " + std::to_string(columns_.size()) +
                        " columns (" + comma_separated(columns_) + ")");
    } else {
      rows_.push_back({line, std::move(fields)});
    }
  }
  if (columns_.empty()) {
    throw FormatError(path + ": the file is empty; it needs a header line with the columns " +
                      comma_separated(required.empty() ? optional : required));
  }
  if (rows_.empty()) {
    throw FormatError(path + ": there is a header line but no data line; one line per " +
                      (style == CsvStyle::catalogue ? "source" : "input") + " is needed");
  }
}

void CsvTable::read_header(const std::vector<std::string>& fields, std::int64_t line,
                           const std::vector<std::string>& required,
                           const std::vector<std::string>& optional, CsvStyle style) {
  const std::string where = path_ + ":" + std::to_string(line) + ": ";
  for (const auto& name : required) {
    if (!contains(fields, name)) {
      throw FormatError(where + "column \"" + name + "\" is missing from the header line \"" +
                        comma_separated(fields) + "\"; the columns " + comma_separated(required) +
                        " are required");
    }
  }
  for (const auto& name : fields) {
    if (style == CsvStyle::strict && !contains(required, name) && !contains(optional, name)) {
      throw FormatError(where + "unknown column \"" + name + "\"; known are " +
                        comma_separated(required) + (optional.empty() ? "" : ", ") +
                        comma_separated(optional));
    }
    if (std::count(fields.begin(), fields.end(), name) > 1) {
      throw FormatError(where + "column \"" + name + "\" appears twice; remove one");
    }
  }
  columns_ = fields;
}

std::int64_t CsvTable::column_index(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end() ? -1 : found - columns_.begin();
}

bool CsvTable::has(std::string_view column) const { return column_index(column) >= 0; }

const std::string& CsvTable::text(std::int64_t row, std::string_view column) const {
  const auto index = column_index(column);
  RYLE_ASSERT(index >= 0);
  return rows_[row].fields[index];
}

double CsvTable::number(std::int64_t row, std::string_view column) const {
  double value = 0;
  if (!parse_finite(text(row, column), value)) {
    fail(row, std::string(column) + " = \"" + text(row, column) +
                  "\" is not a finite number; write for example 12.5");
  }
  return value;
}

std::int64_t CsvTable::integer(std::int64_t row, std::string_view column) const {
  const std::string& field = text(row, column);
  std::int64_t value = 0;
  const auto result = std::from_chars(field.data(), field.data() + field.size(), value);
  if (result.ec != std::errc() || result.ptr != field.data() + field.size()) {
    fail(row, std::string(column) + " = \"" + field + "\" is not a whole number");
  }
  return value;
}

std::string CsvTable::where(std::int64_t row) const {
  return path_ + ":" + std::to_string(rows_[row].line);
}

void CsvTable::fail(std::int64_t row, const std::string& message) const {
  throw FormatError(where(row) + ": " + message);
}

}  // namespace ryle::detail
