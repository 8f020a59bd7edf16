// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/endpoint.hpp"
#include "ryle/core/time.hpp"
#include "ryle/simulate/voltages.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::simulate {

/// A capture node that dies and returns: its samples of [from_s, until_s) after the start are never
/// sent; on TCP its connection is closed and made again.
struct Outage {
  std::int64_t receiver = 0;
  double from_s = 0;
  double until_s = 0;
};

/// What a bad network and bad boards do to datagrams (impair.hpp); chances per packet.
struct SendImpairments {
  double loss = 0;
  double bursts = 0;          ///< chance that a burst of loss begins ...
  double burst_packets = 10;  ///< ... of this mean length
  double duplicate = 0;
  double reorder = 0;  ///< held back behind up to reorder_packets later ones
  std::int64_t reorder_packets = 8;
  double corrupt = 0;  ///< a bit of the header flips
  /// A board whose counter jumps by clock_step_s at clock_step_at_s; receiver -1: all.
  double clock_step_s = 0, clock_step_at_s = 0;
  std::int64_t clock_step_receiver = -1;
  std::uint64_t seed = 1;
  /// The same for one link in ticks.
  std::int64_t step_ticks = 0, step_at_tick = 0;

  /// Anything happens to single packets.
  bool any_packet() const {
    return loss > 0 || bursts > 0 || duplicate > 0 || reorder > 0 || corrupt > 0;
  }
  bool any() const { return any_packet() || clock_step_s != 0; }
  /// Those of a link: another seed for each, the step in ticks.
  SendImpairments of_link(std::int64_t link, std::int64_t receiver, double rate_hz) const;
};

/// Takes packets in the place of the network: a file. `seconds` since the start of the schedule.
using PacketSink =
    std::function<void(double seconds, const Endpoint& to, std::span<const std::byte> packet)>;

struct SenderConfig {
  std::vector<std::string> endpoints;  ///< one per receiver: "tcp://host:port" or "udp://host:port"
  double speed = 1;                    ///< times real time; 0 = as fast as the receiver takes it
  double duration_s = 0;               ///< of data (not of sending); 0 = until stop()
  Tick start_tick = 0;                 ///< of the first sample; record sample = tick mod n_samples
  std::int64_t packet_samples = 256;   ///< mwa32t-udp
  wire::Mwa32tMarker marker;           ///< groups on TCP
  std::vector<Outage> outages;
  double connect_timeout_s = 30;  ///< TCP: how long to wait for every receiver to listen
  double udp_ceiling_packets_per_s =
      60'000;                   ///< all receivers together, at speed 0: UDP cannot push back
  SendImpairments impairments;  ///< of UDP
  PacketSink sink;
};

/// What one capture node did. samples_sent + samples_skipped = samples of the schedule so far.
struct SenderCounters {
  std::int64_t samples_sent = 0;  ///< whole instants given to the kernel
  std::int64_t packets_sent = 0;  ///< datagrams; groups on TCP
  std::int64_t bytes_sent = 0;
  std::int64_t samples_skipped =
      0;                         ///< outages, and what passed while a broken connection was down
  std::int64_t disconnects = 0;  ///< connections the receiver closed or reset
  std::int64_t rejected = 0;     ///< UDP: nobody listened (ICMP port unreachable)
};

struct SenderReport {
  std::vector<SenderCounters> receivers;
  double elapsed_s = 0;               ///< since the first sample was due
  double cpu_s = 0;                   ///< of the sending thread
  double longest_lag_s = 0;           ///< largest delay behind the schedule (speed > 0)
  std::int64_t samples_sent() const;  ///< of all receivers
};

namespace detail {
class SendLoop;
}

/// Sends the packets of a periodic record over real sockets, again and again, with counters that
/// run on. One thread, paced on CLOCK_MONOTONIC. TCP connections are retried until the receiver
/// listens; the schedule starts when all are there. Live links never wait for a slow receiver's
/// neighbours. Public functions may be called from any thread; start() once.
class Sender {
 public:
  virtual ~Sender();  ///< stops and joins; an error not fetched by join() is dropped
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Sends nothing while `hold`, asked by the sender's thread, is true. Before start().
  void hold_while(std::function<bool()> hold);
  void start();
  void stop();                  ///< asks to end after the current packets; returns at once
  bool running() const;         ///< started and not yet at its end
  SenderReport report() const;  ///< so far
  SenderReport
  join();  ///< waits for the end; throws what went wrong (IoError when nobody listened)
  virtual std::int64_t memory_bytes() const;

 protected:
  Sender();
  detail::SendLoop& loop() { return *loop_; }

 private:
  std::unique_ptr<detail::SendLoop> loop_;
};

/// The array's capture nodes: each sends its 16 inputs.
class Mwa32tSender final : public Sender {
 public:
  /// Packs the packets (36 MB for 2^18 samples of 64 inputs); the record is not needed afterwards.
  /// Throws ConfigError naming the endpoint or size that does not work.
  Mwa32tSender(const VoltageRecord& record, const SenderConfig& config);
  /// Samples that are drawn while they are sent, without a period. @pre config.start_tick is a
  /// multiple of the stream's n_samples
  Mwa32tSender(std::shared_ptr<const VoltageStream> stream, const SenderConfig& config);

 private:
  void make_links(const VoltageRecord& record, std::int64_t n_laps, const SenderConfig& config);
};

}  // namespace ryle::simulate
