// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ryle/ingest/assembler.hpp"
#include "ryle/ingest/capture_file.hpp"
#include "ryle/ingest/receiver_source.hpp"
#include "ryle/ingest/source.hpp"
#include "ryle/ingest/stream_inputs.hpp"
#include "ryle/ingest/udp_ports.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle {

/// CLOCK_MONOTONIC.
MonotonicNs monotonic_ns();

/// Whether a slot's time can be: from 1961 to 2200 (else a counter has wrapped), and at most
/// `max_clock_error_s` from this host's clock unless that is 0. `clock` counts ticks.
std::function<bool(std::int64_t slot)> possible_time(const SampleClock& clock,
                                                     std::int64_t ticks_per_slot,
                                                     double max_clock_error_s);

/// Streams of which all go on so much later are the same observation, with absent samples between
/// (AssemblerConfig::max_gap_slots): longer is a restart.
inline constexpr double kMaxLiveGap_s = 10;
/// The same in slots. @param slots_per_s of data
std::int64_t max_gap_slots(double slots_per_s);

/// TAI less Unix time at present, and TAI by this host's clock.
std::int64_t tai_minus_unix_ns();
std::int64_t host_tai_ns();

/// What every live source does alike: a thread that serves sockets until it is asked to stop and
/// they are drained, timers of the assembler, a snapshot of counters and state for others. What to
/// serve, and in which order, is the format's.
class ReceiverThread : private StreamSink {
 public:
  ~ReceiverThread() override = default;  ///< derived destructors call end() first
  ReceiverThread(const ReceiverThread&) = delete;
  ReceiverThread& operator=(const ReceiverThread&) = delete;

  ChunkPool& pool() { return *pool_; }
  const ChunkPool& pool() const { return *pool_; }
  void start();
  void stop();
  IngestCounters counters() const;
  std::string state() const;
  bool receive_buffer_ok() const { return ports_.receive_buffer_ok(); }
  virtual std::int64_t memory_bytes() const;
  /// As bound: port 0 replaced by the port the system chose.
  virtual std::vector<std::string> endpoints() const;

 protected:
  /// Opens the capture where there is one. Throws as CaptureReader and SenderList do.
  explicit ReceiverThread(const ReceiverConfig& config);
  /// @pre one has begun
  std::int64_t newest_segment() const {
    return static_cast<std::int64_t>(assembler_->totals().segments) - 1;
  }
  /// Packets are those of a capture: there are no sockets.
  bool replays() const { return capture_ != nullptr; }
  /// TAI at which what is being read arrived, by this host's clock or that of the capture.
  std::int64_t arrival_tai_ns() const;
  /// Allocates the chunks and makes the assembler. `samples_per_slot` is for lost_samples only.
  void allocate(const AssemblerConfig& config, std::unique_ptr<Placement> placement, int n_chunks,
                std::int64_t reserved_spans, MemorySpace memory, std::uint64_t samples_per_slot);
  /// Stops at once and waits for the thread.
  void end();
  void publish();
  /// A port for datagrams, or for the same packets in a stream of bytes (tcp, pipes). Throws
  /// ConfigError for such a stream where packets are those of a capture.
  void open_port(const Endpoint& endpoint);
  /// Makes the buffers for datagrams of up to `max_bytes`; in a stream all have so many.
  void allocate_ports(std::size_t max_bytes);
  /// As allocate_ports(), for streams that are cut otherwise.
  void set_cutters(const std::function<std::unique_ptr<StreamCutter>()>& make) {
    streams_.set_cutters(make);
  }
  /// What is being read came in a stream of bytes.
  bool reads_stream() const { return reading_ != nullptr; }
  /// Which of the endpoints that are streams is being read.
  std::size_t reading_stream() const { return reading_->source; }
  /// A packet that came through `port`.
  Reason offer(UdpPort& port, const CountedPacket& packet);
  /// Judges and counts a datagram of any sender: the allow-list, truncation, then the format.
  Reason judge(UdpPort& port, const DatagramReader::Datagram& datagram);
  /// Reads one batch of a port.
  void receive(UdpPort& port, std::size_t limit);
  /// A round over the capture: a batch of datagrams, those that are due. Sets now_.
  bool serve_capture(int timeout_ms);
  /// A round over ports and streams of bytes that each may bring any stream: those at most
  /// `skew_slots` ahead of the furthest behind are read, one batch each. Sets now_.
  bool serve_ports(int timeout_ms, std::int64_t skew_slots);
  /// Keeps who sent what was refused last for a reason.
  void note_rejected(Reason reason, const SenderAddress& sender,
                     std::span<const std::byte> bytes = {});
  bool allowed(const SenderAddress& sender) const { return senders_.allows(sender); }

