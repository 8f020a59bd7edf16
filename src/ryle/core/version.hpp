// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string_view>

namespace ryle {

/// Version of the library, as written into every product ("0.1.0").
std::string_view version();

}  // namespace ryle
