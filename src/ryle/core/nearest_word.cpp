// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/nearest_word.hpp"

#include <algorithm>
#include <cstddef>

namespace ryle {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  double best_score = 1e9;
  for (const auto& k : known) {
    const auto prefix = static_cast<std::size_t>(
        std::mismatch(word.begin(), word.end(), k.begin(), k.end()).first - word.begin());
    const double score =
        static_cast<double>(edit_distance(word, k)) - 0.9 * static_cast<double>(prefix);
    if (score < best_score) {
      best_score = score;
      best = k;
    }
  }
  return best;
}

}  // namespace ryle
