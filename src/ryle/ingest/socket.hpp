// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/endpoint.hpp"
#include "ryle/ingest/sender_list.hpp"

namespace ryle {

/// A socket that does not block.
class Socket : public Descriptor {
 public:
  using Descriptor::Descriptor;
  std::uint16_t local_port() const;
};

/// Bound, unconnected. A multicast group is joined, on Endpoint::interface and of
/// Endpoint::sources alone where they are given; the address may then be taken by others too.
/// Throws IoError (exit 69 or 77) naming the endpoint.
Socket udp_bind(const Endpoint& endpoint, bool reuse_address = false);
/// Sends to the endpoint, through its interface and with its ttl where it is a multicast group;
/// waits while its buffer is full. Throws IoError (exit 69 or 77) naming the endpoint.
Socket udp_connect(const Endpoint& endpoint);
Socket tcp_listen(const Endpoint& endpoint);
/// The connection waiting, or an empty socket. `peer` gets the address at its other end.
Socket tcp_accept(const Socket& listener, SenderAddress* peer);
/// A connection that is being made, or an empty socket when it failed at once.
Socket tcp_connect(const Endpoint& endpoint);
/// Of a connection being made, once it is writable: 0 or errno.
int connect_error(const Socket& socket);

/// Asks for `bytes` of receive buffer, by SO_RCVBUFFORCE, then SO_RCVBUF; returns what is granted
/// in the kernel's count (twice the request: overhead is charged too).
std::int64_t set_receive_buffer(const Socket& socket, std::int64_t bytes);
/// Datagrams the kernel dropped for want of room, since the socket was made (SO_MEMINFO).
std::uint64_t kernel_drops(const Socket& socket);
/// Keepalive: a peer that is gone is found within about 8 s.
void set_keepalive(const Socket& socket);
void set_no_delay(const Socket& socket);
/// "net.core.rmem_max", or 0 when it cannot be read.
std::int64_t system_rmem_max();

/// Bytes received and not yet read.
std::int64_t unread_bytes(const Socket& socket);

/// Identity of an IPv4 or IPv6 address and port (a sockaddr); 0 for other families.
std::uint64_t sender_identity(const void* address);

/// Receives datagrams in batches of up to 64, cut into segments where the kernel joined them
/// (UDP_GRO).
class DatagramReader {
 public:
  struct Datagram {
    const std::byte* data = nullptr;
    std::size_t size = 0;
    std::uint64_t sender = 0;       ///< sender_identity()
    const void* address = nullptr;  ///< a sockaddr
    bool truncated = false;
  };
  /// Buffers for datagrams up to `max_bytes`; 64 KiB each with `gro`.
  DatagramReader(std::size_t max_bytes, bool gro, std::size_t batch = 64);
  ~DatagramReader();
  DatagramReader(DatagramReader&&) noexcept;
  /// Switches the kernel's joining on; false when it has none.
  static bool enable_gro(const Socket& socket);
  /// One system call for at most `limit` messages, never waits. Datagrams stay valid until the next
  /// call.
  const std::vector<Datagram>& receive(const Socket& socket, std::size_t limit = 64);
  std::int64_t memory_bytes() const;

 private:
  struct Buffers;
  Buffers* buffers_;
};

}  // namespace ryle
