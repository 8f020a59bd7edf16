// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle {
namespace {

struct AddressInfo {
  explicit AddressInfo(const Endpoint& endpoint, int type, bool passive) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = type;
    hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
    const std::string port = std::to_string(endpoint.port);
    const int error = getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list);
    if (error != 0) {
      throw IoError(ExitCode::unavailable,
                    fmt::format("cannot resolve {}: {}; give a numeric address or a known host",
                                to_string(endpoint), gai_strerror(error)));
    }
  }
  ~AddressInfo() {
    if (list != nullptr) freeaddrinfo(list);
  }
  AddressInfo(const AddressInfo&) = delete;
  AddressInfo& operator=(const AddressInfo&) = delete;
  addrinfo* list = nullptr;
};

[[noreturn]] void socket_error(const char* operation, const Endpoint& endpoint, int error) {
  const char* remedy = "";
  if (error == EADDRINUSE) remedy = "; another program uses the port (ss -lntup shows which)";
  if (error == EADDRNOTAVAIL) remedy = "; this machine has no such address (ip addr lists them)";
  if (error == EACCES) remedy = "; ports below 1024 need privileges";
  throw IoError(error == EACCES || error == EPERM ? ExitCode::no_permission : ExitCode::unavailable,
                fmt::format("cannot {} {}: {}{}", operation, to_string(endpoint),
                            std::strerror(error), remedy));
}

void set_option(const Socket& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

// Joins the group of `address`, of the sources asked for. Binding alone succeeds, and then nothing
// ever comes.
void join_group(const Socket& socket, const Endpoint& endpoint, const addrinfo& address) {
  const bool v6 = address.ai_family == AF_INET6;
  const int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const unsigned interface = interface_index(endpoint);
  // Else what any other program here has joined, by other interfaces, comes as well.
  constexpr int kIpv6MulticastAll = 29;  // linux/in6.h; not in the C library's headers of Debian 12
  set_option(socket, level, v6 ? kIpv6MulticastAll : IP_MULTICAST_ALL, 0);
  const auto check = [&](int status) {
    if (status == 0) return;
    const int error = errno;
    const bool no_route = error == ENODEV || error == EADDRNOTAVAIL;
    throw IoError(ExitCode::unavailable,
                  fmt::format("cannot join the multicast group {}: {}{}", to_string(endpoint),
                              std::strerror(error),
                              no_route ? "; name the interface that the group comes in through, "
                                         "?interface=eth1 (ip addr lists them)"
                                       : ""));
  };
  group_source_req request{};
  request.gsr_interface = interface;
  std::memcpy(&request.gsr_group, address.ai_addr, address.ai_addrlen);
  if (endpoint.sources.empty()) {
    group_req any{};
    any.gr_interface = interface;
    any.gr_group = request.gsr_group;
    check(setsockopt(socket.get(), level, MCAST_JOIN_GROUP, &any, sizeof any));
  }
  for (const auto& source : endpoint.sources) {
    const AddressInfo sender({Endpoint::Transport::udp, source, endpoint.port, "", {}, 0},
                             SOCK_DGRAM, false);
    if (sender.list->ai_family != address.ai_family)
      throw ConfigError(fmt::format("endpoint {}: the source {} is not of the family of the group",
                                    to_string(endpoint), source));
    std::memcpy(&request.gsr_source, sender.list->ai_addr, sender.list->ai_addrlen);
    check(setsockopt(socket.get(), level, MCAST_JOIN_SOURCE_GROUP, &request, sizeof request));
  }
}

Socket bound(const Endpoint& endpoint, int type, bool reuse) {
  const AddressInfo info(endpoint, type, true);
  const bool multicast = is_multicast(endpoint);
  if (multicast && type != SOCK_DGRAM) {
    throw ConfigError(fmt::format("endpoint {} is a multicast group: those are of udp:// only",
                                  to_string(endpoint)));
  }
  if (multicast && info.list->ai_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(info.list->ai_addr)->sin6_scope_id = interface_index(endpoint);
  Socket socket(::socket(info.list->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) socket_error("make a socket for", endpoint, errno);
  // A group has as many receivers on a machine as want it.
  if (reuse || multicast) set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket.get(), info.list->ai_addr, info.list->ai_addrlen) != 0) {
    socket_error("listen on", endpoint, errno);
  }
  if (multicast) join_group(socket, endpoint, *info.list);
  return socket;
}

std::uint64_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t salt) {
  std::uint64_t key = mix64(salt);
  const auto* p = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i) key = combine(key, p[i]);
  return key | 1;
}

}  // namespace

