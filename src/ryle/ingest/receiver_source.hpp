// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ryle/ingest/quorum_gate.hpp"
#include "ryle/ingest/source.hpp"

namespace ryle {

/// What the receivers of all formats can be told.
struct ReceiverConfig {
  double stall_budget_s = 0.1;      ///< the socket buffers must hold what comes in this time
  double rate_factor = 1.0;         ///< of the expected rate over that of the clock (simulators)
  bool allow_small_rcvbuf = false;  ///< go on as DEGRADED(rcvbuf) instead of refusing
  bool udp_gro = true;              ///< let the kernel join datagrams where it can
  std::vector<std::string> allowed_senders;  ///< networks (SenderList); empty = any
  /// A start of UDP counters further from this host's clock is refused (Reason::time); 0 = any, for
  /// replays, and where the clock is not of an instant that the counters are told from.
  double max_clock_error_s = 0;
  bool bind_stream_to_sender = true;

  /// Packets are those of this capture file (capture_file.hpp) instead of the network's; "" = the
  /// network. Endpoints, all of udp://, say which of its datagrams are taken: see
  /// UdpPorts::find().
  std::string capture;
  /// Times the recorded speed; 0 = as fast as the consumer takes the chunks, and nothing is
  /// dropped.
  double replay_speed = 0;
  /// What is received is flow-controlled: it waits for the consumer, nothing is dropped.
  bool waits = false;

  MonotonicNs close_after_ns = 100 * kMillisecond_ns;  ///< see AssemblerConfig
  MonotonicNs idle_close_ns = 1000 * kMillisecond_ns;
  MonotonicNs patience_ns = 2000 * kMillisecond_ns;  ///< with streams that never come
};

class ReceiverThread;

/// A live source: what all formats do alike, by the thread that receives their packets.
class ReceiverSource : public ChunkSource {
 public:
  ~ReceiverSource() override;

  void start() override;
  Chunk* next(std::chrono::milliseconds timeout) override;
  void release(Chunk* chunk) override;
  bool ended() const override;
  void stop() override;
  IngestCounters counters() const override;
  std::string state() const override;
  std::int64_t memory_bytes() const override;

  /// As bound: port 0 replaced by the port the system chose.
  std::vector<std::string> endpoints() const;
  /// UDP buffers granted are as large as needed.
  bool receive_buffer_ok() const;
  /// Overwrites all chunks (tests). @pre not started
  void poison(std::byte value);

 protected:
  explicit ReceiverSource(std::unique_ptr<ReceiverThread> receiver);
  const ReceiverThread& receiver() const { return *receiver_; }

 private:
  std::unique_ptr<ReceiverThread> receiver_;
};

}  // namespace ryle
