// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/scan/scan_fits_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"

namespace ryle::io {
namespace {

/// "'it''s   '" -> "it's"
std::string unquoted(const std::string& value) {
  if (value.empty() || value[0] != '\'') return std::string(trimmed(value));
  std::string text;
  for (std::size_t k = 1; k < value.size(); ++k) {
    if (value[k] == '\'' && (k + 1 >= value.size() || value[++k] != '\'')) break;
    text += value[k];
  }
  return std::string(trimmed(text));
}

bool number_form(int type, RawNumber& form) {
  using Kind = RawNumber::Kind;
  form.big_endian = true;
  const auto is = [&](Kind kind, int bytes) {
    form.kind = kind;
    form.bytes = bytes;
    return true;
  };
  switch (type) {
    case TFLOAT:
      return is(Kind::real, 4);
    case TDOUBLE:
      return is(Kind::real, 8);
    case TSHORT:
      return is(Kind::with_sign, 2);
    case TINT32BIT:
      return is(Kind::with_sign, 4);
    case TLONGLONG:
      return is(Kind::with_sign, 8);
    case TBYTE:
      return is(Kind::without_sign, 1);
    case TSBYTE:
      return is(Kind::with_sign, 1);
    case TLOGICAL:
      return is(Kind::logical, 1);
    default:
      return false;
  }
}

std::vector<std::int64_t> parse_tdim(const std::string& text) {
  std::vector<std::int64_t> axes;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    while (at < end && std::isdigit(static_cast<unsigned char>(*at)) == 0) ++at;
    std::int64_t n = 0;
    const auto [next, error] = std::from_chars(at, end, n);
    if (next == at) break;
    if (error != std::errc{} || n < 1) return {};
    axes.push_back(n);
    at = next;
  }
  return axes;
}

}  // namespace

double scan_number(const std::string& text) {
  std::string plain(trimmed(text));
  if (!plain.empty() && plain[0] == '+') plain.erase(0, 1);
  std::replace(plain.begin(), plain.end(), 'D', 'E');  // FITS allows 1.5D3
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  const bool good = error == std::errc{} && end == plain.data() + plain.size() && !plain.empty();
  return good ? value : std::numeric_limits<double>::quiet_NaN();
}

ScanKeywords read_scan_keywords(const FitsFile& file) {
  int status = 0, n = 0;
  fits_get_hdrspace(file.get(), &n, nullptr, &status);
  file.check(status, "read the header of");
  ScanKeywords keywords;
  for (int k = 1; k <= n; ++k) {
    char name[FLEN_KEYWORD] = "", value[FLEN_VALUE] = "";
    int ignored = 0;
    fits_read_keyn(file.get(), k, name, value, nullptr, &ignored);
    if (ignored != 0) fits_clear_errmsg();
    if (ignored == 0 && value[0] != '\0') keywords.emplace(upper_case(name), unquoted(value));
  }
  return keywords;
}

ScanTable::ScanTable(const FitsFile& file, std::shared_ptr<const RawFile> raw, int number)
    : hdu(number), keywords(read_scan_keywords(file)), raw_(std::move(raw)) {
  const auto key = [&](const char* word) {
    const auto found = keywords.find(word);
    return found == keywords.end() ? std::string() : found->second;
  };
  name = key("EXTNAME");
  int status = 0, n_columns = 0;
  LONGLONG rows = 0, head = 0, data = 0, end = 0;
  fits_get_num_rowsll(file.get(), &rows, &status);
  fits_get_num_cols(file.get(), &n_columns, &status);
  fits_get_hduaddrll(file.get(), &head, &data, &end, &status);
  file.check(status, fmt::format("read table {} of", hdu));
  const double width = scan_number(key("NAXIS1"));
  const std::string where = fmt::format("{}: table {} \"{}\"", file.path(), hdu, name);
  // A row cannot be longer than the file, which also keeps the products below in range.
  if (!(width >= 1 && width <= static_cast<double>(raw_->size_bytes())) || rows < 0)
    throw FormatError(fmt::format("{} has rows of {} bytes and {} of them, in a file of {} bytes",
                                  where, width, rows, raw_->size_bytes()));
  row_bytes = static_cast<std::int64_t>(width);
  n_rows = rows;
  first_byte = data;
  const std::int64_t there = std::max<std::int64_t>(0, raw_->size_bytes() - first_byte) / row_bytes;
  if (n_rows > there)
    throw FormatError(fmt::format("{} says it has {} rows of {} bytes, the file ends after {}",
                                  where, n_rows, row_bytes, there));
  std::int64_t offset_bytes = 0;
  for (int k = 1; k <= n_columns; ++k) read_column(file, k, offset_bytes);
  if (offset_bytes > row_bytes)
    throw FormatError(
        fmt::format("{} has columns of {} bytes in rows of {}", where, offset_bytes, row_bytes));
}

