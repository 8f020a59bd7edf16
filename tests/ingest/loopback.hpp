// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ryle/ingest/socket.hpp"
#include "tests/support/own_host.hpp"

namespace ryle::test {

/// A plain blocking socket connected to an endpoint on this machine.
class Sender {
 public:
  /// From the address `from` of this machine, unless that is "".
  explicit Sender(const std::string& endpoint_text, const std::string& from = "") {
    const Endpoint endpoint = parse_endpoint(endpoint_text);
    const bool tcp = endpoint.transport == Endpoint::Transport::tcp;
    descriptor_ = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    prepare_multicast_sender(descriptor_, endpoint);
    inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr);
    if (!from.empty()) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      inet_pton(AF_INET, from.c_str(), &own.sin_addr);
      if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
        throw std::runtime_error("cannot send from " + from);
    }
    if (connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to " + endpoint_text);
    }
  }
  Sender(Sender&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  ~Sender() { close(); }
  /// False when the peer is gone.
  bool send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }
  /// One datagram, of any size (also none at all).
  void send_datagram(std::span<const std::byte> bytes) {
    [[maybe_unused]] const auto n = ::send(descriptor_, bytes.data(), bytes.size(), 0);
  }
  /// Lets the kernel cut what is sent into datagrams of this size (UDP_SEGMENT).
  bool set_segment(int bytes) {
    return setsockopt(descriptor_, IPPROTO_UDP, 103, &bytes, sizeof bytes) == 0;
  }
  Sender& operator=(Sender&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = other.descriptor_;
      other.descriptor_ = -1;
    }
    return *this;
  }
  int descriptor() const { return descriptor_; }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  /// Ends the connection with RST.
  void reset() {
    const linger hard{1, 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }

 private:
  int descriptor_ = -1;
};

/// An endpoint that nobody else takes, for whoever must know it beforehand.
inline std::string own_endpoint(const std::string& transport) {
  return transport + "://" + own_host() + ":" + std::to_string(own_port());
}

}  // namespace ryle::test
