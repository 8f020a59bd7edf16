// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/endpoint.hpp"

#include <charconv>

#include "ryle/core/error.hpp"

namespace ryle {

Endpoint parse_endpoint(std::string_view text) {
  const auto fail = [text](const char* why) {
    return ConfigError("endpoint '" + std::string(text) + "' " + why +
                       "; it is not tcp://host:port or udp://host:port, for example "
                       "udp://127.0.0.1:4002");
  };
  Endpoint endpoint;
  if (text.starts_with("tcp://")) {
    endpoint.transport = Endpoint::Transport::tcp;
  } else if (!text.starts_with("udp://")) {
    throw fail("has no known transport");
  }
  const std::string_view rest = text.substr(6);
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) throw fail("has no port or no host");
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  endpoint.host = host;
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    throw fail("has a port that is not a number from 0 to 65535");
  }
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return (endpoint.is_tcp() ? "tcp://" : "udp://") +
         (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

}  // namespace ryle
