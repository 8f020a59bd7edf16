// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/ingest/reason.hpp"
#include "ryle/ingest/socket.hpp"

namespace ryle {

/// One bound UDP socket and the streams its configuration expects there.
struct UdpPort {
  Endpoint endpoint;
  Socket socket;
  std::vector<std::uint32_t> streams;
  std::uint64_t drops = 0;
  std::uint64_t received = 0;                            ///< datagrams
  std::optional<std::array<std::uint8_t, 16>> ip;        ///< of the endpoint, where it is a number
  std::vector<std::array<std::uint8_t, 16>> source_ips;  ///< of its sources
  std::int64_t position = 0;  ///< how far it has been read: newest slot of its last good packet
  bool useful = true;  ///< its last read brought something with a place in time (ReadingOrder)
};

/// Whether a datagram judged like this tells how far its socket has been read: not so strangers,
/// damage and what lies outside the window.
inline bool tells_position(Reason reason) {
  return reason == Reason::used || reason == Reason::prelock || reason == Reason::overrun;
}

/// The UDP sockets of a source, with what every format does alike: receive buffers, reading in
/// batches, what the kernel dropped.
class UdpPorts {
 public:
  /// `replay`: there are no sockets, datagrams are those of a capture.
  UdpPorts(bool gro, bool replay) : gro_(gro), replay_(replay) {}

  /// Binds, or finds the port that has this endpoint already (port 0 is always a new one).
  UdpPort& open(const Endpoint& endpoint);
  /// Asks for room for `stall_budget_s` of packets. Throws OsLimitError with the remedy when less
  /// is granted, unless `allow_small`: then receive_buffer_ok() is false.
  void reserve(const UdpPort& port, double packets_per_s, double packet_bytes,
               double stall_budget_s, bool allow_small);
  /// Makes the buffers for datagrams of up to `max_bytes`.
  void allocate(std::size_t max_bytes);

  /// Reads one batch; `take(datagram)` returns how each was judged.
  template <class Take>
  void receive(UdpPort& port, std::size_t limit, const Take& take) {
    port.useful = false;
    for (const auto& datagram : reader_->receive(port.socket, limit)) {
      ++port.received;
      port.useful |= tells_position(take(datagram));
    }
  }

  std::size_t size() const { return ports_.size(); }
  bool empty() const { return ports_.empty(); }
  UdpPort& operator[](std::size_t i) { return *ports_[i]; }
  const UdpPort& operator[](std::size_t i) const { return *ports_[i]; }
  /// A new segment: all have been read up to its origin.
  void rewind(std::int64_t origin) {
    for (auto& port : ports_) port->position = origin;
  }
  /// The port that takes a captured datagram between these addresses (sockaddr), or nullptr. Its
  /// number must be that of the endpoint, or the endpoint's 0. A multicast group must be the
  /// address it was sent to, and any source filter hold; of other endpoints the one of the address
  /// is taken, or the first: a capture is read on other machines than it was made on.
  UdpPort* find(const void* from, const void* to);
  /// "no packet came from the multicast group ...", of those that stayed silent; "" when none did.
  std::string silent_groups() const;
  bool receive_buffer_ok() const { return receive_buffer_ok_; }
  void update_drops();
  std::uint64_t drops() const;
  std::int64_t memory_bytes() const { return reader_ ? reader_->memory_bytes() : 0; }

 private:
  bool gro_, replay_;
  bool receive_buffer_ok_ = true;
  std::vector<std::unique_ptr<UdpPort>> ports_;
  std::unique_ptr<DatagramReader> reader_;
};

}  // namespace ryle