void ScanTable::read_column(const FitsFile& file, int number, std::int64_t& offset_bytes) {
  int status = 0, type = 0;
  LONGLONG repeat = 0, width = 0;
  fits_get_coltypell(file.get(), number, &type, &repeat, &width, &status);
  file.check(status, fmt::format("read the form of column {} of table {} of", number, hdu));
  const auto key = [&](const char* word) {
    const auto found = keywords.find(word + std::to_string(number));
    return found == keywords.end() ? std::string() : found->second;
  };
  ScanColumn column;
  column.name = key("TTYPE");
  column.unit = key("TUNIT");
  column.number = number;
  column.repeat = repeat;
  column.offset_bytes = offset_bytes;
  std::int64_t bytes = repeat * width;
  if (type < 0) {  // of varying length: what the row holds is its address
    const std::string form = upper_case(key("TFORM"));
    bytes = repeat * (form.find('Q') != std::string::npos ? 16 : 8);
  } else if (type == TBIT) {
    bytes = (repeat + 7) / 8;
  } else if (type == TSTRING) {
    column.text = true;
    bytes = repeat;
  } else {
    column.numbers = number_form(type, column.form) && repeat > 0;
    bytes = column.numbers ? repeat * column.form.bytes : repeat * width;
  }
  const auto number_or = [&](const char* word, double otherwise) {
    const double value = scan_number(key(word));
    return std::isfinite(value) ? value : otherwise;
  };
  column.form.scale = number_or("TSCAL", 1);
  column.form.zero = number_or("TZERO", 0);
  const double null = number_or("TNULL", std::numeric_limits<double>::quiet_NaN());
  if (std::abs(null) < 9e15) {
    column.form.has_null = true;
    column.form.null = static_cast<std::int64_t>(null);
  }
  column.axes = parse_tdim(key("TDIM"));
  // Repeats come from the file: their sum stays below the row, or the table is rejected.
  if (repeat < 0 || bytes < 0 || repeat > row_bytes * 8 || bytes > row_bytes)
    throw FormatError(fmt::format("{}: column {} of table {} has {} numbers, its row {} bytes",
                                  file.path(), number, hdu, repeat, row_bytes));
  offset_bytes += bytes;
  columns.push_back(std::move(column));
}

const ScanColumn* ScanTable::find(const std::string& column) const {
  const std::string wanted = upper_case(column);
  for (const auto& c : columns)
    if (upper_case(c.name) == wanted) return &c;
  return nullptr;
}

bool ScanTable::has(const std::string& word) const {
  return find(word) != nullptr || keywords.count(upper_case(word)) > 0;
}

RawSamples ScanTable::samples(const ScanColumn& column) const {
  RawSamples s;
  s.number = column.form;
  s.n_samples = n_rows;
  s.n_channels = 1;
  s.first_byte = first_byte + column.offset_bytes;
  s.sample_step_bytes = row_bytes;
  s.channel_step_bytes = column.form.bytes;
  return s;
}

std::vector<double> ScanTable::numbers(const std::string& word, std::int64_t element) const {
  const ScanColumn* column = find(word);
  if (column != nullptr && column->numbers) {
    if (element >= column->repeat) return {};
    RawSamples s = samples(*column);
    s.first_byte += element * column->form.bytes;
    return read_raw_numbers(*raw_, s);
  }
  if (column != nullptr && column->text) {
    std::vector<double> out;
    for (const auto& text : texts(word)) out.push_back(scan_number(text));
    return out;
  }
  const auto found = keywords.find(upper_case(word));
  if (found == keywords.end() || !std::isfinite(scan_number(found->second))) return {};
  return std::vector<double>(n_rows, scan_number(found->second));
}

std::vector<std::string> ScanTable::texts(const std::string& word) const {
  const ScanColumn* column = find(word);
  std::vector<std::string> out;
  if (column != nullptr && column->text) {
    out.reserve(n_rows);
    std::string text(column->repeat, ' ');
    for (std::int64_t k = 0; k < n_rows; ++k) {
      raw_->read(first_byte + k * row_bytes + column->offset_bytes, column->repeat, text.data());
      out.emplace_back(trimmed(text.c_str()));
    }
    return out;
  }
  if (column != nullptr && column->numbers) {
    const bool logical = column->form.kind == RawNumber::Kind::logical;
    for (const double value : numbers(word))
      out.push_back(logical ? (value != 0 ? "T" : "F") : fmt::format("{}", value));
    return out;
  }
  const auto found = keywords.find(upper_case(word));
  if (found != keywords.end()) out.assign(n_rows, found->second);
  return out;
}

std::string ScanTable::unit(const std::string& column) const {
  const ScanColumn* found = find(column);
  return found != nullptr ? found->unit : std::string();
}

std::string ScanTable::list() const {
  std::string text;
  for (const auto& c : columns)
    text += (text.empty() ? "" : ", ") + c.name +
            (c.numbers && c.repeat > 1 ? fmt::format(" [{}]", c.repeat) : "");
  return text;
}

std::vector<ScanTable> read_scan_tables(const FitsFile& file, std::shared_ptr<const RawFile> raw) {
  std::vector<ScanTable> tables;
  int status = 0, n = 0;
  fits_get_num_hdus(file.get(), &n, &status);
  file.check(status, "count the tables of");
  for (int hdu = 1; hdu <= n; ++hdu) {
    int type = 0;
    fits_movabs_hdu(file.get(), hdu, &type, &status);
    file.check(status, fmt::format("go to table {} of", hdu));
    if (type != BINARY_TBL) continue;
    tables.emplace_back(file, raw, hdu);
    file.require_data_sum();
  }
  return tables;
}

}  // namespace ryle::io
