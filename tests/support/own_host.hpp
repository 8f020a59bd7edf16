// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <unistd.h>

#include <string>

namespace ryle::test {

/// A loopback address that no other process of this machine uses: tests that must know a port
/// before anybody listens there cannot lose it to a test that runs beside them. The whole of
/// 127.0.0.0/8 is this machine, and process numbers are below 2^22.
inline std::string own_host() {
  const auto pid = static_cast<unsigned>(::getpid());
  return "127." + std::to_string(64 + (pid >> 16)) + "." + std::to_string(pid >> 8 & 255) + "." +
         std::to_string(pid & 255);
}

}  // namespace ryle::test
