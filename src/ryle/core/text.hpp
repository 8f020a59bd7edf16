// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Texts of files, options and messages. Letters are those of ASCII.
namespace ryle {

/// Without blanks (spaces, tabs, ends of lines) at both ends.
std::string_view trimmed(std::string_view text);
std::string lower_case(std::string text);
std::string upper_case(std::string text);
/// Parts between separators, trimmed; one more than there are separators.
std::vector<std::string> split(std::string_view text, char separator);
/// "a, b, c" of anything that holds texts.
template <class Texts>
std::string comma_separated(const Texts& texts) {
  std::string all;
  std::size_t n = 0;
  for (const auto& text : texts) (all += n++ == 0 ? "" : ", ") += text;
  return all;
}
/// Parses a complete finite decimal number with or without blanks around it; false for anything
/// else ("nan" and "inf" included).
bool parse_finite(std::string_view text, double& value);
/// The known word most like `word`, for "did you mean": by edit distance, a shared beginning counts
/// for much, since units at the end are what people get wrong. "" without known words.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace ryle
