// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

namespace ryle {

/// Bytes of the device's memory that nobody has now. Throws DeviceError without such a device.
std::int64_t free_device_bytes(int cuda_device);

}  // namespace ryle
