// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string_view>

namespace ryle {

/// Version and commit of the library, as written into every product ("0.1.0+8a00d91").
std::string_view version();

}  // namespace ryle
