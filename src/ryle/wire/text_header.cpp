// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/text_header.hpp"
#include "ryle/core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace ryle::wire {
namespace {

constexpr std::size_t kCardBytes = 80;
constexpr std::size_t kMaxCards =
    1024;  // real headers have 60 to 100; a file of blanks must not be walked to its end

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) noexcept {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value > -1e300 && value < 1e300))
    return std::nullopt;  // inf and nan are words from_chars knows
  return value;
}

std::optional<Rational> parse_decimal(std::string_view text) noexcept {
  bool negative = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  std::string_view mantissa = text.substr(0, text.find_first_not_of("0123456789."));
  std::string_view exponent_text = text.substr(mantissa.size());
  // Zeros at the end are common ("544.000000") and would use up the range.
  if (mantissa.find('.') != std::string_view::npos) {
    while (mantissa.size() > 1 && mantissa.back() == '0') mantissa.remove_suffix(1);
  }
  Rational value{0, 1};
  bool digits = false, point = false;
  for (const char c : mantissa) {
    if (c == '.') {
      if (point) return std::nullopt;
      point = true;
      continue;
    }
    digits = true;
    if (__builtin_mul_overflow(value.num, 10, &value.num) ||
        __builtin_add_overflow(value.num, c - '0', &value.num)) {
      return std::nullopt;
    }
    if (point && __builtin_mul_overflow(value.den, 10, &value.den)) return std::nullopt;
  }
  if (!digits) return std::nullopt;
  if (!exponent_text.empty()) {
    if (exponent_text[0] != 'e' && exponent_text[0] != 'E') return std::nullopt;
    const auto exponent = parse_integer(exponent_text.substr(1));
    if (!exponent || *exponent > 18 || *exponent < -18) return std::nullopt;
    for (std::int64_t e = 0; e < std::abs(*exponent); ++e) {
      if (__builtin_mul_overflow(*exponent > 0 ? value.num : value.den, 10,
                                 *exponent > 0 ? &value.num : &value.den)) {
        return std::nullopt;
      }
    }
  }
  if (negative) value.num = -value.num;
  return value.reduced();
}

std::size_t guppi_header_bytes(std::span<const std::byte> start) noexcept {
  const std::string_view text = text_of(start);
  for (std::size_t k = 0; k < kMaxCards && (k + 1) * kCardBytes <= text.size(); ++k) {
    const std::string_view card = text.substr(k * kCardBytes, kCardBytes);
    // A comparison of chars: bytes above 126 are negative or large, and no text either way.
    if (!std::all_of(card.begin(), card.end(), [](char c) { return c >= ' ' && c <= '~'; }))
      return 0;
    if (trimmed(card) == "END") return (k + 1) * kCardBytes;
  }
  return 0;
}

TextField guppi_card(std::span<const std::byte> header, std::size_t k) noexcept {
  if (k >= header.size() / kCardBytes) return {};
  const std::string_view card = text_of(header).substr(k * kCardBytes, kCardBytes);
  const std::size_t equals = card.find('=');
  if (equals == std::string_view::npos || equals > 8) return {};
  std::string_view value = trimmed(card.substr(equals + 1));
  if (!value.empty() && value.front() == '\'') {
    value.remove_prefix(1);
    value = value.substr(0, value.find('\''));
  } else {
    value = value.substr(0, value.find('/'));
  }
  return {trimmed(card.substr(0, equals)), trimmed(value)};
}

std::string_view guppi_value(std::span<const std::byte> header, std::string_view key) noexcept {
  std::string_view found;
  for (std::size_t k = 0; k < header.size() / kCardBytes; ++k) {
    const TextField field = guppi_card(header, k);
    if (field.key == key) found = field.value;
  }
  return found;
}

TextField dada_field(std::span<const std::byte> header, std::size_t& offset) noexcept {
  std::string_view text = text_of(header);
  text = text.substr(0, text.find('\0'));
  while (offset < text.size()) {
    const std::size_t end = std::min(text.find('\n', offset), text.size());
    std::string_view line = text.substr(offset, end - offset);
    offset = end + 1;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t blank = line.find_first_of(" \t");
    if (blank == std::string_view::npos) return {line, {}};
    return {line.substr(0, blank), trimmed(line.substr(blank))};
  }
  return {};
}

std::string_view dada_value(std::span<const std::byte> header, std::string_view key) noexcept {
  std::size_t offset = 0;
  for (;;) {
    const TextField field = dada_field(header, offset);
    if (field.key.empty() || field.key == key) return field.value;
  }
}

}  // namespace ryle::wire
