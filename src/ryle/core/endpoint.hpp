// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ryle {

/// "tcp://host:port" or "udp://host:port"; "[::1]:port" for IPv6. Port 0 lets the system choose.
struct Endpoint {
  enum class Transport : std::uint8_t { tcp, udp };
  Transport transport = Transport::udp;
  std::string host;
  std::uint16_t port = 0;

  bool is_tcp() const { return transport == Transport::tcp; }
};
/// Throws ConfigError naming the text and the form that would work.
Endpoint parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

}  // namespace ryle
