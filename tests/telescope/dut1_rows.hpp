// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace ryle::test {

/// UT1 - UTC about the leap second of 2016 (IERS, finals2000A).
inline constexpr const char* kDut1Of2016 =
    "57752,-0.4067\n57753,-0.4076\n57754,0.5912\n57755,0.5898\n57756,0.5884\n";

}  // namespace ryle::test
