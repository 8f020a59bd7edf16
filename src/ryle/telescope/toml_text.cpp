// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/toml_text.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"

namespace ryle::detail {
namespace {

/// Position of the last character of the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool lines = text.substr(at, 3) == triple;
  for (std::size_t k = at + (lines ? 3 : 1); k < text.size(); ++k) {
    if (quote == '"' && text[k] == '\\') {
      ++k;
    } else if (lines ? text.substr(k, 3) == triple : text[k] == quote || text[k] == '\n') {
      return lines ? k + 2 : (text[k] == '\n' ? k - 1 : k);
    }
  }
  return text.size();
}

}  // namespace

void check_toml_depth(std::string_view text, const std::string& origin) {
  constexpr int kDeepest_toml = 32;
  int n_dots = 0, n_open = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '"' || c == '\'') {
      k = end_of_string(text, k);
    } else if (c == '#') {
      k = std::min(text.find('\n', k), text.size()) - 1;
    } else if (c == '[' || c == '{') {
      ++n_open;
    } else if (c == ']' || c == '}') {
      n_open = std::max(n_open - 1, 0);
    }
    if (c == '.')
      ++n_dots;
    else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos)
      n_dots = 0;
    if (n_dots < kDeepest_toml && n_open <= kDeepest_toml) continue;
    throw ConfigError(
        origin + ":" +
        std::to_string(
            1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(k), '\n')) +
        ": keys and lists nested more than 32 deep; an observation has two levels");
  }
}

}  // namespace ryle::detail