  /// One round: whatever is readable, the furthest behind first. Sets now_. Returns whether
  /// anything was.
  virtual bool serve(int timeout_ms) = 0;
  /// Decodes a datagram and counts it in the assembler.
  virtual Reason take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) = 0;
  /// Gives streams without a time of their own a position; returns whether one was given.
  virtual bool align() { return false; }
  /// As align(), for streams that still wait when the sockets are drained.
  virtual bool align_at_end() { return false; }
  virtual bool finished_by_itself() const { return streams_.ended(); }
  /// A header in a stream of bytes; see StreamSink.
  void on_header(std::int64_t) override {}
  /// A block of such a stream. The base class takes none.
  virtual Reason take_block(UdpPort& port, Tick tick, std::span<const std::byte> block);
  /// A segment has begun and nothing of it is placed yet.
  virtual void segment_begun() {}
  /// The packet that is being offered begins where packets of the segment do.
  virtual bool keeps_grid() const { return true; }
  virtual void disconnect_all() {}
  /// A line for the operator that only the format knows (IngestCounters::notes), or "".
  virtual std::string format_note() const { return {}; }
  /// Reasons for DEGRADED that only the format knows, comma separated.
  virtual std::string more_reasons() const { return {}; }

  UdpPorts ports_;
  std::unique_ptr<ChunkPool> pool_;
  std::unique_ptr<Assembler> assembler_;
  MonotonicNs now_ = 0;
  std::uint64_t rejected_connections_ = 0;
  SenderAddress last_rejected_connection_;  ///< connection

  mutable std::mutex mutex_;  // the snapshot

 private:
  bool on_packet(std::span<const std::byte> packet) final;
  bool on_block(Tick tick, std::span<const std::byte> block) final;
  void read_stream(StreamInputs::Input& input, std::int64_t max_units);
  void run();
  void housekeeping(bool force);
  bool next_captured();
  bool captured_is_due(int timeout_ms);
  std::string capture_note() const;
  std::string jump_note() const;
  void update_notes();

  /// RejectedPacket before it is text.
  struct LastRejected {
    bool any = false;
    SenderAddress sender;
    std::size_t n_bytes = 0, n_header = 0;
    std::array<std::byte, 16> header{};
  };

  SenderList senders_;
  StreamInputs streams_;
  StreamInputs::Input* reading_ = nullptr;
  std::string capture_path_;
  std::unique_ptr<CaptureReader> capture_;
  bool waits_ = false;
  double replay_speed_ = 0;
  CapturedDatagram captured_;  // the next one
  bool has_captured_ = false;  // there is one
  bool capture_ended_ = false;
  std::uint64_t other_ports_ = 0;  // datagrams of the capture that no endpoint takes
  MonotonicNs replay_begin_ = 0;   // by this host's clock
  std::string fault_;
  std::array<LastRejected, kReasons> last_rejected_;
  std::uint64_t samples_per_slot_ = 1;
  double gap_slots_per_s_ = 0;  // of data
  bool ended_by_itself_ = false;
  MonotonicNs last_poll_ = 0, last_drops_ = 0, last_publish_ = 0;
  IngestCounters snapshot_;
  std::array<LastRejected, kReasons> rejected_snapshot_;
  SenderAddress rejected_connection_snapshot_;
  std::string state_ = "NO_DATA";
  std::atomic<bool> stopping_{false}, abandon_{false};
  std::mutex start_mutex_;
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle
