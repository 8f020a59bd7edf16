// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/endpoint.hpp"
#include "ryle/core/time.hpp"
#include "ryle/simulate/sender.hpp"

namespace ryle::simulate::detail {

/// An endpoint to send to: parse_endpoint(), but port 0 is none, and pipes are not written.
Endpoint parse_target(const std::string& text);

/// One capture node: its packed record, its socket and where it is in the schedule. Positions count
/// samples since the start of the schedule; [begin, end) outages are sorted and disjoint.
class Link {
 public:
  using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

  Link(Endpoint endpoint, std::vector<std::byte> image, std::int64_t period, Tick start_tick,
       Spans outages, std::int64_t granularity);
  virtual ~Link() = default;

  /// Makes progress on connecting; true when there is a connection. Never blocks.
  bool connect();
  std::string last_error() const;  ///< why the latest attempt to connect failed
  /// Sends what is due, at most about `maximum` samples of it, without blocking. True when the
  /// socket is full.
  bool advance(std::int64_t due, std::int64_t maximum);
  /// Closes; a broken link counts what passed up to `due` as skipped.
  virtual void finish(std::int64_t due);

  /// Its connection broke and has not come back.
  bool down() const { return was_broken_ && !socket_; }
  std::int64_t position() const { return position_; }
  int fd() const { return socket_.get(); }
  const Endpoint& endpoint() const { return endpoint_; }
  SenderCounters counters() const;
  std::int64_t memory_bytes() const { return static_cast<std::int64_t>(image_.size()); }
  /// The packed packets of a period. Who writes there writes what is not being sent.
  std::span<std::byte> image() { return image_; }

 protected:
  enum class Sent { all, full, broken };
  /// Sends samples [position_, until) as far as the socket takes them and moves position_.
  virtual Sent send_until(std::int64_t until) = 0;
  /// Called with a new socket.
  virtual void prepare() {}
  /// Called when a connection is lost or closed: forget what was under way.
  virtual void reset_stream() {}
  void count_sent(std::int64_t samples, std::int64_t packets, std::int64_t bytes);
  void count_rejected() { rejected_.fetch_add(1, std::memory_order_relaxed); }

  const Endpoint endpoint_;
  std::vector<std::byte> image_;
  const std::int64_t period_;
  const Tick start_tick_;
  const std::int64_t granularity_;  ///< samples of the smallest thing that can be sent
  Descriptor socket_;
  std::int64_t position_ = 0;

 private:
  void skip_to(std::int64_t position);
  void begin_attempt();
  bool accept_connection(Descriptor& candidate);

  Spans outages_;
  std::size_t next_outage_ = 0;
  Descriptor pending_;
  std::int64_t next_attempt_ns_ = 0;
  bool was_broken_ = false;
  std::string last_error_;
  std::atomic<std::int64_t> samples_sent_{0}, packets_sent_{0}, bytes_sent_{0}, samples_skipped_{0},
      disconnects_{0}, rejected_{0};
};

std::unique_ptr<Link> make_tcp_link(Endpoint endpoint, std::vector<std::byte> groups,
                                    std::int64_t period, Tick start_tick, Link::Spans outages);

/// Packets of one size with a big-endian 64-bit counter: counter = bias + scale * tick of the first
/// sample.
struct UdpPacketFormat {
  std::int64_t packet_samples = 1;
  std::int64_t packet_bytes = 0;
  std::int64_t counter_offset = 8;
  std::uint64_t counter_bias = 0;
  std::uint64_t counter_scale = 1;
  /// Hand the kernel up to this many packets as one message it cuts (UDP_SEGMENT); 1 = never.
  std::int64_t packets_per_message = 1;
  /// Which of the laps that `packets` holds one after the other is sent from a tick on; ascending.
  /// Empty: the first, always.
  struct Epoch {
    Tick first = 0;
    std::int64_t lap = 0;
  };
  std::vector<Epoch> epochs;
  /// Replaces bias + scale * tick where the counter is not linear in the tick.
  std::function<std::uint64_t(Tick)> word;
  /// Writes the counter itself where it is no big-endian word of 64 bits.
  std::function<void(Tick, std::span<std::byte> packet)> stamp;
  /// Packets that are not sent as they lie: `edits` says which, `edit` changes a copy.
  std::function<bool(Tick)> edits;
  std::function<void(Tick, std::byte* packet)> edit;
  /// What happens to packets on their way; see SendImpairments.
  SendImpairments impairments;
  std::int64_t header_bytes = 16;
  /// Takes the packets instead of the socket, with the tick of their first sample.
  std::function<void(Tick, std::span<const std::byte>)> sink;
};
/// Which link it is, of which receiver or board, at which rate of ticks.
struct LinkInfo {
  std::int64_t link = 0, receiver = 0;
  double rate_hz = 0;
};
/// Throws ConfigError for a stream of bytes where datagrams are asked for.
void require_datagrams(const SendImpairments& impairments, const PacketSink& sink,
                       const Endpoint& to);
/// What every link of packets is told: impairments, and who takes the packets. Throws as
/// require_datagrams().
void complete_format(UdpPacketFormat& format, const SendImpairments& impairments,
                     const PacketSink& sink, const Endpoint& to, const LinkInfo& place);
/// To tcp:// endpoints the same packets go as a stream of bytes.
std::unique_ptr<Link> make_udp_link(Endpoint endpoint, std::vector<std::byte> packets,
                                    std::int64_t period, Tick start_tick, Link::Spans outages,
                                    const UdpPacketFormat& format);

/// Packets of this size that the kernel cuts from one message: below 64 KiB and 64 packets.
std::int64_t packets_per_message(std::int64_t packet_bytes);

/// CLOCK_MONOTONIC, nanoseconds.
std::int64_t monotonic_ns();

}  // namespace ryle::simulate::detail
