// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ryle {

/// The known word most like `word`, for "did you mean": by edit distance, a shared beginning counts
/// for much, since units at the end are what people get wrong. "" without known words.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace ryle
