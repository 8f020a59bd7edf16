// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <string_view>

namespace ryle::detail {

/// Throws ConfigError "origin:line: ..." where a key has more than 32 parts (a.b.c), or brackets
/// and braces are nested deeper than 32: the TOML library calls itself once for each.
void check_toml_depth(std::string_view text, const std::string& origin);

}  // namespace ryle::detail
