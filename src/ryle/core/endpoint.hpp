// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ryle {

/// "tcp://host:port" or "udp://host:port"; "[::1]:port" for IPv6. Port 0 lets the system choose.
/// "pipe:/path" is a named pipe or a file that is read, "fd://3" a descriptor that this program was
/// started with: host is then the path, or port the descriptor.
/// After a multicast group: "?interface=eth1" (or an address of that interface), "&source=10.0.0.1"
/// for each sender that is taken (none: any), "&ttl=4" of what is sent there.
struct Endpoint {
  enum class Transport : std::uint8_t { tcp, udp, pipe };
  Transport transport = Transport::udp;
  std::string host;
  std::uint16_t port = 0;
  std::string interface;             ///< of a multicast group; "" = the system chooses
  std::vector<std::string> sources;  ///< of a multicast group: addresses; empty = any
  int ttl = 0;                       ///< of packets sent to a multicast group; 0 = the system's, 1

  bool is_tcp() const { return transport == Transport::tcp; }
  bool is_udp() const { return transport == Transport::udp; }
  bool is_pipe() const { return transport == Transport::pipe; }
  bool operator==(const Endpoint&) const = default;
};
/// Throws ConfigError naming the text and the form that would work.
Endpoint parse_endpoint(std::string_view text);
/// "udp://239.1.2.3+15:7148" is 16 groups, up to 239.1.2.18: the endpoints of a list one by one.
/// Throws ConfigError as parse_endpoint() does.
std::vector<std::string> expand_endpoints(const std::vector<std::string>& texts);
std::string to_string(const Endpoint& endpoint);

/// The host is the number of a multicast group.
bool is_multicast(const Endpoint& endpoint);
/// Index of Endpoint::interface, 0 for "". Throws IoError (exit 69) with the interfaces that this
/// machine has where there is none of that name or address.
unsigned interface_index(const Endpoint& endpoint);
/// What this socket sends to a multicast group leaves through its interface, with its ttl; nothing
/// happens for other endpoints. Throws as interface_index().
void prepare_multicast_sender(int socket, const Endpoint& endpoint);

}  // namespace ryle