std::uint16_t Socket::local_port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Socket udp_bind(const Endpoint& endpoint, bool reuse_address) {
  return bound(endpoint, SOCK_DGRAM, reuse_address);
}

Socket udp_connect(const Endpoint& endpoint) {
  const AddressInfo info(endpoint, SOCK_DGRAM, false);
  Socket socket(::socket(info.list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) socket_error("make a socket for", endpoint, errno);
  prepare_multicast_sender(socket.get(), endpoint);
  if (connect(socket.get(), info.list->ai_addr, info.list->ai_addrlen) != 0)
    socket_error("send to", endpoint, errno);
  return socket;
}

Socket tcp_listen(const Endpoint& endpoint) {
  Socket socket = bound(endpoint, SOCK_STREAM, true);
  if (listen(socket.get(), 4) != 0) socket_error("listen on", endpoint, errno);
  return socket;
}

Socket tcp_accept(const Socket& listener, SenderAddress* peer) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  Socket socket(accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (peer != nullptr) *peer = socket ? sender_address(&address) : SenderAddress{};
  return socket;
}

Socket tcp_connect(const Endpoint& endpoint) {
  const AddressInfo info(endpoint, SOCK_STREAM, false);
  Socket socket(::socket(info.list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  if (connect(socket.get(), info.list->ai_addr, info.list->ai_addrlen) != 0 &&
      errno != EINPROGRESS) {
    socket.close();
  }
  return socket;
}

int connect_error(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

std::int64_t set_receive_buffer(const Socket& socket, std::int64_t bytes) {
  // The kernel doubles what is asked for and charges its own overhead to the result.
  const int half = static_cast<int>(std::min<std::int64_t>((bytes + 1) / 2, 1 << 30));
  if (setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof half) != 0) {
    set_option(socket, SOL_SOCKET, SO_RCVBUF, half);
  }
  int granted = 0;
  socklen_t size = sizeof granted;
  getsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &granted, &size);
  return granted;
}

std::uint64_t kernel_drops(const Socket& socket) {
  constexpr int kSoMeminfo = 55;     // SO_MEMINFO; older headers lack the name
  constexpr std::size_t kDrops = 8;  // SK_MEMINFO_DROPS
  std::array<std::uint32_t, 9> info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket.get(), SOL_SOCKET, kSoMeminfo, info.data(), &size) != 0) return 0;
  return info[kDrops];
}

void set_keepalive(const Socket& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void set_no_delay(const Socket& socket) { set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

std::int64_t system_rmem_max() {
  std::ifstream file("/proc/sys/net/core/rmem_max");
  std::int64_t value = 0;
  return file >> value ? value : 0;
}

std::int64_t unread_bytes(const Socket& socket) {
  int n = 0;
  return ioctl(socket.get(), FIONREAD, &n) == 0 ? n : 0;
}

std::uint64_t sender_identity(const void* address) {
  const auto family = static_cast<const sockaddr*>(address)->sa_family;
  if (family == AF_INET) {
    const auto* v4 = static_cast<const sockaddr_in*>(address);
    const std::uint64_t host = ntohl(v4->sin_addr.s_addr);
    return (host << 17) | (std::uint64_t{ntohs(v4->sin_port)} << 1) | 1;
  }
  if (family == AF_INET6) {
    const auto* v6 = static_cast<const sockaddr_in6*>(address);
    return hash_bytes(&v6->sin6_addr, sizeof v6->sin6_addr, v6->sin6_port);
  }
  return 0;
}

}  // namespace ryle
