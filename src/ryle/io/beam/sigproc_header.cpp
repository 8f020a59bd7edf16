// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/beam/sigproc.hpp"

namespace ryle {
namespace {

enum class Kind { i32, i64, f64, u8, text, table_start, table_end, channel };

struct Key {
  std::string_view name;
  Kind kind;
};

constexpr std::array kKeys{
    Key{"telescope_id", Kind::i32},
    Key{"machine_id", Kind::i32},
    Key{"data_type", Kind::i32},
    Key{"nchans", Kind::i32},
    Key{"nbits", Kind::i32},
    Key{"nifs", Kind::i32},
    Key{"nsamples", Kind::i32},
    Key{"nbeams", Kind::i32},
    Key{"ibeam", Kind::i32},
    Key{"nbins", Kind::i32},
    Key{"barycentric", Kind::i32},
    Key{"pulsarcentric", Kind::i32},
    Key{"fch1", Kind::f64},
    Key{"foff", Kind::f64},
    Key{"tstart", Kind::f64},
    Key{"tsamp", Kind::f64},
    Key{"refdm", Kind::f64},
    Key{"period", Kind::f64},
    Key{"az_start", Kind::f64},
    Key{"za_start", Kind::f64},
    Key{"src_raj", Kind::f64},
    Key{"src_dej", Kind::f64},
    Key{"rawdatafile", Kind::text},
    Key{"source_name", Kind::text},
    Key{"signed", Kind::u8},  // one byte: as i32 it would shift all data by three
    Key{"FREQUENCY_START", Kind::table_start},
    Key{"FREQUENCY_END", Kind::table_end},
    Key{"fchannel", Kind::channel},
};
constexpr std::int64_t kLongestString = 80;

/// Reads values from the front of a file, knowing where it is.
class Cursor {
 public:
  Cursor(const std::string& bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  std::int64_t at() const { return at_; }

  [[noreturn]] void fail(std::int64_t offset, const std::string& what) const {
    throw FormatError(fmt::format("{}: byte {}: {}", path_, offset, what));
  }
  template <class T>
  T value(const std::string& field) {
    T out;
    need(static_cast<std::int64_t>(sizeof out), field);
    std::memcpy(&out, bytes_.data() + at_, sizeof out);
    at_ += static_cast<std::int64_t>(sizeof out);
    return out;
  }
  std::string text(const std::string& field, bool may_be_empty = false) {
    const std::int64_t offset = at_;
    const auto length = value<std::int32_t>("length of " + field);
    if (length < (may_be_empty ? 0 : 1) || length > kLongestString)
      fail(offset, fmt::format("length of {} is {}; a SIGPROC string has 1 to {} bytes", field,
                               length, kLongestString));
    need(length, field);
    std::string out =
        bytes_.substr(static_cast<std::size_t>(at_), static_cast<std::size_t>(length));
    at_ += length;
    return out;
  }

 private:
  void need(std::int64_t n, const std::string& field) const {
    if (static_cast<std::int64_t>(bytes_.size()) - at_ < n)
      fail(at_, fmt::format("the header ends within {}", field));
  }
  const std::string& bytes_;
  const std::string& path_;
  std::int64_t at_ = 0;
};

std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

Kind kind_of_type(const std::string& type, const std::string& key) {
  if (type == "i32") return Kind::i32;
  if (type == "i64") return Kind::i64;
  if (type == "f64") return Kind::f64;
  if (type == "u8") return Kind::u8;
  if (type == "string") return Kind::text;
  throw ConfigError("SIGPROC key \"" + key +
                    "\": write NAME:TYPE, TYPE one of i32 i64 f64 u8 string");
}

std::map<std::string, Kind> known_keys(const std::vector<std::string>& more) {
  std::map<std::string, Kind> keys;
  for (const auto& key : kKeys) keys.emplace(key.name, key.kind);
  for (const auto& key : more) {
    const auto colon = key.find(':');
    const std::string type = colon == std::string::npos ? "" : key.substr(colon + 1);
    keys[key.substr(0, colon)] = kind_of_type(type, key);
  }
  return keys;
}

void read_value(Cursor& cursor, Kind kind, const std::string& key, SigprocHeader& header) {
  switch (kind) {
    case Kind::i32:
      header.numbers[key] = cursor.value<std::int32_t>(key);
      return;
    case Kind::i64:
      header.numbers[key] = static_cast<double>(cursor.value<std::int64_t>(key));
      return;
    case Kind::f64:
      header.numbers[key] = cursor.value<double>(key);
      return;
    case Kind::u8:
      header.numbers[key] = cursor.value<std::uint8_t>(key);
      return;
    case Kind::text:
      header.strings[key] = cursor.text("the value of " + key, true);
      return;
    default:
      return;
  }
}

/// "FREQUENCY_START" fchannel ... "FREQUENCY_END" and the rules of its order.
void read_table_entry(Cursor& cursor, Kind kind, std::int64_t offset, bool& in_table,
                      SigprocHeader& header) {
  if (kind == Kind::table_start) {
    if (in_table || !header.channel_table_mhz.empty())
      cursor.fail(offset, "a second FREQUENCY_START; one table of channels only");
    in_table = true;
    return;
  }
  if (!in_table) cursor.fail(offset, "fchannel or FREQUENCY_END without FREQUENCY_START");
  if (kind == Kind::table_end) {
    in_table = false;
    return;
  }
  const auto mhz = cursor.value<double>("fchannel");
  if (!(std::isfinite(mhz) && mhz > 0))
    cursor.fail(offset, fmt::format("fchannel {}; it must be a frequency above 0 MHz", mhz));
  header.channel_table_mhz.push_back(mhz);
}

struct Sexagesimal {
  double first, minutes, seconds;
};

// 9's of rounding: 59.9999999999 s must not become 60.0 s in somebody's parser.
Sexagesimal split(double units) {
  constexpr double kTicksPerSecond = 1e7;
  const double ticks = std::round(units * 3600 * kTicksPerSecond);
  const double whole = std::floor(ticks / (3600 * kTicksPerSecond));
  const double rest = ticks - whole * 3600 * kTicksPerSecond;
  const double minutes = std::floor(rest / (60 * kTicksPerSecond));
  return {whole, minutes, (rest - minutes * 60 * kTicksPerSecond) / kTicksPerSecond};
}

double join(double packed) {
  const double first = std::floor(packed / 10000);
  const double minutes = std::floor((packed - first * 10000) / 100);
  return first + minutes / 60 + (packed - first * 10000 - minutes * 100) / 3600;
}

}  // namespace

double SigprocHeader::number(const std::string& key, double otherwise) const {
  const auto found = numbers.find(key);
  return found == numbers.end() ? otherwise : found->second;
}

SigprocHeader parse_sigproc_header(const std::string& bytes, const std::string& path,
                                   const std::vector<std::string>& more) {
  const auto keys = known_keys(more);
  Cursor cursor(bytes, path);
  SigprocHeader header;
  if (cursor.text("the first string") != "HEADER_START")
    cursor.fail(0, "not a SIGPROC file: it does not begin with HEADER_START");
  bool in_table = false;
  for (;;) {
    const std::int64_t offset = cursor.at();
    const std::string key = cursor.text("a key");
    if (key == "HEADER_END") {
      if (in_table) cursor.fail(offset, "HEADER_END within a table of channels");
      break;
    }
    const auto known = keys.find(key);
    if (known == keys.end())
      cursor.fail(offset,
                  fmt::format("unknown key \"{}\"; its size is not known either: tell it by "
                              "--key {}:TYPE, TYPE one of i32 i64 f64 u8 string",
                              printable(key), printable(key)));
    if (known->second >= Kind::table_start) {
      read_table_entry(cursor, known->second, offset, in_table, header);
      continue;
    }
    if (header.numbers.count(key) + header.strings.count(key) > 0)
      cursor.fail(offset, fmt::format("key \"{}\" twice", key));
    read_value(cursor, known->second, key, header);
  }
  header.header_bytes = cursor.at();
  return header;
}

double sigproc_hours_to_rad(double hhmmss) { return join(std::abs(hhmmss)) * 15 * kDegree_rad; }

double sigproc_degrees_to_rad(double ddmmss) {
  const double value = join(std::abs(ddmmss)) * kDegree_rad;
  return std::signbit(ddmmss) ? -value : value;
}

double rad_to_sigproc_hours(double ra_rad) {
  const double turns = ra_rad / (2 * kPi);
  const auto [h, m, s] = split(24 * (turns - std::floor(turns)));
  return (h >= 24 ? 0 : h) * 10000 + m * 100 + s;
}

double rad_to_sigproc_degrees(double dec_rad) {
  const auto [d, m, s] = split(std::abs(dec_rad) / kDegree_rad);
  const double value = d * 10000 + m * 100 + s;
  return dec_rad < 0 ? -value : value;
}

}  // namespace ryle
