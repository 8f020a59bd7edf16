// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <string_view>

namespace ryle {

/// SHA-256 of a text as 64 hexadecimal digits (FIPS 180-4): the fingerprint of a configuration in a
/// product.
std::string sha256_hex(std::string_view text);

}  // namespace ryle
