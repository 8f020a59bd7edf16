// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace ryle::test {

/// A loopback address that no other process of this machine uses: tests that must know a port
/// before anybody listens there cannot lose it to a test that runs beside them. The whole of
/// 127.0.0.0/8 is this machine, and process numbers are below 2^22. Where only 127.0.0.1 is (a
/// loopback device set up by hand), that.
inline std::string own_host() {
  const auto pid = static_cast<unsigned>(::getpid());
  const std::string host = "127." + std::to_string(64 + (pid >> 16)) + "." +
                           std::to_string(pid >> 8 & 255) + "." + std::to_string(pid & 255);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  const int probe = ::socket(AF_INET, SOCK_DGRAM, 0);
  const bool mine = ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return mine ? host : "127.0.0.1";
}

/// The first of twelve ports for this process: where processes share 127.0.0.1, neighbours in
/// number use others.
inline int own_port() { return 20'000 + static_cast<int>(::getpid() % 1000) * 12; }

}  // namespace ryle::test
