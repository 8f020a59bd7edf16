// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"
#include "ryle/runtime/chunk.hpp"

namespace ryle {

/// Where live or replayed samples come from, as the first stage sees it.
struct SourceInfo {
  std::string format;
  std::int64_t n_inputs = 0;
  SampleLayout layout;  ///< of a chunk's payload
  SampleClock clock;    ///< of the current segment (epoch is known once locked)
  TimeSource time_source = TimeSource::packet;
};

/// The last packet refused for a reason, for whoever looks for the cause.
struct RejectedPacket {
  std::string sender;      ///< "10.1.2.3:4015"
  std::int64_t bytes = 0;  ///< length; of a stream, of the piece that was skipped
  std::string header;      ///< its first bytes, at most 16, hexadecimal
};

/// One definition each: ingest.md 5.4. received = used + rejected always holds (used = placed).
struct IngestCounters {
  std::uint64_t received = 0;  ///< datagrams, or groups on a stream transport
  std::uint64_t used = 0;      ///< placed into a chunk
  std::map<std::string, std::uint64_t>
      rejected;  ///< by reason: late, future, duplicate, conflict, overrun, prelock,
                 ///< control, sender_invalid, too_short, ... foreign_sender, ...
  std::map<std::string, RejectedPacket> last_rejected;  ///< by reason, where it is known
  std::uint64_t rejected_connections = 0;  ///< TCP: closed at once, not a group was read
  std::string last_rejected_connection;    ///< who asked for it
  std::uint64_t rebound = 0;  ///< streams that went to another sender while theirs still sent
  std::uint64_t kernel_drops = 0;
  std::uint64_t present_slots = 0, missing_slots = 0;  ///< of closed chunks
  std::uint64_t lost_samples = 0;                      ///< input samples absent in closed chunks
  /// As missing_slots and lost_samples, of streams that never delivered: configured, but nothing
  /// that was sent is lost.
  std::uint64_t undelivered_slots = 0, undelivered_samples = 0;
  std::uint64_t chunks = 0, dropped_chunks = 0;
  std::uint64_t segments = 0;
  std::vector<std::string> notes;  ///< lines for the operator: a multicast group that stayed
                                   ///< silent, what of a capture was left out
  std::string fault;  ///< why the input cannot be read to its end, and what of it was; "" = it can
  std::int64_t balance() const;  ///< received - used - sum(rejected); must be 0
};
/// "2000 rejected: 1990 too_short (the last from 10.1.2.3:4015, 60 bytes: 4d 57 33 32 ...), 10
/// late", the commonest reason first; "" when none are. Of those since `before` when it is given.
std::string rejected_text(const IngestCounters& counters, const IngestCounters* before = nullptr);

/// A source of chunks. next() and release() are called by one consumer thread; counters() by any.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual SourceInfo info() const = 0;
  virtual void start() = 0;
  /// Next chunk in time order, or nullptr after `timeout` or at the end (then ended() is true).
  virtual Chunk* next(std::chrono::milliseconds timeout) = 0;
  virtual void release(Chunk* chunk) = 0;
  virtual bool ended() const = 0;
  /// Closes the head: open chunks are closed as short and still delivered, then ended().
  virtual void stop() = 0;
  virtual IngestCounters counters() const = 0;
  /// "NO_DATA", "OK", "DEGRADED(rcvbuf)", ...
  virtual std::string state() const = 0;
  virtual std::int64_t memory_bytes() const = 0;
};

}  // namespace ryle
